//! Bounds of the number of bindings that are listed, and of the time for it.

use std::future::Future;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, timeout_at};

use crate::options;

/// Maximum number of consecutive empty answers of an iterator.
const EMPTY: u32 = 100;

/// Options of commands that list names.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Bounds {
    /// Bindings that are listed at most
    #[arg(long, value_name = "BINDINGS", default_value_t = 100_000)]
    most: usize,
    /// How long all of it may take; --timeout is for each call
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = options::duration)]
    within: Duration,
}

/// The remainder of these bounds.
#[derive(Debug)]
pub(super) struct Left {
    bindings: usize,
    bounds: Bounds,
    until: Instant,
    empty: u32,
}

/// The reason why the list is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// There are more bindings than the maximum.
    Most,
    /// The time has expired.
    Time,
    /// The service returns empty answers without an end.
    Empty,
    /// Standard output is closed.
    Closed,
}

impl Bounds {
    /// Starts the time.
    pub(super) fn start(self) -> Left {
        // A duration that is too long is limited to 30 years.
        let far = Duration::from_secs(30 * 365 * 86_400);
        let until = Instant::now() + self.within.min(far);
        Left { bindings: self.most, bounds: self, until, empty: 0 }
    }
}

impl Left {
    /// Returns the result of `work`, unless the time expires first.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        timeout_at(self.until, work).await.map_err(|_| Stop::Time)
    }

    /// Counts an answer with this number of bindings.
    ///
    /// # Errors
    /// [`Stop::Empty`]: too many consecutive answers were empty.
    pub(super) fn answer(&mut self, bindings: usize) -> Result<(), Stop> {
        self.empty = if bindings == 0 { self.empty + 1 } else { 0 };
        if self.empty >= EMPTY { Err(Stop::Empty) } else { Ok(()) }
    }

    /// Counts a binding to list.
    ///
    /// # Errors
    /// [`Stop::Most`]: the maximum number of bindings is already listed.
    pub(super) fn binding(&mut self) -> Result<(), Stop> {
        self.bindings = self.bindings.checked_sub(1).ok_or(Stop::Most)?;
        Ok(())
    }

    /// Returns a message with what to do; `None` if standard output is closed.
    pub(super) fn text(&self, stop: Stop) -> Option<String> {
        let Bounds { most, within } = self.bounds;
        Some(match stop {
            Stop::Most => {
                format!("there is more than {most} bindings: --most {} lists more", most.saturating_mul(10))
            }
            Stop::Time => {
                format!(
                    "not all of it came within {within:?}: --within {:?} waits longer",
                    within.saturating_mul(10)
                )
            }
            Stop::Empty => {
                format!("the service answered {EMPTY} times that there is more, without a binding")
            }
            Stop::Closed => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_counted_up_to_the_bound() {
        let mut left = Bounds { most: 5, within: Duration::from_secs(60) }.start();
        let listed = (0..10).take_while(|_| left.binding().is_ok()).count();
        assert_eq!((listed, left.binding()), (5, Err(Stop::Most)));
        assert!(left.text(Stop::Most).unwrap().contains("more than 5 bindings: --most 50"));
        assert!(left.text(Stop::Time).unwrap().contains("within 60s: --within 600s"));
    }

    #[test]
    fn answers_without_bindings_end() {
        let mut left = Bounds { most: 5, within: Duration::MAX }.start();
        for _ in 0..EMPTY - 1 {
            assert_eq!(left.answer(0), Ok(()));
        }
        assert_eq!(left.answer(0), Err(Stop::Empty));
        assert_eq!(left.answer(1), Ok(()));
    }
}
