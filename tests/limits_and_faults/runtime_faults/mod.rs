//! An application's view of faults: cut connections, dropped futures, deadlines, panics, floods of clients, a
//! shutdown under load, wrong references; and that collocated calls behave like remote ones.
//!
//! Tests without a socket use the in-memory pipe of `zorb::testing` with virtual time. Those that depend on
//! the system's sockets or on several workers run over TCP, on both flavours of tokio.

mod collocated;
mod cuts;
mod deadlines;
mod drops;
mod load;
mod panics;
mod probe;
mod references;

/// Runs the same test on both flavours of tokio, for a minute at most.
macro_rules! on_both_flavours {
    ($(async fn $name:ident() $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "what the test uses")]
            use super::*;

            #[tokio::test]
            async fn current_thread() {
                $crate::runtime_faults::within_a_minute(super::$name()).await
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn multi_thread() {
                // Not in the root task, which runs outside of the workers.
                $crate::runtime_faults::within_a_minute(async { tokio::spawn(super::$name()).await.unwrap() }).await
            }
        }

        async fn $name() $body
    )*};
}
pub(crate) use on_both_flavours;

/// Fails instead of hanging.
async fn within_a_minute<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(60), work).await.expect("it hangs")
}
