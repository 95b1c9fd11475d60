//! A connection of the ring, and what the kernel has of it.
//!
//! What is lent to the kernel is moved in here before its address is taken, and given away when its completion was seen:
//! `ring` says why that is needed.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use giop_proto::Loan;
use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::{PIECE_HEADER_LEN, ReadBuf};
use io_uring::{opcode, squeue, types};

use super::ring::Vectors;

/// Slices of one vectored write.
pub(super) const VECTORS: usize = 64;

/// Octets of one write, a chain of vectored ones included. Until it is over nobody sees whether the peer takes anything, so a peer
/// at the least rate of 64 KiB a second must be able to take it within the 30 s after which a connection counts as stalled.
pub(super) const MAX_WRITE: usize = 30 * (64 << 10);

/// Octets of a write that are worth sending without a copy, where that is done: pinning pages has its price.
const ZERO_COPY_MIN: usize = 256 << 10;

/// How long the kernel may keep the pages of such a write. The next one waits for it, so that a long way gains nothing.
const ZERO_COPY_KEEPS: Duration = Duration::from_millis(1);

/// What `IORING_SEND_ZC_REPORT_USAGE` asks for, and `IORING_NOTIF_USAGE_ZC_COPIED` answers.
const REPORT_USAGE: u16 = 1 << 3;
const COPIED: u32 = 1 << 31;

/// `IORING_RECVSEND_POLL_FIRST`: to wait for the socket before asking it.
pub(super) const POLL_FIRST: u16 = 1;

/// Vectored writes of one chain.
pub(super) const CHAIN: usize = 4;

/// What an operation is, in the low bits of its user data. The index of its connection is in the others.
pub(super) const KIND_BITS: u32 = 3;
pub(super) const READ: u64 = 0;
pub(super) const HEADER: u64 = 1;
/// The last write of a chain, and those before it by their place.
pub(super) const WRITE: u64 = 2;
/// A cancellation. Its outcome does not matter.
pub(super) const CANCEL: u64 = 7;

/// A connection's place in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Index(pub(super) u32);

/// A connection and what the kernel has of it.
pub(super) struct Conn {
    pub(super) fd: OwnedFd,
    pub(super) pool: Arc<BufferPool>,
    pub(super) submitted: Arc<AtomicU64>,
    pub(super) waker: Option<Waker>,
    pub(super) read: Read,
    pub(super) header: Header,
    pub(super) write: Write,
    /// Where a next header is received.
    pub(super) next: Box<[u8; PIECE_HEADER_LEN]>,
    pub(super) vectors: Option<Box<Vectors>>,
    pub(super) zero_copy: ZeroCopy,
    /// It is closed: what is under way is cancelled, and nothing new begins.
    pub(super) released: bool,
    /// Its handle is gone: it goes with its last operation.
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

/// Whether large writes are sent without a copy. The first one of a connection tries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZeroCopy {
    Untried,
    On,
    Off,
}

/// Writes that are submitted together, one linked to the next. The chain has one completion: its last write's, or that of the
/// first which fell short, behind which the others are dropped in silence.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    /// Octets of each write.
    pub(super) len: [usize; CHAIN],
    /// Writes in it.
    pub(super) count: usize,
    /// Since when it is sent without a copy. Then there is a second completion, when the kernel lets go of the pages.
    pub(super) zero_copy: Option<Instant>,
    /// Its first completion.
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

    /// What is returned is to be dropped where code of its owner may run.
    pub(super) fn read_over(&mut self, result: i32) -> Option<Box<Loan>> {
        if let Read::Lent(buf) = mem::replace(&mut self.read, Read::Idle) {
            if self.released {
                return buf.give_back(&self.pool);
            }
            self.read = Read::Done(buf, outcome(result));
        }
        None
    }

    /// Gives back what was received and nobody took.
    pub(super) fn clear(&mut self) -> Option<Box<Loan>> {
        match mem::replace(&mut self.read, Read::Idle) {
            Read::Lent(buf) | Read::Done(buf, _) => buf.give_back(&self.pool),
            Read::Idle => None,
        }
    }

    pub(super) fn header_over(&mut self, result: i32) {
        // It is not received where the read that it is linked to fell short.
        self.header = if result == -libc::ECANCELED { Header::Idle } else { Header::Done(outcome(result)) };
    }

    /// Takes in the completion of a chain of writes. All writes before the one that completes succeeded.
    pub(super) fn write_over(&mut self, place: usize, result: i32) {
        let Write::Lent(mut transmit, chain) = mem::replace(&mut self.write, Write::Idle) else { return };
        let refused = [-libc::EOPNOTSUPP, -libc::EINVAL].contains(&result) && chain.zero_copy.is_some();
        if refused {
            self.zero_copy = ZeroCopy::Off;
        }
        let before = chain.len.get(..place).unwrap_or_default().iter().sum::<usize>();
        let outcome = match result {
            _ if refused => Ok(0),
            // The thread that submitted it has ended.
            result if result == -libc::ECANCELED => Ok(0),
            result => outcome(result),
        };
        transmit.advance(before + outcome.as_ref().map_or(0, |n| *n));
        if !self.released {
            self.write = Write::Done(transmit, outcome.map(drop));
        }
    }

    /// Octets are sent, but the kernel still has their pages.
    pub(super) fn write_sent(&mut self, result: i32) {
        if let Write::Lent(_, chain) = &mut self.write {
            chain.sent = Some(result);
        }
    }

    /// The kernel lets go of pages, and says whether it copied them after all: then the connection never tries again.
    pub(super) fn write_let_go(&mut self, usage: u32) {
        let Write::Lent(_, Chain { zero_copy: Some(since), sent, .. }) = &self.write else { return };
        let gains = usage & COPIED == 0 && since.elapsed() <= ZERO_COPY_KEEPS;
        self.zero_copy = if gains { ZeroCopy::On } else { ZeroCopy::Off };
        self.write_over(0, sent.unwrap_or(0));
    }

    /// Moves the octets to be written in, and makes the entries that write them: one, or a chain of them where there are many
    /// pieces. All but a chain's last are silent in success: the last one starts when they are over.
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
    /// Throws away what the peer has not taken, and tells it so. A write without a copy can not be cancelled: the kernel keeps its
    /// octets until the peer's system has them, for as long as the peer does not read, unless there is no connection any more.
    pub(super) fn reset(&self) {
        // Only sockets of TCP can do that, and only they have such writes.
        let _ = rustix::net::connect_unspec(&self.fd);
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        drop(self.clear());
    }
}

/// Receives up to `len` octets of a header.
pub(super) fn receive_header(index: Index, conn: &mut Conn, len: usize) -> squeue::Entry {
    let len = len.min(PIECE_HEADER_LEN);
    opcode::Recv::new(types::Fd(conn.fd.as_raw_fd()), conn.next.as_mut_ptr(), len as u32)
        .build()
        .user_data(user_data(index, HEADER))
}

/// Gives an operation up.
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

/// The ring ended before its connections.
pub(super) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the io_uring of the connection's runtime is gone")
}
