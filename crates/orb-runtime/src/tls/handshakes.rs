//! The handshakes of clients: their limit, and the eviction of one for a new connection.
//!
//! Idle clients must not occupy all slots until they time out. If all slots are taken, a new connection
//! evicts the oldest handshake of the address with most handshakes, those without a ClientHello first. A
//! handshake can be evicted if
//!
//! * it has run for as long as `OrbBuilder::evict_idle_after` says, or
//! * its address has at least two more handshakes than that of the new connection, so that eviction
//!   distributes the slots more evenly.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The running handshakes of one ORB.
#[derive(Debug)]
pub(crate) struct Handshakes {
    most: usize,
    /// The time after which a handshake can be evicted; `None`: never.
    silence: Option<Duration>,
    /// The slots in order of arrival.
    places: Mutex<Vec<Arc<Place>>>,
}

#[derive(Debug)]
struct Place {
    address: Option<IpAddr>,
    since: Instant,
    /// The client has sent a complete ClientHello.
    begun: AtomicBool,
    /// Notified when the handshake is evicted.
    displaced: Notify,
}

/// A handshake's slot, released on drop.
#[derive(Debug)]
pub(crate) struct Handshake {
    all: Arc<Handshakes>,
    place: Arc<Place>,
}

impl Handshakes {
    pub(crate) fn new(most: usize, silence: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { most, silence, places: Mutex::default() })
    }

    /// Takes a slot. The second value tells whether another handshake is evicted. Returns `None` if there is
    /// no slot and none can be evicted.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Option<(Handshake, bool)> {
        let mut places = self.lock();
        let full = places.len() >= self.most;
        if full {
            let at = self.displaceable(&places, address, now)?;
            places.remove(at).displaced.notify_one();
        }
        let place =
            Arc::new(Place { address, since: now, begun: AtomicBool::new(false), displaced: Notify::new() });
        places.push(Arc::clone(&place));
        Some((Handshake { all: Arc::clone(self), place }, full))
    }

    /// Returns the handshake to evict for a new connection from that address.
    fn displaceable(&self, places: &[Arc<Place>], address: Option<IpAddr>, now: Instant) -> Option<usize> {
        let silence = self.silence?;
        let mut of_address = HashMap::<_, usize>::new();
        for place in places {
            *of_address.entry(place.address).or_default() += 1;
        }
        let count = |address| of_address.get(&address).copied().unwrap_or_default();
        let own = count(address);
        let may_end = |place: &Place| {
            now.saturating_duration_since(place.since) >= silence || count(place.address) >= own + 2
        };
        let candidates = places.iter().enumerate().filter(|(_, place)| may_end(place));
        // `min_by_key` returns the first of equal ones, which is the oldest.
        let first = candidates.min_by_key(|(_, place)| {
            (place.begun.load(Ordering::Relaxed), std::cmp::Reverse(count(place.address)))
        });
        first.map(|(at, _)| at)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handshake {
    /// Records that the client has sent a complete ClientHello.
    pub(crate) fn begun(&self) {
        self.place.begun.store(true, Ordering::Relaxed);
    }

    /// Waits until the handshake is evicted.
    pub(crate) async fn displaced(&self) {
        self.place.displaced.notified().await;
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.all.lock().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(last: u8) -> Option<IpAddr> {
        Some([10, 0, 0, last].into())
    }

    fn is_displaced(handshake: &Handshake) -> bool {
        let there = handshake.all.lock();
        !there.iter().any(|place| Arc::ptr_eq(place, &handshake.place))
    }

    #[test]
    fn the_oldest_without_a_client_hello_of_the_address_with_most_ends_first() {
        let (all, start) = (Handshakes::new(6, Some(SECOND)), Instant::now());
        let enter = |last, seconds| all.enter(address(last), start + seconds * SECOND);
        let taken: Vec<_> = [1, 2, 2, 2, 3, 3].into_iter().map(|last| enter(last, 0).unwrap().0).collect();
        taken[1].begun();
        // All handshakes are new, but one address has many.
        let (newcomer, displaces) = enter(4, 0).unwrap();
        assert!(displaces && is_displaced(&taken[2]));
        let (other, _) = enter(5, 0).unwrap();
        assert!(is_displaced(&taken[4]) || is_displaced(&taken[3]), "an address with two");
        // Slots are now distributed evenly, and none is old.
        assert!(enter(5, 0).is_none());
        assert!(!is_displaced(&newcomer) && !is_displaced(&other) && !is_displaced(&taken[0]));
    }

    #[test]
    fn newcomers_of_the_same_address_wait_for_the_time_of_the_others() {
        let (all, start) = (Handshakes::new(2, Some(SECOND)), Instant::now());
        let enter = |after| all.enter(address(1), start + after);
        let (first, second) = (enter(Duration::ZERO).unwrap().0, enter(Duration::ZERO).unwrap().0);
        first.begun();
        assert!(enter(SECOND / 2).is_none());
        assert!(enter(SECOND).is_some());
        assert!(is_displaced(&second) && !is_displaced(&first), "one that has begun goes last");
    }

    #[test]
    fn none_ends_where_that_is_disabled_and_a_place_that_is_left_is_free() {
        let (all, start) = (Handshakes::new(1, None), Instant::now());
        let first = all.enter(address(1), start).unwrap();
        assert!(all.enter(address(2), start + 3600 * SECOND).is_none());
        drop(first);
        assert!(!all.enter(address(2), start).unwrap().1);
    }
}
