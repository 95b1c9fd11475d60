//! Input: received bytes, and the dispatch of each message.

use std::io;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::giop::{MessageHeader, MessageType};

use super::closing::Phase;
use super::peer::RequestContexts;
use super::unusual::GLASSFISH_FRAGMENT;
use super::{Connection, Input};
use crate::error::{CloseReason, IoFailure, PeerRefusal};
use crate::event::Event;
use crate::frame::{HEADER_LEN, JoinedMessage};
use crate::limits::later;
use crate::message::{IncomingRequest, Reply, ReplyHead, RequestError, RequestHead};
use crate::receive::{ReadBuf, Receiver};

impl Connection {
    /// Returns whether the connection is to be read. `false` if it is closed, or if the peer has to wait
    /// until requests are finished, queued data is written, or memory is available.
    #[inline]
    pub fn wants_read(&self) -> bool {
        match self.lifecycle.phase {
            Phase::Open | Phase::Draining { .. } => {
                self.lifecycle.read_end.is_none()
                    && !self.input.has_unprocessed
                    && !self.is_held()
                    && !self.input.rx.memory.starved
                    && !self.input.rx.stream.awaits_reader()
                    && !self.input.awaits_end()
            }
            Phase::Finishing { eof, .. } => !eof,
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

    /// Processes bytes that were received before the first read into a buffer. Returns `false` if they did
    /// not fit: the stream is then lost. All events must have been polled.
    #[must_use]
    pub fn handle_early(&mut self, bytes: &[u8], now: Instant) -> bool {
        let mut buf = self.take_read_buf();
        let n = buf.fill(bytes);
        self.input.rx.memory.copied += n as u64;
        self.handle_read(buf, n, now);
        n == bytes.len()
    }

    /// Returns whether a buffer may be lent before bytes are available. Otherwise wait for readiness first.
    ///
    /// True if a message has started, if the connection keeps its window anyway, or if it
    /// [discards](super::Lifecycle::discards_input) input, which is read in pieces of the same size.
    #[inline]
    pub fn may_wait_with_buf(&self) -> bool {
        self.input.rx.is_mid_message() || self.input.rx.window.may_keep || self.lifecycle.discards_input()
    }

    /// Takes the buffer back with `n` more bytes. If `n` is 0, the buffer is only returned.
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
        self.read_ended(self.lifecycle.write_end.map_or(CloseReason::Eof, |(reason, _)| reason), now);
    }

    /// Handles that reading failed. The connection closes after the messages received before.
    #[cold]
    pub fn handle_read_error(&mut self, error: &io::Error, now: Instant) {
        let refused = error.get_ref().and_then(|source| source.downcast_ref::<PeerRefusal>());
        let reason = refused.map_or_else(
            || CloseReason::Io(IoFailure::from(error)),
            |refused| CloseReason::Refused(*refused),
        );
        self.read_ended(reason, now);
    }

    /// Handles that writing failed. Reading goes on for the linger timeout, in case of a CloseConnection.
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

    fn read_ended(&mut self, reason: CloseReason, now: Instant) {
        self.clock.now = now;
        match self.lifecycle.phase {
            Phase::Open | Phase::Draining { .. } => {
                self.lifecycle.read_end.get_or_insert(reason);
            }
            Phase::Finishing { reason, .. } if self.output.tx.backlog() > 0 => {
                self.lifecycle.phase = Phase::Finishing { reason, eof: true };
            }
            Phase::Finishing { reason, .. } | Phase::Lingering { reason, .. } => self.abort(reason),
            Phase::Closed { .. } => {}
        }
    }

    /// Returns whether the peer has to wait. A side that awaits replies never stops reading.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        // A request being served may need the rest of its payload, which may follow other requests.
        let is_streaming = self.input.rx.stream.is_active() && !self.input.rx.stream.awaits_reader();
        self.is_over_budget() && !self.requests.refuses_excess && self.calls.pending() == 0 && !is_streaming
    }

    #[inline]
    pub(super) fn is_over_budget(&self) -> bool {
        self.serving.len() >= self.requests.granted || self.output.is_backed_up()
    }

    /// Returns whether another request may be handed out before one is finished.
    #[inline]
    pub fn may_hand_out_request(&self) -> bool {
        self.serving.len() < self.limits.max_requests
    }

    #[inline]
    pub(super) fn poll_message(&mut self) -> Option<Event> {
        while self.lifecycle.processes_messages() {
            if self.is_over_budget() {
                let in_flight = self.serving.len();
                if let Some(limit) = self.requests.grow(in_flight, &self.limits, &self.output) {
                    self.count_limit_wait(limit);
                }
                if self.is_held() {
                    self.input.has_unprocessed = true;
                    self.clock.stop_message_timeout();
                    return None;
                }
            }
            self.input.rx.memory.urgent = self.calls.pending() > 0;
            // While a message is streamed, other messages wait until its payload is taken.
            let held = self.input.streamed.is_some() && self.input.rx.stream.delays_messages();
            match if held { Ok(None) } else { self.input.rx.peek() } {
                Ok(Some(_)) if self.input.awaits_end() => break,
                Ok(Some(header)) if self.requests.refuses_excess && self.suspend_oneway(&header) => {
                    return None;
                }
                Ok(Some(header)) => {
                    self.clock.first_header_deadline = None;
                    self.output.stats.messages_in += 1;
                    self.output.version = header.version;
                    // The most frequent event is constructed in place, because moving it is slower.
                    if header.kind == MessageType::Request {
                        if self.input.rx.front.has_more {
                            match self.hand_out_first_piece(header) {
                                Some(event) => return Some(event),
                                None => continue,
                            }
                        }
                        if let Some(head) = self.admit_request(header, None) {
                            let streams = self.input.rx.front.streams;
                            return Some(self.hand_out(header, None, head, streams));
                        }
                        continue;
                    }
                    let event = match header.kind {
                        MessageType::Reply if self.input.rx.front.has_more => {
                            self.hand_out_first_piece(header)
                        }
                        MessageType::Reply => {
                            let streams = self.input.rx.front.streams;
                            self.handle_reply(header, None, streams)
                        }
                        _ => self.handle_other(header),
                    };
                    if event.is_some() {
                        return event;
                    }
                }
                Ok(None) => {
                    if let Some((header, id)) = self.input.rx.unplaced() {
                        match self.place_fragment(header, id) {
                            Some(None) => continue,
                            Some(event) => return event,
                            None => {}
                        }
                    }
                    self.finish_processing();
                    match self.lifecycle.read_end {
                        Some(reason) if !self.input.rx.memory.starved && !held => self.abort(reason),
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
        if self.input.streamed.is_some() && self.input.rx.stream.awaits_reader() {
            // Data in a lent buffer cannot be split into messages until the reader returns it.
            self.input.has_unprocessed = self.input.rx.stream.delays_messages();
            return self.clock.suspend_message_timeout();
        }
        if self.clock.first_header_deadline.is_some() && self.input.rx.has_header() {
            self.clock.first_header_deadline = None;
        }
        self.input.has_unprocessed = false;
        self.close_after_last_bytes();
        let may_wait = self.calls.pending() == 0 && self.lifecycle.read_end.is_none();
        self.input.limit_memory(self.output.stats.messages_in, may_wait);
        // The pieces of a stream share one timeout.
        let count = match &self.input.streamed {
            Some(streamed) if self.input.rx.stream.is_active() => streamed.messages_before,
            _ => self.output.stats.messages_in,
        };
        self.clock.update_message(self.input.rx.is_mid_message() && !self.input.rx.memory.starved, count);
    }

    /// Decodes the header of a request: of `joined` if it was received in fragments, otherwise of the peeked
    /// message. Returns `None` if the request is dropped or refused.
    #[inline]
    pub(super) fn admit_request(
        &mut self,
        header: MessageHeader,
        joined: Option<&JoinedMessage>,
    ) -> Option<RequestHead> {
        let bytes = message_bytes(joined, &self.input.rx);
        if !self.lifecycle.accepts_requests() && !self.oneways.accepts(&self.lifecycle, &header, bytes)
            || !self.accept_requests
            || header.more_fragments
            || (bytes.len() + self.input.rx.coming() != HEADER_LEN + header.size as usize
                && bytes.len() + self.input.rx.len_outside_control() != HEADER_LEN + header.size as usize)
            || self.serving.len() >= self.requests.granted
            // Bytes lent to a writer do not count, because they may be written already.
            || self.output.is_backed_up() && self.output.exceeded_limit_unlent().is_some()
        {
            self.handle_unusual_request(header, joined);
            return None;
        }
        match self.peer.last_head.recall(&header, bytes) {
            Some(head) => Some(head),
            None => self.new_head(header, joined),
        }
    }

    #[inline]
    pub(super) fn hand_out(
        &mut self,
        header: MessageHeader,
        joined: Option<JoinedMessage>,
        head: RequestHead,
        streams: bool,
    ) -> Event {
        self.clock.discount_control_message();
        let token = self.serving.insert(head.id, head.response.expects_reply());
        let settings = self.peer.message_settings(&self.limits, self.input.rx.deposits);
        let coming = if streams {
            self.input.begin_streamed(token, &header, head.id, self.output.stats.messages_in)
        } else {
            0
        };
        let message = joined.unwrap_or_else(|| self.input.rx.take_joined());
        Event::Request(IncomingRequest::new(header, message, head, token, settings, coming))
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
                Ok(RequestContexts { announces, asks_for_reference, is_glassfish }) => {
                    if is_glassfish {
                        self.limit_fragment_size(GLASSFISH_FRAGMENT);
                    }
                    (head.announces, head.asks_for_reference) = (announces, asks_for_reference);
                    if let Some(head) = self.input.rx.first_blocks(&header, &message) {
                        self.input.rx.expect_blocks(head);
                    }
                    if asks_for_reference {
                        // Not remembered, so that this context is processed again if the request is repeated.
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

    /// Handles a Reply or LocateReply. `streams` is true if its payload is a stream.
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
        let settings = self.peer.message_settings(&self.limits, self.input.rx.deposits);
        let head = match ReplyHead::decode(&header, message_bytes(joined.as_ref(), &self.input.rx)) {
            Ok(head) => head,
            Err(error) => {
                let bytes = joined.map_or_else(|| self.input.rx.take_front(), |joined| joined.bytes);
                return self.bad_reply(header, &bytes, error);
            }
        };
        let coming = if streams {
            self.input.begin_streamed_reply(&header, head.id, &self.calls, self.output.stats.messages_in)
        } else {
            0
        };
        let Self { calls, input: Input { rx, .. }, .. } = self;
        if head.has_contexts
            && let Some(head) = rx.first_blocks(&header, message_bytes(joined.as_ref(), rx))
        {
            rx.expect_blocks(head);
        }
        let whole = joined.is_none();
        let answered = calls.answer(head.id, header.kind == MessageType::LocateReply, || {
            let message = joined.unwrap_or_else(|| rx.take_joined());
            Ok(Reply::new(header, message, head, settings, coming))
        });
        match answered {
            Some(call) => {
                if !self.lifecycle.accepts_requests() {
                    self.continue_closing();
                }
                Some(Event::Reply(call))
            }
            None => {
                if whole {
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
