//! Activated objects, to which requests are dispatched.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use giop_codec::giop::ObjectKey;

use crate::object_key::ObjectId;
use crate::servant::poa_core::PoaCore;
use crate::servant::request_counter::RequestCount;
use crate::servant::skeleton::{Servant, Skeleton};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunMode {
    /// Whether requests run on a bounded pool of separate threads.
    pub(crate) blocking: bool,
    /// Whether each request runs in a task of its own.
    pub(crate) spawned: bool,
    /// Whether the object's next request may start while a oneway request is still running.
    pub(crate) concurrent: bool,
    /// Whether the requests of the object's POA run one at a time.
    pub(crate) serial: bool,
    /// Whether requests run in the task that runs `Orb::run_until`.
    pub(crate) on_main_thread: bool,
}

impl RunMode {
    /// Returns whether a request is dispatched directly in the connection's task, without waiting for a
    /// thread, a task or the turn of its POA.
    #[inline]
    pub(crate) fn runs_in_place(self) -> bool {
        !(self.blocking | self.spawned | self.serial)
    }
}

/// An activated object, or a shared entry for many objects: a default servant or a servant locator. A key
/// that contains an index is short enough to be stored inline, so that the object takes one allocation.
pub(crate) struct ActiveObject {
    key: ObjectId,
    pub(crate) skeleton: Arc<dyn Skeleton>,
    pub(crate) poa: Arc<PoaCore>,
    requests: RequestCount,
    /// The index of the object's slot, or [`NO_SLOT`] if the object is found by id.
    pub(crate) slot: u32,
    id_start: u16,
    pub(crate) mode: RunMode,
    /// Whether the entry serves all objects of its POA. Then `key` is the common prefix of their keys.
    pub(crate) is_shared: bool,
}

pub(crate) const NO_SLOT: u32 = u32::MAX;

/// A guard that counts an active request of an object.
pub(crate) struct InFlight<E: Deref<Target = ActiveObject> = Arc<ActiveObject>>(pub(crate) E);

impl ActiveObject {
    /// Creates an entry. `key` ends with the object id, which begins at `id_start`.
    pub(crate) fn new(key: &[u8], id_start: usize, slot: u32, poa: Arc<PoaCore>, servant: Servant) -> Self {
        let Servant { skeleton, mode } = servant;
        let mode = RunMode { serial: poa.turn.is_some(), on_main_thread: poa.uses_main_thread, ..mode };
        let id_start = u16::try_from(id_start).unwrap_or(u16::MAX);
        Self {
            key: ObjectId::from(key),
            skeleton,
            poa,
            requests: RequestCount::new(),
            slot,
            id_start,
            mode,
            is_shared: false,
        }
    }

    /// Creates an entry that serves all objects of a POA. `prefix` is the common prefix of their keys.
    pub(crate) fn shared(prefix: &[u8], poa: Arc<PoaCore>, servant: Servant) -> Self {
        Self { is_shared: true, ..Self::new(prefix, prefix.len(), NO_SLOT, poa, servant) }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// Returns the object id in a key of the entry's POA.
    pub(crate) fn id_in<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        key.get(usize::from(self.id_start)..).unwrap_or_default()
    }

    /// Returns the object id, which is empty for a shared entry.
    pub(crate) fn id(&self) -> &[u8] {
        self.id_in(self.key())
    }

    #[inline]
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        self.key() == key && !self.is_shared
    }

    pub(crate) fn servant_address(&self) -> usize {
        Arc::as_ptr(&self.skeleton).cast::<()>() as usize
    }

    #[inline]
    pub(crate) fn is_deactivated(&self) -> bool {
        self.requests.is_deactivated()
    }

    /// Deactivates the object. Returns `false` if it was deactivated before.
    pub(crate) fn mark_deactivated(&self) -> bool {
        self.requests.mark_deactivated()
    }

    /// Counts an active request until the guard is dropped. Returns `None` if the object is deactivated.
    #[inline]
    pub(crate) fn enter(&self) -> Option<InFlight<&Self>> {
        let is_active = self.requests.enter();
        let entered = InFlight(self);
        is_active.then_some(entered)
    }

    /// Counts a request that an active request of this object makes, even if the object has been deactivated.
    /// Returns `None` if no request is active.
    pub(crate) fn enter_nested(&self) -> Option<InFlight<&Self>> {
        let is_busy = self.requests.enter_nested();
        let entered = InFlight(self);
        is_busy.then_some(entered)
    }

    /// Counts an active request like [`enter`](Self::enter). The guard owns a reference to the object.
    pub(crate) fn enter_owned(self: &Arc<Self>) -> Option<InFlight> {
        let is_active = self.requests.enter();
        let entered = InFlight(Arc::clone(self));
        is_active.then_some(entered)
    }

    /// Returns another guard for a request that is counted already, even if the object has been deactivated.
    pub(crate) fn enter_again(self: &Arc<Self>) -> InFlight {
        self.requests.enter();
        InFlight(Arc::clone(self))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.requests.is_busy()
    }

    /// Waits until no request is active. The future can be dropped at any time.
    pub(crate) async fn wait_until_idle(&self) {
        loop {
            let notified = self.poa.idle_notify.notified();
            if !self.requests.watch() {
                break self.requests.unwatch();
            }
            notified.await;
        }
    }
}

impl<E: Deref<Target = ActiveObject>> Drop for InFlight<E> {
    #[inline]
    fn drop(&mut self) {
        if self.0.requests.leave() {
            self.0.poa.idle_notify.notify_waiters();
        }
    }
}

impl fmt::Debug for ActiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveObject")
            .field("key", &ObjectKey::from(self.key()))
            .field("id", &self.skeleton.repository_id())
            .finish_non_exhaustive()
    }
}

const _: () = assert!(size_of::<ActiveObject>() == 64);
