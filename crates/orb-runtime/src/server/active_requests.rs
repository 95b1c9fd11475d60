//! The active requests of one connection. A request is polled as soon as it has started. If it does not
//! complete at this first poll, it is suspended: it is polled again when it can continue.
//!
//! The requests of a connection for one object start in order of arrival. A oneway request completes before
//! the next request for its object starts, with two exceptions: the servant was activated as concurrent, or
//! the servant has made a call, which may lead back to the object.

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
use crate::servant::reply::{Charge, ReplyBuffer};
use crate::servant::request::{ReplyTo, panicked};
use crate::servant::{DispatchSlot, Outcome, Request, ServerRequest};

/// The maximum number of requests in a batch, and of slots and encoders that are kept for reuse.
pub(crate) const MAX_BATCH: usize = 32;

pub(crate) struct ActiveRequests {
    link: Arc<SharedConnection>,
    /// The description of the connection, from which the descriptions of requests are created.
    template: Request,
    /// The operation number of the next request, if it was found together with the object.
    #[cfg(feature = "experiments")]
    pub(crate) operation_number: Option<u16>,
    /// The caller of the next request.
    #[cfg(feature = "csi")]
    pub(crate) caller: crate::csi::Caller,
    /// The runtime for requests of blocking and spawned servants. `None` means the runtime of the driver.
    runtime: Option<Handle>,
    spare_slots: Vec<ReusableSlot>,
    is_in_batch: bool,
    /// The object of the latest request of the batch. Its requests in the batch are counted as one.
    batch_object: Option<InFlight>,
    #[expect(
        clippy::vec_box,
        reason = "encoders are moved through futures, and a pointer is cheaper to move"
    )]
    encoders: Vec<Box<ReplyBuffer>>,
    /// Whether bulk results are sent from their memory, instead of being copied into the reply.
    #[cfg(feature = "experiments")]
    shares_bulk: bool,
    suspended: FuturesUnordered<SuspendedRequest>,
    /// The incomplete oneway requests, each with the later requests for its object.
    oneway_barriers: Vec<OnewayBarrier>,
    /// The descriptions of suspended requests, for cancellation.
    suspended_descriptions: Vec<(ServeToken, Request)>,
    /// The requests that may start because a oneway request has completed, or its servant has made a call.
    released_requests: VecDeque<IncomingRequest>,
}

struct ReusableSlot {
    dispatch: DispatchSlot,
    /// The description for `zorb::request()`. `None` while it is set as the current one.
    current: Option<Request>,
    /// The [kind](crate::servant::Skeleton::slot_kind) of the futures for which the slot has memory.
    kind: usize,
}

/// A suspended request: it did not complete at its first poll.
struct SuspendedRequest {
    slot: Option<ReusableSlot>,
    to: ReplyTo,
    _entered: InFlight,
    entry: Arc<ActiveObject>,
}

/// An incomplete oneway request that delays later requests for its object.
struct OnewayBarrier {
    token: ServeToken,
    oneway: Option<Request>,
    entry: Arc<ActiveObject>,
    /// The object's key, if the entry is shared by many objects.
    key: Option<Box<[u8]>>,
    later_requests: VecDeque<IncomingRequest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnterError {
    Deactivated,
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
        #[cfg(feature = "experiments")] shares_bulk: bool,
        link: Arc<SharedConnection>,
        runtime: Option<Handle>,
    ) -> Self {
        Self {
            link,
            template,
            #[cfg(feature = "experiments")]
            operation_number: None,
            #[cfg(feature = "csi")]
            caller: Default::default(),
            runtime,
            spare_slots: Vec::new(),
            is_in_batch: false,
            batch_object: None,
            encoders: Vec::new(),
            #[cfg(feature = "experiments")]
            shares_bulk,
            suspended: FuturesUnordered::new(),
            oneway_barriers: Vec::new(),
            suspended_descriptions: Vec::new(),
            released_requests: VecDeque::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.suspended.is_empty()
    }

    /// Counts an active request of the object. Consecutive requests of a batch are counted as one, until
    /// [`end_batch`](Self::end_batch).
    #[inline]
    pub(crate) fn enter<'e>(
        &mut self,
        entry: &'e Arc<ActiveObject>,
    ) -> Result<Option<InFlight<&'e ActiveObject>>, EnterError> {
        let mut entered = None;
        if !self.is_in_batch {
            entered = Some(entry.enter().ok_or(EnterError::Deactivated)?);
        } else if entry.is_deactivated()
            || !self.batch_object.as_ref().is_some_and(|busy| Arc::ptr_eq(&busy.0, entry))
        {
            self.batch_object = None;
            self.batch_object = Some(entry.enter_owned().ok_or(EnterError::Deactivated)?);
        }
        // Check after counting: a task that closes the gate and then reads the counts sees every request.
        if !entry.poa.is_open() {
            self.batch_object = None;
            return Err(EnterError::GateClosed);
        }
        Ok(entered)
    }

    /// Starts a request, or queues it after an incomplete oneway request for the object. Returns the outcome
    /// if the request has completed at once.
    pub(crate) fn start(
        &mut self,
        cx: &mut Context<'_>,
        entry: &Arc<ActiveObject>,
        _entered: Option<InFlight<&ActiveObject>>,
        incoming: IncomingRequest,
        sets: Option<CodeSets>,
    ) -> Option<Outcome> {
        if !self.oneway_barriers.is_empty()
            && let Some(barrier) =
                self.oneway_barriers.iter_mut().find(|barrier| barrier.is_for(entry, incoming.key()))
        {
            barrier.later_requests.push_back(incoming);
            return None;
        }
        let to = ReplyTo::new(&incoming);
        let mut encoder = self.encoder();
        encoder.reset(ByteOrder::NATIVE, incoming.version());
        if let Some(sets) = sets {
            encoder.set_code_sets(sets);
        }
        let kind = entry.skeleton.slot_kind();
        let mut slot = self.take_slot(kind);
        let current = slot.current.get_or_insert_with(|| self.template.new_without_target());
        let arguments = current.reuse_for(
            entry,
            incoming,
            #[cfg(feature = "experiments")]
            self.operation_number,
            #[cfg(feature = "csi")]
            std::mem::take(&mut self.caller),
        );
        #[cfg(feature = "tracing")]
        current.start_span();
        let request =
            ServerRequest { to, encoder, current: current.clone(), arguments, charge: Charge::default() };
        let mode = entry.mode;
        let skeleton = Arc::clone(&entry.skeleton);
        if !mode.runs_in_place() {
            run_detached(&mut slot, skeleton, request, entry, to, self.runtime.clone());
        } else if let Err(panic) =
            catch_unwind(AssertUnwindSafe(|| skeleton.dispatch(request, &mut slot.dispatch)))
        {
            let exception = panicked(&*panic);
            if let Some(current) = &mut slot.current {
                current.span().record_system_exception(&exception);
                current.end_span();
            }
            return Some(to.system_exception(self.encoder(), exception));
        }
        match poll_slot(&mut slot, to, cx) {
            Poll::Ready(outcome) => {
                self.recycle_slot(slot);
                Some(outcome)
            }
            Poll::Pending => {
                let has_made_call = slot.current.as_ref().is_some_and(Request::has_made_call);
                if !to.wants_reply && !mode.concurrent && !has_made_call {
                    let key = slot.current.as_ref().filter(|_| entry.is_shared);
                    let key = key.map(|current| current.object_key().into());
                    let (oneway, entry) = (slot.current.clone(), Arc::clone(entry));
                    let (token, later_requests) = (to.token, VecDeque::new());
                    self.oneway_barriers.push(OnewayBarrier { token, oneway, entry, key, later_requests });
                }
                self.suspended_descriptions.extend(slot.current.clone().map(|current| (to.token, current)));
                let (owned, entry) = (entry.enter_again(), Arc::clone(entry));
                self.suspended.push(SuspendedRequest { slot: Some(slot), to, _entered: owned, entry });
                None
            }
        }
    }

    /// Polls the suspended requests. Returns the outcome of one that has completed.
    pub(crate) fn poll_completed(&mut self, cx: &mut Context<'_>) -> Option<Outcome> {
        let Poll::Ready(Some((mut request, outcome))) = Pin::new(&mut self.suspended).poll_next(cx) else {
            self.release_barriers_of_callers();
            return None;
        };
        self.suspended_descriptions.retain(|(token, _)| *token != request.to.token);
        let Some(slot) = request.slot.take() else { return Some(outcome) };
        if !request.to.wants_reply
            && let Some(at) =
                self.oneway_barriers.iter().position(|barrier| barrier.token == request.to.token)
        {
            // If a released request is a oneway request that does not complete at once, the requests after it
            // are queued again.
            self.released_requests.extend(self.oneway_barriers.swap_remove(at).later_requests);
        }
        self.recycle_slot(slot);
        Some(outcome)
    }

    /// Releases the requests that are queued after oneway requests whose servants have made calls.
    fn release_barriers_of_callers(&mut self) {
        let Self { oneway_barriers, released_requests, .. } = self;
        oneway_barriers.retain_mut(|barrier| {
            let has_made_call = barrier.oneway.as_ref().is_some_and(Request::has_made_call);
            if has_made_call {
                released_requests.append(&mut barrier.later_requests);
            }
            !has_made_call
        });
    }

    pub(crate) fn take_released_requests(&mut self) -> impl DoubleEndedIterator<Item = IncomingRequest> {
        self.released_requests.drain(..)
    }

    /// Cancels a request. Returns `true` if it had not started, and was removed.
    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        for barrier in &mut self.oneway_barriers {
            if let Some(at) = barrier.later_requests.iter().position(|incoming| incoming.token() == token) {
                barrier.later_requests.remove(at);
                return true;
            }
        }
        if let Some((_, request)) = self.suspended_descriptions.iter().find(|(other, _)| *other == token) {
            request.cancel();
        }
        false
    }

    /// Notifies all servants that the connection has ended.
    pub(crate) fn cancel_all(&mut self) {
        for (_, request) in &self.suspended_descriptions {
            request.cancel();
        }
    }

    /// Keeps an encoder for reuse after its message was queued. An encoder without a connection was created
    /// for one reply. It is not kept, because it cannot send replies while they are encoded.
    pub(crate) fn recycle_encoder(&mut self, encoder: Box<ReplyBuffer>) {
        if encoder.link().is_some() && self.encoders.len() < MAX_BATCH {
            self.encoders.push(encoder);
        }
    }

    /// Frees encoders whose capacity exceeds `max_bytes`.
    pub(crate) fn free_large_encoders(&mut self, max_bytes: usize) {
        self.encoders.retain(|encoder| encoder.capacity() <= max_bytes);
    }

    pub(crate) fn encoder(&mut self) -> Box<ReplyBuffer> {
        #[cfg(feature = "experiments")]
        if !self.shares_bulk {
            let mut encoder = self.spare_encoder();
            encoder.set_chunk_threshold(usize::MAX);
            return encoder;
        }
        self.spare_encoder()
    }

    fn spare_encoder(&mut self) -> Box<ReplyBuffer> {
        self.encoders.pop().unwrap_or_else(|| ReplyBuffer::new(Some(Arc::clone(&self.link))))
    }

    fn take_slot(&mut self, kind: usize) -> ReusableSlot {
        let found = self.spare_slots.iter().rposition(|slot| slot.kind == kind);
        match found
            .map(|at| self.spare_slots.swap_remove(at))
            .or_else(|| if self.spare_slots.len() >= MAX_BATCH { self.spare_slots.pop() } else { None })
        {
            Some(slot) => ReusableSlot { kind, ..slot },
            None => ReusableSlot { dispatch: DispatchSlot::new(), current: None, kind },
        }
    }

    fn recycle_slot(&mut self, mut slot: ReusableSlot) {
        if let Some(current) = &mut slot.current {
            current.end_span();
            if !self.is_in_batch {
                current.release_target();
            }
        }
        if self.spare_slots.len() < MAX_BATCH {
            self.spare_slots.push(slot);
        }
    }

    pub(crate) fn begin_batch(&mut self) {
        self.is_in_batch = true;
    }

    /// Ends a batch: releases the objects and messages of its completed requests. Must not be called under a
    /// lock, because it may drop a servant.
    pub(crate) fn end_batch(&mut self) {
        (self.is_in_batch, self.batch_object) = (false, None);
        self.spare_slots
            .iter_mut()
            .filter_map(|slot| slot.current.as_mut())
            .for_each(Request::release_target);
    }
}

impl Future for SuspendedRequest {
    type Output = (Self, Outcome);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(slot) = &mut this.slot else { return Poll::Pending };
        let Poll::Ready(outcome) = poll_slot(slot, this.to, cx) else { return Poll::Pending };
        let done = Self {
            slot: this.slot.take(),
            to: this.to,
            _entered: this.entry.enter_again(),
            entry: Arc::clone(&this.entry),
        };
        Poll::Ready((done, outcome))
    }
}

/// Polls the servant with its request as the current request. A panic affects only this request.
fn poll_slot(slot: &mut ReusableSlot, to: ReplyTo, cx: &mut Context<'_>) -> Poll<Outcome> {
    let ReusableSlot { dispatch, current, .. } = slot;
    match Request::enter_moved(current, || catch_unwind(AssertUnwindSafe(|| dispatch.poll(cx)))) {
        Ok(poll) => poll,
        Err(panic) => {
            dispatch.clear();
            let (encoder, exception) = (ReplyBuffer::new(None), panicked(&*panic));
            if let Some(current) = current {
                current.span().record_system_exception(&exception);
            }
            Poll::Ready(to.system_exception(encoder, exception))
        }
    }
}

/// Sets the slot's future to one that runs the request in a separate task or thread, in the turn of its POA,
/// or on the main thread.
fn run_detached(
    slot: &mut ReusableSlot,
    skeleton: Arc<dyn crate::servant::Skeleton>,
    request: ServerRequest,
    entry: &Arc<ActiveObject>,
    to: ReplyTo,
    runtime: Option<Handle>,
) {
    let current = request.current.clone();
    let mode = entry.mode;
    let poa = Arc::clone(&entry.poa);
    let orb = Arc::clone(current.core());
    let description = current.clone();
    let work = async move {
        let _turn = poa.take_turn().await;
        let mut slot = DispatchSlot::new();
        skeleton.dispatch(request, &mut slot);
        let poll = move |cx: &mut Context<'_>| current.enter(|| slot.poll(cx));
        if !mode.blocking && !mode.spawned {
            return std::future::poll_fn(poll).await;
        }
        let runtime = runtime.unwrap_or_else(Handle::current);
        let permit = Arc::clone(&poa.blocking_threads).acquire_owned();
        let _permit = if mode.blocking { permit.await.ok() } else { None };
        let mut running = if mode.blocking {
            let waiting = runtime.clone();
            runtime.spawn_blocking(move || waiting.block_on(std::future::poll_fn(poll)))
        } else {
            runtime.spawn(std::future::poll_fn(poll))
        };
        let joined = std::future::poll_fn(|cx| {
            description.wake_at_call(cx.waker());
            Pin::new(&mut running).poll(cx)
        })
        .await;
        joined.unwrap_or_else(|error| {
            let exception = match error.try_into_panic() {
                Ok(panic) => panicked(&*panic),
                Err(error) => crate::servant::unknown_user_exception(error),
            };
            description.span().record_system_exception(&exception);
            to.exception_outcome(exception)
        })
    };
    if mode.on_main_thread {
        slot.dispatch.set(async move { orb.adapter().main_thread.run(work, to).await });
    } else {
        slot.dispatch.set(work);
    }
}
