//! `ttcp abuse` from a user's view: a second of each attack, servers with injected faults, and no processes
//! left. Measured times are not checked.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn ttcp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ttcp"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn abuse(arguments: &[&str]) -> (Output, Value) {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("result.json");
    let out = ttcp(&["abuse", "--quick", "--json", json.to_str().unwrap()]).args(arguments).output().unwrap();
    let text = fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}: {}", said(&out)));
    (out, serde_json::from_str(&text).unwrap())
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

fn phase<'r>(result: &'r Value, name: &str) -> &'r Value {
    let phases = result["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("{name}: {result}"))
}

fn number(value: &Value, names: &[&str]) -> u64 {
    let found = names.iter().fold(value, |value, name| &value[name]);
    found.as_u64().unwrap_or_else(|| panic!("{names:?}: {value}"))
}

#[test]
fn a_client_is_answered_whatever_others_do() {
    let (out, result) = abuse(&["--max-growth", "1000000", "--peers", "300"]);
    assert!(out.status.success() && said(&out).contains("\nHELD: "), "{}", said(&out));
    let names: Vec<_> = result["phases"].as_array().unwrap().iter().map(|phase| &phase["name"]).collect();
    let all =
        ["before", "slowloris", "length bombs", "cancel flood", "connect flood", "all at once", "after"];
    assert_eq!(names, all);
    for name in all {
        let client = &phase(&result, name)["client"];
        let [calls, answered, failed] = ["calls", "answered", "failed"].map(|it| number(client, &[it]));
        assert_eq!((calls, answered, failed), (100, 100, 0), "{name}: {client}");
        assert!(client["p50_us"].as_f64() <= client["p99_us"].as_f64(), "{client}");
        assert!(client["p99_us"].as_f64() <= client["p999_us"].as_f64(), "{client}");
        assert_eq!(
            phase(&result, name)["attackers"].as_object().unwrap().len(),
            match name {
                "before" | "after" => 0,
                "all at once" => 4,
                _ => 1,
            }
        );
    }
    let slow = phase(&result, "slowloris");
    assert!(number(slow, &["attackers", "slowloris", "opened"]) > 2 * 64, "they are many: {slow}");
    let refused = &slow["server"]["limits"]["max_connections_per_address"];
    assert!(refused.is_null(), "and of many addresses: {slow}");
    for (name, attack) in [
        ("slowloris", "slowloris"),
        ("length bombs", "bombs"),
        ("cancel flood", "cancels"),
        ("connect flood", "connects"),
    ] {
        for name in [name, "all at once"] {
            let met = &phase(&result, name)["attackers"][attack];
            assert!(number(met, &["opened"]) > 0 && number(met, &["octets"]) > 0, "{name}: {met}");
        }
    }
    let bombs = phase(&result, "length bombs");
    assert!(number(bombs, &["server", "limits", "max_message_size"]) > 0, "{bombs}");
    assert!(number(bombs, &["attackers", "bombs", "cut"]) > 0, "{bombs}");
    let messages = number(phase(&result, "cancel flood"), &["server", "messages"]);
    assert!(messages > 100 + 1_000, "it took what they sent: {messages}");
}

#[test]
fn attackers_of_one_address_get_as_many_connections_as_one_may_have() {
    let arguments =
        ["--addresses", "1", "--peers", "300", "--max-growth", "1000000", "--transport", "uring-threads"];
    let (out, result) = abuse(&arguments);
    assert!(out.status.success(), "{}", said(&out));
    let slow = phase(&result, "slowloris");
    assert!(number(slow, &["server", "limits", "max_connections_per_address"]) > 0, "{slow}");
    let (all, of_address) = (1024, 64);
    assert_eq!(result["connections"], serde_json::json!([all, of_address]));
    // Two connections come from another address: those of the well-behaved client and of a new client.
    // Evicted connections, at most an eighth of all, stay open until their peers have read the goodbye.
    let connections = number(slow, &["most", "connections"]);
    assert!((of_address..=of_address + 2 + all / 8).contains(&connections), "{connections}: {slow}");
}

#[test]
fn a_server_that_errs_is_found() {
    for (sabotage, told) in [("refuse", " calls were answered"), ("slow", " times as high as before")] {
        let (out, result) = abuse(&["--fail-fast", "--sabotage", sabotage]);
        assert_eq!(out.status.code(), Some(1), "{sabotage}: {}", said(&out));
        assert!(said(&out).contains("\nNOT HELD: "), "{sabotage}: {}", said(&out));
        let violations = result["violations"].as_array().unwrap();
        let is_told = |text: &&Value| {
            let text = text.as_str().unwrap();
            text.starts_with("slowloris: ") && text.contains(told)
        };
        assert_eq!(violations.iter().filter(is_told).count(), 1, "{sabotage}: {violations:?}");
        let slow = phase(&result, "slowloris");
        assert_eq!(number(slow, &["client", "failed"]) > 0, sabotage == "refuse", "{slow}");
    }
}

#[test]
fn an_interrupted_abuse_test_reports_its_findings_and_leaves_nothing() {
    let mut abuse = ttcp(&["abuse", "--quick", "--seconds", "2"]);
    let mut abuse = abuse.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = BufReader::new(abuse.stderr.take().unwrap()).lines();
    let first = progress.by_ref().map(Result::unwrap).find(|line| line.starts_with("[1/7 ")).unwrap();
    assert!(first.contains("before: 200 of 200 calls answered"), "{first}");
    let own = Pid::from_child(&abuse);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", own.as_raw_nonzero())).unwrap();
    assert_eq!(children.split_whitespace().count(), 3, "{children}");
    kill_process(own, Signal::INT).unwrap();
    let out = abuse.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", said(&out));
    assert!(said(&out).contains("interrupted: the results are incomplete"), "{}", said(&out));
    for pid in children.split_whitespace() {
        // The program waits for its children before it ends.
        assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{pid}");
    }
}
