//! `ttcp soak` from a user's view: some seconds over each transport, servers with injected faults, and no
//! processes left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

fn ttcp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ttcp"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn soak(arguments: &[&str]) -> (Output, Value) {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("result.json");
    let out = ttcp(&["soak", "--json", json.to_str().unwrap()]).args(arguments).output().unwrap();
    let text = fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}: {}", said(&out)));
    (out, serde_json::from_str(&text).unwrap())
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

fn some_seconds_over(transport: &str) {
    let (out, result) = soak(&["--seconds", "2", "--transport", transport]);
    assert!(out.status.success(), "{}", said(&out));
    if transport != "epoll" && result["fallbacks"] != 0 {
        assert!(std::env::var_os("REQUIRE_URING").is_none(), "there is no io_uring");
        eprintln!("SKIPPED: no io_uring: the soak went over epoll");
    }
    assert_eq!(result["violations"], serde_json::json!([]));
    assert!(result["rounds"].as_u64().unwrap() >= 3, "{result}");
    let kinds = result["kinds"].as_object().unwrap();
    assert_eq!(kinds.len(), 18, "{kinds:?}");
    for (kind, counts) in kinds {
        assert!(counts["answered"].as_u64().unwrap() > 0, "{kind}: {counts}");
    }
    let faults = result["faults"].as_object().unwrap();
    for what in ["server killed", "server suspended", "server shut down", "garbage", "flipped bits"] {
        assert!(faults.get(what).and_then(Value::as_u64).unwrap_or_default() > 0, "{what}: {faults:?}");
    }
    let total = &result["total"];
    let count = |name: &str| total[name].as_u64().unwrap();
    let ends = ["answered", "not_executed", "maybe", "unknown"].map(count);
    assert_eq!(ends.iter().sum::<u64>(), count("calls"), "each call has one end");
    assert!(count("executions") >= count("answered") && count("executions") <= count("calls"), "{total}");
}

#[test]
fn nothing_is_lost_hung_or_leaked_over_epoll() {
    some_seconds_over("epoll");
}

#[test]
fn nothing_is_lost_hung_or_leaked_over_io_uring() {
    some_seconds_over("uring");
}

#[test]
fn nothing_is_lost_hung_or_leaked_over_io_uring_on_threads() {
    some_seconds_over("uring-threads");
}

/// It takes more than ten seconds: a soak for each fault, one after the other.
#[test]
fn a_server_that_errs_is_found() {
    for (sabotage, told) in [
        ("record-twice", "executed 2 times"),
        ("wrong-results", "the result is wrong"),
        ("no-reply", "it was not answered"),
        ("leak-tasks", " tasks, "),
        ("leak-files", " descriptors, "),
    ] {
        let arguments =
            ["--seconds", "1", "--clients", "1", "--timeout", "2", "--fail-fast", "--sabotage", sabotage];
        let (out, result) = soak(&arguments);
        assert_eq!(out.status.code(), Some(1), "{sabotage}: {}", said(&out));
        let violations = result["violations"].as_array().unwrap();
        let is_told = |text: &Value| text.as_str().unwrap().contains(told);
        assert!(violations.iter().any(is_told), "{sabotage}: {violations:?}");
        assert!(said(&out).contains("VIOLATION: "), "{sabotage}");
    }
}

/// Returns the children of a process.
fn children(of: u32) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().map_while(Result::ok) {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        if parent == Some(&of.to_string()) {
            found.push(Pid::from_raw(pid).unwrap());
        }
    }
    found
}

fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // An orphan may remain as a zombie until init reaps it.
    test_kill_process(pid).is_err() || stat.contains(") Z ")
}

#[test]
fn nothing_is_left_of_a_soak_that_is_killed_even_where_it_is_stopped() {
    let mut soak = ttcp(&["soak"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let children = loop {
        let children = children(soak.id());
        if children.len() == 3 {
            break children;
        }
        assert!(Instant::now() < end, "{children:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    kill_process(children[0], Signal::STOP).unwrap();
    soak.kill().unwrap();
    soak.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while !children.iter().all(|pid| is_gone(*pid)) {
        assert!(Instant::now() < end, "{children:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupted_soak_tells_what_it_found_so_far() {
    let mut soak =
        ttcp(&["soak", "--seconds", "8"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = BufReader::new(soak.stderr.take().unwrap()).lines();
    let first = progress.next().unwrap().unwrap();
    assert!(first.contains("round 2, calm: "), "{first}");
    kill_process(Pid::from_child(&soak), Signal::INT).unwrap();
    let out = soak.wait_with_output().unwrap();
    assert!(said(&out).contains(", interrupted, "), "{}", said(&out));
}
