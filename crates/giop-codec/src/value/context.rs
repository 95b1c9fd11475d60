//! [`DecodeContext`]: data of the application that decoders use, such as [`ValueTypes`].

use core::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use super::{Factories, concrete_id};
use crate::cdr::{Context, Decoder, Encoder, InvalidText};
use crate::typecode::{TypeCode, TypeCodeCache, TypeLookup};

/// Data of the application that is used while values are decoded. For example, object references need their
/// ORB, and values of value types need the types that the program knows.
pub trait DecodeContext: Any + Send + Sync {
    /// Returns the value types that a peer may send where one of their bases is expected.
    fn factories(&self) -> Option<&Factories> {
        None
    }

    /// Returns the type code by which values without a Rust type are read; `None` if it is unknown.
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let _ = repository_id;
        None
    }

    /// Returns the cache of type codes that were received before.
    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        None
    }

    /// Returns what a decoder must do with text that is not valid in its code set.
    fn invalid_text(&self) -> InvalidText {
        InvalidText::Refuse
    }
}

impl<T: DecodeContext> DecodeContext for Arc<T> {
    fn factories(&self) -> Option<&Factories> {
        (**self).factories()
    }

    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        (**self).value_type(repository_id)
    }

    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        (**self).type_codes()
    }

    fn invalid_text(&self) -> InvalidText {
        (**self).invalid_text()
    }
}

impl DecodeContext for Factories {
    fn factories(&self) -> Option<&Factories> {
        Some(self)
    }
}

impl<C: DecodeContext + Clone> Context for C {
    fn to_shared(&self) -> Arc<dyn Context> {
        Arc::new(self.clone())
    }

    fn invalid_text_policy(&self) -> InvalidText {
        self.invalid_text()
    }

    fn known_factories(&self) -> Option<&dyn Any> {
        self.factories().map(|factories| factories as &dyn Any)
    }

    fn lookup_functions(&self) -> &'static (dyn Any + Send + Sync) {
        const {
            &TypeLookup {
                type_codes: |context| context.downcast_ref::<C>()?.type_codes(),
                value_type: |context, id| context.downcast_ref::<C>()?.value_type(id),
            }
        }
    }
}

impl<'a> Decoder<'a> {
    /// Returns this decoder with a context. A value that is decoded only later keeps a clone of it.
    #[inline]
    pub fn with_context<C: DecodeContext + Clone>(self, context: &'a C) -> Decoder<'a> {
        self.with_dyn_context(Some(context))
    }
}

impl Encoder {
    /// Keeps `context` for decoding the any that this encoder writes, if it writes one and keeps no other
    /// context. Types whose decoding uses a context must call this method in their encoding.
    #[inline]
    pub fn keep_context<C: DecodeContext + Clone>(&mut self, context: &C) {
        self.record_context(context);
    }
}

/// Value types by their repository ids, for values that are read without Rust types. A peer may send them
/// where one of their bases is expected.
///
/// A clone shares the table.
#[derive(Clone, Debug, Default)]
pub struct ValueTypes {
    by_id: Arc<HashMap<Box<str>, TypeCode>>,
}

impl ValueTypes {
    /// Returns the type with this repository id; `None` if there is none.
    pub fn find(&self, repository_id: &str) -> Option<&TypeCode> {
        self.by_id.get(repository_id)
    }

    /// Returns the number of types.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether there are no types.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

/// Adds concrete value types and value boxes. Ignores other types, and ids that the table already has.
impl Extend<TypeCode> for ValueTypes {
    fn extend<I: IntoIterator<Item = TypeCode>>(&mut self, codes: I) {
        let by_id = Arc::make_mut(&mut self.by_id);
        for code in codes {
            let code = code.unaliased();
            if let Some(id) = concrete_id(code.nodes.at(code.root)).map(Box::from) {
                by_id.entry(id).or_insert(code);
            }
        }
    }
}

impl FromIterator<TypeCode> for ValueTypes {
    fn from_iter<I: IntoIterator<Item = TypeCode>>(codes: I) -> ValueTypes {
        let mut types = ValueTypes::default();
        types.extend(codes);
        types
    }
}

impl<'a> IntoIterator for &'a ValueTypes {
    type Item = &'a TypeCode;
    type IntoIter = std::collections::hash_map::Values<'a, Box<str>, TypeCode>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_id.values()
    }
}

impl DecodeContext for ValueTypes {
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.find(repository_id).cloned()
    }
}
