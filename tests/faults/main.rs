//! Everything that breaks around an ORB: peers that die, go silent, are slow or talk nonsense, messages cut and garbled, descriptors
//! that run out, servants that do not answer, futures that are dropped, servers that end or start again in the middle of it.
//!
//! `docs/RELIABILITY.md` says what becomes of calls in each of these. Tests in memory run in virtual time and, where a seed decides
//! what happens, are replayed by `ZORB_FAULTS=SEED`. Those with processes (`processes`, `network`) start this program again in
//! a role of its own (`role`).
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod breaks;
#[path = "../contents/mod.rs"]
mod contents;
mod crowd;
mod drops;
mod endings;
mod messages;
mod network;
mod processes;
mod role;
mod script;
mod servants;
mod shutdown;
mod target;
#[path = "../transport/mod.rs"]
mod transport;
