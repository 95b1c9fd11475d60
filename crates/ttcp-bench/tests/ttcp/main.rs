//! The program `ttcp`: its experiments, its page, its contract with other ORBs.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod abuse;
mod architecture;
mod contract;
mod experiments;
mod run;
mod soak;
