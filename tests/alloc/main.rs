//! Allocations and copies, counted on the thread of the test.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod allocations;
mod copies;
mod objects;
mod zero_copy;
