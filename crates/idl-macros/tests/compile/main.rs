//! `idl!` in crates that cargo builds: messages, changes of files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod rebuild;
mod ui;
