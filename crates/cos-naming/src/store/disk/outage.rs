//! [`Outage`], a period in which the disk accepts no writes, and [`Health`], which describes it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time from the first failure to the next attempt. It is doubled after each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The maximum time from a failure to the next attempt, unless [`MIN_PAUSE_RATIO`] requires more.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The pause after an attempt is at least the duration of the attempt, multiplied by this number. An attempt
/// may take long, because it may read the whole file.
const MIN_PAUSE_RATIO: u32 = 10;

/// A period in which changes are rejected because the disk failed.
#[derive(Debug)]
pub(super) struct Outage {
    last_error: String,
    start: Instant,
    next_attempt: Instant,
    pause: Duration,
}

impl Outage {
    pub(super) fn new(error: String) -> Self {
        let now = Instant::now();
        Self { last_error: error, start: now, next_attempt: now + FIRST_PAUSE, pause: FIRST_PAUSE }
    }

    /// Continues the outage after a failed attempt that took `attempt_time`.
    pub(super) fn after_failed_attempt(self, error: String, attempt_time: Duration) -> Self {
        let pause = (self.pause * 2).min(MAX_PAUSE).max(attempt_time * MIN_PAUSE_RATIO);
        Self { last_error: error, next_attempt: Instant::now() + pause, pause, ..self }
    }

    pub(super) fn last_error(&self) -> &str {
        &self.last_error
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    pub(super) fn next_attempt(&self) -> Instant {
        self.next_attempt
    }

    pub(super) fn is_due(&self) -> bool {
        self.next_attempt <= Instant::now()
    }
}

/// The description of the current problem of a store, for administrators.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Option<String>>);

impl Health {
    /// Returns the description of a failure to write the file `path`.
    pub(super) fn describe(path: &Path, reason: &str) -> String {
        format!("names cannot be stored in {}: {reason}", path.display())
    }

    pub(super) fn set(&self, problem: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
