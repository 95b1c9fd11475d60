//! The context of a decoder: application data that types use while they are decoded, and that values decoded
//! later keep.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use super::text::InvalidText;

/// A context that can be kept for later.
pub(crate) trait Context: Any + Send + Sync {
    /// Returns a shared copy of the context.
    fn keep(&self) -> Arc<dyn Context>;

    /// Returns the treatment of text that is not valid in its code set.
    fn on_invalid_text(&self) -> InvalidText;

    /// Returns the value types that a peer may send where one of their bases is expected. The module of value
    /// types knows the type of the result.
    fn known_factories(&self) -> Option<&dyn Any>;

    /// Returns the functions that find other things in a context of this Rust type. The modules above define
    /// their type.
    fn lookup(&self) -> &'static (dyn Any + Send + Sync);
}

impl fmt::Debug for dyn Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}

/// The handling of contexts by an encoder. Contexts matter only for values that are stored and decoded again
/// later.
#[derive(Debug, Default)]
pub(super) enum ContextRetention {
    #[default]
    Nothing,
    Wanted,
    Kept(Arc<dyn Context>),
}
