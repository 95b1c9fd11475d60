//! The numbers that stand for the kinds of types in type codes (`CORBA::TCKind`).

pub(crate) const NULL: u32 = 0;
pub(crate) const VOID: u32 = 1;
pub(crate) const SHORT: u32 = 2;
pub(crate) const LONG: u32 = 3;
pub(crate) const USHORT: u32 = 4;
pub(crate) const ULONG: u32 = 5;
pub(crate) const FLOAT: u32 = 6;
pub(crate) const DOUBLE: u32 = 7;
pub(crate) const BOOLEAN: u32 = 8;
pub(crate) const CHAR: u32 = 9;
pub(crate) const OCTET: u32 = 10;
pub(crate) const TYPE_CODE: u32 = 12;
pub(crate) const STRUCT: u32 = 15;
pub(crate) const ENUM: u32 = 17;
pub(crate) const SEQUENCE: u32 = 19;
pub(crate) const ARRAY: u32 = 20;
pub(crate) const LONGLONG: u32 = 23;
pub(crate) const ULONGLONG: u32 = 24;
