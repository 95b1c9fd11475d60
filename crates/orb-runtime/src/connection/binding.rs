//! The binding of a reference: its connection, and the parameters of its requests.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_codec::giop::{AddressingDisposition, ObjectKey, ServiceContext};
use giop_codec::ior::IiopProfile;

use crate::connection::SharedConnection;

/// The connection of a reference, and the parameters of its requests.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Weak, so that the socket of a connection that ended is closed while references still have the binding.
    pub(crate) link: Weak<SharedConnection>,
    /// Set when the link is dropped and oneways may be lost.
    pub(crate) loss: Arc<AtomicBool>,
    /// A flush has reported the loss.
    pub(crate) loss_reported: AtomicBool,
    pub(crate) runtime: tokio::runtime::Id,
    pub(crate) version: Version,
    pub(crate) key: ObjectKey,
    pub(crate) profile: IiopProfile,
    pub(crate) code_sets: CodeSets,
    /// Contexts that announce the code sets and the support of block lists, sent until the first reply.
    pub(crate) announce: Vec<ServiceContext>,
    /// Contexts of every request: the caller's identity.
    pub(crate) always: Vec<ServiceContext>,
    /// The server supports block lists.
    pub(crate) blocks: bool,
    /// See [`Encoder::set_ends_bases`](giop_codec::cdr::Encoder::set_ends_bases).
    pub(crate) ends_bases: bool,
    /// The address form that the server asked for.
    pub(crate) addressing: AddressingMode,
    /// Requests ask the server for the reference of the object while `ObjectRef::asks` returns `true`.
    pub(crate) asks: bool,
}

/// The address form that a server asked for. Initially the object key.
#[derive(Debug, Default)]
pub(crate) struct AddressingMode(AtomicU8);

impl AddressingMode {
    #[inline]
    pub(crate) fn get(&self) -> Option<AddressingDisposition> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(AddressingDisposition::Profile),
            2 => Some(AddressingDisposition::Reference),
            _ => Some(AddressingDisposition::Key),
        }
    }

    /// Sets the form from this request on. Returns `false` if the server had asked for it before.
    pub(crate) fn set(&self, form: AddressingDisposition) -> bool {
        let number = match form {
            AddressingDisposition::Profile => 1,
            AddressingDisposition::Reference => 2,
            AddressingDisposition::Key => 3,
        };
        self.0.swap(number, Ordering::Relaxed) != number
    }
}

impl Binding {
    /// Returns whether its connection ended and oneways may be lost.
    pub(crate) fn lost_oneways(&self) -> bool {
        match self.link.upgrade() {
            Some(link) => link.lost_oneways(),
            None => self.loss.load(Ordering::Acquire),
        }
    }
}
