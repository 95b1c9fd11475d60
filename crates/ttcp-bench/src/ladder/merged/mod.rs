//! Step 2: sizes are precomputed, and traversal and visits are one routine.
//!
//! * Sizes and alignments are computed when the type code is read, and stored with it
//!   ([`Layout`](code::Layout)).
//! * A single routine, [`traverse`](traverse::traverse), replaces the traversal and the visits. It takes the
//!   operation as an argument. Numbers and arrays of numbers need no calls.
//! * A routine that knows the element type passes it to the routines that need it.
//! * Freeing a sequence does not traverse numbers, because they have no buffers.
//!
//! The bytes of a struct's type code, with the names of its members, are still parsed for every value.

#[path = "../inlined/cdr.rs"]
pub mod cdr;
pub mod code;
pub mod traverse;

pub use super::base::*;
pub use super::inlined::raise;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use traverse::{copy, decode, encode, free};

/// Whether the traversal supports reading values.
pub const DECODES: bool = true;
/// Whether the traversal supports writing values.
pub const ENCODES: bool = true;
