//! The binding of a reference: the connection over which its requests are sent, and their parameters.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_codec::giop::{AddressingDisposition, ObjectKey, ServiceContext};
use giop_codec::ior::IiopProfile;

use crate::connection::SharedConnection;

#[derive(Debug)]
pub(crate) struct Binding {
    /// Weak, so that the socket of an ended connection is closed even if references still have the binding.
    pub(crate) link: Weak<SharedConnection>,
    /// Set when the connection is dropped and oneways may be lost.
    pub(crate) oneways_lost: Arc<AtomicBool>,
    pub(crate) loss_reported: AtomicBool,
    pub(crate) runtime: tokio::runtime::Id,
    pub(crate) version: Version,
    pub(crate) key: ObjectKey,
    pub(crate) profile: IiopProfile,
    pub(crate) code_sets: CodeSets,
    /// Service contexts that are sent until the first reply. They announce for example the code sets.
    pub(crate) announce: Vec<ServiceContext>,
    pub(crate) caller_contexts: Vec<ServiceContext>,
    /// Whether the server supports block lists: descriptions of where bulk data is located in a message.
    pub(crate) blocks: bool,
    /// See [`Encoder::set_ends_bases`](giop_codec::cdr::Encoder::set_ends_bases).
    pub(crate) ends_bases: bool,
    pub(crate) addressing: AddressingMode,
    /// Whether requests ask for the object's reference: see `ObjectRef::must_fetch_reference`.
    pub(crate) asks: bool,
}

/// The form of the object's address that a server requested. `None` before a request, which means the key.
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

    /// Sets the form of the following requests. Returns `false` if it was set already.
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
    pub(crate) fn lost_oneways(&self) -> bool {
        match self.link.upgrade() {
            Some(link) => link.lost_oneways(),
            None => self.oneways_lost.load(Ordering::Acquire),
        }
    }
}
