//! Connects to one of several addresses quickly even if some are unreachable ("happy eyeballs", RFC 8305).
//!
//! The addresses of a server are tried in their order, but IPv4 and IPv6 alternate. The next attempt begins
//! when one fails, or after a delay of at most a quarter of a second. At most eight attempts run at a time. A
//! success ends the others.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;

use crate::connection::now;

/// The recommended "Connection Attempt Delay" of RFC 8305.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The minimum "Connection Attempt Delay" of RFC 8305.
const MIN_ATTEMPT_DELAY: Duration = Duration::from_millis(10);

/// The maximum number of concurrent attempts, because a reference may have many addresses.
const MAX_CONCURRENT_ATTEMPTS: usize = 8;

/// Returns the delay between the starts of successive attempts. It is short enough that all attempts begin
/// before the deadline, if possible.
pub(crate) fn attempt_delay(attempts: usize, deadline: Option<Instant>) -> Duration {
    let Some(deadline) = deadline else { return ATTEMPT_DELAY };
    let shares = u32::try_from(attempts).unwrap_or(u32::MAX).saturating_add(1);
    (deadline.saturating_duration_since(now()) / shares).clamp(MIN_ATTEMPT_DELAY, ATTEMPT_DELAY)
}

/// Returns the deadline for the next of `remaining` candidates, among which the time is divided equally.
pub(crate) fn deadline_share(remaining: usize, deadline: Option<Instant>) -> Option<Instant> {
    let (deadline, now) = (deadline?, now());
    let remaining = u32::try_from(remaining).unwrap_or(u32::MAX).max(1);
    Some(now + deadline.saturating_duration_since(now) / remaining)
}

/// Tries the candidates in their order. Each attempt begins `delay` after the previous one, or when an
/// attempt fails. At most [`MAX_CONCURRENT_ATTEMPTS`] run at a time. The first success ends the other
/// attempts. Fails with the errors of all candidates, in the order in which they failed. Dropping the future
/// drops all attempts.
pub(crate) async fn race<A, T, E, F: Future<Output = Result<T, E>>>(
    candidates: impl IntoIterator<Item = A>,
    delay: Duration,
    attempt: impl Fn(A) -> F,
) -> Result<T, Vec<E>> {
    let mut candidates = candidates.into_iter().peekable();
    let mut running = FuturesUnordered::new();
    let mut failed = Vec::new();
    // Completes when the next attempt may begin. `None` if it may begin now.
    let mut timer = pin!(None::<tokio::time::Sleep>);
    poll_fn(|cx| {
        loop {
            if (timer.is_none() || running.is_empty())
                && running.len() < MAX_CONCURRENT_ATTEMPTS
                && let Some(candidate) = candidates.next()
            {
                running.push(attempt(candidate));
                timer.set(Some(tokio::time::sleep(delay)));
            }
            match Pin::new(&mut running).poll_next(cx) {
                Poll::Ready(Some(Ok(connected))) => return Poll::Ready(Ok(connected)),
                Poll::Ready(Some(Err(error))) => {
                    failed.push(error);
                    timer.set(None);
                }
                Poll::Ready(None) if candidates.peek().is_none() => {
                    return Poll::Ready(Err(std::mem::take(&mut failed)));
                }
                Poll::Ready(None) => {}
                Poll::Pending if candidates.peek().is_none() || running.len() >= MAX_CONCURRENT_ATTEMPTS => {
                    return Poll::Pending;
                }
                Poll::Pending => match timer.as_mut().as_pin_mut().map(|timer| timer.poll(cx)) {
                    Some(Poll::Pending) => return Poll::Pending,
                    Some(Poll::Ready(())) | None => timer.set(None),
                },
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    type Outcome = Result<&'static str, &'static str>;

    /// Races candidates that take the given times, in milliseconds, and have the given outcomes. Returns the
    /// outcome of the race, and the start of each attempt in milliseconds.
    async fn race_outcomes(
        candidates: &[(u64, Outcome)],
    ) -> (Result<&'static str, Vec<&'static str>>, Vec<u128>) {
        let start = tokio::time::Instant::now();
        let begun = RefCell::new(Vec::new());
        let outcome = race(candidates, ATTEMPT_DELAY, |(takes, outcome)| {
            begun.borrow_mut().push(start.elapsed().as_millis());
            async move {
                tokio::time::sleep(Duration::from_millis(*takes)).await;
                *outcome
            }
        })
        .await;
        (outcome, begun.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn quick_success_of_the_first_candidate_starts_no_other() {
        let (outcome, begun) = race_outcomes(&[(200, Ok("a")), (0, Ok("b"))]).await;
        assert_eq!((outcome, begun), (Ok("a"), vec![0]));
    }

    #[tokio::test(start_paused = true)]
    async fn next_candidate_starts_when_the_previous_one_failed_or_is_slow() {
        let (outcome, begun) = race_outcomes(&[(5, Err("a")), (10_000, Ok("b")), (20, Ok("c"))]).await;
        assert_eq!((outcome, begun), (Ok("c"), vec![0, 5, 255]));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_candidate_can_still_succeed_first() {
        let (outcome, begun) = race_outcomes(&[(300, Ok("a")), (10_000, Ok("b"))]).await;
        assert_eq!((outcome, begun), (Ok("a"), vec![0, 250]));
    }

    #[tokio::test(start_paused = true)]
    async fn all_errors_are_returned_when_no_candidate_succeeds() {
        let (outcome, begun) = race_outcomes(&[(300, Err("a")), (10, Err("b")), (10, Err("c"))]).await;
        assert_eq!((outcome, begun), (Err(vec!["b", "c", "a"]), vec![0, 250, 260]));
        assert_eq!(race_outcomes(&[]).await.0, Err(vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_eight_candidates_are_tried_concurrently() {
        let candidates = [(3_000, Err("slow")); 20];
        let (outcome, begun) = race_outcomes(&candidates).await;
        assert_eq!(outcome.unwrap_err().len(), 20);
        assert_eq!(begun[..9], [0, 250, 500, 750, 1000, 1250, 1500, 1750, 3000]);
    }

    #[tokio::test(start_paused = true)]
    async fn time_until_the_deadline_is_divided_among_the_candidates() {
        let within = |milliseconds| Some(now() + Duration::from_millis(milliseconds));
        assert_eq!(attempt_delay(3, None), Duration::from_millis(250));
        assert_eq!(attempt_delay(3, within(60_000)), Duration::from_millis(250));
        assert_eq!(attempt_delay(3, within(400)), Duration::from_millis(100));
        assert_eq!(attempt_delay(300, within(400)), Duration::from_millis(10));
        assert_eq!(attempt_delay(3, within(0)), Duration::from_millis(10));
        assert_eq!(deadline_share(4, within(400)), within(100));
        assert_eq!((deadline_share(1, within(400)), deadline_share(2, None)), (within(400), None));
    }
}
