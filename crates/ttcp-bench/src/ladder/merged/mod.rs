//! Step 2: sizes are precomputed, and traversal and visits are one routine.
//!
//! * Sizes and alignments are computed when the type code is read, and stored with it
//!   ([`Layout`](code::Layout)).
//! * A single routine, [`traverse`](traverse::traverse), replaces the traversal and the visits, which were
//!   function pointers. It gets the operation as an argument. Numbers and arrays of numbers need no calls.
//! * A routine that knows the element type passes it to the routines that need it.
//! * Freeing a sequence does not traverse numbers, because they have no buffers.
//!
//! The bytes of a struct's type code, with the names of its members, are still parsed for every value.

#[path = "../inlined/cdr.rs"]
pub(crate) mod cdr;
pub(crate) mod code;
pub(crate) mod traverse;

pub(crate) use super::base::*;
pub(crate) use super::inlined::raise;
pub(crate) use cdr::Cdr;
pub(crate) use code::{StoredTypeCode, TypeCode};
pub(crate) use traverse::{copy, decode, encode, free};

/// Whether the traversal decodes values. Later steps have other routines for this.
const TRAVERSAL_DECODES: bool = true;
/// Whether the traversal encodes values. Later steps have other routines for this.
const TRAVERSAL_ENCODES: bool = true;
