//! Contexts that no well-behaved client sends: each is rejected, nothing is executed, and the connection
//! remains usable.

use std::sync::atomic::Ordering;

use giop_codec::csi::gssup::Login;
use giop_codec::csi::{
    AuthorizationElement, ContextFailure, EstablishContext, ExportedName, IdentityToken, SasContext,
};
use zorb::csi::Logins;
use zorb::prelude::*;
use zorb::wire::{ContextId, ServiceContext};
use zorb::{Reference, ReplyInfo};

use crate::csi::logins::answer;
use crate::csi::{
    NOT_BELIEVED, UNKNOWN, Vault, VaultRef, as_user, assert_refused, builder, call, known, logins, serve,
};

pub(crate) fn establish(number: u64, user: &str, password: &str) -> ServiceContext {
    establish_for(number, user, password, "")
}

/// Returns a context of a client that chooses its own context ids and realms.
pub(crate) fn establish_for(number: u64, user: &str, password: &str, realm: &str) -> ServiceContext {
    context(&SasContext::Establish(EstablishContext {
        client_context_id: number,
        authentication: token(user, password, realm),
        ..EstablishContext::default()
    }))
}

pub(crate) fn token(user: &str, password: &str, realm: &str) -> Bytes {
    let octets = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let target =
        if realm.is_empty() { Bytes::new() } else { ExportedName::gssup(realm).to_octets().unwrap() };
    Login { user: octets(user), password: octets(password), target }.to_token().unwrap()
}

pub(crate) fn context(body: &SasContext) -> ServiceContext {
    body.to_service_context().unwrap()
}

fn in_context(number: u64) -> ServiceContext {
    context(&SasContext::InContext { client_context_id: number, may_discard: false })
}

fn with(vault: &VaultRef, context: ServiceContext) -> VaultRef {
    vault.with_context(context.id, context.data)
}

/// Returns the error in the reply's context.
async fn failure(vault: &VaultRef, context: ServiceContext) -> ContextFailure {
    let info = ReplyInfo::new();
    assert_refused(with(vault, context).with_reply_info(&info).who().await, NOT_BELIEVED, "");
    match answer(&info) {
        Some(SasContext::Error { failure, .. }) => failure,
        other => panic!("{other:?}"),
    }
}

// clause: csi.sas.malformed
#[tokio::test]
async fn contexts_that_are_cut_or_changed_are_refused_and_the_next_request_is_served() {
    let servant = Vault::default();
    let calls = std::sync::Arc::clone(&servant.calls);
    let server = builder().listen("iiop://127.0.0.1:0").logins(logins().max_failures(u32::MAX));
    let server = server.build().await.unwrap();
    let reference: VaultRef = server.activate(servant).unwrap();
    let (_client, vault) = call(builder(), &reference.to_string()).await;
    let good = establish(0, "ann", "a secret");
    let mut bad: Vec<Vec<u8>> = (0..good.data.len()).map(|length| good.data[..length].to_vec()).collect();
    bad.extend((0..good.data.len()).flat_map(|at| {
        let flipped = |bit: u8| {
            let mut octets = good.data.to_vec();
            octets[at] ^= bit;
            octets
        };
        [flipped(0x80), flipped(0x01)]
    }));
    bad.extend([vec![0xff; 1000], vec![0; 1000], vec![1; 3]]);
    let mut refused = 0;
    for octets in bad {
        match vault.with_context(ContextId::SECURITY_ATTRIBUTE_SERVICE, octets.clone()).who().await {
            Err(exception) => {
                let kinds = [SystemExceptionKind::NoPermission, SystemExceptionKind::Marshal];
                assert!(kinds.contains(&exception.kind), "{exception:?} {octets:?}");
                assert_eq!(exception.completed, CompletionStatus::No);
                refused += 1;
            }
            // Padding may have any value, and some fields of a context have no effect.
            Ok(who) => assert_eq!(who, "Login ann", "{octets:?}"),
        }
        assert_eq!(with(&vault, good.clone()).who().await.unwrap(), "Login ann");
    }
    assert!(refused > 2 * good.data.len(), "{refused}");
    assert!(calls.load(Ordering::Relaxed) > 0 && server.open_connections() == 1);
}

#[tokio::test]
async fn what_is_too_large_or_of_another_kind_is_refused() {
    let (_server, reference) = serve(builder().logins(logins())).await;
    let (_client, vault) = call(builder(), &reference).await;
    let large = |size: usize| EstablishContext {
        authentication: Bytes::from(vec![0x60; size]),
        ..EstablishContext::default()
    };
    let exception = with(&vault, context(&SasContext::Establish(large(70_000)))).who().await.unwrap_err();
    assert_eq!((exception.kind, exception.completed), (SystemExceptionKind::Marshal, CompletionStatus::No));
    let element = AuthorizationElement { kind: 1, contents: Bytes::new() };
    let many = EstablishContext { authorization: vec![element; 65], ..large(1) };
    let exception = with(&vault, context(&SasContext::Establish(many))).who().await.unwrap_err();
    assert_eq!(exception.kind, SystemExceptionKind::Marshal);

    let invalid = ContextFailure::INVALID_MECHANISM;
    assert_eq!(failure(&vault, context(&SasContext::Establish(large(60_000)))).await, invalid);
    let complete = SasContext::Complete { client_context_id: 1, stateful: true, final_token: Bytes::new() };
    assert_eq!(failure(&vault, context(&complete)).await, invalid);
    let error = SasContext::Error { client_context_id: 1, failure: invalid, error_token: Bytes::new() };
    assert_eq!(failure(&vault, context(&error)).await, invalid);
    let nothing = context(&SasContext::Establish(EstablishContext::default()));
    assert_eq!(failure(&vault, nothing).await, ContextFailure::INVALID_EVIDENCE);
    assert_refused(vault.who().await, UNKNOWN, "");
}

// clause: csi.sas.stateful
#[tokio::test]
async fn contexts_have_numbers_that_are_good_for_their_connection_alone() {
    let known = known();
    let logins = Logins::new(known.clone()).allow_plaintext_passwords().max_contexts(2);
    let (_server, reference) = serve(builder().logins(logins)).await;
    let (_one, vault) = call(builder(), &reference).await;
    let missing = ContextFailure::NO_CONTEXT;
    assert_eq!(failure(&vault, in_context(7)).await, missing);
    let stateful = async |number, user, password| {
        let info = ReplyInfo::new();
        let vault = with(&vault, establish(number, user, password)).with_reply_info(&info);
        let who = vault.who().await.unwrap();
        match answer(&info) {
            Some(SasContext::Complete { client_context_id, stateful, .. }) => {
                assert_eq!(client_context_id, number);
                (who, stateful)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stateful(7, "ann", "a secret").await, ("Login ann".to_owned(), true));
    assert_eq!(with(&vault, in_context(7)).who().await.unwrap(), "Login ann");
    // An identical repetition is accepted; another caller with the same context id is not.
    assert_eq!(stateful(7, "ann", "a secret").await, ("Login ann".to_owned(), true));
    assert_eq!(failure(&vault, establish(7, "bob", "another")).await, ContextFailure::POLICY_CONFLICT);
    assert_eq!(with(&vault, in_context(7)).who().await.unwrap(), "Login ann");
    // A failed login leaves no context.
    assert_eq!(failure(&vault, establish(8, "bob", "wrong")).await, ContextFailure::INVALID_EVIDENCE);
    assert_eq!(failure(&vault, in_context(8)).await, missing);
    // Logins beyond the limit of contexts are served, but without a context.
    assert_eq!(stateful(9, "bob", "another").await, ("Login bob".to_owned(), true));
    assert_eq!(stateful(10, "bob", "another").await, ("Login bob".to_owned(), false));
    assert_eq!(failure(&vault, in_context(10)).await, missing);
    assert_eq!(known.asked(), 3);

    // Another client that knows the context id.
    let (_other, replayed) = call(builder(), &reference).await;
    assert_eq!(failure(&replayed, in_context(7)).await, missing);
    let (_third, vault) = call(builder().credentials(as_user("bob", "another")), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "Login bob");
}

#[tokio::test]
async fn names_and_passwords_may_be_any_octets_and_are_refused() {
    let known = known();
    let (_server, reference) =
        serve(builder().logins(Logins::new(known.clone()).allow_plaintext_passwords().max_failures(100)))
            .await;
    let (_client, vault) = call(builder(), &reference).await;
    let raw = |user: &'static [u8], password: &'static [u8]| {
        let token = Login {
            user: Bytes::from_static(user),
            password: Bytes::from_static(password),
            target: Bytes::new(),
        };
        context(&SasContext::Establish(EstablishContext {
            authentication: token.to_token().unwrap(),
            identity: IdentityToken::Absent,
            ..EstablishContext::default()
        }))
    };
    for (user, password) in
        [(&b"\xff\xfe"[..], &b"a secret"[..]), (b"ann", b"\xff"), (b"", b""), (b"ann\0", b"a secret")]
    {
        assert_eq!(failure(&vault, raw(user, password)).await, ContextFailure::INVALID_EVIDENCE);
    }
    assert_eq!(failure(&vault, raw(b"an\nn\x1b[2J", b"x")).await, ContextFailure::INVALID_EVIDENCE);
    assert_eq!(known.asked(), 3, "what is no UTF-8 is not looked up");
}
