//! The naming service as seen by its clients: operations, stores, crashes, other ORBs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod architecture;
mod balance;
mod bootstrap;
mod client;
mod crash;
mod disk;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "etcd")]
mod etcd_doors;
mod federation;
mod import;
mod iterators;
mod jacorb;
mod many;
mod model;
mod omni;
mod operations;
mod support;
