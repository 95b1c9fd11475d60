//! Step 2: sizes and alignments worked out once, one routine for the walk and all visits, type codes handed down, scalars freed at a stroke.
//!
//! * What a type code needs to be walked is worked out when the type code is read and stays with it ([`Layout`](code::Layout)).
//! * The walk over a struct and the visits are one routine, [`traverse`](traverse::traverse), with what is to be done as an argument:
//!   a number, and an array of numbers, is no call any more.
//! * Who knows the type of the elements hands it to who needs it.
//! * To free a sequence it looks at the kind of its elements first: numbers refer to nothing.
//!
//! The octets of a struct's type code, with its members' names, are still parsed for every value.

#[path = "../inlined/cdr.rs"]
pub mod cdr;
pub mod code;
pub mod traverse;

pub use super::base::*;
pub use super::inlined::rare;
pub use cdr::Cdr;
pub use code::{Known, TypeCode};
pub use traverse::{copy, decode, encode, free};

/// Whether the walk still reads values.
pub const DECODES: bool = true;
/// Whether the walk still writes values.
pub const ENCODES: bool = true;
