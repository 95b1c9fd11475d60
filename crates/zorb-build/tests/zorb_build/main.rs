//! Build scripts that generate Rust from IDL.
#![allow(clippy::unwrap_used, reason = "tests")]

mod architecture;
mod build;
