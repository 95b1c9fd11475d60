//! An in-memory stream with the faults of a real one.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;

use super::Progress;

/// What an in-memory pipe does to the octets of one direction.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PipeFaults {
    /// The most octets that one read takes (1: a byte at a time).
    pub read_max: usize,
    /// The most octets that one write takes.
    pub write_max: usize,
    /// Octets that wait in the pipe before writes block.
    pub capacity: usize,
    /// The connection breaks after this many octets: the reader sees what came before, then the end of the stream.
    pub cut_after: Option<u64>,
}

impl Default for PipeFaults {
    fn default() -> Self {
        Self { read_max: usize::MAX, write_max: usize::MAX, capacity: 256 * 1024, cut_after: None }
    }
}

/// One end of a pipe.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
}

#[derive(Debug)]
struct Direction {
    faults: PipeFaults,
    lane: Mutex<Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    octets: VecDeque<u8>,
    passed: u64,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Two connected ends; `there` is what befalls the octets that the first end writes.
pub(crate) fn pipe(there: PipeFaults, back: PipeFaults) -> (PipeEnd, PipeEnd) {
    let direction = |faults| Arc::new(Direction { faults, lane: Mutex::new(Lane::default()) });
    let (there, back) = (direction(there), direction(back));
    let first = PipeEnd { incoming: Arc::clone(&back), outgoing: Arc::clone(&there) };
    (first, PipeEnd { incoming: there, outgoing: back })
}

impl PipeEnd {
    pub(super) fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        let mut lane = self.incoming.lock();
        let mut left = self.incoming.faults.read_max.min(lane.octets.len());
        if left == 0 {
            return Ok(if lane.closed { Some(0) } else { None });
        }
        let mut got = 0;
        for slice in &mut buf.io_slices() {
            let n = slice.len().min(left);
            for (to, from) in slice.iter_mut().zip(lane.octets.drain(..n)) {
                *to = from;
            }
            left -= n;
            got += n;
        }
        wake(&mut lane.writer);
        // There may have been no place for it: see `ReadBuf::io_slices`.
        Ok((got > 0).then_some(got))
    }

    pub(super) fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        let faults = self.outgoing.faults;
        while !transmit.is_empty() {
            let mut lane = self.outgoing.lock();
            if lane.closed {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let room = faults.capacity.saturating_sub(lane.octets.len()).min(faults.write_max);
            if room == 0 {
                return Ok(Progress::Blocked);
            }
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let mut wrote = 0;
            for slice in slices.iter().take(used) {
                let n = slice.len().min(room - wrote);
                for octet in slice.iter().take(n) {
                    if faults.cut_after.is_none_or(|cut| lane.passed < cut) {
                        lane.octets.push_back(*octet);
                        lane.passed += 1;
                    } else {
                        lane.closed = true;
                    }
                }
                wrote += n;
            }
            wake(&mut lane.reader);
            drop(lane);
            transmit.advance(wrote);
        }
        Ok(Progress::Done)
    }

    pub(super) fn shut_down_write(&self) {
        let mut lane = self.outgoing.lock();
        lane.closed = true;
        wake(&mut lane.reader);
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut lane = self.incoming.lock();
        if !lane.octets.is_empty() || lane.closed {
            return Poll::Ready(Ok(()));
        }
        lane.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut lane = self.outgoing.lock();
        if lane.closed || lane.octets.len() < self.outgoing.faults.capacity {
            return Poll::Ready(Ok(()));
        }
        lane.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        for direction in [&self.incoming, &self.outgoing] {
            let mut lane = direction.lock();
            lane.closed = true;
            wake(&mut lane.reader);
            wake(&mut lane.writer);
        }
    }
}

impl Direction {
    fn lock(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
