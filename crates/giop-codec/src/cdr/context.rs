//! What types find beside the octets while they are decoded, and what values that are not decoded yet keep of it.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::text::InvalidText;
use crate::typecode::TypeCode;
use crate::value::Factories;

/// Something of the caller's that types find while they are decoded: object references look for their ORB, values for the
/// types that the program knows.
pub trait DecodeContext: Any + Send + Sync {
    /// The value types that a peer may send where a base of theirs is expected.
    fn factories(&self) -> Option<&Factories> {
        None
    }

    /// The type code of a value type that is known without a Rust type, for values that are read by type codes.
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let _ = repository_id;
        None
    }

    /// Type codes that came before.
    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        None
    }

    /// What is done about text that is not valid in its code set.
    fn invalid_text(&self) -> InvalidText {
        InvalidText::Refuse
    }
}

/// Type codes by their octets, so that one that comes again and again is decoded once.
pub trait TypeCodeCache: Send + Sync {
    /// The type code of that kind and encapsulation, with the octet of its byte order.
    fn find(&self, kind: u32, encapsulation: &[u8]) -> Option<TypeCode>;

    /// A type code that was not found and has been decoded.
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

/// The same where its type is not known, and that can be kept for later.
pub(crate) trait Context: Any + Send + Sync {
    /// The same for as long as somebody has it.
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

/// What an encoder does about contexts: nothing, but where values are put aside to be decoded again later.
#[derive(Debug, Default)]
pub(super) enum Keeping {
    #[default]
    Nothing,
    Wanted,
    Kept(Arc<dyn Context>),
}

impl<'a> Decoder<'a> {
    /// The same decoder with a context: what types that need more than octets look for, such as object references
    /// for their ORB. Values that are decoded later, such as what is in an any, keep a clone.
    #[inline]
    pub fn with_context<C: DecodeContext + Clone>(mut self, context: &'a C) -> Decoder<'a> {
        self.context = Some(context);
        self
    }

    /// The context, if it is of that type.
    #[inline]
    pub fn context<C: Any>(&self) -> Option<&'a C> {
        self.context.and_then(|context| (context as &dyn Any).downcast_ref())
    }

    /// The same decoder with a context that was kept.
    pub(crate) fn with_kept_context(mut self, context: Option<&'a Arc<dyn Context>>) -> Decoder<'a> {
        self.context = context.map(|context| &**context);
        self
    }

    /// The value types that the context knows.
    pub(crate) fn factories(&self) -> Option<&'a Factories> {
        self.context.and_then(|context| context.known_factories())
    }

    /// A value type that the context knows by its type code alone.
    pub(crate) fn known_value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.context.and_then(|context| context.known_value_type(repository_id))
    }

    /// Type codes that the context knows.
    pub(crate) fn type_codes(&self) -> Option<&'a dyn TypeCodeCache> {
        self.context.and_then(|context| context.known_type_codes())
    }

    /// What the context does about text that is not valid in its code set.
    pub(crate) fn invalid_text(&self) -> InvalidText {
        self.context.map_or(InvalidText::Refuse, |context| context.on_invalid_text())
    }

    /// The context, to have it later.
    pub(crate) fn keep_context(&self) -> Option<Arc<dyn Context>> {
        self.context.map(Context::keep)
    }
}

impl Encoder {
    /// Notes what `context` is for whoever decodes this value again, in the same process: where the encoder is for an any.
    /// Types that look for a context when they are decoded call it when they are encoded.
    #[inline]
    pub fn note_context<C: DecodeContext + Clone>(&mut self, context: &C) {
        if let Keeping::Wanted = self.keeping {
            self.keeping = Keeping::Kept(context.keep());
        }
    }

    /// The same of one that was kept.
    pub(crate) fn note_kept_context(&mut self, context: &Arc<dyn Context>) {
        if let Keeping::Wanted = self.keeping {
            self.keeping = Keeping::Kept(Arc::clone(context));
        }
    }

    /// Whether values are put aside to be decoded again later.
    pub(crate) fn is_keeping(&self) -> bool {
        !matches!(self.keeping, Keeping::Nothing)
    }

    /// Keeps the first context that is noted.
    pub(crate) fn want_context(&mut self) {
        self.keeping = Keeping::Wanted;
    }

    /// The context that was noted.
    pub(crate) fn take_context(&mut self) -> Option<Arc<dyn Context>> {
        match core::mem::take(&mut self.keeping) {
            Keeping::Kept(context) => Some(context),
            Keeping::Nothing | Keeping::Wanted => None,
        }
    }
}
