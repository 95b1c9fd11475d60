//! The interface of generated skeletons, and the slot in which their futures are polled.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use giop_codec::cdr::{CdrDecode, CdrEncode};
use tokio_util::sync::ReusableBoxFuture;

use crate::servant::active_object::RunMode;
use crate::servant::forward::ForwardRequest;
use crate::servant::request::{Outcome, ServerRequest};

/// A servant, called by operation. Generated for each interface.
pub trait Skeleton: Send + Sync + 'static {
    /// Returns the repository ids of the interface, the most derived first, then those of all bases.
    /// `CORBA::Object` is implied.
    fn repository_ids(&self) -> &'static [&'static str];

    /// Returns the repository id of the interface.
    fn repository_id(&self) -> &str {
        self.repository_ids().first().copied().unwrap_or(crate::servant::request::OBJECT_ID)
    }

    /// Returns whether the interface is `repository_id` or derived from it. `None`: only a request can
    /// determine it.
    fn is_a(&self, repository_id: &str) -> Option<bool> {
        Some(
            repository_id == crate::servant::request::OBJECT_ID
                || self.repository_ids().contains(&repository_id),
        )
    }

    /// Returns a number that distinguishes types of skeletons whose futures need different slots.
    fn seat_kind(&self) -> usize {
        self.repository_ids().as_ptr().addr()
    }

    /// Sets the future that serves the request into the slot. All operations of a servant type have the same
    /// type of future, so that the slot's memory is reused.
    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot);

    /// Returns the operations whose last argument is a stream, by their names in GIOP messages.
    fn streamed(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether requests are passed on as bytes.
    fn passes_on(&self) -> bool {
        false
    }

    /// Returns all operations by number, for the feature `experiments`.
    fn operations(&self) -> Operations {
        Operations::default()
    }

    /// Returns the location to which callers are forwarded, if the object is not in this process.
    #[doc(hidden)]
    fn elsewhere(&self) -> Option<&ForwardRequest> {
        None
    }

    /// Fills `out`, an `Option<Arc<dyn Local>>` of the interface or one of its bases, for collocated calls.
    fn local(self: Arc<Self>, out: &mut dyn Any);
}

/// The operations of a skeleton by number: those of the first base first, its own last. Generated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operations {
    /// Their names in GIOP messages.
    pub names: &'static [&'static str],
    /// The number of operations of each interface, in the same order.
    pub counts: &'static [usize],
}

/// A servant of any interface, type-erased, for POAs and servant managers. Clones are the same servant and
/// compare equal.
///
/// `Servant::of::<bank::AccountRef>(MyAccount::default())`
#[doc(alias = "PortableServer::Servant")]
#[derive(Clone)]
pub struct Servant {
    pub(crate) skeleton: Arc<dyn Skeleton>,
    pub(crate) mode: RunMode,
}

impl Servant {
    /// Runs its requests on a bounded pool of threads. For servants that sleep, lock or compute for long
    /// (`OrbBuilder::blocking_threads`).
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.mode.blocking = true;
        self
    }

    /// Runs each of its requests in a separate task, so that the requests of one connection run on several
    /// workers.
    #[must_use]
    pub fn spawned(mut self) -> Self {
        self.mode.spawned = true;
        self
    }

    /// Allows a request to start while an earlier oneway of the same connection is running.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.mode.concurrent = true;
        self
    }

    /// Returns a number that identifies the servant. Clones have the same one.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.skeleton).cast::<()>() as usize
    }

    /// Returns the repository id of its interface.
    #[must_use]
    pub fn repository_id(&self) -> &str {
        self.skeleton.repository_id()
    }
}

impl PartialEq for Servant {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Servant {}

impl std::fmt::Debug for Servant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Servant").field(&self.repository_id()).finish()
    }
}

/// An IDL exception.
pub trait UserException: CdrEncode + CdrDecode + std::error::Error + Send + Sync + 'static {
    /// Its repository id, such as `IDL:Bank/InsufficientFunds:1.0`.
    const REPOSITORY_ID: &'static str;
}

/// A slot for one dispatch future. The next future of the same type reuses its memory.
#[derive(Debug)]
pub struct DispatchSlot {
    future: ReusableBoxFuture<'static, Outcome>,
}

impl DispatchSlot {
    /// Creates an empty slot. It allocates when its first future is set.
    pub(crate) fn new() -> Self {
        // Boxing a zero-sized future does not allocate.
        Self { future: ReusableBoxFuture::new(std::future::pending()) }
    }

    /// Replaces the future in the slot.
    pub fn set(&mut self, future: impl Future<Output = Outcome> + Send + 'static) {
        self.future.set(future);
    }

    /// Drops the future.
    pub(crate) fn clear(&mut self) {
        self.future.set(std::future::pending());
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.future.poll(cx)
    }
}
