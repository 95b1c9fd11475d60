//! Measures the naming service: calls per second compared with omniNames, and the memory and time of many
//! bindings. docs/NAMING.md explains the figures.
//!
//! ```text
//! cargo build --profile bench-lto -p cos-naming --example throughput
//! target/bench-lto/examples/throughput                                      beside omniNames
//! target/bench-lto/examples/throughput --rounds 3 --seconds 1 --clients 4 --pipelined 1
//! target/bench-lto/examples/throughput --bindings 1000000                   memory and time
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a program for a terminal")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cos_naming::Server;
use cos_naming::store::{Change, ContextId, DiskStore, Key, Lookup, MayReplace, PageLimit, Store, Target};
use zorb::cos_naming::{NameComponent, NamingContextExtRef, parse_name};
use zorb::prelude::*;

/// Names that are resolved in turn.
const NAMES: usize = 1000;

/// What can be chosen.
struct Options {
    /// Connections.
    clients: usize,
    /// Pending calls on each connection.
    pipelined: usize,
    /// Duration of each measurement.
    seconds: f64,
    rounds: usize,
    /// How many bindings the file of the other measurement has.
    bindings: Option<usize>,
}

fn main() {
    let mut options = Options { clients: 8, pipelined: 8, seconds: 2.0, rounds: 5, bindings: None };
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args.next().unwrap_or_else(|| panic_at(&option));
        let number = || value.parse().unwrap_or_else(|_| panic_at(&option));
        match option.as_str() {
            "--serve" => return serve(Path::new(&value)),
            "--clients" => options.clients = number(),
            "--pipelined" => options.pipelined = number(),
            "--rounds" => options.rounds = number(),
            "--seconds" => options.seconds = value.parse().unwrap_or_else(|_| panic_at(&option)),
            "--bindings" => options.bindings = Some(number()),
            _ => panic_at(&option),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match options.bindings {
        Some(bindings) => runtime.block_on(fill(bindings)),
        None => runtime.block_on(compare(&options)),
    }
}

fn panic_at(option: &str) -> ! {
    eprintln!("{option}: see the beginning of the program");
    std::process::exit(2)
}

/// The service, in a process of its own.
fn serve(file: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let server = Server::builder(DiskStore::open(file).unwrap()).serve(&orb).unwrap();
        println!("{}", server.root().to_corbaloc().unwrap());
        // It ends with the process that started it.
        let mut line = String::new();
        tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await.unwrap().unwrap();
    });
}

/// A naming service in another process, which ends with this.
struct Service {
    name: &'static str,
    process: Child,
    url: String,
    /// `host:port`.
    address: String,
    /// The reference that is bound, as it stands in requests.
    object: Vec<u8>,
}

impl Service {
    fn zorb(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("--serve").arg(folder.join("names.redb"));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        url.truncate(url.trim_end().len());
        Self::at("zorb", process, url)
    }

    fn omninames(folder: &Path) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new("omniNames");
        command.args(["-start", &port.to_string(), "-datadir"]).arg(folder);
        command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("omniNames: scripts/install-peers.sh installs it");
        Self::at("omniNames", process, format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService"))
    }

    fn at(name: &'static str, process: Child, url: String) -> Self {
        let address = url.rsplit_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
        Self { name, process, url, address, object: Vec::new() }
    }

    /// Processor time, in clock ticks of a hundredth of a second.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let behind = stat.rsplit_once(')').unwrap().1;
        behind.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What is measured of a service in a round.
#[derive(Clone, Copy)]
struct Figure {
    /// Calls a second.
    rate: f64,
    /// Of the server, microseconds a call.
    processor: f64,
}

async fn compare(options: &Options) {
    let folder = tempfile::tempdir().unwrap();
    let mut services = [Service::zorb(folder.path()), Service::omninames(folder.path())];
    let orb = Orb::builder().build().await.unwrap();
    let object: ObjectRef = orb.resolve_unchecked("corbaloc:iiop:1.2@192.0.2.1:1/an-object").await.unwrap();
    for service in &mut services {
        let root: NamingContextExtRef = orb.resolve_unchecked(&service.url).await.unwrap();
        while root.list(0).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        service.object = encoded(&object);
        root.bind_new_context(&parse_name("bench").unwrap()).await.unwrap();
        for number in 0..NAMES {
            let name = parse_name(&format!("bench/object{number}.kind")).unwrap();
            root.bind(&name, object.clone()).await.unwrap();
        }
        for round in 0..options.rounds {
            root.bind_new_context(&parse_name(&format!("bind{round}")).unwrap()).await.unwrap();
        }
    }
    let (clients, pipelined) = (options.clients, options.pipelined);
    println!(
        "{clients} connections, {pipelined} calls under way on each, {} s a measurement",
        options.seconds
    );
    for what in ["resolve", "bind"] {
        let mut figures = [Vec::new(), Vec::new()];
        for round in 0..options.rounds {
            // Each is first in every other round.
            for turn in 0..2 {
                let index = (round + turn) % 2;
                let figure = measure(&services[index], what, round, options);
                figures[index].push(figure);
            }
        }
        for (service, figures) in services.iter().zip(&figures) {
            let rate = median(figures.iter().map(|figure| figure.rate));
            let processor = median(figures.iter().map(|figure| figure.processor));
            println!(
                "{what:8} {:10} {rate:>9.0} calls/s   {processor:>7.1} us of processor a call",
                service.name
            );
        }
        let ratios = || figures[0].iter().zip(&figures[1]).map(|(zorb, omni)| zorb.rate / omni.rate);
        let (least, most) = ratios().fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(r), b.max(r)));
        println!("{what:8} zorb / omniNames: {:.2} ({least:.2} to {most:.2})", median(ratios()));
    }
}

/// Sends a batch of requests over every connection and reads all replies before the next batch. The requests
/// are encoded beforehand, so that the service is measured and not its client.
fn measure(service: &Service, what: &str, round: usize, options: &Options) -> Figure {
    let (end, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let (ticks, begin) = (service.ticks(), Instant::now());
    let mut rate = 0.0;
    std::thread::scope(|scope| {
        for client in 0..options.clients {
            let (end, calls) = (&end, &calls);
            scope.spawn(move || {
                let mut connection = Connection::open(&service.address);
                let mut number = client * 101;
                while !end.load(Ordering::Relaxed) {
                    let mut requests = Vec::new();
                    for _ in 0..options.pipelined {
                        number += 1;
                        if what == "bind" {
                            let name =
                                [(format!("bind{round}"), ""), (format!("object{client}-{number}"), "kind")];
                            request(&mut requests, number, "bind", &name, Some(&service.object));
                        } else {
                            let name =
                                [("bench".to_owned(), ""), (format!("object{}", number % NAMES), "kind")];
                            request(&mut requests, number, "resolve", &name, None);
                        }
                    }
                    connection.exchange(&requests, options.pipelined);
                    calls.fetch_add(options.pipelined as u64, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs_f64(options.seconds));
        rate = calls.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
        end.store(true, Ordering::Relaxed);
    });
    let processor = (service.ticks() - ticks) as f64 * 10_000.0 / calls.load(Ordering::Relaxed) as f64;
    Figure { rate, processor }
}

/// A request of GIOP 1.2 to the first context, little-endian.
fn request(out: &mut Vec<u8>, id: usize, operation: &str, name: &[(String, &str)], object: Option<&[u8]>) {
    let begin = out.len();
    let align = |out: &mut Vec<u8>, to: usize| {
        while !(out.len() - begin).is_multiple_of(to) {
            out.push(0)
        }
    };
    let long = |out: &mut Vec<u8>, value: usize| {
        align(out, 4);
        out.extend_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
    };
    let string = |out: &mut Vec<u8>, text: &str| {
        long(out, text.len() + 1);
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    };
    out.extend_from_slice(b"GIOP\x01\x02\x01\x00\0\0\0\0");
    long(out, id);
    // A reply is expected; the object by its key.
    out.extend_from_slice(&[3, 0, 0, 0, 0, 0]);
    long(out, cos_naming::DEFAULT_KEY.len());
    out.extend_from_slice(cos_naming::DEFAULT_KEY.as_bytes());
    string(out, operation);
    long(out, 0);
    align(out, 8);
    long(out, name.len());
    for (id, kind) in name {
        string(out, id);
        string(out, kind);
    }
    if let Some(object) = object {
        align(out, 4);
        out.extend_from_slice(object);
    }
    let size = u32::try_from(out.len() - begin - 12).unwrap();
    out[begin + 8..begin + 12].copy_from_slice(&size.to_le_bytes());
}

/// What requests go through.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, buffer: vec![0; 256 * 1024] }
    }

    /// Sends requests and reads as many replies, each of which must be what was asked for.
    fn exchange(&mut self, requests: &[u8], mut count: usize) {
        self.stream.write_all(requests).unwrap();
        let (mut begin, mut end) = (0, 0);
        while count > 0 {
            let there = self.stream.read(&mut self.buffer[end..]).unwrap();
            assert!(there > 0, "the service closed the connection");
            end += there;
            while end - begin >= 24 {
                let message = &self.buffer[begin..end];
                let word = |at: usize| {
                    let octets = message[at..at + 4].try_into().unwrap();
                    if message[6] & 1 == 1 { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) }
                };
                let size = 12 + word(8) as usize;
                if message.len() < size {
                    break;
                }
                // A reply without an exception.
                assert_eq!((message[7], word(16)), (1, 0), "{}", String::from_utf8_lossy(&message[..size]));
                begin += size;
                count -= 1;
            }
            if begin == end {
                (begin, end) = (0, 0);
            }
        }
    }
}

/// A reference as it stands in messages that are little-endian.
fn encoded(object: &ObjectRef) -> Vec<u8> {
    let ior = object.ior();
    let profile = ior.iiop_profile().unwrap();
    let (host, key) = (profile.host.as_bytes(), profile.object_key.as_slice());
    // Host, port and key after version 1.0. Both services can store this.
    let mut inner = vec![1, 1, 0, 0];
    let put = |inner: &mut Vec<u8>, octets: &[u8], length: usize| {
        while !inner.len().is_multiple_of(4) {
            inner.push(0);
        }
        inner.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
        inner.extend_from_slice(octets);
    };
    put(&mut inner, host, host.len() + 1);
    inner.push(0);
    if !inner.len().is_multiple_of(2) {
        inner.push(0);
    }
    inner.extend_from_slice(&profile.port.to_le_bytes());
    put(&mut inner, key, key.len());
    let mut out = Vec::new();
    put(&mut out, b"IDL:Bench/Object:1.0\0\0\0\0", 21);
    out.extend_from_slice(&1_u32.to_le_bytes());
    out.extend_from_slice(&0_u32.to_le_bytes());
    put(&mut out, &inner, inner.len());
    out
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

/// Memory of the process, in MB of a million bytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
}

/// Binds so many names in a file, and says what they take.
async fn fill(bindings: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.redb");
    let key =
        |number: usize| Key::new(&NameComponent::new(format!("account-{number:08}"), "object")).unwrap();
    // As long as one reference with its key, an address and a code set component.
    let target = || Target::Object(vec![7; 150].into());
    let empty = memory();
    let store = Arc::new(DiskStore::open(&path).unwrap());
    let begin = Instant::now();
    let lanes: Vec<_> = (0..1000)
        .map(|lane| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for number in (lane..bindings).step_by(1000) {
                    let (context, key, target) = (ContextId::ROOT, key(number), target());
                    store
                        .change(Change::Bind { context, key, target, may_replace: MayReplace::Nothing })
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for lane in lanes {
        lane.await.unwrap();
    }
    let time = begin.elapsed().as_secs_f64();
    let per_second = bindings as f64 / time;
    println!("{bindings} bindings by 1000 clients: {time:.1} s, {per_second:.0} a second, each durable");
    println!("the file: {:.0} MB", path.metadata().unwrap().len() as f64 / 1e6);
    drop(store);
    let before = memory();
    let begin = Instant::now();
    let store = DiskStore::open(&path).unwrap();
    println!("opened again: {:.1} s", begin.elapsed().as_secs_f64());
    println!("memory: {:.0} MB in all behind the bindings, {:.0} MB at the start", before, empty);
    let (mut after, mut pages, begin) = (None, 0, Instant::now());
    loop {
        let limit = PageLimit { bindings: 10_000, bytes: usize::MAX };
        let page = store.page(ContextId::ROOT, after.as_ref(), limit).await.unwrap().unwrap();
        let Some((last, _)) = page.bindings.into_iter().next_back() else { break };
        (after, pages) = (Some(last), pages + 1);
    }
    println!("listed in {pages} pages: {:.1} s", begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    for number in 0..bindings {
        let found = store.lookup(ContextId::ROOT, &key(number)).await.unwrap();
        assert!(matches!(found, Lookup::Bound(_)));
    }
    println!("looked up: {:.2} us each", begin.elapsed().as_secs_f64() * 1e6 / bindings as f64);
    drop(store);
    // By itself: what was freed above would be used again.
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--serve").arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    println!(
        "a service that has just opened it: {}",
        resident.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    let _ = process.kill();
    let _ = process.wait();
}
