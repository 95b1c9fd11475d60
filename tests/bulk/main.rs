//! Bulk data: direct deposit, blocks, streams, large arguments and results, fragments, flow control.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod blocks;
mod deposits;
mod elements;
mod flow;
mod fragments;
mod results;
mod sources;
mod streams;
