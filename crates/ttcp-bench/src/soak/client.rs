//! `ttcp soak-client`: the process that calls, and that is killed and suspended as well.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zorb::wire::Version;
use zorb::{Limits, Orb};

use super::calls::{self, Caller};
use super::record_file::{Id, RecordFile};
use super::state::State;
use super::{Order, receive_orders, send_report};
use crate::cli::Transport;

/// Number of tasks that make calls concurrently.
const CALLERS: u64 = 12;
/// Maximum number of violations that are reported of one round.
const TOLD: usize = 20;

/// Options of `ttcp soak-client`.
#[derive(Debug, Clone, Args)]
pub struct SoakClientArgs {
    /// Which client it is
    #[arg(long)]
    pub number: u16,
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// What it does
    #[arg(long)]
    pub seed: u64,
    /// Seconds that the server may take for a call
    #[arg(long)]
    pub patience: u64,
    /// Where calls and their outcomes are noted
    #[arg(long)]
    pub notes: PathBuf,
    /// Kinds of calls; none: all
    #[arg(long)]
    pub only: Vec<String>,
    /// What the server said after READY
    #[arg(long)]
    pub references: String,
}

/// The report of a client that has become quiet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ClientReport {
    /// Results that it should not have received.
    pub(super) violations: Vec<String>,
    /// ORBs that it created, each with a connection of its own.
    pub(super) orbs: u64,
    /// Replies, cancels and fragments without a matching request.
    pub(super) strays: u64,
    /// CancelRequests sent.
    pub(super) cancels: u64,
}

/// Makes calls according to its orders, until the orders end.
///
/// # Errors
/// The record file does not exist, or the references are invalid.
pub fn soak_client(args: &SoakClientArgs) -> anyhow::Result<()> {
    let orders = receive_orders()?;
    super::runtime(args.transport)?.block_on(async { tokio::spawn(serve(args.clone(), orders)).await? })
}

async fn serve(args: SoakClientArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    let references: Vec<(String, String)> =
        serde_json::from_str(&args.references).context("these are no references")?;
    let shared = Arc::new(SharedState {
        number: args.number,
        next: AtomicU32::new(0),
        notes: RecordFile::open(&args.notes)?,
        patience: Duration::from_secs(args.patience),
        kinds: calls::KINDS.map(|(kind, often)| if is_wanted(&args.only, kind) { often } else { 0 }),
        references: references.into_iter().collect(),
        transport: args.transport,
        lines: std::array::from_fn(|_| Mutex::default()),
        report: Mutex::default(),
        ending: AtomicBool::new(false),
        fallbacks: AtomicU64::new(0),
    });
    let mut seeds = Rng::with_seed(args.seed);
    let mut callers = JoinSet::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Go => {
                shared.ending.store(false, Ordering::Relaxed);
                for kind in 0..LINES {
                    shared.renew(kind).await?;
                }
                for _ in 0..CALLERS {
                    let caller = Caller { shared: Arc::clone(&shared), rng: Rng::with_seed(seeds.u64(..)) };
                    callers.spawn(calls::call_until_the_end(caller));
                }
            }
            Order::Quiet => {
                shared.ending.store(true, Ordering::Relaxed);
                while let Some(ended) = callers.join_next().await {
                    if let Err(error) = ended {
                        shared.violation(format!("a caller ended: {error}"));
                    }
                }
                for kind in 0..LINES {
                    shared.end(kind).await;
                }
                send_report("QUIET", &std::mem::take(&mut *shared.report()))?;
            }
            Order::State => {
                let mut state = State::of_this_process()?;
                state.fallbacks = shared.fallbacks.load(Ordering::Relaxed);
                send_report("STATE", &state)?;
            }
            Order::End => break,
            Order::Sweep => {}
        }
    }
    Ok(())
}

pub(super) fn is_wanted(only: &[String], kind: &str) -> bool {
    only.is_empty() || only.iter().any(|wanted| wanted == kind)
}

/// Number of kinds of ORBs of a client.
pub(super) const LINES: usize = 4;

/// State shared by the callers of a process.
pub(super) struct SharedState {
    number: u16,
    next: AtomicU32,
    notes: RecordFile,
    patience: Duration,
    kinds: [u32; calls::KINDS.len()],
    references: BTreeMap<String, String>,
    transport: Transport,
    lines: [Mutex<Option<Arc<OrbConnection>>>; LINES],
    report: Mutex<ClientReport>,
    ending: AtomicBool,
    fallbacks: AtomicU64,
}

/// An ORB with its connection.
pub(super) struct OrbConnection {
    /// `None` after it was given up.
    orb: Mutex<Option<Orb>>,
    given_up: AtomicBool,
}

impl OrbConnection {
    /// Returns the ORB, if it was not given up.
    pub(super) fn orb(&self) -> Option<Orb> {
        self.orb.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether its client gave it up: calls then need not be answered.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::SeqCst)
    }

    /// Marks it as given up. Returns the ORB on the first call.
    fn take(&self) -> Option<Orb> {
        self.given_up.store(true, Ordering::SeqCst);
        self.orb.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl SharedState {
    /// Returns the id of a new call.
    pub(super) fn id(&self) -> Id {
        Id::new(self.number, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the record file.
    pub(super) fn notes(&self) -> &RecordFile {
        &self.notes
    }

    /// Returns how long the server may take for a call.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns the relative frequencies of the kinds of calls.
    pub(super) fn kinds(&self) -> &[u32] {
        &self.kinds
    }

    /// Returns whether callers must end.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Returns the reference of that name.
    pub(super) fn reference(&self, name: &str) -> Option<&str> {
        self.references.get(name).map(String::as_str)
    }

    /// Reports a violation.
    pub(super) fn violation(&self, text: String) {
        let mut report = self.report();
        if report.violations.len() < TOLD {
            report.violations.push(text);
        }
    }

    /// Returns one of the ORBs.
    pub(super) fn line(&self, kind: usize) -> Option<Arc<OrbConnection>> {
        self.slot(kind)?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces an ORB with a new one, and returns the previous one.
    ///
    /// # Errors
    /// The new ORB cannot be built.
    pub(super) async fn renew(&self, kind: usize) -> anyhow::Result<Option<Arc<OrbConnection>>> {
        let mut limits = Limits::default();
        limits.linger_timeout = Duration::from_secs(10);
        let builder = Orb::builder().transport(self.transport.into()).limits(limits).timeout(self.patience);
        let builder = match kind {
            0 => builder.max_giop_version(Version::V1_0),
            1 => builder.max_giop_version(Version::V1_1),
            2 => builder.fragment_size(1 << 10),
            _ => builder,
        };
        let orb = builder.build().await?;
        self.report().orbs += 1;
        let line = Arc::new(OrbConnection { orb: Mutex::new(Some(orb)), given_up: AtomicBool::new(false) });
        let slot = self.slot(kind).context("there is no such line")?;
        Ok(slot.lock().unwrap_or_else(PoisonError::into_inner).replace(line))
    }

    /// Gives an ORB up: orderly, or by aborting its calls.
    pub(super) async fn give_up(&self, line: &OrbConnection, in_peace: bool) {
        let Some(orb) = line.take() else { return };
        let stats = orb.stats();
        self.fallbacks.fetch_add(orb.transport_stats().fallbacks, Ordering::Relaxed);
        {
            let mut report = self.report();
            report.strays += stats.strays;
            report.cancels += stats.cancels_out;
        }
        if in_peace {
            orb.shutdown().await;
        }
    }

    /// Ends an ORB orderly, without a replacement.
    async fn end(&self, kind: usize) {
        let line =
            self.slot(kind).and_then(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(line) = line {
            self.give_up(&line, true).await;
        }
    }

    fn slot(&self, kind: usize) -> Option<&Mutex<Option<Arc<OrbConnection>>>> {
        self.lines.get(kind)
    }

    fn report(&self) -> std::sync::MutexGuard<'_, ClientReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
