//! `ttcp soak-client`: a client process, which `ttcp soak` kills and suspends.

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
const CALLER_COUNT: u64 = 12;
/// Maximum number of reported violations in a round.
const MAX_VIOLATIONS: usize = 20;

/// Options of `ttcp soak-client`.
#[derive(Debug, Clone, Args)]
pub struct SoakClientArgs {
    /// Number of this client
    #[arg(long)]
    pub number: u16,
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// Seed of the random choices
    #[arg(long)]
    pub seed: u64,
    /// Timeout of calls, in seconds
    #[arg(long = "timeout")]
    pub call_timeout: u64,
    /// File in which calls and their outcomes are recorded
    #[arg(long = "records")]
    pub record_file: PathBuf,
    /// Make only calls of these kinds (default: all)
    #[arg(long)]
    pub calls: Vec<String>,
    /// The names and references of the server's objects, as JSON
    #[arg(long)]
    pub references: String,
}

/// The report QUIET of a client that has ended all calls.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ClientReport {
    /// Descriptions of wrong results and of other violations.
    pub(super) violations: Vec<String>,
    /// Number of ORBs that the client created, each with a connection of its own.
    pub(super) orbs: u64,
    /// Number of replies, cancels and fragments without a matching request.
    pub(super) strays: u64,
    /// Number of CancelRequests that the client sent.
    pub(super) cancels: u64,
}

/// Follows the orders on stdin. Returns at the order `end`; the process exits when stdin is closed.
pub fn soak_client(args: &SoakClientArgs) -> anyhow::Result<()> {
    let orders = receive_orders()?;
    super::runtime(args.transport)?.block_on(async { tokio::spawn(serve(args.clone(), orders)).await? })
}

async fn serve(args: SoakClientArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    let references: Vec<(String, String)> =
        serde_json::from_str(&args.references).context("--references is not valid JSON")?;
    let shared = Arc::new(SharedState {
        number: args.number,
        next_call_index: AtomicU32::new(0),
        records: RecordFile::open(&args.record_file)?,
        call_timeout: Duration::from_secs(args.call_timeout),
        frequencies: calls::KINDS
            .map(|(kind, frequency)| if is_selected(&args.calls, kind) { frequency } else { 0 }),
        references: references.into_iter().collect(),
        transport: args.transport,
        orbs: std::array::from_fn(|_| Mutex::default()),
        report: Mutex::default(),
        is_stopped: AtomicBool::new(false),
        fallbacks: AtomicU64::new(0),
    });
    let mut seeds = Rng::with_seed(args.seed);
    let mut callers = JoinSet::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Go => {
                shared.is_stopped.store(false, Ordering::Relaxed);
                for index in 0..ORB_COUNT {
                    shared.replace_orb(index).await?;
                }
                for _ in 0..CALLER_COUNT {
                    let caller = Caller { shared: Arc::clone(&shared), rng: Rng::with_seed(seeds.u64(..)) };
                    callers.spawn(calls::call_until_stopped(caller));
                }
            }
            Order::Quiet => {
                shared.is_stopped.store(true, Ordering::Relaxed);
                while let Some(result) = callers.join_next().await {
                    if let Err(error) = result {
                        shared.add_violation(format!("a task that makes calls failed: {error}"));
                    }
                }
                for index in 0..ORB_COUNT {
                    shared.shut_down_orb(index).await;
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

/// Returns whether the option `--calls` selects this kind. Without the option, all kinds are selected.
pub(super) fn is_selected(selected: &[String], kind: &str) -> bool {
    selected.is_empty() || selected.iter().any(|name| name == kind)
}

/// Number of ORBs of a client, which have different configurations.
pub(super) const ORB_COUNT: usize = 4;

/// The state that all tasks of a client share.
pub(super) struct SharedState {
    number: u16,
    next_call_index: AtomicU32,
    pub(super) records: RecordFile,
    /// The time within which the server must answer a call.
    pub(super) call_timeout: Duration,
    /// The relative frequencies of the kinds of calls.
    pub(super) frequencies: [u32; calls::KINDS.len()],
    references: BTreeMap<String, String>,
    transport: Transport,
    orbs: [Mutex<Option<Arc<ClientOrb>>>; ORB_COUNT],
    report: Mutex<ClientReport>,
    /// Whether no further calls may be made.
    is_stopped: AtomicBool,
    /// Number of connections that used epoll, because io_uring was not available.
    fallbacks: AtomicU64,
}

pub(super) struct ClientOrb {
    /// `None` after the ORB was given up.
    orb: Mutex<Option<Orb>>,
    is_given_up: AtomicBool,
}

impl ClientOrb {
    pub(super) fn orb(&self) -> Option<Orb> {
        self.orb.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the client gave the ORB up. If so, calls need not be answered.
    pub(super) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::SeqCst)
    }

    /// Marks the ORB as given up. The first call returns the ORB.
    fn mark_given_up(&self) -> Option<Orb> {
        self.is_given_up.store(true, Ordering::SeqCst);
        self.orb.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl SharedState {
    pub(super) fn next_id(&self) -> Id {
        Id::new(self.number, self.next_call_index.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(super) fn reference(&self, name: &str) -> Option<&str> {
        self.references.get(name).map(String::as_str)
    }

    pub(super) fn add_violation(&self, text: String) {
        let mut report = self.report();
        if report.violations.len() < MAX_VIOLATIONS {
            report.violations.push(text);
        }
    }

    pub(super) fn orb(&self, index: usize) -> Option<Arc<ClientOrb>> {
        self.slot(index)?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces an ORB with a new one, and returns the previous one.
    pub(super) async fn replace_orb(&self, index: usize) -> anyhow::Result<Option<Arc<ClientOrb>>> {
        let mut limits = Limits::default();
        limits.linger_timeout = Duration::from_secs(10);
        let builder = Orb::builder().transport(self.transport.into()).limits(limits);
        let builder = builder.timeout(self.call_timeout);
        let builder = match index {
            0 => builder.max_giop_version(Version::V1_0),
            1 => builder.max_giop_version(Version::V1_1),
            2 => builder.fragment_size(1 << 10),
            _ => builder,
        };
        let orb = builder.build().await?;
        self.report().orbs += 1;
        let orb = Arc::new(ClientOrb { orb: Mutex::new(Some(orb)), is_given_up: AtomicBool::new(false) });
        let slot = self.slot(index).context("there is no such ORB")?;
        Ok(slot.lock().unwrap_or_else(PoisonError::into_inner).replace(orb))
    }

    /// Gives an ORB up. If `is_orderly` is set, shuts it down. If not, drops it, which aborts its calls.
    pub(super) async fn give_up(&self, orb: &ClientOrb, is_orderly: bool) {
        let Some(orb) = orb.mark_given_up() else { return };
        let stats = orb.stats();
        self.fallbacks.fetch_add(orb.transport_stats().fallbacks, Ordering::Relaxed);
        {
            let mut report = self.report();
            report.strays += stats.stray_messages;
            report.cancels += stats.cancels_out;
        }
        if is_orderly {
            orb.shutdown().await;
        }
    }

    /// Shuts an ORB down, without a replacement.
    async fn shut_down_orb(&self, index: usize) {
        let orb =
            self.slot(index).and_then(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(orb) = orb {
            self.give_up(&orb, true).await;
        }
    }

    fn slot(&self, index: usize) -> Option<&Mutex<Option<Arc<ClientOrb>>>> {
        self.orbs.get(index)
    }

    fn report(&self) -> std::sync::MutexGuard<'_, ClientReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
