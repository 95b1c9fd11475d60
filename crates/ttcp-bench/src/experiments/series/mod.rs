//! The experiment `ttcp series`: series of messages of every kind and size, as calls and one-way. One message
//! is sent in each time frame, and the time of each message is recorded.

mod comparison;
mod section;
mod summary;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;

use super::contenders::Contender;
use super::driver;
use super::plan::{ClientOutput, Figures, Plan, Step, line_figure};
use super::store::Cell;
use crate::harness::{BuiltInPeer, CommonArgs, Peer};
use crate::literature::PublishedTable;
use crate::priority::{NICE_STEP, PrioritiseArgs, Priority, REAL_TIME_PRIORITIES};
use crate::statistics::{Summary, outliers};
use crate::work::{CallMode, MAX_MESSAGES, MessageKind};

const NAME: &str = "series";

pub(crate) const EXPERIMENT: super::plan::Experiment = super::plan::Experiment {
    name: NAME,
    published_ids: &[
        "rtorb00.f1",
        "rtorb00.f3",
        "rtorb00.f4",
        "rtorb00.f6",
        "rtorb00.f8",
        "rtorb00.f10",
        "rtorb00.f11",
        "rtorb00.f13",
        "rtorb00.f14",
        "rtorb00.t1",
        "rtorb00.t2",
        "rtorb00.t3",
        "rtorb00.t4",
        "rtorb00.t5",
        "rtorb00.t6",
        "rtorb00.refit",
        "rtorb00.text",
    ],
    section: section::section,
};

/// Peers that send plain bytes over sockets. The first one is the baseline.
const SOCKET_PEERS: [&str; 2] = ["raw", "c"];
/// Peers that send typed values, besides the peers of `--peer`. Further configurations of zorb are left out.
const ORB_PEERS: [&str; 3] = ["zorb", "omniorb", "jacorb"];
const MESSAGE_COUNT: u32 = 50;
const MESSAGE_COUNT_QUICK: u32 = 10;
/// The default length of a time frame, which is the same as in the published series.
const FRAME_MS: u32 = 70;
/// The length of a time frame in a run of all experiments.
const FRAME_MS_IN_FULL_RUN: u32 = 10;
const FRAME_MS_QUICK: u32 = 1;

/// Options of `ttcp series`.
#[derive(Debug, Clone, Args)]
pub struct SeriesArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Kinds of messages that ORBs send; sockets send plain bytes (default: short, long, float, double,
    /// record, na-record, any)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    pub kinds: Option<Vec<MessageKind>>,
    /// Numbers of 32-byte units in a message (default: 4, and multiples of 75 up to 750)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub units: Option<Vec<u32>>,
    /// Number of messages of each kind and size (default: 50)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_MESSAGES)))]
    pub n: Option<u32>,
    /// Milliseconds from the start of one message to the start of the next; after a message that takes
    /// longer, the next one starts at the next multiple of this time (default: 70)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub frame: Option<u32>,
    /// How the client gets a higher priority than the server
    #[arg(long, value_enum, value_name = "WAY", default_value_t = Priority::Nice)]
    pub priority: Priority,
    /// Do not run a process that occupies a core at the lowest priority
    #[arg(long)]
    pub no_load: bool,
}

impl SeriesArgs {
    /// Runs the experiment, and prints its section.
    ///
    /// # Errors
    /// A series would exceed a client's timeout, the experiment cannot start, or results cannot be written.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        let (frame, messages) = (u64::from(self.frame()), u64::from(self.messages()));
        let secs = frame * messages / 1000;
        ensure!(
            secs < self.common.timeout,
            "{messages} frames of {frame} ms take {secs} s; --timeout must be longer (it is {} s)",
            self.common.timeout
        );
        let contenders = super::contenders::contenders(&self.common, built_in)?;
        driver::run(&self.common, &[plan(self, &contenders)?])
    }

    pub(crate) fn in_full_run(common: CommonArgs) -> SeriesArgs {
        let frame = (!common.quick).then_some(FRAME_MS_IN_FULL_RUN);
        SeriesArgs {
            common,
            kinds: None,
            units: None,
            n: None,
            frame,
            priority: Priority::Nice,
            no_load: false,
        }
    }

    fn frame(&self) -> u32 {
        self.frame.unwrap_or(if self.common.quick { FRAME_MS_QUICK } else { FRAME_MS })
    }

    fn messages(&self) -> u32 {
        self.n.unwrap_or(if self.common.quick { MESSAGE_COUNT_QUICK } else { MESSAGE_COUNT })
    }

    fn units(&self) -> Vec<u32> {
        let all = published_units();
        match &self.units {
            Some(units) => units.clone(),
            None if self.common.quick => all.first().into_iter().chain(all.last()).copied().collect(),
            None => all,
        }
    }
}

fn published_units() -> Vec<u32> {
    let table = PublishedTable::of("rtorb00.f1");
    let sizes = table.iter().flat_map(|table| table.points("message_size_bytes", "message_size_bytes"));
    sizes.map(|(size, _)| (size as u32).saturating_sub(16) / 32).collect()
}

/// Returns the measurements of a round by size, so that all peers are measured close together for each size.
pub(crate) fn plan(args: &SeriesArgs, contenders: &[Contender]) -> anyhow::Result<Plan> {
    let priority = args.priority.or_next_best();
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let program = program.to_string_lossy();
    let is_extra_peer = |name: &str| args.common.extra_peers.iter().any(|peer| peer.name == name);
    let takes_part = |name: &str, kind| match kind {
        MessageKind::Octets => SOCKET_PEERS.contains(&name),
        _ => ORB_PEERS.contains(&name) || is_extra_peer(name),
    };
    let is_known = |name: &str| SOCKET_PEERS.contains(&name) || ORB_PEERS.contains(&name) || name == "none";
    for name in args.common.peers.iter().flatten().filter(|name| !is_known(name)) {
        let (sockets, orbs) = (SOCKET_PEERS.join(", "), ORB_PEERS.join(", "));
        eprintln!("ttcp: {NAME} does not measure {name}, only {sockets}, {orbs} and the peers of --peer");
    }
    let mut kinds = vec![MessageKind::Octets];
    kinds.extend(
        args.kinds
            .as_deref()
            .unwrap_or(&MessageKind::TYPED)
            .iter()
            .filter(|kind| **kind != MessageKind::Octets),
    );
    let mut steps = Vec::new();
    for units in args.units() {
        for mode in [CallMode::Call, CallMode::Oneway] {
            for kind in &kinds {
                let cell = Cell::default()
                    .with("kind", kind.name())
                    .with("mode", mode.name())
                    .with("units", u64::from(units))
                    .with("frame_ms", u64::from(args.frame()))
                    .with("load", if args.no_load { "no load" } else { "load" })
                    .with("priority", priority.name());
                for contender in contenders.iter().filter(|one| takes_part(&one.peer.name, *kind)) {
                    let words = format!(
                        "series --kind {kind} --mode {mode} --units {units} --n {} --frame {}",
                        args.messages(),
                        args.frame() * 1000
                    );
                    let peer = with_priorities(&contender.peer, &program, priority, !args.no_load);
                    let client = words.split(' ').map(str::to_owned).collect();
                    steps.push(Step::new(&cell, &peer, client, figures));
                }
            }
        }
    }
    // There are no checks, because each series compares contents itself.
    Ok(Plan { experiment: &EXPERIMENT, links: Vec::new(), rounds: 1, initial_steps: Vec::new(), steps })
}

/// Returns the peer with commands that give the client a higher priority than the server, in the way of
/// `priority`. If `has_load` is set, a process occupies a core at the lowest priority while the server runs.
fn with_priorities(peer: &Peer, program: &str, priority: Priority, has_load: bool) -> Peer {
    let [mut server, client] = match priority {
        Priority::None => [Vec::new(), Vec::new()],
        Priority::Nice => [vec!["--nice".to_owned(), NICE_STEP.to_string()], Vec::new()],
        Priority::Fifo => {
            let [client, server] = REAL_TIME_PRIORITIES.map(|own| vec!["--fifo".to_owned(), own.to_string()]);
            [server, client]
        }
    };
    if has_load {
        server.push("--load".to_owned());
    }
    Peer {
        server: PrioritiseArgs::wrap(program, &server, peer.server.clone()),
        client: PrioritiseArgs::wrap(program, &client, peer.client.clone()),
        ..peer.clone()
    }
}

/// Returns the list of times `name` in the client's line, converted from nanoseconds to microseconds.
fn times(line: &Value, name: &str) -> Result<Vec<f64>, String> {
    let list = line.get(name).and_then(Value::as_array).ok_or_else(|| format!("it has no {name}"))?;
    let time = |time: &Value| time.as_u64().map(|nanos| nanos as f64 / 1e3);
    list.iter().map(time).collect::<Option<_>>().ok_or_else(|| format!("{name} has an invalid time"))
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let line = output.line;
    let n = line_figure(line, "n")?;
    line_figure(line, "checked")?;
    let (client_times, latencies) = (times(line, "time_ns")?, times(line, "latency_ns")?);
    for (name, count) in [("time_ns", client_times.len() as f64), ("latency_ns", latencies.len() as f64)] {
        if count != n {
            return Err(format!("{name} has {count} of {n} times"));
        }
    }
    let arrived = line_figure(line, "arrived")?;
    if arrived != n {
        return Err(format!("only {arrived} of {n} messages arrived"));
    }
    let without_first = |times: &[f64]| times.get(1..).and_then(Summary::of);
    let (Some(time), Some(latency), Some(time_without_first), Some(latency_without_first)) = (
        Summary::of(&client_times),
        Summary::of(&latencies),
        without_first(&client_times),
        without_first(&latencies),
    ) else {
        return Err("it has fewer than two times".to_owned());
    };
    let figures = [
        ("mean_us", time.mean),
        ("deviation_us", time.deviation),
        ("p50_us", time.median),
        ("max_us", time.max),
        ("first_us", client_times.first().copied().unwrap_or_default()),
        ("mean_without_first_us", time_without_first.mean),
        ("deviation_without_first_us", time_without_first.deviation),
        ("latency_us", latency.mean),
        ("latency_deviation_us", latency.deviation),
        ("latency_without_first_us", latency_without_first.mean),
        ("latency_deviation_without_first_us", latency_without_first.deviation),
        ("outliers", outliers(&client_times).len() as f64),
    ];
    Ok(figures.map(|(name, figure)| (name.to_owned(), figure)).into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn default_sizes_equal_the_published_ones() {
        assert_eq!(published_units(), [4, 75, 150, 225, 300, 375, 450, 525, 600, 675, 750]);
    }

    #[test]
    fn figures_include_those_without_the_first_message() {
        let mut line = json!({
            "n": 4, "checked": 3, "arrived": 4,
            "time_ns": [50_000, 10_000, 12_000, 14_000], "latency_ns": [40_000, 5_000, 6_000, 7_000],
        });
        let figures_of = |line: &Value| figures(&ClientOutput { line, dir: Path::new("/none") });
        let figures = figures_of(&line).unwrap();
        assert_eq!((figures["mean_us"], figures["mean_without_first_us"]), (21.5, 12.0));
        assert_eq!((figures["first_us"], figures["deviation_without_first_us"]), (50.0, 2.0));
        assert_eq!((figures["latency_us"], figures["latency_without_first_us"]), (14.5, 6.0));
        assert_eq!(figures_of(&json!({"n": 1, "checked": 3})).unwrap_err(), "it has no time_ns");
        line["arrived"] = json!(3);
        assert_eq!(figures_of(&line).unwrap_err(), "only 3 of 4 messages arrived");
        line["latency_ns"] = json!([1]);
        assert_eq!(figures_of(&line).unwrap_err(), "latency_ns has 1 of 4 times");
    }
}
