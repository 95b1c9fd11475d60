//! The limit of concurrent handshakes with clients, and the eviction of a handshake for a new connection.
//!
//! If all slots are taken, a new connection evicts the oldest handshake of the address with most handshakes,
//! preferably one without a ClientHello. A handshake can be evicted if
//!
//! * it has run for at least `OrbBuilder::evict_idle_after`, or
//! * its address has at least two more handshakes than that of the new connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::lock::lock;

#[derive(Debug)]
pub(crate) struct Handshakes {
    max: usize,
    /// The time after which a handshake can be evicted. `None` disables eviction.
    min_evictable_age: Option<Duration>,
    slots: Mutex<Vec<Arc<HandshakeSlot>>>,
}

#[derive(Debug)]
struct HandshakeSlot {
    address: Option<IpAddr>,
    started_at: Instant,
    has_client_hello: AtomicBool,
    evicted: Notify,
}

#[derive(Debug)]
pub(crate) struct Handshake {
    handshakes: Arc<Handshakes>,
    slot: Arc<HandshakeSlot>,
}

impl Handshakes {
    pub(crate) fn new(max: usize, min_evictable_age: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { max, min_evictable_age, slots: Mutex::default() })
    }

    /// Takes a slot. The `bool` tells whether another handshake was evicted. Returns `None` if none can be.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Option<(Handshake, bool)> {
        let mut slots = lock(&self.slots);
        let is_full = slots.len() >= self.max;
        if is_full {
            let at = self.index_to_evict(&slots, address, now)?;
            slots.remove(at).evicted.notify_one();
        }
        let slot = Arc::new(HandshakeSlot {
            address,
            started_at: now,
            has_client_hello: AtomicBool::new(false),
            evicted: Notify::new(),
        });
        slots.push(Arc::clone(&slot));
        Some((Handshake { handshakes: Arc::clone(self), slot }, is_full))
    }

    fn index_to_evict(
        &self,
        slots: &[Arc<HandshakeSlot>],
        address: Option<IpAddr>,
        now: Instant,
    ) -> Option<usize> {
        let min_evictable_age = self.min_evictable_age?;
        let mut of_address = HashMap::<_, usize>::new();
        for slot in slots {
            *of_address.entry(slot.address).or_default() += 1;
        }
        let count = |address| of_address.get(&address).copied().unwrap_or_default();
        let own = count(address);
        let is_evictable = |slot: &HandshakeSlot| {
            now.saturating_duration_since(slot.started_at) >= min_evictable_age
                || count(slot.address) >= own + 2
        };
        let candidates = slots.iter().enumerate().filter(|(_, slot)| is_evictable(slot));
        // Of equal elements, `min_by_key` returns the first one, which is the oldest.
        let first = candidates.min_by_key(|(_, slot)| {
            (slot.has_client_hello.load(Ordering::Relaxed), std::cmp::Reverse(count(slot.address)))
        });
        first.map(|(at, _)| at)
    }
}

impl Handshake {
    pub(crate) fn set_begun(&self) {
        self.slot.has_client_hello.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn wait_for_eviction(&self) {
        self.slot.evicted.notified().await;
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        lock(&self.handshakes.slots).retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(last: u8) -> Option<IpAddr> {
        Some([10, 0, 0, last].into())
    }

    fn is_evicted(handshake: &Handshake) -> bool {
        let slots = lock(&handshake.handshakes.slots);
        !slots.iter().any(|slot| Arc::ptr_eq(slot, &handshake.slot))
    }

    #[test]
    fn oldest_handshake_without_client_hello_of_the_busiest_address_is_evicted() {
        let (all, start) = (Handshakes::new(6, Some(SECOND)), Instant::now());
        let enter = |last, seconds| all.enter(address(last), start + seconds * SECOND);
        let taken: Vec<_> = [1, 2, 2, 2, 3, 3].into_iter().map(|last| enter(last, 0).unwrap().0).collect();
        taken[1].set_begun();
        // All handshakes are new, but one address has many.
        let (newcomer, displaces) = enter(4, 0).unwrap();
        assert!(displaces && is_evicted(&taken[2]));
        let (other, _) = enter(5, 0).unwrap();
        assert!(is_evicted(&taken[4]) || is_evicted(&taken[3]), "of an address with two handshakes");
        // Slots are now distributed evenly, and no handshake is old.
        assert!(enter(5, 0).is_none());
        assert!(!is_evicted(&newcomer) && !is_evicted(&other) && !is_evicted(&taken[0]));
    }

    #[test]
    fn handshakes_of_one_address_are_evicted_only_after_the_minimum_age() {
        let (all, start) = (Handshakes::new(2, Some(SECOND)), Instant::now());
        let enter = |after| all.enter(address(1), start + after);
        let (first, second) = (enter(Duration::ZERO).unwrap().0, enter(Duration::ZERO).unwrap().0);
        first.set_begun();
        assert!(enter(SECOND / 2).is_none());
        assert!(enter(SECOND).is_some());
        assert!(is_evicted(&second) && !is_evicted(&first), "the one with a ClientHello stays");
    }

    #[test]
    fn eviction_can_be_disabled_and_dropped_handshakes_release_their_slots() {
        let (all, start) = (Handshakes::new(1, None), Instant::now());
        let first = all.enter(address(1), start).unwrap();
        assert!(all.enter(address(2), start + 3600 * SECOND).is_none());
        drop(first);
        assert!(!all.enter(address(2), start).unwrap().1);
    }
}
