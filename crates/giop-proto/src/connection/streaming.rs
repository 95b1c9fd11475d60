//! The payload of a request that was handed out before it was there.

use std::time::Instant;

use giop_codec::Version;
use giop_codec::giop::{MessageHeader, RequestId};

use super::Connection;
use crate::event::Event;
use crate::fragments::{First, Joined};
use crate::message::word;
use crate::receive::{Chunk, Loan, Returned};
use crate::serving::ServeToken;

/// The request whose payload is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streamed {
    token: ServeToken,
    /// The id of its pieces, which GIOP 1.1 has not.
    id: Option<RequestId>,
    /// Somebody takes the payload: until then it goes with the request.
    opened: bool,
    /// How many messages had come with its first octets.
    count: u64,
}

impl Streamed {
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

impl Connection {
    /// Says that the payload of that request, of so many octets, will be [taken](Self::take_chunk), also after its reply, or
    /// [given up](Self::abandon_stream). Without this it is thrown away when the request ends.
    pub fn open_stream(&mut self, token: ServeToken, octets: u64) {
        if let Some(streamed) = self.streamed.as_mut().filter(|streamed| streamed.token == token) {
            streamed.opened = true;
            self.rx.expect_stream(octets);
        }
    }

    /// Says that the payload of that request is of elements that are aligned to eight octets or less, and that the first of its
    /// octets that is still to come is `phase` octets behind the start of an element. Then chunks are read to memory where the
    /// elements are aligned.
    pub fn align_stream(&mut self, token: ServeToken, phase: usize) {
        if self.streamed.is_some_and(|streamed| streamed.token == token) {
            self.rx.align_stream(phase);
        }
    }

    /// The next octets of the request's payload: up to 256 KiB. Where there are none, they are waited for, so more are read. When
    /// some were taken or the end was, look whether the connection [wants to be read](Self::wants_read).
    pub fn take_chunk(&mut self, token: ServeToken, now: Instant) -> Chunk {
        self.clock.saw(now);
        self.take(token, true)
    }

    /// The next octets if they are there. Nothing is read for it.
    pub fn take_ready_chunk(&mut self, token: ServeToken) -> Chunk {
        self.take(token, false)
    }

    fn take(&mut self, token: ServeToken, asks: bool) -> Chunk {
        if self.streamed.is_none_or(|streamed| streamed.token != token) {
            return Chunk::Lost;
        }
        let chunk = self.rx.take_chunk(asks);
        if matches!(chunk, Chunk::End | Chunk::Lost) {
            self.streamed = None;
        }
        chunk
    }

    /// Lends memory into which the next octets of the payload are read. It comes back by [`take_loan`](Self::take_loan), when it is
    /// full, other octets are [to be taken](Self::take_ready_chunk) first, or no more come.
    ///
    /// # Errors
    /// The loan, where nothing can be read into it: look at the [next chunk](Self::take_ready_chunk); where that is pending, chunks
    /// are the only way.
    pub fn lend(&mut self, token: ServeToken, loan: Box<Loan>, now: Instant) -> Result<(), Box<Loan>> {
        self.clock.saw(now);
        if self.streamed.is_none_or(|streamed| streamed.token != token) {
            return Err(loan);
        }
        self.rx.lend_place(loan)
    }

    /// Takes back what was lent.
    #[must_use]
    pub fn take_loan(&mut self) -> Returned {
        self.rx.take_loan()
    }

    /// Gives the rest of the payload up: it is skipped, and the connection goes on. What was lent is given back to be dropped; where
    /// it is with a reader, [`take_dead`](Self::take_dead) has it later.
    pub fn abandon_stream(&mut self, token: ServeToken) -> Option<Box<Loan>> {
        let streamed = self.streamed.filter(|streamed| streamed.token == token)?;
        self.streamed = None;
        let rest = self.rx.announced();
        let loan = self.rx.drop_place();
        self.rx.abandon_stream();
        if self.fragments.is_streamed(streamed.id) {
            self.fragments.throw(streamed.id, rest, self.clock.now);
            self.mind_nameless();
        }
        loan
    }

    /// Whether whoever takes the payload has something to take, an end included.
    #[must_use]
    pub fn has_chunk(&self) -> bool {
        self.streamed.is_some() && self.rx.has_chunk()
    }

    /// Takes what was lent and came back when nobody waited for it any more. To drop it runs code of whoever lent it.
    #[inline]
    #[must_use]
    pub fn take_dead(&mut self) -> Vec<Box<Loan>> {
        self.rx.take_dead()
    }

    /// Whether what was lent is with a reader.
    #[inline]
    #[must_use]
    pub fn is_loan_read(&self) -> bool {
        self.rx.is_place_lent()
    }

    /// The reader does not give back what was lent.
    pub fn lose_loan(&mut self) {
        self.rx.lose_place();
    }

    /// The octets that a payload may occupy before they come: as many as the largest message so far.
    #[must_use]
    pub fn granted(&self) -> usize {
        self.rx.granted()
    }

    /// Counts octets of a payload that were copied to where whoever takes it wants them.
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

    /// The request is handed out before its payload is there. Says how much comes behind it: `usize::MAX` where nobody knows.
    #[cold]
    pub(super) fn begin_streamed(
        &mut self,
        token: ServeToken,
        header: &MessageHeader,
        request: RequestId,
    ) -> usize {
        let id = (header.version >= Version::V1_2).then_some(request);
        self.streamed = Some(Streamed { token, id, opened: false, count: self.stats.messages_in });
        if self.fragments.is_streamed(id) {
            self.fragments.name(id, request);
            usize::MAX
        } else if self.rx.has_stream() {
            self.rx.stream_size()
        } else {
            self.rx.coming()
        }
    }

    /// The first piece of a streamed request stands in front, or as much of it as is needed.
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
        match self.admit_request(header, None) {
            Some(head) => Some(self.hand_out(header, None, head, true)),
            None => {
                self.fragments.throw(id, 0, self.clock.now);
                None
            }
        }
    }

    /// Hands out what has been joined of a request, if that is enough. What follows is its stream.
    #[cold]
    pub(super) fn hand_out_ripe(&mut self, id: Option<RequestId>) -> Option<Event> {
        if self.rx.has_stream() || self.fragments.is_ripe(id, 0) != Some(true) {
            return None;
        }
        let (header, joined) = self.fragments.hand_out(id, &[])?;
        self.hand_out_joined(header, joined, id, 0, true)
    }

    /// Hands out what has been joined of a request, with what has come of the fragment that waits for a place.
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

    /// Fragments of GIOP 1.1 began, or ended.
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
        match self.admit_request(header, Some(&joined)) {
            Some(head) => Some(self.hand_out(header, Some(joined), head, true)),
            None => {
                self.rx.abandon_stream();
                self.fragments.throw(id, left, self.clock.now);
                None
            }
        }
    }
}
