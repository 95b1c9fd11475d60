//! [`Binding`], the connection over which requests through a reference are sent, and their parameters.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_codec::giop::{AddressingDisposition, ObjectKey, ServiceContext};
use giop_codec::ior::IiopProfile;

use crate::connection::SharedConnection;

#[derive(Debug)]
pub(crate) struct Binding {
    /// Weak, so that the socket of an ended connection is closed although references still have the binding.
    pub(crate) link: Weak<SharedConnection>,
    /// Set when the connection is dropped, if oneways may be lost.
    pub(crate) oneways_lost: Arc<AtomicBool>,
    pub(crate) is_loss_reported: AtomicBool,
    pub(crate) runtime: tokio::runtime::Id,
    pub(crate) version: Version,
    pub(crate) key: ObjectKey,
    pub(crate) profile: IiopProfile,
    pub(crate) code_sets: CodeSets,
    /// Service contexts that are sent until the first reply, for example to announce the code sets.
    pub(crate) initial_contexts: Vec<ServiceContext>,
    pub(crate) caller_contexts: Vec<ServiceContext>,
    /// True if the server supports lists of the positions of bulk data in a message.
    pub(crate) sends_block_lists: bool,
    /// See [`Encoder::set_base_end_tags`](giop_codec::cdr::Encoder::set_base_end_tags).
    pub(crate) writes_base_end_tags: bool,
    pub(crate) addressing: AddressingMode,
    /// True if requests also request the object's reference: see `ObjectRef::must_fetch_reference`.
    pub(crate) requests_reference: bool,
}

/// The form of the object's address that the server requested, if it requested one. The default is the key.
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

    /// Sets the form of the address in the following requests. Returns `false` if it was the same before.
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
