//! The results of reads and writes, and what several transports do alike at the end.

use std::io;
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};

use giop_proto::Loan;
use giop_proto::receive::{PIECE_HEADER_LEN, ReadBuf};
use tokio::net::TcpStream;

/// The result of writing until the socket blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    Blocked,
}

#[cfg_attr(
    not(all(feature = "uring", target_os = "linux")),
    expect(dead_code, reason = "only the feature `uring` creates values")
)]
pub(crate) enum RingRead {
    Idle,
    Pending,
    /// A read into the buffer has completed, with this number of bytes. 0 bytes mean the end of the stream.
    Read(ReadBuf, io::Result<usize>),
    /// The first bytes of the next message were received, and their number.
    Header([u8; PIECE_HEADER_LEN], usize),
    /// The stream has ended, or reading failed.
    Ended(io::Result<()>),
}

/// The condition that completes a read into a buffer over a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadCompletion {
    AnyBytes,
    LowWater,
    /// If the buffer is the deposit target of a message, all its bytes and then one header, else any bytes.
    Message,
}

pub(crate) fn shut_down(stream: &TcpStream, direction: Shutdown) {
    // Ignore the error of a socket that is already disconnected.
    let _ = socket2::SockRef::from(stream).shutdown(direction);
}

/// Drops memory that servants lent for incoming bytes. Catches panics of their code.
#[cold]
#[expect(clippy::vec_box, reason = "loans are boxed everywhere, so that moving them is cheap")]
pub(crate) fn drop_loans(loans: Vec<Box<Loan>>) {
    for loan in loans {
        if catch_unwind(AssertUnwindSafe(|| drop(loan))).is_err() {
            tracing::warn!(target: "zorb", "a deposit target panicked when it was dropped");
        }
    }
}
