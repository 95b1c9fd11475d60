//! omniORB over Unix sockets (`giop:unix`), in both roles. The calls cannot use TCP, because the servers do
//! not offer it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::zorb::prelude::*;
use ::zorb::wire::{Ior, Version};

use super::zorb::checks::{Way, client as checks_client, drive};
use super::zorb::types::interop::PeerRef;
use super::{Theirs, report, without_a_port, zorb};
use test_support::peers::matrix::Role;
use test_support::peers::{Foreign, Scratch};

/// A path for a socket: at most 107 bytes, and therefore not in the directory of the tests.
struct Socket(PathBuf);

impl Socket {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("zorb-interop-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the reference without its TCP address.
fn without_tcp(ior: &Ior) -> Ior {
    let profiles: Vec<_> = ior
        .iiop_profiles()
        .map(|mut profile| {
            profile.port = 0;
            profile
        })
        .collect();
    Ior::from_profiles(ior.type_id.as_str(), &profiles).expect("what was decoded can be encoded")
}

// clause: ior.component.omniorb_unix
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb() {
    let Some(program) = Foreign::OmniOrb.program("peer-server") else { return };
    let (scratch, socket) = (Scratch::new(), Socket::new());
    let server = Theirs::start(program, &scratch, |command| {
        command.arg("-ORBendPoint").arg(format!("giop:unix:{}", socket.0.display()));
    });
    let server = server.await;
    let ior: Ior = server.ior.parse().expect("an IOR");

    let client = test_support::transport::builder().build().await.expect("a client");
    let peer: PeerRef = client.resolve(&without_tcp(&ior).to_string()).await.expect("it is on this machine");
    assert_eq!(peer.server_name().await.expect("an answer"), "omniORB");
    let careful = test_support::transport::builder().unix_sockets(false).build().await.expect("a client");
    let peer: PeerRef = careful.resolve_unchecked(&without_tcp(&ior).to_string()).await.expect("a reference");
    let error = peer.server_name().await.expect_err("there is no other way");
    assert_eq!(error.kind, SystemExceptionKind::Transient);

    // With both, the socket is tried first.
    let way = Way::Ior(server.path.clone(), Version::V1_2);
    let lines = drive(&way, &checks_client(&way, test_support::transport::builder()).await).await;
    report("omniORB", Role::Client, "unix", Version::V1_2, &lines);
}

// clause: ior.component.omniorb_unix
#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb() {
    let Some(program) = Foreign::OmniOrb.program("peer-client") else { return };
    let (scratch, socket) = (Scratch::new(), Socket::new());
    let path = scratch.path("interop.ior");
    let endpoint = format!("uiop://{}", socket.0.display());
    let (server, address) =
        zorb::servant::serve_at(&path, test_support::transport::builder().listen(endpoint))
            .await
            .expect("a server without TCP");
    assert_eq!(address, ":0");
    let command = without_a_port(&program, &path);
    let passed = super::passed(command, scratch, &server).await;
    report("omniORB", Role::Server, "unix", Version::V1_2, &passed);
}
