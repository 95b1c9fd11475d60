//! Tests of calls over TCP and over the in-memory pipe: results, order, failures, deadlines, cancellation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::probe::{Probe, ProbeRef, builder};
use bytes::Bytes;
use orb_runtime::testing::{PipeFaults, pair};
use orb_runtime::{
    CompletionStatus, NarrowError, Orb, Reference, ResolveError, Retry, SyncScope, SystemExceptionKind,
};

async fn over_tcp() -> (Orb, Orb, ProbeRef) {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let here: ProbeRef = server.activate_named("Probe", Probe::default()).unwrap();
    let client = builder().build().await.unwrap();
    let there = client.resolve(&here.to_string()).await.unwrap();
    (server, client, there)
}

#[tokio::test]
async fn a_call_over_tcp_brings_its_result() {
    let (server, _client, probe) = over_tcp().await;
    probe.ping().await.unwrap();
    assert_eq!(probe.add(40, 2).await.unwrap(), 42);
    for size in [0, 1, 5000, 70_000, 3 << 20] {
        let octets = Bytes::from(vec![7; size]);
        assert_eq!(probe.echo(octets.clone()).await.unwrap(), octets, "{size}");
    }
    assert_eq!(server.shutdown().await.aborted_connections, 0);
}

// clause: ior.component.orb_type
#[tokio::test]
async fn references_say_which_orb_made_them() {
    let (_server, client, remote) = over_tcp().await;
    let own = remote.ior().iiop_profile().unwrap();
    assert_eq!(own.orb_type(), Some(giop_codec::ior::OrbType::ZORB));
    let passed_on: ProbeRef = client.resolve(&remote.to_string()).await.unwrap();
    assert_eq!(passed_on.ior(), remote.ior());
}

// clause: giop.connection.reuse
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_share_one_connection() {
    let (server, client, probe) = over_tcp().await;
    let mut tasks = Vec::new();
    for i in 0..50 {
        let probe = probe.clone();
        tasks.push(tokio::spawn(async move {
            for k in 0..200 {
                assert_eq!(probe.add(i, k).await.unwrap(), i + k);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(client.open_connections(), 1);
    server.shutdown().await;
}

// clause: giop.version.lower, ior.corbaloc.plain_key, ior.object.locate, ior.object.non_existent
#[tokio::test]
async fn a_plain_key_answers_by_corbaloc_in_every_version() {
    let (server, client, _) = over_tcp().await;
    let address = server.endpoints().remove(0);
    for version in ["1.0", "1.1", "1.2"] {
        let url = format!("corbaloc:iiop:{version}@{address}/Probe");
        let probe: ProbeRef = client.resolve(&url).await.unwrap();
        assert_eq!(probe.add(1, 2).await.unwrap(), 3, "{version}");
        let octets = Bytes::from(vec![1; 100_000]);
        assert_eq!(probe.echo(octets.clone()).await.unwrap(), octets);
        assert!(probe.locate().await.unwrap());
        assert!(!probe.non_existent().await.unwrap());
    }
}

#[tokio::test]
async fn the_wrong_interface_is_named() {
    let (server, client, probe) = over_tcp().await;
    #[derive(Clone, Debug)]
    struct Other(orb_runtime::ObjectRef);
    impl std::fmt::Display for Other {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt(f)
        }
    }
    impl Reference for Other {
        const REPOSITORY_ID: &'static str = "IDL:Other:1.0";
        fn from_object(object: orb_runtime::ObjectRef) -> Self {
            Self(object)
        }
        fn as_object(&self) -> &orb_runtime::ObjectRef {
            &self.0
        }
    }
    let error = client.resolve::<Other>(&probe.to_string()).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ResolveError::Narrow(NarrowError::WrongInterface { .. })));
    assert!(text.contains("IDL:Other:1.0") && text.contains("IDL:Probe:1.0"), "{text}");
    drop(server);
}

// clause: exc.kind.bad_operation, exc.kind.object_not_exist, giop.locate.request, giop.locate.unknown_object
// clause: poa.request.operation
#[tokio::test]
async fn unknown_objects_and_operations_are_exceptions() {
    let (server, client, probe) = over_tcp().await;
    assert_eq!(probe.nonsense().await.unwrap_err().kind, SystemExceptionKind::BadOperation);
    let url = format!("corbaloc:iiop:1.2@{}/Nobody", server.endpoints()[0]);
    let nobody: ProbeRef = client.resolve_unchecked(&url).await.unwrap();
    let error = nobody.ping().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
    assert!(nobody.non_existent().await.unwrap());
    assert!(!nobody.locate().await.unwrap());
}

// clause: exc.when.panic, exc.completed.servant, exc.kind.unknown
#[tokio::test]
async fn a_panic_costs_one_request() {
    let (_server, _client, probe) = over_tcp().await;
    let error = probe.panic().await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Unknown, CompletionStatus::Maybe));
    probe.ping().await.unwrap();
}

// clause: giop.connection.refused, exc.when.refused, exc.completed.connect
#[tokio::test]
async fn a_dead_server_is_named_with_the_systems_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = builder().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.2@{address}/Probe");
    let probe: ProbeRef = client.resolve_unchecked(&url).await.unwrap();
    let error = probe.ping().await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("refused"), "{text}");
}

// clause: exc.when.request_timeout, giop.cancel.reply_dropped
#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_call_and_the_connection_stays_good() {
    let pair = pair();
    let here: ProbeRef = pair.server.activate_named("Probe", Probe::default()).unwrap();
    let probe: ProbeRef = pair.client.resolve(&here.to_string()).await.unwrap();
    let error = probe.with_timeout(Duration::from_millis(50)).sleep(10_000).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    assert_eq!(probe.add(1, 1).await.unwrap(), 2);
    assert_eq!(pair.client.open_connections(), 1);
}

// clause: giop.cancel.server
#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it_at_the_servant() {
    let pair = pair();
    let servant = Probe::default();
    let cancelled = Arc::clone(&servant.cancelled);
    let here: ProbeRef = pair.server.activate(servant).unwrap();
    let probe: ProbeRef = pair.client.resolve(&here.to_string()).await.unwrap();
    let call = tokio::time::timeout(Duration::from_millis(10), probe.sleep(1000));
    assert!(call.await.is_err());
    assert_eq!(probe.add(2, 3).await.unwrap(), 5);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn oneways_finish_before_the_next_request_of_the_object_starts() {
    let pair = pair();
    let here: ProbeRef = pair.server.activate(Probe::default()).unwrap();
    let probe: ProbeRef = pair.client.resolve(&here.to_string()).await.unwrap();
    for (value, milliseconds) in [(1, 30), (2, 0), (3, 20), (4, 0)] {
        probe.note(value, milliseconds).await.unwrap();
    }
    assert_eq!(probe.notes().await.unwrap(), [1, 2, 3, 4]);
}

// clause: poa.messaging.sync_scope.none, poa.messaging.sync_scope.with_server
// clause: poa.messaging.sync_scope.with_target, giop.response_flags.server, giop.response_flags.target
#[tokio::test(start_paused = true)]
async fn oneways_complete_at_their_scope() {
    use orb_runtime::SyncScope;
    let pair = pair();
    let here: ProbeRef = pair.server.activate(Probe::default()).unwrap();
    let probe: ProbeRef = pair.client.resolve(&here.to_string()).await.unwrap();
    let start = tokio::time::Instant::now();
    for (scope, waits) in [
        (SyncScope::Queued, false),
        (SyncScope::Transport, false),
        (SyncScope::Server, false),
        (SyncScope::Target, true),
    ] {
        let before = start.elapsed();
        probe.with_sync_scope(scope).note(1, 100).await.unwrap();
        let took = start.elapsed() - before;
        assert_eq!(took >= Duration::from_millis(100), waits, "{scope:?} took {took:?}");
        assert!(!probe.notes().await.unwrap().is_empty());
    }
    assert_eq!(probe.notes().await.unwrap(), [1; 4]);
}

#[tokio::test(start_paused = true)]
async fn every_way_of_cutting_reads_and_writes_gives_the_same() {
    for (max_read_bytes, max_write_bytes) in [(1, usize::MAX), (usize::MAX, 1), (3, 7), (1, 1)] {
        let pair = pair();
        let mut faults = PipeFaults::default();
        (faults.max_read_bytes, faults.max_write_bytes) = (max_read_bytes, max_write_bytes);
        pair.set_faults(faults, faults);
        let here: ProbeRef = pair.server.activate(Probe::default()).unwrap();
        let probe: ProbeRef = pair.client.resolve(&here.to_string()).await.unwrap();
        assert_eq!(probe.add(1, 2).await.unwrap(), 3);
        let octets = Bytes::from(vec![9; 20_000]);
        assert_eq!(probe.echo(octets.clone()).await.unwrap(), octets);
    }
}

// clause: giop.connection.lost
#[tokio::test(start_paused = true)]
async fn a_connection_cut_anywhere_fails_the_call_and_the_next_reconnects() {
    for cut in (0..400).step_by(7) {
        let pair = pair();
        let here: ProbeRef = pair.server.activate(Probe::default()).unwrap();
        let probe: ProbeRef = pair.client.resolve_unchecked(&here.to_string()).await.unwrap();
        let mut faults = PipeFaults::default();
        faults.cut_after = Some(cut);
        pair.set_faults(PipeFaults::default(), faults);
        let mut seen = 0;
        for _ in 0..40 {
            match probe.with_retry(Retry::Never).add(1, 2).await {
                Ok(sum) => assert_eq!(sum, 3),
                Err(error) => {
                    assert!(matches!(
                        error.kind,
                        SystemExceptionKind::CommFailure | SystemExceptionKind::Transient
                    ));
                    seen += 1;
                    pair.set_faults(PipeFaults::default(), PipeFaults::default());
                }
            }
        }
        assert_eq!(seen, 1, "cut after {cut}");
    }
}

#[tokio::test]
async fn collocated_calls_go_straight_to_the_servant() {
    let orb = builder().build().await.unwrap();
    let probe: ProbeRef = orb.activate(Probe::default()).unwrap();
    probe.ping().await.unwrap();
    assert_eq!(orb.open_connections(), 0);
    assert!(probe.to_string().contains(".listen("), "{probe}");
    assert!(orb.deactivate(&probe));
    assert_eq!(probe.ping().await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    let probe: ProbeRef = orb_runtime::testing::local(Probe::default());
    probe.ping().await.unwrap();
}

#[tokio::test]
async fn held_requests_are_served_after_accept() {
    let server = builder().listen("iiop://127.0.0.1:0").start_paused().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.2@{}/Probe", server.endpoints()[0]);
    let client = builder().build().await.unwrap();
    let probe: ProbeRef = client.resolve_unchecked(&url).await.unwrap();
    let call = tokio::spawn(async move { probe.add(1, 2).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!call.is_finished());
    let _probe: ProbeRef = server.activate_named("Probe", Probe::default()).unwrap();
    server.resume();
    assert_eq!(call.await.unwrap().unwrap(), 3);
}

// clause: poa.orb.shutdown_waits
#[tokio::test]
async fn shutdown_lets_requests_finish_and_answers_no_more() {
    let (server, _client, probe) = over_tcp().await;
    let other = probe.clone();
    let before = server.stats().messages_in;
    let call = tokio::spawn(async move { other.sleep(50).await });
    while server.stats().messages_in == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let report = server.shutdown().await;
    assert_eq!(report.aborted_connections, 0);
    call.await.unwrap().unwrap();
    let error = probe.ping().await.unwrap_err();
    assert_eq!(error.completed, CompletionStatus::No, "{error}");
}

#[tokio::test]
async fn blocking_and_spawned_servants_serve() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = builder().build().await.unwrap();
    let blocking: ProbeRef = server.activation().blocking().activate(Probe::default()).unwrap();
    let spawned: ProbeRef = server.activation().spawned().concurrent().activate(Probe::default()).unwrap();
    for here in [blocking, spawned] {
        let there: ProbeRef = client.resolve(&here.to_string()).await.unwrap();
        assert_eq!(there.add(20, 3).await.unwrap(), 23);
        assert_eq!(there.panic().await.unwrap_err().kind, SystemExceptionKind::Unknown);
        there.sleep(1).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn dropped_calls_do_not_stall_other_calls() {
    let (server, client, probe) = over_tcp().await;
    let mut tasks = Vec::new();
    for i in 0..6_u64 {
        let probe = probe.clone();
        tasks.push(tokio::spawn(async move {
            let mut random = i + 1;
            for k in 0..1500 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                match (random >> 33) % 8 {
                    // The call is dropped after a while, answered or not.
                    0 => {
                        drop(tokio::time::timeout(Duration::from_micros(random >> 58), probe.add(1, 1)).await)
                    }
                    1 => tokio::time::sleep(Duration::from_micros(random >> 56)).await,
                    2 => {
                        let (a, b) = tokio::join!(probe.add(k, 1), probe.add(k, 2));
                        assert_eq!((a.unwrap(), b.unwrap()), (k + 1, k + 2));
                    }
                    3 => probe.note(0, 0).await.unwrap(),
                    _ => assert_eq!(probe.add(k, 5).await.unwrap(), k + 5),
                }
            }
        }));
    }
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(50), task).await.unwrap().unwrap();
    }
    assert_eq!(client.open_connections(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn references_that_share_a_connection_reach_their_own_objects() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = builder().build().await.unwrap();
    let mut probes: Vec<ProbeRef> = Vec::new();
    for i in 0..12 {
        let here: ProbeRef = server.activate_named(format!("probe {i}"), Probe::default()).unwrap();
        probes.push(client.resolve(&here.to_string()).await.unwrap());
    }
    // There are more operations than cached headers, and all are used repeatedly.
    for round in 0..3 {
        for (i, probe) in (0..).zip(&probes) {
            probe.note(i, 0).await.unwrap();
            assert_eq!(probe.add(i, round).await.unwrap(), i + round);
            let synchronised = probe.with_sync_scope(SyncScope::Target);
            synchronised.note(i + 100, 0).await.unwrap();
        }
    }
    for (i, probe) in (0..).zip(&probes) {
        assert_eq!(probe.notes().await.unwrap(), [i, i + 100, i, i + 100, i, i + 100]);
    }
    assert_eq!(client.open_connections(), 1);
}
