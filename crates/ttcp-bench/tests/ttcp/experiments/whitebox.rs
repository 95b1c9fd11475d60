//! Floods under profilers, if these are installed: a missing one is reported, and the rest works.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{all_samples, run, text, ttcp};

/// Number of messages to which the figures refer.
const MESSAGES: f64 = 16.0;

fn functions(sample: &Value) -> BTreeMap<String, (f64, f64)> {
    let entry = |function: &Value| {
        let figure = |name: &str| function[name].as_f64().unwrap();
        (function["name"].as_str().unwrap().to_owned(), (figure("own"), figure("calls")))
    };
    sample["line"]["functions"].as_array().unwrap().iter().map(entry).collect()
}

/// It takes more than ten seconds: callgrind executes both sides, an unoptimised ORB.
#[test]
fn both_sides_are_profiled_by_what_there_is_and_contents_are_checked_before() {
    let dir = tempfile::tempdir().unwrap();
    let line = "whitebox --quick --types char --size 16K --total 256K --sampled 4M --peers zorb --out r";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    let with: Vec<&str> = ["perf", "callgrind"]
        .into_iter()
        .filter(|by| !stderr.contains(&format!("whitebox without {by} has no")))
        .collect();
    let all = all_samples(&dir.path().join("r"));
    let (checks, profiles): (Vec<&Value>, Vec<&Value>) =
        all.iter().partition(|sample| sample["cell"]["pass"] == "integrity");
    assert_eq!(checks.len(), 1, "{stderr}");
    assert!(checks.iter().all(|check| check["figures"]["checked_mb"].as_f64().unwrap() > 0.2), "{checks:?}");
    assert_eq!(profiles.len(), 2 * with.len(), "two sides: {stderr}");

    for sample in profiles {
        let functions = functions(sample);
        let sum: f64 = functions.values().map(|(own, _)| own).sum();
        let all = if sample["cell"]["by"] == "perf" { "all_ms" } else { "all_instructions" };
        let all = sample["figures"][all].as_f64().unwrap();
        assert!(all > 0.0 && (sum / all - 1.0).abs() < 0.01, "{sum} of {all}: {sample}");
        if sample["cell"]["by"] == "perf" {
            assert!(sample["figures"]["samples"].as_f64().unwrap() >= 1.0, "{sample}");
        } else {
            counted(sample, &functions);
        }
    }
    shown(&stdout, dir.path(), &with);
}

/// callgrind's counts do not differ between runs.
fn counted(sample: &Value, functions: &BTreeMap<String, (f64, f64)>) {
    let chain: Vec<&str> = sample["line"]["chain"]
        .as_array()
        .map(|chain| chain.iter().map(|f| f.as_str().unwrap()).collect())
        .unwrap_or_default();
    let once_a_message = |(_, calls): &(f64, f64)| (calls - MESSAGES).abs() < 1e-6;
    assert!(functions.values().filter(|function| once_a_message(function)).count() > 3, "{functions:?}");
    assert!(chain.iter().any(|function| function.contains("orb_runtime::")), "{sample}");
    if sample["cell"]["side"] == "sender" {
        assert!(chain.iter().any(|function| function.contains("tcp::")), "{chain:?}");
    } else {
        assert_eq!(chain.last(), Some(&"ttcp_bench::zorb_peer::server::Ttcp::add"), "{chain:?}");
        assert!(chain.iter().any(|function| function.contains("dispatch")), "{chain:?}");
    }
    assert_eq!(sample["figures"]["chain_calls"].as_f64().unwrap_or_default() as usize, chain.len());
}

/// Checks the tables and charts of the section.
fn shown(stdout: &str, dir: &Path, with: &[&str]) {
    assert!(stdout.lines().any(|line| line.starts_with("| C/C++") && line.contains(" 9415 |")), "{stdout}");
    assert!(
        stdout.contains("cleanfree") && stdout.contains("MarshallInBuffer"),
        "dynamic invocation: {stdout}"
    );
    assert!(!stdout.contains("link rate     | ATM     |  622"), "{stdout}");
    assert_eq!(stdout.contains("perf was not available"), !with.contains(&"perf"), "{stdout}");
    assert_eq!(stdout.contains("callgrind was not available"), !with.contains(&"callgrind"), "{stdout}");
    assert!(text(&run(dir, &["report", "r"]).stdout).contains("report.html"));
    let page = std::fs::read_to_string(dir.join("r/report.html")).unwrap();
    let charts = if with.is_empty() { 0 } else { 2 };
    assert_eq!(page.matches("<svg ").count(), charts, "sender and receiver");
    let out = run(dir, &["report", "r", "--markdown"]);
    assert_eq!(text(&out.stdout), "r/report.md\n", "{}", text(&out.stderr));
    assert_eq!(dir.join("r/charts/whitebox-2.svg").exists(), charts == 2);
}

#[test]
fn profilers_that_are_not_there_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let line = "whitebox --quick --types char --peers raw --out r";
    let mut command = ttcp(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let out = command.env("PATH", dir.path()).output().unwrap();
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    for told in [
        "whitebox measures no milliseconds: perf is not installed (Debian: linux-perf)",
        "whitebox measures no calls and no chains of calls: callgrind is not installed (Debian: valgrind)",
    ] {
        assert!(stderr.contains(told), "{stderr}");
    }
    assert_eq!(all_samples(&dir.path().join("r")).len(), 1, "contents are checked all the same");
    shown(&stdout, dir.path(), &[]);
}
