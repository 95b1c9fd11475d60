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
struct Turns {
    left: AtomicI64,
    begin: Barrier,
    /// The time at which the first client began.
    began: OnceLock<Instant>,
    failed: AtomicBool,
    warm_up: u32,
}

impl Turns {
    /// Waits for the others. If one has failed, no calls are left.
    fn wait(&self, well: bool) {
        if !well {
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
pub struct Place {
    number: u32,
    turns: Arc<Turns>,
    waits: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.waits {
            self.turns.wait(false);
        }
    }
}

impl Place {
    /// Runs the client's part. It first calls `echo` with bytes that are unique to this client and compares
    /// the reply, then makes some uncounted calls. Then all clients wait for each other.
    ///
    /// # Errors
    /// A call fails, or a reply differs.
    pub async fn take<E, EF, B, C, CF, F>(mut self, echo: E, mut call: C) -> anyhow::Result<Vec<Duration>>
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
        for _ in 0..self.turns.warm_up {
            call().await.map_err(Into::into)?;
        }
        self.waits = false;
        self.turns.wait(true);
        let mut samples = Vec::new();
        while self.turns.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            let start = Instant::now();
            if let Err(error) = call().await {
                self.turns.left.store(0, Ordering::Relaxed);
                return Err(error.into());
            }
            samples.push(start.elapsed());
        }
        Ok(samples)
    }
}

/// Test `clients`: `work.calls()` calls in all, by `work.depth` clients at once, each with a thread and a
/// connection of its own. `client` runs one of them: it connects, and returns the result of [`Place::take`].
///
/// # Errors
/// A client fails, or the threads cannot be started.
pub fn clients(
    peer: &str,
    work: &Work,
    client: impl Fn(Place) -> anyhow::Result<Vec<Duration>> + Send + Sync + 'static,
) -> anyhow::Result<Report> {
    let clients = work.depth;
    let turns = Arc::new(Turns {
        left: AtomicI64::new(i64::from(work.calls())),
        begin: Barrier::new(clients as usize + 1),
        began: OnceLock::new(),
        failed: AtomicBool::new(false),
        warm_up: (work.calls() / 10 / clients).max(1),
    });
    let client = Arc::new(client);
    let mut threads = Vec::new();
    for number in 0..clients {
        let place = Place { number, turns: turns.clone(), waits: true };
        let client = client.clone();
        let thread = thread::Builder::new().name(format!("client {number}"));
        let thread = thread.spawn(move || client(place));
        threads.push(thread.with_context(|| format!("there is no thread for client {number} of {clients}"))?);
    }
    turns.wait(true);
    let ends: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    let time = turns.began.get().map(Instant::elapsed).unwrap_or_default();
    let mut samples = Vec::new();
    for end in ends {
        samples.extend(end.map_err(|_| anyhow!("a client panicked"))??);
    }
    ensure!(samples.len() == work.calls() as usize, "{} calls of {} were made", samples.len(), work.calls());
    if let Some(path) = &work.samples {
        test_loops::keep(path, &samples).with_context(|| format!("cannot write {}", path.display()))?;
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
        let report = clients("t", &work(7), move |place| {
            let call = || {
                counted.fetch_add(1, Ordering::Relaxed);
                ready(io::Result::Ok(()))
            };
            complete(place.take(|octets| ready(Ok(octets)), call))
        });
        let Report::Clients(line) = report.unwrap() else { panic!() };
        assert_eq!((line.depth, line.n, calls.load(Ordering::Relaxed)), (7, 100, 100 + 7));
    }

    #[test]
    fn a_client_that_fails_ends_all() {
        let echo = |octets| ready(io::Result::Ok(octets));
        let error = clients("t", &work(5), move |place| match place.number {
            3 => bail!("no connection"),
            _ => complete(place.take(echo, || ready(Ok(())))),
        });
        assert_eq!(error.unwrap_err().to_string(), "no connection");
        let error = clients("t", &work(5), move |place| {
            let bad = place.number == 4;
            let echo = |octets| ready(io::Result::Ok(if bad { Vec::new() } else { octets }));
            complete(place.take(echo, || ready(Ok(()))))
        });
        assert_eq!(error.unwrap_err().to_string(), "the echo of client 4 differs from what was sent");
        let error = clients("t", &work(1), move |place| {
            let mut left = 20;
            let call = || {
                left -= 1;
                ready(if left < 0 { Err(io::Error::other("gone")) } else { Ok(()) })
            };
            complete(place.take(echo, call))
        });
        assert_eq!(error.unwrap_err().to_string(), "gone");
    }
}
