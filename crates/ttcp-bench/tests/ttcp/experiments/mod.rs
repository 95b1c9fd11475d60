//! Experiments from a user's view: real processes, tiny work, stored results, reports.

mod demultiplexing;
mod integrity;
mod ladder;
mod page;
mod record;
mod scale;
mod series;
mod throughput;
mod whitebox;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn ttcp(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ttcp"));
    command.args(arguments).stdin(Stdio::null()).current_dir(dir);
    command
}

fn run(dir: &Path, arguments: &[&str]) -> Output {
    ttcp(dir, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns whether a peer was not built because something is not installed. Where everything must be
/// installed, that is a failure.
fn is_left_out(built: &str) -> bool {
    let left_out = built.contains("LEFT OUT: ");
    assert!(!left_out || std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{built}");
    if left_out {
        eprintln!("SKIPPED: {built}");
    }
    left_out
}

/// Returns the measurements of a directory.
fn samples(dir: &Path) -> Vec<Value> {
    all_samples(dir).into_iter().filter(|sample| sample["cell"]["pass"].is_null()).collect()
}

/// Returns the measurements of a directory, and the checks that preceded them.
fn all_samples(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("samples.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_quick_run_has_every_cell_and_a_report_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(
        dir.path(),
        &[
            "latency", "--quick", "--n", "50", "--repeat", "2", "--peers", "raw,zorb", "--out", "r",
            "--json", "r.json",
        ],
    );
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    assert!(
        stdout.contains("| raw ") && stdout.contains("| zorb ") && !stdout.contains("failed"),
        "{stdout}"
    );

    let all = samples(&dir.path().join("r"));
    let cells: BTreeSet<String> =
        all.iter().map(|s| format!("{} {} {}", s["cell"], s["peer"], s["round"])).collect();
    assert_eq!((all.len(), cells.len()), (5 * 2 * 2, 5 * 2 * 2), "five cells, two peers, two rounds");
    for sample in &all {
        let figure =
            |name: &str| sample["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {sample}"));
        let quantiles = ["p50_us", "p90_us", "p99_us", "p99.9_us", "max_us"].map(figure);
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{sample}");
        assert!(figure("corrected_p99.9_us") >= figure("corrected_p99_us"), "{sample}");
        assert_eq!(sample["line"]["n"], 50);
    }
    let json: Value = serde_json::from_str(&fs::read_to_string(dir.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(json["samples"].as_array().unwrap().len(), all.len());
    assert!(json["environments"][0]["kernel"].is_string());

    let out = run(dir.path(), &["report", "r"]);
    assert_eq!(text(&out.stdout), "r/report.html\n", "{}", text(&out.stderr));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 2, "octets and structs");
    assert!(page.contains("<td class=\"figure published\">642</td>"), "published figures stand beside");
    let out = run(dir.path(), &["report", "r", "--markdown", "--to", "m"]);
    assert_eq!(text(&out.stdout), "m/report.md\n");
    let markdown = fs::read_to_string(dir.path().join("m/report.md")).unwrap();
    for chart in ["charts/latency-1.svg", "charts/latency-2.svg"] {
        assert!(markdown.contains(chart) && dir.path().join("m").join(chart).exists(), "{chart}");
    }

    let out = run(dir.path(), &["compare", "r", "r", "--figure", "p50"]);
    let stdout = text(&out.stdout);
    assert_eq!(stdout.matches("too few rounds").count(), 5 * 2, "{stdout}");
}

fn experiments_of_all() -> BTreeSet<&'static str> {
    ["demultiplexing", "deposit", "ladder", "latency", "scale", "series", "throughput", "whitebox"].into()
}

/// Returns whether tests use all variants instead of a selection.
fn tests_all() -> bool {
    std::env::var_os("ZORB_TESTS").is_some_and(|tests| tests == "all")
}

/// Without profilers, which the tests of single experiments cover; with `ZORB_TESTS=all` (as in `.ci/full`)
/// with them.
#[test]
fn all_experiments_run_into_one_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = ttcp(dir.path(), &["run", "--all", "--quick", "--peers", "raw", "--out", "r"]);
    if !tests_all() {
        command.env("PATH", dir.path());
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = all_samples(&dir.path().join("r"));
    let experiments: BTreeSet<&str> =
        all.iter().map(|sample| sample["experiment"].as_str().unwrap()).collect();
    assert_eq!(experiments, experiments_of_all());
    assert!(text(&run(dir.path(), &["report", "r"]).stdout).contains("report.html"));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    for experiment in experiments {
        assert!(page.contains(&format!("<section id=\"{experiment}\">")), "{experiment}");
    }
    let out = run(dir.path(), &["run", "--all", "--types", "octet"]);
    assert!(text(&out.stderr).contains("cannot be used with"), "{}", text(&out.stderr));
    assert!(!run(dir.path(), &["run", "--out", "r"]).status.success(), "--out is for --all");
    let out = run(dir.path(), &["run", "--dry-run"]);
    assert!(
        !out.status.success() && text(&out.stderr).contains("--dry-run requires --all"),
        "{}",
        text(&out.stderr)
    );
    let out = run(dir.path(), &["run", "--all", "--dry-run", "--peers", "raw", "--out", "d"]);
    let stdout = text(&out.stdout);
    assert!(out.status.success() && !fs::exists(dir.path().join("d")).unwrap(), "{}", text(&out.stderr));
    assert_eq!(stdout.lines().count(), 2 + experiments_of_all().len() + 1, "{stdout}");
}

#[test]
fn external_peers_that_are_built_are_measured_like_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(dir.path(), &["peers", "build", "c"]);
    let stderr = text(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    if is_left_out(&stderr) {
        return;
    }
    assert!(
        text(&run(dir.path(), &["peers", "list"]).stdout)
            .lines()
            .any(|l| l.starts_with("| c ") && l.contains("| built"))
    );
    let out =
        run(dir.path(), &["latency", "--quick", "--n", "20", "--units", "3", "--peers", "c", "--out", "r"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = samples(&dir.path().join("r"));
    assert_eq!(all.len(), 3);
    assert!(
        all.iter().all(|sample| sample["figures"]["p99.9_us"].is_f64()),
        "the times of all calls: {all:?}"
    );
    let out = run(
        dir.path(),
        &["deposit", "--quick", "--total", "1M", "--peers", "c,c-zero-copy,zorb", "--out", "d"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = samples(&dir.path().join("d"));
    assert_eq!(all.len(), 2 * 3);
    for sample in all {
        let lent = sample["figures"]["copied_pct"].as_f64();
        assert_eq!(
            lent.is_some_and(|copied| (0.0..=100.0).contains(&copied)),
            sample["peer"] == "c-zero-copy",
            "{sample}"
        );
    }
    let out = run(
        dir.path(),
        &["run", "--quick", "--peers", "raw,c", "--tests", "ping", "--n", "20", "--repeat", "1"],
    );
    assert!(text(&out.stdout).contains("c / raw"), "{}", text(&out.stderr));
    let out = run(dir.path(), &["peers", "build", "rtorb"]);
    assert!(
        text(&out.stderr)
            .contains("there is no peer 'rtorb' to build, only: c, cxx, rpc, tonic, omniorb, jacorb")
    );
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["latency", "--quick", "--n", "20", "--repeat", "40", "--peers", "raw", "--out", "r"];
    let mut child =
        ttcp(dir.path(), &arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("[7/") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted; a run with --out r continues"), "{rest}");
    let kept = samples(&dir.path().join("r")).len();
    assert!((7..200).contains(&kept), "{kept}");

    let mut less = arguments;
    less[5] = "2";
    let out = run(dir.path(), &less);
    let stderr = text(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    let rounds = samples(&dir.path().join("r")).into_iter().filter(|s| s["round"].as_u64().unwrap() < 2);
    assert_eq!(rounds.count(), 2 * 5, "each once");
}

#[test]
fn a_peer_that_fails_is_told_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let common = ["latency", "--quick", "--n", "20", "--units", "1", "--out", "r"];
    let bad = "other=sh -c exit@7::true".replace('@', "\u{a0}");
    let out = run(dir.path(), &[&common[..], &["--peers", "raw", "--peer", &bad]].concat());
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("latency, other, ping: the server ended with status"), "{stderr}");
    assert!(stderr.contains("3 measurement(s) failed; a run with --out r repeats them"), "{stderr}");
    let program = env!("CARGO_BIN_EXE_ttcp");
    let good = format!("other={program} raw-server --port 0::{program} raw-client {{args}} --port {{port}}");
    let out = run(dir.path(), &[&common[..], &["--peers", "raw", "--peer", &good]].concat());
    let stderr = text(&out.stderr);
    assert!(out.status.success() && stderr.contains("[3/3"), "only what failed: {stderr}");
    // Without the times of its calls there are fewer figures.
    let all = samples(&dir.path().join("r"));
    let of_other = all.iter().rfind(|sample| sample["peer"] == "other").unwrap();
    assert!(of_other["figures"]["p50_us"].is_f64() && of_other["figures"]["p90_us"].is_null(), "{of_other}");
}

#[test]
fn wrong_options_say_what_is_right() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, told) in [
        (&["latency", "--peers", "zorp"][..], "there is no peer 'zorp', only: raw, zorb"),
        (&["report", "none"], "none has no results: use a directory that an experiment had as --out"),
        (&["compare", "a", "b"], "a has no results"),
        (&["latency", "--units", "0"], "0 is not in 1.."),
        (&["latency", "--quick", "--out", "/proc/none"], "cannot create the directory /proc/none"),
    ] {
        let out = run(dir.path(), arguments);
        let stderr = text(&out.stderr);
        assert!(!out.status.success() && stderr.contains(told), "{arguments:?}: {stderr}");
    }
}

/// A failed write ends the run; earlier results are kept.
#[test]
fn a_full_disk_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let line = format!(
        "trap '' XFSZ; ulimit -f 6; exec {} latency --quick --n 20 --repeat 9 --peers raw --out r",
        env!("CARGO_BIN_EXE_ttcp")
    );
    let out = Command::new("sh").args(["-c", &line]).current_dir(dir.path()).output().unwrap();
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write into r (earlier results are intact): File too large"), "{stderr}");
    let out = run(dir.path(), &["report", "r"]);
    assert!(out.status.success(), "{}", text(&out.stderr));

    fs::create_dir(dir.path().join("odd")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("odd/samples.jsonl")).unwrap();
    let out = run(dir.path(), &["report", "odd"]);
    assert!(text(&out.stderr).contains("odd/samples.jsonl is not a file"), "{}", text(&out.stderr));
}
