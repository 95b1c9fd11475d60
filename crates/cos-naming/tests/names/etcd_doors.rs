//! Authentication at etcd: by certificates, by a password.

use std::path::Path;

use cos_naming::store::{ConnectError, ContextId, EtcdConfig, EtcdStore, Key, Lookup, Store};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use zorb::cos_naming::NameComponent;

use crate::etcd::{Cluster, is_here, post};

/// Writes a CA certificate, and a certificate and key issued by it, to a directory.
fn certificates(folder: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    for (name, text) in
        [("ca.pem", issuer.pem()), ("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

async fn works(store: &EtcdStore) {
    let key = Key::new(&NameComponent::new("nobody", "")).unwrap();
    assert!(matches!(store.lookup(ContextId::ROOT, &key).await.unwrap(), Lookup::NotBound));
}

#[tokio::test]
async fn etcd_by_tls_knows_both_sides_by_their_certificates() {
    if !is_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name);
    let tls = ["--cert-file", "cert.pem", "--key-file", "key.pem", "--trusted-ca-file", "ca.pem"];
    let mut options: Vec<_> = tls
        .chunks(2)
        .flat_map(|pair| [pair[0].to_owned(), file(pair[1]).to_str().unwrap().to_owned()])
        .collect();
    options.push("--client-cert-auth".to_owned());
    let cluster = Cluster::with("https", 1, &options);
    let known = cluster.config().ca(file("ca.pem")).identity(file("cert.pem"), file("key.pem"));
    works(&crate::etcd::connected(known).await).await;
    let unknown = cluster.config().ca(file("ca.pem")).timeout(std::time::Duration::from_millis(500));
    let refused = EtcdStore::connect(unknown).await;
    assert!(matches!(refused, Err(ConnectError::Unavailable(_))), "{refused:?}");
    let no_file = cluster.config().ca(file("none.pem"));
    assert!(matches!(EtcdStore::connect(no_file).await, Err(ConnectError::Config(_))));
}

#[tokio::test]
async fn a_cluster_with_users_wants_a_password() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start(1);
    works(&cluster.store().await).await;
    for (path, body) in [
        ("user/add", r#"{"name":"root","password":"secret"}"#),
        ("role/add", r#"{"name":"root"}"#),
        ("user/grant", r#"{"user":"root","role":"root"}"#),
        ("enable", "{}"),
    ] {
        post(cluster.port(), &format!("/v3/auth/{path}"), body.to_owned()).await;
    }
    let config = |password: &str| -> EtcdConfig { cluster.config().login("root", password) };
    works(&crate::etcd::connected(config("secret")).await).await;
    assert!(!format!("{:?}", config("secret")).contains("secret"));
    for wrong in [cluster.config(), config("guess")] {
        let refused = EtcdStore::connect(wrong).await;
        assert!(matches!(refused, Err(ConnectError::Unavailable(_))), "{refused:?}");
    }
}
