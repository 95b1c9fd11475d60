//! Step 4: the sender is split into small routines, too.
//!
//! The traversal of step 2 now only copies and frees values.

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
pub use super::receiver::raise;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use decode::{decode, decode_one_by_one as decode_scalars};
pub use encode::{encode, encode_one_by_one as encode_scalars};
pub use traverse::{copy, free};

/// Whether the traversal supports reading values.
pub const DECODES: bool = false;
/// Whether the traversal supports writing values.
pub const ENCODES: bool = false;
