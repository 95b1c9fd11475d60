//! The budget for requests in flight that many connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of requests that a connection takes from the budget at a time.
const PORTION: usize = 16;

/// A limit for the number of requests that the connections of an endpoint have in flight together.
///
/// The first request of each connection does not count. It is always served, so that every connection makes
/// progress. The number of connections is limited separately.
#[derive(Debug)]
pub struct RequestBudget {
    taken: AtomicUsize,
    capacity: usize,
}

/// The part of a [`RequestBudget`] that one connection has taken.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    budget: Arc<RequestBudget>,
    taken: usize,
}

impl RequestBudget {
    /// Creates a budget of `capacity` requests.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { taken: AtomicUsize::new(0), capacity }
    }

    /// Returns the number of requests that connections have taken from the budget. It counts requests in
    /// flight, except the first of each connection, and what connections keep for later.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl BudgetShare {
    pub(crate) fn new(budget: Arc<RequestBudget>) -> Self {
        Self { budget, taken: 0 }
    }

    /// Returns the number of requests that the connection may have in flight.
    pub(crate) fn granted(&self) -> usize {
        self.taken + 1
    }

    /// Takes up to [`PORTION`] more requests, but at most `max_in_flight` in total. Returns whether it took
    /// any.
    pub(crate) fn grow(&mut self, max_in_flight: usize) -> bool {
        let want = PORTION.min(max_in_flight.saturating_sub(self.granted()));
        let mut got = 0;
        let take = |taken: usize| {
            got = want.min(self.budget.capacity.saturating_sub(taken));
            (got > 0).then_some(taken + got)
        };
        let grown = self.budget.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if grown {
            self.taken += got;
        }
        grown
    }

    /// Gives back to the budget all that is not needed for `in_flight` requests.
    pub(crate) fn shrink(&mut self, in_flight: usize) {
        let spare = self.taken.saturating_sub(in_flight.saturating_sub(1));
        self.budget.taken.fetch_sub(spare, Ordering::Relaxed);
        self.taken -= spare;
    }

    /// Returns whether the share is so much larger than `in_flight` that a part of it should be given back.
    #[inline]
    pub(crate) fn has_surplus(&self, in_flight: usize) -> bool {
        self.taken > in_flight + 2 * PORTION
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_take_no_more_than_there_is_and_give_all_back() {
        let budget = Arc::new(RequestBudget::new(40));
        let (mut one, mut other) =
            (BudgetShare::new(Arc::clone(&budget)), BudgetShare::new(Arc::clone(&budget)));
        assert!(one.grow(256) && one.grow(256));
        assert!(other.grow(256), "the rest of the budget");
        assert_eq!((one.taken, other.taken, budget.taken()), (32, 8, 40));
        assert!(!one.grow(256) && !other.grow(256));
        one.shrink(5);
        assert_eq!((one.granted(), budget.taken()), (5, 12));
        assert!(other.grow(10), "up to the limit of the connection");
        assert!(!other.grow(10));
        assert_eq!((other.granted(), budget.taken()), (10, 13));
        drop((one, other));
        assert_eq!(budget.taken(), 0);
    }
}
