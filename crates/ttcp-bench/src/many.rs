//! Common code of the tests with many objects and many clients, for all peers.
//!
//! A server with `--objects N` has N additional objects, and writes references to those that are called next
//! to its IOR file. Servers select these objects, and clients the objects that they call, by a pseudo-random
//! sequence that is the same in every language. Therefore all peers are called in the same way.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use clap::{Args, ValueEnum};

use crate::cli::Work;
use crate::peer;
use crate::report::Report;

/// Maximum number of objects that are called.
const CALLED: u64 = 1000;
/// Seed of the pseudo-random sequence.
const SEED: u64 = 0x5eed;

/// Options of a server about its many objects.
#[derive(Debug, Clone, Copy, Args)]
pub struct ManyArgs {
    /// Further objects, each with a servant of its own; PATH.objects gets references to up to 1000 of them, drawn with a fixed seed
    #[arg(long = "objects", id = "many", value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub objects: u32,
    /// How these objects are served
    #[arg(long, value_enum, default_value_t = Serving::Map, value_name = "WAY")]
    pub serving: Serving,
}

/// How many objects are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Serving {
    /// By the active map, under ids that the POA chooses
    Map,
    /// By the active map, under ids that the program chooses
    Ids,
    /// By one default servant, which asks for the id
    Default,
}

/// A pseudo-random sequence that is the same in every peer.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Default for Draws {
    fn default() -> Self {
        Draws(SEED)
    }
}

impl Draws {
    /// Returns the next number, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// Returns the indices of the called objects in ascending order: all, or one out of each thousandth.
pub fn called(objects: u32) -> Vec<u32> {
    let objects = u64::from(objects);
    let parts = objects.min(CALLED);
    let mut draws = Draws::default();
    let of_part = |part: u64| {
        let (from, to) = (part * objects / parts, (part + 1) * objects / parts);
        (from + draws.below(to - from)) as u32
    };
    (0..parts).map(of_part).collect()
}

/// Returns how many bytes the object at that index of the called objects receives. The number distinguishes
/// it from other objects.
pub fn octets_for(place: usize) -> u64 {
    place as u64 % 97 + 1
}

/// Returns the path of the file with the references to the called objects.
pub fn references_path(ior: &Path) -> PathBuf {
    let mut name = ior.as_os_str().to_owned();
    name.push(".objects");
    PathBuf::from(name)
}

/// Returns the references to the called objects.
///
/// # Errors
/// The file cannot be read, or has no references.
pub fn references(ior: &Path) -> anyhow::Result<Vec<String>> {
    let path = references_path(ior);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}: is the server one with --objects?", path.display()))?;
    let references: Vec<String> = text.lines().map(str::to_owned).collect();
    ensure!(!references.is_empty(), "{} has no reference", path.display());
    Ok(references)
}

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
        peer::keep(path, &samples).with_context(|| format!("cannot write {}", path.display()))?;
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
    use crate::cli::{Element, Test};
    use crate::raw::complete;

    #[test]
    fn those_called_are_spread_over_all() {
        assert_eq!(called(0), [0; 0]);
        assert_eq!(called(5), [0, 1, 2, 3, 4]);
        let many = called(1_000_000);
        assert_eq!(many.len(), 1000);
        for (part, object) in many.iter().enumerate() {
            assert_eq!(*object as usize / 1000, part, "one of each thousand");
        }
        assert!(
            many.iter().any(|object| object % 1000 > 900) && many.iter().any(|object| object % 1000 < 100)
        );
    }

    /// The peers in other languages must produce the same sequence.
    #[test]
    fn draws_are_the_same_everywhere() {
        let mut draws = Draws::default();
        assert_eq!([100; 6].map(|end| draws.below(end)), DRAWN);
    }

    const DRAWN: [u64; 6] = [74, 91, 80, 79, 48, 87];

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
            series: crate::series::SeriesOptions::default(),
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
