//! Live interoperability with omniORB (C++) and JacORB (Java), in both roles, by IOR and by `corbaloc:`, over
//! GIOP 1.0, 1.1 and 1.2. `README.md` in this directory lists the requirements for servers, the checks of
//! clients, and the known defects of the peers. The bench contract is in `crates/ttcp-bench/tests/contract`.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod anys;
mod code_sets;
mod differential;
mod dissect;
mod dynamic;
mod idl4;
mod java_ee;
#[cfg(feature = "csi")]
mod login;
mod relay;
mod results;
mod sources;
mod tango;
mod ties;
#[cfg(feature = "tls")]
mod tls;
mod unix;
mod values;
mod wire;
mod zorb;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ::zorb::wire::{Ior, Version};
use ::zorb::{Orb, OrbBuilder};
use test_support::{peers, transport};

use test_support::peers::client::Client;
use test_support::peers::matrix::{Outcome, Role, cell, cells};
use test_support::peers::{Foreign, Process, Scratch};
use zorb::checks::{Way, client, drive};

/// Timeout for the start of a peer's server: a loaded machine starts a virtual machine slowly.
const START: Duration = Duration::from_secs(60);

/// Timeout of a client for all checks.
const CHECKS: Duration = Duration::from_secs(180);

/// The address by which a client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Ior,
    Corbaloc,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Ior => "ior",
            By::Corbaloc => "corbaloc",
        }
    }
}

/// Returns the default builder of zorb's ORBs.
fn plain() -> OrbBuilder {
    transport::builder()
}

/// Returns a builder that sends large messages in pieces of about a thousand bytes.
fn in_fragments() -> OrbBuilder {
    transport::builder().fragment_size(1000)
}

/// Minimum number of messages if large ones are sent in fragments. Without fragments, there are less than
/// half as many.
const FRAGMENTS: u64 = 1000;

/// Returns a version as `1.2`.
fn dotted(version: Version) -> String {
    format!("1.{}", version.minor())
}

/// Reports the results of the checks: cells of the matrix, a line, and with `--nocapture` the skipped ones.
fn report(peer: &str, role: Role, way: &str, version: Version, lines: &[String]) {
    let (ok, rest): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.starts_with("ok "));
    let who = match role {
        Role::Client => format!("zorb -> {peer}"),
        Role::Server => format!("{peer} -> zorb"),
    };
    let version = dotted(version);
    peers::tell(&format!("{who}, {way} {version}: {} checks passed, {} left out", ok.len(), rest.len()));
    for line in rest {
        println!("    {line}");
    }
    cells(peer, role, &version, way, lines);
}

/// All ways to reach a server.
const WAYS: [(By, Version); 6] = [
    (By::Ior, Version::V1_0),
    (By::Ior, Version::V1_1),
    (By::Ior, Version::V1_2),
    (By::Corbaloc, Version::V1_0),
    (By::Corbaloc, Version::V1_1),
    (By::Corbaloc, Version::V1_2),
];

/// A client of the other ORB calls zorb's servers, one for each way. Returns how many messages the last
/// server sent; `None` if the client is missing.
async fn their_client(orb: Foreign, ways: &[(By, Version)], builder: fn() -> OrbBuilder) -> Option<u64> {
    let mut client = Client::of(orb, "peer-client")?;
    let mut sent = None;
    for (by, version) in ways {
        let scratch = Scratch::new();
        let path = scratch.path("interop.ior");
        let (server, address) =
            zorb::servant::serve(&path, builder()).await.expect("a server on a free port");
        let reach = match by {
            By::Ior => path.display().to_string(),
            By::Corbaloc => format!("corbaloc:iiop:{}@{address}", dotted(*version)),
        };
        let giop = dotted(*version);
        let run = tokio::task::spawn_blocking(move || {
            let seconds = CHECKS.as_secs().to_string();
            let ran = client.run(&["--ior", &reach, "--giop", &giop, "--seconds", &seconds], CHECKS);
            (client, ran)
        });
        let (again, (succeeded, output)) = run.await.expect("the client was waited for");
        client = again;
        server.shutdown().await;
        report(orb.name(), Role::Server, by.name(), *version, &checks(succeeded, &output));
        sent = Some(server.stats().messages_out);
    }
    sent
}

/// Runs a client to its end, then ends the server. Returns the checks that it passed, and those that it
/// skipped.
async fn passed(command: Command, scratch: Scratch, server: &Orb) -> Vec<String> {
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Process::start(command, &scratch);
        let status = client.end(CHECKS);
        (status.map(|status| status.success()), client.output())
    });
    let (succeeded, output) = client.await.expect("the client was waited for");
    server.shutdown().await;
    checks(succeeded, &output)
}

/// Returns the checks that a client passed, and those that it skipped.
fn checks(succeeded: Option<bool>, output: &str) -> Vec<String> {
    let is_good = |line: &&str| line.starts_with("ok ") || line.starts_with("skip ");
    let (passed, failed): (Vec<&str>, Vec<&str>) = output.lines().partition(is_good);
    assert!(succeeded == Some(true), "{succeeded:?} {failed:#?}");
    assert!(passed.len() > 100, "only {} checks ran:\n{output}", passed.len());
    passed.into_iter().map(str::to_owned).collect()
}

/// Returns a client that runs all checks by the IOR in the file, except the one that creates a `corbaloc:`
/// from the reference's host and port. It is used for references without such a port.
fn without_a_port(program: &Path, path: &Path) -> Command {
    let all = Command::new(program).arg("--list").output().expect("the client lists its checks");
    let all = String::from_utf8_lossy(&all.stdout).into_owned();
    let checks: Vec<&str> = all.lines().filter(|name| *name != "unknown_object").collect();
    let mut command = Command::new(program);
    command.arg("--ior").arg(path).args(["--seconds", &CHECKS.as_secs().to_string()]);
    command.args(["--check", &checks.join(",")]);
    command
}

/// A ready server of the other ORB; it ends when this is dropped.
struct Theirs {
    /// The file with its reference.
    path: PathBuf,
    /// The reference.
    ior: String,
    _process: Process,
}

impl Theirs {
    /// Starts it with the additions of `prepare`.
    async fn start(program: PathBuf, scratch: &Scratch, prepare: impl FnOnce(&mut Command)) -> Self {
        let path = scratch.path("interop.ior");
        let mut command = Command::new(program);
        command.arg("--ior").arg(&path).args(["--seconds", &(START + CHECKS).as_secs().to_string()]);
        prepare(&mut command);
        let mut process = Process::start(command, scratch);
        let process = tokio::task::spawn_blocking(move || {
            process.ready(START);
            process
        });
        let process = process.await.expect("the server is ready");
        let text = std::fs::read_to_string(&path).expect("the server wrote its IOR");
        Self { path, ior: text.trim().to_owned(), _process: process }
    }
}

/// zorb's client calls a server of the other ORB in each way. Returns how many messages the last client sent;
/// `None` if the server is missing.
async fn their_server(orb: Foreign, ways: &[(By, Version)], builder: fn() -> OrbBuilder) -> Option<u64> {
    let program = orb.program("peer-server")?;
    let scratch = Scratch::new();
    let server = Theirs::start(program, &scratch, |_| {}).await;
    let mut sent = None;
    for (by, version) in ways {
        let way = match by {
            By::Ior => Way::Ior(server.path.clone(), *version),
            By::Corbaloc => {
                let ior: Ior = server.ior.parse().expect("an IOR");
                let profile = ior.iiop_profile().expect("an IIOP profile");
                Way::Corbaloc(format!("{}:{}", profile.host, profile.port), *version)
            }
        };
        let ours = client(&way, builder()).await;
        let lines = drive(&way, &ours).await;
        report(orb.name(), Role::Client, by.name(), *version, &lines);
        sent = Some(ours.stats().messages_out);
        ours.shutdown().await;
    }
    sent
}

/// One test for each role, way and version.
macro_rules! matrix {
    ($($module:ident: $run:ident($orb:ident);)*) => {
        $(mod $module {
            use super::{By, Foreign, Version, $run};

            matrix! { @ $run $orb
                ior_1_0: Ior V1_0;
                ior_1_1: Ior V1_1;
                ior_1_2: Ior V1_2;
                corbaloc_1_0: Corbaloc V1_0;
                corbaloc_1_1: Corbaloc V1_1;
                corbaloc_1_2: Corbaloc V1_2;
            }
        })*
    };
    (@ $run:ident $orb:ident $($name:ident: $by:ident $version:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            $run(Foreign::$orb, &[(By::$by, Version::$version)], super::plain).await;
        })*
    };
}

matrix! {
    // clause: giop.version.lower
    omniorb_calls_zorb: their_client(OmniOrb);
    // clause: giop.version.client, giop.version.reply
    zorb_calls_omniorb: their_server(OmniOrb);
}

/// All ways with one virtual machine, whose start takes a second of processor time.
// clause: giop.version.lower
#[tokio::test(flavor = "multi_thread")]
async fn jacorb_calls_zorb() {
    their_client(Foreign::JacOrb, &WAYS, plain).await;
}

/// All ways with one virtual machine as the server.
// clause: giop.version.client, giop.version.reply
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_jacorb() {
    their_server(Foreign::JacOrb, &WAYS, plain).await;
}

/// zorb against itself: a failure here is not caused by the peers.
mod zorb_calls_zorb {
    use super::*;

    async fn calls(by: By, version: Version) {
        let scratch = Scratch::new();
        let path = scratch.path("interop.ior");
        let (server, address) = zorb::servant::serve(&path, plain()).await.expect("a server on a free port");
        let way = match by {
            By::Ior => Way::Ior(path, version),
            By::Corbaloc => Way::Corbaloc(address, version),
        };
        let lines = drive(&way, &client(&way, plain()).await).await;
        report("zorb", Role::Client, by.name(), version, &lines);
        server.shutdown().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn by_ior() {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            calls(By::Ior, version).await;
        }
    }

    #[tokio::test]
    async fn by_corbaloc() {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            calls(By::Corbaloc, version).await;
        }
    }
}

/// Large messages of zorb are sent in fragments, in GIOP 1.2.
mod fragments {
    use ::zorb::Bytes;

    use super::*;
    use crate::zorb::types::interop::PeerRef;

    /// Asserts that some of the sent messages were fragments.
    pub fn in_pieces(orb: Foreign, role: Role, sent: Option<u64>) {
        let Some(sent) = sent else { return };
        assert!(sent > FRAGMENTS, "{sent}");
        cell(orb.name(), role, "1.2", "fragments", Outcome::Good);
    }

    // clause: giop.fragment.send
    #[tokio::test(flavor = "multi_thread")]
    async fn to_clients_of_omniorb() {
        let sent = their_client(Foreign::OmniOrb, &[(By::Ior, Version::V1_2)], in_fragments).await;
        in_pieces(Foreign::OmniOrb, Role::Server, sent);
    }

    // clause: giop.fragment.send
    #[tokio::test(flavor = "multi_thread")]
    async fn to_servers_of_omniorb() {
        let sent = their_server(Foreign::OmniOrb, &[(By::Ior, Version::V1_2)], in_fragments).await;
        in_pieces(Foreign::OmniOrb, Role::Client, sent);
    }

    // clause: giop.fragment.send
    #[tokio::test(flavor = "multi_thread")]
    async fn to_clients_of_jacorb() {
        let sent = their_client(Foreign::JacOrb, &[(By::Ior, Version::V1_2)], in_fragments).await;
        in_pieces(Foreign::JacOrb, Role::Server, sent);
    }

    // clause: giop.fragment.send
    #[tokio::test(flavor = "multi_thread")]
    async fn to_servers_of_jacorb() {
        let sent = their_server(Foreign::JacOrb, &[(By::Ior, Version::V1_2)], in_fragments).await;
        in_pieces(Foreign::JacOrb, Role::Client, sent);
    }

    /// Concurrent large calls over one connection, whose fragments take turns, and small calls between them.
    async fn side_by_side(orb: Foreign) {
        // The trace shows why it ends the connection.
        let traced: &[&str] = if orb == Foreign::OmniOrb { &["-ORBtraceLevel", "10"] } else { &[] };
        let Some(server) = orb.serve("peer-server", traced, START) else { return };
        let ours = transport::builder().fragment_size(4096).build().await.expect("a client");
        let peer: PeerRef = ours.resolve(&server.ior).await.expect("the server");
        let large: Vec<_> = (0..4_usize)
            .map(|number| {
                let peer = peer.clone();
                let octets: Bytes = (0..700_000 + number).map(|i| (i * 7 + number) as u8).collect();
                tokio::spawn(async move {
                    let (result, _, c) =
                        peer.echo_octet_seq(octets.clone(), octets.clone()).await.expect("an echo");
                    assert!(result == octets && c == octets, "{orb:?}: {number}");
                })
            })
            .collect();
        for number in 0..20 {
            assert_eq!(peer.plus_one(number).await.expect("a sum"), number + 1);
        }
        for call in large {
            call.await.expect("every call");
        }
        let sent = ours.stats().messages_out;
        assert!(sent > FRAGMENTS, "{sent} messages");
    }

    // clause: giop.fragment.interleave
    #[tokio::test(flavor = "multi_thread")]
    async fn of_several_messages_take_turns_at_omniorb() {
        side_by_side(Foreign::OmniOrb).await;
    }

    // clause: giop.fragment.interleave
    #[tokio::test(flavor = "multi_thread")]
    async fn of_several_messages_take_turns_at_jacorb() {
        side_by_side(Foreign::JacOrb).await;
    }

    // clause: giop.fragment.send_never_old
    #[tokio::test(flavor = "multi_thread")]
    async fn not_to_peers_of_older_versions() {
        for version in [Version::V1_0, Version::V1_1] {
            let sent = their_client(Foreign::OmniOrb, &[(By::Ior, version)], in_fragments).await;
            assert!(sent.is_none_or(|sent| sent < FRAGMENTS / 2), "{sent:?}");
        }
    }
}
