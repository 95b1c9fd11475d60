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
mod load;
mod message;
pub mod outbox;
pub mod pool;
pub mod receive;
mod serving;
mod stats;

pub use calls::CallId;
pub use connection::{
    Config, Connection, GLASSFISH_FRAGMENT, IncomingStream, Input, Lifecycle, OutgoingFlow, Output, Peer,
    PendingCall, ReplyFlow, ReplyRoom, ServedRequest, StreamOf, UnfinishedRequest,
};
pub use error::{CallError, CallErrorKind, CloseReason, IoFailure, ProtocolError, Refused, Sent, SlowPeer};
pub use event::Event;
pub use hits::{Limit, LimitHits};
pub use limits::{Limits, LimitsError, Role, later};
pub use load::Load;
pub use message::{Arguments, IncomingLocate, IncomingRequest, RawBody, Reply};
pub use outbox::Transmit;
pub use pool::BufferPool;
pub use receive::{AlignedBuffer, Chunk, DepositTarget, Loan, ReadBuf, Returned, Streams};
pub use serving::ServeToken;
pub use stats::Stats;
