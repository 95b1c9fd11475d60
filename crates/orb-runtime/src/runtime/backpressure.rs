//! Back-pressure from replies that are queued for all clients together: which requests must wait for memory,
//! and which client is disconnected.
//!
//! The size of a reply is not known before it is made. Therefore the names of operations that had large
//! replies are recorded. While replies take more than half of the pool's cap, requests of these operations
//! are held. A large reply can be made nevertheless, because it is the first of its operation or its servant
//! was already running. If the whole cap is taken then, an exception replaces it. Requests of other
//! operations are never held here.
//!
//! Slow clients are closed first. A client must be able to take its queued replies within
//! [`Limits::write_timeout`](giop_proto::Limits::write_timeout), at the rate of the last second or two. Of
//! several slow clients, the address with the most queued bytes loses a connection first. Held requests
//! resume in the opposite order: the address with the fewest bytes first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use giop_codec::exception::{CompletionStatus, SystemException, minor};

use crate::connection::{SharedConnection, now};
use crate::runtime::Shared;

/// Minimum size of replies that are counted, in bytes. Connections with less in their queues are not
/// considered.
pub(crate) const LARGE_REPLY: usize = 64 * 1024;

/// Interval at which held requests are checked.
const LOOK: Duration = Duration::from_millis(5);

/// Number of checks of held requests between searches for slow clients.
const LOOKS: u32 = 20;

/// Maximum number of requests that one check resumes.
const MOST_AT_ONCE: usize = 64;

/// Words of the set of operations, which has one bit for each hash. Operations that share a bit are held
/// together, which is rare and harmless.
const WORDS: usize = 16;

/// The state of back-pressure from large replies.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    /// Requests of operations with large replies are held. A task resumes them.
    crowded: AtomicBool,
    operations: [AtomicU64; WORDS],
    /// The size of the last large reply, in bytes.
    size: AtomicUsize,
    waiting: Mutex<VecDeque<Weak<Ticket>>>,
}

/// A connection's entry in the queue of held requests. Dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct Ticket {
    address: Option<IpAddr>,
    granted: AtomicBool,
    waker: AtomicWaker,
}

impl Ticket {
    /// Returns whether the request may proceed. Otherwise registers the task to be woken when it may.
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

    /// Records that an operation has large replies, and the size of this one.
    #[cold]
    pub(crate) fn note_large_reply(&self, operation: &[u8], bytes: usize) {
        let (word, bit) = Self::place(operation);
        if let Some(word) = self.operations.get(word) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        self.size.store(bytes.max(LARGE_REPLY), Ordering::Relaxed);
    }

    fn knows(&self, operation: &[u8]) -> bool {
        let (word, bit) = Self::place(operation);
        self.operations.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Weak<Ticket>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Handles a queued large reply: starts to hold requests if queued replies exceed half of the pool's cap.
    #[cold]
    pub(crate) fn queued_large_reply(self: &Arc<Self>) {
        if self.pool.is_crowded()
            && !self.closing.has_begun()
            && !self.backpressure.crowded.swap(true, Ordering::Relaxed)
        {
            self.pauses.set(crate::runtime::CROWDED, true);
            self.spawn_until_closed(watch(Arc::downgrade(self)));
        }
    }

    /// Returns an entry in the queue if a request of that operation must be held.
    #[cold]
    pub(crate) fn wait_for_memory(&self, operation: &[u8], link: &SharedConnection) -> Option<Arc<Ticket>> {
        let known = self.backpressure.knows(operation) && !self.closing.has_begun();
        let mut waiting = known.then(|| self.backpressure.waiting())?;
        if !self.backpressure.crowded.load(Ordering::Relaxed) || waiting.is_empty() && !self.pool.is_crowded()
        {
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

    /// Frees memory for a large reply if replies take the whole cap, by closing slow clients. Must be called
    /// without the lock of any connection.
    ///
    /// # Errors
    /// The exception that replaces the reply if that does not free enough.
    #[cold]
    pub(crate) fn make_room_for_reply(&self) -> Result<(), SystemException> {
        if self.pool.is_full_of_replies() {
            let needed = self.pool.owed().saturating_sub(self.pool.cap()) + 1;
            if !self.close_slow_readers(needed) {
                let text = "replies that are queued for all clients take as much memory as they may: allow more by `OrbBuilder::max_receive_memory`";
                return Err(SystemException::transient()
                    .with_minor(minor::TRANSIENT_OVERLOADED)
                    .completed(CompletionStatus::Yes)
                    .with_reason(text));
            }
        }
        Ok(())
    }

    /// Closes connections of slow clients until these had at least `bytes` queued. Returns whether that was
    /// reached. A socket may keep its bytes for a moment longer, until the kernel has aborted its write, so
    /// the bytes that are still queued are no measure.
    fn close_slow_readers(&self, bytes: usize) -> bool {
        let mut freed = 0;
        while freed < bytes {
            let Some(more) = self.close_slow_reader() else { return false };
            freed += more;
        }
        true
    }

    /// Closes the connection of the slowest client. Returns the number of reply bytes that it had queued.
    fn close_slow_reader(&self) -> Option<usize> {
        let now = now();
        let mut by_address = HashMap::<Option<IpAddr>, usize>::new();
        let mut slow = Vec::new();
        for link in self.links.open() {
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
            "a client that takes its replies too slowly is closed, because others wait for the memory: `OrbBuilder::max_receive_memory` allows more"
        );
        link.give_up_slow_reader();
        Some(bytes)
    }

    /// Resumes held requests as far as there is memory for their replies. Returns whether none is left.
    fn grant(&self) -> bool {
        let pressure = &self.backpressure;
        let room = (self.pool.cap() / 2).saturating_sub(self.pool.owed());
        if room == 0 {
            return false;
        }
        let size = pressure.size.load(Ordering::Relaxed).max(LARGE_REPLY);
        let mut owed = HashMap::<Option<IpAddr>, usize>::new();
        let now = now();
        for link in self.links.open() {
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
        self.pauses.set(crate::runtime::CROWDED, false);
        self.backpressure.crowded.store(false, Ordering::Relaxed);
    }

    /// Resumes all held requests because the ORB closes.
    pub(crate) fn stop_waiting_for_memory(&self) {
        let mut waiting = self.backpressure.waiting();
        self.end_of_crowd();
        waiting.drain(..).filter_map(|ticket| ticket.upgrade()).for_each(|ticket| ticket.grant());
    }
}

/// Checks held requests until none is left.
async fn watch(core: Weak<Shared>) {
    let mut looks = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(core) = core.upgrade() else { return };
        looks += 1;
        if looks % LOOKS == 0 && !core.backpressure.waiting().is_empty() {
            core.close_slow_readers(core.pool.owed().saturating_sub(core.pool.cap() / 2));
        }
        if core.grant() {
            return;
        }
    }
}
