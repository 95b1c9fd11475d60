//! The rounds of a soak. A round has traffic with injected faults, and then checks without traffic.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use fastrand::Rng;

use super::calls;
use super::check::{self, RoundRecords};
use super::client::{ClientReport, is_selected};
use super::faults::MisbehavingPeers;
use super::record_file::{Record, RecordFile};
use super::report::Report;
use super::servant::Sabotage;
use super::state::State;
use crate::cli::Transport;
use crate::harness::child::Child;
use crate::harness::{interruption_flag, write_json};

const MAX_ROUND_DURATION: Duration = Duration::from_secs(10);
/// A soak whose time is over continues until every kind of call and misbehaviour has happened, but not after
/// this many cycles through all kinds of rounds.
const MAX_CYCLES_FOR_COVERAGE: usize = 5;
/// Duration of the first round, after which the processes' resources are the baseline of later rounds.
const WARM_UP_DURATION: Duration = Duration::from_millis(700);
/// How long to wait for a process to start, to report, or to end.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that a client may take to end its calls, in addition to the timeout of a call.
const LAST_CALLS_TIMEOUT: Duration = Duration::from_secs(40);
/// Memory that a process may use beside baseline and pool, because allocators keep some freed memory.
const MEMORY_ALLOWANCE_BYTES: u64 = 128 << 20;

/// Options of `ttcp soak`.
#[derive(Debug, Clone, Args)]
pub struct SoakArgs {
    /// Duration in minutes
    #[arg(long, value_name = "N", conflicts_with = "seconds", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub minutes: u64,
    /// Duration in seconds, instead of minutes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// How both sides read and write connections
    #[arg(long, value_enum, default_value_t = Transport::Epoll)]
    pub transport: Transport,
    /// Number of simultaneous client processes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub clients: u16,
    /// Seed of the random calls and faults (default: random)
    #[arg(long)]
    pub seed: Option<u64>,
    /// Seconds after which a call times out, and within which a process must release the resources of calls
    #[arg(long, value_name = "N", default_value_t = 20, hide = true, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
    /// Make only calls of these kinds
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(calls::KINDS.map(|(kind, _)| kind)))]
    pub calls: Vec<String>,
    /// Run only rounds of these kinds, after a calm first round
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(RoundKind::ALL.map(RoundKind::name)))]
    pub rounds: Vec<String>,
    /// End after the first round with a violation
    #[arg(long)]
    pub fail_fast: bool,
    /// Make the server misbehave, to test that the soak detects it
    #[arg(long, value_enum, hide = true)]
    pub sabotage: Option<Sabotage>,
    /// Write the result to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl SoakArgs {
    fn has_rounds(&self, kind: RoundKind) -> bool {
        self.rounds.is_empty() || self.rounds.iter().any(|name| name == kind.name())
    }
}

/// Runs a soak, prints the results, and returns a failure code if there are violations.
pub fn soak(args: &SoakArgs) -> anyhow::Result<ExitCode> {
    let interrupted = interruption_flag()?;
    let start = Instant::now();
    let time = Duration::from_secs(args.seconds.unwrap_or(args.minutes * 60));
    let kinds: Vec<RoundKind> = RoundKind::ALL.into_iter().filter(|kind| args.has_rounds(*kind)).collect();
    let length = (time / kinds.len() as u32).min(MAX_ROUND_DURATION);
    let mut soak = Soak::begin(args, interrupted)?;
    soak.perform_round(RoundKind::WarmUp, WARM_UP_DURATION)?;
    let end = Instant::now() + time;
    for kind in kinds.iter().copied().cycle() {
        let left = end.saturating_duration_since(Instant::now());
        // Even on a slow machine, each kind of round runs at least once. The rounds are repeated, up to a
        // limit, until each kind of call and misbehaviour has happened.
        let had_all_kinds = soak.report.rounds > kinds.len() as u64;
        let max_rounds = (MAX_CYCLES_FOR_COVERAGE * kinds.len()) as u64;
        let is_complete = soak.has_covered_all_kinds() || soak.report.rounds > max_rounds;
        let is_time_over = left < length / 4;
        let has_first_violation = args.fail_fast && !soak.report.violations.is_empty();
        if soak.is_interrupted() || has_first_violation || had_all_kinds && is_complete && is_time_over {
            break;
        }
        soak.perform_round(kind, if had_all_kinds && !is_time_over { length.min(left) } else { length })?;
        let (secs, report) = (start.elapsed().as_secs_f64(), &soak.report);
        let (rounds, calls, violations) = (report.rounds, report.total.calls, report.violations.len());
        let kind = kind.name();
        eprintln!("ttcp: {secs:>5.0} s, round {rounds}, {kind}: {calls} calls, {violations} violations");
    }
    let mut report = soak.end();
    report.seconds = start.elapsed().as_secs_f64();
    print!("{}", report.text());
    if let Some(path) = &args.json {
        write_json(path, &report)?;
    }
    Ok(if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundKind {
    /// The first round, which is like [`Calm`](Self::Calm). The resources after it are the baseline.
    WarmUp,
    /// There are misbehaving peers, as in every round, but no other faults.
    Calm,
    /// Server and clients are suspended for short times.
    Suspensions,
    /// The server is shut down and started again.
    Restarts,
    /// Server and clients are killed, and replaced.
    Kills,
}

impl RoundKind {
    const ALL: [RoundKind; 4] = [Self::Calm, Self::Suspensions, Self::Restarts, Self::Kills];

    fn name(self) -> &'static str {
        match self {
            RoundKind::WarmUp => "warming up",
            RoundKind::Calm => "calm",
            RoundKind::Suspensions => "suspensions",
            RoundKind::Restarts => "restarts",
            RoundKind::Kills => "kills",
        }
    }

    /// Returns whether each call must be answered if its caller waits for the answer.
    fn requires_answers(self) -> bool {
        matches!(self, RoundKind::WarmUp | RoundKind::Calm | RoundKind::Restarts)
    }
}

struct Client {
    number: u16,
    child: Child,
    records: RecordFile,
}

struct Soak {
    args: SoakArgs,
    rng: Rng,
    interrupted: Arc<AtomicBool>,
    server_address: SocketAddr,
    executions: RecordFile,
    server: Child,
    /// The references to the server's objects, as JSON from its report READY.
    references: String,
    clients: Vec<Client>,
    next_client_number: u16,
    /// Number of times at which a fault was due in this round, even if the round has no faults.
    fault_turns: u64,
    /// The numbers of the clients that were killed in this round.
    killed_clients: BTreeSet<u16>,
    killed_records: Vec<Record>,
    misbehaving_peers: MisbehavingPeers,
    /// The resources of the server and of a client after the first round.
    baseline: Option<(State, State)>,
    report: Report,
}

impl Soak {
    fn begin(args: &SoakArgs, interrupted: Arc<AtomicBool>) -> anyhow::Result<Soak> {
        let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
        let mut rng = Rng::with_seed(seed);
        let port = unassigned_port(&mut rng)?;
        let server_address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let executions = RecordFile::new()?;
        let (server, references) = start_server(args, port, &executions)?;
        let (transport, clients) = (args.transport.to_string(), args.clients);
        let report = Report { transport, seed, clients, ..Report::default() };
        let mut soak = Soak {
            args: args.clone(),
            misbehaving_peers: MisbehavingPeers::start(server_address, rng.u64(..))?,
            rng,
            interrupted,
            server_address,
            executions,
            server,
            references,
            clients: Vec::new(),
            next_client_number: 0,
            fault_turns: 0,
            killed_clients: BTreeSet::new(),
            killed_records: Vec::new(),
            baseline: None,
            report,
        };
        for _ in 0..args.clients {
            let client = soak.start_client()?;
            soak.clients.push(client);
        }
        Ok(soak)
    }

    fn start_client(&mut self) -> anyhow::Result<Client> {
        let records = RecordFile::new()?;
        let number = self.next_client_number;
        self.next_client_number += 1;
        let arguments = [
            ("--number", number.to_string()),
            ("--transport", self.args.transport.to_string()),
            ("--seed", self.rng.u64(..).to_string()),
            ("--timeout", self.args.timeout.to_string()),
            ("--records", records.path().display().to_string()),
            ("--references", self.references.clone()),
        ];
        let kinds = self.args.calls.iter().map(|kind| ("--calls", kind.clone()));
        let arguments = arguments.into_iter().chain(kinds).flat_map(|(name, value)| [name.to_owned(), value]);
        let arguments: Vec<String> = std::iter::once("soak-client".to_owned()).chain(arguments).collect();
        Ok(Client { number, child: Child::start(&arguments)?, records })
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn report_violation(&mut self, text: String) {
        eprintln!("ttcp: VIOLATION: {text}");
        self.report.violations.push(text);
    }

    fn count_fault(&mut self, kind: &str) {
        *self.report.faults.entry(kind.to_owned()).or_default() += 1;
    }

    /// Returns whether each selected kind of call was answered, and each misbehaviour was performed.
    fn has_covered_all_kinds(&self) -> bool {
        let mut kinds = calls::KINDS.iter().map(|(kind, _)| *kind).filter(|kind| calls::is_recorded(kind));
        let is_answered = |kind| self.report.kinds.get(kind).is_some_and(|counts| counts.answered > 0);
        kinds.all(|kind| !is_selected(&self.args.calls, kind) || is_answered(kind))
            && self.misbehaving_peers.counts().all(|(_, times)| times > 0)
    }

    /// Runs a round: traffic for at least `length`, and until a fault was due; then the checks.
    fn perform_round(&mut self, kind: RoundKind, length: Duration) -> anyhow::Result<()> {
        self.fault_turns = 0;
        for client in &mut self.clients {
            client.child.send_order("go");
        }
        let end = Instant::now() + length;
        while !self.is_interrupted() && (Instant::now() < end || self.fault_turns == 0) {
            let pause = (length / 6).min(Duration::from_millis(self.rng.u64(150..2_500)));
            self.sleep(Instant::now() + pause)?;
            if !self.is_interrupted() {
                self.inject_fault(kind)?;
            }
        }
        self.check_without_traffic(kind)
    }

    /// Sleeps, and restarts the server if it ends without an order.
    fn sleep(&mut self, until: Instant) -> anyhow::Result<()> {
        while !self.is_interrupted() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
            if let Some(status) = self.server.exit_status() {
                self.report_violation(format!("the server ended without an order: {status}"));
                self.restart_server()?;
            }
        }
        Ok(())
    }

    /// Injects a fault of this kind, if any. Suspensions and kills affect the server and a client in turn.
    fn inject_fault(&mut self, kind: RoundKind) -> anyhow::Result<()> {
        self.fault_turns += 1;
        let client = self.fault_turns.is_multiple_of(2).then(|| self.rng.usize(..self.clients.len()));
        match kind {
            RoundKind::WarmUp | RoundKind::Calm => {}
            RoundKind::Suspensions => {
                let pause = Duration::from_millis(self.rng.u64(20..1_000));
                let target = client.and_then(|index| self.clients.get(index));
                let child = target.map_or(&self.server, |client| &client.child);
                child.suspend();
                std::thread::sleep(pause);
                child.resume();
                self.count_fault(if client.is_some() { "client suspended" } else { "server suspended" });
            }
            RoundKind::Restarts => self.shut_down_server()?,
            RoundKind::Kills => {
                if let Some(index) = client
                    && let Some(client) = self.clients.get_mut(index)
                {
                    client.child.kill();
                    self.killed_clients.insert(client.number);
                    self.killed_records.extend(client.records.take_records()?);
                    let mut new = self.start_client()?;
                    new.child.send_order("go");
                    if let Some(client) = self.clients.get_mut(index) {
                        *client = new;
                    }
                    self.count_fault("client killed");
                } else {
                    self.server.kill();
                    self.count_fault("server killed");
                    // During this pause, clients cannot reach a server.
                    std::thread::sleep(Duration::from_millis(self.rng.u64(..300)));
                    self.restart_server()?;
                }
            }
        }
        Ok(())
    }

    fn shut_down_server(&mut self) -> anyhow::Result<()> {
        // Peers that do not read replies keep their connections open, which delays the server's shutdown.
        let connection_lock = self.misbehaving_peers.connection_lock();
        let paused = MisbehavingPeers::pause(&connection_lock);
        let start = Instant::now();
        self.server.send_order("end");
        let result = self.server.receive::<(usize, usize)>("ENDED", PROCESS_TIMEOUT * 2);
        let longest = &mut self.report.longest_shutdown_seconds;
        *longest = longest.max(start.elapsed().as_secs_f64());
        match result {
            Ok((_, 0)) => {}
            Ok((all, aborted)) => self.report_violation(format!(
                "the server aborted {aborted} of {all} connections during its shutdown"
            )),
            Err(error) => self.report_violation(format!("the server's shutdown failed: {error:#}")),
        }
        if let Err(error) = self.server.wait(PROCESS_TIMEOUT) {
            self.report_violation(format!("the server did not exit: {error:#}"));
            self.server.kill();
        }
        self.count_fault("server shut down");
        self.restart_server()?;
        drop(paused);
        Ok(())
    }

    fn restart_server(&mut self) -> anyhow::Result<()> {
        let port = self.server_address.port();
        (self.server, self.references) = start_server(&self.args, port, &self.executions)?;
        Ok(())
    }

    fn check_without_traffic(&mut self, kind: RoundKind) -> anyhow::Result<()> {
        let connection_lock = self.misbehaving_peers.connection_lock();
        let paused = MisbehavingPeers::pause(&connection_lock);
        let timeout = Duration::from_secs(self.args.timeout);
        for client in &mut self.clients {
            client.child.send_order("quiet");
        }
        let mut hanging = Vec::new();
        for index in 0..self.clients.len() {
            let Some(client) = self.clients.get_mut(index) else { continue };
            let number = client.number;
            match client.child.receive::<ClientReport>("QUIET", timeout + LAST_CALLS_TIMEOUT) {
                Ok(report) => {
                    self.report.orbs += report.orbs;
                    self.report.strays += report.strays;
                    self.report.cancels += report.cancels;
                    for violation in report.violations {
                        self.report_violation(violation);
                    }
                }
                Err(error) => {
                    self.report_violation(format!("client {number} did not end its calls: {error:#}"));
                    hanging.push(index);
                }
            }
        }
        self.server.send_order("sweep");
        let server = settle(&mut self.server, self.baseline.map(|(server, _)| server), timeout);
        let server = self.settled_state("the server", server);
        let mut last = None;
        for index in 0..self.clients.len() {
            let Some(client) = self.clients.get_mut(index) else { continue };
            if hanging.contains(&index) {
                continue;
            }
            let name = format!("client {}", client.number);
            let state = settle(&mut client.child, self.baseline.map(|(_, client)| client), timeout);
            last = self.settled_state(&name, state).or(last);
        }
        if let (Some(server), Some(client)) = (server, last) {
            self.record_states(server, client);
        }
        self.compare_records(kind)?;
        for index in hanging {
            let new = self.start_client()?;
            if let Some(client) = self.clients.get_mut(index) {
                *client = new;
            }
        }
        drop(paused);
        Ok(())
    }

    /// Reports the violations that [`settle`] found, and returns the state.
    fn settled_state(&mut self, process: &str, state: anyhow::Result<(State, Vec<String>)>) -> Option<State> {
        match state {
            Ok((state, violations)) => {
                for violation in violations {
                    self.report_violation(format!("after all calls have ended, {process} {violation}"));
                }
                Some(state)
            }
            Err(error) => {
                self.report_violation(format!("{process} did not report its resources: {error:#}"));
                None
            }
        }
    }

    fn record_states(&mut self, server: State, client: State) {
        let report = &mut self.report;
        report.fallbacks += server.fallbacks + client.fallbacks;
        report.max_memory_bytes = report.max_memory_bytes.max(server.memory).max(client.memory);
        (report.server_end, report.client_end) = (server, client);
        if self.baseline.is_none() {
            self.baseline = Some((server, client));
            (report.server_start, report.client_start) = (server, client);
        }
    }

    fn compare_records(&mut self, kind: RoundKind) -> anyhow::Result<()> {
        let mut records = std::mem::take(&mut self.killed_records);
        for client in &mut self.clients {
            records.extend(client.records.take_records()?);
        }
        let executions = self.executions.take_executions()?;
        let killed_clients = &std::mem::take(&mut self.killed_clients);
        let (records, executions) = (&records, &executions);
        let round =
            RoundRecords { records, executions, killed_clients, requires_answers: kind.requires_answers() };
        let (total, kinds, violations) = check::check(&round);
        self.report.total.add(&total);
        for (kind, counts) in kinds {
            self.report.kinds.entry(kind).or_default().add(&counts);
        }
        for violation in violations {
            self.report_violation(format!("{} round: {violation}", kind.name()));
        }
        self.report.rounds += 1;
        Ok(())
    }

    fn end(mut self) -> Report {
        self.report.interrupted = self.is_interrupted();
        for client in &mut self.clients {
            client.child.send_order("end");
            if let Err(error) = client.child.wait(PROCESS_TIMEOUT) {
                let text = format!("client {} did not exit: {error:#}", client.number);
                self.report.violations.push(text);
            }
        }
        self.server.send_order("end");
        if let Err(error) = self.server.wait(PROCESS_TIMEOUT * 2) {
            self.report.violations.push(format!("the server did not exit: {error:#}"));
        }
        for (misbehaviour, times) in self.misbehaving_peers.counts() {
            self.report.faults.insert(misbehaviour.to_owned(), times);
        }
        self.report
    }
}

/// Waits until a child uses no more resources than `baseline`. Returns its resources, and a text for each
/// resource that still exceeds the baseline after `timeout`.
fn settle(
    child: &mut Child,
    baseline: Option<State>,
    timeout: Duration,
) -> anyhow::Result<(State, Vec<String>)> {
    let end = Instant::now() + timeout;
    let mut previous = None;
    loop {
        child.send_order("state");
        let state: State = child.receive("STATE", PROCESS_TIMEOUT)?;
        let violations = excess_resources(&state, baseline.as_ref());
        // If there is no baseline, two successive states must have the same counts.
        let counts = |state: &State| (state.files, state.tasks, state.connections);
        let is_steady = baseline.is_some() || previous.as_ref().map(counts) == Some(counts(&state));
        if (violations.is_empty() && is_steady) || Instant::now() > end {
            return Ok((state, violations));
        }
        previous = Some(state);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns a text for each resource that exceeds the baseline, or an absolute limit.
fn excess_resources(state: &State, baseline: Option<&State>) -> Vec<String> {
    let mut violations = Vec::new();
    let mut check = |resource: &str, used: u64, max: u64| {
        if used > max {
            violations.push(format!("has {used} {resource}, but at most {max} are allowed"));
        }
    };
    check("connections", state.connections, 0);
    check("executing calls", state.executing_calls, 0);
    check("bytes in its pool", state.pooled, state.max_receive_memory);
    if let Some(baseline) = baseline {
        check("descriptors", state.files, baseline.files);
        check("tasks", state.tasks, baseline.tasks);
        let unpooled = |state: &State| state.memory.saturating_sub(state.pooled);
        let max_unpooled = unpooled(baseline) + MEMORY_ALLOWANCE_BYTES;
        check("bytes of memory outside its pool", unpooled(state), max_unpooled);
    }
    violations
}

fn start_server(args: &SoakArgs, port: u16, executions: &RecordFile) -> anyhow::Result<(Child, String)> {
    let mut arguments = vec!["soak-server".to_owned(), "--port".to_owned(), port.to_string()];
    arguments.extend(["--transport".to_owned(), args.transport.to_string()]);
    arguments.extend(["--records".to_owned(), executions.path().display().to_string()]);
    if let Some(sabotage) = args.sabotage {
        use clap::ValueEnum;
        let name = sabotage.to_possible_value().context("the sabotage has no name")?;
        arguments.extend(["--sabotage".to_owned(), name.get_name().to_owned()]);
    }
    let mut child = Child::start(&arguments)?;
    let references = child.receive::<serde_json::Value>("READY", PROCESS_TIMEOUT);
    Ok((child, references.context("the server did not start")?.to_string()))
}

/// Returns a free port from outside the range that the system assigns to outgoing connections. If no such
/// port is found, returns another free port. A port of the range could be assigned while the server is down.
fn unassigned_port(rng: &mut Rng) -> anyhow::Result<u16> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let lowest = range.split_whitespace().next().and_then(|lowest| lowest.parse().ok()).unwrap_or(32_768);
    for _ in 0..100 {
        let port = rng.u16(2_000..lowest.max(2_001));
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_that_exceed_the_baseline_are_violations() {
        let baseline =
            State { memory: 50 << 20, files: 9, tasks: 3, max_receive_memory: 1 << 20, ..State::default() };
        assert!(excess_resources(&baseline, Some(&baseline)).is_empty());
        type Change = fn(&mut State);
        let changes: [(Change, usize); 7] = [
            (|state| state.files += 1, 1),
            (|state| state.tasks += 1, 1),
            (|state| state.connections += 1, 1),
            (|state| state.executing_calls += 1, 1),
            (|state| state.pooled = 2 << 20, 1),
            (|state| state.memory += MEMORY_ALLOWANCE_BYTES, 0),
            (|state| state.memory += MEMORY_ALLOWANCE_BYTES + 1, 1),
        ];
        for (change, violations) in changes {
            let mut state = baseline;
            change(&mut state);
            assert_eq!(excess_resources(&state, Some(&baseline)).len(), violations, "{state:?}");
        }
    }
}
