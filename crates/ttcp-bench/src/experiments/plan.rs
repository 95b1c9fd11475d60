//! What an experiment consists of: its cells, their measurements, and its section of the report.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::store::{Cell, Data, Outcome};
use crate::figures::Section;
use crate::harness::Peer;
use crate::harness::links::Link;
use crate::harness::peers::{Failure, Site};
use crate::work::Element;

/// The setting of a cell with the name of the link between client and server. Cells without it use the
/// loopback device.
pub(crate) const LINK: &str = "link";

pub(crate) struct Experiment {
    /// The name of the subcommand, also used in samples.
    pub(crate) name: &'static str,
    /// The published results that the experiment reproduces: ids of [`literature`](crate::literature).
    pub(crate) published_ids: &'static [&'static str],
    /// Builds the section of the report. The data has at least one sample of the experiment.
    pub(crate) section: fn(&Data) -> Section,
}

/// A measurement of a cell with a peer, performed once in each round.
pub(crate) struct Step {
    pub(crate) cell: Cell,
    pub(crate) peer: Peer,
    pub(crate) server: Vec<String>,
    pub(crate) client: Vec<String>,
    pub(crate) figures: FigureFn,
    /// Performs the measurement: [`Step::run_once`] if one run of server and client yields all figures.
    pub(crate) perform: fn(&Step, &mut Site<'_>) -> Result<Outcome, Failure>,
}

impl Step {
    pub(crate) fn new(cell: &Cell, peer: &Peer, client: Vec<String>, figures: FigureFn) -> Step {
        let (cell, peer) = (cell.clone(), peer.clone());
        Step { cell, peer, server: Vec::new(), client, figures, perform: Step::run_once }
    }
}

pub(crate) type FigureFn = fn(&ClientOutput<'_>) -> Result<Figures, String>;

/// Figures by their names, which end in their units.
pub(crate) type Figures = BTreeMap<String, f64>;

pub(crate) struct Plan {
    pub(crate) experiment: &'static Experiment,
    pub(crate) rounds: u32,
    /// The links of the cells that have the setting [`LINK`].
    pub(crate) links: Vec<Link>,
    /// Steps that are performed once before the rounds: see [`check`](super::integrity::check) and
    /// [`counting_step`](super::calls::counting_step).
    pub(crate) checks: Vec<Step>,
    /// The measurements of a round. Those of one cell are adjacent.
    pub(crate) steps: Vec<Step>,
}

pub(crate) struct ClientOutput<'s> {
    pub(crate) line: &'s Value,
    pub(crate) dir: &'s Path,
}

pub(crate) fn line_figure(line: &Value, name: &str) -> Result<f64, String> {
    let figure = line.get(name).and_then(Value::as_f64).ok_or_else(|| format!("it has no {name}"))?;
    if figure.is_finite() && figure > 0.0 { Ok(figure) } else { Err(format!("{name} is {figure}")) }
}

pub(crate) fn line_figures(line: &Value, names: &[&str]) -> Result<Figures, String> {
    names.iter().map(|name| Ok(((*name).to_owned(), line_figure(line, name)?))).collect()
}

/// Returns the client's arguments for a flood. Without `total`, it has to be added.
pub(crate) fn flood(element: Element, size: u64, total: impl Into<Option<u64>>) -> Vec<String> {
    let total = total.into().map(|total| format!(" --total {total}")).unwrap_or_default();
    format!("ttcp --type {element} --size {size}{total}").split(' ').map(str::to_owned).collect()
}
