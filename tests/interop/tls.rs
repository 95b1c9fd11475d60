//! omniORB by TLS (SSLIOP), in both roles and with certificates of both sides.

use std::path::PathBuf;
use std::process::Command;

use ::zorb::tls::{ClientCertificates, Identity, Outgoing, Tls, Trust};
use ::zorb::wire::{Ior, Version};

use super::support::matrix::Role;
use super::support::{Foreign, Process, Scratch};
use super::zorb::checks::{Way, client as checks_client, drive};
use super::zorb::types::interop::PeerRef;
use super::{CHECKS, START, report, zorb};
use certificates::Authority;

#[allow(dead_code, reason = "others need more of it")]
#[path = "../tls/certificates.rs"]
mod certificates;

/// A CA, what it made out to the two, and the files of omniORB's side.
struct Papers {
    ca: PathBuf,
    omniorb: PathBuf,
    authority: Authority,
}

impl Papers {
    fn new(scratch: &Scratch) -> Self {
        let authority = Authority::new("interop");
        let (ca, omniorb) = (scratch.path("ca.pem"), scratch.path("omniorb.pem"));
        let (certificate, key) = authority.issue("omniorb");
        std::fs::write(&ca, authority.pem()).expect("the test's directory can be written");
        std::fs::write(&omniorb, key + &certificate).expect("the test's directory can be written");
        Self { ca, omniorb, authority }
    }

    fn zorb(&self, outgoing: Outgoing) -> Tls {
        let (certificate, key) = self.authority.issue("zorb");
        Tls::builder()
            .identity(Identity::pem(certificate, key))
            .trust(Trust::file(&self.ca))
            .client_certificates(ClientCertificates::Required)
            .outgoing(outgoing)
            .build()
            .expect("good certificates")
    }

    fn give(&self, command: &mut Command) {
        command.arg("-ORBsslCAFile").arg(&self.ca).arg("-ORBsslKeyFile").arg(&self.omniorb);
        command.args(["-ORBsslKeyPassword", "", "-ORBsslVerifyMode", "peer,fail"]);
    }
}

// clause: ior.component.ssl
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb() {
    let Some(program) = Foreign::OmniOrb.program("peer-server") else { return };
    let scratch = Scratch::new();
    let papers = Papers::new(&scratch);
    let path = scratch.path("interop.ior");
    let mut command = Command::new(program);
    command.arg("--ior").arg(&path).args(["--seconds", &(START + CHECKS).as_secs().to_string()]);
    command.args(["-ORBendPoint", "giop:ssl:127.0.0.1:"]);
    papers.give(&mut command);
    let mut server = Process::start(command, &scratch);
    let server = tokio::task::spawn_blocking(move || {
        server.ready(START);
        server
    });
    let _server = server.await.expect("the server is ready");
    let text = std::fs::read_to_string(&path).expect("the server wrote its IOR");
    let ior: Ior = text.trim().parse().expect("an IOR");
    let port = ior.iiop_profiles().find_map(|profile| profile.ssl()).expect("a port for TLS").port;
    assert_ne!(port, 0);

    // Without a certificate there is no answer.
    let anonymous = Tls::builder().trust(Trust::file(&papers.ca)).outgoing(Outgoing::Required);
    let anonymous = anonymous.build().expect("a good CA");
    let stranger = super::transport::builder().tls(anonymous).build().await.expect("a client");
    let peer: PeerRef = stranger.resolve_unchecked(text.trim()).await.expect("a reference");
    peer.server_name().await.expect_err("omniORB wants a certificate");

    let strict = super::transport::builder().tls(papers.zorb(Outgoing::Required));
    let strict = strict.build().await.expect("a client");
    let peer: PeerRef = strict.resolve(text.trim()).await.expect("omniORB takes TLS");
    assert_eq!(peer.server_name().await.expect("an answer"), "omniORB");

    // One check makes a `corbaloc:` without TLS; all others go by it, since the references offer it.
    let way = Way::Ior(path, Version::V1_2);
    let builder = super::transport::builder().tls(papers.zorb(Outgoing::Preferred));
    let lines = drive(&way, &checks_client(&way, builder).await).await;
    report("omniORB", Role::Client, "tls", Version::V1_2, &lines);
}

// clause: ior.component.ssl
#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb() {
    let Some(program) = Foreign::OmniOrb.program("peer-client") else { return };
    let scratch = Scratch::new();
    let papers = Papers::new(&scratch);
    let path = scratch.path("interop.ior");
    let builder =
        super::transport::builder().tls(papers.zorb(Outgoing::Required)).listen("ssliop://127.0.0.1:0");
    let (server, address) = zorb::servant::serve_at(&path, builder).await.expect("a server by TLS");
    assert_eq!(address, "127.0.0.1:0");
    // One check makes a `corbaloc:` of the reference's host and port.
    let all = Command::new(&program).arg("--list").output().expect("the client lists its checks");
    let all = String::from_utf8_lossy(&all.stdout).into_owned();
    let checks: Vec<&str> = all.lines().filter(|name| *name != "unknown_object").collect();
    let mut command = Command::new(program);
    command.arg("--ior").arg(&path).args(["--seconds", &CHECKS.as_secs().to_string()]);
    command.args(["--check", &checks.join(",")]);
    // Its own objects are called back by TLS, too.
    command.args(["-ORBendPoint", "giop:ssl:127.0.0.1:"]);
    papers.give(&mut command);
    let passed = super::passed(command, scratch, &server).await;
    assert!(server.transport_stats().tls_sessions > 0);
    report("omniORB", Role::Server, "tls", Version::V1_2, &passed);
}
