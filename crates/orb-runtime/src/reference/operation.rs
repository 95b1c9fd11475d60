//! Operations, as stubs declare them and as requests name them.

#[cfg(feature = "experiments")]
use std::borrow::Cow;

use giop_codec::ByteOrder;
#[cfg(feature = "experiments")]
use giop_codec::ior::{ComponentTag, IiopProfile, TaggedComponent};
use giop_proto::{CallError, SentPart};

#[cfg(feature = "experiments")]
use crate::experiments::NumberedInterface;

/// An operation that a stub declares in a static.
pub type Operation = Called<'static>;

/// An operation to be called.
#[derive(Debug)]
pub struct Called<'n> {
    pub(crate) name: &'n str,
    pub(crate) oneway: bool,
    pub(crate) streamed: bool,
    /// It is not in a static, so that its address does not identify it.
    passing: bool,
    /// Byte order of arguments that are already encoded, and the position of their start modulo 8.
    pub(crate) body: Option<(ByteOrder, usize)>,
    /// Its interface, and its index among the operations of that interface.
    #[cfg(feature = "experiments")]
    place: Option<(&'static Interface, u32)>,
}

/// An interface as its stubs know it. Generated. Only the feature `experiments` uses it, for calls by number.
#[derive(Debug)]
pub struct Interface {
    #[cfg(feature = "experiments")]
    numbered: NumberedInterface,
}

impl Interface {
    /// Creates the description from the repository id and the operations' names in GIOP messages, in the
    /// order of their numbers.
    #[must_use]
    pub const fn new(repository_id: &str, operations: &[&str]) -> Self {
        let _ = (repository_id, operations);
        Self {
            #[cfg(feature = "experiments")]
            numbered: NumberedInterface::new(repository_id, operations),
        }
    }
}

impl<'n> Called<'n> {
    /// Creates an operation whose name is known for one call only.
    pub(crate) const fn passing(name: &'n str, oneway: bool) -> Self {
        Self { passing: true, ..Self::new(name, oneway) }
    }

    const fn new(name: &'n str, oneway: bool) -> Self {
        Self {
            name,
            oneway,
            streamed: false,
            passing: false,
            body: None,
            #[cfg(feature = "experiments")]
            place: None,
        }
    }

    /// Declares the arguments as bytes of that order, which begin at a position of that value modulo 8.
    pub(crate) const fn with_body(self, order: ByteOrder, phase: usize) -> Self {
        Self { body: Some((order, phase)), ..self }
    }

    /// Returns whether results are returned as bytes.
    pub(crate) const fn passes_on(&self) -> bool {
        self.body.is_some()
    }

    /// Returns the address of an operation in a static, which identifies it.
    #[inline]
    pub(crate) fn address(&self) -> Option<usize> {
        (!self.passing).then(|| std::ptr::from_ref(self).addr())
    }
}

impl Operation {
    /// Creates an operation with a reply.
    #[must_use]
    pub const fn twoway(name: &'static str) -> Self {
        Self::new(name, false)
    }

    /// Creates an operation without a reply.
    #[must_use]
    pub const fn oneway(name: &'static str) -> Self {
        Self::new(name, true)
    }

    /// Declares a `@stream` argument.
    #[must_use]
    pub const fn streamed(self) -> Self {
        Self { streamed: true, ..self }
    }

    /// Declares its interface, and its index among the operations of that interface itself.
    #[must_use]
    pub const fn of(self, interface: &'static Interface, index: u32) -> Self {
        let _ = (interface, index);
        Self {
            #[cfg(feature = "experiments")]
            place: Some((interface, index)),
            ..self
        }
    }

    /// Returns the name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether it was declared `oneway`.
    #[must_use]
    pub const fn is_oneway(&self) -> bool {
        self.oneway
    }
}

impl Called<'_> {
    /// Returns the operation in requests to that server: its name, or its number if the server asks for
    /// numbers.
    #[cfg(feature = "experiments")]
    #[inline]
    pub(crate) fn written(&self, profile: &IiopProfile) -> Cow<'_, str> {
        match profile.component(ComponentTag::ZORB_OPERATIONS) {
            Some(component) if !self.streamed => self.number(component),
            _ => Cow::Borrowed(self.name),
        }
    }

    #[cfg(feature = "experiments")]
    #[cold]
    fn number(&self, component: &TaggedComponent) -> Cow<'_, str> {
        let number = self.place.zip(component.as_zorb_operations());
        let number =
            number.and_then(|((interface, index), numbers)| interface.numbered.number(&numbers, index));
        number.map_or(Cow::Borrowed(self.name), |number| Cow::Owned(number.to_string()))
    }

    /// Adapts the error of a failed call: a servant that takes a stream may have started before the whole
    /// request was written.
    #[cold]
    pub(crate) fn judge(&self, error: CallError) -> CallError {
        match error.sent {
            SentPart::Partly if self.streamed => CallError { sent: SentPart::Whole, ..error },
            _ => error,
        }
    }
}
