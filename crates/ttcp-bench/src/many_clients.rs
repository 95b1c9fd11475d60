//! The test with many clients at once, for all peers.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};

use crate::report::Report;
use crate::test_loops;
use crate::work::Work;

/// The calls that clients share: clients begin together, and end together when all calls have been made.
#[derive(Debug)]
struct SharedCalls {
    left: AtomicI64,
    begin: Barrier,
    /// The time at which the first client began.
    began: OnceLock<Instant>,
    failed: AtomicBool,
    warm_up: u32,
}

impl SharedCalls {
    /// Waits for the others. If one has failed, no calls are left.
    fn wait(&self, is_ready: bool) {
        if !is_ready {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.begin.wait();
        // The first client that is scheduled sets the time: it may finish its calls before the others run.
        self.began.get_or_init(Instant::now);
        if self.failed.load(Ordering::Relaxed) {
            self.left.store(0, Ordering::Relaxed);
        }
    }
}

/// The slot of one of the simultaneous clients. Dropping it releases the others from waiting for this client.
#[derive(Debug)]
pub struct ClientSlot {
    number: u32,
    shared: Arc<SharedCalls>,
    is_waited_for: bool,
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        if self.is_waited_for {
            self.shared.wait(false);
        }
    }
}

impl ClientSlot {
    /// Runs the client's part. It first calls `echo` with bytes that are unique to this client and compares
    /// the reply, then makes some uncounted calls. Then all clients wait for each other.
    ///
    /// # Errors
    /// A call fails, or a reply differs.
    pub async fn run<E, EF, B, C, CF, F>(mut self, echo: E, mut call: C) -> anyhow::Result<Vec<Duration>>
    where
        E: FnOnce(Vec<u8>) -> EF,
        EF: Future<Output = Result<B, F>>,
        B: AsRef<[u8]>,
        C: FnMut() -> CF,
        CF: Future<Output = Result<(), F>>,
        F: Into<anyhow::Error>,
    {
        let octets = self.number.to_ne_bytes().repeat(16);
        let back = echo(octets.clone()).await.map_err(Into::into)?;
        ensure!(back.as_ref() == octets, "the echo of client {} differs from what was sent", self.number);
        for _ in 0..self.shared.warm_up {
            call().await.map_err(Into::into)?;
        }
        self.is_waited_for = false;
        self.shared.wait(true);
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

/// Test `clients`: `work.calls()` calls in all, by `work.depth` clients at once, each with a thread and a
/// connection of its own. `client` runs one of them: it connects, and returns the result of
/// [`ClientSlot::run`].
///
/// # Errors
/// A client fails, or the threads cannot be started.
pub fn clients(
    peer: &str,
    work: &Work,
    client: impl Fn(ClientSlot) -> anyhow::Result<Vec<Duration>> + Send + Sync + 'static,
) -> anyhow::Result<Report> {
    let clients = work.depth;
    let shared = Arc::new(SharedCalls {
        left: AtomicI64::new(i64::from(work.calls())),
        begin: Barrier::new(clients as usize + 1),
        began: OnceLock::new(),
        failed: AtomicBool::new(false),
        warm_up: (work.calls() / 10 / clients).max(1),
    });
    let client = Arc::new(client);
    let mut threads = Vec::new();
    for number in 0..clients {
        let slot = ClientSlot { number, shared: shared.clone(), is_waited_for: true };
        let client = client.clone();
        let thread = thread::Builder::new().name(format!("client {number}"));
        let thread = thread.spawn(move || client(slot));
        threads.push(thread.with_context(|| format!("there is no thread for client {number} of {clients}"))?);
    }
    shared.wait(true);
    let ends: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    let time = shared.began.get().map(Instant::elapsed).unwrap_or_default();
    let mut samples = Vec::new();
    for end in ends {
        samples.extend(end.map_err(|_| anyhow!("a client panicked"))??);
    }
    ensure!(samples.len() == work.calls() as usize, "{} calls of {} were made", samples.len(), work.calls());
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
    use crate::work::{Element, SeriesOptions, Test};

    fn work(clients: u32) -> Work {
        Work {
            test: Test::Clients,
            element: Element::Octet,
            size: 0,
            total: 0,
            n: Some(100),
            depth: clients,
            operations: 100,
            oneway: false,
            iterations: 1,
            lookup: false,
            sockbuf: None,
            samples: None,
            series: SeriesOptions::default(),
        }
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
            complete(slot.run(|octets| ready(Ok(octets)), call))
        });
        let Report::Clients(line) = report.unwrap() else { panic!() };
        assert_eq!((line.depth, line.n, calls.load(Ordering::Relaxed)), (7, 100, 100 + 7));
    }

    #[test]
    fn a_client_that_fails_ends_all() {
        let echo = |octets| ready(io::Result::Ok(octets));
        let error = clients("t", &work(5), move |slot| match slot.number {
            3 => bail!("no connection"),
            _ => complete(slot.run(echo, || ready(Ok(())))),
        });
        assert_eq!(error.unwrap_err().to_string(), "no connection");
        let error = clients("t", &work(5), move |slot| {
            let bad = slot.number == 4;
            let echo = |octets| ready(io::Result::Ok(if bad { Vec::new() } else { octets }));
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
