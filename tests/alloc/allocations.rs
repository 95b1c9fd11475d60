//! Counts heap allocations: none for a call or a oneway in steady state, neither at the client nor at the
//! server.
//!
//! Both ORBs run on one thread with a real TCP connection between them, and the allocator counts for this
//! thread. Therefore every test includes stub, connection, dispatch, skeleton and servant.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::AllocationInfo;
use test_support::transport;
use tokio::runtime::Runtime;
use zorb::prelude::*;

zorb::idl! {
    typedef sequence<octet> Octets;
    typedef sequence<double> Doubles;
    typedef sequence<char> Chars;
    struct Reading { long sensor; double value; boolean good; };
    struct Sample { short s; char c; long l; octet o; double d; };
    typedef sequence<Sample> Samples;

    interface Meter {
        void ping();
        double mean(in long a, in unsigned long long b, in double c, in short d);
        Reading latest(in Reading given);
        attribute long level;
        void divide(in double a, in double b, out double quotient, inout long count);

        oneway void note(in long value);
        oneway void octets(in Octets data);
        oneway void doubles(in Doubles data);
        oneway void chars(in Chars data);
        oneway void samples(in Samples data);
        oneway void keep(in Octets data);
        Octets echo(in Octets data);
        Doubles echo_doubles(in Doubles data);
        unsigned long long seen();
    };
}

fn sample() -> Sample {
    Sample { s: 1, l: 2, o: 3, d: 1.5, ..Sample::default() }
}

/// Counts the bytes of data whose ends are correct.
#[derive(Default)]
struct Counter {
    seen: AtomicU64,
    level: AtomicU64,
    kept: Mutex<Bytes>,
}

impl Counter {
    fn add(&self, octets: u64) -> Result<(), SystemException> {
        self.seen.fetch_add(octets, Ordering::Relaxed);
        Ok(())
    }

    fn add_filled<T: PartialEq>(&self, data: &[T], with: T) -> Result<(), SystemException> {
        let right = data.first() == Some(&with) && data.last() == Some(&with);
        self.add(if right { size_of_val(data) as u64 } else { 0 })
    }
}

impl MeterServant for Counter {
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn mean(&self, a: i32, b: u64, c: f64, d: i16) -> Result<f64, SystemException> {
        Ok((f64::from(a) + b as f64 + c + f64::from(d)) / 4.0)
    }

    async fn latest(&self, given: &Reading) -> Result<Reading, SystemException> {
        Ok(Reading { value: given.value + 1.0, ..given.clone() })
    }

    async fn level(&self) -> Result<i32, SystemException> {
        Ok(self.level.load(Ordering::Relaxed) as i32)
    }

    async fn set_level(&self, level: i32) -> Result<(), SystemException> {
        self.level.store(level as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn divide(&self, a: f64, b: f64, count: i32) -> Result<(f64, i32), SystemException> {
        Ok((a / b, count + 1))
    }

    async fn note(&self, _value: i32) -> Result<(), SystemException> {
        self.add(4)
    }

    async fn octets(&self, data: Bytes) -> Result<(), SystemException> {
        self.add_filled(&data, 1)
    }

    async fn doubles(&self, data: Seq<f64>) -> Result<(), SystemException> {
        self.add_filled(&data, 1.5)
    }

    async fn chars(&self, data: Seq<Char>) -> Result<(), SystemException> {
        self.add_filled(&data, Char(b'c'))
    }

    async fn samples(&self, data: &[Sample]) -> Result<(), SystemException> {
        self.add_filled(data, sample())
    }

    async fn keep(&self, data: Bytes) -> Result<(), SystemException> {
        self.add(data.len() as u64)?;
        *self.kept.lock().unwrap() = data;
        Ok(())
    }

    async fn echo(&self, data: Bytes) -> Result<Bytes, SystemException> {
        Ok(data)
    }

    async fn echo_doubles(&self, data: Seq<f64>) -> Result<Seq<f64>, SystemException> {
        Ok(data)
    }

    async fn seen(&self) -> Result<u64, SystemException> {
        Ok(self.seen.swap(0, Ordering::Relaxed))
    }
}

/// Server and client on one thread.
struct Bench {
    runtime: Runtime,
    server: Orb,
    client: Orb,
    meter: MeterRef,
}

impl Bench {
    fn new() -> Self {
        Self::of(transport::builder())
    }

    fn of(server: zorb::OrbBuilder) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (server, client, meter) = runtime.block_on(async {
            let server = server.listen("iiop://127.0.0.1:0").build().await.unwrap();
            let here: MeterRef = server.activate(Counter::default()).unwrap();
            let client = transport::builder().build().await.unwrap();
            let meter: MeterRef = client.resolve(&here.to_string()).await.unwrap();
            (server, client, meter)
        });
        Self { runtime, server, client, meter }
    }

    /// Runs `work` repeatedly, counts the allocations of each run, and returns the smallest count. A run of
    /// hundreds of messages without allocations is the steady state, and the last run. By then, buffers,
    /// slots and pools have reached their final size, regardless of the scheduling of earlier runs.
    fn count(&self, work: impl AsyncFn(&MeterRef)) -> AllocationInfo {
        let run = || {
            // Boxed, because `block_on` boxes a large future.
            let once = Box::pin(work(&self.meter));
            allocation_counter::measure(|| self.runtime.block_on(once))
        };
        run();
        let mut least = run();
        for _ in 0..10 {
            if least.count_total == 0 {
                break;
            }
            let counted = run();
            if counted.count_total < least.count_total {
                least = counted;
            }
        }
        least
    }

    #[track_caller]
    fn assert_none(&self, what: &str, calls: u64, work: impl AsyncFn(&MeterRef)) {
        let counted = self.count(work);
        assert_eq!(counted.count_total, 0, "{what}: {counted:?} in {calls} of them");
    }

    /// Sends `messages` oneways, then waits until the server has received all of them. It must have seen
    /// `each` bytes in every one.
    #[track_caller]
    fn assert_no_allocation_for_oneways(
        &self,
        what: &str,
        messages: u64,
        each: u64,
        send: impl AsyncFn(&MeterRef),
    ) {
        let work = async |meter: &MeterRef| {
            for _ in 0..messages {
                send(meter).await;
            }
            assert_eq!(meter.seen().await.unwrap(), messages * each);
        };
        self.assert_none(what, messages, work);
    }
}

#[test]
fn the_allocator_counts_this_threads_calls() {
    let bench = Bench::new();
    let counted = bench.count(async |meter| {
        let text = RefCell::new(String::new());
        for _ in 0..10 {
            meter.ping().await.unwrap();
            text.replace("allocated".repeat(10));
        }
    });
    assert!(counted.count_total >= 10, "{counted:?}");
}

#[test]
fn a_ping_allocates_nothing() {
    let bench = Bench::new();
    bench.assert_none("pings", 1000, async |meter| {
        for _ in 0..1000 {
            meter.ping().await.unwrap();
        }
    });
    transport::assert_used(&bench.client);
    transport::assert_used(&bench.server);
}

#[cfg(feature = "admin")]
#[test]
fn a_ping_that_its_server_counts_allocates_nothing() {
    Bench::of(transport::builder().admin("127.0.0.1:0")).assert_none("pings", 1000, async |meter| {
        for _ in 0..1000 {
            meter.ping().await.unwrap();
        }
    });
}

#[test]
fn a_ping_of_any_object_of_a_poa_allocates_nothing() {
    let bench = Bench::new();
    let root = bench.server.root_poa();
    let servant = zorb::Servant::of::<MeterRef, _>(Counter::default());
    let any = root.child("any").user_ids().default_servant(servant).without_map().create().unwrap();
    let some = root.child("some").user_ids().persistent().create().unwrap();
    let mut meters = Vec::new();
    bench.runtime.block_on(async {
        for id in 0..4 {
            let by_default: MeterRef = any.create_reference_with_id(format!("meter {id}")).unwrap();
            let active: MeterRef = some.activate_with_id(format!("meter {id}"), Counter::default()).unwrap();
            for here in [by_default, active] {
                meters.push(bench.client.resolve_unchecked::<MeterRef>(&here.to_string()).await.unwrap());
            }
        }
    });
    bench.assert_none("pings", 800, async |_| {
        for _ in 0..100 {
            for meter in &meters {
                meter.ping().await.unwrap();
            }
        }
    });
}

#[test]
fn a_ping_through_a_reference_with_options_allocates_nothing() {
    let bench = Bench::new();
    let hasty = bench.meter.with_timeout(Duration::from_secs(5));
    bench.assert_none("pings", 1000, async |_| {
        for _ in 0..1000 {
            hasty.ping().await.unwrap();
        }
    });
}

#[test]
fn calls_with_numbers_allocate_nothing() {
    let bench = Bench::new();
    let given = Reading { sensor: 1, value: 2.0, good: true };
    bench.assert_none("calls", 5000, async |meter| {
        for i in 0..1000 {
            assert_eq!(meter.mean(i, 1, 2.0, 3).await.unwrap(), f64::from(i + 6) / 4.0);
            assert_eq!(meter.latest(&given).await.unwrap().value, 3.0);
            meter.set_level(i).await.unwrap();
            assert_eq!(meter.level().await.unwrap(), i);
            assert_eq!(meter.divide(1.0, 2.0, i).await.unwrap(), (0.5, i + 1));
        }
    });
}

#[test]
fn calls_that_are_under_way_together_allocate_nothing() {
    Bench::new().assert_none("calls", 8 * 500, async |meter| {
        for i in 0..500 {
            // Joined in one task: the state of `join!` is on its stack.
            let (a, b, c, d) =
                tokio::join!(meter.mean(i, 0, 0.0, 0), meter.ping(), meter.ping(), meter.ping());
            a.and(b.map(|()| 0.0)).and(c.map(|()| 0.0)).and(d.map(|()| 0.0)).unwrap();
            let (a, b, c, d) = tokio::join!(meter.level(), meter.level(), meter.level(), meter.level());
            a.and(b).and(c).and(d).unwrap();
        }
    });
}

#[test]
fn a_small_oneway_allocates_nothing() {
    Bench::new().assert_no_allocation_for_oneways("oneways of a long", 5000, 4, async |meter| {
        meter.note(7).await.unwrap();
    });
}

#[test]
fn a_gathered_oneway_of_1_kib_allocates_nothing() {
    let octets = Bytes::from(vec![1; 1024]);
    Bench::new().assert_no_allocation_for_oneways("oneways of 1 KiB", 5000, 1024, async |meter| {
        meter.octets(octets.clone()).await.unwrap();
    });
}

#[test]
fn octets_received_as_bytes_allocate_nothing() {
    for size in [8 << 10, 64 << 10, 1 << 20] {
        let octets = Bytes::from(vec![1; size]);
        let what = format!("oneways of {} KiB", size >> 10);
        Bench::new().assert_no_allocation_for_oneways(&what, 300, size as u64, async |meter| {
            meter.octets(octets.clone()).await.unwrap();
        });
    }
}

#[test]
fn doubles_received_as_seq_allocate_nothing() {
    for size in [1 << 10, 8 << 10, 64 << 10, 1 << 20] {
        let doubles = Seq::from(vec![1.5; size / 8]);
        let what = format!("oneways of {} KiB", size >> 10);
        Bench::new().assert_no_allocation_for_oneways(&what, 300, size as u64, async |meter| {
            meter.doubles(doubles.clone()).await.unwrap();
        });
    }
}

#[test]
fn structs_received_as_a_slice_allocate_nothing() {
    // From 512 KiB on they are written while they are encoded. The part that the socket does not accept is
    // encoded immediately, into separate memory.
    for size in [1 << 20, 4 << 20] {
        let samples = vec![sample(); size / 24];
        let octets = size_of_val(samples.as_slice()) as u64;
        let what = format!("oneways of {} KiB", size >> 10);
        Bench::new().assert_none(&what, 5, async |meter| {
            for _ in 0..5 {
                meter.samples(&samples).await.unwrap();
                assert_eq!(meter.seen().await.unwrap(), octets);
            }
        });
    }
}

#[test]
fn chars_received_as_seq_allocate_nothing() {
    for size in [1 << 10, 64 << 10] {
        let chars = Seq::from(vec![Char(b'c'); size]);
        let what = format!("oneways of {} KiB", size >> 10);
        Bench::new().assert_no_allocation_for_oneways(&what, 300, size as u64, async |meter| {
            meter.chars(chars.clone()).await.unwrap();
        });
    }
}

#[test]
fn a_servant_that_keeps_the_last_message_makes_nothing_allocate() {
    let octets = Bytes::from(vec![1; 64 << 10]);
    Bench::new().assert_no_allocation_for_oneways("kept oneways", 300, 64 << 10, async |meter| {
        meter.keep(octets.clone()).await.unwrap();
    });
}

#[test]
fn an_echo_of_octets_allocates_nothing() {
    for size in [1 << 10, 64 << 10, 1 << 20] {
        let octets = Bytes::from(vec![1; size]);
        let what = format!("echoes of {} KiB", size >> 10);
        let bench = Bench::new();
        bench.assert_none(&what, 100, async |meter| {
            for _ in 0..100 {
                assert_eq!(meter.echo(octets.clone()).await.unwrap().len(), size);
            }
        });
    }
}

#[test]
fn an_echo_of_doubles_allocates_nothing() {
    let doubles = Seq::from(vec![0.25; 8192]);
    Bench::new().assert_none("echoes of 64 KiB", 100, async |meter| {
        for _ in 0..100 {
            assert_eq!(meter.echo_doubles(doubles.clone()).await.unwrap()[8191], 0.25);
        }
    });
}

#[test]
fn no_receive_buffer_is_lost_between_bulk_and_small_messages() {
    let octets = Bytes::from(vec![1; 100_000]);
    let bench = Bench::new();
    let held = || bench.server.pool_stats().held + bench.client.pool_stats().held;
    let run = |rounds| {
        bench.runtime.block_on(async {
            for _ in 0..rounds {
                assert_eq!(bench.meter.echo(octets.clone()).await.unwrap().len(), 100_000);
                bench.meter.ping().await.unwrap();
            }
        });
        held()
    };
    // How many buffers are in use at a time depends on the speed of messages: one or two per side.
    let most = run(50) + 4 * (128 << 10);
    let later = run(200);
    assert!(later <= most, "the pools grow to {later}, over {most}");
}

#[test]
fn large_messages_one_after_the_other_go_through_one_buffer() {
    let octets = Bytes::from(vec![1; 3 << 20]);
    let held = || {
        let bench = Bench::new();
        bench.runtime.block_on(async {
            for _ in 0..20 {
                for _ in 0..5 {
                    bench.meter.octets(octets.clone()).await.unwrap();
                }
                assert_eq!(bench.meter.seen().await.unwrap(), 5 * (3 << 20));
            }
        });
        bench.server.pool_stats().held
    };
    // One buffer is in the processor's cache; a second one would be cold. If the system delivers the end of a
    // message together with the start of the next, a second one is allocated. Therefore the minimum of
    // several runs counts.
    let least = (0..10).map(|_| held()).min().unwrap();
    assert!(least < 6 << 20, "{least} octets are held for messages of {}", 3 << 20);
}
