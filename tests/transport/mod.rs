//! Which transport the tests of TCP connections use: `ZORB_TEST_TRANSPORT=uring` makes it io_uring.
//!
//! Where there is no io_uring, tests run over epoll and say so; with `REQUIRE_URING=1` they fail.
#![allow(dead_code, clippy::panic, reason = "helpers of tests; not every one needs all of them")]

use zorb::{Orb, OrbBuilder, Transport};

/// The transport under test.
pub(crate) fn transport() -> Transport {
    match std::env::var("ZORB_TEST_TRANSPORT").as_deref() {
        Ok("uring") => Transport::IoUring,
        Ok("epoll") | Err(_) => Transport::Epoll,
        Ok(other) => panic!("ZORB_TEST_TRANSPORT is `{other}`, neither `epoll` nor `uring`"),
    }
}

/// A builder of ORBs that use it.
pub(crate) fn builder() -> OrbBuilder {
    Orb::builder().transport(transport())
}

/// The ORB has made connections, on a current_thread runtime: they must be of the transport asked for.
#[track_caller]
pub(crate) fn assert_used(orb: &Orb) {
    let stats = orb.transport_stats();
    match transport() {
        Transport::IoUring if stats.fallbacks == 0 => {
            assert!(stats.ring_connections > 0 && stats.submissions > 0, "{stats:?}");
        }
        Transport::IoUring => {
            assert!(std::env::var_os("REQUIRE_URING").is_none(), "there is no io_uring: {stats:?}");
            eprintln!("SKIPPED: no io_uring here, tests run over epoll");
        }
        _ => assert_eq!((stats.ring_connections, stats.fallbacks, stats.submissions), (0, 0, 0)),
    }
}
