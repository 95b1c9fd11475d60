//! `idl!` in crates that cargo builds: messages, editions, changes of files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod editions;
mod rebuild;
mod ui;
