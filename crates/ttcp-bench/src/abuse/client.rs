//! `ttcp abuse-client`: the well-behaved client. It calls at a fixed rate, regardless of the outcome of
//! earlier calls.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zorb::Orb;
use zorb::prelude::*;

use super::contract::{TARGET, TargetRef};
use crate::cli::Transport;
use crate::harness::child::{receive_orders, send_report};

/// Size of an argument in bytes. Each call has a different argument.
const OCTETS: usize = 32;
/// Timeout of a call, far longer than any latency that is a violation.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between new clients, long enough not to affect the 99th percentile of the calls.
const NEWCOMERS: Duration = Duration::from_millis(500);
/// How many different failures are reported at most.
const MAX_FAILURES: usize = 5;

/// Options of `ttcp abuse-client`.
#[derive(Debug, Clone, Args)]
pub struct AbuseClientArgs {
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// Address of the called server
    #[arg(long)]
    pub server: SocketAddr,
    /// Calls a second
    #[arg(long)]
    pub calls: u32,
}

/// The results of the calls of a time span.
///
/// Times are microseconds from the moment at which a call was scheduled, even if it was made later. A client
/// that measured from the actual start would hide the delays of a slow server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ServiceFigures {
    /// Calls that were scheduled. All of them were made.
    pub(super) calls: u64,
    /// Calls that were answered with what was sent.
    pub(super) answered: u64,
    /// Calls that failed, or were answered with something else.
    pub(super) failed: u64,
    /// Median.
    pub(super) p50_us: f64,
    /// 99th percentile.
    pub(super) p99_us: f64,
    /// 99.9th percentile.
    pub(super) p999_us: f64,
    /// The longest call.
    pub(super) max_us: f64,
    /// New clients in that time: each connected, called once and disconnected.
    pub(super) newcomers: u64,
    /// New clients that got no answer.
    pub(super) turned_away: u64,
    /// Samples of the failures.
    pub(super) failures: Vec<String>,
}

/// Makes calls as its orders say, until the orders end.
///
/// # Errors
/// The server is not reachable at the start.
pub fn abuse_client(args: &AbuseClientArgs) -> anyhow::Result<()> {
    let orders = receive_orders(|line| {
        let (word, time) = line.split_once(' ')?;
        (word == "measure").then_some(())?;
        time.parse().ok().map(Duration::from_millis)
    })?;
    let args = args.clone();
    // One thread: there are few cores, and a caller rarely has one to itself.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::spawn(serve(args, orders)).await? })
}

async fn serve(args: AbuseClientArgs, mut orders: mpsc::UnboundedReceiver<Duration>) -> anyhow::Result<()> {
    let orb = orb(&args).await?;
    let target = target(&orb, &args).await?;
    target.echo(Bytes::from_static(b"first")).await.context("the first call")?;
    send_report("READY", &())?;
    while let Some(time) = orders.recv().await {
        let newcomers = tokio::spawn(newcomers(args.clone(), time));
        let mut measured = measure(&target, args.calls, time).await?;
        let (came, mut failures) = newcomers.await?;
        (measured.newcomers, measured.turned_away) = (came, failures.len() as u64);
        failures.truncate(1);
        measured.failures.append(&mut failures);
        send_report("MEASURED", &measured)?;
    }
    Ok(())
}

async fn orb(args: &AbuseClientArgs) -> anyhow::Result<Orb> {
    Ok(Orb::builder().transport(args.transport.into()).timeout(PATIENCE).build().await?)
}

async fn target(orb: &Orb, args: &AbuseClientArgs) -> anyhow::Result<TargetRef> {
    Ok(orb.resolve(&format!("corbaloc::{}/{TARGET}", args.server)).await?)
}

/// Makes all calls of `time`, each at its scheduled moment, and awaits their ends.
async fn measure(target: &TargetRef, rate: u32, time: Duration) -> anyhow::Result<ServiceFigures> {
    let mut moments = moments(rate, time)?;
    let mut times = Histogram::<u64>::new_with_bounds(1_000, 100_000_000_000, 3)?;
    let mut measured = ServiceFigures::default();
    let mut calls = JoinSet::new();
    let mut over = false;
    while !over || !calls.is_empty() {
        tokio::select! {
            moment = moments.recv(), if !over => match moment {
                Some((number, moment)) => {
                    measured.calls += 1;
                    let target = target.clone();
                    calls.spawn(async move {
                        let octets: Bytes = number.to_le_bytes().into_iter().cycle().take(OCTETS).collect();
                        let answer = target.echo(octets.clone()).await;
                        (moment.elapsed(), answer.map(|back| back == octets))
                    });
                }
                None => over = true,
            },
            Some(ended) = calls.join_next() => {
                let failure = match ended {
                    Ok((took, Ok(true))) => {
                        measured.answered += 1;
                        times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
                        continue;
                    }
                    Ok((_, Ok(false))) => "what came back differs from what was sent".to_owned(),
                    Ok((took, Err(exception))) => format!("after {} ms: {exception}", took.as_millis()),
                    Err(error) => error.to_string(),
                };
                measured.failed += 1;
                if measured.failures.len() < MAX_FAILURES {
                    measured.failures.push(failure);
                }
            }
        }
    }
    let us = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1e3;
    (measured.p50_us, measured.p99_us, measured.p999_us) = (us(0.5), us(0.99), us(0.999));
    measured.max_us = times.max() as f64 / 1e3;
    Ok(measured)
}

/// Yields the scheduled moments of calls, each when it has come. A dedicated thread keeps them, because
/// timers of a runtime have a resolution of a millisecond.
fn moments(rate: u32, time: Duration) -> std::io::Result<mpsc::UnboundedReceiver<(u64, Instant)>> {
    let (sender, moments) = mpsc::unbounded_channel();
    let between = Duration::from_secs(1) / rate.max(1);
    let count = (time.as_secs_f64() * f64::from(rate)).round() as u64;
    std::thread::Builder::new().name("moments".into()).spawn(move || {
        let mut moment = Instant::now();
        for number in 0..count {
            moment += between;
            std::thread::sleep(moment.saturating_duration_since(Instant::now()));
            if sender.send((number, moment)).is_err() {
                break;
            }
        }
    })?;
    Ok(moments)
}

/// Runs new clients one after the other. Returns their number and the failures.
async fn newcomers(args: AbuseClientArgs, time: Duration) -> (u64, Vec<String>) {
    let end = Instant::now() + time;
    let (mut came, mut failures) = (0, Vec::new());
    let mut pace = tokio::time::interval(NEWCOMERS);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    pace.tick().await;
    while Instant::now() + NEWCOMERS < end {
        pace.tick().await;
        came += 1;
        if let Err(error) = newcomer(&args).await {
            failures.push(format!("who came anew: {error:#}"));
        }
    }
    (came, failures)
}

async fn newcomer(args: &AbuseClientArgs) -> anyhow::Result<()> {
    let orb = orb(args).await?;
    let called = async {
        let target = target(&orb, args).await?;
        target.echo(Bytes::from_static(b"new")).await?;
        anyhow::Ok(())
    };
    let called = called.await;
    orb.shutdown().await;
    called
}
