//! omniORB and JacORB by TLS (SSLIOP), in both roles and with certificates of both sides.

use std::path::PathBuf;
use std::process::Command;

use ::zorb::tls::{ClientCertificates, Identity, OutgoingTls, Tls, Trust};
use ::zorb::wire::{Ior, Version};

use super::zorb::checks::{Way, client_at, drive};
use super::zorb::types::interop::PeerRef;
use super::{Theirs, report, without_a_port, zorb};
use test_support::certificates::Authority;
use test_support::peers::matrix::Role;
use test_support::peers::{Foreign, Scratch};

/// A CA, its certificates for both sides, and the files of the other ORB.
struct Papers {
    ca: PathBuf,
    theirs: PathBuf,
    authority: Authority,
}

impl Papers {
    fn new(scratch: &Scratch) -> Self {
        let authority = Authority::new("interop");
        let (ca, theirs) = (scratch.path("ca.pem"), scratch.path("theirs.pem"));
        let (certificate, key) = authority.issue("theirs");
        std::fs::write(&ca, authority.pem()).expect("the test's directory can be written");
        std::fs::write(&theirs, key + &certificate).expect("the test's directory can be written");
        Self { ca, theirs, authority }
    }

    /// Returns zorb's configuration.
    fn ours(&self) -> Tls {
        let (certificate, key) = self.authority.issue("zorb");
        Tls::builder()
            .identity(Identity::pem(certificate, key))
            .trust(Trust::file(&self.ca))
            .client_certificates(ClientCertificates::Required)
            .outgoing(OutgoingTls::Required)
            .build()
            .expect("good certificates")
    }

    /// Configures the other ORB to use only TLS, as a server and for its own objects.
    fn give(&self, orb: Foreign, command: &mut Command, scratch: &Scratch) {
        match orb {
            Foreign::JacOrb => {
                command.env("JAVA_OPTS", self.jacorb(scratch));
            }
            _ => {
                command.args(["-ORBendPoint", "giop:ssl:127.0.0.1:"]);
                command.arg("-ORBsslCAFile").arg(&self.ca).arg("-ORBsslKeyFile").arg(&self.theirs);
                command.args(["-ORBsslKeyPassword", "", "-ORBsslVerifyMode", "peer,fail"]);
            }
        }
    }

    /// Returns JacORB's properties, with a key store that contains its key and the CA. It only accepts a
    /// store of Java's default type, which must not be named, and SunX509, which must be named. Its options
    /// are hexadecimal numbers: EstablishTrustInTarget, and additionally EstablishTrustInClient.
    fn jacorb(&self, scratch: &Scratch) -> String {
        let store = scratch.path("jacorb.p12");
        let mut export = Command::new("openssl");
        export.args(["pkcs12", "-export", "-passout", "pass:secret", "-name", "jacorb", "-in"]);
        export.arg(&self.theirs).arg("-out").arg(&store);
        assert!(export.status().expect("openssl runs").success());
        let mut import = Command::new("keytool");
        import.args(["-importcert", "-noprompt", "-alias", "ca", "-storetype", "PKCS12"]);
        import.args(["-storepass", "secret", "-file"]).arg(&self.ca).arg("-keystore").arg(&store);
        assert!(import.output().expect("keytool runs").status.success());
        let store = store.display();
        [
            "security.support_ssl=on",
            "ssl.socket_factory=org.jacorb.security.ssl.sun_jsse.SSLSocketFactory",
            "ssl.server_socket_factory=org.jacorb.security.ssl.sun_jsse.SSLServerSocketFactory",
            &format!("security.keystore={store}"),
            "security.keystore_password=secret",
            "security.jsse.server.key_manager_algorithm=SunX509",
            "security.jsse.server.trust_manager_algorithm=SunX509",
            "security.jsse.client.key_manager_algorithm=SunX509",
            "security.jsse.client.trust_manager_algorithm=SunX509",
            "security.jsse.trustees_from_ks=on",
            "security.ssl.server.supported_options=60",
            "security.ssl.server.required_options=60",
            "security.ssl.client.supported_options=60",
            "security.ssl.client.required_options=20",
        ]
        .map(|option| format!("-Djacorb.{option}"))
        .join(" ")
    }
}

/// zorb's client calls a server of the other ORB, and is called back by TLS.
async fn their_server(orb: Foreign) {
    let Some(program) = orb.program("peer-server") else { return };
    let scratch = Scratch::new();
    let papers = Papers::new(&scratch);
    let server = Theirs::start(program, &scratch, |command| papers.give(orb, command, &scratch)).await;
    let ior: Ior = server.ior.parse().expect("an IOR");
    assert!(ior.iiop_profiles().any(|profile| profile.secure_address().is_some()), "a port for TLS");

    // Without a certificate there is no answer.
    let anonymous = Tls::builder().trust(Trust::file(&papers.ca)).outgoing(OutgoingTls::Required);
    let anonymous = anonymous.build().expect("a good CA");
    let stranger = test_support::transport::builder().tls(anonymous).build().await.expect("a client");
    let peer: PeerRef = stranger.resolve_unchecked(&server.ior).await.expect("a reference");
    peer.server_name().await.expect_err("a certificate is wanted");

    let way = Way::Ior(server.path.clone(), Version::V1_2);
    let builder = test_support::transport::builder().tls(papers.ours()).listen("ssliop://127.0.0.1:0");
    let ours = client_at(&way, builder).await;
    let peer: PeerRef = ours.resolve(&server.ior).await.expect("it takes TLS");
    assert_eq!(peer.server_name().await.expect("an answer"), orb.name());
    let lines = drive(&way, &ours).await;
    report(orb.name(), Role::Client, "tls", Version::V1_2, &lines);
}

/// A client of the other ORB calls zorb's server, and is called back by TLS.
async fn their_client(orb: Foreign) {
    let Some(program) = orb.program("peer-client") else { return };
    let scratch = Scratch::new();
    let papers = Papers::new(&scratch);
    let path = scratch.path("interop.ior");
    let builder = test_support::transport::builder().tls(papers.ours()).listen("ssliop://127.0.0.1:0");
    let (server, address) = zorb::servant::serve_at(&path, builder).await.expect("a server by TLS");
    assert_eq!(address, "127.0.0.1:0");
    let mut command = without_a_port(&program, &path);
    papers.give(orb, &mut command, &scratch);
    let passed = super::passed(command, scratch, &server).await;
    assert!(server.transport_stats().tls_sessions > 0);
    report(orb.name(), Role::Server, "tls", Version::V1_2, &passed);
}

// clause: ior.component.ssl
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb() {
    their_server(Foreign::OmniOrb).await;
}

// clause: ior.component.ssl
#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb() {
    their_client(Foreign::OmniOrb).await;
}

// clause: ior.component.ssl
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_jacorb() {
    their_server(Foreign::JacOrb).await;
}

// clause: ior.component.ssl
#[tokio::test(flavor = "multi_thread")]
async fn jacorb_calls_zorb() {
    their_client(Foreign::JacOrb).await;
}
