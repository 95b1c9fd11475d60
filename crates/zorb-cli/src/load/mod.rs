//! `zorb load`: calls an operation repeatedly, and measures the latencies.

mod measurements;
mod report;
mod schedule;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use zorb::dynamic::{DynamicException, OperationInfo, Request};
use zorb::prelude::*;

use crate::call::{CallTarget, IdlArgs, create_request, find_operation, read_arguments};
use crate::client::{ClientOptions, termination_signal};
use crate::failure::Verdict;
use crate::login::LoginOptions;
use crate::output::Output;
use crate::{options, target};
use measurements::{Measurements, Outcome};
use report::Report;
use schedule::Schedule;

const EXAMPLES: &str = "\
Examples:
  zorb load account.ior deposit '{\"amount\": 10}' --idl bank.idl -c 64 -n 100000
  zorb load account.ior balance --idl bank.idl --duration 10s --connections 4
  zorb load account.ior balance --idl bank.idl --duration 10s --rate 5000    start 5000 calls per second
  zorb load account.ior balance --idl bank.idl --json

Without --rate, the next call starts when one of the concurrent calls completes. With --rate, calls are due at a fixed rate. The
latency of a call that is delayed by earlier calls is measured from the time when it was due. Therefore, a server that stops for a
second causes high latencies of all calls that were due in this second, and not only of one call.

Latencies are measured of calls that return results or raise user exceptions. Failed calls are only counted, by kind. The latency of
a oneway call is the time until the connection has accepted it. Ctrl-C ends the run and prints the results so far. The exit code is
1 if a call failed, or if no call returned results or raised a user exception.";

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Options of `zorb load`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// The object: IOR:, corbaloc:, corbaname: or file:, a file that contains one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// OPERATION, INTERFACE.OPERATION, or an attribute
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Arguments, as for `zorb call`; they are encoded only once
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// The number of concurrent calls
    #[arg(short, long, value_name = "CALLS", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: u32,
    /// The total number of calls
    #[arg(short = 'n', long, value_name = "CALLS", default_value_t = 10_000, conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    number: u64,
    /// The time during which calls are started (instead of --number)
    #[arg(long, value_name = "TIME", value_parser = options::duration)]
    duration: Option<Duration>,
    /// The number of calls to start per second, even if calls are slow
    #[arg(long, value_name = "CALLS", value_parser = rate)]
    rate: Option<f64>,
    /// The number of connections over which the calls are distributed
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    connections: u32,
    #[command(flatten)]
    idl: IdlArgs,
    #[command(flatten)]
    login: LoginOptions,
    #[command(flatten)]
    client: ClientOptions,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate >= 0.001 && *rate <= 1e9);
    rate.ok_or_else(|| "expected a number of calls per second, such as 5000 or 0.5".to_owned())
}

pub(crate) fn run(args: &LoadArgs, output: &Output) -> anyhow::Result<Verdict> {
    let credentials = args.login.credentials()?;
    let report = crate::start::runtime(None)?.block_on(async {
        let mut orbs = Vec::new();
        for _ in 0..args.connections.min(args.concurrency) {
            // Create one ORB for each connection, because all references of an ORB share one connection.
            orbs.push(args.client.orb(credentials.clone()).await?);
        }
        let report = measure(args, &orbs, output).await;
        for orb in orbs {
            orb.shutdown().await;
        }
        report
    })?;
    output.show(&report, Report::tree)?;
    Ok(if report.is_good() { Verdict::Good } else { Verdict::Bad })
}

async fn measure(args: &LoadArgs, orbs: &[Orb], output: &Output) -> anyhow::Result<Report> {
    let mut signal = std::pin::pin!(termination_signal()?);
    let url = target::read(&args.target)?.to_string();
    let calls = tokio::select! {
        calls = prepare_calls(args, &url, orbs, output) => calls?,
        () = &mut signal => bail!("interrupted before the first call"),
    };
    let is_oneway = calls.operation.oneway;
    let start = Instant::now();
    let load = Arc::new(Load {
        schedule: Schedule::new(start, args.number, args.duration, args.rate),
        shards: (0..available_parallelism().map_or(1, usize::from)).map(|_| Measurements::new()).collect(),
        finished_calls: AtomicU64::new(0),
        is_oneway,
    });
    let mut workers = JoinSet::new();
    for (index, request) in (0..args.concurrency as usize).zip(calls.requests.iter().cycle()) {
        workers.spawn(Arc::clone(&load).make_calls(request.clone(), index));
    }
    let progress = Progress::new(args, output);
    let mut ticks = interval(PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let interrupted = loop {
        tokio::select! {
            () = &mut signal => break true,
            _ = ticks.tick() => progress.show(load.finished_calls.load(Ordering::Relaxed), start.elapsed()),
            result = workers.join_next() => match result {
                None => break false,
                Some(result) => result.context("a call panicked")?,
            },
        }
    };
    // After an interruption, calls without a reply are abandoned. They are not measured.
    let elapsed = start.elapsed();
    workers.shutdown().await;
    progress.bar.finish_and_clear();
    if is_oneway {
        for request in &calls.requests {
            if let Err(error) = request.target().flush().await {
                output.remark(&error.to_string());
            }
        }
    }
    let finished_calls = load.finished_calls.load(Ordering::Relaxed);
    let mut measurements = Measurements::new();
    load.shards.iter().for_each(|shard| measurements.add(shard));
    Ok(Report::new(
        &measurements,
        &report::Run {
            operation: calls.operation.name.to_string(),
            elapsed,
            concurrency: args.concurrency,
            connections: orbs.len(),
            rate: args.rate,
            unfinished: load.schedule.started_calls().saturating_sub(finished_calls),
            not_begun: load.schedule.overdue_calls(start + elapsed),
            interrupted,
        },
    ))
}

struct PreparedCalls {
    operation: Arc<OperationInfo>,
    requests: Vec<Request>,
}

async fn prepare_calls(
    args: &LoadArgs,
    url: &str,
    orbs: &[Orb],
    output: &Output,
) -> anyhow::Result<PreparedCalls> {
    let idl = args.idl.read()?;
    let arguments = args.arguments.as_deref().map(read_arguments).transpose()?;
    let mut calls: Option<PreparedCalls> = None;
    for orb in orbs {
        if let Some(idl) = &idl {
            orb.add_value_types(&idl.value_types());
        }
        let object: ObjectRef = orb.resolve_unchecked(url).await?;
        if let Some(calls) = &mut calls {
            if let Some(first) = calls.requests.first() {
                calls.requests.push(first.to(&object));
            }
        } else {
            let sources = (idl.as_ref(), args.idl.repository.as_deref());
            let call_target = CallTarget::find(orb, &object, Some(&args.operation), sources, output).await?;
            let name = call_target.operation.with_context(|| {
                format!(
                    "{} is an interface, but an operation is needed; `zorb call` lists the operations",
                    args.operation
                )
            })?;
            let operation = find_operation(&call_target.interface, name, arguments.is_some(), idl.as_ref())?;
            let request = create_request(&object, &operation, arguments.as_deref())?;
            calls = Some(PreparedCalls { operation, requests: vec![request] });
        }
        // Connect in advance, so that no latency includes the time to connect.
        object.validate_connection().await.context("cannot connect to the object")?;
    }
    calls.context("the number of connections is 0")
}

/// The state that all workers share.
struct Load {
    schedule: Schedule,
    /// The measurements. Several workers share an element, so that many workers need no more memory.
    shards: Vec<Measurements>,
    finished_calls: AtomicU64,
    is_oneway: bool,
}

impl Load {
    /// Makes calls one after the other, until the schedule ends.
    async fn make_calls(self: Arc<Self>, request: Request, worker_index: usize) {
        while let Some(start) = self.schedule.next_call().await {
            let result = match self.is_oneway {
                true => request.send_oneway().await.map_err(DynamicException::System),
                false => request.invoke().await.map(drop),
            };
            let latency = start.elapsed();
            if let Some(shard) = self.shards.get(worker_index % self.shards.len().max(1)) {
                shard.record(&Outcome::new(&result), latency);
            }
            self.finished_calls.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Progress {
    bar: ProgressBar,
    duration: Option<Duration>,
}

impl Progress {
    fn new(args: &LoadArgs, output: &Output) -> Self {
        // The progress bar draws nothing if standard error is not a terminal.
        let target = match output.is_json {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let len = args.duration.map_or(args.number, |duration| duration.as_millis() as u64);
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(len), target).with_style(style.progress_chars("=> "));
        Self { bar, duration: args.duration }
    }

    fn show(&self, finished_calls: u64, elapsed: Duration) {
        let rate = finished_calls as f64 / elapsed.as_secs_f64().max(1e-3);
        self.bar.set_message(format!("{finished_calls} calls, {rate:.0} calls/s"));
        self.bar.set_position(match self.duration {
            None => finished_calls,
            Some(duration) => elapsed.min(duration).as_millis() as u64,
        });
    }
}
