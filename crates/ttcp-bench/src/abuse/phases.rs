//! The phases of an abuse test, and its criteria.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;

use super::AbuseArgs;
use super::attackers::{Attack, AttackCounts};
use super::client::ServiceFigures;
use super::report::{Phase, Report, ResourceUsage};
use super::server::{INITIAL_DELAY, MAX_CONNECTIONS, Sabotage, ServerCounters};
use crate::harness::child::Child;
use crate::harness::environment::Environment;
use crate::harness::processor::process_time;
use crate::harness::progress::Progress;
use crate::harness::{EXIT_INTERRUPTED, interruption_flag, write_json};
use crate::system;

/// How long to wait for a process to start, to report or to release its resources. It is long because
/// attackers run at the lowest priority: on a busy machine, they need minutes to connect.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(600);
/// Interval between samples of the server's resources, long enough not to affect the 99th percentile of the
/// calls.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum delay of a sabotaged server. The client's timeout is longer.
const MAX_DELAY: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Duration in milliseconds of the first calls, which establish the connection and its buffers.
const WARM_UP_MS: u64 = 500;
/// Maximum growth of the server's memory. It covers the pool of receive buffers, and an allowance for each
/// connection of the attackers.
const MAX_MEMORY_GROWTH_BYTES: u64 = 384 << 20;
/// Maximum number of connections without attackers: one of the well-behaved client, and one of a new client.
const IDLE_CONNECTIONS: u64 = 2;

/// The name and the attacks of each phase.
const PHASES: [(&str, &[Attack]); 7] = [
    ("before", &[]),
    ("slowloris", &[Attack::Slowloris]),
    ("length bombs", &[Attack::Bombs]),
    ("cancel flood", &[Attack::Cancels]),
    ("connect flood", &[Attack::Connects]),
    ("all at once", &Attack::ALL),
    ("after", &[]),
];

/// Attacks a server, prints the service that its client got, and returns a failure code if a criterion is
/// violated.
pub fn abuse(args: &AbuseArgs) -> anyhow::Result<ExitCode> {
    let interrupted = interruption_flag()?;
    let environment = Environment::current();
    if !environment.optimised {
        eprintln!("ttcp: the figures of a debug build are meaningless: use cargo run --profile bench-lto");
    }
    let report = Report {
        environment,
        transport: args.transport.to_string(),
        peers: args.or_full_or_quick(args.peers, 1_000, 100),
        addresses: args.addresses,
        rate: if args.unpaced { 0 } else { args.or_full_or_quick(args.rate, 1_000, 200) },
        calls_per_s: args.or_full_or_quick(args.calls, 500, 100),
        connections: MAX_CONNECTIONS,
        max_growth: args.max_growth,
        phases: Vec::new(),
        interrupted: false,
        violations: Vec::new(),
    };
    let mut test = AbuseTest::begin(args, interrupted, report)?;
    let mut progress = Progress::new(PHASES.len() as u64);
    for (name, attacks) in PHASES {
        progress.begin(name);
        let Some(outcome) = test.run_phase(name, attacks)? else { break };
        progress.end(name, &outcome);
        if args.fail_fast && !test.report.violations.is_empty() {
            break;
        }
    }
    progress.finish();
    let report = test.end();
    print!("{}", report.text());
    if let Some(path) = &args.json {
        write_json(path, &report)?;
    }
    Ok(match (report.interrupted, report.holds()) {
        (true, _) => ExitCode::from(EXIT_INTERRUPTED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

struct AbuseTest {
    seconds: u64,
    interrupted: Arc<AtomicBool>,
    server: Child,
    client: Child,
    attackers: Child,
    /// The server's resources before the first phase.
    initial_usage: ResourceUsage,
    sabotage: Option<Sabotage>,
    report: Report,
}

impl AbuseTest {
    fn begin(args: &AbuseArgs, interrupted: Arc<AtomicBool>, report: Report) -> anyhow::Result<AbuseTest> {
        let transport = ["--transport".to_owned(), report.transport.clone()];
        let mut words = vec!["abuse-server".to_owned()];
        words.extend(transport.clone());
        if let Some(sabotage) = args.sabotage {
            let name = sabotage.to_possible_value().context("a sabotage without a name")?;
            words.extend(["--sabotage".to_owned(), name.get_name().to_owned()]);
        }
        let mut server = Child::start(&words)?;
        let address: String =
            server.receive("READY", PROCESS_TIMEOUT).context("the server does not start")?;
        let start = |command: &str, options: &[(&str, String)], more: &[String]| {
            let mut words = vec![command.to_owned(), "--server".to_owned(), address.clone()];
            words.extend(options.iter().flat_map(|(name, value)| [(*name).to_owned(), value.clone()]));
            words.extend_from_slice(more);
            let mut child = Child::start(&words)?;
            child
                .receive::<()>("READY", PROCESS_TIMEOUT)
                .with_context(|| format!("{command} does not start"))?;
            anyhow::Ok(child)
        };
        let calls = [("--calls", report.calls_per_s.to_string())];
        let mut client = start("abuse-client", &calls, &transport)?;
        let attackers = [
            ("--addresses", report.addresses.to_string()),
            ("--peers", report.peers.to_string()),
            ("--rate", report.rate.to_string()),
        ];
        let attackers = start("abuse-attackers", &attackers, &[])?;
        client.send_order(&format!("measure {WARM_UP_MS}"));
        client.receive::<ServiceFigures>("MEASURED", PROCESS_TIMEOUT).context("the first calls failed")?;
        let mut test = AbuseTest {
            seconds: args.or_full_or_quick(args.seconds, 20, 1),
            interrupted,
            server,
            client,
            attackers,
            initial_usage: ResourceUsage::default(),
            sabotage: args.sabotage,
            report,
        };
        let counters = test.counters()?;
        test.initial_usage = test.usage(&counters)?;
        if counters.fallbacks > 0 {
            eprintln!(
                "ttcp: epoll is used, because there is no io_uring (it needs Linux and feature `uring`)"
            );
        }
        Ok(test)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Runs a phase and returns a short summary; `None` if the user interrupted it.
    fn run_phase(&mut self, name: &'static str, attacks: &[Attack]) -> anyhow::Result<Option<String>> {
        let before = self.counters()?;
        let (server_before, attackers_before) =
            (process_time(self.server.pid()), process_time(self.attackers.pid()));
        let start = Instant::now();
        self.attackers.send_order(&format!("attack {}", serde_json::to_string(attacks)?));
        // The client starts only when all peers attack: earlier calls would improve the result.
        let deadline = Instant::now() + PROCESS_TIMEOUT;
        while self.attackers.try_receive::<()>("STARTED", POLL_INTERVAL).context("the attackers")?.is_none() {
            if self.is_interrupted() {
                return Ok(None);
            }
            anyhow::ensure!(Instant::now() < deadline, "the attackers did not start in time");
        }
        let counters = self.counters()?;
        let mut max_usage = self.usage(&counters)?;
        self.client.send_order(&format!("measure {}", self.seconds * 1_000));
        let deadline = Instant::now() + Duration::from_secs(self.seconds) + PROCESS_TIMEOUT;
        let client: ServiceFigures = loop {
            let time = SAMPLE_INTERVAL.min(Duration::from_millis(self.seconds * 250));
            if let Some(figures) = self.client.try_receive("MEASURED", time).context("the client")? {
                break figures;
            }
            if self.is_interrupted() {
                return Ok(None);
            }
            anyhow::ensure!(Instant::now() < deadline, "the client did not end its calls in time");
            let counters = self.counters()?;
            max_usage = max_usage.max(self.usage(&counters)?);
        };
        let seconds = start.elapsed().as_secs_f64();
        let counters = self.counters()?;
        max_usage = max_usage.max(self.usage(&counters)?);
        let used = |pid, before: Option<Duration>| Some((process_time(pid)? - before?).as_secs_f64());
        let (server_cpu_s, attackers_cpu_s) =
            (used(self.server.pid(), server_before), used(self.attackers.pid(), attackers_before));
        self.attackers.send_order("stop");
        let attackers: BTreeMap<Attack, AttackCounts> =
            self.attackers.receive("COUNTS", PROCESS_TIMEOUT).context("the attackers")?;
        let p99 = |phase: &Phase| phase.client.p99_us;
        let ratio = client.p99_us / self.report.phases.first().map_or(client.p99_us, p99).max(0.001);
        let phase = Phase {
            name,
            seconds,
            client,
            ratio,
            server: counters.since(&before),
            max_usage,
            server_cpu_s,
            attackers_cpu_s,
            attackers,
        };
        self.check(&phase);
        let outcome = format!(
            "{} of {} calls answered, p99 {:.0} us, {ratio:.2} x before",
            phase.client.answered, phase.client.calls, phase.client.p99_us
        );
        if self.sabotage == Some(Sabotage::Slow) && self.report.phases.is_empty() {
            // The delay must exceed the criterion on this machine.
            let delay = Duration::from_secs_f64(phase.client.p99_us / 1e6 * self.report.max_growth * 2.0);
            self.server.send_order(&format!("delay {}", delay.clamp(INITIAL_DELAY, MAX_DELAY).as_millis()));
        }
        self.report.phases.push(phase);
        self.wait_until_idle(name)?;
        Ok(Some(outcome))
    }

    /// Checks the criteria of a phase, and adds violations to the report.
    fn check(&mut self, phase: &Phase) {
        let Phase { name, client, ratio, max_usage, .. } = phase;
        let violations = &mut self.report.violations;
        if client.answered < client.calls || client.calls == 0 {
            violations.push(format!("{name}: {} of {} calls were answered", client.answered, client.calls));
        }
        if *ratio > self.report.max_growth {
            violations.push(format!("{name}: p99 was {ratio:.2} times as high as before"));
        }
        let memory = max_usage.memory.saturating_sub(self.initial_usage.memory);
        if memory > MAX_MEMORY_GROWTH_BYTES {
            violations
                .push(format!("{name}: the server used {} MiB more memory than at the start", memory >> 20));
        }
    }

    /// Waits until the server has closed all connections of the attackers.
    fn wait_until_idle(&mut self, name: &str) -> anyhow::Result<()> {
        let end = Instant::now() + PROCESS_TIMEOUT;
        loop {
            let connections = self.counters()?.connections;
            if connections <= IDLE_CONNECTIONS || self.is_interrupted() {
                return Ok(());
            }
            if Instant::now() > end {
                let text = format!("{name}: the server kept {connections} connections");
                self.report.violations.push(text);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn counters(&mut self) -> anyhow::Result<ServerCounters> {
        self.server.send_order("state");
        self.server.receive("STATE", PROCESS_TIMEOUT).context("the server")
    }

    fn usage(&self, counters: &ServerCounters) -> anyhow::Result<ResourceUsage> {
        let pid = u32::try_from(self.server.pid().as_raw_nonzero().get())?;
        Ok(ResourceUsage {
            connections: counters.connections,
            memory: system::resident_bytes(pid)?,
            files: system::open_file_count(pid)?,
        })
    }

    fn end(mut self) -> Report {
        self.report.interrupted = self.is_interrupted();
        if !self.report.interrupted {
            drop(self.attackers);
            drop(self.client);
            self.server.send_order("end");
            if let Err(error) = self.server.wait(PROCESS_TIMEOUT) {
                self.report.violations.push(format!("the server did not end: {error:#}"));
            }
        }
        self.report
    }
}
