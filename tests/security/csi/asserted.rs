//! Identity assertions: clients that assert the identity of another user.

use giop_codec::csi::{ContextFailure, EstablishContext, ExportedName, IdentityToken, Oid, SasContext};
use zorb::Reference;
use zorb::csi::{AssertedIdentity, Credentials, Logins, Required};
use zorb::prelude::*;
use zorb::tls::{ClientCertificates, OutgoingTls};

use crate::csi::hostile::{context, token};
use crate::csi::{
    HERE, NOT_BELIEVED, as_user, assert_refused, builder, call, known, logins, serve, serve_at, tls,
};
use test_support::certificates::Authority;

fn name(name: &str) -> AssertedIdentity {
    AssertedIdentity::Name(name.to_owned())
}

/// `CN=bob` in DER.
const BOB: &[u8] = &[0x30, 0x0e, 0x31, 0x0c, 0x30, 0x0a, 6, 3, 0x55, 4, 3, 0x0c, 3, b'b', b'o', b'b'];

/// Returns the DER encoding of a PEM certificate as a chain of one.
fn chain(pem: &str) -> Bytes {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text: Vec<u8> = pem.lines().filter(|line| !line.starts_with('-')).flat_map(str::bytes).collect();
    let mut der = Vec::new();
    for four in text.chunks(4) {
        let sextets = four.iter().filter_map(|letter| letters.iter().position(|other| other == letter));
        let (bits, count) = sextets.fold((0, 0), |(bits, count), sextet| (bits << 6 | sextet, count + 1));
        let bits = (bits << (6 * (4 - count))) as u32;
        der.extend(&bits.to_be_bytes()[1..count]);
    }
    let length = (der.len() as u16).to_be_bytes();
    [&[0x30, 0x82], &length[..], &der].concat().into()
}

// clause: csi.identity.asserted
#[tokio::test]
async fn trusted_user_may_assert_other_identities() {
    let ca = Authority::new("ca");
    let (_server, reference) = serve(builder().logins(logins().trust_user("gateway").realm("bank"))).await;
    let gateway = as_user("gateway", "opens");
    let (_client, vault) = call(builder().credentials(gateway.clone()), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "Login gateway");
    let (certificate, _) = ca.issue("carl");
    for (identity, expected) in [
        (name("ann"), "AssertedName ann by Login gateway"),
        (name("zoe@bank"), "AssertedName zoe by Login gateway"),
        (AssertedIdentity::Anonymous, "Anonymous  by Login gateway"),
        (AssertedIdentity::DistinguishedName(BOB.into()), "AssertedSubject CN=bob by Login gateway"),
        (AssertedIdentity::Certificates(chain(&certificate)), "AssertedSubject CN=carl by Login gateway"),
    ] {
        let vault = vault.with_credentials(&gateway.clone().assert_identity(identity));
        assert_eq!(vault.who().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn untrusted_user_may_not_assert_other_identities() {
    let (server, reference) = serve(builder().logins(logins().trust_user("gateway"))).await;
    let (_client, vault) = call(builder(), &reference).await;
    let eve = as_user("ann", "a secret").assert_identity(name("bob"));
    assert_refused(vault.with_credentials(&eve).who().await, NOT_BELIEVED, "does not trust this client");
    // Nor a client with the gateway's name and a wrong password, or without any credentials.
    let eve = as_user("gateway", "x").assert_identity(name("bob"));
    assert_refused(vault.with_credentials(&eve).who().await, NOT_BELIEVED, "wrong");
    let nobody = context(&SasContext::Establish(EstablishContext {
        identity: IdentityToken::PrincipalName(ExportedName::gssup("bob")),
        ..EstablishContext::default()
    }));
    assert_refused(
        vault.with_context(nobody.id, nobody.data).who().await,
        NOT_BELIEVED,
        "does not accept the identity",
    );
    // The result of a login does not apply to a request with an assertion.
    let ann = as_user("ann", "a secret");
    assert_eq!(vault.with_credentials(&ann).who().await.unwrap(), "Login ann");
    let eve = ann.assert_identity(AssertedIdentity::Anonymous);
    assert_refused(vault.with_credentials(&eve).who().await, NOT_BELIEVED, "does not trust this client");
    assert_eq!(server.csi_stats().refused_contexts, 4);
}

#[tokio::test]
async fn server_without_trust_gets_no_asserted_identity() {
    let (_server, reference) = serve(builder().logins(logins())).await;
    let (_client, vault) = call(builder(), &reference).await;
    let gateway = as_user("gateway", "opens").assert_identity(name("ann"));
    assert_refused(vault.with_credentials(&gateway).who().await, HERE, "accepts no asserted identity");
}

#[tokio::test]
async fn a_certificate_can_be_what_is_trusted() {
    let ca = Authority::new("ca");
    let wanted = Logins::new(known()).required(Required::Identity).trust_subject("CN=gateway");
    let serving = tls(&ca, "server").client_certificates(ClientCertificates::Required).build().unwrap();
    let serving = builder().tls(serving).listen("ssliop://127.0.0.1:0").logins(wanted);
    let (_server, reference) = serve_at(serving).await;
    let speaking = Credentials::none().assert_identity(name("ann"));
    let by =
        |subject: &str| builder().tls(tls(&ca, subject).outgoing(OutgoingTls::Required).build().unwrap());
    let (_client, vault) = call(by("gateway").credentials(speaking.clone()), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "AssertedName ann by Certificate CN=gateway");
    let (_client, vault) = call(by("eve").credentials(speaking), &reference).await;
    assert_refused(vault.who().await, NOT_BELIEVED, "does not trust this client");
    // A login counts as that user, regardless of the certificate.
    let (_client, vault) = call(by("gateway"), &reference).await;
    let bob = Credentials::login("bob", "another").assert_identity(name("ann"));
    assert_refused(vault.with_credentials(&bob).who().await, NOT_BELIEVED, "does not trust this client");
}

#[tokio::test]
async fn identities_that_do_not_decode_are_refused() {
    let (_server, reference) = serve(builder().logins(logins().trust_user("gateway"))).await;
    let (_client, vault) = call(builder(), &reference).await;
    let foreign = ExportedName { mechanism: Oid::new(Bytes::from_static(&[6, 1, 1])), name: "ann".into() };
    for identity in [
        IdentityToken::PrincipalName(foreign),
        IdentityToken::DistinguishedName(Bytes::from_static(&[0x30, 0x05, 1])),
        IdentityToken::X509CertChain(Bytes::from_static(&[0x30, 0x00])),
        IdentityToken::X509CertChain(Bytes::from_static(&[0x30, 0x02, 0x30, 0x00])),
        IdentityToken::Other(64, Bytes::from_static(b"x")),
    ] {
        let shown = format!("{identity:?}");
        let body = SasContext::Establish(EstablishContext {
            identity,
            authentication: token("gateway", "opens", ""),
            ..EstablishContext::default()
        });
        let info = zorb::ReplyInfo::new();
        let context = context(&body);
        let vault = vault.with_context(context.id, context.data).with_reply_info(&info);
        assert_refused(vault.who().await, NOT_BELIEVED, "");
        let Some(SasContext::Error { failure, .. }) = crate::csi::logins::answer(&info) else {
            panic!("{shown}")
        };
        assert_eq!(failure, ContextFailure::INVALID_MECHANISM, "{shown}");
    }
}
