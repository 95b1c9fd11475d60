//! The schedule of calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Decides when calls start: at a rate or as fast as possible, up to a number of calls or for a duration.
#[derive(Debug)]
pub(super) struct Schedule {
    start: Instant,
    max_calls: u64,
    end: Option<Instant>,
    calls_per_second: Option<f64>,
    assigned_calls: AtomicU64,
    started_calls: AtomicU64,
}

#[derive(Debug, PartialEq, Eq)]
enum Action {
    End,
    CallAt(Instant),
    /// Make a call now. Its latency is measured from this time.
    CallNow(Instant),
}

impl Schedule {
    pub(super) fn new(start: Instant, number: u64, duration: Option<Duration>, rate: Option<f64>) -> Self {
        // A duration that overflows has no end.
        let end = duration.and_then(|duration| start.checked_add(duration));
        let max_calls = if duration.is_some() { u64::MAX } else { number };
        let (assigned_calls, started_calls) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { start, max_calls, end, calls_per_second: rate, assigned_calls, started_calls }
    }

    /// Waits until the next call is due. Returns the start of its latency, or `None` after the last call.
    ///
    /// If earlier calls delayed the call, the latency is measured from the time at which the call was due. In
    /// other cases, it is measured from the actual start, so that it does not include the delay of a timer.
    pub(super) async fn next_call(&self) -> Option<Instant> {
        let start = match self.next_action(Instant::now()) {
            Action::End => return None,
            Action::CallNow(start) => start,
            Action::CallAt(due) => {
                sleep_until(due).await;
                Instant::now()
            }
        };
        self.started_calls.fetch_add(1, Ordering::Relaxed);
        Some(start)
    }

    fn next_action(&self, now: Instant) -> Action {
        let index = self.assigned_calls.fetch_add(1, Ordering::Relaxed);
        match self.due_time(index) {
            _ if index >= self.max_calls || self.is_after_end(now) => Action::End,
            Some(due) if self.is_after_end(due) => Action::End,
            Some(due) if due > now => Action::CallAt(due),
            Some(due) => Action::CallNow(due),
            None => Action::CallNow(now),
        }
    }

    fn is_after_end(&self, time: Instant) -> bool {
        self.end.is_some_and(|end| time >= end)
    }

    fn due_time(&self, index: u64) -> Option<Instant> {
        let after = Duration::try_from_secs_f64(index as f64 / self.calls_per_second?).ok()?;
        self.start.checked_add(after)
    }

    pub(super) fn started_calls(&self) -> u64 {
        self.started_calls.load(Ordering::Relaxed)
    }

    /// Returns the number of calls that were due before `now` but have not started.
    pub(super) fn overdue_calls(&self, now: Instant) -> u64 {
        let Some(rate) = self.calls_per_second else { return 0 };
        let end = self.end.map_or(now, |end| end.min(now));
        let due = (end.saturating_duration_since(self.start).as_secs_f64() * rate).ceil();
        (due as u64).min(self.max_calls).saturating_sub(self.started_calls())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn without_a_rate_all_calls_start_at_once() {
        let start = Instant::now();
        let schedule = Schedule::new(start, 3, None, None);
        for _ in 0..3 {
            assert_eq!(schedule.next_action(start), Action::CallNow(start));
        }
        assert_eq!(schedule.next_action(start), Action::End);
        assert_eq!(schedule.overdue_calls(start), 0);
    }

    #[test]
    fn no_calls_start_after_the_duration() {
        let start = Instant::now();
        let schedule = Schedule::new(start, 1, Some(SECOND), None);
        for _ in 0..10 {
            assert_eq!(schedule.next_action(start), Action::CallNow(start));
        }
        assert_eq!(schedule.next_action(start + SECOND), Action::End);
        // A duration that overflows has no end.
        let endless = Schedule::new(start, 1, Some(Duration::MAX), None);
        assert_eq!(endless.next_action(start + 100 * SECOND), Action::CallNow(start + 100 * SECOND));
    }

    #[test]
    fn calls_are_due_at_the_rate() {
        let start = Instant::now();
        let schedule = Schedule::new(start, 1, Some(SECOND), Some(10.0));
        assert_eq!(schedule.next_action(start), Action::CallNow(start));
        for call in 1..10 {
            assert_eq!(
                schedule.next_action(start),
                Action::CallAt(start + Duration::from_millis(100 * call))
            );
        }
        assert_eq!(schedule.next_action(start), Action::End);
    }

    /// If a server does not answer for a second, the calls that are due in this second are delayed.
    #[test]
    fn latencies_of_delayed_calls_are_measured_from_their_due_times() {
        let start = Instant::now();
        let schedule = Schedule::new(start, 1, Some(2 * SECOND), Some(10.0));
        assert_eq!(schedule.next_action(start), Action::CallNow(start));
        for call in 1..=10 {
            let due = start + Duration::from_millis(100 * call);
            assert_eq!(schedule.next_action(start + SECOND), Action::CallNow(due));
        }
        assert_eq!(schedule.next_action(start + SECOND), Action::CallAt(start + Duration::from_millis(1100)));
    }

    #[tokio::test]
    async fn calls_that_are_due_but_not_started_are_counted() {
        let start = Instant::now();
        let schedule = Schedule::new(start, 1, Some(3600 * SECOND), Some(1000.0));
        assert!(schedule.next_call().await.is_some());
        assert_eq!((schedule.started_calls(), schedule.overdue_calls(start + 2 * SECOND)), (1, 1999));
        // After the end of the duration, no calls are due.
        assert_eq!(schedule.overdue_calls(start + 7200 * SECOND), 3_599_999);
    }
}
