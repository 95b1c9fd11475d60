//! The task of a connection. It reads when no caller does, serves requests in place, finishes writes and
//! keeps timers.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use giop_codec::ByteOrder;
use giop_codec::giop::{LocateReplyHeader, LocateStatus, MessageType, finish_message, put_message_header};
use giop_proto::{CloseReason, Event, IncomingLocate, IncomingRequest, ServeToken};
use tokio::time::Sleep;

use crate::connection::{READ_ROLE_IDLE, SharedConnection, State, now};
use crate::runtime::Shared;
use crate::runtime::backpressure::{LARGE_REPLY, Ticket};
use crate::servant::active_object::ActiveObject;
use crate::servant::{ForwardRequest, Outcome, Request};
use crate::server::active_requests::{ActiveRequests, MAX_BATCH};
use crate::server::pending_requests::PendingRequests;

/// Messages or bytes received, and time spent, after which the driver yields. Otherwise a peer could
/// monopolize the thread with messages that cause no work, or with one that never ends.
const MAX_BURST: (u64, u64) = (64, 4 << 20);
const MAX_SLICE: Duration = Duration::from_micros(200);

/// The ORB that serves the requests of a connection.
pub(crate) struct Service {
    pub(crate) orb: Arc<Shared>,
}

/// Maximum number of requests that are dispatched as one batch, with the lock taken once for all of them.
const MAX_BATCH_REQUESTS: usize = MAX_BATCH;

/// Number of reply bytes that are queued at once during a batch.
const REPLIES: usize = 64 * 1024;

pub(crate) type Locked<'a> = MutexGuard<'a, State>;

/// What was received when a poll of the driver began, as its budget.
struct Burst {
    started: Instant,
    /// Messages and bytes.
    received: (u64, u64),
}

impl Burst {
    /// Returns whether the driver should yield to other tasks.
    #[inline]
    fn is_over(&self, state: &State) -> bool {
        let (messages, bytes) = state.machine.received();
        let much = messages >= self.received.0 + MAX_BURST.0 || bytes >= self.received.1 + MAX_BURST.1;
        much && state.clock.saturating_duration_since(self.started) > MAX_SLICE
    }
}

/// The driver of one link: a future that completes when the connection has ended.
pub(crate) struct Driver {
    pub(crate) link: Arc<SharedConnection>,
    pub(crate) orb: Arc<Shared>,
    /// The number of this connection among those that wait for `Orb::resume`.
    pub(crate) number: u64,
    pub(crate) active: ActiveRequests,
    /// The object of the last request.
    pub(crate) last: Option<Arc<ActiveObject>>,
    /// Authenticates and authorizes requests, if access control is configured.
    #[cfg(feature = "csi")]
    pub(crate) guard: Option<Box<crate::csi::Guard>>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The task was polled with a new waker. The timer must be polled again to register it.
    waker_changed: bool,
    /// The ticket of the next request, which waits for reply memory.
    pub(crate) ticket: Option<Arc<Ticket>>,
    /// The next request has waited for reply memory and may start.
    pub(crate) admitted: bool,
    /// Requests that may not start yet.
    pub(crate) pending: Option<Box<PendingRequests>>,
    /// The current dispatch batch and its results. Emptied after each batch; the allocations are reused.
    pub(crate) batch: VecDeque<IncomingRequest>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) finished: Vec<ServeToken>,
}

impl Driver {
    pub(crate) fn new(link: Arc<SharedConnection>, service: Service, number: u64) -> Self {
        let template = Request::idle(Arc::clone(&service.orb), link.peer().clone(), link.session().cloned());
        let home = link.thread().and_then(|_| service.orb.tasks.home.clone());
        #[cfg(feature = "csi")]
        let guard = service.orb.security().guard(&link);
        let active = ActiveRequests::new(
            template,
            #[cfg(feature = "experiments")]
            service.orb.config.connection.deposit,
            Arc::clone(&link),
            home,
        );
        Self {
            link,
            orb: service.orb,
            number,
            active,
            last: None,
            #[cfg(feature = "csi")]
            guard,
            timer: None,
            waker_changed: false,
            ticket: None,
            admitted: false,
            pending: None,
            batch: VecDeque::new(),
            outcomes: Vec::new(),
            finished: Vec::new(),
        }
    }

    fn locate(&mut self, locate: &IncomingLocate) {
        #[cfg(feature = "csi")]
        if self.guard.is_some() {
            return self.locate_blindly(locate);
        }
        let entry = self.orb.adapter().find(locate.key());
        let forward = entry.as_ref().and_then(|entry| entry.skeleton.elsewhere());
        let mut encoder = self.active.encoder();
        let mut put = |status, forward: Option<&ForwardRequest>| {
            encoder.reset(ByteOrder::NATIVE, locate.version());
            let size_at = put_message_header(&mut encoder, MessageType::LocateReply);
            LocateReplyHeader { request_id: locate.id(), status }.encode(&mut encoder)?;
            forward.map_or(Ok(()), |forward| forward.encode(&mut encoder))?;
            finish_message(&mut encoder, size_at)
        };
        let written = match forward {
            // If the forward target cannot be marshalled, answer OBJECT_HERE. The following request then
            // fails with an exception, which tells more than a status.
            Some(to) => put(LocateStatus::forward(to.permanent, locate.version()), forward)
                .or_else(|_| put(LocateStatus::ObjectHere, None)),
            None if self.orb.may_be_here(locate.key()) => put(LocateStatus::ObjectHere, None),
            None => put(LocateStatus::UnknownObject, None),
        };
        if written.is_ok() {
            self.link.lock().machine.send_locate_reply(&mut encoder);
        }
        self.active.keep_encoder(encoder);
    }

    /// Processes the events of the last read. The lock is not held while servants run.
    fn process_events<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: Locked<'a>,
        cx: &mut Context<'_>,
    ) -> (Locked<'a>, usize) {
        let mut served = 0;
        loop {
            let left = self.batch.len();
            if self.pending.is_some() && self.waits_for_login() && state.machine.calls_waiting() == 0 {
                // Requests that are not read occupy no memory here.
                state.machine.hold_reading();
                break;
            }
            if left > 0 {
                // Stop dispatching while too many reply bytes are queued. A side that awaits replies itself
                // must keep reading, or both sides could deadlock.
                let backed_up = state.machine.output().is_backed_up() && state.machine.calls_waiting() == 0;
                if backed_up || self.waits_for_memory(cx) {
                    state.stalled = true;
                    state.machine.waits_for_room();
                    break;
                }
                drop(state);
                state = self.dispatch_batch(link, cx);
                served += left - self.batch.len();
                continue;
            }
            state.stalled = false;
            let mut event = state.machine.poll_event();
            if let Some(Event::Request(incoming)) = event {
                self.note(&incoming);
                if !state.machine.input().has_more_input() {
                    served += 1;
                    drop(state);
                    let outcome = self.serve(cx, incoming);
                    state = link.lock();
                    if let Some(outcome) = outcome {
                        state = self.answer(link, state, outcome);
                    }
                    continue;
                }
                self.batch.push_back(incoming);
                event = loop {
                    if self.batch.len() >= MAX_BATCH_REQUESTS || !state.machine.may_hand_out() {
                        break None;
                    }
                    match state.machine.poll_event() {
                        Some(Event::Request(incoming)) => {
                            self.note(&incoming);
                            self.batch.push_back(incoming);
                        }
                        Some(Event::Cancelled(token)) => {
                            if self.cancel(token) {
                                state.machine.request(token).finish();
                            }
                        }
                        other => break other,
                    }
                };
                let batch = self.batch.len();
                drop(state);
                state = self.dispatch_batch(link, cx);
                served += batch - self.batch.len();
                if event.is_none() {
                    continue;
                }
            }
            match event {
                None => break,
                // Unreachable: the code above takes all requests.
                Some(Event::Request(incoming)) => {
                    self.note(&incoming);
                    self.batch.push_back(incoming);
                }
                Some(Event::Locate(locate)) => {
                    drop(state);
                    self.locate(&locate);
                    state = link.lock();
                }
                Some(Event::Cancelled(token)) => {
                    if self.cancel(token) {
                        state.machine.request(token).finish();
                    }
                }
                Some(Event::Reply(call)) => link.replied(&mut state, call),
                Some(Event::Closed) => state.wake_room(),
            }
        }
        (state, served)
    }

    /// Dispatches the batch and queues its replies. Stops when too many reply bytes are queued; the remaining
    /// requests stay in the batch.
    fn dispatch_batch<'a>(&mut self, link: &'a SharedConnection, cx: &mut Context<'_>) -> Locked<'a> {
        self.active.begin_batch();
        let mut octets = 0;
        while let Some(incoming) = self.batch.pop_front() {
            match self.serve(cx, incoming) {
                None if self.ticket.is_some() || self.waits_for_login() => break,
                None => {}
                // The encoder is returned here, because the next request reuses it.
                Some(Outcome { token, encoder, failed: None }) if encoder.is_empty() => {
                    self.finished.push(token);
                    self.active.keep_encoder(encoder);
                }
                Some(outcome) => {
                    octets += outcome.encoder.len();
                    self.outcomes.push(outcome);
                    if octets >= REPLIES {
                        octets = 0;
                        if !self.queue_replies(link, link.lock()).machine.output().has_room() {
                            break;
                        }
                    }
                }
            }
        }
        self.active.end_batch();
        self.queue_replies(link, link.lock())
    }

    /// Fires the timer if it is due, and arms it for the next timeout. Returns whether it fired.
    fn keep_time(&mut self, state: &mut State, cx: &mut Context<'_>) -> bool {
        let mut fired = false;
        loop {
            let next = [state.machine.poll_timeout(), state.roles.takeover].into_iter().flatten().min();
            let Some(at) = next else {
                state.roles.armed = None;
                return fired;
            };
            // The timer is moved only to an earlier time: a timer that fires early is cheaper than one moved
            // for each call.
            let rearmed = state.roles.armed.is_none_or(|armed| at < armed);
            if rearmed {
                state.roles.armed = Some(at);
                match &mut self.timer {
                    Some(timer) => timer.as_mut().reset(at.into()),
                    None => self.timer = Some(Box::pin(tokio::time::sleep_until(at.into()))),
                }
            }
            let Some(timer) = &mut self.timer else { return fired };
            // Polling the timer costs more than comparing times. It was polled when it was armed.
            let early =
                !rearmed && !self.waker_changed && state.roles.armed.is_some_and(|armed| state.clock < armed);
            self.waker_changed = false;
            if early || timer.as_mut().poll(cx).is_pending() {
                return fired;
            }
            fired = true;
            state.roles.armed = None;
            let now = now();
            state.clock = now;
            if state.roles.takeover.is_some_and(|at| at <= now) {
                let quiet = state.machine.calls_waiting() == 0 && state.last_use + READ_ROLE_IDLE <= now;
                state.roles.takeover = if quiet { None } else { Some(now + READ_ROLE_IDLE) };
                if quiet {
                    state.roles.driver_reads = true;
                    state.callers.fill(None);
                }
            }
            state.machine.handle_timeout(now);
        }
    }

    /// Drives the connection as far as it goes without waiting.
    fn run(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let link = Arc::clone(&self.link);
        let mut state = self.begin_poll(&link, cx);
        let burst = Burst { started: state.clock, received: state.machine.received() };
        let mut served = 0;
        state = self.read_first(&link, state, cx);
        if self.pending.is_some() {
            drop(state);
            self.resume_ready(cx);
            state = self.queue_replies(&link, link.lock());
        }
        loop {
            state = link.complete_ring_io(state, cx);
            state.wake_stream();
            state = link.drop_returned_targets(state);
            state = self.poll_active(&link, state, cx);
            let count;
            (state, count) = self.process_events(&link, state, cx);
            served += count;
            state = write_all(&link, state, cx);
            let more;
            (state, more) = self.process_events(&link, state, cx);
            if more > 0 {
                // The writes above freed capacity for the replies of these requests. They are written at
                // once.
                served += more;
                continue;
            }
            // Chunks of a stream become available when the messages around them have been processed.
            state.wake_stream();
            if state.machine.lifecycle().is_closed() {
                return self.finish(&link, state, cx);
            }
            if state.machine.lifecycle().wants_shutdown() && !state.shut_down {
                state.shut_down = true;
                link.socket.shut_down_write();
            }
            if self.keep_time(&mut state, cx) {
                self.release_unused(&mut state);
                continue;
            }
            if self.pending.as_ref().is_some_and(|pending| pending.keeps()) && self.orb.closing.has_begun() {
                let told = state.machine.lifecycle().is_draining();
                drop(state);
                self.reject_held(told);
                state = self.queue_replies(&link, link.lock());
                continue;
            }
            let parks;
            (state, parks) = self.read_or_park(&link, state, cx, &burst, served);
            if parks {
                return Poll::Pending;
            }
        }
    }

    /// Takes the lock for a poll of the driver, and registers its waker.
    #[inline]
    fn begin_poll<'a>(&mut self, link: &'a SharedConnection, cx: &Context<'_>) -> Locked<'a> {
        let mut state = link.lock();
        state.roles.driver_awake = true;
        state.ring.inline_replies = 0;
        state.clock = now();
        if !state.roles.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.roles.driver = Some(cx.waker().clone());
            self.waker_changed = true;
        }
        state
    }

    /// Reads before anything else is checked, because usually the socket became readable.
    #[inline]
    fn read_first<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: Locked<'a>,
        cx: &mut Context<'_>,
    ) -> Locked<'a> {
        let idle = self.active.is_idle() && self.batch.is_empty() && self.pending.is_none();
        if state.roles.driver_reads && !state.roles.reading && idle && state.machine.wants_read() {
            match link.socket.poll_read_ready(cx) {
                Poll::Ready(Ok(())) => (state, _) = link.read(state, Duration::ZERO),
                // `read_or_park` handles the same conditions.
                Poll::Ready(Err(_)) | Poll::Pending => {}
            }
        }
        state
    }

    /// Polls the requests that servants work on, and queues the replies of those that ended.
    #[inline]
    fn poll_active<'a>(
        &mut self,
        link: &'a SharedConnection,
        state: Locked<'a>,
        cx: &mut Context<'_>,
    ) -> Locked<'a> {
        if self.active.is_idle() {
            return state;
        }
        drop(state);
        while let Some(outcome) = self.active.poll_done(cx) {
            drop(self.answer(link, link.lock(), outcome));
        }
        let released: Vec<_> = self.active.released().collect();
        self.serve_first(released.into_iter());
        link.lock()
    }

    /// Ends the service of a closed connection. Pending until its servants and its ring have finished.
    #[cold]
    fn finish(&mut self, link: &SharedConnection, state: Locked<'_>, cx: &mut Context<'_>) -> Poll<()> {
        let (state, settled) = link.reclaim_ring_buffers(state, cx);
        drop(state);
        self.active.cancel_all();
        let drained = self.active.is_idle() || self.drain(cx).is_ready();
        if drained && settled { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Frees the memory that an idle connection does not need, after its timer fired.
    #[cold]
    fn release_unused(&mut self, state: &mut State) {
        if state.machine.is_quiet() {
            self.active.release(LARGE_REPLY);
            state.release(LARGE_REPLY);
            self.orb.trim_pool_later();
        }
    }

    /// Reads once more, unless another task reads, nothing may be read, or nothing has arrived. Returns
    /// whether the driver waits to be woken.
    #[inline]
    fn read_or_park<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: Locked<'a>,
        cx: &mut Context<'_>,
        burst: &Burst,
        served: usize,
    ) -> (Locked<'a>, bool) {
        state.roles.driver_awake = false;
        let caller_reads =
            link.client_only && !state.roles.driver_reads && state.machine.calls_waiting() <= 1;
        let for_login = self.waits_for_login() && state.machine.calls_waiting() == 0;
        let stalled = !self.batch.is_empty() || for_login;
        if state.roles.reading || caller_reads || stalled || !state.machine.wants_read() {
            return (state, true);
        }
        if burst.is_over(&state) {
            cx.waker().wake_by_ref();
            return (state, true);
        }
        state.roles.driver_reads = true;
        let ready = if state.machine.takes_last_oneways() {
            let ready;
            (state, ready) = link.poll_last_input(state, cx);
            if ready.is_pending() {
                state.roles.driver_awake = true;
                state.machine.all_read();
                return (state, false);
            }
            ready
        } else {
            link.socket.poll_read_ready(cx)
        };
        match ready {
            Poll::Pending => {
                // A further message is expected at once only after a request. A caller cannot spin on the
                // ring of another thread.
                let called = state.machine.calls_waiting() == 1 && link.thread().is_some();
                let mut came = false;
                if served > 0 || called {
                    (state, came) = link.spin(state);
                }
                if !came {
                    link.set_low_water(&mut state);
                    return (state, true);
                }
                state.roles.driver_awake = true;
            }
            Poll::Ready(Ok(())) => {
                state.roles.driver_awake = true;
                (state, _) = link.read(state, Duration::ZERO);
            }
            Poll::Ready(Err(error)) => {
                state.roles.driver_awake = true;
                let now = state.clock;
                state.machine.handle_read_error(&error, now);
            }
        }
        (state, false)
    }

    /// Lets the servants of a lost connection finish. Their outcomes are discarded.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while self.active.poll_done(cx).is_some() {}
            let released: Vec<_> = self.active.released().collect();
            if released.is_empty() {
                break;
            }
            for incoming in released {
                self.serve(cx, incoming);
            }
        }
        if self.active.is_idle() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Writes what is queued. The replies to one read leave in one write. Output that callers could not write is
/// finished here.
#[inline]
fn write_all<'a>(link: &'a SharedConnection, mut state: Locked<'a>, cx: &mut Context<'_>) -> Locked<'a> {
    while state.machine.has_output() && !state.write.writing {
        if state.write.blocked {
            match link.socket.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => state.write.blocked = false,
                Poll::Ready(Err(error)) => {
                    let now = state.clock;
                    state.machine.handle_write_error(&error, now);
                    break;
                }
                Poll::Pending => break,
            }
        }
        (state, _) = link.flush(state);
    }
    state
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().run(cx)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The runtime is shutting down, or the driver has finished.
        self.link.abort(CloseReason::Local);
        self.orb.pauses.stop_holding(self.number);
        self.link.end_streams();
        // Others may keep the link, and with it the socket: for example a servant that holds the stream of a
        // request.
        self.link.socket.shut_down_socket();
    }
}
