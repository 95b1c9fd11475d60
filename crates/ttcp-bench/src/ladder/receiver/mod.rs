//! Step 3: the receiver is split into small routines, and error handling is moved out of line.
//!
//! Each kind of constructed type has a small routine for decoding ([`mod@decode`]), which need not check
//! which operation is performed. Faults are returned through a function that is not inlined ([`raise`]), so
//! that the common code is contiguous. Encoding, copying and freeing remain in the traversal of step 2.

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

const TRAVERSAL_DECODES: bool = false;
const TRAVERSAL_ENCODES: bool = true;

/// Returns the fault. It is not inlined, so that error handling is out of line.
#[cold]
#[inline(never)]
pub(crate) fn raise(fault: Fault) -> Fault {
    fault
}
