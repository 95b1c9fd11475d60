//! The interpreter for Rust values, which replaces marshalling code for `@interpretive` types in generated
//! code.
//!
//! A type only exposes its parts: the members of a struct as an array of trait objects, the selected member
//! of a union, the ordinal of an enum. The processing is implemented here, once for all types. The type code
//! determines the next member, the encoding of labels and the member that they select, bounds, and the
//! minimum size of an element. Bytes, errors and limits are the same as with compiled code for a type.
//!
//! Everything here is for generated code only.

mod leaf;
mod read;
mod uses;
mod write;

use std::borrow::Cow;

pub use leaf::{CompiledMut, CompiledRef, Optional, OptionalMut};
pub use read::{
    Blank, ReflectRead, ReflectReader, interpreted, interpreted_array, interpreted_vec, of_ordinal,
};
pub use uses::{Adaptive, CompiledDecode, CompiledEncode, Uses};
pub use write::{ReflectWrite, ReflectWriter, interpret, interpret_slice};

use crate::typecode::{Index, TypeCode, TypeDesc};

/// Returns the type code of a description, which is cached for types with a name.
fn code_of(desc: &'static TypeDesc) -> Cow<'static, TypeCode> {
    match desc {
        TypeDesc::Defined(definition) => Cow::Borrowed(definition().code(desc)),
        _ => Cow::Owned(TypeCode::of_desc(desc)),
    }
}

fn root(code: &TypeCode) -> Index {
    code.nodes.unaliased(code.root)
}
