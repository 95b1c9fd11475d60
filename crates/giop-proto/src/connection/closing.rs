//! The end of a connection. CloseConnection announces an orderly end, when calls and requests have ended.

use std::time::Instant;

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};

use super::Connection;
use crate::error::{CallError, CallErrorKind, CloseReason, ProtocolError, SentPart};
use crate::event::Notice;
use crate::hits::Limit;
use crate::limits::{Role, later};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Open,
    /// This side is closing. It accepts no new calls and requests except some that
    /// [`Connection::accepts_calls`] and [`Connection::close_after_oneways`] describe.
    Draining {
        reason: CloseReason,
    },
    /// The last message is queued, and input is discarded. `peer_ended`: the peer's stream has ended.
    Finishing {
        reason: CloseReason,
        peer_ended: bool,
    },
    /// The last message is written, and the peer has time until `until` to close its side. If the socket were
    /// closed with unread bytes, the system could discard data that the peer has not read yet.
    Lingering {
        reason: CloseReason,
        until: Instant,
    },
    Closed {
        reason: CloseReason,
    },
}

/// The state of a connection between its start and its end.
#[derive(Debug, Default)]
pub struct Lifecycle {
    pub(super) phase: Phase,
    pub(super) read_end: Option<CloseReason>,
    /// The reason why nothing more can be written, and the time until which the peer is still read.
    pub(super) write_end: Option<(CloseReason, Instant)>,
}

impl Lifecycle {
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.hands_out_requests() && self.read_end.is_none() && self.write_end.is_none()
    }

    /// Returns whether received requests are handed out, also after the end of the peer's stream.
    #[inline]
    pub(super) fn hands_out_requests(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    #[inline]
    pub(super) fn may_queue(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Draining { .. }) && self.write_end.is_none()
    }

    pub(super) fn linger(&mut self, reason: CloseReason, until: Instant) {
        self.phase = Phase::Lingering { reason, until };
    }

    /// Returns whether everything is written and nothing will follow, but the peer has not closed its side.
    /// The driver must then shut down the write side of the socket, and read until `Event::Closed`.
    pub fn wants_shutdown(&self) -> bool {
        matches!(self.phase, Phase::Lingering { .. })
    }

    /// Returns whether input is discarded, because this side has queued its last message.
    #[inline]
    pub fn discards_input(&self) -> bool {
        matches!(self.phase, Phase::Finishing { .. } | Phase::Lingering { .. })
    }

    /// Returns whether this side is closing, but has not sent CloseConnection yet.
    pub fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. })
    }

    #[inline]
    pub(super) fn processes_messages(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Draining { .. })
    }

    pub(super) fn end_reason(&self) -> Option<&CloseReason> {
        self.read_end.as_ref().or(self.write_end.as_ref().map(|(reason, _)| reason))
    }

    /// Returns the reason why the connection is closing or closed.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match &self.phase {
            Phase::Open => self.end_reason(),
            Phase::Draining { reason }
            | Phase::Finishing { reason, .. }
            | Phase::Lingering { reason, .. }
            | Phase::Closed { reason } => Some(reason),
        }
    }

    /// Returns whether the connection is closed: nothing more is received or sent.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    /// Returns whether the connection is closing or closed, or one direction of it has ended.
    pub fn is_closing(&self) -> bool {
        !self.is_open()
    }

    /// Returns the error of a call whose request was sent only partly before the connection ended.
    #[cold]
    pub fn partly_sent_error(&self) -> CallError {
        CallError { sent: SentPart::Partly, ..self.closed_error() }
    }

    #[cold]
    pub(super) fn closed_error(&self) -> CallError {
        CallError::unsent(self.close_reason().map_or(CallErrorKind::LocalClose, |reason| reason.call_error()))
    }
}

impl Connection {
    /// Closes the connection in an orderly way. New requests are refused. New calls are refused unless a
    /// request is being served. When all pending calls have ended and all requests being served are answered,
    /// CloseConnection is sent if the version allows that, and the connection is closed.
    ///
    /// Requests that have not been handed out yet are not executed. CloseConnection informs the peer of that.
    pub fn close(&mut self, now: Instant) {
        self.close_with_reason(CloseReason::Local, now);
    }

    pub(super) fn close_with_reason(&mut self, reason: CloseReason, now: Instant) {
        self.clock.now = now;
        if matches!(self.lifecycle.phase, Phase::Open) {
            if reason == CloseReason::Idle {
                self.output.stats.limit_hits.hit(Limit::Idle);
            }
            self.lifecycle.phase = Phase::Draining { reason };
            self.continue_closing();
        }
    }

    /// Continues an orderly close, unless it must still wait for something.
    pub(super) fn continue_closing(&mut self) {
        if let Phase::Draining { reason } = self.lifecycle.phase
            && self.serving.len() == 0
            && self.calls.pending() == 0
            && self.output.partial_request.is_none()
            && self.output.fragment_queue.is_empty()
            && !self.input.streams_reply()
            && !self.accepts_last_oneways()
        {
            // Before GIOP 1.2, only servers may send CloseConnection.
            let last = (self.role == Role::Server || self.output.version >= Version::V1_2)
                .then_some((MessageType::CloseConnection, self.output.version));
            self.finish(reason, last);
        }
    }

    #[cold]
    pub(super) fn protocol_error(&mut self, error: ProtocolError) {
        let reason = CloseReason::Protocol(error);
        if let Some(limit) = error.limit() {
            self.output.stats.limit_hits.hit(limit);
        }
        self.finish(reason, Some((MessageType::MessageError, self.max_version)));
    }

    /// Closes the connection immediately: calls fail, replies are dropped, and nothing more is written.
    #[cold]
    pub fn abort(&mut self, reason: CloseReason) {
        if self.lifecycle.is_closed() {
            return;
        }
        self.oneways.detect_lost(&reason, self.output.tx.written(), self.calls.confirmed_position());
        self.lifecycle.phase = Phase::Closed { reason };
        self.calls.fail_all(reason.call_error(), self.output.tx.lent_or_written(), &mut self.notices);
        self.output.tx.clear();
        self.output.fragment_queue.clear();
        self.output.report(self.clock.now);
        self.input.rx.clear();
        self.input.fragments.clear();
        self.notices.push_back(Notice::Closed);
    }

    /// Queues the last message, if any, and closes the connection when all queued data is written.
    pub(super) fn finish(&mut self, reason: CloseReason, last: Option<(MessageType, Version)>) {
        if self.lifecycle.write_end.is_some() || self.output.partial_request.is_some() {
            return self.abort(reason); // nothing can be sent at all, or in the middle of a request
        }
        // Queued data is still written, so the requests in it count as sent unless they are removed.
        self.calls.fail_queued(reason.call_error(), &mut self.output, &mut self.notices);
        self.lifecycle.phase = Phase::Finishing { reason, peer_ended: false };
        self.output.fragment_queue.clear();
        self.input.rx.clear();
        self.input.fragments.clear();
        match last {
            Some((kind, version)) => {
                let header = MessageHeader::new(version, ByteOrder::NATIVE, kind);
                self.output.queue_bytes(&header.encode(), self.clock.now);
            }
            None if self.output.tx.backlog() == 0 => {
                self.lifecycle.linger(reason, later(self.clock.now, self.limits.linger_timeout))
            }
            None => {}
        }
    }

    pub(super) fn handle_written_while_closing(&mut self, now: Instant) {
        if self.lifecycle.is_closed() {
            return self.output.tx.clear(); // drops the bytes that the writer did not write
        }
        if let Phase::Finishing { reason, peer_ended } = self.lifecycle.phase
            && self.output.tx.backlog() == 0
        {
            if peer_ended {
                self.abort(reason)
            } else {
                self.lifecycle.linger(reason, later(now, self.limits.linger_timeout))
            }
        }
    }
}
