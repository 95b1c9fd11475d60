//! The peers of a run: their servers, and the clients that call them.

use std::path::Path;
use std::process::ExitStatus;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::children::{Children, Process, ProcessEvent, format_status};
use super::cores::Pins;
use super::placement::{HOST, Placement};
use super::processor::{Meter, Processor};

/// Minimum timeout of a server for READY.
const START: Duration = Duration::from_secs(30);
/// Timeout of a client for its exit after its last line.
const END: Duration = Duration::from_secs(5);

/// The placeholder in a server's command for the option to check contents.
const CHECK: &str = "{check}";

/// A peer by its commands.
///
/// In the words of both, `{dir}` stands for a directory of this run's own and `{host}` for the address at
/// which servers listen. In the client's, `{ready}` stands for the server's output after READY, `{port}` for
/// the digits at its end, and `{pid}` for its process id. A word `{args}` stands for the test and its
/// options, which otherwise come last. In the server's, `{check}` stands for nothing, or for `--check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// The column's title.
    pub name: String,
    /// The server's program and arguments.
    pub server: Vec<String>,
    /// The client's program and arguments.
    pub client: Vec<String>,
    /// Whether both take `--batch`.
    pub batch: bool,
    /// Whether the client takes `--type zstruct`. A client without it sends plain structs, which have the
    /// same encoding.
    pub zero_copy: bool,
    /// Whether the client takes `--samples`.
    pub samples: bool,
}

/// Why a measurement failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A program could not be started.
    #[error("cannot start the {role} ({program}): {source}")]
    Start {
        /// `server` or `client`.
        role: &'static str,
        /// The program.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The server ended, or closed stdout, before READY.
    #[error("the server ended with {status} before it was ready{stderr}")]
    NotReady {
        /// Its exit status.
        status: String,
        /// The end of its stderr, on lines of its own.
        stderr: String,
    },
    /// No READY in time.
    #[error("the server was not ready within {} s{stderr}", .waited.as_secs_f64())]
    StartTimeout {
        /// The timeout.
        waited: Duration,
        /// The end of its stderr, on lines of its own.
        stderr: String,
    },
    /// The server ended while the client ran.
    #[error("the server ended with {status} during the test{stderr}")]
    ServerDied {
        /// Its exit status.
        status: String,
        /// The end of its stderr, on lines of its own.
        stderr: String,
    },
    /// The client failed.
    #[error("the client ended with {status}{stderr}{server_stderr}")]
    ClientFailed {
        /// Its exit status.
        status: String,
        /// The end of its stderr, on lines of its own.
        stderr: String,
        /// The end of the server's stderr, on lines of its own.
        server_stderr: String,
    },
    /// The client did not end in time.
    #[error("the client was not done within {} s{stderr}", .waited.as_secs_f64())]
    ClientTimeout {
        /// The timeout.
        waited: Duration,
        /// The end of its stderr, on lines of its own.
        stderr: String,
    },
    /// The client's line does not follow the contract.
    #[error("the client's last line is no result: {reason}: {line:?}")]
    BadLine {
        /// The reason.
        reason: String,
        /// The line.
        line: String,
    },
    /// The link between client and server could not be set up.
    #[error("no link of {link}: {reason}")]
    Link {
        /// Its name.
        link: String,
        /// The reason.
        reason: String,
    },
    /// The files that a server wrote on another machine could not be fetched.
    #[error("no references from {host}: {reason}")]
    Fetch {
        /// The machine.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The profiler did not provide the expected data.
    #[error("the profiler: {reason}")]
    Profiler {
        /// The reason.
        reason: String,
    },
    /// The time limit of the whole run is exceeded.
    #[error("not measured: the time for the whole run is up")]
    NoTime,
    /// The user interrupts the program.
    #[error("interrupted")]
    Interrupted,
}

impl Peer {
    /// Returns a peer made of subcommands of this program, `program`.
    pub(crate) fn built_in(program: &Path, peer: &BuiltIn) -> Peer {
        let command = |words: &[String]| {
            std::iter::once(program.to_string_lossy().into_owned()).chain(words.iter().cloned()).collect()
        };
        Peer {
            name: peer.name.to_owned(),
            server: command(&peer.server),
            client: command(&peer.client),
            batch: peer.batch,
            zero_copy: peer.zero_copy,
            samples: peer.samples,
        }
    }

    /// Returns the same peer, with a server that compares each element of a flood with what clients send, and
    /// ends at the first difference; `None` if its server cannot.
    pub(crate) fn checking(&self) -> Option<Peer> {
        let mut peer = self.clone();
        let word = peer.server.iter_mut().find(|word| *word == CHECK)?;
        "--check".clone_into(word);
        Some(peer)
    }

    /// Returns whether its server listens at a configurable address, so that its client may be on another
    /// machine.
    pub(crate) fn is_mobile(&self) -> bool {
        self.server.iter().any(|word| word.contains(HOST))
    }

    /// Starts the server with `server` appended to its own arguments, runs the client with the arguments
    /// `client` until `deadline` at most, and ends both.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(crate) fn run_once(
        &self,
        server: &[String],
        client: Vec<String>,
        at: &mut Site<'_>,
    ) -> Result<ClientRun, Failure> {
        let mut server_command = self.words(&self.server, at, None);
        server_command.extend_from_slice(server);
        let mut server = start(at, "server", &at.placement.server_command(server_command, at.dir)?)?;
        let ready = wait_ready(at, &mut server)?;
        at.placement.fetch(at.dir)?;
        let meter = Meter::start(server.pid());
        let pid = server.pid().to_string();
        let client = self.client_command(client, at, &ready);
        let client = client.iter().map(|word| word.replace("{pid}", &pid)).collect();
        let mut client = start(at, "client", &at.placement.client_command(client))?;
        let (line, ended) = wait_line(at, &mut client, Some(&mut server))?;
        let processor = at.placement.is_local().then(|| meter.read()).flatten();
        let bad = |reason: String| Failure::BadLine { reason, line: line.clone() };
        let line = serde_json::from_str(&line).map_err(|e| bad(format!("not JSON: {e}")))?;
        Ok(ClientRun { line, processor, ended })
    }

    /// Runs the client, which needs no server.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(crate) fn run_client(&self, client: Vec<String>, at: &mut Site<'_>) -> Result<Value, Failure> {
        let mut client = start(at, "client", &self.client_command(client, at, ""))?;
        let (line, _) = wait_line(at, &mut client, None)?;
        let bad = |e| Failure::BadLine { reason: format!("not JSON: {e}"), line: line.clone() };
        serde_json::from_str(&line).map_err(bad)
    }

    fn client_command(&self, arguments: Vec<String>, at: &Site<'_>, ready: &str) -> Vec<String> {
        let mut words = self.words(&self.client, at, Some(ready));
        let place = words.iter().position(|w| w == "{args}");
        match place {
            Some(i) => drop(words.splice(i..=i, arguments)),
            None => words.extend(arguments),
        }
        words
    }

    fn words(&self, template: &[String], at: &Site<'_>, ready: Option<&str>) -> Vec<String> {
        let dir = at.dir.to_string_lossy();
        let port = ready
            .map(|r| r.get(r.trim_end_matches(|c: char| c.is_ascii_digit()).len()..).unwrap_or_default());
        let fill = |word: &String| {
            let word = word.replace("{dir}", &dir).replace(HOST, &at.placement.host);
            match (ready, port) {
                (Some(ready), Some(port)) => word.replace("{ready}", ready).replace("{port}", port),
                _ => word,
            }
        };
        template.iter().filter(|word| *word != CHECK).map(fill).collect()
    }
}

/// A peer that this program contains: names of subcommands and their arguments, with the same placeholders as
/// in [`Peer`].
#[derive(Debug, Clone)]
pub struct BuiltIn {
    /// The column's title.
    pub name: &'static str,
    /// Subcommand and arguments of the server.
    pub server: Vec<String>,
    /// Subcommand and arguments of the client.
    pub client: Vec<String>,
    /// Whether both take `--batch`.
    pub batch: bool,
    /// Whether the client takes `--type zstruct`.
    pub zero_copy: bool,
    /// Whether the client takes `--samples`.
    pub samples: bool,
}

impl BuiltIn {
    /// Returns a peer of two command lines, split at blanks.
    pub fn new(name: &'static str, server: &str, client: &str) -> BuiltIn {
        let words = |line: &str| line.split_whitespace().map(String::from).collect();
        BuiltIn {
            name,
            server: words(server),
            client: words(client),
            batch: false,
            zero_copy: false,
            samples: false,
        }
    }

    /// Returns the same peer, whose client takes `--type zstruct`.
    pub fn with_zero_copy(self) -> BuiltIn {
        BuiltIn { zero_copy: true, ..self }
    }

    /// Returns the same peer, whose client takes `--samples`.
    pub fn with_samples(self) -> BuiltIn {
        BuiltIn { samples: true, ..self }
    }

    /// Returns the same peer, whose server and client take `--batch`.
    pub fn with_batch(self) -> BuiltIn {
        BuiltIn { batch: true, ..self }
    }
}

/// The result of a client's run.
#[derive(Debug)]
pub(crate) struct ClientRun {
    /// The client's whole line.
    pub(crate) line: Value,
    /// Processor time, if the system provides it.
    pub(crate) processor: Option<Processor>,
    /// When the client printed its line, by the system's monotonic clock, which profilers use too.
    pub(crate) ended: Duration,
}

/// The environment and the time limits of a measurement.
pub(crate) struct Site<'a> {
    /// Starts the processes.
    pub(crate) children: &'a mut Children,
    /// A directory for files of the peers.
    pub(crate) dir: &'a Path,
    /// Where the processes run.
    pub(crate) placement: Placement,
    /// Cores for the processes.
    pub(crate) pins: Option<&'a Pins>,
    /// Timeout of a client.
    pub(crate) timeout: Duration,
    /// When the whole run has to end.
    pub(crate) deadline: Option<Instant>,
}

impl Site<'_> {
    /// Returns the time `time` from now, or the run's deadline if that is earlier.
    fn bounded(&self, time: Duration) -> Instant {
        let end = Instant::now() + time;
        self.deadline.map_or(end, |d| d.min(end))
    }

    /// Returns the failure for a timeout: [`Failure::NoTime`] if the run's deadline has passed.
    fn timed_out(&self, failure: Failure) -> Failure {
        if self.deadline.is_some_and(|d| Instant::now() >= d) { Failure::NoTime } else { failure }
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "write NAME=SERVER_CMD::CLIENT_CMD";
        let (name, commands) = text.split_once('=').ok_or(FORM)?;
        let (server, client) = commands.split_once("::").ok_or(FORM)?;
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let peer = Peer {
            name: name.trim().to_owned(),
            server: words(server),
            client: words(client),
            batch: false,
            zero_copy: false,
            samples: false,
        };
        if peer.name.is_empty() || peer.server.is_empty() || peer.client.is_empty() {
            return Err(FORM.into());
        }
        Ok(peer)
    }
}

fn start(at: &mut Site<'_>, role: &'static str, command: &[String]) -> Result<Process, Failure> {
    let cores = at.pins.map(|pins| if role == "server" { &pins.server } else { &pins.client });
    at.children.start(command, cores).map_err(|source| Failure::Start {
        role,
        program: command.first().cloned().unwrap_or_default(),
        source,
    })
}

/// Waits for READY, and returns the text after it.
fn wait_ready(at: &Site<'_>, server: &mut Process) -> Result<String, Failure> {
    // A server that creates a million objects needs as much time as a client.
    let waited = START.max(at.timeout);
    let deadline = at.bounded(waited);
    loop {
        match at.children.next_event(server, None, deadline) {
            ProcessEvent::Line(line) => {
                if let Some(how) = line.strip_prefix("READY") {
                    return Ok(how.trim().to_owned());
                }
            }
            ProcessEvent::Interrupted => return Err(Failure::Interrupted),
            ProcessEvent::Timeout => {
                server.stop();
                return Err(
                    at.timed_out(Failure::StartTimeout { waited, stderr: indented("server", server) })
                );
            }
            ProcessEvent::Closed | ProcessEvent::OtherClosed => {
                let status = server.wait(END).or_else(|| server.stop());
                return Err(Failure::NotReady {
                    status: format_exit(status),
                    stderr: indented("server", server),
                });
            }
        }
    }
}

/// Waits for the client's successful end, and returns its last line and when that was printed.
fn wait_line(
    at: &Site<'_>,
    client: &mut Process,
    mut server: Option<&mut Process>,
) -> Result<(String, Duration), Failure> {
    let deadline = at.bounded(at.timeout);
    let mut last = (String::new(), Duration::ZERO);
    loop {
        match at.children.next_event(client, server.as_deref(), deadline) {
            ProcessEvent::Line(line) => {
                if !line.is_empty() {
                    last = (line, monotonic());
                }
            }
            ProcessEvent::Interrupted => return Err(Failure::Interrupted),
            ProcessEvent::Timeout => {
                client.stop();
                let failure =
                    Failure::ClientTimeout { waited: at.timeout, stderr: indented("client", client) };
                return Err(at.timed_out(failure));
            }
            // Some servers close stdout after READY; only their exit is a failure.
            ProcessEvent::OtherClosed => {
                if let Some(server) = &mut server
                    && let Some(status) = server.wait(Duration::from_millis(100))
                {
                    let stderr = indented("server", server);
                    return Err(Failure::ServerDied { status: format_status(status), stderr });
                }
            }
            ProcessEvent::Closed => break,
        }
    }
    match client.wait(END) {
        Some(status) if status.success() => Ok(last),
        status => {
            let status = format_exit(status.or_else(|| client.stop()));
            let stderr = indented("client", client);
            let server_stderr = server.map_or_else(String::new, |server| {
                server.stop();
                indented("server", server)
            });
            Err(Failure::ClientFailed { status, stderr, server_stderr })
        }
    }
}

fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

fn format_exit(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "an unknown status".to_owned(), format_status)
}

/// Returns what a process wrote to stderr, formatted to follow a message.
fn indented(role: &str, process: &mut Process) -> String {
    process.stderr().lines().map(|line| format!("\n    {role}: {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site<'s>(children: &'s mut Children, dir: &'s Path, timeout: Duration) -> Site<'s> {
        Site { children, dir, placement: Placement::loopback(), pins: None, timeout, deadline: None }
    }

    fn ping() -> Vec<String> {
        ["ping", "--n", "5"].map(String::from).to_vec()
    }

    #[test]
    fn placeholders_and_arguments_find_their_place() {
        let mut children = Children::new();
        let at = &site(&mut children, Path::new("/d"), START);
        let peer: Peer = "a=srv --ior {dir}/x::cli {args} --ior {ready} --port {port}".parse().unwrap();
        assert_eq!((peer.name.as_str(), peer.is_mobile()), ("a", false));
        assert_eq!(peer.words(&peer.server, at, None).join(" "), "srv --ior /d/x");
        let client = peer.client_command(ping(), at, "h:47");
        assert_eq!(client.join(" "), "cli ping --n 5 --ior h:47 --port 47");
        let peer: Peer = "b=srv --at {host}::env IOR=corbaloc::h:1 cli".parse().unwrap();
        assert_eq!(
            (peer.words(&peer.server, at, None).join(" "), peer.is_mobile()),
            ("srv --at 127.0.0.1".into(), true)
        );
        let client = peer.client_command(ping(), at, "");
        assert_eq!(client.join(" "), "env IOR=corbaloc::h:1 cli ping --n 5");
    }

    #[test]
    fn half_a_peer_is_refused() {
        for bad in ["a", "a=s", "=s::c", "a=::c", "a=s::", "a= :: "] {
            assert!(bad.parse::<Peer>().is_err(), "{bad}");
        }
    }
}
