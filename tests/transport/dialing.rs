//! Servers with several addresses, some of which refuse connections, do not answer, or are IPv6.

use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use test_support::transport;
use zorb::prelude::*;
use zorb::wire::{IiopProfile, Ior, TaggedComponent};

zorb::idl! {
    module Dialing {
        interface Post {
            string name();
        };
    };
}

use dialing::{PostRef, PostServant};

struct Post(&'static str);

impl PostServant for Post {
    async fn name(&self) -> Result<String, SystemException> {
        Ok(self.0.to_owned())
    }
}

const KEY: &str = "Post";

/// Returns a server with one object, and its address.
async fn serve(name: &'static str, endpoint: &str) -> (Orb, (String, u16)) {
    let server = transport::builder().listen(endpoint).build().await.unwrap();
    let here: PostRef = server.activate_named(KEY, Post(name)).unwrap();
    let profile = here.ior().iiop_profile().unwrap();
    (server, (profile.host, profile.port))
}

/// Returns a profile with these addresses.
fn profile(addresses: &[(String, u16)]) -> IiopProfile {
    let ((host, port), others) = addresses.split_first().unwrap();
    let first = IiopProfile::new(host.clone(), *port, KEY.as_bytes().into());
    others.iter().fold(first, |profile, (host, port)| {
        profile.with_component(TaggedComponent::alternate_address(host, *port).unwrap())
    })
}

async fn reference(client: &Orb, profiles: &[IiopProfile]) -> PostRef {
    let ior = Ior::from_profiles(PostRef::REPOSITORY_ID, profiles).unwrap();
    client.resolve_unchecked(&ior.to_string()).await.unwrap()
}

/// Returns an address that refuses connections.
fn refusing() -> (String, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    ("127.0.0.1".to_owned(), listener.local_addr().unwrap().port())
}

/// An address that does not answer: its backlog is full, so the system drops connection attempts.
struct BlackHole {
    address: SocketAddr,
    _listener: TcpListener,
    _waiting: Vec<std::net::TcpStream>,
}

impl BlackHole {
    fn new() -> Self {
        Self::on("127.0.0.1:0")
    }

    fn on(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        // The same socket with the smallest backlog.
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..64 {
            match std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
                Ok(stream) => waiting.push(stream),
                Err(_) => return Self { address, _listener: listener, _waiting: waiting },
            }
        }
        panic!("the backlog of {address} never fills up");
    }

    fn at(&self) -> (String, u16) {
        (self.address.ip().to_string(), self.address.port())
    }
}

fn has_ipv6() -> bool {
    let has = TcpListener::bind("[::1]:0").is_ok();
    if !has {
        eprintln!("SKIPPED: no IPv6: this machine has no [::1]");
    }
    has
}

// clause: ior.component.alternate_address
#[tokio::test]
async fn addresses_that_refuse_are_passed_over() {
    let (_server, there) = serve("b", "iiop://127.0.0.1:0").await;
    let client = transport::builder().build().await.unwrap();
    let post = reference(&client, &[profile(&[refusing(), refusing(), there])]).await;
    assert_eq!(post.name().await.unwrap(), "b");
    assert_eq!(client.open_connections(), 1);
}

// clause: ior.component.alternate_address
#[tokio::test]
async fn an_address_that_does_not_answer_costs_a_quarter_of_a_second_once() {
    let hole = BlackHole::new();
    let (_server, there) = serve("b", "iiop://127.0.0.1:0").await;
    let client = transport::builder().build().await.unwrap();
    let addresses = [hole.at(), there];
    let begun = Instant::now();
    let post = reference(&client, &[profile(&addresses)]).await;
    assert_eq!(post.name().await.unwrap(), "b");
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    assert_eq!(client.open_connections(), 1);
    // The next reference uses the existing connection.
    let again = reference(&client, &[profile(&addresses)]).await;
    let stats = client.stats();
    assert_eq!(again.name().await.unwrap(), "b");
    assert_eq!((client.stats().messages_out, client.open_connections()), (stats.messages_out + 1, 1));
}

#[tokio::test]
async fn many_callers_at_once_share_the_connection_that_is_found() {
    let hole = BlackHole::new();
    let (server, there) = serve("b", "iiop://127.0.0.1:0").await;
    let client = transport::builder().build().await.unwrap();
    let addresses = [hole.at(), refusing(), there];
    let mut calls = Vec::new();
    for _ in 0..20 {
        let post = reference(&client, &[profile(&addresses)]).await;
        calls.push(async move { post.name().await });
    }
    for name in futures_util::future::join_all(calls).await {
        assert_eq!(name.unwrap(), "b");
    }
    assert_eq!((client.open_connections(), server.open_connections()), (1, 1));
}

#[tokio::test]
async fn the_time_of_a_call_is_divided_among_its_addresses() {
    let holes = [BlackHole::new(), BlackHole::new()];
    let (_server, there) = serve("b", "iiop://127.0.0.1:0").await;
    let client = transport::builder().build().await.unwrap();
    // Three attempts within 900 ms: a new one every 225 ms, instead of every 250.
    let post = reference(&client, &[profile(&[holes[0].at(), holes[1].at(), there])]).await;
    let begun = Instant::now();
    assert_eq!(post.with_timeout(Duration::from_millis(900)).name().await.unwrap(), "b");
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
}

// clause: ior.profile.order
#[tokio::test]
async fn profiles_are_tried_in_their_order() {
    let (_first, a) = serve("a", "iiop://127.0.0.1:0").await;
    let (_second, b) = serve("b", "iiop://127.0.0.1:0").await;
    let client = transport::builder().build().await.unwrap();
    let (only_a, only_b) = (profile(std::slice::from_ref(&a)), profile(std::slice::from_ref(&b)));
    let both = reference(&client, &[only_a, only_b.clone()]).await;
    assert_eq!(both.name().await.unwrap(), "a");
    let refused = reference(&client, &[profile(&[refusing(), refusing()]), only_b]).await;
    assert_eq!(refused.name().await.unwrap(), "b");
    // An address that does not answer leaves time for the subsequent ones.
    let hole = BlackHole::new();
    let silent = reference(&client, &[profile(&[hole.at()]), profile(&[a])]).await;
    let silent = silent.with_timeout(Duration::from_millis(600));
    assert_eq!(silent.name().await.unwrap(), "a");
}

// clause: exc.when.profiles_exhausted, exc.when.connect_timeout, giop.limit.connect_timeout
#[tokio::test]
async fn an_error_tells_of_every_address() {
    let client = transport::builder().build().await.unwrap();
    let addresses = [refusing(), refusing()];
    let post = reference(&client, &[profile(&addresses)]).await;
    let error = post.name().await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    assert_eq!(error.minor, zorb::minor::TRANSIENT_NO_USABLE_PROFILE);
    let text = std::error::Error::source(&error).unwrap().to_string();
    for (host, port) in &addresses {
        assert!(text.contains(&format!("{host}:{port}")), "{text}");
    }
    // Only addresses that do not answer: the call's own deadline applies, or the connect timeout.
    let hole = BlackHole::new();
    let post = reference(&client, &[profile(&[hole.at()])]).await;
    let error = post.with_timeout(Duration::from_millis(50)).name().await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::No));
    let hurried = transport::builder().connect_timeout(Duration::from_millis(50)).build().await.unwrap();
    let post = reference(&hurried, &[profile(&[hole.at()])]).await;
    assert_eq!(post.name().await.unwrap_err().kind, SystemExceptionKind::Transient);
}

// clause: ior.iiop.ipv6
#[tokio::test]
async fn ipv6_is_called_and_published_like_ipv4() {
    if !has_ipv6() {
        return;
    }
    let (server, there) = serve("six", "iiop://[::1]:0").await;
    assert_eq!(there.0, "::1");
    let client = transport::builder().build().await.unwrap();
    let by_ior = reference(&client, &[profile(std::slice::from_ref(&there))]).await;
    assert_eq!(by_ior.name().await.unwrap(), "six");
    let url = format!("corbaloc::1.2@[::1]:{}/{KEY}", there.1);
    let by_url: PostRef = client.resolve(&url).await.unwrap();
    assert_eq!(by_url.name().await.unwrap(), "six");
    // Except the connection over which the URL was resolved, which ends by itself.
    while client.open_connections() > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.open_connections(), 1, "the address is the same");
    assert_eq!(server.endpoints(), [format!("[::1]:{}", there.1)]);
}

#[tokio::test]
async fn references_name_what_is_published_in_its_order() {
    let nat = refusing();
    let server = transport::builder()
        .listen("iiop://127.0.0.1:0")
        .publish(format!("iiop://{}:{}", nat.0, nat.1))
        .publish("localhost")
        .publish("127.0.0.1:{port}")
        .build()
        .await
        .unwrap();
    let here: PostRef = server.activate_named(KEY, Post("behind")).unwrap();
    let addresses = here.ior().iiop_profile().unwrap().addresses();
    let port = addresses[1].1;
    let expected = [nat, ("localhost".to_owned(), port), ("127.0.0.1".to_owned(), port)];
    assert_eq!(addresses, expected);
    // A client that cannot use the first address takes the next; the server knows all of them as its own.
    let client = transport::builder().build().await.unwrap();
    let post: PostRef = client.resolve(&here.to_string()).await.unwrap();
    assert_eq!(post.name().await.unwrap(), "behind");
    let own: PostRef = server.resolve(&here.to_string()).await.unwrap();
    assert_eq!(own.name().await.unwrap(), "behind");
    assert_eq!(server.open_connections(), 1, "only the client's");

    let error = transport::builder().listen("iiop://127.0.0.1:0").publish("{env:ZORB_NO_SUCH_NAME}:80");
    let error = error.build().await.unwrap_err().to_string();
    assert!(error.contains("ZORB_NO_SUCH_NAME"), "{error}");
}

#[tokio::test]
async fn families_take_turns() {
    if !has_ipv6() {
        return;
    }
    // As many unresponsive IPv6 addresses as are tried at the same time: a client that tried these first
    // would not reach the IPv4 one.
    let hole = BlackHole::on("[::1]:0");
    let (_server, there) = serve("four", "iiop://127.0.0.1:0").await;
    let client = transport::builder().build().await.unwrap();
    let addresses = [vec![hole.at(); 20], vec![there]].concat();
    let post = reference(&client, &[profile(&addresses)]).await;
    assert_eq!(post.with_timeout(Duration::from_secs(9)).name().await.unwrap(), "four");
}

#[tokio::test]
async fn host_name_with_both_address_families_reaches_the_listening_one() {
    for endpoint in ["iiop://127.0.0.1:0", "iiop://[::1]:0"] {
        if endpoint.contains('[') && !has_ipv6() {
            continue;
        }
        let (_server, (_, port)) = serve("local", endpoint).await;
        let names: Vec<SocketAddr> = tokio::net::lookup_host(("localhost", port)).await.unwrap().collect();
        if !names.iter().any(|address| address.is_ipv6() == endpoint.contains('[')) {
            eprintln!("SKIPPED: localhost is no name for {endpoint}: {names:?}");
            continue;
        }
        let client = transport::builder().build().await.unwrap();
        let post = reference(&client, &[profile(&[("localhost".to_owned(), port)])]).await;
        assert_eq!(post.name().await.unwrap(), "local", "{names:?}");
    }
}
