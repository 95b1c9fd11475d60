//! zorb is called back over the connections that it opened: clients without a port.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use test_support::transport;
use zorb::prelude::*;
use zorb::{CompletionStatus, Limits, Orb, OrbBuilder, Peer, SystemExceptionKind};

zorb::idl! {
    module Back {
        typedef sequence<octet> Octets;
        interface Bell {
            long ring(in long number);
            Octets echo(in Octets octets);
            oneway void hint(in long number);
            oneway void fill(in Octets octets);
            long hinted();
        };
        interface Tower {
            long ring(in Bell bell, in long times);
            void keep(in Bell bell);
            long ring_kept(in long number);
            Octets through(in Bell bell, in Octets octets);
            void hint(in Bell bell, in long times);
            oneway void fill(in Bell bell, in Octets octets);
        };
    };
}

use back::{BellRef, BellServant, TowerRef, TowerServant};

/// More than may be queued for a peer that does not read.
const LARGE: usize = 3_000_000;

#[derive(Default)]
struct Bell {
    hinted: Mutex<i32>,
    /// Called in turn by `ring`.
    tower: Option<TowerRef>,
}

impl BellServant for Bell {
    async fn ring(&self, number: i32) -> Result<i32, SystemException> {
        match &self.tower {
            Some(tower) if number > 0 => Ok(tower.ring_kept(number - 1).await? + 1),
            _ => Ok(number),
        }
    }
    async fn echo(&self, octets: Bytes) -> Result<Bytes, SystemException> {
        Ok(octets)
    }
    async fn hint(&self, number: i32) -> Result<(), SystemException> {
        let mut hinted = self.hinted.lock().unwrap();
        assert_eq!(*hinted, number, "oneways keep their order");
        *hinted += 1;
        Ok(())
    }
    async fn fill(&self, octets: Bytes) -> Result<(), SystemException> {
        assert_eq!(octets.len(), LARGE);
        *self.hinted.lock().unwrap() += 1;
        Ok(())
    }
    async fn hinted(&self) -> Result<i32, SystemException> {
        Ok(*self.hinted.lock().unwrap())
    }
}

#[derive(Default)]
struct Tower(Mutex<Option<BellRef>>);

impl TowerServant for Tower {
    async fn ring(&self, bell: Option<BellRef>, times: i32) -> Result<i32, SystemException> {
        let mut sum = 0;
        for number in 0..times {
            sum += bell.as_ref().unwrap().ring(-number).await?;
        }
        Ok(sum)
    }
    async fn keep(&self, bell: Option<BellRef>) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = bell;
        Ok(())
    }
    async fn ring_kept(&self, number: i32) -> Result<i32, SystemException> {
        let bell = self.0.lock().unwrap().clone().unwrap();
        bell.ring(number).await
    }
    async fn through(&self, bell: Option<BellRef>, octets: Bytes) -> Result<Bytes, SystemException> {
        bell.unwrap().echo(octets).await
    }
    async fn hint(&self, bell: Option<BellRef>, times: i32) -> Result<(), SystemException> {
        let bell = bell.unwrap();
        for number in 0..times {
            bell.hint(number).await?;
        }
        assert_eq!(bell.hinted().await?, times);
        Ok(())
    }
    async fn fill(&self, bell: Option<BellRef>, octets: Bytes) -> Result<(), SystemException> {
        bell.unwrap().fill(octets).await
    }
}

async fn server() -> (Orb, String) {
    serving(transport::builder()).await
}

async fn serving(builder: OrbBuilder) -> (Orb, String) {
    let builder = builder.accept_bidirectional(|_: &Peer, host: &str, _: u16| host.starts_with("ff10::"));
    let orb = builder.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let tower: TowerRef = orb.activate(Tower::default()).unwrap();
    (orb, tower.to_string())
}

async fn client(url: &str) -> (Orb, TowerRef) {
    let orb = transport::builder().offer_bidirectional().build().await.unwrap();
    let tower = orb.resolve(url).await.unwrap();
    (orb, tower)
}

// clause: giop.bidir.offer, giop.bidir.requests
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_port_is_called_back() {
    let (server, url) = server().await;
    let (client, tower) = client(&url).await;
    assert!(client.endpoints().is_empty());
    let bell: BellRef = client.activate(Bell::default()).unwrap();
    assert_eq!(tower.ring(&bell, 5).await.unwrap(), -10);
    tower.keep(&bell).await.unwrap();
    assert_eq!(tower.ring_kept(-7).await.unwrap(), -7);
    let octets: Bytes = (0..LARGE).map(|i| (i * 7) as u8).collect();
    assert!(tower.through(&bell, octets.clone()).await.unwrap() == octets);
    tower.hint(&bell, 100).await.unwrap();
    assert_eq!((server.open_connections(), client.open_connections()), (1, 1), "there is no second one");
    transport::assert_used(&client);
    transport::assert_used(&server);
}

/// A server without the rule connects to the client's address, which the system rejects at once: there is no
/// name to look up, and no address that does not answer.
#[tokio::test]
async fn an_orb_that_does_not_listen_has_an_address_that_no_system_connects_to() {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let tower: TowerRef = server.activate(Tower::default()).unwrap();
    let (client, tower) = client(&tower.to_string()).await;
    let bell: BellRef = client.activate(Bell::default()).unwrap();
    let profile = bell.as_object().ior().iiop_profile().unwrap();
    let address: std::net::Ipv6Addr = profile.host.parse().unwrap();
    assert!(address.is_multicast() && address.segments()[0] == 0xff10, "{address}");
    assert_eq!(address.to_string(), profile.host, "as peers write it that read it as an address");
    let error = tower.ring(&bell, 1).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    assert_eq!(client.open_connections(), 1, "and the client's is as it was");
}

// clause: giop.bidir.requests
#[tokio::test]
async fn calls_go_to_and_fro_inside_of_each_other_and_side_by_side() {
    let (_server, url) = server().await;
    let (client, tower) = client(&url).await;
    let bell: BellRef = client.activate(Bell { tower: Some(tower.clone()), ..Bell::default() }).unwrap();
    tower.keep(&bell).await.unwrap();
    assert_eq!(tower.ring_kept(20).await.unwrap(), 20);
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let tower = tower.clone();
            tokio::spawn(async move { tower.ring_kept(number % 7).await.unwrap() == number % 7 })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap());
    }
}

/// Neither side stops reading because of its own output; otherwise both would block forever.
#[tokio::test(flavor = "multi_thread")]
async fn large_oneways_go_both_ways_at_once() {
    let small = || transport::builder().socket_buffer(64 << 10);
    let (_server, url) = serving(small()).await;
    let client = small().offer_bidirectional().build().await.unwrap();
    let tower: TowerRef = client.resolve(&url).await.unwrap();
    let bell = Arc::new(Bell::default());
    let rung: BellRef = client.activate(Arc::clone(&bell)).unwrap();
    let octets = Bytes::from(vec![7; LARGE]);
    for _ in 0..40 {
        tower.fill(&rung, octets.clone()).await.unwrap();
    }
    // Each of them is sent back while others are in transit.
    let start = Instant::now();
    while *bell.hinted.lock().unwrap() < 40 {
        assert!(start.elapsed() < Duration::from_secs(20), "{} came back", bell.hinted.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// clause: giop.bidir.closed
#[tokio::test]
async fn a_client_that_is_gone_is_not_called() {
    let (_server, url) = server().await;
    let (first, tower) = client(&url).await;
    let bell: BellRef = first.activate(Bell::default()).unwrap();
    tower.keep(&bell).await.unwrap();
    assert_eq!(tower.ring_kept(-1).await.unwrap(), -1);
    first.shutdown().await;
    let (_second, tower) = client(&url).await;
    let error = tower.ring_kept(-1).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
}

#[test]
fn callers_on_plain_threads_are_called_back() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_server, url) = runtime.block_on(server());
    let (client, tower) = runtime.block_on(client(&url));
    let bell: BellRef = client.activate(Bell::default()).unwrap();
    for times in 0..10 {
        let called = zorb::blocking::wait(tower.ring(&bell, times)).unwrap();
        assert_eq!(called, -(0..times).sum::<i32>());
    }
}

/// Advances the time without any event.
async fn nothing_happens(seconds: u64) {
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn connections_are_quiet_for_long() {
    if transport::has_threads() {
        // ORBs on threads have real clocks, which cannot be advanced.
        return;
    }
    let (server, url) = server().await;
    let (client, tower) = client(&url).await;
    let bell: BellRef = client.activate(Bell::default()).unwrap();
    tower.keep(&bell).await.unwrap();
    // Longer than the idle timeout of either side.
    nothing_happens(3600).await;
    assert_eq!((client.open_connections(), server.open_connections()), (1, 1));
    assert_eq!(tower.ring_kept(-3).await.unwrap(), -3);
    assert_eq!((client.open_connections(), server.open_connections()), (1, 1));
}

#[tokio::test]
async fn a_connection_whose_offer_is_not_taken_is_closed_when_it_is_quiet() {
    if transport::has_threads() {
        return;
    }
    let refuses = transport::builder().accept_bidirectional(|_: &Peer, _: &str, _: u16| false);
    let mut short = Limits::default();
    short.idle_timeout = Some(Duration::from_secs(100));
    let hurried = transport::builder().accept_bidirectional(|_: &Peer, _: &str, _: u16| true).limits(short);
    for (builder, stays) in [(refuses, 170), (hurried, 90)] {
        let server = builder.listen("iiop://127.0.0.1:0").build().await.unwrap();
        let tower: TowerRef = server.activate(Tower::default()).unwrap();
        let (client, tower) = client(&tower.to_string()).await;
        let bell: BellRef = client.activate(Bell::default()).unwrap();
        tower.keep(&bell).await.unwrap();
        nothing_happens(stays).await;
        assert_eq!(server.open_connections(), 1);
        nothing_happens(20).await;
        assert_eq!(server.open_connections(), 0, "{stays}");
    }
}

// clause: poa.policy.bidirectional, giop.bidir.offer
#[tokio::test]
async fn a_poa_may_offer_call_backs_to_its_objects() {
    for both in [true, false] {
        let everywhere = transport::builder().accept_bidirectional(|_: &Peer, _: &str, _: u16| true);
        let server = everywhere.listen("iiop://127.0.0.1:0").build().await.unwrap();
        let tower: TowerRef = server.activate(Tower::default()).unwrap();
        let client = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let poa = client.root_poa().child("bells");
        let poa = if both { poa.bidirectional() } else { poa }.create().unwrap();
        let bell: BellRef = poa.activate(Bell::default()).unwrap();
        let tower: TowerRef = client.resolve(&tower.to_string()).await.unwrap();
        assert_eq!(tower.ring(&bell, 3).await.unwrap(), -3);
        let connections = if both { 1 } else { 2 };
        assert_eq!(server.open_connections(), connections, "{both}");
    }
}
