//! The object that is called in these tests, and the final checks.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};

pub(crate) use test_support::contents::octets;
use zorb::prelude::*;
use zorb::testing::Pair;
use zorb::{ByteSource, ByteStream};

zorb::idl! {
    module Faulty {
        typedef sequence<octet> Octets;
        interface Target {
            /// Takes so long, notes the number, and gives it back with what came.
            unsigned long long once(in unsigned long long number, in unsigned long milliseconds, in Octets data, out Octets back);
            oneway void note(in unsigned long long number, in Octets data);
            /// Returns the number of bytes that came as a stream.
            unsigned long long put(@stream in Octets data);
            /// The same, read to its place.
            unsigned long long deposit(@stream in Octets data);
            @stream Octets read(in unsigned long long len);
            long add(in long a, in long b);
            /// Never answers.
            void never();
            /// Blocks its thread.
            void block(in unsigned long milliseconds);
            void stumble();
        };
    };
}

pub(crate) use faulty::{TargetRef, TargetServant};

/// Counts how often each request was executed.
#[derive(Debug, Default)]
pub(crate) struct Target {
    executed: Mutex<HashMap<u64, u32>>,
    /// Requests in the servant now.
    inside: Arc<AtomicUsize>,
    /// Calls of `never` that were notified of their cancellation.
    pub(crate) cancelled: AtomicUsize,
}

/// A request in the servant.
struct Inside(Arc<AtomicUsize>);

impl Inside {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Target {
    /// Returns how often the request of that number was executed.
    pub(crate) fn times(&self, number: u64) -> u32 {
        self.executed.lock().unwrap().get(&number).copied().unwrap_or(0)
    }

    pub(crate) fn executed(&self) -> u32 {
        self.executed.lock().unwrap().values().sum()
    }

    /// Returns the number of requests in the servant now.
    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }

    fn enter(&self, number: u64) -> Inside {
        *self.executed.lock().unwrap().entry(number).or_default() += 1;
        Inside::new(&self.inside)
    }
}

impl TargetServant for Target {
    async fn once(
        &self,
        number: u64,
        milliseconds: u32,
        data: Bytes,
    ) -> Result<(u64, Bytes), SystemException> {
        let _inside = self.enter(number);
        if milliseconds > 0 {
            // A flipped bit could make it weeks.
            tokio::time::sleep(Duration::from_millis(milliseconds.min(LONGEST).into())).await;
        }
        Ok((number, data))
    }

    async fn note(&self, number: u64, _data: Bytes) -> Result<(), SystemException> {
        drop(self.enter(number));
        Ok(())
    }

    async fn put(&self, mut data: ByteStream) -> Result<u64, SystemException> {
        let _inside = Inside::new(&self.inside);
        let mut taken = 0;
        while let Some(chunk) = data.next().await {
            taken += chunk?.len() as u64;
        }
        Ok(taken)
    }

    async fn deposit(&self, data: ByteStream) -> Result<u64, SystemException> {
        let _inside = Inside::new(&self.inside);
        Ok(data.into_aligned(4096, 16 << 20).await?.len() as u64)
    }

    async fn read(&self, len: u64) -> Result<ByteSource, SystemException> {
        let piece = Bytes::from(vec![7; 50_000]);
        let inside = Inside::new(&self.inside);
        let pieces = (0..len).step_by(piece.len()).map(move |at| {
            let _held = &inside;
            Ok::<_, std::io::Error>(piece.slice(..piece.len().min((len - at) as usize)))
        });
        Ok(ByteSource::stream(len, futures_util::stream::iter(pieces)))
    }

    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        drop(self.enter(u64::MAX));
        Ok(a.wrapping_add(b))
    }

    async fn never(&self) -> Result<(), SystemException> {
        let _inside = Inside::new(&self.inside);
        zorb::request().cancelled().await;
        self.cancelled.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }

    async fn block(&self, milliseconds: u32) -> Result<(), SystemException> {
        std::thread::sleep(Duration::from_millis(milliseconds.into()));
        Ok(())
    }

    async fn stumble(&self) -> Result<(), SystemException> {
        panic!("{STUMBLED}")
    }
}

/// The longest time that a call takes, in milliseconds.
const LONGEST: u32 = 100_000;

const STUMBLED: &str = "stumbled, as it was asked to";

/// Activates a servant at the server of the pair, and returns it with the client's reference. No connection
/// is opened yet.
pub(crate) async fn over(orbs: &Pair) -> (Arc<Target>, TargetRef) {
    let servant = Arc::new(Target::default());
    let here: TargetRef = orbs.server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let target = orbs.client.resolve_unchecked(&here.to_string()).await.unwrap();
    (servant, target)
}

thread_local! {
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Returns the panics of this thread so far, without intended ones: otherwise a task that panicked would
/// disappear unnoticed.
pub(crate) fn panics() -> usize {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            if text.or(payload.downcast_ref::<&str>().copied()) != Some(STUMBLED) {
                PANICS.with(|panics| panics.set(panics.get() + 1));
                before(info);
            }
        }));
    });
    PANICS.with(Cell::get)
}

/// Ends both ORBs and checks that nothing is left of them: no connection, no task, no request in the servant,
/// no buffer.
pub(crate) async fn leaves_nothing(orbs: Pair, servant: Arc<Target>, what: &str) {
    orbs.client.shutdown().await;
    orbs.server.shutdown().await;
    for orb in [&orbs.client, &orbs.server] {
        assert_eq!(orb.open_connections(), 0, "{what}");
    }
    // Ended tasks are counted until the runtime has polled them.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(servant.inside(), 0, "{what}: the servant still has requests");
    for orb in [&orbs.client, &orbs.server] {
        let pool = orb.pool_stats();
        assert_eq!(pool.free, pool.held, "{what}: buffers that nobody gave back: {pool:?}");
    }
    drop(orbs);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(Arc::strong_count(&servant), 1, "{what}: something keeps the servant");
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "{what}: tasks are left");
    assert_eq!(panics(), 0, "{what}");
}
