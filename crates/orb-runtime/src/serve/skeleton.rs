//! What generated skeletons implement, and the place where their futures are polled.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use giop_codec::cdr::{CdrDecode, CdrEncode};
use tokio_util::sync::ReusableBoxFuture;

use super::demux::Operations;
use super::entry::RunMode;
use super::request::{Outcome, ServerRequest};
use crate::poa::ForwardRequest;
use crate::reference::Reference;

/// A servant behind its interface's operations. Generated for each interface.
pub trait Skeleton: Send + Sync + 'static {
    /// The repository ids of the interface, the most derived first, then every base; `CORBA::Object` is implied.
    fn repository_ids(&self) -> &'static [&'static str];

    /// The repository id of the interface.
    fn repository_id(&self) -> &str {
        self.repository_ids().first().copied().unwrap_or(super::request::OBJECT_ID)
    }

    /// Whether the interface is that one or has it as a base. `None`: only a request tells.
    fn is_a(&self, repository_id: &str) -> Option<bool> {
        Some(repository_id == super::request::OBJECT_ID || self.repository_ids().contains(&repository_id))
    }

    /// Tells the types of skeletons apart whose futures need different slots.
    fn seat_kind(&self) -> usize {
        self.repository_ids().as_ptr().addr()
    }

    /// Sets the future that serves the request into the slot. One type of future for all operations of a servant
    /// type, so that the slot's memory is used again.
    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot);

    /// The operations whose last argument is a stream, as they are named on the wire.
    fn streamed(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether requests are passed on as octets.
    fn passes_on(&self) -> bool {
        false
    }

    /// All operations by their numbers.
    fn operations(&self) -> Operations {
        Operations::default()
    }

    /// Where the object is, if nothing of it is here: callers are told so.
    #[doc(hidden)]
    fn elsewhere(&self) -> Option<&ForwardRequest> {
        None
    }

    /// Fills `out`, an `Option<Arc<dyn Local>>` of the interface or one of its bases, for collocated calls.
    fn local(self: Arc<Self>, out: &mut dyn Any);
}

/// Which servants a reference type can stand for: the bound for code that activates any interface,
/// `fn publish<R: Serves<S>, S>(orb: &Orb, servant: S) -> Result<R, ActivateError>`.
///
/// Generated: `impl<S: AccountServant> Serves<S> for AccountRef`. Nothing else implements it.
#[diagnostic::on_unimplemented(
    message = "`{S}` is not a servant of the interface of `{Self}`",
    note = "implement the interface's `...Servant` trait for it, and annotate the reference type that `activate` returns"
)]
pub trait Serves<S>: Reference {
    /// The servant as a skeleton.
    #[doc(hidden)]
    fn skeleton(servant: S) -> Arc<dyn Skeleton>;
}

/// A servant of any interface, erased: what POAs and servant managers are given. Clones are the same servant, and compare equal.
///
/// `Servant::of::<bank::AccountRef>(MyAccount::default())`
#[doc(alias = "PortableServer::Servant")]
#[derive(Clone)]
pub struct Servant {
    pub(crate) skeleton: Arc<dyn Skeleton>,
    pub(crate) mode: RunMode,
}

impl Servant {
    /// The servant of the interface of `R`.
    #[must_use]
    pub fn of<R: Serves<S>, S>(servant: S) -> Self {
        Self { skeleton: R::skeleton(servant), mode: RunMode::default() }
    }

    /// Its requests run on a bounded pool of threads, for servants that sleep, lock or compute for long
    /// (`OrbBuilder::blocking_threads`).
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.mode.blocking = true;
        self
    }

    /// Each of its requests runs in a task of its own, so that one connection's requests run on several workers.
    #[must_use]
    pub fn spawned(mut self) -> Self {
        self.mode.spawned = true;
        self
    }

    /// Lifts the order: a request may start while an earlier oneway of the same connection is not done.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.mode.concurrent = true;
        self
    }

    /// Tells servants apart: clones are the same one.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.skeleton).cast::<()>() as usize
    }

    /// The repository id of its interface.
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

/// A place for one dispatch future, whose memory is used again for the next of the same type.
#[derive(Debug)]
pub struct DispatchSlot {
    future: ReusableBoxFuture<'static, Outcome>,
}

impl DispatchSlot {
    /// An empty slot: it allocates when its first future is set.
    pub(crate) fn new() -> Self {
        // A future of no size: boxing it does not allocate.
        Self { future: ReusableBoxFuture::new(std::future::pending()) }
    }

    /// Puts a future into the slot, in place of the one before.
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
