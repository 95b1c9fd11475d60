//! Step 5: sequences and arrays of numbers have routines of their own, which check, swap and copy all
//! elements in one loop.
//!
//! The literature describes this step as future work.

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
pub use super::receiver::raise;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use decode::decode;
pub use encode::encode;
pub use sequences::{decode_scalars, encode_scalars};
pub use traverse::{copy, free};

/// Whether the traversal supports reading values.
pub const DECODES: bool = false;
/// Whether the traversal supports writing values.
pub const ENCODES: bool = false;
