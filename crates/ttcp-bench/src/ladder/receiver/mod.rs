//! Step 3: the receiver is split into small routines, and error handling is moved out of line.
//!
//! Each kind of constructed type has a small routine for reading ([`mod@decode`]), which need not check the
//! operation. Faults are returned through a function that is not inlined ([`raise`]), so that the common code
//! is contiguous. Writing, copying and freeing remain in the traversal of step 2, which no longer reads
//! values.

#[path = "../inlined/cdr.rs"]
pub mod cdr;
#[path = "../merged/code.rs"]
pub mod code;
pub mod decode;
#[path = "../merged/traverse.rs"]
pub mod traverse;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use decode::{decode, decode_one_by_one as decode_scalars};
pub use traverse::{copy, encode, free};

/// Whether the traversal supports reading values.
pub const DECODES: bool = false;
/// Whether the traversal supports writing values.
pub const ENCODES: bool = true;

/// Returns the fault. Not inlined, so that error handling is out of line.
#[cold]
#[inline(never)]
pub fn raise(fault: Fault) -> Fault {
    fault
}
