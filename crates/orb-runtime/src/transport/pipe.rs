//! An in-memory stream that can simulate the faults of a network.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;
use tokio::time::{Instant, Sleep};

use crate::lock::lock;
use crate::transport::faults::Random;
use crate::transport::outcome::Progress;

/// Simulated faults of one direction of an in-memory pipe. The default has none, and a capacity of 256 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipeFaults {
    /// The maximum number of bytes of one read.
    pub max_read_bytes: usize,
    /// The maximum number of bytes of one write.
    pub max_write_bytes: usize,
    /// The capacity in bytes, including delayed bytes. A small value simulates a slow reader.
    pub capacity: usize,
    /// The number of bytes after which the connection breaks, if it breaks.
    pub cut_after: Option<u64>,
    /// How the connection breaks after [`cut_after`](Self::cut_after) bytes.
    pub cut: Cut,
    /// The bit that is inverted, if any. Number `n` is bit `n % 8` of byte `n / 8`. Bit 0 is the lowest one.
    pub flipped_bit: Option<u64>,
    /// The delay of bytes, by tokio's clock. Bytes stay in order.
    pub delay: Duration,
    /// The seed of random behaviour, if enabled. Reads and writes then transfer fewer bytes, writes sometimes
    /// block although capacity is left, and delays vary between zero and `delay`.
    pub random_seed: Option<u64>,
}

impl Default for PipeFaults {
    fn default() -> Self {
        Self {
            max_read_bytes: usize::MAX,
            max_write_bytes: usize::MAX,
            capacity: 256 * 1024,
            cut_after: None,
            cut: Cut::End,
            flipped_bit: None,
            delay: Duration::ZERO,
            random_seed: None,
        }
    }
}

/// How a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Cut {
    /// As if the peer closed its socket: reads reach the end of the stream, and writes fail (broken pipe).
    #[default]
    End,
    /// As if the peer was killed: bytes in transit are lost, and reads and writes fail (connection reset).
    Reset,
    /// As if the network was interrupted: bytes are lost, and writes succeed until the pipe is full.
    Silence,
}

#[derive(Debug)]
pub(crate) struct PipeEnd {
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
}

/// A handle that can break a pipe. It does not keep the pipe open.
#[derive(Debug)]
pub(crate) struct Breaker(Weak<Direction>, Weak<Direction>);

#[derive(Debug)]
struct Direction {
    faults: PipeFaults,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: VecDeque<u8>,
    /// The times at which bytes become readable, and how many. Empty if bytes are not delayed.
    arrivals: VecDeque<(Instant, usize)>,
    timer: Option<Pin<Box<Sleep>>>,
    accepted_bytes: u64,
    /// The number of bytes lost by [`Cut::Silence`]. They still use capacity, as in a kernel.
    lost_bytes: usize,
    broken: Option<Cut>,
    random: Option<Random>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Creates two connected ends. `first_to_second` applies to the bytes that the first end writes.
pub(crate) fn pipe(first_to_second: PipeFaults, second_to_first: PipeFaults) -> (PipeEnd, PipeEnd) {
    let direction = |faults: PipeFaults| {
        let random = faults.random_seed.map(Random);
        Arc::new(Direction { faults, queue: Mutex::new(Queue { random, ..Queue::default() }) })
    };
    let (forth, back) = (direction(first_to_second), direction(second_to_first));
    let first = PipeEnd { incoming: Arc::clone(&back), outgoing: Arc::clone(&forth) };
    (first, PipeEnd { incoming: forth, outgoing: back })
}

impl PipeEnd {
    pub(crate) fn breaker(&self) -> Breaker {
        Breaker(Arc::downgrade(&self.outgoing), Arc::downgrade(&self.incoming))
    }

    pub(super) fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        let mut queue = lock(&self.incoming.queue);
        if queue.broken == Some(Cut::Reset) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let available = queue.readable_bytes();
        if available == 0 {
            return Ok(if queue.is_at_end() { Some(0) } else { None });
        }
        let mut left = queue.transfer_size(self.incoming.faults.max_read_bytes.min(available));
        let mut got = 0;
        for slice in &mut buf.io_slices() {
            let n = slice.len().min(left);
            for (to, from) in slice.iter_mut().zip(queue.bytes.drain(..n)) {
                *to = from;
            }
            left -= n;
            got += n;
        }
        queue.remove_arrivals(got);
        wake(&mut queue.writer);
        // The buffer may have had no space: see `ReadBuf::io_slices`.
        Ok((got > 0).then_some(got))
    }

    pub(super) fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        let faults = self.outgoing.faults;
        while !transmit.is_empty() {
            let mut queue = lock(&self.outgoing.queue);
            match queue.broken {
                Some(Cut::End) => return Err(io::ErrorKind::BrokenPipe.into()),
                Some(Cut::Reset) => return Err(io::ErrorKind::ConnectionReset.into()),
                None | Some(Cut::Silence) => {}
            }
            let space = faults.capacity.saturating_sub(queue.queued_bytes()).min(faults.max_write_bytes);
            if space == 0 {
                return Ok(Progress::Blocked);
            }
            let space = queue.transfer_size(space);
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let (mut written, before) = (0, queue.bytes.len());
            for slice in slices.iter().take(used) {
                let n = slice.len().min(space - written);
                queue.put(slice.get(..n).unwrap_or_default(), &faults);
                written += n;
            }
            let was_reset = queue.broken == Some(Cut::Reset);
            // The subtraction saturates, because a reset clears the queue.
            let queued = queue.bytes.len().saturating_sub(before);
            queue.add_arrival(queued, faults.delay);
            wake(&mut queue.reader);
            let must_stop = queue.random.as_mut().is_some_and(|random| random.below(4) == 0);
            drop(queue);
            transmit.advance(written);
            if was_reset {
                lock(&self.incoming.queue).cut(Cut::Reset);
            }
            if must_stop {
                // This simulates a full socket. The pipe is still writable, so that the driver continues.
                return Ok(if transmit.is_empty() { Progress::Done } else { Progress::Blocked });
            }
        }
        Ok(Progress::Done)
    }

    pub(super) fn shut_down_write(&self) {
        lock(&self.outgoing.queue).cut(Cut::End);
    }

    pub(super) fn shut_down_socket(&self) {
        for direction in [&self.incoming, &self.outgoing] {
            lock(&direction.queue).cut(Cut::End);
        }
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = lock(&self.incoming.queue);
        if queue.readable_bytes() > 0 || queue.is_at_end() {
            return Poll::Ready(Ok(()));
        }
        if let Some((at, _)) = queue.arrivals.front().copied() {
            let timer = queue.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
        }
        queue.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = lock(&self.outgoing.queue);
        if queue.is_closed() || queue.queued_bytes() < self.outgoing.faults.capacity {
            return Poll::Ready(Ok(()));
        }
        queue.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.shut_down_socket();
    }
}

impl Breaker {
    pub(crate) fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Breaks both directions now. Returns `false` if both ends were already dropped.
    pub(crate) fn cut(&self, how: Cut) -> bool {
        let directions = [self.0.upgrade(), self.1.upgrade()];
        for direction in directions.iter().flatten() {
            lock(&direction.queue).cut(how);
        }
        directions.iter().any(Option::is_some)
    }
}

impl Queue {
    fn put(&mut self, bytes: &[u8], faults: &PipeFaults) {
        let cut = faults.cut_after.filter(|_| self.broken.is_none());
        let before_cut = cut.map_or(u64::MAX, |cut| cut.saturating_sub(self.accepted_bytes));
        let (before_cut, rest) =
            bytes.split_at(bytes.len().min(usize::try_from(before_cut).unwrap_or(usize::MAX)));
        if self.broken.is_none() {
            let start = self.bytes.len();
            self.bytes.extend(before_cut);
            let flip = faults
                .flipped_bit
                .and_then(|bit| Some((bit % 8, (bit / 8).checked_sub(self.accepted_bytes)?)));
            if let Some((bit, at)) = flip.filter(|(_, at)| *at < before_cut.len() as u64)
                && let Some(byte) = self.bytes.get_mut(start + at as usize)
            {
                *byte ^= 1 << bit;
            }
            self.accepted_bytes += before_cut.len() as u64;
        } else if self.broken == Some(Cut::Silence) {
            self.lost_bytes += before_cut.len();
        }
        if !rest.is_empty() {
            self.cut(faults.cut);
            if self.broken == Some(Cut::Silence) {
                self.lost_bytes += rest.len();
            }
            // With other cuts, the rest is simply dropped, like bytes that a system could not deliver.
        }
    }

    /// Records the time at which the last `count` queued bytes become readable.
    fn add_arrival(&mut self, count: usize, delay: Duration) {
        if count == 0 || delay.is_zero() {
            return;
        }
        let delay = match &mut self.random {
            Some(random) => delay.mul_f64(random.fraction()),
            None => delay,
        };
        let at = Instant::now() + delay;
        let at = self.arrivals.back().map_or(at, |(last, _)| at.max(*last));
        self.arrivals.push_back((at, count));
    }

    fn readable_bytes(&self) -> usize {
        if self.arrivals.is_empty() {
            return self.bytes.len();
        }
        let now = Instant::now();
        self.arrivals.iter().take_while(|(at, _)| *at <= now).map(|(_, bytes)| bytes).sum()
    }

    /// Removes the arrival times of the first `count` bytes, which were read.
    fn remove_arrivals(&mut self, mut count: usize) {
        while let Some((_, first)) = self.arrivals.front_mut() {
            if *first > count {
                *first -= count;
                return;
            }
            count -= *first;
            self.arrivals.pop_front();
        }
    }

    /// Breaks the pipe. A pipe that is already broken does not change, except that a reset replaces an end.
    fn cut(&mut self, how: Cut) {
        if self.broken.is_none() || how == Cut::Reset && self.broken == Some(Cut::End) {
            self.broken = Some(how);
        }
        match self.broken {
            Some(Cut::Reset) => {
                self.bytes.clear();
                self.arrivals.clear();
            }
            Some(Cut::Silence) => {
                // Bytes in transit are lost, too.
                let in_transit = self.bytes.len() - self.readable_bytes();
                self.bytes.truncate(self.bytes.len() - in_transit);
                self.lost_bytes += in_transit;
                let now = Instant::now();
                self.arrivals.retain(|(at, _)| *at <= now);
            }
            None | Some(Cut::End) => {}
        }
        wake(&mut self.reader);
        wake(&mut self.writer);
    }

    fn is_closed(&self) -> bool {
        matches!(self.broken, Some(Cut::End | Cut::Reset))
    }

    fn is_at_end(&self) -> bool {
        self.broken == Some(Cut::Reset) || self.broken == Some(Cut::End) && self.bytes.is_empty()
    }

    fn queued_bytes(&self) -> usize {
        self.bytes.len() + self.lost_bytes
    }

    /// Returns how many of `max` bytes a read or write transfers. The result is 0 only if `max` is 0.
    fn transfer_size(&mut self, max: usize) -> usize {
        match &mut self.random {
            // One byte, few bytes and many bytes are equally likely.
            Some(random) => match random.below(3) {
                0 => max.min(1),
                1 => max.min(1 + random.below(16) as usize),
                _ => max.min(1 + random.below(max as u64) as usize),
            },
            None => max,
        }
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
