//! The check of contents: floods before the measured ones, in which servers compare each received element
//! with its expected value.
//!
//! A server that only counts bytes would not notice wrong contents. Comparing takes time. Therefore the
//! measured floods do not compare contents, but the same programs are checked before the first round.

use super::plan::{ClientOutput, Figures, Plan, Step, line_figure};
use super::store::{Cell, StoredResults};
use crate::harness::Peer;

/// The name of a setting that marks the cells of the initial steps, which precede the rounds.
pub(crate) const INITIAL_STEP_SETTING: &str = "pass";
/// The value of this setting for checks of contents.
const INTEGRITY: &str = "integrity";
/// The only figure of a check: checked user bytes / 10^6.
pub(crate) const CHECKED_MB: &str = "checked_mb";
/// Minimum size of a flood whose contents are checked.
pub(crate) const MIN_FLOOD_BYTES: u64 = 256 << 10;
/// Start of a server's message about a difference.
const DIFFERENCE_PREFIX: &str = "contents differ: ";

/// Returns a flood whose contents are compared. The check applies to all measurements of the peer whose cells
/// have the settings of `cell`. `None` if the peer's server cannot compare contents.
pub(crate) fn check_step(peer: &Peer, cell: Cell, client: Vec<String>) -> Option<Step> {
    Some(Step::new(&cell.with(INITIAL_STEP_SETTING, INTEGRITY), &peer.with_check()?, client, figures))
}

pub(crate) fn is_check(cell: &Cell) -> bool {
    cell.word(INITIAL_STEP_SETTING) == Some(INTEGRITY)
}

pub(crate) fn applies_to(check: &Cell, peer: &str, step: &Step) -> bool {
    is_check(check) && step.peer.name == peer && check.without(INITIAL_STEP_SETTING).is_part_of(&step.cell)
}

pub(crate) fn peers_without_check(plan: &Plan) -> Vec<&str> {
    let mut names = Vec::new();
    let checks: Vec<&Step> = plan.initial_steps.iter().filter(|step| is_check(&step.cell)).collect();
    for step in plan.steps.iter().filter(|_| !checks.is_empty()) {
        let name = step.peer.name.as_str();
        if !names.contains(&name) && !checks.iter().any(|check| check.peer.name == name) {
            names.push(name);
        }
    }
    names
}

/// Returns the reason to skip the measurements whose check failed with `failure`.
pub(crate) fn skip_reason(failure: &str) -> String {
    match failure.find(DIFFERENCE_PREFIX).and_then(|at| failure.get(at..)?.lines().next()) {
        Some(difference) => difference.to_owned(),
        None => format!("contents could not be checked: {failure}"),
    }
}

pub(crate) fn format_checks(data: &StoredResults, experiment: &str) -> String {
    let mut checked_peers = Vec::new();
    let mut unchecked = Vec::new();
    for peer in data.peers(experiment) {
        let is_checked = |sample: &&super::store::Sample| sample.peer == peer && is_check(&sample.cell);
        let samples = data.samples_of(experiment).filter(is_checked);
        let checked: Vec<f64> = samples.filter_map(|sample| sample.figure(CHECKED_MB)).collect();
        match checked.len() {
            0 => unchecked.push(peer),
            floods => checked_peers
                .push(format!("{peer} (floods: {floods}, {:.1} MB)", checked.iter().sum::<f64>())),
        }
    }
    let mut text = if checked_peers.is_empty() {
        "No check of contents succeeded.".to_owned()
    } else {
        format!(
            "Contents: before the measurements, servers compared each received element with its expected value. Floods in which they found no difference: {}.",
            checked_peers.join(", ")
        )
    };
    if !checked_peers.is_empty() && !unchecked.is_empty() {
        text.push_str(&format!(" Peers without a successful check: {}.", unchecked.join(", ")));
    }
    text
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let megabytes = line_figure(output.line, "mbit_s")? * line_figure(output.line, "secs")? / 8.0;
    Ok([(CHECKED_MB.to_owned(), megabytes)].into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::plan::Experiment;
    use crate::experiments::store::{Outcome, Sample};

    fn octet_cell() -> Cell {
        Cell::default().with("type", "octet")
    }

    const EXPERIMENT: Experiment = Experiment { name: "t", published_ids: &[], section: |_| unreachable!() };

    fn step(peer: &str, cell: Cell) -> Step {
        let peer = format!("{peer}=server {{check}}::client").parse().unwrap();
        Step::new(&cell, &peer, Vec::new(), figures)
    }

    #[test]
    fn a_check_applies_to_the_cells_of_its_peer_with_the_same_settings() {
        let peer: Peer = "a=server {check} x::client".parse().unwrap();
        let check = check_step(&peer, octet_cell(), vec!["ttcp".into()]).unwrap();
        assert_eq!(check.peer.server, ["server", "--check", "x"]);
        let cell = octet_cell().with("bytes", 1024u64);
        assert!(applies_to(&check.cell, "a", &step("a", cell.clone())));
        assert!(!applies_to(&check.cell, "a", &step("b", cell.clone())));
        assert!(!applies_to(&check.cell, "a", &step("a", cell.with("type", "char"))));
        let without_check: Peer = "a=server::client".parse().unwrap();
        assert!(check_step(&without_check, octet_cell(), Vec::new()).is_none());
    }

    #[test]
    fn peers_without_checks_are_listed() {
        let steps = vec![step("a", octet_cell()), step("b", octet_cell()), step("b", Cell::default())];
        let initial_steps = vec![step("a", octet_cell().with(INITIAL_STEP_SETTING, INTEGRITY))];
        let plan = Plan { experiment: &EXPERIMENT, links: Vec::new(), rounds: 1, initial_steps, steps };
        assert_eq!(peers_without_check(&plan), ["b"]);
        assert!(
            peers_without_check(&Plan { initial_steps: Vec::new(), ..plan }).is_empty(),
            "a plan without checks"
        );
    }

    #[test]
    fn the_skip_reason_contains_only_the_difference() {
        let failure = "the client ended with status 1\n    server: contents differ: element 3 of 9\n    more";
        assert_eq!(skip_reason(failure), "contents differ: element 3 of 9");
        assert_eq!(skip_reason("no server"), "contents could not be checked: no server");
    }

    #[test]
    fn the_text_lists_checked_and_unchecked_peers() {
        let sample = |peer: &str, cell: Cell, figure: &str| Sample {
            experiment: "t".into(),
            cell,
            peer: peer.into(),
            round: 0,
            run: 0,
            outcome: Outcome::Figures {
                figures: [(figure.to_owned(), 2.5)].into(),
                processor: None,
                line: serde_json::Value::Null,
            },
        };
        let check_cell = || octet_cell().with(INITIAL_STEP_SETTING, INTEGRITY);
        let unchecked = || sample("b", octet_cell(), "secs");
        let samples = vec![
            sample("a", check_cell(), CHECKED_MB),
            sample("a", check_cell().with("bytes", 1u64), CHECKED_MB),
            unchecked(),
        ];
        let data = StoredResults::new(Vec::new(), samples);
        let text = format_checks(&data, "t");
        assert!(
            text.ends_with(
                "found no difference: a (floods: 2, 5.0 MB). Peers without a successful check: b."
            ),
            "{text}"
        );
        let data = StoredResults::new(Vec::new(), vec![unchecked()]);
        assert_eq!(format_checks(&data, "t"), "No check of contents succeeded.");
    }
}
