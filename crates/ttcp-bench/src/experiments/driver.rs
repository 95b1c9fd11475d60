//! Runs plans: rounds, peers in turn, progress and signals; and stores the results.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde_json::{Value, json};

use super::store::{Cell, Outcome, Sample, Store};
use super::{CommonArgs, EXPERIMENTS, LINK, Plan, Step, integrity};
use crate::figures::{Column, Document, Table, markdown};
use crate::harness::INTERRUPTED;
use crate::harness::children::Children;
use crate::harness::cores::Pins;
use crate::harness::environment::Environment;
use crate::harness::links::{ActiveLink, Link};
use crate::harness::peers::{ClientRun, Failure, Site};
use crate::harness::placement::Placement;
use crate::harness::progress::Progress;

/// The output of a client.
pub(crate) struct ClientOutput<'s> {
    /// The line that it printed.
    pub(crate) line: &'s Value,
    /// The directory that `{dir}` stands for.
    pub(crate) dir: &'s Path,
}

/// Performs the measurements of the plans that the directory does not have yet, and prints the sections.
///
/// # Errors
/// The run cannot begin, or its results cannot be written.
pub(crate) fn run(common: &CommonArgs, plans: &[Plan]) -> anyhow::Result<ExitCode> {
    if common.dry_run {
        writeln!(std::io::stdout().lock(), "{}", markdown::of_table(&measurement_counts(common, plans)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let environment = Environment::of_now();
    if !environment.optimised {
        eprintln!("ttcp: this is a debug build, its figures mean nothing: use cargo run --profile bench-lto");
    }
    let dir = common.out.clone().unwrap_or_else(|| new_directory(plans));
    let mut store = Store::open(&dir, environment)?;
    let end = measure(common, plans, &mut store)?;
    show(plans, &store)?;
    if let Some(path) = &common.json {
        let data = store.data();
        let object = json!({ "format": 1, "environments": data.environments, "samples": data.samples() });
        std::fs::write(path, format!("{object:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let failures = store.data().failures();
    for failure in &failures {
        eprintln!("ttcp: {failure}");
    }
    let shown = dir.display();
    eprintln!("ttcp: the results are in {shown}: ttcp report {shown} makes a page of them");
    Ok(match end {
        RunEnd::Interrupted => {
            eprintln!("ttcp: interrupted; --out {shown} goes on from here");
            ExitCode::from(INTERRUPTED)
        }
        RunEnd::Complete if failures.is_empty() => ExitCode::SUCCESS,
        RunEnd::Complete => {
            eprintln!("ttcp: {} measurement(s) failed; --out {shown} tries them again", failures.len());
            ExitCode::FAILURE
        }
    })
}

/// Returns a table of the number of measurements.
fn measurement_counts(common: &CommonArgs, plans: &[Plan]) -> Table {
    let row = |name: &str, [before, round, all]: [usize; 3], rounds: String| {
        vec![name.to_owned(), before.to_string(), round.to_string(), rounds, all.to_string()]
    };
    let of = |plan: &Plan| {
        let (before, round) = (plan.checks.len(), plan.steps.len());
        [before, round, before + round * rounds(common, plan) as usize]
    };
    let mut sum = [0; 3];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for plan in plans {
        let counts = of(plan);
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
        rows.push(row(plan.name, counts, rounds(common, plan).to_string()));
    }
    if plans.len() > 1 {
        rows.push(row("all", sum, String::new()));
    }
    let titles = ["checks and counts before", "in a round", "rounds", "in all"];
    let mut columns = vec![Column::words("measurements")];
    columns.extend(titles.map(Column::figures));
    Table { caption: String::new(), columns, rows }
}

/// Returns the number of rounds of a plan.
fn rounds(common: &CommonArgs, plan: &Plan) -> u32 {
    common.repeat.unwrap_or(if common.quick { 1 } else { plan.rounds })
}

enum RunEnd {
    Complete,
    Interrupted,
}

/// Returns a directory that no other run uses.
fn new_directory(plans: &[Plan]) -> PathBuf {
    let name = match plans {
        [plan] => plan.name,
        _ => "all",
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    PathBuf::from("ttcp-results").join(format!("{name}-{now}-{}", std::process::id()))
}

fn measure(common: &CommonArgs, plans: &[Plan], store: &mut Store) -> anyhow::Result<RunEnd> {
    let rounds = |plan: &Plan| rounds(common, plan);
    let pins = common.pin.then(Pins::choose).transpose()?;
    let mut children = Children::new();
    children.watch_signals().context("cannot take signals")?;
    let dir = tempfile::Builder::new().prefix("ttcp-").tempdir().context("cannot make a directory")?;
    let missing = |store: &Store, plan: &Plan, step: &Step, round| {
        !store.has(plan.name, &step.cell, &step.peer.name, round)
    };
    let wanted = |plan: &Plan| {
        (0..rounds(plan))
            .map(|round| plan.steps.iter().filter(|s| missing(store, plan, s, round)).count())
            .sum::<usize>()
    };
    let unchecked = |plan: &Plan| plan.checks.iter().filter(|s| missing(store, plan, s, 0)).count();
    let mut progress =
        Progress::new(plans.iter().map(|plan| unchecked(plan) + wanted(plan)).sum::<usize>() as u64);
    let mut site = Site {
        children: &mut children,
        dir: dir.path(),
        placement: Placement::loopback(),
        pins: pins.as_ref(),
        timeout: Duration::from_secs(common.timeout),
        deadline: None,
    };
    let mut active = ActiveLink::default();
    for plan in plans {
        for peer in integrity::unchecked(plan) {
            eprintln!(
                "ttcp: {}: contents of {peer} are not checked: its server's words have no {{check}}",
                plan.name
            );
        }
        let before = plan.checks.iter().map(|step| (0, step));
        let steps = (0..rounds(plan))
            .flat_map(|round| rotated(&plan.steps, round as usize).map(move |step| (round, step)));
        let mut refused: Vec<(&Cell, &str, String)> = Vec::new();
        for (number, (round, step)) in before.chain(steps).enumerate() {
            if !missing(store, plan, step, round) {
                continue;
            }
            let is_before = number < plan.checks.len();
            let (peer, cell) = (&step.peer.name, step.cell.name());
            let what = match is_before {
                true => format!("{} {peer} {cell}", plan.name),
                false => format!("{} round {}/{} {peer} {cell}", plan.name, round + 1, rounds(plan)),
            };
            progress.begin(&what);
            let refusal = refused.iter().find(|(check, peer, _)| integrity::is_about(check, peer, step));
            let outcome = match refusal {
                Some((_, _, why)) if !integrity::is_check(&step.cell) => {
                    Outcome::Failure { failure: why.clone() }
                }
                _ => match perform(plan, step, &mut active, &mut site) {
                    Err(Failure::Interrupted) => {
                        progress.finish();
                        return Ok(RunEnd::Interrupted);
                    }
                    Ok(outcome) => outcome,
                    Err(failure) => Outcome::Failure { failure: failure.to_string() },
                },
            };
            progress.end(&what, &format_outcome(&outcome));
            if let Outcome::Failure { failure } = &outcome
                && integrity::is_check(&step.cell)
            {
                refused.push((&step.cell, peer, integrity::refused(failure)));
            }
            let (experiment, cell, peer) = (plan.name.to_owned(), step.cell.clone(), peer.clone());
            store.add(Sample { experiment, cell, peer, round, run: 0, outcome })?;
        }
    }
    progress.finish();
    Ok(RunEnd::Complete)
}

/// Performs a step over the link that its cell names.
fn perform(
    plan: &Plan,
    step: &Step,
    active: &mut ActiveLink,
    site: &mut Site<'_>,
) -> Result<Outcome, Failure> {
    let name = step.cell.word(LINK);
    let link = plan.links.iter().find(|link| name == Some(&link.name())).unwrap_or(&Link::Loopback);
    site.placement = active.placement(link, site.children)?;
    (step.perform)(step, site)
}

/// Returns the steps of a round. In each round, a different peer begins each cell.
fn rotated(steps: &[Step], round: usize) -> impl Iterator<Item = &Step> {
    steps.chunk_by(|a, b| a.cell == b.cell).flat_map(move |cell| {
        let (late, first) = cell.split_at(round % cell.len().max(1));
        first.iter().chain(late)
    })
}

impl Step {
    /// Runs server and client once with the step's arguments.
    pub(crate) fn once(&self, at: &mut Site<'_>) -> Result<Outcome, Failure> {
        let client =
            self.client.iter().map(|word| word.replace("{dir}", &at.dir.to_string_lossy())).collect();
        let ClientRun { line, processor, .. } = self.peer.run_once(&self.server, client, at)?;
        let figures = (self.figures)(&ClientOutput { line: &line, dir: at.dir })
            .map_err(|reason| Failure::BadLine { reason, line: line.to_string() })?;
        Ok(Outcome::Figures { figures, processor, line })
    }

    /// Runs the client once, without a server.
    pub(crate) fn alone(&self, at: &mut Site<'_>) -> Result<Outcome, Failure> {
        let line = self.peer.run_client(self.client.clone(), at)?;
        let figures = (self.figures)(&ClientOutput { line: &line, dir: at.dir })
            .map_err(|reason| Failure::BadLine { reason, line: line.to_string() })?;
        Ok(Outcome::Figures { figures, processor: None, line })
    }
}

/// Returns the first figure, or the first line of the failure.
fn format_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Figures { figures, .. } => {
            let figure =
                |(name, figure): (&String, &f64)| format!("{name} {}", crate::figures::shown(Some(*figure)));
            figures
                .iter()
                .find(|(name, _)| name.starts_with("p50"))
                .or(figures.iter().next())
                .map(figure)
                .unwrap_or_default()
        }
        Outcome::Failure { failure } => format!("failed: {}", failure.lines().next().unwrap_or_default()),
    }
}

/// Prints the sections of the plans as text.
fn show(plans: &[Plan], store: &Store) -> anyhow::Result<()> {
    let data = store.data();
    let wanted: BTreeMap<&str, ()> = plans.iter().map(|plan| (plan.name, ())).collect();
    let measured = |name: &str| {
        wanted.contains_key(name) && data.of(name).any(|s| matches!(s.outcome, Outcome::Figures { .. }))
    };
    let sections =
        EXPERIMENTS.iter().filter(|kind| measured(kind.name)).map(|kind| (kind.section)(data)).map(
            |mut section| {
                section.blocks.retain(|block| block.drawing().is_none());
                section
            },
        );
    let document = Document {
        title: plans.iter().map(|plan| plan.name).collect::<Vec<_>>().join(", "),
        summary: data.environments.last().map(Environment::summary).into_iter().collect(),
        caveats: Vec::new(),
        sections: sections.collect(),
    };
    std::io::stdout().lock().write_all(markdown::markdown(&document, |_, _| String::new()).as_bytes())?;
    Ok(())
}
