//! Requests that are not handed out, but refused with an exception or dropped.

use giop_codec::Version;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{MessageHeader, MessageType, RequestId, ResponseFlags};

use super::Connection;
use crate::error::{CloseReason, ProtocolError};
use crate::frame::{HEADER_LEN, word_after_header};
use crate::hits::Limit;
use crate::message::RequestError;

/// The refusal of a Request or LocateRequest: see [`Connection::refusal`].
pub(super) struct Refusal<'a> {
    connection: &'a mut Connection,
    header: MessageHeader,
}

impl Connection {
    pub(super) fn refusal(&mut self, header: MessageHeader) -> Refusal<'_> {
        Refusal { connection: self, header }
    }

    pub(super) fn awaits_replies(&self) -> bool {
        self.lifecycle.may_queue() && self.calls.pending() > 0
    }
}

impl Refusal<'_> {
    /// Drops a request that was received while this side is closing.
    ///
    /// CloseConnection will inform the peer that the request was not executed, but it is sent only after this
    /// side has received its own replies. If both sides are closing, each would wait for the other. Therefore
    /// the request is refused immediately if this side awaits replies.
    #[cold]
    pub(super) fn while_closing(&mut self, id: RequestId, response: ResponseFlags) {
        self.connection.output.stats.requests_dropped += 1;
        if self.connection.awaits_replies() && response.expects_reply() {
            self.connection.output.refuse(
                id,
                self.header.version,
                &closing_exception(),
                self.connection.clock.now,
            );
            self.close_if_unread();
        }
    }

    /// Drops a LocateRequest that was received while this side is closing. If this side awaits replies, the
    /// LocateRequest is refused immediately, as a request is. Before GIOP 1.2, there is no suitable refusal.
    #[cold]
    pub(super) fn locate_while_closing(&mut self, id: RequestId) {
        self.connection.output.stats.requests_dropped += 1;
        if self.connection.awaits_replies() && self.header.version >= Version::V1_2 {
            self.connection.output.refuse_locate(
                id,
                self.header.version,
                &closing_exception(),
                self.connection.clock.now,
            );
            self.close_if_unread();
        }
    }

    pub(super) fn first_piece(&mut self, bytes: &[u8]) {
        match (self.header.kind, early_id(&self.header, bytes), word_after_header(self.header.order, bytes)) {
            (MessageType::Request, Some((id, response)), _) => self.while_closing(id, response),
            (MessageType::LocateRequest, _, Some(id)) => self.locate_while_closing(id),
            _ => {}
        }
    }

    /// Refuses a request with an invalid header. If the header does not decode, the id is known only in GIOP
    /// 1.2, where it comes first. Without the id, the connection is closed.
    #[cold]
    pub(super) fn bad_header(&mut self, bytes: &[u8], error: RequestError) {
        match error {
            RequestError::Refused(id, response, exception) => {
                if exception.kind == SystemExceptionKind::ObjectNotExist {
                    self.connection.output.stats.limit_hits.hit(Limit::Fixed); // the key is too long
                }
                self.with_exception(id, response, &exception);
            }
            RequestError::Header(error) => match early_id(&self.header, bytes) {
                Some((id, response)) => {
                    self.connection.output.stats.limit_hits.hit_by(&error);
                    let exception = error.to_system_exception(CompletionStatus::No);
                    self.with_exception(id, response, &exception);
                }
                None => self.connection.close_for_malformed(MessageType::Request, error),
            },
        }
    }

    /// Refuses a GIOP 1.2 request of `size` bytes, of which only the first ones were kept.
    #[cold]
    pub(super) fn oversized(&mut self, bytes: &[u8], size: usize) {
        if let Some((id, response)) = early_id(&self.header, bytes) {
            let limit = self.connection.limits.max_message_size;
            self.connection.output.stats.limit_hits.hit(Limit::MessageSize);
            let exception = SystemException::imp_limit().with_source(ProtocolError::TooLarge { size, limit });
            self.with_exception(id, response, &exception);
        }
    }

    #[cold]
    pub(super) fn with_exception(
        &mut self,
        id: RequestId,
        response: ResponseFlags,
        exception: &SystemException,
    ) {
        self.connection.output.stats.requests_refused += 1;
        if response.expects_reply() {
            self.connection.output.refuse(id, self.header.version, exception, self.connection.clock.now);
            self.close_if_unread();
        }
    }

    fn close_if_unread(&mut self) {
        if self.connection.output.control_backlog > self.connection.limits.max_backlog {
            self.connection.output.stats.limit_hits.hit(Limit::Backlog);
            self.connection.abort(CloseReason::Unread(self.connection.limits.max_backlog));
        }
    }
}

/// Returns the id and response flags of a GIOP 1.2 request, which are at its start.
fn early_id(header: &MessageHeader, bytes: &[u8]) -> Option<(RequestId, ResponseFlags)> {
    if header.version < Version::V1_2 {
        return None;
    }
    let id = word_after_header(header.order, bytes)?;
    let flags = bytes.get(HEADER_LEN + 4)?;
    Some((id, if flags & 1 == 1 { ResponseFlags::Target } else { ResponseFlags::None }))
}

fn closing_exception() -> SystemException {
    SystemException::transient()
        .with_minor(minor::TRANSIENT_DISCARDED)
        .with_reason("the connection is being closed")
}
