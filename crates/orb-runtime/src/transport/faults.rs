//! Random faults of in-memory connections. A seed determines the faults, so that a run can be replayed.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::transport::pipe::{Cut, PipeFaults};

const SEED_VARIABLE: &str = "ZORB_FAULTS";

/// Random faults for the connections of a [`Pair`](crate::testing::Pair). The seed and the number of a
/// connection determine its faults, so that a failed run can be replayed with its seed.
///
/// By default, bytes arrive late and in pieces of any size, and every call succeeds. Replies of several
/// connections may change their order. [`Self::cut_within`] and [`Self::flip_within`] cause failures.
///
/// ```
/// # mod zorb { pub use orb_runtime::*; }
/// use std::time::Duration;
/// use zorb::testing::{RandomFaults, pair, seeds};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
/// # runtime.unwrap().block_on(async {
/// // The seeds 0 to 19, or only the seed in the environment variable ZORB_FAULTS.
/// for seed in seeds(20) {
///     let orbs = pair();
///     // Each of the first two connections breaks somewhere in its first 500 bytes.
///     let faults = RandomFaults::seeded(seed).delay(Duration::from_millis(50));
///     orbs.set_random_faults(faults.cut_within(500).limit_to_first(2));
///     // ... activate a servant at `orbs.server`, call it from `orbs.client`, and check the results ...
/// }
/// # });
/// ```
///
/// If a test panics, the pair writes the seed and the faults of each connection to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "`Pair::set_random_faults` applies the faults"]
pub struct RandomFaults {
    seed: u64,
    delay: Duration,
    cut: Option<u64>,
    flip: Option<u64>,
    failing_connections: u64,
}

impl RandomFaults {
    /// Creates the faults that a seed determines: pieces of any size, and delays of up to 10 ms.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, delay: Duration::from_millis(10), cut: None, flip: None, failing_connections: u64::MAX }
    }

    /// Sets the maximum delay of bytes, by tokio's clock. Zero disables the delay.
    pub fn delay(mut self, max: Duration) -> Self {
        self.delay = max;
        self
    }

    /// Breaks each connection at a random position in the first `within` bytes, in a random way of [`Cut`].
    pub fn cut_within(mut self, within: u64) -> Self {
        self.cut = Some(within.max(1));
        self
    }

    /// Inverts one random bit in the first `within` bytes of one direction of each connection.
    pub fn flip_within(mut self, within: u64) -> Self {
        self.flip = Some(within.max(1));
        self
    }

    /// Limits [`Self::cut_within`] and [`Self::flip_within`] to the first `connections` connections.
    pub fn limit_to_first(mut self, connections: u64) -> Self {
        self.failing_connections = connections;
        self
    }

    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the faults of requests and of replies on a connection. Connections are numbered from 0.
    #[must_use]
    pub fn of_connection(&self, connection: u64) -> (PipeFaults, PipeFaults) {
        let mut random = Random(self.seed ^ connection.wrapping_mul(0xd134_2543_de82_ef95));
        let mut directions = [(), ()].map(|()| {
            let mut faults = PipeFaults::default();
            (faults.delay, faults.random_seed) = (self.delay, Some(random.next()));
            if random.below(2) == 0 {
                // With a small capacity, the writer must often wait for the reader.
                faults.capacity = 64 + random.below(4096) as usize;
            }
            faults
        });
        if connection < self.failing_connections {
            let [requests, replies] = &mut directions;
            if let Some(within) = self.cut {
                let cut = [Cut::End, Cut::Reset, Cut::Silence][random.below(3) as usize];
                let direction = if random.below(2) == 0 { &mut *requests } else { &mut *replies };
                (direction.cut_after, direction.cut) = (Some(random.below(within)), cut);
            }
            if let Some(within) = self.flip {
                let direction = if random.below(2) == 0 { requests } else { replies };
                direction.flipped_bit = Some(random.below(within.saturating_mul(8)));
            }
        }
        let [requests, replies] = directions;
        (requests, replies)
    }
}

impl fmt::Display for RandomFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faults of seed {} ({SEED_VARIABLE}={} replays it)", self.seed, self.seed)
    }
}

/// Returns the seeds from 0 to `count` (exclusive), or only the seed in the variable `ZORB_FAULTS`.
///
/// # Panics
/// Panics if the variable is not a number.
#[expect(clippy::panic, reason = "a test must fail if its configuration is invalid")]
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    match std::env::var(SEED_VARIABLE).ok().map(|seed| (seed.parse::<u64>(), seed)) {
        None => 0..count,
        Some((Ok(seed), _)) => seed..seed.saturating_add(1),
        Some((Err(_), text)) => panic!("{SEED_VARIABLE} is `{text}`, which is not a number"),
    }
}

/// Polls a future up to `polls` times, even if it was not woken, and then drops it. Other tasks run after
/// each poll. Returns the output if the future has completed.
///
/// If a test calls this for 0, 1, 2 ... polls until it returns an output, all await points are covered.
///
/// ```
/// # mod zorb { pub use orb_runtime::*; }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut polls = 0;
/// while zorb::testing::drop_after_polls(polls, tokio::task::yield_now()).await.is_none() {
///     // ... check that no state remains ...
///     polls += 1;
/// }
/// # });
/// ```
///
/// # Cancel safety
/// Dropping the returned future drops `future`.
pub async fn drop_after_polls<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// A random number generator (SplitMix64). The generator of a crate could change between versions.
#[derive(Debug)]
pub(crate) struct Random(pub(super) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number less than `end`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// Returns a number from 0 to 1 (exclusive).
    pub(crate) fn fraction(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}
