//! A connection of the ring, and its buffers that are lent to the kernel.
//!
//! A buffer is moved into the connection before its address is taken, and leaves it after its completion was
//! seen. `ring` explains why that is required.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};
use std::{io, mem};

use giop_proto::Loan;
use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::{PIECE_HEADER_LEN, ReadBuf};
use io_uring::{opcode, squeue, types};

use crate::transport::uring::ring::Vectors;

/// The maximum number of slices of one vectored write.
pub(super) const VECTORS: usize = 64;

/// The maximum number of bytes of one write, including a chain of vectored ones. Progress is invisible until
/// the write completes. A peer at the minimum rate of 64 KiB a second must be able to receive it within the
/// 30 s after which a connection counts as stalled.
pub(super) const MAX_WRITE: usize = 30 * (64 << 10);

/// The minimum number of bytes of a zero-copy write. Pinning pages makes smaller ones slower.
const ZERO_COPY_MIN: usize = 256 << 10;

/// The maximum time that the kernel may hold the pages of such a write. The next write waits for them, so
/// zero-copy gains nothing on a slow path.
const ZERO_COPY_KEEPS: Duration = Duration::from_millis(1);

/// The flag that requests a usage report (`IORING_SEND_ZC_REPORT_USAGE`), and the one in it that reports a
/// copy (`IORING_NOTIF_USAGE_ZC_COPIED`).
const REPORT_USAGE: u16 = 1 << 3;
const COPIED: u32 = 1 << 31;

/// `IORING_RECVSEND_POLL_FIRST`: waits for readiness of the socket before the first attempt.
pub(super) const POLL_FIRST: u16 = 1;

/// The maximum number of vectored writes of one chain.
pub(super) const CHAIN: usize = 4;

/// The number of low bits of the user data that hold the kind of operation. The other bits hold the index of
/// the connection.
pub(super) const KIND_BITS: u32 = 3;
pub(super) const READ: u64 = 0;
pub(super) const HEADER: u64 = 1;
/// The first write of a chain. The following ones add their position.
pub(super) const WRITE: u64 = 2;
/// A cancellation. Its result is ignored.
pub(super) const CANCEL: u64 = 7;

/// The index of a connection in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Index(pub(super) u32);

/// A connection and its operations in the kernel.
pub(super) struct Conn {
    pub(super) fd: OwnedFd,
    pub(super) pool: Arc<BufferPool>,
    pub(super) submitted: Arc<AtomicU64>,
    pub(super) waker: Option<Waker>,
    pub(super) read: Read,
    pub(super) header: Header,
    pub(super) write: Write,
    /// The buffer into which the next header is received.
    pub(super) next: Box<[u8; PIECE_HEADER_LEN]>,
    pub(super) vectors: Option<Box<Vectors>>,
    pub(super) zero_copy: ZeroCopy,
    /// It is closed: pending operations are cancelled, and no new ones start.
    pub(super) released: bool,
    /// Its handle was dropped: the connection is dropped with its last operation.
    pub(super) dropped: bool,
}

pub(super) enum Read {
    Idle,
    /// The kernel writes into it.
    Lent(ReadBuf),
    Done(ReadBuf, io::Result<usize>),
}

pub(super) enum Header {
    Idle,
    /// The kernel writes into the connection's `next`.
    Lent,
    Done(io::Result<usize>),
}

pub(super) enum Write {
    Idle,
    /// The kernel reads from it.
    Lent(Transmit, Chain),
    Done(Transmit, io::Result<()>),
}

/// The state of zero-copy for large writes. The first one of a connection tries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZeroCopy {
    Untried,
    On,
    Off,
}

/// Writes that are submitted together, each linked to the next. The chain has one completion: that of its
/// last write, or of the first one that falls short. Writes after that one are dropped without a completion.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    /// The number of bytes of each write.
    pub(super) len: [usize; CHAIN],
    /// The number of writes.
    pub(super) count: usize,
    /// The start time of a zero-copy write. It has a second completion, when the kernel releases the pages.
    pub(super) zero_copy: Option<Instant>,
    /// The result of its first completion.
    pub(super) sent: Option<i32>,
}

impl Conn {
    pub(super) fn is_lent(&self) -> bool {
        self.is_reading() || self.is_writing()
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.read, Read::Lent(_)) || matches!(self.header, Header::Lent)
    }

    pub(super) fn is_writing(&self) -> bool {
        matches!(self.write, Write::Lent(..))
    }

    pub(super) fn count(&self, operations: u64) {
        self.submitted.fetch_add(operations, Ordering::Relaxed);
    }

    /// Completes the read. The caller must drop the returned value outside of the lock, because that may run
    /// code of its owner.
    pub(super) fn read_over(&mut self, result: i32) -> Option<Box<Loan>> {
        if let Read::Lent(buf) = mem::replace(&mut self.read, Read::Idle) {
            if self.released {
                return buf.give_back(&self.pool);
            }
            self.read = Read::Done(buf, outcome(result));
        }
        None
    }

    /// Gives back received bytes that were not taken.
    pub(super) fn clear(&mut self) -> Option<Box<Loan>> {
        match mem::replace(&mut self.read, Read::Idle) {
            Read::Lent(buf) | Read::Done(buf, _) => buf.give_back(&self.pool),
            Read::Idle => None,
        }
    }

    pub(super) fn header_over(&mut self, result: i32) {
        // A header is not received if the read that it is linked to fell short.
        self.header = if result == -libc::ECANCELED { Header::Idle } else { Header::Done(outcome(result)) };
    }

    /// Completes a chain of writes. All writes before the one that completes have succeeded.
    pub(super) fn write_over(&mut self, place: usize, result: i32) {
        let Write::Lent(mut transmit, chain) = mem::replace(&mut self.write, Write::Idle) else { return };
        let refused = [-libc::EOPNOTSUPP, -libc::EINVAL].contains(&result) && chain.zero_copy.is_some();
        if refused {
            self.zero_copy = ZeroCopy::Off;
        }
        let before = chain.len.get(..place).unwrap_or_default().iter().sum::<usize>();
        let outcome = match result {
            _ if refused => Ok(0),
            // The thread that submitted the write has ended.
            result if result == -libc::ECANCELED => Ok(0),
            result => outcome(result),
        };
        transmit.advance(before + outcome.as_ref().map_or(0, |n| *n));
        if !self.released {
            self.write = Write::Done(transmit, outcome.map(drop));
        }
    }

    /// Records that the bytes are sent while the kernel still holds their pages.
    pub(super) fn write_sent(&mut self, result: i32) {
        if let Write::Lent(_, chain) = &mut self.write {
            chain.sent = Some(result);
        }
    }

    /// Completes a zero-copy write. If the kernel copied the pages, or held them too long, the connection
    /// does not use zero-copy again.
    pub(super) fn write_let_go(&mut self, usage: u32) {
        let Write::Lent(_, Chain { zero_copy: Some(since), sent, .. }) = &self.write else { return };
        let gains = usage & COPIED == 0 && since.elapsed() <= ZERO_COPY_KEEPS;
        self.zero_copy = if gains { ZeroCopy::On } else { ZeroCopy::Off };
        self.write_over(0, sent.unwrap_or(0));
    }

    /// Moves the bytes to be written into the connection and creates the entries that write them: one, or a
    /// chain if there are many pieces. All entries except the last one report no success. The last one starts
    /// when the others have completed.
    pub(super) fn lend(
        &mut self,
        index: Index,
        transmit: Transmit,
        entries: &mut [Option<squeue::Entry>; CHAIN],
    ) {
        let fd = types::Fd(self.fd.as_raw_fd());
        let flags = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
        self.write = Write::Lent(transmit, Chain::default());
        let Write::Lent(transmit, chain) = &mut self.write else { return };
        if let Some(one) = transmit.single() {
            let len = one.len().min(MAX_WRITE);
            let send = opcode::Send::new(fd, one.as_ptr(), len as u32).flags(flags).build();
            *chain = Chain { count: 1, len: [len, 0, 0, 0], ..Chain::default() };
            if let Some(entry) = entries.first_mut() {
                *entry = Some(send.user_data(user_data(index, WRITE)));
            }
        } else {
            let vectors = self.vectors.get_or_insert_with(Vectors::boxed);
            vectors.fill(transmit, chain);
            let large = chain.count == 1 && chain.len.iter().sum::<usize>() >= ZERO_COPY_MIN;
            if large && self.zero_copy != ZeroCopy::Off {
                chain.zero_copy = Some(Instant::now());
            }
            for (place, (entry, message)) in
                entries.iter_mut().zip(&vectors.messages).take(chain.count).enumerate()
            {
                let send = match chain.zero_copy {
                    None => opcode::SendMsg::new(fd, message).flags(flags as u32).build(),
                    Some(_) => {
                        opcode::SendMsgZc::new(fd, message).flags(flags as u32).ioprio(REPORT_USAGE).build()
                    }
                };
                let send = send.user_data(user_data(index, WRITE + place as u64));
                let silent = squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS;
                *entry = Some(if place + 1 < chain.count { send.flags(silent) } else { send });
            }
        }
        let count = chain.count as u64;
        self.count(count);
    }
}

impl Conn {
    /// Discards bytes that the peer has not received, and resets the connection. A zero-copy write cannot be
    /// cancelled. While the peer does not read, the kernel would hold its bytes until the connection is gone.
    pub(super) fn reset(&self) {
        // This fails for sockets other than TCP, which have no zero-copy writes.
        let _ = rustix::net::connect_unspec(&self.fd);
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        drop(self.clear());
    }
}

/// Creates an entry that receives up to `len` bytes of a header.
pub(super) fn receive_header(index: Index, conn: &mut Conn, len: usize) -> squeue::Entry {
    let len = len.min(PIECE_HEADER_LEN);
    opcode::Recv::new(types::Fd(conn.fd.as_raw_fd()), conn.next.as_mut_ptr(), len as u32)
        .build()
        .user_data(user_data(index, HEADER))
}

/// Creates an entry that cancels an operation.
pub(super) fn cancellation(index: Index, kind: u64) -> squeue::Entry {
    let cancel = opcode::AsyncCancel::new(user_data(index, kind)).build();
    cancel.flags(squeue::Flags::SKIP_SUCCESS).user_data(CANCEL)
}

pub(super) fn user_data(index: Index, kind: u64) -> u64 {
    u64::from(index.0) << KIND_BITS | kind
}

fn outcome(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

/// Returns the error of a connection whose ring has ended.
pub(super) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the io_uring of the connection's runtime is gone")
}
