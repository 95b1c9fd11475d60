//! The end of a connection, in good order or not.

use std::time::Instant;

use giop_codec::Version;
use giop_codec::giop::MessageType;

use super::Connection;
use crate::error::{CloseReason, ProtocolError};
use crate::event::Notice;
use crate::hits::Limit;
use crate::limits::{Role, later};

/// The progress of the end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not closing.
    Open,
    /// This side closes: it accepts no new calls and requests, and existing ones continue.
    Draining { reason: CloseReason },
    /// The last message is queued. Input is discarded.
    Finishing { reason: CloseReason, eof: bool },
    /// The last message is written. The peer has until then to close its side. Closing a socket with unread
    /// bytes would destroy data that the peer has not read yet.
    Lingering { reason: CloseReason, until: Instant },
    /// The connection is closed.
    Closed { reason: CloseReason },
}

impl Connection {
    /// Closes in good order. New requests are refused, and new calls as soon as no request is being served.
    /// After the pending calls have ended and the requests being served are answered, CloseConnection is sent
    /// if the version allows it, and the connection is closed.
    ///
    /// Requests that were received and not handed out yet are not executed: CloseConnection tells the peer
    /// so.
    pub fn close(&mut self, now: Instant) {
        self.close_because(CloseReason::Local, now);
    }

    pub(super) fn close_because(&mut self, reason: CloseReason, now: Instant) {
        self.clock.saw(now);
        if matches!(self.phase, Phase::Open) {
            if reason == CloseReason::Idle {
                self.stats.limits.hit(Limit::Idle);
            }
            self.phase = Phase::Draining { reason };
            self.proceed_closing();
        }
    }

    /// Closes immediately: calls fail, replies are dropped, nothing more is written.
    pub fn abort(&mut self, reason: CloseReason) {
        self.end(reason);
    }

    /// Returns whether the connection is closed: nothing more is received or sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed().is_some()
    }

    /// Returns whether the connection accepts no new calls because it is closing or closed.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        !self.is_open()
    }

    /// Returns whether this side closes in good order and has not sent CloseConnection yet, because calls are
    /// pending or requests are being served.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. })
    }

    /// Returns the reason why the connection is closing or closed.
    #[must_use]
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match &self.phase {
            Phase::Open => self.clock.ended(),
            Phase::Draining { reason }
            | Phase::Finishing { reason, .. }
            | Phase::Lingering { reason, .. }
            | Phase::Closed { reason } => Some(reason),
        }
    }

    /// Returns whether everything is written and nothing will follow, but the peer has not closed its side.
    /// The driver must then shut down the write side of the socket, and continue reading until
    /// `Event::Closed`.
    #[must_use]
    pub fn wants_shutdown(&self) -> bool {
        matches!(self.phase, Phase::Lingering { .. })
    }

    /// Returns whether input is discarded, because this side has queued its last message.
    #[inline]
    #[must_use]
    pub fn throws_away(&self) -> bool {
        matches!(self.phase, Phase::Finishing { .. } | Phase::Lingering { .. })
    }

    /// Returns whether calls can be made.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.takes_requests() && self.clock.read_end.is_none() && self.clock.write_end.is_none()
    }

    /// Returns whether requests are handed out. This includes requests that were received before the stream
    /// ended.
    #[inline]
    pub(super) fn takes_requests(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Returns whether messages may still be queued.
    #[inline]
    pub(super) fn is_serving_phase(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Draining { .. }) && self.clock.write_end.is_none()
    }

    /// Continues an orderly close when nothing blocks it any more.
    pub(super) fn proceed_closing(&mut self) {
        if let Phase::Draining { reason } = self.phase
            && self.serving.len() == 0
            && self.calls.waiting() == 0
            && self.output.partial_request.is_none()
            && self.output.fragmenting.is_empty()
            && !self.streams_reply()
            && !self.takes_last_oneways()
        {
            // Before GIOP 1.2 only servers send CloseConnection.
            let last = (self.role == Role::Server || self.peer.version >= Version::V1_2)
                .then_some((MessageType::CloseConnection, self.peer.version));
            self.finish(reason, last);
        }
    }

    /// Handles a protocol violation of the peer.
    #[cold]
    pub(super) fn protocol_error(&mut self, error: ProtocolError) {
        let reason = CloseReason::Protocol(error);
        if let Some(limit) = error.limit() {
            self.stats.limits.hit(limit);
        }
        self.finish(reason, Some((MessageType::MessageError, self.max_version)));
    }

    /// Ends a connection whose input stream has ended or is unusable.
    #[cold]
    pub(super) fn end(&mut self, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        self.note_lost_oneways(&reason);
        self.phase = Phase::Closed { reason };
        self.fail_calls(reason.call_error());
        self.tx.clear();
        self.output.fragmenting.clear();
        self.count_queued();
        self.rx.clear();
        self.fragments.clear();
        self.notices.push_back(Notice::Closed);
    }

    /// Ends a connection in which nothing can follow the queued data. That is written, then the stream ends.
    #[cold]
    pub(super) fn break_off(&mut self, reason: CloseReason) {
        self.finish(reason, None);
    }

    /// Queues the last message and waits until it is written.
    fn finish(&mut self, reason: CloseReason, last: Option<(MessageType, Version)>) {
        if self.clock.write_end.is_some() || self.output.partial_request.is_some() {
            return self.end(reason); // nothing can be sent, or not in the middle of a request
        }
        // Queued data is still written. Therefore a pending call must not fail as unsent because nothing of
        // it was written yet.
        self.fail_queued_calls(reason.call_error());
        self.phase = Phase::Finishing { reason, eof: false };
        self.output.fragmenting.clear();
        self.rx.clear();
        self.fragments.clear();
        match last {
            Some((kind, version)) => self.queue_bare(kind, version),
            None if self.tx.backlog() == 0 => self.linger(reason, self.clock.now),
            None => {}
        }
    }

    fn linger(&mut self, reason: CloseReason, now: Instant) {
        self.phase = Phase::Lingering { reason, until: later(now, self.limits.linger_timeout) };
    }

    pub(super) fn wrote_while_closing(&mut self, now: Instant) {
        if self.is_closed() {
            return self.tx.clear(); // the bytes that a writer did not write
        }
        if let Phase::Finishing { reason, eof } = self.phase
            && self.tx.backlog() == 0
        {
            if eof { self.end(reason) } else { self.linger(reason, now) }
        }
    }

    /// Handles the end of the peer's stream while this side is closing.
    pub(super) fn eof_while_closing(&mut self) {
        match self.phase {
            Phase::Finishing { reason, .. } if self.tx.backlog() > 0 => {
                self.phase = Phase::Finishing { reason, eof: true };
            }
            Phase::Finishing { reason, .. } | Phase::Lingering { reason, .. } => self.end(reason),
            Phase::Open | Phase::Draining { .. } | Phase::Closed { .. } => {}
        }
    }
}
