//! Streams: the payloads of requests and replies that are handed out before their payload is received.

use std::time::Instant;

use giop_codec::Version;
use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::{Connection, Input, Outcome};
use crate::calls::{CallId, Calls};
use crate::error::CloseReason;
use crate::event::Event;
use crate::fragments::FirstPiece;
use crate::frame::{JoinedMessage, word_after_header};
use crate::hits::Limit;
use crate::receive::{Chunk, Loan, LoanReturn};
use crate::serving::ServeToken;

/// The message whose payload is a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamId {
    /// A request that is being served. The stream is its last argument.
    Request(ServeToken),
    /// The reply to a call of this side. The stream is its results.
    Reply(CallId),
}

impl From<ServeToken> for StreamId {
    fn from(token: ServeToken) -> Self {
        Self::Request(token)
    }
}

impl From<CallId> for StreamId {
    fn from(call: CallId) -> Self {
        Self::Reply(call)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct IncomingPayload {
    of: StreamId,
    /// The id in the fragments; `None` before GIOP 1.2, where fragments have no id.
    id: Option<RequestId>,
    /// True if the payload will be taken. If not, it is discarded when the request ends.
    pub(super) is_opened: bool,
    pub(super) messages_before: u64,
    deadline: Option<Instant>,
}

impl Input {
    /// Sets the time by which the payload must have been received. If it has not, the connection is closed.
    pub fn set_stream_deadline(&mut self, of: impl Into<StreamId>, deadline: Instant) {
        let of = of.into();
        if let Some(streamed) = self.incoming_payload.as_mut().filter(|streamed| streamed.of == of) {
            streamed.deadline = Some(deadline);
        }
    }

    /// Returns the number of bytes that have not been taken yet, or `u64::MAX` if it is unknown.
    pub fn missing_stream_bytes(&self, of: impl Into<StreamId>) -> u64 {
        if self.is_stream_of(of.into()) { self.rx.stream.missing_bytes() } else { 0 }
    }

    /// Returns whether a payload is being received.
    pub fn has_stream(&self) -> bool {
        self.incoming_payload.is_some()
    }

    fn is_stream_of(&self, of: StreamId) -> bool {
        self.incoming_payload.is_some_and(|streamed| streamed.of == of)
    }

    pub(super) fn streams_reply(&self) -> bool {
        self.incoming_payload.is_some_and(|streamed| matches!(streamed.of, StreamId::Reply(_)))
    }

    pub(super) fn stream_deadline(&self) -> Option<Instant> {
        self.incoming_payload.and_then(|streamed| streamed.deadline)
    }

    /// Aligns elements in the chunks to eight bytes in memory. The next byte has this offset in an element.
    pub fn align_stream(&mut self, of: impl Into<StreamId>, element_offset: usize) {
        if self.is_stream_of(of.into()) {
            self.rx.stream.align(element_offset);
        }
    }

    /// Returns whether the reader can take a chunk, the end of the payload, or the memory that it lent.
    pub fn has_chunk(&self) -> bool {
        self.incoming_payload.is_some() && self.rx.stream.has_chunk()
    }

    /// Takes the loans of abandoned streams. Dropping one runs code of its lender, so do not hold locks then.
    #[inline]
    #[must_use]
    pub fn take_orphaned_loans(&mut self) -> Vec<Box<Loan>> {
        std::mem::take(&mut self.rx.stream.orphaned_loans)
    }

    /// Returns whether the lent memory is in use by the reader of the socket.
    #[inline]
    pub fn is_loan_in_use(&self) -> bool {
        self.rx.stream.is_lent()
    }

    /// Must be called if the reader of the socket will not return the lent memory.
    pub fn lose_loan(&mut self) {
        self.rx.stream.lose_loan();
    }

    /// Takes back the memory that was lent by [`IncomingStream::lend`].
    #[must_use]
    pub fn take_loan(&mut self) -> LoanReturn {
        self.rx.stream.take_loan()
    }

    /// Returns the size of the largest message so far. As much may be allocated before a payload is received.
    pub fn largest_received_bytes(&self) -> usize {
        self.rx.memory.largest_received
    }

    /// Counts bytes of a payload that the driver has copied to their final position.
    pub fn count_copied(&mut self, bytes: usize) {
        self.rx.memory.copied_bytes += bytes as u64;
    }

    /// Must be called after a streamed message in GIOP 1.1 fragments starts or ends, to update the receiver.
    #[cold]
    pub(super) fn update_1_1_fragments(&mut self) {
        self.rx.stream.has_1_1_fragments = self.fragments.streams_1_1_fragments();
    }

    /// Opens the payload. It is then kept until it is [taken](IncomingStream::take_chunk) or
    /// [abandoned](IncomingStream::abandon). A payload that is not opened is discarded when the request ends.
    ///
    /// `size` is the number of bytes in the payload, or `None` if it is unknown.
    pub fn open_stream(&mut self, of: impl Into<StreamId>, size: impl Into<Option<u64>>) {
        let of = of.into();
        if let Some(streamed) = self.incoming_payload.as_mut().filter(|streamed| streamed.of == of) {
            streamed.is_opened = true;
            if let Some(size) = size.into() {
                self.rx.stream.set_size(size);
            }
        }
    }

    /// Starts the payload of a request. Returns its missing bytes, or `usize::MAX` if they are unknown.
    #[cold]
    pub(super) fn begin_request_stream(
        &mut self,
        token: ServeToken,
        header: &MessageHeader,
        request: RequestId,
        messages_before: u64,
    ) -> usize {
        let id = (header.version >= Version::V1_2).then_some(request);
        if self.fragments.is_streamed(id) {
            self.fragments.set_request_id(id, request);
        }
        self.begin_stream_of(token.into(), id, messages_before)
    }

    /// Like `begin_request_stream`, for a reply. Returns 0 if no such call is pending.
    #[cold]
    pub(super) fn begin_reply_stream(
        &mut self,
        header: &MessageHeader,
        id: RequestId,
        calls: &Calls<Outcome>,
        messages_before: u64,
    ) -> usize {
        let Some(call) = calls.pending_call(id) else { return 0 };
        self.begin_stream_of(call.into(), (header.version >= Version::V1_2).then_some(id), messages_before)
    }

    fn begin_stream_of(&mut self, of: StreamId, id: Option<RequestId>, messages_before: u64) -> usize {
        self.incoming_payload =
            Some(IncomingPayload { of, id, is_opened: false, messages_before, deadline: None });
        if self.fragments.is_streamed(id) {
            usize::MAX
        } else if self.rx.stream.is_active() {
            self.rx.stream.size()
        } else {
            self.rx.streamed_rest()
        }
    }

    pub(super) fn update_1_1_fragments_after(&mut self, header: &MessageHeader) {
        if header.version == Version::V1_1 && !header.more_fragments {
            self.update_1_1_fragments();
        }
    }

    /// Returns the missing bytes of the incomplete large message, as far as there is memory for them. A
    /// driver may wait until so many are available. Returns 0 if the next byte should be read immediately.
    #[inline]
    pub fn granted_missing_bytes(&self) -> usize {
        self.rx.granted_missing_bytes()
    }

    /// Returns whether another whole message may already have been received. If not, the last request should
    /// be served before more events are polled, so that the next message can use its buffer.
    #[inline]
    pub fn has_more_input(&self) -> bool {
        self.rx.may_hold_another()
    }

    /// Returns whether the payload has ended, but its reader has not noticed. Nothing is handed out then.
    #[inline]
    pub(super) fn awaits_end(&self) -> bool {
        self.incoming_payload.is_some() && !self.rx.stream.is_active()
    }

    fn abandon_stream(&mut self, streamed: IncomingPayload, now: Instant) -> Option<Box<Loan>> {
        self.incoming_payload = None;
        let rest = self.rx.announced_size();
        let loan = self.rx.stream.drop_loan();
        self.rx.abandon_stream();
        if self.fragments.is_streamed(streamed.id) {
            self.fragments.discard_rest(streamed.id, rest, now);
            self.update_1_1_fragments();
        }
        loan
    }
}

/// The payload of a request or of a reply: see [`Connection::stream`].
#[derive(Debug)]
pub struct IncomingStream<'a> {
    connection: &'a mut Connection,
    of: StreamId,
}

impl Connection {
    /// Returns the payload of this message, which may have ended.
    pub fn stream(&mut self, of: impl Into<StreamId>) -> IncomingStream<'_> {
        IncomingStream { connection: self, of: of.into() }
    }

    /// Closes the connection if the payload is not complete. Called at the deadline of the payload.
    #[cold]
    pub(super) fn expire_stream(&mut self) {
        if let Some(streamed) = &mut self.input.incoming_payload {
            streamed.deadline = None;
        }
        if self.input.rx.stream.is_incomplete() {
            self.output.stats.limit_hits.hit(Limit::CallTime);
            self.abort(CloseReason::Local);
        }
    }

    /// Hands out a message of which only the first piece, or enough of it, has been received.
    #[cold]
    pub(super) fn hand_out_first_piece(&mut self, header: MessageHeader) -> Option<Event> {
        let bytes = self.input.rx.front();
        let id = match header.version {
            Version::V1_2 => Some(word_after_header(header.order, bytes)?),
            _ => None,
        };
        let first = MessageHeader { more_fragments: true, ..header };
        let started =
            self.input.fragments.start(first, FirstPiece::Streamed(bytes), self.clock.now, &self.limits);
        if let Err(error) = started {
            self.protocol_error(error);
            return None;
        }
        self.input.update_1_1_fragments();
        let event = self.hand_out_start(header, None);
        if self.input.incoming_payload.is_none() {
            self.input.fragments.discard_rest(id, 0, self.clock.now);
        }
        event
    }

    /// Hands out the start of a message. The rest becomes its stream.
    fn hand_out_start(&mut self, header: MessageHeader, joined: Option<JoinedMessage>) -> Option<Event> {
        if header.kind == MessageType::Reply {
            return self.handle_reply(header, joined, true);
        }
        let head = self.admit_request(header, joined.as_ref())?;
        Some(self.hand_out(header, joined, head, true))
    }

    /// Hands out the joined pieces of a message, if they are large enough. The rest is its stream.
    #[cold]
    pub(super) fn hand_out_if_ready(&mut self, id: Option<RequestId>) -> Option<Event> {
        if self.input.rx.stream.is_active() || self.input.fragments.is_ready(id, 0) != Some(true) {
            return None;
        }
        let (header, joined) = self.input.fragments.hand_out(id, &[])?;
        self.hand_out_joined(header, joined, id, 0, true)
    }

    /// Hands out the joined pieces of a message, with the received part of the current fragment.
    #[cold]
    pub(super) fn hand_out_before_piece(
        &mut self,
        piece: MessageHeader,
        id: Option<RequestId>,
    ) -> Option<Event> {
        self.output.stats.messages_in += 1;
        let (header, joined) = self.input.fragments.hand_out(id, self.input.rx.received_payload(&piece))?;
        let left = self.input.rx.remove_unplaced_fragment(&piece);
        if let Err(error) = self.input.fragments.stream_piece(&piece, id) {
            self.protocol_error(error);
            return None;
        }
        self.hand_out_joined(header, joined, id, left, piece.more_fragments)
    }

    fn hand_out_joined(
        &mut self,
        header: MessageHeader,
        joined: JoinedMessage,
        id: Option<RequestId>,
        left: usize,
        more: bool,
    ) -> Option<Event> {
        self.input.rx.stream.begin(joined.bytes.len(), left, more);
        self.input.update_1_1_fragments();
        let event = self.hand_out_start(header, Some(joined));
        if self.input.incoming_payload.is_none() {
            self.input.rx.abandon_stream();
            self.input.fragments.discard_rest(id, left, self.clock.now);
        }
        event
    }
}

impl IncomingStream<'_> {
    /// Takes the next bytes of the payload, up to 256 KiB. If there are none, allows reading more. Then the
    /// driver must check whether the connection [must be read](Connection::wants_read).
    pub fn take_chunk(&mut self, now: Instant) -> Chunk {
        self.connection.clock.now = now;
        self.take(true)
    }

    /// Takes the next bytes if they have been received. Does not allow the connection to read more.
    pub fn take_ready_chunk(&mut self) -> Chunk {
        self.take(false)
    }

    fn take(&mut self, requests_more: bool) -> Chunk {
        if !self.connection.input.is_stream_of(self.of) {
            return Chunk::Lost;
        }
        let chunk = self.connection.input.rx.stream.take_chunk(requests_more);
        if matches!(chunk, Chunk::End | Chunk::Lost) {
            self.connection.input.incoming_payload = None;
            self.connection.continue_closing();
        }
        chunk
    }

    /// Lends memory into which the next bytes are read. [`take_loan`](Input::take_loan) returns it when it is
    /// full, when other bytes must be [taken](Self::take_ready_chunk) first, or when no more bytes follow.
    ///
    /// # Errors
    /// Returns the loan if nothing can be read into it. In that case, take the [next
    /// chunk](Self::take_ready_chunk). If that is [pending](Chunk), the payload can only be taken in chunks.
    pub fn lend(&mut self, loan: Box<Loan>, now: Instant) -> Result<(), Box<Loan>> {
        self.connection.clock.now = now;
        if !self.connection.input.is_stream_of(self.of) {
            return Err(loan);
        }
        self.connection.input.rx.stream.lend(loan)
    }

    /// Discards the rest of the payload. The connection continues. Returns the lent memory to be dropped, or
    /// [`take_orphaned_loans`](Input::take_orphaned_loans) does later, if it is being read into.
    pub fn abandon(&mut self) -> Option<Box<Loan>> {
        let streamed = self.connection.input.incoming_payload.filter(|streamed| streamed.of == self.of)?;
        let loan = self.connection.input.abandon_stream(streamed, self.connection.clock.now);
        self.connection.continue_closing();
        loan
    }
}
