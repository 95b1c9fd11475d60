//! Reads and writes of TCP and Unix sockets. They clear tokio's readiness as soon as the socket is empty or
//! full. This saves a system call that would fail.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, retry_on_intr};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::transport::calls;
use crate::transport::outcome::Progress;

/// Reads once, like [`super::Socket::try_read`].
pub(super) fn try_read(stream: &TcpStream, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
    let mut got = None;
    let outcome = stream.try_io(Interest::READABLE, || {
        loop {
            match read(stream, buf) {
                // The buffer has no space: see `ReadBuf::io_slices`.
                Ok(None) => return Ok(()),
                Ok(Some((n, space))) => {
                    got = Some(n);
                    // A short read has emptied the socket. The error clears tokio's readiness.
                    return if n < space && n > 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) };
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    });
    match (got, outcome) {
        (Some(n), _) => Ok(Some(n)),
        (None, Err(e)) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
        (None, _) => Ok(None),
    }
}

/// Reads once. Returns the number of bytes and the size of the buffer, or `None` if the buffer has no space.
/// Calls `readv` only if the buffer has two parts, because `read` costs less.
#[inline]
fn read(stream: &TcpStream, buf: &mut ReadBuf) -> rustix::io::Result<Option<(usize, usize)>> {
    let slices = &mut buf.io_slices();
    let space = slices.iter().map(|slice| slice.len()).sum();
    let n = match slices {
        _ if space == 0 => return Ok(None),
        [into, next] if next.is_empty() => calls::read(stream, into)?,
        both => calls::read_vectored(stream, both)?,
    };
    Ok(Some((n, space)))
}

/// Reads repeatedly until bytes arrive or `max_time` has passed. Does not update tokio's readiness.
pub(super) fn spin_read(
    stream: &TcpStream,
    buf: &mut ReadBuf,
    max_time: Duration,
) -> io::Result<Option<usize>> {
    let begun = Instant::now();
    loop {
        match read(stream, buf) {
            Ok(got) => return Ok(got.map(|(n, _)| n)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if begun.elapsed() < max_time => std::hint::spin_loop(),
            Err(Errno::AGAIN) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Blocks the thread until the socket can be read or written, as requested, or until `max_time` has passed.
pub(super) fn wait(stream: &TcpStream, read: bool, write: bool, max_time: Duration) -> io::Result<()> {
    let mut events = PollFlags::empty();
    events.set(PollFlags::IN, read);
    events.set(PollFlags::OUT, write);
    let max_time = Timespec::try_from(max_time).map_err(|_| io::ErrorKind::InvalidInput)?;
    match rustix::event::poll(&mut [PollFd::new(stream, events)], Some(&max_time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Writes until everything is written or the socket blocks: one slice by `send`, several by `writev`.
pub(super) fn try_write(stream: &TcpStream, transmit: &mut Transmit) -> io::Result<Progress> {
    while !transmit.is_empty() {
        let mut written = None;
        let outcome = stream.try_io(Interest::WRITABLE, || {
            let (n, len) = write(stream, transmit)?;
            written = Some(n);
            if n < len { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match (written, outcome) {
            (Some(n), outcome) => {
                transmit.advance(n);
                if outcome.is_err() {
                    return Ok(Progress::Blocked);
                }
            }
            (None, Err(e)) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
            (None, _) => return Ok(Progress::Blocked),
        }
    }
    Ok(Progress::Done)
}

/// Writes like [`try_write`], but does not ask tokio whether the socket is ready.
pub(super) fn write_now(stream: &TcpStream, transmit: &mut Transmit) -> io::Result<Progress> {
    while !transmit.is_empty() {
        match write(stream, transmit) {
            Ok((n, _)) => transmit.advance(n),
            Err(Errno::AGAIN) => return Ok(Progress::Blocked),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(Progress::Done)
}

/// Writes once. Returns how many bytes were written, and how many should have been written.
#[inline]
fn write(stream: &TcpStream, transmit: &Transmit) -> rustix::io::Result<(usize, usize)> {
    match transmit.contiguous_bytes() {
        Some(one) => Ok((retry_on_intr(|| calls::write(stream, one))?, one.len())),
        None => write_vectored(stream, transmit),
    }
}

fn write_vectored(stream: &TcpStream, transmit: &Transmit) -> rustix::io::Result<(usize, usize)> {
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    let used = transmit.io_slices(&mut slices);
    let slices = slices.get(..used).unwrap_or_default();
    let written = retry_on_intr(|| calls::write_vectored(stream, slices))?;
    Ok((written, slices.iter().map(|slice| slice.len()).sum()))
}
