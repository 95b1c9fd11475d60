//! `@stream` results that servants produce while their reply is sent, and that clients receive while it
//! arrives.

mod client;
mod ends;
mod memory;
mod whole;

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use test_support::{contents, transport};
use tokio::sync::Semaphore;
use zorb::prelude::*;
use zorb::wire::{ContextId, ServiceContext};
use zorb::{
    ByteSource, ByteStream, CompletionStatus, ItemSource, ItemStream, Limits, OrbBuilder, SeqSource,
    SystemExceptionKind,
};

use contents::octets;

zorb::idl! {
    module Library {
        struct Row { string name; unsigned long number; sequence<double> values; };
        @zero_copy struct Point { double x; double y; };
        typedef sequence<octet> Octets;
        typedef sequence<Row> Rows;
        typedef sequence<double> Samples;
        typedef sequence<boolean> Flags;
        typedef sequence<Point> Points;
        typedef sequence<string> Names;
        exception Missing { string name; };
        interface Shelf {
            /// So many rows, of which the servant gives one for each permit if it is gated.
            @stream Rows rows(in unsigned long count, in boolean gated) raises (Missing);
            @stream Octets read(in unsigned long long len, in boolean gated);
            @stream Samples samples(in unsigned long count);
            @stream Flags flags(in unsigned long count);
            @stream Points points(in unsigned long count);
            /// Gives what it gets, while it gets it.
            @stream Octets echo(@stream in Octets data);
            /// Fails, ends early, or panics after this number of names.
            @stream Names fail(in string how, in unsigned long after);
            unsigned long add(in unsigned long a, in unsigned long b);
        };
    };
}

use library::shelf::RowsError;
use library::{Missing, Point, Row, ShelfRef, ShelfServant};

struct Shelf {
    gate: Arc<Semaphore>,
    /// Items that were requested.
    made: Arc<AtomicU64>,
    /// Sources that are not dropped.
    alive: Arc<AtomicUsize>,
    /// Calls of `read`.
    asked: AtomicUsize,
    /// The object to which reads of seven bytes are forwarded.
    elsewhere: Mutex<Option<ShelfRef>>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            made: Arc::default(),
            alive: Arc::default(),
            asked: AtomicUsize::new(0),
            elsewhere: Mutex::new(None),
        }
    }
}

/// A counted source.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn row(number: u32) -> Row {
    let values = (0..number % 40).map(|i| f64::from(i) * 0.5).collect();
    Row { name: "x".repeat(number as usize % 23), number, values }
}

/// The gate of its items, their counter, and the source's counter.
type Held = (Option<Arc<Semaphore>>, Arc<AtomicU64>, Alive);

impl Shelf {
    fn held(&self, gated: bool) -> Held {
        (gated.then(|| Arc::clone(&self.gate)), Arc::clone(&self.made), Alive::new(&self.alive))
    }
}

/// Returns items that become available one per permit.
fn gated<T: Send + 'static>(
    count: usize,
    held: Held,
    make: impl Fn(usize) -> T + Send + Sync + 'static,
) -> impl futures_util::Stream<Item = Result<T, io::Error>> + Send {
    let make = Arc::new(make);
    futures_util::stream::unfold((0, held, make), move |(n, held, make)| async move {
        if n == count {
            return None;
        }
        if let Some(gate) = &held.0 {
            gate.acquire().await.unwrap().forget();
        }
        held.1.fetch_add(1, Ordering::Relaxed);
        Some((Ok(make(n)), (n + 1, held, make)))
    })
}

impl ShelfServant for Shelf {
    async fn rows(&self, count: u32, is_gated: bool) -> Result<ItemSource<Row>, RowsError> {
        if count == u32::MAX {
            return Err(Missing { name: "all of them".to_owned() }.into());
        }
        let stream = gated(count as usize, self.held(is_gated), |n| row(n as u32));
        Ok(ItemSource::stream(count.into(), stream))
    }
    async fn read(&self, len: u64, is_gated: bool) -> Result<ByteSource, SystemException> {
        let request = zorb::request();
        assert_eq!(request.operation(), "read");
        request.set_reply_context(ServiceContext {
            id: ContextId(0x5a4f_0001),
            data: len.to_ne_bytes().to_vec().into(),
        });
        if len == 7 {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if let Some(elsewhere) = self.elsewhere.lock().unwrap().take() {
                request.forward(zorb::poa::ForwardRequest::to(&elsewhere));
            }
        }
        let piece = octets(100_000);
        let count = usize::try_from(len.div_ceil(100_000)).unwrap();
        let stream = gated(count, self.held(is_gated), move |n| {
            piece.slice(..usize::try_from((len - n as u64 * 100_000).min(100_000)).unwrap())
        });
        Ok(ByteSource::stream(len, stream))
    }
    async fn samples(&self, count: u32) -> Result<SeqSource<f64>, SystemException> {
        if count < 10 {
            return Ok((0..count).map(f64::from).collect::<Vec<_>>().into());
        }
        let chunks = (0..count).step_by(999).map(move |at| {
            Ok::<_, io::Error>((at..count.min(at + 999)).map(f64::from).collect::<Vec<f64>>())
        });
        Ok(SeqSource::stream(count.into(), futures_util::stream::iter(chunks)))
    }
    async fn flags(&self, count: u32) -> Result<ItemSource<bool>, SystemException> {
        Ok(ItemSource::iter((0..count).map(|n| n % 3 == 0).collect::<Vec<_>>()))
    }
    async fn points(&self, count: u32) -> Result<ItemSource<Point>, SystemException> {
        Ok(ItemSource::iter((0..count).map(|n| Point { x: n.into(), y: -f64::from(n) }).collect::<Vec<_>>()))
    }
    async fn echo(&self, data: ByteStream) -> Result<ByteSource, SystemException> {
        Ok(ByteSource::stream(data.remaining(), data))
    }
    async fn fail(&self, how: &str, after: u32) -> Result<ItemSource<String>, SystemException> {
        let alive = Alive::new(&self.alive);
        let end: Option<Box<dyn std::error::Error + Send + Sync>> = match how {
            "error" => Some(io::Error::other("the shelf fell").into()),
            "exception" => Some(SystemException::persist_store().into()),
            _ => None,
        };
        let panics = how == "panic";
        let names = futures_util::stream::iter(0..after).map(|n| Ok(format!("{n:0>1000}")));
        let end = futures_util::stream::iter(end.map(Err));
        let last = futures_util::stream::poll_fn(move |_| {
            let _ = &alive;
            assert!(!panics, "the shelf is too high");
            std::task::Poll::Ready(None)
        });
        Ok(ItemSource::stream(u64::from(after) + 10, names.chain(end).chain(last)))
    }
    async fn add(&self, a: u32, b: u32) -> Result<u32, SystemException> {
        Ok(a + b)
    }
}

/// Returns all items of a result.
async fn all<T: Send + 'static>(items: ItemStream<T>) -> Vec<T> {
    items.collect(1 << 20).await.unwrap()
}

/// Returns all bytes of a result.
async fn bytes(bytes: ByteStream) -> Bytes {
    bytes.collect(1 << 30).await.unwrap()
}

/// Returns why a result failed, immediately or in the middle.
async fn failed<T: futures_util::Stream<Item = Result<I, SystemException>> + Unpin, I>(
    result: Result<T, SystemException>,
) -> SystemException {
    match result {
        Err(error) => error,
        Ok(mut stream) => {
            while let Some(item) = stream.next().await {
                if let Err(error) = item {
                    assert!(stream.next().await.is_none(), "an error ends the stream");
                    return error;
                }
            }
            panic!("it came whole");
        }
    }
}

fn large() -> OrbBuilder {
    let mut limits = Limits::default();
    limits.max_message_size = 256 << 20;
    transport::builder().limits(limits)
}

/// A server, a client of it, its servant, and the target as seen by the client.
struct Over {
    server: Orb,
    client: Orb,
    servant: Arc<Shelf>,
    shelf: ShelfRef,
}

impl Over {
    async fn tcp() -> Self {
        Self::with(large(), large()).await
    }

    async fn with(server: OrbBuilder, client: OrbBuilder) -> Self {
        let servant = Arc::new(Shelf::default());
        let server = server.listen("iiop://127.0.0.1:0").build().await.unwrap();
        let published: ShelfRef = server.activate_named("shelf", Arc::clone(&servant)).unwrap();
        let client = client.build().await.unwrap();
        let shelf = client.resolve(&published.to_string()).await.unwrap();
        Self { server, client, servant, shelf }
    }

    /// Returns the same target for clients of another version.
    async fn in_version(&self, version: &str) -> ShelfRef {
        let ior: zorb::wire::Ior = self.shelf.to_string().parse().unwrap();
        let profile = ior.iiop_profile().unwrap();
        let url = format!("corbaloc:iiop:{version}@{}:{}/shelf", profile.host, profile.port);
        self.client.resolve(&url).await.unwrap()
    }

    /// Waits until the condition holds.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..1000 {
            if is_so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never was so");
    }

    fn alive(&self) -> usize {
        self.servant.alive.load(Ordering::Relaxed)
    }

    fn made(&self) -> u64 {
        self.servant.made.load(Ordering::Relaxed)
    }
}
