//! Output: queued data, lent to the writer and committed.

use std::time::Instant;

use giop_codec::cdr::Encoder;
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, MessageHeader, MessageType, RequestId, ServiceContexts, finish_message,
    put_exception_reply, put_message_header,
};
use giop_codec::{ByteOrder, EncodeError, Version};

use super::closing::Phase;
use super::{Connection, Output};
use crate::calls::RequestSpan;
use crate::error::SentPart;
use crate::outbox::{GATHER_MAX, Transmit};

impl Connection {
    /// Lends the next queued batch to a writer. Returns `None` if there is nothing. It must be returned by
    /// [`handle_written`](Self::handle_written) before the next one is taken.
    #[inline]
    pub fn take_transmit(&mut self) -> Option<Transmit> {
        if self.output.tx.is_empty() { None } else { Some(self.output.tx.take()) }
    }

    /// Takes back what was lent to a writer, advanced by the number of bytes that the socket accepted.
    #[inline]
    pub fn handle_written(&mut self, transmit: Transmit, now: Instant) {
        let before = self.output.tx.written();
        self.output.commit(transmit);
        if !self.output.fragment_queue.is_empty() {
            self.feed();
        }
        self.output.report(self.clock.now);
        self.clock.transferred(now);
        let tx = &self.output.tx;
        self.output.timer.wrote(now, tx.written() - before, tx.backlog() > 0);
        if !matches!(self.lifecycle.phase, Phase::Open) {
            self.wrote_while_closing(now);
        }
    }

    /// Returns whether there is something to write.
    #[inline]
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.output.tx.is_empty()
    }
}

impl Output {
    /// Queues a whole message and leaves the encoder empty. The encoder's chunks, and a head over 4 KiB, are
    /// not copied.
    #[inline]
    pub(super) fn queue(&mut self, message: &mut Encoder, locate: bool, now: Instant) -> RequestSpan {
        debug_assert!(self.partial_request.is_none(), "a message in the middle of a request");
        let start = self.tx.queued();
        self.copied += message.copied() as u64;
        if message.chunk_count() == 0 && message.head().len() <= GATHER_MAX {
            self.tx.push(message.head());
        } else {
            message.drain_into(&mut self.pieces);
            for piece in self.pieces.drain(..) {
                self.tx.push_chunk(piece);
            }
        }
        self.version = message.version();
        message.reset(message.order(), message.version());
        self.count_message(now);
        RequestSpan { start, end: self.tx.queued(), locate, apart: false }
    }

    /// Queues an answer to the peer.
    #[inline]
    pub(super) fn queue_answer(&mut self, message: &mut Encoder, now: Instant) {
        // Before it is queued, so that it is part of the counted queue.
        self.reply_backlog.add(message.len());
        self.queue(message, false, now);
    }

    /// Queues a message of the connection itself.
    pub(super) fn queue_octets(&mut self, octets: &[u8], now: Instant) {
        debug_assert!(self.partial_request.is_none(), "a message in the middle of a request");
        self.tx.push(octets);
        self.count_message(now);
    }

    /// Counts a queued message.
    #[inline]
    pub(super) fn count_message(&mut self, now: Instant) {
        self.messages += 1;
        self.report(now);
        self.timer.queued(now);
    }

    /// Queues a message that consists of a header only.
    #[cold]
    pub(super) fn queue_bare(&mut self, kind: MessageType, version: Version, now: Instant) {
        self.queue_octets(&MessageHeader::new(version, ByteOrder::NATIVE, kind).encode(), now);
    }

    #[cold]
    pub(super) fn queue_cancel(&mut self, id: RequestId, now: Instant) {
        let mut header = MessageHeader::new(self.version, ByteOrder::NATIVE, MessageType::CancelRequest);
        header.size = 4;
        let [a, b, c, d] = id.0.to_ne_bytes();
        let mut octets = [0; MessageHeader::LEN + 4];
        for (to, from) in octets.iter_mut().zip(header.encode().into_iter().chain([a, b, c, d])) {
            *to = from;
        }
        self.cancels += 1;
        self.queue_octets(&octets, now);
    }

    /// Answers a request with a system exception raised by the connection itself.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        id: RequestId,
        version: Version,
        exception: &SystemException,
        now: Instant,
    ) {
        self.queue_own(version, now, |e| put_exception_reply(e, id, exception, &ServiceContexts::EMPTY));
    }

    /// Answers a LocateRequest with a system exception. Before GIOP 1.2 the only possible answer is that the
    /// object is unknown.
    #[cold]
    pub(super) fn refuse_locate(
        &mut self,
        id: RequestId,
        version: Version,
        exception: &SystemException,
        now: Instant,
    ) {
        use giop_codec::cdr::CdrEncode as _;
        self.queue_own(version, now, |e| {
            let size_at = put_message_header(e, MessageType::LocateReply);
            if version < Version::V1_2 {
                LocateReplyHeader { request_id: id, status: LocateStatus::UnknownObject }.encode(e)?;
            } else {
                LocateReplyHeader { request_id: id, status: LocateStatus::SystemException }.encode(e)?;
                exception.encode(e)?;
            }
            finish_message(e, size_at).map(drop)
        });
    }

    fn queue_own(
        &mut self,
        version: Version,
        now: Instant,
        put: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
    ) {
        self.control_encoder.reset(ByteOrder::NATIVE, version);
        // In the middle of a request nothing can be queued, so there is no answer.
        if self.partial_request.is_none() && put(&mut self.control_encoder).is_ok() {
            self.tx.push(self.control_encoder.head());
            self.control_backlog += self.control_encoder.head().len();
            self.reply_backlog.add(self.control_encoder.head().len());
            self.count_message(now);
        }
    }

    /// Returns how much of a queued message the socket may have accepted.
    pub(super) fn sent(&self, place: RequestSpan) -> SentPart {
        let reached = self.tx.reached();
        if reached <= place.start {
            SentPart::Nothing
        } else if reached < place.end {
            SentPart::Partly
        } else {
            SentPart::Whole
        }
    }

    /// Returns whether enough is queued that waiting for more gains nothing: 64 KiB of small messages, or 256
    /// KiB in all.
    #[inline]
    #[must_use]
    pub fn is_worth_a_write(&self) -> bool {
        self.tx.is_worth_a_write()
    }

    /// Takes back what was lent to a writer.
    #[inline]
    fn commit(&mut self, transmit: Transmit) {
        self.tx.commit(transmit);
        if self.tx.backlog() == 0 {
            self.control_backlog = 0;
        }
        self.reply_backlog.written(self.tx.written(), self.tx.queued());
    }

    /// Removes a message from the end of the queue. Returns `false` if that is not possible any more.
    pub(super) fn unqueue(&mut self, start: u64, end: u64) -> bool {
        let removed = self.tx.unqueue(start, end);
        self.unqueued += u64::from(removed);
        self.timer.unqueued(self.tx.backlog() > 0);
        removed
    }
}
