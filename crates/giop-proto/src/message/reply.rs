//! Replies, in the form in which a connection hands them out to callers.

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
    stream_len: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyHead {
    pub(crate) id: RequestId,
    answer: Answer,
    pub(crate) body_at: u32,
    pub(crate) has_contexts: bool,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Reply(ReplyStatus),
    Locate(LocateStatus),
}

impl ReplyHead {
    #[inline]
    pub(crate) fn decode(header: &MessageHeader, bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut d = decoder(header, bytes);
        if header.kind == MessageType::LocateReply {
            return Self::decode_locate(&mut d);
        }
        let reply = ReplyHeader::decode(&mut d)?;
        enter_body(&mut d);
        Ok(Self {
            id: reply.request_id,
            answer: Answer::Reply(reply.status),
            body_at: narrow(d.position()),
            has_contexts: !reply.contexts.is_empty(),
        })
    }

    #[cold]
    fn decode_locate(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let reply = LocateReplyHeader::decode(d)?;
        let answer = Answer::Locate(reply.status);
        Ok(Self { id: reply.request_id, answer, body_at: narrow(d.position()), has_contexts: false })
    }

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
        settings: MessageSettings,
        stream_len: usize,
    ) -> Self {
        Self {
            body: settings.body(header, message, head.body_at, head.has_contexts),
            answer: head.answer,
            stream_len,
        }
    }

    /// Returns the number of bytes that follow [`message`](Self::message) as a stream: see
    /// `PendingCall::stream_reply`. It is 0 for a complete reply, and `usize::MAX` if the number is unknown.
    #[inline]
    pub fn stream_len(&self) -> usize {
        self.stream_len
    }

    /// Returns the status of the reply, which determines the kind of its body. For a LocateReply, it is the
    /// corresponding status, which is [`NoException`](ReplyStatus::NoException) for both `UNKNOWN_OBJECT` and
    /// `OBJECT_HERE`. [`locate_status`](Self::locate_status) distinguishes them.
    #[inline]
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
    pub fn locate_status(&self) -> Option<LocateStatus> {
        match self.answer {
            Answer::Reply(_) => None,
            Answer::Locate(status) => Some(status),
        }
    }

    /// Decodes the results by `f`. `f` may run twice, which allows sequences of structs to become views of
    /// the message. `pool` must be the pool of the connection's receive buffers.
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

    /// Returns a decoder that is positioned at the first result, with the connection's code sets and limits.
    #[inline]
    pub fn body(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// Returns the service contexts of the reply.
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Reply)
    }

    /// Returns the version of the message.
    pub fn version(&self) -> Version {
        self.body.version
    }

    /// Returns the byte order of the message.
    pub fn order(&self) -> ByteOrder {
        self.body.order
    }

    /// Returns the whole message with its header. The pieces of a fragmented message are joined. Blocks of
    /// bulk data with buffers of their own and bytes that follow as a stream are not included.
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }

    /// Returns whether neither separate blocks nor [fragments](Self::fragment_offsets) affect decoding.
    pub fn is_in_one_piece(&self) -> bool {
        self.body.layout.is_none()
    }

    /// Returns the offsets of the later fragments of a GIOP 1.1 message, if they affect decoding.
    ///
    /// A sender may align the values in each fragment separately, as omniORB does, or in the whole message.
    /// [`body`](Self::body) reads them like omniORB. No other ORB sends such fragments.
    pub fn fragment_offsets(&self) -> &[u32] {
        self.body.fragment_offsets()
    }
}
