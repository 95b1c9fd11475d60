//! Types that are known at run time: requests without stubs, servants without skeletons, the Interface
//! Repository.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[cfg(feature = "dynamic")]
mod idl_types;
#[cfg(all(feature = "dynamic", feature = "interface-repository"))]
mod ifr;
mod untyped;
