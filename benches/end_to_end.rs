//! Calls over loopback TCP, compared with the same traffic on raw sockets.
//!
//! ```text
//! cargo bench --bench end_to_end                 # all, in about two minutes
//! cargo bench --bench end_to_end -- ping
//! cargo bench --bench end_to_end -- --test       # each once
//! ```
//!
//! *zorb* is a client and a server ORB, each on a thread of its own with a current_thread runtime; *zorb,
//! workers* runs the client as a task of a multi-thread runtime. *sockets* is a typical application without
//! middleware: two threads, blocking sockets, one vectored write a message, and a new buffer for each message
//! at the receiver. *sockets, tokio* are two bare tokio sockets. Bytes, doubles and structs are sent by
//! oneways. A call at the end confirms them, and is included in the time. For structs, the sockets carry the
//! same number of bytes, which are not decoded.
//!
//! Only ratios within one run are meaningful: compare the medians of one group. `ttcp run` measures the same
//! between two processes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark; criterion's macros document nothing"
)]

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use rustix::buffer::spare_capacity;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use zorb::prelude::*;

zorb::idl! {
    struct BinStruct { short s; char c; long l; octet o; double d; };
    typedef sequence<octet> Octets;
    typedef sequence<double> Doubles;
    typedef sequence<BinStruct> Structs;

    interface Sink {
        void ping();
        oneway void octets(in Octets data);
        oneway void doubles(in Doubles data);
        oneway void structs(in Structs data);
        /// Returns the number of bytes received since the previous call.
        unsigned long long sync();
    };
}

/// Size of a struct in CDR, bytes.
const STRUCT: usize = 24;

#[derive(Default)]
struct Counter {
    received: AtomicU64,
}

impl Counter {
    fn add(&self, octets: usize) -> Result<(), SystemException> {
        self.received.fetch_add(octets as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl SinkServant for Counter {
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn octets(&self, data: Bytes) -> Result<(), SystemException> {
        self.add(data.len())
    }

    async fn doubles(&self, data: Seq<f64>) -> Result<(), SystemException> {
        self.add(size_of_val::<[f64]>(&data))
    }

    async fn structs(&self, data: &[BinStruct]) -> Result<(), SystemException> {
        self.add(data.len() * STRUCT)
    }

    async fn sync(&self) -> Result<u64, SystemException> {
        Ok(self.received.swap(0, Ordering::Relaxed))
    }
}

fn end_to_end(c: &mut Criterion) {
    let server = Server::start();
    let sockets = Sockets::start();
    let alone = Client::new(Builder::new_current_thread(), &server);

    let mut group = group(c, "ping");
    group.throughput(Throughput::Elements(1));
    group.bench_function("sockets", |b| {
        b.iter_custom(|n| sockets.time(n, |sockets| sockets.ping()));
    });
    group.bench_function("sockets, tokio", |b| b.iter_custom(time_tokio_pings));
    group.bench_function("zorb", |b| {
        b.iter_custom(|n| alone.time(n, async |sink| sink.ping().await.unwrap()));
    });
    let workers = Client::new(Builder::new_multi_thread(), &server);
    group.bench_function("zorb, workers", |b| {
        b.iter_custom(|n| workers.time_pings_of_a_task(n));
    });
    drop(workers);
    group.finish();

    for (name, size) in [("1 KiB", 1 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20)] {
        let mut group = self::group(c, &format!("octet {name}"));
        flood_sockets(&mut group, &sockets, size);
        let octets = Bytes::from(vec![b'z'; size]);
        group.bench_function("zorb", |b| {
            b.iter_custom(|n| alone.flood(n, size, async |sink| sink.octets(octets.clone()).await.unwrap()));
        });
        group.finish();
    }

    let mut group = self::group(c, "double 64 KiB");
    flood_sockets(&mut group, &sockets, 64 << 10);
    let doubles: Seq<f64> = (0..8192).map(f64::from).collect();
    group.bench_function("zorb", |b| {
        b.iter_custom(|n| {
            alone.flood(n, 64 << 10, async |sink| sink.doubles(doubles.clone()).await.unwrap())
        });
    });
    group.finish();

    let structs: Vec<BinStruct> = (0..(64 << 10) / 24)
        .map(|i| BinStruct { s: i as i16, c: Char(b'c'), l: i, o: i as u8, d: f64::from(i) })
        .collect();
    let size = structs.len() * STRUCT;
    let mut group = self::group(c, "struct 64 KiB");
    flood_sockets(&mut group, &sockets, size);
    group.bench_function("zorb", |b| {
        b.iter_custom(|n| alone.flood(n, size, async |sink| sink.structs(&structs).await.unwrap()));
    });
    group.finish();
}

fn group<'c>(c: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group
}

fn flood_sockets(group: &mut BenchmarkGroup<'_, WallTime>, sockets: &Sockets, size: usize) {
    group.throughput(Throughput::Bytes(size as u64));
    let payload = vec![b'z'; size];
    group.bench_function("sockets", |b| b.iter_custom(|n| sockets.flood(n, &payload)));
}

/// A server ORB on a thread of its own.
struct Server {
    reference: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        let (ready, reference) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let thread = thread::spawn(move || {
            current_thread().block_on(async {
                let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
                let sink: SinkRef = orb.activate(Counter::default()).unwrap();
                ready.send(sink.to_string()).unwrap();
                let _ = ended.await;
                orb.shutdown().await;
            });
        });
        Self { reference: reference.recv().unwrap(), end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A client ORB in its runtime.
struct Client {
    runtime: Runtime,
    sink: SinkRef,
    _orb: Orb,
}

impl Client {
    fn new(mut builder: Builder, server: &Server) -> Self {
        let runtime = builder.enable_all().build().unwrap();
        let reference = server.reference.clone();
        let connect = async move {
            let orb = Orb::builder().build().await.unwrap();
            let sink: SinkRef = orb.resolve(&reference).await.unwrap();
            (orb, sink)
        };
        let (orb, sink) = runtime.block_on(async { tokio::spawn(connect).await }).unwrap();
        Self { runtime, sink, _orb: orb }
    }

    /// Returns the duration of `n` pings of a task. The root task of a multi-thread runtime runs outside of
    /// its workers, which is slower.
    fn time_pings_of_a_task(&self, n: u64) -> Duration {
        let sink = self.sink.clone();
        let task = self.runtime.spawn(async move {
            let start = Instant::now();
            for _ in 0..n {
                sink.ping().await.unwrap();
            }
            start.elapsed()
        });
        self.runtime.block_on(task).unwrap()
    }

    /// Returns the duration of `n` sequential calls.
    fn time<F>(&self, n: u64, call: F) -> Duration
    where
        F: AsyncFn(&SinkRef),
    {
        self.runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..n {
                call(&self.sink).await;
            }
            start.elapsed()
        })
    }

    /// Returns the duration of `n` oneways until the server has received all of them.
    fn flood<F>(&self, n: u64, size: usize, send: F) -> Duration
    where
        F: AsyncFn(&SinkRef),
    {
        self.runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..n {
                send(&self.sink).await;
            }
            assert_eq!(self.sink.sync().await.unwrap(), n * size as u64);
            start.elapsed()
        })
    }
}

/// Returns the duration of `n` pings between two bare tokio sockets, each on a thread and a runtime of its
/// own.
fn time_tokio_pings(n: u64) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        current_thread().block_on(async {
            let stream = tokio_stream(listener.accept().unwrap().0);
            for _ in 0..n {
                receive(&stream, HEADER + PING_OUT).await;
                stream.try_write(&[0; PING_BACK]).unwrap();
            }
        });
    });
    let time = current_thread().block_on(async {
        let stream = tokio_stream(TcpStream::connect(address).unwrap());
        stream.writable().await.unwrap();
        let start = Instant::now();
        for _ in 0..n {
            stream.try_write(&[0; HEADER + PING_OUT]).unwrap();
            receive(&stream, PING_BACK).await;
        }
        start.elapsed()
    });
    server.join().unwrap();
    time
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn tokio_stream(stream: TcpStream) -> tokio::net::TcpStream {
    stream.set_nodelay(true).unwrap();
    stream.set_nonblocking(true).unwrap();
    tokio::net::TcpStream::from_std(stream).unwrap()
}

async fn receive(stream: &tokio::net::TcpStream, mut octets: usize) {
    let mut buffer = [0; 4096];
    while octets > 0 {
        stream.readable().await.unwrap();
        match stream.try_read(&mut buffer) {
            Ok(0) => panic!("the peer is gone"),
            Ok(n) => octets -= n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Size of the header of a message on a raw socket: its kind and the length of its payload.
const HEADER: usize = 8;
const FLOOD: u32 = 0;
const SYNC: u32 = 1;
/// A ping has as many bytes as a GIOP ping, in both directions.
const PING: u32 = 2;
const PING_OUT: usize = 72 - HEADER;
const PING_BACK: usize = 24;

/// A client on a blocking socket, whose server is a thread.
struct Sockets {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Sockets {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            serve(&stream).unwrap();
        });
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, thread: Some(thread) }
    }

    fn time(&self, n: u64, call: impl Fn(&Self)) -> Duration {
        let start = Instant::now();
        for _ in 0..n {
            call(self);
        }
        start.elapsed()
    }

    fn ping(&self) {
        send(&self.stream, &header(PING, PING_OUT), &[0; PING_OUT]).unwrap();
        (&self.stream).read_exact(&mut [0; PING_BACK]).unwrap();
    }

    fn flood(&self, n: u64, payload: &[u8]) -> Duration {
        let start = Instant::now();
        let header = header(FLOOD, payload.len());
        for _ in 0..n {
            send(&self.stream, &header, payload).unwrap();
        }
        send(&self.stream, &self::header(SYNC, 0), &[]).unwrap();
        let mut count = [0; 8];
        (&self.stream).read_exact(&mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), n * payload.len() as u64);
        start.elapsed()
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.stream.shutdown(std::net::Shutdown::Both).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut incoming = Incoming { stream, ahead: Vec::with_capacity(4096) };
    let mut received = 0u64;
    while let Some((kind, len)) = incoming.header()? {
        let payload = incoming.payload(len)?;
        match kind {
            SYNC => stream.write_all(&std::mem::take(&mut received).to_ne_bytes())?,
            PING => stream.write_all(&[0; PING_BACK])?,
            _ => received += payload.len() as u64,
        }
    }
    Ok(())
}

/// Reads messages: small ones several at a time, large ones with one system call each, together with the next
/// header.
struct Incoming<'s> {
    stream: &'s TcpStream,
    ahead: Vec<u8>,
}

impl Incoming<'_> {
    /// Returns kind and length of the next message, `None` at the end of the stream.
    fn header(&mut self) -> io::Result<Option<(u32, usize)>> {
        while self.ahead.len() < HEADER {
            if rustix::io::read(self.stream, spare_capacity(&mut self.ahead))? == 0 {
                return Ok(None);
            }
        }
        let field = |at: usize| u32::from_ne_bytes(self.ahead[at..at + 4].try_into().unwrap());
        let (kind, len) = (field(0), field(4) as usize);
        self.ahead.drain(..HEADER);
        Ok(Some((kind, len)))
    }

    /// Returns the payload, in a buffer of its own that was not zeroed.
    fn payload(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut payload = Vec::with_capacity(len + HEADER);
        payload.extend(self.ahead.drain(..len.min(self.ahead.len())));
        while payload.len() < len {
            if rustix::io::read(self.stream, spare_capacity(&mut payload))? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        self.ahead.extend(payload.drain(len..));
        Ok(payload)
    }
}

fn header(kind: u32, len: usize) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&kind.to_ne_bytes());
    header[4..].copy_from_slice(&(len as u32).to_ne_bytes());
    header
}

/// Writes both by one system call, or by several if the socket's buffer is full.
fn send(mut stream: &TcpStream, header: &[u8], payload: &[u8]) -> io::Result<()> {
    let mut parts = [IoSlice::new(header), IoSlice::new(payload)];
    let mut rest = &mut parts[..];
    while !rest.is_empty() {
        let n = stream.write_vectored(rest)?;
        IoSlice::advance_slices(&mut rest, n);
    }
    Ok(())
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4));
    targets = end_to_end
}
criterion_main!(benches);
