//! The connection limit of the admin endpoint, and the eviction of idle connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::lock::lock;

#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    max_connections: usize,
    /// The slots in use, in the order in which their connections were opened.
    taken: Mutex<VecDeque<Arc<SlotState>>>,
}

#[derive(Debug, Default)]
struct SlotState {
    has_request: AtomicBool,
    evicted: Notify,
}

#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    state: Arc<SlotState>,
}

impl ConnectionSlots {
    pub(crate) fn new(max_connections: usize) -> Arc<Self> {
        Arc::new(Self { max_connections, taken: Mutex::default() })
    }

    /// Takes a free slot, or that of the oldest connection without a complete request head, which is evicted.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut taken = lock(&self.taken);
        if taken.len() >= self.max_connections {
            let oldest = taken.iter().position(|state| !state.has_request.load(Ordering::Relaxed))?;
            taken.remove(oldest)?.evicted.notify_one();
        }
        let state = Arc::<SlotState>::default();
        taken.push_back(Arc::clone(&state));
        Some(ConnectionSlot { slots: Arc::clone(self), state })
    }
}

impl ConnectionSlot {
    pub(crate) fn set_request_received(&self) {
        self.state.has_request.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn wait_for_eviction(&self) {
        self.state.evicted.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.slots.taken).retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_connection_evicts_the_oldest_one_without_a_request() {
        let slots = ConnectionSlots::new(2);
        let (first, second) = (slots.acquire().unwrap(), slots.acquire().unwrap());
        first.set_request_received();
        let third = slots.acquire().unwrap();
        let is_open =
            |slot: &ConnectionSlot| lock(&slots.taken).iter().any(|state| Arc::ptr_eq(state, &slot.state));
        assert!(is_open(&first) && !is_open(&second) && is_open(&third));
        third.set_request_received();
        assert!(slots.acquire().is_none(), "both connections have sent a request");
        drop(first);
        assert!(slots.acquire().is_some());
    }
}
