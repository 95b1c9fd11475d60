//! Input: octets to messages, and each message to what it means here.

use std::io;
use std::time::Instant;

use giop_codec::code_set::CodeSetContext;
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{ContextId, MessageType, RequestId, ResponseFlags};
use giop_codec::{DecodeError, Version};

use super::Connection;
use super::closing::Phase;
use crate::error::{CallError, CallErrorKind, CloseReason, IoFailure, ProtocolError, Sent};
use crate::event::Event;
use crate::message::{self, IncomingLocate, IncomingRequest, Reply, RequestError, RequestHead, Terms};
use crate::receive::{Frame, FrameError, HEADER_LEN, ReadBuf};

impl Connection {
    /// Whether the connection is to be read. `false`: it is closed, or the peer has to wait until requests are finished or
    /// what is queued for it is written.
    #[inline]
    #[must_use]
    pub fn wants_read(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::Draining { .. } => self.clock.read_end.is_none() && !self.is_held(),
            Phase::Finishing { eof, .. } => !eof,
            Phase::Lingering { .. } => true,
            Phase::Closed { .. } => false,
        }
    }

    /// The buffer for the next read, lent by value: what is in it belongs to whoever reads. It must come back by
    /// [`handle_read`](Self::handle_read). Poll all events before.
    #[inline]
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        self.rx.take_read_buf()
    }

    /// Takes the buffer back with `n` octets more in it. With `n` = 0 it just gives it back.
    #[inline]
    pub fn handle_read(&mut self, buf: ReadBuf, n: usize, now: Instant) {
        self.rx.handle_read(buf, n);
        if n > 0 {
            self.stats.octets_in += n as u64;
            self.clock.read(now);
        }
        if !matches!(self.phase, Phase::Open | Phase::Draining { .. }) {
            self.rx.clear();
        }
    }

    /// The peer will send nothing more. What came before is still handed out; then the connection is closed.
    #[cold]
    pub fn handle_eof(&mut self, now: Instant) {
        self.read_ended(self.clock.write_end.map_or(CloseReason::Eof, |(reason, _)| reason), now);
    }

    /// Reading failed. What came before is still handed out; then the connection is closed.
    #[cold]
    pub fn handle_read_error(&mut self, error: &io::Error, now: Instant) {
        self.read_ended(CloseReason::Io(IoFailure::from(error)), now);
    }

    /// Writing failed. The connection is read on for a moment: the peer may have closed in good order before.
    #[cold]
    pub fn handle_write_error(&mut self, error: &io::Error, now: Instant) {
        self.clock.saw(now);
        let reason = CloseReason::Io(IoFailure::from(error));
        match self.phase {
            Phase::Open | Phase::Draining { .. } if self.clock.read_end.is_none() => {
                if self.clock.write_end.is_none() {
                    self.clock.write_end = Some((reason, now + self.limits.linger_timeout));
                }
                self.tx.clear();
                self.clock.unqueued(false);
            }
            Phase::Finishing { reason, .. } | Phase::Lingering { reason, .. } => self.end(reason),
            _ => self.abort(reason),
        }
    }

    fn read_ended(&mut self, reason: CloseReason, now: Instant) {
        self.clock.saw(now);
        match self.phase {
            Phase::Open | Phase::Draining { .. } => {
                self.clock.read_end.get_or_insert(reason);
            }
            _ => self.eof_while_closing(),
        }
    }

    /// Whether the peer has to wait. Whoever awaits replies never stops reading.
    #[inline]
    fn is_held(&self) -> bool {
        self.calls.waiting() == 0 && self.is_over_budget()
    }

    #[inline]
    fn is_over_budget(&self) -> bool {
        self.serving.len() >= self.limits.max_requests || self.tx.backlog() > self.limits.max_backlog
    }

    /// The event of the next message that has one.
    #[inline]
    pub(super) fn poll_message(&mut self) -> Option<Event> {
        while matches!(self.phase, Phase::Open | Phase::Draining { .. }) {
            if self.is_held() {
                return None;
            }
            match self.rx.next_frame() {
                Ok(Some(frame)) => {
                    self.clock.header();
                    self.stats.messages_in += 1;
                    if let Some(event) = self.handle_frame(frame) {
                        return Some(event);
                    }
                }
                Ok(None) => {
                    self.clock.cut(self.rx.is_mid_message(), self.stats.messages_in);
                    match self.clock.read_end {
                        Some(reason) => self.end(reason),
                        None => break,
                    }
                }
                Err(FrameError::Header(error)) => self.protocol_error(error.into()),
                Err(FrameError::TooLarge { size, limit }) => {
                    self.protocol_error(ProtocolError::TooLarge { size, limit });
                }
            }
        }
        self.notices.pop_front().map(Event::from)
    }

    #[inline]
    fn handle_frame(&mut self, frame: Frame) -> Option<Event> {
        self.version = frame.header.version;
        match frame.header.kind {
            MessageType::Request => self.handle_request(frame),
            MessageType::Reply => self.handle_reply(frame, false),
            _ => self.handle_other(frame),
        }
    }

    #[cold]
    fn handle_other(&mut self, frame: Frame) -> Option<Event> {
        match frame.header.kind {
            MessageType::Request | MessageType::Fragment => None,
            MessageType::Reply => None,
            MessageType::LocateReply => self.handle_reply(frame, true),
            MessageType::CancelRequest => self.handle_cancel(&frame),
            MessageType::LocateRequest => self.handle_locate(frame),
            MessageType::CloseConnection => {
                self.end(CloseReason::PeerClosed);
                None
            }
            MessageType::MessageError => {
                self.end(CloseReason::PeerMessageError);
                None
            }
        }
    }

    #[inline]
    fn handle_request(&mut self, frame: Frame) -> Option<Event> {
        if !self.accept_requests {
            self.protocol_error(ProtocolError::Unexpected(MessageType::Request));
            return None;
        }
        if !self.is_open() || self.is_over_budget() {
            return self.turn_away(&frame);
        }
        match RequestHead::decode(&frame) {
            Ok(head) => {
                self.clock.request();
                if head.has_contexts
                    && let Err(exception) = self.learn_code_sets(&frame)
                {
                    self.refuse_if_awaited(head.id, head.response, frame.header.version, &exception);
                    return None;
                }
                let token = self.serving.insert(head.id, head.response.expects_reply());
                let terms = Terms::new(&self.limits, self.code_sets_in_force());
                Some(Event::Request(IncomingRequest::new(frame, head, token, terms)))
            }
            Err(error) => self.bad_request(&frame, error),
        }
    }

    fn learn_code_sets(&mut self, frame: &Frame) -> Result<(), SystemException> {
        if let Some(context) = message::contexts_of(frame).find(ContextId::CODE_SETS) {
            let context: CodeSetContext =
                context.value().map_err(|error| error.system(CompletionStatus::No))?;
            self.code_sets = Some(context.accept(self.code_sets)?);
        }
        Ok(())
    }

    /// A request whose header is wrong. In GIOP 1.2 its id stands first, so that it can be answered.
    #[cold]
    fn bad_request(&mut self, frame: &Frame, error: RequestError) -> Option<Event> {
        let version = frame.header.version;
        match error {
            RequestError::Refused(id, response, exception) => {
                self.refuse_if_awaited(id, response, version, &exception);
            }
            RequestError::Header(error) => match early_id(frame) {
                Some((id, response)) => {
                    self.refuse_if_awaited(id, response, version, &error.system(CompletionStatus::No));
                }
                None => self.malformed(MessageType::Request, error),
            },
        }
        None
    }

    /// A request that is not executed: this side is closing, or can not take it and must read on.
    #[cold]
    fn turn_away(&mut self, frame: &Frame) -> Option<Event> {
        if !self.is_open() {
            self.stats.dropped += 1;
            return None;
        }
        match RequestHead::decode(frame) {
            Ok(head) => {
                let exception = SystemException::new(
                    SystemExceptionKind::Transient,
                    minor::TRANSIENT_DISCARDED,
                    CompletionStatus::No,
                );
                self.refuse_if_awaited(head.id, head.response, frame.header.version, &exception);
                None
            }
            Err(error) => self.bad_request(frame, error),
        }
    }

    pub(super) fn refuse_if_awaited(
        &mut self,
        id: RequestId,
        response: ResponseFlags,
        version: Version,
        exception: &SystemException,
    ) {
        if response.expects_reply() {
            self.refuse(id, version, exception);
            if self.own_backlog > self.limits.max_backlog {
                self.end(CloseReason::Flood(self.limits.max_control_rate));
            }
        }
    }

    #[inline]
    fn handle_reply(&mut self, frame: Frame, locate: bool) -> Option<Event> {
        let terms = Terms::new(&self.limits, self.code_sets_in_force());
        let early = if frame.header.version == Version::V1_2 || locate { early_word(&frame) } else { None };
        let kind = frame.header.kind;
        let decoded = if locate { Reply::decode_locate(frame, terms) } else { Reply::decode(frame, terms) };
        let (id, outcome) = match (decoded, early) {
            (Ok((id, reply)), _) => (id, Ok(reply)),
            (Err(error), Some(id)) => {
                (id, Err(CallError { kind: CallErrorKind::BadReply(error), sent: Sent::Whole }))
            }
            (Err(error), None) => {
                self.malformed(kind, error);
                return None;
            }
        };
        match self.calls.answer(id, locate, outcome) {
            Ok(call) => {
                if !self.is_open() {
                    self.proceed_closing();
                }
                Some(Event::Reply(call))
            }
            Err(_) => self.stray(),
        }
    }

    fn handle_cancel(&mut self, frame: &Frame) -> Option<Event> {
        self.stats.cancels_in += 1;
        let Some(id) = early_word(frame) else {
            let error = DecodeError::new(giop_codec::DecodeErrorKind::EndOfData, HEADER_LEN);
            self.malformed(MessageType::CancelRequest, error);
            return None;
        };
        if self.clock.control(self.limits.max_control_rate) {
            self.end(CloseReason::Flood(self.limits.max_control_rate));
            return None;
        }
        match self.serving.cancel(id) {
            Some(token) => Some(Event::Cancelled(token)),
            None => {
                self.stats.strays += 1;
                None
            }
        }
    }

    fn handle_locate(&mut self, frame: Frame) -> Option<Event> {
        if !self.accept_requests {
            self.protocol_error(ProtocolError::Unexpected(MessageType::LocateRequest));
            return None;
        }
        if self.clock.control(self.limits.max_control_rate) {
            self.end(CloseReason::Flood(self.limits.max_control_rate));
            return None;
        }
        if !self.is_open() {
            self.stats.dropped += 1;
            return None;
        }
        let version = frame.header.version;
        match IncomingLocate::decode(frame) {
            Ok(Ok(locate)) => Some(Event::Locate(locate)),
            Ok(Err((id, exception))) => {
                self.refuse_locate(id, version, &exception);
                None
            }
            Err(error) => {
                self.malformed(MessageType::LocateRequest, error);
                None
            }
        }
    }

    /// A message that belongs to nothing: ignored, but counted.
    #[cold]
    pub(super) fn stray(&mut self) -> Option<Event> {
        self.stats.strays += 1;
        if self.clock.control(self.limits.max_control_rate) {
            self.end(CloseReason::Flood(self.limits.max_control_rate));
        }
        None
    }

    #[cold]
    fn malformed(&mut self, kind: MessageType, error: DecodeError) {
        self.protocol_error(ProtocolError::Malformed { kind, error });
    }

    /// The answer to a request that is larger than this endpoint takes.
    #[cold]
    pub(super) fn too_large(&self, size: usize) -> SystemException {
        let limit = self.limits.max_message_size;
        SystemException::new(SystemExceptionKind::ImpLimit, MinorCode::NONE, CompletionStatus::No)
            .with_source(ProtocolError::TooLarge { size, limit })
    }
}

/// The first word behind the message header: the id of all messages but 1.0 and 1.1 requests and replies.
fn early_word(frame: &Frame) -> Option<RequestId> {
    let word = frame.octets.get(HEADER_LEN..)?.first_chunk::<4>()?;
    Some(RequestId(match frame.header.order {
        giop_codec::ByteOrder::Big => u32::from_be_bytes(*word),
        giop_codec::ByteOrder::Little => u32::from_le_bytes(*word),
    }))
}

/// Id and response flags of a GIOP 1.2 request, which stand first.
pub(super) fn early_id(frame: &Frame) -> Option<(RequestId, ResponseFlags)> {
    if frame.header.version < Version::V1_2 {
        return None;
    }
    let id = early_word(frame)?;
    let flags = frame.octets.get(HEADER_LEN + 4)?;
    Some((id, if flags & 1 == 1 { ResponseFlags::Target } else { ResponseFlags::None }))
}
