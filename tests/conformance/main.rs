//! What zorb promises: the rules of the OMG's texts, captured messages, and the contents of its packages.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod clauses;
mod fixtures;
mod fuzzing;
mod package;
