//! Time: what the connection waits for, and how long.

use std::time::{Duration, Instant};

use super::Connection;
use super::closing::Phase;
use crate::error::{CloseReason, SlowPeer};
use crate::hits::Limit;
use crate::limits::{Limits, Role, later};

/// How long a quiet connection keeps its empty read window and its empty batches.
const KEEP_MEMORY: Duration = Duration::from_secs(1);

/// How long a connection waits before it asks the pool for memory again.
const RETRY_MEMORY: Duration = Duration::from_millis(5);

/// What the connection knows of time and of the ends of its streams.
#[derive(Debug)]
pub(super) struct Clock {
    /// The latest time that anybody told.
    pub(super) now: Instant,
    /// When something last came or went.
    active: Instant,
    /// Something happened since then, at a time that nobody told.
    touched: bool,
    /// How long the connection may be idle.
    idle: Duration,
    /// When the first message header must be there.
    first_header: Option<Instant>,
    /// Since when the socket takes nothing of what is queued, or too little.
    stalled: Option<Instant>,
    /// That time was guessed, too early, as nobody told it.
    stall_guessed: bool,
    /// How many octets a second the peer must take; `None`: any.
    write_rate: Option<usize>,
    /// Why nothing more can be read.
    pub(super) read_end: Option<CloseReason>,
    /// Why nothing more can be written, and until when the peer's last words are waited for.
    pub(super) write_end: Option<(CloseReason, Instant)>,
    /// Since when a message is incomplete, and how many messages had come before.
    message: Option<(u64, Instant)>,
    /// Since when that is not the peer's fault.
    paused: Option<Instant>,
    /// That time was guessed, too early, as nobody told it.
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
            stalled: None,
            stall_guessed: false,
            write_rate: (role == Role::Server).then(|| limits.min_write_rate.max(1)),
            read_end: None,
            write_end: None,
            message: None,
            paused: None,
            message_guessed: false,
            control: (now, 0),
        }
    }

    /// Why nothing more can be read or written.
    pub(super) fn ended(&self) -> Option<&CloseReason> {
        self.read_end.as_ref().or(self.write_end.as_ref().map(|(reason, _)| reason))
    }

    #[inline]
    pub(super) fn saw(&mut self, now: Instant) {
        self.now = now;
    }

    /// Octets came.
    #[inline]
    pub(super) fn read(&mut self, now: Instant) {
        self.now = now;
        self.active = now;
        self.touched = false;
    }

    /// Something ended, nobody knows when.
    #[inline]
    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// Something was queued.
    #[inline]
    pub(super) fn queued(&mut self) {
        if self.stalled.is_none() {
            self.stalled = Some(self.now);
            self.stall_guessed = true;
        }
    }

    pub(super) fn unqueued(&mut self, backlog: bool) {
        if !backlog {
            self.stalled = None;
        }
    }

    /// A writer came back.
    #[inline]
    pub(super) fn wrote(&mut self, now: Instant, octets: u64, backlog: bool) {
        self.now = now;
        self.active = now;
        self.touched = false;
        if !backlog {
            self.stalled = None;
        } else if self.stall_guessed {
            self.stalled = Some(now);
        } else if octets > 0 {
            self.stalled = self.stalled.map(|since| self.took(since, octets, now));
        }
        self.stall_guessed = false;
    }

    /// Since when the peer takes too little, which took so many octets now. What it took makes up for the time that these may take, no more: who
    /// takes an octet now and then gains nothing.
    #[cold]
    fn took(&self, since: Instant, octets: u64, now: Instant) -> Instant {
        match self.write_rate {
            Some(rate) => {
                let worth = u128::from(octets) * 1_000_000_000 / rate as u128;
                let worth = Duration::from_nanos(u64::try_from(worth).unwrap_or(u64::MAX));
                since.checked_add(worth).map_or(now, |since| since.min(now))
            }
            None => now,
        }
    }

    /// Whether the first message header is awaited.
    #[inline]
    pub(super) fn awaits_header(&self) -> bool {
        self.first_header.is_some()
    }

    /// A message header came.
    #[inline]
    pub(super) fn header(&mut self) {
        self.first_header = None;
    }

    /// All that came is cut; `incomplete`: a message has begun. `count` messages came so far.
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

    /// The payload of a request waits for whoever takes it: its time stands still until [`cut`](Self::cut).
    #[cold]
    pub(super) fn pause(&mut self) {
        self.paused.get_or_insert(self.now);
    }

    /// The connection is not read for the time being: the peer is not to blame for what it can not send.
    #[inline]
    pub(super) fn hold(&mut self) {
        (self.message, self.paused) = (None, None);
        self.touched = true;
    }

    /// Counts a message that nobody awaits; says whether there were too many in this second.
    pub(super) fn control(&mut self, limit: u32) -> bool {
        let (since, count) = &mut self.control;
        if self.now.saturating_duration_since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (self.now, 0);
        }
        *count = count.saturating_add(1);
        *count > limit
    }

    /// A request makes up for one of them.
    #[inline]
    pub(super) fn request(&mut self) {
        self.control.1 = self.control.1.saturating_sub(1);
    }
}

impl Connection {
    /// When [`handle_timeout`](Self::handle_timeout) has to be called next. It may be too early, never too late; it changes
    /// with everything that happens, so a driver keeps one timer and asks again when that fires.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let clock = &self.clock;
        match self.phase {
            Phase::Closed { .. } => None,
            Phase::Lingering { until, .. } => Some(until),
            Phase::Finishing { .. } => self.write_due(),
            Phase::Open | Phase::Draining { .. } => {
                let idle = self.is_idle().then(|| later(clock.active, clock.idle));
                let stalled = self.write_due();
                let ended = clock.write_end.map(|(_, until)| until);
                let keeping = self.keeps_memory().then(|| clock.active + KEEP_MEMORY);
                let memory = self.rx.is_starved().then(|| clock.now + RETRY_MEMORY);
                let first = clock.first_header;
                let streamed = self.stream_due();
                [
                    self.calls.earliest_deadline(),
                    idle,
                    stalled,
                    ended,
                    keeping,
                    memory,
                    first,
                    streamed,
                    self.message_due(),
                ]
                .into_iter()
                .flatten()
                .min()
            }
        }
    }

    /// Lets this connection be idle for so long, whatever [`Limits::idle_timeout`] says.
    pub fn set_idle_timeout(&mut self, timeout: Duration) {
        self.clock.idle = timeout;
    }

    /// Whether nothing came or went for a second: then memory that is kept for what comes next is freed.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.clock.touched && self.clock.active + KEEP_MEMORY <= self.clock.now
    }

    /// Does what the time has come for.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock.saw(now);
        if std::mem::take(&mut self.clock.touched) {
            self.clock.active = now;
        }
        if std::mem::take(&mut self.clock.stall_guessed) && self.clock.stalled.is_some() {
            self.clock.stalled = Some(now);
        }
        if let Phase::Lingering { reason, until } = self.phase {
            if until <= now {
                self.stats.limits.hit(Limit::Linger);
                self.end(reason);
            }
            return;
        }
        if std::mem::take(&mut self.clock.message_guessed) {
            self.clock.message = self.clock.message.map(|(count, _)| (count, now));
        }
        if self.rx.is_starved() {
            self.look_for_memory();
        } else if self.keeps_memory() && self.clock.active + KEEP_MEMORY <= now {
            self.rx.release();
            self.tx.release();
            if self.keeps_requests() {
                self.give_back();
            }
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.write_due()) {
            return self.end_slow(SlowPeer::Write);
        }
        if !matches!(self.phase, Phase::Open | Phase::Draining { .. }) {
            return;
        }
        if due(self.calls.earliest_deadline()) {
            self.expire_calls(now);
            self.proceed_closing();
        }
        if due(self.stream_due()) {
            self.expire_stream();
        }
        if let Some((reason, until)) = self.clock.write_end
            && until <= now
        {
            self.end(reason);
        } else if due(self.clock.first_header) {
            self.end_slow(SlowPeer::FirstHeader);
        } else if due(self.message_due()) {
            self.end_slow(SlowPeer::Message);
        } else if self.is_idle() && later(self.clock.active, self.clock.idle) <= now {
            self.close_because(CloseReason::Idle, now);
        }
    }

    pub(super) fn end_slow(&mut self, which: SlowPeer) {
        if !matches!(self.phase, Phase::Closed { .. }) {
            let reason = match self.phase {
                Phase::Finishing { reason, .. } => reason,
                _ => CloseReason::SlowPeer(which),
            };
            self.stats.limits.hit(match which {
                SlowPeer::FirstHeader => Limit::FirstHeader,
                SlowPeer::Message => Limit::MessageTime,
                SlowPeer::Write => Limit::WriteTime,
                SlowPeer::Crowded => Limit::Pool,
            });
            self.end(reason);
        }
    }

    fn is_idle(&self) -> bool {
        self.calls.waiting() == 0
            && self.serving.len() == 0
            && self.tx.backlog() == 0
            && self.unfinished.is_none()
            && self.clock.message.is_none()
            && self.fragments.is_empty()
            && self.streamed.is_none()
    }

    fn keeps_memory(&self) -> bool {
        self.rx.is_keeping() || self.tx.holds_memory() || self.keeps_requests()
    }

    fn write_due(&self) -> Option<Instant> {
        self.clock.stalled.map(|since| later(since, self.limits.write_timeout))
    }

    fn message_due(&self) -> Option<Instant> {
        let message = self.clock.message.filter(|_| self.clock.paused.is_none());
        let whole = message.map(|(_, since)| later(since, self.limits.message_time(self.rx.announced())));
        if self.fragments.is_empty() {
            whole
        } else {
            whole.into_iter().chain(self.fragments.due(&self.limits)).min()
        }
    }
}
