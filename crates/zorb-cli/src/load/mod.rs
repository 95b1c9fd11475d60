//! `zorb load`: calls an operation repeatedly, and measures the latencies.

mod figures;
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

use crate::call::{IdlArgs, Named, find, read_arguments, request};
use crate::client::{Client, ended};
use crate::login::Login;
use crate::output::Output;
use crate::{Verdict, options, target};
use figures::{Figures, Outcome};
use report::Report;
use schedule::Schedule;

const EXAMPLES: &str = "\
Examples:
  zorb load account.ior deposit '{\"amount\": 10}' --idl bank.idl -c 64 -n 100000
  zorb load account.ior balance --idl bank.idl --duration 10s --connections 4
  zorb load account.ior balance --idl bank.idl --duration 10s --rate 5000    the answers of 5000 calls a second
  zorb load account.ior balance --idl bank.idl --json

Without --rate each of the calls under way is followed by the next one when it is answered. With --rate calls are started at that rate
however long answers take, and the latency of one that had to wait for an earlier one counts from when it was due: otherwise a server
that stops for a second would be measured by one slow call instead of by all those that it kept waiting.

Latencies are those of answers, user exceptions among them; failures are counted by kind. Of oneways they are the times in which calls
were handed to the connection. Ctrl-C ends it and prints what there is so far. The exit code is 1 where calls failed or none was answered.";

/// Interval of progress updates.
const SHOWN_EACH: Duration = Duration::from_millis(100);

/// Options of `zorb load`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// IOR:, corbaloc:, corbaname:, file:, a file that holds one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// OPERATION, or INTERFACE.OPERATION, or an attribute
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Arguments, as for zorb call; they are encoded once
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Concurrent calls
    #[arg(short, long, value_name = "CALLS", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: u32,
    /// Calls in all
    #[arg(short = 'n', long, value_name = "CALLS", default_value_t = 10_000, conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    number: u64,
    /// How long calls are started, in place of a number of calls
    #[arg(long, value_name = "TIME", value_parser = options::duration)]
    duration: Option<Duration>,
    /// Calls to start in a second, however long answers take
    #[arg(long, value_name = "CALLS", value_parser = rate)]
    rate: Option<f64>,
    /// Connections that the calls are spread over
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    connections: u32,
    #[command(flatten)]
    idl: IdlArgs,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    client: Client,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate >= 0.001 && *rate <= 1e9);
    rate.ok_or_else(|| "calls a second are expected, such as 5000 or 0.5".to_owned())
}

/// Calls, and prints the measurements.
///
/// # Errors
/// The reference, the IDL or the arguments are invalid, there is no connection, or output fails.
pub(crate) fn run(args: &LoadArgs, output: &Output) -> anyhow::Result<Verdict> {
    let credentials = args.login.credentials()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let report = runtime.context("cannot start")?.block_on(async {
        let mut orbs = Vec::new();
        for _ in 0..args.connections.min(args.concurrency) {
            // All references of an ORB share its connections, so each connection needs an ORB.
            orbs.push(args.client.orb_as(credentials.clone()).await?);
        }
        let report = measured(args, &orbs, output).await;
        for orb in orbs {
            orb.shutdown().await;
        }
        report
    })?;
    output.show(&report, Report::tree)?;
    Ok(if report.is_good() { Verdict::Good } else { Verdict::Bad })
}

async fn measured(args: &LoadArgs, orbs: &[Orb], output: &Output) -> anyhow::Result<Report> {
    let mut over = std::pin::pin!(ended()?);
    let url = target::read(&args.target)?.to_string();
    let calls = tokio::select! {
        calls = calls(args, &url, orbs, output) => calls?,
        () = &mut over => bail!("interrupted before the first call"),
    };
    let oneway = calls.operation.oneway;
    let begin = Instant::now();
    let load = Arc::new(Load {
        schedule: Schedule::new(begin, args.number, args.duration, args.rate),
        shards: (0..available_parallelism().map_or(1, usize::from)).map(|_| Figures::new()).collect(),
        finished: AtomicU64::new(0),
        oneway,
    });
    let mut workers = JoinSet::new();
    for (at, request) in (0..args.concurrency as usize).zip(calls.requests.iter().cycle()) {
        workers.spawn(Arc::clone(&load).work(request.clone(), at));
    }
    let bar = Bar::new(args, output);
    let mut ticks = interval(SHOWN_EACH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let interrupted = loop {
        tokio::select! {
            () = &mut over => break true,
            _ = ticks.tick() => bar.show(load.finished.load(Ordering::Relaxed), begin.elapsed()),
            ended = workers.join_next() => match ended {
                None => break false,
                Some(ended) => ended.context("a call panicked")?,
            },
        }
    };
    // Completed calls are measured. Unanswered ones are abandoned.
    let seconds = begin.elapsed();
    workers.shutdown().await;
    bar.clear();
    if oneway {
        for request in &calls.requests {
            if let Err(error) = request.target().flush().await {
                output.remark(&error.to_string());
            }
        }
    }
    let finished = load.finished.load(Ordering::Relaxed);
    let mut figures = Figures::new();
    load.shards.iter().for_each(|shard| figures.add(shard));
    Ok(Report::new(
        &figures,
        &report::Run {
            operation: calls.operation.name.to_string(),
            seconds,
            concurrency: args.concurrency,
            connections: orbs.len(),
            rate: args.rate,
            unfinished: load.schedule.begun().saturating_sub(finished),
            not_begun: load.schedule.not_begun(begin + seconds),
            interrupted,
        },
    ))
}

/// The calls to make.
struct Calls {
    operation: Arc<OperationInfo>,
    /// The same call over each connection.
    requests: Vec<Request>,
}

/// Finds the operation, encodes the arguments, and connects.
///
/// # Errors
/// The interface is not known, the arguments do not fit, or there is no connection to the object.
async fn calls(args: &LoadArgs, url: &str, orbs: &[Orb], output: &Output) -> anyhow::Result<Calls> {
    let idl = args.idl.read()?;
    let arguments = args.arguments.as_deref().map(read_arguments).transpose()?;
    let mut made: Option<Calls> = None;
    for orb in orbs {
        if let Some(idl) = &idl {
            orb.add_value_types(&idl.value_types());
        }
        let object: ObjectRef = orb.resolve_unchecked(url).await?;
        if let Some(made) = &mut made {
            if let Some(first) = made.requests.first() {
                made.requests.push(first.to(&object));
            }
        } else {
            let known = (idl.as_ref(), args.idl.repository.as_deref());
            let named = Named::of(orb, &object, Some(&args.operation), known, output).await?;
            let name = named.operation.with_context(|| {
                format!(
                    "{} is an interface: name one of its operations, zorb call lists them",
                    args.operation
                )
            })?;
            let operation = find(&named.interface, name, arguments.is_some(), idl.as_ref())?;
            let request = request(&object, &operation, arguments.as_deref())?;
            made = Some(Calls { operation, requests: vec![request] });
        }
        // Connect in advance, so that connecting does not count as latency of a call.
        object.validate_connection().await.context("no connection to the object")?;
    }
    made.context("no connection is wanted")
}

/// State that all workers share.
struct Load {
    schedule: Schedule,
    /// Measurements of workers. Some workers share an entry, so that memory does not grow with their number.
    shards: Vec<Figures>,
    finished: AtomicU64,
    oneway: bool,
}

impl Load {
    /// Makes calls one after the other until the schedule ends.
    async fn work(self: Arc<Self>, request: Request, at: usize) {
        while let Some(since) = self.schedule.next().await {
            let outcome = match self.oneway {
                true => request.send_oneway().await.map_err(DynamicException::System),
                false => request.invoke().await.map(drop),
            };
            let took = since.elapsed();
            if let Some(shard) = self.shards.get(at % self.shards.len().max(1)) {
                shard.record(&Outcome::of(&outcome), took);
            }
            self.finished.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The progress bar on a terminal.
struct Bar {
    bar: ProgressBar,
    duration: Option<Duration>,
}

impl Bar {
    fn new(args: &LoadArgs, output: &Output) -> Self {
        // Without a terminal, nothing is drawn.
        let target = match output.is_json() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let len = args.duration.map_or(args.number, |duration| duration.as_millis() as u64);
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(len), target).with_style(style.progress_chars("=> "));
        Self { bar, duration: args.duration }
    }

    fn show(&self, finished: u64, elapsed: Duration) {
        let rate = finished as f64 / elapsed.as_secs_f64().max(1e-3);
        self.bar.set_message(format!("{finished} calls, {rate:.0} calls/s"));
        self.bar.set_position(match self.duration {
            None => finished,
            Some(duration) => elapsed.min(duration).as_millis() as u64,
        });
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
