//! The events that a connection reports to its driver.

use crate::calls::CallId;
use crate::message::{IncomingLocate, IncomingRequest};
use crate::serving::ServeToken;

/// An event that a connection reports to its driver.
#[derive(Debug)]
pub enum Event {
    /// The peer requests an operation. The token must be ended by `ServedRequest::send_reply` or
    /// `ServedRequest::finish`.
    Request(IncomingRequest),
    /// The peer asks for the location of an object. The answer is sent by `Connection::send_locate_reply`.
    Locate(IncomingLocate),
    /// The peer cancelled a request that is being served. Its token must still be ended; the reply is not
    /// sent.
    Cancelled(ServeToken),
    /// The outcome of this call is available from `Connection::take_outcome`.
    Reply(CallId),
    /// The connection is closed: nothing more is received or sent. This event occurs once and is the last
    /// one.
    Closed,
}

/// Events that do not result from the current message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notice {
    Reply(CallId),
    Closed,
}

impl From<Notice> for Event {
    fn from(notice: Notice) -> Self {
        match notice {
            Notice::Reply(call) => Self::Reply(call),
            Notice::Closed => Self::Closed,
        }
    }
}
