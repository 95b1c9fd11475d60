//! Output: queued data that is lent to a writer.

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
use crate::frame::header_with_id;
use crate::outbox::{MAX_COPIED_PIECE_SIZE, Transmit};

impl Connection {
    /// Lends the next queued batch to a writer. Returns `None` if nothing is queued. The batch must be
    /// returned to [`handle_written`](Self::handle_written) before the next one is taken.
    #[inline]
    pub fn take_transmit(&mut self) -> Option<Transmit> {
        if self.output.tx.is_empty() { None } else { Some(self.output.tx.take()) }
    }

    /// Takes back a batch, for which [`Transmit::advance`] must have counted the written bytes.
    #[inline]
    pub fn handle_written(&mut self, transmit: Transmit, now: Instant) {
        let before = self.output.tx.written();
        self.output.take_back_transmit(transmit);
        if !self.output.fragment_queue.is_empty() {
            self.queue_pieces();
        }
        self.output.report(self.clock.now);
        self.clock.record_transfer(now);
        let tx = &self.output.tx;
        self.output.timer.record_write(now, tx.written() - before, tx.backlog() > 0);
        if !matches!(self.lifecycle.phase, Phase::Open) {
            self.handle_written_while_closing(now);
        }
    }

    /// Returns whether there is something to write.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.output.tx.is_empty()
    }
}

impl Output {
    /// Queues a message and empties the encoder. Only small messages and parts of messages are copied.
    #[inline]
    pub(super) fn queue(&mut self, message: &mut Encoder, is_locate: bool, now: Instant) -> RequestSpan {
        debug_assert!(self.partial_request.is_none(), "no message may be queued in the middle of a request");
        let start = self.tx.queued();
        self.stats.bytes_copied_out += message.copied() as u64;
        if message.chunk_count() == 0 && message.head().len() <= MAX_COPIED_PIECE_SIZE {
            self.tx.push(message.head());
        } else {
            message.drain_into(&mut self.outgoing_chunks);
            for piece in self.outgoing_chunks.drain(..) {
                self.tx.push_chunk(piece);
            }
        }
        self.version = message.version();
        message.reset(message.order(), message.version());
        self.count_message(now);
        RequestSpan { start, end: self.tx.queued(), is_locate, is_interleaved: false }
    }

    #[inline]
    pub(super) fn queue_answer(&mut self, message: &mut Encoder, now: Instant) {
        // The answer is counted first, because `queue` reports the queue to the pool.
        self.reply_backlog.add(message.len());
        self.queue(message, false, now);
    }

    pub(super) fn queue_bytes(&mut self, bytes: &[u8], now: Instant) {
        debug_assert!(self.partial_request.is_none(), "no message may be queued in the middle of a request");
        self.tx.push(bytes);
        self.count_message(now);
    }

    #[inline]
    pub(super) fn count_message(&mut self, now: Instant) {
        self.stats.messages_out += 1;
        self.report(now);
        self.timer.start(now);
    }

    #[cold]
    pub(super) fn queue_cancel(&mut self, id: RequestId, now: Instant) {
        let header = MessageHeader {
            size: 4,
            ..MessageHeader::new(self.version, ByteOrder::NATIVE, MessageType::CancelRequest)
        };
        self.stats.cancels_out += 1;
        self.queue_bytes(&header_with_id(header, id), now);
    }

    #[cold]
    pub(super) fn refuse(
        &mut self,
        id: RequestId,
        version: Version,
        exception: &SystemException,
        now: Instant,
    ) {
        self.queue_control_answer(version, now, |e| {
            put_exception_reply(e, id, exception, &ServiceContexts::EMPTY)
        });
    }

    /// Refuses a LocateRequest. Before GIOP 1.2, the only possible refusal is an unknown object.
    #[cold]
    pub(super) fn refuse_locate(
        &mut self,
        id: RequestId,
        version: Version,
        exception: &SystemException,
        now: Instant,
    ) {
        use giop_codec::cdr::CdrEncode as _;
        self.queue_control_answer(version, now, |e| {
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

    fn queue_control_answer(
        &mut self,
        version: Version,
        now: Instant,
        put: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
    ) {
        self.control_encoder.reset(ByteOrder::NATIVE, version);
        // Nothing can be queued in the middle of a request. In that case, the message is not answered.
        if self.partial_request.is_none() && put(&mut self.control_encoder).is_ok() {
            self.tx.push(self.control_encoder.head());
            self.control_backlog += self.control_encoder.head().len();
            self.reply_backlog.add(self.control_encoder.head().len());
            self.count_message(now);
        }
    }

    /// Returns whether so much is queued that waiting for more would not make the write more efficient.
    #[inline]
    pub fn is_worth_a_write(&self) -> bool {
        self.tx.is_worth_a_write()
    }

    #[inline]
    fn take_back_transmit(&mut self, transmit: Transmit) {
        self.tx.commit(transmit);
        if self.tx.backlog() == 0 {
            self.control_backlog = 0;
        }
        self.reply_backlog.set_written(self.tx.written(), self.tx.queued());
    }

    /// Removes a message from the end of the queue. Returns `false` if that is no longer possible.
    pub(super) fn unqueue(&mut self, start: u64, end: u64) -> bool {
        let removed = self.tx.unqueue(start, end);
        self.stats.requests_unqueued += u64::from(removed);
        self.timer.stop_unless(self.tx.backlog() > 0);
        removed
    }
}
