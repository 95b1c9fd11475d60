//! The payload of a request or reply that was handed out before the payload was received.

use std::time::Instant;

use giop_codec::Version;
use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::Connection;
use crate::calls::CallId;
use crate::error::CloseReason;
use crate::event::Event;
use crate::fragments::First;
use crate::frame::{Joined, word};
use crate::hits::Limit;
use crate::receive::{Chunk, Loan, Returned};
use crate::serving::ServeToken;

/// The message whose payload is a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamOf {
    /// A request that is being served: its last argument.
    Request(ServeToken),
    /// The reply to a call of this side: its results.
    Reply(CallId),
}

impl From<ServeToken> for StreamOf {
    fn from(token: ServeToken) -> Self {
        Self::Request(token)
    }
}

impl From<CallId> for StreamOf {
    fn from(call: CallId) -> Self {
        Self::Reply(call)
    }
}

/// The message whose payload is being received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streamed {
    of: StreamOf,
    /// The id of its pieces. GIOP 1.1 has none.
    id: Option<RequestId>,
    /// True if the payload is taken as a stream. Until then it is discarded when the request ends.
    opened: bool,
    /// The number of messages received when its first bytes arrived.
    count: u64,
    /// The time by which all of it must have been received.
    deadline: Option<Instant>,
}

impl Streamed {
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

impl Connection {
    /// Keeps the payload until it is [taken](Self::take_chunk) or [given up](Self::abandon_stream), even
    /// after the reply to a request. Otherwise the payload of a request is discarded when the request ends.
    ///
    /// `size` is the number of bytes, or `None` if it is not known.
    pub fn open_stream(&mut self, of: impl Into<StreamOf>, size: impl Into<Option<u64>>) {
        let of = of.into();
        if let Some(streamed) = self.streamed.as_mut().filter(|streamed| streamed.of == of) {
            streamed.opened = true;
            if let Some(size) = size.into() {
                self.rx.expect_stream(size);
            }
        }
    }

    /// Ends the connection at the deadline, unless all of the payload has been received by then.
    pub fn limit_stream(&mut self, of: impl Into<StreamOf>, deadline: Instant) {
        let of = of.into();
        if let Some(streamed) = self.streamed.as_mut().filter(|streamed| streamed.of == of) {
            streamed.deadline = Some(deadline);
        }
    }

    /// Returns the number of bytes that the peer has still to send, or `u64::MAX` if it is not known.
    #[must_use]
    pub fn stream_rest(&self, of: impl Into<StreamOf>) -> u64 {
        if self.is_stream_of(of.into()) { self.rx.stream_rest() } else { 0 }
    }

    /// Returns whether a payload is being received.
    #[must_use]
    pub fn has_stream(&self) -> bool {
        self.streamed.is_some()
    }

    fn is_stream_of(&self, of: StreamOf) -> bool {
        self.streamed.is_some_and(|streamed| streamed.of == of)
    }

    /// Returns whether results of a call of this side are being received.
    pub(super) fn streams_reply(&self) -> bool {
        self.streamed.is_some_and(|streamed| matches!(streamed.of, StreamOf::Reply(_)))
    }

    /// Returns the time by which all of the payload must have been received.
    pub(super) fn stream_due(&self) -> Option<Instant> {
        self.streamed.and_then(|streamed| streamed.deadline)
    }

    /// Ends the connection if the payload is not complete at its deadline.
    #[cold]
    pub(super) fn expire_stream(&mut self) {
        if let Some(streamed) = &mut self.streamed {
            streamed.deadline = None;
        }
        if self.rx.is_mid_stream() {
            self.stats.limits.hit(Limit::CallTime);
            self.end(CloseReason::Local);
        }
    }

    /// Reads chunks into memory in which elements are aligned to eight bytes. The next byte is at offset
    /// `phase` of an element.
    pub fn align_stream(&mut self, of: impl Into<StreamOf>, phase: usize) {
        if self.is_stream_of(of.into()) {
            self.rx.align_stream(phase);
        }
    }

    /// Takes the next bytes of the payload, up to 256 KiB. If there are none, more are read. After bytes or
    /// the end were taken, check whether the connection [wants to be read](Self::wants_read).
    pub fn take_chunk(&mut self, of: impl Into<StreamOf>, now: Instant) -> Chunk {
        self.clock.saw(now);
        self.take(of.into(), true)
    }

    /// Takes the next bytes if they have been received. Reads nothing.
    pub fn take_ready_chunk(&mut self, of: impl Into<StreamOf>) -> Chunk {
        self.take(of.into(), false)
    }

    fn take(&mut self, of: StreamOf, asks: bool) -> Chunk {
        if !self.is_stream_of(of) {
            return Chunk::Lost;
        }
        let chunk = self.rx.take_chunk(asks);
        if matches!(chunk, Chunk::End | Chunk::Lost) {
            self.streamed = None;
            self.proceed_closing();
        }
        chunk
    }

    /// Lends memory into which the next bytes of the payload are read. It is returned by
    /// [`take_loan`](Self::take_loan) when it is full, when other bytes must be
    /// [taken](Self::take_ready_chunk) first, or when no more follow.
    ///
    /// # Errors
    /// The loan, if nothing can be read into it. Then take the [next chunk](Self::take_ready_chunk). If that
    /// is pending, the payload can only be taken in chunks.
    pub fn lend(&mut self, of: impl Into<StreamOf>, loan: Box<Loan>, now: Instant) -> Result<(), Box<Loan>> {
        self.clock.saw(now);
        if !self.is_stream_of(of.into()) {
            return Err(loan);
        }
        self.rx.lend_place(loan)
    }

    /// Takes back what was lent.
    #[must_use]
    pub fn take_loan(&mut self) -> Returned {
        self.rx.take_loan()
    }

    /// Discards the rest of the payload; the connection continues. The lent memory is returned to be dropped.
    /// If it is with a reader, [`take_dead`](Self::take_dead) returns it later.
    pub fn abandon_stream(&mut self, of: impl Into<StreamOf>) -> Option<Box<Loan>> {
        let of = of.into();
        let streamed = self.streamed.filter(|streamed| streamed.of == of)?;
        self.streamed = None;
        let rest = self.rx.announced();
        let loan = self.rx.drop_place();
        self.rx.abandon_stream();
        if self.fragments.is_streamed(streamed.id) {
            self.fragments.throw(streamed.id, rest, self.clock.now);
            self.mind_nameless();
        }
        self.proceed_closing();
        loan
    }

    /// Returns whether there is something to take for the reader of the payload, including its end.
    #[must_use]
    pub fn has_chunk(&self) -> bool {
        self.streamed.is_some() && self.rx.has_chunk()
    }

    /// Takes lent memory that was returned after its stream was given up. Dropping it runs code of the
    /// lender.
    #[inline]
    #[must_use]
    pub fn take_dead(&mut self) -> Vec<Box<Loan>> {
        self.rx.take_dead()
    }

    /// Returns whether the lent memory is with a reader.
    #[inline]
    #[must_use]
    pub fn is_loan_read(&self) -> bool {
        self.rx.is_place_lent()
    }

    /// Notes that the reader will not return the lent memory.
    pub fn lose_loan(&mut self) {
        self.rx.lose_place();
    }

    /// Returns the number of bytes that a payload may occupy before they are received. It is the size of the
    /// largest message so far.
    #[must_use]
    pub fn granted(&self) -> usize {
        self.rx.granted()
    }

    /// Counts bytes of a payload that were copied to their final position.
    pub fn count_copied(&mut self, octets: usize) {
        self.rx.count_copied(octets);
    }

    #[cold]
    pub(super) fn drop_untaken(&mut self, token: ServeToken) {
        if self.streamed.is_some_and(|streamed| !streamed.opened) {
            let loan = self.abandon_stream(token);
            debug_assert!(loan.is_none(), "nobody lent anything");
        }
    }

    /// Starts the payload of a request that is handed out before the payload is received. Returns the number
    /// of bytes that follow, or `usize::MAX` if it is unknown.
    #[cold]
    pub(super) fn begin_streamed(
        &mut self,
        token: ServeToken,
        header: &MessageHeader,
        request: RequestId,
    ) -> usize {
        let id = (header.version >= Version::V1_2).then_some(request);
        if self.fragments.is_streamed(id) {
            self.fragments.name(id, request);
        }
        self.begin_stream_of(token.into(), id)
    }

    /// Starts the payload of a reply that is handed out before the payload is received. Returns the number of
    /// bytes that follow, or 0 if no call is pending with that id.
    #[cold]
    pub(super) fn begin_streamed_reply(&mut self, header: &MessageHeader, id: RequestId) -> usize {
        let Some(call) = self.calls.waiting_call(id) else { return 0 };
        self.begin_stream_of(call.into(), (header.version >= Version::V1_2).then_some(id))
    }

    fn begin_stream_of(&mut self, of: StreamOf, id: Option<RequestId>) -> usize {
        let count = self.stats.messages_in;
        self.streamed = Some(Streamed { of, id, opened: false, count, deadline: None });
        if self.fragments.is_streamed(id) {
            usize::MAX
        } else if self.rx.has_stream() {
            self.rx.stream_size()
        } else {
            self.rx.coming()
        }
    }

    /// Hands out the next message, whose first fragment, or enough of it, has been received.
    #[cold]
    pub(super) fn hand_out_first_piece(&mut self, header: MessageHeader) -> Option<Event> {
        let octets = self.rx.front();
        let id = match header.version {
            Version::V1_2 => Some(word(header.order, octets)?),
            _ => None,
        };
        let first = MessageHeader { more_fragments: true, ..header };
        let started = self.fragments.start(first, First::Streamed(octets), self.clock.now, &self.limits);
        if let Err(error) = started {
            self.protocol_error(error);
            return None;
        }
        self.mind_nameless();
        let event = self.hand_out_start(header, None);
        if self.streamed.is_none() {
            self.fragments.throw(id, 0, self.clock.now);
        }
        event
    }

    /// Hands out the start of a message. The rest is discarded unless it is taken as a stream.
    fn hand_out_start(&mut self, header: MessageHeader, joined: Option<Joined>) -> Option<Event> {
        if header.kind == MessageType::Reply {
            return self.handle_reply(header, joined, true);
        }
        let head = self.admit_request(header, joined.as_ref())?;
        Some(self.hand_out(header, joined, head, true))
    }

    /// Hands out the joined part of a message, if it is large enough. The rest is its stream.
    #[cold]
    pub(super) fn hand_out_ripe(&mut self, id: Option<RequestId>) -> Option<Event> {
        if self.rx.has_stream() || self.fragments.is_ripe(id, 0) != Some(true) {
            return None;
        }
        let (header, joined) = self.fragments.hand_out(id, &[])?;
        self.hand_out_joined(header, joined, id, 0, true)
    }

    /// Hands out the joined part of a message, with the received part of the current fragment.
    #[cold]
    pub(super) fn hand_out_before_piece(
        &mut self,
        piece: MessageHeader,
        id: Option<RequestId>,
    ) -> Option<Event> {
        self.stats.messages_in += 1;
        let (header, joined) = self.fragments.hand_out(id, self.rx.come_of_piece(&piece))?;
        let left = self.rx.enter_piece(&piece);
        if let Err(error) = self.fragments.stream_piece(&piece, id) {
            self.protocol_error(error);
            return None;
        }
        self.hand_out_joined(header, joined, id, left, piece.more_fragments)
    }

    /// Updates the receiver after fragments of GIOP 1.1 started or ended.
    #[cold]
    pub(super) fn mind_nameless(&mut self) {
        self.rx.set_places_nameless(self.fragments.places_nameless());
    }

    fn hand_out_joined(
        &mut self,
        header: MessageHeader,
        joined: Joined,
        id: Option<RequestId>,
        left: usize,
        more: bool,
    ) -> Option<Event> {
        self.rx.enter_stream(joined.octets.len(), left, more);
        self.mind_nameless();
        let event = self.hand_out_start(header, Some(joined));
        if self.streamed.is_none() {
            self.rx.abandon_stream();
            self.fragments.throw(id, left, self.clock.now);
        }
        event
    }
}
