//! Limits on what peers may take, and everything that breaks.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod faults;
mod limits;
mod runtime_faults;
mod signals;
