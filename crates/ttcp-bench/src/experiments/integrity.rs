//! The integrity pass: floods before the measured ones, in which servers compare each element with what
//! clients send.
//!
//! A flood that only counts its bytes would be as fast with wrong contents. Comparing takes time, so measured
//! floods do not compare. The same programs are checked immediately before.

use super::driver::ClientOutput;
use super::store::{Cell, Data};
use super::{Figures, Plan, Step, of_line};
use crate::harness::Peer;

/// The setting of cells that belong to this pass.
pub(crate) const PASS: &str = "pass";
/// Its value.
const INTEGRITY: &str = "integrity";
/// Its only figure: checked user bytes / 10^6.
pub(crate) const CHECKED: &str = "checked_mb";
/// Minimum size of such a flood in bytes.
pub(crate) const LEAST: u64 = 256 << 10;
/// Prefix of a server's message about a difference.
const DIFFERS: &str = "contents differ: ";

/// Returns a flood whose contents are compared, for all measurements of the peer that have the settings of
/// this cell. `None` if the peer's server cannot compare.
pub(crate) fn check(peer: &Peer, cell: Cell, client: Vec<String>) -> Option<Step> {
    let cell = cell.with(PASS, INTEGRITY);
    Some(Step { cell, peer: peer.checking()?, server: Vec::new(), client, figures, perform: Step::once })
}

/// Returns whether a cell is such a check.
pub(crate) fn is_check(cell: &Cell) -> bool {
    cell.word(PASS) == Some(INTEGRITY)
}

/// Returns whether a check, passed or failed, applies to a measurement.
pub(crate) fn is_about(check: &Cell, peer: &str, step: &Step) -> bool {
    is_check(check) && step.peer.name == peer && check.without(PASS).is_part_of(&step.cell)
}

/// Returns the peers that a checking plan measures and that cannot compare contents.
pub(crate) fn unchecked(plan: &Plan) -> Vec<&str> {
    let mut names = Vec::new();
    let checks: Vec<&Step> = plan.checks.iter().filter(|step| is_check(&step.cell)).collect();
    for step in plan.steps.iter().filter(|_| !checks.is_empty()) {
        let name = step.peer.name.as_str();
        if !names.contains(&name) && !checks.iter().any(|check| check.peer.name == name) {
            names.push(name);
        }
    }
    names
}

/// Returns why a measurement is skipped after its check failed with `failure`.
pub(crate) fn refused(failure: &str) -> String {
    let differs = failure.find(DIFFERS).and_then(|at| failure.get(at..)?.lines().next());
    match differs {
        Some(differs) => differs.to_owned(),
        None => format!("contents could not be checked: {failure}"),
    }
}

/// Returns a section's text about the pass.
pub(crate) fn format_checks(data: &Data, experiment: &str) -> String {
    let mut told = Vec::new();
    let mut unchecked = Vec::new();
    for peer in data.peers(experiment) {
        let of_pass = |sample: &&super::store::Sample| sample.peer == peer && is_check(&sample.cell);
        let checked: Vec<f64> =
            data.of(experiment).filter(of_pass).filter_map(|sample| sample.figure(CHECKED)).collect();
        match checked.len() {
            0 => unchecked.push(peer),
            floods => told.push(format!("{peer} (floods: {floods}, {:.1} MB)", checked.iter().sum::<f64>())),
        }
    }
    let mut text = if told.is_empty() {
        "Contents were not checked.".to_owned()
    } else {
        format!(
            "Contents: before what is counted, servers compared each element of floods with what clients send, and found no difference: {}.",
            told.join(", ")
        )
    };
    if !told.is_empty() && !unchecked.is_empty() {
        text.push_str(&format!(" Not checked: {}.", unchecked.join(", ")));
    }
    text
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let megabytes = of_line(output.line, "mbit_s")? * of_line(output.line, "secs")? / 8.0;
    Ok([(CHECKED.to_owned(), megabytes)].into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::store::{Outcome, Sample};

    fn octets() -> Cell {
        Cell::default().with("type", "octet")
    }

    fn step(peer: &str, cell: Cell) -> Step {
        let peer = format!("{peer}=server {{check}}::client").parse().unwrap();
        Step { cell, peer, server: Vec::new(), client: Vec::new(), figures, perform: Step::once }
    }

    #[test]
    fn a_check_is_about_the_cells_of_its_peer_that_have_its_settings() {
        let peer: Peer = "a=server {check} x::client".parse().unwrap();
        let check = check(&peer, octets(), vec!["ttcp".into()]).unwrap();
        assert_eq!(check.peer.server, ["server", "--check", "x"]);
        let cell = octets().with("bytes", 1024u64);
        assert!(is_about(&check.cell, "a", &step("a", cell.clone())));
        assert!(!is_about(&check.cell, "a", &step("b", cell.clone())));
        assert!(!is_about(&check.cell, "a", &step("a", cell.with("type", "char"))));
        let mute: Peer = "a=server::client".parse().unwrap();
        assert!(super::check(&mute, octets(), Vec::new()).is_none());
    }

    #[test]
    fn peers_without_integrity_checks_are_listed() {
        let steps = vec![step("a", octets()), step("b", octets()), step("b", Cell::default())];
        let before = vec![step("a", octets().with(PASS, INTEGRITY))];
        let plan = Plan { name: "t", links: Vec::new(), rounds: 1, checks: before, steps };
        assert_eq!(unchecked(&plan), ["b"]);
        assert!(unchecked(&Plan { checks: Vec::new(), ..plan }).is_empty(), "nothing is to be checked");
    }

    #[test]
    fn a_difference_is_told_before_what_came_of_it() {
        let failure = "the client ended with status 1\n    server: contents differ: element 3 of 9\n    more";
        assert_eq!(refused(failure), "contents differ: element 3 of 9");
        assert_eq!(refused("no server"), "contents could not be checked: no server");
    }

    #[test]
    fn a_section_says_what_was_checked() {
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
        let pass = || octets().with(PASS, INTEGRITY);
        let unchecked = || sample("b", octets(), "secs");
        let samples =
            vec![sample("a", pass(), CHECKED), sample("a", pass().with("bytes", 1u64), CHECKED), unchecked()];
        let data = Data::new(Vec::new(), samples);
        let text = format_checks(&data, "t");
        assert!(text.ends_with("found no difference: a (floods: 2, 5.0 MB). Not checked: b."), "{text}");
        let data = Data::new(Vec::new(), vec![unchecked()]);
        assert_eq!(format_checks(&data, "t"), "Contents were not checked.");
    }
}
