//! Step 5: sequences and arrays of numbers have routines of their own, which check the bounds once, and swap
//! and copy all elements in one loop.
//!
//! The literature describes this step as future work.

#[path = "../inlined/cdr.rs"]
pub(crate) mod cdr;
#[path = "../merged/code.rs"]
pub(crate) mod code;
#[path = "../receiver/decode.rs"]
pub(crate) mod decode;
#[path = "../sender/encode.rs"]
pub(crate) mod encode;
pub(crate) mod sequences;
#[path = "../merged/traverse.rs"]
pub(crate) mod traverse;

pub(crate) use super::base::*;
pub(crate) use super::receiver::raise;
pub(crate) use cdr::Cdr;
pub(crate) use code::{StoredTypeCode, TypeCode};
pub(crate) use decode::decode;
pub(crate) use encode::encode;
pub(crate) use sequences::{decode_scalars, encode_scalars};
pub(crate) use traverse::{copy, free};

const TRAVERSAL_DECODES: bool = false;
const TRAVERSAL_ENCODES: bool = false;
