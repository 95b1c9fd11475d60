//! Objects of clients that are called over the connections that these clients opened (Bidirectional GIOP), in
//! both roles.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::zorb::prelude::*;

use super::{Bell, BellRef, Tower, TowerRef, raised, their_client};
use crate::{START, transport};
use test_support::peers::Foreign;
use test_support::peers::matrix::{Outcome, Role, cell};

/// A server of the other ORB calls back a zorb client that does not listen, so that the server could not
/// connect to it.
async fn zorb_is_called_back(orb: Foreign) {
    let Some(server) = orb.serve("ties-peer", &["server"], START) else { return };
    let client = async || transport::builder().offer_bidirectional().build().await.unwrap();
    let first = client().await;
    assert!(first.endpoints().is_empty());
    let tower: TowerRef = first.resolve_unchecked(&server.ior).await.unwrap();
    let bell: BellRef = first.activate(Bell::default()).unwrap();
    assert_eq!(tower.ring(&bell, 5).await.unwrap(), 100);
    let octets: Bytes = (0..300_000_u32).map(|i| (i * 7) as u8).collect();
    assert!(tower.pass(&bell, octets.clone()).await.unwrap() == octets);
    assert_eq!(tower.hint(&bell, 50).await.unwrap(), 50);
    assert!(tower.speak(&bell).await.unwrap(), "in the code sets of the connection");
    tower.keep(&bell).await.unwrap();
    assert_eq!(tower.ring_kept(7).await.unwrap(), "70");
    // Concurrent calls, which call back into each other's.
    let calls: Vec<_> = (1..9)
        .map(|times| {
            let (tower, bell) = (tower.clone(), bell.clone());
            tokio::spawn(async move { (times, tower.ring(&bell, times).await.unwrap()) })
        })
        .collect();
    for call in calls {
        let (times, sum) = call.await.unwrap();
        assert_eq!(sum, 10 * times * (times - 1) / 2);
    }
    assert_eq!(first.open_connections(), 1, "there is no second one");

    // Another client's connection does not lead to the first one's objects.
    let second = client().await;
    let tower: TowerRef = second.resolve_unchecked(&server.ior).await.unwrap();
    assert_eq!(tower.ring_kept(8).await.unwrap(), "80");
    first.shutdown().await;
    // Its server may notice the end of the connection a moment later.
    let gone = async {
        loop {
            let gone = tower.ring_kept(9).await.unwrap();
            if gone == "TRANSIENT COMPLETED_NO" {
                break;
            }
            assert!(gone.starts_with("COMM_FAILURE "), "{gone}");
        }
    };
    tokio::time::timeout(START, gone).await.expect("the connection has ended");
    let bell: BellRef = second.activate(Bell::default()).unwrap();
    assert_eq!(tower.ring(&bell, 3).await.unwrap(), 30, "and the others go on");
    transport::assert_used(&second);
    cell(orb.name(), Role::Client, "1.2", "bidirectional", Outcome::Good);
}

/// zorb calls back objects of the other ORB's clients, to whose address it could connect as well.
async fn zorb_calls_back(orb: Foreign) {
    let builder = transport::builder().accept_bidirectional(|_: &zorb::Peer, _: &str, _: u16| true);
    let server = builder.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let kept: Arc<Mutex<Option<BellRef>>> = Arc::default();
    let tower: TowerRef = server.activate(Tower(Arc::clone(&kept))).unwrap();
    let url = tower.to_string();
    let client = || their_client(orb, &["--tower", &url], |_| ());
    let Some(mut first) = client() else { return };
    for (line, answer) in [
        ("ring 5", "100"),
        ("pass 300000", "300000"),
        ("hint 50", "50"),
        ("speak", "understood"),
        ("keep", "kept"),
    ] {
        assert_eq!(first.ask(line).await, answer, "{line}");
    }
    assert_eq!(first.ask("kept 7").await, "70");
    let bell = kept.lock().unwrap().clone().unwrap();
    assert_eq!(bell.ring(8).await.unwrap(), 80, "outside of any call of the client's");
    assert_eq!(server.open_connections(), 1, "there is no second one");

    // The client is killed while it is being called.
    let called = tokio::spawn({
        let bell = bell.clone();
        async move { bell.ring(-1).await }
    });
    first.says("STAYS", 1).await;
    first.kill();
    let error = called.await.unwrap().unwrap_err();
    assert_eq!(raised(&error), "COMM_FAILURE COMPLETED_MAYBE", "{error}");
    let error = bell.ring(1).await.unwrap_err();
    assert_eq!(raised(&error), "TRANSIENT COMPLETED_NO", "{error}");

    // A client that ends in an orderly way.
    let mut second = client().unwrap();
    assert_eq!(second.ask("keep").await, "kept");
    let bell = kept.lock().unwrap().clone().unwrap();
    assert_eq!(bell.ring(9).await.unwrap(), 90);
    assert_eq!(second.ask("end").await, "ended");
    let ended = async {
        while server.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(START, ended).await.expect("the client closed its connection");
    let error = bell.ring(1).await.unwrap_err();
    assert_eq!(raised(&error), "TRANSIENT COMPLETED_NO", "{error}");
    assert_eq!(server.open_connections(), 0, "nobody was dialled");
    transport::assert_used(&server);
    cell(orb.name(), Role::Server, "1.2", "bidirectional", Outcome::Good);
}

/// The control experiment: the counts of connections if the servers connect to the clients.
#[tokio::test(flavor = "multi_thread")]
async fn without_offer_or_rule_clients_are_dialled() {
    let Some(theirs) = Foreign::OmniOrb.serve("ties-peer", &["server"], START) else { return };
    let listening = || transport::builder().listen("iiop://127.0.0.1:0").build();
    let client = listening().await.unwrap();
    let tower: TowerRef = client.resolve_unchecked(&theirs.ior).await.unwrap();
    let bell: BellRef = client.activate(Bell::default()).unwrap();
    assert_eq!((tower.ring(&bell, 5).await.unwrap(), client.open_connections()), (100, 2));

    let server = listening().await.unwrap();
    let tower: TowerRef = server.activate(Tower::default()).unwrap();
    let mut theirs = their_client(Foreign::OmniOrb, &["--tower", &tower.to_string()], |_| ()).unwrap();
    assert_eq!((theirs.ask("ring 5").await, server.open_connections()), ("100".to_owned(), 2));
}

// clause: giop.bidir.offer, giop.bidir.requests, giop.bidir.code_sets, giop.bidir.closed
#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb_back() {
    zorb_is_called_back(Foreign::OmniOrb).await;
}

// clause: giop.bidir.offer, giop.bidir.requests, giop.bidir.code_sets, giop.bidir.closed
#[tokio::test(flavor = "multi_thread")]
async fn jacorb_calls_zorb_back() {
    zorb_is_called_back(Foreign::JacOrb).await;
}

// clause: giop.bidir.accept, giop.bidir.match, giop.bidir.code_sets, giop.bidir.closed
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb_back() {
    zorb_calls_back(Foreign::OmniOrb).await;
}

// clause: giop.bidir.accept, giop.bidir.match, giop.bidir.code_sets, giop.bidir.closed
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_jacorb_back() {
    zorb_calls_back(Foreign::JacOrb).await;
}
