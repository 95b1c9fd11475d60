//! `@stream` parameters that are read directly to their destination: aligned memory, and targets of the
//! servant.

mod raw;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::BytesMut;
use test_support::{contents, transport};
use zorb::prelude::*;
use zorb::testing::PipeFaults;
use zorb::{ByteStream, DepositTarget, Limits, OrbBuilder};

use contents::{checksum, octets};

zorb::idl! {
    module Place {
        typedef sequence<octet> Octets;
        exception Refused { unsigned long long taken; string why; boolean has_target; };
        interface Sink {
            /// Takes `data` in the way `how`, and gives its checksum.
            unsigned long long put(in string how, in unsigned long long arg, @stream in Octets data) raises (Refused);
            oneway void push(@stream in Octets data);
            void ping();
        };
    };
}

const MIB: usize = 1 << 20;
const LIMIT: usize = 128 << 20;

#[derive(Default)]
struct Sink {
    pushed: AtomicU64,
    /// Existing targets.
    targets: Arc<AtomicUsize>,
    /// Aborted deposits that returned their targets.
    broken_off: AtomicUsize,
}

/// Memory in blocks, each of which is lent separately.
struct Blocks {
    size: usize,
    blocks: Vec<Vec<u8>>,
    /// It misbehaves when this block is requested.
    fails_at: usize,
    how: Fault,
    asked: usize,
    alive: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Room,
    NoRoom,
    Filled,
    /// It returns less than the first time.
    Shrinks,
    /// It panics when it is asked again.
    Panics,
}

impl Blocks {
    fn new(size: usize, fails_at: usize, how: Fault, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self { size, blocks: Vec::new(), fails_at, how, asked: 0, alive: Arc::clone(alive) }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl DepositTarget for Blocks {
    fn room(&mut self, at: u64, left: u64) -> io::Result<&mut [u8]> {
        assert!(left > 0);
        let (block, from) = (at as usize / self.size, at as usize % self.size);
        if self.blocks.len() == block {
            self.blocks.push(vec![0; self.size]);
            self.asked = 0;
        }
        self.asked += 1;
        let size = self.size;
        if block == self.fails_at {
            match self.how {
                Fault::Room => return Err(io::Error::other("this block is bad")),
                Fault::NoRoom => return Ok(&mut []),
                Fault::Shrinks if self.asked > 1 => return Ok(&mut self.blocks[block][from..from]),
                Fault::Panics if self.asked > 1 => panic!("the target panics"),
                _ => {}
            }
        }
        Ok(&mut self.blocks[block][from..size])
    }

    fn filled(&mut self, at: u64, n: usize) -> io::Result<()> {
        assert!(n > 0 && at as usize % self.size + n <= self.size);
        if at as usize / self.size == self.fails_at && self.how == Fault::Filled {
            return Err(io::Error::other("this block does not keep"));
        }
        Ok(())
    }
}

impl Sink {
    fn blocks(&self, size: u64, at: u64, how: Fault) -> Blocks {
        Blocks::new(size as usize, at as usize, how, &self.targets)
    }
}

impl place::SinkServant for Sink {
    async fn put(&self, how: &str, arg: u64, mut data: ByteStream) -> Result<u64, place::sink::PutError> {
        let len = data.remaining() as usize;
        let blocks = match how {
            "aligned" => {
                let octets = data.into_aligned(arg as usize, LIMIT).await?;
                assert_eq!((octets.len(), octets.as_ptr().addr() % arg as usize), (len, 0));
                return Ok(checksum(0, &octets));
            }
            "limited" => return Ok(checksum(0, &data.into_aligned(4096, arg as usize).await?)),
            "box" => {
                return Ok(checksum(
                    0,
                    &data
                        .deposit_into(vec![0; len].into_boxed_slice())
                        .await
                        .map_err(SystemException::from)?,
                ));
            }
            "vec" => {
                let vec = data.deposit_into(vec![7; len + 3]).await.map_err(SystemException::from)?;
                assert_eq!(vec[len..], [7, 7, 7]);
                return Ok(checksum(0, &vec[..len]));
            }
            "bytes" => {
                let octets = data.deposit_into(BytesMut::zeroed(len)).await.map_err(SystemException::from)?;
                return Ok(checksum(0, &octets));
            }
            "chunk first" => {
                let first = data.next().await.transpose()?.unwrap_or_default();
                let rest =
                    data.deposit_into(vec![0; len - first.len()]).await.map_err(SystemException::from)?;
                return Ok(checksum(0, &[&first[..], &rest].concat()));
            }
            "small" => {
                let error = data.deposit_into(vec![0; arg as usize]).await.unwrap_err();
                let (taken, why) = (error.deposited(), error.to_string());
                let kind = error.target_error().unwrap().kind();
                assert_eq!(kind, io::ErrorKind::StorageFull);
                return Err(place::Refused { taken, why, has_target: error.into_target().is_some() }.into());
            }
            "patience" => {
                let target = self.blocks(arg, u64::MAX, Fault::None);
                let patience = tokio::time::timeout(Duration::from_millis(200), data.deposit_into(target));
                return Ok(u64::from(patience.await.is_ok()));
            }
            "blocks" => self.blocks(arg, u64::MAX, Fault::None),
            "bad room" => self.blocks(256 << 10, arg, Fault::Room),
            "no room" => self.blocks(256 << 10, arg, Fault::NoRoom),
            "bad filled" => self.blocks(256 << 10, arg, Fault::Filled),
            "shrinks" => self.blocks(256 << 10, arg, Fault::Shrinks),
            "panics" => self.blocks(256 << 10, arg, Fault::Panics),
            other => panic!("there is no {other}"),
        };
        match data.deposit_into(blocks).await {
            Ok(blocks) => {
                let all = blocks.blocks.concat();
                assert!(all.len() >= len && all[len..].iter().all(|octet| *octet == 0));
                Ok(checksum(0, &all[..len]))
            }
            Err(error) => {
                let (taken, why) = (error.deposited(), error.to_string());
                if error.target_error().is_none() {
                    self.broken_off.fetch_add(1, Ordering::SeqCst);
                }
                Err(place::Refused { taken, why, has_target: error.into_target().is_some() }.into())
            }
        }
    }
    async fn push(&self, data: ByteStream) -> Result<(), SystemException> {
        let octets = data.into_aligned(4096, LIMIT).await?;
        self.pushed.fetch_add(octets.len() as u64, Ordering::SeqCst);
        Ok(())
    }
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn large() -> OrbBuilder {
    let mut limits = Limits::default();
    limits.max_message_size = LIMIT;
    transport::builder().limits(limits)
}

/// Returns client and server over TCP.
async fn over_tcp(sink: Arc<Sink>, server: OrbBuilder) -> (Orb, Orb, place::SinkRef) {
    let server = server.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: place::SinkRef = server.activate_named("sink", sink).unwrap();
    let client = large().build().await.unwrap();
    let sink = client.resolve(&published.to_string()).await.unwrap();
    (client, server, sink)
}

const SIZES: [usize; 12] =
    [0, 1, 4096, 65_000, 65_535, 65_536, 65_537, 66_000, 200_000, MIB - 1, MIB + 1, (5 << 20) + 3];

#[tokio::test]
async fn payloads_of_all_sizes_land_aligned() {
    let (_client, server, sink) = over_tcp(Arc::new(Sink::default()), large()).await;
    for len in SIZES {
        let data = octets(len);
        let expected = checksum(0, &data);
        for align in [1, 64, 4096, 65_536] {
            let before = server.stats().bytes_copied_in;
            assert_eq!(sink.put("aligned", align, data.clone()).await.unwrap(), expected, "{len} at {align}");
            let copied = server.stats().bytes_copied_in - before;
            assert!(copied <= 64 << 10, "{copied} of {len}");
            sink.ping().await.unwrap();
        }
    }
    for _ in 0..20 {
        sink.push(octets(500_000)).await.unwrap();
    }
    sink.ping().await.unwrap();
    transport::assert_used(&server);
    let misses = server.pool_stats().misses;
    for _ in 0..10 {
        sink.put("aligned", 4096, octets(MIB)).await.unwrap();
    }
    assert!(server.pool_stats().misses <= misses + 1, "its memory is used again");
}

#[tokio::test]
async fn what_is_no_alignment_or_over_the_limit_is_refused() {
    let (_client, server, sink) = over_tcp(Arc::new(Sink::default()), large()).await;
    for (how, arg, kind) in [
        ("aligned", 0, SystemExceptionKind::BadParam),
        ("aligned", 24, SystemExceptionKind::BadParam),
        ("aligned", 128 << 10, SystemExceptionKind::BadParam),
        ("limited", 0, SystemExceptionKind::ImpLimit),
        ("limited", MIB as u64 - 1, SystemExceptionKind::ImpLimit),
    ] {
        match sink.put(how, arg, octets(MIB)).await.unwrap_err() {
            place::sink::PutError::System(failed) => {
                assert_eq!((failed.kind, failed.completed), (kind, CompletionStatus::No), "{how} {arg}");
            }
            other => panic!("{other}"),
        }
        sink.ping().await.unwrap();
    }
    assert_eq!(sink.put("limited", MIB as u64, octets(MIB)).await.unwrap(), checksum(0, &octets(MIB)));
    assert_eq!(server.open_connections(), 1);
}

#[tokio::test]
async fn targets_of_all_kinds_take_payloads_of_all_sizes() {
    let servant = Arc::new(Sink::default());
    let (_client, server, sink) = over_tcp(Arc::clone(&servant), large()).await;
    for len in SIZES {
        let data = octets(len);
        let expected = checksum(0, &data);
        for how in ["box", "vec", "bytes", "blocks", "chunk first"] {
            let block = if len < 100_000 { 1000 } else { 100_000 };
            let before = server.stats().bytes_copied_in;
            assert_eq!(sink.put(how, block, data.clone()).await.unwrap(), expected, "{how} of {len}");
            let copied = server.stats().bytes_copied_in - before;
            assert!(copied <= 64 << 10, "{how}: {copied} of {len}");
            sink.ping().await.unwrap();
        }
    }
    assert_eq!(servant.targets.load(Ordering::SeqCst), 0);
    assert_eq!((server.open_connections(), server.stats().bytes_skipped), (1, 0));
}

#[tokio::test]
async fn a_deposit_of_many_mebibytes_holds_no_memory_of_the_orb() {
    let (_client, server, sink) = over_tcp(Arc::new(Sink::default()), large()).await;
    let data = octets(64 * MIB);
    let expected = checksum(0, &data);
    let reads = server.stats().reads;
    assert_eq!(sink.put("vec", 0, data.clone()).await.unwrap(), expected);
    let (stats, held) = (server.stats(), server.pool_stats().held);
    assert!(held <= 256 << 10, "{held} octets held");
    assert!(stats.bytes_copied_in <= 64 << 10, "{} octets copied", stats.bytes_copied_in);
    if transport::transport() != zorb::Transport::Epoll {
        // The kernel fills all of it.
        assert!(stats.reads - reads <= 12, "{} reads", stats.reads - reads);
    }
    assert_eq!(sink.put("aligned", 4096, data).await.unwrap(), expected);
    let held = server.pool_stats().held;
    assert!(held <= 82 * MIB, "{held} octets held");
}

#[tokio::test]
async fn a_target_that_fails_costs_its_call_only() {
    let servant = Arc::new(Sink::default());
    let (_client, server, sink) = over_tcp(Arc::clone(&servant), large()).await;
    for (how, why) in [
        ("bad room", "this block is bad"),
        ("no room", "has no room"),
        ("bad filled", "does not keep"),
        ("shrinks", "room"),
        ("panics", "panicked"),
    ] {
        // At the first piece, one in the middle, the last.
        for block in [0, 1, 7, 15] {
            if block == 0 && ["shrinks", "panics"].contains(&how) {
                continue; // that block has the data received early, and is requested in the servant
            }
            let failed = sink.put(how, block, octets(4 * MIB)).await.unwrap_err();
            let place::sink::PutError::Refused(refused) = failed else {
                panic!("{how} at {block}: {failed}")
            };
            assert!(refused.why.contains(why) && refused.has_target, "{}", refused.why);
            let whole = (block << 18)..=((block + 1) << 18);
            assert!(whole.contains(&refused.taken), "{how} at {block}: {}", refused.taken);
            assert_eq!(servant.targets.load(Ordering::SeqCst), 0);
            sink.ping().await.unwrap();
        }
    }
    for room in [0, 1, 65_536, 4 * MIB - 1] {
        let failed = sink.put("small", room as u64, octets(4 * MIB)).await.unwrap_err();
        let place::sink::PutError::Refused(refused) = failed else { panic!("{failed}") };
        assert!(refused.taken == 0 && refused.has_target && refused.why.contains("does not fit"));
        sink.ping().await.unwrap();
    }
    assert_eq!(server.open_connections(), 1);
    assert!(server.stats().bytes_skipped > 8 * MIB as u64);
}

#[tokio::test]
async fn calls_in_process_copying_orbs_and_other_ways_to_run_deposit_too() {
    let data = octets(3 * MIB + 5);
    let expected = checksum(0, &data);
    let all = ["aligned", "box", "vec", "bytes", "blocks", "chunk first"];
    let local: place::SinkRef = zorb::testing::local(Sink::default());
    let (_other, copying, far) = over_tcp(Arc::new(Sink::default()), large().zero_copy(false)).await;
    for how in all {
        assert_eq!(local.put(how, 4096, data.clone()).await.unwrap(), expected, "{how}");
        assert_eq!(far.put(how, 4096, data.clone()).await.unwrap(), expected, "{how}");
    }
    assert!(copying.pool_stats().held <= 6 * MIB, "{}", copying.pool_stats().held);
    assert!(copying.stats().bytes_copied_in >= all.len() as u64 * 3 * MIB as u64, "it copies everything");

    let (client, server, _) = over_tcp(Arc::new(Sink::default()), large()).await;
    for activation in [server.activation().blocking(), server.activation().spawned()] {
        let published: place::SinkRef = activation.activate(Sink::default()).unwrap();
        let sink: place::SinkRef = client.resolve(&published.to_string()).await.unwrap();
        for how in all {
            let before = server.stats().bytes_copied_in;
            assert_eq!(sink.put(how, 4096, data.clone()).await.unwrap(), expected);
            let copied = server.stats().bytes_copied_in - before;
            assert!(copied <= 64 << 10, "{how}: {copied}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_of_a_runtime_with_threads_deposit_at_once() {
    let (_client, server, sink) = over_tcp(Arc::new(Sink::default()), large()).await;
    let data = octets(2 * MIB);
    let expected = checksum(0, &data);
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..8 {
        let (text, data) = (sink.to_string(), data.clone());
        calls.spawn(async move {
            let client = large().build().await.unwrap();
            let sink: place::SinkRef = client.resolve(&text).await.unwrap();
            let how = ["aligned", "blocks"][n % 2];
            for _ in 0..5 {
                assert_eq!(sink.put(how, 4096, data.clone()).await.unwrap(), expected);
            }
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    assert!(server.pool_stats().held <= 64 * MIB);
}

#[tokio::test]
async fn aligned_memory_goes_on_past_a_pool_that_has_none() {
    let (_client, server, sink) = over_tcp(Arc::new(Sink::default()), large().max_receive_memory(MIB)).await;
    for len in [300_000, MIB, 4 * MIB] {
        let data = octets(len);
        assert_eq!(sink.put("aligned", 4096, data.clone()).await.unwrap(), checksum(0, &data));
        assert!(server.pool_stats().held <= MIB);
    }
}

/// Over a pipe that transfers bytes in small portions.
#[tokio::test]
async fn deposits_of_any_portions_are_whole() {
    for portion in [1, 7, 4096, 65_537] {
        let pair = zorb::testing::pair_of(large(), large());
        let published: place::SinkRef = pair.server.activate_named("sink", Sink::default()).unwrap();
        let mut faults = PipeFaults::default();
        (faults.max_read_bytes, faults.max_write_bytes) = (portion, portion);
        pair.set_faults(faults, PipeFaults::default());
        let sink: place::SinkRef = pair.client.resolve(&published.to_string()).await.unwrap();
        let data = octets(100_000);
        for how in ["aligned", "box", "blocks"] {
            assert_eq!(
                sink.put(how, 1024, data.clone()).await.unwrap(),
                checksum(0, &data),
                "{how} by {portion}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deposit_whose_sender_dies_fails_with_its_target() {
    // Positions at which it dies: around the first read, pieces and the end.
    for cut in [16_500, 65_536, 65_700, 100_000, 165_535, 165_536, 199_999, 200_000] {
        for how in ["blocks", "aligned", "box"] {
            let servant = Arc::new(Sink::default());
            let pair = zorb::testing::pair_of(large(), large());
            let published: place::SinkRef = pair.server.activate_named("sink", Arc::clone(&servant)).unwrap();
            let mut faults = PipeFaults::default();
            faults.cut_after = Some(cut);
            pair.set_faults(faults, PipeFaults::default());
            let sink: place::SinkRef = pair.client.resolve(&published.to_string()).await.unwrap();
            let failed = sink.put(how, 32_768, octets(200_000)).await.unwrap_err();
            let place::sink::PutError::System(failed) = failed else { panic!("{failed}") };
            assert_eq!(failed.completed, CompletionStatus::Maybe, "{how} cut at {cut}: {failed:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(servant.targets.load(Ordering::SeqCst), 0);
            assert_eq!(
                servant.broken_off.load(Ordering::SeqCst),
                usize::from(how == "blocks"),
                "cut at {cut}"
            );
            assert_eq!(pair.server.open_connections(), 0);
        }
    }
}
