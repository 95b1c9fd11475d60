//! [`Event`]: what a connection reports to its driver.

use crate::calls::CallId;
use crate::message::{IncomingLocate, IncomingRequest};
use crate::serving::ServeToken;

/// An event that a connection reports to its driver.
#[derive(Debug)]
pub enum Event {
    /// The peer requests an operation. `ServedRequest::send_reply`, `refuse` or `finish` must end it.
    Request(IncomingRequest),
    /// The peer asks for the location of an object. `Connection::send_locate_reply` must answer it.
    Locate(IncomingLocate),
    /// The peer cancelled a request. The request must still be ended, but its reply is not sent.
    Cancelled(ServeToken),
    /// The outcome of this call is available from `PendingCall::take_outcome`.
    Reply(CallId),
    /// The connection is closed, and nothing more is received or sent. This is the last event.
    Closed,
}

/// An event that was not caused by the message that is being processed.
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
