//! Successful calls.

use zorb::tls::{ClientCertificates, TlsVersion, Trust};

use crate::tls::{Vault, VaultRef, client, identity, octets, server, tls, transport};
use test_support::certificates::Authority;

#[tokio::test]
async fn calls_go_by_both_versions_and_servants_know_them() {
    let ca = Authority::new("ca");
    for (version, shown) in [(TlsVersion::V1_2, "V1_2 nobody 0"), (TlsVersion::V1_3, "V1_3 nobody 0")] {
        let (_server, reference) = server(tls(&ca, "server").versions(&[version]).build().unwrap()).await;
        let (_client, vault) = client(tls(&ca, "client").build().unwrap(), &reference).await;
        assert_eq!(vault.add(2, 3).await.unwrap(), 5);
        assert_eq!(vault.caller().await.unwrap(), shown);
    }
}

#[tokio::test]
async fn servant_sees_the_client_certificate() {
    let ca = Authority::new("ca");
    for (asked, expected) in [
        (ClientCertificates::Required, "V1_3 CN=alice 1"),
        (ClientCertificates::Optional, "V1_3 CN=alice 1"),
        (ClientCertificates::None, "V1_3 nobody 0"),
    ] {
        let (server, reference) =
            server(tls(&ca, "server").client_certificates(asked).build().unwrap()).await;
        let (_client, vault) = client(tls(&ca, "alice").build().unwrap(), &reference).await;
        assert_eq!(vault.caller().await.unwrap(), expected);
        assert_eq!(server.transport_stats().tls_sessions, 1);
    }
    // Wanted is not required.
    let wanted = tls(&ca, "server").client_certificates(ClientCertificates::Optional).build().unwrap();
    let (_server, reference) = server(wanted).await;
    let anonymous = zorb::tls::Tls::builder().trust(Trust::pem(ca.pem())).build().unwrap();
    let (_client, vault) = client(anonymous, &reference).await;
    assert_eq!(vault.caller().await.unwrap(), "V1_3 nobody 0");
}

#[tokio::test]
async fn large_messages_go_both_ways_whole_and_in_fragments() {
    let ca = Authority::new("ca");
    let (_server, reference) = server(tls(&ca, "server").build().unwrap()).await;
    for fragment_size in [None, Some(16 * 1024)] {
        let mut builder = transport::builder().tls(tls(&ca, "client").build().unwrap());
        if let Some(size) = fragment_size {
            builder = builder.fragment_size(size);
        }
        let orb = builder.build().await.unwrap();
        let vault: VaultRef = orb.resolve_unchecked(&reference).await.unwrap();
        for len in [0, 1, 100, 16_384, 65_536, 300_000, 5 << 20] {
            let given = octets(len);
            assert!(vault.echo(given.clone()).await.unwrap() == given, "{len}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_share_a_connection() {
    let ca = Authority::new("ca");
    let (server, reference) = server(tls(&ca, "server").build().unwrap()).await;
    let (_client, vault) = client(tls(&ca, "client").build().unwrap(), &reference).await;
    let calls = (0..64).map(|i| {
        let vault = vault.clone();
        tokio::spawn(async move {
            for round in 0..8 {
                assert_eq!(vault.add(i, round).await.unwrap(), i + round);
                let given = octets((i as usize * 1021 + round as usize * 40_009) % 200_000);
                assert!(vault.echo(given.clone()).await.unwrap() == given);
                vault.push(given).await.unwrap();
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(vault.pushed().await.unwrap(), 512);
    assert_eq!(server.transport_stats().tls_sessions, 1);
}

#[tokio::test]
async fn a_reload_is_for_new_handshakes() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let serving = tls(&old, "server").build().unwrap();
    let (server, reference) = server(serving.clone()).await;
    let (_one, before) = client(tls(&old, "client").build().unwrap(), &reference).await;
    assert_eq!(before.add(1, 1).await.unwrap(), 2);
    serving.set_identity(identity(&new, "server")).unwrap();
    // Open connections continue; new ones receive the new certificate.
    assert_eq!(before.add(1, 2).await.unwrap(), 3);
    let (_two, refused) = client(tls(&old, "client").build().unwrap(), &reference).await;
    refused.add(1, 1).await.unwrap_err();
    let (_three, after) = client(tls(&new, "client").build().unwrap(), &reference).await;
    assert_eq!(after.add(1, 3).await.unwrap(), 4);
    assert_eq!(before.add(1, 4).await.unwrap(), 5);
    assert_eq!(server.transport_stats().tls_sessions, 2);
}

#[tokio::test]
async fn plain_threads_call_too() {
    let ca = Authority::new("ca");
    let (_server, reference) = server(tls(&ca, "server").build().unwrap()).await;
    let calling = tls(&ca, "client").build().unwrap();
    let (told, sum) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(move || {
        let sum = zorb::blocking::wait(async {
            let (_client, vault) = client(calling, &reference).await;
            let mut sum = 0;
            for i in 0..20 {
                sum += vault.add(i, 1).await.unwrap();
                assert!(vault.echo(octets(70_000)).await.unwrap() == octets(70_000));
            }
            sum
        });
        told.send(sum).unwrap();
    });
    assert_eq!(sum.await.unwrap(), (1..=20).sum::<i32>());
    thread.join().unwrap();
}

#[tokio::test]
async fn an_orb_offers_both_and_clients_choose() {
    use zorb::tls::OutgoingTls;
    let ca = Authority::new("ca");
    let orb = transport::builder()
        .tls(tls(&ca, "server").build().unwrap())
        .listen("iiop://127.0.0.1:0")
        .listen("ssliop:127.0.0.1:0")
        .build()
        .await
        .unwrap();
    let vault: VaultRef = orb.activate(Vault::default()).unwrap();
    let reference = vault.to_string();
    for (outgoing, expected) in [
        (OutgoingTls::Preferred, "V1_3 nobody 0"),
        (OutgoingTls::Required, "V1_3 nobody 0"),
        (OutgoingTls::WhereRequired, "plaintext"),
    ] {
        let (_client, vault) =
            client(tls(&ca, "client").outgoing(outgoing).build().unwrap(), &reference).await;
        assert_eq!(vault.caller().await.unwrap(), expected, "{outgoing:?}");
    }
    let plain = transport::builder().build().await.unwrap();
    let vault: VaultRef = plain.resolve_unchecked(&reference).await.unwrap();
    assert_eq!(vault.caller().await.unwrap(), "plaintext");
    // Connections without TLS use the configured transport, even if those with TLS cannot.
    transport::assert_used(&plain);
    transport::assert_used(&orb);
}
