//! Failed logins, counted by address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::transport::Peer;

/// Maximum number of addresses that are kept. If it is exceeded, the one that would be forgiven first is
/// removed.
const ADDRESSES: usize = 4096;

/// Maximum time for which failures are remembered: 30 years.
const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Limits the failed logins of each address.
#[derive(Debug)]
pub(super) struct Throttle {
    most: u32,
    forgiven: Duration,
    /// The time at which all failures of an address are forgiven. Entries with a past time have no effect.
    addresses: Mutex<HashMap<IpAddr, Instant>>,
}

impl Throttle {
    /// Allows `most` failures at once, but at least one. Each is forgiven after a further `forgiven`.
    pub(super) fn new(most: u32, forgiven: Duration) -> Arc<Self> {
        let most = most.max(1);
        // Keep all sums of times within the range of `Instant`.
        let forgiven = forgiven.clamp(Duration::from_millis(1), NEVER / most);
        Arc::new(Self { most, forgiven, addresses: Mutex::default() })
    }

    /// Returns whether the address must wait. Sockets of this machine never must.
    pub(super) fn refuses(&self, peer: &Peer, now: Instant) -> bool {
        let Peer::Tcp(peer) = peer else { return false };
        let until = self.lock().get(&of_site(peer.ip())).copied();
        // One more failure would exceed the limit.
        until.is_some_and(|until| until > now + self.forgiven * (self.most - 1))
    }

    /// Counts a failed login.
    pub(super) fn failed(&self, peer: &Peer, now: Instant) {
        let Peer::Tcp(peer) = peer else { return };
        let address = of_site(peer.ip());
        let mut addresses = self.lock();
        if addresses.len() >= ADDRESSES && !addresses.contains_key(&address) {
            addresses.retain(|_, until| *until > now);
            if addresses.len() >= ADDRESSES {
                let first = addresses.iter().min_by_key(|(_, until)| **until).map(|(address, _)| *address);
                first.map(|first| addresses.remove(&first));
            }
        }
        let until = addresses.entry(address).or_insert(now);
        *until = (*until).max(now) + self.forgiven;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Instant>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the network of an address: the owner of an IPv6 address usually has 2^64 of them.
pub(super) fn of_site(address: IpAddr) -> IpAddr {
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

    /// Returns whether a login is checked, and lets it fail.
    fn tries(throttle: &Throttle, peer: &Peer, now: Instant) -> bool {
        let checked = !throttle.refuses(peer, now);
        if checked {
            throttle.failed(peer, now);
        }
        checked
    }

    #[test]
    fn an_address_waits_after_its_failures_and_others_do_not() {
        let (throttle, start) = (Throttle::new(3, 10 * SECOND), Instant::now());
        let ten = peer("10.0.0.1");
        let at = |seconds| tries(&throttle, &ten, start + seconds * SECOND);
        assert_eq!([at(0), at(0), at(0), at(0)], [true, true, true, false]);
        assert!(tries(&throttle, &peer("10.0.0.2"), start));
        assert!((0..100).all(|_| tries(&throttle, &Peer::Unix("/socket".into()), start)));
        // One is forgiven after ten seconds, all after half a minute.
        assert_eq!([at(9), at(10), at(10)], [false, true, false]);
        assert_eq!([at(60), at(60), at(60), at(60)], [true, true, true, false]);
    }

    #[test]
    fn what_is_never_forgiven_is_not() {
        let (throttle, start) = (Throttle::new(u32::MAX, Duration::MAX), Instant::now());
        assert!((0..10).all(|_| tries(&throttle, &peer("10.0.0.1"), start)));
        let throttle = Throttle::new(1, Duration::MAX);
        let later = start + 86_400 * 365 * SECOND;
        assert_eq!([start, later].map(|at| tries(&throttle, &peer("10.0.0.1"), at)), [true, false]);
    }

    #[test]
    fn addresses_of_a_site_count_together_and_few_are_kept() {
        let (throttle, start) = (Throttle::new(1, SECOND), Instant::now());
        let tries = |address: &str| tries(&throttle, &peer(address), start);
        assert!(tries("2001:db8::1") && !tries("2001:db8::ffff:1") && tries("2001:db8:0:1::1"));
        assert!(tries("10.0.0.1") && !tries("::ffff:10.0.0.1"));
        for number in 0..3 * ADDRESSES as u32 {
            let address = std::net::Ipv4Addr::from_bits(0x0b00_0000 + number);
            throttle.failed(&Peer::Tcp((address, 1).into()), start);
        }
        assert_eq!(throttle.lock().len(), ADDRESSES);
    }
}
