//! Effects of the network on sessions: single bytes, sockets that accept little, ends in the middle; and
//! callbacks.

use std::time::Duration;

use giop_codec::Version;
use giop_codec::ior::Ior;
use giop_codec::url::{Corbaloc, IiopAddress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use zorb::Peer;
use zorb::prelude::*;

use crate::tls::safe::{BellRef, BellServant};
use crate::tls::{Vault, VaultRef, octets, server, tls, transport};
use test_support::certificates::Authority;

/// Returns a reference to the same object through a relay that forwards `piece` bytes at a time, and at most
/// `most` of the server's.
async fn relayed(reference: &str, piece: usize, most: usize) -> String {
    let profile = reference.parse::<Ior>().unwrap().iiop_profile().unwrap();
    let there = profile.ssl().unwrap().port;
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = relay.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (near, _) = relay.accept().await.unwrap();
            let far = TcpStream::connect(("127.0.0.1", there)).await.unwrap();
            let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
            tokio::spawn(pass(from_near, to_far, piece, usize::MAX));
            tokio::spawn(pass(from_far, to_near, piece, most));
        }
    });
    let address = IiopAddress { version: Version::V1_2, host: "127.0.0.1".to_owned(), port, uses_tls: true };
    Corbaloc::Iiop { addresses: vec![address], key: profile.object_key }.to_string()
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, piece: usize, mut most: usize) {
    let mut octets = vec![0; piece];
    while let Ok(n @ 1..) = from.read(&mut octets).await {
        let n = n.min(most);
        if n == 0 || to.write_all(&octets[..n]).await.is_err() {
            return;
        }
        most -= n;
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn octets_come_one_at_a_time() {
    let ca = Authority::new("ca");
    let (_server, reference) = server(tls(&ca, "server").build().unwrap()).await;
    let orb = transport::builder().tls(tls(&ca, "client").build().unwrap()).build().await.unwrap();
    let vault: VaultRef = orb.resolve_unchecked(&relayed(&reference, 1, usize::MAX).await).await.unwrap();
    for len in [0, 1, 3000] {
        assert!(vault.echo(octets(len)).await.unwrap() == octets(len));
    }
}

// Wherever the server's data ends, the caller receives an error; nothing hangs.
#[tokio::test]
async fn connections_end_anywhere() {
    let ca = Authority::new("ca");
    let (_server, reference) = server(tls(&ca, "server").build().unwrap()).await;
    for most in [0, 1, 5, 100, 700, 1200, 1500, 2000] {
        let orb = transport::builder().tls(tls(&ca, "client").build().unwrap()).build().await.unwrap();
        let url: ObjectRef = orb.resolve_unchecked(&relayed(&reference, 512, most).await).await.unwrap();
        // A reference, because for details that a URL lacks, the server would be queried over another
        // connection.
        let vault: VaultRef = orb.resolve_unchecked(&url.ior().to_string()).await.unwrap();
        let outcome = tokio::time::timeout(Duration::from_secs(20), vault.echo(octets(4000))).await;
        let kind = outcome.unwrap().unwrap_err().kind;
        let expected = [SystemExceptionKind::Transient, SystemExceptionKind::CommFailure];
        assert!(expected.contains(&kind), "{most}: {kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_that_take_little_at_a_time_get_everything_in_order() {
    let ca = Authority::new("ca");
    let small = |name: &str| transport::builder().tls(tls(&ca, name).build().unwrap()).socket_buffer(4096);
    let server = small("server").listen("ssliop://127.0.0.1:0").build().await.unwrap();
    let vault: VaultRef = server.activate(Vault::default()).unwrap();
    let orb = small("client").build().await.unwrap();
    let vault: VaultRef = orb.resolve_unchecked(&vault.to_string()).await.unwrap();
    let calls = (0..8).map(|i| {
        let vault = vault.clone();
        tokio::spawn(async move {
            for len in [100 * i, 200_000 + i, 700_000 + i] {
                vault.push(octets(len / 2)).await.unwrap();
                assert!(vault.echo(octets(len)).await.unwrap() == octets(len));
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(vault.pushed().await.unwrap(), 24);
}

struct Bell;

impl BellServant for Bell {
    async fn ring(&self, number: i32) -> Result<i32, SystemException> {
        assert!(zorb::request().tls().is_some());
        Ok(number + 1)
    }
}

#[tokio::test]
async fn servers_call_back_over_the_session() {
    let ca = Authority::new("ca");
    let server = transport::builder()
        .tls(tls(&ca, "server").build().unwrap())
        .listen("ssliop://127.0.0.1:0")
        .accept_bidirectional(|_: &Peer, _: &str, _: u16| true)
        .build()
        .await
        .unwrap();
    let vault: VaultRef = server.activate(Vault::default()).unwrap();
    // One that does not listen, and one that listens by TLS only.
    for listens in [false, true] {
        let mut builder = transport::builder().tls(tls(&ca, "client").build().unwrap()).offer_bidirectional();
        if listens {
            builder = builder.listen("ssliop://127.0.0.1:0");
        }
        let orb = builder.build().await.unwrap();
        let bell: BellRef = orb.activate(Bell).unwrap();
        let vault: VaultRef = orb.resolve_unchecked(&vault.to_string()).await.unwrap();
        assert_eq!(vault.back(&bell, 6).await.unwrap(), 7);
        assert_eq!(orb.open_connections(), 1);
    }
}

#[tokio::test]
async fn references_say_the_port_for_tls_and_other_hosts() {
    let ca = Authority::new("ca");
    let orb = transport::builder()
        .tls(tls(&ca, "server").build().unwrap())
        .listen("ssliop://127.0.0.1:0")
        .listen("iiop://127.0.0.1:0")
        .publish("outside.example:80")
        .publish("ssliop://outside.example:443")
        .build()
        .await
        .unwrap();
    let vault: VaultRef = orb.activate(Vault::default()).unwrap();
    let profile = vault.to_string().parse::<Ior>().unwrap().iiop_profile().unwrap();
    assert_eq!((profile.host.as_str(), profile.port), ("outside.example", 80));
    let ssl = profile.ssl().unwrap();
    assert_eq!((ssl.port, ssl.target_supports, ssl.target_requires), (443, 0x3f, 1));
    let (_orb, reference) = server(tls(&ca, "server").build().unwrap()).await;
    let profile = reference.parse::<Ior>().unwrap().iiop_profile().unwrap();
    let ssl = profile.ssl().unwrap();
    assert!(profile.port == 0 && ssl.port != 0 && profile.host == "127.0.0.1");
    assert_eq!((ssl.target_supports, ssl.target_requires), (0x3e, 6));
}
