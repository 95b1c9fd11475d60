//! Floods of every type.

use std::fs;

use serde_json::Value;

use super::{all_samples, is_left_out, run, samples, text};

#[test]
fn floods_of_every_type_fill_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let line = "throughput --quick --total 256K --peers raw,zorb,zorb-dynamic,zorb-copying,zorb-zero-copy --queues auto,64K --sizes 2K --out r";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = samples(&dir.path().join("r"));
    assert_eq!(
        all.len(),
        2 * (6 * 4 + 2),
        "six types by four peers, structs in memory by a fifth, padded ones by sockets; two queues"
    );
    for sample in &all {
        let figure = |name: &str| sample["figures"][name].as_f64().unwrap();
        let confirmed = figure("mbit_s") * figure("secs") / 8.0 * 1e6;
        assert!((confirmed / f64::from(256 << 10) - 1.0).abs() < 0.03, "{confirmed} bytes: {sample}");
    }
    let checked: Vec<_> = all_samples(&dir.path().join("r"))
        .into_iter()
        .filter(|sample| sample["cell"]["pass"] == "integrity" && sample["figures"]["checked_mb"].is_f64())
        .collect();
    assert_eq!(checked.len(), 6 * 4 + 2, "the largest buffer of each type, by each: {checked:?}");
    calls_are_counted(&all_samples(&dir.path().join("r")), &text(&out.stderr), 2 * 4 + 1);
    let memory = all.iter().find(|sample| sample["peer"] == "zorb-zero-copy").unwrap();
    assert_eq!((&memory["cell"]["type"], &memory["line"]["type"]), (&"struct".into(), &"zstruct".into()));
    let stdout = text(&out.stdout);
    assert!(
        stdout.lines().any(|l| l.starts_with("| raw ") && l.matches(" 100 |").count() == 2),
        "a share of itself: {stdout}"
    );
    assert!(stdout.lines().any(|l| l.starts_with("| share of C/C++") && l.contains("75 to 80")), "{stdout}");
    assert!(stdout.lines().any(|l| l.starts_with("| Orbix") && l.contains(" 123 |")), "{stdout}");
    assert!(text(&run(dir.path(), &["report", "r"]).stdout).contains("report.html"));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 7 * 2, "a chart for each type and queue");
}

/// The sockets beside them, ONC RPC, and zorb without TCP: what all say arrived is what was sent, and every element of it is right.
#[test]
fn other_contenders_are_measured_like_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut peers = vec!["zorb-unix"];
    for (folder, names) in [("c", &["c"][..]), ("cxx", &["cxx"]), ("rpc", &["rpc", "rpc-opaque"])] {
        let out = run(dir.path(), &["peers", "build", folder]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        if !is_left_out(&text(&out.stderr)) {
            peers.extend(names);
        }
    }
    let line = "throughput --quick --total 100K --sizes 2K --types char,double,struct,struct32 --repeat 2 --out r --peers";
    let peers = peers.join(",");
    let arguments: Vec<&str> = line.split(' ').chain([peers.as_str()]).collect();
    let out = run(dir.path(), &arguments);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let flat = |peer: &str| !["zorb-unix", "rpc"].contains(&peer);
    let cells: usize = peers.split(',').map(|peer| 3 + usize::from(flat(peer))).sum();
    let mut all = all_samples(&dir.path().join("r"));
    // A scalar type and structs, by each.
    calls_are_counted(&all, &text(&out.stderr), 2 * peers.split(',').count());
    all.retain(|sample| sample["cell"]["pass"] != "calls");
    let counted = samples(&dir.path().join("r"));
    assert_eq!((counted.len(), all.len()), (2 * cells, 3 * cells), "two rounds, and a check before");
    for sample in counted {
        let figure = |name: &str| sample["figures"][name].as_f64().unwrap();
        let confirmed = figure("mbit_s") * figure("secs") / 8.0 * 1e6;
        assert!((confirmed / f64::from(100 << 10) - 1.0).abs() < 0.03, "{confirmed} bytes: {sample}");
    }
    let stdout = text(&out.stdout);
    assert!(stdout.contains("found no difference: zorb-unix (floods: 3, "), "{stdout}");
}

/// Where strace works: each request leaves by at least a part of a write, and is read whole, with some octets of control.
fn calls_are_counted(all: &[Value], stderr: &str, wanted: usize) {
    if stderr.contains("system calls are not counted: ") {
        eprintln!("SKIPPED: {stderr}");
        return;
    }
    let counted: Vec<&Value> = all.iter().filter(|sample| sample["cell"]["pass"] == "calls").collect();
    assert_eq!(counted.len(), wanted, "{stderr}");
    for sample in counted {
        let figure = |name: &str| sample["figures"][name].as_f64().unwrap();
        let (sent, got) = (figure("bytes_per_write"), figure("bytes_per_read"));
        let sent = sent * figure("client_writes_per_request");
        let got = got * figure("server_reads_per_request");
        assert_eq!(figure("requests"), 36.0, "32 and a tenth before: {sample}");
        // What a check or a call beside the flood adds is a few octets of it.
        assert!((sent / got - 1.0).abs() < 1e-6, "what is sent is read: {sample}");
        let control = figure("control_bytes_per_request");
        match sample["peer"].as_str().unwrap() {
            "raw" | "c" | "cxx" => assert!((8.0..10.0).contains(&control), "a header of 8 octets: {sample}"),
            // In XDR a char takes four octets.
            "rpc" => assert!(control > 20.0, "{sample}"),
            _ => assert!((20.0..300.0).contains(&control), "{sample}"),
        }
    }
}
