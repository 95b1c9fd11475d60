//! The connections of an endpoint: how many there may be, and who gives way to newcomers where it is full.
//!
//! Whoever opens connections and says nothing would have a full endpoint to himself until their time is over, and with new ones for as long as he
//! likes. So a newcomer takes the place of the connection that has been there longest without a whole message, if it has been for a while.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use giop_proto::{CloseReason, Limit};
use tokio::sync::Notify;

use super::Config;
use crate::link::{Link, now};

/// How often the log says that connections were refused.
const TELLING: Duration = Duration::from_secs(1);

/// The connections of one endpoint, counted by address.
#[derive(Debug)]
pub(super) struct Guests {
    all: usize,
    per_address: usize,
    /// After which time without a whole message a connection gives way.
    silence: Option<Duration>,
    /// Who sends a first message no slower than this, in octets a second, is not silent.
    rate: usize,
    seated: Mutex<Seated>,
}

#[derive(Debug, Default)]
struct Seated {
    all: usize,
    /// Those of a Unix socket are all of this machine, and have none.
    by_address: HashMap<Option<IpAddr>, usize>,
    /// How many were refused since that was last told, and when it was.
    refused: (u64, Option<Instant>),
    /// Who may have said nothing whole yet, in the order in which they came.
    new: VecDeque<Weak<Place>>,
    /// Who gave way, and may still be on his way out.
    leaving: VecDeque<Weak<Place>>,
}

/// A connection's place among the guests, given up on drop.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Place>);

#[derive(Debug)]
struct Place {
    guests: Arc<Guests>,
    address: Option<IpAddr>,
    since: Instant,
    /// It is one of those that are counted.
    counts: AtomicBool,
    /// There is none while its handshake is under way.
    link: OnceLock<Weak<Link>>,
    /// It gave way.
    gone: Notify,
}

impl Guests {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            all: config.max_connections,
            per_address: config.max_connections_per_address,
            silence: config.newcomers_displace,
            rate: config.limits.min_message_rate,
            seated: Mutex::default(),
        }
    }

    /// Takes a place. Where there is none, somebody gives way, which the second value says.
    ///
    /// # Errors
    /// Which limit is reached, where nobody does.
    pub(super) fn enter(this: &Arc<Self>, address: Option<IpAddr>) -> Result<(Seat, bool), Limit> {
        let now = now();
        let mut seated = this.lock();
        let of_address = || seated.by_address.get(&address).copied().unwrap_or_default();
        let full = if seated.all >= this.all {
            Some((Limit::Connections, None))
        } else if address.is_some() && of_address() >= this.per_address {
            Some((Limit::ConnectionsPerAddress, Some(address)))
        } else {
            None
        };
        let (mut way, mut late) = (None, None);
        if let Some((limit, of)) = full {
            let place = this.silent(&mut seated, now, of).ok_or(limit)?;
            seated.leave(&place);
            seated.leaving.push_back(Arc::downgrade(&place));
            // Each may say goodbye for as long as its peer takes to answer, but they are not more than an eighth of all.
            if seated.leaving.len() > (this.all / 8).max(1) {
                late = seated.leaving.pop_front();
            }
            way = Some(place);
        }
        let place = Arc::new(Place {
            guests: Arc::clone(this),
            address,
            since: now,
            counts: AtomicBool::new(true),
            link: OnceLock::new(),
            gone: Notify::new(),
        });
        seated.all += 1;
        *seated.by_address.entry(address).or_default() += 1;
        if this.silence.is_some() {
            if seated.new.len() > 2 * seated.all {
                seated.new.retain(|place| place.upgrade().is_some_and(|place| !place.has_spoken()));
            }
            seated.new.push_back(Arc::downgrade(&place));
        }
        drop(seated);
        let displaces = way.is_some();
        if let Some(late) = late.and_then(|late| late.upgrade()) {
            late.end();
        }
        if let Some(way) = way {
            way.give_way();
        }
        Ok((Seat(place), displaces))
    }

    /// The connection that has been silent longest, long enough; `of`: among those from that address.
    fn silent(&self, seated: &mut Seated, now: Instant, of: Option<Option<IpAddr>>) -> Option<Arc<Place>> {
        let silence = self.silence?;
        let mut at = 0;
        loop {
            let Some(place) = seated.new.get(at)?.upgrade() else {
                seated.new.remove(at);
                continue;
            };
            let age = now.saturating_duration_since(place.since);
            if age < silence {
                // Who came later is no older.
                return None;
            }
            if place.has_spoken() {
                seated.new.remove(at);
            } else if of.is_some_and(|address| address != place.address) || place.is_sending(age, self.rate) {
                at += 1;
            } else {
                seated.new.remove(at);
                return Some(place);
            }
        }
    }

    /// Counts one that was refused; says how many were, where it is time to tell: a flood of connections is none of the log.
    pub(super) fn tell(&self) -> Option<u64> {
        let now = now();
        let mut seated = self.lock();
        let (refused, told) = &mut seated.refused;
        *refused += 1;
        if told.is_some_and(|told| now.saturating_duration_since(told) < TELLING) {
            return None;
        }
        *told = Some(now);
        Some(std::mem::take(refused))
    }

    fn lock(&self) -> MutexGuard<'_, Seated> {
        self.seated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seated {
    /// The place counts no more.
    fn leave(&mut self, place: &Place) {
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

impl Place {
    fn link(&self) -> Option<Arc<Link>> {
        self.link.get()?.upgrade()
    }

    /// Whether a whole message came, or it is over with it: then it is none that is silent.
    fn has_spoken(&self) -> bool {
        match self.link.get() {
            None => false,
            Some(link) => link.upgrade().is_none_or(|link| link.stats().messages_in > 0),
        }
    }

    /// Whether it has sent as much of its first message as the least rate asks for.
    fn is_sending(&self, age: Duration, rate: usize) -> bool {
        let octets = self.link().map_or(0, |link| link.stats().octets_in);
        octets > 0 && u128::from(octets) * 1000 >= age.as_millis() * rate as u128
    }

    /// It is told in good order, for what it may have sent just now was not executed.
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

impl Seat {
    /// Whose it is, once the connection is ready for messages.
    pub(crate) fn is_for(&self, link: &Arc<Link>) {
        let _ = self.0.link.set(Arc::downgrade(link));
        if !self.0.counts.load(Ordering::Relaxed) {
            link.close();
        }
    }

    /// Ready when the place was given to a newcomer.
    #[cfg_attr(
        not(feature = "tls"),
        expect(dead_code, reason = "nothing is under way before there is a link")
    )]
    pub(crate) async fn given_away(&self) {
        self.0.gone.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.guests.lock().leave(&self.0);
    }
}
