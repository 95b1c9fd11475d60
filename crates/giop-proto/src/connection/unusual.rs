//! Less frequent messages, and requests that are not handed out immediately.

use bytes::Bytes;
use giop_codec::giop::{MessageHeader, MessageType, RequestId};
use giop_codec::{DecodeError, DecodeErrorKind, Version};

use super::Connection;
use crate::error::{CallError, CallErrorKind, CloseReason, ProtocolError, SentPart};
use crate::event::Event;
use crate::fragments::{FirstPiece, FragmentOutcome};
use crate::frame::{HEADER_LEN, JoinedMessage, word_after_header};
use crate::hits::Limit;
use crate::message::{IncomingLocate, RequestHead};

/// The size in bytes of fragments for GlassFish, which rejects messages of more than 256,000 bytes.
pub const GLASSFISH_FRAGMENT_SIZE: usize = 64 << 10;

impl Connection {
    #[cold]
    pub(super) fn handle_other(&mut self, header: MessageHeader) -> Option<Event> {
        if header.more_fragments && header.kind != MessageType::Fragment {
            self.handle_first_piece(header);
            return None;
        }
        match header.kind {
            MessageType::Fragment => return self.handle_fragment(header),
            MessageType::LocateReply => return self.handle_reply(header, None, false),
            MessageType::CancelRequest => return self.handle_cancel(header),
            MessageType::LocateRequest => {
                let bytes = self.input.rx.take_front();
                return self.handle_locate(header, bytes);
            }
            MessageType::CloseConnection => self.abort(CloseReason::PeerClosed),
            MessageType::MessageError => self.abort(CloseReason::PeerMessageError),
            MessageType::Request | MessageType::Reply => {}
        }
        None
    }

    /// Handles a request that is not handed out, or not yet. `joined` was received in fragments.
    #[cold]
    pub(super) fn handle_unadmitted_request(
        &mut self,
        header: MessageHeader,
        joined: Option<&JoinedMessage>,
    ) {
        if !self.accepts_requests {
            return self.protocol_error(ProtocolError::Unexpected(MessageType::Request));
        }
        let is_contiguous = !self.input.rx.front.is_streamed && self.input.rx.len_outside_control() == 0;
        let bytes = match joined {
            Some(joined) => joined.bytes.clone(),
            None if header.more_fragments => return self.handle_first_piece(header),
            None if is_contiguous => self.input.rx.take_front(),
            None => {
                let start = Bytes::copy_from_slice(self.input.rx.front());
                self.input.rx.drop_front();
                start
            }
        };
        let decoded = RequestHead::decode(&header, &bytes);
        if !self.lifecycle.hands_out_requests() && !self.oneways.accepts(&self.lifecycle, &header, &bytes) {
            match decoded {
                Ok(head) => self.refusal(header).while_closing(head.id, head.response),
                // A request whose header is invalid is refused as well.
                Err(error) if self.awaits_replies() => self.refusal(header).bad_header(&bytes, error),
                Err(_) => self.output.stats.requests_dropped += 1,
            }
            return;
        }
        let size = HEADER_LEN + header.size as usize;
        if bytes.len() < size && is_contiguous {
            return self.refusal(header).oversized(&bytes, size);
        }
        match decoded {
            Ok(head) => {
                let (limit, exception) = self.admission.overload_exception(self.serving.len(), &self.limits);
                self.output.stats.limit_hits.hit(limit);
                self.refusal(header).with_exception(head.id, head.response, &exception);
            }
            Err(error) => self.refusal(header).bad_header(&bytes, error),
        }
    }

    /// Handles a reply with an invalid header. Only its call fails, if the id can be read.
    #[cold]
    pub(super) fn handle_bad_reply(
        &mut self,
        header: MessageHeader,
        bytes: &[u8],
        error: DecodeError,
    ) -> Option<Event> {
        // Before GIOP 1.2, the id of a Reply follows the part that may be invalid.
        let is_id_first = header.kind == MessageType::LocateReply || header.version == Version::V1_2;
        let Some(id) = word_after_header(header.order, bytes).filter(|_| is_id_first) else {
            self.close_for_malformed(header.kind, error);
            return None;
        };
        self.output.stats.limit_hits.hit_by(&error);
        let failed = CallError { kind: CallErrorKind::BadReply(error), sent: SentPart::Whole };
        match self.calls.answer(id, header.kind == MessageType::LocateReply, || Err(failed)) {
            Some(call) => {
                self.continue_closing();
                Some(Event::Reply(call))
            }
            None => self.ignore_stray(),
        }
    }

    #[cold]
    pub(super) fn handle_first_piece(&mut self, header: MessageHeader) {
        let bytes = self.input.rx.front();
        let size = HEADER_LEN + header.size as usize;
        let is_oversized = bytes.len() < size;
        let is_unwanted = match header.kind {
            MessageType::Request | MessageType::LocateRequest if !self.accepts_requests => {
                return self.protocol_error(ProtocolError::Unexpected(header.kind));
            }
            MessageType::Request | MessageType::LocateRequest if !self.lifecycle.hands_out_requests() => {
                header.kind == MessageType::LocateRequest
                    || !self.oneways.accepts(&self.lifecycle, &header, bytes)
            }
            // A reply is unwanted if its call is no longer pending.
            MessageType::Reply | MessageType::LocateReply => word_after_header(header.order, bytes)
                .is_some_and(|id| header.version == Version::V1_2 && self.calls.pending_call(id).is_none()),
            _ => false,
        };
        let now = self.clock.now;
        if is_oversized || is_unwanted {
            let bytes = self.input.rx.take_front();
            match self.input.fragments.start(header, FirstPiece::Discarded(&bytes), now, &self.limits) {
                Ok(()) if is_oversized && !is_unwanted => self.refusal(header).oversized(&bytes, size),
                Ok(()) => self.refusal(header).first_piece(&bytes),
                Err(error) => self.protocol_error(error),
            }
            return;
        }
        let streams = self.input.rx.stream.is_first_streamed_piece(&header, bytes);
        let piece = if header.version == Version::V1_2 { self.input.rx.take_piece() } else { None };
        let started = match piece {
            Some(buffer) => {
                self.input.fragments.start(header, FirstPiece::Placed(buffer, size), now, &self.limits)
            }
            None => {
                let bytes = self.input.rx.front();
                let started = self.input.fragments.start(header, FirstPiece::Bytes(bytes), now, &self.limits);
                self.input.rx.drop_front();
                started
            }
        };
        match started {
            Ok(()) if streams => {
                self.input.fragments.allow_streaming();
                self.input.update_1_1_fragments();
            }
            Ok(()) => {}
            Err(error) => self.protocol_error(error),
        }
    }

    /// Finds the position in memory for a partly received fragment, and returns the event that results, if
    /// any. Returns `None` if the fragment must wait for memory or for more of its bytes.
    #[cold]
    pub(super) fn place_fragment(
        &mut self,
        header: MessageHeader,
        id: Option<RequestId>,
    ) -> Option<Option<Event>> {
        if self.input.fragments.is_streamed(id) {
            self.output.stats.messages_in += 1;
            match self.input.fragments.stream_piece(&header, id) {
                Ok(()) => self.input.rx.begin_piece(&header),
                Err(error) => self.protocol_error(error),
            }
            self.input.update_1_1_fragments_after(&header);
            return Some(None);
        }
        if !self.input.rx.stream.is_active()
            && let Some(is_ready) =
                self.input.fragments.is_ready(id, self.input.rx.received_payload(&header).len())
        {
            return is_ready.then(|| self.hand_out_before_piece(header, id));
        }
        self.place_other_fragment(header, id).then_some(None)
    }

    /// Like [`place_fragment`](Self::place_fragment), for messages that are joined. Returns `false` to wait.
    fn place_other_fragment(&mut self, header: MessageHeader, id: Option<RequestId>) -> bool {
        // The id is missing only in GIOP 1.1, and then the message is one whose rest is discarded.
        let lent = id.map(|id| (id, self.input.fragments.lend(&header, id, &self.limits)));
        match lent {
            Some((id, Ok(Some((buffer, at))))) => match self.input.rx.place(header, buffer, at) {
                Ok(()) => true,
                Err(buffer) => {
                    self.input.fragments.take_back(id, buffer);
                    false
                }
            },
            None | Some((_, Ok(None))) => {
                self.output.stats.messages_in += 1;
                self.input.rx.skip_unplaced_fragment(&header);
                self.handle_fragment(header); // refuses, discards or ignores the fragment
                true
            }
            Some((_, Err(error))) => {
                self.protocol_error(error);
                true
            }
        }
    }

    fn handle_fragment(&mut self, header: MessageHeader) -> Option<Event> {
        let id = word_after_header(header.order, self.input.rx.front())
            .filter(|_| header.version == Version::V1_2);
        let is_identified = id.is_some() || header.version == Version::V1_1;
        if is_identified && self.input.fragments.is_streamed(id) {
            match self.input.fragments.stream_piece(&header, id) {
                Ok(()) => self.input.rx.stream_front(&header),
                Err(error) => self.protocol_error(error),
            }
            self.input.update_1_1_fragments_after(&header);
            return None;
        }
        if is_identified {
            self.input.fragments.restart_timeout(id, self.clock.now);
        }
        let added = match self.input.rx.take_placed_buffer(&header) {
            Some(buffer) => self.input.fragments.add_placed(&header, buffer, &self.limits),
            None => {
                let added = self.input.fragments.add(header, self.input.rx.front(), &self.limits);
                self.input.rx.drop_front();
                added
            }
        };
        self.input.update_1_1_fragments_after(&header);
        match added {
            Ok(FragmentOutcome::Incomplete) if is_identified => self.hand_out_if_ready(id),
            Ok(FragmentOutcome::Incomplete) => None,
            Ok(FragmentOutcome::Stray) => self.ignore_stray(),
            Ok(FragmentOutcome::Complete(header, joined)) => {
                self.input.rx.set_joined_size(joined.bytes.len());
                match header.kind {
                    MessageType::Request => {
                        let head = self.admit_request(header, Some(&joined))?;
                        Some(self.hand_out(header, Some(joined), head, false))
                    }
                    MessageType::LocateRequest => self.handle_locate(header, joined.bytes),
                    _ => self.handle_reply(header, Some(joined), false),
                }
            }
            Ok(FragmentOutcome::Oversized(header, bytes)) => {
                let size = self.limits.max_message_size + 1;
                self.refusal(header).oversized(&bytes, size);
                None
            }
            Err(error) => {
                self.protocol_error(error);
                None
            }
        }
    }

    fn handle_cancel(&mut self, header: MessageHeader) -> Option<Event> {
        self.output.stats.cancels_in += 1;
        let id = word_after_header(header.order, self.input.rx.front());
        self.input.rx.drop_front();
        let Some(id) = id else {
            self.close_for_malformed(header.kind, DecodeError::new(DecodeErrorKind::EndOfData, HEADER_LEN));
            return None;
        };
        if self.close_if_flooded() {
            return None;
        }
        if !self.input.fragments.is_empty() {
            // A streamed request was handed out, so it must be cancelled below too. Its payload ends here.
            let is_streamed = self.input.fragments.is_request_streamed(id);
            let is_found = self.input.fragments.cancel(id);
            self.input.update_1_1_fragments();
            if is_found && !is_streamed {
                return None;
            }
            if is_streamed {
                self.input.rx.stream.end();
            }
        }
        let cancelled = self.serving.cancel(id);
        if let Some(token) = cancelled
            && self.output.fragment_queue.has_growing()
        {
            self.output.stop_growing(token, self.clock.now);
            self.queue_pieces();
        }
        if cancelled.is_none() {
            if !self.output.fragment_queue.is_empty() && self.output.stop_reply(id, self.clock.now) {
                self.queue_pieces();
            } else {
                self.output.stats.stray_messages += 1;
            }
        }
        cancelled.map(Event::Cancelled)
    }

    fn handle_locate(&mut self, header: MessageHeader, bytes: Bytes) -> Option<Event> {
        if !self.accepts_requests {
            self.protocol_error(ProtocolError::Unexpected(MessageType::LocateRequest));
            return None;
        }
        if self.close_if_flooded() {
            return None;
        }
        let decoded = IncomingLocate::decode(&header, bytes);
        if !self.lifecycle.hands_out_requests() {
            match decoded {
                // A LocateRequest before GIOP 1.2 cannot be refused. Answering it executes nothing.
                Ok(Ok(locate)) if header.version < Version::V1_2 && self.awaits_replies() => {
                    return Some(Event::Locate(locate));
                }
                Ok(Ok(locate)) => self.refusal(header).locate_while_closing(locate.id()),
                _ => self.output.stats.requests_dropped += 1,
            }
            return None;
        }
        match decoded {
            Ok(Ok(locate)) => return Some(Event::Locate(locate)),
            Ok(Err((id, exception))) => {
                self.output.stats.requests_refused += 1;
                self.output.refuse_locate(id, header.version, &exception, self.clock.now);
            }
            Err(error) => self.close_for_malformed(MessageType::LocateRequest, error),
        }
        None
    }

    /// Counts and ignores a message that belongs to no known call or request.
    #[cold]
    pub(super) fn ignore_stray(&mut self) -> Option<Event> {
        self.output.stats.stray_messages += 1;
        self.close_if_flooded();
        None
    }

    /// Counts a control message. If there are too many of them, closes the connection and returns true.
    fn close_if_flooded(&mut self) -> bool {
        let is_flooded = self.clock.count_control_message(self.limits.max_control_rate);
        if is_flooded {
            self.output.stats.limit_hits.hit(Limit::ControlRate);
            self.abort(CloseReason::Flood(self.limits.max_control_rate));
        }
        is_flooded
    }

    #[cold]
    pub(super) fn close_for_malformed(&mut self, kind: MessageType, error: DecodeError) {
        self.output.stats.limit_hits.hit_by(&error);
        self.protocol_error(ProtocolError::Malformed { kind, error });
    }
}
