//! The calls of one connection that wait for their replies.
//!
//! A request id carries the index of its slot, so a reply finds its call without a search, and a generation, so
//! a late reply to a cancelled call finds nothing. The originator of a connection uses even ids and the acceptor
//! odd ones (Bidirectional GIOP / Request ids).

use std::collections::VecDeque;
use std::time::Instant;

use giop_codec::giop::RequestId;

const INDEX_BITS: u32 = 16;
const GENERATION_MASK: u32 = (1 << (31 - INDEX_BITS)) - 1;

/// The table of the calls of one direction of a connection.
#[derive(Debug)]
pub struct Calls<R> {
    slots: Vec<Slot<R>>,
    /// Slots of calls that were answered: the last one used is the next.
    free: Vec<u16>,
    /// Slots of cancelled calls, whose replies may still come: the longest unused is the next.
    cooling: VecDeque<u16>,
    parity: u32,
    waiting: usize,
}

#[derive(Debug)]
struct Slot<R> {
    generation: u32,
    state: State<R>,
}

#[derive(Debug)]
enum State<R> {
    Free,
    Waiting { deadline: Option<Instant>, end: u64 },
    Done(R),
}

/// A call in the table. It stays valid until it is taken or abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId {
    index: u16,
    generation: u32,
}

/// A call that still waits, as [`Calls::waiting_calls`] lists it.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The call.
    pub call: CallId,
    /// When it stops waiting.
    pub deadline: Option<Instant>,
    /// Where its request ends in the outgoing stream.
    pub end: u64,
}

impl CallId {
    /// The index of the call's slot: small, and free for another call after this one.
    #[must_use]
    pub fn index(self) -> usize {
        self.index.into()
    }
}

impl<R> Calls<R> {
    /// An empty table for the originator of a connection, or for its acceptor.
    #[must_use]
    pub fn new(originator: bool) -> Self {
        let parity = u32::from(!originator);
        Self { slots: Vec::new(), free: Vec::new(), cooling: VecDeque::new(), parity, waiting: 0 }
    }

    /// How many calls wait for a reply.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Enters a call. `None`: all 65,536 slots wait.
    pub fn start(&mut self, deadline: Option<Instant>) -> Option<CallId> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.new_slot()?,
        };
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.generation = slot.generation.wrapping_add(1) & GENERATION_MASK;
        slot.state = State::Waiting { deadline, end: u64::MAX };
        self.waiting += 1;
        Some(CallId { index, generation: slot.generation })
    }

    /// The request id of a call on the wire.
    #[must_use]
    pub fn request_id(&self, call: CallId) -> RequestId {
        RequestId((call.generation << (INDEX_BITS + 1)) | (u32::from(call.index) << 1) | self.parity)
    }

    /// Notes where the call's request ends in the outgoing stream: from then on its completion is uncertain.
    pub fn queued(&mut self, call: CallId, at: u64) {
        if let Some(State::Waiting { end, .. }) = self.state_mut(call) {
            *end = at;
        }
    }

    /// Enters the outcome of the call with this request id. Gives the outcome back if no such call waits.
    pub fn complete(&mut self, id: RequestId, outcome: R) -> Result<CallId, R> {
        let call = CallId {
            index: (id.0 >> 1) as u16,
            generation: id.0 >> (INDEX_BITS + 1),
        };
        if id.0 & 1 != self.parity {
            return Err(outcome);
        }
        self.finish(call, outcome).map(|()| call)
    }

    /// Enters the outcome of a call. Gives it back if the call does not wait.
    pub fn finish(&mut self, call: CallId, outcome: R) -> Result<(), R> {
        match self.state_mut(call) {
            Some(state @ State::Waiting { .. }) => {
                *state = State::Done(outcome);
                self.waiting -= 1;
                Ok(())
            }
            _ => Err(outcome),
        }
    }

    /// Whether the call still waits.
    #[must_use]
    pub fn is_waiting(&self, call: CallId) -> bool {
        matches!(self.slot(call).map(|slot| &slot.state), Some(State::Waiting { .. }))
    }

    /// Takes the outcome of a call, if there is one, and frees its slot.
    pub fn take(&mut self, call: CallId) -> Option<R> {
        let state = self.state_mut(call)?;
        if !matches!(state, State::Done(_)) {
            return None;
        }
        let State::Done(outcome) = std::mem::replace(state, State::Free) else { return None };
        self.free.push(call.index);
        Some(outcome)
    }

    /// Forgets a call. Says whether it still waited for its reply, and where its request ends in the stream.
    pub fn abandon(&mut self, call: CallId) -> Option<u64> {
        let state = self.state_mut(call)?;
        match std::mem::replace(state, State::Free) {
            State::Waiting { end, .. } => {
                self.waiting -= 1;
                self.cooling.push_back(call.index);
                Some(end)
            }
            State::Done(_) => {
                self.free.push(call.index);
                None
            }
            State::Free => None,
        }
    }

    /// All calls that wait.
    pub fn waiting_calls(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.slots.iter().zip(0u16..=u16::MAX).filter_map(|(slot, index)| match slot.state {
            State::Waiting { deadline, end } => {
                Some(Waiting { call: CallId { index, generation: slot.generation }, deadline, end })
            }
            _ => None,
        })
    }

    fn new_slot(&mut self) -> Option<u16> {
        // A cancelled call's slot rests while others are few, so that its late reply meets a new generation.
        if self.cooling.len() >= 64 || self.slots.len() > usize::from(u16::MAX) {
            return self.cooling.pop_front();
        }
        let index = u16::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { generation: 0, state: State::Free });
        Some(index)
    }

    fn slot(&self, call: CallId) -> Option<&Slot<R>> {
        self.slots.get(call.index()).filter(|slot| slot.generation == call.generation)
    }

    fn state_mut(&mut self, call: CallId) -> Option<&mut State<R>> {
        let slot = self.slots.get_mut(call.index()).filter(|slot| slot.generation == call.generation)?;
        Some(&mut slot.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_finds_its_call_and_no_other() {
        let mut calls = Calls::new(true);
        let a = calls.start(None).unwrap();
        let b = calls.start(None).unwrap();
        assert_eq!(calls.complete(calls.request_id(b), "b"), Ok(b));
        assert_eq!(calls.take(a), None);
        assert_eq!(calls.take(b), Some("b"));
        let id = calls.request_id(a);
        assert!(calls.abandon(a).is_some());
        assert_eq!(calls.complete(id, "late"), Err("late"));
        assert_eq!(calls.waiting(), 0);
    }

    #[test]
    fn a_slot_used_again_refuses_the_old_reply() {
        let mut calls = Calls::new(false);
        let first = calls.start(None).unwrap();
        let old = calls.request_id(first);
        assert_eq!(old.0 & 1, 1, "the acceptor's ids are odd");
        calls.complete(old, 1).unwrap();
        assert_eq!(calls.take(first), Some(1));
        let second = calls.start(None).unwrap();
        assert_eq!(second.index(), first.index());
        assert_eq!(calls.complete(old, 2), Err(2));
        assert!(calls.is_waiting(second));
    }
}
