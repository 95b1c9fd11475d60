//! The connections of the admin endpoint: their limit, and the eviction of idle ones.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The slots of connections. A slot is released when its connection ends.
#[derive(Debug)]
pub(crate) struct Seats {
    most: usize,
    /// In the order of arrival.
    taken: Mutex<VecDeque<Arc<Place>>>,
}

#[derive(Debug, Default)]
struct Place {
    /// A complete request head has arrived.
    asked: AtomicBool,
    displaced: Notify,
}

/// The slot of a connection, released on drop.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    place: Arc<Place>,
}

impl Seats {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a slot. If all are taken, the oldest connection without a complete request head is evicted.
    /// Returns `None` if there is none.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Seat> {
        let mut taken = self.lock();
        if taken.len() >= self.most {
            let oldest = taken.iter().position(|place| !place.asked.load(Ordering::Relaxed))?;
            taken.remove(oldest)?.displaced.notify_one();
        }
        let place = Arc::<Place>::default();
        taken.push_back(Arc::clone(&place));
        Some(Seat { seats: Arc::clone(self), place })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Place>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Records that a complete request head has arrived.
    pub(crate) fn has_asked(&self) {
        self.place.asked.store(true, Ordering::Relaxed);
    }

    /// Completes when the connection is evicted.
    pub(crate) async fn displaced(&self) {
        self.place.displaced.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_without_a_request_ends_for_a_newcomer() {
        let seats = Seats::new(2);
        let (first, second) = (seats.enter().unwrap(), seats.enter().unwrap());
        first.has_asked();
        let third = seats.enter().unwrap();
        let is_there = |seat: &Seat| seats.lock().iter().any(|place| Arc::ptr_eq(place, &seat.place));
        assert!(is_there(&first) && !is_there(&second) && is_there(&third));
        third.has_asked();
        assert!(seats.enter().is_none(), "both are answered");
        drop(first);
        assert!(seats.enter().is_some());
    }
}
