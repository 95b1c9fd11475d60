//! Latency histograms of calls. They have a fixed size and are updated without locks.

use std::sync::atomic::{AtomicU64, Ordering};

/// The binary logarithm of the number of buckets of an octave. The upper bound of an octave is twice its
/// lower bound. Above one microsecond, the width of a bucket is at most an eighth of its lower bound.
const LOG2_BUCKETS_PER_OCTAVE: usize = 3;
const BUCKETS_PER_OCTAVE: usize = 1 << LOG2_BUCKETS_PER_OCTAVE;
/// The unit of the bounds. Eight ticks are a microsecond, so that each power of two microseconds is a bound.
const NANOS_PER_TICK: u64 = 125;
const TICKS_PER_MICROSECOND: f64 = 8.0;
/// The number of octaves above one microsecond. The last bound is 2^27 us, which is 134 s.
const OCTAVES: usize = 27;
/// The number of buckets that have an upper bound. One further bucket counts longer calls.
pub(crate) const BUCKETS: usize = (OCTAVES + 1) * BUCKETS_PER_OCTAVE;

/// The histogram of the latencies of many calls, 1.8 KiB in size.
#[derive(Debug)]
pub(crate) struct Latencies {
    buckets: [AtomicU64; BUCKETS + 1],
    total_nanos: AtomicU64,
    longest_nanos: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LatencyCounts([u64; BUCKETS + 1]);

impl Default for Latencies {
    fn default() -> Self {
        let buckets = std::array::from_fn(|_| AtomicU64::new(0));
        Self { buckets, total_nanos: AtomicU64::new(0), longest_nanos: AtomicU64::new(0) }
    }
}

impl Default for LatencyCounts {
    fn default() -> Self {
        Self([0; BUCKETS + 1])
    }
}

impl Latencies {
    #[inline]
    pub(crate) fn record(&self, nanos: u64) {
        if let Some(bucket) = self.buckets.get(bucket_index(nanos)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.total_nanos.fetch_add(nanos, Ordering::Relaxed);
        // The load usually makes the atomic write unnecessary.
        if nanos > self.longest_nanos.load(Ordering::Relaxed) {
            self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> LatencyCounts {
        let mut counts = LatencyCounts::default();
        counts.add(self);
        counts
    }

    pub(crate) fn total_nanos(&self) -> u64 {
        self.total_nanos.load(Ordering::Relaxed)
    }

    pub(crate) fn longest_nanos(&self) -> u64 {
        self.longest_nanos.load(Ordering::Relaxed)
    }
}

impl LatencyCounts {
    pub(crate) fn add(&mut self, others: &Latencies) {
        for (count, other) in self.0.iter_mut().zip(&others.buckets) {
            *count += other.load(Ordering::Relaxed);
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        let mut counts = self.clone();
        for (count, before) in counts.0.iter_mut().zip(before.0) {
            *count = count.saturating_sub(before);
        }
        counts
    }

    /// Returns the latency in microseconds that a fraction (0 to 1) of the calls did not exceed, or `None`
    /// without calls. The result is the middle of a bucket. From 1 us to 134 s, its error is at most a
    /// sixteenth.
    pub(crate) fn quantile(&self, fraction: f64) -> Option<f64> {
        let rank = self.total() as f64 * fraction;
        let mut seen = 0;
        let found = self.0.iter().position(|count| {
            seen += count;
            seen > 0 && seen as f64 >= rank
        });
        found.map(middle_us)
    }

    /// Returns the index and the count of each bucket that is not empty.
    pub(crate) fn nonempty_buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.into_iter().enumerate().filter(|(_, count)| *count > 0)
    }

    /// Returns each octave's upper bound in microseconds, and the number of calls that did not exceed it.
    pub(crate) fn cumulative_by_octave(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut seen = 0;
        let bounded = self.0.into_iter().take(BUCKETS).enumerate();
        let sums = bounded.map(move |(at, count)| {
            seen += count;
            (at, seen)
        });
        sums.filter(|(at, _)| at % BUCKETS_PER_OCTAVE == BUCKETS_PER_OCTAVE - 1)
            .map(|(at, sum)| (upper_bound_us(at), sum))
    }
}

#[inline]
fn bucket_index(nanos: u64) -> usize {
    // Upper bounds are inclusive.
    let ticks = nanos.saturating_sub(1) / NANOS_PER_TICK;
    let Some(exponent) = ticks.checked_ilog2() else { return 0 };
    let shift = (exponent as usize).saturating_sub(LOG2_BUCKETS_PER_OCTAVE);
    // If there are at least 8 ticks, `ticks >> shift` is from 8 to 15.
    (shift * BUCKETS_PER_OCTAVE + (ticks >> shift) as usize).min(BUCKETS)
}

/// Returns the inclusive upper bound of a bucket in microseconds.
pub(crate) fn upper_bound_us(at: usize) -> f64 {
    let shift = (at / BUCKETS_PER_OCTAVE).saturating_sub(1);
    let parts = at + 1 - shift * BUCKETS_PER_OCTAVE;
    ((parts as u64) << shift) as f64 / TICKS_PER_MICROSECOND
}

fn middle_us(at: usize) -> f64 {
    let lower = at.checked_sub(1).map_or(0.0, upper_bound_us);
    if at < BUCKETS { f64::midpoint(lower, upper_bound_us(at)) } else { lower }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_inclusive_and_ascending() {
        for at in 0..BUCKETS {
            let nanos = (upper_bound_us(at) * 1000.0) as u64;
            assert_eq!((bucket_index(nanos), bucket_index(nanos + 1)), (at, at + 1), "{nanos} ns");
        }
        assert_eq!((bucket_index(0), bucket_index(u64::MAX)), (0, BUCKETS));
        assert_eq!([0, 7, 8, 15].map(upper_bound_us), [0.125, 1.0, 1.125, 2.0]);
        assert!(upper_bound_us(BUCKETS - 1) > 100e6, "more than 100 s");
    }

    #[test]
    fn counts_by_octave_are_cumulative() {
        let latencies = Latencies::default();
        for nanos in [0, 1000, 1001, 2000, 4000, u64::MAX / 2] {
            latencies.record(nanos);
        }
        let octaves: Vec<_> = latencies.counts().cumulative_by_octave().collect();
        assert_eq!(octaves[..4], [(1.0, 2), (2.0, 4), (4.0, 5), (8.0, 5)]);
        assert_eq!(octaves.len(), 28);
        assert_eq!(octaves.last(), Some(&(134_217_728.0, 5)));
        assert_eq!(latencies.counts().total(), 6, "one call exceeds all bounds");
        assert_eq!(latencies.longest_nanos(), u64::MAX / 2);
    }

    #[test]
    fn since_excludes_earlier_calls() {
        let latencies = Latencies::default();
        assert_eq!(latencies.counts().quantile(0.5), None);
        latencies.record(1_000_000);
        let before = latencies.counts();
        latencies.record(10_000);
        let since = latencies.counts().since(&before);
        assert_eq!(since.total(), 1);
        assert_eq!(since.nonempty_buckets().collect::<Vec<_>>(), [(bucket_index(10_000), 1)]);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_seven_percent(
            // From 1 us to 100 s, evenly distributed over magnitudes.
            exponents in prop::collection::vec(3.0..11.0_f64, 1..300),
            part in prop::sample::select(vec![0.5, 0.9, 0.99, 1.0]),
        ) {
            let latencies = Latencies::default();
            let mut nanos: Vec<u64> = exponents.iter().map(|e| 10_f64.powf(*e) as u64).collect();
            nanos.iter().for_each(|one| latencies.record(*one));
            nanos.sort_unstable();
            let rank = (nanos.len() as f64 * part).ceil() as usize;
            let expected = nanos[rank - 1] as f64 / 1000.0;
            let quantile = latencies.counts().quantile(part).unwrap();
            prop_assert!((quantile / expected - 1.0).abs() < 0.07, "{quantile} us for {expected} us");
        }
    }
}
