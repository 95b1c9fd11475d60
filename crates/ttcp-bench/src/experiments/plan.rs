//! The parts of an experiment: cells (combinations of settings), measurements, and a section of the report.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::store::{Cell, Outcome, StoredResults};
use crate::figures::Section;
use crate::harness::Peer;
use crate::harness::links::Link;
use crate::harness::peers::{Failure, RunContext};
use crate::work::Element;

/// The setting that names the network link between client and server. Cells without it use loopback.
pub(crate) const LINK: &str = "link";

pub(crate) struct Experiment {
    /// The name of the subcommand, which is also stored in each sample.
    pub(crate) name: &'static str,
    /// The ids in [`literature`](crate::literature) of the published results that the experiment reproduces.
    pub(crate) published_ids: &'static [&'static str],
    /// Builds the section of the report, from results with at least one sample of the experiment.
    pub(crate) section: fn(&StoredResults) -> Section,
}

/// A measurement of one cell with one peer.
pub(crate) struct Step {
    pub(crate) cell: Cell,
    pub(crate) peer: Peer,
    /// Arguments that are appended to the server's command.
    pub(crate) server_arguments: Vec<String>,
    /// The arguments of the client: a test and its options.
    pub(crate) client_arguments: Vec<String>,
    pub(crate) figures: FigureFn,
    /// Performs the measurement: [`Step::run_once`] if one run of server and client yields all figures.
    pub(crate) perform: fn(&Step, &mut RunContext<'_>) -> Result<Outcome, Failure>,
}

impl Step {
    pub(crate) fn new(cell: &Cell, peer: &Peer, client_arguments: Vec<String>, figures: FigureFn) -> Step {
        let (cell, peer) = (cell.clone(), peer.clone());
        Step { cell, peer, server_arguments: Vec::new(), client_arguments, figures, perform: Step::run_once }
    }
}

/// Reads figures from a client's output. An error text follows "the client's last line is not a result: ".
pub(crate) type FigureFn = fn(&ClientOutput<'_>) -> Result<Figures, String>;

/// Figures by name. A name ends in the unit of its figure, if it has one, such as `p50_us`.
pub(crate) type Figures = BTreeMap<String, f64>;

pub(crate) struct Plan {
    pub(crate) experiment: &'static Experiment,
    pub(crate) rounds: u32,
    /// The links of the cells that have the setting [`LINK`].
    pub(crate) links: Vec<Link>,
    /// Steps that are performed once, before the rounds, such as [`check_step`](super::integrity::check_step)
    /// and [`counting_step`](super::calls::counting_step).
    pub(crate) initial_steps: Vec<Step>,
    /// The measurements of a round. Measurements of the same cell are adjacent.
    pub(crate) steps: Vec<Step>,
}

pub(crate) struct ClientOutput<'s> {
    pub(crate) line: &'s Value,
    /// The directory of the run, in which the client may have written files.
    pub(crate) dir: &'s Path,
}

/// Returns the figure `name` of the client's line, which must be positive.
pub(crate) fn line_figure(line: &Value, name: &str) -> Result<f64, String> {
    let figure = line.get(name).and_then(Value::as_f64).ok_or_else(|| format!("it has no {name}"))?;
    if figure.is_finite() && figure > 0.0 { Ok(figure) } else { Err(format!("{name} is {figure}")) }
}

pub(crate) fn line_figures(line: &Value, names: &[&str]) -> Result<Figures, String> {
    names.iter().map(|name| Ok(((*name).to_owned(), line_figure(line, name)?))).collect()
}

/// Returns the client's arguments for the test `ttcp`, which sends elements in buffers of `size` bytes until
/// `total` bytes are sent. If `total` is `None`, the caller must append `--total`.
pub(crate) fn flood_arguments(element: Element, size: u64, total: impl Into<Option<u64>>) -> Vec<String> {
    let total = total.into().map(|total| format!(" --total {total}")).unwrap_or_default();
    format!("ttcp --type {element} --size {size}{total}").split(' ').map(str::to_owned).collect()
}
