//! Fragmented messages that are handed out before their last piece has been received.

use std::time::Instant;

use giop_codec::giop::{MessageHeader, RequestId};

use super::{Data, Fragments, IncompleteMessage, JoinedMessage};
use crate::error::ProtocolError;
use crate::receive::STREAM_START_LEN;

impl Fragments {
    /// Allows handing out the message that was started last before it is complete.
    #[cold]
    pub(crate) fn allow_streaming(&mut self) {
        if let Some(message) = self.incomplete.last_mut() {
            message.may_stream = true;
        }
    }

    /// Returns whether the message can be handed out with `more` bytes; `None` if it must be complete.
    ///
    /// In this module, `id` is the id in the fragments, which is `None` in GIOP 1.1.
    pub(crate) fn is_ready(&self, id: Option<RequestId>, more: usize) -> Option<bool> {
        let message = self.find(id).filter(|message| message.may_stream)?;
        message.data.as_ref().map(|data| data.len().saturating_add(more) >= STREAM_START_LEN)
    }

    /// Hands out the received part of a message, and a copy of `more`. Later bytes go to its stream.
    #[cold]
    pub(crate) fn hand_out(
        &mut self,
        id: Option<RequestId>,
        more: &[u8],
    ) -> Option<(MessageHeader, JoinedMessage)> {
        let message = self.incomplete.iter_mut().find(|message| message.id == id && message.may_stream)?;
        message.may_stream = false;
        let mut data = message.data.replace(Data::Streamed)?;
        self.total_bytes -= data.len();
        if !more.is_empty() {
            message.piece_offsets.push(u32::try_from(data.len()).unwrap_or(u32::MAX));
        }
        let (first_header, piece_offsets) =
            (message.first_header, std::mem::take(&mut message.piece_offsets));
        self.copied += data.push(more, &self.pool, 0);
        // The part that is handed out is no longer charged.
        self.update_pool_charge();
        Some(data.join(first_header, piece_offsets, &self.pool))
    }

    /// Records the request id of a message that was handed out. GIOP 1.1 fragments do not contain it.
    #[cold]
    pub(crate) fn set_request_id(&mut self, id: Option<RequestId>, request: RequestId) {
        if let Some(message) = self.find_mut(id) {
            message.request_id = Some(request);
        }
    }

    /// Returns whether a GIOP 1.1 message in fragments may be handed out before it is complete, or has been
    /// handed out. The rest of a message that has been handed out is streamed or discarded.
    #[cold]
    pub(crate) fn streams_1_1_fragments(&self) -> bool {
        self.find(None).is_some_and(|message| {
            message.may_stream || message.discarded_bytes.is_some() || message.is_streamed()
        })
    }

    #[cold]
    pub(crate) fn is_request_streamed(&self, request: RequestId) -> bool {
        self.incomplete.iter().any(|message| message.is_request(request) && message.is_streamed())
    }

    #[inline]
    pub(crate) fn is_streamed(&self, id: Option<RequestId>) -> bool {
        self.find(id).is_some_and(IncompleteMessage::is_streamed)
    }

    /// Checks another piece of a streamed message. If it is the last piece, removes the message.
    pub(crate) fn stream_piece(
        &mut self,
        header: &MessageHeader,
        id: Option<RequestId>,
    ) -> Result<(), ProtocolError> {
        let Some(at) = self.incomplete.iter().position(|message| message.id == id) else { return Ok(()) };
        self.incomplete.get(at).map_or(Ok(()), |message| message.check(header))?;
        if !header.more_fragments {
            self.incomplete.swap_remove(at);
        }
        Ok(())
    }

    /// Discards the rest of a streamed message. `rest` is the approximate number of its bytes.
    #[cold]
    pub(crate) fn discard_rest(&mut self, id: Option<RequestId>, rest: usize, now: Instant) {
        if let Some(message) = self.find_mut(id) {
            (message.data, message.started_at, message.discarded_bytes) = (None, now, Some(rest));
        }
    }

    /// Restarts the timeout of a message whose rest, of unknown size, is discarded.
    #[inline]
    pub(crate) fn restart_timeout(&mut self, id: Option<RequestId>, now: Instant) {
        if let Some(message) = self.find_mut(id).filter(|message| message.discarded_bytes.is_some()) {
            message.started_at = now;
        }
    }
}
