//! Limits on the number of connections of an endpoint, and eviction when a limit is reached.
//!
//! Idle connections could occupy all slots of an endpoint. Therefore, when a limit is reached, a new
//! connection evicts the connection that has been open longest without a complete message, if that has
//! reached a minimum age.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use giop_proto::{CloseReason, Limit};
use tokio::sync::Notify;

use crate::config::Config;
use crate::connection::{SharedConnection, now};

/// The minimum interval between log lines about rejected connections.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The connections of one endpoint, counted by address.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    max_connections: usize,
    max_per_address: usize,
    /// The minimum age at which a connection without a message can be evicted. `None` disables eviction.
    min_idle_age: Option<Duration>,
    /// A connection whose first message arrives at least at this rate, in bytes per second, is not evicted.
    min_message_rate: usize,
    occupancy: Mutex<Occupancy>,
}

#[derive(Debug, Default)]
struct Occupancy {
    connections: usize,
    /// The number of connections by address. Connections of a Unix socket have no address.
    by_address: HashMap<Option<IpAddr>, usize>,
    /// The number of connections rejected since the last log line about rejected connections.
    rejected_since_log: u64,
    last_log: Option<Instant>,
    /// The connections that may not have received a complete message yet, in order of arrival.
    idle: VecDeque<Weak<SlotState>>,
    /// The evicted connections that may still be closing.
    closing: VecDeque<Weak<SlotState>>,
}

/// The slot of a connection. It is released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<SlotState>);

#[derive(Debug)]
struct SlotState {
    limiter: Arc<ConnectionLimiter>,
    address: Option<IpAddr>,
    opened_at: Instant,
    is_counted: AtomicBool,
    /// The connection. It is not set during the TLS handshake.
    link: OnceLock<Weak<SharedConnection>>,
    evicted: Notify,
}

impl ConnectionLimiter {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            max_connections: config.server.max_connections,
            max_per_address: config.server.max_connections_per_address,
            min_idle_age: config.server.evict_idle_after,
            min_message_rate: config.limits.min_message_rate,
            occupancy: Mutex::default(),
        }
    }

    /// Takes a slot. The second value tells whether another connection was evicted for it. Fails with the
    /// limit that is reached if no connection can be evicted.
    pub(crate) fn acquire(
        this: &Arc<Self>,
        address: Option<IpAddr>,
    ) -> Result<(ConnectionSlot, bool), Limit> {
        let now = now();
        let mut occupancy = this.lock();
        let of_address = || occupancy.by_address.get(&address).copied().unwrap_or_default();
        let reached_limit = if occupancy.connections >= this.max_connections {
            Some((Limit::Connections, None))
        } else if address.is_some() && of_address() >= this.max_per_address {
            Some((Limit::ConnectionsPerAddress, Some(address)))
        } else {
            None
        };
        let (mut to_close, mut to_abort) = (None, None);
        if let Some((limit, address)) = reached_limit {
            let slot = this.take_idle(&mut occupancy, now, address).ok_or(limit)?;
            occupancy.release(&slot);
            occupancy.closing.push_back(Arc::downgrade(&slot));
            // An evicted connection is closed gracefully, and stays open until its peer closes it. At most an
            // eighth of the maximum may be in this state.
            if occupancy.closing.len() > (this.max_connections / 8).max(1) {
                to_abort = occupancy.closing.pop_front();
            }
            to_close = Some(slot);
        }
        let slot = Arc::new(SlotState {
            limiter: Arc::clone(this),
            address,
            opened_at: now,
            is_counted: AtomicBool::new(true),
            link: OnceLock::new(),
            evicted: Notify::new(),
        });
        occupancy.connections += 1;
        *occupancy.by_address.entry(address).or_default() += 1;
        if this.min_idle_age.is_some() {
            if occupancy.idle.len() > 2 * occupancy.connections {
                let is_idle = |slot: &SlotState| !slot.has_sent_message_or_ended();
                occupancy.idle.retain(|slot| slot.upgrade().is_some_and(|slot| is_idle(&slot)));
            }
            occupancy.idle.push_back(Arc::downgrade(&slot));
        }
        drop(occupancy);
        let has_evicted = to_close.is_some();
        if let Some(link) = to_abort.and_then(|slot| slot.upgrade()?.link()) {
            link.abort(CloseReason::Local);
        }
        if let Some(slot) = to_close {
            slot.close_evicted();
        }
        Ok((ConnectionSlot(slot), has_evicted))
    }

    /// Removes the evictable connection that has been open longest from the idle connections, and returns it.
    /// With `address`, considers only connections from this address.
    fn take_idle(
        &self,
        occupancy: &mut Occupancy,
        now: Instant,
        address: Option<Option<IpAddr>>,
    ) -> Option<Arc<SlotState>> {
        let min_idle_age = self.min_idle_age?;
        let mut at = 0;
        loop {
            let Some(slot) = occupancy.idle.get(at)?.upgrade() else {
                occupancy.idle.remove(at);
                continue;
            };
            let age = now.saturating_duration_since(slot.opened_at);
            if age < min_idle_age {
                // The following connections are not older.
                return None;
            }
            if slot.has_sent_message_or_ended() {
                occupancy.idle.remove(at);
            } else if address.is_some_and(|address| address != slot.address)
                || slot.reaches_min_rate(age, self.min_message_rate)
            {
                at += 1;
            } else {
                occupancy.idle.remove(at);
                return Some(slot);
            }
        }
    }

    /// Counts a rejected connection. If a log line is due, returns the number since the last log line.
    pub(crate) fn count_rejection(&self) -> Option<u64> {
        let now = now();
        let mut occupancy = self.lock();
        occupancy.rejected_since_log += 1;
        if occupancy.last_log.is_some_and(|logged_at| now.saturating_duration_since(logged_at) < LOG_INTERVAL)
        {
            return None;
        }
        occupancy.last_log = Some(now);
        Some(std::mem::take(&mut occupancy.rejected_since_log))
    }

    fn lock(&self) -> MutexGuard<'_, Occupancy> {
        self.occupancy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occupancy {
    fn release(&mut self, slot: &SlotState) {
        if !slot.is_counted.swap(false, Ordering::Relaxed) {
            return;
        }
        self.connections -= 1;
        if let Some(count) = self.by_address.get_mut(&slot.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&slot.address);
            }
        }
    }
}

impl SlotState {
    fn link(&self) -> Option<Arc<SharedConnection>> {
        self.link.get()?.upgrade()
    }

    /// Returns whether a complete message has been received or the connection has ended.
    fn has_sent_message_or_ended(&self) -> bool {
        self.link.get().is_some_and(|link| link.upgrade().is_none_or(|link| link.stats().messages_in > 0))
    }

    /// Returns whether the bytes of the first message have been received at the minimum rate so far.
    fn reaches_min_rate(&self, age: Duration, bytes_per_second: usize) -> bool {
        let bytes = self.link().map_or(0, |link| link.stats().bytes_in);
        bytes > 0 && u128::from(bytes) * 1000 >= age.as_millis() * bytes_per_second as u128
    }

    /// Closes the evicted connection gracefully. A client that has just sent a request then knows that the
    /// request was not executed.
    fn close_evicted(&self) {
        self.evicted.notify_one();
        if let Some(link) = self.link() {
            link.close();
        }
    }
}

impl ConnectionSlot {
    /// Sets the connection of the slot when it is ready for messages. Closes it if it was evicted before.
    pub(crate) fn set_connection(&self, link: &Arc<SharedConnection>) {
        let _ = self.0.link.set(Arc::downgrade(link));
        if !self.0.is_counted.load(Ordering::Relaxed) {
            link.close();
        }
    }

    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only a TLS handshake waits for it"))]
    pub(crate) async fn wait_for_eviction(&self) {
        self.0.evicted.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.limiter.lock().release(&self.0);
    }
}
