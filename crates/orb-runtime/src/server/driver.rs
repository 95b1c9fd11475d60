//! The driver of a connection: a task that reads if no caller does, serves requests and handles timeouts.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use giop_codec::ByteOrder;
use giop_codec::giop::{LocateReplyHeader, LocateStatus, MessageType, finish_message, put_message_header};
use giop_proto::{CloseReason, Event, IncomingLocate, IncomingRequest, ServeToken};
use tokio::time::Sleep;

use crate::connection::{LockedState, READ_ROLE_IDLE, SharedConnection, State, now};
use crate::runtime::Shared;
use crate::runtime::backpressure::{MIN_LARGE_REPLY_BYTES, MemoryTicket};
use crate::servant::active_object::ActiveObject;
use crate::servant::{ForwardRequest, Outcome, Request};
use crate::server::active_requests::{ActiveRequests, MAX_BATCH};
use crate::server::pending_requests::PendingRequests;

// A driver yields when it has received a number of messages or bytes, and has run for some time. Otherwise a
// peer could monopolize the thread with messages that cause no work, or with a message that never ends.

const MAX_BURST_MESSAGES: u64 = 64;
const MAX_BURST_BYTES: u64 = 4 << 20;
const MIN_BURST_TIME: Duration = Duration::from_micros(200);

/// The number of encoded reply bytes after which a batch queues its replies.
const MAX_BATCH_REPLY_BYTES: usize = 64 * 1024;

struct Burst {
    started: Instant,
    /// The number of messages that the connection had received before.
    messages_before: u64,
    /// The number of bytes that the connection had received before.
    bytes_before: u64,
}

impl Burst {
    #[inline]
    fn is_over(&self, state: &State) -> bool {
        let (messages, bytes) = state.machine.received_counts();
        let is_long = messages >= self.messages_before + MAX_BURST_MESSAGES
            || bytes >= self.bytes_before + MAX_BURST_BYTES;
        is_long && state.clock.saturating_duration_since(self.started) > MIN_BURST_TIME
    }
}

/// The driver of one connection: a future that completes when the connection has ended.
pub(crate) struct Driver {
    pub(crate) link: Arc<SharedConnection>,
    pub(crate) orb: Arc<Shared>,
    /// The number of the connection, by which `Orb::resume` finds its waker.
    pub(crate) connection_number: u64,
    pub(crate) active: ActiveRequests,
    pub(crate) last_object: Option<Arc<ActiveObject>>,
    #[cfg(feature = "csi")]
    pub(crate) access_guard: Option<Box<crate::csi::Guard>>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the task was polled with a new waker, which must be registered with the timer.
    waker_changed: bool,
    /// The ticket of the next request, if it waits for memory for its reply.
    pub(crate) memory_ticket: Option<Arc<MemoryTicket>>,
    /// Whether the next request has waited for memory and may start.
    pub(crate) has_waited_for_memory: bool,
    pub(crate) pending: Option<Box<PendingRequests>>,
    pub(crate) batch: VecDeque<IncomingRequest>,
    /// The outcomes of the batch that have a reply. Empty between batches, like `finished_without_reply`.
    pub(crate) outcomes: Vec<Outcome>,
    /// The requests of the batch that were completed without a reply.
    pub(crate) finished_without_reply: Vec<ServeToken>,
}

impl Driver {
    pub(crate) fn new(link: Arc<SharedConnection>, orb: Arc<Shared>, connection_number: u64) -> Self {
        let template =
            Request::without_target(Arc::clone(&orb), link.peer().clone(), link.tls_session().cloned());
        let runtime = link.thread().and_then(|_| orb.tasks.runtime.clone());
        #[cfg(feature = "csi")]
        let access_guard = orb.security().guard(&link);
        let active = ActiveRequests::new(
            template,
            #[cfg(feature = "experiments")]
            orb.config.connection.deposits_enabled,
            Arc::clone(&link),
            runtime,
        );
        Self {
            link,
            orb,
            connection_number,
            active,
            last_object: None,
            #[cfg(feature = "csi")]
            access_guard,
            timer: None,
            waker_changed: false,
            memory_ticket: None,
            has_waited_for_memory: false,
            pending: None,
            batch: VecDeque::new(),
            outcomes: Vec::new(),
            finished_without_reply: Vec::new(),
        }
    }

    fn locate(&mut self, locate: &IncomingLocate) {
        #[cfg(feature = "csi")]
        if self.access_guard.is_some() {
            return self.locate_without_check(locate);
        }
        let entry = self.orb.adapter().find(locate.key());
        let forward = entry.as_ref().and_then(|entry| entry.skeleton.forward_location());
        let mut encoder = self.active.encoder();
        let mut put = |status, forward: Option<&ForwardRequest>| {
            encoder.reset(ByteOrder::NATIVE, locate.version());
            let size_at = put_message_header(&mut encoder, MessageType::LocateReply);
            LocateReplyHeader { request_id: locate.id(), status }.encode(&mut encoder)?;
            forward.map_or(Ok(()), |forward| forward.encode(&mut encoder))?;
            finish_message(&mut encoder, size_at)
        };
        let written = match forward {
            // If the forward target cannot be encoded, reply OBJECT_HERE. The next request then gets an
            // exception, which tells more than a status.
            Some(to) => put(LocateStatus::forward(to.is_permanent, locate.version()), forward)
                .or_else(|_| put(LocateStatus::ObjectHere, None)),
            None if self.orb.may_be_here(locate.key()) => put(LocateStatus::ObjectHere, None),
            None => put(LocateStatus::UnknownObject, None),
        };
        if written.is_ok() {
            self.link.lock().machine.send_locate_reply(&mut encoder);
        }
        self.active.recycle_encoder(encoder);
    }

    /// Processes the events of the last read. The lock is released while servants run. Returns the number of
    /// dispatched requests.
    fn process_events<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: LockedState<'a>,
        cx: &mut Context<'_>,
    ) -> (LockedState<'a>, usize) {
        let mut served = 0;
        loop {
            let left = self.batch.len();
            if self.pending.is_some() && self.waits_for_login() && state.machine.pending_call_count() == 0 {
                // Until the caller is known, its further requests must not occupy memory.
                state.machine.hold_reading();
                break;
            }
            if left > 0 {
                // Stop dispatching while too many reply bytes are queued. A side that awaits replies itself
                // must continue to read. Otherwise both sides could deadlock.
                let backed_up =
                    state.machine.output().is_backed_up() && state.machine.pending_call_count() == 0;
                if backed_up || self.waits_for_memory(cx) {
                    state.holds_requests = true;
                    state.machine.count_backlog_wait();
                    break;
                }
                drop(state);
                state = self.dispatch_batch(link, cx);
                served += left - self.batch.len();
                continue;
            }
            state.holds_requests = false;
            let mut event = state.machine.poll_event();
            if let Some(Event::Request(incoming)) = event {
                self.log_message(&incoming);
                if !state.machine.input().has_more_input() {
                    served += 1;
                    drop(state);
                    let outcome = self.serve(cx, incoming);
                    state = link.lock();
                    if let Some(outcome) = outcome {
                        state = self.queue_reply(link, state, outcome);
                    }
                    continue;
                }
                self.batch.push_back(incoming);
                event = loop {
                    if self.batch.len() >= MAX_BATCH || !state.machine.may_hand_out_request() {
                        break None;
                    }
                    match state.machine.poll_event() {
                        Some(Event::Request(incoming)) => {
                            self.log_message(&incoming);
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
                // Unreachable, because the code above takes all requests.
                Some(Event::Request(incoming)) => {
                    self.log_message(&incoming);
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
                Some(Event::Reply(call)) => link.wake_caller(&mut state, call),
                Some(Event::Closed) => state.wake_waiters(),
            }
        }
        (state, served)
    }

    /// Dispatches the batch and queues its replies, until too many reply bytes are queued.
    fn dispatch_batch<'a>(&mut self, link: &'a SharedConnection, cx: &mut Context<'_>) -> LockedState<'a> {
        self.active.begin_batch();
        let mut reply_bytes = 0;
        while let Some(incoming) = self.batch.pop_front() {
            match self.serve(cx, incoming) {
                None if self.memory_ticket.is_some() || self.waits_for_login() => break,
                None => {}
                // Recycle the encoder here, so that the next request reuses it.
                Some(Outcome { token, encoder, oneway_failure: None }) if encoder.is_empty() => {
                    self.finished_without_reply.push(token);
                    self.active.recycle_encoder(encoder);
                }
                Some(outcome) => {
                    reply_bytes += outcome.encoder.len();
                    self.outcomes.push(outcome);
                    if reply_bytes >= MAX_BATCH_REPLY_BYTES {
                        reply_bytes = 0;
                        if !self.queue_replies(link, link.lock()).machine.output().has_room_for_oneway() {
                            break;
                        }
                    }
                }
            }
        }
        self.active.end_batch();
        self.queue_replies(link, link.lock())
    }

    /// Handles the timeouts that are due, and arms the timer for the next one. Returns whether one was due.
    fn update_timer(&mut self, state: &mut State, cx: &mut Context<'_>) -> bool {
        let mut fired = false;
        loop {
            let next = [state.machine.poll_timeout(), state.roles.takeover_time].into_iter().flatten().min();
            let Some(at) = next else {
                state.roles.timer_deadline = None;
                return fired;
            };
            // The timer is only moved to an earlier time. If it fires too early, that costs less than moving
            // the timer for each call.
            let rearmed = state.roles.timer_deadline.is_none_or(|armed| at < armed);
            if rearmed {
                state.roles.timer_deadline = Some(at);
                match &mut self.timer {
                    Some(timer) => timer.as_mut().reset(at.into()),
                    None => self.timer = Some(Box::pin(tokio::time::sleep_until(at.into()))),
                }
            }
            let Some(timer) = &mut self.timer else { return fired };
            // The timer was polled when it was armed. Comparing times costs less than polling it again.
            let is_not_due = !rearmed
                && !self.waker_changed
                && state.roles.timer_deadline.is_some_and(|armed| state.clock < armed);
            self.waker_changed = false;
            if is_not_due || timer.as_mut().poll(cx).is_pending() {
                return fired;
            }
            fired = true;
            state.roles.timer_deadline = None;
            let now = now();
            state.clock = now;
            if state.roles.takeover_time.is_some_and(|at| at <= now) {
                let is_unused =
                    state.machine.pending_call_count() == 0 && state.last_use + READ_ROLE_IDLE <= now;
                state.roles.takeover_time = if is_unused { None } else { Some(now + READ_ROLE_IDLE) };
                if is_unused {
                    state.roles.driver_reads = true;
                    state.callers.fill(None);
                }
            }
            state.machine.handle_timeout(now);
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let link = Arc::clone(&self.link);
        let mut state = self.begin_poll(&link, cx);
        let (messages_before, bytes_before) = state.machine.received_counts();
        let burst = Burst { started: state.clock, messages_before, bytes_before };
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
            state = link.drop_orphaned_loans(state);
            state = self.poll_active(&link, state, cx);
            let mut count;
            (state, count) = self.process_events(&link, state, cx);
            served += count;
            state = write_all(&link, state, cx);
            (state, count) = self.process_events(&link, state, cx);
            if count > 0 {
                // The writes have freed capacity for the replies of these requests. Write these replies too.
                served += count;
                continue;
            }
            // Chunks of a stream may be available now, because messages between them have been processed.
            state.wake_stream();
            if state.machine.lifecycle().is_closed() {
                return self.finish(&link, state, cx);
            }
            if state.machine.lifecycle().wants_shutdown() && !state.is_socket_shut_down {
                state.is_socket_shut_down = true;
                link.socket.shut_down_write();
            }
            if self.update_timer(&mut state, cx) {
                self.release_unused(&mut state);
                continue;
            }
            if self.pending.as_ref().is_some_and(|pending| pending.has_unbounded_wait())
                && self.orb.closing.has_begun()
            {
                let sends_close = state.machine.lifecycle().is_draining();
                drop(state);
                self.reject_held(sends_close);
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
    fn begin_poll<'a>(&mut self, link: &'a SharedConnection, cx: &Context<'_>) -> LockedState<'a> {
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

    /// Reads before anything else is checked, because usually the task was woken by a readable socket.
    #[inline]
    fn read_first<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: LockedState<'a>,
        cx: &mut Context<'_>,
    ) -> LockedState<'a> {
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

    #[inline]
    fn poll_active<'a>(
        &mut self,
        link: &'a SharedConnection,
        state: LockedState<'a>,
        cx: &mut Context<'_>,
    ) -> LockedState<'a> {
        if self.active.is_idle() {
            return state;
        }
        drop(state);
        while let Some(outcome) = self.active.poll_completed(cx) {
            drop(self.queue_reply(link, link.lock(), outcome));
        }
        let released: Vec<_> = self.active.take_released_requests().collect();
        self.push_front(released.into_iter());
        link.lock()
    }

    /// Finishes a closed connection. Is pending until its servants and its I/O on a ring have finished.
    #[cold]
    fn finish(&mut self, link: &SharedConnection, state: LockedState<'_>, cx: &mut Context<'_>) -> Poll<()> {
        let (state, settled) = link.reclaim_ring_buffers(state, cx);
        drop(state);
        self.active.cancel_all();
        let drained = self.active.is_idle() || self.drain(cx).is_ready();
        if drained && settled { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Frees memory if the connection is idle. Called after a timeout.
    #[cold]
    fn release_unused(&mut self, state: &mut State) {
        if state.machine.is_quiet() {
            self.active.free_large_encoders(MIN_LARGE_REPLY_BYTES);
            state.release_encoders(MIN_LARGE_REPLY_BYTES);
            self.orb.trim_pool_later();
        }
    }

    /// Reads once, if possible. Returns `true` if the driver must wait until it is woken: another task reads,
    /// nothing may be read, or nothing has arrived.
    #[inline]
    fn read_or_park<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: LockedState<'a>,
        cx: &mut Context<'_>,
        burst: &Burst,
        served: usize,
    ) -> (LockedState<'a>, bool) {
        state.roles.driver_awake = false;
        let caller_reads =
            link.callers_may_read && !state.roles.driver_reads && state.machine.pending_call_count() <= 1;
        let for_login = self.waits_for_login() && state.machine.pending_call_count() == 0;
        let holds_requests = !self.batch.is_empty() || for_login;
        if state.roles.reading || caller_reads || holds_requests || !state.machine.wants_read() {
            return (state, true);
        }
        if burst.is_over(&state) {
            cx.waker().wake_by_ref();
            return (state, true);
        }
        state.roles.driver_reads = true;
        let ready = if state.machine.accepts_last_oneways() {
            let ready;
            (state, ready) = link.poll_last_input(state, cx);
            if ready.is_pending() {
                state.roles.driver_awake = true;
                state.machine.handle_all_read();
                return (state, false);
            }
            ready
        } else {
            link.socket.poll_read_ready(cx)
        };
        match ready {
            Poll::Pending => {
                // Spin if a message is expected soon: the next request of a client, or the reply to a call
                // whose caller cannot spin itself, because another thread owns the ring.
                let awaits_reply = state.machine.pending_call_count() == 1 && link.thread().is_some();
                let mut has_received = false;
                if served > 0 || awaits_reply {
                    (state, has_received) = link.spin(state);
                }
                if !has_received {
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

    /// Waits until the servants of a lost connection have finished. Discards their outcomes.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while self.active.poll_completed(cx).is_some() {}
            let released: Vec<_> = self.active.take_released_requests().collect();
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

/// Writes all queued output, including output that callers could not write.
#[inline]
fn write_all<'a>(
    link: &'a SharedConnection,
    mut state: LockedState<'a>,
    cx: &mut Context<'_>,
) -> LockedState<'a> {
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
        self.link.abort(CloseReason::Local);
        self.orb.pauses.remove_waker(self.connection_number);
        self.link.end_streams();
        // Shut down the socket, because the connection may not be dropped yet: for example, a servant may
        // hold the stream of a request.
        self.link.socket.shut_down_socket();
    }
}
