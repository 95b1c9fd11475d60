//! Replies that are queued for all clients together: which requests wait for the memory that they take, and which client is given up.
//!
//! A reply can not be counted before it is made. So the names of operations that had large replies are kept, and their requests wait while
//! replies take more than half of the pool's cap. A large reply that is made all the same, because it was the first of its operation or
//! its servant was at work already, is replaced by an exception where the whole cap is taken. Requests of other operations never wait here.
//!
//! Clients that take too little end first: each takes its replies within [`Limits::write_timeout`](giop_proto::Limits::write_timeout), at the
//! rate at which it has taken them for a second or two, or is closed. Of several, the address with the most bytes loses one first. What
//! waits goes on in the opposite order: the address with the fewest bytes first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};

use super::OrbCore;
use crate::link::{Link, now};

/// Replies from this size on are counted; connections with less in their queues are not.
pub(crate) const LARGE_REPLY: usize = 64 * 1024;

/// How often it is looked whether requests may go on.
const LOOK: Duration = Duration::from_millis(5);

/// Every so many looks it is looked which clients are too slow.
const LOOKS: u32 = 20;

/// The most requests that go on at one look.
const MOST_AT_ONCE: usize = 64;

/// Words of the set of operations: a bit each. Operations that share one wait for each other's sake, which is seldom and harmless.
const WORDS: usize = 16;

/// What is known of large replies.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    /// Requests of operations with large replies wait. Then a task looks after them.
    crowded: AtomicBool,
    operations: [AtomicU64; WORDS],
    /// The size of the last large reply.
    size: AtomicUsize,
    waiting: Mutex<VecDeque<Weak<Ticket>>>,
}

/// A connection's place among those whose next request waits. Dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct Ticket {
    address: Option<IpAddr>,
    granted: AtomicBool,
    waker: AtomicWaker,
}

impl Ticket {
    /// Whether the request may go on. If not, the task is woken when it may.
    pub(crate) fn is_granted(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.granted.load(Ordering::Acquire)
    }

    fn grant(&self) {
        self.granted.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Backpressure {
    fn place(operation: &[u8]) -> (usize, u64) {
        let mut hasher = DefaultHasher::new();
        operation.hash(&mut hasher);
        let hash = hasher.finish();
        ((hash >> 6) as usize % WORDS, 1 << (hash % 64))
    }

    fn knows(&self, operation: &[u8]) -> bool {
        let (word, bit) = Self::place(operation);
        self.operations.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Weak<Ticket>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OrbCore {
    /// Whether requests of operations with large replies wait.
    pub(super) fn is_crowded(&self) -> bool {
        self.backpressure.crowded.load(Ordering::Relaxed)
    }

    /// An operation has a reply of so many bytes.
    #[cold]
    pub(crate) fn note_large_reply(&self, operation: &[u8], bytes: usize) {
        let (word, bit) = Backpressure::place(operation);
        if let Some(word) = self.backpressure.operations.get(word) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        self.backpressure.size.store(bytes.max(LARGE_REPLY), Ordering::Relaxed);
    }

    /// A large reply is queued.
    #[cold]
    pub(crate) fn queued_large_reply(self: &Arc<Self>) {
        if self.pool().is_crowded()
            && !self.is_closing()
            && !self.backpressure.crowded.swap(true, Ordering::Relaxed)
        {
            self.set_pause(super::CROWDED, true);
            self.spawn_until_closed(watch(Arc::downgrade(self)));
        }
    }

    /// A place among those that wait, if a request of that operation has to wait.
    #[cold]
    pub(crate) fn wait_for_memory(&self, operation: &[u8], link: &Link) -> Option<Arc<Ticket>> {
        let known = self.backpressure.knows(operation) && !self.is_closing();
        let mut waiting = known.then(|| self.backpressure.waiting())?;
        if !self.is_crowded() || waiting.is_empty() && !self.pool().is_crowded() {
            return None;
        }
        let ticket = Arc::new(Ticket {
            address: link.peer().address(),
            granted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        waiting.push_back(Arc::downgrade(&ticket));
        Some(ticket)
    }

    /// Makes room for a large reply where replies take all memory that they may: closes clients that are too slow. `Err`: it is not
    /// enough, and this is what the client gets in the place of the reply. Called without the lock of any connection.
    #[cold]
    pub(crate) fn make_room_for_reply(&self) -> Result<(), SystemException> {
        if self.pool().is_full_of_replies() {
            let needed = self.pool().owed().saturating_sub(self.pool().cap()) + 1;
            if !self.close_slow_readers(needed) {
                let text = "replies that are queued for all clients take as much memory as they may: allow more by `OrbBuilder::pool_cap`";
                return Err(SystemException::new(
                    SystemExceptionKind::Transient,
                    minor::TRANSIENT_OVERLOADED,
                    CompletionStatus::Yes,
                )
                .because(text));
            }
        }
        Ok(())
    }

    /// Closes connections of clients that take their replies too slowly, until those had so many bytes. Returns whether they had. A socket may
    /// hold on to its bytes for a moment longer, until the kernel has given up its write, so what is still queued is no measure of it.
    fn close_slow_readers(&self, bytes: usize) -> bool {
        let mut freed = 0;
        while freed < bytes {
            let Some(more) = self.close_slow_reader() else { return false };
            freed += more;
        }
        true
    }

    /// Closes the connection of a client that takes its replies too slowly; returns how many bytes of replies it had.
    fn close_slow_reader(&self) -> Option<usize> {
        let now = now();
        let mut by_address = HashMap::<Option<IpAddr>, usize>::new();
        let mut slow = Vec::new();
        for link in self.open_links() {
            let Some((bytes, time)) = link.reply_queue(now) else { continue };
            let address = link.peer().address();
            *by_address.entry(address).or_default() += bytes;
            if let Some(time) = time
                && time > self.config.limits.write_timeout
            {
                slow.push((address, time, bytes, link));
            }
        }
        let slowest = slow.into_iter().max_by_key(|(address, time, bytes, _)| {
            (by_address.get(address).copied().unwrap_or_default(), *time, *bytes)
        });
        let (_, _, bytes, link) = slowest?;
        tracing::warn!(
            target: "zorb",
            peer = %link.peer(),
            bytes,
            "a client that takes its replies too slowly is closed, because others wait for the memory: `OrbBuilder::pool_cap` allows more"
        );
        link.give_up_slow_reader();
        Some(bytes)
    }

    /// Lets requests go on for whose replies there is memory. Says whether there is nothing more to look after.
    fn grant(&self) -> bool {
        let pressure = &self.backpressure;
        let room = (self.pool().cap() / 2).saturating_sub(self.pool().owed());
        if room == 0 {
            return false;
        }
        let size = pressure.size.load(Ordering::Relaxed).max(LARGE_REPLY);
        let mut owed = HashMap::<Option<IpAddr>, usize>::new();
        let now = now();
        for link in self.open_links() {
            if let Some((bytes, _)) = link.reply_queue(now) {
                *owed.entry(link.peer().address()).or_default() += bytes;
            }
        }
        let mut waiting = pressure.waiting();
        let mut tickets: Vec<_> = waiting.iter().filter_map(Weak::upgrade).collect();
        for _ in 0..(room / size).clamp(1, MOST_AT_ONCE) {
            let first = tickets
                .iter()
                .enumerate()
                .min_by_key(|(at, ticket)| (owed.get(&ticket.address).copied().unwrap_or_default(), *at));
            let Some((at, _)) = first else { break };
            let ticket = tickets.remove(at);
            *owed.entry(ticket.address).or_default() += size;
            ticket.grant();
        }
        waiting.clear();
        waiting.extend(tickets.iter().map(Arc::downgrade));
        if tickets.is_empty() {
            self.end_of_crowd();
        }
        tickets.is_empty()
    }

    fn end_of_crowd(&self) {
        self.set_pause(super::CROWDED, false);
        self.backpressure.crowded.store(false, Ordering::Relaxed);
    }

    /// The ORB closes: nothing waits any more.
    pub(super) fn stop_waiting_for_memory(&self) {
        let mut waiting = self.backpressure.waiting();
        self.end_of_crowd();
        waiting.drain(..).filter_map(|ticket| ticket.upgrade()).for_each(|ticket| ticket.grant());
    }
}

/// Looks after what waits, until nothing does.
async fn watch(core: Weak<OrbCore>) {
    let mut looks = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(core) = core.upgrade() else { return };
        looks += 1;
        if looks % LOOKS == 0 && !core.backpressure.waiting().is_empty() {
            core.close_slow_readers(core.pool().owed().saturating_sub(core.pool().cap() / 2));
        }
        if core.grant() {
            return;
        }
    }
}
