//! Requests under way on one connection: polled in place, kept aside when they wait, in the promised order.
//!
//! Order is per connection and object: requests start as they arrive, and a oneway is done before that object's next
//! request starts, unless the servant was activated as concurrent, or makes a call, which may lead back to the object.

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

use super::charge::Charge;
use super::current::Request;
use super::entry::{Entry, InFlight};
use super::reply::ReplyBuffer;
use super::request::{Outcome, ReplyTo, ServerRequest, panicked};
use super::skeleton::DispatchSlot;
use crate::link::Link;

/// Slots kept for the next requests.
pub(crate) const SPARE_SLOTS: usize = 32;

/// The requests of one connection.
pub(crate) struct Running {
    link: Arc<Link>,
    template: Request,
    /// Of the operation of the request that starts next, where it was found with the object.
    pub(crate) number: Option<u16>,
    /// Who makes the request that starts next.
    #[cfg(feature = "csi")]
    pub(crate) caller: crate::csi::Caller,
    /// Where requests run that are not served in place; `None`: where the driver runs.
    home: Option<Handle>,
    spare: Vec<Seat>,
    /// Several requests are started one after the other: what they have in common is let go of behind the last.
    gathering: bool,
    /// Then the object whose requests are being started.
    busy: Option<InFlight>,
    #[expect(clippy::vec_box, reason = "they travel through futures: a pointer is cheaper to move")]
    encoders: Vec<Box<ReplyBuffer>>,
    /// Bulk results are shared, not copied into their reply.
    shares: bool,
    aside: FuturesUnordered<Aside>,
    /// Objects whose oneway is not done, with what came after it.
    waiting: Vec<Queue>,
    /// Requests set aside, for cancelling.
    asides: Vec<(ServeToken, Request)>,
    /// Requests that a finished oneway lets start.
    released: VecDeque<IncomingRequest>,
}

/// A slot with what belongs to it, used again and again.
struct Seat {
    slot: DispatchSlot,
    /// What `zorb::request()` tells; `None` while it is told.
    current: Option<Request>,
    /// The interface whose futures the slot has room for.
    kind: usize,
}

/// A request that did not complete at once.
struct Aside {
    seat: Option<Seat>,
    to: ReplyTo,
    _entered: InFlight,
    entry: Arc<Entry>,
}

struct Queue {
    /// The oneway, and its description.
    token: ServeToken,
    oneway: Option<Request>,
    entry: Arc<Entry>,
    /// The object, where the entry stands for many.
    key: Option<Box<[u8]>>,
    requests: VecDeque<IncomingRequest>,
}

/// Why a request may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shut {
    /// The object is out of the map since it was looked up.
    Gone,
    /// Its POA does not let requests start now.
    Closed,
}

impl Queue {
    fn is_for(&self, entry: &Arc<Entry>, key: &[u8]) -> bool {
        Arc::ptr_eq(&self.entry, entry) && self.key.as_ref().is_none_or(|own| **own == *key)
    }
}

impl Running {
    pub(crate) fn new(template: Request, shares: bool, link: Arc<Link>, home: Option<Handle>) -> Self {
        Self {
            link,
            template,
            number: None,
            #[cfg(feature = "csi")]
            caller: Default::default(),
            home,
            spare: Vec::new(),
            gathering: false,
            busy: None,
            encoders: Vec::new(),
            shares,
            aside: FuturesUnordered::new(),
            waiting: Vec::new(),
            asides: Vec::new(),
            released: VecDeque::new(),
        }
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.aside.is_empty()
    }

    /// Counts a request for the object as under way; gathered ones are counted once, until [`rest`](Self::rest).
    #[inline]
    pub(crate) fn enter<'e>(&mut self, entry: &'e Arc<Entry>) -> Result<Option<InFlight<&'e Entry>>, Shut> {
        let mut entered = None;
        if !self.gathering {
            entered = Some(entry.enter().ok_or(Shut::Gone)?);
        } else if entry.is_gone() || !self.busy.as_ref().is_some_and(|busy| busy.is(entry)) {
            self.busy = None;
            self.busy = Some(entry.enter_owned().ok_or(Shut::Gone)?);
        }
        // Behind the counting: who closes the gate and then looks at counts misses nothing.
        if !entry.poa.is_open() {
            self.busy = None;
            return Err(Shut::Closed);
        }
        Ok(entered)
    }

    /// Starts a request, or queues it behind the object's oneway. Gives the outcome if it completed at once.
    pub(crate) fn start(
        &mut self,
        cx: &mut Context<'_>,
        entry: &Arc<Entry>,
        _entered: Option<InFlight<&Entry>>,
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
        let mut seat = self.seat(kind);
        let current = seat.current.get_or_insert_with(|| self.template.fresh());
        let arguments = current.renew(
            entry,
            incoming,
            self.number,
            #[cfg(feature = "csi")]
            std::mem::take(&mut self.caller),
        );
        #[cfg(feature = "tracing")]
        current.look_on();
        let request =
            ServerRequest { to, encoder, current: current.clone(), arguments, charge: Charge::default() };
        let mode = entry.mode;
        let skeleton = Arc::clone(&entry.skeleton);
        if !mode.is_plain() {
            elsewhere(&mut seat, skeleton, request, entry, to, self.home.clone());
        } else if let Err(panic) =
            catch_unwind(AssertUnwindSafe(|| skeleton.dispatch(request, &mut seat.slot)))
        {
            let exception = panicked(&*panic);
            if let Some(current) = &mut seat.current {
                current.seen().system_exception(&exception);
                current.look_away();
            }
            return Some(to.system_exception(self.encoder(), exception));
        }
        match poll_seat(&mut seat, to, cx) {
            Poll::Ready(outcome) => {
                self.keep(seat);
                Some(outcome)
            }
            Poll::Pending => {
                let calls = seat.current.as_ref().is_some_and(Request::calls);
                if !to.wanted && !mode.concurrent && !calls {
                    let key = if entry.shared {
                        seat.current.as_ref().map(|current| current.object_key().into())
                    } else {
                        None
                    };
                    let (oneway, entry) = (seat.current.clone(), Arc::clone(entry));
                    self.waiting.push(Queue {
                        token: to.token,
                        oneway,
                        entry,
                        key,
                        requests: VecDeque::new(),
                    });
                }
                self.asides.extend(seat.current.clone().map(|current| (to.token, current)));
                let (owned, entry) = (entry.stay(), Arc::clone(entry));
                self.aside.push(Aside { seat: Some(seat), to, _entered: owned, entry });
                None
            }
        }
    }

    /// The next request that completed after waiting.
    pub(crate) fn poll_done(&mut self, cx: &mut Context<'_>) -> Option<Outcome> {
        let Poll::Ready(Some((mut aside, outcome))) = Pin::new(&mut self.aside).poll_next(cx) else {
            self.release_behind_callers();
            return None;
        };
        self.asides.retain(|(token, _)| *token != aside.to.token);
        let Some(seat) = aside.seat.take() else { return Some(outcome) };
        if !aside.to.wanted
            && let Some(at) = self.waiting.iter().position(|queue| queue.token == aside.to.token)
        {
            // The first of them that is a oneway and waits makes the rest wait again.
            self.released.extend(self.waiting.swap_remove(at).requests);
        }
        self.keep(seat);
        Some(outcome)
    }

    /// Lets requests start that wait for oneways whose servants have made calls.
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

    /// Takes the requests that need not wait for a oneway any more, in order.
    pub(crate) fn released(&mut self) -> impl DoubleEndedIterator<Item = IncomingRequest> {
        self.released.drain(..)
    }

    /// Tells the servant that the caller gave up. Says whether the request is dropped, because it had not started.
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

    /// Tells all servants that the connection is gone.
    pub(crate) fn cancel_all(&mut self) {
        for (_, request) in &self.asides {
            request.cancel();
        }
    }

    /// Takes back an encoder whose message is queued, unless it was made for that message: it sends none in pieces.
    pub(crate) fn keep_encoder(&mut self, encoder: Box<ReplyBuffer>) {
        if encoder.link().is_some() && self.encoders.len() < SPARE_SLOTS {
            self.encoders.push(encoder);
        }
    }

    /// Frees encoders that keep more memory than that.
    pub(crate) fn release(&mut self, most: usize) {
        self.encoders.retain(|encoder| encoder.capacity() <= most);
    }

    /// An encoder for a reply without a servant.
    pub(crate) fn encoder(&mut self) -> Box<ReplyBuffer> {
        let mut encoder =
            self.encoders.pop().unwrap_or_else(|| ReplyBuffer::new(Some(Arc::clone(&self.link))));
        if !self.shares {
            encoder.set_chunk_threshold(usize::MAX);
        }
        encoder
    }

    fn seat(&mut self, kind: usize) -> Seat {
        let found = self.spare.iter().rposition(|seat| seat.kind == kind);
        match found
            .map(|at| self.spare.swap_remove(at))
            .or_else(|| if self.spare.len() >= SPARE_SLOTS { self.spare.pop() } else { None })
        {
            Some(seat) => Seat { kind, ..seat },
            None => Seat { slot: DispatchSlot::new(), current: None, kind },
        }
    }

    fn keep(&mut self, mut seat: Seat) {
        if let Some(current) = &mut seat.current {
            current.look_away();
            if !self.gathering {
                current.retire();
            }
        }
        if self.spare.len() < SPARE_SLOTS {
            self.spare.push(seat);
        }
    }

    /// Several requests follow, then [`rest`](Self::rest).
    pub(crate) fn gather(&mut self) {
        self.gathering = true;
    }

    /// Lets go of the objects and messages of gathered requests that are done. Not under a lock: it may be a servant's end.
    pub(crate) fn rest(&mut self) {
        (self.gathering, self.busy) = (false, None);
        self.spare.iter_mut().filter_map(|seat| seat.current.as_mut()).for_each(Request::retire);
    }
}

impl Future for Aside {
    type Output = (Self, Outcome);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(seat) = &mut this.seat else { return Poll::Pending };
        let Poll::Ready(outcome) = poll_seat(seat, this.to, cx) else { return Poll::Pending };
        let done = Self {
            seat: this.seat.take(),
            to: this.to,
            _entered: this.entry.stay(),
            entry: Arc::clone(&this.entry),
        };
        Poll::Ready((done, outcome))
    }
}

/// Polls the servant with its request as the current one; a panic costs this request only.
fn poll_seat(seat: &mut Seat, to: ReplyTo, cx: &mut Context<'_>) -> Poll<Outcome> {
    let Seat { slot, current, .. } = seat;
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

/// Runs the request in a task or on a thread of its own, or when its turn comes.
fn elsewhere(
    seat: &mut Seat,
    skeleton: Arc<dyn super::Skeleton>,
    request: ServerRequest,
    entry: &Arc<Entry>,
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
                Err(error) => super::unknown_user_exception(error),
            };
            request_of.seen().system_exception(&exception);
            to.system_exception(encoder, exception)
        })
    };
    if mode.main {
        seat.slot.set(async move { orb.adapter().main.run(work, to).await });
    } else {
        seat.slot.set(work);
    }
}
