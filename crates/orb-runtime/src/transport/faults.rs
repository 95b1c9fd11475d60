//! Random faults: a seed determines the faults of each connection, so that a run can be replayed.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::transport::pipe::{Cut, PipeFaults};

/// The environment variable that replays one seed.
const REPLAY: &str = "ZORB_FAULTS";

/// A script of faults for the connections of a [`Pair`](crate::testing::Pair). The faults of each connection
/// follow from a seed and the connection's number, so a failed run can be replayed with its seed.
///
/// By default, the script is harmless: bytes arrive late and in pieces of any size. Replies of several
/// connections may therefore arrive in another order than their requests, and every call still succeeds.
/// [`cut`](Self::cut) and [`flip`](Self::flip) cause failures.
///
/// ```
/// # mod zorb { pub use orb_runtime::*; }
/// use std::time::Duration;
/// use zorb::testing::{Faults, pair, seeds};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
/// # runtime.unwrap().block_on(async {
/// // 20 seeds, or the one in ZORB_FAULTS.
/// for seed in seeds(20) {
///     let orbs = pair();
///     // The first two connections break somewhere in their first 500 bytes, the others do not.
///     orbs.inject(Faults::seeded(seed).delay(Duration::from_millis(50)).cut(500).at_most(2));
///     // ... activate a servant at `orbs.server`, call it from `orbs.client`, and check what must hold ...
/// }
/// # });
/// ```
///
/// If a test panics while it holds the pair, the seed and the faults of each connection are written to
/// standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a script does nothing until `Pair::inject`"]
pub struct Faults {
    seed: u64,
    delay: Duration,
    cut: Option<u64>,
    flip: Option<u64>,
    at_most: u64,
}

impl Faults {
    /// Creates the script of that seed: pieces of any size, delays of up to 10 ms.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, delay: Duration::from_millis(10), cut: None, flip: None, at_most: u64::MAX }
    }

    /// Sets the maximum delay of bytes, in tokio's time. Zero disables the delay.
    pub fn delay(mut self, most: Duration) -> Self {
        self.delay = most;
        self
    }

    /// Breaks connections somewhere in their first `within` bytes of either direction, in any way of [`Cut`].
    pub fn cut(mut self, within: u64) -> Self {
        self.cut = Some(within.max(1));
        self
    }

    /// Inverts one bit in the first `within` bytes of either direction.
    pub fn flip(mut self, within: u64) -> Self {
        self.flip = Some(within.max(1));
        self
    }

    /// Limits failures to the first connections. Later ones only deliver late and in pieces.
    pub fn at_most(mut self, connections: u64) -> Self {
        self.at_most = connections;
        self
    }

    /// Returns the seed, which replays the faults.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the faults of the connection of that number, counted from 0: those of bytes to the server, and
    /// those of bytes to the client.
    #[must_use]
    pub fn of(&self, connection: u64) -> (PipeFaults, PipeFaults) {
        let mut random = Random::new(self.seed ^ connection.wrapping_mul(0xd134_2543_de82_ef95));
        let mut ways = [(), ()].map(|()| {
            let mut faults = PipeFaults::default();
            (faults.delay, faults.ragged) = (self.delay, Some(random.next()));
            if random.below(2) == 0 {
                // A slow reader, whose peer often has to wait.
                faults.capacity = 64 + random.below(4096) as usize;
            }
            faults
        });
        if connection < self.at_most {
            let [there, back] = &mut ways;
            if let Some(within) = self.cut {
                let cut = [Cut::End, Cut::Reset, Cut::Silence][random.below(3) as usize];
                let way = if random.below(2) == 0 { &mut *there } else { &mut *back };
                (way.cut_after, way.cut) = (Some(random.below(within)), cut);
            }
            if let Some(within) = self.flip {
                let way = if random.below(2) == 0 { there } else { back };
                way.flip = Some(random.below(within.saturating_mul(8)));
            }
        }
        let [there, back] = ways;
        (there, back)
    }
}

/// Writes how to replay the faults.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faults of seed {} ({REPLAY}={} replays it)", self.seed, self.seed)
    }
}

/// Returns the seeds from 0 on, or only the one in the environment variable `ZORB_FAULTS`. For tests that run
/// with several seeds.
///
/// # Panics
/// If the variable is not a number.
#[expect(clippy::panic, reason = "tests are to fail")]
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    match std::env::var(REPLAY).ok().map(|seed| (seed.parse::<u64>(), seed)) {
        None => 0..count,
        Some((Ok(seed), _)) => seed..seed.saturating_add(1),
        Some((Err(_), text)) => panic!("{REPLAY} is `{text}`, which is no seed: write a number"),
    }
}

/// Polls the future up to `polls` times, lets other tasks run after each poll, and drops it then. Returns its
/// output if it completed.
///
/// A test that calls this for 0, 1, 2 ... polls until the output is returned has dropped the future at each
/// of its await points. The future is polled again whether it was woken or not.
///
/// ```
/// # mod zorb { pub use orb_runtime::*; }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut polls = 0;
/// while zorb::testing::dropped_after(polls, tokio::task::yield_now()).await.is_none() {
///     // ... check that no state remains ...
///     polls += 1;
/// }
/// # });
/// ```
///
/// # Cancel safety
/// Dropping it drops the future.
pub async fn dropped_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Pseudorandom numbers of a seed (SplitMix64). Not from a crate, because a replay must not depend on the
/// version of a crate.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number less than `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// Returns a number from 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}
