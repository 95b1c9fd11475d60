//! [`Throttle`], which limits the number of failed logins from each address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::transport::Peer;

/// The maximum number of addresses. If there are more, the address whose failures expire first is removed.
const MAX_ADDRESSES: usize = 4096;
/// The maximum time, 30 years, until the failures of an address expire.
const MAX_EXPIRY: Duration = Duration::from_secs(30 * 365 * 86_400);

#[derive(Debug)]
pub(super) struct Throttle {
    max_failures: u32,
    expiry_interval: Duration,
    /// The time at which the last failure of each address expires. Entries with a past time have no effect.
    addresses: Mutex<HashMap<IpAddr, Instant>>,
}

impl Throttle {
    /// Permits `max_failures` failures, or one if that is 0. One failure expires in each `expiry_interval`.
    pub(super) fn new(max_failures: u32, expiry_interval: Duration) -> Arc<Self> {
        let max_failures = max_failures.max(1);
        // Keep all sums of times within the range of `Instant`.
        let expiry_interval = expiry_interval.clamp(Duration::from_millis(1), MAX_EXPIRY / max_failures);
        Arc::new(Self { max_failures, expiry_interval, addresses: Mutex::default() })
    }

    /// Returns whether logins of the peer are refused now. Peers without an IP address are never refused.
    pub(super) fn refuses(&self, peer: &Peer, now: Instant) -> bool {
        let Peer::Tcp(peer) = peer else { return false };
        let expiry = lock(&self.addresses).get(&network_of(peer.ip())).copied();
        // One more failure would exceed the limit.
        expiry.is_some_and(|expiry| expiry > now + self.expiry_interval * (self.max_failures - 1))
    }

    pub(super) fn record_failure(&self, peer: &Peer, now: Instant) {
        let Peer::Tcp(peer) = peer else { return };
        let address = network_of(peer.ip());
        let mut addresses = lock(&self.addresses);
        if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(&address) {
            addresses.retain(|_, expiry| *expiry > now);
            if addresses.len() >= MAX_ADDRESSES {
                let first = addresses.iter().min_by_key(|(_, expiry)| **expiry).map(|(address, _)| *address);
                first.map(|first| addresses.remove(&first));
            }
        }
        let expiry = addresses.entry(address).or_insert(now);
        *expiry = (*expiry).max(now) + self.expiry_interval;
    }
}

/// Returns an IPv4 address unchanged, and the first 64 bits of an IPv6 address, its network.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn peer(address: &str) -> Peer {
        Peer::Tcp((address.parse::<IpAddr>().unwrap(), 1).into())
    }

    fn fail_login(throttle: &Throttle, peer: &Peer, now: Instant) -> bool {
        let is_checked = !throttle.refuses(peer, now);
        if is_checked {
            throttle.record_failure(peer, now);
        }
        is_checked
    }

    #[test]
    fn address_with_too_many_failures_is_refused_and_others_are_not() {
        let (throttle, start) = (Throttle::new(3, 10 * SECOND), Instant::now());
        let address = peer("10.0.0.1");
        let at = |seconds| fail_login(&throttle, &address, start + seconds * SECOND);
        assert_eq!([at(0), at(0), at(0), at(0)], [true, true, true, false]);
        assert!(fail_login(&throttle, &peer("10.0.0.2"), start));
        assert!((0..100).all(|_| fail_login(&throttle, &Peer::Unix("/socket".into()), start)));
        // One failure has expired after ten seconds, all after half a minute.
        assert_eq!([at(9), at(10), at(10)], [false, true, false]);
        assert_eq!([at(60), at(60), at(60), at(60)], [true, true, true, false]);
    }

    #[test]
    fn maximum_interval_does_not_overflow() {
        let (throttle, start) = (Throttle::new(u32::MAX, Duration::MAX), Instant::now());
        assert!((0..10).all(|_| fail_login(&throttle, &peer("10.0.0.1"), start)));
        let throttle = Throttle::new(1, Duration::MAX);
        let later = start + 86_400 * 365 * SECOND;
        assert_eq!([start, later].map(|at| fail_login(&throttle, &peer("10.0.0.1"), at)), [true, false]);
    }

    #[test]
    fn addresses_of_a_network_count_together_and_their_number_is_bounded() {
        let (throttle, start) = (Throttle::new(1, SECOND), Instant::now());
        let fail_login = |address: &str| fail_login(&throttle, &peer(address), start);
        assert!(
            fail_login("2001:db8::1") && !fail_login("2001:db8::ffff:1") && fail_login("2001:db8:0:1::1")
        );
        assert!(fail_login("10.0.0.1") && !fail_login("::ffff:10.0.0.1"));
        for number in 0..3 * MAX_ADDRESSES as u32 {
            let address = std::net::Ipv4Addr::from_bits(0x0b00_0000 + number);
            throttle.record_failure(&Peer::Tcp((address, 1).into()), start);
        }
        assert_eq!(lock(&throttle.addresses).len(), MAX_ADDRESSES);
    }
}
