//! A period in which the disk accepts no writes.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time after the first failure until the disk is tried again. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The maximum time until the next attempt, unless the attempts themselves take long.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The reciprocal of the share of time that attempts may take. Each attempt may read the whole file.
const SHARE: u32 = 10;

/// A period in which changes are refused because the disk failed.
#[derive(Debug)]
pub(super) struct Outage {
    what: String,
    began: Instant,
    next: Instant,
    pause: Duration,
}

impl Outage {
    pub(super) fn new(what: String) -> Self {
        let now = Instant::now();
        Self { what, began: now, next: now + FIRST_PAUSE, pause: FIRST_PAUSE }
    }

    /// Continues the outage after another failed attempt, which took `took`.
    pub(super) fn again(self, what: String, took: Duration) -> Self {
        let pause = (self.pause * 2).min(LONGEST_PAUSE).max(took * SHARE);
        Self { what, next: Instant::now() + pause, pause, ..self }
    }

    /// Returns the result of the last attempt.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Returns the time at which the disk is tried again.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn is_due(&self) -> bool {
        self.next <= Instant::now()
    }
}

/// A description of the problem of a store, for administrators.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Option<String>>);

impl Health {
    /// Returns the description of a failure.
    pub(super) fn of(path: &Path, what: &str) -> String {
        format!("names are not stored in {}: {what}", path.display())
    }

    pub(super) fn set(&self, problem: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
