//! An in-memory stream that can simulate the faults of a real one.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;
use tokio::time::{Instant, Sleep};

use crate::transport::Progress;
use crate::transport::faults::Random;

/// Simulated faults of one direction of an in-memory pipe.
///
/// The default has no faults: reads and writes of any size, a capacity of 256 KiB, no loss and no delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipeFaults {
    /// The maximum number of bytes of one read (1: a byte at a time).
    pub read_max: usize,
    /// The maximum number of bytes of one write.
    pub write_max: usize,
    /// The number of bytes in the pipe at which writes block, including delayed bytes. A small value
    /// simulates a slow reader.
    pub capacity: usize,
    /// The connection breaks after this many bytes, in the way of [`cut`](Self::cut).
    pub cut_after: Option<u64>,
    /// The way in which it breaks there.
    pub cut: Cut,
    /// A bit that is inverted: number `n` is bit `n % 8`, the lowest first, of byte `n / 8`.
    pub flip: Option<u64>,
    /// The delay of bytes, in tokio's time. Bytes stay in order.
    pub delay: Duration,
    /// A seed of random behaviour. Reads and writes transfer from one byte to their maximum, writes block
    /// although capacity is left, and delays vary between zero and `delay`.
    pub ragged: Option<u64>,
}

impl Default for PipeFaults {
    fn default() -> Self {
        Self {
            read_max: usize::MAX,
            write_max: usize::MAX,
            capacity: 256 * 1024,
            cut_after: None,
            cut: Cut::End,
            flip: None,
            delay: Duration::ZERO,
            ragged: None,
        }
    }
}

/// The way in which a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Cut {
    /// The reader receives the preceding bytes, then the end of the stream. Writes fail with a broken pipe.
    /// Simulates a process that ended or closed its socket.
    #[default]
    End,
    /// Both sides immediately get a connection reset, in both directions, and bytes in transit are lost.
    /// Simulates a process that was killed with unread bytes, or a host that restarted and lost its
    /// connections.
    Reset,
    /// No more bytes arrive, and neither side is notified, not even of the end: a half-open connection whose
    /// peer is gone or unreachable. Writes succeed until the pipe is full.
    Silence,
}

/// One end of a pipe.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
}

/// A handle that breaks a pipe.
#[derive(Debug)]
pub(crate) struct Breaker(Weak<Direction>, Weak<Direction>);

#[derive(Debug)]
struct Direction {
    faults: PipeFaults,
    lane: Mutex<Lane>,
}

#[derive(Debug)]
struct Lane {
    octets: VecDeque<u8>,
    /// The arrival times of bytes, with their numbers. Empty if nothing is delayed.
    arrivals: VecDeque<(Instant, usize)>,
    timer: Option<Pin<Box<Sleep>>>,
    passed: u64,
    /// Bytes that were lost after a silent cut. They use capacity, like bytes that a kernel holds until they
    /// are acknowledged.
    lost: usize,
    state: Line,
    random: Option<Random>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Open,
    Ended,
    Reset,
    Silent,
}

/// Creates two connected ends. `there` applies to the bytes that the first end writes.
pub(crate) fn pipe(there: PipeFaults, back: PipeFaults) -> (PipeEnd, PipeEnd) {
    let direction = |faults| Arc::new(Direction { faults, lane: Mutex::new(Lane::new(&faults)) });
    let (there, back) = (direction(there), direction(back));
    let first = PipeEnd { incoming: Arc::clone(&back), outgoing: Arc::clone(&there) };
    (first, PipeEnd { incoming: there, outgoing: back })
}

impl PipeEnd {
    /// Returns a handle that breaks the pipe.
    pub(crate) fn breaker(&self) -> Breaker {
        Breaker(Arc::downgrade(&self.outgoing), Arc::downgrade(&self.incoming))
    }

    pub(super) fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        let mut lane = self.incoming.lock();
        if lane.state == Line::Reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let there = lane.arrived();
        if there == 0 {
            return Ok(if lane.is_over() { Some(0) } else { None });
        }
        let mut left = lane.some_of(self.incoming.faults.read_max.min(there));
        let mut got = 0;
        for slice in &mut buf.io_slices() {
            let n = slice.len().min(left);
            for (to, from) in slice.iter_mut().zip(lane.octets.drain(..n)) {
                *to = from;
            }
            left -= n;
            got += n;
        }
        lane.took(got);
        wake(&mut lane.writer);
        // The buffer may have had no space: see `ReadBuf::io_slices`.
        Ok((got > 0).then_some(got))
    }

    pub(super) fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        let faults = self.outgoing.faults;
        while !transmit.is_empty() {
            let mut lane = self.outgoing.lock();
            match lane.state {
                Line::Ended => return Err(io::ErrorKind::BrokenPipe.into()),
                Line::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
                Line::Open | Line::Silent => {}
            }
            let room = faults.capacity.saturating_sub(lane.queued()).min(faults.write_max);
            if room == 0 {
                return Ok(Progress::Blocked);
            }
            let room = lane.some_of(room);
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let (mut wrote, before) = (0, lane.octets.len());
            for slice in slices.iter().take(used) {
                let n = slice.len().min(room - wrote);
                lane.put(slice.get(..n).unwrap_or_default(), &faults);
                wrote += n;
            }
            let reset = lane.state == Line::Reset;
            // A reset has cleared the queue.
            let put = lane.octets.len().saturating_sub(before);
            lane.sent(put, faults.delay);
            wake(&mut lane.reader);
            let stops = lane.random.as_mut().is_some_and(|random| random.below(4) == 0);
            drop(lane);
            transmit.advance(wrote);
            if reset {
                self.incoming.lock().enter(Line::Reset);
            }
            if stops {
                // The driver polls again and continues.
                return Ok(if transmit.is_empty() { Progress::Done } else { Progress::Blocked });
            }
        }
        Ok(Progress::Done)
    }

    pub(super) fn shut_down_write(&self) {
        self.outgoing.lock().enter(Line::Ended);
    }

    pub(super) fn shut_down_socket(&self) {
        for direction in [&self.incoming, &self.outgoing] {
            direction.lock().enter(Line::Ended);
        }
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut lane = self.incoming.lock();
        if lane.arrived() > 0 || lane.is_over() {
            return Poll::Ready(Ok(()));
        }
        if let Some((at, _)) = lane.arrivals.front().copied() {
            let timer = lane.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
        }
        lane.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut lane = self.outgoing.lock();
        if lane.is_closed() || lane.queued() < self.outgoing.faults.capacity {
            return Poll::Ready(Ok(()));
        }
        lane.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.shut_down_socket();
    }
}

impl Breaker {
    /// Returns whether an end of it still exists.
    pub(crate) fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Breaks both directions now. Returns whether an end still exists.
    pub(crate) fn cut(&self, how: Cut) -> bool {
        let directions = [self.0.upgrade(), self.1.upgrade()];
        for direction in directions.iter().flatten() {
            direction.lock().enter(how.line());
        }
        directions.iter().any(Option::is_some)
    }
}

impl Direction {
    fn lock(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn new(faults: &PipeFaults) -> Self {
        Self {
            octets: VecDeque::new(),
            arrivals: VecDeque::new(),
            timer: None,
            passed: 0,
            lost: 0,
            state: Line::Open,
            random: faults.ragged.map(Random::new),
            reader: None,
            writer: None,
        }
    }

    /// Queues bytes, or breaks the connection in their middle.
    fn put(&mut self, octets: &[u8], faults: &PipeFaults) {
        let cut = faults.cut_after.filter(|_| self.state == Line::Open);
        let sound = cut.map_or(u64::MAX, |cut| cut.saturating_sub(self.passed));
        let (sound, rest) = octets.split_at(octets.len().min(usize::try_from(sound).unwrap_or(usize::MAX)));
        if self.state == Line::Open {
            let start = self.octets.len();
            self.octets.extend(sound);
            let flip = faults.flip.and_then(|bit| Some((bit % 8, (bit / 8).checked_sub(self.passed)?)));
            if let Some((bit, at)) = flip.filter(|(_, at)| *at < sound.len() as u64)
                && let Some(octet) = self.octets.get_mut(start + at as usize)
            {
                *octet ^= 1 << bit;
            }
            self.passed += sound.len() as u64;
        } else if self.state == Line::Silent {
            self.lost += sound.len();
        }
        if !rest.is_empty() {
            self.enter(faults.cut.line());
            if self.state == Line::Silent {
                self.lost += rest.len();
            }
            // Otherwise the rest is lost, like bytes that a system accepted and could not deliver.
        }
    }

    /// Records the arrival time of that many queued bytes.
    fn sent(&mut self, octets: usize, delay: Duration) {
        if octets == 0 || delay.is_zero() {
            return;
        }
        let delay = match &mut self.random {
            Some(random) => delay.mul_f64(random.share()),
            None => delay,
        };
        let at = Instant::now() + delay;
        let at = self.arrivals.back().map_or(at, |(last, _)| at.max(*last));
        self.arrivals.push_back((at, octets));
    }

    /// Returns the number of bytes that can be read.
    fn arrived(&self) -> usize {
        if self.arrivals.is_empty() {
            return self.octets.len();
        }
        let now = Instant::now();
        self.arrivals.iter().take_while(|(at, _)| *at <= now).map(|(_, octets)| octets).sum()
    }

    /// Removes that many bytes from the arrival times.
    fn took(&mut self, mut octets: usize) {
        while let Some((_, first)) = self.arrivals.front_mut() {
            if *first > octets {
                *first -= octets;
                return;
            }
            octets -= *first;
            self.arrivals.pop_front();
        }
    }

    /// Changes the state. A broken pipe keeps its state, except that a reset replaces an end.
    fn enter(&mut self, state: Line) {
        if self.state == Line::Open || state == Line::Reset && self.state != Line::Silent {
            self.state = state;
        }
        match self.state {
            Line::Reset => {
                self.octets.clear();
                self.arrivals.clear();
            }
            Line::Silent => {
                // Bytes in transit do not arrive either.
                let late = self.octets.len() - self.arrived();
                self.octets.truncate(self.octets.len() - late);
                self.lost += late;
                let now = Instant::now();
                self.arrivals.retain(|(at, _)| *at <= now);
            }
            Line::Open | Line::Ended => {}
        }
        wake(&mut self.reader);
        wake(&mut self.writer);
    }

    fn is_closed(&self) -> bool {
        matches!(self.state, Line::Ended | Line::Reset)
    }

    /// Returns whether the reader must be notified of the end.
    fn is_over(&self) -> bool {
        self.state == Line::Reset || self.state == Line::Ended && self.octets.is_empty()
    }

    fn queued(&self) -> usize {
        self.octets.len() + self.lost
    }

    /// Returns a number of bytes to transfer, at least one if there are any.
    fn some_of(&mut self, octets: usize) -> usize {
        match &mut self.random {
            // One byte, few bytes and many bytes are equally likely.
            Some(random) => match random.below(3) {
                0 => octets.min(1),
                1 => octets.min(1 + random.below(16) as usize),
                _ => octets.min(1 + random.below(octets as u64) as usize),
            },
            None => octets,
        }
    }
}

impl Cut {
    fn line(self) -> Line {
        match self {
            Self::End => Line::Ended,
            Self::Reset => Line::Reset,
            Self::Silence => Line::Silent,
        }
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
