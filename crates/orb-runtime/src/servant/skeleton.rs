//! The traits of generated skeletons and their futures, and the slot in which the futures are polled.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use giop_codec::cdr::{CdrDecode, CdrEncode};
use tokio_util::sync::ReusableBoxFuture;

use crate::servant::active_object::RunMode;
use crate::servant::forward::ForwardRequest;
use crate::servant::request::{OBJECT_REPOSITORY_ID, Outcome, ServerRequest};

/// A servant whose operations are called by name. Generated code implements this trait for each interface.
pub trait Skeleton: Send + Sync + 'static {
    /// Returns the repository id of the interface, and then the ids of all bases except `CORBA::Object`.
    fn repository_ids(&self) -> &'static [&'static str];

    /// Returns the repository id of the interface.
    fn repository_id(&self) -> &str {
        self.repository_ids().first().copied().unwrap_or(OBJECT_REPOSITORY_ID)
    }

    /// Returns whether the interface is `repository_id` or derived from it, or `None` if only a request can
    /// determine this.
    fn is_a(&self, repository_id: &str) -> Option<bool> {
        Some(repository_id == OBJECT_REPOSITORY_ID || self.repository_ids().contains(&repository_id))
    }

    /// Returns a number that identifies the type of the skeleton, and therefore of its futures. Skeletons
    /// with the same number reuse each other's dispatch slots.
    fn slot_kind(&self) -> usize {
        self.repository_ids().as_ptr().addr()
    }

    /// Puts the future that serves the request into the slot. The future has the same type for all
    /// operations, so that the slot's memory can be reused.
    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot);

    /// Returns the operations whose last argument is a stream, by their names in GIOP messages.
    fn streamed_operations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether the servant takes arguments as undecoded bytes.
    fn takes_raw_arguments(&self) -> bool {
        false
    }

    /// Returns all operations by number, for the feature `experiments`.
    fn operations(&self) -> Operations {
        Operations::default()
    }

    /// Returns the location to which callers are forwarded, or `None` if this skeleton serves requests.
    #[doc(hidden)]
    fn forward_location(&self) -> Option<&ForwardRequest> {
        None
    }

    /// Sets `out` to the servant, for collocated calls. Does nothing unless `out` is an `Option<Arc<L>>`,
    /// where `L` is the trait object of the interface or of one of its bases.
    fn downcast_into(self: Arc<Self>, out: &mut dyn Any);
}

/// The operations of a skeleton, ordered by number: the operations of the bases first, and the operations of
/// the interface itself last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operations {
    /// The names in GIOP messages.
    pub names: &'static [&'static str],
    /// The number of operations of each base, and last of the interface itself.
    pub counts: &'static [usize],
}

/// A type-erased servant, for POAs and servant managers. Clones refer to the same servant and are equal.
///
/// `Servant::of::<bank::AccountRef, _>(MyAccount::default())`
#[doc(alias = "PortableServer::Servant")]
#[derive(Clone)]
pub struct Servant {
    pub(crate) skeleton: Arc<dyn Skeleton>,
    pub(crate) mode: RunMode,
}

impl Servant {
    /// Runs requests on a bounded pool of threads (`OrbBuilder::blocking_threads`). This is for servants that
    /// sleep, wait for locks or compute for long.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.mode.blocking = true;
        self
    }

    /// Runs each request in a separate task, so that requests of one connection run in parallel.
    #[must_use]
    pub fn spawned(mut self) -> Self {
        self.mode.spawned = true;
        self
    }

    /// Allows a request to start while an earlier oneway request of the same connection for the same object
    /// is running.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.mode.concurrent = true;
        self
    }

    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.skeleton).cast::<()>() as usize
    }

    /// Returns the repository id of the servant's interface.
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
    /// The repository id, such as `IDL:Bank/InsufficientFunds:1.0`.
    const REPOSITORY_ID: &'static str;
}

/// The future of a servant method, which is an `async fn`. All futures implement this trait. It exists only
/// for the compiler's error message about methods that are not `async`.
#[diagnostic::on_unimplemented(
    message = "a method of a servant must be an `async fn`",
    label = "`{Self}` is not a future",
    note = "write `async fn` instead of `fn`"
)]
pub trait ServantFuture: Future {}

#[diagnostic::do_not_recommend]
impl<F: Future + ?Sized> ServantFuture for F {}

/// A boxed future of a servant: of a collocated call, or of a streamed reply.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A slot for one dispatch future. The next future of the same type reuses its memory.
#[derive(Debug)]
pub struct DispatchSlot {
    future: ReusableBoxFuture<'static, Outcome>,
}

impl DispatchSlot {
    /// Creates an empty slot. Memory is allocated when the first future is set.
    pub(crate) fn new() -> Self {
        // Boxing a zero-sized future does not allocate.
        Self { future: ReusableBoxFuture::new(std::future::pending()) }
    }

    /// Replaces the future in the slot.
    pub fn set(&mut self, future: impl Future<Output = Outcome> + Send + 'static) {
        self.future.set(future);
    }

    pub(crate) fn clear(&mut self) {
        self.future.set(std::future::pending());
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.future.poll(cx)
    }
}
