//! An activated object, as request dispatch uses it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use giop_codec::giop::ObjectKey;

use crate::object_key::ObjectId;
use crate::servant::poa_gate::PoaGate;
use crate::servant::request_counter::Count;
use crate::servant::skeleton::Skeleton;

/// The execution mode of an object's requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunMode {
    /// Runs on a bounded pool of separate threads.
    pub(crate) blocking: bool,
    /// Runs each request in a separate task.
    pub(crate) spawned: bool,
    /// The object's next request may start while a oneway is still running.
    pub(crate) concurrent: bool,
    /// Requests run one after the other, because of the POA's thread model.
    pub(crate) serial: bool,
    /// Requests run on the thread that calls `Orb::run_until`.
    pub(crate) main: bool,
}

impl RunMode {
    /// Returns whether requests run in the connection's task.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        !(self.blocking | self.spawned | self.serial)
    }
}

/// An activated object, or an entry shared by many objects: a default servant or a servant locator.
///
/// The size is 64 bytes, which makes one allocation of 80 together with the reference counts. A generated key
/// is stored inline.
pub(crate) struct ActiveObject {
    /// Stored inline if it is a generated (active) key.
    key: ObjectId,
    pub(crate) skeleton: Arc<dyn Skeleton>,
    pub(crate) poa: Arc<PoaGate>,
    count: Count,
    /// Index among the objects that are found by index. [`NO_SLOT`] if the object is found by id.
    pub(crate) slot: u32,
    /// Position of the object id in the key.
    id_at: u16,
    pub(crate) mode: RunMode,
    /// Whether the entry serves all objects of its POA. Then its key is their common prefix.
    pub(crate) shared: bool,
}

/// The slot of an entry that is found by its id.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Guard that counts an active request of an entry.
pub(crate) struct InFlight<E: Deref<Target = ActiveObject> = Arc<ActiveObject>>(E);

impl ActiveObject {
    /// Creates an entry. `key` ends with the object id, which begins at `id_at`.
    pub(crate) fn new(
        key: &[u8],
        id_at: usize,
        slot: u32,
        poa: Arc<PoaGate>,
        servant: (Arc<dyn Skeleton>, RunMode),
    ) -> Self {
        let (skeleton, mode) = servant;
        let mode = RunMode { serial: poa.turn.is_some(), main: poa.is_main, ..mode };
        let id_at = u16::try_from(id_at).unwrap_or(u16::MAX);
        Self {
            key: ObjectId::from(key),
            skeleton,
            poa,
            count: Count::new(),
            slot,
            id_at,
            mode,
            shared: false,
        }
    }

    /// Creates an entry for all objects whose keys start with `prefix`.
    pub(crate) fn shared(prefix: &[u8], poa: Arc<PoaGate>, servant: (Arc<dyn Skeleton>, RunMode)) -> Self {
        Self { shared: true, ..Self::new(prefix, prefix.len(), NO_SLOT, poa, servant) }
    }

    /// Returns the key. For a shared entry, returns the common prefix of its objects' keys.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// Returns the object id in a key of this entry.
    pub(crate) fn id_in<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        key.get(usize::from(self.id_at)..).unwrap_or_default()
    }

    /// Returns the object id. Empty for a shared entry.
    pub(crate) fn id(&self) -> &[u8] {
        self.id_in(self.key())
    }

    /// Returns whether this entry is exactly the object with that key.
    #[inline]
    pub(crate) fn is_at(&self, key: &[u8]) -> bool {
        self.key() == key && !self.shared
    }

    /// Returns a number that identifies the servant.
    pub(crate) fn servant(&self) -> usize {
        Arc::as_ptr(&self.skeleton).cast::<()>() as usize
    }

    /// Returns whether the object is deactivated.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.count.is_gone()
    }

    /// Deactivates the object. Returns whether this call did it.
    pub(crate) fn retire(&self) -> bool {
        self.count.retire()
    }

    /// Counts an active request until the guard is dropped. `None`: the object is deactivated.
    #[inline]
    pub(crate) fn enter(&self) -> Option<InFlight<&Self>> {
        let there = self.count.enter();
        let entered = InFlight(self);
        there.then_some(entered)
    }

    /// Counts a request made by an active request of this object, even if the object was deactivated since.
    /// `None`: no request is active.
    pub(crate) fn enter_nested(&self) -> Option<InFlight<&Self>> {
        let under_way = self.count.enter_nested();
        let entered = InFlight(self);
        under_way.then_some(entered)
    }

    /// Like [`enter`](Self::enter), with a guard that may outlive the borrow.
    pub(crate) fn enter_owned(self: &Arc<Self>) -> Option<InFlight> {
        let there = self.count.enter();
        let entered = InFlight(Arc::clone(self));
        there.then_some(entered)
    }

    /// Counts a request that has entered once more, even if the object was deactivated since.
    pub(crate) fn stay(self: &Arc<Self>) -> InFlight {
        self.count.enter();
        InFlight(Arc::clone(self))
    }

    /// Returns whether a request is active.
    pub(crate) fn is_busy(&self) -> bool {
        self.count.is_busy()
    }

    /// Waits until no request is active.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.poa.idle.notified();
            if !self.count.watch() {
                break self.count.unwatch();
            }
            notified.await;
        }
    }
}

impl InFlight {
    /// Returns whether it counts a request of that entry.
    #[inline]
    pub(crate) fn is(&self, entry: &Arc<ActiveObject>) -> bool {
        Arc::ptr_eq(&self.0, entry)
    }
}

impl<E: Deref<Target = ActiveObject>> Drop for InFlight<E> {
    #[inline]
    fn drop(&mut self) {
        if self.0.count.leave() {
            self.0.poa.idle.notify_waiters();
        }
    }
}

impl fmt::Debug for ActiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = ObjectKey::from(self.key());
        f.debug_struct("Entry")
            .field("key", &key)
            .field("id", &self.skeleton.repository_id())
            .finish_non_exhaustive()
    }
}

const _: () = assert!(size_of::<ActiveObject>() == 64);
