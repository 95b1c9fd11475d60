//! The context of a decoder or encoder: application data that the decoding of values uses, and that an
//! any keeps so that it can decode its value later.

use core::fmt;
use std::sync::Arc;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::text::InvalidText;

pub(crate) trait Context: core::any::Any + Send + Sync {
    /// Returns a shared copy of the context.
    fn to_shared(&self) -> Arc<dyn Context>;

    fn invalid_text_policy(&self) -> InvalidText;

    /// Returns the value types that a peer may send where one of their bases is expected. Only the module
    /// `value` knows the type of the result.
    fn known_factories(&self) -> Option<&dyn core::any::Any>;

    /// Returns a table of functions that find further data, such as type codes, in a context of this Rust
    /// type. Only the modules that use the data know the type of the table.
    fn lookup_functions(&self) -> &'static (dyn core::any::Any + Send + Sync);
}

impl fmt::Debug for dyn Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}

/// The context that an encoder stores with the values that it encodes.
#[derive(Debug, Default)]
pub(super) enum ContextRetention {
    /// No context is stored, because the encoded values are sent.
    #[default]
    Nothing,
    /// The next context that is recorded will be kept.
    Wanted,
    Kept(Arc<dyn Context>),
}

impl<'a> Decoder<'a> {
    /// Returns the context, if it is a `C`.
    #[inline]
    pub fn context<C: core::any::Any>(&self) -> Option<&'a C> {
        self.context.and_then(|context| (context as &dyn core::any::Any).downcast_ref())
    }

    pub(crate) fn dyn_context(&self) -> Option<&'a dyn Context> {
        self.context
    }

    pub(crate) fn with_dyn_context(mut self, context: Option<&'a dyn Context>) -> Decoder<'a> {
        self.context = context;
        self
    }

    pub(crate) fn with_shared_context(self, context: Option<&'a Arc<dyn Context>>) -> Decoder<'a> {
        self.with_dyn_context(context.map(|context| &**context))
    }

    pub(crate) fn invalid_text_policy(&self) -> InvalidText {
        self.context.map_or(InvalidText::Refuse, |context| context.invalid_text_policy())
    }

    pub(crate) fn shared_context(&self) -> Option<Arc<dyn Context>> {
        self.context.map(Context::to_shared)
    }
}

impl Encoder {
    /// Keeps a context for decoding the encoded values later, if the encoder stores values and keeps no
    /// context yet. Otherwise does nothing.
    #[inline]
    pub(crate) fn record_context(&mut self, context: &dyn Context) {
        if let ContextRetention::Wanted = self.context_retention {
            self.context_retention = ContextRetention::Kept(context.to_shared());
        }
    }

    /// Records a context like [`record_context`](Self::record_context), but shares it instead of copying it.
    pub(crate) fn record_shared_context(&mut self, context: &Arc<dyn Context>) {
        if let ContextRetention::Wanted = self.context_retention {
            self.context_retention = ContextRetention::Kept(Arc::clone(context));
        }
    }

    /// Returns whether the encoded values are stored, so that they will be decoded later.
    pub(crate) fn is_storing_values(&self) -> bool {
        !matches!(self.context_retention, ContextRetention::Nothing)
    }

    pub(crate) fn record_next_context(&mut self) {
        self.context_retention = ContextRetention::Wanted;
    }

    /// Returns the context that was recorded, and stops recording.
    pub(crate) fn take_context(&mut self) -> Option<Arc<dyn Context>> {
        match core::mem::take(&mut self.context_retention) {
            ContextRetention::Kept(context) => Some(context),
            ContextRetention::Nothing | ContextRetention::Wanted => None,
        }
    }
}
