//! `ttcp report`: a report of the results in a directory, as an HTML page or in Markdown.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::EXPERIMENTS;
use super::plan::Experiment;
use super::store::{Outcome, StoredResults};
use crate::figures::{Document, Section, markdown, page};
use crate::harness::environment::Environment;
use crate::literature::PublishedTable;

/// Options of `ttcp report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// A directory of results
    pub dir: PathBuf,
    /// Write DIR/report.md, with charts in DIR/charts, instead of DIR/report.html
    #[arg(long)]
    pub markdown: bool,
    /// Write the report into this directory instead of DIR
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// The title of the report
    #[arg(long, default_value = "zorb compared with sockets and other ORBs")]
    pub title: String,
}

/// Writes the report and prints its path.
pub fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let data = StoredResults::read(&args.dir)?;
    let document = document(&data, &args.title);
    let to = args.to.as_ref().unwrap_or(&args.dir);
    fs::create_dir_all(to).with_context(|| format!("cannot create the directory {}", to.display()))?;
    let path = if args.markdown { write_markdown(&document, to)? } else { write_page(&document, to)? };
    println!("{}", path.display());
    Ok(())
}

fn write_page(document: &Document, to: &Path) -> anyhow::Result<PathBuf> {
    let path = to.join("report.html");
    write(&path, &page::page(document)?)?;
    Ok(path)
}

fn write_markdown(document: &Document, to: &Path) -> anyhow::Result<PathBuf> {
    let charts = to.join("charts");
    let file_name = |section: &str, index: usize| format!("{section}-{}.svg", index + 1);
    for section in &document.sections {
        for (index, drawing) in section.drawings().enumerate() {
            fs::create_dir_all(&charts).with_context(|| format!("cannot create {}", charts.display()))?;
            write(&charts.join(file_name(&section.id, index)), &drawing.svg_file()?)?;
        }
    }
    let path = to.join("report.md");
    let chart_link = |section: &str, index| format!("charts/{}", file_name(section, index));
    write(&path, &markdown::markdown(document, chart_link))?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn document(data: &StoredResults, title: &str) -> Document {
    let is_measured =
        |name: &str| data.samples_of(name).any(|s| matches!(s.outcome, Outcome::Figures { .. }));
    let sections = EXPERIMENTS
        .iter()
        .filter(|experiment| is_measured(experiment.name))
        .map(|experiment| section(experiment, data))
        .collect();
    Document { title: title.to_owned(), summary: summary(data), caveats: caveats(data), sections }
}

fn summary(data: &StoredResults) -> Vec<String> {
    let has_samples = |number: usize| data.samples().iter().any(|sample| sample.run == number);
    let runs: Vec<(usize, &Environment)> =
        data.environments.iter().enumerate().filter(|(number, _)| has_samples(*number)).collect();
    if let [(_, environment)] = runs[..] {
        return vec![environment.summary()];
    }
    let mut summary: Vec<String> = Vec::new();
    let mut last = String::new();
    for (number, environment) in runs {
        let machine = environment.describe_machine();
        if machine != last {
            summary.push(machine.clone());
            last = machine;
        }
        summary.push(format!("Run {}: {}", number + 1, environment.describe_run()));
    }
    summary
}

fn section(experiment: &Experiment, data: &StoredResults) -> Section {
    let mut section = (experiment.section)(data);
    let sources: Vec<String> =
        experiment.published_ids.iter().filter_map(|id| Some(PublishedTable::of(id)?.source())).collect();
    if !sources.is_empty() {
        section.text(format!("Compared with: {}.", sources.join("; ")));
    }
    section
}

fn caveats(data: &StoredResults) -> Vec<String> {
    let mut caveats = vec![
        "Peers are measured in turn within each round, so that other activity of the machine affects all peers. Only figures of \
         the same run are comparable."
            .to_owned(),
        "Unless a section says otherwise, both sides run on one machine, and share its caches and memory.".to_owned(),
        "Published figures are from machines and networks of their time. Only ratios within a source are comparable."
            .to_owned(),
    ];
    let mut commits: Vec<_> = data.environments.iter().map(|e| (e.commit.as_deref(), e.modified)).collect();
    commits.dedup();
    if commits.len() > 1 {
        caveats.push("The runs used different versions of the source tree.".to_owned());
    }
    if data.environments.iter().any(|e| e.modified == Some(true)) {
        caveats.push("The source tree had uncommitted changes.".to_owned());
    }
    if data.environments.iter().any(|e| !e.optimised) {
        caveats.push("A run used a debug build: its figures are meaningless.".to_owned());
    }
    let failures = data.failures();
    caveats.extend(failures.into_iter().map(|failure| format!("Not measured: {failure}")));
    caveats
}
