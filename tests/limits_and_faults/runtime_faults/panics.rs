//! A panic of a servant affects only one request.

use zorb::prelude::*;

use crate::runtime_faults::on_both_flavours;
use crate::runtime_faults::probe::{Probe, ProbeRef, tcp};

#[track_caller]
fn assert_panicked(error: &SystemException) {
    assert_eq!(
        (error.kind, error.completed),
        (SystemExceptionKind::Unknown, CompletionStatus::Maybe),
        "{error}"
    );
}

on_both_flavours! {
    // clause: exc.when.panic
    async fn a_panic_is_unknown_to_its_caller_only() {
        let tcp = tcp().await;
        for milliseconds in [0, 1, 0, 2] {
            let others = [(); 5].map(|()| {
                let probe = tcp.probe.clone();
                tokio::spawn(async move { probe.nap(5).await })
            });
            assert_panicked(&tcp.probe.stumble(milliseconds).await.unwrap_err());
            assert_eq!(tcp.probe.add(1, milliseconds as i32).await.unwrap(), 1 + milliseconds as i32);
            for other in others {
                other.await.unwrap().unwrap();
            }
        }
        assert_eq!(tcp.client.open_connections(), 1, "the connection is the same all the time");
        assert_eq!(tcp.server.shutdown().await.aborted_connections, 0);
    }

    async fn a_panic_of_a_oneway_is_counted() {
        let tcp = tcp().await;
        tcp.probe.trip().await.unwrap();
        tcp.probe.note(1).await.unwrap();
        assert_eq!(tcp.probe.noted().await.unwrap(), 1);
        assert_eq!(tcp.server.failed_oneways(), 1);
    }

    async fn a_panic_in_a_task_or_on_a_thread_is_the_same() {
        let tcp = tcp().await;
        let blocking: ProbeRef = tcp.server.activation().blocking().activate(Probe::default()).unwrap();
        let spawned: ProbeRef = tcp.server.activation().spawned().activate(Probe::default()).unwrap();
        for here in [blocking, spawned] {
            let there: ProbeRef = tcp.client.resolve(&here.to_string()).await.unwrap();
            for milliseconds in [0, 1] {
                assert_panicked(&there.stumble(milliseconds).await.unwrap_err());
                assert_eq!(there.add(2, 3).await.unwrap(), 5);
            }
        }
    }

    async fn a_panic_of_a_collocated_servant_is_the_same() {
        let tcp = tcp().await;
        for milliseconds in [0, 1] {
            assert_panicked(&tcp.here.stumble(milliseconds).await.unwrap_err());
            tcp.here.ping().await.unwrap();
        }
    }
}
