//! What decoders find about types in their context: cached type codes, and known value types.

use core::any::Any;

use super::TypeCode;
use crate::cdr::Decoder;

/// A cache of type codes by their encoding, so that a repeated one is decoded once.
pub trait TypeCodeCache: Send + Sync {
    /// Returns the cached type code of that kind and encapsulation. The encapsulation includes its byte order
    /// flag.
    fn find(&self, kind: u32, encapsulation: &[u8]) -> Option<TypeCode>;

    /// Stores a type code that was not found and has been decoded.
    fn keep(&self, kind: u32, encapsulation: &[u8], code: &TypeCode);
}

/// The functions that find types in a context of one Rust type.
pub(crate) struct TypeLookup {
    pub(crate) type_codes: for<'c> fn(&'c dyn Any) -> Option<&'c dyn TypeCodeCache>,
    /// Finds the type code of a value type by its repository id.
    pub(crate) value_type: fn(&dyn Any, &str) -> Option<TypeCode>,
}

/// Returns the context, and the functions that find types in it.
pub(crate) fn type_lookup<'a>(d: &Decoder<'a>) -> Option<(&'a dyn Any, &'static TypeLookup)> {
    let context = d.any_context()?;
    Some((context, context.lookup().downcast_ref()?))
}

/// Returns the type code cache of the context.
pub(super) fn type_codes<'a>(d: &Decoder<'a>) -> Option<&'a dyn TypeCodeCache> {
    let (context, lookup) = type_lookup(d)?;
    (lookup.type_codes)(context)
}
