//! The limit of concurrent handshakes with clients, and the eviction of a handshake for a new connection.
//!
//! If all slots are taken, a new connection evicts a handshake, unless `OrbBuilder::evict_idle_after` is
//! disabled. There are two kinds of candidates:
//!
//! * handshakes that have run for at least `OrbBuilder::evict_idle_after`,
//! * handshakes of an address that has at least two more of them than the address of the new connection.
//!
//! Handshakes without a ClientHello are evicted first, then those of the address with the most handshakes.
//! Among equal candidates, the oldest one is evicted.

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
    /// The time after which every handshake can be evicted. `None` disables eviction.
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

/// A handshake in progress. It occupies its slot until it is dropped or evicted.
#[derive(Debug)]
pub(crate) struct Handshake {
    handshakes: Arc<Handshakes>,
    slot: Arc<HandshakeSlot>,
}

impl Handshakes {
    pub(crate) fn new(max: usize, min_evictable_age: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { max, min_evictable_age, slots: Mutex::default() })
    }

    /// Takes a slot. The `bool` is true if another handshake was evicted. Returns `None` if no slot is free
    /// and no handshake can be evicted.
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
        let mut counts = HashMap::<_, usize>::new();
        for slot in slots {
            *counts.entry(slot.address).or_default() += 1;
        }
        let count = |address| counts.get(&address).copied().unwrap_or_default();
        let own_count = count(address);
        let is_evictable = |slot: &HandshakeSlot| {
            now.saturating_duration_since(slot.started_at) >= min_evictable_age
                || count(slot.address) >= own_count + 2
        };
        let candidates = slots.iter().enumerate().filter(|(_, slot)| is_evictable(slot));
        // `min_by_key` returns the first of several minima, which is the oldest one.
        let first = candidates.min_by_key(|(_, slot)| {
            (slot.has_client_hello.load(Ordering::Relaxed), std::cmp::Reverse(count(slot.address)))
        });
        first.map(|(at, _)| at)
    }
}

impl Handshake {
    pub(crate) fn set_client_hello_received(&self) {
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
        taken[1].set_client_hello_received();
        // All handshakes are new, but one address has many.
        let (new, has_evicted) = enter(4, 0).unwrap();
        assert!(has_evicted && is_evicted(&taken[2]));
        let (other, _) = enter(5, 0).unwrap();
        assert!(is_evicted(&taken[4]) || is_evicted(&taken[3]), "of an address with two handshakes");
        // Slots are now distributed evenly, and no handshake is old.
        assert!(enter(5, 0).is_none());
        assert!(!is_evicted(&new) && !is_evicted(&other) && !is_evicted(&taken[0]));
    }

    #[test]
    fn handshakes_of_one_address_are_evicted_only_after_the_minimum_age() {
        let (all, start) = (Handshakes::new(2, Some(SECOND)), Instant::now());
        let enter = |after| all.enter(address(1), start + after);
        let (first, second) = (enter(Duration::ZERO).unwrap().0, enter(Duration::ZERO).unwrap().0);
        first.set_client_hello_received();
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
