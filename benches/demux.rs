//! The cost of finding the target of a request: by strategy, and by the number of operations, objects and
//! POAs.
//!
//! ```text
//! cargo bench --bench demux                    # times, in about two minutes
//! cargo bench --bench demux -- objects/
//! cargo bench --bench demux -- --test          # small sizes, each once; instructions too, with valgrind
//! benchmarks/demux.sh DIRECTORY                # times and instructions, as tables
//! ```
//!
//! A call without arguments over loopback TCP, one at a time; client and server are ORBs on a thread each.
//! The operation is the last of its interface. The object is the last that was activated, or one of eight
//! objects in turn: a connection finds the object of the previous request without a look-up. POAs are nested,
//! and each call is for an object of the innermost.
//!
//! `demux count SERVER|CLIENT KEY=VALUE...` makes some calls within a function whose instructions callgrind
//! counts (`--toggle-collect`). Only the thread of that side runs in it, and only while the calls are made.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark; criterion's macros document nothing"
)]

use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use zorb::prelude::*;
use zorb::{Demux, ObjectDemux, OperationDemux, PathDemux, Poa, Servant};

zorb::idl!(
    r###"
        #define TEN(name) \
            void name##0(); void name##1(); void name##2(); void name##3(); void name##4(); \
            void name##5(); void name##6(); void name##7(); void name##8(); void name##9();
        #define HUNDRED(name) \
            TEN(name##0) TEN(name##1) TEN(name##2) TEN(name##3) TEN(name##4) \
            TEN(name##5) TEN(name##6) TEN(name##7) TEN(name##8) TEN(name##9)

        interface One { void m000(); };
        interface Ten { TEN(m00) };
        interface Hundred { HUNDRED(m0) };
    "###,
    default_bodies
);

/// Only compiled for measurements: rustc needs more than a minute for it.
#[cfg(not(debug_assertions))]
mod thousand {
    zorb::idl!(
        r###"
        #define TEN(name) \
            void name##0(); void name##1(); void name##2(); void name##3(); void name##4(); \
            void name##5(); void name##6(); void name##7(); void name##8(); void name##9();
        #define HUNDRED(name) \
            TEN(name##0) TEN(name##1) TEN(name##2) TEN(name##3) TEN(name##4) \
            TEN(name##5) TEN(name##6) TEN(name##7) TEN(name##8) TEN(name##9)
        #define THOUSAND(name) \
            HUNDRED(name##0) HUNDRED(name##1) HUNDRED(name##2) HUNDRED(name##3) HUNDRED(name##4) \
            HUNDRED(name##5) HUNDRED(name##6) HUNDRED(name##7) HUNDRED(name##8) HUNDRED(name##9)

        interface Thousand { THOUSAND(m) };
    "###,
        default_bodies
    );

    impl ThousandServant for super::Nothing {
        async fn m999(&self) -> Result<(), zorb::SystemException> {
            Ok(())
        }
    }
}

/// A servant of all interfaces, of which only the last operation is called.
struct Nothing;

impl OneServant for Nothing {
    async fn m000(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl TenServant for Nothing {
    async fn m009(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl HundredServant for Nothing {
    async fn m099(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The contents of a server, and its look-up strategies.
#[derive(Clone, Copy)]
struct Shape {
    operations: usize,
    objects: usize,
    /// Number of nested POAs below the root.
    depth: usize,
    demux: Demux,
}

impl Default for Shape {
    fn default() -> Self {
        Self { operations: 1, objects: 1, depth: 0, demux: Demux::new() }
    }
}

impl Shape {
    fn servant(&self) -> Servant {
        match self.operations {
            1 => Servant::of::<OneRef, _>(Nothing),
            10 => Servant::of::<TenRef, _>(Nothing),
            100 => Servant::of::<HundredRef, _>(Nothing),
            #[cfg(not(debug_assertions))]
            1000 => Servant::of::<thousand::ThousandRef, _>(Nothing),
            other => panic!("there is no interface of {other} operations"),
        }
    }

    /// Activates the objects, and returns references to the `turns` objects that are called. The last object
    /// is the last of them.
    fn activate(&self, orb: &Orb, turns: usize) -> Vec<String> {
        let mut poa: Poa = orb.root_poa();
        for depth in 0..self.depth {
            poa = poa.child(format!("level{depth:03}")).create().unwrap();
        }
        let ids: Vec<_> = (0..self.objects).map(|_| poa.activate_object(self.servant()).unwrap()).collect();
        let turns = turns.min(self.objects);
        let called = (1..=turns).map(|turn| &ids[self.objects * turn / turns - 1]);
        called.map(|id| poa.id_to_reference(id).unwrap().to_string()).collect()
    }
}

/// A server ORB on a thread of its own.
struct Server {
    references: Vec<String>,
    count: Option<oneshot::Sender<()>>,
    counting: mpsc::Receiver<()>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(shape: Shape, turns: usize) -> Self {
        let (ready, references) = mpsc::channel();
        let (count, counted) = oneshot::channel();
        let (begin, counting) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = current_thread();
            let orb = Orb::builder().demux(shape.demux).listen("iiop://127.0.0.1:0");
            let orb = runtime.block_on(orb.build()).unwrap();
            ready.send(shape.activate(&orb, turns)).unwrap();
            let _ = runtime.block_on(counted);
            count_server_here(&runtime, &begin, ended);
            runtime.block_on(orb.shutdown());
        });
        let references = references.recv().unwrap();
        Self { references, count: Some(count), counting, end: Some(end), thread: Some(thread) }
    }

    /// Moves the server into the counted function.
    fn count(&mut self) {
        drop(self.count.take());
        self.counting.recv().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.count.take());
        drop(self.end.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

#[inline(never)]
fn count_server_here(runtime: &Runtime, begin: &mpsc::Sender<()>, ended: oneshot::Receiver<()>) {
    let _ = begin.send(());
    let _ = runtime.block_on(ended);
}

#[inline(never)]
fn count_client_here(client: &Client, calls: usize) {
    client.call(calls);
}

/// The last operation of an object.
enum Last {
    One(OneRef),
    Ten(TenRef),
    Hundred(HundredRef),
    #[cfg(not(debug_assertions))]
    Thousand(thousand::ThousandRef),
}

/// A client ORB in its runtime.
struct Client {
    runtime: Runtime,
    objects: Vec<Last>,
    _orb: Orb,
}

impl Client {
    fn new(server: &Server, shape: Shape) -> Self {
        let runtime = current_thread();
        let (orb, objects) = runtime.block_on(async {
            let orb = Orb::builder().build().await.unwrap();
            let mut objects = Vec::new();
            for reference in &server.references {
                objects.push(match shape.operations {
                    1 => Last::One(orb.resolve(reference).await.unwrap()),
                    10 => Last::Ten(orb.resolve(reference).await.unwrap()),
                    #[cfg(not(debug_assertions))]
                    1000 => Last::Thousand(orb.resolve(reference).await.unwrap()),
                    _ => Last::Hundred(orb.resolve(reference).await.unwrap()),
                });
            }
            (orb, objects)
        });
        Self { runtime, objects, _orb: orb }
    }

    /// Returns the duration of `calls` sequential calls, to the objects in turn.
    fn call(&self, calls: usize) -> Duration {
        self.runtime.block_on(async {
            let start = Instant::now();
            for object in self.objects.iter().cycle().take(calls) {
                let called = match object {
                    Last::One(object) => object.m000().await,
                    Last::Ten(object) => object.m009().await,
                    Last::Hundred(object) => object.m099().await,
                    #[cfg(not(debug_assertions))]
                    Last::Thousand(object) => object.m999().await,
                };
                called.unwrap();
            }
            start.elapsed()
        })
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Numbers of operations of the interfaces.
const SIZES: &[usize] = if cfg!(debug_assertions) { &[1, 10, 100] } else { &[1, 10, 100, 1000] };

/// The compared strategies, by their names in tables.
const OPERATIONS: [(&str, OperationDemux); 5] = [
    ("perfect", OperationDemux::Perfect),
    ("linear", OperationDemux::Linear),
    ("sorted", OperationDemux::Sorted),
    ("hash", OperationDemux::Hash),
    ("numeric", OperationDemux::Numeric),
];
const OBJECTS: [(&str, ObjectDemux); 3] =
    [("active", ObjectDemux::Active), ("hash", ObjectDemux::Hash), ("linear", ObjectDemux::Linear)];
const PATHS: [(&str, PathDemux); 3] =
    [("flat", PathDemux::Flat), ("layered", PathDemux::Layered), ("delayered", PathDemux::DeLayered)];

fn times(c: &mut Criterion, small: bool) {
    let mut group = c.benchmark_group("operations");
    group.sampling_mode(SamplingMode::Flat);
    for (name, way) in OPERATIONS {
        for &operations in SIZES {
            let demux = Demux::new().operations(way);
            time(&mut group, name, operations, Shape { operations, demux, ..Shape::default() }, 1);
        }
    }
    // One look-up finds operation and object.
    for &operations in SIZES {
        let demux = Demux::new().path(PathDemux::DeLayered);
        time(&mut group, "delayered", operations, Shape { operations, demux, ..Shape::default() }, 1);
    }
    group.finish();

    // Found again without a look-up, regardless of the strategy.
    let mut group = c.benchmark_group("one object");
    group.sampling_mode(SamplingMode::Flat);
    let largest = if small { 100 } else { 1_000_000 };
    for objects in [1, 100, 10_000, 1_000_000].into_iter().filter(|objects| *objects <= largest) {
        time(&mut group, "active", objects, Shape { objects, ..Shape::default() }, 1);
    }
    group.finish();

    let mut group = c.benchmark_group("objects");
    group.sampling_mode(SamplingMode::Flat);
    for (name, way) in OBJECTS {
        for objects in [8, 100, 10_000, 1_000_000].into_iter().filter(|objects| *objects <= largest) {
            let demux = Demux::new().objects(way);
            time(&mut group, name, objects, Shape { objects, demux, ..Shape::default() }, 8);
        }
    }
    group.finish();

    let mut group = c.benchmark_group("POAs");
    group.sampling_mode(SamplingMode::Flat);
    for (name, way) in PATHS {
        for depth in [1, 2, 4, 8, 16, 32] {
            let demux = Demux::new().path(way);
            time(&mut group, name, depth, Shape { depth, demux, objects: 8, ..Shape::default() }, 8);
        }
    }
    group.finish();
}

fn time(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    way: &str,
    size: usize,
    shape: Shape,
    turns: usize,
) {
    // Created only if it is measured.
    let mut place = None;
    group.bench_function(BenchmarkId::new(way, size), |b| {
        let (client, _server) = place.get_or_insert_with(|| {
            let server = Server::start(shape, turns);
            (Client::new(&server, shape), server)
        });
        b.iter_custom(|n| client.call(n as usize));
    });
}

/// Makes calls to be counted: `SERVER|CLIENT KEY=VALUE...`.
fn count(arguments: &[String]) {
    let mut shape = Shape::default();
    let (mut turns, mut calls) = (1, 1000);
    for argument in &arguments[1..] {
        let (key, value) = argument.split_once('=').unwrap();
        let number = || value.parse().unwrap();
        match key {
            "operations" => shape.operations = number(),
            "objects" => shape.objects = number(),
            "depth" => shape.depth = number(),
            "turns" => turns = number(),
            "calls" => calls = number(),
            "find" => shape.demux = demux(value),
            other => panic!("no such key: {other}"),
        }
    }
    let mut server = Server::start(shape, turns);
    let client = Client::new(&server, shape);
    client.call(turns.max(calls / 10));
    match arguments[0].as_str() {
        "server" => {
            server.count();
            client.call(calls);
        }
        "client" => count_client_here(&client, calls),
        other => panic!("no such side: {other}"),
    }
}

/// Returns a strategy by its kind and name: `operations:linear`.
fn demux(name: &str) -> Demux {
    let named = |kind: &str, ways: &[&str]| ways.iter().position(|way| name == format!("{kind}:{way}"));
    if let Some(at) = named("operations", &OPERATIONS.map(|(name, _)| name)) {
        Demux::new().operations(OPERATIONS[at].1)
    } else if let Some(at) = named("objects", &OBJECTS.map(|(name, _)| name)) {
        Demux::new().objects(OBJECTS[at].1)
    } else if let Some(at) = named("path", &PATHS.map(|(name, _)| name)) {
        Demux::new().path(PATHS[at].1)
    } else {
        panic!("no such way: {name}")
    }
}

/// Returns the instructions of a side for each call, if valgrind is installed.
fn counted(side: &str, shape: &[&str]) -> Option<f64> {
    let calls = 200;
    let program = std::env::current_exe().unwrap();
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*count_{side}_here*"))
        .arg(program)
        .args(["count", side, &format!("calls={calls}")])
        .args(shape)
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{said}");
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")).unwrap().1;
    Some(collected.trim().parse::<f64>().unwrap() / f64::from(calls))
}

/// Asserts that the cost of the default strategy does not depend on the number of operations and objects.
fn check_counts() {
    for (few, many) in [
        (&["operations=1"][..], &["operations=100"][..]),
        (&["objects=1"], &["objects=2000"]),
        (&["objects=8", "turns=8"], &["objects=2000", "turns=8"]),
        (&["objects=8", "turns=8", "depth=1"], &["objects=8", "turns=8", "depth=32"]),
    ] {
        let (Some(one), Some(other)) = (counted("server", few), counted("server", many)) else {
            println!("SKIPPED counts: there is no valgrind");
            return;
        };
        println!("{few:?}: {one:.0} instructions a call at the server, {many:?}: {other:.0}");
        // Names of many operations are longer by a digit or two. Unoptimised code hashes and compares these
        // with some 800 instructions. Timers and buffers randomly add up to 1 %. A search through a hundred
        // operations costs 26 % more.
        assert!((other / one - 1.0).abs() < 0.05, "{few:?} and {many:?} are further apart than 5 %");
    }
    let counted = |shape: &[&str]| counted("server", shape).unwrap();
    let linear = counted(&["operations=100", "find=operations:linear"]);
    assert!(linear > counted(&["operations=1", "find=operations:linear"]) * 1.1, "so counting counts");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "count") {
        return count(&arguments[1..]);
    }
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .configure_from_args();
    times(&mut criterion, is_test);
    criterion.final_summary();
    if is_test {
        check_counts();
    }
}
