//! The rounds of a soak: traffic with faults, quiet, checks.

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
use super::check::{self, Round};
use super::client::{ClientReport, is_wanted};
use super::faults::RawPeers;
use super::record_file::{Record, RecordFile};
use super::report::Report;
use super::servant::Sabotage;
use super::state::State;
use crate::cli::Transport;
use crate::harness::child::Child;

/// Maximum duration of a round.
const ROUND: Duration = Duration::from_secs(10);
/// Maximum number of repetitions of all rounds after the requested time, until each call and fault has
/// happened once.
const REPEATS: usize = 5;
/// Duration of the traffic after which a process counts as warm.
const WARM: Duration = Duration::from_millis(700);
/// Timeout for a process to start, to print something, or to release its resources.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much longer than the timeout of a call a client may take to end its calls.
const LAST_CALLS: Duration = Duration::from_secs(40);
/// Memory that a process may have in addition to its warm, quiet state and its pool: memory kept by the
/// allocator.
const SLACK: u64 = 128 << 20;

/// Options of `ttcp soak`.
#[derive(Debug, Clone, Args)]
pub struct SoakArgs {
    /// Minutes of it
    #[arg(long, value_name = "N", conflicts_with = "seconds", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub minutes: u64,
    /// Seconds of it, instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// How both sides read and write connections
    #[arg(long, value_enum, default_value_t = Transport::Epoll)]
    pub transport: Transport,
    /// Client processes at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub clients: u16,
    /// What draws calls and faults (default: another one each time)
    #[arg(long)]
    pub seed: Option<u64>,
    /// Seconds that a call may take, and a process to let go of what it had
    #[arg(long, value_name = "N", default_value_t = 20, hide = true, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub patience: u64,
    /// Only calls of these kinds (names of the result's table, with commas)
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(calls::KINDS.map(|(kind, _)| kind)))]
    pub only: Vec<String>,
    /// Only rounds of these kinds
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(RoundKind::ALL.map(RoundKind::name)))]
    pub rounds: Vec<String>,
    /// End with the first round in which something is wrong
    #[arg(long)]
    pub first: bool,
    /// Make the server err, to see that it is found
    #[arg(long, value_enum, hide = true)]
    pub sabotage: Option<Sabotage>,
    /// Write the result to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl SoakArgs {
    /// Returns whether there are rounds of that kind.
    fn has(&self, kind: RoundKind) -> bool {
        self.rounds.is_empty() || self.rounds.iter().any(|name| name == kind.name())
    }
}

/// Runs a soak, prints the results, and returns a failure code if there are violations.
///
/// # Errors
/// It cannot begin, or the result cannot be written.
pub fn soak(args: &SoakArgs) -> anyhow::Result<ExitCode> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let begun = Instant::now();
    let time = Duration::from_secs(args.seconds.unwrap_or(args.minutes * 60));
    let kinds: Vec<RoundKind> = RoundKind::ALL.into_iter().filter(|kind| args.has(*kind)).collect();
    let length = (time / kinds.len() as u32).min(ROUND);
    let mut soak = Soak::begin(args, interrupted)?;
    soak.round(RoundKind::Warm, WARM)?;
    let end = Instant::now() + time;
    for kind in kinds.iter().copied().cycle() {
        let left = end.saturating_duration_since(Instant::now());
        // Each kind runs at least once, however long the first ones took. Each call and fault happens,
        // however slow the machine is.
        let all = soak.report.rounds > kinds.len() as u64;
        let enough = soak.has_seen_all() || soak.report.rounds > (REPEATS * kinds.len()) as u64;
        let found = args.first && !soak.report.violations.is_empty();
        if soak.is_over() || found || all && enough && left < length / 4 {
            break;
        }
        soak.round(kind, if all && left >= length / 4 { length.min(left) } else { length })?;
        eprintln!(
            "ttcp: {:>5.0} s, round {}, {}: {} calls, {} violations",
            begun.elapsed().as_secs_f64(),
            soak.report.rounds,
            kind.name(),
            soak.report.total.calls,
            soak.report.violations.len()
        );
    }
    let mut report = soak.end();
    report.seconds = begun.elapsed().as_secs_f64();
    print!("{}", report.text());
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The faults of a round, in addition to the calls and the misbehaving peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundKind {
    /// None. The resources at its end are the reference.
    Warm,
    /// None.
    Calm,
    /// The server and clients are suspended for a while.
    Stops,
    /// The server shuts down orderly, and is started again.
    Restarts,
    /// The server and clients are killed, and started again.
    Kills,
}

impl RoundKind {
    const ALL: [RoundKind; 4] = [RoundKind::Calm, RoundKind::Stops, RoundKind::Restarts, RoundKind::Kills];

    fn name(self) -> &'static str {
        match self {
            RoundKind::Warm => "warming up",
            RoundKind::Calm => "calm",
            RoundKind::Stops => "stops",
            RoundKind::Restarts => "restarts",
            RoundKind::Kills => "kills",
        }
    }

    /// Returns whether the server must answer each call that its caller awaits.
    fn is_calm(self) -> bool {
        matches!(self, RoundKind::Warm | RoundKind::Calm | RoundKind::Restarts)
    }
}

/// A client process.
struct Client {
    number: u16,
    child: Child,
    notes: RecordFile,
}

/// A running soak.
struct Soak {
    args: SoakArgs,
    rng: Rng,
    interrupted: Arc<AtomicBool>,
    address: SocketAddr,
    server_notes: RecordFile,
    server: Child,
    references: String,
    clients: Vec<Client>,
    started: u16,
    strikes: u64,
    killed: BTreeSet<u16>,
    /// Records of the clients that were killed in this round.
    left: Vec<Record>,
    raw: RawPeers,
    start: Option<(State, State)>,
    report: Report,
}

impl Soak {
    fn begin(args: &SoakArgs, interrupted: Arc<AtomicBool>) -> anyhow::Result<Soak> {
        let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
        let mut rng = Rng::with_seed(seed);
        let port = port(&mut rng)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server_notes = RecordFile::new()?;
        let (server, references) = start_server(args, port, &server_notes)?;
        let report = Report {
            transport: args.transport.to_string(),
            seed,
            clients: args.clients,
            ..Report::default()
        };
        let mut soak = Soak {
            args: args.clone(),
            raw: RawPeers::start(address, rng.u64(..))?,
            rng,
            interrupted,
            address,
            server_notes,
            server,
            references,
            clients: Vec::new(),
            started: 0,
            strikes: 0,
            killed: BTreeSet::new(),
            left: Vec::new(),
            start: None,
            report,
        };
        for _ in 0..args.clients {
            let client = soak.start_client()?;
            soak.clients.push(client);
        }
        Ok(soak)
    }

    fn start_client(&mut self) -> anyhow::Result<Client> {
        let notes = RecordFile::new()?;
        let number = self.started;
        self.started += 1;
        let arguments = [
            ("--number", number.to_string()),
            ("--transport", self.args.transport.to_string()),
            ("--seed", self.rng.u64(..).to_string()),
            ("--patience", self.args.patience.to_string()),
            ("--notes", notes.path().display().to_string()),
            ("--references", self.references.clone()),
        ];
        let only = self.args.only.iter().map(|kind| ("--only", kind.clone()));
        let arguments = arguments.into_iter().chain(only).flat_map(|(name, value)| [name.to_owned(), value]);
        let arguments: Vec<String> = std::iter::once("soak-client".to_owned()).chain(arguments).collect();
        Ok(Client { number, child: Child::start(&arguments)?, notes })
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn wrong(&mut self, text: String) {
        eprintln!("ttcp: VIOLATION: {text}");
        self.report.violations.push(text);
    }

    fn fault(&mut self, what: &str) {
        *self.report.faults.entry(what.to_owned()).or_default() += 1;
    }

    /// Returns whether each kind of call was answered, and each misbehaviour was performed.
    fn has_seen_all(&self) -> bool {
        let mut kinds = calls::KINDS.iter().map(|(kind, _)| *kind).filter(|kind| calls::is_noted(kind));
        let is_answered = |kind| self.report.kinds.get(kind).is_some_and(|counts| counts.answered > 0);
        kinds.all(|kind| !is_wanted(&self.args.only, kind) || is_answered(kind))
            && self.raw.counts().all(|(_, times)| times > 0)
    }

    /// Runs a round: traffic for `length`, and until at least one fault of its kind has been injected; then
    /// quiet, then the checks.
    fn round(&mut self, kind: RoundKind, length: Duration) -> anyhow::Result<()> {
        self.strikes = 0;
        for client in &mut self.clients {
            client.child.send_order("go");
        }
        let end = Instant::now() + length;
        while !self.is_over() && (Instant::now() < end || self.strikes == 0) {
            let pause = (length / 6).min(Duration::from_millis(self.rng.u64(150..2_500)));
            self.sleep(Instant::now() + pause)?;
            if !self.is_over() {
                self.strike(kind)?;
            }
        }
        self.quiet(kind)
    }

    /// Sleeps, and checks that all processes run.
    fn sleep(&mut self, until: Instant) -> anyhow::Result<()> {
        while !self.is_over() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
            if let Some(status) = self.server.ended() {
                self.wrong(format!("the server ended by itself: {status}"));
                self.restart()?;
            }
        }
        Ok(())
    }

    /// Injects one fault of the round: in the server and in a client in turn.
    fn strike(&mut self, kind: RoundKind) -> anyhow::Result<()> {
        self.strikes += 1;
        let client = self.strikes.is_multiple_of(2).then(|| self.rng.usize(..self.clients.len()));
        match kind {
            RoundKind::Warm | RoundKind::Calm => {}
            RoundKind::Stops => {
                let stopped = Duration::from_millis(self.rng.u64(20..1_000));
                let whom = client.and_then(|place| self.clients.get(place));
                let child = whom.map_or(&self.server, |client| &client.child);
                child.suspend();
                std::thread::sleep(stopped);
                child.resume();
                self.fault(if client.is_some() { "client stopped" } else { "server stopped" });
            }
            RoundKind::Restarts => self.end_in_order()?,
            RoundKind::Kills => {
                if let Some(whom) = client
                    && let Some(client) = self.clients.get_mut(whom)
                {
                    client.child.kill();
                    self.killed.insert(client.number);
                    self.gather(whom)?;
                    let mut client = self.start_client()?;
                    client.child.send_order("go");
                    if let Some(place) = self.clients.get_mut(whom) {
                        *place = client;
                    }
                    self.fault("client killed");
                } else {
                    self.server.kill();
                    self.fault("server killed");
                    // For a while, callers cannot reach a server.
                    std::thread::sleep(Duration::from_millis(self.rng.u64(..300)));
                    self.restart()?;
                }
            }
        }
        Ok(())
    }

    /// Keeps the records of a killed client until the round is checked.
    fn gather(&mut self, whom: usize) -> anyhow::Result<()> {
        let Some(client) = self.clients.get_mut(whom) else { return Ok(()) };
        self.left.extend(client.notes.take_records()?);
        Ok(())
    }

    fn end_in_order(&mut self) -> anyhow::Result<()> {
        // Unread replies keep a connection open, and therefore delay the server's end.
        let gate = self.raw.gate();
        let paused = RawPeers::pause(&gate);
        let begun = Instant::now();
        self.server.send_order("end");
        let ended = self.server.receive::<(usize, usize)>("ENDED", PATIENCE * 2);
        self.report.longest_end = self.report.longest_end.max(begun.elapsed().as_secs_f64());
        match ended {
            Ok((_, 0)) => {}
            Ok((of, cut)) => self.wrong(format!("the server cut {cut} of {of} connections at its end")),
            Err(error) => self.wrong(format!("the server did not end in order: {error:#}")),
        }
        if let Err(error) = self.server.wait(PATIENCE) {
            self.wrong(format!("the server did not end: {error:#}"));
            self.server.kill();
        }
        self.fault("server ended in order");
        self.restart()?;
        drop(paused);
        Ok(())
    }

    fn restart(&mut self) -> anyhow::Result<()> {
        let (server, references) = start_server(&self.args, self.address.port(), &self.server_notes)?;
        (self.server, self.references) = (server, references);
        Ok(())
    }

    /// Ends all calls and checks the remaining resources.
    fn quiet(&mut self, kind: RoundKind) -> anyhow::Result<()> {
        let gate = self.raw.gate();
        let paused = RawPeers::pause(&gate);
        let patience = Duration::from_secs(self.args.patience);
        let time = patience + LAST_CALLS;
        for client in &mut self.clients {
            client.child.send_order("quiet");
        }
        let mut hanging = Vec::new();
        for place in 0..self.clients.len() {
            let Some(client) = self.clients.get_mut(place) else { continue };
            let number = client.number;
            match client.child.receive::<ClientReport>("QUIET", time) {
                Ok(told) => {
                    self.report.orbs += told.orbs;
                    self.report.strays += told.strays;
                    self.report.cancels += told.cancels;
                    for violation in told.violations {
                        self.wrong(violation);
                    }
                }
                Err(error) => {
                    self.wrong(format!("client {number} does not end its calls: {error:#}"));
                    hanging.push(place);
                }
            }
        }
        self.server.send_order("sweep");
        let server = settle(&mut self.server, self.start.map(|(server, _)| server), patience);
        let server = self.settled("the server", server);
        let mut last = None;
        for place in 0..self.clients.len() {
            let Some(client) = self.clients.get_mut(place) else { continue };
            if hanging.contains(&place) {
                continue;
            }
            let who = format!("client {}", client.number);
            let state = settle(&mut client.child, self.start.map(|(_, client)| client), patience);
            last = self.settled(&who, state).or(last);
        }
        if let (Some(server), Some(client)) = (server, last) {
            self.keep(server, client);
        }
        self.compare(kind)?;
        for place in hanging {
            let client = self.start_client()?;
            if let Some(hangs) = self.clients.get_mut(place) {
                *hangs = client;
            }
        }
        drop(paused);
        Ok(())
    }

    fn settled(&mut self, who: &str, state: anyhow::Result<(State, Vec<String>)>) -> Option<State> {
        match state {
            Ok((state, wrong)) => {
                for what in wrong {
                    self.wrong(format!("{who} is quiet and {what}"));
                }
                Some(state)
            }
            Err(error) => {
                self.wrong(format!("{who} does not say what it holds: {error:#}"));
                None
            }
        }
    }

    fn keep(&mut self, server: State, client: State) {
        let report = &mut self.report;
        report.fallbacks += server.fallbacks + client.fallbacks;
        report.most_memory = report.most_memory.max(server.memory).max(client.memory);
        (report.server_end, report.client_end) = (server, client);
        if self.start.is_none() {
            self.start = Some((server, client));
            (report.server_start, report.client_start) = (server, client);
        }
    }

    /// Compares calls and executions.
    fn compare(&mut self, kind: RoundKind) -> anyhow::Result<()> {
        let mut records = std::mem::take(&mut self.left);
        for client in &mut self.clients {
            records.extend(client.notes.take_records()?);
        }
        let executions = self.server_notes.take_executions()?;
        let killed = std::mem::take(&mut self.killed);
        let round =
            Round { records: &records, executions: &executions, killed: &killed, is_calm: kind.is_calm() };
        let (total, kinds, wrong) = check::check(&round);
        self.report.total.add(&total);
        for (kind, counts) in kinds {
            self.report.kinds.entry(kind).or_default().add(&counts);
        }
        for violation in wrong {
            self.wrong(format!("{} round: {violation}", kind.name()));
        }
        self.report.rounds += 1;
        Ok(())
    }

    /// Ends all processes.
    fn end(mut self) -> Report {
        self.report.interrupted = self.is_over();
        for client in &mut self.clients {
            client.child.send_order("end");
            if let Err(error) = client.child.wait(PATIENCE) {
                let text = format!("client {} did not end: {error:#}", client.number);
                self.report.violations.push(text);
            }
        }
        self.server.send_order("end");
        if let Err(error) = self.server.wait(PATIENCE * 2) {
            self.report.violations.push(format!("the server did not end: {error:#}"));
        }
        for (deed, times) in self.raw.counts() {
            self.report.faults.insert(deed.to_owned(), times);
        }
        self.report
    }
}

/// Waits until a child holds no more than at its start. Returns its resources, and those that exceed the
/// limits.
///
/// # Errors
/// It does not report them.
fn settle(child: &mut Child, start: Option<State>, time: Duration) -> anyhow::Result<(State, Vec<String>)> {
    let end = Instant::now() + time;
    let mut before = None;
    loop {
        child.send_order("state");
        let state: State = child.receive("STATE", PATIENCE)?;
        let wrong = surplus(&state, start.as_ref());
        // At the start, the only reference is its previous state.
        let counts = |state: &State| (state.files, state.tasks, state.connections);
        let steady = start.is_some() || before.is_some_and(|before| counts(&before) == counts(&state));
        if (wrong.is_empty() && steady) || Instant::now() > end {
            return Ok((state, wrong));
        }
        before = Some(state);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the resources that exceed the initial ones, or the absolute limits.
fn surplus(state: &State, start: Option<&State>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut most = |what: &str, now: u64, most: u64| {
        if now > most {
            wrong.push(format!("holds {now} {what}, {most} at the most are right"));
        }
    };
    most("connections", state.connections, 0);
    most("calls", state.busy, 0);
    most("bytes in its pool", state.pooled, state.max_receive_memory);
    if let Some(start) = start {
        most("descriptors", state.files, start.files);
        most("tasks", state.tasks, start.tasks);
        let other = |state: &State| state.memory.saturating_sub(state.pooled);
        most("bytes of memory beside its pool", other(state), other(start) + SLACK);
    }
    wrong
}

/// Starts a server at the port, and returns it with its references.
fn start_server(args: &SoakArgs, port: u16, notes: &RecordFile) -> anyhow::Result<(Child, String)> {
    let mut arguments = vec!["soak-server".to_owned(), "--port".to_owned(), port.to_string()];
    arguments.extend(["--transport".to_owned(), args.transport.to_string()]);
    arguments.extend(["--notes".to_owned(), notes.path().display().to_string()]);
    if let Some(sabotage) = args.sabotage {
        use clap::ValueEnum;
        let name = sabotage.to_possible_value().context("a sabotage without a name")?;
        arguments.extend(["--sabotage".to_owned(), name.get_name().to_owned()]);
    }
    let mut child = Child::start(&arguments)?;
    let references = child.receive::<serde_json::Value>("READY", PATIENCE);
    Ok((child, references.context("the server does not start")?.to_string()))
}

/// Returns a port below those that the system assigns, so that no client gets it by chance while the server
/// is down.
fn port(rng: &mut Rng) -> anyhow::Result<u16> {
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
    fn what_is_more_than_at_the_start_is_told() {
        let start =
            State { memory: 50 << 20, files: 9, tasks: 3, max_receive_memory: 1 << 20, ..State::default() };
        assert!(surplus(&start, Some(&start)).is_empty());
        let told = |change: fn(&mut State)| {
            let mut state = start;
            change(&mut state);
            surplus(&state, Some(&start)).len()
        };
        assert_eq!(told(|state| state.files += 1), 1);
        assert_eq!(told(|state| state.tasks += 1), 1);
        assert_eq!(told(|state| state.connections += 1), 1);
        assert_eq!(told(|state| state.busy += 1), 1);
        assert_eq!(told(|state| state.pooled = 2 << 20), 1);
        assert_eq!(told(|state| state.memory += SLACK), 0);
        assert_eq!(told(|state| state.memory += SLACK + 1), 1);
    }
}
