//! Calls and oneways on the caller's side.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use giop_codec::cdr::Encoder;
use giop_codec::giop::RequestId;
use giop_codec::{EncodeError, Version};
use giop_proto::calls::CallId;
use giop_proto::{CallError, CallErrorKind, Reply, SentPart};

use crate::connection::blocking::Mode;
use crate::connection::flow::Flow;
use crate::connection::headers::Plain;
use crate::connection::{
    BACKLOG, BULK_READ_BYTES, CLOCK_EVERY, GATHER, LONGEST_READ, LOW_WATER, LOW_WATER_MIN_REST,
    SEGMENT_READ_BYTES, SINGLE_READ, SLOW_READ_BYTES, SharedConnection, State, before_first_message,
    blocking, now,
};
use crate::transport::Progress;

/// Idle time after which a connection is read before it is used.
const STALE: Duration = Duration::from_millis(1);

/// A call that is registered and either not sent or not answered. Dropping it cancels the call.
pub(crate) struct Pending<'a> {
    pub(crate) link: &'a Arc<SharedConnection>,
    pub(crate) call: CallId,
    deadline: Option<Instant>,
    taken: bool,
}

/// A request that is to be encoded.
pub(crate) struct Started {
    pub(crate) id: RequestId,
    pub(crate) encoder: Box<Encoder>,
    /// The encoder already contains the request header.
    pub(crate) has_header: bool,
}

impl State {
    #[inline]
    fn start(&mut self, version: Version, header: Option<Plain<'_>>, id: RequestId) -> Started {
        let mut encoder = self.encoder(version);
        let has_header = header.is_some_and(|header| self.headers.start(header, id, &mut encoder));
        Started { id, encoder, has_header }
    }
}

/// The reason why a oneway was not queued.
#[derive(Debug)]
pub(crate) enum OnewayError {
    /// The connection is closed; nothing was queued.
    Closed(CallError),
    /// The queue had no capacity before the deadline.
    Full,
    /// The arguments cannot be encoded.
    Encode(EncodeError),
}

impl SharedConnection {
    /// Registers a call and lends an encoder for its request. The encoder contains the header if one is kept
    /// for `header`.
    pub(crate) fn begin_call(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        version: Version,
        header: Option<Plain<'_>>,
        now: Instant,
    ) -> Result<(Pending<'_>, Started), CallError> {
        let mut state = self.lock();
        state.clock = now;
        if state.machine.calls_waiting() == 0 && now.saturating_duration_since(state.last_use) > STALE {
            state = self.read_idle(state, now);
        }
        state.last_use = now;
        let call = state.machine.start_call(deadline, now)?;
        let id = state.machine.call(call).request_id();
        let started = state.start(version, header, id);
        drop(state);
        Ok((Pending { link: self, call, deadline, taken: false }, started))
    }

    /// Returns an id and an encoder for a oneway.
    pub(crate) fn begin_oneway(&self, version: Version, header: Option<Plain<'_>>) -> Started {
        let mut state = self.lock();
        let id = state.machine.next_oneway_id();
        state.start(version, header, id)
    }

    /// Keeps a header for later requests with the same target, operation and response flags.
    #[cold]
    pub(crate) fn keep_header(&self, header: Plain<'_>, octets: &[u8]) {
        self.lock().headers.keep(header, octets);
    }

    /// Takes back an encoder whose message is not sent.
    pub(crate) fn discard(&self, encoder: Box<Encoder>) {
        self.lock().keep_encoder(encoder);
    }

    /// Queues a oneway, and waits for capacity in the queue if necessary. Cancel safe: the message is queued
    /// whole or not at all.
    pub(crate) async fn send_oneway(
        self: &Arc<Self>,
        encoder: Box<Encoder>,
        flow: Option<Flow<'_>>,
        deadline: impl Fn() -> Option<Instant>,
    ) -> Result<(), OnewayError> {
        let mut message = Some(encoder);
        // Pinned in place, so that a sender that waits allocates nothing.
        let mut timer = std::pin::pin!(None);
        poll_fn(|cx| {
            let mut state = self.lock();
            if let Some(error) = closed(&mut state) {
                return Poll::Ready(Err(OnewayError::Closed(error)));
            }
            if state.machine.output().backlog() >= BACKLOG {
                (state, _) = self.flush(state);
                if state.machine.output().backlog() >= BACKLOG {
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

    /// Writes the queue, unless it is small and follows the last write closely. Then the driver writes it at
    /// its next poll, or the call that fills the batch does.
    fn flush_gathering<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let worth = state.machine.output().is_worth_a_write();
        if !worth && state.roles.driver_awake && !state.write.gathered.is_multiple_of(CLOCK_EVERY) {
            // The driver checks the queue before it sleeps. Reading the clock costs as much as encoding a
            // small message.
            state.write.gathered += 1;
            return state;
        }
        state.clock = now();
        let gather = state.write.writing || state.write.last.is_some_and(|at| state.clock < at + GATHER);
        if gather && !worth {
            state.write.gathered += 1;
            state.wake_driver();
        } else {
            (state, _) = self.flush(state);
            let now = now();
            state.write.last = Some(now);
            state.last_use = now;
        }
        state
    }

    /// Waits until the kernel has accepted everything queued. A connection that is closed in good order
    /// writes all of its queue first.
    ///
    /// # Errors
    /// The connection ended, and oneways may be lost.
    pub(crate) async fn flushed(&self) -> Result<(), CallError> {
        poll_fn(|cx| {
            let (mut state, _): (_, Progress) = self.flush(self.lock());
            // A connection that ended has no backlog.
            if state.machine.lost_oneways() {
                return Poll::Ready(Err(state.machine.lifecycle().lost()));
            }
            if state.machine.output().backlog() == 0 {
                return Poll::Ready(Ok(()));
            }
            state.capacity_waiters.push(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Returns the number of bytes that are queued and not written.
    pub(crate) fn backlog(&self) -> usize {
        self.lock().machine.output().backlog()
    }

    /// Returns whether the connection ended and oneways may be lost.
    pub(crate) fn lost_oneways(&self) -> bool {
        self.lock().machine.lost_oneways()
    }

    fn poll_reply(&self, cx: &mut Context<'_>, call: CallId) -> Poll<Result<Reply, CallError>> {
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.machine.call(call).take_outcome() {
                return Poll::Ready(outcome);
            }
            let index = call.index();
            match blocking::mode(cx) {
                Mode::Async => {}
                Mode::Apart => {
                    state.await_by_driver(call, cx);
                    return Poll::Pending;
                }
                Mode::Count => {
                    // A waker left by an earlier poll would count as that of another task.
                    if let Some(slot) = state.callers.get_mut(index) {
                        *slot = None;
                    }
                    blocking::count();
                    return Poll::Pending;
                }
                Mode::InPlace => match self.wait_in_place(state, call) {
                    Ok(outcome) => {
                        blocking::answered();
                        return Poll::Ready(outcome);
                    }
                    Err(busy) => {
                        drop(busy);
                        return Poll::Pending;
                    }
                },
            }
            if state.callers.len() <= index {
                state.callers.resize(index + 1, None);
            }
            if let Some(slot) = state.callers.get_mut(index) {
                match slot {
                    Some(waker) if waker.will_wake(cx.waker()) => {}
                    _ => *slot = Some(cx.waker().clone()),
                }
            }
            if let Some(ring) = self.socket.ring()
                && !self.spin.is_zero()
                && state.machine.calls_waiting() == 1
                && !state.machine.accepts_requests()
            {
                let came;
                (state, came) = self.spin_for_reply(ring, state);
                if came {
                    self.drain_events(&mut state, Some(call));
                    continue;
                }
            }
            let alone = self.client_only && state.machine.calls_waiting() == 1 && !state.machine.has_output();
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
                state.roles.takeover = Some(at);
                state.rearm(at);
            }
            // Readiness is exact (see `transport`): checking it first costs nothing and saves a read buffer.
            match self.socket.poll_read_ready(cx) {
                Poll::Pending => {
                    let came;
                    (state, came) = self.spin(state);
                    if !came {
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

    /// Polls the socket for the spin time of this link. Returns whether something was received. The caller
    /// drains the events.
    ///
    /// The caller's waker is already registered with the socket and is woken by later input.
    #[inline]
    pub(crate) fn spin<'a>(&'a self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        match self.socket.ring() {
            _ if self.spin.is_zero() => (state, false),
            Some(ring) => self.spin_ring(ring, state),
            None => self.read(state, self.spin),
        }
    }

    /// Sets `SO_RCVLOWAT` before the reader sleeps: to one byte, unless a large message is arriving slowly.
    #[inline]
    pub(crate) fn set_low_water(&self, state: &mut State) {
        if self.socket.ring().is_some() {
            // A ring gets the value with each receive.
            return;
        }
        let rest = state.machine.input().rest();
        let slow = match rest {
            SLOW_READ_BYTES.. => state.reads.low_water > 1 || state.reads.last < SLOW_READ_BYTES,
            // One wake-up instead of a few pays only if the message arrives in single segments.
            LOW_WATER_MIN_REST.. => state.reads.last < SEGMENT_READ_BYTES,
            _ => false,
        } && !before_first_message(state);
        #[cfg(feature = "experiments")]
        let slow = slow && self.trickles;
        self.await_octets(state, if slow { rest.min(LOW_WATER) } else { 1 });
    }

    #[inline]
    pub(crate) fn await_octets(&self, state: &mut State, octets: usize) {
        if octets != state.reads.low_water {
            // On a system without this option the reader is woken too often, which is harmless.
            let _ = self.socket.set_low_water(octets);
            state.reads.low_water = octets;
        }
    }

    /// Reads once, or polls for up to `spin`. Returns whether bytes or the end of the stream were received.
    /// The caller drains the events.
    pub(crate) fn read<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        spin: Duration,
    ) -> (MutexGuard<'a, State>, bool) {
        if let Some(ring) = self.socket.ring() {
            return self.read_ring(ring, state);
        }
        let came;
        (state, came) = self.read_once(state, spin);
        let begun = state.clock;
        // The next part of a large message that arrives fast is available by now. Reading it costs less than
        // being woken for it. The time is limited, because a message may never end.
        while came
            && state.reads.last >= BULK_READ_BYTES
            && state.machine.input().rest() >= SLOW_READ_BYTES
            && state.machine.wants_read()
            && state.clock.saturating_duration_since(begun) < LONGEST_READ
        {
            let more;
            (state, more) = self.read_once(state, SINGLE_READ);
            if !more {
                break;
            }
        }
        (state, came)
    }

    #[inline]
    fn read_once<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        spin: Duration,
    ) -> (MutexGuard<'a, State>, bool) {
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
        let came = n > 0 || end.is_some();
        if n > 0 {
            state.reads.last = n;
        }
        match end {
            Some(Ok(())) => state.machine.handle_eof(now),
            Some(Err(error)) => state.machine.handle_read_error(&error, now),
            None => {}
        }
        if state.roles.driver_reads {
            // The driver may have been polled while this caller held the read role. Wake it, so that it takes
            // over.
            state.wake_driver();
        }
        (state, came)
    }

    /// Detects CloseConnection and the end of the stream before a request is written.
    #[cold]
    fn read_idle<'a>(&'a self, mut state: MutexGuard<'a, State>, now: Instant) -> MutexGuard<'a, State> {
        // On connections that receive requests only the driver reads.
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

impl Pending<'_> {
    /// Queues the request and writes it.
    ///
    /// # Errors
    /// The arguments of a request that is encoded while it is sent cannot be encoded.
    pub(crate) fn send(&self, mut encoder: Box<Encoder>, flow: Option<Flow<'_>>) -> Result<(), EncodeError> {
        if let Some(flow) = flow {
            let sent = self.link.send_flow(Some(self.call), encoder, &flow);
            self.arm(self.link.lock());
            return match sent {
                Err(OnewayError::Encode(error)) => Err(error),
                // The call has an outcome already.
                _ => Ok(()),
            };
        }
        let mut state = self.link.lock();
        state.machine.call(self.call).send_request(&mut encoder);
        state.keep_encoder(encoder);
        if state.machine.calls_waiting() > 1 {
            // Other calls are pending too. Requests that they send at the same time leave in one write.
            state = self.link.flush_gathering(state);
        } else {
            (state, _) = self.link.flush(state);
        }
        self.arm(state);
        Ok(())
    }

    /// Queues a LocateRequest and writes it.
    pub(crate) fn send_locate(&self, mut encoder: Box<Encoder>) {
        let mut state = self.link.lock();
        state.machine.call(self.call).send_locate(&mut encoder);
        state.keep_encoder(encoder);
        (state, _) = self.link.flush(state);
        self.arm(state);
    }

    /// Ensures that the timer fires at the deadline. The driver knows all other timeouts of the machine.
    #[inline]
    pub(crate) fn arm(&self, mut state: MutexGuard<'_, State>) {
        if let Some(deadline) = self.deadline {
            state.rearm(deadline);
        }
    }

    /// Waits for the reply. Dropping the future cancels the call.
    pub(crate) async fn reply(mut self) -> Result<Reply, CallError> {
        let (link, call) = (self.link, self.call);
        let outcome = poll_fn(|cx| link.poll_reply(cx, call)).await;
        self.taken = true;
        if outcome.is_ok() {
            link.answered.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Waits for the answer to a LocateRequest. A LocateRequest has no service contexts, so the link does not
    /// become answered.
    pub(crate) async fn located(mut self) -> Result<Reply, CallError> {
        let (link, call) = (self.link, self.call);
        let outcome = poll_fn(|cx| link.poll_reply(cx, call)).await;
        self.taken = true;
        outcome
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.taken {
            let mut state = self.link.lock();
            state.machine.call(self.call).cancel();
            // The driver writes the CancelRequest, and takes the read role that this caller may have had.
            state.roles.driver_reads = true;
            state.wake_driver();
        }
    }
}

fn closed(state: &mut State) -> Option<CallError> {
    if !state.machine.lifecycle().is_closing() {
        return None;
    }
    Some(CallError { kind: CallErrorKind::LocalClose, sent: SentPart::Nothing })
}

/// Completes at the deadline. The timer is started at the first poll.
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
