//! Bidirectional GIOP: callbacks on the connection of the client, and gateways.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod callbacks;
mod gateway;
