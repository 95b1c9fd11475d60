//! Large requests and replies that are sent in GIOP 1.2 fragments ("Fragment Message").
//!
//! The pieces of a message are queued as the socket accepts earlier pieces, so that other messages and pieces
//! of other messages are sent between them. The pieces of a oneway are queued together, because nothing may
//! overtake it.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::giop::{MessageHeader, MessageType, ReplyHeader, RequestHeader, RequestId};
use giop_codec::{ByteOrder, Version};

use super::{Connection, Outcome, Output};
use crate::calls::{CallId, Calls, RequestSpan};
use crate::error::SentPart;
use crate::frame::{HEADER_LEN, PIECE_HEADER_LEN, word};
use crate::outbox::{BATCH, BULK_BATCH, Outbox};
use crate::serving::ServeToken;

/// The minimum size of a piece: eight bytes after its headers.
const SMALLEST: usize = PIECE_HEADER_LEN + 8;

/// The maximum size of a piece. Its length is encoded in 32 bits.
const LARGEST: usize = 1 << 30;

/// The maximum number of messages that are partly sent, and the maximum number of incomplete replies.
/// Receivers limit the number of messages that they join at a time.
const OPEN: usize = 4;

/// The maximum size in bytes of a piece of a reply that is sent before it is complete.
const GROWING_PIECE: usize = BATCH;

/// The offset of the four bytes that contain the flags.
const FLAGGED_AT: usize = 4;

/// The number of bytes queued for the socket above which no further piece is queued.
const AHEAD: usize = BULK_BATCH;

/// The messages of which pieces are still to be queued.
#[derive(Debug)]
pub(super) struct FragmentQueue {
    /// The maximum size of a piece in bytes, including its headers. A multiple of 8. `usize::MAX` disables
    /// fragmenting.
    size: usize,
    /// The maximum size of a piece that the peer accepts. Requests are also cut at this size if their end is
    /// not available when they start.
    takes: usize,
    /// The messages that are sent alternately.
    open: VecDeque<FragmentedMessage>,
    /// The number of replies in `open` that were started before they were complete.
    growing: usize,
    /// Messages of which nothing is queued, after those in `open`.
    waiting: VecDeque<FragmentedMessage>,
    /// Bytes of all pieces that are not queued, without their headers, and the part of them that is replies.
    octets: usize,
    owed: usize,
}

#[derive(Debug)]
pub(super) struct FragmentedMessage {
    /// The call that awaits the reply, or `None` if the message is a reply itself.
    call: Option<CallId>,
    /// Set for a reply that was started before it was complete: the request that it answers.
    serves: Option<ServeToken>,
    id: RequestId,
    order: ByteOrder,
    /// The maximum size of a piece in bytes.
    size: usize,
    /// The size of the first piece in bytes until it is queued, then 0.
    first: usize,
    /// The bytes that are not queued.
    pub(super) rest: VecDeque<Bytes>,
    pub(super) left: usize,
    /// True while more of the message will be supplied.
    pub(super) grows: bool,
    /// True when its last piece is queued.
    ended: bool,
    /// The position of the first piece in the outgoing stream.
    start: u64,
    /// Bytes that were queued, including headers.
    queued: u64,
}

/// The pieces of a request that are sent in sequence while it is supplied.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestPieces {
    id: RequestId,
    order: ByteOrder,
    /// The maximum size of a piece in bytes.
    size: usize,
    /// Missing bytes of the piece whose header was queued last.
    lacks: usize,
    /// Bytes of the request in later pieces.
    rest: usize,
}

impl RequestPieces {
    /// Returns the number of header bytes that are still to be queued.
    pub(super) fn headers(&self) -> u64 {
        (self.rest.div_ceil(self.size - PIECE_HEADER_LEN) * PIECE_HEADER_LEN) as u64
    }

    /// Queues the next bytes of the request, and the headers of the pieces that start.
    pub(super) fn push(&mut self, tx: &mut Outbox, mut bytes: Bytes) {
        while !bytes.is_empty() {
            if self.lacks == 0 {
                self.lacks = self.rest.min(self.size - PIECE_HEADER_LEN);
                self.rest -= self.lacks;
                tx.push(&fragment_header(self.id, self.order, self.lacks, self.rest > 0));
            }
            let more = bytes.split_off(self.lacks.min(bytes.len()));
            self.lacks -= bytes.len();
            tx.push_chunk(bytes);
            bytes = more;
        }
    }
}

impl FragmentQueue {
    /// Lowers the maximum size of a piece to what the peer accepts.
    pub(super) fn lower_to(&mut self, size: usize) {
        self.takes = self.takes.min(size.clamp(SMALLEST, LARGEST) & !7);
        self.size = self.size.min(self.takes);
    }

    /// Creates a queue that cuts messages of more than `size` bytes.
    pub(super) fn new(size: Option<usize>) -> Self {
        let size = size.map_or(usize::MAX, |size| size.clamp(SMALLEST, LARGEST) & !7);
        Self {
            size,
            takes: usize::MAX,
            open: VecDeque::new(),
            growing: 0,
            waiting: VecDeque::new(),
            octets: 0,
            owed: 0,
        }
    }

    /// Returns whether a message of that version and size in bytes is sent in pieces.
    #[inline]
    pub(super) fn cuts(&self, version: Version, octets: usize) -> bool {
        octets > self.size && version == Version::V1_2
    }

    /// Returns whether all pieces of all messages are queued.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the number of bytes of pieces that are not queued.
    #[inline]
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// Returns the part of these bytes that is replies.
    pub(super) fn owed(&self) -> usize {
        self.owed
    }

    /// Subtracts bytes of a message that are no longer to be queued.
    fn uncount(&mut self, partial: &FragmentedMessage, octets: usize) {
        self.octets -= octets;
        if partial.call.is_none() {
            self.owed -= octets;
        }
    }

    /// Drops everything that is not queued.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.waiting.clear();
        (self.growing, self.octets, self.owed) = (0, 0, 0);
    }

    /// Returns the maximum size in bytes of a piece of an incomplete reply.
    #[inline]
    pub(super) fn piece_of_growing(&self) -> usize {
        self.size.min(GROWING_PIECE)
    }

    /// Returns whether another incomplete reply may be started.
    #[inline]
    pub(super) fn may_grow(&self) -> bool {
        self.growing < OPEN
    }

    /// Returns whether there are incomplete replies.
    #[inline]
    pub(super) fn is_growing(&self) -> bool {
        self.growing > 0
    }

    /// Returns the reply to that request, if it is incomplete.
    pub(super) fn growing(&self, token: ServeToken) -> Option<&FragmentedMessage> {
        self.open.iter().find(|partial| partial.grows && partial.serves == Some(token))
    }

    /// Appends to the incomplete reply to that request. `last` ends it. Returns whether there is such a
    /// reply.
    pub(super) fn grow(&mut self, token: ServeToken, octets: &mut Encoder, last: bool) -> bool {
        let is_it = |partial: &&mut FragmentedMessage| partial.grows && partial.serves == Some(token);
        let Some(partial) = self.open.iter_mut().find(is_it) else { return false };
        let there = partial.rest.len();
        octets.drain_part(&mut partial.rest);
        let came = partial.rest.range(there..).map(Bytes::len).sum::<usize>();
        partial.left += came;
        self.octets += came;
        self.owed += came;
        partial.grows = !last;
        true
    }

    pub(super) fn enter(&mut self, partial: FragmentedMessage) {
        self.octets += partial.left;
        if partial.call.is_none() {
            self.owed += partial.left;
        }
        if partial.serves.is_some() {
            self.growing += 1;
            self.open.push_back(partial);
        } else if self.open.len() - self.growing < OPEN {
            self.open.push_back(partial);
        } else {
            self.waiting.push_back(partial);
        }
    }

    /// Takes the message whose turn it is.
    fn next(&mut self) -> Option<FragmentedMessage> {
        self.open.pop_front()
    }

    /// Takes the message back. If all of it is queued, another one may start.
    fn turned(&mut self, partial: FragmentedMessage) {
        if !partial.ended {
            self.open.push_back(partial);
        } else {
            self.left(&partial);
        }
    }

    /// Handles the removal of a message from the alternation.
    fn left(&mut self, partial: &FragmentedMessage) {
        match partial.serves {
            Some(_) => self.growing -= 1,
            None => self.open.extend(self.waiting.pop_front()),
        }
    }

    fn has(&self, id: RequestId) -> bool {
        self.open.iter().chain(&self.waiting).any(|partial| partial.id == id)
    }

    /// Removes a message from the queue.
    fn remove(&mut self, id: RequestId, reply: bool) -> Option<FragmentedMessage> {
        let is_it = |partial: &FragmentedMessage| {
            partial.id == id && partial.call.is_none() == reply && !partial.grows
        };
        if let Some(at) = self.waiting.iter().position(is_it) {
            let partial = self.waiting.remove(at)?;
            self.uncount(&partial, partial.left);
            return Some(partial);
        }
        self.remove_open(is_it)
    }

    /// Removes the reply to that request from the alternation, if it is incomplete.
    pub(super) fn remove_growing(&mut self, token: ServeToken) -> Option<FragmentedMessage> {
        self.remove_open(|partial| partial.grows && partial.serves == Some(token))
    }

    fn remove_open(&mut self, is_it: impl Fn(&FragmentedMessage) -> bool) -> Option<FragmentedMessage> {
        let at = self.open.iter().position(is_it)?;
        let partial = self.open.remove(at)?;
        self.uncount(&partial, partial.left);
        self.left(&partial);
        Some(partial)
    }
}

impl FragmentedMessage {
    /// Turns it into the start of a reply to a request, of which more will be supplied.
    pub(super) fn growing(self, token: ServeToken) -> Self {
        Self { serves: Some(token), grows: true, ..self }
    }

    /// Returns the number of message bytes in the next piece, if they are available.
    fn next_payload(&self) -> usize {
        if self.first > 0 { self.first } else { self.size - PIECE_HEADER_LEN }
    }

    /// Returns whether the next piece can be queued: it is full and not the last, or the end of the message
    /// is known.
    fn is_ripe(&self) -> bool {
        !self.grows || self.left > self.next_payload()
    }

    /// Queues the next piece. Returns the number of message bytes in it. Only small parts are copied, by the
    /// outbox.
    fn queue_piece(&mut self, tx: &mut Outbox) -> usize {
        let before = tx.queued();
        let first = std::mem::take(&mut self.first);
        let payload = if first > 0 {
            self.start = before;
            first // its header is already marked
        } else {
            let payload = self.left.min(self.next_payload());
            let more = self.grows || self.left > payload;
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
        self.left -= payload;
        self.queued += tx.queued() - before;
        payload
    }

    pub(super) fn is_begun(&self) -> bool {
        self.first == 0
    }

    /// Returns whether its pieces are contiguous in the stream and were queued last.
    fn is_in_one_part(&self, tx: &Outbox) -> bool {
        tx.queued().checked_sub(self.start) == Some(self.queued)
    }
}

impl Connection {
    /// Queues pieces while few bytes are queued for the socket.
    #[cold]
    pub(super) fn feed(&mut self) {
        self.output.feed(&mut self.calls, self.clock.now);
        if self.output.fragment_queue.is_empty() && !self.lifecycle.takes_requests() {
            self.proceed_closing();
        }
    }
}

impl Output {
    /// Prepares the request of a call, or a reply, to be queued in pieces by [`feed`](Self::feed). Returns
    /// `false` if the message must be queued whole.
    #[cold]
    pub(super) fn queue_in_pieces(&mut self, call: Option<CallId>, message: &mut Encoder) -> bool {
        let Some(partial) = self.cut_first(message, self.fragment_queue.size, None) else { return false };
        message.reset(message.order(), message.version());
        self.fragment_queue.enter(FragmentedMessage { call, ..partial });
        true
    }

    /// Queues pieces while few bytes are queued for the socket.
    #[cold]
    pub(super) fn feed(&mut self, calls: &mut Calls<Outcome>, now: Instant) {
        let mut unripe = 0;
        while self.partial_request.is_none() && self.tx.backlog() < AHEAD {
            let Some(mut partial) = self.fragment_queue.next() else { break };
            if !partial.is_ripe() {
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
                let apart = !partial.is_in_one_part(&self.tx);
                let end = if partial.ended { self.tx.queued() } else { u64::MAX };
                calls.queued(call, RequestSpan { start: partial.start, end, locate: false, apart });
            } else {
                self.reply_backlog.add(taken);
            }
            self.fragment_queue.turned(partial);
            self.count_message(now);
        }
    }

    /// Queues all pieces of a oneway. Returns `None` if it must be queued whole.
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

    /// Makes the first piece of a message: all of its header, and as much of the rest as fits into `size`.
    /// `body` is the offset of the message's body; `None` determines it by decoding. The encoder is left
    /// empty, to continue the message or to be reset.
    ///
    /// Returns `None` if the message is not larger than the first piece, or if another message with the same
    /// id is in progress. The encoder is then unchanged.
    pub(super) fn cut_first(
        &mut self,
        message: &mut Encoder,
        size: usize,
        body: Option<usize>,
    ) -> Option<FragmentedMessage> {
        debug_assert!(self.partial_request.is_none(), "a message in the middle of a request");
        let left = message.len();
        let (header, id, first) = self.mark_first(message, left, size, body)?;
        self.copied += message.copied() as u64;
        self.version = message.version();
        let mut rest = VecDeque::new();
        message.drain_part(&mut rest);
        Some(FragmentedMessage {
            call: None,
            serves: None,
            id,
            order: header.order,
            size,
            first,
            rest,
            left,
            grows: false,
            ended: false,
            start: u64::MAX,
            queued: 0,
        })
    }

    /// Marks the header of a message of `whole` bytes as that of the first of several pieces. Returns the
    /// header, the id and the size of the first piece.
    fn mark_first(
        &self,
        message: &mut Encoder,
        whole: usize,
        size: usize,
        body: Option<usize>,
    ) -> Option<(MessageHeader, RequestId, usize)> {
        let header = MessageHeader::decode(message.head().first_chunk()?).ok()?;
        let id = word(header.order, message.head())?;
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
        message.patch_u32(FLAGGED_AT, flagged);
        message.patch_u32(MessageHeader::SIZE_AT, first_size);
        Some((header, id, first))
    }

    /// Starts the pieces of a request of which `coming` bytes follow what is in the encoder. Returns `None`
    /// if it is sent whole.
    pub(super) fn begin_pieces(&self, message: &mut Encoder, coming: u64) -> Option<RequestPieces> {
        let size = self.fragment_queue.takes;
        let whole = usize::try_from(coming).ok()?.checked_add(message.len())?;
        if whole <= size || message.version() != Version::V1_2 {
            return None;
        }
        let (header, id, first) = self.mark_first(message, whole, size, None)?;
        Some(RequestPieces { id, order: header.order, size, lacks: first, rest: whole - first })
    }

    /// Stops a request of which pieces are not queued. Returns how much of it the peer receives, or `None` if
    /// there is no such request.
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

    /// Stops the reply to a request that the peer cancelled. An empty piece ends the reply, so that the peer
    /// does not wait for the rest. Returns whether there is such a reply.
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

    /// Ends a message with a piece without payload.
    pub(super) fn queue_empty_end(&mut self, partial: &FragmentedMessage, now: Instant) {
        self.tx.push(&fragment_header(partial.id, partial.order, 0, false));
        self.count_message(now);
    }

    /// Removes the pieces of a message from the queue. This succeeds only if none of it was sent and nothing
    /// else was queued since.
    pub(super) fn take_back(&mut self, partial: &FragmentedMessage) -> bool {
        partial.is_in_one_part(&self.tx) && self.unqueue(partial.start, self.tx.queued())
    }
}

/// Returns the offset of the end of the header of a request or reply.
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
    let id = match order {
        ByteOrder::Big => id.0.to_be_bytes(),
        ByteOrder::Little => id.0.to_le_bytes(),
    };
    let mut octets = [0; PIECE_HEADER_LEN];
    for (to, from) in octets.iter_mut().zip(header.encode().into_iter().chain(id)) {
        *to = from;
    }
    octets
}
