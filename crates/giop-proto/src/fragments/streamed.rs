//! Requests in pieces that are handed out before all of these are there.

use std::time::Instant;

use giop_codec::giop::{MessageHeader, RequestId};

use super::{Data, Fragments, Joined, Open, told};
use crate::error::ProtocolError;
use crate::receive::{HEADER_LEN, STREAM_START};

impl Fragments {
    /// The message that was opened last may be handed out before all of its pieces are there.
    #[cold]
    pub(crate) fn let_stream(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.streams = true;
        }
    }

    /// Whether the request with that id waits for `more` octets or fewer before it can be handed out. `None`: it can not be before
    /// it is whole. Here and below, the one of GIOP 1.1, of which there is but one at a time, has no id.
    pub(crate) fn is_ripe(&self, id: Option<RequestId>, more: usize) -> Option<bool> {
        let open = self.open.iter().find(|open| open.id == id && open.streams)?;
        open.data.as_ref().map(|data| data.len().saturating_add(more) >= STREAM_START)
    }

    /// Hands out what is there of a request, `more` behind it. What follows goes to the receiver's stream. Copies `more`.
    #[cold]
    pub(crate) fn hand_out(&mut self, id: Option<RequestId>, more: &[u8]) -> Option<(MessageHeader, Joined)> {
        let open = self.open.iter_mut().find(|open| open.id == id && open.streams)?;
        open.streams = false;
        let mut data = open.data.replace(Data::Streamed)?;
        self.octets -= data.len();
        if !more.is_empty() {
            open.pieces.push(u32::try_from(data.len()).unwrap_or(u32::MAX));
        }
        let (first, pieces) = (open.header, std::mem::take(&mut open.pieces));
        self.copied += data.push(more, &self.pool, 0);
        // What is handed out is charged no more, whatever becomes of the pieces that follow.
        self.settle();
        let size = u32::try_from(data.len() - HEADER_LEN.min(data.len())).unwrap_or(u32::MAX);
        let header = MessageHeader { more_fragments: false, size, ..first };
        let pieces = told(&header, pieces);
        Some((header, Joined { octets: data.join(&header, &self.pool), pieces }))
    }

    /// The request whose pieces have that id is the one with the id `request`: nothing else says so later.
    #[cold]
    pub(crate) fn name(&mut self, id: Option<RequestId>, request: RequestId) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
            open.request = Some(request);
        }
    }

    /// Whether fragments of GIOP 1.1 may go to a stream, or belong to one that is thrown away.
    #[cold]
    pub(crate) fn places_nameless(&self) -> bool {
        let is_one =
            |open: &Open| open.streams || open.thrown.is_some() || matches!(open.data, Some(Data::Streamed));
        self.open.iter().any(|open| open.id.is_none() && is_one(open))
    }

    /// Whether the pieces of that request go to the receiver's stream.
    #[cold]
    pub(crate) fn is_request_streamed(&self, request: RequestId) -> bool {
        self.open.iter().any(|open| open.is_request(request) && matches!(open.data, Some(Data::Streamed)))
    }

    /// Whether the pieces of the message with that id go to the receiver's stream.
    #[inline]
    pub(crate) fn is_streamed(&self, id: Option<RequestId>) -> bool {
        let found = self.open.iter().find(|open| open.id == id);
        found.is_some_and(|open| matches!(open.data, Some(Data::Streamed)))
    }

    /// A further piece of the streamed message with that id.
    pub(crate) fn stream_piece(
        &mut self,
        header: &MessageHeader,
        id: Option<RequestId>,
    ) -> Result<(), ProtocolError> {
        let Some(at) = self.open.iter().position(|open| open.id == id) else { return Ok(()) };
        self.open.get(at).map_or(Ok(()), |open| open.check(header))?;
        if !header.more_fragments {
            self.open.swap_remove(at);
        }
        Ok(())
    }

    /// What is still to come of a streamed message is thrown away: about `rest` octets.
    #[cold]
    pub(crate) fn throw(&mut self, id: Option<RequestId>, rest: usize, now: Instant) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
            (open.data, open.since, open.thrown) = (None, now, Some(rest));
        }
    }

    /// A further piece comes of the message with that id. Of one that is thrown away nobody knows how many there are: each has its
    /// time.
    #[inline]
    pub(crate) fn saw_piece(&mut self, id: Option<RequestId>, now: Instant) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id && open.thrown.is_some()) {
            open.since = now;
        }
    }
}
