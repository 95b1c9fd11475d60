//! Limits on the number of connections of an endpoint, and eviction when it is full.
//!
//! Idle connections could occupy every slot of an endpoint until they time out, and be replaced by others
//! indefinitely. When the endpoint is full, a new connection evicts the one that has been open longest
//! without a complete message, if that is older than a minimum age.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use giop_proto::{CloseReason, Limit};
use tokio::sync::Notify;

use crate::config::Config;
use crate::connection::{SharedConnection, now};

/// Minimum interval between log lines about rejected connections.
const TELLING: Duration = Duration::from_secs(1);

/// The connections of one endpoint, counted by address.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    all: usize,
    per_address: usize,
    /// Age from which a connection without a complete message can be evicted. `None` disables eviction.
    silence: Option<Duration>,
    /// Minimum rate of a first message, in bytes a second. A connection that reaches it is not evicted.
    rate: usize,
    occupancy: Mutex<Occupancy>,
}

#[derive(Debug, Default)]
struct Occupancy {
    all: usize,
    /// Connections by address. All connections of a Unix socket come from this machine and have no address.
    by_address: HashMap<Option<IpAddr>, usize>,
    /// The number of connections rejected since the last log line, and when that was written.
    refused: (u64, Option<Instant>),
    /// Connections that may not have received a complete message yet, in the order of their arrival.
    new: VecDeque<Weak<SlotState>>,
    /// Evicted connections that may still be closing.
    leaving: VecDeque<Weak<SlotState>>,
}

/// The slot of a connection, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<SlotState>);

#[derive(Debug)]
struct SlotState {
    limiter: Arc<ConnectionLimiter>,
    address: Option<IpAddr>,
    since: Instant,
    /// It is included in the counters.
    counts: AtomicBool,
    /// It is not set while the handshake is in progress.
    link: OnceLock<Weak<SharedConnection>>,
    /// Notified when the connection is evicted.
    gone: Notify,
}

impl ConnectionLimiter {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            all: config.server.max_connections,
            per_address: config.server.max_connections_per_address,
            silence: config.server.evict_idle_after,
            rate: config.limits.min_message_rate,
            occupancy: Mutex::default(),
        }
    }

    /// Takes a slot. The second value tells whether another connection was evicted for it.
    ///
    /// # Errors
    /// The limit that is reached, if no connection can be evicted.
    pub(crate) fn enter(this: &Arc<Self>, address: Option<IpAddr>) -> Result<(ConnectionSlot, bool), Limit> {
        let now = now();
        let mut occupancy = this.lock();
        let of_address = || occupancy.by_address.get(&address).copied().unwrap_or_default();
        let full = if occupancy.all >= this.all {
            Some((Limit::Connections, None))
        } else if address.is_some() && of_address() >= this.per_address {
            Some((Limit::ConnectionsPerAddress, Some(address)))
        } else {
            None
        };
        let (mut way, mut late) = (None, None);
        if let Some((limit, of)) = full {
            let place = this.silent(&mut occupancy, now, of).ok_or(limit)?;
            occupancy.leave(&place);
            occupancy.leaving.push_back(Arc::downgrade(&place));
            // An evicted connection closes gracefully, which takes until its peer answers. At most an eighth
            // of all may be in that state.
            if occupancy.leaving.len() > (this.all / 8).max(1) {
                late = occupancy.leaving.pop_front();
            }
            way = Some(place);
        }
        let place = Arc::new(SlotState {
            limiter: Arc::clone(this),
            address,
            since: now,
            counts: AtomicBool::new(true),
            link: OnceLock::new(),
            gone: Notify::new(),
        });
        occupancy.all += 1;
        *occupancy.by_address.entry(address).or_default() += 1;
        if this.silence.is_some() {
            if occupancy.new.len() > 2 * occupancy.all {
                occupancy.new.retain(|place| place.upgrade().is_some_and(|place| !place.has_spoken()));
            }
            occupancy.new.push_back(Arc::downgrade(&place));
        }
        drop(occupancy);
        let displaces = way.is_some();
        if let Some(late) = late.and_then(|late| late.upgrade()) {
            late.end();
        }
        if let Some(way) = way {
            way.give_way();
        }
        Ok((ConnectionSlot(place), displaces))
    }

    /// Returns the evictable connection that has been open longest. With `of`, only connections from that
    /// address are considered.
    fn silent(
        &self,
        occupancy: &mut Occupancy,
        now: Instant,
        of: Option<Option<IpAddr>>,
    ) -> Option<Arc<SlotState>> {
        let silence = self.silence?;
        let mut at = 0;
        loop {
            let Some(place) = occupancy.new.get(at)?.upgrade() else {
                occupancy.new.remove(at);
                continue;
            };
            let age = now.saturating_duration_since(place.since);
            if age < silence {
                // The following entries arrived later and are no older.
                return None;
            }
            if place.has_spoken() {
                occupancy.new.remove(at);
            } else if of.is_some_and(|address| address != place.address) || place.is_sending(age, self.rate) {
                at += 1;
            } else {
                occupancy.new.remove(at);
                return Some(place);
            }
        }
    }

    /// Counts a rejected connection. Returns the number of rejected connections if it is time for a log line,
    /// so that a flood of connections does not flood the log.
    pub(crate) fn tell(&self) -> Option<u64> {
        let now = now();
        let mut occupancy = self.lock();
        let (refused, told) = &mut occupancy.refused;
        *refused += 1;
        if told.is_some_and(|told| now.saturating_duration_since(told) < TELLING) {
            return None;
        }
        *told = Some(now);
        Some(std::mem::take(refused))
    }

    fn lock(&self) -> MutexGuard<'_, Occupancy> {
        self.occupancy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occupancy {
    /// Removes the slot from the counters.
    fn leave(&mut self, place: &SlotState) {
        if !place.counts.swap(false, Ordering::Relaxed) {
            return;
        }
        self.all -= 1;
        if let Some(count) = self.by_address.get_mut(&place.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&place.address);
            }
        }
    }
}

impl SlotState {
    fn link(&self) -> Option<Arc<SharedConnection>> {
        self.link.get()?.upgrade()
    }

    /// Returns whether a complete message was received or the connection has ended. Such a connection is not
    /// evicted.
    fn has_spoken(&self) -> bool {
        match self.link.get() {
            None => false,
            Some(link) => link.upgrade().is_none_or(|link| link.stats().messages_in > 0),
        }
    }

    /// Returns whether it has sent its first message at the minimum rate so far.
    fn is_sending(&self, age: Duration, rate: usize) -> bool {
        let octets = self.link().map_or(0, |link| link.stats().octets_in);
        octets > 0 && u128::from(octets) * 1000 >= age.as_millis() * rate as u128
    }

    /// Closes the evicted connection gracefully, so that the client knows that a request it may just have
    /// sent was not executed.
    fn give_way(&self) {
        self.gone.notify_one();
        if let Some(link) = self.link() {
            link.close();
        }
    }

    fn end(&self) {
        if let Some(link) = self.link() {
            link.abort(CloseReason::Local);
        }
    }
}

impl ConnectionSlot {
    /// Sets the connection of the slot, once it is ready for messages.
    pub(crate) fn is_for(&self, link: &Arc<SharedConnection>) {
        let _ = self.0.link.set(Arc::downgrade(link));
        if !self.0.counts.load(Ordering::Relaxed) {
            link.close();
        }
    }

    /// Completes when the connection is evicted.
    #[cfg_attr(
        not(feature = "tls"),
        expect(dead_code, reason = "nothing is under way before there is a link")
    )]
    pub(crate) async fn given_away(&self) {
        self.0.gone.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.limiter.lock().leave(&self.0);
    }
}
