//! TLS by the command line.

use zorb::{Orb, SystemExceptionKind};

use crate::tls::refusals::refused;
use crate::tls::{Directory, Vault, VaultRef};
use test_support::certificates::Authority;

async fn orb(arguments: &[&str]) -> Orb {
    let (builder, rest) = Orb::from_args(arguments.iter().copied()).unwrap();
    assert_eq!(rest, ["other"]);
    builder.build().await.unwrap()
}

#[tokio::test]
async fn options_make_servers_and_clients_that_know_each_other() {
    let (ca, directory) = (Authority::new("ca"), Directory::new("options"));
    let authority = directory.path("ca.pem", ca.pem());
    let (certificate, key) = ca.issue_numbered("server", 7);
    // Both in one file, as in omniORB.
    let both = directory.path("server.pem", key + &certificate);
    let (certificate, key) = ca.issue("alice");
    let (certificate, key) = (directory.path("alice.pem", certificate), directory.path("alice.key", key));
    let list = directory.path("ca.crl", ca.revocation_list(&[], 2100));
    let arguments = [
        "-ORBendPoint",
        "giop:ssl:127.0.0.1:",
        "-ORBsslCAFile",
        &authority,
        "-ORBsslKeyFile",
        &both,
        "-ORBsslKeyPassword",
        "",
        "-ORBsslVerifyMode",
        "peer,fail",
        "other",
    ];
    let server = orb(&arguments).await;
    let vault: VaultRef = server.activate(Vault::default()).unwrap();
    let reference = vault.to_string();
    let arguments = [
        "-ORBsslCAFile",
        &authority,
        "-ORBsslCertificateFile",
        &certificate,
        "-ORBsslKeyFile",
        &key,
        "-ORBsslCRLFile",
        &list,
        "-ORBsslOutgoing",
        "required",
        "other",
    ];
    let client = orb(&arguments).await;
    let vault: VaultRef = client.resolve_unchecked(&reference).await.unwrap();
    assert_eq!(vault.caller().await.unwrap(), "V1_3 CN=alice 1");
    // TLS from options can be reloaded like any other.
    directory.file("ca.crl", ca.revocation_list(&[7], 2100));
    let tls = client.tls().unwrap().clone();
    tls.reload().unwrap();
    refused(tls, &reference, SystemExceptionKind::NoPermission, "is revoked").await;

    let anonymous = orb(&["-ORBsslCAFile", &authority, "-ORBsslServerNames", "unchecked", "other"]).await;
    let vault: VaultRef = anonymous.resolve_unchecked(&reference).await.unwrap();
    let exception = vault.caller().await.unwrap_err();
    assert_eq!(exception.kind, SystemExceptionKind::NoPermission);
    assert!(orb(&["other"]).await.tls().is_none());
}

#[test]
fn what_is_wrong_with_options_is_said() {
    let (ca, directory) = (Authority::new("ca"), Directory::new("wrong"));
    let good = directory.path("ca.pem", ca.pem());
    let bad = directory.path("bad.pem", "nonsense");
    let key = directory.path("key.pem", ca.issue("somebody").1);
    for (arguments, words) in [
        (&["-ORBsslCAFile", "/nowhere/ca.pem"][..], &["cannot read", "/nowhere/ca.pem"][..]),
        (&["-ORBsslCAFile", &bad], &["no certificate", &bad]),
        (&["-ORBsslKeyFile", &bad], &["no certificate", &bad]),
        (&["-ORBsslKeyFile", &key], &["no certificate", &key]),
        (&["-ORBsslCertificateFile", &good], &["no private key", &good]),
        (
            &["-ORBsslCertificateFile", &good, "-ORBsslKeyFile", &key],
            &["does not match the certificate", &key],
        ),
        (&["-ORBsslCAFile", &good, "-ORBsslCRLFile", &bad], &["no revocation list", &bad]),
        (&["-ORBsslCRLFile", "/nowhere/a.crl"], &["requires a trusted CA", "/nowhere/a.crl"]),
        (&["-ORBsslKeyPassword", "secret"], &["-ORBsslKeyPassword", "without a password"]),
        (&["-ORBsslVerifyMode", "maybe"], &["-ORBsslVerifyMode maybe", "peer,fail"]),
        (&["-ORBsslRevocationCheck", "no"], &["-ORBsslRevocationCheck no", "strict"]),
        (&["-ORBsslServerNames", "no"], &["-ORBsslServerNames no", "unchecked"]),
        (&["-ORBsslOutgoing", "no"], &["-ORBsslOutgoing no", "where-required"]),
        (&["-ORBsslNope", "1"], &["-ORBsslNope", "-ORBsslCAFile"]),
        (&["-ORBsslCAFile"], &["-ORBsslCAFile needs a value"]),
        (&["-ORBendPoint", "giop:ssl:"], &["giop:ssl:HOST:PORT"]),
    ] {
        let error = Orb::from_args(arguments.iter().copied()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn published_addresses_may_be_of_tls() {
    let (ca, directory) = (Authority::new("ca"), Directory::new("published"));
    let (certificate, key) = ca.issue("server");
    let both = directory.path("server.pem", key + &certificate);
    let published = "giop:tcp:outside.example:80,giop:ssl:outside.example:443";
    let arguments = [
        "-ORBendPoint",
        "giop:tcp:127.0.0.1:",
        "-ORBListenEndpoints",
        "ssliop://127.0.0.1:0",
        "-ORBendPointPublish",
        published,
        "-ORBsslKeyFile",
        &both,
        "other",
    ];
    assert_eq!(orb(&arguments).await.endpoints(), ["outside.example:80", "ssliop://outside.example:443"]);
}
