//! Operations as stubs name them, and as requests do.

use std::borrow::Cow;

use giop_codec::ior::{ComponentTag, IiopProfile, TaggedComponent};
use giop_proto::{CallError, Sent};

use crate::serve::Interface;

/// An operation as stubs name it: made once, in a static.
#[derive(Debug)]
pub struct Operation {
    pub(super) name: &'static str,
    pub(super) oneway: bool,
    pub(super) streamed: bool,
    /// Which of the operations of an interface it is.
    place: Option<(&'static Interface, u32)>,
}

impl Operation {
    /// One with a reply.
    #[must_use]
    pub const fn twoway(name: &'static str) -> Self {
        Self { name, oneway: false, streamed: false, place: None }
    }

    /// One without.
    #[must_use]
    pub const fn oneway(name: &'static str) -> Self {
        Self { name, oneway: true, streamed: false, place: None }
    }

    /// The same, with a `@stream` argument.
    #[must_use]
    pub const fn streamed(self) -> Self {
        Self { streamed: true, ..self }
    }

    /// The same, as the one of that number among an interface's own.
    #[must_use]
    pub const fn of(self, interface: &'static Interface, index: u32) -> Self {
        Self { place: Some((interface, index)), ..self }
    }

    /// What a request to that server says: the operation's name, or its number where the server wants numbers.
    #[inline]
    pub(super) fn written(&self, profile: &IiopProfile) -> Cow<'static, str> {
        match profile.component(ComponentTag::ZORB_OPERATIONS) {
            Some(component) if !self.streamed => self.number(component),
            _ => Cow::Borrowed(self.name),
        }
    }

    #[cold]
    fn number(&self, component: &TaggedComponent) -> Cow<'static, str> {
        let number = self.place.zip(component.as_zorb_operations());
        let number = number.and_then(|((interface, index), numbers)| interface.number(&numbers, index));
        number.map_or(Cow::Borrowed(self.name), |number| Cow::Owned(number.to_string()))
    }

    /// Why a call of it failed: a servant that takes a stream may be at work before the request is written whole.
    #[cold]
    pub(super) fn judge(&self, error: CallError) -> CallError {
        match error.sent {
            Sent::Partly if self.streamed => CallError { sent: Sent::Whole, ..error },
            _ => error,
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it was declared `oneway`.
    #[must_use]
    pub const fn is_oneway(&self) -> bool {
        self.oneway
    }
}
