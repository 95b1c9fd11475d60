//! Long sequences of structs, which are written while they are encoded.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use test_support::transport;
use zorb::prelude::*;
use zorb::{Orb, SystemExceptionKind};

zorb::idl! {
    module Long {
        struct Sample { short s; char c; long l; octet o; double d; };
        typedef sequence<Sample> Samples;
        typedef sequence<octet> Octets;
        struct Named { string name; Samples samples; };
        exception Refused { Samples samples; };
        interface Sink {
            /// So many of them.
            Samples make(in unsigned long count, out string name, out Samples others);
            Named named(in unsigned long count);
            void refuse(in unsigned long count) raises (Refused);
            Samples echo(in Samples samples);
            unsigned long long check(in string before, in Samples samples, in string behind);
            unsigned long long two(in Samples samples, in Samples others);
            unsigned long long with(in Samples samples, in Octets octets);
            oneway void push(in unsigned long number, in Samples samples);
            unsigned long pushed();
            void hold(in Samples samples);
            long add(in long a, in long b);
            void fail();
        };
    };
}

use long::{Sample, SinkRef, SinkServant};

#[derive(Default)]
struct Servant {
    pushed: std::sync::atomic::AtomicU32,
}

fn samples(n: usize) -> Vec<Sample> {
    (0..n)
        .map(|i| Sample {
            s: i as i16,
            c: Char((i * 3) as u8),
            l: i as i32 * 77,
            o: (i >> 8) as u8,
            d: i as f64,
        })
        .collect()
}

fn assert_whole(given: &[Sample]) {
    assert!(given == samples(given.len()).as_slice());
}

impl SinkServant for Servant {
    async fn make(&self, count: u32) -> Result<(Vec<Sample>, String, Vec<Sample>), SystemException> {
        let made = samples(count as usize);
        Ok((made.clone(), "between".to_owned(), made))
    }
    async fn named(&self, count: u32) -> Result<long::Named, SystemException> {
        Ok(long::Named { name: "a name".to_owned(), samples: samples(count as usize) })
    }
    async fn refuse(&self, count: u32) -> Result<(), long::sink::RefuseError> {
        Err(long::Refused { samples: samples(count as usize) }.into())
    }
    async fn echo(&self, given: &[Sample]) -> Result<Vec<Sample>, SystemException> {
        Ok(given.to_vec())
    }
    async fn check(&self, before: &str, given: &[Sample], behind: &str) -> Result<u64, SystemException> {
        assert_eq!((before, behind), ("before", "behind"));
        assert_whole(given);
        Ok(given.len() as u64)
    }
    async fn two(&self, given: &[Sample], others: &[Sample]) -> Result<u64, SystemException> {
        assert_whole(given);
        assert_whole(others);
        Ok((given.len() + others.len()) as u64)
    }
    async fn with(&self, given: &[Sample], octets: Bytes) -> Result<u64, SystemException> {
        assert_whole(given);
        assert!(octets.iter().all(|octet| *octet == 5));
        Ok((given.len() + octets.len()) as u64)
    }
    async fn push(&self, number: u32, given: &[Sample]) -> Result<(), SystemException> {
        assert_whole(given);
        let before = self.pushed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(before, number, "oneways keep their order");
        Ok(())
    }
    async fn pushed(&self) -> Result<u32, SystemException> {
        Ok(self.pushed.load(std::sync::atomic::Ordering::Relaxed))
    }
    async fn hold(&self, given: &[Sample]) -> Result<(), SystemException> {
        assert_whole(given);
        std::future::pending().await
    }
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }

    #[allow(clippy::panic)]
    async fn fail(&self) -> Result<(), SystemException> {
        panic!("as it is to")
    }
}

async fn two_orbs() -> (Orb, Orb, SinkRef) {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: SinkRef = server.activate(Servant::default()).unwrap();
    let client = transport::builder().build().await.unwrap();
    let sink = client.resolve(&published.to_string()).await.unwrap();
    (client, server, sink)
}

/// Numbers of elements of 24 bytes each: around the length from which on they are sent in pieces, and more
/// than a socket accepts at once.
const COUNTS: [usize; 4] = [21_844, 21_845, 21_846, 200_000];

async fn exchange(sink: &SinkRef) {
    for n in COUNTS {
        let given = samples(n);
        assert!(sink.echo(&given).await.unwrap() == given, "{n}");
        assert_eq!(sink.check("before", &given, "behind").await.unwrap(), n as u64);
        assert_eq!(sink.two(&given, &given).await.unwrap(), 2 * n as u64);
        if n < 100_000 {
            let (made, between, others) = sink.make(n as u32).await.unwrap();
            assert!(made == given && between == "between" && others == given, "{n}");
        }
        let named = sink.named(n as u32).await.unwrap();
        assert!(named.name == "a name" && named.samples == given, "{n}");
        let refused = sink.refuse(n as u32).await.unwrap_err();
        assert!(
            matches!(refused, long::sink::RefuseError::Refused(refused) if refused.samples == given),
            "{n}"
        );
        assert_eq!(sink.with(&given, Bytes::from(vec![5; 100_000])).await.unwrap(), n as u64 + 100_000);
    }
}

#[tokio::test]
async fn they_arrive_as_they_are_beside_arguments_of_any_kind() {
    let (_client, _server, sink) = two_orbs().await;
    exchange(&sink).await;
    let pair = zorb::testing::pair();
    let published: SinkRef = pair.server.activate(Servant::default()).unwrap();
    exchange(&pair.client.resolve(&published.to_string()).await.unwrap()).await;
}

#[tokio::test]
async fn every_version_takes_them() {
    for version in [zorb::wire::Version::V1_0, zorb::wire::Version::V1_1, zorb::wire::Version::V1_2] {
        let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let published: SinkRef = server.activate(Servant::default()).unwrap();
        let client = transport::builder().max_giop_version(version).build().await.unwrap();
        let sink: SinkRef = client.resolve(&published.to_string()).await.unwrap();
        for n in [21_845, 100_001] {
            assert_eq!(sink.check("before", &samples(n), "behind").await.unwrap(), n as u64, "{version:?}");
            assert!(sink.echo(&samples(n)).await.unwrap() == samples(n), "{version:?}");
        }
    }
}

/// Many callers of one connection, on several threads: each message arrives complete, and oneways in their
/// order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_of_one_connection_do_not_disturb_each_other() {
    let (client, _server, sink) = two_orbs().await;
    let given = samples(100_000);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let (calling, given) = (sink.clone(), given.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                assert_eq!(calling.check("before", &given, "behind").await.unwrap(), given.len() as u64);
            }
        }));
        let making = sink.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                assert_whole(&making.named(60_000).await.unwrap().samples);
            }
        }));
        let adding = sink.clone();
        tasks.push(tokio::spawn(async move {
            for i in 0..500 {
                assert_eq!(adding.add(i, 7).await.unwrap(), i + 7);
            }
        }));
    }
    let pushing = sink.clone();
    tasks.push(tokio::spawn(async move {
        for number in 0..10 {
            pushing.push(number, &given).await.unwrap();
        }
        assert_eq!(pushing.pushed().await.unwrap(), 10);
    }));
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(client.open_connections(), 1);
}

#[tokio::test]
async fn calls_that_are_given_up_leave_the_connection_good() {
    let (client, _server, sink) = two_orbs().await;
    let given = samples(200_000);
    let hasty = sink.with_timeout(Duration::from_millis(50));
    for _ in 0..2 {
        assert_eq!(hasty.hold(&given).await.unwrap_err().kind, SystemExceptionKind::Timeout);
        assert!(tokio::time::timeout(Duration::from_millis(20), sink.hold(&given)).await.is_err());
        assert_eq!(sink.check("before", &given, "behind").await.unwrap(), given.len() as u64);
    }
    assert_eq!(client.open_connections(), 1);
}

#[tokio::test]
async fn servants_that_run_elsewhere_answer_so_too() {
    let (client, server, _) = two_orbs().await;
    for activation in [server.activation().blocking(), server.activation().spawned()] {
        let published: SinkRef = activation.activate(Servant::default()).unwrap();
        let sink: SinkRef = client.resolve(&published.to_string()).await.unwrap();
        let calls = [100_000, 22_000, 50_000].map(|n| {
            let sink = sink.clone();
            tokio::spawn(async move { assert_whole(&sink.named(n).await.unwrap().samples) })
        });
        for call in calls {
            call.await.unwrap();
        }
    }
}

/// A client that does not read: the full socket interrupts the reply, which is complete nevertheless.
#[tokio::test]
async fn a_reply_that_is_given_up_leaves_the_connection_good() {
    let (client, server, sink) = two_orbs().await;
    let hasty = sink.with_timeout(Duration::from_millis(1));
    for _ in 0..8 {
        if let Err(error) = hasty.named(100_000).await {
            assert_eq!(error.kind, SystemExceptionKind::Timeout);
        }
        assert_eq!(sink.add(3, 4).await.unwrap(), 7);
    }
    assert_whole(&sink.named(200_000).await.unwrap().samples);
    assert_eq!((client.open_connections(), server.open_connections()), (1, 1));
}

#[tokio::test]
async fn a_reply_leaves_in_pieces() {
    let (_client, server, sink) = two_orbs().await;
    let given = samples(43_690);
    // Its reply has a separate buffer, which cannot send pieces.
    assert_eq!(sink.fail().await.unwrap_err().kind, SystemExceptionKind::Unknown);
    let mut writes = 0;
    // The socket's buffer grows with the amount of data sent.
    for _ in 0..5 {
        let before = server.stats().writes;
        for _ in 0..10 {
            sink.named(43_690).await.unwrap();
        }
        writes = server.stats().writes - before;
    }
    assert!(sink.echo(&given).await.unwrap() == given);
    if transport::transport() == zorb::Transport::Epoll {
        assert_eq!(writes, 40);
    } else {
        assert!(writes <= 20, "what a ring writes is given to it whole: {writes}");
    }
}

/// Reads a message, and returns its type and its length.
fn message(socket: &mut TcpStream) -> (u8, usize) {
    let mut header = [0; 12];
    socket.read_exact(&mut header).unwrap();
    assert_eq!(&header[..4], b"GIOP");
    let size = header[8..].try_into().unwrap();
    let size = if header[6] & 1 == 1 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    let mut body = vec![0; size as usize];
    socket.read_exact(&mut body).unwrap();
    (header[7], body.len())
}

#[tokio::test]
async fn a_deadline_in_the_middle_of_a_message_cuts_nothing_off() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (proceed, wait) = std::sync::mpsc::channel();
    let peer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        // Nothing is read before the deadline: the socket is full.
        wait.recv().unwrap();
        [message(&mut socket), message(&mut socket), message(&mut socket)]
    });
    let client = transport::builder().build().await.unwrap();
    let sink: SinkRef = client.resolve_unchecked(&format!("corbaloc:iiop:1.2@{address}/sink")).await.unwrap();
    let given = samples(600_000);
    // Long enough that some of it has been sent by then: otherwise it is withdrawn.
    let hasty = sink.with_timeout(Duration::from_secs(2));
    assert_eq!(hasty.hold(&given).await.unwrap_err().kind, SystemExceptionKind::Timeout);
    proceed.send(()).unwrap();
    sink.push(0, &[]).await.unwrap();
    let seen = tokio::task::spawn_blocking(|| peer.join().unwrap()).await.unwrap();
    let [request, cancel, push] = seen;
    assert!(request.0 == 0 && (24 * 600_000..24 * 600_000 + 200).contains(&request.1), "{seen:?}");
    assert_eq!((cancel, push.0), ((2, 4), 0), "{seen:?}");
}

#[tokio::test]
async fn each_piece_is_a_write_with_what_stands_before_or_behind_it() {
    let (client, _server, sink) = two_orbs().await;
    let (given, n) = (samples(43_690), 10);
    let mut writes = 0;
    // The socket's buffer grows with the amount of data sent.
    for _ in 0..5 {
        let before = client.stats().writes;
        for _ in 0..n {
            sink.check("before", &given, "behind").await.unwrap();
        }
        writes = client.stats().writes - before;
    }
    if transport::transport() == zorb::Transport::Epoll {
        assert_eq!(writes, 4 * n);
    } else {
        assert!(writes <= 2 * n, "what a ring writes is given to it whole: {writes}");
    }
}
