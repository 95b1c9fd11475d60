//! The operations that stubs declare and requests call.

#[cfg(feature = "experiments")]
use std::borrow::Cow;

use giop_codec::ByteOrder;
#[cfg(feature = "experiments")]
use giop_codec::ior::{ComponentTag, IiopProfile, TaggedComponent};
use giop_proto::{CallError, SentPart};

#[cfg(feature = "experiments")]
use crate::experiments::NumberedInterface;

/// An operation that a stub declares as a static.
pub type Operation = CallOperation<'static>;

/// An operation to call.
#[derive(Debug)]
pub struct CallOperation<'n> {
    pub(crate) name: &'n str,
    pub(crate) is_oneway: bool,
    pub(crate) is_streamed: bool,
    /// Whether the operation exists for one call only. If not, it is a static, whose address identifies it.
    is_temporary: bool,
    /// Set if the arguments are already encoded: their byte order, and their start position modulo 8.
    pub(crate) raw_arguments: Option<(ByteOrder, usize)>,
    #[cfg(feature = "experiments")]
    index_in_interface: Option<(&'static Interface, u32)>,
}

/// The interface of a stub's operations, in generated code. Only the feature `experiments` uses it, to call
/// operations by number.
#[derive(Debug)]
pub struct Interface {
    #[cfg(feature = "experiments")]
    numbered: NumberedInterface,
}

impl Interface {
    /// Creates an interface from its repository id and the names of its operations in GIOP messages, in the
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

impl<'n> CallOperation<'n> {
    pub(crate) const fn temporary(name: &'n str, is_oneway: bool) -> Self {
        Self { is_temporary: true, ..Self::new(name, is_oneway) }
    }

    const fn new(name: &'n str, is_oneway: bool) -> Self {
        Self {
            name,
            is_oneway,
            is_streamed: false,
            is_temporary: false,
            raw_arguments: None,
            #[cfg(feature = "experiments")]
            index_in_interface: None,
        }
    }

    pub(crate) const fn with_raw_arguments(self, order: ByteOrder, start_modulo_8: usize) -> Self {
        Self { raw_arguments: Some((order, start_modulo_8)), ..self }
    }

    /// Returns whether arguments and results are undecoded bytes.
    pub(crate) const fn is_raw(&self) -> bool {
        self.raw_arguments.is_some()
    }

    /// Returns the address of the operation, which identifies it, or `None` for a temporary one.
    #[inline]
    pub(crate) fn address(&self) -> Option<usize> {
        (!self.is_temporary).then(|| std::ptr::from_ref(self).addr())
    }

    /// Returns the name for requests, or a number if the server supports this and no argument is streamed.
    #[cfg(feature = "experiments")]
    #[inline]
    pub(crate) fn wire_name(&self, profile: &IiopProfile) -> Cow<'_, str> {
        match profile.component(ComponentTag::ZORB_OPERATIONS) {
            Some(component) if !self.is_streamed => self.number(component),
            _ => Cow::Borrowed(self.name),
        }
    }

    #[cfg(feature = "experiments")]
    #[cold]
    fn number(&self, component: &TaggedComponent) -> Cow<'_, str> {
        let number = self.index_in_interface.zip(component.as_zorb_operations());
        let number =
            number.and_then(|((interface, index), numbers)| interface.numbered.number(&numbers, index));
        number.map_or(Cow::Borrowed(self.name), |number| Cow::Owned(number.to_string()))
    }

    /// Changes the error of a streamed call that failed after a part of its request was sent: the whole
    /// request counts as sent, because the servant may have started already.
    #[cold]
    pub(crate) fn adapt_error(&self, error: CallError) -> CallError {
        match error.sent {
            SentPart::Partly if self.is_streamed => CallError { sent: SentPart::Whole, ..error },
            _ => error,
        }
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
        Self { is_streamed: true, ..self }
    }

    /// Declares the interface, and the index of the operation among those that the interface itself declares.
    #[must_use]
    pub const fn of(self, interface: &'static Interface, index: u32) -> Self {
        let _ = (interface, index);
        Self {
            #[cfg(feature = "experiments")]
            index_in_interface: Some((interface, index)),
            ..self
        }
    }

    /// Returns the name in GIOP messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether the operation is `oneway`.
    #[must_use]
    pub const fn is_oneway(&self) -> bool {
        self.is_oneway
    }
}
