//! Transports: TCP, Unix sockets and io_uring, and the system calls that they make.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod dialing;
mod system_calls;
mod unix;
mod uring;
mod uring_threads;
