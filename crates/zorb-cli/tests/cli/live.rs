//! `zorb sniff` between live clients and servers: what passes is told, recorded, and replayed.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::serve::Server;
use super::{bank, beside, zorb};

/// A program of this repository that runs beside a test, and ends with this.
pub(crate) struct Beside {
    pub(crate) child: Child,
    pub(crate) out: Box<dyn BufRead + Send>,
}

impl Beside {
    pub(crate) fn start(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Self {
        Self::spawn(Command::new(program).args(args).stderr(Stdio::null()))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let out = Box::new(BufReader::new(child.stdout.take().unwrap()));
        Self { child, out }
    }

    pub(crate) fn zorb(args: &[&str]) -> Self {
        Self::start(env!("CARGO_BIN_EXE_zorb"), args)
    }

    /// The next line, which is empty at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Ctrl-C, and what it ends with.
    pub(crate) fn interrupt(&mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A foreign program that is built for the interoperability tests. `None`: there is none, which was told.
pub(crate) fn foreign(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let peers = std::env::var_os("ZORB_INTEROP_PEERS").map_or(root.join("target/interop"), PathBuf::from);
    let path = peers.join("omniorb").join(name);
    if path.exists() {
        return Some(path);
    }
    missing(&format!("no {}: scripts/build-peers.sh makes it", path.display()));
    None
}

/// A test is left out, which is told past the capture of output; with `CI=true` that is a failure.
pub(crate) fn missing(what: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
    tell(what);
}

fn tell(what: &str) {
    let _ = std::io::stderr().write_all(format!("cli: SKIPPED: {what}\n").as_bytes());
}

/// Whether a program of the system's is there.
pub(crate) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn calls_through_a_proxy_are_told_recorded_and_replayed() {
    beside(|account, _| {
        let (folder, idl) = (tempfile::tempdir().unwrap(), bank());
        let (idl, record) = (idl.path().to_str().unwrap(), path(folder.path(), "x.pcap"));
        let through = path(folder.path(), "proxy.ior");
        let args = ["--json", "sniff", "--listen", "127.0.0.1:0", "--to", account, "--idl", idl];
        let mut proxy = Beside::zorb(&[&args[..], &["--record", &record, "--ior", &through]].concat());
        let listening = proxy.json();
        assert_eq!(std::fs::read_to_string(&through).unwrap().trim(), listening["reference"]);
        let call =
            |args: &[&str]| zorb(&[&["--json", "call", &through, "--idl", idl][..], args].concat(), "");
        assert_eq!(call(&["deposit", "[1.5, [1, 2]]"]).json()["$result"], 4.5);
        assert_eq!(call(&["deposit", "[-2, []]"]).code, 1);
        assert_eq!(call(&["limit", "7.5"]).code, 0);
        // Each is a request and its reply; clients say before they go that they do.
        let mut told: Vec<Value> = Vec::new();
        while told.iter().filter(|one| one["message"] == "reply").count() < 3 {
            told.push(proxy.json());
        }
        let request = told.iter().find(|one| one["operation"] == "deposit").unwrap();
        assert_eq!(request["body"], json!({ "amount": 1.5, "coins": [1, 2] }));
        assert_eq!((&request["interface"], &request["key"]), (&json!("Bank::Account"), &json!("Account")));
        let replies: Vec<&Value> = told.iter().filter(|one| one["message"] == "reply").collect();
        assert_eq!(replies[0]["body"], json!({ "$result": 4.5, "note": "2 coins" }));
        assert!(replies[0]["latency_us"].as_f64().unwrap() > 0.0);
        assert_eq!(replies[1]["status"], "user_exception");
        assert_eq!(replies[1]["body"]["missing"], 2.0);
        assert_eq!(proxy.interrupt(), 0, "Ctrl-C ends it in order");
        drop(proxy);
        // The record says the same.
        let read = zorb(&["--json", "sniff", &record, "--idl", idl, "--filter", "operation=deposit"], "");
        let read: Vec<Value> = read.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read.len(), 5, "two calls and the summary");
        assert_eq!((&read[1]["body"], &read[3]["body"]), (&replies[0]["body"], &replies[1]["body"]));
        // The same server answers the same.
        let again = zorb(&["sniff", "--replay", &record, "--to", account, "--idl", idl], "");
        assert_eq!(again.code, 0, "{}{}", again.out, again.err);
        assert_eq!(again.out.lines().filter(|line| line.starts_with("same")).count(), 3, "{}", again.out);
        // Another one does not, and has another key; whether types are known or not.
        let other = Server::start(&["--idl", idl, "--object", "Elsewhere=Bank::Account"]);
        let again = zorb(&["sniff", "--replay", &record, "--to", other.url(0), "--idl", idl], "");
        assert_eq!(again.code, 1, "{}", again.err);
        assert!(again.out.contains("$result: recorded 4.5, now 0.0"), "{}", again.out);
        assert!(again.out.contains("note: recorded \"2 coins\", now \"\""), "{}", again.out);
        assert!(again.out.contains("recorded user_exception"), "{}", again.out);
        let blind = zorb(&["sniff", "--replay", &record, "--to", other.url(0)], "");
        assert!(blind.code == 1 && blind.out.contains("the bytes differ"), "{}", blind.out);
        let gone = zorb(&["sniff", "--replay", &record, "--to", "127.0.0.1:1"], "");
        assert!(gone.code == 3 && gone.err.contains("cannot connect to 127.0.0.1:1"), "{}", gone.err);
    });
}

#[test]
fn a_proxy_without_a_server_sends_clients_away() {
    let mut proxy = Beside::zorb(&["--json", "sniff", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1"]);
    let listening = proxy.json();
    let url = format!("corbaloc::{}/x", listening["listening"].as_str().unwrap());
    assert_eq!(zorb(&["ping", &url, "-c", "1"], "").code, 3);
    assert_eq!(proxy.interrupt(), 0);
    for (args, why) in [
        (&["sniff", "--listen", "127.0.0.1:0", "--to", "nonsense"][..], "--to must be HOST:PORT"),
        (&["sniff", "--listen", "nowhere.invalid:1", "--to", "127.0.0.1:1"], "cannot listen"),
        (&["sniff", "--listen", "127.0.0.1:0", "--to", "corbaloc:ssliop:127.0.0.1:1/x"], "TLS"),
    ] {
        let wrong = zorb(args, "");
        assert!(wrong.code == 3 && wrong.err.contains(why), "{args:?}: {}", wrong.err);
    }
    assert_eq!(zorb(&["sniff"], "").code, 2);
    assert_eq!(zorb(&["sniff", "--listen", "127.0.0.1:0"], "").code, 2);
}

#[test]
fn a_file_is_followed_while_it_grows() {
    use super::wire::{Capture, Line, USUAL};
    let (folder, idl) = (tempfile::tempdir().unwrap(), bank());
    let (mut capture, mut line) = (Capture::new(), Line::new("10.0.0.1:1", "10.0.0.2:2"));
    capture.open(&mut line);
    let [request, reply] = USUAL.deposit(7, 2.5, &[]);
    capture.send(&mut line, true, &request);
    capture.send(&mut line, false, &reply);
    let whole = capture.pcap(1, false, false);
    let name = path(folder.path(), "x.pcap");
    let (first, rest) = whole.split_at(whole.len() - 100);
    std::fs::write(&name, first).unwrap();
    let mut sniff = Beside::zorb(&["sniff", &name, "--follow", "--idl", idl.path().to_str().unwrap()]);
    assert!(sniff.line().contains("Bank::Account.deposit #7 {\"amount\":2.5"));
    std::fs::OpenOptions::new().append(true).open(&name).unwrap().write_all(rest).unwrap();
    assert!(sniff.line().contains("reply Bank::Account.deposit #7 {\"$result\":3.5"));
    assert_eq!(sniff.interrupt(), 0);
}

#[test]
fn calls_between_omniorb_and_zorb_are_told() {
    let (Some(server), Some(client)) = (foreign("peer-server"), foreign("peer-client")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (ior, record) = (path(folder.path(), "peer.ior"), path(folder.path(), "x.pcap"));
    let mut server = Beside::start(server, &["--ior", &ior, "--seconds", "120"]);
    assert!(server.line().starts_with("READY"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let idl = path(&root.join("tests/interop/idl"), "types.idl");
    let through = path(folder.path(), "proxy.ior");
    let args = ["--json", "sniff", "--listen", "127.0.0.1:0", "--to", &ior, "--idl", &idl, "--ior", &through];
    let mut proxy = Beside::zorb(&[&args[..], &["--record", &record]].concat());
    proxy.json();
    // zorb calls omniORB.
    let called = zorb(&["--json", "call", &through, "plus_one", "[41]", "--idl", &idl], "");
    assert_eq!(called.json()["$result"], 42, "{}", called.err);
    let mut told = proxy.json();
    while told["message"] != "reply" {
        told = proxy.json();
    }
    assert_eq!((&told["operation"], &told["body"]["$result"]), (&json!("plus_one"), &json!(42)));
    // omniORB calls omniORB: all of its checks, in every type of the IDL. A thread reads the proxy's output,
    // because the proxy would otherwise block.
    let mut rest = std::mem::replace(&mut proxy.out, Box::new(std::io::empty()));
    let reader = std::thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()).unwrap());
    let checks = Command::new(client).args(["--ior", &through, "--seconds", "60"]).output().unwrap();
    let said = String::from_utf8_lossy(&checks.stdout);
    let made = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(made > 20, "{said}");
    assert_eq!(proxy.interrupt(), 0);
    assert!(reader.join().unwrap() > 0);
    let read = zorb(&["--json", "sniff", &record, "--idl", &idl], "");
    let read: Vec<Value> = read.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = &read.last().unwrap()["summary"];
    assert_eq!((&summary["calls"]["damaged"], &summary["tcp"]["lost"]), (&json!(0), &json!(0)));
    let misfits: Vec<&Value> = read.iter().filter(|one| one.to_string().contains("does not fit")).collect();
    assert!(misfits.is_empty(), "{misfits:?}");
    let typed =
        |message: &str| read.iter().filter(|one| one["message"] == message && !one["body"].is_null()).count();
    assert!(typed("request") > 20 && typed("reply") > 20, "{} {}", typed("request"), typed("reply"));
}

/// What tcpdump (pcap) and Wireshark's dumpcap (pcapng) take of the machine's own loopback.
#[test]
fn live_captures_are_read() {
    for (program, filter) in [("tcpdump", &["-U", "-s", "0"][..]), ("dumpcap", &["-q"])] {
        if !has(program) {
            missing(&format!("no {program}: scripts/install-peers.sh installs it"));
            continue;
        }
        beside(move |account, _| {
            let (folder, idl) = (tempfile::tempdir().unwrap(), bank());
            let idl = idl.path().to_str().unwrap();
            let dump = zorb(&["--json", "ior", "dump", account], "").json();
            let port = dump["profiles"][0]["iiop"]["addresses"][0]["port"].to_string();
            let file = path(folder.path(), "live");
            let mut command = Command::new(program);
            command.args(["-i", "lo"]).args(filter).args(["-w", &file]);
            match program {
                "tcpdump" => command.args(["tcp", "port", &port]),
                _ => command.arg("-f").arg(format!("tcp port {port}")),
            };
            let mut capture = Beside::spawn(command.stderr(Stdio::piped()));
            let mut said = BufReader::new(capture.child.stderr.take().unwrap());
            let mut line = String::new();
            // The last line before the capture begins. A program without the right to capture prints a
            // message and ends.
            while !line.contains("listening on") && !line.starts_with("File:") {
                line.clear();
                if said.read_line(&mut line).unwrap() == 0 {
                    return tell(&format!("{program} may not capture here"));
                }
            }
            let rest = std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
            let told = |_| {
                assert_eq!(zorb(&["call", account, "deposit", "[1.5, [2]]", "--idl", idl], "").code, 0);
                let run = zorb(&["sniff", &file, "--idl", idl], "");
                Some(run.out).filter(|out| out.contains("reply Bank::Account.deposit"))
            };
            let out = (0..200).find_map(told).unwrap();
            assert!(out.contains(r#"Bank::Account.deposit #131072 {"amount":1.5,"coins":[2]}"#), "{out}");
            assert!(out.contains(r#"{"$result":3.5,"note":"1 coins"}"#), "{out}");
            capture.interrupt();
            rest.join().unwrap().unwrap();
        });
    }
}
