//! The peers of a run: the commands of servers and clients, and one execution of both.

use std::path::Path;
use std::process::ExitStatus;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::children::{Children, Process, ProcessEvent, format_status};
use super::cores::PinnedCores;
use super::placement::{HOST_PLACEHOLDER, Placement};
use super::processor::{Meter, ProcessorTime};
use crate::series::now;

/// Time within which a server must print READY, unless the timeout of clients is longer.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time within which a process must exit after it has closed stdout.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The placeholder in a server's command for the option to check contents.
const CHECK_PLACEHOLDER: &str = "{check}";

/// The commands of a peer, with placeholders.
///
/// In both commands, `{dir}` is a directory of the run, and `{host}` the address at which servers listen. In
/// the server's command, `{check}` is `--check` or nothing. In the client's command, `{ready}` is the text
/// after READY in the server's output, `{port}` the digits at the end of this text, and `{pid}` the server's
/// process id. A word `{args}` is replaced with the test and its options, which are otherwise appended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// The title of the peer's column or row in tables.
    pub name: String,
    /// The server's program and arguments.
    pub server: Vec<String>,
    /// The client's program and arguments.
    pub client: Vec<String>,
    /// Whether client and server have the option `--batch`.
    #[serde(rename = "batch")]
    pub has_batch: bool,
    /// Whether the client supports `--type zstruct`. Other clients send plain structs in the same encoding.
    #[serde(rename = "zero_copy")]
    pub supports_zstruct: bool,
    /// Whether the client has the option `--samples`.
    #[serde(rename = "samples")]
    pub has_samples: bool,
}

/// The reason why a measurement failed. If a program failed, its text ends with the last lines of its stderr.
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
    #[error("cannot set up the link {link}: {reason}")]
    Link { link: String, reason: String },
    #[error("cannot fetch references from {host}: {reason}")]
    Fetch { host: String, reason: String },
    #[error("the profiler failed: {reason}")]
    Profiler { reason: String },
    #[error("not measured, because the time limit of the whole run is exceeded")]
    RunTimeout,
    #[error("interrupted")]
    Interrupted,
}

impl Peer {
    /// Returns a peer whose commands are subcommands of this program, at the path `program`.
    pub(crate) fn built_in(program: &Path, BuiltInPeer(peer): &BuiltInPeer) -> Peer {
        let command = |words: &[String]| {
            std::iter::once(program.to_string_lossy().into_owned()).chain(words.iter().cloned()).collect()
        };
        Peer { server: command(&peer.server), client: command(&peer.client), ..peer.clone() }
    }

    /// Returns a peer with these commands, which are split into words at spaces.
    fn of_commands(name: &str, server: &str, client: &str) -> Peer {
        let words = |line: &str| line.split_whitespace().map(String::from).collect();
        Peer { name: name.to_owned(), server: words(server), client: words(client), ..Peer::default() }
    }

    /// Returns the peer with the server's option `--check`; `None` if the server has no such option.
    pub(crate) fn with_check(&self) -> Option<Peer> {
        let mut peer = self.clone();
        let word = peer.server.iter_mut().find(|word| *word == CHECK_PLACEHOLDER)?;
        "--check".clone_into(word);
        Some(peer)
    }

    /// Returns whether the server's address can be configured, which links other than loopback require.
    pub(crate) fn has_host_placeholder(&self) -> bool {
        self.server.iter().any(|word| word.contains(HOST_PLACEHOLDER))
    }

    /// Starts the server with more arguments, runs the client with a test and its options, and ends both.
    pub(crate) fn run_once(
        &self,
        server: &[String],
        client: Vec<String>,
        context: &mut RunContext<'_>,
    ) -> Result<ClientRun, Failure> {
        let mut server_command = self.fill_placeholders(&self.server, context, None);
        server_command.extend_from_slice(server);
        let server_command = context.placement.server_command(server_command, context.dir)?;
        let mut server = start(context, "server", &server_command)?;
        let ready = wait_ready(context, &mut server)?;
        context.placement.fetch_files(context.dir)?;
        let meter = Meter::start(server.pid());
        let pid = server.pid().to_string();
        let client = self.client_command(client, context, &ready);
        let client = client.iter().map(|word| word.replace("{pid}", &pid)).collect();
        let mut client = start(context, "client", &context.placement.client_command(client))?;
        let (line, line_received_at) = wait_line(context, &mut client, Some(&mut server))?;
        let processor = context.placement.is_local().then(|| meter.read()).flatten();
        let bad = |reason: String| Failure::BadLine { reason, line: line.clone() };
        let line = serde_json::from_str(&line).map_err(|e| bad(format!("not JSON: {e}")))?;
        Ok(ClientRun { line, processor, line_received_at })
    }

    /// Runs only the client, for tests that need no server.
    pub(crate) fn run_client(
        &self,
        test: Vec<String>,
        context: &mut RunContext<'_>,
    ) -> Result<Value, Failure> {
        let mut client = start(context, "client", &self.client_command(test, context, ""))?;
        let (line, _) = wait_line(context, &mut client, None)?;
        let bad = |e| Failure::BadLine { reason: format!("not JSON: {e}"), line: line.clone() };
        serde_json::from_str(&line).map_err(bad)
    }

    fn client_command(&self, arguments: Vec<String>, context: &RunContext<'_>, ready: &str) -> Vec<String> {
        let mut words = self.fill_placeholders(&self.client, context, Some(ready));
        match words.iter().position(|w| w == "{args}") {
            Some(i) => drop(words.splice(i..=i, arguments)),
            None => words.extend(arguments),
        }
        words
    }

    /// Returns the command `template` with the placeholders replaced, except `{args}` and `{pid}`.
    fn fill_placeholders(
        &self,
        template: &[String],
        context: &RunContext<'_>,
        ready: Option<&str>,
    ) -> Vec<String> {
        let dir = context.dir.to_string_lossy();
        let port = ready
            .map(|r| r.get(r.trim_end_matches(|c: char| c.is_ascii_digit()).len()..).unwrap_or_default());
        let fill = |word: &String| {
            let word = word.replace("{dir}", &dir).replace(HOST_PLACEHOLDER, &context.placement.host);
            match (ready, port) {
                (Some(ready), Some(port)) => word.replace("{ready}", ready).replace("{port}", port),
                _ => word,
            }
        };
        template.iter().filter(|word| *word != CHECK_PLACEHOLDER).map(fill).collect()
    }
}

/// A peer that this program contains: subcommands and their arguments, with the placeholders of [`Peer`].
#[derive(Debug, Clone)]
pub struct BuiltInPeer(Peer);

impl BuiltInPeer {
    /// Returns a peer with these commands, which are split into words at spaces.
    pub fn new(name: &str, server: &str, client: &str) -> BuiltInPeer {
        BuiltInPeer(Peer::of_commands(name, server, client))
    }

    /// Returns the peer with a client that supports `--type zstruct`.
    pub fn with_zstruct(self) -> BuiltInPeer {
        BuiltInPeer(Peer { supports_zstruct: true, ..self.0 })
    }

    /// Returns the peer with a client that has the option `--samples`.
    pub fn with_samples(self) -> BuiltInPeer {
        BuiltInPeer(Peer { has_samples: true, ..self.0 })
    }

    /// Returns the peer with a client and a server that have the option `--batch`.
    pub fn with_batch(self) -> BuiltInPeer {
        BuiltInPeer(Peer { has_batch: true, ..self.0 })
    }
}

#[derive(Debug)]
pub(crate) struct ClientRun {
    /// The last line of the client's output.
    pub(crate) line: Value,
    pub(crate) processor: Option<ProcessorTime>,
    /// When this line was received, by the system's monotonic clock, which profilers also use.
    pub(crate) line_received_at: Duration,
}

/// How the processes of measurements are run.
pub(crate) struct RunContext<'a> {
    pub(crate) children: &'a mut Children,
    /// The directory for the files of server and client.
    pub(crate) dir: &'a Path,
    pub(crate) placement: Placement,
    pub(crate) cores: Option<&'a PinnedCores>,
    pub(crate) timeout: Duration,
    /// The time at which the whole run must end.
    pub(crate) deadline: Option<Instant>,
}

impl RunContext<'_> {
    fn deadline_of(&self, timeout: Duration) -> Instant {
        let end = Instant::now() + timeout;
        self.deadline.map_or(end, |d| d.min(end))
    }

    /// Returns `failure`, or [`Failure::RunTimeout`] if the deadline of the whole run has passed.
    fn timeout_failure(&self, failure: Failure) -> Failure {
        if self.deadline.is_some_and(|d| Instant::now() >= d) { Failure::RunTimeout } else { failure }
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

fn start(context: &mut RunContext<'_>, role: &'static str, command: &[String]) -> Result<Process, Failure> {
    let cores = context.cores.map(|cores| if role == "server" { &cores.server } else { &cores.client });
    context.children.start(command, cores).map_err(|source| Failure::Start {
        role,
        program: command.first().cloned().unwrap_or_default(),
        source,
    })
}

/// Waits until the server prints READY, and returns the text after it.
fn wait_ready(context: &RunContext<'_>, server: &mut Process) -> Result<String, Failure> {
    // A server that creates a million objects may need as much time as a client.
    let waited = START_TIMEOUT.max(context.timeout);
    let deadline = context.deadline_of(waited);
    loop {
        match context.children.next_event(server, None, deadline) {
            ProcessEvent::Line(line) => {
                if let Some(address) = line.strip_prefix("READY") {
                    return Ok(address.trim().to_owned());
                }
            }
            ProcessEvent::Interrupted => return Err(Failure::Interrupted),
            ProcessEvent::Timeout => {
                server.stop();
                return Err(context.timeout_failure(Failure::StartTimeout {
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

/// Waits until the client has ended successfully. Returns its last line, and when this line was received.
fn wait_line(
    context: &RunContext<'_>,
    client: &mut Process,
    mut server: Option<&mut Process>,
) -> Result<(String, Duration), Failure> {
    let deadline = context.deadline_of(context.timeout);
    let mut last = (String::new(), Duration::ZERO);
    loop {
        match context.children.next_event(client, server.as_deref(), deadline) {
            ProcessEvent::Line(line) => {
                if !line.is_empty() {
                    last = (line, Duration::from_nanos(now()));
                }
            }
            ProcessEvent::Interrupted => return Err(Failure::Interrupted),
            ProcessEvent::Timeout => {
                client.stop();
                let failure = Failure::ClientTimeout {
                    waited: context.timeout,
                    stderr: indented_stderr("client", client),
                };
                return Err(context.timeout_failure(failure));
            }
            // Some servers close stdout after READY. This is a failure only if they have also exited.
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

    fn context<'s>(children: &'s mut Children, dir: &'s Path, timeout: Duration) -> RunContext<'s> {
        RunContext { children, dir, placement: Placement::loopback(), cores: None, timeout, deadline: None }
    }

    fn ping() -> Vec<String> {
        ["ping", "--n", "5"].map(String::from).to_vec()
    }

    #[test]
    fn placeholders_and_arguments_are_replaced() {
        let mut children = Children::new();
        let context = &context(&mut children, Path::new("/d"), START_TIMEOUT);
        let peer: Peer = "a=srv --ior {dir}/x::cli {args} --ior {ready} --port {port}".parse().unwrap();
        assert_eq!((peer.name.as_str(), peer.has_host_placeholder()), ("a", false));
        assert_eq!(peer.fill_placeholders(&peer.server, context, None).join(" "), "srv --ior /d/x");
        let client = peer.client_command(ping(), context, "h:47");
        assert_eq!(client.join(" "), "cli ping --n 5 --ior h:47 --port 47");
        let peer: Peer = "b=srv --at {host}::env IOR=corbaloc::h:1 cli".parse().unwrap();
        assert_eq!(
            (peer.fill_placeholders(&peer.server, context, None).join(" "), peer.has_host_placeholder()),
            ("srv --at 127.0.0.1".into(), true)
        );
        let client = peer.client_command(ping(), context, "");
        assert_eq!(client.join(" "), "env IOR=corbaloc::h:1 cli ping --n 5");
    }

    #[test]
    fn incomplete_peers_are_rejected() {
        for bad in ["a", "a=s", "=s::c", "a=::c", "a=s::", "a= :: "] {
            assert!(bad.parse::<Peer>().is_err(), "{bad}");
        }
    }
}
