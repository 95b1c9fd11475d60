//! The peers of a run: commands of servers and clients, and one execution of both.

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
use super::processor::{Meter, ProcessorTime};

/// Minimum time within which a server must print READY.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time within which a process must exit after it has closed stdout.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The placeholder in a server's command for the option to check contents.
const CHECK: &str = "{check}";

/// The commands of a peer, with placeholders.
///
/// In both commands, `{dir}` is a directory of the run, and `{host}` the address at which servers listen. In
/// the server's command, `{check}` is `--check` or nothing. In the client's command, `{ready}` is the text
/// after READY in the server's output, and `{port}` the digits at the end of this text. `{pid}` is the
/// server's process id. A word `{args}` is the test and its options; without it, they are appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// The title of the peer's column or row in tables.
    pub name: String,
    /// The server's program and arguments.
    pub server: Vec<String>,
    /// The client's program and arguments.
    pub client: Vec<String>,
    /// Whether client and server have the option `--batch`.
    pub batch: bool,
    /// Whether the client supports `--type zstruct`. Other clients send plain structs, which have the same
    /// encoding.
    pub zero_copy: bool,
    /// Whether the client has the option `--samples`.
    pub samples: bool,
}

/// The reason why a measurement failed.
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
    /// The server did not print READY in time.
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
    #[error("the client's last line is not a result: {reason}: {line:?}")]
    BadLine {
        /// The reason.
        reason: String,
        /// The line.
        line: String,
    },
    /// The link between client and server could not be set up.
    #[error("cannot set up the link of {link}: {reason}")]
    Link {
        /// Its name.
        link: String,
        /// The reason.
        reason: String,
    },
    /// A server could not be started on another machine, or its files could not be fetched.
    #[error("cannot fetch references from {host}: {reason}")]
    Fetch {
        /// The machine.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The profiler did not provide the expected data.
    #[error("the profiler failed: {reason}")]
    Profiler {
        /// The reason.
        reason: String,
    },
    /// The deadline of the whole run has passed.
    #[error("not measured: the time limit of the whole run is exceeded")]
    NoTime,
    /// The user interrupted the program.
    #[error("interrupted")]
    Interrupted,
}

impl Peer {
    /// Returns a peer whose commands are subcommands of this program, at the path `program`.
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

    /// Returns the same peer with the server's option `--check`; `None` if the server has no such option.
    pub(crate) fn with_check(&self) -> Option<Peer> {
        let mut peer = self.clone();
        let word = peer.server.iter_mut().find(|word| *word == CHECK)?;
        "--check".clone_into(word);
        Some(peer)
    }

    /// Returns whether the server listens at a configurable address, as required by links other than
    /// loopback.
    pub(crate) fn has_host_placeholder(&self) -> bool {
        self.server.iter().any(|word| word.contains(HOST))
    }

    /// Starts the server with the additional arguments `server`, runs the client with the arguments `client`
    /// as its test, and ends both.
    pub(crate) fn run_once(
        &self,
        server: &[String],
        client: Vec<String>,
        site: &mut Site<'_>,
    ) -> Result<ClientRun, Failure> {
        let mut server_command = self.words(&self.server, site, None);
        server_command.extend_from_slice(server);
        let mut server = start(site, "server", &site.placement.server_command(server_command, site.dir)?)?;
        let ready = wait_ready(site, &mut server)?;
        site.placement.fetch(site.dir)?;
        let meter = Meter::start(server.pid());
        let pid = server.pid().to_string();
        let client = self.client_command(client, site, &ready);
        let client = client.iter().map(|word| word.replace("{pid}", &pid)).collect();
        let mut client = start(site, "client", &site.placement.client_command(client))?;
        let (line, ended_at) = wait_line(site, &mut client, Some(&mut server))?;
        let processor = site.placement.is_local().then(|| meter.read()).flatten();
        let bad = |reason: String| Failure::BadLine { reason, line: line.clone() };
        let line = serde_json::from_str(&line).map_err(|e| bad(format!("not JSON: {e}")))?;
        Ok(ClientRun { line, processor, ended_at })
    }

    /// Runs only the client, for a peer without a server.
    pub(crate) fn run_client(&self, client: Vec<String>, site: &mut Site<'_>) -> Result<Value, Failure> {
        let mut client = start(site, "client", &self.client_command(client, site, ""))?;
        let (line, _) = wait_line(site, &mut client, None)?;
        let bad = |e| Failure::BadLine { reason: format!("not JSON: {e}"), line: line.clone() };
        serde_json::from_str(&line).map_err(bad)
    }

    fn client_command(&self, arguments: Vec<String>, site: &Site<'_>, ready: &str) -> Vec<String> {
        let mut words = self.words(&self.client, site, Some(ready));
        match words.iter().position(|w| w == "{args}") {
            Some(i) => drop(words.splice(i..=i, arguments)),
            None => words.extend(arguments),
        }
        words
    }

    fn words(&self, template: &[String], site: &Site<'_>, ready: Option<&str>) -> Vec<String> {
        let dir = site.dir.to_string_lossy();
        let port = ready
            .map(|r| r.get(r.trim_end_matches(|c: char| c.is_ascii_digit()).len()..).unwrap_or_default());
        let fill = |word: &String| {
            let word = word.replace("{dir}", &dir).replace(HOST, &site.placement.host);
            match (ready, port) {
                (Some(ready), Some(port)) => word.replace("{ready}", ready).replace("{port}", port),
                _ => word,
            }
        };
        template.iter().filter(|word| *word != CHECK).map(fill).collect()
    }
}

/// A peer that this program contains: subcommands and their arguments, with the placeholders of [`Peer`].
#[derive(Debug, Clone)]
pub struct BuiltIn {
    /// The title of the peer's column or row in tables.
    pub name: &'static str,
    /// Subcommand and arguments of the server.
    pub server: Vec<String>,
    /// Subcommand and arguments of the client.
    pub client: Vec<String>,
    /// Whether client and server have the option `--batch`.
    pub batch: bool,
    /// Whether the client supports `--type zstruct`.
    pub zero_copy: bool,
    /// Whether the client has the option `--samples`.
    pub samples: bool,
}

impl BuiltIn {
    /// Returns a peer with these commands, which are split into words at blanks.
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

    /// Sets that the client supports `--type zstruct`.
    pub fn with_zero_copy(self) -> BuiltIn {
        BuiltIn { zero_copy: true, ..self }
    }

    /// Sets that the client has the option `--samples`.
    pub fn with_samples(self) -> BuiltIn {
        BuiltIn { samples: true, ..self }
    }

    /// Sets that client and server have the option `--batch`.
    pub fn with_batch(self) -> BuiltIn {
        BuiltIn { batch: true, ..self }
    }
}

/// The result of a client's run.
#[derive(Debug)]
pub(crate) struct ClientRun {
    /// The client's whole line.
    pub(crate) line: Value,
    /// ProcessorTime times, if the system provides them.
    pub(crate) processor: Option<ProcessorTime>,
    /// When the client printed its line, by the system's monotonic clock, which profilers use, too.
    pub(crate) ended_at: Duration,
}

/// The environment and the time limits of a measurement.
pub(crate) struct Site<'a> {
    pub(crate) children: &'a mut Children,
    /// A directory for files of the peers.
    pub(crate) dir: &'a Path,
    /// Where the processes run.
    pub(crate) placement: Placement,
    /// Cores for the processes.
    pub(crate) pins: Option<&'a Pins>,
    /// Timeout of a client.
    pub(crate) timeout: Duration,
    /// When the whole run must end.
    pub(crate) deadline: Option<Instant>,
}

impl Site<'_> {
    /// Returns the end of a timeout that starts now, but at most the run's deadline.
    fn deadline_of(&self, timeout: Duration) -> Instant {
        let end = Instant::now() + timeout;
        self.deadline.map_or(end, |d| d.min(end))
    }

    /// Returns the failure of a timeout, or [`Failure::NoTime`] if the run's deadline has passed.
    fn timeout_failure(&self, failure: Failure) -> Failure {
        if self.deadline.is_some_and(|d| Instant::now() >= d) { Failure::NoTime } else { failure }
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a peer must have the form NAME=SERVER_CMD::CLIENT_CMD";
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

fn start(site: &mut Site<'_>, role: &'static str, command: &[String]) -> Result<Process, Failure> {
    let cores = site.pins.map(|pins| if role == "server" { &pins.server } else { &pins.client });
    site.children.start(command, cores).map_err(|source| Failure::Start {
        role,
        program: command.first().cloned().unwrap_or_default(),
        source,
    })
}

/// Waits until the server prints READY, and returns the text after it.
fn wait_ready(site: &Site<'_>, server: &mut Process) -> Result<String, Failure> {
    // A server that creates a million objects needs as much time as a client.
    let waited = START_TIMEOUT.max(site.timeout);
    let deadline = site.deadline_of(waited);
    loop {
        match site.children.next_event(server, None, deadline) {
            ProcessEvent::Line(line) => {
                if let Some(address) = line.strip_prefix("READY") {
                    return Ok(address.trim().to_owned());
                }
            }
            ProcessEvent::Interrupted => return Err(Failure::Interrupted),
            ProcessEvent::Timeout => {
                server.stop();
                return Err(site.timeout_failure(Failure::StartTimeout {
                    waited,
                    stderr: indented_stderr("server", server),
                }));
            }
            ProcessEvent::Closed | ProcessEvent::OtherClosed => {
                let status = server.wait(EXIT_TIMEOUT).or_else(|| server.stop());
                return Err(Failure::NotReady {
                    status: format_exit(status),
                    stderr: indented_stderr("server", server),
                });
            }
        }
    }
}

/// Waits until the client has ended successfully. Returns its last line, and when it printed this line.
fn wait_line(
    site: &Site<'_>,
    client: &mut Process,
    mut server: Option<&mut Process>,
) -> Result<(String, Duration), Failure> {
    let deadline = site.deadline_of(site.timeout);
    let mut last = (String::new(), Duration::ZERO);
    loop {
        match site.children.next_event(client, server.as_deref(), deadline) {
            ProcessEvent::Line(line) => {
                if !line.is_empty() {
                    last = (line, monotonic());
                }
            }
            ProcessEvent::Interrupted => return Err(Failure::Interrupted),
            ProcessEvent::Timeout => {
                client.stop();
                let failure = Failure::ClientTimeout {
                    waited: site.timeout,
                    stderr: indented_stderr("client", client),
                };
                return Err(site.timeout_failure(failure));
            }
            // Some servers close stdout after READY: this is a failure only if they exited.
            ProcessEvent::OtherClosed => {
                if let Some(server) = &mut server
                    && let Some(status) = server.wait(Duration::from_millis(100))
                {
                    let stderr = indented_stderr("server", server);
                    return Err(Failure::ServerDied { status: format_status(status), stderr });
                }
            }
            ProcessEvent::Closed => break,
        }
    }
    match client.wait(EXIT_TIMEOUT) {
        Some(status) if status.success() => Ok(last),
        status => {
            let status = format_exit(status.or_else(|| client.stop()));
            let stderr = indented_stderr("client", client);
            let server_stderr = server.map_or_else(String::new, |server| {
                server.stop();
                indented_stderr("server", server)
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

/// Returns the stderr of a process as indented lines after a message.
fn indented_stderr(role: &str, process: &mut Process) -> String {
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
    fn placeholders_and_arguments_are_replaced() {
        let mut children = Children::new();
        let site = &site(&mut children, Path::new("/d"), START_TIMEOUT);
        let peer: Peer = "a=srv --ior {dir}/x::cli {args} --ior {ready} --port {port}".parse().unwrap();
        assert_eq!((peer.name.as_str(), peer.has_host_placeholder()), ("a", false));
        assert_eq!(peer.words(&peer.server, site, None).join(" "), "srv --ior /d/x");
        let client = peer.client_command(ping(), site, "h:47");
        assert_eq!(client.join(" "), "cli ping --n 5 --ior h:47 --port 47");
        let peer: Peer = "b=srv --at {host}::env IOR=corbaloc::h:1 cli".parse().unwrap();
        assert_eq!(
            (peer.words(&peer.server, site, None).join(" "), peer.has_host_placeholder()),
            ("srv --at 127.0.0.1".into(), true)
        );
        let client = peer.client_command(ping(), site, "");
        assert_eq!(client.join(" "), "env IOR=corbaloc::h:1 cli ping --n 5");
    }

    #[test]
    fn incomplete_peers_are_rejected() {
        for bad in ["a", "a=s", "=s::c", "a=::c", "a=s::", "a= :: "] {
            assert!(bad.parse::<Peer>().is_err(), "{bad}");
        }
    }
}
