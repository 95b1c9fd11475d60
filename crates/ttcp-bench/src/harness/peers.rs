//! The peers of a run: commands of servers and clients, and one execution of both.

use std::path::Path;
use std::process::ExitStatus;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::children::{Children, Process, ProcessEvent, format_status};
use super::cores::Pins;
use super::placement::{HOST, Placement};
use super::processor::{Meter, ProcessorTime};
use crate::series::now;

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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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

/// The reason why a measurement failed. The ends of stderr in it are on lines of their own.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("cannot start the {role} ({program}): {source}")]
    Start { role: &'static str, program: String, source: std::io::Error },
    #[error("the server ended with {status} before it was ready{stderr}")]
    NotReady { status: String, stderr: String },
    #[error("the server was not ready within {} s{stderr}", .waited.as_secs_f64())]
    StartTimeout { waited: Duration, stderr: String },
    #[error("the server ended with {status} during the test{stderr}")]
    ServerDied { status: String, stderr: String },
    #[error("the client ended with {status}{stderr}{server_stderr}")]
    ClientFailed { status: String, stderr: String, server_stderr: String },
    #[error("the client was not done within {} s{stderr}", .waited.as_secs_f64())]
    ClientTimeout { waited: Duration, stderr: String },
    #[error("the client's last line is not a result: {reason}: {line:?}")]
    BadLine { reason: String, line: String },
    #[error("cannot set up the link of {link}: {reason}")]
    Link { link: String, reason: String },
    #[error("cannot fetch references from {host}: {reason}")]
    Fetch { host: String, reason: String },
    #[error("the profiler failed: {reason}")]
    Profiler { reason: String },
    #[error("not measured: the time limit of the whole run is exceeded")]
    NoTime,
    #[error("interrupted")]
    Interrupted,
}

impl Peer {
    /// Returns a peer whose commands are subcommands of this program, at the path `program`.
    pub(crate) fn built_in(program: &Path, BuiltIn(peer): &BuiltIn) -> Peer {
        let command = |words: &[String]| {
            std::iter::once(program.to_string_lossy().into_owned()).chain(words.iter().cloned()).collect()
        };
        Peer { server: command(&peer.server), client: command(&peer.client), ..peer.clone() }
    }

    /// Returns a peer with these commands, which are split into words at blanks.
    fn of_commands(name: &str, server: &str, client: &str) -> Peer {
        let words = |line: &str| line.split_whitespace().map(String::from).collect();
        Peer { name: name.to_owned(), server: words(server), client: words(client), ..Peer::default() }
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
pub struct BuiltIn(Peer);

impl BuiltIn {
    /// Returns a peer with these commands, which are split into words at blanks.
    pub fn new(name: &str, server: &str, client: &str) -> BuiltIn {
        BuiltIn(Peer::of_commands(name, server, client))
    }

    /// Sets that the client supports `--type zstruct`.
    pub fn with_zero_copy(self) -> BuiltIn {
        BuiltIn(Peer { zero_copy: true, ..self.0 })
    }

    /// Sets that the client has the option `--samples`.
    pub fn with_samples(self) -> BuiltIn {
        BuiltIn(Peer { samples: true, ..self.0 })
    }

    /// Sets that client and server have the option `--batch`.
    pub fn with_batch(self) -> BuiltIn {
        BuiltIn(Peer { batch: true, ..self.0 })
    }
}

#[derive(Debug)]
pub(crate) struct ClientRun {
    pub(crate) line: Value,
    pub(crate) processor: Option<ProcessorTime>,
    /// When the client printed its line, by the system's monotonic clock, which profilers use, too.
    pub(crate) ended_at: Duration,
}

pub(crate) struct Site<'a> {
    pub(crate) children: &'a mut Children,
    pub(crate) dir: &'a Path,
    pub(crate) placement: Placement,
    pub(crate) pins: Option<&'a Pins>,
    pub(crate) timeout: Duration,
    pub(crate) deadline: Option<Instant>,
}

impl Site<'_> {
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
        let peer = Peer::of_commands(name.trim(), server, client);
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
                    last = (line, Duration::from_nanos(now()));
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

fn format_exit(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "an unknown status".to_owned(), format_status)
}

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
