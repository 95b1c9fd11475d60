//! Large requests and replies that are sent in GIOP 1.2 fragments ("Fragment Message").
//!
//! The first piece of a message is its start, and the other pieces are Fragment messages. Pieces are queued
//! only as the socket accepts earlier ones, so that other messages, and pieces of other messages, can be sent
//! between them. The pieces of a oneway are queued together, so that no later message overtakes it.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::giop::{MessageHeader, MessageType, ReplyHeader, RequestHeader, RequestId};
use giop_codec::{ByteOrder, Version};

use super::{Connection, Outcome, Output};
use crate::calls::{CallId, Calls, RequestSpan};
use crate::error::SentPart;
use crate::frame::{HEADER_LEN, PIECE_HEADER_LEN, header_with_id, word_after_header};
use crate::outbox::{BATCH_SIZE, BULK_BATCH_SIZE, Outbox};
use crate::serving::ServeToken;

/// The minimum size of a piece in bytes: its headers and eight more bytes.
const MIN_PIECE_SIZE: usize = PIECE_HEADER_LEN + 8;

/// The maximum size of a piece in bytes. Its length is encoded in 32 bits.
const MAX_PIECE_SIZE: usize = 1 << 30;

/// The maximum number of complete messages, and also of growing replies, that are sent in pieces at a time.
/// Peers limit the number of incomplete messages that they accept.
const MAX_OPEN_MESSAGES: usize = 4;

/// The maximum size in bytes of a piece of a growing reply, which is sent before it is complete.
const MAX_GROWING_PIECE_SIZE: usize = BATCH_SIZE;

const FLAGS_WORD_AT: usize = 4;

/// If at least this number of bytes is queued for the socket, no further piece is queued.
const MAX_QUEUED_AHEAD_BYTES: usize = BULK_BATCH_SIZE;

#[derive(Debug, Default)]
pub(super) struct FragmentQueue {
    /// The maximum size of a piece in bytes, a multiple of 8. `usize::MAX` disables fragmenting.
    max_piece_size: usize,
    /// The maximum size of a piece for the peer. It also applies to requests that are supplied in parts.
    accepted_piece_size: usize,
    /// Messages whose pieces may be queued, in the order of their next pieces.
    open: VecDeque<FragmentedMessage>,
    /// The number of growing replies in `open`.
    growing_count: usize,
    /// Messages of which nothing is queued. They wait until messages in `open` are complete.
    waiting: VecDeque<FragmentedMessage>,
    /// The number of bytes in all pieces that are not queued, without headers of Fragment messages.
    pub(super) bytes: usize,
    /// The part of `bytes` that belongs to replies.
    pub(super) reply_bytes: usize,
}

#[derive(Debug)]
pub(super) struct FragmentedMessage {
    call: Option<CallId>,
    /// The request that a growing reply answers; `None` for other messages.
    answered_request: Option<ServeToken>,
    id: RequestId,
    order: ByteOrder,
    piece_size: usize,
    /// The size of the first piece in bytes until it is queued, then 0.
    first_size: usize,
    pub(super) unqueued_chunks: VecDeque<Bytes>,
    pub(super) unqueued_len: usize,
    /// True while more of the message will be supplied.
    pub(super) is_growing: bool,
    is_ended: bool,
    start: u64,
    queued_len: u64,
}

/// The pieces of a request that is sent while it is supplied, with no other messages between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestPieces {
    id: RequestId,
    order: ByteOrder,
    piece_size: usize,
    /// The missing bytes of the piece whose header was queued last.
    missing: usize,
    /// The number of the request's bytes in later pieces.
    later_bytes: usize,
}

impl RequestPieces {
    pub(super) fn later_headers_len(&self) -> u64 {
        (self.later_bytes.div_ceil(self.piece_size - PIECE_HEADER_LEN) * PIECE_HEADER_LEN) as u64
    }

    /// Queues the next bytes of the request, and a header before each piece that begins in them.
    pub(super) fn push(&mut self, tx: &mut Outbox, mut bytes: Bytes) {
        while !bytes.is_empty() {
            if self.missing == 0 {
                self.missing = self.later_bytes.min(self.piece_size - PIECE_HEADER_LEN);
                self.later_bytes -= self.missing;
                tx.push(&fragment_header(self.id, self.order, self.missing, self.later_bytes > 0));
            }
            let more = bytes.split_off(self.missing.min(bytes.len()));
            self.missing -= bytes.len();
            tx.push_chunk(bytes);
            bytes = more;
        }
    }
}

impl FragmentQueue {
    /// Lowers the maximum size of pieces to `size` bytes, because the peer accepts no larger messages.
    pub(super) fn limit_piece_size(&mut self, size: usize) {
        self.accepted_piece_size =
            self.accepted_piece_size.min(size.clamp(MIN_PIECE_SIZE, MAX_PIECE_SIZE) & !7);
        self.max_piece_size = self.max_piece_size.min(self.accepted_piece_size);
    }

    pub(super) fn new(size: Option<usize>) -> Self {
        let max_piece_size = size.map_or(usize::MAX, |size| size.clamp(MIN_PIECE_SIZE, MAX_PIECE_SIZE) & !7);
        Self { max_piece_size, accepted_piece_size: usize::MAX, ..Self::default() }
    }

    /// Returns whether a message of this version and of `bytes` bytes is sent in pieces.
    #[inline]
    pub(super) fn is_fragmented(&self, version: Version, bytes: usize) -> bool {
        bytes > self.max_piece_size && version == Version::V1_2
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn subtract(&mut self, fragmented: &FragmentedMessage, bytes: usize) {
        self.bytes -= bytes;
        if fragmented.call.is_none() {
            self.reply_bytes -= bytes;
        }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.waiting.clear();
        (self.growing_count, self.bytes, self.reply_bytes) = (0, 0, 0);
    }

    #[inline]
    pub(super) fn growing_piece_size(&self) -> usize {
        self.max_piece_size.min(MAX_GROWING_PIECE_SIZE)
    }

    #[inline]
    pub(super) fn may_start_growing(&self) -> bool {
        self.growing_count < MAX_OPEN_MESSAGES
    }

    #[inline]
    pub(super) fn has_growing(&self) -> bool {
        self.growing_count > 0
    }

    pub(super) fn growing_reply(&self, token: ServeToken) -> Option<&FragmentedMessage> {
        self.open.iter().find(|fragmented| fragmented.is_growing_reply_to(token))
    }

    /// Appends to the growing reply to this request, which `is_last` ends. Returns whether there is one.
    pub(super) fn append(&mut self, token: ServeToken, bytes: &mut Encoder, is_last: bool) -> bool {
        let is_wanted = |fragmented: &&mut FragmentedMessage| fragmented.is_growing_reply_to(token);
        let Some(fragmented) = self.open.iter_mut().find(is_wanted) else { return false };
        let chunks_before = fragmented.unqueued_chunks.len();
        bytes.drain_part(&mut fragmented.unqueued_chunks);
        let added = fragmented.unqueued_chunks.range(chunks_before..).map(Bytes::len).sum::<usize>();
        fragmented.unqueued_len += added;
        self.bytes += added;
        self.reply_bytes += added;
        fragmented.is_growing = !is_last;
        true
    }

    pub(super) fn add(&mut self, fragmented: FragmentedMessage) {
        self.bytes += fragmented.unqueued_len;
        if fragmented.call.is_none() {
            self.reply_bytes += fragmented.unqueued_len;
        }
        if fragmented.answered_request.is_some() {
            self.growing_count += 1;
            self.open.push_back(fragmented);
        } else if self.open.len() - self.growing_count < MAX_OPEN_MESSAGES {
            self.open.push_back(fragmented);
        } else {
            self.waiting.push_back(fragmented);
        }
    }

    fn take_next(&mut self) -> Option<FragmentedMessage> {
        self.open.pop_front()
    }

    /// Puts a message back after a piece of it was queued. After its last piece, another may start.
    fn put_back_after_piece(&mut self, fragmented: FragmentedMessage) {
        if fragmented.is_ended {
            self.handle_removal(&fragmented);
        } else {
            self.open.push_back(fragmented);
        }
    }

    fn handle_removal(&mut self, fragmented: &FragmentedMessage) {
        match fragmented.answered_request {
            Some(_) => self.growing_count -= 1,
            None => self.open.extend(self.waiting.pop_front()),
        }
    }

    fn has_id(&self, id: RequestId) -> bool {
        self.open.iter().chain(&self.waiting).any(|fragmented| fragmented.id == id)
    }

    fn remove(&mut self, id: RequestId, is_reply: bool) -> Option<FragmentedMessage> {
        let is_wanted = |fragmented: &FragmentedMessage| {
            fragmented.id == id && fragmented.call.is_none() == is_reply && !fragmented.is_growing
        };
        if let Some(at) = self.waiting.iter().position(is_wanted) {
            let fragmented = self.waiting.remove(at)?;
            self.subtract(&fragmented, fragmented.unqueued_len);
            return Some(fragmented);
        }
        self.remove_open(is_wanted)
    }

    pub(super) fn remove_growing(&mut self, token: ServeToken) -> Option<FragmentedMessage> {
        self.remove_open(|fragmented| fragmented.is_growing_reply_to(token))
    }

    fn remove_open(&mut self, is_wanted: impl Fn(&FragmentedMessage) -> bool) -> Option<FragmentedMessage> {
        let at = self.open.iter().position(is_wanted)?;
        let fragmented = self.open.remove(at)?;
        self.subtract(&fragmented, fragmented.unqueued_len);
        self.handle_removal(&fragmented);
        Some(fragmented)
    }
}

impl FragmentedMessage {
    pub(super) fn into_growing_reply(self, token: ServeToken) -> Self {
        Self { answered_request: Some(token), is_growing: true, ..self }
    }

    fn is_growing_reply_to(&self, token: ServeToken) -> bool {
        self.is_growing && self.answered_request == Some(token)
    }

    /// Returns the maximum number of bytes of the message in the next piece.
    fn next_payload(&self) -> usize {
        if self.first_size > 0 { self.first_size } else { self.piece_size - PIECE_HEADER_LEN }
    }

    /// Returns whether the next piece can be queued: it is full, or the end of the message is known.
    fn is_ready(&self) -> bool {
        !self.is_growing || self.unqueued_len > self.next_payload()
    }

    /// Queues the next piece, and returns the number of bytes of the message in it.
    fn queue_piece(&mut self, tx: &mut Outbox) -> usize {
        let before = tx.queued();
        let first_size = std::mem::take(&mut self.first_size);
        let payload = if first_size > 0 {
            self.start = before;
            first_size // the header in it announces more fragments already
        } else {
            let payload = self.unqueued_len.min(self.next_payload());
            let more = self.is_growing || self.unqueued_len > payload;
            tx.push(&fragment_header(self.id, self.order, payload, more));
            self.is_ended = !more;
            payload
        };
        let mut wanted = payload;
        while let Some(mut chunk) = self.unqueued_chunks.pop_front() {
            if chunk.len() > wanted {
                self.unqueued_chunks.push_front(chunk.split_off(wanted));
            }
            wanted -= chunk.len();
            tx.push_chunk(chunk);
            if wanted == 0 {
                break;
            }
        }
        self.unqueued_len -= payload;
        self.queued_len += tx.queued() - before;
        payload
    }

    pub(super) fn is_begun(&self) -> bool {
        self.first_size == 0
    }

    /// Returns whether the queued pieces are contiguous, and nothing was queued after them.
    fn is_contiguous_and_last(&self, tx: &Outbox) -> bool {
        tx.queued().checked_sub(self.start) == Some(self.queued_len)
    }
}

impl Connection {
    #[cold]
    pub(super) fn queue_pieces(&mut self) {
        self.output.queue_pieces(&mut self.calls, self.clock.now);
        if self.output.fragment_queue.is_empty() && !self.lifecycle.hands_out_requests() {
            self.continue_closing();
        }
    }
}

impl Output {
    /// Prepares a request or reply for [`queue_pieces`](Self::queue_pieces). `call` is the call of the
    /// request, or `None` for a reply. Returns `false` if the message must be queued as a whole.
    #[cold]
    pub(super) fn queue_in_pieces(&mut self, call: Option<CallId>, message: &mut Encoder) -> bool {
        let Some(fragmented) =
            self.take_fragmented_message(message, self.fragment_queue.max_piece_size, None)
        else {
            return false;
        };
        message.reset(message.order(), message.version());
        self.fragment_queue.add(FragmentedMessage { call, ..fragmented });
        true
    }

    /// Queues pieces of the messages in turn, until enough bytes are queued for the socket.
    #[cold]
    pub(super) fn queue_pieces(&mut self, calls: &mut Calls<Outcome>, now: Instant) {
        let mut unready_count = 0;
        while self.partial_request.is_none() && self.tx.backlog() < MAX_QUEUED_AHEAD_BYTES {
            let Some(mut fragmented) = self.fragment_queue.take_next() else { break };
            if !fragmented.is_ready() {
                self.fragment_queue.open.push_back(fragmented);
                unready_count += 1;
                if unready_count >= self.fragment_queue.open.len() {
                    break;
                }
                continue;
            }
            unready_count = 0;
            let taken = fragmented.queue_piece(&mut self.tx);
            self.fragment_queue.subtract(&fragmented, taken);
            if let Some(call) = fragmented.call {
                let is_interleaved = !fragmented.is_contiguous_and_last(&self.tx);
                let end = if fragmented.is_ended { self.tx.queued() } else { u64::MAX };
                calls.record_span(
                    call,
                    RequestSpan { start: fragmented.start, end, is_locate: false, is_interleaved },
                );
            } else {
                self.reply_backlog.add(taken);
            }
            self.fragment_queue.put_back_after_piece(fragmented);
            self.count_message(now);
        }
    }

    /// Queues all pieces of a oneway. Returns `None` if the oneway must be queued as a whole.
    #[cold]
    pub(super) fn queue_oneway_in_pieces(&mut self, message: &mut Encoder, now: Instant) -> Option<()> {
        let mut fragmented =
            self.take_fragmented_message(message, self.fragment_queue.max_piece_size, None)?;
        message.reset(message.order(), message.version());
        while !fragmented.is_ended {
            fragmented.queue_piece(&mut self.tx);
            self.count_message(now);
        }
        Some(())
    }

    /// Takes a message from the encoder, to be sent in pieces of at most `piece_size` bytes. The first piece
    /// is larger if the headers do not fit. `body_at` is the offset of the message's body; if it is `None`,
    /// the header is decoded to find the body. The encoder is left empty, and can continue the message.
    ///
    /// Returns `None` if the message is not larger than its first piece, or another one in pieces has its id.
    pub(super) fn take_fragmented_message(
        &mut self,
        message: &mut Encoder,
        piece_size: usize,
        body_at: Option<usize>,
    ) -> Option<FragmentedMessage> {
        debug_assert!(self.partial_request.is_none(), "no message may be queued in the middle of a request");
        let total = message.len();
        let (header, id, first_size) = self.mark_as_first_piece(message, total, piece_size, body_at)?;
        self.stats.bytes_copied_out += message.copied() as u64;
        self.version = message.version();
        let mut unqueued_chunks = VecDeque::new();
        message.drain_part(&mut unqueued_chunks);
        Some(FragmentedMessage {
            call: None,
            answered_request: None,
            id,
            order: header.order,
            piece_size,
            first_size,
            unqueued_chunks,
            unqueued_len: total,
            is_growing: false,
            is_ended: false,
            start: u64::MAX,
            queued_len: 0,
        })
    }

    /// Changes the header to that of a first piece. Returns the header, the id, and the size of the piece.
    fn mark_as_first_piece(
        &self,
        message: &mut Encoder,
        total: usize,
        piece_size: usize,
        body_at: Option<usize>,
    ) -> Option<(MessageHeader, RequestId, usize)> {
        let header = MessageHeader::decode(message.head().first_chunk()?).ok()?;
        let id = word_after_header(header.order, message.head())?;
        let body_at = body_at.or_else(|| find_body(&header, message.head()))?.next_multiple_of(8);
        let first_size = piece_size.max(body_at);
        if first_size >= total || self.fragment_queue.has_id(id) {
            return None;
        }
        let size_in_header = u32::try_from(first_size - HEADER_LEN).ok()?;
        let [_, _, _, _, flagged @ .., _, _, _, _] =
            MessageHeader { more_fragments: true, ..header }.encode();
        let flagged = match header.order {
            ByteOrder::Big => u32::from_be_bytes(flagged),
            ByteOrder::Little => u32::from_le_bytes(flagged),
        };
        message.patch_u32(FLAGS_WORD_AT, flagged);
        message.patch_u32(MessageHeader::SIZE_AT, size_in_header);
        Some((header, id, first_size))
    }

    /// Starts the pieces of a request that lacks `missing` bytes. Returns `None` if it is sent as a whole.
    pub(super) fn begin_pieces(&self, message: &mut Encoder, missing: u64) -> Option<RequestPieces> {
        let piece_size = self.fragment_queue.accepted_piece_size;
        let total = usize::try_from(missing).ok()?.checked_add(message.len())?;
        if total <= piece_size || message.version() != Version::V1_2 {
            return None;
        }
        let (header, id, first_size) = self.mark_as_first_piece(message, total, piece_size, None)?;
        let later_bytes = total - first_size;
        Some(RequestPieces { id, order: header.order, piece_size, missing: first_size, later_bytes })
    }

    /// Stops a request that is sent in pieces, if there is one. Returns the part that the peer receives.
    #[cold]
    pub(super) fn stop_request(&mut self, id: RequestId, now: Instant) -> Option<SentPart> {
        let fragmented = self.fragment_queue.remove(id, false)?;
        let sent = if !fragmented.is_begun() || self.take_back(&fragmented) {
            SentPart::Nothing
        } else {
            // The CancelRequest makes the receiver discard the pieces that it has.
            self.queue_cancel(id, now);
            SentPart::Partly
        };
        Some(sent)
    }

    /// Stops a cancelled request's complete reply with an empty last piece. Returns whether there is one.
    #[cold]
    pub(super) fn stop_reply(&mut self, id: RequestId, now: Instant) -> bool {
        if self.partial_request.is_some() {
            return self.fragment_queue.has_id(id); // nothing can be sent in the middle of a request
        }
        let Some(fragmented) = self.fragment_queue.remove(id, true) else { return false };
        if fragmented.is_begun() && !self.take_back(&fragmented) {
            self.queue_empty_end(&fragmented, now);
        }
        true
    }

    pub(super) fn queue_empty_end(&mut self, fragmented: &FragmentedMessage, now: Instant) {
        self.tx.push(&fragment_header(fragmented.id, fragmented.order, 0, false));
        self.count_message(now);
    }

    /// Removes a message from the outbox, unless a part was sent or other data was queued after its start.
    pub(super) fn take_back(&mut self, fragmented: &FragmentedMessage) -> bool {
        fragmented.is_contiguous_and_last(&self.tx) && self.unqueue(fragmented.start, self.tx.queued())
    }
}

fn find_body(header: &MessageHeader, head: &[u8]) -> Option<usize> {
    let mut d = Decoder::new(head, header.order, header.version).at(HEADER_LEN);
    match header.kind {
        MessageType::Request => RequestHeader::decode(&mut d).ok().map(|_| ())?,
        MessageType::Reply => ReplyHeader::decode(&mut d).ok().map(|_| ())?,
        _ => return None,
    }
    Some(d.position())
}

fn fragment_header(id: RequestId, order: ByteOrder, payload: usize, more: bool) -> [u8; PIECE_HEADER_LEN] {
    let header = MessageHeader {
        more_fragments: more,
        size: (PIECE_HEADER_LEN - HEADER_LEN + payload) as u32, // at most `MAX_PIECE_SIZE`
        ..MessageHeader::new(Version::V1_2, order, MessageType::Fragment)
    };
    header_with_id(header, id)
}
