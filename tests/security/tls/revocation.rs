//! Certificates that their CA has revoked.

use zorb::SystemExceptionKind::NoPermission;
use zorb::tls::{
    ClientCertificates, Identity, RevocationCheck, RevocationList, Tls, TlsBuilder, TlsVersion, Trust,
};

use crate::tls::refusals::refused;
use crate::tls::{Directory, client, server};
use test_support::certificates::Authority;

const GOOD: u64 = 100;
const REVOKED: u64 = 200;

/// The year until which current lists are valid, and that of expired ones.
const LATER: i32 = 2100;
const LONG_AGO: i32 = 2021;

/// Returns TLS with a certificate of that serial number, and with trust in the CA.
fn numbered(ca: &Authority, serial: u64) -> TlsBuilder {
    let (certificate, key) = ca.issue_numbered("somebody", serial);
    Tls::builder().identity(Identity::pem(certificate, key)).trust(Trust::pem(ca.pem()))
}

/// Returns a server that requires certificates and checks them against the list.
fn looking_up(ca: &Authority, list: String) -> TlsBuilder {
    let builder = numbered(ca, GOOD).client_certificates(ClientCertificates::Required);
    builder.revocation_list(RevocationList::pem(list))
}

async fn served(tls: TlsBuilder, reference: &str) {
    let (_client, vault) = client(tls.build().unwrap(), reference).await;
    assert_eq!(vault.add(1, 2).await.unwrap(), 3);
}

#[tokio::test]
async fn a_client_whose_certificate_is_revoked_is_refused_and_told_so() {
    let ca = Authority::new("ca");
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let serving = looking_up(&ca, ca.revocation_list(&[REVOKED], LATER)).versions(&[version]);
        let (orb, reference) = server(serving.build().unwrap()).await;
        served(numbered(&ca, GOOD + 1), &reference).await;
        let words = "this side's certificate is revoked";
        refused(numbered(&ca, REVOKED).build().unwrap(), &reference, NoPermission, words).await;
        let stats = orb.transport_stats();
        assert_eq!((stats.tls_sessions, stats.tls_failures), (1, 1));
    }
}

#[tokio::test]
async fn a_server_whose_certificate_is_revoked_is_not_called() {
    let ca = Authority::new("ca");
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let careful = || {
            let list = RevocationList::pem(ca.revocation_list(&[REVOKED], LATER));
            numbered(&ca, GOOD).revocation_list(list)
        };
        let (_good, reference) = server(numbered(&ca, GOOD).versions(&[version]).build().unwrap()).await;
        served(careful(), &reference).await;
        let (_revoked, reference) =
            server(numbered(&ca, REVOKED).versions(&[version]).build().unwrap()).await;
        refused(careful().build().unwrap(), &reference, NoPermission, "is revoked").await;
        // A client without a list calls it.
        served(numbered(&ca, GOOD), &reference).await;
    }
}

#[tokio::test]
async fn missing_or_expired_revocation_list_refuses_all_peers_by_default() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let both = || Trust::pem(ca.pem() + &other.pem());
    let good = || numbered(&ca, GOOD).build().unwrap();
    let revoked = || numbered(&ca, REVOKED).build().unwrap();
    for (trust, list) in
        [(both(), other.revocation_list(&[], LATER)), (both(), ca.revocation_list(&[REVOKED], LONG_AGO))]
    {
        // Clients at a server, and a server at its client.
        let strict = looking_up(&ca, list.clone()).trust(trust.clone());
        let (_server, reference) = server(strict.build().unwrap()).await;
        refused(good(), &reference, NoPermission, "has no revocation list of the CA").await;
        let (_plain, called) = server(good()).await;
        let strict = looking_up(&ca, list.clone()).trust(trust.clone());
        refused(strict.build().unwrap(), &called, NoPermission, "::revocation_check").await;

        let lenient = || {
            let builder = looking_up(&ca, list.clone()).trust(trust.clone());
            builder.revocation_check(RevocationCheck::Listed)
        };
        let (_server, reference) = server(lenient().build().unwrap()).await;
        served(numbered(&ca, GOOD), &reference).await;
        served(lenient(), &called).await;
    }
    // An expired list still names revoked certificates.
    let old = looking_up(&ca, ca.revocation_list(&[REVOKED], LONG_AGO));
    let (_server, reference) = server(old.revocation_check(RevocationCheck::Listed).build().unwrap()).await;
    refused(revoked(), &reference, NoPermission, "is revoked").await;
}

#[tokio::test]
async fn revocation_list_of_an_imposter_is_rejected() {
    let (ca, imposter) = (Authority::new("ca"), Authority::new("ca"));
    let (_server, reference) = server(numbered(&ca, GOOD).build().unwrap()).await;
    for check in [RevocationCheck::Strict, RevocationCheck::Listed] {
        let deceived = looking_up(&ca, imposter.revocation_list(&[], LATER)).revocation_check(check);
        refused(deceived.build().unwrap(), &reference, NoPermission, "is invalid").await;
    }
}

#[tokio::test]
async fn cas_between_are_looked_up_too() {
    let root = Authority::new("root");
    let office = root.below("office", REVOKED);
    let (certificate, key) = office.issue_numbered("server", GOOD);
    let identity = Identity::pem(certificate + &office.pem(), key);
    let (_server, reference) = server(Tls::builder().identity(identity).build().unwrap()).await;
    let careful = |lists: &[String]| {
        let builder = Tls::builder().trust(Trust::pem(root.pem()));
        builder.revocation_list(RevocationList::pem(lists.concat()))
    };
    let of_office = office.revocation_list(&[], LATER);
    served(careful(&[of_office.clone(), root.revocation_list(&[], LATER)]), &reference).await;
    let revoked = careful(&[of_office.clone(), root.revocation_list(&[REVOKED], LATER)]);
    refused(revoked.build().unwrap(), &reference, NoPermission, "is revoked").await;
    refused(careful(&[of_office]).build().unwrap(), &reference, NoPermission, "no revocation list").await;
}

#[tokio::test]
async fn a_new_list_holds_from_the_next_reload_on() {
    let ca = Authority::new("ca");
    let directory = Directory::new("list");
    let path = directory.file("ca.crl", ca.revocation_list(&[], LATER));
    let serving = numbered(&ca, GOOD).client_certificates(ClientCertificates::Required);
    let serving = serving.revocation_list(RevocationList::file(&path)).build().unwrap();
    let (_server, reference) = server(serving.clone()).await;
    // A client that could resume its session.
    let calling = numbered(&ca, REVOKED).build().unwrap();
    let (_before, open) = client(calling.clone(), &reference).await;
    assert_eq!(open.add(1, 1).await.unwrap(), 2);

    // In the form in which CAs publish it.
    directory.file("ca.crl", ca.revoke(&[REVOKED], LATER).der());
    let (_two, vault) = client(calling.clone(), &reference).await;
    assert_eq!(vault.add(1, 2).await.unwrap(), 3);
    serving.reload().unwrap();
    refused(calling.clone(), &reference, NoPermission, "is revoked").await;
    assert_eq!(open.add(1, 3).await.unwrap(), 4);

    // An invalid file results in an error that names it, and changes nothing.
    for (octets, words) in [(&b"nonsense"[..], "contains no revocation list"), (&[0x30, 0], "is invalid")] {
        directory.file("ca.crl", octets);
        let error = serving.reload().unwrap_err().to_string();
        assert!(error.contains("ca.crl") && error.contains(words), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    let error = serving.reload().unwrap_err().to_string();
    assert!(error.contains("ca.crl") && error.contains("cannot read"), "{error}");
    refused(calling.clone(), &reference, NoPermission, "is revoked").await;

    serving.set_revocation_lists([RevocationList::pem(ca.revocation_list(&[], LATER))]).unwrap();
    let (_three, vault) = client(calling, &reference).await;
    assert_eq!(vault.add(1, 4).await.unwrap(), 5);
}

#[test]
fn a_list_without_a_ca_is_an_error() {
    let list = RevocationList::pem(Authority::new("ca").revocation_list(&[], LATER));
    let error = Tls::builder().revocation_list(list).build().unwrap_err().to_string();
    assert!(error.contains("requires a trusted CA"), "{error}");
}
