//! Replies, as handed to callers.

use bytes::Bytes;
use giop_codec::cdr::Decoder;
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestId,
    ServiceContexts, enter_body,
};
use giop_codec::{ByteOrder, DecodeError, Version};

use super::{Body, MessageSettings, decoder, narrow};
use crate::frame::JoinedMessage;
use crate::pool::BufferPool;

/// The peer's answer to a call: a Reply, or a LocateReply if the call was a LocateRequest.
#[derive(Debug)]
pub struct Reply {
    pub(super) body: Body,
    answer: Answer,
    coming: usize,
}

/// The contents of a reply's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyHead {
    pub(crate) id: RequestId,
    answer: Answer,
    /// The offset of the body.
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

    /// Returns whether the body holds the results of the operation.
    pub(crate) fn is_result(&self) -> bool {
        matches!(self.answer, Answer::Reply(ReplyStatus::NoException))
    }
}

impl Reply {
    #[inline]
    pub(crate) fn new(
        header: MessageHeader,
        message: JoinedMessage,
        head: ReplyHead,
        terms: MessageSettings,
        coming: usize,
    ) -> Self {
        Self { body: terms.body(header, message, head.at, head.has_contexts), answer: head.answer, coming }
    }

    /// Returns the number of bytes that follow those of [`message`](Self::message) as a stream: see
    /// `Connection::stream_reply`. 0 for a reply that has been received whole, `usize::MAX` if the number is
    /// not known.
    #[inline]
    #[must_use]
    pub fn coming(&self) -> usize {
        self.coming
    }

    /// Returns the kind of the body. For a LocateReply this is the corresponding status of a request.
    /// `UNKNOWN_OBJECT` and `OBJECT_HERE` correspond to [`NoException`](ReplyStatus::NoException), so check
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

    /// Returns the status of a LocateReply; `None` for a Reply.
    #[must_use]
    pub fn locate_status(&self) -> Option<LocateStatus> {
        match self.answer {
            Answer::Reply(_) => None,
            Answer::Locate(status) => Some(status),
        }
    }

    /// Decodes the results by `f`. `f` runs twice if that makes views of sequences of structs. `pool` is the
    /// pool that the connection reads into.
    ///
    /// # Errors
    /// The errors of `f`.
    #[inline]
    pub fn decode<R>(
        mut self,
        pool: &BufferPool,
        f: impl Fn(Decoder<'_>) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        self.body.decode(pool, f)
    }

    /// Returns a decoder at the first result, with the connection's code sets and limits.
    #[inline]
    #[must_use]
    pub fn body(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// Returns the service contexts of the reply.
    #[must_use]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Reply)
    }

    /// Returns the version of the message.
    #[must_use]
    pub fn version(&self) -> Version {
        self.body.version
    }

    /// Returns the byte order of the message.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.body.order
    }

    /// Returns the whole message, from its message header on. For a fragmented message, all pieces are
    /// joined.
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }

    /// Returns whether its values are laid out as in any other message: it was received neither in
    /// [fragments](Self::pieces) of GIOP 1.1 that affect decoding, nor in separate blocks.
    #[must_use]
    pub fn is_in_one_piece(&self) -> bool {
        self.body.pieces.is_none()
    }

    /// Returns the offsets of the second and later pieces of a message that was received in GIOP 1.1
    /// fragments. Empty for all messages in which the fragments do not affect decoding.
    ///
    /// Such a message is joined as it was received. A sender that aligns values in each fragment separately,
    /// as omniORB does, places values after a joint differently from a sender that aligns over the whole
    /// message. [`body`](Self::body) reads them as omniORB writes them, because no other ORB is known to send
    /// such fragments.
    #[must_use]
    pub fn pieces(&self) -> &[u32] {
        self.body.fragments()
    }
}
