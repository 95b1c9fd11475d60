//! Users and passwords.

use std::sync::atomic::Ordering;

use giop_codec::csi::{AssociationOptions, SasContext, TransportMechanism};
use giop_codec::giop::ServiceContextRef;
use giop_codec::ior::ComponentTag;
use zorb::csi::{Credentials, Logins, Required};
use zorb::tls::{ClientCertificates, OutgoingTls, TlsBuilder};
use zorb::wire::{ContextId, Ior, ServiceContext};
use zorb::{BuildError, Orb, Reference, ReplyInfo};

use crate::csi::{
    HERE, NOT_BELIEVED, UNKNOWN, VaultRef, as_user, assert_refused, builder, call, known, logins, serve,
    serve_at, tls,
};
use test_support::certificates::Authority;

/// Returns the reply's context about the caller.
pub(crate) fn answer(info: &ReplyInfo) -> Option<SasContext> {
    let contexts = info.contexts();
    let context: &ServiceContext =
        contexts.iter().find(|context| context.id == ContextId::SECURITY_ATTRIBUTE_SERVICE)?;
    SasContext::from_service_context(&ServiceContextRef { id: context.id, data: &context.data }).unwrap()
}

// clause: giop.context.security, csi.gssup.login, csi.sas.complete
#[tokio::test]
async fn servant_sees_the_principal_and_the_password_is_checked_once() {
    let known = known();
    let (server, reference) =
        serve(builder().logins(Logins::new(known.clone()).allow_plaintext_passwords())).await;
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    let info = ReplyInfo::new();
    let vault = vault.with_reply_info(&info);
    for _ in 0..5 {
        assert_eq!(vault.who().await.unwrap(), "Login ann");
        let complete =
            SasContext::Complete { client_context_id: 0, stateful: false, final_token: Default::default() };
        assert_eq!(answer(&info), Some(complete));
    }
    // Also with an exception.
    let info = ReplyInfo::new();
    vault.with_reply_info(&info).fail().await.unwrap_err();
    assert!(matches!(answer(&info), Some(SasContext::Complete { .. })));
    // Another user over the same connection.
    let bob = vault.with_credentials(&as_user("bob", "another"));
    assert_eq!(bob.who().await.unwrap(), "Login bob");
    assert_eq!(vault.who().await.unwrap(), "Login ann");
    assert_eq!((known.asked(), server.csi_stats().logins, server.open_connections()), (2, 2, 1));
    assert!(vault.narrow::<VaultRef>().await.is_ok() && !vault.non_existent().await.unwrap());
}

// clause: csi.sas.error
#[tokio::test]
async fn missing_or_wrong_login_is_refused_before_execution() {
    let (server, reference) = serve(builder().logins(logins())).await;
    let (_client, vault) = call(builder(), &reference).await;
    assert_refused(vault.add(1, 2).await, UNKNOWN, "OrbBuilder::login");
    assert_refused(vault.is_a("IDL:x:1.0").await, UNKNOWN, "OrbBuilder::login");
    for (user, password) in [("ann", "a Secret"), ("nobody", "a secret"), ("ann", "")] {
        let vault = vault.with_credentials(&as_user(user, password));
        assert_refused(vault.add(1, 2).await, NOT_BELIEVED, "user or password is wrong");
    }
    let stats = server.csi_stats();
    assert_eq!(
        (stats.logins, stats.failed_logins, stats.refused_contexts, stats.unknown_callers),
        (0, 3, 3, 2)
    );
}

#[tokio::test]
async fn after_too_many_failures_no_new_login_is_checked_on_the_connection() {
    let known = known();
    let logins = Logins::new(known.clone()).allow_plaintext_passwords().max_failures(2);
    let (server, reference) = serve(builder().logins(logins)).await;
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "Login ann");
    for password in ["1", "2", "3", "4"] {
        let vault = vault.with_credentials(&as_user("bob", password));
        assert_refused(vault.who().await, NOT_BELIEVED, "too many logins have failed");
    }
    let bob = vault.with_credentials(&as_user("bob", "another"));
    assert_refused(bob.who().await, NOT_BELIEVED, "too many logins have failed");
    assert_eq!((known.asked(), server.csi_stats().failed_logins), (3, 5));
    // A logged-in user remains logged in, and other connections are not affected.
    assert_eq!(vault.who().await.unwrap(), "Login ann");
    let (_other, vault) = call(builder().credentials(as_user("bob", "another")), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "Login bob");
}

#[tokio::test]
async fn passwords_go_over_plain_tcp_only_where_both_sides_say_so() {
    // The client does not.
    let (_server, reference) = serve(builder().logins(logins())).await;
    let (_client, vault) = call(builder().login("ann", "a secret"), &reference).await;
    assert_refused(vault.who().await, HERE, "must not be sent over plain TCP");
    // The server does not: its references do not request a password, and one that is sent nevertheless is not
    // checked.
    let known = known();
    let careful = Logins::new(known.clone()).required(Required::Nothing);
    let (_server, reference) = serve(builder().logins(careful)).await;
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "nobody");
    let context = crate::csi::hostile::establish(0, "ann", "a secret");
    let loud = vault.with_context(context.id, context.data);
    assert_refused(loud.who().await, NOT_BELIEVED, "over plain TCP");
    assert_eq!(known.asked(), 0);
    // A server at which no login could ever succeed is not built.
    let builder = builder().listen("iiop://127.0.0.1:0").logins(Logins::new(known));
    let error = builder.build().await.unwrap_err();
    assert!(
        matches!(error, BuildError::Logins(_)) && error.to_string().contains("allow_plaintext_passwords")
    );
}

#[tokio::test]
async fn sockets_of_this_machine_are_private_enough() {
    let directory = std::env::temp_dir().join(format!("zorb-csi-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let socket = format!("uiop://{}", directory.join("socket").display());
    let (_server, reference) = serve_at(builder().listen(socket).logins(Logins::new(known()))).await;
    let (_client, vault) = call(builder().login("ann", "a secret"), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "Login ann");
    std::fs::remove_dir_all(directory).unwrap();
}

/// Returns a server with TLS, and a client that trusts it.
async fn by_tls(
    ca: &Authority,
    serving: TlsBuilder,
    logins: Logins,
    client: zorb::OrbBuilder,
) -> (Orb, Orb, VaultRef) {
    let serving = builder().tls(serving.build().unwrap()).listen("ssliop://127.0.0.1:0");
    let (server, reference) = serve_at(serving.logins(logins)).await;
    let calling = tls(ca, "alice").outgoing(OutgoingTls::Required).build().unwrap();
    let (client, vault) = call(client.tls(calling), &reference).await;
    (server, client, vault)
}

// clause: csi.mechanisms
#[tokio::test]
async fn by_tls_logins_need_no_permission_and_references_say_what_is_wanted() {
    let ca = Authority::new("ca");
    let wanted = Logins::new(known()).realm("bank");
    let client = builder().login("ann@bank", "a secret");
    let (_server, _client, vault) = by_tls(&ca, tls(&ca, "server"), wanted, client).await;
    assert_eq!(vault.who().await.unwrap(), "Login ann");

    let profile = vault.ior().iiop_profile().unwrap();
    let list = profile.component(ComponentTag::CSI_SEC_MECH_LIST).unwrap().as_csi_mechanisms().unwrap();
    assert!(list.stateful && list.mechanisms.len() == 1);
    let mechanism = &list.mechanisms[0];
    let TransportMechanism::Tls(transport) = &mechanism.transport else { panic!("{mechanism:?}") };
    assert_eq!(transport.addresses[0].port, profile.ssl().unwrap().port);
    let login = AssociationOptions::ESTABLISH_TRUST_IN_CLIENT;
    assert!(mechanism.authentication.requires.has(login) && mechanism.target_requires.has(login));
    assert!(mechanism.target_requires.has(AssociationOptions::CONFIDENTIALITY));
    assert!(mechanism.authentication.target_name.ends_with(b"@bank"));
}

#[tokio::test]
async fn a_certificate_is_an_identity_where_no_login_is_required() {
    let ca = Authority::new("ca");
    let asking = || tls(&ca, "server").client_certificates(ClientCertificates::Optional);
    let identity = || Logins::new(known()).required(Required::Identity);
    let (_server, _client, vault) = by_tls(&ca, asking(), identity(), builder()).await;
    assert_eq!(vault.who().await.unwrap(), "Certificate CN=alice");
    // A login in addition to a certificate takes precedence.
    let ann = vault.with_credentials(&Credentials::login("ann", "a secret"));
    assert_eq!(ann.who().await.unwrap(), "Login ann");
    // The server does not request a certificate.
    let (_server, _client, vault) = by_tls(&ca, tls(&ca, "server"), identity(), builder()).await;
    assert_refused(vault.who().await, UNKNOWN, "does not know the caller");
    // A certificate does not replace a login.
    let (_server, _client, vault) = by_tls(&ca, asking(), Logins::new(known()), builder()).await;
    assert_refused(vault.who().await, UNKNOWN, "does not know the caller");
}

#[tokio::test]
async fn plaintext_beside_tls_is_no_way_around_the_login() {
    let ca = Authority::new("ca");
    let both = builder().tls(tls(&ca, "server").build().unwrap());
    let both = both.listen("iiop://127.0.0.1:0").listen("ssliop://127.0.0.1:0").logins(Logins::new(known()));
    let (server, reference) = serve_at(both).await;
    let (_client, vault) = call(builder(), &reference).await;
    assert_refused(vault.who().await, UNKNOWN, "does not know the caller");
    // A client that would log in detects by the reference that the transport is wrong.
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    assert_refused(vault.who().await, HERE, "does not have");
    let trusting = tls(&ca, "ann").build().unwrap();
    let (_client, vault) = call(builder().tls(trusting).login("ann", "a secret"), &reference).await;
    assert_eq!(vault.who().await.unwrap(), "Login ann");
    assert_eq!(server.csi_stats().logins, 1);
}

// clause: csi.mechanisms
#[tokio::test]
async fn servers_that_name_their_port_for_tls_among_the_mechanisms_alone_are_called_there() {
    let ca = Authority::new("ca");
    let (_server, _client, vault) = by_tls(&ca, tls(&ca, "server"), Logins::new(known()), builder()).await;
    let mut profile = vault.ior().iiop_profile().unwrap();
    profile.components.retain(|component| component.tag != ComponentTag::SSL_SEC_TRANS);
    // With and without an apparent plaintext port.
    for port in [0, 1] {
        profile.port = port;
        let ior = Ior::from_profiles(vault.ior().type_id.clone(), std::slice::from_ref(&profile)).unwrap();
        let trusting = tls(&ca, "ann").build().unwrap();
        let (_client, vault) = call(builder().tls(trusting).login("ann", "a secret"), &ior.to_string()).await;
        assert_eq!(vault.who().await.unwrap(), "Login ann");
        let (_client, vault) = call(builder().login("ann", "a secret"), &ior.to_string()).await;
        assert_refused(vault.who().await, HERE, "requires TLS");
    }
}

#[tokio::test]
async fn logins_are_for_a_realm_on_both_sides() {
    let (_server, reference) = serve(builder().logins(logins().realm("bank"))).await;
    let (_client, vault) = call(builder(), &reference).await;
    for (user, realm) in [("ann", "bank"), ("ann@bank", "bank")] {
        let vault = vault.with_credentials(&as_user(user, "a secret").for_realm(realm));
        assert_eq!(vault.who().await.unwrap(), "Login ann");
    }
    let elsewhere = vault.with_credentials(&as_user("ann", "a secret").for_realm("shop"));
    assert_refused(elsewhere.who().await, HERE, "a realm other than");
    // A client that sends it nevertheless is notified.
    let context = crate::csi::hostile::establish_for(0, "ann", "a secret", "@shop");
    let loud = vault.with_context(context.id, context.data);
    assert_refused(loud.who().await, NOT_BELIEVED, "a realm other than");
    assert_refused(
        vault.with_credentials(&as_user("ann@shop", "a secret")).who().await,
        NOT_BELIEVED,
        "wrong",
    );
}

#[tokio::test]
async fn servers_without_logins_get_none_unless_that_is_wanted() {
    let (server, reference) = serve(builder()).await;
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    let info = ReplyInfo::new();
    assert_eq!(vault.with_reply_info(&info).who().await.unwrap(), "nobody");
    assert_eq!(answer(&info), None);
    // The requirements of a `corbaloc:` server are unknown.
    let (guarded, _) = serve(builder().logins(logins())).await;
    guarded.activate_named("vault", crate::csi::Vault::default()).map(|_: VaultRef| ()).unwrap();
    let url = format!("corbaloc::1.2@{}/vault", guarded.endpoints()[0]);
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &url).await;
    assert_refused(vault.who().await, UNKNOWN, "does not know the caller");
    let unasked = vault.with_credentials(&as_user("ann", "a secret").always_send());
    assert_eq!(unasked.who().await.unwrap(), "Login ann");
    drop(server);
}

#[tokio::test]
async fn requests_behind_a_login_wait_for_it_in_order_and_others_do_not() {
    let known = known();
    let logins = Logins::new(known.clone()).allow_plaintext_passwords();
    let (_server, reference) = serve(builder().logins(logins)).await;
    let (_bob, other) = call(builder().credentials(as_user("bob", "another")), &reference).await;
    assert_eq!(other.who().await.unwrap(), "Login bob");

    let slow = std::sync::Arc::clone(&known.slow);
    let held = slow.lock().await;
    let (_ann, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    for number in 1..=20 {
        vault.push(number).await.unwrap();
    }
    let waiting = tokio::spawn({
        let vault = vault.clone();
        async move { vault.pushed().await }
    });
    while known.asked() < 2 {
        tokio::task::yield_now().await;
    }
    // Further logins of the connection wait for it.
    let users = [("bob", "another"), ("gateway", "opens"), ("bob", "wrong")];
    let behind: Vec<_> = users
        .map(|(user, password)| {
            let vault = vault.with_credentials(&as_user(user, password));
            tokio::spawn(async move { vault.who().await })
        })
        .into();
    // Only the thread that checks the password waits.
    assert_eq!(other.pushed().await.unwrap(), 0);
    assert!(!waiting.is_finished());
    drop(held);
    assert_eq!(waiting.await.unwrap().unwrap(), 20);
    let mut shown = Vec::new();
    for call in behind {
        shown.push(call.await.unwrap().map_err(|exception| exception.minor));
    }
    assert_eq!(shown, [Ok("Login bob".to_owned()), Ok("Login gateway".to_owned()), Err(NOT_BELIEVED)]);
    assert_eq!(known.asked(), 5);
}

#[tokio::test]
async fn logins_beyond_those_that_may_wait_are_refused() {
    let known = known();
    let logins = Logins::new(known.clone()).allow_plaintext_passwords().max_checks(1).max_waiting(2);
    let (server, reference) = serve(builder().logins(logins)).await;
    let held = std::sync::Arc::clone(&known.slow).lock_owned().await;
    let log_in = async || {
        let (client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
        let vault = vault.with_retry(zorb::Retry::Never);
        (client, tokio::spawn(async move { vault.who().await }))
    };
    let mut calls = vec![log_in().await];
    while known.asked() < 1 {
        tokio::task::yield_now().await;
    }
    // Two of these wait; which ones is not determined.
    for _ in 0..5 {
        calls.push(log_in().await);
    }
    while server.csi_stats().throttled_logins < 3 {
        tokio::task::yield_now().await;
    }
    drop(held);
    let (mut good, mut refused) = (0, 0);
    for (_client, call) in calls {
        match call.await.unwrap() {
            Ok(who) => {
                assert_eq!(who, "Login ann");
                good += 1;
            }
            Err(error) => {
                let what = (error.kind, error.minor, error.completed);
                let overloaded = zorb::minor::TRANSIENT_OVERLOADED;
                assert_eq!(
                    what,
                    (zorb::SystemExceptionKind::Transient, overloaded, zorb::CompletionStatus::No)
                );
                refused += 1;
            }
        }
    }
    assert_eq!((good, refused, known.asked()), (3, 3, 3));
}

#[tokio::test]
async fn abandoned_calls_during_a_login_check_keep_the_connection_usable() {
    let known = known();
    let logins = Logins::new(known.clone()).allow_plaintext_passwords();
    let (_server, reference) = serve(builder().logins(logins)).await;
    let (_ann, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    let slow = std::sync::Arc::clone(&known.slow);
    let held = slow.lock().await;
    let given_up = tokio::spawn({
        let vault = vault.clone();
        async move { vault.who().await }
    });
    while known.asked() < 1 {
        tokio::task::yield_now().await;
    }
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    drop(held);
    assert_eq!(vault.who().await.unwrap(), "Login ann");
}

#[tokio::test]
async fn an_authenticator_that_panics_costs_its_caller_the_request_alone() {
    let (server, reference) = serve(builder().logins(logins())).await;
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    let bomb = vault.with_credentials(&as_user("bomb", "x"));
    assert_refused(bomb.who().await, NOT_BELIEVED, "user or password");
    assert_eq!(vault.who().await.unwrap(), "Login ann");
    assert_eq!((server.open_connections(), server.csi_stats().failed_logins), (1, 1));
}

#[tokio::test]
async fn calls_of_the_process_itself_are_not_judged() {
    let orb = builder().listen("iiop://127.0.0.1:0").logins(logins()).build().await.unwrap();
    let servant = crate::csi::Vault::default();
    let calls = std::sync::Arc::clone(&servant.calls);
    let vault: VaultRef = orb.activate(servant).unwrap();
    assert_eq!(vault.who().await.unwrap(), "nobody");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_address_from_which_too_many_logins_failed_has_to_wait() {
    let known = known();
    let hour = std::time::Duration::from_secs(3600);
    let logins = Logins::new(known.clone()).allow_plaintext_passwords().max_failures_per_address(4, hour);
    let (server, reference) =
        serve_at(builder().listen("iiop://127.0.0.1:0").listen("iiop://[::1]:0").logins(logins)).await;
    let (_there, there) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    assert_eq!(there.who().await.unwrap(), "Login ann");
    // Over separate connections, each of which may fail three times.
    for number in 0..6 {
        let guess = as_user("bob", &number.to_string());
        let (_client, vault) = call(builder().credentials(guess), &reference).await;
        assert_refused(vault.who().await, NOT_BELIEVED, "");
    }
    assert_eq!(known.asked(), 5, "ann's, and four guesses");
    let (_client, bob) = call(builder().credentials(as_user("bob", "another")), &reference).await;
    assert_refused(bob.who().await, NOT_BELIEVED, "");
    let stats = server.csi_stats();
    assert_eq!((stats.logins, stats.failed_logins, stats.throttled_logins, known.asked()), (1, 7, 3, 5));
    assert_eq!(there.who().await.unwrap(), "Login ann", "who is logged in stays so");
    // Another address is unaffected.
    let url = format!("corbaloc:iiop:1.2@{}/{}", server.endpoints()[1], "elsewhere");
    let here: VaultRef = server.activate_named("elsewhere", crate::csi::Vault::default()).unwrap();
    drop(here);
    let (_client, elsewhere) = call(builder(), &url).await;
    let context = crate::csi::hostile::establish(0, "bob", "another");
    assert_eq!(elsewhere.with_context(context.id, context.data).who().await.unwrap(), "Login bob");
}

// clause: giop.connection.close_resend
#[tokio::test]
async fn a_request_whose_login_is_checked_when_the_orb_closes_is_not_executed_and_its_caller_knows() {
    let known = known();
    let (server, reference) =
        serve(builder().logins(Logins::new(known.clone()).allow_plaintext_passwords())).await;
    let (_client, vault) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    let vault = vault.with_retry(zorb::Retry::Never);
    let slow = std::sync::Arc::clone(&known.slow).lock_owned().await;
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let vault = vault.clone();
            tokio::spawn(async move { vault.add(1, 2).await })
        })
        .collect();
    while known.asked() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    // A password check may take longer than the ORB's drain timeout.
    assert_eq!(server.shutdown().await.aborted_connections, 0);
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.completed, zorb::CompletionStatus::No, "{error}");
    }
    assert_eq!((server.open_connections(), server.csi_stats().logins), (0, 0));
    drop(slow);
}
