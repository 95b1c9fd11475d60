//! The numbers of the kinds of types (`CORBA::TCKind`).
#![allow(missing_docs, reason = "the names are those of the kinds")]

pub const NULL: u32 = 0;
pub const VOID: u32 = 1;
pub const SHORT: u32 = 2;
pub const LONG: u32 = 3;
pub const USHORT: u32 = 4;
pub const ULONG: u32 = 5;
pub const FLOAT: u32 = 6;
pub const DOUBLE: u32 = 7;
pub const BOOLEAN: u32 = 8;
pub const CHAR: u32 = 9;
pub const OCTET: u32 = 10;
pub const TYPE_CODE: u32 = 12;
pub const STRUCT: u32 = 15;
pub const ENUM: u32 = 17;
pub const SEQUENCE: u32 = 19;
pub const ARRAY: u32 = 20;
pub const LONGLONG: u32 = 23;
pub const ULONGLONG: u32 = 24;
