//! The test `clients`, with many simultaneous clients. It is the same for all peers of this program.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};

use crate::report::Report;
use crate::test_loops;
use crate::work::Work;

/// The state that all clients share. The clients start together, and make calls until none are left.
#[derive(Debug)]
struct SharedCalls {
    /// Number of calls that are still to be made; negative when clients have found that none are left.
    left: AtomicI64,
    /// Where the clients wait for each other before their first counted call.
    start_barrier: Barrier,
    /// When the first thread passed the barrier.
    start_time: OnceLock<Instant>,
    has_failed: AtomicBool,
    /// Number of calls that each client makes before the barrier. They are not counted.
    warm_up_calls: u32,
}

impl SharedCalls {
    /// Waits for all clients. If one of them [cancels](Self::cancel_start) the start, no calls are made.
    fn wait_for_start(&self) {
        self.start_barrier.wait();
        // The first thread that runs sets the time, because it may make calls before the others run.
        self.start_time.get_or_init(Instant::now);
        if self.has_failed.load(Ordering::Relaxed) {
            self.left.store(0, Ordering::Relaxed);
        }
    }

    /// Waits for all clients, for a client that failed.
    fn cancel_start(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.wait_for_start();
    }
}

/// What one client needs to take part in the test. Dropping it before [`run`](Self::run) has reached the
/// barrier counts as a failure, so that the other clients do not wait for this client.
#[derive(Debug)]
pub(crate) struct ClientSlot {
    number: u32,
    shared: Arc<SharedCalls>,
    has_passed_barrier: bool,
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        if !self.has_passed_barrier {
            self.shared.cancel_start();
        }
    }
}

impl ClientSlot {
    /// Makes the calls of this client, and returns the times of the counted ones. The client first calls
    /// `echo` with bytes that no other client sends, and compares the reply. Then it makes some uncounted
    /// calls. Before the counted calls, all clients wait for each other.
    pub(crate) async fn run<E, EF, B, C, CF, F>(
        mut self,
        echo: E,
        mut call: C,
    ) -> anyhow::Result<Vec<Duration>>
    where
        E: FnOnce(Vec<u8>) -> EF,
        EF: Future<Output = Result<B, F>>,
        B: AsRef<[u8]>,
        C: FnMut() -> CF,
        CF: Future<Output = Result<(), F>>,
        F: Into<anyhow::Error>,
    {
        let bytes = self.number.to_ne_bytes().repeat(16);
        let echoed = echo(bytes.clone()).await.map_err(Into::into)?;
        ensure!(echoed.as_ref() == bytes, "the echo of client {} differs from what was sent", self.number);
        for _ in 0..self.shared.warm_up_calls {
            call().await.map_err(Into::into)?;
        }
        self.has_passed_barrier = true;
        self.shared.wait_for_start();
        let mut samples = Vec::new();
        while self.shared.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            let start = Instant::now();
            if let Err(error) = call().await {
                self.shared.left.store(0, Ordering::Relaxed);
                return Err(error.into());
            }
            samples.push(start.elapsed());
        }
        Ok(samples)
    }
}

/// The test `clients`: `work.depth` simultaneous clients, each with a thread and a connection of its own,
/// make `work.calls()` calls in total. The function `client` runs one of the clients: it connects, and
/// returns the result of [`ClientSlot::run`].
pub(crate) fn clients(
    peer: &str,
    work: &Work,
    client: impl Fn(ClientSlot) -> anyhow::Result<Vec<Duration>> + Send + Sync + 'static,
) -> anyhow::Result<Report> {
    let client_count = work.depth;
    let shared = Arc::new(SharedCalls {
        left: AtomicI64::new(i64::from(work.calls())),
        start_barrier: Barrier::new(client_count as usize + 1),
        start_time: OnceLock::new(),
        has_failed: AtomicBool::new(false),
        warm_up_calls: (work.calls() / 10 / client_count).max(1),
    });
    let client = Arc::new(client);
    let mut threads = Vec::new();
    for number in 0..client_count {
        let slot = ClientSlot { number, shared: shared.clone(), has_passed_barrier: false };
        let client = client.clone();
        let thread = thread::Builder::new().name(format!("client {number}"));
        let thread = thread.spawn(move || client(slot));
        threads.push(thread.with_context(|| format!("cannot start the thread of client {number}"))?);
    }
    shared.wait_for_start();
    let results: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    let time = shared.start_time.get().map(Instant::elapsed).unwrap_or_default();
    let mut samples = Vec::new();
    for result in results {
        samples.extend(result.map_err(|_| anyhow!("a client panicked"))??);
    }
    ensure!(
        samples.len() == work.calls() as usize,
        "only {} of {} calls were made",
        samples.len(),
        work.calls()
    );
    if let Some(path) = &work.samples {
        test_loops::write_samples(path, &samples)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Report::clients(peer, work, samples, time))
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;
    use std::sync::atomic::AtomicU32;

    use anyhow::bail;

    use super::*;
    use crate::blocking::complete;
    use crate::report::Line;
    use crate::work::parse_work;

    fn work(clients: u32) -> Work {
        parse_work(&format!("clients --n 100 --depth {clients}"))
    }

    #[test]
    fn clients_share_the_calls() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        let report = clients("t", &work(7), move |slot| {
            let call = || {
                counted.fetch_add(1, Ordering::Relaxed);
                ready(io::Result::Ok(()))
            };
            complete(slot.run(|bytes| ready(Ok(bytes)), call))
        });
        let Report(Line::Clients(line)) = report.unwrap() else { panic!() };
        assert_eq!((line.depth, line.n, calls.load(Ordering::Relaxed)), (7, 100, 100 + 7));
    }

    #[test]
    fn a_failing_client_ends_all_clients() {
        let echo = |bytes| ready(io::Result::Ok(bytes));
        let error = clients("t", &work(5), move |slot| match slot.number {
            3 => bail!("no connection"),
            _ => complete(slot.run(echo, || ready(Ok(())))),
        });
        assert_eq!(error.unwrap_err().to_string(), "no connection");
        let error = clients("t", &work(5), move |slot| {
            let is_wrong = slot.number == 4;
            let echo = |bytes| ready(io::Result::Ok(if is_wrong { Vec::new() } else { bytes }));
            complete(slot.run(echo, || ready(Ok(()))))
        });
        assert_eq!(error.unwrap_err().to_string(), "the echo of client 4 differs from what was sent");
        let error = clients("t", &work(1), move |slot| {
            let mut left = 20;
            let call = || {
                left -= 1;
                ready(if left < 0 { Err(io::Error::other("gone")) } else { Ok(()) })
            };
            complete(slot.run(echo, call))
        });
        assert_eq!(error.unwrap_err().to_string(), "gone");
    }
}
