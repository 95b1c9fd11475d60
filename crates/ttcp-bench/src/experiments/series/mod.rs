//! Call-and-return and one-way series: messages of every kind and size, one in each frame, each recorded
//! individually.

mod comparison;
mod section;
mod summary;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;

use super::contenders::Contender;
use super::driver::ClientOutput;
use super::store::Cell;
use super::{CommonArgs, Figures, Plan, Step, of_line};
use crate::harness::{BuiltIn, Peer};
use crate::literature::Published;
use crate::priority::{NICER, PrioritiseArgs, Priority, REAL_TIME};
use crate::statistics::{Summary, outliers};
use crate::work::{CallMode, MAX_MESSAGES, MessageKind};

const NAME: &str = "series";

pub(crate) const EXPERIMENT: super::Experiment = super::Experiment {
    name: NAME,
    covers: &[
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

/// Peers that send bytes, whatever the kind: the baseline first.
const SOCKETS: [&str; 2] = ["raw", "c"];
/// Peers that send typed values. zorb's other configurations have experiments of their own.
const ORBS: [&str; 3] = ["zorb", "omniorb", "jacorb"];
/// Messages of each kind and size.
const MESSAGES: u32 = 50;
const MESSAGES_QUICK: u32 = 10;
/// Frame length in milliseconds: of the published series, in a run of all experiments, and in a quick run.
const FRAME: u32 = 70;
const FRAME_OF_ALL: u32 = 10;
const FRAME_QUICK: u32 = 1;

/// Options of `ttcp series`.
#[derive(Debug, Clone, Args)]
pub struct SeriesArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Kinds of messages; sockets also send plain bytes (default: short, long, float, double, record,
    /// na-record, any)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    pub kinds: Option<Vec<MessageKind>>,
    /// Units of 32 bytes of the messages, which have 16 more (default: 4, 75, 150, 225 and so on to 750)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub units: Option<Vec<u32>>,
    /// Messages of each kind and size (default: 50)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_MESSAGES)))]
    pub n: Option<u32>,
    /// Milliseconds from one message to the next; a longer call delays the next one to a further multiple
    /// (default: 70)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub frame: Option<u32>,
    /// How the client gets a higher priority than the server
    #[arg(long, value_enum, value_name = "WAY", default_value_t = Priority::Nice)]
    pub priority: Priority,
    /// No process that burns a core at the lowest priority beside the server
    #[arg(long)]
    pub no_load: bool,
}

impl SeriesArgs {
    /// Runs the experiment and prints its section.
    ///
    /// # Errors
    /// A series would exceed the time limit of a client; it cannot begin, or its results cannot be written.
    pub fn run(&self, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
        let (frame, messages) = (u64::from(self.frame()), u64::from(self.messages()));
        let secs = frame * messages / 1000;
        ensure!(
            secs < self.common.timeout,
            "{messages} frames of {frame} ms take {secs} s, more than --timeout {}",
            self.common.timeout
        );
        let contenders = super::contenders::contenders(&self.common, built_in)?;
        super::driver::run(&self.common, &[plan(self, &contenders)?])
    }

    /// Arguments for the whole experiment, in short frames.
    pub(crate) fn of(common: CommonArgs) -> SeriesArgs {
        let frame = (!common.quick).then_some(FRAME_OF_ALL);
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
        self.frame.unwrap_or(if self.common.quick { FRAME_QUICK } else { FRAME })
    }

    fn messages(&self) -> u32 {
        self.n.unwrap_or(if self.common.quick { MESSAGES_QUICK } else { MESSAGES })
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

/// Returns the units of the published series, whose messages have 16 bytes and 32 bytes per unit.
fn published_units() -> Vec<u32> {
    let table = Published::of("rtorb00.f1");
    let sizes = table.iter().flat_map(|table| table.points("message_size_bytes", "message_size_bytes"));
    sizes.map(|(size, _)| (size as u32).saturating_sub(16) / 32).collect()
}

/// Returns the measurements of a round. They are ordered by size, so that a size's sockets are measured close
/// to its other peers.
///
/// # Errors
/// The path of this program's own file cannot be determined.
pub(crate) fn plan(args: &SeriesArgs, contenders: &[Contender]) -> anyhow::Result<Plan> {
    let priority = args.priority.as_far_as_possible();
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let program = program.to_string_lossy();
    let of_user = |name: &str| args.common.extra.iter().any(|peer| peer.name == name);
    let part = |name: &str, kind| match kind {
        MessageKind::Octets => SOCKETS.contains(&name),
        _ => ORBS.contains(&name) || of_user(name),
    };
    let no_part = |name: &&String| !SOCKETS.contains(&name.as_str()) && !ORBS.contains(&name.as_str());
    for name in args.common.peers.iter().flatten().filter(no_part).filter(|name| *name != "none") {
        let (sockets, orbs) = (SOCKETS.join(", "), ORBS.join(", "));
        eprintln!("ttcp: {NAME} is not for {name}, only: {sockets}, {orbs}, and those of --peer");
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
                for contender in contenders.iter().filter(|one| part(&one.peer.name, *kind)) {
                    let words = format!(
                        "series --kind {kind} --mode {mode} --units {units} --n {} --frame {}",
                        args.messages(),
                        args.frame() * 1000
                    );
                    steps.push(Step {
                        cell: cell.clone(),
                        peer: prioritised(&contender.peer, &program, priority, !args.no_load),
                        server: Vec::new(),
                        client: words.split(' ').map(str::to_owned).collect(),
                        figures,
                        perform: Step::once,
                    });
                }
            }
        }
    }
    // Each series checks contents itself.
    Ok(Plan { name: NAME, links: Vec::new(), rounds: 1, checks: Vec::new(), steps })
}

/// Returns the peer with a client of a higher priority than its server, and with an additional load if `load`
/// is set.
fn prioritised(peer: &Peer, program: &str, priority: Priority, load: bool) -> Peer {
    let [mut server, client] = match priority {
        Priority::None => [Vec::new(), Vec::new()],
        Priority::Nice => [vec!["--nice".to_owned(), NICER.to_string()], Vec::new()],
        Priority::Fifo => {
            let [client, server] = REAL_TIME.map(|own| vec!["--fifo".to_owned(), own.to_string()]);
            [server, client]
        }
    };
    if load {
        server.push("--load".to_owned());
    }
    Peer {
        server: PrioritiseArgs::wrap(program, &server, peer.server.clone()),
        client: PrioritiseArgs::wrap(program, &client, peer.client.clone()),
        ..peer.clone()
    }
}

/// Returns the times of a list in the client's line, microseconds.
fn times(line: &Value, name: &str) -> Result<Vec<f64>, String> {
    let list = line.get(name).and_then(Value::as_array).ok_or_else(|| format!("it has no {name}"))?;
    let time = |time: &Value| time.as_u64().map(|nanos| nanos as f64 / 1e3);
    list.iter().map(time).collect::<Option<_>>().ok_or_else(|| format!("a time of its {name} is none"))
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let line = output.line;
    let n = of_line(line, "n")?;
    of_line(line, "checked")?;
    let (took, late) = (times(line, "time_ns")?, times(line, "latency_ns")?);
    for (what, count) in [("time_ns", took.len() as f64), ("latency_ns", late.len() as f64)] {
        if count != n {
            return Err(format!("its {what} has {count} times of {n}"));
        }
    }
    if of_line(line, "arrived")? != n {
        return Err(format!("{} messages of {n} arrived", of_line(line, "arrived")?));
    }
    let rest = took.get(1..).and_then(Summary::of);
    let late_rest = late.get(1..).and_then(Summary::of);
    let all = Summary::of(&took).zip(Summary::of(&late)).zip(rest.zip(late_rest));
    let Some(((took_all, late_all), (rest, late_rest))) = all else {
        return Err("it has fewer than two times".to_owned());
    };
    let figures = [
        ("mean_us", took_all.mean),
        ("deviation_us", took_all.deviation),
        ("p50_us", took_all.median),
        ("max_us", took_all.max),
        ("first_us", took.first().copied().unwrap_or_default()),
        ("mean_without_first_us", rest.mean),
        ("deviation_without_first_us", rest.deviation),
        ("latency_us", late_all.mean),
        ("latency_deviation_us", late_all.deviation),
        ("latency_without_first_us", late_rest.mean),
        ("latency_deviation_without_first_us", late_rest.deviation),
        ("outliers", outliers(&took).len() as f64),
    ];
    Ok(figures.map(|(name, figure)| (name.to_owned(), figure)).into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_are_the_published_ones() {
        assert_eq!(published_units(), [4, 75, 150, 225, 300, 375, 450, 525, 600, 675, 750]);
    }

    #[test]
    fn figures_are_with_and_without_the_first() {
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
        assert_eq!(figures_of(&line).unwrap_err(), "3 messages of 4 arrived");
        line["latency_ns"] = json!([1]);
        assert_eq!(figures_of(&line).unwrap_err(), "its latency_ns has 1 times of 4");
    }
}
