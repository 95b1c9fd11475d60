//! The rate at which a peer accepts what is queued for it.

use std::time::{Duration, Instant};

/// The minimum duration of a span. The rate is measured over the present span and the previous one.
const MIN_SPAN: Duration = Duration::from_secs(1);

/// The rate at which a peer accepts queued data, measured since the queue became large.
#[derive(Debug)]
pub(super) struct Pace {
    since: Instant,
    /// The number of bytes that had been written at the start of the present span.
    written: u64,
    /// The duration of the previous span, and the number of bytes written in it.
    previous: (Duration, u64),
}

impl Pace {
    pub(super) fn new(written: u64, now: Instant) -> Self {
        Self { since: now, written, previous: (Duration::ZERO, 0) }
    }

    pub(super) fn record(&mut self, written: u64, now: Instant) {
        let span = now.saturating_duration_since(self.since);
        if span >= MIN_SPAN {
            let previous = (span, written.saturating_sub(self.written));
            *self = Self { since: now, written, previous };
        }
    }

    /// Returns the time in which the peer will accept `bytes` more bytes; `None` in the first second.
    pub(super) fn time_for(&self, bytes: usize, written: u64, now: Instant) -> Option<Duration> {
        let span = now.saturating_duration_since(self.since);
        // If nothing was written in the present span, the previous one does not count.
        let is_stalled = span >= MIN_SPAN && written == self.written;
        let previous = if is_stalled { (Duration::ZERO, 0) } else { self.previous };
        let measured = span + previous.0;
        if measured < MIN_SPAN {
            return None;
        }
        let accepted = u128::from(written.saturating_sub(self.written) + previous.1);
        let nanos = (measured.as_nanos().saturating_mul(bytes as u128)).checked_div(accepted);
        let duration = |nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Some(nanos.map_or(Duration::MAX, duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn a_peer_is_judged_after_a_second() {
        let start = Instant::now();
        let pace = Pace::new(100, start);
        assert_eq!(pace.time_for(1000, 100, after(start, 999)), None);
        assert_eq!(pace.time_for(1000, 100, after(start, 1000)), Some(Duration::MAX));
        assert_eq!(pace.time_for(1000, 300, after(start, 1000)), Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_peer_that_takes_a_byte_now_and_then_is_measured_all_the_same() {
        let start = Instant::now();
        let mut pace = Pace::new(0, start);
        for tenth in 1..=25 {
            pace.record(tenth, after(start, 100 * tenth));
        }
        let rest = pace.time_for(1000, 25, after(start, 2550)).unwrap();
        assert!((Duration::from_secs(95)..Duration::from_secs(110)).contains(&rest), "{rest:?}");
    }

    #[test]
    fn a_peer_that_was_fast_and_stops_is_slow() {
        let start = Instant::now();
        let mut pace = Pace::new(0, start);
        pace.record(1 << 30, after(start, 1000));
        assert!(pace.time_for(1000, 1 << 30, after(start, 1500)).unwrap() < Duration::from_millis(1));
        assert_eq!(pace.time_for(1000, 1 << 30, after(start, 2000)), Some(Duration::MAX));
    }
}
