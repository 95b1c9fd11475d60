//! [`LoginQueue`], the queue of logins to check, whose length and memory are limited.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, Semaphore};

use crate::csi::throttle::network_of;
use crate::lock::lock;
use crate::transport::Peer;

/// The maximum total size of the requests whose logins are queued.
const MAX_QUEUED_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct LoginQueue {
    pub(super) permits: Semaphore,
    max_queued: usize,
    /// The queued logins in the order of arrival.
    queued: Mutex<Vec<Arc<QueuedLogin>>>,
}

#[derive(Debug)]
struct QueuedLogin {
    /// The network of the peer. It is `None` for all peers without an IP address.
    network: Option<IpAddr>,
    bytes: usize,
    evicted: Notify,
}

/// A place in the queue, which is given up on drop.
#[derive(Debug)]
pub(super) struct QueueEntry {
    queue: Arc<LoginQueue>,
    login: Arc<QueuedLogin>,
}

impl LoginQueue {
    pub(super) fn new(max_checks: usize, max_queued: usize) -> Arc<Self> {
        let permits = Semaphore::new(max_checks.max(1));
        Arc::new(Self { permits, max_queued: max_queued.max(1), queued: Mutex::default() })
    }

    /// Queues a login of a request with a size of `bytes`. While the queue is full, evicts the last login
    /// of the network with the most entries. Returns `None` when that network has fewer than two entries more
    /// than the network of the peer. Logins that were evicted before stay evicted.
    pub(super) fn enqueue(self: &Arc<Self>, peer: &Peer, bytes: usize) -> Option<QueueEntry> {
        let network = peer.ip_address().map(network_of);
        let mut queued = lock(&self.queued);
        while !self.has_capacity(&queued, bytes) {
            let mut counts = HashMap::<_, usize>::new();
            for login in &*queued {
                *counts.entry(login.network).or_default() += 1;
            }
            let own = counts.get(&network).copied().unwrap_or_default();
            let (largest, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
            let last =
                queued.iter().rposition(|login| login.network == largest).filter(|_| count >= own + 2)?;
            queued.remove(last).evicted.notify_one();
        }
        let login = Arc::new(QueuedLogin { network, bytes, evicted: Notify::new() });
        queued.push(Arc::clone(&login));
        Some(QueueEntry { queue: Arc::clone(self), login })
    }

    /// Returns whether a login of a request of `bytes` bytes may be queued. An empty queue accepts any.
    fn has_capacity(&self, queued: &[Arc<QueuedLogin>], bytes: usize) -> bool {
        let all = queued.iter().map(|login| login.bytes).sum::<usize>();
        queued.is_empty() || queued.len() < self.max_queued && all.saturating_add(bytes) <= MAX_QUEUED_BYTES
    }
}

impl QueueEntry {
    /// Completes when this entry has been evicted for a login of another network.
    pub(super) async fn evicted(&self) {
        self.login.evicted.notified().await;
    }
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        lock(&self.queue.queued).retain(|login| !Arc::ptr_eq(login, &self.login));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::Tcp((IpAddr::from([10, 0, 0, last]), 1).into())
    }

    fn is_queued(entry: &QueueEntry) -> bool {
        lock(&entry.queue.queued).iter().any(|login| Arc::ptr_eq(login, &entry.login))
    }

    #[test]
    fn full_queue_evicts_the_last_login_of_the_address_with_the_most() {
        let queue = LoginQueue::new(1, 4);
        let many: Vec<_> = (0..4).map(|_| queue.enqueue(&peer(1), 100).unwrap()).collect();
        assert!(queue.enqueue(&peer(1), 100).is_none());
        let first = queue.enqueue(&peer(2), 100).unwrap();
        assert_eq!(many.iter().map(is_queued).collect::<Vec<_>>(), [true, true, true, false]);
        let second = queue.enqueue(&peer(2), 100).unwrap();
        assert!(!is_queued(&many[2]));
        assert!(queue.enqueue(&peer(2), 100).is_none(), "both addresses have two logins");
        drop((first, second));
        assert!(queue.enqueue(&peer(1), 100).is_some());
    }

    #[test]
    fn total_size_of_queued_requests_is_bounded() {
        let queue = LoginQueue::new(1, 100);
        let first = queue.enqueue(&peer(1), 2 * MAX_QUEUED_BYTES).unwrap();
        assert!(queue.enqueue(&peer(1), 1).is_none());
        assert!(queue.enqueue(&peer(2), 1).is_none(), "the other address has only one login");
        drop(first);
        let small: Vec<_> = (0..3).map(|_| queue.enqueue(&peer(1), MAX_QUEUED_BYTES / 3).unwrap()).collect();
        let other = queue.enqueue(&peer(2), MAX_QUEUED_BYTES / 3).unwrap();
        assert!(is_queued(&other) && is_queued(&small[1]) && !is_queued(&small[2]));
    }
}
