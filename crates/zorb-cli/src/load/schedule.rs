//! The schedule of calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A number that no count of calls reaches.
const ALL: u64 = u64::MAX;

/// The calls to make: a number of calls, or as many as fit in a duration; at a rate, or each as soon as
/// another one is answered.
#[derive(Debug)]
pub(super) struct Schedule {
    begin: Instant,
    number: u64,
    until: Option<Instant>,
    rate: Option<f64>,
    /// Number of calls that were handed out.
    given: AtomicU64,
    /// Number of calls that were started.
    begun: AtomicU64,
}

/// The action for the next call.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// There are no more calls.
    Over,
    /// Wait until this time, then make the call.
    At(Instant),
    /// Make the call now. Its latency counts from this time.
    Since(Instant),
}

impl Schedule {
    pub(super) fn new(begin: Instant, number: u64, duration: Option<Duration>, rate: Option<f64>) -> Self {
        // A duration that overflows has no end.
        let until = duration.and_then(|duration| begin.checked_add(duration));
        let number = if duration.is_some() { ALL } else { number };
        Self { begin, number, until, rate, given: AtomicU64::new(0), begun: AtomicU64::new(0) }
    }

    /// Waits until the next call is due. Returns the time from which its latency counts, or `None` if there
    /// are no more calls.
    ///
    /// That is the due time if the call is late because of preceding calls. Otherwise it is the actual start,
    /// so that a late timer does not count.
    pub(super) async fn next(&self) -> Option<Instant> {
        let since = match self.turn(Instant::now()) {
            Turn::Over => return None,
            Turn::Since(since) => since,
            Turn::At(due) => {
                sleep_until(due).await;
                Instant::now()
            }
        };
        self.begun.fetch_add(1, Ordering::Relaxed);
        Some(since)
    }

    /// Determines the action for the next call at this time.
    fn turn(&self, now: Instant) -> Turn {
        let place = self.given.fetch_add(1, Ordering::Relaxed);
        match self.due(place) {
            _ if place >= self.number || self.is_over(now) => Turn::Over,
            Some(due) if self.is_over(due) => Turn::Over,
            Some(due) if due > now => Turn::At(due),
            Some(due) => Turn::Since(due),
            None => Turn::Since(now),
        }
    }

    fn is_over(&self, at: Instant) -> bool {
        self.until.is_some_and(|until| at >= until)
    }

    fn due(&self, place: u64) -> Option<Instant> {
        let after = Duration::try_from_secs_f64(place as f64 / self.rate?).ok()?;
        self.begin.checked_add(after)
    }

    /// Returns the number of calls that were started.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns the number of calls that were due at this time, by the rate, and were not started.
    pub(super) fn not_begun(&self, at: Instant) -> u64 {
        let Some(rate) = self.rate else { return 0 };
        let end = self.until.map_or(at, |until| until.min(at));
        let due = (end.saturating_duration_since(self.begin).as_secs_f64() * rate).ceil();
        (due as u64).min(self.number).saturating_sub(self.begun())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn so_many_calls_are_made_at_once() {
        let begin = Instant::now();
        let schedule = Schedule::new(begin, 3, None, None);
        for _ in 0..3 {
            assert_eq!(schedule.turn(begin), Turn::Since(begin));
        }
        assert_eq!(schedule.turn(begin), Turn::Over);
        assert_eq!(schedule.not_begun(begin), 0);
    }

    #[test]
    fn calls_end_with_their_time() {
        let begin = Instant::now();
        let schedule = Schedule::new(begin, 1, Some(SECOND), None);
        for _ in 0..10 {
            assert_eq!(schedule.turn(begin), Turn::Since(begin));
        }
        assert_eq!(schedule.turn(begin + SECOND), Turn::Over);
        // A duration that overflows has no end.
        let endless = Schedule::new(begin, 1, Some(Duration::MAX), None);
        assert_eq!(endless.turn(begin + 100 * SECOND), Turn::Since(begin + 100 * SECOND));
    }

    #[test]
    fn calls_at_a_rate_are_due_one_after_the_other() {
        let begin = Instant::now();
        let schedule = Schedule::new(begin, 1, Some(SECOND), Some(10.0));
        assert_eq!(schedule.turn(begin), Turn::Since(begin));
        for call in 1..10 {
            assert_eq!(schedule.turn(begin), Turn::At(begin + Duration::from_millis(100 * call)));
        }
        assert_eq!(schedule.turn(begin), Turn::Over);
    }

    /// If a server answers nothing for a second, the calls of that second are delayed. Their latencies count
    /// from their due times.
    #[test]
    fn calls_that_are_late_count_from_when_they_were_due() {
        let begin = Instant::now();
        let schedule = Schedule::new(begin, 1, Some(2 * SECOND), Some(10.0));
        assert_eq!(schedule.turn(begin), Turn::Since(begin));
        for call in 1..=10 {
            let due = begin + Duration::from_millis(100 * call);
            assert_eq!(schedule.turn(begin + SECOND), Turn::Since(due));
        }
        assert_eq!(schedule.turn(begin + SECOND), Turn::At(begin + Duration::from_millis(1100)));
    }

    #[tokio::test]
    async fn calls_that_were_due_and_not_begun_are_counted() {
        let begin = Instant::now();
        let schedule = Schedule::new(begin, 1, Some(3600 * SECOND), Some(1000.0));
        assert!(schedule.next().await.is_some());
        assert_eq!((schedule.begun(), schedule.not_begun(begin + 2 * SECOND)), (1, 1999));
        // After the end of the duration, no calls are due.
        assert_eq!(schedule.not_begun(begin + 7200 * SECOND), 3_599_999);
    }
}
