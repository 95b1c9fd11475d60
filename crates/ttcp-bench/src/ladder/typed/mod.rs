//! Step 5: sequences and arrays of numbers have separate routines, which check, swap and copy all of them in
//! one loop.
//!
//! The literature named this as future work. Structs are still traversed.

#[path = "../inlined/cdr.rs"]
pub mod cdr;
#[path = "../merged/code.rs"]
pub mod code;
#[path = "../receiver/decode.rs"]
pub mod decode;
#[path = "../sender/encode.rs"]
pub mod encode;
pub mod sequences;
#[path = "../merged/traverse.rs"]
pub mod traverse;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use decode::decode;
pub use encode::encode;
pub use sequences::{decode_scalars, encode_scalars};
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
