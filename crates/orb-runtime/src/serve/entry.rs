//! An activated object, as the way of a request sees it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use giop_codec::giop::ObjectKey;

use super::count::Count;
use super::skeleton::Skeleton;
use crate::poa::core::PoaCore;
use crate::poa::{ObjectId, ThreadModel};

/// How the requests of an object are run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunMode {
    /// On a bounded pool of threads of their own.
    pub(crate) blocking: bool,
    /// Each in a task of its own.
    pub(crate) spawned: bool,
    /// A oneway need not be done before the object's next request starts.
    pub(crate) concurrent: bool,
    /// They take turns: the POA's thread model.
    pub(crate) serial: bool,
    /// They run where `Orb::run_until` does.
    pub(crate) main: bool,
}

impl RunMode {
    /// Whether requests run where the connection's task does.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        !(self.blocking | self.spawned | self.serial)
    }
}

/// An activated object, or what stands for many: a default servant, a servant locator.
///
/// 64 octets, so that with its counts it is one allocation of 80, and a key that the ORB made lies within.
pub(crate) struct Entry {
    /// Of an active key within.
    key: ObjectId,
    pub(crate) skeleton: Arc<dyn Skeleton>,
    pub(crate) poa: Arc<PoaCore>,
    count: Count,
    /// Where it is among the objects that are found by index, [`NO_SLOT`] if it is not.
    pub(crate) slot: u32,
    /// Where the object id begins in the key.
    id_at: u16,
    pub(crate) mode: RunMode,
    /// It stands for all objects of its POA; its key is what their keys have in common.
    pub(crate) shared: bool,
}

/// Of an entry that is found by its id.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Keeps an entry's count of requests under way.
pub(crate) struct InFlight<E: Deref<Target = Entry> = Arc<Entry>>(E);

impl Entry {
    /// `key` ends with the object id, which begins at `id_at`.
    pub(crate) fn new(
        key: &[u8],
        id_at: usize,
        slot: u32,
        poa: Arc<PoaCore>,
        servant: (Arc<dyn Skeleton>, RunMode),
    ) -> Self {
        let (skeleton, mode) = servant;
        let thread = poa.policies.thread;
        let mode = RunMode { serial: poa.turn.is_some(), main: thread == ThreadModel::Main, ..mode };
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

    /// What stands for all objects whose keys start so.
    pub(crate) fn shared(prefix: &[u8], poa: Arc<PoaCore>, servant: (Arc<dyn Skeleton>, RunMode)) -> Self {
        Self { shared: true, ..Self::new(prefix, prefix.len(), NO_SLOT, poa, servant) }
    }

    /// The key; of a shared one, how the keys of its objects start.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// The object id in a key of this entry's.
    pub(crate) fn id_in<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        key.get(usize::from(self.id_at)..).unwrap_or_default()
    }

    /// The object id; empty of a shared one.
    pub(crate) fn id(&self) -> &[u8] {
        self.id_in(self.key())
    }

    /// Whether a request for that key is for this very object.
    #[inline]
    pub(crate) fn is_at(&self, key: &[u8]) -> bool {
        self.key() == key && !self.shared
    }

    /// Tells its servant from others.
    pub(crate) fn servant(&self) -> usize {
        Arc::as_ptr(&self.skeleton).cast::<()>() as usize
    }

    /// Whether the object is no longer in the map.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.count.is_gone()
    }

    /// Takes the object out of service; says whether this is who did it.
    pub(crate) fn retire(&self) -> bool {
        self.count.retire()
    }

    /// Counts a request as under way until the guard is dropped; `None`: the object is gone.
    #[inline]
    pub(crate) fn enter(&self) -> Option<InFlight<&Self>> {
        let there = self.count.enter();
        let entered = InFlight(self);
        there.then_some(entered)
    }

    /// The same for a request that one under way makes, also when the object is on its way out; `None`: it has ended.
    pub(crate) fn enter_again(&self) -> Option<InFlight<&Self>> {
        let under_way = self.count.enter_again();
        let entered = InFlight(self);
        under_way.then_some(entered)
    }

    /// The same with a guard that may outlive the borrow.
    pub(crate) fn enter_owned(self: &Arc<Self>) -> Option<InFlight> {
        let there = self.count.enter();
        let entered = InFlight(Arc::clone(self));
        there.then_some(entered)
    }

    /// Counts a request that has entered once more, whatever became of the object since.
    pub(crate) fn stay(self: &Arc<Self>) -> InFlight {
        self.count.enter();
        InFlight(Arc::clone(self))
    }

    /// Whether a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.count.is_busy()
    }

    /// Waits until no request is under way.
    ///
    /// # Cancel safety
    /// Nothing is lost.
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
    /// Whether it counts for that entry.
    #[inline]
    pub(crate) fn is(&self, entry: &Arc<Entry>) -> bool {
        Arc::ptr_eq(&self.0, entry)
    }
}

impl<E: Deref<Target = Entry>> Drop for InFlight<E> {
    #[inline]
    fn drop(&mut self) {
        if self.0.count.leave() {
            self.0.poa.idle.notify_waiters();
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = ObjectKey::from(self.key());
        f.debug_struct("Entry")
            .field("key", &key)
            .field("id", &self.skeleton.repository_id())
            .finish_non_exhaustive()
    }
}

const _: () = assert!(size_of::<Entry>() == 64);
