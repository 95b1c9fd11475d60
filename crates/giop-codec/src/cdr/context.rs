//! The context of a decoder: application data that types use while they are decoded, and that values decoded
//! later keep.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::text::InvalidText;
use crate::typecode::TypeCode;
use crate::value::Factories;

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

/// A cache of type codes by their encoding, so that a repeated one is decoded once.
pub trait TypeCodeCache: Send + Sync {
    /// Returns the cached type code of that kind and encapsulation. The encapsulation includes its byte order
    /// flag.
    fn find(&self, kind: u32, encapsulation: &[u8]) -> Option<TypeCode>;

    /// Stores a type code that was not found and has been decoded.
    fn keep(&self, kind: u32, encapsulation: &[u8], code: &TypeCode);
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

/// An object-safe [`DecodeContext`] that can be kept for later.
pub(crate) trait Context: Any + Send + Sync {
    /// Returns a shared copy of the context.
    fn keep(&self) -> Arc<dyn Context>;

    fn known_factories(&self) -> Option<&Factories>;

    fn known_value_type(&self, repository_id: &str) -> Option<TypeCode>;

    fn known_type_codes(&self) -> Option<&dyn TypeCodeCache>;

    fn on_invalid_text(&self) -> InvalidText;
}

impl<C: DecodeContext + Clone> Context for C {
    fn keep(&self) -> Arc<dyn Context> {
        Arc::new(self.clone())
    }

    fn known_factories(&self) -> Option<&Factories> {
        self.factories()
    }

    fn known_value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.value_type(repository_id)
    }

    fn known_type_codes(&self) -> Option<&dyn TypeCodeCache> {
        self.type_codes()
    }

    fn on_invalid_text(&self) -> InvalidText {
        self.invalid_text()
    }
}

impl fmt::Debug for dyn Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}

/// The handling of contexts by an encoder. Contexts matter only for values that are stored and decoded again
/// later.
#[derive(Debug, Default)]
pub(super) enum Keeping {
    #[default]
    Nothing,
    Wanted,
    Kept(Arc<dyn Context>),
}

impl<'a> Decoder<'a> {
    /// Returns this decoder with a context, which types that need more than bytes use: for example, object
    /// references need their ORB. Values that are decoded later, such as those in an any, keep a clone of it.
    #[inline]
    pub fn with_context<C: DecodeContext + Clone>(mut self, context: &'a C) -> Decoder<'a> {
        self.context = Some(context);
        self
    }

    /// Returns the context, if it is of that type.
    #[inline]
    pub fn context<C: Any>(&self) -> Option<&'a C> {
        self.context.and_then(|context| (context as &dyn Any).downcast_ref())
    }

    /// Returns this decoder with a context that was kept.
    pub(crate) fn with_kept_context(mut self, context: Option<&'a Arc<dyn Context>>) -> Decoder<'a> {
        self.context = context.map(|context| &**context);
        self
    }

    /// Returns the value types that the context knows.
    pub(crate) fn factories(&self) -> Option<&'a Factories> {
        self.context.and_then(|context| context.known_factories())
    }

    /// Returns a value type that the context knows by its type code alone.
    pub(crate) fn known_value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.context.and_then(|context| context.known_value_type(repository_id))
    }

    /// Returns the type code cache of the context.
    pub(crate) fn type_codes(&self) -> Option<&'a dyn TypeCodeCache> {
        self.context.and_then(|context| context.known_type_codes())
    }

    /// Returns the context's treatment of text that is not valid in its code set.
    pub(crate) fn invalid_text(&self) -> InvalidText {
        self.context.map_or(InvalidText::Refuse, |context| context.on_invalid_text())
    }

    /// Returns a shared copy of the context for later use.
    pub(crate) fn keep_context(&self) -> Option<Arc<dyn Context>> {
        self.context.map(Context::keep)
    }
}

impl Encoder {
    /// Stores `context` for decoding this value again later in the same process, if the encoder writes an
    /// any. Types that use a context when they are decoded call this method when they are encoded.
    #[inline]
    pub fn note_context<C: DecodeContext + Clone>(&mut self, context: &C) {
        if let Keeping::Wanted = self.keeping {
            self.keeping = Keeping::Kept(context.keep());
        }
    }

    /// Stores a context that was kept, like [`note_context`](Self::note_context).
    pub(crate) fn note_kept_context(&mut self, context: &Arc<dyn Context>) {
        if let Keeping::Wanted = self.keeping {
            self.keeping = Keeping::Kept(Arc::clone(context));
        }
    }

    /// Returns whether the encoded values are stored to be decoded again later.
    pub(crate) fn is_keeping(&self) -> bool {
        !matches!(self.keeping, Keeping::Nothing)
    }

    /// Enables storing of the first context that is noted.
    pub(crate) fn want_context(&mut self) {
        self.keeping = Keeping::Wanted;
    }

    /// Returns the context that was noted, and disables storing.
    pub(crate) fn take_context(&mut self) -> Option<Arc<dyn Context>> {
        match core::mem::take(&mut self.keeping) {
            Keeping::Kept(context) => Some(context),
            Keeping::Nothing | Keeping::Wanted => None,
        }
    }
}
