//! Calls of the last operation, with each look-up strategy.

use std::collections::BTreeSet;
use std::fs;

use super::{run, samples, tests_all, text, ttcp};

/// The strategies' peers: two searches by name, one by number, and one together with the object.
const STRATEGIES: [&str; 4] = ["zorb-linear", "zorb", "zorb-numeric", "zorb-delayered"];

#[test]
fn every_strategy_finds_the_last_operation_and_the_server_counts_it() {
    let dir = tempfile::tempdir().unwrap();
    let line = "demultiplexing --quick --iterations 1,2 --strategies linear,perfect,numeric,delayered --peers raw,zorb --out r";
    // An empty PATH hides callgrind.
    let out = ttcp(dir.path(), &line.split(' ').collect::<Vec<_>>()).env("PATH", "").output().unwrap();
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(
        out.status.success() && stderr.contains("demultiplexing does not measure functions of the server"),
        "{stdout}{stderr}"
    );

    let all = samples(&dir.path().join("r"));
    let cells: BTreeSet<String> =
        all.iter().map(|s| format!("{} {} {}", s["cell"], s["peer"], s["round"])).collect();
    assert_eq!((all.len(), cells.len()), (2 * 2 * 5, 2 * 2 * 5), "two calls, two lengths, five peers");
    for sample in &all {
        let figure = |name: &str| sample["figures"][name].as_f64();
        let (cell, line) = (&sample["cell"], &sample["line"]);
        assert_eq!(line["counted"], 100 * cell["iterations"].as_u64().unwrap(), "{sample}");
        assert_eq!(line["operations"], cell["operations"], "{sample}");
        assert_eq!(line["oneway"], cell["call"] == "oneway", "{sample}");
        assert!(figure("secs") > Some(0.0) && figure("counted_secs") >= figure("secs"), "{sample}");
        let peer = sample["peer"].as_str().unwrap();
        let looks_up = peer != "raw" && peer != "zorb-delayered";
        assert_eq!(figure("lookup_ns").is_some_and(|ns| ns > 0.0), looks_up, "{sample}");
    }

    // Table 8 and 10: a row for each strategy except the baseline, and the published rows.
    for strategy in &STRATEGIES[1..] {
        let rows = stdout
            .lines()
            .filter(|line| line.starts_with(&format!("| {strategy} ")) && line.contains(" - |"));
        assert!(rows.count() >= 2, "{strategy}: {stdout}");
    }
    let row =
        |start: &str, has: &str| stdout.lines().any(|line| line.starts_with(start) && line.contains(has));
    assert!(row("| Original Orbix ", " 263.70 |") && row("| Orbix ", " 28.52 |"), "{stdout}");
    assert!(row("| strcmp ", " 3764 |") && row("| atoi ", " 44 |"), "{stdout}");

    assert!(text(&run(dir.path(), &["report", "r"]).stdout).contains("report.html"));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 2, "two-way and oneway");
}

/// callgrind executes each server twice, which takes seconds. Therefore only some strategies are measured,
/// and sockets only with `ZORB_TESTS=all` (as in `.ci/full`).
#[test]
fn instructions_of_servers_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let line = "demultiplexing --quick --iterations 1 --strategies linear,perfect --peers PEERS --out r";
    let (all, peers) = if tests_all() { (true, "raw,zorb") } else { (false, "zorb") };
    let line = line.replace("PEERS", peers);
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    let mut executed = samples(&dir.path().join("r"));
    executed.retain(|sample| !sample["cell"]["by"].is_null());
    if stderr.contains("demultiplexing does not measure functions of the server") {
        assert!(executed.is_empty());
        return;
    }
    assert_eq!(executed.len(), if all { 3 } else { 2 }, "each server once");
    let instructions = |peer: &str| {
        let sample = executed.iter().find(|sample| sample["peer"] == peer).unwrap();
        assert!(sample["line"]["functions"].as_array().unwrap().len() > 5, "{sample}");
        sample["figures"]["call_instructions"].as_f64().unwrap()
    };
    // Counts, not times: a hundred comparisons cost more than one, and everything costs more than sockets.
    assert!(instructions("zorb-linear") > instructions("zorb"));
    assert!(!all || instructions("zorb") > instructions("raw"));
}

/// Simulates an old server: one without the object that is queried, or with another operation.
#[test]
fn a_server_that_does_not_count_is_not_measured() {
    let dir = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_ttcp");
    let peer = format!("odd={program} raw-server --port 0::{program} raw-client ping --n 10 --port {{port}}");
    let line = ["demux", "--quick", "--iterations", "1", "--peers", "none", "--peer", &peer, "--out", "r"];
    // An empty PATH hides callgrind.
    let out = ttcp(dir.path(), &line).env("PATH", "").output().unwrap();
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(" measurement(s) failed"), "{stderr}");
}

#[test]
fn interfaces_that_are_not_there_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(dir.path(), &["demultiplexing", "--operations", "99"]);
    let stderr = text(&out.stderr);
    assert!(stderr.contains("there is no interface of 99 operations, only of 100 and 1000"), "{stderr}");
    if cfg!(debug_assertions) {
        let line = "demultiplexing --quick --operations 1000 --iterations 1 --peers raw,zorb --out r";
        let out = ttcp(dir.path(), &line.split(' ').collect::<Vec<_>>()).env("PATH", "").output().unwrap();
        let stderr = text(&out.stderr);
        assert!(out.status.success(), "{stderr}");
        assert!(stderr.contains("zorb is left out for 1000 operations"), "{stderr}");
        assert!(samples(&dir.path().join("r")).iter().all(|sample| sample["peer"] == "raw"));
    }
}
