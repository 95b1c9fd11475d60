//! The sans-IO GIOP connection machine of the zorb ORB.
//!
//! A [`Connection`] turns bytes into requests and replies and back. It knows no socket, no clock, no lock and
//! no task. Its driver reads and writes, passes the current time in, and receives [`Event`]s. The driver may
//! be a task, a blocked thread or a test that joins two machines in memory.
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
    Config, Connection, GLASSFISH_FRAGMENT, IncomingStream, Input, Lifecycle, OutgoingFlow, Output, Peer,
    PendingCall, ReplyFlow, ReplyRoom, ServedRequest, StreamOf, UnfinishedRequest,
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
pub use receive::{AlignedBuffer, Chunk, DepositTarget, Loan, LoanReturn, ReadBuf, Streams};
pub use request_budget::RequestBudget;
pub use serving::ServeToken;
pub use stats::Stats;
