//! Counts reads and writes of sockets: one of each per side for a single call, one for many gathered oneways,
//! one for a bulk message. With io_uring they are operations, and the number of system calls for them is
//! counted too.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use test_support::transport;
use zorb::prelude::*;

zorb::idl! {
    interface Sink {
        typedef sequence<octet> Octets;
        oneway void push(in Octets octets);
        void ping();
        Octets echo(in Octets octets);
    };
}

struct Servant;

impl SinkServant for Servant {
    async fn push(&self, _: Bytes) -> Result<(), SystemException> {
        Ok(())
    }
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
    async fn echo(&self, octets: Bytes) -> Result<Bytes, SystemException> {
        Ok(octets)
    }
}

/// Numbers of reads and writes.
#[derive(Debug, Clone, Copy)]
struct Calls {
    reads: u64,
    writes: u64,
    /// System calls for the ring, which both sides share if it belongs to the runtime.
    enters: u64,
}

/// Returns the counts of client and server for `work`, both on this thread, after a warm-up.
async fn count(work: impl AsyncFn(&SinkRef)) -> (Calls, Calls) {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: SinkRef = server.activate(Servant).unwrap();
    let client = transport::builder().build().await.unwrap();
    let (client_orb, server_orb) = (client.clone(), server.clone());
    let sink: SinkRef = client.resolve(&published.to_string()).await.unwrap();
    let so_far = || {
        [&client, &server].map(|orb| {
            let stats = orb.stats();
            Calls { reads: stats.reads, writes: stats.writes, enters: orb.transport_stats().enter_calls }
        })
    };
    work(&sink).await;
    sink.ping().await.unwrap();
    let before = so_far();
    work(&sink).await;
    sink.ping().await.unwrap();
    let after = so_far();
    let [client, server] = std::array::from_fn(|i| Calls {
        reads: after[i].reads - before[i].reads,
        writes: after[i].writes - before[i].writes,
        enters: after[i].enters - before[i].enters,
    });
    transport::assert_used(&client_orb);
    transport::assert_used(&server_orb);
    (client, server)
}

/// Asserts that neither side enters the kernel for its operations more often than `each` times. On one
/// runtime, both sides share a ring.
#[track_caller]
fn assert_enters(client: Calls, server: Calls, each: u64) {
    let most = match transport::transport() {
        zorb::Transport::Epoll => 0,
        zorb::Transport::IoUring => 2 * (each + 20),
        _ => each + 20,
    };
    assert!(client.enters <= most && server.enters <= most, "{client:?} {server:?}: more than {most}");
}

#[tokio::test]
async fn a_lone_call_is_one_write_and_one_read_a_side() {
    let n = 1000;
    let (client, server) = count(async |sink| {
        for _ in 0..n {
            sink.ping().await.unwrap();
        }
    })
    .await;
    // The driver checks now and then, and finds nothing. The last reply may not be counted yet if another
    // thread wrote it.
    let about = |calls: u64| (n..=n + n / 10).contains(&calls);
    assert!(about(client.writes) && about(client.reads), "{client:?}");
    assert!(about(server.writes) && about(server.reads), "{server:?}");
    // One that sends and one that receives again, unless they coincide.
    assert_enters(client, server, 2 * n);
}

#[tokio::test]
async fn gathered_oneways_share_writes_and_reads() {
    let (rounds, n, octets) = (20, 200, Bytes::from(vec![7; 1024]));
    let (client, server) = count(async |sink| {
        for _ in 0..rounds {
            // With the clock paused, no message is late enough to be written alone.
            tokio::time::pause();
            for _ in 0..n {
                sink.push(octets.clone()).await.unwrap();
            }
            tokio::time::resume();
            sink.ping().await.unwrap();
        }
    })
    .await;
    if transport::has_threads() {
        // Another thread writes in the meantime: how many share a write is random.
        assert!(client.writes < rounds * n && client.reads <= rounds + 10, "{client:?}");
        return;
    }
    // 64 KiB hold 58 of these messages with their headers; a full socket would accept the rest of a write in
    // pieces.
    assert!(client.writes <= rounds * n / 10, "{client:?}");
    assert!(server.reads <= rounds * n / 10, "{server:?}");
    assert!(client.reads <= rounds + 10 && server.writes <= rounds + 10, "{client:?} {server:?}");
    assert_enters(client, server, rounds * n / 10);
}

#[tokio::test]
async fn a_bulk_message_is_no_more_than_one_write_and_one_read() {
    let n = 200;
    for size in [64 << 10, 128 << 10] {
        let octets = Bytes::from(vec![7; size]);
        let (client, server) = count(async |sink| {
            for _ in 0..n {
                sink.push(octets.clone()).await.unwrap();
                // The other side runs, as it would in a process of its own.
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(client.writes <= n + 10, "{size}: {client:?}");
        // A ring receives the next header by a separate operation, which is submitted with the other one.
        let reads = if transport::transport() == zorb::Transport::Epoll { n } else { 2 * n };
        assert!(server.reads <= reads + 10, "{size}: {server:?}");
        assert_enters(client, server, n);
    }
}

#[tokio::test]
async fn a_bulk_echo_is_one_write_and_two_reads_a_side() {
    let (n, octets) = (100, Bytes::from(vec![7; 64 << 10]));
    let (client, server) = count(async |sink| {
        for _ in 0..n {
            assert_eq!(sink.echo(octets.clone()).await.unwrap().len(), octets.len());
        }
    })
    .await;
    // The header of a message of unknown size is read first: one more read, unless the previous message was
    // similar.
    assert!(client.writes <= n + 10 && server.writes <= n + 10, "{client:?} {server:?}");
    assert!(client.reads <= 2 * n + 10 && server.reads <= 2 * n + 10, "{client:?} {server:?}");
    assert_enters(client, server, 2 * n);
}

/// Forwards a client's data in pieces of 1 KiB, and the replies as they arrive. Returns its own port.
fn trickle(to: &str) -> u16 {
    let (listener, to) = (TcpListener::bind("127.0.0.1:0").unwrap(), to.to_owned());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut far = TcpStream::connect(to).unwrap();
        far.set_nodelay(true).unwrap();
        let (mut back, mut there) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        let replies = std::thread::spawn(move || std::io::copy(&mut back, &mut there));
        let mut piece = [0; 1024];
        while let Ok(n @ 1..) = near.read(&mut piece) {
            far.write_all(&piece[..n]).unwrap();
            std::thread::sleep(Duration::from_micros(20));
        }
        far.shutdown(std::net::Shutdown::Write).unwrap();
        drop(replies.join());
    });
    port
}

/// Returns the number of reads of a server that received bulk messages in 3,072 pieces.
fn reads_of_pieces(low_water: bool) -> u64 {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    // A separate thread, because the number of its wake-ups is counted.
    let serving = std::thread::spawn(move || {
        runtime().block_on(async move {
            let server = transport::builder().receive_low_water_mark(low_water);
            let server = server.listen("iiop://127.0.0.1:0").build().await.unwrap();
            let _: SinkRef = server.activate_named("sink", Servant).unwrap();
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            sender.send((server.endpoints().remove(0), stop)).unwrap();
            stopped.await.unwrap();
            server.stats()
        })
    });
    let (endpoint, stop) = receiver.recv().unwrap();
    let port = trickle(&endpoint.to_string());
    runtime().block_on(async {
        let client = transport::builder().build().await.unwrap();
        let url: ObjectRef =
            client.resolve_unchecked(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/sink")).await.unwrap();
        // A reference, because for details that a URL lacks, the server would be queried over another
        // connection.
        let sink: SinkRef = client.resolve_unchecked(&url.ior().to_string()).await.unwrap();
        for size in [1, 2 << 20, 700, 1 << 20, 3] {
            let octets = Bytes::from(vec![7; size]);
            assert_eq!(sink.echo(octets.clone()).await.unwrap(), octets);
        }
        client.shutdown().await;
    });
    stop.send(()).unwrap();
    let stats = serving.join().unwrap();
    stats.reads
}

#[test]
fn bulk_message_in_small_pieces_needs_few_reads() {
    // The grants of memory for a first large message begin at 64 KiB; for the next one, 512 KiB are awaited.
    let reads = reads_of_pieces(true);
    assert!(reads < 100, "{reads}");
}

#[test]
fn without_the_option_every_piece_wakes() {
    let reads = reads_of_pieces(false);
    let asked = transport::transport() == zorb::Transport::Epoll;
    assert!(if asked { reads > 300 } else { reads < 100 }, "{reads}: a ring waits for the whole by itself");
}
