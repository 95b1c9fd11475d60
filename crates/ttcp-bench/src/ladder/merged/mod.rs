//! Step 2: sizes and alignments computed once, one routine for the traversal and all visits, type codes
//! passed down, scalars freed at once.
//!
//! * The data needed to traverse a type code is computed when the type code is read, and stored with it
//!   ([`Layout`](code::Layout)).
//! * The traversal of a struct and the visits are one routine, [`traverse`](traverse::traverse), which takes
//!   the operation as an argument. Numbers, and arrays of numbers, no longer need a call.
//! * A routine that knows the element type passes it to the routines that need it.
//! * Freeing a sequence checks the kind of its elements first: numbers refer to no buffers.
//!
//! The bytes of a struct's type code, with its members' names, are still parsed for every value.

#[path = "../inlined/cdr.rs"]
pub mod cdr;
pub mod code;
pub mod traverse;

pub use super::base::*;
pub use super::inlined::rare;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use traverse::{copy, decode, encode, free};

/// Whether the traversal also reads values.
pub const DECODES: bool = true;
/// Whether the traversal also writes values.
pub const ENCODES: bool = true;
