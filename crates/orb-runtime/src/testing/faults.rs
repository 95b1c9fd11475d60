//! Faults by the dice: a seed decides what befalls each connection, and replays it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::transport::pipe::{Cut, PipeFaults};

/// The variable of the environment that replays one seed.
const REPLAY: &str = "ZORB_FAULTS";

/// A script of faults for the connections of a [`Pair`](super::Pair): what befalls each follows from a seed and the connection's
/// number, so a run that failed is replayed with its seed.
///
/// By itself it is harmless: octets come late and in pieces of any size, so that replies of several connections come in
/// another order than their requests, and every call still succeeds. [`cut`](Self::cut) and [`flip`](Self::flip) do harm.
///
/// ```
/// # mod zorb { pub use orb_runtime::*; }
/// use std::time::Duration;
/// use zorb::testing::{Faults, pair, seeds};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// // 20 seeds, or the one in ZORB_FAULTS.
/// for seed in seeds(20) {
///     let orbs = pair();
///     // The first two connections break somewhere in their first 500 octets, the others do not.
///     orbs.inject(Faults::seeded(seed).delay(Duration::from_millis(50)).cut(500).at_most(2));
///     // ... activate a servant at `orbs.server`, call it from `orbs.client`, and check what must hold ...
/// }
/// # });
/// ```
///
/// When a test panics while it has the pair, the seed and what befell each connection are written to standard error.
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
    /// The script of that seed: pieces of any size, octets that are under way for up to 10 ms.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, delay: Duration::from_millis(10), cut: None, flip: None, at_most: u64::MAX }
    }

    /// Octets are under way for up to so long, in tokio's time. Zero: they arrive at once.
    pub fn delay(mut self, most: Duration) -> Self {
        self.delay = most;
        self
    }

    /// Connections break somewhere in their first `within` octets of one direction or the other, in any way of [`Cut`].
    pub fn cut(mut self, within: u64) -> Self {
        self.cut = Some(within.max(1));
        self
    }

    /// One bit in the first `within` octets of one direction or the other comes as its opposite.
    pub fn flip(mut self, within: u64) -> Self {
        self.flip = Some(within.max(1));
        self
    }

    /// Only the first so many connections are harmed: those that come later only deliver late and in pieces.
    pub fn at_most(mut self, connections: u64) -> Self {
        self.at_most = connections;
        self
    }

    /// The seed, with which the same things happen again.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What befalls the connection of that number, the first being 0: the octets that go to the server, and those that come
    /// back.
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

/// How to have it again.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faults of seed {} ({REPLAY}={} replays it)", self.seed, self.seed)
    }
}

/// The seeds from 0 on, or the one alone that the variable `ZORB_FAULTS` of the environment says: for tests that go through
/// several of them.
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

/// Polls the future up to `polls` times, lets other tasks run after each, and drops it then. Gives its output if it came so far.
///
/// A test that does so for 0, 1, 2 ... polls until the output comes has dropped the future at each of its await points. The
/// future is polled again whether it was woken or not.
///
/// ```
/// # mod zorb { pub use orb_runtime::*; }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut polls = 0;
/// while zorb::testing::dropped_after(polls, tokio::task::yield_now()).await.is_none() {
///     // ... check that nothing is left behind ...
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

/// Numbers that only the seed decides (SplitMix64): a test that is replayed must not depend on the version of a crate.
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

    /// Less than `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// From 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}
