//! What the tests of several crates need: the transport under test, test data, certificates, requests as
//! bytes, and the programs of other ORBs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

pub mod certificates;
pub mod contents;
pub mod events;
pub mod peers;
pub mod raw_requests;
pub mod transport;
