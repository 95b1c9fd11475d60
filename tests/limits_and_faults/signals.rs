//! Servers that end by a signal: each is a process of its own, because signals are sent to processes.
#![cfg(unix)]

use std::io::Write as _;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use zorb::prelude::*;

zorb::idl! {
    interface Ending {
        // Is answered after the signal has come.
        long last();
        // Is never answered, and blocks the runtime after the signal.
        void hang();
    };
}

const ROLE: &str = "ZORB_SIGNALS_SERVER";
/// Generous, because conditions are awaited and nothing depends on timing.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Servant {
    begun: AtomicBool,
}

impl EndingServant for Servant {
    async fn last(&self) -> Result<i32, SystemException> {
        self.begun.store(true, Ordering::SeqCst);
        say("called");
        zorb::signal::shutdown().await.or_system_exception(SystemExceptionKind::Internal)?;
        Ok(7)
    }

    async fn hang(&self) -> Result<(), SystemException> {
        say("called");
        zorb::signal::shutdown().await.or_system_exception(SystemExceptionKind::Internal)?;
        say("stopping");
        loop {
            std::thread::park();
        }
    }
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Not a test of its own: the entry point of processes that the tests start.
#[tokio::test]
async fn server() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let reference: EndingRef = orb.activate(Servant::default()).unwrap();
    let end = zorb::signal::shutdown();
    say(&reference.to_string());
    let report = orb.run_until(end).await.unwrap();
    say(&format!("cut {}", report.aborted_connections));
    // Like a `main` that returns: the harness would wait for more.
    std::process::exit(0);
}

struct Server {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "signals::server", "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    async fn says(&mut self) -> String {
        let next = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the server has ended");
                if let Some(said) = line.strip_prefix('@') {
                    return said.to_owned();
                }
            }
        };
        tokio::time::timeout(LIMIT, next).await.expect("the server says nothing")
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    async fn status(mut self) -> ExitStatus {
        tokio::time::timeout(LIMIT, self.process.wait()).await.expect("the server goes on").unwrap()
    }
}

async fn client(server: &mut Server) -> (Orb, EndingRef) {
    let client = Orb::builder().build().await.unwrap();
    let ending = client.resolve_unchecked(&server.says().await).await.unwrap();
    (client, ending)
}

#[tokio::test]
async fn call_in_flight_is_answered_after_a_signal_to_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start();
        let (_client, ending) = client(&mut server).await;
        let call = tokio::spawn(async move { ending.last().await });
        assert_eq!(server.says().await, "called");
        server.signal(signal);
        assert_eq!(call.await.unwrap(), Ok(7), "{signal:?}");
        assert_eq!(server.says().await, "cut 0", "{signal:?}");
        assert_eq!(server.status().await.code(), Some(0), "{signal:?}");
    }
}

#[tokio::test]
async fn second_signal_ends_a_process_whose_threads_are_blocked() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut server = Server::start();
        let (_client, ending) = client(&mut server).await;
        let call = tokio::spawn(async move { ending.hang().await });
        assert_eq!(server.says().await, "called");
        server.signal(Signal::TERM);
        assert_eq!(server.says().await, "stopping");
        server.signal(signal);
        assert_eq!(server.status().await.code(), Some(code), "{signal:?}");
        let lost = call.await.unwrap().unwrap_err();
        assert_eq!(lost.kind, SystemExceptionKind::CommFailure, "{lost}");
    }
}
