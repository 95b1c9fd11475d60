//! Calls by stubs made by hand.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod architecture;
mod blocking;
mod calls;
mod probe;
