//! Back-pressure from the replies that are queued for all clients: which requests must wait for memory, and
//! which client is disconnected.
//!
//! * The size of a reply is not known in advance. Therefore operations with large replies are recorded by
//!   name.
//! * While queued replies take more than half of the receive pool's capacity, requests of these operations
//!   are held. While a request is held, slow clients are disconnected. Requests of other operations are never
//!   held here.
//! * A large reply can occur nevertheless: from an operation that had none before, or from a running servant.
//!   If queued replies take the whole capacity, slow clients are disconnected. If that frees too little
//!   memory, an exception replaces the reply.
//! * A client is slow if, at the rate of the last second or two, it would need more than
//!   [`Limits::write_timeout`](giop_proto::Limits::write_timeout) to receive its queued replies.
//! * Of several slow clients, a connection of the address with the most queued bytes is closed first. Held
//!   requests of the address with the fewest queued bytes resume first.

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

/// The minimum size of a large reply, in bytes. Connections with fewer queued bytes are not considered.
pub(crate) const MIN_LARGE_REPLY_BYTES: usize = 64 * 1024;

/// The interval at which held requests are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The number of checks of held requests after which slow clients are searched for.
const CHECKS_PER_SEARCH: u32 = 20;

const MAX_RESUMED_PER_CHECK: usize = 64;

/// The number of words of the set of operations with large replies, which has a bit for each hash of a name.
/// If two operations share a bit, both are held, which is rare and harmless.
const BIT_SET_WORDS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    /// Whether requests of operations with large replies are held. Meanwhile, a task resumes them.
    is_holding: AtomicBool,
    large_reply_operations: [AtomicU64; BIT_SET_WORDS],
    last_large_reply_bytes: AtomicUsize,
    queue: Mutex<VecDeque<Weak<MemoryTicket>>>,
}

/// A request that is held until memory is available. Dropping this value withdraws the request.
#[derive(Debug)]
pub(crate) struct MemoryTicket {
    address: Option<IpAddr>,
    was_granted: AtomicBool,
    waker: AtomicWaker,
}

impl MemoryTicket {
    /// Registers the task to be woken when the request may proceed, and returns whether it may already.
    pub(crate) fn is_granted(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.was_granted.load(Ordering::Acquire)
    }

    fn grant(&self) {
        self.was_granted.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Backpressure {
    fn bit_of(operation: &[u8]) -> (usize, u64) {
        let mut hasher = DefaultHasher::new();
        operation.hash(&mut hasher);
        let hash = hasher.finish();
        ((hash >> 6) as usize % BIT_SET_WORDS, 1 << (hash % 64))
    }

    /// Records that an operation has large replies, and that the last one has `bytes` bytes.
    #[cold]
    pub(crate) fn record_large_reply(&self, operation: &[u8], bytes: usize) {
        let (word, bit) = Self::bit_of(operation);
        if let Some(word) = self.large_reply_operations.get(word) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        self.last_large_reply_bytes.store(bytes.max(MIN_LARGE_REPLY_BYTES), Ordering::Relaxed);
    }

    fn had_large_reply(&self, operation: &[u8]) -> bool {
        let (word, bit) = Self::bit_of(operation);
        self.large_reply_operations.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Weak<MemoryTicket>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Begins to hold requests if queued replies exceed half of the pool's capacity.
    #[cold]
    pub(crate) fn hold_requests_if_crowded(self: &Arc<Self>) {
        if self.pool.is_half_full_of_replies()
            && !self.closing.has_begun()
            && !self.backpressure.is_holding.swap(true, Ordering::Relaxed)
        {
            self.pauses.set(crate::runtime::SHORT_OF_MEMORY, true);
            self.spawn_until_closed(resume_periodically(Arc::downgrade(self)));
        }
    }

    /// Queues a request of this operation if it must be held. Returns `None` if it need not be held.
    #[cold]
    pub(crate) fn queue_for_memory(
        &self,
        operation: &[u8],
        link: &SharedConnection,
    ) -> Option<Arc<MemoryTicket>> {
        let may_hold = self.backpressure.had_large_reply(operation) && !self.closing.has_begun();
        let mut queue = may_hold.then(|| self.backpressure.queue())?;
        if !self.backpressure.is_holding.load(Ordering::Relaxed)
            || queue.is_empty() && !self.pool.is_half_full_of_replies()
        {
            return None;
        }
        let ticket = Arc::new(MemoryTicket {
            address: link.peer().ip_address(),
            was_granted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        queue.push_back(Arc::downgrade(&ticket));
        Some(ticket)
    }

    /// Closes slow clients if queued replies take the pool's whole capacity, to free memory for a large
    /// reply. Returns the exception that replaces the reply if too little memory is freed. The caller must
    /// not hold the lock of any connection.
    #[cold]
    pub(crate) fn free_memory_for_reply(&self) -> Result<(), SystemException> {
        if self.pool.is_full_of_replies() {
            let needed = self.pool.queued_reply_bytes().saturating_sub(self.pool.cap()) + 1;
            if !self.close_slow_readers(needed) {
                let text = "the replies that are queued for all clients occupy the maximum memory: increase `OrbBuilder::max_receive_memory`";
                return Err(SystemException::transient()
                    .with_minor(minor::TRANSIENT_OVERLOADED)
                    .completed(CompletionStatus::Yes)
                    .with_reason(text));
            }
        }
        Ok(())
    }

    /// Closes connections of slow clients until they have at least `bytes` queued bytes together. Returns
    /// `false` if all slow clients together have fewer. The queued bytes of a closed connection count as
    /// freed at once, although they may be freed later.
    fn close_slow_readers(&self, bytes: usize) -> bool {
        let mut freed = 0;
        while freed < bytes {
            let Some(queued) = self.close_slowest_reader() else { return false };
            freed += queued;
        }
        true
    }

    /// Closes a connection of the slow client with the most queued bytes. Returns the number of the
    /// connection's queued bytes, or `None` if no client is slow.
    fn close_slowest_reader(&self) -> Option<usize> {
        let now = now();
        let mut by_address = HashMap::<Option<IpAddr>, usize>::new();
        let mut slow = Vec::new();
        for link in self.connections.to_vec() {
            let Some((bytes, time)) = link.reply_queue(now) else { continue };
            let address = link.peer().ip_address();
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
            "closed a connection whose client receives replies too slowly, because other clients wait for memory: increase `OrbBuilder::max_receive_memory`"
        );
        link.close_slow_reader();
        Some(bytes)
    }

    /// Resumes held requests as far as memory is available. If memory is available and no held request is
    /// left, ends the holding and returns `true`.
    fn resume_held(&self) -> bool {
        let pressure = &self.backpressure;
        let free_bytes = (self.pool.cap() / 2).saturating_sub(self.pool.queued_reply_bytes());
        if free_bytes == 0 {
            return false;
        }
        let size = pressure.last_large_reply_bytes.load(Ordering::Relaxed).max(MIN_LARGE_REPLY_BYTES);
        let mut owed = HashMap::<Option<IpAddr>, usize>::new();
        let now = now();
        for link in self.connections.to_vec() {
            if let Some((bytes, _)) = link.reply_queue(now) {
                *owed.entry(link.peer().ip_address()).or_default() += bytes;
            }
        }
        let mut queue = pressure.queue();
        let mut tickets: Vec<_> = queue.iter().filter_map(Weak::upgrade).collect();
        for _ in 0..(free_bytes / size).clamp(1, MAX_RESUMED_PER_CHECK) {
            let first = tickets
                .iter()
                .enumerate()
                .min_by_key(|(at, ticket)| (owed.get(&ticket.address).copied().unwrap_or_default(), *at));
            let Some((at, _)) = first else { break };
            let ticket = tickets.remove(at);
            *owed.entry(ticket.address).or_default() += size;
            ticket.grant();
        }
        queue.clear();
        queue.extend(tickets.iter().map(Arc::downgrade));
        if tickets.is_empty() {
            self.stop_holding();
        }
        tickets.is_empty()
    }

    fn stop_holding(&self) {
        self.pauses.set(crate::runtime::SHORT_OF_MEMORY, false);
        self.backpressure.is_holding.store(false, Ordering::Relaxed);
    }

    /// Resumes all held requests because the ORB closes.
    pub(crate) fn resume_all_for_shutdown(&self) {
        let mut queue = self.backpressure.queue();
        self.stop_holding();
        queue.drain(..).filter_map(|ticket| ticket.upgrade()).for_each(|ticket| ticket.grant());
    }
}

async fn resume_periodically(core: Weak<Shared>) {
    let mut checks = 0;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(core) = core.upgrade() else { return };
        checks += 1;
        if checks % CHECKS_PER_SEARCH == 0 && !core.backpressure.queue().is_empty() {
            core.close_slow_readers(core.pool.queued_reply_bytes().saturating_sub(core.pool.cap() / 2));
        }
        if core.resume_held() {
            return;
        }
    }
}
