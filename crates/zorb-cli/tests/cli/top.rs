//! `zorb top`: once, as JSON, and in a pseudo-terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use zorb::prelude::*;

use super::{Account, bank, zorb};

/// How long something may take that will surely come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with an admin endpoint in this process, that is called again and again.
struct Busy {
    runtime: tokio::runtime::Runtime,
    orb: Orb,
}

impl Busy {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let orb = runtime.block_on(async {
            let orb = Orb::builder().listen("iiop://127.0.0.1:0").admin("127.0.0.1:0").build().await.unwrap();
            let here: super::bank::AccountRef = orb.activate(Account::default()).unwrap();
            let client = Orb::builder().build().await.unwrap();
            let account: super::bank::AccountRef = client.resolve(&here.to_string()).await.unwrap();
            tokio::spawn(async move {
                // Until the server closes; the client lives as long.
                let _client = client;
                while account.set_limit(1.0).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            });
            orb
        });
        Self { runtime, orb }
    }

    fn address(&self) -> String {
        self.orb.admin_address().unwrap().to_string()
    }

    /// It closes its endpoint.
    fn close(&self) {
        self.runtime.block_on(self.orb.shutdown());
    }
}

/// The program in a terminal of its own.
struct Terminal {
    child: Child,
    master: File,
    /// So that the terminal is there when the program is not.
    _slave: File,
    before: Termios,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(args: &[&str], no_color: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let master = File::from(master);
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        resize(&master, 100, 24);
        let before = tcgetattr(&master).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        // Of util-linux: it makes the terminal that of the session, and then is the program.
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_zorb"), "top"]).args(args);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color").env_remove("CLICOLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let (mut reader, sink) = (master.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut octets = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut octets) {
                sink.lock().unwrap().extend_from_slice(&octets[..n]);
            }
        });
        Self { child, master, _slave: slave, before, seen }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Forgets what was written so far.
    fn clear(&self) {
        self.seen.lock().unwrap().clear();
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        let begun = Instant::now();
        while !self.text().contains(text) {
            if begun.elapsed() > PATIENCE {
                let seen = self.text();
                panic!("no {text:?} at the end of {:?}", seen.split("\x1b[2J").last());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the program ends by itself; the terminal must be as it was.
    #[track_caller]
    fn ended(&mut self) -> Option<i32> {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end: {:?}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        };
        self.wait_for("\x1b[?1049l");
        self.wait_for("\x1b[?25h");
        let after = tcgetattr(&self.master).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(master: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}

#[test]
fn a_terminal_shows_calls_until_q_is_pressed() {
    let busy = Busy::new();
    let mut terminal = Terminal::start(&[&busy.address(), "--interval", "50ms"], false);
    terminal.wait_for("\x1b[?1049h");
    terminal.wait_for("zorb top");
    terminal.wait_for(concat!("zorb ", env!("CARGO_PKG_VERSION"), "  ready  up 0:"));
    terminal.wait_for("_set_limit  IDL:Bank/Account:1.0");
    terminal.wait_for("\x1b[1m");
    // A narrow one cuts lines, a low one says how many there are more.
    resize(&terminal.master, 30, 4);
    terminal.wait_for("more lines   q: quit");
    resize(&terminal.master, 100, 30);
    terminal.clear();
    terminal.wait_for("_set_limit  IDL:Bank/Account:1.0");
    // The server goes, and this stays and says so.
    busy.close();
    terminal.wait_for("cannot connect to");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn signals_and_ctrl_c_give_the_terminal_back() {
    let busy = Busy::new();
    let end: [fn(&mut Terminal); 3] =
        [|it| it.press("\x03"), |it| it.signal(Signal::TERM), |it| it.signal(Signal::INT)];
    for end in end {
        let mut terminal = Terminal::start(&[&busy.address()], true);
        terminal.wait_for("q: quit");
        end(&mut terminal);
        assert_eq!(terminal.ended(), Some(0));
        let text = terminal.text();
        let styles = ["\x1b[1m", "\x1b[0m", "\x1b[31m", "\x1b[38;"];
        assert!(styles.iter().all(|style| !text.contains(style)), "NO_COLOR: {text:?}");
    }
}

/// The document without what is another one each time.
fn blank(value: &mut Value) {
    match value {
        Value::Number(number) => *number = 0.into(),
        Value::Array(values) => values.iter_mut().for_each(blank),
        Value::Object(fields) => fields.values_mut().for_each(blank),
        Value::String(text) if text.starts_with("127.0.0.1:") => "127.0.0.1:0".clone_into(text),
        _ => {}
    }
}

#[test]
fn programs_read_it_as_json() {
    let busy = Busy::new();
    let run = zorb(&["--json", "top", &format!("http://{}/", busy.address()), "--interval", "100ms"], "");
    assert_eq!(run.code, 0, "{}", run.err);
    let mut told = run.json();
    assert!(told["served"][0]["calls"].as_u64().unwrap() > 0);
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    told["version"] = "".into();
    blank(&mut told);
    insta::assert_snapshot!(told.to_string(), @r#"{"endpoints":["127.0.0.1:0"],"limits":{},"made":[],"objects":0,"open_connections":0,"pool_cap_bytes":0,"pool_held_bytes":0,"queued_bytes":0,"ready":true,"received_bytes_per_second":0,"sent_bytes_per_second":0,"served":[{"calls":0,"calls_per_second":0,"failures":0,"failures_per_second":0,"interface":"IDL:Bank/Account:1.0","max_us":0,"operation":"_set_limit","p50_us":0,"p90_us":0,"p99_us":0,"user_exceptions":0}],"started_ms":0,"uptime_ms":0,"version":""}"#);
    let run = zorb(&["top", &busy.address(), "--once", "--interval", "100ms"], "");
    assert_eq!(run.code, 0, "{}", run.err);
    for shown in [
        "listening on",
        "uptime",
        "user exceptions",
        "p90",
        "_set_limit  IDL:Bank/Account:1.0",
        "calls/s",
        "limits hit",
    ] {
        assert!(run.out.contains(shown), "{}", run.out);
    }
}

#[test]
fn what_is_no_endpoint_is_told_so() {
    let busy = Busy::new();
    let failed = |args: &[&str]| {
        let run = zorb(&[&["top"][..], args].concat(), "");
        assert_eq!(run.code, 3);
        run.err
    };
    assert!(failed(&["nowhere"]).contains("expected HOST:PORT"));
    assert!(failed(&["127.0.0.1:1", "--once"]).contains("cannot connect to 127.0.0.1:1"));
    assert!(failed(&[&busy.address()]).contains("must be a terminal; use --once"));
    let iiop = busy.orb.endpoints()[0].clone();
    assert!(failed(&[&iiop, "--once"]).contains(&iiop), "an ORB's own port speaks no HTTP");
}

#[test]
fn servers_of_the_command_line_have_an_endpoint_where_it_is_asked_for() {
    let idl = bank();
    let args =
        ["--object", "A=Bank::Account", "--idl", idl.path().to_str().unwrap(), "--admin", "127.0.0.1:0"];
    for args in [
        &[&["serve"][..], &args[..]].concat()[..],
        &["names", "serve", "--memory", "--listen", "iiop://127.0.0.1:0", "--admin", "127.0.0.1:0"],
    ] {
        let child = Command::new(env!("CARGO_BIN_EXE_zorb"))
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Ending(child);
        let mut told = String::new();
        let mut lines = BufReader::new(server.0.stderr.take().unwrap());
        while !told.contains("admin endpoint: http://") {
            told.clear();
            assert_ne!(lines.read_line(&mut told).unwrap(), 0, "it ended");
        }
        let url = told.trim().rsplit(' ').next().unwrap();
        // The endpoint answers before the server is ready.
        loop {
            let run = zorb(&["--json", "top", url, "--interval", "50ms"], "");
            assert_eq!(run.code, 0, "{}", run.err);
            if run.json()["ready"] == true {
                break;
            }
        }
    }
}

/// A process that ends with this.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
