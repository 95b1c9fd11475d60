//! Timeouts of a connection.

use std::time::{Duration, Instant};

use super::closing::Phase;
use super::{Connection, Input};
use crate::error::{CloseReason, SlowPeer};
use crate::hits::Limit;
use crate::limits::{Limits, Role, later};

/// The time for which a quiet connection keeps its empty read window and its empty batches.
const KEEP_MEMORY: Duration = Duration::from_secs(1);

/// The time after which a connection asks the pool for memory again.
const RETRY_MEMORY: Duration = Duration::from_millis(5);

/// The times of a connection, and the ends of its streams.
#[derive(Debug)]
pub(super) struct Clock {
    /// The most recent time that was passed in.
    pub(super) now: Instant,
    /// The time of the last input or output.
    active: Instant,
    /// True if something happened after `active` without a known time.
    touched: bool,
    /// The maximum idle time of the connection.
    idle: Duration,
    /// The deadline of the first message header.
    first_header: Option<Instant>,
    /// For an incomplete message: the number of messages received before, and the time since when it is
    /// incomplete.
    message: Option<(u64, Instant)>,
    /// The time since when the peer is not responsible for the delay of that message.
    paused: Option<Instant>,
    /// True if the time in `message` is an estimate, which is too early.
    message_guessed: bool,
    /// The second in which control messages are counted, and the count.
    control: (Instant, u32),
}

impl Clock {
    pub(super) fn new(role: Role, limits: &Limits, now: Instant) -> Self {
        Self {
            now,
            active: now,
            touched: false,
            idle: limits.idle_timeout(role),
            first_header: (role == Role::Server).then(|| later(now, limits.first_header_timeout)),
            message: None,
            paused: None,
            message_guessed: false,
            control: (now, 0),
        }
    }

    #[inline]
    pub(super) fn saw(&mut self, now: Instant) {
        self.now = now;
    }

    /// Notes that bytes were received or written at `now`.
    #[inline]
    pub(super) fn transferred(&mut self, now: Instant) {
        self.now = now;
        self.active = now;
        self.touched = false;
    }

    /// Notes that something ended at an unknown time.
    #[inline]
    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// Returns whether the first message header is awaited.
    #[inline]
    pub(super) fn awaits_header(&self) -> bool {
        self.first_header.is_some()
    }

    /// Notes that a message header was received.
    #[inline]
    pub(super) fn header(&mut self) {
        self.first_header = None;
    }

    /// Notes that all received messages are processed. `incomplete` is true if a further message has started.
    /// `count` is the number of messages so far.
    #[inline]
    pub(super) fn cut(&mut self, incomplete: bool, count: u64) {
        let paused = self.paused.take();
        match &mut self.message {
            _ if !incomplete => self.message = None,
            Some((before, since)) if *before == count => {
                if let Some(at) = paused {
                    *since += self.now.saturating_duration_since(at);
                }
            }
            _ => {
                self.message = Some((count, self.now));
                self.message_guessed = self.touched;
            }
        }
    }

    /// Suspends the timeout of a payload until [`cut`](Self::cut), because its reader must take data first.
    #[cold]
    pub(super) fn pause(&mut self) {
        self.paused.get_or_insert(self.now);
    }

    /// Notes that the connection is not read at present. The peer is not responsible for data that it cannot
    /// send meanwhile.
    #[inline]
    pub(super) fn hold(&mut self) {
        (self.message, self.paused) = (None, None);
        self.touched = true;
    }

    /// Returns the time at which the connection ends unless the current messages grow.
    fn message_due(&self, input: &Input, limits: &Limits) -> Option<Instant> {
        let message = self.message.filter(|_| self.paused.is_none());
        let whole = message.map(|(_, since)| later(since, limits.message_time(input.rx.announced())));
        if input.fragments.is_empty() {
            whole
        } else {
            whole.into_iter().chain(input.fragments.due(limits)).min()
        }
    }

    /// Counts a message without a request. Returns whether there were too many in this second.
    pub(super) fn control(&mut self, limit: u32) -> bool {
        let (since, count) = &mut self.control;
        if self.now.saturating_duration_since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (self.now, 0);
        }
        *count = count.saturating_add(1);
        *count > limit
    }

    /// Subtracts one counted message for a request.
    #[inline]
    pub(super) fn request(&mut self) {
        self.control.1 = self.control.1.saturating_sub(1);
    }
}

/// The time for which the socket accepts too little of the queued data.
#[derive(Debug)]
pub(super) struct WriteTimer {
    /// The time since when it accepts nothing, or too little.
    since: Option<Instant>,
    /// True if `since` is an estimate, which is too early.
    guessed: bool,
    /// Bytes per second that the peer must accept. `None`: any number.
    min_rate: Option<usize>,
}

impl WriteTimer {
    pub(super) fn new(role: Role, limits: &Limits) -> Self {
        let min_rate = (role == Role::Server).then(|| limits.min_write_rate.max(1));
        Self { since: None, guessed: false, min_rate }
    }

    /// Notes that something was queued.
    #[inline]
    pub(super) fn queued(&mut self, now: Instant) {
        if self.since.is_none() {
            self.since = Some(now);
            self.guessed = true;
        }
    }

    pub(super) fn unqueued(&mut self, backlog: bool) {
        if !backlog {
            self.since = None;
        }
    }

    /// Notes the end of a write.
    #[inline]
    pub(super) fn wrote(&mut self, now: Instant, bytes: u64, backlog: bool) {
        if !backlog {
            self.since = None;
        } else if self.guessed {
            self.since = Some(now);
        } else if bytes > 0 {
            self.since = self.since.map(|since| self.took(since, bytes, now));
        }
        self.guessed = false;
    }

    /// Returns the time since when the peer accepts too little, after it accepted `bytes` more bytes. They
    /// extend the time only by the duration that they need at the minimum rate. A peer that accepts a byte
    /// now and then gains nothing.
    #[cold]
    fn took(&self, since: Instant, bytes: u64, now: Instant) -> Instant {
        match self.min_rate {
            Some(rate) => {
                let worth = u128::from(bytes) * 1_000_000_000 / rate as u128;
                let worth = Duration::from_nanos(u64::try_from(worth).unwrap_or(u64::MAX));
                since.checked_add(worth).map_or(now, |since| since.min(now))
            }
            None => now,
        }
    }

    /// Replaces an estimate by a known time.
    fn correct(&mut self, now: Instant) {
        if std::mem::take(&mut self.guessed) && self.since.is_some() {
            self.since = Some(now);
        }
    }

    /// Returns the time at which the connection ends unless the socket accepts more.
    fn due(&self, limits: &Limits) -> Option<Instant> {
        self.since.map(|since| later(since, limits.write_timeout))
    }
}

impl Connection {
    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called next. It may be too
    /// early, but never too late. It changes with every event, so a driver keeps one timer and asks again
    /// when that expires.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let clock = &self.clock;
        match self.lifecycle.phase {
            Phase::Closed { .. } => None,
            Phase::Lingering { until, .. } => Some(until),
            Phase::Finishing { .. } => self.output.timer.due(&self.limits),
            Phase::Open | Phase::Draining { .. } => {
                let idle = self.is_idle().then(|| later(clock.active, clock.idle));
                let stalled = self.output.timer.due(&self.limits);
                let ended = self.lifecycle.write_end.map(|(_, until)| until);
                let keeping = self.keeps_memory().then(|| clock.active + KEEP_MEMORY);
                let memory = self.input.rx.memory.is_starved().then(|| clock.now + RETRY_MEMORY);
                let first = clock.first_header;
                let streamed = self.input.stream_due();
                [
                    self.calls.earliest_deadline(),
                    idle,
                    stalled,
                    ended,
                    keeping,
                    memory,
                    first,
                    streamed,
                    self.clock.message_due(&self.input, &self.limits),
                ]
                .into_iter()
                .flatten()
                .min()
            }
        }
    }

    /// Sets the idle timeout of this connection, overriding [`Limits::idle_timeout`].
    pub fn set_idle_timeout(&mut self, timeout: Duration) {
        self.clock.idle = timeout;
    }

    /// Returns whether nothing was received or sent for a second. Then memory that is kept for reuse is
    /// freed.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.clock.touched && self.clock.active + KEEP_MEMORY <= self.clock.now
    }

    /// Performs the actions that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock.saw(now);
        if std::mem::take(&mut self.clock.touched) {
            self.clock.active = now;
        }
        self.output.timer.correct(now);
        if let Phase::Lingering { reason, until } = self.lifecycle.phase {
            if until <= now {
                self.stats.limits.hit(Limit::Linger);
                self.abort(reason);
            }
            return;
        }
        if std::mem::take(&mut self.clock.message_guessed) {
            self.clock.message = self.clock.message.map(|(count, _)| (count, now));
        }
        if self.input.rx.memory.is_starved() {
            if self.input.look_for_memory(self.stats.messages_in) {
                self.stats.limits.hit(Limit::Pool);
            }
            self.clock.hold();
        } else if self.keeps_memory() && self.clock.active + KEEP_MEMORY <= now {
            self.input.rx.release();
            self.output.tx.release();
            if self.requests.keeps_requests(self.serving.len()) {
                self.requests.give_back(self.serving.len(), &self.limits);
            }
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.output.timer.due(&self.limits)) {
            return self.end_slow(SlowPeer::Write);
        }
        if !matches!(self.lifecycle.phase, Phase::Open | Phase::Draining { .. }) {
            return;
        }
        if due(self.calls.earliest_deadline()) {
            self.expire_calls(now);
            self.proceed_closing();
        }
        if due(self.input.stream_due()) {
            self.expire_stream();
        }
        if let Some((reason, until)) = self.lifecycle.write_end
            && until <= now
        {
            self.abort(reason);
        } else if due(self.clock.first_header) {
            self.end_slow(SlowPeer::FirstHeader);
        } else if due(self.clock.message_due(&self.input, &self.limits)) {
            self.end_slow(SlowPeer::Message);
        } else if self.is_idle() && later(self.clock.active, self.clock.idle) <= now {
            self.close_because(CloseReason::Idle, now);
        }
    }

    pub(super) fn end_slow(&mut self, which: SlowPeer) {
        if !matches!(self.lifecycle.phase, Phase::Closed { .. }) {
            let reason = match self.lifecycle.phase {
                Phase::Finishing { reason, .. } => reason,
                _ => CloseReason::SlowPeer(which),
            };
            self.stats.limits.hit(match which {
                SlowPeer::FirstHeader => Limit::FirstHeader,
                SlowPeer::Message => Limit::MessageTime,
                SlowPeer::Write => Limit::WriteTime,
                SlowPeer::Crowded => Limit::Pool,
            });
            self.abort(reason);
        }
    }

    fn is_idle(&self) -> bool {
        self.calls.waiting() == 0
            && self.serving.len() == 0
            && self.output.tx.backlog() == 0
            && self.output.partial_request.is_none()
            && self.clock.message.is_none()
            && self.input.fragments.is_empty()
            && self.input.streamed.is_none()
    }

    fn keeps_memory(&self) -> bool {
        self.input.rx.is_keeping()
            || self.output.tx.holds_memory()
            || self.requests.keeps_requests(self.serving.len())
    }
}
