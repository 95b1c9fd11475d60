//! A connection on an io_uring. The module `ring` documents which buffers the kernel uses, and how long.

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
pub(super) const MAX_VECTORS: usize = 64;

/// The maximum number of bytes of one write or chain. At 64 KiB per second, a peer receives them within 30 s.
/// After this time without progress, the default of `Limits::write_timeout`, a connection is closed.
pub(super) const MAX_WRITE_BYTES: usize = 30 * (64 << 10);

/// The minimum size of a zero-copy write. For smaller writes, pinning pages costs more than copying.
const MIN_ZERO_COPY_BYTES: usize = 256 << 10;
/// The maximum time for which the kernel may hold the pages of a zero-copy write.
const MAX_ZERO_COPY_HOLD: Duration = Duration::from_millis(1);
/// `IORING_SEND_ZC_REPORT_USAGE` requests a usage report of a zero-copy write.
const REPORT_USAGE: u16 = 1 << 3;
/// `IORING_NOTIF_USAGE_ZC_COPIED` in a usage report means that the kernel has copied the bytes.
const USAGE_COPIED: u32 = 1 << 31;
/// `IORING_RECVSEND_POLL_FIRST` makes the kernel wait until the socket is ready before the first attempt.
pub(super) const POLL_FIRST: u16 = 1;
/// The maximum number of writes of a chain.
pub(super) const MAX_CHAIN_LEN: usize = 4;
/// In the user data of an entry, the lowest bits are the kind of operation. The others are the [`ConnIndex`].
pub(super) const KIND_BITS: u32 = 3;
/// The kind of a read into a receive buffer.
pub(super) const READ: u64 = 0;
/// The kind of a read of a message header.
pub(super) const HEADER: u64 = 1;
/// The kind of the first write of a chain. Further writes add their position in the chain to it.
pub(super) const WRITE: u64 = 2;
/// The kind of a cancellation. The result of a cancellation is ignored.
pub(super) const CANCEL: u64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnIndex(pub(super) u32);

pub(super) struct RingConnection {
    pub(super) fd: OwnedFd,
    pub(super) pool: Arc<BufferPool>,
    pub(super) submissions: Arc<AtomicU64>,
    pub(super) waker: Option<Waker>,
    pub(super) read: ReadState,
    pub(super) header: HeaderState,
    pub(super) write: WriteState,
    pub(super) next_header: Box<[u8; PIECE_HEADER_LEN]>,
    pub(super) vectors: Option<Box<Vectors>>,
    pub(super) zero_copy: ZeroCopy,
    /// Whether the connection is closed. Its pending operations are then cancelled, and no others start.
    pub(super) is_closed: bool,
    /// Whether the `UringSocket` was dropped. If so, this is dropped after the last operation.
    pub(super) is_released: bool,
}

pub(super) enum ReadState {
    Idle,
    InKernel(ReadBuf),
    Done(ReadBuf, io::Result<usize>),
}

pub(super) enum HeaderState {
    Idle,
    InKernel,
    Done(io::Result<usize>),
}

pub(super) enum WriteState {
    Idle,
    InKernel(Transmit, Chain),
    Done(Transmit, io::Result<()>),
}

/// Whether large writes of a connection use zero-copy. The first large write tries zero-copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZeroCopy {
    Untried,
    On,
    Off,
}

/// Writes that are submitted together, each linked to the next one.
///
/// The kernel reports only one completion of a chain: of the first incomplete write, or else of the last one.
/// It drops the writes after an incomplete one.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    /// The number of bytes of each write.
    pub(super) sizes: [usize; MAX_CHAIN_LEN],
    pub(super) count: usize,
    /// The start time of a zero-copy write, which completes when it is sent, and when its pages are released.
    pub(super) zero_copy_start: Option<Instant>,
    /// The result of the first completion of a zero-copy write.
    pub(super) sent_result: Option<i32>,
}

impl RingConnection {
    pub(super) fn new(fd: OwnedFd, pool: Arc<BufferPool>, submissions: Arc<AtomicU64>) -> Self {
        Self {
            fd,
            pool,
            submissions,
            waker: None,
            read: ReadState::Idle,
            header: HeaderState::Idle,
            write: WriteState::Idle,
            next_header: Box::new([0; PIECE_HEADER_LEN]),
            vectors: None,
            zero_copy: ZeroCopy::Untried,
            is_closed: false,
            is_released: false,
        }
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.read, ReadState::InKernel(_)) || matches!(self.header, HeaderState::InKernel)
    }

    pub(super) fn is_writing(&self) -> bool {
        matches!(self.write, WriteState::InKernel(..))
    }

    pub(super) fn count_submitted(&self, operations: u64) {
        self.submissions.fetch_add(operations, Ordering::Relaxed);
    }

    /// Completes the read. If the connection is closed, returns memory that a servant has lent. This memory
    /// must be dropped without the lock, because that may run code of the servant.
    pub(super) fn complete_read(&mut self, result: i32) -> Option<Box<Loan>> {
        if let ReadState::InKernel(buf) = mem::replace(&mut self.read, ReadState::Idle) {
            if self.is_closed {
                return buf.give_back(&self.pool);
            }
            self.read = ReadState::Done(buf, outcome(result));
        }
        None
    }

    /// Releases the read buffer, even if it contains received bytes. Returns memory that a servant has lent.
    pub(super) fn release_read_buffer(&mut self) -> Option<Box<Loan>> {
        match mem::replace(&mut self.read, ReadState::Idle) {
            ReadState::InKernel(buf) | ReadState::Done(buf, _) => buf.give_back(&self.pool),
            ReadState::Idle => None,
        }
    }

    pub(super) fn complete_header(&mut self, result: i32) {
        // The kernel cancels the read of the header if the read to which it is linked is incomplete.
        self.header =
            if result == -libc::ECANCELED { HeaderState::Idle } else { HeaderState::Done(outcome(result)) };
    }

    /// Completes a chain of writes with the result of the write at `position`. Earlier writes have succeeded.
    pub(super) fn complete_write(&mut self, position: usize, result: i32) {
        let WriteState::InKernel(mut transmit, chain) = mem::replace(&mut self.write, WriteState::Idle)
        else {
            return;
        };
        let is_unsupported =
            [-libc::EOPNOTSUPP, -libc::EINVAL].contains(&result) && chain.zero_copy_start.is_some();
        if is_unsupported {
            self.zero_copy = ZeroCopy::Off;
        }
        let before = chain.sizes.get(..position).unwrap_or_default().iter().sum::<usize>();
        let outcome = match result {
            _ if is_unsupported => Ok(0),
            // The thread that submitted the write has ended. The caller repeats the write.
            result if result == -libc::ECANCELED => Ok(0),
            result => outcome(result),
        };
        transmit.advance(before + outcome.as_ref().map_or(0, |n| *n));
        if !self.is_closed {
            self.write = WriteState::Done(transmit, outcome.map(drop));
        }
    }

    /// Records that the bytes of a zero-copy write are sent, but that their pages are still in use.
    pub(super) fn record_sent(&mut self, result: i32) {
        if let WriteState::InKernel(_, chain) = &mut self.write {
            chain.sent_result = Some(result);
        }
    }

    /// Completes a zero-copy write. If the pages were copied or held too long, zero-copy is not used again.
    pub(super) fn complete_zero_copy(&mut self, usage: u32) {
        let WriteState::InKernel(_, Chain { zero_copy_start: Some(start), sent_result, .. }) = &self.write
        else {
            return;
        };
        let is_faster = usage & USAGE_COPIED == 0 && start.elapsed() <= MAX_ZERO_COPY_HOLD;
        self.zero_copy = if is_faster { ZeroCopy::On } else { ZeroCopy::Off };
        self.complete_write(0, sent_result.unwrap_or(0));
    }

    /// Moves the bytes into the connection, and creates the entries that write them. Many slices need several
    /// entries, which are linked. Only the last entry reports success.
    pub(super) fn prepare_write(
        &mut self,
        index: ConnIndex,
        transmit: Transmit,
        entries: &mut [Option<squeue::Entry>; MAX_CHAIN_LEN],
    ) {
        let fd = types::Fd(self.fd.as_raw_fd());
        let flags = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
        self.write = WriteState::InKernel(transmit, Chain::default());
        let WriteState::InKernel(transmit, chain) = &mut self.write else { return };
        if let Some(one) = transmit.contiguous_bytes() {
            let len = one.len().min(MAX_WRITE_BYTES);
            let send = opcode::Send::new(fd, one.as_ptr(), len as u32).flags(flags).build();
            *chain = Chain { count: 1, sizes: [len, 0, 0, 0], ..Chain::default() };
            if let Some(entry) = entries.first_mut() {
                *entry = Some(send.user_data(user_data(index, WRITE)));
            }
        } else {
            let vectors = self.vectors.get_or_insert_with(Vectors::boxed);
            vectors.fill(transmit, chain);
            let is_large = chain.count == 1 && chain.sizes.iter().sum::<usize>() >= MIN_ZERO_COPY_BYTES;
            if is_large && self.zero_copy != ZeroCopy::Off {
                chain.zero_copy_start = Some(Instant::now());
            }
            for (position, (entry, message)) in
                entries.iter_mut().zip(&vectors.messages).take(chain.count).enumerate()
            {
                let send = match chain.zero_copy_start {
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
        self.count_submitted(count);
    }

    /// Resets the connection. This discards unreceived bytes of a zero-copy write, which cannot be cancelled.
    pub(super) fn reset(&self) {
        // This fails for sockets other than TCP. These do not support zero-copy.
        let _ = rustix::net::connect_unspec(&self.fd);
    }
}

impl Drop for RingConnection {
    fn drop(&mut self) {
        drop(self.release_read_buffer());
    }
}

/// Creates the entry that receives the first `len` bytes of the next message.
pub(super) fn header_read_entry(index: ConnIndex, conn: &mut RingConnection, len: usize) -> squeue::Entry {
    let len = len.min(PIECE_HEADER_LEN);
    opcode::Recv::new(types::Fd(conn.fd.as_raw_fd()), conn.next_header.as_mut_ptr(), len as u32)
        .build()
        .user_data(user_data(index, HEADER))
}

/// Creates the entry that cancels an operation of this kind.
pub(super) fn cancellation_entry(index: ConnIndex, kind: u64) -> squeue::Entry {
    let cancel = opcode::AsyncCancel::new(user_data(index, kind)).build();
    cancel.flags(squeue::Flags::SKIP_SUCCESS).user_data(CANCEL)
}

pub(super) fn user_data(index: ConnIndex, kind: u64) -> u64 {
    u64::from(index.0) << KIND_BITS | kind
}

fn outcome(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

/// Returns the error for a connection that is closed, or whose ring has ended.
pub(super) fn ring_ended_error() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the connection is closed, or its io_uring has ended")
}
