//! A time in which the disk takes nothing.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long after the first failure the disk is tried again; each further time after twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// After how long it is tried again at the latest, unless an attempt itself takes long.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Which part of the time attempts may take: each may read the whole file.
const SHARE: u32 = 10;

/// A time in which changes are refused, because the disk failed.
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

    /// It goes on after an attempt that took so long.
    pub(super) fn again(self, what: String, took: Duration) -> Self {
        let pause = (self.pause * 2).min(LONGEST_PAUSE).max(took * SHARE);
        Self { what, next: Instant::now() + pause, pause, ..self }
    }

    /// What the last attempt brought.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// When the disk is tried again.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn is_due(&self) -> bool {
        self.next <= Instant::now()
    }
}

/// What is wrong with a store, for people.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Option<String>>);

impl Health {
    /// What is said of a failure.
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
