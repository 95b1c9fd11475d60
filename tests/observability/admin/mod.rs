//! The admin endpoint: its responses, the requests that it rejects, and its page in a browser.

mod page;
mod status;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zorb::prelude::*;
use zorb::{BuildError, ItemSource};

zorb::idl! {
    module Shop {
        exception SoldOut { long left; };
        typedef sequence<string> Lines;
        interface Till {
            long pay(in long cents) raises (SoldOut);
            oneway void note(in long cents);
            /// Fails after so many lines.
            @stream Lines receipts(in long lines);
        };
        interface Other {
            void one();
            void two();
        };
    };
}

struct Till;

impl shop::TillServant for Till {
    async fn pay(&self, cents: i32) -> Result<i32, shop::till::PayError> {
        match cents {
            0 => Err(shop::SoldOut { left: 0 }.into()),
            ..0 => Err(SystemException::no_permission().into()),
            _ => Ok(cents),
        }
    }

    async fn note(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    async fn receipts(&self, lines: i32) -> Result<ItemSource<String>, SystemException> {
        let failure = std::io::Error::other("no paper");
        let lines = (0..lines).map(|_| Ok("line ".repeat(200))).chain([Err(failure)]).collect::<Vec<_>>();
        Ok(ItemSource::stream(lines.len() as u64, futures_util::stream::iter(lines)))
    }
}

/// A server with an admin endpoint, and a client that has called it.
struct Served {
    server: Orb,
    client: Orb,
    /// The object as its own server calls it.
    here: shop::TillRef,
    till: shop::TillRef,
}

impl Served {
    async fn new() -> Self {
        let server = Orb::builder().listen("iiop://127.0.0.1:0").admin("127.0.0.1:0").build().await.unwrap();
        let here: shop::TillRef = server.activate(Till).unwrap();
        let client = Orb::builder().admin("127.0.0.1:0").build().await.unwrap();
        let till = client.resolve(&here.to_string()).await.unwrap();
        Self { server, client, here, till }
    }

    fn address(&self) -> SocketAddr {
        self.server.admin_address().unwrap()
    }

    async fn status(&self, orb: &Orb) -> Value {
        serde_json::from_str(&get(orb.admin_address().unwrap(), "/status.json").await.body).unwrap()
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Returns the endpoint's response to a request, up to the end of the connection.
async fn ask(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")).await
}

#[tokio::test]
async fn each_path_has_its_answer() {
    let served = Served::new().await;
    for (path, kind) in [
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/history.js", "text/javascript"),
        ("/page.css", "text/css"),
        ("/status.json", "application/json"),
        ("/metrics", "text/plain; version=0.0.4"),
        ("/health", "text/plain"),
        ("/ready", "text/plain"),
    ] {
        let answer = get(served.address(), path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains(&format!("content-type: {kind}")), "{path}: {}", answer.head);
        for header in ["content-security-policy: default-src 'none'", "nosniff", "no-store", "no-referrer"] {
            assert!(answer.head.contains(header), "{path}: {header}");
        }
        assert!(!answer.head.contains("access-control"), "no page of others reads it");
        assert!(
            !answer.body.contains("http://") && !answer.body.contains("https://"),
            "{path}: it loads nothing from elsewhere"
        );
        let head = ask(served.address(), &format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
    }
    assert_eq!(get(served.address(), "/../etc/passwd").await.status, 404);
}

#[tokio::test]
async fn what_is_no_request_of_this_machine_is_refused() {
    let served = Served::new().await;
    for host in ["example.org", "localhost.example.org", "127.0.0.1.example.org:80", ""] {
        let answer =
            ask(served.address(), &format!("GET /status.json HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(answer.status, 403, "{host}");
        assert!(!answer.body.contains("endpoints"));
    }
    assert_eq!(ask(served.address(), "GET / HTTP/1.1\r\n\r\n").await.status, 403);
    for uri in [
        "http://example.org/status.json",
        "http://example.org@localhost/status.json",
        "http://localhost.example.org:80/",
    ] {
        let answer = ask(served.address(), &format!("GET {uri} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        assert_eq!(answer.status, 403, "{uri}");
        assert!(!answer.body.contains("endpoints"));
    }
    let absolute = format!("GET http://{}/status.json HTTP/1.1\r\nHost: {0}\r\n\r\n", served.address());
    assert_eq!(ask(served.address(), &absolute).await.status, 200, "an absolute URI is one of HTTP");
    for hosts in [["localhost", "localhost"], ["localhost", "example.org"], ["example.org", "localhost"]] {
        let [first, second] = hosts;
        let request = format!("GET /status.json HTTP/1.1\r\nHost: {first}\r\nHost: {second}\r\n\r\n");
        let answer = ask(served.address(), &request).await;
        assert_eq!(answer.status, 400, "{hosts:?}");
        assert!(!answer.body.contains("endpoints"));
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        let answer = ask(served.address(), &request).await;
        assert_eq!(answer.status, 405);
        assert!(answer.head.contains("allow: get, head"));
    }
    assert_eq!(ask(served.address(), "what is this\r\n\r\n").await.status, 400);
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let mut stream = TcpStream::connect(served.address()).await.unwrap();
    // It may close the connection before it has read everything.
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"));
    assert_eq!(get(served.address(), "/health").await.status, 200, "all that did it no harm");
}

#[tokio::test]
async fn half_sent_requests_do_not_keep_others_out() {
    let served = Served::new().await;
    let mut half = Vec::new();
    for i in 0..100 {
        let mut stream = TcpStream::connect(served.address()).await.unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nHo").await.unwrap();
        half.push(stream);
        if i % 10 == 0 {
            assert_eq!(get(served.address(), "/health").await.status, 200, "beside {i} others");
        }
    }
    assert_eq!(get(served.address(), "/health").await.status, 200);
    // The oldest connection was closed, and the newest is still served.
    let mut oldest = half.remove(0);
    assert_eq!(oldest.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    let mut newest = half.pop().unwrap();
    newest.write_all(b"st: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    newest.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn addresses_of_other_machines_are_refused_unless_they_are_meant() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = Orb::builder().admin(address).build().await.unwrap_err();
        assert!(matches!(refused, BuildError::Admin(_)), "{refused}");
    }
    assert!(matches!(Orb::builder().admin("nonsense").build().await, Err(BuildError::Listen { .. })));
    let open = Orb::builder().admin_unprotected("127.0.0.1:0").build().await.unwrap();
    let taken = open.admin_address().unwrap();
    let refused = Orb::builder().admin(taken.to_string()).build().await.unwrap_err();
    assert!(matches!(refused, BuildError::Listen { .. }), "{refused}");
    assert_eq!(Orb::builder().build().await.unwrap().admin_address(), None);
}

#[tokio::test]
async fn an_orb_is_ready_while_it_serves_and_gone_when_it_is_closed() {
    let orb = Orb::builder()
        .start_paused()
        .listen("iiop://127.0.0.1:0")
        .admin("127.0.0.1:0")
        .build()
        .await
        .unwrap();
    let address = orb.admin_address().unwrap();
    let ready = || async { get(address, "/ready").await.status };
    assert_eq!(ready().await, 503);
    assert_eq!(get(address, "/health").await.status, 200);
    orb.resume();
    assert_eq!(ready().await, 200);
    orb.shutdown().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn health_shows_the_problems_that_checks_find() {
    let orb = Orb::builder().admin("127.0.0.1:0").build().await.unwrap();
    let address = orb.admin_address().unwrap();
    let full = Arc::new(AtomicBool::new(false));
    let check = Arc::clone(&full);
    orb.add_health_check(move || check.load(Ordering::Relaxed).then(|| "the disk is full".to_owned()));
    orb.add_health_check(|| None);
    assert_eq!(get(address, "/health").await.status, 200);
    full.store(true, Ordering::Relaxed);
    let answer = get(address, "/health").await;
    assert_eq!((answer.status, answer.body.as_str()), (503, "the disk is full\n"));
    let status: Value = serde_json::from_str(&get(address, "/status.json").await.body).unwrap();
    assert_eq!(status["problems"], serde_json::json!(["the disk is full"]));
    full.store(false, Ordering::Relaxed);
    assert_eq!(get(address, "/health").await.status, 200);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once() {
    let served = Served::new().await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(TcpStream::connect(served.address()).await.unwrap());
    }
    // Connections are accepted in order: once the next one is rejected, each of these has a slot.
    let mut more = TcpStream::connect(served.address()).await.unwrap();
    assert_eq!(more.read(&mut [0; 1]).await.unwrap_or(0), 0, "it is closed without an answer");
    drop(open);
    let mut answered = false;
    for _ in 0..1000 {
        let mut stream = TcpStream::connect(served.address()).await.unwrap();
        let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        answered = answer.starts_with(b"HTTP/1.1 200");
        if answered {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(answered, "their seats are free again");
}

#[tokio::test(start_paused = true)]
async fn slow_connections_are_closed_after_a_timeout() {
    let served = Served::new().await;
    let begun = tokio::time::Instant::now();
    let mut open = Vec::new();
    for _ in 0..16 {
        let mut stream = TcpStream::connect(served.address()).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: local").await.unwrap();
        open.push(stream);
    }
    for stream in &mut open {
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    }
    let took = begun.elapsed().as_secs();
    assert!((5..10).contains(&took), "{took} s of virtual time");
    assert_eq!(get(served.address(), "/health").await.status, 200);
}
