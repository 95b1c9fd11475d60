//! The interpreter that writes and reads Rust values of `@interpretive` types, in place of compiled
//! marshalling code for each type.
//!
//! A generated type only exposes its parts: the members of a struct as an array of trait objects, the
//! selected member of a union, or the ordinal of an enum. The processing is implemented here, once for all
//! types. The type code determines the types of members, the encoding of labels, and the members that they
//! select. Bytes, errors and limits are the same as with compiled code.
//!
//! Except for the use counters of [`Adaptive`] types, everything here is for generated code only.

mod leaf;
mod read;
mod uses;
mod write;

use std::borrow::Cow;

pub use leaf::{CompiledMut, CompiledRef, Optional, OptionalMut};
pub use read::{
    Blank, ReflectRead, ReflectReader, enumerator_from_ordinal, read_interpreted, read_interpreted_array,
    read_interpreted_vec,
};
pub use uses::{Adaptive, CompiledDecode, CompiledEncode, Uses};
pub use write::{ReflectWrite, ReflectWriter, write_interpreted, write_interpreted_slice};

use crate::typecode::{Index, TypeCode, TypeDesc};

/// Returns the type code of a description. The type codes of defined types are cached.
fn code_of(desc: &'static TypeDesc) -> Cow<'static, TypeCode> {
    match desc {
        TypeDesc::Defined(definition) => Cow::Borrowed(definition().code(desc)),
        _ => Cow::Owned(TypeCode::of_desc(desc)),
    }
}

fn unaliased_root(code: &TypeCode) -> Index {
    code.nodes.unaliased(code.root)
}
