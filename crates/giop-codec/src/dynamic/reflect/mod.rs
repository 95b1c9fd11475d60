//! The interpreter over Rust values: what `@interpretive` types of generated code have in place of marshalling code.
//!
//! A type only shows its parts: the members of a struct as an array of trait objects, the selected member of a union, the
//! ordinal of an enum. What is done with them is here, once for all types: the type code leads through the value, its nodes say
//! which member comes next, how labels are encoded and which member they select, what bounds are, and how few octets an element
//! takes. Octets, errors and limits are those of the code that is compiled for a type.
//!
//! Everything here is for generated code.

mod leaf;
mod read;
mod uses;
mod write;

use std::borrow::Cow;

pub use leaf::{Optional, OptionalMut, Plain, PlainMut};
pub use read::{Blank, Filled, Reading, interpreted, interpreted_array, interpreted_vec, of_ordinal};
pub use uses::{Adaptive, CompiledDecode, CompiledEncode, Uses};
pub use write::{Writing, Written, interpret, interpret_slice};

use crate::typecode::{Index, TypeCode, TypeDesc};

/// The type code of a description, which is in memory already for types with a name.
fn code_of(desc: &'static TypeDesc) -> Cow<'static, TypeCode> {
    match desc {
        TypeDesc::Defined(definition) => Cow::Borrowed(definition().code(desc)),
        _ => Cow::Owned(TypeCode::of_desc(desc)),
    }
}

/// The node behind all aliases where values of a type code begin.
fn root(code: &TypeCode) -> Index {
    code.nodes.unaliased(code.root)
}
