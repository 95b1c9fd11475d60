//! Step 4: the sender's part is split as well.
//!
//! The traversal of step 2 only copies and frees.

#[path = "../inlined/cdr.rs"]
pub mod cdr;
#[path = "../merged/code.rs"]
pub mod code;
#[path = "../receiver/decode.rs"]
pub mod decode;
pub mod encode;
#[path = "../merged/traverse.rs"]
pub mod traverse;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use decode::{decode, one_by_one as decode_scalars};
pub use encode::{encode, one_by_one as encode_scalars};
pub use traverse::{copy, free};

/// Whether the traversal also reads values.
pub const DECODES: bool = false;
/// Whether the traversal also writes values.
pub const ENCODES: bool = false;

/// Returns a fault, out of line.
#[cold]
#[inline(never)]
pub fn rare(fault: Fault) -> Fault {
    fault
}
