//! Calls: the requests of this side, and their outcomes.

use std::collections::VecDeque;
use std::time::Instant;

use giop_codec::cdr::Encoder;
use giop_codec::giop::RequestId;

use super::{Connection, Outcome, Output, UnansweredCalls};
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

    /// Adds a call. Then its request must be sent by [`send_request`](PendingCall::send_request) or
    /// [`send_locate`](PendingCall::send_locate). `Event::Reply` reports its outcome.
    ///
    /// # Errors
    /// - The connection is closed, or is closing and no longer [accepts calls](Self::accepts_calls).
    /// - The deadline has passed.
    /// - 65,535 calls are pending.
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

    /// Queues a request without a reply, as [`send_request`](PendingCall::send_request) does.
    #[inline]
    pub fn send_oneway(&mut self, message: &mut Encoder) -> Result<(), CallError> {
        let checked = self.check_open();
        if checked.is_ok() {
            let is_fragmented = self.output.fragment_queue.is_fragmented(message.version(), message.len());
            if !is_fragmented || self.output.queue_oneway_in_pieces(message, self.clock.now).is_none() {
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
    pub fn pending_call_count(&self) -> usize {
        self.calls.pending()
    }

    /// Removes a request from the queue, or cancels it if that is not possible. Returns the part of the
    /// request that the peer receives. A completely queued request that cannot be removed is still sent.
    #[cold]
    pub(super) fn withdraw(&mut self, id: RequestId, span: RequestSpan) -> SentPart {
        if !self.lifecycle.may_queue() {
            return if span.start == u64::MAX { SentPart::Nothing } else { SentPart::Whole };
        }
        if let Some(partial) = self.output.partial_request
            && span.start != u64::MAX
        {
            // In the middle of a request, no CancelRequest can be sent for another one.
            let is_partial = partial.start == span.start;
            return if is_partial { self.unfinished_request().give_up() } else { SentPart::Whole };
        }
        if !self.output.fragment_queue.is_empty()
            && let Some(sent) = self.output.stop_request(id, self.clock.now)
        {
            self.queue_pieces();
            return sent;
        }
        if span.start == u64::MAX {
            return SentPart::Nothing; // the request is not queued yet
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
        // The request that was queued last comes first, because only the end of the queue can be removed.
        expired.sort_unstable_by_key(|(_, span)| std::cmp::Reverse(span.end));
        for (call, span) in expired {
            self.output.stats.limit_hits.hit(Limit::CallTime);
            let id = self.calls.request_id(call);
            // A request that stays queued is sent, and may be executed before its CancelRequest arrives.
            let sent = self.withdraw(id, span);
            self.calls.replace_outcome(call, Err(CallError { kind: CallErrorKind::Timeout, sent }));
            if sent != SentPart::Nothing {
                self.count_unanswered(now);
            }
        }
    }

    /// Counts a call that timed out, and whose request was queued and not removed again. Too many such calls,
    /// without any byte from the peer between them, close the connection.
    fn count_unanswered(&mut self, now: Instant) {
        let (before, bytes_in) = (self.unanswered, self.output.stats.bytes_in);
        let count = if before.bytes_in == bytes_in { before.count + 1 } else { 1 };
        self.unanswered = UnansweredCalls { bytes_in, count };
        if count >= self.limits.max_unanswered && self.lifecycle.hands_out_requests() {
            self.output.stats.limit_hits.hit(Limit::Unanswered);
            self.close_with_reason(CloseReason::Unanswered(count), now);
        }
    }

    /// Returns whether calls can be made. While it serves requests, a closing side may call the peer back.
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

    /// Queues the request of the call: a whole message, including its message header. The encoder is left
    /// empty, in the same byte order and version. Messages of up to 4 KiB are copied. Larger ones are moved.
    ///
    /// If the call is no longer pending, the message is dropped.
    #[inline]
    pub fn send_request(&mut self, message: &mut Encoder) {
        self.send_call(message, false);
    }

    /// Marks the reply as one that will be forwarded in encoded form. Then it is not copied: what is received
    /// with its header stays in the read buffer, and the rest gets a buffer of its own.
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

    /// Requests the results of a large reply as a stream. No other call may be pending on the connection.
    ///
    /// [`Reply::stream_len`] is the number of bytes in the stream. The stream is identified by the id of the
    /// call. It must be [opened](super::Input::open_stream), and then
    /// [taken](super::IncomingStream::take_chunk) or [abandoned](super::IncomingStream::abandon).
    ///
    /// `unaligned_fragments` allows streams of results in GIOP 1.1 fragments, whose alignment is not known.
    pub fn stream_reply(&mut self, unaligned_fragments: bool) {
        if self.connection.calls.is_pending(self.id) {
            self.connection
                .input
                .rx
                .stream
                .select_reply(self.connection.calls.request_id(self.id), unaligned_fragments);
        }
    }

    /// Queues the LocateRequest of the call as [`send_request`](Self::send_request) queues a request.
    pub fn send_locate(&mut self, message: &mut Encoder) {
        self.send_call(message, true);
    }

    #[inline]
    fn send_call(&mut self, message: &mut Encoder, is_locate: bool) {
        if self.connection.calls.is_pending(self.id) {
            let is_fragmented = !is_locate
                && self.connection.output.fragment_queue.is_fragmented(message.version(), message.len());
            if is_fragmented && self.connection.output.queue_in_pieces(Some(self.id), message) {
                self.connection.queue_pieces();
            } else {
                let span = self.connection.output.queue(message, is_locate, self.connection.clock.now);
                self.connection.calls.record_span(self.id, span);
            }
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Takes the outcome of the call, which then ends. Returns `None` if there is no outcome yet.
    #[inline]
    pub fn take_outcome(&mut self) -> Option<Result<Reply, CallError>> {
        let outcome = self.connection.calls.take(self.id);
        if outcome.is_some() {
            self.connection.input.rx.stream.forget_reply(self.connection.calls.request_id(self.id));
        }
        outcome
    }

    /// Abandons the call, even if it has been answered.
    ///
    /// If the request cannot be removed from the queue, it is cancelled, and a late reply is ignored.
    pub fn cancel(&mut self) {
        let id = self.connection.calls.request_id(self.id);
        self.connection.input.rx.stream.forget_reply(id);
        if self.connection.input.incoming_payload.is_some() {
            let loan = self.connection.stream(self.id).abandon();
            debug_assert!(loan.is_none(), "memory is never lent for a reply");
        }
        if let Some(span) = self.connection.calls.abandon(self.id) {
            let _ = self.connection.withdraw(id, span);
            self.connection.continue_closing();
        }
    }

    /// Returns whether the outcome of the call is available, or the call has ended.
    pub fn has_ended(&self) -> bool {
        !self.connection.calls.is_pending(self.id)
    }
}

impl Calls<Outcome> {
    /// Fails every pending call. The socket may have accepted all bytes of the stream before `accepted_end`.
    #[cold]
    pub(super) fn fail_all(
        &mut self,
        kind: CallErrorKind,
        accepted_end: u64,
        notices: &mut VecDeque<Notice>,
    ) {
        self.fail_expired(None, |call, span| {
            notices.push_back(Notice::Reply(call));
            Err(CallError { kind, sent: span.sent_before(accepted_end) })
        });
    }

    /// Fails every pending call of a connection that still sends its queue. Unqueues requests if possible.
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
            let is_removed = !span.is_interleaved && output.unqueue(span.start, span.end);
            let sent = if is_removed { SentPart::Nothing } else { span.sent_before(output.tx.queued()) };
            self.replace_outcome(call, Err(CallError { kind, sent }));
        }
        output.timer.stop_unless(output.tx.backlog() > 0);
    }
}
