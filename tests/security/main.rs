//! TLS, and the identity of callers.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[cfg(all(feature = "csi", feature = "tls"))]
mod csi;
#[cfg(feature = "tls")]
mod tls;
