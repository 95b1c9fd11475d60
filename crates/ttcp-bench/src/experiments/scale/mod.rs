//! The cost of many objects, connections and clients, and of clients that all connect at once.

mod crowd;
mod hold;
mod section;

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::contenders::Contender;
use super::driver;
use super::plan::{ClientOutput, Experiment, FigureFn, Figures, Plan, Step, line_figure, line_figures};
use super::store::Cell;
use crate::harness::{BuiltInPeer, CommonArgs, Peer};
use crate::system;

pub use crowd::{CrowdArgs, crowd};
pub use hold::{HoldArgs, hold};
use hold::{IDLE_CALL_US, SERVER_FIGURES};

const NAME: &str = "scale";

pub(crate) const EXPERIMENT: Experiment =
    Experiment { name: NAME, published_ids: &[], section: section::section };

const OBJECT_COUNTS: [u32; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
const OBJECT_COUNTS_QUICK: [u32; 2] = [1, 1_000];
const CONNECTION_COUNTS: [u32; 5] = [1, 10, 100, 1_000, 10_000];
const CONNECTION_COUNTS_QUICK: [u32; 2] = [1, 40];
const CLIENT_COUNTS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const CLIENT_COUNTS_QUICK: [u32; 2] = [1, 4];
const CROWD_COUNTS: [u32; 3] = [10, 100, 1_000];
const CROWD_COUNTS_QUICK: [u32; 1] = [40];

/// Maximum number of open files of a process besides its connections.
const MAX_OTHER_FILES: u64 = 100;

/// A peer with server options: the name of the peer, the name in the results, and the options.
type Variant = (&'static str, &'static str, &'static [&'static str]);

const OBJECT_VARIANTS: &[Variant] = &[
    ("zorb", "zorb", &[]),
    ("zorb", "zorb-ids", &["--serving", "ids"]),
    ("zorb", "zorb-default-servant", &["--serving", "default"]),
    ("omniorb", "omniorb", &[]),
    ("omniorb", "omniorb-default-servant", &["--serving", "default"]),
    ("jacorb", "jacorb", &[]),
    ("jacorb", "jacorb-default-servant", &["--serving", "default"]),
];

/// The participants of the parts `connections` and `crowd`, besides the peers of `--peer`.
const CONNECTION_VARIANTS: &[Variant] = &[
    ("raw", "raw", &[]),
    ("c", "c", &[]),
    ("zorb", "zorb", &[]),
    ("zorb-uring", "zorb-uring", &[]),
    ("omniorb", "omniorb", &[]),
    ("jacorb", "jacorb", &[]),
];

const CLIENT_VARIANTS: &[Variant] = &[
    ("raw", "raw", &[]),
    ("c", "c", &[]),
    ("zorb", "zorb", &[]),
    ("zorb", "zorb-multi", &["--runtime", "multi"]),
    ("zorb-uring", "zorb-uring", &[]),
    ("omniorb", "omniorb", &[]),
    ("jacorb", "jacorb", &[]),
];

/// A part of the experiment, named after what it increases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Objects of a server
    Objects,
    /// Connections to a server, all but one of them idle
    Connections,
    /// Clients that call at the same time
    Clients,
    /// Clients that connect at the same moment and call once
    Crowd,
}

impl Part {
    const ALL: [Part; 4] = [Part::Objects, Part::Connections, Part::Clients, Part::Crowd];

    fn setting(self) -> &'static str {
        match self {
            Part::Objects => "objects",
            Part::Connections => "connections",
            Part::Clients => "clients",
            Part::Crowd => "crowd",
        }
    }

    fn cell(self, count: u32) -> Cell {
        Cell::default().with(self.setting(), u64::from(count))
    }

    fn variants(self) -> &'static [Variant] {
        match self {
            Part::Objects => OBJECT_VARIANTS,
            Part::Connections | Part::Crowd => CONNECTION_VARIANTS,
            Part::Clients => CLIENT_VARIANTS,
        }
    }
}

/// Options of `ttcp scale`.
#[derive(Debug, Clone, Default, Args)]
pub struct ScaleArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Parts to measure (default: all)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    pub parts: Option<Vec<Part>>,
    /// Objects of a server (default: 1, 10, 100 and so on to 1000000)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub objects: Option<Vec<u32>>,
    /// Connections to a server (default: 1, 10, 100, 1000, 10000)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<Vec<u32>>,
    /// Clients that call at the same time (default: 1, 2, 4 and so on to 64)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: Option<Vec<u32>>,
    /// Clients that connect at the same moment (default: 10, 100, 1000)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub crowd: Option<Vec<u32>>,
    /// Calls per measurement (default: 20000 with many objects or connections, 50000 by all clients together)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub n: Option<u32>,
}

impl ScaleArgs {
    /// Runs the experiment and prints its section.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        driver::run_one(&self.common, built_in, |contenders| plan(self, contenders))
    }

    fn counts(&self, part: Part) -> &[u32] {
        let quick = self.common.quick;
        let (requested, full, few): (_, &[u32], &[u32]) = match part {
            Part::Objects => (&self.objects, &OBJECT_COUNTS, &OBJECT_COUNTS_QUICK),
            Part::Connections => (&self.connections, &CONNECTION_COUNTS, &CONNECTION_COUNTS_QUICK),
            Part::Clients => (&self.clients, &CLIENT_COUNTS, &CLIENT_COUNTS_QUICK),
            Part::Crowd => (&self.crowd, &CROWD_COUNTS, &CROWD_COUNTS_QUICK),
        };
        requested.as_deref().unwrap_or(if quick { few } else { full })
    }
}

/// Returns the measurements of a round. Omits those that need too many open files, and prints a message.
pub(crate) fn plan(args: &ScaleArgs, contenders: &[Contender]) -> Plan {
    let max_files = system::raise_open_file_limit();
    let mut steps = Vec::new();
    for part in Part::ALL {
        if args.parts.as_ref().is_some_and(|parts| !parts.contains(&part)) {
            continue;
        }
        let participants = participants(args, part, contenders);
        for count in args.counts(part) {
            if part != Part::Objects && u64::from(*count) + MAX_OTHER_FILES > max_files {
                eprintln!(
                    "ttcp: LEFT OUT: scale, {}: a process may open only {max_files} files; raise the hard limit (ulimit -Hn)",
                    part.cell(*count).name()
                );
                continue;
            }
            steps.extend(participants.iter().map(|(peer, server)| step(args, part, *count, peer, server)));
        }
    }
    // There are no checks, because the measurements themselves compare the contents of replies.
    Plan { experiment: &EXPERIMENT, links: Vec::new(), rounds: 3, initial_steps: Vec::new(), steps }
}

fn participants(args: &ScaleArgs, part: Part, contenders: &[Contender]) -> Vec<(Peer, Vec<String>)> {
    let mut participants = Vec::new();
    for (peer_name, name, server) in part.variants() {
        let Some(contender) = contenders.iter().find(|one| one.peer.name == *peer_name) else { continue };
        let peer = Peer { name: (*name).to_owned(), ..contender.peer.clone() };
        participants.push((peer, server.iter().map(|word| (*word).to_owned()).collect()));
    }
    // A peer of `--peer` supports calls, but possibly not the tests with many objects or many clients.
    if matches!(part, Part::Connections | Part::Crowd) {
        participants.extend(args.common.extra_peers.iter().map(|peer| (peer.clone(), Vec::new())));
    }
    participants
}

fn step(args: &ScaleArgs, part: Part, count: u32, peer: &Peer, server: &[String]) -> Step {
    let calls = |full: u32, quick: u32| args.n.unwrap_or(if args.common.quick { quick } else { full });
    let words = |test: &str, n: u32| vec![test.to_owned(), "--n".to_owned(), n.to_string()];
    let (mut peer, mut server_arguments) = (peer.clone(), server.to_vec());
    let (client, figures): (_, FigureFn) = match part {
        Part::Objects => {
            server_arguments.extend(["--objects".to_owned(), count.to_string()]);
            peer.client = hold_command(0, peer.client);
            (words("objects", calls(20_000, 500)), figures_of_objects)
        }
        Part::Connections => {
            peer.client = hold_command(count - 1, peer.client);
            (words("ping", calls(20_000, 500)), figures_of_connections)
        }
        Part::Clients => {
            let mut client = words("clients", calls(50_000, 1_000));
            client.extend(["--depth".to_owned(), count.to_string()]);
            (client, figures_of_clients)
        }
        Part::Crowd => {
            peer.client = server_watching_command("crowd", &["--clients", &count.to_string()]);
            (Vec::new(), figures_of_crowd)
        }
    };
    Step { server_arguments, ..Step::new(&part.cell(count), &peer, client, figures) }
}

/// Returns a command line of this program. The placeholders `{pid}` and `{ready}` are replaced with the
/// server's process id and the address from its READY line.
fn server_watching_command(command: &str, more: &[&str]) -> Vec<String> {
    let program = std::env::current_exe()
        .map_or_else(|_| "ttcp".to_owned(), |path| path.to_string_lossy().into_owned());
    let words = [&program, command, "--lifeline", "--server-pid", "{pid}", "--server-address", "{ready}"];
    words.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

/// Returns the command line of a client that runs while `connections` other connections are open.
fn hold_command(connections: u32, client: Vec<String>) -> Vec<String> {
    let mut command = server_watching_command("hold", &["--connections", &connections.to_string(), "--"]);
    // `{args}` marks the place of the test's arguments in the client's command. By default, they are last.
    let has_placeholder = client.iter().any(|word| word == "{args}");
    command.extend(client);
    if !has_placeholder {
        command.push("{args}".to_owned());
    }
    command
}

/// Returns the latencies and the figures `names` from the client's line.
fn latency_and(output: &ClientOutput<'_>, names: &[&str]) -> Result<Figures, String> {
    line_figures(output.line, &[&["p50_us", "p99_us", "mean_us", "max_us"], names].concat())
}

/// Returns the latencies from the client's line, and the figures `names` that [`hold`] added to this line.
fn latency_and_added(output: &ClientOutput<'_>, names: &[&str]) -> Result<Figures, String> {
    let mut figures = latency_and(output, &[])?;
    let added = output.line.get(SERVER_FIGURES).ok_or("it has no figures of the server")?;
    figures.extend(line_figures(added, names)?);
    Ok(figures)
}

fn figures_of_objects(output: &ClientOutput<'_>) -> Result<Figures, String> {
    line_figure(output.line, "objects")?;
    latency_and_added(output, &["memory_bytes"])
}

fn figures_of_connections(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let has_held = output.line.get(SERVER_FIGURES).is_some_and(|added| added.get(IDLE_CALL_US).is_some());
    let names =
        ["memory_bytes", "first_memory_bytes", "all_memory_bytes", "threads", "open_secs", IDLE_CALL_US];
    latency_and_added(output, if has_held { &names } else { &names[..1] })
}

fn figures_of_clients(output: &ClientOutput<'_>) -> Result<Figures, String> {
    latency_and(output, &["calls_s", "secs"])
}

fn figures_of_crowd(output: &ClientOutput<'_>) -> Result<Figures, String> {
    latency_and(output, &["memory_bytes", "all_memory_bytes"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::contenders;
    use crate::work::parse_options;

    fn plan_of(line: &str) -> Plan {
        let args: ScaleArgs = parse_options(line.split(' ')).unwrap();
        let built_in = [
            BuiltInPeer::new("raw", "raw-server", "raw-client {args} --port {port}"),
            BuiltInPeer::new("zorb", "server", "client {args} --ior {ready}"),
        ];
        plan(&args, &contenders::contenders(&args.common, &built_in).unwrap())
    }

    fn format_step(step: &Step) -> String {
        let words = |words: &[String]| words.join(" ");
        let (server, client) = (words(&step.server_arguments), words(&step.client_arguments));
        format!("{} {}: {server} | {client}", step.peer.name, step.cell.name())
    }

    #[test]
    fn parts_have_their_participants() {
        let plan = plan_of(
            "--peers raw,zorb,zorb-copying --objects 7 --connections 3 --clients 2 --crowd 9 --n 5 --peer a=s::c",
        );
        let all: Vec<String> = plan.steps.iter().map(format_step).collect();
        assert_eq!(
            all,
            [
                "zorb objects 7: --objects 7 | objects --n 5",
                "zorb-ids objects 7: --serving ids --objects 7 | objects --n 5",
                "zorb-default-servant objects 7: --serving default --objects 7 | objects --n 5",
                "raw connections 3:  | ping --n 5",
                "zorb connections 3:  | ping --n 5",
                "a connections 3:  | ping --n 5",
                "raw clients 2:  | clients --n 5 --depth 2",
                "zorb clients 2:  | clients --n 5 --depth 2",
                "zorb-multi clients 2: --runtime multi | clients --n 5 --depth 2",
                "raw crowd 9:  | ",
                "zorb crowd 9:  | ",
                "a crowd 9:  | ",
            ]
        );
        let client = |index: usize| plan.steps[index].peer.client[1..].join(" ");
        let held = "hold --lifeline --server-pid {pid} --server-address {ready} --connections";
        assert!(
            client(0).starts_with(&format!("{held} 0 -- ")) && client(0).ends_with("{args} --ior {ready}")
        );
        assert_eq!(client(5), format!("{held} 2 -- c {{args}}"));
        assert_eq!(client(10), "crowd --lifeline --server-pid {pid} --server-address {ready} --clients 9");
    }

    #[test]
    fn measurements_beyond_the_file_limit_are_omitted() {
        let plan = plan_of("--peers raw --parts connections,clients --connections 1,1000000 --clients 2");
        if system::raise_open_file_limit() < 1_000_000 {
            assert_eq!(
                plan.steps.iter().map(|step| step.cell.name()).collect::<Vec<_>>(),
                ["connections 1", "clients 2"]
            );
        } else {
            assert_eq!(plan.steps.len(), 3);
        }
    }
}
