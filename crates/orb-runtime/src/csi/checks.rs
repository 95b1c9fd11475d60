//! Logins that are being checked or are queued for it: limits of their number and memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};

use crate::csi::throttle::of_site;
use crate::transport::Peer;

/// Maximum size of queued requests, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// The login checks of one server.
#[derive(Debug)]
pub(super) struct Checks {
    /// Permits for concurrent checks.
    pub(super) running: Semaphore,
    most_waiting: usize,
    /// Queued logins in the order of arrival.
    waiting: Mutex<Vec<Arc<Place>>>,
}

#[derive(Debug)]
struct Place {
    /// The network of the peer. Sockets of this machine have none, and count together.
    site: Option<IpAddr>,
    bytes: usize,
    displaced: Notify,
}

/// The queue entry of a login, removed on drop.
#[derive(Debug)]
pub(super) struct Waiting {
    checks: Arc<Checks>,
    place: Arc<Place>,
}

impl Checks {
    pub(super) fn new(running: usize, most_waiting: usize) -> Arc<Self> {
        let running = Semaphore::new(running.max(1));
        Arc::new(Self { running, most_waiting: most_waiting.max(1), waiting: Mutex::default() })
    }

    /// Queues a login whose request has this size. If the queue is full, the last login of the address with
    /// the most entries is evicted, provided that it has at least two more than the peer's address. Returns
    /// `None` if no login can be evicted.
    pub(super) fn enter(self: &Arc<Self>, peer: &Peer, bytes: usize) -> Option<Waiting> {
        let site = peer.address().map(of_site);
        let mut waiting = self.lock();
        while !self.has_room(&waiting, bytes) {
            let mut of_site = HashMap::<_, usize>::new();
            for place in &*waiting {
                *of_site.entry(place.site).or_default() += 1;
            }
            let own = of_site.get(&site).copied().unwrap_or_default();
            let (most, count) = of_site.into_iter().max_by_key(|(_, count)| *count)?;
            let last = waiting.iter().rposition(|place| place.site == most).filter(|_| count >= own + 2)?;
            waiting.remove(last).displaced.notify_one();
        }
        let place = Arc::new(Place { site, bytes, displaced: Notify::new() });
        waiting.push(Arc::clone(&place));
        Some(Waiting { checks: Arc::clone(self), place })
    }

    /// Returns whether a login of this size may be queued. An empty queue always accepts one.
    fn has_room(&self, waiting: &[Arc<Place>], bytes: usize) -> bool {
        let all = waiting.iter().map(|place| place.bytes).sum::<usize>();
        waiting.is_empty() || waiting.len() < self.most_waiting && all.saturating_add(bytes) <= MOST_BYTES
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Completes when the login is evicted in favour of another address.
    pub(super) async fn displaced(&self) {
        self.place.displaced.notified().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.checks.lock().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::Tcp((IpAddr::from([10, 0, 0, last]), 1).into())
    }

    fn is_there(waiting: &Waiting) -> bool {
        waiting.checks.lock().iter().any(|place| Arc::ptr_eq(place, &waiting.place))
    }

    #[test]
    fn full_waiting_room_takes_the_last_place_of_the_address_with_most() {
        let checks = Checks::new(1, 4);
        let many: Vec<_> = (0..4).map(|_| checks.enter(&peer(1), 100).unwrap()).collect();
        assert!(checks.enter(&peer(1), 100).is_none());
        let first = checks.enter(&peer(2), 100).unwrap();
        assert_eq!(many.iter().map(is_there).collect::<Vec<_>>(), [true, true, true, false]);
        let second = checks.enter(&peer(2), 100).unwrap();
        assert!(!is_there(&many[2]));
        assert!(checks.enter(&peer(2), 100).is_none(), "they are shared evenly");
        drop((first, second));
        assert!(checks.enter(&peer(1), 100).is_some());
    }

    #[test]
    fn bytes_of_what_waits_are_bounded() {
        let checks = Checks::new(1, 100);
        let first = checks.enter(&peer(1), 2 * MOST_BYTES).unwrap();
        assert!(checks.enter(&peer(1), 1).is_none());
        assert!(checks.enter(&peer(2), 1).is_none(), "one each");
        drop(first);
        let small: Vec<_> = (0..3).map(|_| checks.enter(&peer(1), MOST_BYTES / 3).unwrap()).collect();
        let other = checks.enter(&peer(2), MOST_BYTES / 3).unwrap();
        assert!(is_there(&other) && is_there(&small[1]) && !is_there(&small[2]));
    }
}
