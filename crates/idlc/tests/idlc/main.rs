//! The program `idlc`, and texts of many origins.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod architecture;
mod breaking;
mod cli;
mod corpus;
mod generated;
mod growth;
mod messages;
mod productions;
mod support;
