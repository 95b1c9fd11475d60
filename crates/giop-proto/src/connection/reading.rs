//! Input: received bytes, and the processing of each message.

use std::io;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::giop::{MessageHeader, MessageType};

use super::closing::Phase;
use super::peer::RequestContexts;
use super::unusual::GLASSFISH_FRAGMENT_SIZE;
use super::{Connection, Input};
use crate::error::{CloseReason, IoFailure, PeerRefusal};
use crate::event::Event;
use crate::frame::{HEADER_LEN, JoinedMessage};
use crate::limits::later;
use crate::message::{IncomingRequest, Reply, ReplyHead, RequestError, RequestHead};
use crate::receive::{ReadBuf, Receiver};

impl Connection {
    /// Returns whether the driver must read the connection. It must not if the connection is closed, or if
    /// received messages have not been processed. It also must not if the peer must wait: until requests are
    /// finished, queued data is written, the reader of a stream takes data, or memory is available.
    #[inline]
    pub fn wants_read(&self) -> bool {
        match self.lifecycle.phase {
            Phase::Open | Phase::Draining { .. } => {
                self.lifecycle.read_end.is_none()
                    && !self.input.has_unprocessed
                    && !self.requests_must_wait()
                    && !self.input.rx.memory.starved
                    && !self.input.rx.stream.awaits_reader()
                    && !self.input.awaits_end()
            }
            Phase::Finishing { peer_ended, .. } => !peer_ended,
            Phase::Lingering { .. } => true,
            Phase::Closed { .. } => false,
        }
    }

    /// Lends the buffer for [`handle_read`](Self::handle_read). All events must have been polled.
    #[inline]
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        self.input.rx.memory.urgent = self.calls.pending() > 0;
        self.input.rx.take_read_buf()
    }

    /// Processes bytes that were received while no buffer was lent. Returns `false` if they do not fit into
    /// a buffer; the connection must then be closed. All events must have been polled.
    #[must_use]
    pub fn handle_early_bytes(&mut self, bytes: &[u8], now: Instant) -> bool {
        let mut buf = self.take_read_buf();
        let n = buf.fill(bytes);
        self.input.rx.memory.copied_bytes += n as u64;
        self.handle_read(buf, n, now);
        n == bytes.len()
    }

    /// Returns whether a buffer may be lent before the socket is readable. If not, wait for that first.
    ///
    /// A buffer may be lent if a message has started, if the connection keeps its buffer for small messages
    /// anyway, or if it [discards input](super::Lifecycle::discards_input).
    #[inline]
    pub fn may_wait_with_buf(&self) -> bool {
        self.input.rx.is_mid_message() || self.input.rx.window.may_keep || self.lifecycle.discards_input()
    }

    /// Takes back a lent buffer into which `n` more bytes were read. `n` may be 0.
    #[inline]
    pub fn handle_read(&mut self, buf: ReadBuf, n: usize, now: Instant) {
        self.input.rx.handle_read(buf, n);
        self.output.stats.reads += 1;
        if n > 0 {
            self.output.stats.bytes_in += n as u64;
            self.clock.record_transfer(now);
        }
        if !self.lifecycle.processes_messages() {
            self.input.rx.clear();
        }
    }

    /// Handles the end of the peer's stream. The connection closes after the messages received before.
    #[cold]
    pub fn handle_eof(&mut self, now: Instant) {
        self.handle_read_end(self.lifecycle.write_end.map_or(CloseReason::Eof, |(reason, _)| reason), now);
    }

    /// Handles a failure to read. The connection is closed when all messages received before are processed.
    #[cold]
    pub fn handle_read_error(&mut self, error: &io::Error, now: Instant) {
        let refusal = error.get_ref().and_then(|source| source.downcast_ref::<PeerRefusal>());
        let reason = refusal.map_or_else(
            || CloseReason::Io(IoFailure::from(error)),
            |refusal| CloseReason::Refused(*refusal),
        );
        self.handle_read_end(reason, now);
    }

    /// Handles a failure to write. Reading continues for the linger timeout, to find a CloseConnection.
    #[cold]
    pub fn handle_write_error(&mut self, error: &io::Error, now: Instant) {
        self.clock.now = now;
        let reason = CloseReason::Io(IoFailure::from(error));
        match self.lifecycle.phase {
            Phase::Open | Phase::Draining { .. } if self.lifecycle.read_end.is_none() => {
                self.lifecycle.write_end.get_or_insert((reason, later(now, self.limits.linger_timeout)));
                self.oneways.detect_lost(&reason, self.output.tx.written(), self.calls.confirmed_position());
                self.output.tx.clear();
                self.output.fragment_queue.clear();
                self.output.report(self.clock.now);
                self.output.timer.stop_unless(false);
            }
            Phase::Finishing { reason, .. } | Phase::Lingering { reason, .. } => self.abort(reason),
            _ => self.abort(reason),
        }
    }

    fn handle_read_end(&mut self, reason: CloseReason, now: Instant) {
        self.clock.now = now;
        match self.lifecycle.phase {
            Phase::Open | Phase::Draining { .. } => {
                self.lifecycle.read_end.get_or_insert(reason);
            }
            Phase::Finishing { reason, .. } if self.output.tx.backlog() > 0 => {
                self.lifecycle.phase = Phase::Finishing { reason, peer_ended: true };
            }
            Phase::Finishing { reason, .. } | Phase::Lingering { reason, .. } => self.abort(reason),
            Phase::Closed { .. } => {}
        }
    }

    /// Returns whether the peer's requests must wait. A side that awaits replies must not stop reading.
    #[inline]
    pub(super) fn requests_must_wait(&self) -> bool {
        // The rest of the payload of a request that is being served may follow other requests.
        let is_streaming = self.input.rx.stream.is_active() && !self.input.rx.stream.awaits_reader();
        self.is_at_limit() && !self.admission.refuses_excess && self.calls.pending() == 0 && !is_streaming
    }

    #[inline]
    pub(super) fn is_at_limit(&self) -> bool {
        self.serving.len() >= self.admission.granted || self.output.is_backed_up()
    }

    /// Returns whether fewer requests are being served than `Limits::max_requests`.
    #[inline]
    pub fn may_hand_out_request(&self) -> bool {
        self.serving.len() < self.limits.max_requests
    }

    #[inline]
    pub(super) fn poll_message(&mut self) -> Option<Event> {
        while self.lifecycle.processes_messages() {
            if self.is_at_limit() {
                let in_flight = self.serving.len();
                if let Some(limit) = self.admission.extend_grant(in_flight, &self.limits, &self.output) {
                    self.count_limit_wait(limit);
                }
                if self.requests_must_wait() {
                    self.input.has_unprocessed = true;
                    self.clock.stop_message_timeout();
                    return None;
                }
            }
            self.input.rx.memory.urgent = self.calls.pending() > 0;
            // While the payload of a message is streamed, other messages may have to wait until it is taken.
            let is_blocked = self.input.incoming_payload.is_some() && self.input.rx.stream.blocks_messages();
            match if is_blocked { Ok(None) } else { self.input.rx.peek() } {
                Ok(Some(_)) if self.input.awaits_end() => break,
                Ok(Some(header)) if self.admission.refuses_excess && self.suspend_oneway(&header) => {
                    return None;
                }
                Ok(Some(header)) => {
                    self.clock.first_header_deadline = None;
                    self.output.stats.messages_in += 1;
                    self.output.version = header.version;
                    // The most frequent event is returned directly, because moving it is slower.
                    if header.kind == MessageType::Request {
                        if self.input.rx.front.has_more_pieces {
                            match self.hand_out_first_piece(header) {
                                Some(event) => return Some(event),
                                None => continue,
                            }
                        }
                        if let Some(head) = self.admit_request(header, None) {
                            let streams = self.input.rx.front.is_streamed;
                            return Some(self.hand_out(header, None, head, streams));
                        }
                        continue;
                    }
                    let event = match header.kind {
                        MessageType::Reply if self.input.rx.front.has_more_pieces => {
                            self.hand_out_first_piece(header)
                        }
                        MessageType::Reply => {
                            let streams = self.input.rx.front.is_streamed;
                            self.handle_reply(header, None, streams)
                        }
                        _ => self.handle_other(header),
                    };
                    if event.is_some() {
                        return event;
                    }
                }
                Ok(None) => {
                    if let Some((header, id)) = self.input.rx.unplaced_fragment() {
                        match self.place_fragment(header, id) {
                            Some(None) => continue,
                            Some(event) => return event,
                            None => {}
                        }
                    }
                    self.finish_processing();
                    match self.lifecycle.read_end {
                        Some(reason) if !self.input.rx.memory.starved && !is_blocked => self.abort(reason),
                        _ => break,
                    }
                }
                Err(error) => self.protocol_error(error),
            }
        }
        self.notices.pop_front().map(Event::from)
    }

    /// Called when all received messages are processed, or when the reader of a stream must take data first.
    #[inline]
    fn finish_processing(&mut self) {
        if self.input.incoming_payload.is_some() && self.input.rx.stream.awaits_reader() {
            // Received bytes cannot be split into messages until the reader of the stream returns them.
            self.input.has_unprocessed = self.input.rx.stream.blocks_messages();
            return self.clock.suspend_message_timeout();
        }
        if self.clock.first_header_deadline.is_some() && self.input.rx.has_header() {
            self.clock.first_header_deadline = None;
        }
        self.input.has_unprocessed = false;
        self.close_after_last_bytes();
        let may_wait = self.calls.pending() == 0 && self.lifecycle.read_end.is_none();
        self.input.limit_memory(self.output.stats.messages_in, may_wait);
        // All pieces of a stream have the same timeout.
        let count = match &self.input.incoming_payload {
            Some(streamed) if self.input.rx.stream.is_active() => streamed.messages_before,
            _ => self.output.stats.messages_in,
        };
        self.clock.update_message(self.input.rx.is_mid_message() && !self.input.rx.memory.starved, count);
    }

    /// Decodes the header of a request. `joined` is a request that was received in fragments; `None` means
    /// the message at the front of the input. Returns `None` if the request is not handed out, or not yet.
    #[inline]
    pub(super) fn admit_request(
        &mut self,
        header: MessageHeader,
        joined: Option<&JoinedMessage>,
    ) -> Option<RequestHead> {
        let bytes = message_bytes(joined, &self.input.rx);
        if !self.lifecycle.hands_out_requests() && !self.oneways.accepts(&self.lifecycle, &header, bytes)
            || !self.accepts_requests
            || header.more_fragments
            || (bytes.len() + self.input.rx.streamed_rest() != HEADER_LEN + header.size as usize
                && bytes.len() + self.input.rx.len_outside_control() != HEADER_LEN + header.size as usize)
            || self.serving.len() >= self.admission.granted
            // Bytes that are lent to a writer do not count, because they may have been written.
            || self.output.is_backed_up() && self.output.limit_exceeded_without_lent_bytes().is_some()
        {
            self.handle_unadmitted_request(header, joined);
            return None;
        }
        match self.peer.last_head.recall(&header, bytes) {
            Some(head) => Some(head),
            None => self.new_head(header, joined),
        }
    }

    /// Returns the event for an admitted request. `streams` is true if the rest of its payload is a stream.
    #[inline]
    pub(super) fn hand_out(
        &mut self,
        header: MessageHeader,
        joined: Option<JoinedMessage>,
        head: RequestHead,
        streams: bool,
    ) -> Event {
        self.clock.permit_control_message();
        let token = self.serving.insert(head.id, head.response.expects_reply());
        let settings = self.peer.message_settings(&self.limits, self.input.rx.deposits_enabled);
        let stream_len = if streams {
            self.input.begin_request_stream(token, &header, head.id, self.output.stats.messages_in)
        } else {
            0
        };
        let message = joined.unwrap_or_else(|| self.input.rx.take_joined());
        Event::Request(IncomingRequest::new(header, message, head, token, settings, stream_len))
    }

    /// Decodes a request header that differs from the last one. Returns `None` if the request is refused.
    #[inline(never)]
    fn new_head(&mut self, header: MessageHeader, joined: Option<&JoinedMessage>) -> Option<RequestHead> {
        let bytes = message_bytes(joined, &self.input.rx);
        let decoded = match RequestHead::decode(&header, bytes) {
            Ok(head) if !head.has_contexts => {
                self.peer.last_head.remember(&header, &head, bytes);
                return Some(head);
            }
            other => other,
        };
        let message = match joined {
            Some(joined) => joined.bytes.clone(),
            None => Bytes::copy_from_slice(bytes),
        };
        let refused = match decoded {
            Ok(mut head) => match self.peer.apply_contexts(&header, &message) {
                Ok(RequestContexts { has_new_listen_points, asks_for_reference, is_glassfish }) => {
                    if is_glassfish {
                        self.limit_fragment_size(GLASSFISH_FRAGMENT_SIZE);
                    }
                    head.has_new_listen_points = has_new_listen_points;
                    head.asks_for_reference = asks_for_reference;
                    if let Some(head_len) = self.input.rx.first_block_head_len(&header, &message) {
                        self.input.rx.expect_blocks(head_len);
                    }
                    if asks_for_reference {
                        // It is not remembered, so that the context in the next request is processed too.
                        self.peer.last_head.forget();
                    } else {
                        self.peer.last_head.remember(&header, &head, &message);
                    }
                    return Some(head);
                }
                Err(exception) => RequestError::Refused(head.id, head.response, exception),
            },
            Err(error) => error,
        };
        if joined.is_none() {
            self.input.rx.drop_front();
        }
        self.refusal(header).bad_header(&message, refused);
        None
    }

    /// Handles a Reply or LocateReply. `streams` is true if the rest of its payload is a stream.
    #[inline]
    pub(super) fn handle_reply(
        &mut self,
        header: MessageHeader,
        joined: Option<JoinedMessage>,
        streams: bool,
    ) -> Option<Event> {
        if header.more_fragments {
            self.handle_first_piece(header);
            return None;
        }
        let settings = self.peer.message_settings(&self.limits, self.input.rx.deposits_enabled);
        let head = match ReplyHead::decode(&header, message_bytes(joined.as_ref(), &self.input.rx)) {
            Ok(head) => head,
            Err(error) => {
                let bytes = joined.map_or_else(|| self.input.rx.take_front(), |joined| joined.bytes);
                return self.handle_bad_reply(header, &bytes, error);
            }
        };
        let stream_len = if streams {
            self.input.begin_reply_stream(&header, head.id, &self.calls, self.output.stats.messages_in)
        } else {
            0
        };
        let Self { calls, input: Input { rx, .. }, .. } = self;
        if head.has_contexts
            && let Some(head_len) = rx.first_block_head_len(&header, message_bytes(joined.as_ref(), rx))
        {
            rx.expect_blocks(head_len);
        }
        let is_at_front = joined.is_none();
        let answered = calls.answer(head.id, header.kind == MessageType::LocateReply, || {
            let message = joined.unwrap_or_else(|| rx.take_joined());
            Ok(Reply::new(header, message, head, settings, stream_len))
        });
        match answered {
            Some(call) => {
                if !self.lifecycle.hands_out_requests() {
                    self.continue_closing();
                }
                Some(Event::Reply(call))
            }
            None => {
                if is_at_front {
                    self.input.rx.drop_front();
                }
                self.ignore_stray()
            }
        }
    }
}

#[inline]
fn message_bytes<'a>(joined: Option<&'a JoinedMessage>, rx: &'a Receiver) -> &'a [u8] {
    match joined {
        Some(joined) => &joined.bytes,
        None => rx.front(),
    }
}
