//! The rate at which a peer accepts what is queued for it.

use std::time::{Duration, Instant};

/// The duration of one measurement. The rate is that of the last one or two such spans.
const SPAN: Duration = Duration::from_secs(1);

/// The rate at which a peer accepts queued data, since the queue became large.
#[derive(Debug)]
pub(super) struct Pace {
    /// The start of the current span.
    since: Instant,
    /// The number of bytes written at that time.
    written: u64,
    /// The duration of the previous span, and the number of bytes written in it.
    before: (Duration, u64),
}

impl Pace {
    pub(super) fn new(written: u64, now: Instant) -> Self {
        Self { since: now, written, before: (Duration::ZERO, 0) }
    }

    /// Records that `written` bytes of the stream are written at `now`.
    pub(super) fn wrote(&mut self, written: u64, now: Instant) {
        let span = now.saturating_duration_since(self.since);
        if span >= SPAN {
            let before = (span, written.saturating_sub(self.written));
            *self = Self { since: now, written, before };
        }
    }

    /// Returns the time that the peer needs for `bytes` more bytes, or `None` if it was measured for less
    /// than a second.
    pub(super) fn time_for(&self, bytes: usize, written: u64, now: Instant) -> Option<Duration> {
        let span = now.saturating_duration_since(self.since);
        // A span in which nothing was written is sufficient by itself.
        let silent = span >= SPAN && written == self.written;
        let before = if silent { (Duration::ZERO, 0) } else { self.before };
        let measured = span + before.0;
        if measured < SPAN {
            return None;
        }
        let taken = u128::from(written.saturating_sub(self.written) + before.1);
        let nanos = (measured.as_nanos().saturating_mul(bytes as u128)).checked_div(taken);
        Some(
            nanos.map_or(Duration::MAX, |nanos| {
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }),
        )
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
            pace.wrote(tenth, after(start, 100 * tenth));
        }
        let rest = pace.time_for(1000, 25, after(start, 2550)).unwrap();
        assert!((Duration::from_secs(95)..Duration::from_secs(110)).contains(&rest), "{rest:?}");
    }

    #[test]
    fn a_peer_that_was_fast_and_stops_is_slow() {
        let start = Instant::now();
        let mut pace = Pace::new(0, start);
        pace.wrote(1 << 30, after(start, 1000));
        assert!(pace.time_for(1000, 1 << 30, after(start, 1500)).unwrap() < Duration::from_millis(1));
        assert_eq!(pace.time_for(1000, 1 << 30, after(start, 2000)), Some(Duration::MAX));
    }
}
