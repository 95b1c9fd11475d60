//! Latencies of calls: histograms of fixed size, counted without locks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets of an octave, as a power of two. The width of a bucket is at most an eighth of its lower bound.
const PRECISION: usize = 3;
const PARTS: usize = 1 << PRECISION;

/// Nanoseconds of a tick, the unit in which bounds are integers. Eight ticks are a microsecond, so that each
/// power of two microseconds is a bound.
const TICK: u64 = 125;
const TICKS_OF_A_MICROSECOND: f64 = 8.0;

/// Octaves above the first microsecond. The last bound is 2^27 us, which is 134 s.
const OCTAVES: usize = 27;

/// Number of buckets with an upper bound. One more bucket counts longer calls.
pub(crate) const BOUNDS: usize = (OCTAVES + 1) * PARTS;

/// The latencies of many calls, 1.8 KiB in size.
#[derive(Debug)]
pub(crate) struct Latencies {
    buckets: [AtomicU64; BOUNDS + 1],
    nanos: AtomicU64,
    longest: AtomicU64,
}

/// The number of calls in each bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counts([u64; BOUNDS + 1]);

impl Default for Latencies {
    fn default() -> Self {
        let buckets = std::array::from_fn(|_| AtomicU64::new(0));
        Self { buckets, nanos: AtomicU64::new(0), longest: AtomicU64::new(0) }
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self([0; BOUNDS + 1])
    }
}

impl Latencies {
    /// Counts a call with its duration in nanoseconds.
    #[inline]
    pub(crate) fn record(&self, nanos: u64) {
        if let Some(bucket) = self.buckets.get(bucket_of(nanos)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        // The load avoids a write, because after the first calls this is rarely true.
        if nanos > self.longest.load(Ordering::Relaxed) {
            self.longest.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        counts.add(self);
        counts
    }

    /// Returns the total duration of all calls, in nanoseconds.
    pub(crate) fn nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }

    /// Returns the duration of the longest call, in nanoseconds.
    pub(crate) fn longest(&self) -> u64 {
        self.longest.load(Ordering::Relaxed)
    }
}

impl Counts {
    /// Adds the counts of `others`.
    pub(crate) fn add(&mut self, others: &Latencies) {
        for (count, other) in self.0.iter_mut().zip(&others.buckets) {
            *count += other.load(Ordering::Relaxed);
        }
    }

    /// Returns the number of all calls.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the counts of calls after `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let mut counts = self.clone();
        for (count, before) in counts.0.iter_mut().zip(before.0) {
            *count = count.saturating_sub(before);
        }
        counts
    }

    /// Returns the latency in microseconds that this part of the calls did not exceed, or `None` without
    /// calls. The value is the middle of its bucket. Its error is at most a sixteenth from 1 us to 134 s.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let rank = self.total() as f64 * part;
        let mut seen = 0;
        let found = self.0.iter().position(|count| {
            seen += count;
            seen > 0 && seen as f64 >= rank
        });
        found.map(middle_us)
    }

    /// Returns the number and the count of each bucket that has calls.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.into_iter().enumerate().filter(|(_, count)| *count > 0)
    }

    /// Returns the number of calls up to each power of two microseconds.
    pub(crate) fn by_octave(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut seen = 0;
        let bounded = self.0.into_iter().take(BOUNDS).enumerate();
        let sums = bounded.map(move |(at, count)| {
            seen += count;
            (at, seen)
        });
        sums.filter(|(at, _)| at % PARTS == PARTS - 1).map(|(at, sum)| (bound_us(at), sum))
    }
}

/// Returns the bucket for a duration.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    // Upper bounds are inclusive.
    let ticks = nanos.saturating_sub(1) / TICK;
    let Some(exponent) = ticks.checked_ilog2() else { return 0 };
    let shift = (exponent as usize).saturating_sub(PRECISION);
    // For 8 ticks and more, `ticks >> shift` is from 8 to 15.
    (shift * PARTS + (ticks >> shift) as usize).min(BOUNDS)
}

/// Returns the upper bound of a bucket, in microseconds, inclusive.
pub(crate) fn bound_us(at: usize) -> f64 {
    let shift = (at / PARTS).saturating_sub(1);
    let parts = at + 1 - shift * PARTS;
    ((parts as u64) << shift) as f64 / TICKS_OF_A_MICROSECOND
}

fn middle_us(at: usize) -> f64 {
    let above = at.checked_sub(1).map_or(0.0, bound_us);
    if at < BOUNDS { f64::midpoint(above, bound_us(at)) } else { above }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_rise_and_each_belongs_to_its_bucket() {
        for at in 0..BOUNDS {
            let nanos = (bound_us(at) * 1000.0) as u64;
            assert_eq!((bucket_of(nanos), bucket_of(nanos + 1)), (at, at + 1), "{nanos} ns");
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BOUNDS));
        assert_eq!((bound_us(0), bound_us(7), bound_us(8), bound_us(15)), (0.125, 1.0, 1.125, 2.0));
        assert!(bound_us(BOUNDS - 1) > 100e6, "more than 100 s");
    }

    #[test]
    fn powers_of_two_microseconds_are_counted_up() {
        let latencies = Latencies::default();
        for nanos in [0, 1000, 1001, 2000, 4000, u64::MAX / 2] {
            latencies.record(nanos);
        }
        let octaves: Vec<_> = latencies.counts().by_octave().collect();
        assert_eq!(octaves[..4], [(1.0, 2), (2.0, 4), (4.0, 5), (8.0, 5)]);
        assert_eq!(octaves.len(), 28);
        assert_eq!(octaves.last(), Some(&(134_217_728.0, 5)));
        assert_eq!(latencies.counts().total(), 6, "one took longer than all bounds");
        assert_eq!(latencies.longest(), u64::MAX / 2);
    }

    #[test]
    fn what_was_before_is_left_out() {
        let latencies = Latencies::default();
        assert_eq!(latencies.counts().quantile(0.5), None);
        latencies.record(1_000_000);
        let before = latencies.counts();
        latencies.record(10_000);
        let since = latencies.counts().since(&before);
        assert_eq!(since.total(), 1);
        assert_eq!(since.used().collect::<Vec<_>>(), [(bucket_of(10_000), 1)]);
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
            let truth = nanos[rank - 1] as f64 / 1000.0;
            let read = latencies.counts().quantile(part).unwrap();
            prop_assert!((read / truth - 1.0).abs() < 0.07, "{read} us for {truth} us");
        }
    }
}
