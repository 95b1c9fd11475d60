//! Limits of commands that list names: the number of bindings, and the time.

use std::future::Future;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, timeout_at};

use crate::options;

const MAX_EMPTY_PAGES: u32 = 100;

/// Options of commands that list names.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ListLimits {
    /// The maximum number of bindings that are listed
    #[arg(long = "most", value_name = "BINDINGS", default_value_t = 100_000)]
    max_bindings: usize,
    /// The maximum time for the whole list; --timeout limits each call
    #[arg(long = "within", value_name = "TIME", default_value = "60s", value_parser = options::duration)]
    max_time: Duration,
}

/// The part of the limits that a running command has not used yet.
#[derive(Debug)]
pub(super) struct RemainingLimits {
    /// The number of bindings that may still be listed.
    bindings: usize,
    limits: ListLimits,
    deadline: Instant,
    empty_pages: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// There are more bindings than `max_bindings`.
    TooMany,
    Timeout,
    /// The service returned too many consecutive empty pages.
    EmptyPages,
    /// Standard output is closed, or a write to it failed.
    Closed,
}

impl ListLimits {
    pub(super) fn begin(self) -> RemainingLimits {
        // The time is limited to 30 years, so that the sum does not overflow.
        let max = Duration::from_secs(30 * 365 * 86_400);
        let deadline = Instant::now() + self.max_time.min(max);
        RemainingLimits { bindings: self.max_bindings, limits: self, deadline, empty_pages: 0 }
    }
}

impl RemainingLimits {
    /// Returns the result of `work`, unless the time expires first.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, StopReason> {
        timeout_at(self.deadline, work).await.map_err(|_| StopReason::Timeout)
    }

    pub(super) fn count_page(&mut self, bindings: usize) -> Result<(), StopReason> {
        self.empty_pages = if bindings == 0 { self.empty_pages + 1 } else { 0 };
        if self.empty_pages >= MAX_EMPTY_PAGES { Err(StopReason::EmptyPages) } else { Ok(()) }
    }

    pub(super) fn count_binding(&mut self) -> Result<(), StopReason> {
        self.bindings = self.bindings.checked_sub(1).ok_or(StopReason::TooMany)?;
        Ok(())
    }

    /// Returns a message that says which option helps, or `None` for [`StopReason::Closed`].
    pub(super) fn message(&self, stop: StopReason) -> Option<String> {
        let ListLimits { max_bindings: max, max_time } = self.limits;
        Some(match stop {
            StopReason::TooMany => {
                format!("there are more than {max} bindings; --most {} lists more", max.saturating_mul(10))
            }
            StopReason::Timeout => {
                format!(
                    "the list was not complete within {max_time:?}; --within {:?} waits longer",
                    max_time.saturating_mul(10)
                )
            }
            StopReason::EmptyPages => {
                format!("the service returned {MAX_EMPTY_PAGES} consecutive pages without bindings")
            }
            StopReason::Closed => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_counted_up_to_the_maximum() {
        let mut remaining = ListLimits { max_bindings: 5, max_time: Duration::from_secs(60) }.begin();
        let listed = (0..10).take_while(|_| remaining.count_binding().is_ok()).count();
        assert_eq!((listed, remaining.count_binding()), (5, Err(StopReason::TooMany)));
        assert!(remaining.message(StopReason::TooMany).unwrap().contains("more than 5 bindings; --most 50"));
        assert!(remaining.message(StopReason::Timeout).unwrap().contains("within 60s; --within 600s"));
    }

    #[test]
    fn too_many_empty_pages_end_the_list() {
        let mut remaining = ListLimits { max_bindings: 5, max_time: Duration::MAX }.begin();
        for _ in 0..MAX_EMPTY_PAGES - 1 {
            assert_eq!(remaining.count_page(0), Ok(()));
        }
        assert_eq!(remaining.count_page(0), Err(StopReason::EmptyPages));
        assert_eq!(remaining.count_page(1), Ok(()));
    }
}
