//! Generated code compiles and runs in this edition, with all lints enabled that a user may have.
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    unused,
    nonstandard_style,
    future_incompatible
)]
#![deny(rust_2018_idioms, rust_2018_compatibility, rust_2021_compatibility, rust_2024_compatibility)]
#![deny(unused_qualifications, single_use_lifetimes, trivial_casts, unused_results, let_underscore_drop)]
#![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

include!("tricky.rs");
