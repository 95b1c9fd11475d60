//! The state machine of a GIOP connection for the zorb ORB, without any input or output of its own (sans-IO).
//!
//! A [`Connection`] converts between bytes and requests or replies. It uses no sockets, clocks or tasks. A
//! driver reads from and writes to the socket, passes in the current time, and receives [`Event`]s. The
//! driver may be a task, a blocked thread, or a test that connects two machines in memory.
#![forbid(unsafe_code)]

pub mod calls;
mod connection;
mod error;
mod event;
mod fragments;
mod frame;
mod hits;
mod limits;
mod message;
pub mod outbox;
pub mod pool;
pub mod receive;
mod request_budget;
mod serving;
mod stats;

pub use calls::CallId;
pub use connection::{
    Config, Connection, GLASSFISH_FRAGMENT_SIZE, IncomingStream, IncrementalMessage, IncrementalReply, Input,
    Lifecycle, Output, Peer, PendingCall, ReplyRoom, ServedRequest, StreamId, UnfinishedRequest,
};
pub use error::{
    CallError, CallErrorKind, CloseReason, IoFailure, PeerRefusal, ProtocolError, SentPart, SlowPeer,
};
pub use event::Event;
pub use hits::{Limit, LimitHits};
pub use limits::{Limits, LimitsError, Role, later};
pub use message::{Arguments, IncomingLocate, IncomingRequest, RawBody, Reply};
pub use outbox::Transmit;
pub use pool::BufferPool;
pub use receive::{AlignedBuffer, Chunk, DepositTarget, Loan, LoanReturn, ReadBuf, StreamSelector};
pub use request_budget::RequestBudget;
pub use serving::ServeToken;
pub use stats::Stats;
