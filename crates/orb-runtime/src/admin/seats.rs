//! The connections of the admin endpoint: how many are served, and which of them ends for a newcomer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of connections, which end with their answer.
#[derive(Debug)]
pub(super) struct Seats {
    most: usize,
    /// In the order in which they came.
    taken: Mutex<VecDeque<Arc<Place>>>,
}

#[derive(Debug, Default)]
struct Place {
    /// A whole request head came.
    asked: AtomicBool,
    displaced: Notify,
}

/// A connection's place, given up on drop.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    place: Arc<Place>,
}

impl Seats {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// A place for a newcomer. Where all are taken, the oldest connection without a whole request head ends. `None`: there is none such.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Seat> {
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
    /// A whole request head came.
    pub(super) fn has_asked(&self) {
        self.place.asked.store(true, Ordering::Relaxed);
    }

    /// Ready when the place was given to a newcomer.
    pub(super) async fn displaced(&self) {
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
