//! The sessions on the guide's page on the command line. Each command prints what the page shows, and works
//! with omniORB's programs too.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::live::{Beside, foreign, has, missing};

/// Stands above the blocks that are run.
const MARK: &str = "<!-- Run as a test: crates/zorb-cli/tests/cli/sessions.rs. -->";
/// How often a command is tried again that reads what another one writes.
const TRIES: u32 = 400;

/// A command, and what is printed below it.
struct Step {
    command: String,
    /// It goes on beside those that follow.
    stays: bool,
    printed: Vec<String>,
}

/// Where the commands are run, and with what.
struct Session {
    folder: tempfile::TempDir,
    /// Texts of commands that are others here: ports that are free, files, objects of other ORBs.
    others: Vec<(String, String)>,
    running: Vec<Beside>,
}

fn steps() -> Vec<Step> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("docs/guide/src/command-line.md")).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    for part in page.split(MARK).skip(1) {
        let block = part.split("```console\n").nth(1).unwrap();
        let block = block.split("```").next().unwrap();
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    let plain = command.split(" # ").next().unwrap().trim_end();
                    let stays = plain.ends_with(" &");
                    let command = plain.trim_end_matches(" &").to_owned();
                    steps.push(Step { command, stays, printed: Vec::new() });
                }
                None => steps.last_mut().unwrap().printed.push(line.to_owned()),
            }
        }
    }
    assert!(steps.len() >= 9, "the marked blocks of the page have {} commands", steps.len());
    for tool in ["ior dump", "names tree", "ping", "call", "sniff"] {
        let has = |step: &Step| step.command.starts_with(&format!("zorb {tool}"));
        assert!(steps.iter().any(has), "the page shows no zorb {tool}");
    }
    steps
}

impl Session {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), others: Vec::new(), running: Vec::new() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Here the first text stands for the second one.
    fn replace(&mut self, from: &str, to: &str) {
        self.others.push((from.to_owned(), to.to_owned()));
    }

    /// Runs a step; what it printed.
    fn run(&mut self, step: &Step) -> Vec<String> {
        if let Some(name) = step.command.strip_prefix("cat ") {
            std::fs::write(self.file(name), step.printed.join("\n") + "\n").unwrap();
            return step.printed.clone();
        }
        let mut command = step.command.clone();
        for (from, to) in &self.others {
            command = command.replace(from, to);
        }
        let words = words(&command);
        assert_eq!(words[0], "zorb", "{command}");
        let mut process = Command::new(env!("CARGO_BIN_EXE_zorb"));
        process.args(&words[1..]).current_dir(self.folder.path()).env("XDG_DATA_HOME", self.folder.path());
        process.env_remove("CLICOLOR_FORCE").stdin(Stdio::null());
        if step.stays {
            let mut beside = Beside::spawn(&mut process);
            let printed = step.printed.iter().map(|_| beside.line()).collect();
            self.running.push(beside);
            return printed;
        }
        for tried in 0.. {
            let output = process.output().unwrap();
            // A terminal shows both.
            let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            let printed: Vec<String> = shown.lines().map(str::to_owned).collect();
            // A record grows after the call that is in it has returned.
            if command.starts_with("zorb sniff") && printed.len() < step.printed.len() && tried < TRIES {
                std::thread::sleep(Duration::from_millis(25));
                continue;
            }
            assert!(output.status.success(), "{command}\n{shown}");
            return printed;
        }
        unreachable!()
    }
}

/// As a shell has it, with single quotes alone.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in command.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// A line without what is another at each run: ports, times, numbers of requests, references, folders.
fn steady(line: &str) -> Vec<String> {
    let all: Vec<&str> = line.split_whitespace().collect();
    let mut steady = Vec::new();
    let mut rest = all.iter().peekable();
    while let Some(word) = rest.next() {
        let number = word.trim_start_matches('(');
        let unit = |next: &&&str| ["us", "ms", "s", "calls/s"].contains(&next.trim_end_matches([',', ')']));
        steady.push(if number.parse::<f64>().is_ok() && rest.next_if(unit).is_some() {
            "TIME".to_owned()
        } else if let Some((before, after)) = word.split_once("127.0.0.1:") {
            format!("{before}127.0.0.1:PORT{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        } else {
            match *word {
                word if word.starts_with("IOR:") => "IOR:".to_owned(),
                word if word.ends_with("names.redb") => "FILE".to_owned(),
                word if word.strip_prefix('#').is_some_and(|id| id.parse::<u32>().is_ok()) => "#N".to_owned(),
                // Seconds since the first message.
                word if word.len() == 8 && word.parse::<f64>().is_ok() => "TIME".to_owned(),
                word => word.to_owned(),
            }
        });
    }
    steady
}

#[test]
fn the_sessions_print_what_the_page_shows() {
    let mut session = Session::new();
    session.replace("zorb names serve", "zorb names serve --listen iiop://127.0.0.1:0");
    for step in steps() {
        let printed = session.run(&step);
        let steady = |lines: &[String]| lines.iter().map(|line| steady(line)).collect::<Vec<_>>();
        assert_eq!(steady(&printed), steady(&step.printed), "{}\n{}", step.command, printed.join("\n"));
        if step.command == "zorb names serve" {
            let url = printed[0].split_whitespace().last().unwrap();
            for verb in ["bind", "tree"] {
                session.replace(&format!("names {verb}"), &format!("names --service {url} {verb}"));
            }
        }
    }
}

#[test]
fn the_sessions_work_with_omninames_and_a_server_of_omniorb() {
    let Some(server) = foreign("peer-server") else { return };
    if !has("omniNames") {
        return missing("no omniNames: scripts/install-peers.sh installs it");
    }
    let mut session = Session::new();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let data = session.folder.path().to_str().unwrap().to_owned();
    let endpoint = format!("giop:tcp:127.0.0.1:{port}");
    let names = ["-start", &port, "-datadir", &data, "-ORBendPoint", &endpoint];
    session.running.push(Beside::start("omniNames", &names));
    let url = format!("corbaloc::127.0.0.1:{port}/NameService");
    let ior = session.file("Account.ior");
    let mut server = Beside::start(server, &["--ior", ior.to_str().unwrap(), "--seconds", "120"]);
    assert!(server.line().starts_with("READY"));
    session.running.push(server);
    for verb in ["bind", "tree"] {
        session.replace(&format!("names {verb}"), &format!("names --service {url} {verb}"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let idl = root.join("tests/interop/idl/types.idl");
    session.replace("bank.idl", idl.to_str().unwrap());
    session.replace("deposit '{\"amount\": 10}'", "plus_one '{\"a\": 10}'");
    // It is there when it answers.
    for tried in 0.. {
        let tree = super::zorb(&["names", "--service", &url, "tree"], "");
        if tree.code == 0 {
            break;
        }
        assert!(tried < TRIES, "{}", tree.err);
        std::thread::sleep(Duration::from_millis(25));
    }
    for step in steps() {
        if ["zorb names serve", "zorb serve"].iter().any(|ours| step.command.starts_with(ours)) {
            continue;
        }
        let printed = session.run(&step);
        let text = printed.join("\n");
        let command = &step.command;
        match command.split_whitespace().nth(1).unwrap() {
            "names" => assert_eq!(printed, step.printed, "{command}"),
            "ior" => assert!(text.contains("made by    omniORB") && text.contains("Interop/Peer"), "{text}"),
            "ping" => assert_eq!(printed.len(), step.printed.len(), "{text}"),
            "call" if command.contains("deposit") => assert!(text.contains("\"$result\": 11"), "{text}"),
            "sniff" if !step.stays => {
                assert!(text.contains("Interop::Scalars.plus_one"), "{text}");
                assert!(text.contains("{\"$result\":11}"), "{text}");
            }
            _ => {}
        }
    }
}
