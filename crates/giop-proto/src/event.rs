//! What a connection tells whoever drives it.

use crate::calls::CallId;
use crate::message::{IncomingLocate, IncomingRequest};
use crate::serving::ServeToken;

/// What a connection tells whoever drives it.
#[derive(Debug)]
pub enum Event {
    /// The peer wants an operation carried out. Its token ends by `Connection::send_reply` or
    /// `Connection::finish_request`.
    Request(IncomingRequest),
    /// The peer asks where an object is. The answer goes by `Connection::send_locate_reply`.
    Locate(IncomingLocate),
    /// The peer gave up a request that is being served. Its token still has to be ended; the reply is not sent.
    Cancelled(ServeToken),
    /// The outcome of this call is there: `Connection::take_outcome`.
    Reply(CallId),
    /// The connection is closed: nothing more comes or goes. Comes once, as the last.
    Closed,
}

/// Events that are not made from the message at hand.
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
