//! [`DecodeContext`]: what an application gives its decoders.

use core::any::Any;
use std::sync::Arc;

use super::Factories;
use crate::cdr::{Context, Decoder, Encoder, InvalidText};
use crate::typecode::{TypeCode, TypeCodeCache, TypeLookup, cache};

/// Data of the caller that types use while they are decoded. Object references need their ORB, and values
/// need the types that the program knows.
pub trait DecodeContext: Any + Send + Sync {
    /// Returns the value types that a peer may send where one of their bases is expected.
    fn factories(&self) -> Option<&Factories> {
        None
    }

    /// Returns the type code of a value type that is known without a Rust type, for values that are read by
    /// type codes.
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let _ = repository_id;
        None
    }

    /// Returns the cache of type codes that were received before.
    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        None
    }

    /// Returns the treatment of text that is not valid in its code set.
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
    fn keep(&self) -> Arc<dyn Context> {
        Arc::new(self.clone())
    }

    fn on_invalid_text(&self) -> InvalidText {
        self.invalid_text()
    }

    fn known_factories(&self) -> Option<&dyn Any> {
        self.factories().map(|factories| factories as &dyn Any)
    }

    fn lookup(&self) -> &'static (dyn Any + Send + Sync) {
        const {
            &TypeLookup {
                type_codes: |context| context.downcast_ref::<C>()?.type_codes(),
                value_type: |context, id| context.downcast_ref::<C>()?.value_type(id),
            }
        }
    }
}

impl<'a> Decoder<'a> {
    /// Returns this decoder with a context, which types that need more than bytes use: for example, object
    /// references need their ORB. Values that are decoded later, such as those in an any, keep a clone of it.
    #[inline]
    pub fn with_context<C: DecodeContext + Clone>(self, context: &'a C) -> Decoder<'a> {
        self.with_any_context(Some(context))
    }
}

/// Returns the value types that the context knows.
pub(super) fn factories<'a>(d: &Decoder<'a>) -> Option<&'a Factories> {
    d.any_context()?.known_factories()?.downcast_ref()
}

/// Returns a value type that the context knows by its type code alone.
pub(super) fn known_value_type(d: &Decoder<'_>, repository_id: &str) -> Option<TypeCode> {
    let (context, lookup) = cache::type_lookup(d)?;
    (lookup.value_type)(context, repository_id)
}

impl Encoder {
    /// Stores `context` for decoding this value again later in the same process, if the encoder writes an
    /// any. Types that use a context when they are decoded call this method when they are encoded.
    #[inline]
    pub fn note_context<C: DecodeContext + Clone>(&mut self, context: &C) {
        self.note_any_context(context);
    }
}
