//! System calls on TCP sockets. Each updates tokio's readiness, so that no second call has to fail.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::transport::{Progress, calls};

/// One `read`, or `readv` while a message is deposited. See [`super::Socket::try_read`].
pub(super) fn try_read(stream: &TcpStream, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
    let mut got = None;
    let outcome = stream.try_io(Interest::READABLE, || {
        loop {
            match read(stream, buf) {
                // The buffer has no space: see `ReadBuf::io_slices`.
                Ok(None) => return Ok(()),
                Ok(Some((n, room))) => {
                    got = Some(n);
                    // A short read has emptied the socket: clearing the readiness here saves the read that
                    // would fail.
                    return if n < room && n > 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) };
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

/// Reads once, and returns the number of bytes and the size of the buffer. A plain read costs the kernel less
/// than a vector of one.
#[inline]
fn read(stream: &TcpStream, buf: &mut ReadBuf) -> rustix::io::Result<Option<(usize, usize)>> {
    let slices = &mut buf.io_slices();
    let room = slices.iter().map(|slice| slice.len()).sum();
    let n = match slices {
        _ if room == 0 => return Ok(None),
        [into, next] if next.is_empty() => calls::read(stream, into)?,
        both => calls::read_vectored(stream, both)?,
    };
    Ok(Some((n, room)))
}

/// Reads until bytes arrive, for up to `longest`. Bypasses tokio's readiness, which may be stale afterwards.
/// That costs one failing read.
pub(super) fn spin_read(
    stream: &TcpStream,
    buf: &mut ReadBuf,
    longest: Duration,
) -> io::Result<Option<usize>> {
    let begun = Instant::now();
    loop {
        match read(stream, buf) {
            Ok(got) => return Ok(got.map(|(n, _)| n)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if begun.elapsed() < longest => std::hint::spin_loop(),
            Err(Errno::AGAIN) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Calls `poll` on one socket.
pub(super) fn wait(stream: &TcpStream, read: bool, write: bool, longest: Duration) -> io::Result<()> {
    let mut events = PollFlags::empty();
    events.set(PollFlags::IN, read);
    events.set(PollFlags::OUT, write);
    let longest = Timespec::try_from(longest).map_err(|_| io::ErrorKind::InvalidInput)?;
    match rustix::event::poll(&mut [PollFd::new(stream, events)], Some(&longest)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Calls `send` for one piece, or `writev` for several, until everything is written. See
/// [`super::Socket::try_write`].
pub(super) fn try_write(stream: &TcpStream, transmit: &mut Transmit) -> io::Result<Progress> {
    while !transmit.is_empty() {
        let mut wrote = None;
        let outcome = stream.try_io(Interest::WRITABLE, || {
            let (n, len) = write(stream, transmit)?;
            wrote = Some(n);
            if n < len { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match (wrote, outcome) {
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

/// Writes until everything is written or the socket blocks, bypassing tokio's readiness.
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

/// Makes one system call. Returns the number of written bytes and the number of bytes that were passed to it.
#[inline]
fn write(stream: &TcpStream, transmit: &Transmit) -> rustix::io::Result<(usize, usize)> {
    loop {
        let (written, len) = match transmit.single() {
            Some(one) => (calls::write(stream, one), one.len()),
            None => write_all_pieces(stream, transmit),
        };
        match written {
            Err(Errno::INTR) => {}
            written => return written.map(|n| (n, len)),
        }
    }
}

fn write_all_pieces(stream: &TcpStream, transmit: &Transmit) -> (rustix::io::Result<usize>, usize) {
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    let used = transmit.io_slices(&mut slices);
    let slices = slices.get(..used).unwrap_or_default();
    (calls::write_vectored(stream, slices), slices.iter().map(|slice| slice.len()).sum())
}
