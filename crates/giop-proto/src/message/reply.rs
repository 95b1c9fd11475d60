//! Replies as whoever waits gets them.

use bytes::Bytes;
use giop_codec::cdr::Decoder;
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestId,
    ServiceContexts, enter_body,
};
use giop_codec::{ByteOrder, DecodeError, Version};

use super::{Body, Terms, decoder, narrow};
use crate::fragments::Joined;
use crate::pool::BufferPool;

/// The peer's answer to a call: a Reply, or a LocateReply where the call was a LocateRequest.
#[derive(Debug)]
pub struct Reply {
    pub(super) body: Body,
    answer: Answer,
    coming: usize,
}

/// What a reply's header says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyHead {
    pub(crate) id: RequestId,
    answer: Answer,
    /// Where the body begins.
    pub(crate) at: u32,
    pub(crate) has_contexts: bool,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Reply(ReplyStatus),
    Locate(LocateStatus),
}

impl ReplyHead {
    /// Decodes the header of a Reply or a LocateReply.
    #[inline]
    pub(crate) fn decode(header: &MessageHeader, octets: &[u8]) -> Result<Self, DecodeError> {
        let mut d = decoder(header, octets);
        if header.kind == MessageType::LocateReply {
            return Self::decode_locate(&mut d);
        }
        let reply = ReplyHeader::decode(&mut d)?;
        enter_body(&mut d);
        Ok(Self {
            id: reply.request_id,
            answer: Answer::Reply(reply.status),
            at: narrow(d.position()),
            has_contexts: !reply.contexts.is_empty(),
        })
    }

    #[cold]
    fn decode_locate(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let reply = LocateReplyHeader::decode(d)?;
        let (answer, at) = (Answer::Locate(reply.status), narrow(d.position()));
        Ok(Self { id: reply.request_id, answer, at, has_contexts: false })
    }

    /// Whether the body is the results of the operation.
    pub(crate) fn is_result(&self) -> bool {
        matches!(self.answer, Answer::Reply(ReplyStatus::NoException))
    }
}

impl Reply {
    #[inline]
    pub(crate) fn new(
        header: MessageHeader,
        message: Joined,
        head: ReplyHead,
        terms: Terms,
        coming: usize,
    ) -> Self {
        Self { body: terms.body(header, message, head.at, head.has_contexts), answer: head.answer, coming }
    }

    /// The number of bytes that follow those of [`message`](Self::message) as a stream: see `Connection::stream_reply`. 0 for a reply
    /// that has been received whole, `usize::MAX` if the number is not known.
    #[inline]
    #[must_use]
    pub fn coming(&self) -> usize {
        self.coming
    }

    /// What the body is. Of a LocateReply the status that says the same of a request:
    /// [`NoException`](ReplyStatus::NoException) for `UNKNOWN_OBJECT` and `OBJECT_HERE`, so look at
    /// [`locate_status`](Self::locate_status) first.
    #[inline]
    #[must_use]
    pub fn status(&self) -> ReplyStatus {
        match self.answer {
            Answer::Reply(status) => status,
            Answer::Locate(LocateStatus::UnknownObject | LocateStatus::ObjectHere) => {
                ReplyStatus::NoException
            }
            Answer::Locate(LocateStatus::ObjectForward) => ReplyStatus::LocationForward,
            Answer::Locate(LocateStatus::ObjectForwardPerm) => ReplyStatus::LocationForwardPerm,
            Answer::Locate(LocateStatus::SystemException) => ReplyStatus::SystemException,
            Answer::Locate(LocateStatus::NeedsAddressingMode) => ReplyStatus::NeedsAddressingMode,
        }
    }

    /// What a LocateReply says; `None` of a Reply.
    #[must_use]
    pub fn locate_status(&self) -> Option<LocateStatus> {
        match self.answer {
            Answer::Reply(_) => None,
            Answer::Locate(status) => Some(status),
        }
    }

    /// Decodes the results by `f`, which runs twice where that makes views of sequences of structs: `pool` is the one the
    /// connection reads into.
    ///
    /// # Errors
    /// What `f` returns.
    #[inline]
    pub fn decode<R>(
        mut self,
        pool: &BufferPool,
        f: impl Fn(Decoder<'_>) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        self.body.decode(pool, f)
    }

    /// A decoder at the first result, with the connection's code sets and limits.
    #[inline]
    #[must_use]
    pub fn body(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// What travels beside the results.
    #[must_use]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Reply)
    }

    /// The version of the message.
    #[must_use]
    pub fn version(&self) -> Version {
        self.body.version
    }

    /// The byte order of the message.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.body.order
    }

    /// The whole message, from its message header on. Of a fragmented one, all pieces joined.
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }

    /// Whether its values lie as in any other message: it came in no [fragments](Self::pieces) of GIOP 1.1 that matter, and not block by
    /// block.
    #[must_use]
    pub fn is_in_one_piece(&self) -> bool {
        self.body.pieces.is_none()
    }

    /// Where the second and later pieces of a message start that came in GIOP 1.1 fragments; empty for all messages where that
    /// does not matter.
    ///
    /// Such a message is joined as it came. A sender that aligns values in each fragment by itself, as omniORB does, has put
    /// values behind a joint elsewhere than a sender would that aligns through the whole message;
    /// [`body`](Self::body) reads as omniORB writes, since no other ORB is known to send such fragments.
    #[must_use]
    pub fn pieces(&self) -> &[u32] {
        self.body.fragments()
    }
}
