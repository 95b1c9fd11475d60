//! Step 3: the receiver is split into small routines, and error handling is moved out of line.
//!
//! Each kind of constructed type has a small routine for reading ([`mod@decode`]), which need not check the
//! operation. Faults are returned through a function that is not inlined ([`raise`]), so that the common code
//! is contiguous. Writing, copying and freeing remain in the traversal of step 2, which no longer reads
//! values.

#[path = "../inlined/cdr.rs"]
pub(crate) mod cdr;
#[path = "../merged/code.rs"]
pub(crate) mod code;
pub(crate) mod decode;
#[path = "../merged/traverse.rs"]
pub(crate) mod traverse;

pub(crate) use super::base::*;
pub(crate) use cdr::Cdr;
pub(crate) use code::{StoredTypeCode, TypeCode};
pub(crate) use decode::{decode, decode_one_by_one as decode_scalars};
pub(crate) use traverse::{copy, encode, free};

const DECODES: bool = false;
const ENCODES: bool = true;

/// Returns the fault. Not inlined, so that error handling is out of line.
#[cold]
#[inline(never)]
pub(crate) fn raise(fault: Fault) -> Fault {
    fault
}
