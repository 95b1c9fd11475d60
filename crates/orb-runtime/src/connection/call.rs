//! The client side of a connection: calls and oneways.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use giop_codec::cdr::Encoder;
use giop_codec::giop::RequestId;
use giop_codec::{EncodeError, Version};
use giop_proto::calls::CallId;
use giop_proto::{CallError, CallErrorKind, Reply, SentPart};

use crate::connection::blocking::PollMode;
use crate::connection::flow::Flow;
use crate::connection::headers::HeaderKey;
use crate::connection::{
    LockedState, MAX_BACKLOG_BYTES, MAX_LOW_WATER_BYTES, SINGLE_READ, SLOW_READ_BYTES, SharedConnection,
    State, blocking, is_before_first_message, now,
};
use crate::transport::Progress;

/// After this idle time, a connection is read before a request is sent, because the peer may have closed it.
const STALE_AFTER: Duration = Duration::from_millis(1);
/// If the last write was less than this duration ago, a message waits for further ones.
const GATHER_TIME: Duration = Duration::from_micros(20);
/// The clock is read once for this number of gathered messages.
const CLOCK_READ_INTERVAL: u32 = 8;
/// The minimum rest of a message for raising `SO_RCVLOWAT` after a read below [`SEGMENT_READ_BYTES`].
const LOW_WATER_MIN_REST_BYTES: usize = 16 * 1024;
const SEGMENT_READ_BYTES: usize = 8 * 1024;
/// If a read of a large message returns at least this number of bytes, the next part is read at once.
const BULK_READ_BYTES: usize = 16 * 1024;
/// The maximum time for which a large message is read before the task of the reader does other work.
const MAX_READ_TIME: Duration = Duration::from_millis(1);

/// A registered call. It is cancelled on drop if it has no outcome yet.
pub(crate) struct PendingCall<'a> {
    pub(crate) link: &'a Arc<SharedConnection>,
    pub(crate) call: CallId,
    deadline: Option<Instant>,
    has_outcome: bool,
}

pub(crate) struct StartedRequest {
    pub(crate) id: RequestId,
    pub(crate) encoder: Box<Encoder>,
    pub(crate) has_header: bool,
}

impl State {
    #[inline]
    fn start(&mut self, version: Version, header: Option<HeaderKey<'_>>, id: RequestId) -> StartedRequest {
        let mut encoder = self.encoder(version);
        let has_header = header.is_some_and(|header| self.headers.start_request(header, id, &mut encoder));
        StartedRequest { id, encoder, has_header }
    }

    #[inline]
    pub(crate) fn register_caller(&mut self, call: CallId, cx: &Context<'_>) {
        let index = call.index();
        if self.callers.len() <= index {
            self.callers.resize(index + 1, None);
        }
        if let Some(slot) = self.callers.get_mut(index)
            && !slot.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *slot = Some(cx.waker().clone());
        }
    }
}

#[derive(Debug)]
pub(crate) enum OnewayError {
    Closed(CallError),
    Full,
    Encode(EncodeError),
}

impl SharedConnection {
    /// Registers a call. Returns an encoder with the header that is cached for the key `header`, if any.
    pub(crate) fn begin_call(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        version: Version,
        header: Option<HeaderKey<'_>>,
        now: Instant,
    ) -> Result<(PendingCall<'_>, StartedRequest), CallError> {
        let mut state = self.lock();
        state.clock = now;
        if state.machine.pending_call_count() == 0
            && now.saturating_duration_since(state.last_use) > STALE_AFTER
        {
            state = self.read_idle(state, now);
        }
        state.last_use = now;
        let call = state.machine.start_call(deadline, now)?;
        let id = state.machine.call(call).request_id();
        let started = state.start(version, header, id);
        drop(state);
        Ok((PendingCall { link: self, call, deadline, has_outcome: false }, started))
    }

    pub(crate) fn begin_oneway(&self, version: Version, header: Option<HeaderKey<'_>>) -> StartedRequest {
        let mut state = self.lock();
        let id = state.machine.next_oneway_id();
        state.start(version, header, id)
    }

    #[cold]
    pub(crate) fn cache_header(&self, key: HeaderKey<'_>, header: &[u8]) {
        self.lock().headers.insert(key, header);
    }

    pub(crate) fn discard(&self, encoder: Box<Encoder>) {
        self.lock().keep_encoder(encoder);
    }

    /// Waits for capacity, then queues a oneway. If dropped, the whole message is queued, or nothing of it.
    pub(crate) async fn send_oneway(
        self: &Arc<Self>,
        encoder: Box<Encoder>,
        flow: Option<Flow<'_>>,
        deadline: impl Fn() -> Option<Instant>,
    ) -> Result<(), OnewayError> {
        let mut message = Some(encoder);
        // Pinned on the stack, so that waiting allocates nothing.
        let mut timer = std::pin::pin!(None);
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.machine.lifecycle().is_closing() {
                let error = CallError { kind: CallErrorKind::LocalClose, sent: SentPart::Nothing };
                return Poll::Ready(Err(OnewayError::Closed(error)));
            }
            if state.machine.output().backlog() >= MAX_BACKLOG_BYTES {
                (state, _) = self.flush(state);
                if state.machine.output().backlog() >= MAX_BACKLOG_BYTES {
                    state.capacity_waiters.push(cx.waker().clone());
                    drop(state);
                    return poll_deadline(timer.as_mut(), &deadline, cx).map(|()| Err(OnewayError::Full));
                }
            }
            let Some(mut encoder) = message.take() else { return Poll::Ready(Ok(())) };
            if let Some(flow) = &flow {
                drop(state);
                return Poll::Ready(self.send_flow(None, encoder, flow));
            }
            let sent = state.machine.send_oneway(&mut encoder);
            state.keep_encoder(encoder);
            if let Err(error) = sent {
                return Poll::Ready(Err(OnewayError::Closed(error)));
            }
            state = self.flush_gathering(state);
            drop(state);
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Writes the queue, unless it is small and the last write was less than [`GATHER_TIME`] ago. In this
    /// case, the driver writes it at its next poll, or the caller whose message makes it large.
    fn flush_gathering<'a>(&'a self, mut state: LockedState<'a>) -> LockedState<'a> {
        let is_large = state.machine.output().is_worth_a_write();
        if !is_large && state.roles.driver_awake && !state.write.gathered.is_multiple_of(CLOCK_READ_INTERVAL)
        {
            // The driver will write the queue before it sleeps. Do not read the clock each time, because that
            // costs as much as encoding a small message.
            state.write.gathered += 1;
            return state;
        }
        state.clock = now();
        let gather =
            state.write.writing || state.write.last_write.is_some_and(|at| state.clock < at + GATHER_TIME);
        if gather && !is_large {
            state.write.gathered += 1;
            state.wake_driver();
        } else {
            (state, _) = self.flush(state);
            let now = now();
            state.write.last_write = Some(now);
            state.last_use = now;
        }
        state
    }

    /// Waits until the kernel has accepted all queued messages. Fails if the connection lost oneways.
    pub(crate) async fn flushed(&self) -> Result<(), CallError> {
        poll_fn(|cx| {
            let (mut state, _): (_, Progress) = self.flush(self.lock());
            // Check this first, because an ended connection has no backlog.
            if state.machine.may_have_lost_oneways() {
                return Poll::Ready(Err(state.machine.lifecycle().partly_sent_error()));
            }
            if state.machine.output().backlog() == 0 {
                return Poll::Ready(Ok(()));
            }
            state.capacity_waiters.push(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    pub(crate) fn backlog(&self) -> usize {
        self.lock().machine.output().backlog()
    }

    pub(crate) fn lost_oneways(&self) -> bool {
        self.lock().machine.may_have_lost_oneways()
    }

    fn poll_reply(&self, cx: &mut Context<'_>, call: CallId) -> Poll<Result<Reply, CallError>> {
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.machine.call(call).take_outcome() {
                return Poll::Ready(outcome);
            }
            match blocking::poll_mode(cx) {
                PollMode::Async => {}
                PollMode::Deferred => {
                    state.await_by_driver(call, cx);
                    return Poll::Pending;
                }
                PollMode::CountOnly => {
                    // Remove the waker of an earlier poll, because it would be counted as another event.
                    if let Some(slot) = state.callers.get_mut(call.index()) {
                        *slot = None;
                    }
                    blocking::count_call();
                    return Poll::Pending;
                }
                PollMode::InPlace => match self.wait_in_place(state, call) {
                    Ok(outcome) => {
                        blocking::end_wait_in_place();
                        return Poll::Ready(outcome);
                    }
                    Err(busy) => {
                        drop(busy);
                        return Poll::Pending;
                    }
                },
            }
            state.register_caller(call, cx);
            if let Some(ring) = self.socket.ring()
                && !self.spin_time.is_zero()
                && state.machine.pending_call_count() == 1
                && !state.machine.accepts_requests()
            {
                let received;
                (state, received) = self.spin_for_reply(ring, state);
                if received {
                    self.drain_events(&mut state, Some(call));
                    continue;
                }
            }
            let alone = self.callers_may_read
                && state.machine.pending_call_count() == 1
                && !state.machine.has_output();
            if !alone || state.roles.reading || state.write.writing || !state.machine.wants_read() {
                if !state.roles.driver_reads {
                    state.roles.driver_reads = true;
                    state.wake_driver();
                }
                return Poll::Pending;
            }
            if state.roles.driver_reads {
                state.roles.driver_reads = false;
                let at = state.last_use + crate::connection::READ_ROLE_IDLE;
                state.roles.takeover_time = Some(at);
                state.rearm(at);
            }
            // Tokio's readiness is exact here (see `transport`). If it is not ready, no buffer is needed.
            match self.socket.poll_read_ready(cx) {
                Poll::Pending => {
                    let received;
                    (state, received) = self.spin(state);
                    if !received {
                        self.set_low_water(&mut state);
                        return Poll::Pending;
                    }
                }
                Poll::Ready(Ok(())) => (state, _) = self.read(state, Duration::ZERO),
                Poll::Ready(Err(error)) => {
                    let now = state.clock;
                    state.machine.handle_read_error(&error, now);
                }
            }
            self.drain_events(&mut state, Some(call));
        }
    }

    /// Polls the socket for up to the spin time. The task's waker must already be registered with it. Returns
    /// whether something was received. The caller must then drain the events.
    #[inline]
    pub(crate) fn spin<'a>(&'a self, state: LockedState<'a>) -> (LockedState<'a>, bool) {
        match self.socket.ring() {
            _ if self.spin_time.is_zero() => (state, false),
            Some(ring) => self.spin_ring(ring, state),
            None => self.read(state, self.spin_time),
        }
    }

    /// Sets `SO_RCVLOWAT` before the reader sleeps. It is 1, unless a large message arrives slowly.
    #[inline]
    pub(crate) fn set_low_water(&self, state: &mut State) {
        if self.socket.ring().is_some() {
            // With an io_uring, `read_ring` sets the value when it starts a receive.
            return;
        }
        let rest = state.machine.input().granted_missing_bytes();
        let slow = match rest {
            SLOW_READ_BYTES.. => state.reads.low_water > 1 || state.reads.last_read_bytes < SLOW_READ_BYTES,
            // If less is missing, fewer wake-ups save time only if single TCP segments arrive.
            LOW_WATER_MIN_REST_BYTES.. => state.reads.last_read_bytes < SEGMENT_READ_BYTES,
            _ => false,
        } && !is_before_first_message(state);
        #[cfg(feature = "experiments")]
        let slow = slow && self.adapts_low_water;
        self.apply_low_water(state, if slow { rest.min(MAX_LOW_WATER_BYTES) } else { 1 });
    }

    #[inline]
    pub(crate) fn apply_low_water(&self, state: &mut State, bytes: usize) {
        if bytes != state.reads.low_water {
            // On a system without this option, the reader is woken too often, which is harmless.
            let _ = self.socket.set_low_water(bytes);
            state.reads.low_water = bytes;
        }
    }

    /// Reads the socket, or polls it for up to `spin`. Returns whether the caller must drain the events.
    pub(crate) fn read<'a>(&'a self, mut state: LockedState<'a>, spin: Duration) -> (LockedState<'a>, bool) {
        if let Some(ring) = self.socket.ring() {
            return self.read_ring(ring, state);
        }
        let received;
        (state, received) = self.read_once(state, spin);
        let begun = state.clock;
        // If a large message arrives quickly, its next part is already available. Reading it now costs less
        // than waking the task for it. The time is limited, so that the task can also do other work.
        while received
            && state.reads.last_read_bytes >= BULK_READ_BYTES
            && state.machine.input().granted_missing_bytes() >= SLOW_READ_BYTES
            && state.machine.wants_read()
            && state.clock.saturating_duration_since(begun) < MAX_READ_TIME
        {
            let more;
            (state, more) = self.read_once(state, SINGLE_READ);
            if !more {
                break;
            }
        }
        (state, received)
    }

    #[inline]
    fn read_once<'a>(&'a self, mut state: LockedState<'a>, spin: Duration) -> (LockedState<'a>, bool) {
        state.roles.reading = true;
        let mut buf = state.machine.take_read_buf();
        drop(state);
        let outcome = if spin.is_zero() {
            self.socket.try_read(&mut buf)
        } else {
            self.socket.spin_read(&mut buf, spin)
        };
        let mut state = self.lock();
        state.roles.reading = false;
        let now = now();
        state.clock = now;
        let (n, end) = match outcome {
            Ok(Some(0)) => (0, Some(Ok(()))),
            Ok(Some(n)) => (n, None),
            Ok(None) => (0, None),
            Err(error) => (0, Some(Err(error))),
        };
        state.machine.handle_read(buf, n, now);
        let received = n > 0 || end.is_some();
        if n > 0 {
            state.reads.last_read_bytes = n;
        }
        match end {
            Some(Ok(())) => state.machine.handle_eof(now),
            Some(Err(error)) => state.machine.handle_read_error(&error, now),
            None => {}
        }
        if state.roles.driver_reads {
            // Wake the driver, because it may have been polled while this caller was reading.
            state.wake_driver();
        }
        (state, received)
    }

    /// Reads an idle connection before a request is written, to detect that the peer has closed it.
    #[cold]
    fn read_idle<'a>(&'a self, mut state: LockedState<'a>, now: Instant) -> LockedState<'a> {
        // Only the driver reads connections that receive requests.
        if state.roles.reading || !state.machine.wants_read() || state.machine.accepts_requests() {
            return state;
        }
        if let Some(ring) = self.socket.ring() {
            drop(state);
            ring.process_completions();
            state = self.lock();
            state.clock = now;
        }
        (state, _) = self.read(state, Duration::ZERO);
        self.drain_events(&mut state, None);
        state.last_use = now;
        state
    }
}

impl PendingCall<'_> {
    /// Queues the request and writes it. With `flow`, fails if the arguments cannot be encoded.
    pub(crate) fn send(&self, mut encoder: Box<Encoder>, flow: Option<Flow<'_>>) -> Result<(), EncodeError> {
        if let Some(flow) = flow {
            let sent = self.link.send_flow(Some(self.call), encoder, &flow);
            self.arm(self.link.lock());
            return match sent {
                Err(OnewayError::Encode(error)) => Err(error),
                // If the connection is closed, the call already has this as its outcome.
                _ => Ok(()),
            };
        }
        let mut state = self.link.lock();
        state.machine.call(self.call).send_request(&mut encoder);
        state.keep_encoder(encoder);
        if state.machine.pending_call_count() > 1 {
            // Other calls are also pending. One write is sufficient for requests that are sent together.
            state = self.link.flush_gathering(state);
        } else {
            (state, _) = self.link.flush(state);
        }
        self.arm(state);
        Ok(())
    }

    pub(crate) fn send_locate(&self, mut encoder: Box<Encoder>) {
        let mut state = self.link.lock();
        state.machine.call(self.call).send_locate(&mut encoder);
        state.keep_encoder(encoder);
        (state, _) = self.link.flush(state);
        self.arm(state);
    }

    /// Ensures that the driver's timer fires at the deadline of the call.
    #[inline]
    pub(crate) fn arm(&self, mut state: LockedState<'_>) {
        if let Some(deadline) = self.deadline {
            state.rearm(deadline);
        }
    }

    pub(crate) async fn reply(mut self) -> Result<Reply, CallError> {
        let (link, call) = (self.link, self.call);
        let outcome = poll_fn(|cx| link.poll_reply(cx, call)).await;
        self.has_outcome = true;
        if outcome.is_ok() {
            link.has_reply.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Waits for the LocateReply. It does not prove that the server has received service contexts.
    pub(crate) async fn locate_reply(mut self) -> Result<Reply, CallError> {
        let (link, call) = (self.link, self.call);
        let outcome = poll_fn(|cx| link.poll_reply(cx, call)).await;
        self.has_outcome = true;
        outcome
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.has_outcome {
            let mut state = self.link.lock();
            state.machine.call(self.call).cancel();
            // The driver writes the CancelRequest, and continues to read the socket.
            state.roles.driver_reads = true;
            state.wake_driver();
        }
    }
}

/// Completes at the deadline. The first poll calls `deadline` and starts the timer.
pub(crate) fn poll_deadline(
    mut timer: Pin<&mut Option<tokio::time::Sleep>>,
    deadline: &impl Fn() -> Option<Instant>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if timer.is_none() {
        timer.set(deadline().map(|deadline| tokio::time::sleep_until(deadline.into())));
    }
    match timer.as_pin_mut() {
        Some(timer) => std::future::Future::poll(timer, cx),
        None => Poll::Pending,
    }
}
