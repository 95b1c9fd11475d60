//! Fragmented requests that are handed out before all of their pieces have arrived.

use std::time::Instant;

use giop_codec::giop::{MessageHeader, RequestId};

use super::{Data, Fragments, IncompleteMessage, JoinedMessage, told};
use crate::error::ProtocolError;
use crate::frame::HEADER_LEN;
use crate::receive::STREAM_START;

impl Fragments {
    /// Allows that the last added message is handed out before all of its pieces have arrived.
    #[cold]
    pub(crate) fn let_stream(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.streams = true;
        }
    }

    /// Returns whether the request with that id can be handed out once `more` bytes have arrived. Returns
    /// `None` if it must be complete first. Here and below, the id of a GIOP 1.1 message is `None`; there is
    /// only one at a time.
    pub(crate) fn is_ripe(&self, id: Option<RequestId>, more: usize) -> Option<bool> {
        let open = self.open.iter().find(|open| open.id == id && open.streams)?;
        open.data.as_ref().map(|data| data.len().saturating_add(more) >= STREAM_START)
    }

    /// Hands out the received part of a request, followed by `more`, which is copied. The following pieces go
    /// to the receiver's stream.
    #[cold]
    pub(crate) fn hand_out(
        &mut self,
        id: Option<RequestId>,
        more: &[u8],
    ) -> Option<(MessageHeader, JoinedMessage)> {
        let open = self.open.iter_mut().find(|open| open.id == id && open.streams)?;
        open.streams = false;
        let mut data = open.data.replace(Data::Streamed)?;
        self.octets -= data.len();
        if !more.is_empty() {
            open.pieces.push(u32::try_from(data.len()).unwrap_or(u32::MAX));
        }
        let (first, pieces) = (open.header, std::mem::take(&mut open.pieces));
        self.copied += data.push(more, &self.pool, 0);
        // The part that is handed out is charged no longer, whatever happens to the following pieces.
        self.settle();
        let size = u32::try_from(data.len() - HEADER_LEN.min(data.len())).unwrap_or(u32::MAX);
        let header = MessageHeader { more_fragments: false, size, ..first };
        let pieces = told(&header, pieces);
        Some((header, JoinedMessage { octets: data.join(&header, &self.pool), pieces }))
    }

    /// Records the request id of the message whose pieces have that id. Later pieces do not carry it.
    #[cold]
    pub(crate) fn name(&mut self, id: Option<RequestId>, request: RequestId) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
            open.request = Some(request);
        }
    }

    /// Returns whether fragments of GIOP 1.1 may go to a stream, or belong to one that is discarded.
    #[cold]
    pub(crate) fn places_nameless(&self) -> bool {
        let is_one = |open: &IncompleteMessage| {
            open.streams || open.thrown.is_some() || matches!(open.data, Some(Data::Streamed))
        };
        self.open.iter().any(|open| open.id.is_none() && is_one(open))
    }

    /// Returns whether the pieces of that request go to the receiver's stream.
    #[cold]
    pub(crate) fn is_request_streamed(&self, request: RequestId) -> bool {
        self.open.iter().any(|open| open.is_request(request) && matches!(open.data, Some(Data::Streamed)))
    }

    /// Returns whether the pieces of the message with that id go to the receiver's stream.
    #[inline]
    pub(crate) fn is_streamed(&self, id: Option<RequestId>) -> bool {
        let found = self.open.iter().find(|open| open.id == id);
        found.is_some_and(|open| matches!(open.data, Some(Data::Streamed)))
    }

    /// Processes a further piece of the streamed message with that id.
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

    /// Discards the rest of a streamed message: about `rest` bytes.
    #[cold]
    pub(crate) fn throw(&mut self, id: Option<RequestId>, rest: usize, now: Instant) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
            (open.data, open.since, open.thrown) = (None, now, Some(rest));
        }
    }

    /// Notes the arrival of a further piece of the message with that id. The number of pieces of a discarded
    /// message is unknown, so the timeout starts again with each.
    #[inline]
    pub(crate) fn saw_piece(&mut self, id: Option<RequestId>, now: Instant) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id && open.thrown.is_some()) {
            open.since = now;
        }
    }
}
