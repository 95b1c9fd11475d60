//! Operations as stubs name them, and as requests do.

use std::borrow::Cow;

use giop_codec::ByteOrder;
use giop_codec::ior::{ComponentTag, IiopProfile, TaggedComponent};
use giop_proto::{CallError, Sent};

use crate::serve::Interface;

/// An operation as stubs name it: made once, in a static.
pub type Operation = Called<'static>;

/// An operation that is called.
#[derive(Debug)]
pub struct Called<'n> {
    pub(crate) name: &'n str,
    pub(super) oneway: bool,
    pub(super) streamed: bool,
    /// It is not in a static, so its address says nothing.
    passing: bool,
    /// How its arguments are encoded already, if they are: byte order, and their start modulo 8.
    pub(super) body: Option<(ByteOrder, usize)>,
    /// Which of the operations of an interface it is.
    place: Option<(&'static Interface, u32)>,
}

impl<'n> Called<'n> {
    /// One whose name is known for this call only.
    pub(crate) const fn passing(name: &'n str, oneway: bool) -> Self {
        Self { name, oneway, streamed: false, passing: true, body: None, place: None }
    }

    /// The same with arguments that are octets in that order, to begin at that place modulo 8.
    pub(crate) const fn with_body(self, order: ByteOrder, phase: usize) -> Self {
        Self { body: Some((order, phase)), ..self }
    }

    /// Whether results are wanted as octets.
    pub(super) const fn passes_on(&self) -> bool {
        self.body.is_some()
    }

    /// What an operation in a static is told by from all others.
    #[inline]
    pub(super) fn address(&self) -> Option<usize> {
        (!self.passing).then(|| std::ptr::from_ref(self).addr())
    }
}

impl Operation {
    /// One with a reply.
    #[must_use]
    pub const fn twoway(name: &'static str) -> Self {
        Self { name, oneway: false, streamed: false, passing: false, body: None, place: None }
    }

    /// One without.
    #[must_use]
    pub const fn oneway(name: &'static str) -> Self {
        Self { name, oneway: true, streamed: false, passing: false, body: None, place: None }
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

impl Called<'_> {
    /// What a request to that server says: the operation's name, or its number where the server wants numbers.
    #[inline]
    pub(super) fn written(&self, profile: &IiopProfile) -> Cow<'_, str> {
        match profile.component(ComponentTag::ZORB_OPERATIONS) {
            Some(component) if !self.streamed => self.number(component),
            _ => Cow::Borrowed(self.name),
        }
    }

    #[cold]
    fn number(&self, component: &TaggedComponent) -> Cow<'_, str> {
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
}
