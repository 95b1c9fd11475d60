//! Timeouts of a connection.

use std::time::{Duration, Instant};

use super::closing::Phase;
use super::{Connection, Input};
use crate::error::{CloseReason, SlowPeer};
use crate::hits::Limit;
use crate::limits::{Limits, Role, later};

/// The time for which an inactive connection keeps empty buffers for reuse.
const MEMORY_KEEP_TIME: Duration = Duration::from_secs(1);

/// The time after which a connection asks the pool for memory again.
const MEMORY_RETRY_DELAY: Duration = Duration::from_millis(5);

/// The times of a connection, except those of the output. It never reads a clock itself.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) now: Instant,
    last_active: Instant,
    /// True if there was activity after `last_active` at an unknown time.
    pub(super) is_last_active_outdated: bool,
    idle_timeout: Duration,
    pub(super) first_header_deadline: Option<Instant>,
    /// The number of messages before the incomplete message, and the time at which it began.
    incomplete_message: Option<(u64, Instant)>,
    /// The time from which the peer is not responsible for the delay of the incomplete message.
    paused_since: Option<Instant>,
    /// True if the time in `incomplete_message` is an estimate that is too early.
    is_message_estimated: bool,
    /// The start of the second in which control messages are counted, and their number.
    control_messages: (Instant, u32),
}

impl Clock {
    pub(super) fn new(role: Role, limits: &Limits, now: Instant) -> Self {
        Self {
            now,
            last_active: now,
            is_last_active_outdated: false,
            idle_timeout: limits.idle_timeout(role),
            first_header_deadline: (role == Role::Server).then(|| later(now, limits.first_header_timeout)),
            incomplete_message: None,
            paused_since: None,
            is_message_estimated: false,
            control_messages: (now, 0),
        }
    }

    #[inline]
    pub(super) fn record_transfer(&mut self, now: Instant) {
        self.now = now;
        self.last_active = now;
        self.is_last_active_outdated = false;
    }

    /// Called when `count` messages are processed. `has_incomplete`: another one has started.
    #[inline]
    pub(super) fn update_message(&mut self, has_incomplete: bool, count: u64) {
        let paused_since = self.paused_since.take();
        match &mut self.incomplete_message {
            _ if !has_incomplete => self.incomplete_message = None,
            Some((before, since)) if *before == count => {
                if let Some(at) = paused_since {
                    *since += self.now.saturating_duration_since(at);
                }
            }
            _ => {
                self.incomplete_message = Some((count, self.now));
                self.is_message_estimated = self.is_last_active_outdated;
            }
        }
    }

    /// Suspends the timeout of the incomplete message, because the reader of a stream must take data first.
    #[cold]
    pub(super) fn suspend_message_timeout(&mut self) {
        self.paused_since.get_or_insert(self.now);
    }

    /// Called when the connection is not read, because the peer is then not responsible for missing data.
    #[inline]
    pub(super) fn stop_message_timeout(&mut self) {
        (self.incomplete_message, self.paused_since) = (None, None);
        self.is_last_active_outdated = true;
    }

    /// Returns the time by which the incomplete messages must be received. Each fragment may extend it.
    fn message_deadline(&self, input: &Input, limits: &Limits) -> Option<Instant> {
        let incomplete_message = self.incomplete_message.filter(|_| self.paused_since.is_none());
        let whole =
            incomplete_message.map(|(_, since)| later(since, limits.message_time(input.rx.announced_size())));
        if input.fragments.is_empty() {
            whole
        } else {
            whole.into_iter().chain(input.fragments.earliest_deadline(limits)).min()
        }
    }

    /// Counts a CancelRequest, LocateRequest or unexpected message. Returns whether they are too many.
    pub(super) fn count_control_message(&mut self, limit: u32) -> bool {
        let (since, count) = &mut self.control_messages;
        if self.now.saturating_duration_since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (self.now, 0);
        }
        *count = count.saturating_add(1);
        *count > limit
    }

    /// Permits one more control message in this second, because a request was received.
    #[inline]
    pub(super) fn permit_control_message(&mut self) {
        self.control_messages.1 = self.control_messages.1.saturating_sub(1);
    }
}

/// A measurement of the time for which the socket has accepted too little of the queued data.
#[derive(Debug)]
pub(super) struct WriteTimer {
    /// The start of this time; `None` if nothing is queued.
    since: Option<Instant>,
    /// True if `since` is an estimate that is too early.
    is_estimated: bool,
    /// The number of bytes per second that the peer must accept. `None` means that any number suffices.
    min_rate: Option<usize>,
}

impl WriteTimer {
    pub(super) fn new(role: Role, limits: &Limits) -> Self {
        let min_rate = (role == Role::Server).then(|| limits.min_write_rate.max(1));
        Self { since: None, is_estimated: false, min_rate }
    }

    #[inline]
    pub(super) fn start(&mut self, now: Instant) {
        if self.since.is_none() {
            self.since = Some(now);
            self.is_estimated = true;
        }
    }

    pub(super) fn stop_unless(&mut self, has_backlog: bool) {
        if !has_backlog {
            self.since = None;
        }
    }

    #[inline]
    pub(super) fn record_write(&mut self, now: Instant, bytes: u64, has_backlog: bool) {
        if !has_backlog {
            self.since = None;
        } else if self.is_estimated {
            self.since = Some(now);
        } else if bytes > 0 {
            self.since = self.since.map(|since| self.advanced_since(since, bytes, now));
        }
        self.is_estimated = false;
    }

    /// Returns the new value of `since` after the peer has accepted `bytes` more bytes. It advances by their
    /// time at the minimum rate, so that a peer gains little by accepting a byte now and then.
    #[cold]
    fn advanced_since(&self, since: Instant, bytes: u64, now: Instant) -> Instant {
        match self.min_rate {
            Some(rate) => {
                let duration = u128::from(bytes) * 1_000_000_000 / rate as u128;
                let duration = Duration::from_nanos(u64::try_from(duration).unwrap_or(u64::MAX));
                since.checked_add(duration).map_or(now, |since| since.min(now))
            }
            None => now,
        }
    }

    /// Returns the time at which the connection is closed unless the socket accepts more.
    fn deadline(&self, limits: &Limits) -> Option<Instant> {
        self.since.map(|since| later(since, limits.write_timeout))
    }
}

impl Connection {
    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called next. It may be too
    /// early, but never too late. A driver should keep one timer, and call this when the timer expires.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let clock = &self.clock;
        match self.lifecycle.phase {
            Phase::Closed { .. } => None,
            Phase::Lingering { until, .. } => Some(until),
            Phase::Finishing { .. } => self.output.timer.deadline(&self.limits),
            Phase::Open | Phase::Draining { .. } => [
                self.calls.earliest_deadline(),
                self.is_idle().then(|| later(clock.last_active, clock.idle_timeout)),
                self.output.timer.deadline(&self.limits),
                self.lifecycle.write_end.map(|(_, until)| until),
                self.keeps_memory().then(|| clock.last_active + MEMORY_KEEP_TIME),
                self.input.rx.memory.starved.then(|| clock.now + MEMORY_RETRY_DELAY),
                clock.first_header_deadline,
                self.input.stream_deadline(),
                clock.message_deadline(&self.input, &self.limits),
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    /// Sets the idle timeout of this connection, overriding [`Limits::idle_timeout`].
    pub fn set_idle_timeout(&mut self, timeout: Duration) {
        self.clock.idle_timeout = timeout;
    }

    /// Returns whether nothing was received or sent for a second, so that idle memory should be freed.
    pub fn is_quiet(&self) -> bool {
        !self.clock.is_last_active_outdated && self.clock.last_active + MEMORY_KEEP_TIME <= self.clock.now
    }

    /// Performs the actions that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock.now = now;
        if std::mem::take(&mut self.clock.is_last_active_outdated) {
            self.clock.last_active = now;
        }
        let timer = &mut self.output.timer;
        if std::mem::take(&mut timer.is_estimated) && timer.since.is_some() {
            timer.since = Some(now);
        }
        if let Phase::Lingering { reason, until } = self.lifecycle.phase {
            if until <= now {
                self.output.stats.limit_hits.hit(Limit::Linger);
                self.abort(reason);
            }
            return;
        }
        if std::mem::take(&mut self.clock.is_message_estimated) {
            self.clock.incomplete_message = self.clock.incomplete_message.map(|(count, _)| (count, now));
        }
        if self.input.rx.memory.starved {
            if self.input.retry_memory(self.output.stats.messages_in) {
                self.output.stats.limit_hits.hit(Limit::Pool);
            }
            self.clock.stop_message_timeout();
        } else if self.keeps_memory() && self.clock.last_active + MEMORY_KEEP_TIME <= now {
            self.input.rx.release_kept_window();
            self.output.tx.release();
            if self.admission.keeps_budget(self.serving.len()) {
                self.admission.return_surplus(self.serving.len(), &self.limits);
            }
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.output.timer.deadline(&self.limits)) {
            return self.close_slow_peer(SlowPeer::Write);
        }
        if !matches!(self.lifecycle.phase, Phase::Open | Phase::Draining { .. }) {
            return;
        }
        if is_due(self.calls.earliest_deadline()) {
            self.expire_calls(now);
            self.continue_closing();
        }
        if is_due(self.input.stream_deadline()) {
            self.expire_stream();
        }
        if let Some((reason, until)) = self.lifecycle.write_end
            && until <= now
        {
            self.abort(reason);
        } else if is_due(self.clock.first_header_deadline) {
            self.close_slow_peer(SlowPeer::FirstHeader);
        } else if is_due(self.clock.message_deadline(&self.input, &self.limits)) {
            self.close_slow_peer(SlowPeer::Message);
        } else if self.is_idle() && later(self.clock.last_active, self.clock.idle_timeout) <= now {
            self.close_with_reason(CloseReason::Idle, now);
        }
    }

    /// Closes the connection, because the peer takes too long for this action.
    pub(super) fn close_slow_peer(&mut self, which: SlowPeer) {
        if !matches!(self.lifecycle.phase, Phase::Closed { .. }) {
            let reason = match self.lifecycle.phase {
                Phase::Finishing { reason, .. } => reason,
                _ => CloseReason::SlowPeer(which),
            };
            self.output.stats.limit_hits.hit(match which {
                SlowPeer::FirstHeader => Limit::FirstHeader,
                SlowPeer::Message => Limit::MessageTime,
                SlowPeer::Write => Limit::WriteTime,
                SlowPeer::QueuedReplies => Limit::Pool,
            });
            self.abort(reason);
        }
    }

    fn is_idle(&self) -> bool {
        self.calls.pending() == 0
            && self.serving.len() == 0
            && self.output.tx.backlog() == 0
            && self.output.partial_request.is_none()
            && self.clock.incomplete_message.is_none()
            && self.input.fragments.is_empty()
            && self.input.incoming_payload.is_none()
    }

    /// Returns whether the connection keeps resources that it should release when it is inactive.
    fn keeps_memory(&self) -> bool {
        self.input.rx.window.may_keep
            || self.output.tx.holds_memory()
            || self.admission.keeps_budget(self.serving.len())
    }
}
