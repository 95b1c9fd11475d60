//! `@stream` arguments that clients read from files, readers and streams while they are sent.

mod answers;
mod ends;
mod local;
mod memory;
mod sizes;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use test_support::{contents, transport};
use tokio::sync::{Mutex, Semaphore};
use zorb::prelude::*;
use zorb::{ByteSource, ByteStream, Limits, OrbBuilder};

use contents::{checksum, octets};

zorb::idl! {
    module Bulk {
        typedef sequence<octet> Octets;
        exception Full { unsigned long long taken; };
        interface Store {
            /// Gives a checksum.
            unsigned long long put(in string name, @stream in Octets data);
            /// Raises `Full` after at least `most` bytes.
            void put_some(in unsigned long long most, @stream in Octets data) raises (Full);
            /// Returns after at least `most` bytes, and keeps the stream.
            unsigned long long start(in unsigned long long most, @stream in Octets data);
            /// Returns before it reads any data, and keeps the stream.
            void later(@stream in Octets data);
            oneway void push(@stream in Octets data);
            void ping();
        };
        interface Plain {
            unsigned long long put(in string name, in Octets data);
        };
    };
}

/// Maximum size of a chunk of a source, bytes.
const CHUNK: usize = 256 * 1024;

#[derive(Default)]
struct Store {
    begun: AtomicUsize,
    taken: AtomicU64,
    /// Streams that ended before their data was complete.
    broken: AtomicUsize,
    kept: Mutex<Option<ByteStream>>,
    last: AtomicU64,
}

impl Store {
    async fn take(&self, mut data: ByteStream) -> Result<u64, SystemException> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let mut sum = 0;
        while let Some(chunk) = data.next().await {
            let chunk = chunk.inspect_err(|_| {
                self.broken.fetch_add(1, Ordering::Relaxed);
            })?;
            self.taken.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            sum = checksum(sum, &chunk);
        }
        self.last.store(sum, Ordering::Relaxed);
        Ok(sum)
    }

    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn broken(&self) -> usize {
        self.broken.load(Ordering::Relaxed)
    }
}

impl bulk::StoreServant for Store {
    async fn put(&self, name: &str, data: ByteStream) -> Result<u64, SystemException> {
        assert!(["a name", "имя €"].contains(&name), "{name}");
        self.take(data).await
    }
    async fn put_some(&self, most: u64, mut data: ByteStream) -> Result<(), bulk::store::PutSomeError> {
        let mut taken = 0;
        while taken < most {
            taken += data.next().await.unwrap()?.len() as u64;
        }
        Err(bulk::Full { taken }.into())
    }
    async fn start(&self, most: u64, mut data: ByteStream) -> Result<u64, SystemException> {
        let mut taken = 0;
        while taken < most {
            taken += data.next().await.unwrap()?.len() as u64;
        }
        *self.kept.lock().await = Some(data);
        Ok(taken)
    }
    async fn later(&self, data: ByteStream) -> Result<(), SystemException> {
        *self.kept.lock().await = Some(data);
        Ok(())
    }
    async fn push(&self, data: ByteStream) -> Result<(), SystemException> {
        self.take(data).await.map(drop)
    }
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Receives whole sequences.
struct Plain;

impl bulk::PlainServant for Plain {
    async fn put(&self, name: &str, data: Bytes) -> Result<u64, SystemException> {
        assert_eq!(name, "a name");
        Ok(checksum(0, &data))
    }
}

fn large() -> OrbBuilder {
    let mut limits = Limits::default();
    limits.max_message_size = 128 << 20;
    transport::builder().limits(limits)
}

/// Client and server over a socket.
struct Over {
    client: Orb,
    server: Orb,
    servant: Arc<Store>,
    store: bulk::StoreRef,
}

impl Over {
    async fn tcp() -> Self {
        Self::with(large()).await
    }

    async fn with(client: OrbBuilder) -> Self {
        let servant = Arc::new(Store::default());
        let server = large().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let published: bulk::StoreRef = server.activate_named("store", Arc::clone(&servant)).unwrap();
        let client = client.build().await.unwrap();
        let store = client.resolve(&published.to_string()).await.unwrap();
        Self { client, server, servant, store }
    }

    /// Waits until the condition holds.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..500 {
            if is_so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never was so");
    }
}

/// Splits bytes into pieces of that size.
fn pieces(octets: Bytes, size: usize) -> impl Iterator<Item = Bytes> + Send {
    (0..octets.len()).step_by(size).map(move |at| octets.slice(at..octets.len().min(at + size)))
}

/// Returns a stream of bytes in pieces.
fn streamed(octets: Bytes, size: usize) -> ByteSource {
    let len = octets.len() as u64;
    ByteSource::stream(len, futures_util::stream::iter(pieces(octets, size).map(Ok::<_, io::Error>)))
}

/// Returns a reader of available bytes.
fn read(octets: Bytes) -> ByteSource {
    ByteSource::reader(octets.len() as u64, io::Cursor::new(octets))
}

/// Returns a stream that yields a piece for each permit, and then `end`.
fn gated(len: u64, pieces: Vec<Bytes>, gate: Arc<Semaphore>, end: Option<io::Error>) -> ByteSource {
    let items = pieces.into_iter().map(Ok).chain(end.map(Err)).collect::<Vec<_>>().into_iter();
    ByteSource::stream(
        len,
        futures_util::stream::unfold((items, gate), |(mut items, gate)| async move {
            gate.acquire().await.unwrap().forget();
            items.next().map(|item| (item, (items, gate)))
        }),
    )
}
