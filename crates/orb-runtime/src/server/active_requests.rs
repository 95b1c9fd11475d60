//! The active requests of one connection: polled in place, suspended while they wait, and kept in order.
//!
//! Order is per connection and object. Requests start in the order of arrival, and a oneway completes before
//! the next request of its object starts. The latter does not apply to servants activated as concurrent. It
//! also ceases to apply when the servant makes a call, because the call may lead back to the object.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, Stream};
use giop_codec::ByteOrder;
use giop_codec::cdr::CodeSets;
use giop_proto::{IncomingRequest, ServeToken};
use tokio::runtime::Handle;

use crate::connection::SharedConnection;
use crate::servant::active_object::{ActiveObject, InFlight};
use crate::servant::charge::Charge;
use crate::servant::reply::ReplyBuffer;
use crate::servant::request::{ReplyTo, panicked};
use crate::servant::{DispatchSlot, Outcome, Request, ServerRequest};

/// Maximum number of slots and encoders kept for reuse.
pub(crate) const MAX_BATCH: usize = 32;

/// The requests of one connection.
pub(crate) struct ActiveRequests {
    link: Arc<SharedConnection>,
    template: Request,
    /// Operation number of the next request, if it was found together with the object.
    #[cfg(feature = "experiments")]
    pub(crate) number: Option<u16>,
    /// The caller of the next request.
    #[cfg(feature = "csi")]
    pub(crate) caller: crate::csi::Caller,
    /// The runtime for requests that are not served in place. `None`: that of the driver.
    home: Option<Handle>,
    spare: Vec<DispatchSlotLease>,
    /// Whether a batch is being started. State that its requests share is released after the last one.
    gathering: bool,
    /// During a batch: the object whose requests are being started.
    busy: Option<InFlight>,
    #[expect(clippy::vec_box, reason = "they travel through futures: a pointer is cheaper to move")]
    encoders: Vec<Box<ReplyBuffer>>,
    /// Whether bulk results are shared instead of copied into their reply.
    #[cfg(feature = "experiments")]
    shares: bool,
    aside: FuturesUnordered<SuspendedRequest>,
    /// Objects with an incomplete oneway, and the requests that follow it.
    waiting: Vec<OnewayBarrier>,
    /// Descriptions of suspended requests, for cancellation.
    asides: Vec<(ServeToken, Request)>,
    /// Requests that may start because a oneway has completed.
    released: VecDeque<IncomingRequest>,
}

/// A reusable dispatch slot with its request description.
struct DispatchSlotLease {
    slot: DispatchSlot,
    /// The description for `zorb::request()`. `None` while it is set as the current one.
    current: Option<Request>,
    /// The interface for whose futures the slot is sized.
    kind: usize,
}

/// A suspended request: one that did not complete at its first poll.
struct SuspendedRequest {
    lease: Option<DispatchSlotLease>,
    to: ReplyTo,
    _entered: InFlight,
    entry: Arc<ActiveObject>,
}

struct OnewayBarrier {
    /// Token of the oneway. Its description follows.
    token: ServeToken,
    oneway: Option<Request>,
    entry: Arc<ActiveObject>,
    /// The object's key, if the entry is shared by many objects.
    key: Option<Box<[u8]>>,
    requests: VecDeque<IncomingRequest>,
}

/// The reason why a request may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnterError {
    /// The object was deactivated after it was looked up.
    Deactivated,
    /// The POA does not let requests start at present.
    GateClosed,
}

impl OnewayBarrier {
    fn is_for(&self, entry: &Arc<ActiveObject>, key: &[u8]) -> bool {
        Arc::ptr_eq(&self.entry, entry) && self.key.as_ref().is_none_or(|own| **own == *key)
    }
}

impl ActiveRequests {
    pub(crate) fn new(
        template: Request,
        #[cfg(feature = "experiments")] shares: bool,
        link: Arc<SharedConnection>,
        home: Option<Handle>,
    ) -> Self {
        Self {
            link,
            template,
            #[cfg(feature = "experiments")]
            number: None,
            #[cfg(feature = "csi")]
            caller: Default::default(),
            home,
            spare: Vec::new(),
            gathering: false,
            busy: None,
            encoders: Vec::new(),
            #[cfg(feature = "experiments")]
            shares,
            aside: FuturesUnordered::new(),
            waiting: Vec::new(),
            asides: Vec::new(),
            released: VecDeque::new(),
        }
    }

    /// Returns whether no request is active.
    pub(crate) fn is_idle(&self) -> bool {
        self.aside.is_empty()
    }

    /// Counts an active request of the object. Requests of a batch are counted once, until
    /// [`end_batch`](Self::rest).
    #[inline]
    pub(crate) fn enter<'e>(
        &mut self,
        entry: &'e Arc<ActiveObject>,
    ) -> Result<Option<InFlight<&'e ActiveObject>>, EnterError> {
        let mut entered = None;
        if !self.gathering {
            entered = Some(entry.enter().ok_or(EnterError::Deactivated)?);
        } else if entry.is_gone() || !self.busy.as_ref().is_some_and(|busy| busy.is(entry)) {
            self.busy = None;
            self.busy = Some(entry.enter_owned().ok_or(EnterError::Deactivated)?);
        }
        // Checked after counting, so that a task that closes the gate and then reads the counts misses no
        // request.
        if !entry.poa.is_open() {
            self.busy = None;
            return Err(EnterError::GateClosed);
        }
        Ok(entered)
    }

    /// Starts a request, or queues it after the object's oneway. Returns the outcome if the request completed
    /// at once.
    pub(crate) fn start(
        &mut self,
        cx: &mut Context<'_>,
        entry: &Arc<ActiveObject>,
        _entered: Option<InFlight<&ActiveObject>>,
        incoming: IncomingRequest,
        sets: Option<CodeSets>,
    ) -> Option<Outcome> {
        if !self.waiting.is_empty()
            && let Some(queue) = self.waiting.iter_mut().find(|queue| queue.is_for(entry, incoming.key()))
        {
            queue.requests.push_back(incoming);
            return None;
        }
        let to = ReplyTo::new(&incoming);
        let mut encoder = self.encoder();
        encoder.reset(ByteOrder::NATIVE, incoming.version());
        if let Some(sets) = sets {
            encoder.set_code_sets(sets);
        }
        let kind = entry.skeleton.seat_kind();
        let mut lease = self.lease(kind);
        let current = lease.current.get_or_insert_with(|| self.template.fresh());
        let arguments = current.renew(
            entry,
            incoming,
            #[cfg(feature = "experiments")]
            self.number,
            #[cfg(feature = "csi")]
            std::mem::take(&mut self.caller),
        );
        #[cfg(feature = "tracing")]
        current.start_span();
        let request =
            ServerRequest { to, encoder, current: current.clone(), arguments, charge: Charge::default() };
        let mode = entry.mode;
        let skeleton = Arc::clone(&entry.skeleton);
        if !mode.is_plain() {
            run_detached(&mut lease, skeleton, request, entry, to, self.home.clone());
        } else if let Err(panic) =
            catch_unwind(AssertUnwindSafe(|| skeleton.dispatch(request, &mut lease.slot)))
        {
            let exception = panicked(&*panic);
            if let Some(current) = &mut lease.current {
                current.seen().system_exception(&exception);
                current.end_span();
            }
            return Some(to.system_exception(self.encoder(), exception));
        }
        match poll_lease(&mut lease, to, cx) {
            Poll::Ready(outcome) => {
                self.keep(lease);
                Some(outcome)
            }
            Poll::Pending => {
                let calls = lease.current.as_ref().is_some_and(Request::calls);
                if !to.wanted && !mode.concurrent && !calls {
                    let key = if entry.shared {
                        lease.current.as_ref().map(|current| current.object_key().into())
                    } else {
                        None
                    };
                    let (oneway, entry) = (lease.current.clone(), Arc::clone(entry));
                    self.waiting.push(OnewayBarrier {
                        token: to.token,
                        oneway,
                        entry,
                        key,
                        requests: VecDeque::new(),
                    });
                }
                self.asides.extend(lease.current.clone().map(|current| (to.token, current)));
                let (owned, entry) = (entry.stay(), Arc::clone(entry));
                self.aside.push(SuspendedRequest { lease: Some(lease), to, _entered: owned, entry });
                None
            }
        }
    }

    /// Returns the outcome of the next suspended request that has completed.
    pub(crate) fn poll_done(&mut self, cx: &mut Context<'_>) -> Option<Outcome> {
        let Poll::Ready(Some((mut aside, outcome))) = Pin::new(&mut self.aside).poll_next(cx) else {
            self.release_behind_callers();
            return None;
        };
        self.asides.retain(|(token, _)| *token != aside.to.token);
        let Some(lease) = aside.lease.take() else { return Some(outcome) };
        if !aside.to.wanted
            && let Some(at) = self.waiting.iter().position(|queue| queue.token == aside.to.token)
        {
            // If a released request is a oneway that does not complete at once, the requests after it are
            // queued again.
            self.released.extend(self.waiting.swap_remove(at).requests);
        }
        self.keep(lease);
        Some(outcome)
    }

    /// Releases the requests queued after oneways whose servants have made calls.
    fn release_behind_callers(&mut self) {
        let Self { waiting, released, .. } = self;
        waiting.retain_mut(|queue| {
            let calls = queue.oneway.as_ref().is_some_and(Request::calls);
            if calls {
                released.append(&mut queue.requests);
            }
            !calls
        });
    }

    /// Takes the released requests, in order.
    pub(crate) fn released(&mut self) -> impl DoubleEndedIterator<Item = IncomingRequest> {
        self.released.drain(..)
    }

    /// Cancels a request. Returns whether it was dropped because it had not started.
    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        for queue in &mut self.waiting {
            if let Some(at) = queue.requests.iter().position(|incoming| incoming.token() == token) {
                queue.requests.remove(at);
                return true;
            }
        }
        if let Some((_, request)) = self.asides.iter().find(|(other, _)| *other == token) {
            request.cancel();
        }
        false
    }

    /// Notifies all servants that the connection is gone.
    pub(crate) fn cancel_all(&mut self) {
        for (_, request) in &self.asides {
            request.cancel();
        }
    }

    /// Takes back an encoder whose message is queued. One without a link was created for a single reply and
    /// is not kept, because it cannot stream replies.
    pub(crate) fn keep_encoder(&mut self, encoder: Box<ReplyBuffer>) {
        if encoder.link().is_some() && self.encoders.len() < MAX_BATCH {
            self.encoders.push(encoder);
        }
    }

    /// Frees encoders that hold more than `most` bytes.
    pub(crate) fn release(&mut self, most: usize) {
        self.encoders.retain(|encoder| encoder.capacity() <= most);
    }

    /// Returns an encoder for a reply.
    pub(crate) fn encoder(&mut self) -> Box<ReplyBuffer> {
        #[cfg(feature = "experiments")]
        if !self.shares {
            let mut encoder = self.spare_encoder();
            encoder.set_chunk_threshold(usize::MAX);
            return encoder;
        }
        self.spare_encoder()
    }

    fn spare_encoder(&mut self) -> Box<ReplyBuffer> {
        self.encoders.pop().unwrap_or_else(|| ReplyBuffer::new(Some(Arc::clone(&self.link))))
    }

    fn lease(&mut self, kind: usize) -> DispatchSlotLease {
        let found = self.spare.iter().rposition(|lease| lease.kind == kind);
        match found
            .map(|at| self.spare.swap_remove(at))
            .or_else(|| if self.spare.len() >= MAX_BATCH { self.spare.pop() } else { None })
        {
            Some(lease) => DispatchSlotLease { kind, ..lease },
            None => DispatchSlotLease { slot: DispatchSlot::new(), current: None, kind },
        }
    }

    fn keep(&mut self, mut lease: DispatchSlotLease) {
        if let Some(current) = &mut lease.current {
            current.end_span();
            if !self.gathering {
                current.retire();
            }
        }
        if self.spare.len() < MAX_BATCH {
            self.spare.push(lease);
        }
    }

    /// Begins a batch of requests, which [`end_batch`](Self::rest) ends.
    pub(crate) fn begin_batch(&mut self) {
        self.gathering = true;
    }

    /// Releases the objects and messages of completed requests of the batch. Must not run under a lock,
    /// because it may drop a servant.
    pub(crate) fn end_batch(&mut self) {
        (self.gathering, self.busy) = (false, None);
        self.spare.iter_mut().filter_map(|lease| lease.current.as_mut()).for_each(Request::retire);
    }
}

impl Future for SuspendedRequest {
    type Output = (Self, Outcome);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(lease) = &mut this.lease else { return Poll::Pending };
        let Poll::Ready(outcome) = poll_lease(lease, this.to, cx) else { return Poll::Pending };
        let done = Self {
            lease: this.lease.take(),
            to: this.to,
            _entered: this.entry.stay(),
            entry: Arc::clone(&this.entry),
        };
        Poll::Ready((done, outcome))
    }
}

/// Polls the servant with its request as the current one. A panic affects only this request.
fn poll_lease(lease: &mut DispatchSlotLease, to: ReplyTo, cx: &mut Context<'_>) -> Poll<Outcome> {
    let DispatchSlotLease { slot, current, .. } = lease;
    match Request::lend(current, || catch_unwind(AssertUnwindSafe(|| slot.poll(cx)))) {
        Ok(poll) => poll,
        Err(panic) => {
            slot.clear();
            let (encoder, exception) = (ReplyBuffer::new(None), panicked(&*panic));
            if let Some(current) = current {
                current.seen().system_exception(&exception);
            }
            Poll::Ready(to.system_exception(encoder, exception))
        }
    }
}

/// Runs the request in a separate task or thread, or when it has its turn.
fn run_detached(
    lease: &mut DispatchSlotLease,
    skeleton: Arc<dyn crate::servant::Skeleton>,
    request: ServerRequest,
    entry: &Arc<ActiveObject>,
    to: ReplyTo,
    home: Option<Handle>,
) {
    let current = request.current.clone();
    let mode = entry.mode;
    let threads = Arc::clone(&entry.poa.threads);
    let turn = entry.poa.turn.clone();
    let orb = Arc::clone(current.core());
    let request_of = current.clone();
    let work = async move {
        let _turn = match turn {
            Some(turn) => turn.acquire_owned().await.ok(),
            None => None,
        };
        let mut slot = DispatchSlot::new();
        skeleton.dispatch(request, &mut slot);
        let poll = move |cx: &mut Context<'_>| current.enter(|| slot.poll(cx));
        if !mode.blocking && !mode.spawned {
            return std::future::poll_fn(poll).await;
        }
        let runtime = home.unwrap_or_else(Handle::current);
        let _permit = if mode.blocking { threads.acquire_owned().await.ok() } else { None };
        let mut running = if mode.blocking {
            let waiting = runtime.clone();
            runtime.spawn_blocking(move || waiting.block_on(std::future::poll_fn(poll)))
        } else {
            runtime.spawn(std::future::poll_fn(poll))
        };
        let joined = std::future::poll_fn(|cx| {
            request_of.wake_at_call(cx.waker());
            Pin::new(&mut running).poll(cx)
        })
        .await;
        joined.unwrap_or_else(|error| {
            let encoder = ReplyBuffer::new(None);
            let exception = match error.try_into_panic() {
                Ok(panic) => panicked(&*panic),
                Err(error) => crate::servant::unknown_user_exception(error),
            };
            request_of.seen().system_exception(&exception);
            to.system_exception(encoder, exception)
        })
    };
    if mode.main {
        lease.slot.set(async move { orb.adapter().main.run(work, to).await });
    } else {
        lease.slot.set(work);
    }
}
