//! Rejected connections and calls, and the messages of their errors.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zorb::tls::{ClientCertificates, Identity, OutgoingTls, ServerNames, Tls, TlsVersion, Trust};
use zorb::{CompletionStatus, SystemException, SystemExceptionKind};

use crate::tls::{Directory, Vault, VaultRef, client, server, tls, transport};
use test_support::certificates::Authority;

/// Returns the text of the exception and of its source.
fn text(exception: &SystemException) -> String {
    let source = std::error::Error::source(exception).map(ToString::to_string);
    format!("{exception} {}", source.unwrap_or_default())
}

pub(crate) async fn refused(tls: Tls, reference: &str, kind: SystemExceptionKind, words: &str) {
    let (_client, vault) = client(tls, reference).await;
    let exception = vault.add(1, 2).await.unwrap_err();
    assert_eq!((exception.kind, exception.completed), (kind, CompletionStatus::No), "{exception}");
    assert!(text(&exception).contains(words), "{}", text(&exception));
}

#[tokio::test]
async fn servers_that_are_not_trusted_are_not_called() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let no = SystemExceptionKind::NoPermission;
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let trusting =
            |authority: &Authority| Tls::builder().trust(Trust::pem(authority.pem())).versions(&[version]);
        let (_server, reference) = server(tls(&ca, "server").build().unwrap()).await;
        refused(trusting(&other).build().unwrap(), &reference, no, "is rejected").await;

        let (certificate, key) = ca.issue_expired("server");
        let expired = Tls::builder().identity(Identity::pem(certificate, key)).build().unwrap();
        let (_server, reference) = server(expired).await;
        refused(trusting(&ca).build().unwrap(), &reference, no, "expired").await;

        let (certificate, key) = ca.issue_with("server", |params| params.subject_alt_names.clear());
        let nameless = Identity::pem(&certificate, key);
        let (_server, reference) = server(Tls::builder().identity(nameless).build().unwrap()).await;
        refused(trusting(&ca).build().unwrap(), &reference, no, "not valid for name").await;
        // Unless names are not checked, as is usual in CORBA, or the certificate itself is trusted.
        let unchecked = trusting(&ca).server_names(ServerNames::Unchecked).build().unwrap();
        let (orb, vault) = client(unchecked, &reference).await;
        assert_eq!(vault.add(1, 2).await.unwrap(), 3);
        drop(orb);
        let unchecked = trusting(&other).server_names(ServerNames::Unchecked).build().unwrap();
        refused(unchecked, &reference, no, "is rejected").await;
        refused(Tls::builder().pin([7; 32]).build().unwrap(), &reference, no, "is rejected").await;
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused_and_told_why() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let required = ClientCertificates::Required;
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let serving = tls(&ca, "server").client_certificates(required).versions(&[version]);
        let (orb, reference) = server(serving.build().unwrap()).await;
        let anonymous = Tls::builder().trust(Trust::pem(ca.pem())).build().unwrap();
        let words = if version == TlsVersion::V1_3 { "requires a certificate" } else { "the peer" };
        refused(anonymous, &reference, SystemExceptionKind::NoPermission, words).await;
        let stranger =
            Tls::builder().trust(Trust::pem(ca.pem())).identity(crate::tls::identity(&other, "eve"));
        let stranger = stranger.build().unwrap();
        refused(stranger, &reference, SystemExceptionKind::NoPermission, "the peer").await;
        let (certificate, key) = ca.issue_expired("late");
        let late = Tls::builder().trust(Trust::pem(ca.pem())).identity(Identity::pem(certificate, key));
        let late = late.build().unwrap();
        refused(late, &reference, SystemExceptionKind::NoPermission, "expired").await;
        assert_eq!(orb.transport_stats().tls_failures, 3);
        assert_eq!(orb.transport_stats().tls_sessions, 0);
    }
}

#[tokio::test]
async fn plaintext_at_a_port_for_tls_and_the_reverse_are_sent_away() {
    let ca = Authority::new("ca");
    let (orb, _) = server(tls(&ca, "server").build().unwrap()).await;
    let port: u16 = orb.endpoints()[0].rsplit(':').next().unwrap().parse().unwrap();
    let plain = transport::builder().build().await.unwrap();
    let vault: VaultRef =
        plain.resolve_unchecked(&format!("corbaloc::1.2@127.0.0.1:{port}/x")).await.unwrap();
    let exception = vault.add(1, 2).await.unwrap_err();
    assert_eq!(exception.kind, SystemExceptionKind::CommFailure);
    let stats = orb.transport_stats();
    assert!(stats.tls_plaintext >= 1 && stats.tls_failures == 0, "{stats:?}");

    let orb = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let _vault: VaultRef = orb.activate(Vault::default()).unwrap();
    let address = orb.endpoints()[0].clone();
    let reference = format!("corbaloc:ssliop:1.2@{address}/x");
    refused(
        tls(&ca, "c").build().unwrap(),
        &reference,
        SystemExceptionKind::CommFailure,
        "does not send TLS",
    )
    .await;
    // It is counted when the connection ends.
    while orb.transport_stats().tls_misdirected == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn references_without_the_way_that_is_allowed_are_not_called() {
    let ca = Authority::new("ca");
    let orb = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let vault: VaultRef = orb.activate(Vault::default()).unwrap();
    let strict = tls(&ca, "client").outgoing(OutgoingTls::Required).build().unwrap();
    refused(strict, &vault.to_string(), SystemExceptionKind::NoPermission, "offers no TLS").await;

    let (_server, reference) = server(tls(&ca, "server").build().unwrap()).await;
    let plain = transport::builder().build().await.unwrap();
    let vault: VaultRef = plain.resolve_unchecked(&reference).await.unwrap();
    let exception = vault.add(1, 2).await.unwrap_err();
    assert_eq!(exception.kind, SystemExceptionKind::NoPermission);
    assert!(text(&exception).contains("requires TLS"), "{}", text(&exception));
    let nobody = Tls::builder().build().unwrap();
    refused(nobody, &reference, SystemExceptionKind::NoPermission, "no certificates of servers are trusted")
        .await;
}

#[tokio::test]
async fn stalled_handshakes_are_bounded_in_time_and_number() {
    let ca = Authority::new("ca");
    let serving = tls(&ca, "server").handshake_timeout(Duration::from_millis(200)).max_handshakes(2);
    let (orb, reference) = server(serving.build().unwrap()).await;
    let address = orb.endpoints()[0].trim_start_matches("ssliop://").to_owned();
    let mut silent = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(&[0x16, 3, 1]).await.unwrap();
        silent.push(stream);
    }
    // Both slots are occupied: the next connection is closed at once, the first two after their timeout.
    let mut stream = TcpStream::connect(&address).await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(orb.transport_stats().tls_rejected_by_limit, 1);
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    }
    assert_eq!(orb.transport_stats().tls_failures, 2);
    let (_client, vault) = client(tls(&ca, "client").build().unwrap(), &reference).await;
    assert_eq!(vault.add(1, 2).await.unwrap(), 3);
}

#[tokio::test]
async fn silent_handshakes_of_some_addresses_do_not_keep_clients_of_another_out() {
    const PLACES: usize = 8;
    let ca = Authority::new("ca");
    let serving = tls(&ca, "server").max_handshakes(PLACES);
    let (orb, reference) = server(serving.build().unwrap()).await;
    let address: std::net::SocketAddr = orb.endpoints()[0].trim_start_matches("ssliop://").parse().unwrap();
    let connect = async |last: u8| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((std::net::Ipv4Addr::new(127, 0, 0, last), 0).into()).unwrap();
        socket.connect(address).await.unwrap()
    };
    let mut silent = Vec::new();
    for place in 0..PLACES {
        silent.push(connect(2 + (place % 4) as u8).await);
    }
    while orb.stats().limit_hits.of(zorb::Limit::Handshakes) == 0 {
        // Further ones are rejected as soon as all slots are occupied.
        silent.push(connect(2).await);
    }
    for _ in 0..5 {
        let (client, vault) = client(tls(&ca, "client").build().unwrap(), &reference).await;
        assert_eq!(vault.add(1, 2).await.unwrap(), 3);
        client.shutdown().await;
        silent.push(connect(3).await);
    }
    assert!(orb.stats().limit_hits.of(zorb::Limit::Evicted) > 0);
}

#[tokio::test]
async fn handshakes_that_do_not_go_on_give_way_to_newcomers() {
    let ca = Authority::new("ca");
    let orb = transport::builder()
        .tls(tls(&ca, "server").build().unwrap())
        .listen("ssliop:127.0.0.1:0")
        .max_connections(3, 3)
        .evict_idle_after(Duration::ZERO)
        .build()
        .await
        .unwrap();
    let vault: VaultRef = orb.activate(Vault::default()).unwrap();
    let reference = vault.to_string();
    let address = orb.endpoints()[0].trim_start_matches("ssliop://").to_owned();
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(&[0x16, 3, 1]).await.unwrap();
        silent.push(stream);
    }
    let (_client, vault) = client(tls(&ca, "client").build().unwrap(), &reference).await;
    assert_eq!(vault.add(1, 2).await.unwrap(), 3);
    assert_eq!(silent.remove(0).read(&mut [0; 8]).await.unwrap_or_default(), 0, "the first has given way");
    let limits = orb.stats().limit_hits;
    assert_eq!((limits.of(zorb::Limit::Evicted), limits.of(zorb::Limit::Connections)), (1, 0));
    assert_eq!((orb.transport_stats().tls_failures, orb.transport_stats().tls_sessions), (1, 1));
}

#[test]
fn what_is_wrong_with_files_is_said() {
    let ca = Authority::new("ca");
    let (certificate, key) = ca.issue("server");
    let (_, other) = ca.issue("other");
    let directory = Directory::new("files");
    let file = |name: &str, text: &str| directory.file(name, text);
    let cut = &certificate[..certificate.len() / 2];
    for (chain, key, words) in [
        (PathBuf::from("/nowhere/missing.pem"), file("k", &key), vec!["missing.pem", "cannot read"]),
        (file("empty", ""), file("k", &key), vec!["empty", "no certificate"]),
        (file("cut", cut), file("k", &key), vec!["cut", "END CERTIFICATE"]),
        (file("c", &certificate), file("nokey", &certificate), vec!["nokey", "no private key"]),
        (file("c", &certificate), file("o", &other), vec!["/o", "does not match the certificate"]),
    ] {
        let error = Tls::builder().identity(Identity::files(chain, key)).build().unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let good = Identity::files(file("c", &certificate), file("k", &key));
    let tls = Tls::builder().identity(good).build().unwrap();
    // A failed reload changes nothing.
    file("k", &other);
    assert!(tls.reload().unwrap_err().to_string().contains("/k"));
    file("k", &key);
    tls.reload().unwrap();
    let asking = Tls::builder().identity(Identity::pem(&certificate, &key));
    let asking = asking.client_certificates(ClientCertificates::Required).build();
    assert!(asking.unwrap_err().to_string().contains("no CA is trusted"));
}

#[tokio::test]
async fn listening_by_tls_needs_a_certificate() {
    for (builder, words) in [
        (transport::builder(), "OrbBuilder::tls"),
        (transport::builder().tls(Tls::builder().build().unwrap()), "TlsBuilder::identity"),
    ] {
        let error = builder.listen("ssliop://127.0.0.1:0").build().await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}
