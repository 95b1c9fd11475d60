//! What an ORB shows of itself: the page for administrators, and metrics.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[cfg(feature = "admin")]
mod admin;
#[cfg(feature = "metrics")]
mod metrics;
