//! The pending calls of one connection.
//!
//! A request id contains the index of a slot, so that the call of a reply is found without a search. It also
//! contains a generation, so that a late reply to a cancelled call finds no call. The side that opened a
//! connection uses even ids, and the side that accepted it uses odd ones (Bidirectional GIOP / Request ids).
//! Oneways have no reply, and all have the same index, which no slot has.

use std::collections::VecDeque;
use std::time::Instant;

use giop_codec::giop::RequestId;

use crate::error::SentPart;

const INDEX_BITS: u32 = 16;
const GENERATION_MASK: u32 = (1 << (31 - INDEX_BITS)) - 1;

const ONEWAY_INDEX: u16 = u16::MAX;

/// The number of slots of cancelled calls that are not reused, so that a late reply matches no other call.
const MAX_COOLING_SLOTS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Calls<R> {
    slots: Vec<Slot<R>>,
    /// The indices of slots of answered calls. The last one freed is reused first.
    free: Vec<u16>,
    /// The indices of slots of cancelled calls, in the order in which they are reused.
    cooling: VecDeque<u16>,
    parity: u32,
    pending: usize,
    /// A time that is not later than the deadline of any pending call.
    earliest_deadline: Option<Instant>,
    /// The generation in the id of the last oneway.
    oneway_generation: u32,
    /// The greatest stream position of an answered request. The peer has received all bytes before it.
    confirmed_position: u64,
}

#[derive(Debug)]
struct Slot<R> {
    generation: u32,
    state: State<R>,
}

#[derive(Debug)]
enum State<R> {
    Free,
    Pending {
        deadline: Option<Instant>,
        span: RequestSpan,
    },
    Done {
        outcome: R,
        /// True if the call ended without a reply, which may still arrive.
        is_unanswered: bool,
    },
}

/// The id of a call. It is valid until the outcome of the call is taken or the call is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId {
    index: u16,
    generation: u32,
}

/// The position of a call's request in the outgoing stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestSpan {
    /// The position of its first byte. `u64::MAX` if it is not queued.
    pub(crate) start: u64,
    /// The position after its last byte. `u64::MAX` if that is not queued.
    pub(crate) end: u64,
    pub(crate) is_locate: bool,
    /// True if the pieces of the request are interleaved with other messages.
    pub(crate) is_interleaved: bool,
}

impl RequestSpan {
    pub(crate) const UNQUEUED: Self =
        Self { start: u64::MAX, end: u64::MAX, is_locate: false, is_interleaved: false };

    /// Returns the part of the request that was sent if the socket accepted the stream before `end`.
    pub(crate) fn sent_before(self, end: u64) -> SentPart {
        if end <= self.start {
            SentPart::Nothing
        } else if end < self.end {
            SentPart::Partly
        } else {
            SentPart::Whole
        }
    }
}

impl CallId {
    /// Returns the index of the call's slot. It is a small number. After this call, another call may get it.
    pub fn index(self) -> usize {
        self.index.into()
    }
}

impl<R> Calls<R> {
    /// Creates an empty table for the side that opened the connection, or for the other side.
    pub(crate) fn new(opened_by_this_side: bool) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            cooling: VecDeque::new(),
            parity: u32::from(!opened_by_this_side),
            pending: 0,
            earliest_deadline: None,
            oneway_generation: 0,
            confirmed_position: 0,
        }
    }

    /// Returns the number of bytes that the peer has certainly received, because it answered later ones.
    pub(crate) fn confirmed_position(&self) -> u64 {
        self.confirmed_position
    }

    #[inline]
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Adds a call. Returns `None` if all 65,535 slots are in use.
    #[inline]
    pub(crate) fn start(&mut self, deadline: Option<Instant>) -> Option<CallId> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.new_slot()?,
        };
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.generation = slot.generation.wrapping_add(1) & GENERATION_MASK;
        slot.state = State::Pending { deadline, span: RequestSpan::UNQUEUED };
        self.pending += 1;
        if let Some(at) = deadline {
            self.earliest_deadline = Some(self.earliest_deadline.map_or(at, |earliest| earliest.min(at)));
        }
        Some(CallId { index, generation: slot.generation })
    }

    #[inline]
    pub(crate) fn request_id(&self, call: CallId) -> RequestId {
        self.wire_id(call.index, call.generation)
    }

    /// Returns an id for a request without a reply. The same id is returned again after 32,767 other ids.
    #[inline]
    pub(crate) fn next_oneway_id(&mut self) -> RequestId {
        self.oneway_generation = self.oneway_generation.wrapping_add(1) & GENERATION_MASK;
        self.wire_id(ONEWAY_INDEX, self.oneway_generation)
    }

    fn wire_id(&self, index: u16, generation: u32) -> RequestId {
        RequestId((generation << (INDEX_BITS + 1)) | (u32::from(index) << 1) | self.parity)
    }

    fn call_of(&self, id: RequestId) -> Option<CallId> {
        let index = ((id.0 >> 1) & u32::from(u16::MAX)) as u16;
        (id.0 & 1 == self.parity).then_some(CallId { index, generation: id.0 >> (INDEX_BITS + 1) })
    }

    /// Records the position of the call's request. It determines the completion status of a lost call.
    #[inline]
    pub(crate) fn record_span(&mut self, call: CallId, at: RequestSpan) {
        if let Some(State::Pending { span, .. }) = self.state_mut(call) {
            *span = at;
        }
    }

    /// Records the outcome of the call with this request id. `is_locate` tells whether the reply is a
    /// LocateReply. If no call that matches is pending, returns `None` and does not call `outcome`.
    #[inline]
    pub(crate) fn answer(
        &mut self,
        id: RequestId,
        is_locate: bool,
        outcome: impl FnOnce() -> R,
    ) -> Option<CallId> {
        let call = self.call_of(id)?;
        let slot = self.slots.get_mut(call.index()).filter(|slot| slot.generation == call.generation)?;
        match &slot.state {
            State::Pending { span, .. } if span.is_locate == is_locate => {
                if span.start != u64::MAX {
                    self.confirmed_position = self.confirmed_position.max(span.start);
                }
                slot.state = State::Done { outcome: outcome(), is_unanswered: false };
                self.pending -= 1;
                Some(call)
            }
            _ => None,
        }
    }

    pub(crate) fn pending_call(&self, id: RequestId) -> Option<CallId> {
        self.call_of(id).filter(|call| self.is_pending(*call))
    }

    #[inline]
    pub(crate) fn is_pending(&self, call: CallId) -> bool {
        matches!(self.slot(call).map(|slot| &slot.state), Some(State::Pending { .. }))
    }

    /// Takes the outcome of a call and frees the call's slot. Returns `None` if there is no outcome yet.
    #[inline]
    pub(crate) fn take(&mut self, call: CallId) -> Option<R> {
        let state = self.state_mut(call)?;
        if !matches!(state, State::Done { .. }) {
            return None;
        }
        let State::Done { outcome, is_unanswered } = std::mem::replace(state, State::Free) else {
            return None;
        };
        self.free_slot(call.index, is_unanswered);
        Some(outcome)
    }

    #[inline]
    fn free_slot(&mut self, index: u16, is_unanswered: bool) {
        if is_unanswered {
            self.cooling.push_back(index);
        } else {
            self.free.push(index);
        }
    }

    /// Removes a call. If it was pending, returns the position of its request in the stream.
    pub(crate) fn abandon(&mut self, call: CallId) -> Option<RequestSpan> {
        let state = self.state_mut(call)?;
        let (span, is_unanswered) = match std::mem::replace(state, State::Free) {
            State::Pending { span, .. } => (Some(span), true),
            State::Done { is_unanswered, .. } => (None, is_unanswered),
            State::Free => return None,
        };
        self.pending -= usize::from(span.is_some());
        self.free_slot(call.index, is_unanswered);
        span
    }

    #[inline]
    pub(crate) fn earliest_deadline(&self) -> Option<Instant> {
        if self.pending == 0 { None } else { self.earliest_deadline }
    }

    /// Fails calls whose deadline has passed, or all if `now` is `None`, with the outcome from `fail`.
    #[cold]
    pub(crate) fn fail_expired(
        &mut self,
        now: Option<Instant>,
        mut fail: impl FnMut(CallId, RequestSpan) -> R,
    ) {
        let mut earliest: Option<Instant> = None;
        for (slot, index) in self.slots.iter_mut().zip(0u16..=u16::MAX) {
            let State::Pending { deadline, span } = slot.state else { continue };
            let is_due = match (now, deadline) {
                (None, _) => true,
                (Some(now), Some(deadline)) => deadline <= now,
                (Some(_), None) => false,
            };
            if is_due {
                let call = CallId { index, generation: slot.generation };
                slot.state = State::Done { outcome: fail(call, span), is_unanswered: true };
                self.pending -= 1;
            } else {
                earliest = earliest.into_iter().chain(deadline).min();
            }
        }
        self.earliest_deadline = earliest;
    }

    #[cold]
    pub(crate) fn replace_outcome(&mut self, call: CallId, outcome: R) {
        if let Some(State::Done { outcome: before, .. }) = self.state_mut(call) {
            *before = outcome;
        }
    }

    fn new_slot(&mut self) -> Option<u16> {
        if self.cooling.len() >= MAX_COOLING_SLOTS || self.slots.len() >= usize::from(ONEWAY_INDEX) {
            return self.cooling.pop_front();
        }
        let index = u16::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { generation: 0, state: State::Free });
        Some(index)
    }

    fn slot(&self, call: CallId) -> Option<&Slot<R>> {
        self.slots.get(call.index()).filter(|slot| slot.generation == call.generation)
    }

    #[inline]
    fn state_mut(&mut self, call: CallId) -> Option<&mut State<R>> {
        let slot = self.slots.get_mut(call.index()).filter(|slot| slot.generation == call.generation)?;
        Some(&mut slot.state)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id_of<R>(calls: &Calls<R>, call: CallId) -> RequestId {
        calls.request_id(call)
    }

    // clause: giop.request.ids
    #[test]
    fn an_id_finds_its_call_and_no_other() {
        let mut calls = Calls::new(true);
        let a = calls.start(None).unwrap();
        let b = calls.start(None).unwrap();
        assert_eq!(calls.answer(id_of(&calls, b), false, || "b"), Some(b));
        assert_eq!(calls.take(a), None);
        assert_eq!(calls.take(b), Some("b"));
        let id = calls.request_id(a);
        assert!(calls.abandon(a).is_some());
        assert_eq!(calls.answer(id, false, || "late"), None);
        assert_eq!(calls.pending(), 0);
    }

    #[test]
    fn a_slot_used_again_refuses_the_old_reply() {
        let mut calls = Calls::new(false);
        let first = calls.start(None).unwrap();
        let old = calls.request_id(first);
        assert_eq!(old.0 & 1, 1, "the acceptor's ids are odd");
        calls.answer(old, false, || 1).unwrap();
        assert_eq!(calls.take(first), Some(1));
        let second = calls.start(None).unwrap();
        assert_eq!(second.index(), first.index());
        assert_eq!(calls.answer(old, false, || 2), None);
        assert!(calls.is_pending(second));
    }

    #[test]
    fn the_slot_of_an_unanswered_call_is_not_reused() {
        let mut calls = Calls::new(true);
        let now = Instant::now();
        let expired = calls.start(Some(now)).unwrap();
        let id = calls.request_id(expired);
        calls.fail_expired(Some(now), |_, _| "timeout");
        assert_eq!(calls.take(expired), Some("timeout"));
        for _ in 0..40_000 {
            let call = calls.start(None).unwrap();
            assert_ne!(call.index(), expired.index());
            assert_eq!(calls.answer(id, false, || "late"), None);
            calls.answer(id_of(&calls, call), false, || "reply").unwrap();
            calls.take(call).unwrap();
        }
    }

    // clause: giop.request.ids
    #[test]
    fn oneways_and_calls_never_share_an_id() {
        let mut calls: Calls<()> = Calls::new(true);
        while let Some(call) = calls.start(None) {
            assert_ne!(call.index(), usize::from(ONEWAY_INDEX));
        }
        assert_eq!(calls.pending(), 65_535);
        let id = calls.next_oneway_id();
        assert_eq!(calls.answer(id, false, || ()), None);
        assert_ne!(id, calls.next_oneway_id());
    }

    #[test]
    fn the_earliest_deadline_is_never_late() {
        let mut calls: Calls<()> = Calls::new(true);
        let now = Instant::now();
        let at = |s| now + Duration::from_secs(s);
        calls.start(Some(at(5))).unwrap();
        let soon = calls.start(Some(at(2))).unwrap();
        calls.start(None).unwrap();
        assert_eq!(calls.earliest_deadline(), Some(at(2)));
        calls.answer(id_of(&calls, soon), false, || ()).unwrap();
        calls.fail_expired(Some(at(2)), |_, _| ());
        assert_eq!((calls.pending(), calls.earliest_deadline()), (2, Some(at(5))));
        calls.fail_expired(None, |_, _| ());
        assert_eq!((calls.pending(), calls.earliest_deadline()), (0, None));
    }

    #[test]
    fn a_locate_request_takes_no_reply() {
        let mut calls = Calls::new(true);
        let call = calls.start(None).unwrap();
        calls.record_span(call, RequestSpan { start: 0, end: 24, is_locate: true, is_interleaved: false });
        let id = calls.request_id(call);
        assert_eq!(calls.answer(id, false, || 1), None);
        assert_eq!(calls.answer(id, true, || 2), Some(call));
    }
}
