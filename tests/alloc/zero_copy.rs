//! Sequences of `@zero_copy` structs through a whole ORB: neither copied nor allocated, at any position in a
//! message.
//!
//! Server and client run on one thread, whose allocations are counted: a sequence that is not a view of the
//! message would allocate memory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::measure;
use test_support::transport;
use tokio::runtime::Runtime;
use zorb::prelude::*;
use zorb::wire::Version;

zorb::idl! {
    struct Bin { short s; char c; long l; octet o; double d; };
    struct Pair { Bin first; unsigned long long stamp; };
    typedef sequence<Bin> Bins;
    typedef sequence<Pair> Pairs;
    @zero_copy struct Sample { short s; char c; long l; octet o; double d; };
    typedef sequence<Sample> Samples;
    struct Named { long id; Samples first; octet gap; Samples second; };
    struct Parcel { long id; sequence<octet> octets; sequence<double> doubles; double grid[50][60]; Sample table[300]; };
    union Choice switch (long) { case 1: Samples samples; case 2: Sample one; };

    interface Store {
        oneway void put(in Samples samples);
        oneway void put_plain(in Bins bins);
        oneway void put_pairs(in octet lead, in Pairs pairs);
        oneway void put_named(in Named named);
        oneway void put_choice(in Choice choice);
        oneway void put_after(in octet lead, in Samples samples, in long trail);
        unsigned long long seen();
        Samples echo(in Samples samples);
        Named echo_named(in Named named);
        Parcel echo_parcel(in Parcel parcel);
        void keep(in Samples samples);
        Samples kept();
    };
}

#[derive(Default)]
struct Memory {
    seen: AtomicU64,
    kept: Mutex<Seq<Sample>>,
}

impl Memory {
    fn add(&self, samples: &[Sample]) -> Result<(), SystemException> {
        let right = samples.iter().enumerate().all(|(i, found)| *found == sample(i));
        self.seen.fetch_add(if right { samples.len() as u64 } else { 1 << 40 }, Ordering::Relaxed);
        Ok(())
    }
}

impl StoreServant for Memory {
    async fn put(&self, samples: Seq<Sample>) -> Result<(), SystemException> {
        self.add(&samples)
    }

    async fn put_plain(&self, bins: &[Bin]) -> Result<(), SystemException> {
        let right = bins.iter().enumerate().all(|(i, found)| *found == bin(i));
        self.seen.fetch_add(if right { bins.len() as u64 } else { 1 << 40 }, Ordering::Relaxed);
        Ok(())
    }

    async fn put_pairs(&self, lead: u8, pairs: &[Pair]) -> Result<(), SystemException> {
        let right = lead == 7 && pairs.iter().enumerate().all(|(i, found)| *found == pair(i));
        self.seen.fetch_add(if right { pairs.len() as u64 } else { 1 << 40 }, Ordering::Relaxed);
        Ok(())
    }

    async fn put_named(&self, named: &Named) -> Result<(), SystemException> {
        self.add(&named.first)?;
        self.add(&named.second)
    }

    async fn put_choice(&self, choice: &Choice) -> Result<(), SystemException> {
        match choice {
            Choice::Samples(samples) => self.add(samples),
            _ => Ok(()),
        }
    }

    async fn put_after(&self, lead: u8, samples: Seq<Sample>, trail: i32) -> Result<(), SystemException> {
        if (lead, trail) == (7, -7) { self.add(&samples) } else { Ok(()) }
    }

    async fn seen(&self) -> Result<u64, SystemException> {
        Ok(self.seen.swap(0, Ordering::Relaxed))
    }

    async fn echo(&self, samples: Seq<Sample>) -> Result<Seq<Sample>, SystemException> {
        Ok(samples)
    }

    async fn echo_named(&self, named: &Named) -> Result<Named, SystemException> {
        Ok(named.clone())
    }

    async fn echo_parcel(&self, parcel: &Parcel) -> Result<Parcel, SystemException> {
        Ok(parcel.clone())
    }

    async fn keep(&self, samples: Seq<Sample>) -> Result<(), SystemException> {
        *self.kept.lock().unwrap() = samples;
        Ok(())
    }

    async fn kept(&self) -> Result<Seq<Sample>, SystemException> {
        Ok(self.kept.lock().unwrap().clone())
    }
}

fn sample(i: usize) -> Sample {
    Sample { s: i as i16, c: Char(i as u8), l: i as i32, o: !(i as u8), d: i as f64, ..Default::default() }
}

fn bin(i: usize) -> Bin {
    Bin { s: i as i16, c: Char(i as u8), l: i as i32, o: !(i as u8), d: i as f64 }
}

fn pair(i: usize) -> Pair {
    Pair { first: bin(i), stamp: i as u64 }
}

fn samples(n: usize) -> Seq<Sample> {
    (0..n).map(sample).collect()
}

struct Bench {
    runtime: Runtime,
    _server: Orb,
    _client: Orb,
    store: StoreRef,
}

impl Bench {
    fn new(version: Version) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_server, _client, store) = runtime.block_on(async {
            let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
            let here: StoreRef = server.activate(Memory::default()).unwrap();
            let client = transport::builder().max_giop_version(version).build().await.unwrap();
            let store: StoreRef = client.resolve(&here.to_string()).await.unwrap();
            (server, client, store)
        });
        Self { runtime, _server, _client, store }
    }

    /// Returns the smallest number of bytes that one of several runs of `work` allocates.
    fn least_allocated(&self, work: impl AsyncFn(&StoreRef)) -> u64 {
        let run = || {
            let once = Box::pin(work(&self.store));
            measure(|| self.runtime.block_on(once)).bytes_total
        };
        run();
        (0..4).map(|_| run()).min().unwrap_or(u64::MAX)
    }
}

/// Returns how many bytes may be copied in a run of `messages` messages. A message of up to 64 KiB that
/// arrives in a single read is in the connection's permanent window, and is copied from there once. The
/// system determines how many arrive in this way.
fn in_window(messages: usize, octets: usize) -> u64 {
    // Including the header before the memory of a view.
    if octets <= 64 << 10 { (messages * (octets + 64)) as u64 } else { 0 }
}

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

#[test]
fn bulk_sequences_of_structs_are_views_at_the_servant() {
    for version in VERSIONS {
        for octets in [32 << 10, 64 << 10, 200 << 10] {
            let (n, bench) = (octets / 24, Bench::new(version));
            let sent = samples(n);
            let allocated = bench.least_allocated(async |store| {
                for _ in 0..20 {
                    store.put(sent.clone()).await.unwrap();
                    store.put_after(7, sent.clone(), -7).await.unwrap();
                }
                assert_eq!(store.seen().await.unwrap(), 40 * n as u64);
            });
            assert!(allocated <= in_window(40, octets), "{version:?}, {octets} octets: {allocated}");
        }
    }
}

#[test]
fn plain_structs_with_the_layout_of_cdr_are_lent_to_the_servant_where_they_were_received() {
    for version in VERSIONS {
        for octets in [64 << 10, 200 << 10] {
            let bench = Bench::new(version);
            let bins: Vec<Bin> = (0..octets / 24).map(bin).collect();
            let pairs: Vec<Pair> = (0..octets / 32).map(pair).collect();
            let allocated = bench.least_allocated(async |store| {
                for _ in 0..10 {
                    store.put_plain(&bins).await.unwrap();
                    store.put_pairs(7, &pairs).await.unwrap();
                }
                let all = 10 * (bins.len() + pairs.len()) as u64;
                assert_eq!(store.seen().await.unwrap(), all);
            });
            // Nor at the client, which encodes into memory that it reuses.
            assert!(allocated <= in_window(20, octets), "{version:?}, {octets} octets: {allocated}");
        }
    }
    let bench = Bench::new(Version::V1_2);
    bench.runtime.block_on(async {
        for n in [0, 1, 5, 300, 700] {
            bench.store.put_plain(&(0..n).map(bin).collect::<Vec<_>>()).await.unwrap();
            bench.store.put_pairs(7, &(0..n).map(pair).collect::<Vec<_>>()).await.unwrap();
            assert_eq!(bench.store.seen().await.unwrap(), 2 * n as u64);
        }
    });
}

#[test]
fn members_of_structs_and_unions_are_views_too() {
    let n = (64 << 10) / 24;
    let bench = Bench::new(Version::V1_2);
    let named = Named { id: 1, first: samples(n), gap: 2, second: samples(n + 1) };
    let choice = Choice::Samples(samples(n));
    let allocated = bench.least_allocated(async |store| {
        for _ in 0..50 {
            store.put_named(&named).await.unwrap();
            store.put_choice(&choice).await.unwrap();
        }
        assert_eq!(store.seen().await.unwrap(), 50 * (3 * n as u64 + 1));
    });
    // Records of more than one rewritten sequence take some memory; the elements, 3 MiB a run and more, do
    // not.
    assert!(allocated < 100 * 1024, "{allocated}");
}

#[test]
fn replies_carry_them_without_a_copy() {
    let bench = Bench::new(Version::V1_2);
    let sent = samples(5000);
    let allocated = bench.least_allocated(async |store| {
        for _ in 0..50 {
            let back = store.echo(sent.clone()).await.unwrap();
            assert!(back == sent);
        }
    });
    assert_eq!(allocated, 0);
    let named = Named { id: 1, first: samples(3000), gap: 2, second: samples(1) };
    bench.runtime.block_on(async {
        assert!(bench.store.echo_named(&named).await.unwrap() == named);
    });
}

#[test]
fn bulk_members_of_structs_and_large_arrays_are_shared_both_ways() {
    let bench = Bench::new(Version::V1_2);
    let parcel = Parcel {
        id: 1,
        octets: vec![7; 100_000].into(),
        doubles: (0..20_000).map(f64::from).collect(),
        grid: vec![[0.5; 60]; 50].try_into().unwrap(),
        table: samples(300).try_into().unwrap(),
    };
    // After the first bytes all data is aligned to 8: both arrays are views at either end.
    let allocated = bench.least_allocated(async |store| {
        for _ in 0..20 {
            let back = store.echo_parcel(&parcel).await.unwrap();
            assert!(back == parcel);
        }
    });
    // The positions of the two large blocks of each message are recorded; the elements, 20 MiB a run, take no
    // memory.
    assert!(allocated < 40 * 1024, "{allocated}");
}

#[test]
fn what_a_servant_keeps_stays_as_it_came_while_more_messages_arrive() {
    let bench = Bench::new(Version::V1_2);
    bench.runtime.block_on(async {
        for n in [0, 1, 2, 700, 3000, 50_000] {
            bench.store.keep(samples(n)).await.unwrap();
            for _ in 0..20 {
                bench.store.put(samples(n + 5)).await.unwrap();
            }
            assert_eq!(bench.store.seen().await.unwrap(), 20 * (n as u64 + 5));
            assert!(bench.store.kept().await.unwrap() == samples(n), "{n}");
        }
    });
}
