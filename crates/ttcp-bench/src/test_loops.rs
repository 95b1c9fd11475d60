//! The test loops, generic over the calls of a peer (a client and a server of the same middleware).
//!
//! A client supplies closures that make one call each; the loops add warm-up, counting, clocks and the
//! report. The loops are the same for all built-in peers, so that their results are comparable. All dispatch
//! is static, so that a call has no extra cost. Closures of blocking clients return [`std::future::ready`].
//!
//! The returned futures are `Send` if the closures and their futures are, and can then run in a spawned task.

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

/// A test fails if the server confirms no further bytes or calls for this long.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// The test `ttcp`: calls `send`, which sends a buffer of `work.payload_bytes()` bytes, until `work.total`
/// bytes are sent. Then it calls `sync` until all of them are confirmed, because a server that reorders
/// requests may run `sync` before the last oneways. A warm-up with a tenth of the bytes is not counted.
///
/// # Errors
/// A call fails, or the server confirms too many bytes, or it confirms no further bytes for 10 seconds.
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
    // Discard the bytes that the server has received from earlier clients but not reported.
    sync().await.map_err(Into::into)?;
    let buffer_bytes = work.payload_bytes();
    flood(buffer_bytes, work.total / 10, &mut send, &mut sync).await?;
    let flooded = flood(buffer_bytes, work.total, &mut send, &mut sync).await?;
    Ok(Report::flood(peer, work, flooded.bytes, flooded.time, flooded.sync_calls))
}

/// The tests `ping`, `demux`, `echo` and `objects`: makes `work.calls()` calls, one at a time, and measures
/// the time of each, including dropping the result. A warm-up with a tenth of the calls is not counted.
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

/// The test `pipeline`: makes `work.calls()` calls in the calling task, of which `work.depth` are outstanding
/// at any time. A warm-up with a tenth of the calls is not counted.
pub async fn pipeline<C, CF, E>(peer: &str, work: &Work, call: C) -> anyhow::Result<Report>
where
    C: Fn() -> CF,
    CF: Future<Output = Result<(), E>>,
    E: Into<anyhow::Error>,
{
    call_concurrently(work.depth, work.calls() / 10, &call).await.map_err(Into::into)?;
    let start = Instant::now();
    call_concurrently(work.depth, work.calls(), &call).await.map_err(Into::into)?;
    Ok(Report::pipeline(peer, work, None, start.elapsed()))
}

/// The numbers of calls to interfaces with very many operations since the previous query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of calls to the last operations of these interfaces.
    pub last: u64,
    /// Number of calls to all other operations of these interfaces.
    pub others: u64,
}

/// The test `last`: calls the last operation of an interface `work.calls()` times, one call after the other.
/// Then it queries `tally` until all calls are counted, because a server that reorders requests may answer
/// before the last oneways have run. A warm-up with a tenth of the calls is not counted.
///
/// # Errors
/// A call fails, or the server counts a call to another operation, or too many calls, or no further calls for
/// 10 seconds.
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
    // Discard the calls that the server has counted for earlier clients but not reported.
    tally().await.map_err(Into::into)?;
    call_counted((work.calls() / 10).max(1), &mut call, &mut tally).await?;
    let times = call_counted(work.calls(), &mut call, &mut tally).await?;
    Ok(Report::last(peer, work, work.calls().into(), times))
}

/// Returns the byte at index `i` of test buffers, which repeat the lowercase letters.
pub fn pattern(i: usize) -> u8 {
    b'a' + (i % 26) as u8
}

/// The exit code of a server with `--check` that received wrong contents.
pub const EXIT_MISMATCH: i32 = 4;

/// Returns the message that a server prints before it exits with [`EXIT_MISMATCH`].
pub fn format_mismatch(element_type: &str, index: usize, len: usize) -> String {
    let element_type = element_type.rsplit("::").next().unwrap_or(element_type);
    format!("contents differ: element {index} of a sequence of {len} ({element_type}) is not what was sent")
}

/// Writes the times of calls in nanoseconds to a file, one per line.
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
    sync_calls: u32,
}

/// Sends at least `total` bytes in buffers of `buffer_bytes` bytes, and waits until all are confirmed.
async fn flood<SF, YF, E>(
    buffer_bytes: u64,
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
        sent += buffer_bytes;
    }
    let (mut confirmed, mut sync_calls, mut last_progress) = (0, 0, Instant::now());
    while confirmed < sent {
        let more = sync().await.map_err(Into::into)?;
        confirmed += more;
        sync_calls += 1;
        if more > 0 {
            last_progress = Instant::now();
        } else if last_progress.elapsed() > PROGRESS_TIMEOUT {
            break;
        }
    }
    let time = start.elapsed();
    if confirmed != sent {
        bail!("{sent} bytes were sent, but the server confirmed {confirmed} ({sync_calls} sync calls)");
    }
    Ok(FloodResult { bytes: confirmed, time, sync_calls })
}

/// Makes `calls` calls. Returns the time until the last call returned, and the time until the server had
/// counted all.
async fn call_counted<CF, YF, E>(
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
    let until_returned = start.elapsed();
    let (mut sum, mut last_progress) = (Tally::default(), Instant::now());
    loop {
        let more = tally().await.map_err(Into::into)?;
        sum.last += more.last;
        sum.others += more.others;
        if more.last > 0 {
            last_progress = Instant::now();
        }
        if sum.others > 0 || sum.last >= calls.into() || last_progress.elapsed() > PROGRESS_TIMEOUT {
            break;
        }
    }
    let until_counted = start.elapsed();
    if sum != (Tally { last: calls.into(), others: 0 }) {
        bail!(
            "the last operation was called {calls} times, but the server counted {} calls to it and {} to others",
            sum.last,
            sum.others
        );
    }
    Ok([until_returned, until_counted])
}

/// Runs `depth` concurrent loops, each with its share of the calls. No memory is allocated per call, and only
/// the loops whose replies have arrived are polled.
async fn call_concurrently<CF, E>(depth: u32, calls: u32, call: &impl Fn() -> CF) -> Result<(), E>
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
    use crate::report::Line;
    use crate::work::{Element, Test, parse_work};

    fn work(test: Test) -> Work {
        let options = "--type struct --size 100 --total 1000 --n 40 --depth 7 --oneway --iterations 1";
        parse_work(&format!("{test} {options}"))
    }

    #[test]
    fn a_flood_is_confirmed_after_a_warm_up_with_a_tenth() {
        let (sends, bytes) = (Cell::new(0), Cell::new(77));
        let send = || {
            sends.set(sends.get() + 1);
            bytes.set(bytes.get() + 96);
            ready(io::Result::Ok(()))
        };
        let report = complete(ttcp("t", &work(Test::Ttcp), send, || ready(Ok(bytes.replace(0))))).unwrap();
        assert_eq!(sends.get(), 2 + 11, "a tenth of 1000 bytes, then 1000, in buffers of 96");
        let Report(Line::Flood(line)) = report else { panic!("{report:?}") };
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
        let Report(Line::Flood(line)) = complete(ttcp("t", &work(Test::Ttcp), send, sync)).unwrap() else {
            panic!()
        };
        assert!(line.syncs > Some(1), "{line:?}");
    }

    #[test]
    fn too_many_confirmed_bytes_are_an_error() {
        let error = complete(ttcp("t", &work(Test::Ttcp), || ready(io::Result::Ok(())), || ready(Ok(5000))));
        let message = "192 bytes were sent, but the server confirmed 5000 (1 sync calls)";
        assert_eq!(error.unwrap_err().to_string(), message);
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
    fn latency_excludes_the_warm_up_and_writes_samples() {
        let calls = Cell::new(0);
        let call = || {
            calls.set(calls.get() + 1);
            ready(io::Result::Ok(()))
        };
        let Report(Line::Latency(line)) = complete(latency("t", &work(Test::Ping), call)).unwrap() else {
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
    fn tally_is_repeated_until_all_calls_are_counted() {
        let (calls, pending) = (Cell::new(0), Cell::new(0u64));
        let call = || {
            calls.set(calls.get() + 1);
            pending.set(pending.get() + 1);
            ready(io::Result::Ok(()))
        };
        // Each query reports half of the pending oneways, as if it had overtaken the others.
        let tally = || {
            let some = pending.get().div_ceil(2).min(30);
            pending.set(pending.get() - some);
            ready(Ok(Tally { last: some, others: 0 }))
        };
        let work = Work { n: None, ..work(Test::Last) };
        let Report(Line::Last(line)) = complete(last("t", &work, call, tally)).unwrap() else { panic!() };
        assert_eq!((calls.get(), line.counted, line.operations, line.oneway), (110, 100, 100, true));
        assert!(line.counted_secs >= line.secs && line.secs > 0.0, "{line:?}");
    }

    #[test]
    fn calls_of_other_operations_and_too_many_calls_are_errors() {
        let error = |tally: Tally| {
            let result =
                complete(last("t", &work(Test::Last), || ready(io::Result::Ok(())), || ready(Ok(tally))));
            result.unwrap_err().to_string()
        };
        let message = "the last operation was called 4 times, but the server counted";
        assert_eq!(error(Tally { last: 3, others: 1 }), format!("{message} 3 calls to it and 1 to others"));
        assert_eq!(error(Tally { last: 5, others: 0 }), format!("{message} 5 calls to it and 0 to others"));
    }

    #[test]
    fn pipeline_keeps_exactly_depth_calls_outstanding() {
        let (outstanding, max_outstanding, calls) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU64::new(0));
        let call = || async {
            let mut polls_left = 3;
            max_outstanding.fetch_max(outstanding.fetch_add(1, Relaxed) + 1, Relaxed);
            poll_fn(|cx| {
                polls_left -= 1;
                cx.waker().wake_by_ref();
                if polls_left == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            outstanding.fetch_sub(1, Relaxed);
            calls.fetch_add(1, Relaxed);
            io::Result::Ok(())
        };
        let Report(Line::Pipeline(line)) = complete(pipeline("t", &work(Test::Pipeline), call)).unwrap()
        else {
            panic!()
        };
        assert_eq!((line.n, line.depth, line.batch), (40, 7, None));
        assert_eq!((max_outstanding.into_inner(), calls.into_inner()), (7, 44));
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
