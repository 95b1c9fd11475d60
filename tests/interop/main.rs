//! Live interoperability with omniORB (C++) and JacORB (Java), in both roles, by IOR and by `corbaloc:`, over GIOP 1.0,
//! 1.1 and 1.2. `README.md` beside this file says what servers must do, what clients check, and which defects of the
//! peers are known; the bench contract is in `crates/ttcp-bench/tests/interop.rs`.

#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sources;
mod support;
#[path = "../transport/mod.rs"]
mod transport;
mod values;
mod zorb;

use std::process::Command;
use std::time::Duration;

use ::zorb::wire::{Ior, Version};

use support::{Foreign, Process, Scratch};
use zorb::checks::{Way, drive};

/// How long a peer's server may take until it is ready: a loaded machine starts a virtual machine slowly.
const START: Duration = Duration::from_secs(60);

/// How long a client may take for all checks.
const CHECKS: Duration = Duration::from_secs(180);

/// How a client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Ior,
    Corbaloc,
}

/// The version as in `1.2`.
fn dotted(version: Version) -> String {
    format!("1.{}", version.minor())
}

/// Tells what the checks gave: a line of the matrix, and with `--nocapture` what was left out.
fn report(title: &str, lines: &[String]) {
    let (ok, rest): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.starts_with("ok "));
    support::tell(&format!("{title}: {} checks passed, {} left out", ok.len(), rest.len()));
    for line in rest {
        println!("    {line}");
    }
}

/// A client of theirs drives zorb's server.
async fn their_client(orb: Foreign, by: By, version: Version) {
    let Some(program) = orb.program("peer-client") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("interop.ior");
    let (server, address) = zorb::servant::serve(&path).await.expect("a server on a free port");
    let reach = match by {
        By::Ior => path.display().to_string(),
        By::Corbaloc => format!("corbaloc:iiop:{}@{address}", dotted(version)),
    };
    let mut command = Command::new(program);
    command.args(["--ior", &reach, "--giop", &dotted(version), "--seconds", &CHECKS.as_secs().to_string()]);
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Process::start(command, &scratch);
        let status = client.end(CHECKS);
        (status, client.output())
    });
    let (status, output) = client.await.expect("the client was waited for");
    server.shutdown().await;
    let lines: Vec<String> = output.lines().map(str::to_owned).collect();
    let failed: Vec<&String> =
        lines.iter().filter(|line| !line.starts_with("ok ") && !line.starts_with("skip ")).collect();
    assert!(status.is_some_and(|status| status.success()), "{status:?} {failed:#?}");
    let passed: Vec<String> =
        lines.into_iter().filter(|line| line.starts_with("ok ") || line.starts_with("skip ")).collect();
    assert!(passed.len() > 100, "only {} checks ran:\n{output}", passed.len());
    report(&format!("{orb:?} -> zorb, {by:?} {}", dotted(version)), &passed);
}

/// zorb's client drives a server of theirs.
async fn their_server(orb: Foreign, by: By, version: Version) {
    let Some(program) = orb.program("peer-server") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("interop.ior");
    let mut command = Command::new(program);
    command.arg("--ior").arg(&path).args(["--seconds", &(START + CHECKS).as_secs().to_string()]);
    let mut server = Process::start(command, &scratch);
    let server = tokio::task::spawn_blocking(move || {
        server.ready(START);
        server
    });
    let _server = server.await.expect("the server is ready");
    let way = match by {
        By::Ior => Way::Ior(path, version),
        By::Corbaloc => {
            let text = std::fs::read_to_string(&path).expect("the server wrote its IOR");
            let ior: Ior = text.trim().parse().expect("an IOR");
            let profile = ior.iiop_profile().expect("an IIOP profile");
            Way::Corbaloc(format!("{}:{}", profile.host, profile.port), version)
        }
    };
    let lines = drive(&way).await;
    report(&format!("zorb -> {orb:?}, {by:?} {}", dotted(version)), &lines);
}

/// One test for each peer, role, way and version.
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
            $run(Foreign::$orb, By::$by, Version::$version).await;
        })*
    };
}

matrix! {
    // clause: giop.version.lower
    omniorb_calls_zorb: their_client(OmniOrb);
    // clause: giop.version.client, giop.version.reply
    zorb_calls_omniorb: their_server(OmniOrb);
    // clause: giop.version.lower
    jacorb_calls_zorb: their_client(JacOrb);
    // clause: giop.version.client, giop.version.reply
    zorb_calls_jacorb: their_server(JacOrb);
}

/// zorb against itself: what fails here is not the peers' fault.
mod zorb_calls_zorb {
    use super::*;

    async fn calls(by: By, version: Version) {
        let scratch = Scratch::new();
        let path = scratch.path("interop.ior");
        let (server, address) = zorb::servant::serve(&path).await.expect("a server on a free port");
        let way = match by {
            By::Ior => Way::Ior(path, version),
            By::Corbaloc => Way::Corbaloc(address, version),
        };
        let lines = drive(&way).await;
        report(&format!("zorb -> zorb, {by:?} {}", dotted(version)), &lines);
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
