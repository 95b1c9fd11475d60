//! Peers that are separate programs. `ttcp peers build` builds them from `peers/` if their tools exist.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use rustix::fs::{FlockOperation, flock};

use crate::figures::{Column, Table, markdown};
use crate::harness::Peer;

/// The exit code of a build script if a required tool is not installed.
const EXIT_MISSING_TOOLS: i32 = 3;
/// Maximum number of the last lines of a failed build's output that are shown.
const MAX_LOG_LINES: usize = 20;

/// The peer in C that sends with MSG_ZEROCOPY, so that the kernel does not copy the program's buffers.
pub(crate) const ZERO_COPY_PEER: &str = "c-zero-copy";

/// The peer that sends by ONC RPC without the XDR encoding.
const OPAQUE_PEER: &str = "rpc-opaque";

/// The peers that send elements in their memory representation.
pub(crate) const MEMORY_REPRESENTATION_PEERS: [&str; 4] = ["c", ZERO_COPY_PEER, "cxx", OPAQUE_PEER];

struct ExternalPeer {
    name: &'static str,
    subfolder: &'static str,
    about: &'static str,
    server_arguments: &'static str,
    client_arguments: &'static str,
    /// Whether client and server have the option `--batch`.
    has_batch: bool,
}

const EXTERNAL_PEERS: &[ExternalPeer] = &[
    ExternalPeer {
        name: "c",
        subfolder: "c",
        about: "C, blocking sockets, elements in their memory representation",
        server_arguments: "--lifeline --host {host} --port 0 --fresh {check}",
        client_arguments: "{args} --host {host} --port {port}",
        has_batch: true,
    },
    ExternalPeer {
        name: ZERO_COPY_PEER,
        subfolder: "c",
        about: "C, blocking sockets with MSG_ZEROCOPY, if the kernel supports it",
        server_arguments: "--lifeline --host {host} --port 0 --fresh {check}",
        client_arguments: "{args} --host {host} --port {port} --zerocopy",
        has_batch: false,
    },
    ExternalPeer {
        name: "cxx",
        subfolder: "cxx",
        about: "C++, a thin wrapper around blocking sockets",
        server_arguments: "--lifeline --host {host} --port 0 {check}",
        client_arguments: "{args} --host {host} --port {port}",
        has_batch: true,
    },
    ExternalPeer {
        name: "rpc",
        subfolder: "rpc",
        about: "ONC RPC with the XDR code that rpcgen generates, libtirpc",
        server_arguments: "--lifeline --host {host} --port 0 {check}",
        client_arguments: "{args} --host {host} --port {port}",
        has_batch: false,
    },
    ExternalPeer {
        name: OPAQUE_PEER,
        subfolder: "rpc",
        about: "ONC RPC with elements as opaque data, as in hand-optimised code",
        server_arguments: "--lifeline --host {host} --port 0 {check}",
        client_arguments: "{args} --host {host} --port {port} --opaque",
        has_batch: false,
    },
    ExternalPeer {
        name: "tonic",
        subfolder: "tonic",
        about: "gRPC, Rust (takes minutes to build)",
        server_arguments: "--lifeline --host {host} --port 0 {check}",
        client_arguments: "{args} --host {host} --port {port}",
        has_batch: false,
    },
    ExternalPeer {
        name: "omniorb",
        subfolder: "omniorb",
        about: "omniORB 4, C++",
        server_arguments: "--host {host} --port 0 --ior {dir}/omniorb.ior {check}",
        client_arguments: "{args} --ior {ready}",
        has_batch: false,
    },
    ExternalPeer {
        name: "jacorb",
        subfolder: "jacorb",
        about: "JacORB 3.9, Java",
        server_arguments: "--host {host} --port 0 --ior {dir}/jacorb.ior {check}",
        client_arguments: "{args} --ior {ready}",
        has_batch: false,
    },
];

/// `ttcp peers`.
#[derive(Debug, Clone, Subcommand)]
pub enum PeersCommand {
    /// Build the named peers, or all peers, if their tools are installed
    Build(BuildArgs),
    /// List the peers
    List,
}

/// Options of `ttcp peers build`.
#[derive(Debug, Clone, Args)]
pub struct BuildArgs {
    /// Names of peers (default: all)
    pub names: Vec<String>,
}

/// Performs `ttcp peers`. Does not build a peer whose tools are not installed, and reports this on stderr.
///
/// # Errors
/// A name is unknown, or the directory in which this program was built does not have the peers' sources.
pub fn peers(command: &PeersCommand) -> anyhow::Result<ExitCode> {
    match command {
        PeersCommand::Build(args) => build(&args.names),
        PeersCommand::List => {
            writeln!(std::io::stdout().lock(), "{}", list()?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub(crate) fn built_peers() -> anyhow::Result<Vec<Peer>> {
    let built_peers_dir = built_peers_dir()?;
    Ok(EXTERNAL_PEERS
        .iter()
        .filter(|external| external.is_built(&built_peers_dir))
        .map(|external| external.peer(&built_peers_dir))
        .collect())
}

/// Returns the peers of `available` that `selected` names, or all of them if it is `None`, followed by the
/// peers `extra`. `selected` is the value of `--peers`.
pub(crate) fn select_peers<T>(
    available: Vec<T>,
    extra: Vec<T>,
    selected: Option<&[String]>,
    peer: impl Fn(&T) -> &Peer,
) -> anyhow::Result<Vec<T>> {
    let mut all = available;
    let names: Vec<String> = all.iter().map(|one| peer(one).name.clone()).collect();
    match selected {
        None => {}
        Some([none]) if none == "none" => all.clear(),
        Some(selected) => {
            if let Some(unknown) = selected.iter().find(|name| !names.contains(name)) {
                bail!(
                    "there is no peer '{unknown}', only: {} (ttcp peers build builds further peers)",
                    names.join(", ")
                );
            }
            all.retain(|one| selected.contains(&peer(one).name));
        }
    }
    all.extend(extra);
    let mut names = BTreeSet::new();
    if let Some(duplicate) = all.iter().find(|one| !names.insert(&peer(one).name)) {
        bail!("two peers are called '{}': use another name with --peer", peer(duplicate).name);
    }
    Ok(all)
}

/// Returns the directory of the built peers. It is next to the directory of the cargo profile in which this
/// program was built, so that all profiles use the same peers.
fn built_peers_dir() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let target =
        program.parent().and_then(Path::parent).context("this program's own file has no directory")?;
    Ok(target.join("ttcp-peers"))
}

impl ExternalPeer {
    /// Returns whether the peer has programs of its own. If not, it runs the programs of another peer.
    fn has_own_programs(&self) -> bool {
        self.subfolder == self.name
    }

    fn programs(&self, built_peers_dir: &Path) -> [PathBuf; 2] {
        ["bench-server", "bench-client"].map(|program| built_peers_dir.join(self.subfolder).join(program))
    }

    fn is_built(&self, built_peers_dir: &Path) -> bool {
        self.programs(built_peers_dir).iter().all(|program| program.is_file())
    }

    fn peer(&self, built_peers_dir: &Path) -> Peer {
        let [server, client] = self.programs(built_peers_dir);
        let command = |program: &Path, arguments: &str| {
            let program = program.to_string_lossy().into_owned();
            std::iter::once(program).chain(arguments.split_whitespace().map(String::from)).collect()
        };
        Peer {
            name: self.name.to_owned(),
            server: command(&server, self.server_arguments),
            client: command(&client, self.client_arguments),
            has_batch: self.has_batch,
            supports_zstruct: false,
            has_samples: true,
        }
    }
}

fn list() -> anyhow::Result<String> {
    let built_peers_dir = built_peers_dir()?;
    let row = |external: &ExternalPeer| {
        let state = if external.is_built(&built_peers_dir) { "built" } else { "not built: ttcp peers build" };
        vec![external.name.to_owned(), external.about.to_owned(), state.to_owned()]
    };
    let columns = ["peer", "description", "state"].map(Column::words).to_vec();
    Ok(markdown::format_table(&Table {
        caption: String::new(),
        columns,
        rows: EXTERNAL_PEERS.iter().map(row).collect(),
    }))
}

fn build(names: &[String]) -> anyhow::Result<ExitCode> {
    let all: Vec<&str> = EXTERNAL_PEERS
        .iter()
        .filter(|external| external.has_own_programs())
        .map(|external| external.name)
        .collect();
    if let Some(unknown) = names.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("there is no peer '{unknown}' to build, only: {}", all.join(", "));
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    ensure!(
        sources.is_dir(),
        "there is no directory {}: build ttcp again from a source tree that has it",
        sources.display()
    );
    let built_peers_dir = built_peers_dir()?;
    let mut failed = false;
    let is_selected =
        |external: &&ExternalPeer| names.is_empty() || names.iter().any(|name| name == external.name);
    for external in EXTERNAL_PEERS.iter().filter(|external| external.has_own_programs()).filter(is_selected) {
        let start = Instant::now();
        eprintln!("{}: building", external.name);
        let result = match external.build(&sources, &built_peers_dir)? {
            BuildResult::Complete => format!("built in {:.1} s", start.elapsed().as_secs_f64()),
            BuildResult::MissingTools(reason) => format!("LEFT OUT: {reason}"),
            BuildResult::Failed(output) => {
                failed = true;
                format!("FAILED:\n{output}")
            }
        };
        eprintln!("{}: {result}", external.name);
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[derive(Debug, PartialEq, Eq)]
enum BuildResult {
    Complete,
    /// A required tool is not installed. The text is the last line of the output, which names the tool.
    MissingTools(String),
    /// The build failed for another reason. The text is the last lines of the output.
    Failed(String),
}

impl ExternalPeer {
    fn build(&self, sources: &Path, built_peers_dir: &Path) -> anyhow::Result<BuildResult> {
        let target = built_peers_dir.join(self.subfolder);
        fs::create_dir_all(&target)
            .with_context(|| format!("cannot create the directory {}", target.display()))?;
        // Without the lock, two simultaneous builds would delete each other's files.
        let lock = target.join("build.lock");
        let lock = File::create(&lock).with_context(|| format!("cannot write {}", lock.display()))?;
        flock(&lock, FlockOperation::LockExclusive).context("cannot wait for another build")?;
        let log = target.join("build.log");
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let script = sources.join(self.subfolder).join("build.sh");
        let mut command = Command::new(&script);
        command.arg(&target).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let status = command.status().with_context(|| format!("cannot run {}", script.display()))?;
        let text = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        Ok(match status.code() {
            Some(0) if self.is_built(built_peers_dir) => BuildResult::Complete,
            Some(EXIT_MISSING_TOOLS) => {
                BuildResult::MissingTools(lines.last().copied().unwrap_or_default().to_owned())
            }
            _ => BuildResult::Failed(lines.split_at(lines.len().saturating_sub(MAX_LOG_LINES)).1.join("\n")),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn every_directory_of_sources_is_a_peer() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let mut source_dirs: Vec<String> = fs::read_dir(&sources)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        source_dirs.sort();
        let mut names: Vec<&str> = EXTERNAL_PEERS
            .iter()
            .filter(|external| external.has_own_programs())
            .map(|external| external.name)
            .collect();
        names.sort_unstable();
        assert_eq!(source_dirs, names);
        for name in names {
            let script = fs::metadata(sources.join(name).join("build.sh")).unwrap();
            assert!(script.permissions().mode() & 0o111 != 0, "{name}");
        }
    }

    #[test]
    fn builds_succeed_or_return_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let (sources, built_peers_dir) = (dir.path().join("sources"), dir.path().join("built"));
        fs::create_dir_all(sources.join("c")).unwrap();
        let script = sources.join("c/build.sh");
        let built = |text: &str| {
            fs::write(&script, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            EXTERNAL_PEERS[0].build(&sources, &built_peers_dir).unwrap()
        };
        assert_eq!(built("echo no cc; exit 3"), BuildResult::MissingTools("no cc".into()));
        assert_eq!(built("echo one; echo two >&2; exit 1"), BuildResult::Failed("one\ntwo".into()));
        assert_eq!(built("echo nothing"), BuildResult::Failed("nothing".into()), "no programs");
        assert!(!EXTERNAL_PEERS[0].is_built(&built_peers_dir));
        assert_eq!(built("touch $1/bench-server $1/bench-client"), BuildResult::Complete);
        let peer = EXTERNAL_PEERS[0].peer(&built_peers_dir);
        assert_eq!(peer.client[1..], ["{args}", "--host", "{host}", "--port", "{port}"]);
        assert!(peer.server[0].ends_with("c/bench-server") && peer.has_samples);
    }
}
