//! A connection of a ring, with the buffers that the kernel uses. `ring` has the rules for their ownership.

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

pub(super) const MAX_VECTORS: usize = 64;

/// The maximum number of bytes of one write or chain. At the minimum rate of 64 KiB per second, a peer
/// receives it within 30 s, when a connection without progress counts as stalled.
pub(super) const MAX_WRITE: usize = 30 * (64 << 10);

/// The minimum size of a zero-copy write. For smaller ones, pinning pages costs more than copying.
const MIN_ZERO_COPY_SIZE: usize = 256 << 10;
/// The maximum time for which the kernel may hold the pages of a zero-copy write.
const MAX_ZERO_COPY_HOLD: Duration = Duration::from_millis(1);
/// `IORING_SEND_ZC_REPORT_USAGE`: requests a usage report of a zero-copy write.
const REPORT_USAGE: u16 = 1 << 3;
/// `IORING_NOTIF_USAGE_ZC_COPIED`: in the usage report, tells that the kernel has copied the bytes.
const USAGE_COPIED: u32 = 1 << 31;
/// `IORING_RECVSEND_POLL_FIRST`: waits until the socket is ready before the first attempt.
pub(super) const POLL_FIRST: u16 = 1;
pub(super) const MAX_CHAIN: usize = 4;
/// The number of low bits of an entry's user data for the kind of operation. The others are the index.
pub(super) const KIND_BITS: u32 = 3;
pub(super) const READ: u64 = 0;
pub(super) const HEADER: u64 = 1;
/// The kind of the first write of a chain. The kinds of further writes are this one plus their position.
pub(super) const WRITE: u64 = 2;
/// The kind of a cancellation, whose result is ignored.
pub(super) const CANCEL: u64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Index(pub(super) u32);

pub(super) struct Conn {
    pub(super) fd: OwnedFd,
    pub(super) pool: Arc<BufferPool>,
    pub(super) submitted: Arc<AtomicU64>,
    pub(super) waker: Option<Waker>,
    pub(super) read: Read,
    pub(super) header: Header,
    pub(super) write: Write,
    pub(super) next_header: Box<[u8; PIECE_HEADER_LEN]>,
    pub(super) vectors: Option<Box<Vectors>>,
    pub(super) zero_copy: ZeroCopy,
    /// Whether the connection is closed. Then pending operations are cancelled, and no new operation starts.
    pub(super) is_closed: bool,
    /// Whether the handle was dropped. Then the connection is dropped after its last operation.
    pub(super) handle_dropped: bool,
}

pub(super) enum Read {
    Idle,
    InKernel(ReadBuf),
    Done(ReadBuf, io::Result<usize>),
}

pub(super) enum Header {
    Idle,
    InKernel,
    Done(io::Result<usize>),
}

pub(super) enum Write {
    Idle,
    InKernel(Transmit, Chain),
    Done(Transmit, io::Result<()>),
}

/// Whether large writes of a connection use zero-copy. The first large write tries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZeroCopy {
    Untried,
    On,
    Off,
}

/// Writes that are submitted together, each linked to the next one. The chain has only one completion: that
/// of the last write, or of the first incomplete write. Later writes are then dropped without a completion.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    pub(super) len: [usize; MAX_CHAIN],
    pub(super) count: usize,
    /// The start time of a zero-copy write, which completes twice: also when the pages are released.
    pub(super) zero_copy: Option<Instant>,
    /// The result of the first completion of a zero-copy write.
    pub(super) sent: Option<i32>,
}

impl Conn {
    pub(super) fn new(fd: OwnedFd, pool: Arc<BufferPool>, submitted: Arc<AtomicU64>) -> Self {
        Self {
            fd,
            pool,
            submitted,
            waker: None,
            read: Read::Idle,
            header: Header::Idle,
            write: Write::Idle,
            next_header: Box::new([0; PIECE_HEADER_LEN]),
            vectors: None,
            zero_copy: ZeroCopy::Untried,
            is_closed: false,
            handle_dropped: false,
        }
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.read, Read::InKernel(_)) || matches!(self.header, Header::InKernel)
    }

    pub(super) fn is_writing(&self) -> bool {
        matches!(self.write, Write::InKernel(..))
    }

    pub(super) fn count(&self, operations: u64) {
        self.submitted.fetch_add(operations, Ordering::Relaxed);
    }

    /// Completes the read. The returned loan must be dropped without the lock: it may run servants' code.
    pub(super) fn complete_read(&mut self, result: i32) -> Option<Box<Loan>> {
        if let Read::InKernel(buf) = mem::replace(&mut self.read, Read::Idle) {
            if self.is_closed {
                return buf.give_back(&self.pool);
            }
            self.read = Read::Done(buf, outcome(result));
        }
        None
    }

    /// Releases the read buffer, including received bytes that were not taken.
    pub(super) fn clear(&mut self) -> Option<Box<Loan>> {
        match mem::replace(&mut self.read, Read::Idle) {
            Read::InKernel(buf) | Read::Done(buf, _) => buf.give_back(&self.pool),
            Read::Idle => None,
        }
    }

    pub(super) fn complete_header(&mut self, result: i32) {
        // The header is not received if the linked read before it is incomplete.
        self.header = if result == -libc::ECANCELED { Header::Idle } else { Header::Done(outcome(result)) };
    }

    /// Completes a chain of writes with the result of the write at `position`. Earlier ones have succeeded.
    pub(super) fn complete_write(&mut self, position: usize, result: i32) {
        let Write::InKernel(mut transmit, chain) = mem::replace(&mut self.write, Write::Idle) else { return };
        let is_unsupported =
            [-libc::EOPNOTSUPP, -libc::EINVAL].contains(&result) && chain.zero_copy.is_some();
        if is_unsupported {
            self.zero_copy = ZeroCopy::Off;
        }
        let before = chain.len.get(..position).unwrap_or_default().iter().sum::<usize>();
        let outcome = match result {
            _ if is_unsupported => Ok(0),
            // The thread that submitted the write has ended. The write is repeated.
            result if result == -libc::ECANCELED => Ok(0),
            result => outcome(result),
        };
        transmit.advance(before + outcome.as_ref().map_or(0, |n| *n));
        if !self.is_closed {
            self.write = Write::Done(transmit, outcome.map(drop));
        }
    }

    /// Records that the bytes of a zero-copy write are sent, but their pages are still in use.
    pub(super) fn record_sent(&mut self, result: i32) {
        if let Write::InKernel(_, chain) = &mut self.write {
            chain.sent = Some(result);
        }
    }

    /// Completes a zero-copy write. If the pages were copied or held too long, zero-copy is not used again.
    pub(super) fn complete_zero_copy(&mut self, usage: u32) {
        let Write::InKernel(_, Chain { zero_copy: Some(start), sent, .. }) = &self.write else { return };
        let is_faster = usage & USAGE_COPIED == 0 && start.elapsed() <= MAX_ZERO_COPY_HOLD;
        self.zero_copy = if is_faster { ZeroCopy::On } else { ZeroCopy::Off };
        self.complete_write(0, sent.unwrap_or(0));
    }

    /// Moves the bytes into the connection, and creates the entries that write them, which are linked if
    /// there are many slices. Only the last entry reports success.
    pub(super) fn prepare_write(
        &mut self,
        index: Index,
        transmit: Transmit,
        entries: &mut [Option<squeue::Entry>; MAX_CHAIN],
    ) {
        let fd = types::Fd(self.fd.as_raw_fd());
        let flags = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
        self.write = Write::InKernel(transmit, Chain::default());
        let Write::InKernel(transmit, chain) = &mut self.write else { return };
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
            let is_large = chain.count == 1 && chain.len.iter().sum::<usize>() >= MIN_ZERO_COPY_SIZE;
            if is_large && self.zero_copy != ZeroCopy::Off {
                chain.zero_copy = Some(Instant::now());
            }
            for (position, (entry, message)) in
                entries.iter_mut().zip(&vectors.messages).take(chain.count).enumerate()
            {
                let send = match chain.zero_copy {
                    None => opcode::SendMsg::new(fd, message).flags(flags as u32).build(),
                    Some(_) => {
                        opcode::SendMsgZc::new(fd, message).flags(flags as u32).ioprio(REPORT_USAGE).build()
                    }
                };
                let send = send.user_data(user_data(index, WRITE + position as u64));
                let linked = squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS;
                *entry = Some(if position + 1 < chain.count { send.flags(linked) } else { send });
            }
        }
        let count = chain.count as u64;
        self.count(count);
    }

    /// Discards bytes that the peer has not received, because a zero-copy write cannot be cancelled.
    pub(super) fn reset(&self) {
        // This fails for other sockets than TCP, which do not support zero-copy.
        let _ = rustix::net::connect_unspec(&self.fd);
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        drop(self.clear());
    }
}

pub(super) fn receive_header(index: Index, conn: &mut Conn, len: usize) -> squeue::Entry {
    let len = len.min(PIECE_HEADER_LEN);
    opcode::Recv::new(types::Fd(conn.fd.as_raw_fd()), conn.next_header.as_mut_ptr(), len as u32)
        .build()
        .user_data(user_data(index, HEADER))
}

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

/// Returns the error for a connection that is closed, or whose ring has ended.
pub(super) fn ring_ended_error() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the connection is closed, or its io_uring has ended")
}
