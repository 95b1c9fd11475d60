//! The orderly end of a server: how callers are notified, in any state of a request or its connection.

use std::io::{Read, Write};
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use zorb::poa::{Refusal, ServantActivator};
use zorb::prelude::*;
use zorb::testing::{Pair, pair, pair_of};
use zorb::{ObjectId, Peer, Poa, Servant};

use crate::faults::target::{TargetRef, over};

zorb::idl! {
    module Ending {
        interface Adder {
            long add(in long a, in long b);
        };
        interface Nested {
            /// Waits until it may go on, and then has others add.
            long sum(in long a);
        };
    };
}

use ending::{AdderRef, AdderServant, NestedRef, NestedServant};

struct Adder;

impl AdderServant for Adder {
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }
}

struct Maker;

impl ServantActivator for Maker {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(Servant::of::<AdderRef, _>(Adder))
    }
}

#[derive(Default)]
struct Nested {
    others: Vec<AdderRef>,
    here: Notify,
    go: Notify,
}

impl NestedServant for Arc<Nested> {
    async fn sum(&self, a: i32) -> Result<i32, SystemException> {
        self.here.notify_one();
        self.go.notified().await;
        let mut sum = a;
        for other in &self.others {
            sum = other.add(sum, 1).await?;
        }
        Ok(sum)
    }
}

/// Returns the server's object as the client sees it.
async fn seen_by_client<R: Reference>(orbs: &Pair, here: &R) -> R {
    orbs.client.resolve_unchecked(&here.to_string()).await.unwrap()
}

#[tokio::test]
async fn unaccepted_connections_get_close_connection_at_shutdown() {
    let server = test_support::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    // They are connected, and have sent data, before the server's task runs again.
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&server.endpoints()[0]).unwrap();
            stream.write_all(b"GIOP\x01\x02\x00\x00").unwrap();
            stream.set_nonblocking(true).unwrap();
            tokio::net::TcpStream::from_std(stream).unwrap()
        })
        .collect();
    let told = clients.into_iter().map(|mut stream| async move {
        let mut came = Vec::new();
        // Their data was not processed, which CloseConnection confirms. A reset would leave that open.
        stream.read_to_end(&mut came).await.map(|_| came)
    });
    let (report, told) = tokio::join!(server.shutdown(), futures_util::future::join_all(told));
    for came in told {
        let came = came.unwrap();
        assert!(came.len() == 12 && came.starts_with(b"GIOP") && came[7] == 5, "{came:?}");
    }
    assert_eq!(report.aborted_connections, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_during_listener_shutdown_are_closed_or_refused() {
    for _ in 0..4 {
        let server =
            test_support::transport::builder().listen("iiop://127.0.0.1:0").max_connections(10_000, 10_000);
        let server = server.build().await.unwrap();
        let address = server.endpoints()[0].clone();
        let comers: Vec<_> = (0..2)
            .map(|_| {
                let address = address.clone();
                tokio::task::spawn_blocking(move || {
                    let mut connected = Vec::new();
                    while let Ok(mut stream) = std::net::TcpStream::connect(&address)
                        && connected.len() < 1000
                    {
                        let sent = stream.write_all(b"GIOP\x01\x02\x00\x00");
                        connected.push((stream, sent));
                    }
                    for (mut stream, sent) in connected {
                        let mut came = Vec::new();
                        let ended = stream.read_to_end(&mut came);
                        assert!(came.len() == 12 && came[7] == 5, "{came:?} {sent:?} {ended:?}");
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(2)).await;
        server.shutdown().await;
        for comer in comers {
            comer.await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn servants_at_work_may_call_others_while_the_orb_closes() {
    let orbs = pair();
    let near: AdderRef = orbs.server.activate(Adder).unwrap();
    let far: AdderRef = orbs.client.activate(Adder).unwrap();
    let far: AdderRef = orbs.server.resolve_unchecked(&far.to_string()).await.unwrap();
    // It is incarnated when it is called, which an ORB does by messages to itself.
    let poa = orbs.server.root_poa().child("made").user_ids().servant_activator(Maker).create().unwrap();
    let made: AdderRef = poa.create_reference_with_id("one").unwrap();
    let nested = Arc::new(Nested { others: vec![near.clone(), far.clone(), made], ..Nested::default() });
    let here: NestedRef = orbs.server.activate(Arc::clone(&nested)).unwrap();
    let outer = seen_by_client(&orbs, &here).await;
    assert_eq!(far.add(1, 2).await.unwrap(), 3, "a connection is there");
    let call = tokio::spawn(async move { outer.sum(39).await });
    nested.here.notified().await;
    let server = orbs.server.clone();
    let ends = tokio::spawn(async move { server.shutdown().await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    // Other callers can no longer begin a call.
    for other in [&near, &far] {
        let error = other.add(1, 2).await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
    }
    nested.go.notify_one();
    assert_eq!(call.await.unwrap().unwrap(), 42);
    assert_eq!(ends.await.unwrap().aborted_connections, 0);
}

#[tokio::test(start_paused = true)]
async fn servants_at_work_may_call_their_clients_back_while_the_orb_closes() {
    let everywhere = Orb::builder().accept_bidirectional(|_: &Peer, _: &str, _: u16| true);
    let orbs = pair_of(Orb::builder().offer_bidirectional(), everywhere);
    let far: AdderRef = orbs.client.activate(Adder).unwrap();
    let far: AdderRef = orbs.server.resolve_unchecked(&far.to_string()).await.unwrap();
    let nested = Arc::new(Nested { others: vec![far.clone(), far], ..Nested::default() });
    let here: NestedRef = orbs.server.activate(Arc::clone(&nested)).unwrap();
    let outer = seen_by_client(&orbs, &here).await;
    let call = tokio::spawn(async move { outer.sum(40).await });
    nested.here.notified().await;
    // The client can only be reached over the connection that is being closed.
    orbs.set_refusing(true);
    let server = orbs.server.clone();
    let ends = tokio::spawn(async move { server.shutdown().await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    nested.go.notify_one();
    assert_eq!(call.await.unwrap().unwrap(), 42);
    assert_eq!(ends.await.unwrap().aborted_connections, 0);
}

/// Shuts the server down while it holds the call. Returns how the call ended.
async fn ended_while_kept(orbs: &Pair, target: TargetRef) -> SystemException {
    let call = tokio::spawn(async move { target.with_retry(zorb::Retry::Never).add(1, 2).await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(!call.is_finished());
    assert_eq!(orbs.server.shutdown().await.aborted_connections, 0);
    call.await.unwrap().unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_kept_when_the_orb_closes_are_not_executed_and_their_callers_know() {
    let orbs = pair_of(Orb::builder(), Orb::builder().start_paused());
    let (servant, target) = over(&orbs).await;
    let error = ended_while_kept(&orbs, target).await;
    assert_eq!((error.completed, servant.executed()), (CompletionStatus::No, 0), "{error}");

    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    let _ = orbs.server.root_poa().manager().hold_requests().unwrap();
    let error = ended_while_kept(&orbs, target).await;
    assert_eq!((error.completed, servant.executed()), (CompletionStatus::No, 0), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_servant_whose_own_call_is_kept_does_not_keep_the_orb_from_closing() {
    let orbs = pair();
    let poa = orbs.server.root_poa().child("kept").own_manager().create().unwrap();
    let kept: AdderRef = poa.activate(Adder).unwrap();
    let _ = poa.manager().hold_requests().unwrap();
    let nested = Arc::new(Nested { others: vec![kept], ..Nested::default() });
    let here: NestedRef = orbs.server.activate(Arc::clone(&nested)).unwrap();
    let outer = seen_by_client(&orbs, &here).await;
    let call = tokio::spawn(async move { outer.sum(1).await });
    nested.here.notified().await;
    nested.go.notify_one();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(!call.is_finished());
    assert_eq!(orbs.server.shutdown().await.aborted_connections, 0);
    assert_eq!(call.await.unwrap().unwrap_err().kind, SystemExceptionKind::BadInvOrder);
}
