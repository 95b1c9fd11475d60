//! The test loops, generic over the calls of a peer.
//!
//! A client supplies closures that make one call each; the loops add warm-up, counting, clocks and the
//! report. All dispatch is static: a call costs as much as the peer's own future, and a blocking peer passes
//! [`std::future::ready`] values. These loops time every built-in peer, so that a difference between two
//! results is a difference between two peers.
//!
//! The returned futures are `Send` if the closures and the futures they return are, so they may run in a
//! spawned task.

use std::fs::File;
use std::future::Future;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::report::Report;
use crate::work::Work;

/// A flood fails if sync confirms nothing new for this long.
const STALLED: Duration = Duration::from_secs(10);

/// Test `ttcp`: calls `send`, one buffer of `work.payload_bytes()` user bytes each, until `work.total` bytes
/// are sent, then `sync` until all of them are confirmed. A server that reorders requests may run `sync`
/// before the last oneways, hence the repetition. A tenth of the work precedes the counted part.
///
/// # Errors
/// A call fails; or the server confirms too many bytes, or none for 10 seconds.
pub async fn ttcp<S, SF, Y, YF, E>(
    peer: &str,
    work: &Work,
    mut send: S,
    mut sync: Y,
) -> anyhow::Result<Report>
where
    S: FnMut() -> SF,
    SF: Future<Output = Result<(), E>>,
    Y: FnMut() -> YF,
    YF: Future<Output = Result<u64, E>>,
    E: Into<anyhow::Error>,
{
    // Discard what an earlier client may have left uncounted.
    sync().await.map_err(Into::into)?;
    let bytes = work.payload_bytes();
    flood(bytes, work.total / 10, &mut send, &mut sync).await?;
    let flooded = flood(bytes, work.total, &mut send, &mut sync).await?;
    Ok(Report::flood(peer, work, flooded.bytes, flooded.time, flooded.syncs))
}

/// Tests `ping`, `demux` and `echo`: `work.calls()` times one call at a time, each timed. A tenth more
/// precede them. The time of a call includes dropping its result.
///
/// # Errors
/// A call fails; the file of samples cannot be written.
pub async fn latency<C, CF, T, E>(peer: &str, work: &Work, mut call: C) -> anyhow::Result<Report>
where
    C: FnMut() -> CF,
    CF: Future<Output = Result<T, E>>,
    E: Into<anyhow::Error>,
{
    for _ in 0..work.calls() / 10 {
        drop(call().await.map_err(Into::into)?);
    }
    let mut samples = Vec::with_capacity(work.calls() as usize);
    for _ in 0..work.calls() {
        let start = Instant::now();
        drop(call().await.map_err(Into::into)?);
        samples.push(start.elapsed());
    }
    if let Some(path) = &work.samples {
        write_samples(path, &samples).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Report::latency(peer, work, samples))
}

/// Test `pipeline`: `work.calls()` calls, `work.depth` outstanding at a time, all within the calling task. A
/// tenth more precede them.
///
/// # Errors
/// A call fails.
pub async fn pipeline<C, CF, E>(peer: &str, work: &Work, call: C) -> anyhow::Result<Report>
where
    C: Fn() -> CF,
    CF: Future<Output = Result<(), E>>,
    E: Into<anyhow::Error>,
{
    outstanding(work.depth, work.calls() / 10, &call).await.map_err(Into::into)?;
    let start = Instant::now();
    outstanding(work.depth, work.calls(), &call).await.map_err(Into::into)?;
    Ok(Report::pipeline(peer, work, None, start.elapsed()))
}

/// The counts of a server since the previous query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls of the last operations of its interfaces.
    pub last: u64,
    /// Calls of all their other operations.
    pub others: u64,
}

/// Test `last`: calls the last operation of an interface `work.calls()` times, one after the other, then
/// queries `tally` until all are counted, because a server that reorders requests may answer before the last
/// oneways have run. A tenth more precede them.
///
/// # Errors
/// A call fails; or the server counts calls of another operation, too many calls, or no further one for 10
/// seconds.
pub async fn last<C, CF, Y, YF, E>(
    peer: &str,
    work: &Work,
    mut call: C,
    mut tally: Y,
) -> anyhow::Result<Report>
where
    C: FnMut() -> CF,
    CF: Future<Output = Result<(), E>>,
    Y: FnMut() -> YF,
    YF: Future<Output = Result<Tally, E>>,
    E: Into<anyhow::Error>,
{
    // Discard what an earlier client may have left uncounted.
    tally().await.map_err(Into::into)?;
    counted((work.calls() / 10).max(1), &mut call, &mut tally).await?;
    let times = counted(work.calls(), &mut call, &mut tally).await?;
    Ok(Report::last(peer, work, work.calls().into(), times))
}

/// Returns the value of test buffers at position `i`: lowercase letters in turn.
pub fn pattern(i: usize) -> u8 {
    b'a' + (i % 26) as u8
}

/// Exit code of a server of the integrity pass that received unexpected contents.
pub const EXIT_MISMATCH: i32 = 4;

/// Returns the message that it prints in this case.
pub fn format_mismatch(kind: &str, at: usize, of: usize) -> String {
    let kind = kind.rsplit("::").next().unwrap_or(kind);
    format!("contents differ: element {at} of a sequence of {of} ({kind}) is not what was sent")
}

/// Writes the times of calls to a file, nanoseconds, one per line.
pub(crate) fn write_samples(path: &Path, samples: &[Duration]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for sample in samples {
        writeln!(file, "{}", sample.as_nanos())?;
    }
    file.flush()
}

struct FloodResult {
    bytes: u64,
    time: Duration,
    syncs: u32,
}

async fn flood<SF, YF, E>(
    bytes: u64,
    total: u64,
    send: &mut impl FnMut() -> SF,
    sync: &mut impl FnMut() -> YF,
) -> anyhow::Result<FloodResult>
where
    SF: Future<Output = Result<(), E>>,
    YF: Future<Output = Result<u64, E>>,
    E: Into<anyhow::Error>,
{
    let start = Instant::now();
    let mut sent = 0;
    while sent < total {
        send().await.map_err(Into::into)?;
        sent += bytes;
    }
    let (mut confirmed, mut syncs, mut progress) = (0, 0, Instant::now());
    while confirmed < sent {
        let more = sync().await.map_err(Into::into)?;
        confirmed += more;
        syncs += 1;
        if more > 0 {
            progress = Instant::now();
        } else if progress.elapsed() > STALLED {
            break;
        }
    }
    let time = start.elapsed();
    if confirmed != sent {
        bail!("sent {sent} bytes, {confirmed} confirmed after {syncs} syncs");
    }
    Ok(FloodResult { bytes: confirmed, time, syncs })
}

/// Makes `calls` calls, and returns how long these take, and how long until the server has counted them.
async fn counted<CF, YF, E>(
    calls: u32,
    call: &mut impl FnMut() -> CF,
    tally: &mut impl FnMut() -> YF,
) -> anyhow::Result<[Duration; 2]>
where
    CF: Future<Output = Result<(), E>>,
    YF: Future<Output = Result<Tally, E>>,
    E: Into<anyhow::Error>,
{
    let start = Instant::now();
    for _ in 0..calls {
        call().await.map_err(Into::into)?;
    }
    let called = start.elapsed();
    let (mut sum, mut progress) = (Tally::default(), Instant::now());
    loop {
        let more = tally().await.map_err(Into::into)?;
        sum.last += more.last;
        sum.others += more.others;
        if more.last > 0 {
            progress = Instant::now();
        }
        if sum.others > 0 || sum.last >= calls.into() || progress.elapsed() > STALLED {
            break;
        }
    }
    let confirmed = start.elapsed();
    if sum != (Tally { last: calls.into(), others: 0 }) {
        bail!(
            "the last operation was called {calls} times: the server counted {} calls of it and {} of others",
            sum.last,
            sum.others
        );
    }
    Ok([called, confirmed])
}

/// Runs `depth` loops, each with its share of the calls. Nothing is allocated per call, and only loops whose
/// reply has arrived are polled.
async fn outstanding<CF, E>(depth: u32, calls: u32, call: &impl Fn() -> CF) -> Result<(), E>
where
    CF: Future<Output = Result<(), E>>,
{
    let mut loops: FuturesUnordered<_> = (0..depth)
        .map(|i| async move {
            for _ in 0..calls / depth + u32::from(i < calls % depth) {
                call().await?;
            }
            Ok(())
        })
        .collect();
    while let Some(done) = loops.next().await {
        done?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{poll_fn, ready};
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
    use std::task::Poll;

    use super::*;
    use crate::blocking::complete;
    use crate::work::SeriesOptions;
    use crate::work::{Element, Test};

    fn work(test: Test) -> Work {
        Work {
            test,
            element: Element::Struct,
            size: 100,
            total: 1000,
            n: Some(40),
            depth: 7,
            operations: 100,
            oneway: true,
            iterations: 1,
            lookup: false,
            sockbuf: None,
            samples: None,
            series: SeriesOptions::default(),
        }
    }

    #[test]
    fn a_flood_is_preceded_by_a_tenth_and_confirmed() {
        let (sends, bytes) = (Cell::new(0), Cell::new(77));
        let send = || {
            sends.set(sends.get() + 1);
            bytes.set(bytes.get() + 96);
            ready(io::Result::Ok(()))
        };
        let report = complete(ttcp("t", &work(Test::Ttcp), send, || ready(Ok(bytes.replace(0))))).unwrap();
        assert_eq!(sends.get(), 2 + 11, "a tenth of 1000 bytes, then 1000, in buffers of 96");
        let Report::Flood(line) = report else { panic!("{report:?}") };
        assert_eq!((line.size, line.element, line.syncs), (100, Element::Struct, None));
    }

    #[test]
    fn sync_is_repeated_until_all_is_confirmed() {
        let bytes = Cell::new(0u64);
        let send = || {
            bytes.set(bytes.get() + 96);
            ready(io::Result::Ok(()))
        };
        let sync = || {
            let some = bytes.get().div_ceil(2).min(600);
            bytes.set(bytes.get() - some);
            ready(Ok(some))
        };
        let Report::Flood(line) = complete(ttcp("t", &work(Test::Ttcp), send, sync)).unwrap() else {
            panic!()
        };
        assert!(line.syncs > Some(1), "{line:?}");
    }

    #[test]
    fn too_many_confirmed_bytes_are_an_error() {
        let error = complete(ttcp("t", &work(Test::Ttcp), || ready(io::Result::Ok(())), || ready(Ok(5000))));
        assert_eq!(error.unwrap_err().to_string(), "sent 192 bytes, 5000 confirmed after 1 syncs");
    }

    #[test]
    fn a_failing_call_ends_each_test() {
        let fail = || ready(Err::<(), _>(io::Error::other("gone")));
        assert_eq!(complete(latency("t", &work(Test::Ping), fail)).unwrap_err().to_string(), "gone");
        assert_eq!(complete(pipeline("t", &work(Test::Pipeline), fail)).unwrap_err().to_string(), "gone");
        let error = complete(ttcp("t", &work(Test::Ttcp), fail, || ready(Ok(0))));
        assert_eq!(error.unwrap_err().to_string(), "gone");
    }

    #[test]
    fn latency_counts_calls_after_the_warm_up() {
        let calls = Cell::new(0);
        let call = || {
            calls.set(calls.get() + 1);
            ready(io::Result::Ok(()))
        };
        let Report::Latency(line) = complete(latency("t", &work(Test::Ping), call)).unwrap() else {
            panic!()
        };
        assert_eq!((line.n, calls.get()), (40, 44));

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples");
        let work = Work { samples: Some(path.clone()), ..work(Test::Ping) };
        assert!(complete(latency("t", &work, || ready(io::Result::Ok(())))).is_ok());
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| line.parse::<u64>().is_ok()).count(), 40, "{text}");
        let work = Work { samples: Some(path.join("none")), ..work };
        let error = complete(latency("t", &work, || ready(io::Result::Ok(())))).unwrap_err().to_string();
        assert!(error.contains("cannot write") && error.contains("samples/none"), "{error}");
    }

    #[test]
    fn the_last_operation_is_called_as_often_as_the_server_says() {
        let (calls, waiting) = (Cell::new(0), Cell::new(0u64));
        let call = || {
            calls.set(calls.get() + 1);
            waiting.set(waiting.get() + 1);
            ready(io::Result::Ok(()))
        };
        // Counts half of the waiting oneways at a time: some oneways are overtaken.
        let tally = || {
            let some = waiting.get().div_ceil(2).min(30);
            waiting.set(waiting.get() - some);
            ready(Ok(Tally { last: some, others: 0 }))
        };
        let work = Work { n: None, ..work(Test::Last) };
        let Report::Last(line) = complete(last("t", &work, call, tally)).unwrap() else { panic!() };
        assert_eq!((calls.get(), line.counted, line.operations, line.oneway), (110, 100, 100, true));
        assert!(line.counted_secs >= line.secs && line.secs > 0.0, "{line:?}");
    }

    #[test]
    fn calls_of_other_operations_and_too_many_are_errors() {
        let of = |tally: Tally| {
            let result =
                complete(last("t", &work(Test::Last), || ready(io::Result::Ok(())), || ready(Ok(tally))));
            result.unwrap_err().to_string()
        };
        let message = "the last operation was called 4 times: the server counted";
        assert_eq!(of(Tally { last: 3, others: 1 }), format!("{message} 3 calls of it and 1 of others"));
        assert_eq!(of(Tally { last: 5, others: 0 }), format!("{message} 5 calls of it and 0 of others"));
    }

    #[test]
    fn pipeline_keeps_exactly_depth_calls_outstanding() {
        let (now, most, calls) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU64::new(0));
        let call = || async {
            let mut waits = 3;
            most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
            poll_fn(|cx| {
                waits -= 1;
                cx.waker().wake_by_ref();
                if waits == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            now.fetch_sub(1, Relaxed);
            calls.fetch_add(1, Relaxed);
            io::Result::Ok(())
        };
        let Report::Pipeline(line) = complete(pipeline("t", &work(Test::Pipeline), call)).unwrap() else {
            panic!()
        };
        assert_eq!((line.n, line.depth, line.batch), (40, 7, None));
        assert_eq!((most.into_inner(), calls.into_inner()), (7, 44));
    }

    #[test]
    fn the_loops_may_run_in_a_spawned_task() {
        struct Client(AtomicU64);
        impl Client {
            async fn ping(&self) -> io::Result<()> {
                self.0.fetch_add(1, Relaxed);
                Ok(())
            }
            async fn sync(&self) -> io::Result<u64> {
                Ok(self.0.swap(0, Relaxed) * 96)
            }
        }
        fn spawn<F: Future<Output = anyhow::Result<Report>> + Send + 'static>(
            f: F,
        ) -> anyhow::Result<Report> {
            std::thread::spawn(|| complete(f)).join().unwrap()
        }
        let report = spawn(async {
            let (client, work) = (Client(AtomicU64::new(0)), work(Test::Ping));
            ttcp("t", &work, || client.ping(), || client.sync()).await?;
            latency("t", &work, || client.ping()).await?;
            pipeline("t", &work, || client.ping()).await
        });
        assert!(report.is_ok());
    }
}
