//! What an application sees when something breaks: cut connections, dropped futures, deadlines, panics, floods of
//! clients, a shutdown under load, wrong references; and that collocated calls behave as remote ones.
//!
//! Tests without a socket use the in-memory pipe of `zorb::testing` with virtual time; those where the system's sockets or
//! several workers matter run over TCP, on both flavours of tokio.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod collocated;
mod cuts;
mod deadlines;
mod drops;
mod load;
mod panics;
mod probe;
mod references;
#[path = "../transport/mod.rs"]
mod transport;

/// The same test on both flavours of tokio, and never longer than a minute.
macro_rules! on_both_flavours {
    ($(async fn $name:ident() $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "what the test uses")]
            use super::*;

            #[tokio::test]
            async fn current_thread() {
                $crate::within_a_minute(super::$name()).await
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn multi_thread() {
                // Not in the root task, which runs outside the workers.
                $crate::within_a_minute(async { tokio::spawn(super::$name()).await.unwrap() }).await
            }
        }

        async fn $name() $body
    )*};
}
pub(crate) use on_both_flavours;

/// Fails rather than hangs.
async fn within_a_minute<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(60), work).await.expect("it hangs")
}
