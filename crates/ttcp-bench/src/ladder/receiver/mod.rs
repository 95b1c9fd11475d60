//! Step 3: the receiver's part of the one large routine is split, and rare cases are moved out of line.
//!
//! Each kind of constructed type has a routine ([`mod@decode`]) that needs no check of the operation and fits
//! into the cache. Faults are created out of line ([`rare`]), so that the common code is contiguous. Writing,
//! copying and freeing remain in the traversal of step 2, which no longer reads values.

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
pub use decode::{decode, one_by_one as decode_scalars};
pub use traverse::{copy, encode, free};

/// Whether the traversal also reads values.
pub const DECODES: bool = false;
/// Whether the traversal also writes values.
pub const ENCODES: bool = true;

/// Returns a fault, out of line.
#[cold]
#[inline(never)]
pub fn rare(fault: Fault) -> Fault {
    fault
}
