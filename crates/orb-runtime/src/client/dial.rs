//! Connecting to one of several addresses, so that unreachable ones cost little time ("happy eyeballs", RFC
//! 8305).
//!
//! The addresses of a server are tried in their order, with address families interleaved. The next attempt
//! begins when the previous one has failed, or has not succeeded within a quarter of a second. The first
//! success ends the others.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;

use crate::connection::now;

/// RFC 8305 "Connection Attempt Delay": its recommended and its minimum value.
const DELAY: Duration = Duration::from_millis(250);
const LEAST_DELAY: Duration = Duration::from_millis(10);

/// Maximum number of concurrent attempts. It limits the sockets that a reference with many addresses can
/// open.
const SINGLE_READ: usize = 8;

/// Returns the delay after which the next attempt begins, so that all `attempts` begin before the deadline.
pub(crate) fn delay(attempts: usize, deadline: Option<Instant>) -> Duration {
    let Some(deadline) = deadline else { return DELAY };
    let turns = u32::try_from(attempts).unwrap_or(u32::MAX).saturating_add(1);
    (deadline.saturating_duration_since(now()) / turns).clamp(LEAST_DELAY, DELAY)
}

/// Returns the deadline of the first of `places` candidates: its share of the remaining time.
pub(crate) fn share(places: usize, deadline: Option<Instant>) -> Option<Instant> {
    let (deadline, now) = (deadline?, now());
    let places = u32::try_from(places).unwrap_or(u32::MAX).max(1);
    Some(now + deadline.saturating_duration_since(now) / places)
}

/// Tries the candidates in their order. Each begins `delay` after the previous one, or when that has failed.
/// The first success ends the others.
///
/// # Errors
/// The errors of all candidates, in the order in which they failed.
///
/// # Cancel safety
/// Dropping the future drops all attempts.
pub(crate) async fn race<A, T, E, F>(
    candidates: impl IntoIterator<Item = A>,
    delay: Duration,
    attempt: impl Fn(A) -> F,
) -> Result<T, Vec<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let mut candidates = candidates.into_iter().peekable();
    let mut running = FuturesUnordered::new();
    let mut failed = Vec::new();
    // The delay before the next attempt; `None` if that may begin now.
    let mut turn = pin!(None::<tokio::time::Sleep>);
    poll_fn(|cx| {
        loop {
            if (turn.is_none() || running.is_empty())
                && running.len() < SINGLE_READ
                && let Some(candidate) = candidates.next()
            {
                running.push(attempt(candidate));
                turn.set(Some(tokio::time::sleep(delay)));
            }
            match Pin::new(&mut running).poll_next(cx) {
                Poll::Ready(Some(Ok(won))) => return Poll::Ready(Ok(won)),
                Poll::Ready(Some(Err(error))) => {
                    failed.push(error);
                    turn.set(None);
                }
                Poll::Ready(None) if candidates.peek().is_none() => {
                    return Poll::Ready(Err(std::mem::take(&mut failed)));
                }
                Poll::Ready(None) => {}
                Poll::Pending if candidates.peek().is_none() || running.len() >= SINGLE_READ => {
                    return Poll::Pending;
                }
                Poll::Pending => match turn.as_mut().as_pin_mut().map(|turn| turn.poll(cx)) {
                    Some(Poll::Pending) => return Poll::Pending,
                    Some(Poll::Ready(())) | None => turn.set(None),
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

    /// Runs candidates, each with its duration in ms and its outcome. Returns the outcome of the race, and
    /// when each candidate began, in ms.
    async fn raced(candidates: &[(u64, Outcome)]) -> (Result<&'static str, Vec<&'static str>>, Vec<u128>) {
        let start = tokio::time::Instant::now();
        let begun = RefCell::new(Vec::new());
        let outcome = race(candidates, DELAY, |(takes, outcome)| {
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
    async fn the_first_that_answers_in_time_is_the_only_one_that_is_tried() {
        let (outcome, begun) = raced(&[(200, Ok("a")), (0, Ok("b"))]).await;
        assert_eq!((outcome, begun), (Ok("a"), vec![0]));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_begins_when_the_one_before_failed_or_is_slow() {
        let (outcome, begun) = raced(&[(5, Err("a")), (10_000, Ok("b")), (20, Ok("c"))]).await;
        assert_eq!((outcome, begun), (Ok("c"), vec![0, 5, 255]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_one_may_still_win() {
        let (outcome, begun) = raced(&[(300, Ok("a")), (10_000, Ok("b"))]).await;
        assert_eq!((outcome, begun), (Ok("a"), vec![0, 250]));
    }

    #[tokio::test(start_paused = true)]
    async fn all_errors_are_given_when_none_succeeds() {
        let (outcome, begun) = raced(&[(300, Err("a")), (10, Err("b")), (10, Err("c"))]).await;
        assert_eq!((outcome, begun), (Err(vec!["b", "c", "a"]), vec![0, 250, 260]));
        assert_eq!(raced(&[]).await.0, Err(vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_are_tried_at_a_time() {
        let candidates = [(3_000, Err("slow")); 20];
        let (outcome, begun) = raced(&candidates).await;
        assert_eq!(outcome.unwrap_err().len(), 20);
        assert_eq!(begun[..9], [0, 250, 500, 750, 1000, 1250, 1500, 1750, 3000]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_is_divided() {
        let within = |milliseconds| Some(now() + Duration::from_millis(milliseconds));
        assert_eq!(delay(3, None), Duration::from_millis(250));
        assert_eq!(delay(3, within(60_000)), Duration::from_millis(250));
        assert_eq!(delay(3, within(400)), Duration::from_millis(100));
        assert_eq!(delay(300, within(400)), Duration::from_millis(10));
        assert_eq!(delay(3, within(0)), Duration::from_millis(10));
        assert_eq!(share(4, within(400)), within(100));
        assert_eq!((share(1, within(400)), share(2, None)), (within(400), None));
    }
}
