//! The transport of the tests of TCP connections. `ZORB_TEST_TRANSPORT=uring` selects io_uring.
//! `uring-threads` selects io_uring on two threads of each ORB's own, as `uring` does for tests on a runtime
//! with several threads.
//!
//! Without io_uring, tests run over epoll and report that; with `REQUIRE_URING=1` they fail.

use zorb::{Orb, OrbBuilder, Transport};

/// Returns the transport under test.
pub fn transport() -> Transport {
    match std::env::var("ZORB_TEST_TRANSPORT").as_deref() {
        Ok("uring") if on_one_thread() => Transport::IoUring,
        Ok("uring" | "uring-threads") => Transport::IoUringThreads(2),
        Ok("epoll") | Err(_) => Transport::Epoll,
        Ok(other) => panic!("ZORB_TEST_TRANSPORT is `{other}`, none of `epoll`, `uring` and `uring-threads`"),
    }
}

fn on_one_thread() -> bool {
    let runtime = tokio::runtime::Handle::try_current();
    !runtime.is_ok_and(|runtime| runtime.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread)
}

/// Returns a builder of ORBs that use it.
pub fn builder() -> OrbBuilder {
    Orb::builder().transport(transport())
}

/// Returns whether ORBs have threads of their own.
pub fn has_threads() -> bool {
    matches!(transport(), Transport::IoUringThreads(_))
}

/// Returns two ORBs that call each other: by pipes in memory, or by TCP if a transport is selected.
pub async fn pair() -> Pair {
    if std::env::var_os("ZORB_TEST_TRANSPORT").is_none() {
        let zorb::testing::Pair { client, server, .. } = zorb::testing::pair();
        return Pair { client, server, over_tcp: false };
    }
    let open = async || builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    Pair { client: open().await, server: open().await, over_tcp: true }
}

/// See [`pair`].
pub struct Pair {
    /// The ORB that calls.
    pub client: Orb,
    /// The ORB that serves; over TCP it listens.
    pub server: Orb,
    over_tcp: bool,
}

impl Pair {
    /// Returns the server as the client names it.
    pub fn server_peer(&self) -> String {
        if self.over_tcp { self.server.endpoints().remove(0) } else { "in-memory pipe".to_owned() }
    }
}

impl Drop for Pair {
    /// Checks that the test used the selected transport.
    fn drop(&mut self) {
        if self.over_tcp && !std::thread::panicking() {
            assert_used(&self.client);
            assert_used(&self.server);
        }
    }
}

/// Asserts that the ORB has opened connections, and that they use the selected transport.
#[track_caller]
pub fn assert_used(orb: &Orb) {
    let stats = orb.transport_stats();
    match transport() {
        Transport::IoUring | Transport::IoUringThreads(_) if stats.fallbacks == 0 => {
            assert!(
                stats.ring_connections > 0 && stats.submissions > 0 && stats.enter_calls > 0,
                "{stats:?}"
            );
            assert_eq!(stats.threads, if transport() == Transport::IoUring { 0 } else { 2 }, "{stats:?}");
        }
        Transport::IoUring | Transport::IoUringThreads(_) => {
            assert!(std::env::var_os("REQUIRE_URING").is_none(), "there is no io_uring: {stats:?}");
            eprintln!("SKIPPED: no io_uring here, tests run over epoll");
        }
        _ => assert_eq!((stats.ring_connections, stats.fallbacks, stats.submissions), (0, 0, 0)),
    }
}
