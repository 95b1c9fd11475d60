//! Floods of every type.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::{all_samples, is_left_out, run, samples, text, ttcp};

#[test]
fn floods_of_every_type_fill_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let line = "throughput --quick --total 256K --peers raw,zorb,zorb-dynamic,zorb-copying,zorb-zero-copy --queues auto,64K --sizes 2K --links loopback --out r";
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

/// The other sockets, ONC RPC, and zorb without TCP: all report as received what was sent, and every element
/// is correct.
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
    let line = "throughput --quick --total 100K --sizes 2K --types char,double,struct,struct32 --links loopback --repeat 2 --out r --peers";
    let peers = peers.join(",");
    let arguments: Vec<&str> = line.split(' ').chain([peers.as_str()]).collect();
    let out = run(dir.path(), &arguments);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let flat = |peer: &str| !["zorb-unix", "rpc"].contains(&peer);
    let cells: usize = peers.split(',').map(|peer| 3 + usize::from(flat(peer))).sum();
    let mut all = all_samples(&dir.path().join("r"));
    // A scalar type and structs, for each peer.
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

/// Returns whether slow links were left out for lack of privileges. Where everything must work, that is a
/// failure.
fn has_no_links(stderr: &str) -> bool {
    let left_out = stderr.contains("left out: ");
    assert!(!left_out || std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{stderr}");
    if left_out {
        eprintln!("SKIPPED: {stderr}");
    }
    left_out
}

#[test]
fn slow_link_limits_all_peers_except_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let line = "throughput --quick --total 1M --peers raw,zorb,zorb-unix --types octet,struct --sizes 64K --links loopback,100:1500 --out r";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    let all = samples(&dir.path().join("r"));
    let over: Vec<&Value> =
        all.iter().filter(|sample| sample["cell"]["link"] == "100 Mbit/s, MTU 1500").collect();
    assert_eq!(all.len() - over.len(), 2 * 3, "over loopback by all");
    if has_no_links(&stderr) {
        assert!(over.is_empty() && stdout.contains("No slow link was measured"), "{stdout}");
        return;
    }
    assert_eq!(over.len(), 2 * 2, "a socket that is a file goes beside the link");
    for sample in &over {
        // The queue may pass 16 KiB at once, and the figure only includes user data.
        assert!(sample["figures"]["mbit_s"].as_f64().unwrap() < 103.0, "{sample}");
        assert!(sample["processor"]["server"].is_f64(), "processes of this machine: {sample}");
    }
    assert!(stdout.contains("| 100 Mbit/s, MTU 1500 |") && !stdout.contains("No slow link"), "{stdout}");
    assert!(text(&run(dir.path(), &["report", "r"]).stdout).contains("report.html"));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 2 * 2, "a chart for each type and link");
}

/// A killed process cannot clean up, but its namespaces and the processes in them disappear nevertheless.
#[test]
fn a_killed_run_leaves_no_namespace() {
    let dir = tempfile::tempdir().unwrap();
    let line = "throughput --quick --peers raw --types octet --sizes 64K --total 64M --links 1:1500 --out r";
    let mut child =
        ttcp(dir.path(), &line.split(' ').collect::<Vec<_>>()).stderr(Stdio::piped()).spawn().unwrap();
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let apart = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|space| space != own);
    let parent = format!(" {} ", child.id());
    let inside = || -> Vec<String> {
        let processes =
            fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_child = |pid: &String| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.get(1..).is_some_and(|rest| rest.starts_with(&parent)))
        };
        processes.filter(|pid| is_child(pid) && apart(pid)).collect()
    };
    // Two that keep the namespaces, a server and a client.
    let mut seen = Vec::new();
    let over = std::iter::repeat_with(|| std::thread::sleep(Duration::from_millis(20)));
    for () in over.take(3000) {
        seen = inside();
        if seen.len() == 4 || child.try_wait().unwrap().is_some() {
            break;
        }
    }
    child.kill().unwrap();
    let stderr = text(&child.wait_with_output().unwrap().stderr);
    if has_no_links(&stderr) {
        return;
    }
    assert_eq!(seen.len(), 4, "{stderr}");
    for _ in 0..3000 {
        if !seen.iter().any(|pid| apart(pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{seen:?} are left");
}

/// The other machine is this one, reached by a shell in place of ssh.
#[test]
fn servers_on_another_machine_are_measured_from_here() {
    let dir = tempfile::tempdir().unwrap();
    let line = "throughput|--quick|--total|256K|--peers|raw,zorb,zorb-unix|--types|octet|--sizes|2K|--host|127.0.0.1|--shell|sh -c|--out|r";
    let out = run(dir.path(), &line.split('|').collect::<Vec<_>>());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = samples(&dir.path().join("r"));
    assert_eq!(all.len(), 2, "{all:?}");
    for sample in &all {
        assert_eq!(sample["cell"]["link"], "127.0.0.1");
        assert!(sample["processor"].is_null(), "nobody told: {sample}");
    }
    // A failing shell is reported.
    let line =
        "throughput|--quick|--peers|raw|--types|octet|--sizes|2K|--host|127.0.0.1|--shell|false|--out|b";
    let out = run(dir.path(), &line.split('|').collect::<Vec<_>>());
    assert!(
        !out.status.success() && text(&out.stderr).contains("before it was ready"),
        "{}",
        text(&out.stderr)
    );
    let out = run(dir.path(), &["throughput", "--shell", "x"]);
    assert!(text(&out.stderr).contains("--host"), "{}", text(&out.stderr));
}

/// If strace works: each request takes at least a part of a write, is read completely, and has some control
/// bytes.
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
        // A check or a call in addition to the flood adds only a few bytes.
        assert!((sent / got - 1.0).abs() < 1e-6, "what is sent is read: {sample}");
        let control = figure("control_bytes_per_request");
        match sample["peer"].as_str().unwrap() {
            "raw" | "c" | "cxx" => assert!((8.0..10.0).contains(&control), "a header of 8 octets: {sample}"),
            // In XDR a char takes four bytes.
            "rpc" => assert!(control > 20.0, "{sample}"),
            _ => assert!((20.0..300.0).contains(&control), "{sample}"),
        }
    }
}
