//! `ttcp run` from a user's view: real processes, tiny work.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

fn ttcp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ttcp"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    ttcp(&["run", "--quick", "--peers", "raw"]).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn script(dir: &Path, name: &str, body: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn gone(pid: &str) -> bool {
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    // An orphan may remain as a zombie until init reaps it.
    test_kill_process(pid).is_err()
        || fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
            .is_ok_and(|s| s.contains(") Z "))
}

#[test]
fn a_tiny_run_of_the_baseline_fills_every_cell() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("record.json");
    let file = json.to_str().unwrap();
    let out = run(&["--total", "1M", "--n", "200", "--repeat", "2", "--json", file]);
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    let rows: Vec<&str> = stdout.lines().filter(|l| l.starts_with("| ")).collect();
    assert_eq!(rows.len(), 1 + 35, "{stdout}");
    assert!(rows.iter().all(|r| !r.contains("failed") && !r.contains("| -")), "{stdout}");
    assert!(stdout.starts_with("machine: ") && stdout.contains("\ntcp: "), "{stdout}");
    assert!(stderr.contains("[70/70"), "{stderr}");

    let record: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(record["rounds"], 2);
    for cell in record["cells"].as_array().unwrap() {
        let entry = &cell["results"][0];
        assert_eq!(entry["peer"], "raw");
        assert_eq!(entry["samples"].as_array().unwrap().len(), 2, "{cell}");
        let [min, median, max] = ["min", "median", "max"].map(|n| entry[n].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{cell}");
        for sample in entry["samples"].as_array().unwrap() {
            assert_eq!((&sample["line"]["peer"], &sample["line"]["test"]), (&"raw".into(), &cell["test"]));
            assert_eq!(sample["line"]["batch"] == 1, cell["batch"] == true, "{cell}");
        }
    }
}

#[test]
fn a_second_peer_is_compared_with_the_baseline() {
    let program = env!("CARGO_BIN_EXE_ttcp");
    let again = format!("again={program} raw-server --port 0::{program} raw-client {{args}} --port {{port}}");
    let out = run(&["--tests", "ping", "--n", "200", "--repeat", "1", "--peer", &again]);
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    assert!(stdout.contains("again / raw"), "{stdout}");
    assert!(stdout.lines().any(|l| l.starts_with("| ping") && l.trim_end().ends_with(" x |")), "{stdout}");
}

#[test]
fn a_dead_peer_fails_clearly_and_the_others_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let server = script(dir.path(), "server", "echo cannot find liborb.so >&2; exit 42");
    let peer = format!("dead={server}::true");
    let out = run(&["--tests", "ping", "--n", "100", "--repeat", "2", "--peer", &peer]);
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr.contains("dead ping: the server ended with status 42 before it was ready"), "{stderr}");
    assert!(stderr.contains("    server: cannot find liborb.so"), "{stderr}");
    assert!(stderr.contains("2 measurement(s) failed"), "{stderr}");
    let row: Vec<_> =
        stdout.lines().find(|l| l.starts_with("| ping")).unwrap().split('|').map(str::trim).collect();
    assert!(row[3].parse::<f64>().unwrap() > 0.0, "raw is kept: {stdout}");
    assert_eq!((row[5], row[7]), ("failed", "-"), "{stdout}");
}

#[test]
fn a_client_that_hangs_is_killed_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let note = format!("echo $$ >> {}", pids.display());
    let server = script(
        dir.path(),
        "server",
        &format!("trap '' TERM; {note}; echo READY x; while :; do sleep 1; done"),
    );
    let client = script(dir.path(), "client", &format!("{note}; exec sleep 60"));
    let peer = format!("slow={server}::{client}");
    let out = run(&["--tests", "ping", "--n", "100", "--repeat", "1", "--timeout", "1", "--peer", &peer]);
    assert_eq!(out.status.code(), Some(1));
    let stderr = text(&out.stderr);
    assert!(stderr.contains("slow ping: the client was not done within 1 s"), "{stderr}");
    let pids = fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 2);
    eventually("both are gone", || pids.lines().all(gone));
}

#[test]
fn a_running_run_ends_its_children_when_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let (pids, json) = (dir.path().join("pids"), dir.path().join("record.json"));
    let note = format!("echo $$ >> {}", pids.display());
    let server = script(dir.path(), "server", &format!("{note}; echo READY x; exec sleep 60"));
    let client = script(dir.path(), "client", &format!("{note}; exec sleep 60"));
    let peer = format!("slow={server}::{client}");
    let mut child =
        ttcp(&["run", "--peers", "raw", "--tests", "ping", "--n", "100", "--peer", &peer, "--json"])
            .arg(&json)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let read = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
    eventually("both are up", || read(&pids).lines().count() == 2);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted") && stdout.contains("| ping"), "{stdout}{stderr}");
    eventually("both are gone", || read(&pids).lines().all(gone));
    let record: Value = serde_json::from_str(&read(&json)).unwrap();
    assert_eq!((&record["interrupted"], &record["rounds"]), (&true.into(), &0.into()));
}

#[test]
fn a_server_on_a_lifeline_ends_with_its_parent() {
    let mut server = ttcp(&["raw-server", "--port", "0", "--lifeline"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("READY 127.0.0.1:"), "{ready}");
    assert!(server.try_wait().unwrap().is_none());
    drop(server.stdin.take());
    let ended = |s: &mut Child| s.try_wait().unwrap().is_some();
    eventually("it ended", || ended(&mut server));
}

#[test]
fn wrong_options_are_refused_before_any_work() {
    let refused = |arguments: &[&str], code, told: &str| {
        let out = run(arguments);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}");
        assert!(text(&out.stderr).contains(told), "{}", text(&out.stderr));
        assert!(out.stdout.is_empty());
    };
    refused(&["--types", "float"], 2, "possible values");
    refused(&["--peer", "x"], 2, "NAME=SERVER_CMD::CLIENT_CMD");
    refused(&["--sizes", "0"], 2, "--sizes");
    refused(&["--tests", "echo", "--types", "long"], 1, "nothing to measure");
    refused(&["--json", "/no/such/dir/f.json"], 1, "cannot create /no/such/dir/f.json");
}

#[test]
fn a_client_without_a_server_names_the_address() {
    let out = ttcp(&["raw-client", "ping", "--port", "1"]).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let stderr = text(&out.stderr);
    assert!(stderr.contains("cannot connect to 127.0.0.1:1: Connection refused"), "{stderr}");
}

#[test]
fn the_copying_orb_is_a_peer_like_others() {
    let program = env!("CARGO_BIN_EXE_ttcp");
    let peer = format!(
        "copying={program} server --port 0 --copying --ior {{dir}}/copying.ior::\
         {program} client {{args}} --copying --ior {{dir}}/copying.ior"
    );
    let out =
        run(&["--tests", "ttcp,echo", "--types", "octet", "--total", "1M", "--n", "50", "--peer", &peer]);
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    assert!(stdout.contains("copying / raw") && !stdout.contains("failed"), "{stdout}");
}

#[test]
fn calls_by_name_and_servants_by_name_go_with_compiled_ones() {
    let program = env!("CARGO_BIN_EXE_ttcp");
    let mut command = ttcp(&["run", "--quick", "--peers", "none", "--repeat", "1", "--total", "400K"]);
    command.args(["--n", "30", "--sizes", "1K,50000", "--types", "octet,char,short,long,double,struct"]);
    for (invocation, skeleton) in [("sii", "ssi"), ("dii", "ssi"), ("sii", "dsi"), ("dii", "dsi")] {
        let name = format!("{invocation}-{skeleton}");
        command.arg("--peer").arg(format!(
            "{name}={program} server --ior {{dir}}/{name} --skeleton {skeleton}\
             ::{program} client {{args}} --ior {{dir}}/{name} --invocation {invocation}"
        ));
    }
    let out = command.output().unwrap();
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    let rows: Vec<&str> = stdout.lines().filter(|l| l.starts_with("| ")).collect();
    assert!(rows.len() > 15 && rows.iter().all(|r| !r.contains("failed") && !r.contains("| -")), "{stdout}");
}

#[test]
fn structs_in_memory_go_by_name_too() {
    let dir = tempfile::tempdir().unwrap();
    let ior = dir.path().join("server.ior");
    let mut server = ttcp(&["server", "--port", "0", "--skeleton", "dsi", "--lifeline", "--ior"])
        .arg(&ior)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let by_name = ["--type", "zstruct", "--total", "400K", "--n", "20", "--invocation", "dii", "--ior"];
    for test in ["ttcp", "echo"] {
        let out = ttcp(&["client", test]).args(by_name).arg(&ior).output().unwrap();
        assert!(out.status.success(), "{test}: {}", text(&out.stderr));
    }
    let out = ttcp(&["client", "ping", "--connections", "2"]).args(by_name).arg(&ior).output().unwrap();
    assert!(
        text(&out.stderr).contains("--invocation dii supports only one connection"),
        "{}",
        text(&out.stderr)
    );
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[test]
fn servers_find_objects_and_operations_by_every_way() {
    let program = env!("CARGO_BIN_EXE_ttcp");
    let ways = [
        "--demux-operations linear --demux-objects linear --others 20",
        "--demux-operations sorted --demux-objects hash --demux-path layered --poas 32",
        "--demux-operations hash --demux-objects active --demux-path delayered --poas 3 --others 5",
        "--demux-operations numeric --poas 1",
    ];
    let peers: Vec<_> = (0..)
        .zip(ways)
        .map(|(n, way)| {
            format!("way{n}={program} server --ior {{dir}}/{n}.ior {way}::{program} client {{args}} --ior {{dir}}/{n}.ior")
        })
        .collect();
    let out =
        ttcp(&["run", "--quick", "--peers", "none", "--repeat", "1", "--tests", "ping,demux", "--n", "50"])
            .args(peers.iter().flat_map(|peer| ["--peer", peer]))
            .output()
            .unwrap();
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    let rows: Vec<_> =
        stdout.lines().filter(|l| l.starts_with("| ping") || l.starts_with("| demux")).collect();
    assert_eq!(rows.len(), 2, "{stdout}");
    assert!(rows.iter().all(|row| !row.contains("failed") && !row.contains("| -")), "{stdout}");
}

#[test]
fn structs_in_memory_are_floods_of_zorb_and_plain_ones_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("record.json");
    let arguments = ["run", "--quick", "--tests", "ttcp,echo", "--types", "zstruct", "--sizes", "1K,100K"];
    let rest = ["--total", "1M", "--n", "50", "--repeat", "1", "--json", json.to_str().unwrap()];
    let out = ttcp(&arguments).args(rest).output().unwrap();
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    assert!(
        stdout.contains("| ttcp zstruct 100 KiB") && stdout.contains("| echo zstruct 24000 B"),
        "{stdout}"
    );
    let record: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let cells = record["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3);
    for cell in cells {
        let told = |peer: usize| cell["results"][peer]["samples"][0]["line"]["type"].clone();
        assert_eq!((told(0), told(1)), ("struct".into(), "zstruct".into()), "{cell}");
    }
}

#[test]
fn connections_share_the_work_and_each_side_is_charged() {
    let ttcp_program = env!("CARGO_BIN_EXE_ttcp");
    let peer = format!(
        "many={ttcp_program} server --host 127.0.0.1 --ior {{dir}}/many.ior --no-low-water\
         ::{ttcp_program} client {{args}} --ior {{dir}}/many.ior --connections 5"
    );
    let work = ["--tests", "ping,pipeline,ttcp", "--types", "octet", "--sizes", "1K,200K"];
    let out = ttcp(&["run", "--quick", "--peers", "none", "--repeat", "1", "--total", "3M", "--n", "100"])
        .args(work)
        .args(["--processor", "--peer", &peer])
        .output()
        .unwrap();
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    let rows: Vec<&str> = stdout.lines().filter(|l| l.starts_with("| ")).collect();
    assert_eq!(rows.len(), 2 * (1 + 5), "{stdout}");
    let charged = |row: &&str| row.contains("(") && row.contains(" + ");
    assert_eq!(rows.iter().filter(|row| charged(row)).count(), 5, "{stdout}");

    let more = ["client", "echo", "--connections", "2", "--ior", "corbaloc::127.0.0.1:9"];
    assert!(!ttcp(&more).output().unwrap().status.success(), "one connection only");
}
