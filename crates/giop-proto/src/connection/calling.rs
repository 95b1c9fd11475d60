//! Calls: the requests of this side, and their outcomes.

use std::collections::VecDeque;
use std::time::Instant;

use giop_codec::cdr::Encoder;
use giop_codec::giop::RequestId;

use super::{Connection, Outcome, Output};
use crate::calls::{CallId, Calls, RequestSpan};
use crate::error::{CallError, CallErrorKind, CloseReason, SentPart};
use crate::event::Notice;
use crate::hits::Limit;
use crate::message::Reply;

/// A call of this side: see [`Connection::call`].
#[derive(Debug)]
pub struct PendingCall<'a> {
    connection: &'a mut Connection,
    id: CallId,
}

impl Connection {
    /// Returns the call with this id, which may have ended.
    #[inline]
    pub fn call(&mut self, id: CallId) -> PendingCall<'_> {
        PendingCall { connection: self, id }
    }

    /// Adds a call. Its request follows by [`send_request`](PendingCall::send_request) or
    /// [`send_locate`](PendingCall::send_locate). `Event::Reply` reports its outcome.
    ///
    /// # Errors
    /// The connection is closed, or it is closing and serves no request any more; the deadline has passed; or
    /// 65,535 calls are pending. Nothing is sent.
    #[inline]
    pub fn start_call(&mut self, deadline: Option<Instant>, now: Instant) -> Result<CallId, CallError> {
        self.check_open()?;
        self.clock.now = now;
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Err(CallError::unsent(CallErrorKind::Timeout));
        }
        self.calls.start(deadline).ok_or(CallError::unsent(CallErrorKind::TooManyCalls))
    }

    /// Returns the id for the next oneway.
    #[inline]
    #[must_use]
    pub fn next_oneway_id(&mut self) -> RequestId {
        self.calls.next_oneway_id()
    }

    /// Queues a request without a reply, like [`send_request`](PendingCall::send_request).
    #[inline]
    pub fn send_oneway(&mut self, message: &mut Encoder) -> Result<(), CallError> {
        let checked = self.check_open();
        if checked.is_ok() {
            let cut = self.output.fragment_queue.cuts(message.version(), message.len());
            if !cut || self.output.queue_oneway_in_pieces(message, self.clock.now).is_none() {
                self.output.queue(message, false, self.clock.now);
            }
            self.oneways.record_queued(self.output.tx.queued());
        } else {
            message.reset(message.order(), message.version());
        }
        checked
    }

    /// Returns the number of pending calls.
    #[inline]
    pub fn calls_waiting(&self) -> usize {
        self.calls.pending()
    }

    /// Removes a request from the queue, or cancels it. Returns the part of it that the peer receives. A
    /// completely queued request that cannot be removed is still sent.
    #[cold]
    pub(super) fn withdraw(&mut self, id: RequestId, span: RequestSpan) -> SentPart {
        if !self.lifecycle.may_queue() {
            return if span.start == u64::MAX { SentPart::Nothing } else { SentPart::Whole };
        }
        if let Some(partial) = self.output.partial_request
            && span.start != u64::MAX
        {
            // A CancelRequest cannot be sent in the middle of another request.
            let is_it = partial.start == span.start;
            return if is_it { self.unfinished_request().give_up() } else { SentPart::Whole };
        }
        if !self.output.fragment_queue.is_empty()
            && let Some(sent) = self.output.stop_request(id, self.clock.now)
        {
            self.feed();
            return sent;
        }
        if span.start == u64::MAX {
            return SentPart::Nothing; // not queued yet
        }
        let is_unsent = !span.is_interleaved && self.output.tx.lent_or_written() <= span.start;
        if is_unsent && self.output.unqueue(span.start, span.end) {
            return SentPart::Nothing;
        }
        self.output.queue_cancel(id, self.clock.now);
        SentPart::Whole
    }

    #[cold]
    pub(super) fn expire_calls(&mut self, now: Instant) {
        let mut expired = Vec::new();
        let Self { calls, notices, .. } = self;
        calls.fail_expired(Some(now), |call, span| {
            notices.push_back(Notice::Reply(call));
            expired.push((call, span));
            Err(CallError { kind: CallErrorKind::Timeout, sent: SentPart::Whole })
        });
        // From the last queued to the first, because only the end of the queue can be removed.
        expired.sort_unstable_by_key(|(_, span)| std::cmp::Reverse(span.end));
        for (call, span) in expired {
            self.output.stats.limits.hit(Limit::CallTime);
            let id = self.calls.request_id(call);
            // A request that stays queued is sent, and may be executed before its CancelRequest arrives.
            let sent = self.withdraw(id, span);
            self.calls.replace_outcome(call, Err(CallError { kind: CallErrorKind::Timeout, sent }));
            if sent != SentPart::Nothing {
                self.count_unanswered(now);
            }
        }
    }

    /// Counts a call that timed out although its request was sent. Too many of them close the connection.
    fn count_unanswered(&mut self, now: Instant) {
        let (bytes, calls) = self.unanswered;
        let calls = if bytes == self.output.stats.bytes_in { calls + 1 } else { 1 };
        self.unanswered = (self.output.stats.bytes_in, calls);
        if calls >= self.limits.max_unanswered && self.lifecycle.accepts_requests() {
            self.output.stats.limits.hit(Limit::Unanswered);
            self.close_because(CloseReason::Unanswered(calls), now);
        }
    }

    /// Returns whether calls can be made. A side that is closing may still call back the senders of requests
    /// that it serves, because they have not received CloseConnection yet.
    #[inline]
    pub fn accepts_calls(&self) -> bool {
        self.lifecycle.is_open()
            || self.lifecycle.is_draining() && self.serving.len() > 0 && self.lifecycle.end_reason().is_none()
    }

    #[inline]
    pub(super) fn check_open(&self) -> Result<(), CallError> {
        if self.accepts_calls() { Ok(()) } else { Err(self.lifecycle.closed_error()) }
    }
}

impl PendingCall<'_> {
    /// Returns the request id of the call.
    #[inline]
    pub fn request_id(&self) -> RequestId {
        self.connection.calls.request_id(self.id)
    }

    /// Queues the request of the call: a whole message from its message header on. The encoder is left empty,
    /// in the same byte order and version. Only a message of up to 4 KiB is copied.
    ///
    /// If the call is no longer pending, the message is dropped.
    #[inline]
    pub fn send_request(&mut self, message: &mut Encoder) {
        self.send_call(message, false);
    }

    /// Marks the reply for forwarding in encoded form, so that none of it is copied before it is decoded. The
    /// part that is received with its header stays where it was read, and the rest gets a buffer of its own.
    pub fn forward_reply_encoded(&mut self) {
        if self.connection.calls.is_pending(self.id) {
            self.connection
                .input
                .rx
                .stream
                .forwarded_replies
                .insert(self.connection.calls.request_id(self.id));
        }
    }

    /// Streams the results of a large reply. No other call may be pending on the connection.
    ///
    /// [`Reply::coming`] is the number of bytes that follow. They are [opened](super::Input::open_stream),
    /// then [taken](super::IncomingStream::take_chunk) or [given up](super::IncomingStream::abandon), by the
    /// id of the call.
    ///
    /// `unaligned_fragments` includes results in GIOP 1.1 fragments, whose alignment is not known.
    pub fn stream_reply(&mut self, unaligned_fragments: bool) {
        if self.connection.calls.is_pending(self.id) {
            self.connection
                .input
                .rx
                .stream
                .select_reply(self.connection.calls.request_id(self.id), unaligned_fragments);
        }
    }

    /// Queues the LocateRequest of the call, like [`send_request`](Self::send_request).
    pub fn send_locate(&mut self, message: &mut Encoder) {
        self.send_call(message, true);
    }

    #[inline]
    fn send_call(&mut self, message: &mut Encoder, locate: bool) {
        if self.connection.calls.is_pending(self.id) {
            let cut = !locate && self.connection.output.fragment_queue.cuts(message.version(), message.len());
            if cut && self.connection.output.queue_in_pieces(Some(self.id), message) {
                self.connection.feed();
            } else {
                let span = self.connection.output.queue(message, locate, self.connection.clock.now);
                self.connection.calls.record_span(self.id, span);
            }
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Returns the outcome of the call, if it is available. The call then ends, and its id becomes invalid.
    #[inline]
    pub fn take_outcome(&mut self) -> Option<Result<Reply, CallError>> {
        let outcome = self.connection.calls.take(self.id);
        if outcome.is_some() {
            self.connection.input.rx.stream.forget_reply(self.connection.calls.request_id(self.id));
        }
        outcome
    }

    /// Abandons the call, whether or not it has been answered.
    ///
    /// An unsent request is removed if possible. Otherwise it is cancelled, and a late reply is ignored.
    pub fn cancel(&mut self) {
        let id = self.connection.calls.request_id(self.id);
        self.connection.input.rx.stream.forget_reply(id);
        if self.connection.input.streamed.is_some() {
            let loan = self.connection.stream(self.id).abandon();
            debug_assert!(loan.is_none(), "no memory was lent for a reply");
        }
        if let Some(span) = self.connection.calls.abandon(self.id) {
            let _ = self.connection.withdraw(id, span);
            self.connection.continue_closing();
        }
    }

    /// Returns whether the outcome of the call is available, or the call has ended.
    pub fn is_over(&self) -> bool {
        !self.connection.calls.is_pending(self.id)
    }
}

impl Calls<Outcome> {
    /// Fails every pending call. The socket may have accepted the bytes of the stream before `accepted`.
    #[cold]
    pub(super) fn fail_all(&mut self, kind: CallErrorKind, accepted: u64, notices: &mut VecDeque<Notice>) {
        self.fail_expired(None, |call, span| {
            notices.push_back(Notice::Reply(call));
            Err(CallError { kind, sent: span.sent_before(accepted) })
        });
    }

    /// Fails every pending call of a connection that still sends its queue, from which requests are removed.
    #[cold]
    pub(super) fn fail_queued(
        &mut self,
        kind: CallErrorKind,
        output: &mut Output,
        notices: &mut VecDeque<Notice>,
    ) {
        let mut failed = Vec::new();
        self.fail_expired(None, |call, span| {
            notices.push_back(Notice::Reply(call));
            failed.push((call, span));
            Err(CallError { kind, sent: SentPart::Whole })
        });
        // Only the end of the queue can be removed.
        failed.sort_unstable_by_key(|(_, span)| std::cmp::Reverse(span.end));
        for (call, span) in failed {
            let removed = !span.is_interleaved && output.unqueue(span.start, span.end);
            let sent = if removed { SentPart::Nothing } else { span.sent_before(output.tx.queued()) };
            self.replace_outcome(call, Err(CallError { kind, sent }));
        }
        output.timer.stop_unless(output.tx.backlog() > 0);
    }
}
