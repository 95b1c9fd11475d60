//! Calls: the requests of this side and their outcomes.

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

/// A call of this side, by [`Connection::call`].
#[derive(Debug)]
pub struct PendingCall<'a> {
    connection: &'a mut Connection,
    id: CallId,
}

impl Connection {
    /// Returns the call with that id, which may have ended.
    #[inline]
    pub fn call(&mut self, id: CallId) -> PendingCall<'_> {
        PendingCall { connection: self, id }
    }

    /// Adds a call with the given deadline. Its request follows by
    /// [`send_request`](PendingCall::send_request) or [`send_locate`](PendingCall::send_locate). Its outcome
    /// is announced by `Event::Reply`.
    ///
    /// # Errors
    /// The connection is closed, or it is closing and serves no request any more; the deadline has passed; or
    /// 65,535 calls are pending. Nothing is sent.
    #[inline]
    pub fn start_call(&mut self, deadline: Option<Instant>, now: Instant) -> Result<CallId, CallError> {
        self.check_open()?;
        self.clock.saw(now);
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
    ///
    /// # Errors
    /// The connection is closed or closing; the message is dropped.
    #[inline]
    pub fn send_oneway(&mut self, message: &mut Encoder) -> Result<(), CallError> {
        let open = self.check_open();
        if open.is_ok() {
            let cut = self.output.fragment_queue.cuts(message.version(), message.len());
            if !cut || self.output.queue_oneway_in_pieces(message, self.clock.now).is_none() {
                self.output.queue(message, false, self.clock.now);
            }
            self.oneways.queued(self.output.tx.queued());
        } else {
            message.reset(message.order(), message.version());
        }
        open
    }

    /// Returns the number of pending calls.
    #[inline]
    #[must_use]
    pub fn calls_waiting(&self) -> usize {
        self.calls.waiting()
    }

    /// Removes a request from the queue, or cancels it. Returns how much of it the peer receives. A
    /// completely queued request that cannot be removed is still sent.
    #[cold]
    pub(super) fn withdraw(&mut self, id: RequestId, place: RequestSpan) -> SentPart {
        if !self.lifecycle.may_queue() {
            return if place.start == u64::MAX { SentPart::Nothing } else { SentPart::Whole };
        }
        if self.output.partial_request.is_some() && place.start != u64::MAX {
            // Another request cannot be cancelled in the middle of this one.
            return if self.output.is_unfinished(place) {
                self.unfinished_request().give_up()
            } else {
                SentPart::Whole
            };
        }
        if !self.output.fragment_queue.is_empty()
            && let Some(sent) = self.output.stop_request(id, self.clock.now)
        {
            self.feed();
            return sent;
        }
        if place.start == u64::MAX {
            return SentPart::Nothing; // not queued yet
        }
        let unsent = !place.apart && self.output.sent(place) == SentPart::Nothing;
        if unsent && self.output.unqueue(place.start, place.end) {
            return SentPart::Nothing;
        }
        self.output.queue_cancel(id, self.clock.now);
        SentPart::Whole
    }

    /// Fails every call whose deadline has passed.
    #[cold]
    pub(super) fn expire_calls(&mut self, now: Instant) {
        let mut expired = Vec::new();
        let Self { calls, notices, .. } = self;
        calls.fail_due(Some(now), |call, place| {
            notices.push_back(Notice::Reply(call));
            expired.push((call, place));
            Err(CallError { kind: CallErrorKind::Timeout, sent: SentPart::Whole })
        });
        // From the last queued to the first, because only the end of the queue can be removed.
        expired.sort_unstable_by_key(|(_, place)| std::cmp::Reverse(place.end));
        for (call, place) in expired {
            self.stats.limits.hit(Limit::CallTime);
            let id = self.calls.request_id(call);
            // A request that stays queued is still sent, and may be executed before its CancelRequest
            // arrives.
            let sent = self.withdraw(id, place);
            self.calls.amend(call, Err(CallError { kind: CallErrorKind::Timeout, sent }));
            if sent != SentPart::Nothing {
                self.count_unanswered(now);
            }
        }
    }

    /// Counts a call that timed out after its request was sent. Closes the connection after too many of them
    /// without any received byte.
    fn count_unanswered(&mut self, now: Instant) {
        let (bytes, calls) = self.unanswered;
        let calls = if bytes == self.stats.octets_in { calls + 1 } else { 1 };
        self.unanswered = (self.stats.octets_in, calls);
        if calls >= self.limits.max_unanswered && self.lifecycle.takes_requests() {
            self.stats.limits.hit(Limit::Unanswered);
            self.close_because(CloseReason::Unanswered(calls), now);
        }
    }

    /// Returns whether calls can be made. A side that closes and still serves requests may call their senders
    /// back, which have not received CloseConnection yet.
    #[inline]
    #[must_use]
    pub fn takes_calls(&self) -> bool {
        self.lifecycle.is_open()
            || self.lifecycle.is_draining() && self.serving.len() > 0 && self.lifecycle.ended().is_none()
    }

    #[inline]
    pub(super) fn check_open(&self) -> Result<(), CallError> {
        if self.takes_calls() { Ok(()) } else { Err(self.lifecycle.closed_error()) }
    }
}

impl PendingCall<'_> {
    /// Returns the id that the call's request must carry.
    #[inline]
    #[must_use]
    pub fn request_id(&self) -> RequestId {
        self.connection.calls.request_id(self.id)
    }

    /// Queues the request of a call: a whole message in one piece, from its message header on. The encoder is
    /// left empty, in the same byte order and version.
    ///
    /// A head of up to 4 KiB is copied once, into the batch. Nothing else is copied. If the call is no longer
    /// pending, the message is dropped.
    #[inline]
    pub fn send_request(&mut self, message: &mut Encoder) {
        self.send_call(message, false);
    }

    /// Marks the reply to a call for forwarding in encoded form, so that none of it is copied. The part of a
    /// large reply that is received with its header stays where it was read, and the rest gets a buffer of
    /// its own. Decoding such a reply copies it.
    pub fn pass_reply(&mut self) {
        if self.connection.calls.is_waiting(self.id) {
            self.connection.input.rx.stream.pass_reply(self.connection.calls.request_id(self.id));
        }
    }

    /// Streams the results of a call. A large reply is handed out before all of its bytes have been received.
    ///
    /// [`Reply::coming`] is the number of bytes that follow. They are [opened](super::Input::open_stream),
    /// then [taken](super::IncomingStream::take_chunk) or [given up](super::IncomingStream::abandon), by the
    /// id of the call. No other call may be pending on the connection.
    ///
    /// `nameless` includes results in GIOP 1.1 fragments, in which the alignment of values is not known.
    pub fn stream_reply(&mut self, nameless: bool) {
        if self.connection.calls.is_waiting(self.id) {
            self.connection.input.rx.stream.select_reply(self.connection.calls.request_id(self.id), nameless);
        }
    }

    /// Queues the LocateRequest of a call, like [`send_request`](Self::send_request).
    pub fn send_locate(&mut self, message: &mut Encoder) {
        self.send_call(message, true);
    }

    #[inline]
    fn send_call(&mut self, message: &mut Encoder, locate: bool) {
        if self.connection.calls.is_waiting(self.id) {
            let cut = !locate && self.connection.output.fragment_queue.cuts(message.version(), message.len());
            if cut && self.connection.output.queue_in_pieces(Some(self.id), message) {
                self.connection.feed();
            } else {
                let place = self.connection.output.queue(message, locate, self.connection.clock.now);
                self.connection.calls.queued(self.id, place);
            }
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Returns the outcome of a call, if it is available. The call then ends, and its id becomes invalid.
    #[inline]
    pub fn take_outcome(&mut self) -> Option<Result<Reply, CallError>> {
        let outcome = self.connection.calls.take(self.id);
        if outcome.is_some() {
            self.connection.input.rx.stream.forget_reply(self.connection.calls.request_id(self.id));
        }
        outcome
    }

    /// Abandons a call, whether or not it has been answered.
    ///
    /// A request of which nothing is written is removed from the queue if possible. Otherwise a CancelRequest
    /// is queued, and a late reply is ignored.
    pub fn cancel(&mut self) {
        let id = self.connection.calls.request_id(self.id);
        self.connection.input.rx.stream.forget_reply(id);
        if self.connection.input.streamed.is_some() {
            let loan = self.connection.stream(self.id).abandon();
            debug_assert!(loan.is_none(), "no memory was lent for a reply");
        }
        if let Some(place) = self.connection.calls.abandon(self.id) {
            let _ = self.connection.withdraw(id, place);
            self.connection.proceed_closing();
        }
    }

    /// Returns whether the outcome of that call is available, or the call has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !self.connection.calls.is_waiting(self.id)
    }
}

impl Calls<Outcome> {
    /// Fails every pending call. The socket may have accepted the bytes of the stream before `reached`.
    #[cold]
    pub(super) fn fail_all(&mut self, kind: CallErrorKind, reached: u64, notices: &mut VecDeque<Notice>) {
        self.fail_due(None, |call, place| {
            notices.push_back(Notice::Reply(call));
            Err(CallError { kind, sent: sent_at(reached, place) })
        });
    }

    /// Fails every pending call in a connection that still sends its queue before it ends. Requests are
    /// removed from the queue where possible; the others may be executed.
    #[cold]
    pub(super) fn fail_queued(
        &mut self,
        kind: CallErrorKind,
        output: &mut Output,
        notices: &mut VecDeque<Notice>,
    ) {
        let mut failed = Vec::new();
        self.fail_due(None, |call, place| {
            notices.push_back(Notice::Reply(call));
            failed.push((call, place));
            Err(CallError { kind, sent: SentPart::Whole })
        });
        // Only the end of the queue can be removed.
        failed.sort_unstable_by_key(|(_, place)| std::cmp::Reverse(place.end));
        for (call, place) in failed {
            let taken = !place.apart && output.unqueue(place.start, place.end);
            let sent = if taken { SentPart::Nothing } else { sent_at(output.tx.queued(), place) };
            self.amend(call, Err(CallError { kind, sent }));
        }
        output.timer.unqueued(output.tx.backlog() > 0);
    }
}

fn sent_at(reached: u64, place: RequestSpan) -> SentPart {
    if reached <= place.start {
        SentPart::Nothing
    } else if reached < place.end {
        SentPart::Partly
    } else {
        SentPart::Whole
    }
}
