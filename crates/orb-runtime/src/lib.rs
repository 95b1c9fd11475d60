//! References, invocation, connections, transports and dispatch of the zorb ORB, on tokio.
//!
//! The way of a request: a generated stub calls [`private::invoke`]; [`invoke`] binds the reference to a connection and
//! encodes; `link` queues, writes and reads; the machine of `giop-proto` frames; `serve` finds the object and polls
//! the generated skeleton in place. The reply walks back the same way.
#![forbid(unsafe_code)]

pub mod blocking;
mod invoke;
mod link;
mod naming;
mod orb;
mod reference;
mod serve;
pub mod testing;
mod trace;
mod transport;

pub use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
pub use giop_proto::Limits;
pub use orb::{ActivateError, Activation, ArgsError, BuildError, Orb, OrbBuilder, ShutdownReport};
pub use reference::{
    InvalidName, NarrowError, ObjectRef, Reference, ReplyInfo, ResolveError, Retry, SyncScope,
};
pub use serve::{Request, request, try_request};
pub use transport::Peer;

/// What generated code calls. No user names it.
#[doc(hidden)]
pub mod private {
    pub use bytes::Bytes;
    pub use giop_codec::cdr::*;
    pub use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
    pub use giop_codec::{
        __zerocopy as zerocopy, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind,
    };

    pub use crate::invoke::{LocalFuture, LocalServant, Operation, invoke, local, send_oneway};
    pub use crate::reference::{ObjectRef, Reference};
    pub use crate::serve::{
        DispatchSlot, OpTable, Outcome, ServerRequest, Serves, Skeleton, UserException,
        unknown_user_exception,
    };
}
