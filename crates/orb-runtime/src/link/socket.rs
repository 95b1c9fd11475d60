//! System calls: one `readv` and one `writev`, each told to tokio in the way that saves the failing second call.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::MutexGuard;

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;
use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::io::Interest;

use super::{Link, State};

/// How far a write came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of it is written.
    Done,
    /// The socket takes no more now.
    Blocked,
}

impl Link {
    /// Reads once. `Ok(None)`: nothing there.
    pub(super) fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        let room = buf.capacity();
        let mut got = None;
        let outcome = self.stream.try_io(Interest::READABLE, || {
            loop {
                // One plain read costs the kernel less than a vector of one.
                let outcome = match &mut buf.io_slices() {
                    [into, next] if next.is_empty() => rustix::io::read(self.stream.as_fd(), &mut **into),
                    both => rustix::io::readv(self.stream.as_fd(), both),
                };
                match outcome {
                    Ok(n) => {
                        got = Some(n);
                        // A short read has emptied the socket: saying so here spares the read that would fail.
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

    /// Writes until everything is written or the socket blocks.
    fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        while !transmit.is_empty() {
            let mut wrote = None;
            let outcome = self.stream.try_io(Interest::WRITABLE, || {
                let mut slices = [IoSlice::new(&[]); MAX_SLICES];
                let used = transmit.io_slices(&mut slices);
                let slices = slices.get(..used).unwrap_or_default();
                let len: usize = slices.iter().map(|s| s.len()).sum();
                loop {
                    let outcome = match slices {
                    [one] => rustix::net::send(self.stream.as_fd(), one, SendFlags::NOSIGNAL),
                    many => rustix::io::writev(self.stream.as_fd(), many),
                };
                match outcome {
                        Ok(n) => {
                            wrote = Some(n);
                            return if n < len { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) };
                        }
                        Err(Errno::INTR) => {}
                        Err(e) => return Err(e.into()),
                    }
                }
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

    /// Writes what is queued, unless somebody writes already: that one goes on with it.
    pub(super) fn flush<'a>(&'a self, mut state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Progress) {
        if state.writing {
            return (state, Progress::Done);
        }
        state.writing = true;
        let mut rounds = 0;
        loop {
            let mut transmit = state.tx.take();
            drop(state);
            let outcome = self.try_write(&mut transmit);
            state = self.lock();
            state.tx.commit(transmit);
            let progress = match outcome {
                Ok(Progress::Done) if !state.tx.is_empty() && rounds < 4 => {
                    rounds += 1;
                    continue;
                }
                Ok(Progress::Done) => {
                    if !state.tx.is_empty() {
                        state.wake_driver();
                    }
                    Progress::Done
                }
                Ok(Progress::Blocked) => {
                    state.wake_driver();
                    Progress::Blocked
                }
                Err(error) => {
                    state.fail(error);
                    Progress::Done
                }
            };
            state.writing = false;
            if state.tx.backlog() < super::BACKLOG {
                for waker in state.room.drain(..) {
                    waker.wake();
                }
            }
            return (state, progress);
        }
    }
}
