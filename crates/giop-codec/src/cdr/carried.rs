//! Contexts in decoders and encoders.

use core::any::Any;
use std::sync::Arc;

use super::context::{Context, ContextRetention};
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::text::InvalidText;

impl<'a> Decoder<'a> {
    /// Returns the context, if it is of that type.
    #[inline]
    pub fn context<C: Any>(&self) -> Option<&'a C> {
        self.context.and_then(|context| (context as &dyn Any).downcast_ref())
    }

    /// Returns the context of whatever type.
    pub(crate) fn any_context(&self) -> Option<&'a dyn Context> {
        self.context
    }

    /// Returns this decoder with a context of any type.
    pub(crate) fn with_any_context(mut self, context: Option<&'a dyn Context>) -> Decoder<'a> {
        self.context = context;
        self
    }

    /// Returns this decoder with a context that was kept.
    pub(crate) fn with_kept_context(self, context: Option<&'a Arc<dyn Context>>) -> Decoder<'a> {
        self.with_any_context(context.map(|context| &**context))
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
    /// Stores a context for decoding this value again later, if the encoder writes an any.
    #[inline]
    pub(crate) fn note_any_context(&mut self, context: &dyn Context) {
        if let ContextRetention::Wanted = self.keeping {
            self.keeping = ContextRetention::Kept(context.keep());
        }
    }

    /// Stores a context that was kept, like [`note_any_context`](Self::note_any_context).
    pub(crate) fn note_kept_context(&mut self, context: &Arc<dyn Context>) {
        if let ContextRetention::Wanted = self.keeping {
            self.keeping = ContextRetention::Kept(Arc::clone(context));
        }
    }

    /// Returns whether the encoded values are stored to be decoded again later.
    pub(crate) fn is_keeping(&self) -> bool {
        !matches!(self.keeping, ContextRetention::Nothing)
    }

    /// Enables storing of the first context that is noted.
    pub(crate) fn want_context(&mut self) {
        self.keeping = ContextRetention::Wanted;
    }

    /// Returns the context that was noted, and disables storing.
    pub(crate) fn take_context(&mut self) -> Option<Arc<dyn Context>> {
        match core::mem::take(&mut self.keeping) {
            ContextRetention::Kept(context) => Some(context),
            ContextRetention::Nothing | ContextRetention::Wanted => None,
        }
    }
}
