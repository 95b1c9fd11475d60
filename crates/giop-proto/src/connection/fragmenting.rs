//! Large requests and replies that are sent in GIOP 1.2 fragments ("Fragment Message").
//!
//! The pieces of a message are queued as the socket accepts earlier pieces, so that other messages, and
//! pieces of other messages, can be sent between them. The pieces of a oneway are queued together, so that
//! nothing overtakes it.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::giop::{MessageHeader, MessageType, ReplyHeader, RequestHeader, RequestId};
use giop_codec::{ByteOrder, Version};

use super::{Connection, Outcome, Output};
use crate::calls::{CallId, Calls, RequestSpan};
use crate::error::SentPart;
use crate::frame::{HEADER_LEN, PIECE_HEADER_LEN, first_word, header_with_id};
use crate::outbox::{BATCH_SIZE, BULK_BATCH_SIZE, Outbox};
use crate::serving::ServeToken;

/// The minimum size of a piece in bytes: its headers and eight bytes.
const MIN_PIECE: usize = PIECE_HEADER_LEN + 8;

/// The maximum size of a piece in bytes. Its length is encoded in 32 bits.
const MAX_PIECE: usize = 1 << 30;

/// The maximum number of messages that are partly sent, and the maximum number of incomplete replies. Peers
/// limit the number of incomplete messages that they accept.
const MAX_OPEN: usize = 4;

/// The maximum size in bytes of a piece of a growing reply, which is sent before it is complete.
const MAX_GROWING_PIECE: usize = BATCH_SIZE;

/// The offset in a message of the four bytes that contain the flags.
const FLAGS_WORD_AT: usize = 4;

/// The number of bytes queued for the socket from which no further piece is queued.
const MAX_QUEUED_AHEAD: usize = BULK_BATCH_SIZE;

#[derive(Debug, Default)]
pub(super) struct FragmentQueue {
    /// The maximum size of a piece in bytes, a multiple of 8. `usize::MAX` disables fragmenting.
    size: usize,
    /// The maximum size of a piece for the peer, which also applies to requests that are supplied in parts.
    accepted_size: usize,
    open: VecDeque<FragmentedMessage>,
    /// The number of growing replies in `open`.
    growing: usize,
    /// Messages of which nothing is queued. They follow those in `open`.
    waiting: VecDeque<FragmentedMessage>,
    /// Bytes of all pieces that are not queued, without their headers.
    pub(super) bytes: usize,
    /// The part of `bytes` that is replies.
    pub(super) reply_bytes: usize,
}

#[derive(Debug)]
pub(super) struct FragmentedMessage {
    /// The call that awaits the reply, or `None` for a reply.
    call: Option<CallId>,
    /// Set for a growing reply: the request that it answers.
    answers: Option<ServeToken>,
    id: RequestId,
    order: ByteOrder,
    size: usize,
    /// The size of the first piece in bytes until it is queued, then 0.
    first: usize,
    pub(super) rest: VecDeque<Bytes>,
    pub(super) unqueued: usize,
    /// True while more of the message will be supplied.
    pub(super) grows: bool,
    ended: bool,
    start: u64,
    queued: u64,
}

/// The pieces of a request that are sent one after the other while it is supplied.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestPieces {
    id: RequestId,
    order: ByteOrder,
    size: usize,
    /// Missing bytes of the piece whose header was queued last.
    missing: usize,
    /// Bytes of the request in later pieces.
    later: usize,
}

impl RequestPieces {
    /// Returns the number of header bytes that are still to be queued.
    pub(super) fn later_headers_len(&self) -> u64 {
        (self.later.div_ceil(self.size - PIECE_HEADER_LEN) * PIECE_HEADER_LEN) as u64
    }

    /// Queues the next bytes of the request, and the headers of the pieces that start.
    pub(super) fn push(&mut self, tx: &mut Outbox, mut bytes: Bytes) {
        while !bytes.is_empty() {
            if self.missing == 0 {
                self.missing = self.later.min(self.size - PIECE_HEADER_LEN);
                self.later -= self.missing;
                tx.push(&fragment_header(self.id, self.order, self.missing, self.later > 0));
            }
            let more = bytes.split_off(self.missing.min(bytes.len()));
            self.missing -= bytes.len();
            tx.push_chunk(bytes);
            bytes = more;
        }
    }
}

impl FragmentQueue {
    pub(super) fn lower_to(&mut self, size: usize) {
        self.accepted_size = self.accepted_size.min(size.clamp(MIN_PIECE, MAX_PIECE) & !7);
        self.size = self.size.min(self.accepted_size);
    }

    pub(super) fn new(size: Option<usize>) -> Self {
        let size = size.map_or(usize::MAX, |size| size.clamp(MIN_PIECE, MAX_PIECE) & !7);
        Self { size, accepted_size: usize::MAX, ..Self::default() }
    }

    /// Returns whether a message of this version and size in bytes is sent in pieces.
    #[inline]
    pub(super) fn cuts(&self, version: Version, bytes: usize) -> bool {
        bytes > self.size && version == Version::V1_2
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn uncount(&mut self, partial: &FragmentedMessage, bytes: usize) {
        self.bytes -= bytes;
        if partial.call.is_none() {
            self.reply_bytes -= bytes;
        }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.waiting.clear();
        (self.growing, self.bytes, self.reply_bytes) = (0, 0, 0);
    }

    #[inline]
    pub(super) fn growing_piece_size(&self) -> usize {
        self.size.min(MAX_GROWING_PIECE)
    }

    #[inline]
    pub(super) fn may_grow(&self) -> bool {
        self.growing < MAX_OPEN
    }

    #[inline]
    pub(super) fn has_growing(&self) -> bool {
        self.growing > 0
    }

    pub(super) fn growing(&self, token: ServeToken) -> Option<&FragmentedMessage> {
        self.open.iter().find(|partial| partial.grows && partial.answers == Some(token))
    }

    /// Appends to a growing reply. `last` ends it. Returns whether there is such a reply.
    pub(super) fn grow(&mut self, token: ServeToken, bytes: &mut Encoder, last: bool) -> bool {
        let is_it = |partial: &&mut FragmentedMessage| partial.grows && partial.answers == Some(token);
        let Some(partial) = self.open.iter_mut().find(is_it) else { return false };
        let chunks_before = partial.rest.len();
        bytes.drain_part(&mut partial.rest);
        let added = partial.rest.range(chunks_before..).map(Bytes::len).sum::<usize>();
        partial.unqueued += added;
        self.bytes += added;
        self.reply_bytes += added;
        partial.grows = !last;
        true
    }

    pub(super) fn add(&mut self, partial: FragmentedMessage) {
        self.bytes += partial.unqueued;
        if partial.call.is_none() {
            self.reply_bytes += partial.unqueued;
        }
        if partial.answers.is_some() {
            self.growing += 1;
            self.open.push_back(partial);
        } else if self.open.len() - self.growing < MAX_OPEN {
            self.open.push_back(partial);
        } else {
            self.waiting.push_back(partial);
        }
    }

    fn next(&mut self) -> Option<FragmentedMessage> {
        self.open.pop_front()
    }

    /// Takes a message back. If its last piece was queued, another message may start.
    fn take_back_after_piece(&mut self, partial: FragmentedMessage) {
        if partial.ended {
            self.handle_removal(&partial);
        } else {
            self.open.push_back(partial);
        }
    }

    fn handle_removal(&mut self, partial: &FragmentedMessage) {
        match partial.answers {
            Some(_) => self.growing -= 1,
            None => self.open.extend(self.waiting.pop_front()),
        }
    }

    fn has(&self, id: RequestId) -> bool {
        self.open.iter().chain(&self.waiting).any(|partial| partial.id == id)
    }

    fn remove(&mut self, id: RequestId, reply: bool) -> Option<FragmentedMessage> {
        let is_it = |partial: &FragmentedMessage| {
            partial.id == id && partial.call.is_none() == reply && !partial.grows
        };
        if let Some(at) = self.waiting.iter().position(is_it) {
            let partial = self.waiting.remove(at)?;
            self.uncount(&partial, partial.unqueued);
            return Some(partial);
        }
        self.remove_open(is_it)
    }

    pub(super) fn remove_growing(&mut self, token: ServeToken) -> Option<FragmentedMessage> {
        self.remove_open(|partial| partial.grows && partial.answers == Some(token))
    }

    fn remove_open(&mut self, is_it: impl Fn(&FragmentedMessage) -> bool) -> Option<FragmentedMessage> {
        let at = self.open.iter().position(is_it)?;
        let partial = self.open.remove(at)?;
        self.uncount(&partial, partial.unqueued);
        self.handle_removal(&partial);
        Some(partial)
    }
}

impl FragmentedMessage {
    /// Makes the message the start of a growing reply.
    pub(super) fn growing(self, token: ServeToken) -> Self {
        Self { answers: Some(token), grows: true, ..self }
    }

    /// Returns the number of message bytes in the next piece, if they are available.
    fn next_payload(&self) -> usize {
        if self.first > 0 { self.first } else { self.size - PIECE_HEADER_LEN }
    }

    /// Returns whether the next piece can be queued: it is full, or the end of the message is known.
    fn is_ready(&self) -> bool {
        !self.grows || self.unqueued > self.next_payload()
    }

    /// Queues the next piece, and returns the number of message bytes in it.
    fn queue_piece(&mut self, tx: &mut Outbox) -> usize {
        let before = tx.queued();
        let first = std::mem::take(&mut self.first);
        let payload = if first > 0 {
            self.start = before;
            first // its header is already marked
        } else {
            let payload = self.unqueued.min(self.next_payload());
            let more = self.grows || self.unqueued > payload;
            tx.push(&fragment_header(self.id, self.order, payload, more));
            self.ended = !more;
            payload
        };
        let mut wanted = payload;
        while let Some(mut chunk) = self.rest.pop_front() {
            if chunk.len() > wanted {
                self.rest.push_front(chunk.split_off(wanted));
            }
            wanted -= chunk.len();
            tx.push_chunk(chunk);
            if wanted == 0 {
                break;
            }
        }
        self.unqueued -= payload;
        self.queued += tx.queued() - before;
        payload
    }

    pub(super) fn is_begun(&self) -> bool {
        self.first == 0
    }

    /// Returns whether the pieces are contiguous in the stream, and were queued last.
    fn is_contiguous_and_last(&self, tx: &Outbox) -> bool {
        tx.queued().checked_sub(self.start) == Some(self.queued)
    }
}

impl Connection {
    #[cold]
    pub(super) fn feed(&mut self) {
        self.output.feed(&mut self.calls, self.clock.now);
        if self.output.fragment_queue.is_empty() && !self.lifecycle.accepts_requests() {
            self.continue_closing();
        }
    }
}

impl Output {
    /// Prepares the request of a call, or a reply, for being queued in pieces by [`feed`](Self::feed).
    /// Returns `false` if the message must be queued as a whole.
    #[cold]
    pub(super) fn queue_in_pieces(&mut self, call: Option<CallId>, message: &mut Encoder) -> bool {
        let Some(partial) = self.cut_first(message, self.fragment_queue.size, None) else { return false };
        message.reset(message.order(), message.version());
        self.fragment_queue.add(FragmentedMessage { call, ..partial });
        true
    }

    /// Queues pieces while few bytes are queued for the socket.
    #[cold]
    pub(super) fn feed(&mut self, calls: &mut Calls<Outcome>, now: Instant) {
        let mut unripe = 0;
        while self.partial_request.is_none() && self.tx.backlog() < MAX_QUEUED_AHEAD {
            let Some(mut partial) = self.fragment_queue.next() else { break };
            if !partial.is_ready() {
                self.fragment_queue.open.push_back(partial);
                unripe += 1;
                if unripe >= self.fragment_queue.open.len() {
                    break;
                }
                continue;
            }
            unripe = 0;
            let taken = partial.queue_piece(&mut self.tx);
            self.fragment_queue.uncount(&partial, taken);
            if let Some(call) = partial.call {
                let is_interleaved = !partial.is_contiguous_and_last(&self.tx);
                let end = if partial.ended { self.tx.queued() } else { u64::MAX };
                calls.record_span(
                    call,
                    RequestSpan { start: partial.start, end, is_locate: false, is_interleaved },
                );
            } else {
                self.reply_backlog.add(taken);
            }
            self.fragment_queue.take_back_after_piece(partial);
            self.count_message(now);
        }
    }

    /// Queues all pieces of a oneway. Returns `None` if it must be queued as a whole.
    #[cold]
    pub(super) fn queue_oneway_in_pieces(&mut self, message: &mut Encoder, now: Instant) -> Option<()> {
        let mut partial = self.cut_first(message, self.fragment_queue.size, None)?;
        message.reset(message.order(), message.version());
        while !partial.ended {
            partial.queue_piece(&mut self.tx);
            self.count_message(now);
        }
        Some(())
    }

    /// Makes the first piece of a message: its header, and as much of the rest as fits into `size`. `body` is
    /// the offset of the message's body; `None` determines it by decoding. The encoder is left empty, to
    /// continue the message or to be reset.
    ///
    /// Returns `None`, and leaves the encoder unchanged, if the message is not larger than the first piece,
    /// or if another message with the same id is in progress.
    pub(super) fn cut_first(
        &mut self,
        message: &mut Encoder,
        size: usize,
        body: Option<usize>,
    ) -> Option<FragmentedMessage> {
        debug_assert!(self.partial_request.is_none(), "a message in the middle of a request");
        let whole = message.len();
        let (header, id, first) = self.mark_first(message, whole, size, body)?;
        self.stats.copied_out += message.copied() as u64;
        self.version = message.version();
        let mut rest = VecDeque::new();
        message.drain_part(&mut rest);
        Some(FragmentedMessage {
            call: None,
            answers: None,
            id,
            order: header.order,
            size,
            first,
            rest,
            unqueued: whole,
            grows: false,
            ended: false,
            start: u64::MAX,
            queued: 0,
        })
    }

    /// Marks a message of `whole` bytes as fragmented. Returns header, id, and the size of the first piece.
    fn mark_first(
        &self,
        message: &mut Encoder,
        whole: usize,
        size: usize,
        body: Option<usize>,
    ) -> Option<(MessageHeader, RequestId, usize)> {
        let header = MessageHeader::decode(message.head().first_chunk()?).ok()?;
        let id = first_word(header.order, message.head())?;
        let body = body.or_else(|| body_at(&header, message.head()))?.next_multiple_of(8);
        let first = size.max(body);
        if first >= whole || self.fragment_queue.has(id) {
            return None;
        }
        let first_size = u32::try_from(first - HEADER_LEN).ok()?;
        let [_, _, _, _, flagged @ .., _, _, _, _] =
            MessageHeader { more_fragments: true, ..header }.encode();
        let flagged = match header.order {
            ByteOrder::Big => u32::from_be_bytes(flagged),
            ByteOrder::Little => u32::from_le_bytes(flagged),
        };
        message.patch_u32(FLAGS_WORD_AT, flagged);
        message.patch_u32(MessageHeader::SIZE_AT, first_size);
        Some((header, id, first))
    }

    /// Starts the pieces of a request of which `missing` bytes follow, unless it is sent as a whole.
    pub(super) fn begin_pieces(&self, message: &mut Encoder, missing: u64) -> Option<RequestPieces> {
        let size = self.fragment_queue.accepted_size;
        let whole = usize::try_from(missing).ok()?.checked_add(message.len())?;
        if whole <= size || message.version() != Version::V1_2 {
            return None;
        }
        let (header, id, first) = self.mark_first(message, whole, size, None)?;
        Some(RequestPieces { id, order: header.order, size, missing: first, later: whole - first })
    }

    /// Stops a request that is sent in pieces, if there is one. Returns the part that the peer receives.
    #[cold]
    pub(super) fn stop_request(&mut self, id: RequestId, now: Instant) -> Option<SentPart> {
        let partial = self.fragment_queue.remove(id, false)?;
        let sent = if !partial.is_begun() || self.take_back(&partial) {
            SentPart::Nothing
        } else {
            // The receiver discards the pieces that it has.
            self.queue_cancel(id, now);
            SentPart::Partly
        };
        Some(sent)
    }

    /// Stops the reply to a cancelled request with an empty last piece. Returns whether there is one.
    #[cold]
    pub(super) fn stop_reply(&mut self, id: RequestId, now: Instant) -> bool {
        if self.partial_request.is_some() {
            return self.fragment_queue.has(id); // nothing can be sent in the middle of a request
        }
        let Some(partial) = self.fragment_queue.remove(id, true) else { return false };
        if partial.is_begun() && !self.take_back(&partial) {
            self.queue_empty_end(&partial, now);
        }
        true
    }

    pub(super) fn queue_empty_end(&mut self, partial: &FragmentedMessage, now: Instant) {
        self.tx.push(&fragment_header(partial.id, partial.order, 0, false));
        self.count_message(now);
    }

    /// Removes a message from the queue. Fails if any of it was sent or anything else was queued since.
    pub(super) fn take_back(&mut self, partial: &FragmentedMessage) -> bool {
        partial.is_contiguous_and_last(&self.tx) && self.unqueue(partial.start, self.tx.queued())
    }
}

fn body_at(header: &MessageHeader, head: &[u8]) -> Option<usize> {
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
        size: (PIECE_HEADER_LEN - HEADER_LEN + payload) as u32, // at most the size of a piece
        ..MessageHeader::new(Version::V1_2, order, MessageType::Fragment)
    };
    header_with_id(header, id)
}
