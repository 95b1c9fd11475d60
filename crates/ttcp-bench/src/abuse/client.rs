//! `ttcp abuse-client`: the well-behaved client. It makes calls at a fixed rate, regardless of the outcome of
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

const ARGUMENT_BYTES: usize = 32;
/// Timeout of a call, much longer than any permitted call time.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between new clients, long enough not to affect the 99th percentile of the calls.
const NEW_CLIENT_INTERVAL: Duration = Duration::from_millis(500);
const MAX_FAILURES: usize = 5;

/// Options of `ttcp abuse-client`.
#[derive(Debug, Clone, Args)]
pub struct AbuseClientArgs {
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// Address of the server
    #[arg(long)]
    pub server: SocketAddr,
    /// Calls per second
    #[arg(long = "calls", value_name = "CALLS")]
    pub calls_per_second: u32,
}

/// The results of the calls of a phase.
///
/// Times are in microseconds, from the moment at which a call was scheduled, even if it was made later. Times
/// from the actual start would hide the delays of a slow server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ServiceFigures {
    /// Number of scheduled calls. All of them were made.
    pub(super) calls: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
    pub(super) max_us: f64,
    /// Number of new clients, including failed ones. Each connects, makes one call and disconnects.
    #[serde(rename = "newcomers")]
    pub(super) new_clients: u64,
    #[serde(rename = "turned_away")]
    pub(super) failed_new_clients: u64,
    pub(super) failures: Vec<String>,
}

/// Makes calls when this is ordered on stdin, until stdin is closed.
pub fn abuse_client(args: &AbuseClientArgs) -> anyhow::Result<()> {
    let orders = receive_orders(|line| {
        let (word, time) = line.split_once(' ')?;
        (word == "measure").then_some(())?;
        time.parse().ok().map(Duration::from_millis)
    })?;
    let args = args.clone();
    // The runtime has a single thread, because the other processes need the other cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::spawn(run(args, orders)).await? })
}

async fn run(args: AbuseClientArgs, mut orders: mpsc::UnboundedReceiver<Duration>) -> anyhow::Result<()> {
    let orb = build_orb(&args).await?;
    let target = resolve_target(&orb, &args).await?;
    target.echo(Bytes::from_static(b"first")).await.context("the first call failed")?;
    send_report("READY", &())?;
    while let Some(time) = orders.recv().await {
        let new_clients = tokio::spawn(run_new_clients(args.clone(), time));
        let mut figures = measure(&target, args.calls_per_second, time).await?;
        let (count, mut failures) = new_clients.await?;
        (figures.new_clients, figures.failed_new_clients) = (count, failures.len() as u64);
        failures.truncate(1);
        figures.failures.append(&mut failures);
        send_report("MEASURED", &figures)?;
    }
    Ok(())
}

async fn build_orb(args: &AbuseClientArgs) -> anyhow::Result<Orb> {
    Ok(Orb::builder().transport(args.transport.into()).timeout(CALL_TIMEOUT).build().await?)
}

async fn resolve_target(orb: &Orb, args: &AbuseClientArgs) -> anyhow::Result<TargetRef> {
    Ok(orb.resolve(&format!("corbaloc::{}/{TARGET}", args.server)).await?)
}

/// Makes `rate` calls per second for `time`, each at its scheduled moment, and awaits their results.
async fn measure(target: &TargetRef, rate: u32, time: Duration) -> anyhow::Result<ServiceFigures> {
    let mut schedule = schedule(rate, time)?;
    let mut times = Histogram::<u64>::new_with_bounds(1_000, 100_000_000_000, 3)?;
    let mut figures = ServiceFigures::default();
    let mut calls = JoinSet::new();
    let mut is_over = false;
    while !is_over || !calls.is_empty() {
        tokio::select! {
            moment = schedule.recv(), if !is_over => match moment {
                Some((number, moment)) => {
                    figures.calls += 1;
                    let target = target.clone();
                    calls.spawn(async move {
                        let bytes: Bytes = number.to_le_bytes().into_iter().cycle().take(ARGUMENT_BYTES).collect();
                        let result = target.echo(bytes.clone()).await;
                        (moment.elapsed(), result.map(|echoed| echoed == bytes))
                    });
                }
                None => is_over = true,
            },
            Some(result) = calls.join_next() => {
                let failure = match result {
                    Ok((time, Ok(true))) => {
                        figures.answered += 1;
                        times.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                        continue;
                    }
                    Ok((_, Ok(false))) => "the echo differs from what was sent".to_owned(),
                    Ok((time, Err(exception))) => format!("after {} ms: {exception}", time.as_millis()),
                    Err(error) => error.to_string(),
                };
                figures.failed += 1;
                if figures.failures.len() < MAX_FAILURES {
                    figures.failures.push(failure);
                }
            }
        }
    }
    let us = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1e3;
    (figures.p50_us, figures.p99_us, figures.p999_us) = (us(0.5), us(0.99), us(0.999));
    figures.max_us = times.max() as f64 / 1e3;
    Ok(figures)
}

/// Returns a channel that yields, for each call, its number and the moment for which it is scheduled. Each
/// pair is sent at this moment. A separate thread sends the pairs, because the timers of a runtime have a
/// resolution of a millisecond.
fn schedule(rate: u32, time: Duration) -> std::io::Result<mpsc::UnboundedReceiver<(u64, Instant)>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let interval = Duration::from_secs(1) / rate.max(1);
    let count = (time.as_secs_f64() * f64::from(rate)).round() as u64;
    std::thread::Builder::new().name("schedule".into()).spawn(move || {
        let mut moment = Instant::now();
        for number in 0..count {
            moment += interval;
            std::thread::sleep(moment.saturating_duration_since(Instant::now()));
            if sender.send((number, moment)).is_err() {
                break;
            }
        }
    })?;
    Ok(receiver)
}

/// Runs new clients one after the other. Returns their number and the failures.
async fn run_new_clients(args: AbuseClientArgs, time: Duration) -> (u64, Vec<String>) {
    let end = Instant::now() + time;
    let (mut count, mut failures) = (0, Vec::new());
    let mut interval = tokio::time::interval(NEW_CLIENT_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval.tick().await;
    while Instant::now() + NEW_CLIENT_INTERVAL < end {
        interval.tick().await;
        count += 1;
        if let Err(error) = run_new_client(&args).await {
            failures.push(format!("new client: {error:#}"));
        }
    }
    (count, failures)
}

async fn run_new_client(args: &AbuseClientArgs) -> anyhow::Result<()> {
    let orb = build_orb(args).await?;
    let call = async {
        let target = resolve_target(&orb, args).await?;
        target.echo(Bytes::from_static(b"new")).await?;
        anyhow::Ok(())
    };
    let result = call.await;
    orb.shutdown().await;
    result
}
