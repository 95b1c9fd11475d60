//! The results of reads and writes, and functions that several transports use to shut down.

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
/// The state of the current read of a connection over an io_uring.
pub(crate) enum RingRead {
    /// No read was started.
    Idle,
    Pending,
    /// A read into the buffer has completed, with this number of bytes. 0 bytes mean the end of the stream.
    Read(ReadBuf, io::Result<usize>),
    /// The first bytes of the next message, and how many of them were received.
    Header([u8; PIECE_HEADER_LEN], usize),
    /// The stream has ended, or reading failed.
    Ended(io::Result<()>),
}

/// The condition under which a read into a buffer over an io_uring completes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadCompletion {
    /// Any number of bytes was received.
    AnyBytes,
    /// The low-water mark of the socket is reached (`SO_RCVLOWAT`).
    LowWater,
    /// If the buffer receives the rest of a large message: all its bytes were received. The read of the next
    /// message's header follows automatically. For other buffers: any number of bytes was received.
    Message,
}

pub(crate) fn shut_down(stream: &TcpStream, direction: Shutdown) {
    // Ignore the error of a socket that is already disconnected.
    let _ = socket2::SockRef::from(stream).shutdown(direction);
}

/// Drops memory that servants lent for incoming bytes. Catches panics of the servants' code.
#[cold]
#[expect(clippy::vec_box, reason = "loans are boxed everywhere, so that moving them is cheap")]
pub(crate) fn drop_loans(loans: Vec<Box<Loan>>) {
    for loan in loans {
        if catch_unwind(AssertUnwindSafe(|| drop(loan))).is_err() {
            tracing::warn!(target: "zorb", "a deposit target panicked when it was dropped");
        }
    }
}
