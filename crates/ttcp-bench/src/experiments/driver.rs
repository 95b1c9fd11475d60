//! The execution of plans: rounds, progress, signals, and storing of results.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde_json::{Value, json};

use super::contenders::{Contender, contenders};
use super::integrity;
use super::plan::{ClientOutput, LINK, Plan, Step};
use super::store::{Cell, Outcome, Sample, Store};
use crate::figures::{Document, Table, markdown};
use crate::harness::EXIT_INTERRUPTED;
use crate::harness::children::Children;
use crate::harness::cores::PinnedCores;
use crate::harness::environment::Environment;
use crate::harness::links::{ActiveLink, Link};
use crate::harness::peers::{ClientRun, Failure, RunContext};
use crate::harness::placement::Placement;
use crate::harness::processor::ProcessorTime;
use crate::harness::progress::Progress;
use crate::harness::{BuiltInPeer, CommonArgs};

pub(crate) fn run_one(
    common: &CommonArgs,
    built_in: &[BuiltInPeer],
    plan: impl FnOnce(&[Contender]) -> Plan,
) -> anyhow::Result<ExitCode> {
    let contenders = contenders(common, built_in)?;
    run(common, &[plan(&contenders)])
}

/// Performs the measurements that are not yet in the directory, and prints the sections of the plans.
pub(crate) fn run(common: &CommonArgs, plans: &[Plan]) -> anyhow::Result<ExitCode> {
    if common.dry_run {
        writeln!(std::io::stdout().lock(), "{}", markdown::format_table(&measurement_counts(common, plans)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let environment = Environment::current();
    if !environment.optimised {
        eprintln!("ttcp: the figures of a debug build are meaningless: use cargo run --profile bench-lto");
    }
    let dir = common.out.clone().unwrap_or_else(|| new_directory(plans));
    let mut store = Store::open(&dir, environment)?;
    let end = measure(common, plans, &mut store)?;
    print_sections(plans, &store)?;
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
    let dir = dir.display();
    eprintln!("ttcp: the results are in {dir}; ttcp report {dir} creates a page from them");
    Ok(match end {
        RunEnd::Interrupted => {
            eprintln!("ttcp: interrupted; a run with --out {dir} continues the measurements");
            ExitCode::from(EXIT_INTERRUPTED)
        }
        RunEnd::Complete if failures.is_empty() => ExitCode::SUCCESS,
        RunEnd::Complete => {
            eprintln!("ttcp: {} measurement(s) failed; a run with --out {dir} repeats them", failures.len());
            ExitCode::FAILURE
        }
    })
}

fn measurement_counts(common: &CommonArgs, plans: &[Plan]) -> Table {
    let row = |name: &str, [initial_steps, steps, total]: [usize; 3], rounds: String| {
        vec![name.to_owned(), initial_steps.to_string(), steps.to_string(), rounds, total.to_string()]
    };
    let mut sum = [0; 3];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for plan in plans {
        let (initial_steps, steps) = (plan.initial_steps.len(), plan.steps.len());
        let counts = [initial_steps, steps, initial_steps + steps * round_count(common, plan) as usize];
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
        rows.push(row(plan.experiment.name, counts, round_count(common, plan).to_string()));
    }
    if plans.len() > 1 {
        rows.push(row("all", sum, String::new()));
    }
    Table::of_figures("measurements|checks and counts|in each round|rounds|total", rows)
}

fn round_count(common: &CommonArgs, plan: &Plan) -> u32 {
    common.repeat.unwrap_or(if common.quick { 1 } else { plan.rounds })
}

enum RunEnd {
    Complete,
    Interrupted,
}

fn new_directory(plans: &[Plan]) -> PathBuf {
    let name = match plans {
        [plan] => plan.experiment.name,
        _ => "all",
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    PathBuf::from("ttcp-results").join(format!("{name}-{now}-{}", std::process::id()))
}

fn measure(common: &CommonArgs, plans: &[Plan], store: &mut Store) -> anyhow::Result<RunEnd> {
    let rounds = |plan: &Plan| round_count(common, plan);
    let cores = common.pin.then(PinnedCores::choose).transpose()?;
    let mut children = Children::new();
    children.watch_signals().context("cannot handle signals")?;
    let dir = tempfile::Builder::new().prefix("ttcp-").tempdir().context("cannot create a directory")?;
    let is_missing = |store: &Store, plan: &Plan, step: &Step, round| {
        !store.is_measured(plan.experiment.name, &step.cell, &step.peer.name, round)
    };
    let missing_count = |plan: &Plan| {
        let store = &*store;
        let steps = |round| plan.steps.iter().filter(|s| is_missing(store, plan, s, round)).count();
        let initial_steps = plan.initial_steps.iter().filter(|s| is_missing(store, plan, s, 0)).count();
        initial_steps + (0..rounds(plan)).map(steps).sum::<usize>()
    };
    let mut progress = Progress::new(plans.iter().map(missing_count).sum::<usize>() as u64);
    let mut context = RunContext {
        children: &mut children,
        dir: dir.path(),
        placement: Placement::loopback(),
        cores: cores.as_ref(),
        timeout: Duration::from_secs(common.timeout),
        deadline: None,
    };
    let mut active = ActiveLink::default();
    for plan in plans {
        for peer in integrity::peers_without_check(plan) {
            eprintln!(
                "ttcp: {}: contents of {peer} are not checked: its server command has no {{check}}",
                plan.experiment.name
            );
        }
        let initial_steps = plan.initial_steps.iter().map(|step| (0, step));
        let steps = (0..rounds(plan))
            .flat_map(|round| steps_of_round(&plan.steps, round as usize).map(move |step| (round, step)));
        // Cell, peer and reason of each failed check.
        let mut failed_checks: Vec<(&Cell, &str, String)> = Vec::new();
        for (number, (round, step)) in initial_steps.chain(steps).enumerate() {
            if !is_missing(store, plan, step, round) {
                continue;
            }
            let (peer, cell) = (&step.peer.name, step.cell.name());
            let title = match number < plan.initial_steps.len() {
                true => format!("{} {peer} {cell}", plan.experiment.name),
                false => {
                    format!("{} round {}/{} {peer} {cell}", plan.experiment.name, round + 1, rounds(plan))
                }
            };
            progress.begin(&title);
            let failed_check =
                failed_checks.iter().find(|(check, peer, _)| integrity::applies_to(check, peer, step));
            let outcome = match failed_check {
                Some((_, _, reason)) if !integrity::is_check(&step.cell) => {
                    Outcome::Failure { failure: reason.clone() }
                }
                _ => match perform(plan, step, &mut active, &mut context) {
                    Err(Failure::Interrupted) => {
                        progress.finish();
                        return Ok(RunEnd::Interrupted);
                    }
                    Ok(outcome) => outcome,
                    Err(failure) => Outcome::Failure { failure: failure.to_string() },
                },
            };
            progress.end(&title, &format_outcome(&outcome));
            if let Outcome::Failure { failure } = &outcome
                && integrity::is_check(&step.cell)
            {
                failed_checks.push((&step.cell, peer, integrity::skip_reason(failure)));
            }
            let (experiment, cell, peer) = (plan.experiment.name.to_owned(), step.cell.clone(), peer.clone());
            store.add(Sample { experiment, cell, peer, round, run: 0, outcome })?;
        }
    }
    progress.finish();
    Ok(RunEnd::Complete)
}

fn perform(
    plan: &Plan,
    step: &Step,
    active: &mut ActiveLink,
    context: &mut RunContext<'_>,
) -> Result<Outcome, Failure> {
    let name = step.cell.word(LINK);
    let link = plan.links.iter().find(|link| name == Some(&link.name())).unwrap_or(&Link::Loopback);
    context.placement = active.placement(link, context.children)?;
    (step.perform)(step, context)
}

/// Returns the steps of a round. In each round, the measurements of each cell start with a different peer.
fn steps_of_round(steps: &[Step], round: usize) -> impl Iterator<Item = &Step> {
    steps.chunk_by(|a, b| a.cell == b.cell).flat_map(move |cell| {
        let (last, first) = cell.split_at(round % cell.len().max(1));
        first.iter().chain(last)
    })
}

impl Step {
    pub(crate) fn run_once(&self, context: &mut RunContext<'_>) -> Result<Outcome, Failure> {
        let dir = context.dir.to_string_lossy();
        let client = self.client_arguments.iter().map(|word| word.replace("{dir}", &dir)).collect();
        let ClientRun { line, processor, .. } =
            self.peer.run_once(&self.server_arguments, client, context)?;
        self.outcome(line, processor, context.dir)
    }

    pub(crate) fn run_client_only(&self, context: &mut RunContext<'_>) -> Result<Outcome, Failure> {
        let line = self.peer.run_client(self.client_arguments.clone(), context)?;
        self.outcome(line, None, context.dir)
    }

    fn outcome(&self, line: Value, processor: Option<ProcessorTime>, dir: &Path) -> Result<Outcome, Failure> {
        let figures = (self.figures)(&ClientOutput { line: &line, dir })
            .map_err(|reason| Failure::BadLine { reason, line: line.to_string() })?;
        Ok(Outcome::Figures { figures, processor, line })
    }
}

fn format_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Figures { figures, .. } => {
            let figure = |(name, figure): (&String, &f64)| {
                format!("{name} {}", crate::figures::format_figure(Some(*figure)))
            };
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

fn print_sections(plans: &[Plan], store: &Store) -> anyhow::Result<()> {
    let data = store.data();
    let is_measured =
        |name: &str| data.samples_of(name).any(|s| matches!(s.outcome, Outcome::Figures { .. }));
    let experiments =
        plans.iter().map(|plan| plan.experiment).filter(|experiment| is_measured(experiment.name));
    let sections = experiments.map(|experiment| (experiment.section)(data)).map(|mut section| {
        section.blocks.retain(|block| block.drawing().is_none());
        section
    });
    let document = Document {
        title: plans.iter().map(|plan| plan.experiment.name).collect::<Vec<_>>().join(", "),
        summary: data.environments.last().map(Environment::summary).into_iter().collect(),
        caveats: Vec::new(),
        sections: sections.collect(),
    };
    std::io::stdout().lock().write_all(markdown::markdown(&document, |_, _| String::new()).as_bytes())?;
    Ok(())
}
