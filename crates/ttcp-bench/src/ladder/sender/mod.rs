//! Step 4: the sender is also split into small routines. The traversal of step 2 now only copies and frees.

#[path = "../inlined/cdr.rs"]
pub(crate) mod cdr;
#[path = "../merged/code.rs"]
pub(crate) mod code;
#[path = "../receiver/decode.rs"]
pub(crate) mod decode;
pub(crate) mod encode;
#[path = "../merged/traverse.rs"]
pub(crate) mod traverse;

pub(crate) use super::base::*;
pub(crate) use super::receiver::raise;
pub(crate) use cdr::Cdr;
pub(crate) use code::{StoredTypeCode, TypeCode};
pub(crate) use decode::{decode, decode_one_by_one as decode_scalars};
pub(crate) use encode::{encode, encode_one_by_one as encode_scalars};
pub(crate) use traverse::{copy, free};

const TRAVERSAL_DECODES: bool = false;
const TRAVERSAL_ENCODES: bool = false;
