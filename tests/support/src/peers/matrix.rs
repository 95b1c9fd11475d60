//! The matrix of tested combinations, one line a cell. `scripts/interop-matrix.sh` formats it as a table.

use std::fs::{self, OpenOptions};
use std::io::Write;

/// zorb's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `zorb -> peer`
    Client,
    /// `peer -> zorb`
    Server,
}

/// The result of a cell. A failing combination writes no cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything passed.
    Good,
    /// Everything passed except known defects of the peer.
    Known,
    /// Nothing was tested.
    Left,
}

/// Writes a cell: `peer role version feature outcome`, separated by tabs.
///
/// # Panics
/// The file cannot be written.
pub fn cell(peer: &str, role: Role, version: &str, feature: &str, outcome: Outcome) {
    let role = match role {
        Role::Client => "server",
        Role::Server => "client",
    };
    let outcome = match outcome {
        Outcome::Good => "ok",
        Outcome::Known => "known",
        Outcome::Left => "skip",
    };
    let path = super::root().join("target/interop/matrix.tsv");
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("target can be written");
    let mut file =
        OpenOptions::new().append(true).create(true).open(path).expect("the matrix can be written");
    // A single write, so that lines of concurrent tests are not mixed.
    let line = format!("{peer}\t{role}\t{version}\t{feature}\t{outcome}\n");
    file.write_all(line.as_bytes()).expect("the matrix can be written");
}

/// Writes the cells of a run of all checks (`ok NAME`, `skip NAME: why`): one for the way of reaching the
/// server, and one for each feature.
pub fn cells(peer: &str, role: Role, version: &str, way: &str, lines: &[String]) {
    cell(peer, role, version, way, Outcome::Good);
    for feature in FEATURES {
        let of_feature = lines.iter().filter(|line| {
            let name = line.split([' ', ':']).nth(1).unwrap_or_default();
            feature_of(name) == feature
        });
        let (mut outcome, mut tried) = (Outcome::Left, false);
        for line in of_feature {
            if line.contains("known defect") {
                outcome = Outcome::Known;
            }
            tried |= line.starts_with("ok ");
        }
        if tried && outcome == Outcome::Left {
            outcome = Outcome::Good;
        }
        cell(peer, role, version, feature, outcome);
    }
}

const FEATURES: [&str; 9] =
    ["types", "text", "wide text", "references", "exceptions", "oneways", "large", "forward", "forward perm"];

fn feature_of(check: &str) -> &'static str {
    match check {
        "latin1_text" | "utf8_text" => "text",
        "location_forward" => "forward",
        "moved" => "forward perm",
        "oneways" => "oneways",
        "nodes" | "echo_references" | "inheritance" | "callbacks" | "locate" => "references",
        "user_exceptions" | "system_exceptions" | "unlisted_exception" | "unknown_operation" | "guard"
        | "unknown_object" | "gone" => "exceptions",
        "odd_request" | "echo_huge" => "large",
        large if large.starts_with("large_") || large.ends_with("_across_fragments") => "large",
        wide if wide.contains("wide")
            || wide.starts_with("echo_wchar")
            || wide.starts_with("echo_wstring") =>
        {
            "wide text"
        }
        _ => "types",
    }
}
