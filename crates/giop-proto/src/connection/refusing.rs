//! Requests that are refused by an exception, or dropped, instead of being handed out.

use giop_codec::Version;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{MessageHeader, MessageType, RequestId, ResponseFlags};

use super::Connection;
use crate::error::{CloseReason, ProtocolError};
use crate::frame::{HEADER_LEN, word};
use crate::hits::Limit;
use crate::message::RequestError;

/// The refusal of the message with that header, by [`Connection::refusal`].
pub(super) struct Refusal<'a> {
    connection: &'a mut Connection,
    header: MessageHeader,
}

impl Connection {
    /// Starts the refusal of a Request or LocateRequest.
    pub(super) fn refusal(&mut self, header: MessageHeader) -> Refusal<'_> {
        Refusal { connection: self, header }
    }

    /// Returns whether this side closes and still awaits replies.
    pub(super) fn awaits_replies(&self) -> bool {
        self.lifecycle.may_queue() && self.calls.waiting() > 0
    }
}

impl Refusal<'_> {
    /// Drops a request that was received while this side closes. CloseConnection tells the peer that it was
    /// not executed, but is sent only after this side has its own replies. If both sides waited for that,
    /// neither would end, so in this case the request is refused immediately.
    #[cold]
    pub(super) fn while_closing(&mut self, id: RequestId, response: ResponseFlags) {
        self.connection.stats.dropped += 1;
        if self.connection.awaits_replies() && response.expects_reply() {
            self.connection.output.refuse(id, self.header.version, &closing(), self.connection.clock.now);
            self.bound();
        }
    }

    /// Drops a LocateRequest that was received while this side closes. It is refused only since GIOP 1.2:
    /// earlier versions have no suitable answer.
    #[cold]
    pub(super) fn locate_while_closing(&mut self, id: RequestId) {
        self.connection.stats.dropped += 1;
        if self.connection.awaits_replies() && self.header.version >= Version::V1_2 {
            self.connection.output.refuse_locate(
                id,
                self.header.version,
                &closing(),
                self.connection.clock.now,
            );
            self.bound();
        }
    }

    /// Refuses or drops an unwanted message by its first piece.
    pub(super) fn first_piece(&mut self, octets: &[u8]) {
        match (self.header.kind, early_id(&self.header, octets), word(self.header.order, octets)) {
            (MessageType::Request, Some((id, response)), _) => self.while_closing(id, response),
            (MessageType::LocateRequest, _, Some(id)) => self.locate_while_closing(id),
            _ => {}
        }
    }

    /// Handles a request whose header is invalid. In GIOP 1.2 its id comes first, so that it can be answered.
    #[cold]
    pub(super) fn bad_header(&mut self, octets: &[u8], error: RequestError) {
        match error {
            RequestError::Refused(id, response, exception) => {
                if exception.kind == SystemExceptionKind::ObjectNotExist {
                    self.connection.stats.limits.hit(Limit::Count); // the key exceeds the maximum length
                }
                self.with_exception(id, response, &exception);
            }
            RequestError::Header(error) => match early_id(&self.header, octets) {
                Some((id, response)) => {
                    self.connection.stats.limits.hit_by(&error);
                    let exception = error.system(CompletionStatus::No);
                    self.with_exception(id, response, &exception);
                }
                None => self.connection.malformed(MessageType::Request, error),
            },
        }
    }

    /// Refuses a request that exceeds the maximum size of a message.
    #[cold]
    pub(super) fn oversized(&mut self, octets: &[u8], size: usize) {
        if let Some((id, response)) = early_id(&self.header, octets) {
            let limit = self.connection.limits.max_message_size;
            self.connection.stats.limits.hit(Limit::MessageSize);
            let exception = SystemException::imp_limit().with_source(ProtocolError::TooLarge { size, limit });
            self.with_exception(id, response, &exception);
        }
    }

    /// Answers a request with an exception, unless it is a oneway.
    #[cold]
    pub(super) fn with_exception(
        &mut self,
        id: RequestId,
        response: ResponseFlags,
        exception: &SystemException,
    ) {
        self.connection.stats.refused += 1;
        if response.expects_reply() {
            self.connection.output.refuse(id, self.header.version, exception, self.connection.clock.now);
            self.bound();
        }
    }

    /// Ends the connection if its peer does not read the refusals.
    fn bound(&mut self) {
        if self.connection.output.control_backlog > self.connection.limits.max_backlog {
            self.connection.stats.limits.hit(Limit::Backlog);
            self.connection.abort(CloseReason::Unread(self.connection.limits.max_backlog));
        }
    }
}

/// Returns the id and response flags of a GIOP 1.2 request, which come first.
fn early_id(header: &MessageHeader, octets: &[u8]) -> Option<(RequestId, ResponseFlags)> {
    if header.version < Version::V1_2 {
        return None;
    }
    let id = word(header.order, octets)?;
    let flags = octets.get(HEADER_LEN + 4)?;
    Some((id, if flags & 1 == 1 { ResponseFlags::Target } else { ResponseFlags::None }))
}

fn closing() -> SystemException {
    SystemException::transient()
        .with_minor(minor::TRANSIENT_DISCARDED)
        .with_reason("the connection is being closed")
}
