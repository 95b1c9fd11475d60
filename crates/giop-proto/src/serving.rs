//! The requests of the peer that are being served.

use giop_codec::giop::RequestId;

/// Identifies a request of the peer that is being served. The token is valid until the request ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ServeToken {
    index: u32,
    generation: u32,
}

impl ServeToken {
    /// Returns the index of the request among those in flight. It is small, and may be reused later.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

#[derive(Debug, Default)]
pub(crate) struct ActiveRequests {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    /// The number of requests that have ended in this slot.
    generation: u32,
    id: RequestId,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// The peer awaits a reply.
    Awaited,
    /// The peer awaits no reply: the request is a oneway, the peer cancelled it, or it has been acknowledged.
    Unawaited,
}

impl ActiveRequests {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self, id: RequestId, awaited: bool) -> ServeToken {
        let state = if awaited { State::Awaited } else { State::Unawaited };
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            slot.id = id;
            slot.state = state;
            return ServeToken { index, generation: slot.generation };
        }
        self.insert_new(id, state)
    }

    #[cold]
    fn insert_new(&mut self, id: RequestId, state: State) -> ServeToken {
        let index = self.slots.len() as u32; // bounded by `Limits::max_requests`
        self.slots.push(Slot { generation: 0, id, state });
        ServeToken { index, generation: 0 }
    }

    /// Ends a request. Returns whether the peer still awaits its reply.
    #[inline]
    pub(crate) fn finish(&mut self, token: ServeToken) -> bool {
        let Some(slot) = self.slots.get_mut(token.index()) else { return false };
        if slot.generation != token.generation || slot.state == State::Free {
            return false;
        }
        let awaited = slot.state == State::Awaited;
        slot.generation = slot.generation.wrapping_add(1);
        slot.state = State::Free;
        self.free.push(token.index);
        awaited
    }

    /// Returns the id that the peer has given to a request.
    #[cold]
    pub(crate) fn id(&self, token: ServeToken) -> Option<RequestId> {
        self.slot(token).map(|slot| slot.id)
    }

    fn slot(&self, token: ServeToken) -> Option<&Slot> {
        self.slots.get(token.index()).filter(|slot| slot.generation == token.generation)
    }

    pub(crate) fn is_awaited(&self, token: ServeToken) -> bool {
        self.slot(token).is_some_and(|slot| slot.state == State::Awaited)
    }

    /// Records that the reply is sent before the request has ended. Returns whether the reply was awaited.
    #[cold]
    pub(crate) fn acknowledge(&mut self, token: ServeToken) -> bool {
        let slot = self.slots.get_mut(token.index()).filter(|slot| slot.generation == token.generation);
        let Some(slot) = slot.filter(|slot| slot.state == State::Awaited) else { return false };
        slot.state = State::Unawaited;
        true
    }

    /// Cancels a request. Returns `None` if no reply with this id is awaited.
    ///
    /// The linear search is bounded by `Limits::max_requests`.
    pub(crate) fn cancel(&mut self, id: RequestId) -> Option<ServeToken> {
        let find = |slot: &Slot| slot.id == id && slot.state == State::Awaited;
        let index = self.slots.iter().position(find)?;
        let slot = self.slots.get_mut(index)?;
        slot.state = State::Unawaited;
        Some(ServeToken { index: index as u32, generation: slot.generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_token_ends_no_other_request() {
        let mut serving = ActiveRequests::default();
        let first = serving.insert(RequestId(2), true);
        assert!(serving.finish(first));
        assert!(!serving.finish(first));
        let second = serving.insert(RequestId(4), true);
        assert_eq!(second.index(), first.index());
        assert!(!serving.finish(first));
        assert_eq!(serving.len(), 1);
        assert!(serving.finish(second));
        assert_eq!(serving.len(), 0);
    }

    #[test]
    fn an_acknowledged_request_is_served_until_it_is_finished() {
        let mut serving = ActiveRequests::default();
        let token = serving.insert(RequestId(2), true);
        assert!(serving.acknowledge(token));
        assert!(!serving.acknowledge(token));
        assert_eq!(serving.len(), 1);
        assert!(!serving.finish(token));
        assert_eq!(serving.len(), 0);
        assert!(!serving.acknowledge(token));
    }

    #[test]
    fn a_cancelled_request_is_served_but_not_awaited() {
        let mut serving = ActiveRequests::default();
        let token = serving.insert(RequestId(2), true);
        let oneway = serving.insert(RequestId(4), false);
        assert_eq!(serving.cancel(RequestId(4)), None);
        assert_eq!(serving.cancel(RequestId(2)), Some(token));
        assert_eq!(serving.cancel(RequestId(2)), None);
        assert_eq!(serving.len(), 2);
        assert!(!serving.finish(token));
        assert!(!serving.finish(oneway));
    }
}
