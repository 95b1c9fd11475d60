//! Invalid texts of references: the error names the mistake, and its position.

use zorb::prelude::*;
use zorb::testing::pair;
use zorb::{NarrowError, ResolveError};

use crate::runtime_faults::probe::{ProbeRef, over, tcp};
use test_support::transport::builder;

zorb::idl! {
    interface Stranger { void wave(); };
}

async fn error(orb: &Orb, text: &str) -> String {
    match orb.resolve_unchecked::<ProbeRef>(text).await {
        Ok(probe) => panic!("`{text}` gives {probe:?}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn malformed_urls_say_what_is_wrong_where() {
    let orb = builder().build().await.unwrap();
    let cases = [
        ("", "character 1"),
        ("http://host/key", "character 1"),
        ("IOR:", "character 5"),
        ("IOR:0", "character 5"),
        ("IOR:01zz", "character 7"),
        ("corbaloc:", "character 10"),
        ("corbaloc:iiop:1.2@host:99999/key", "character 24"),
        ("corbaloc:iiop:1.2@host:x/key", "character 24"),
        ("corbaloc:iiop:x@host/key", "character 15"),
        ("corbaloc:other:host/key", "character 10"),
        ("corbaloc:iiop:host/a%zz", "character 21"),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let error = error(&orb, text).await;
        if !error.contains(expected) || error.contains('\n') {
            wrong.push(format!("`{text}`, {expected}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn an_ior_cut_anywhere_is_an_error_and_never_a_reference() {
    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let text = probe.to_string();
    for end in 0..text.len() {
        let result = orbs.client.resolve_unchecked::<ProbeRef>(&text[..end]).await;
        assert!(result.is_err(), "{end} of {} characters: {result:?}", text.len());
    }
    orbs.client.resolve_unchecked::<ProbeRef>(&text).await.unwrap();
    // Case is irrelevant, and surrounding white space may come from the shell.
    orbs.client.resolve_unchecked::<ProbeRef>(&text.replace("IOR:", "ior:").to_uppercase()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_ior_with_any_character_changed_never_panics_or_hangs() {
    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let text = probe.to_string();
    for at in 0..text.len() {
        for other in ["0", "7", "f", "x", "\u{fc}"] {
            let mut changed = text.clone();
            changed.replace_range(at..=at, other);
            if let Ok(probe) = orbs.client.resolve_unchecked::<ProbeRef>(&changed).await {
                // It may lead to another key, another host, or still to the object.
                let _ = probe.with_timeout(Duration::from_secs(1)).ping().await;
            }
        }
    }
    probe.ping().await.unwrap();
}

#[tokio::test]
async fn a_nil_reference_is_named() {
    let orb = builder().build().await.unwrap();
    // An empty type id and no profile.
    let text = "IOR:00000000000000010000000000000000";
    let result = orb.resolve::<ProbeRef>(text).await;
    assert!(matches!(&result, Err(ResolveError::Nil(nil)) if nil == text), "{result:?}");
}

// clause: ior.initial.unknown, ior.url.nested
#[tokio::test]
async fn files_and_initial_references_that_are_missing_are_named() {
    let orb = builder().init_ref("Loop", "corbaloc:rir:/Loop").build().await.unwrap();
    let error = error(&orb, "file:///no/such/file.ior").await;
    assert!(error.contains("/no/such/file.ior") && error.contains("No such file"), "{error}");
    let error = self::error(&orb, "corbaloc:rir:/Unheard").await;
    assert!(error.contains("Unheard") && error.contains("ORBInitRef"), "{error}");
    let error = self::error(&orb, "corbaloc:rir:/Loop").await;
    assert!(error.contains("cycle"), "{error}");
}

// clause: ior.object.is_a
#[tokio::test]
async fn the_wrong_interface_is_an_error_that_names_both() {
    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let result = orbs.client.resolve::<StrangerRef>(&probe.to_string()).await;
    let Err(ResolveError::Narrow(error @ NarrowError::WrongInterface { .. })) = result else {
        panic!("{result:?}");
    };
    let text = error.to_string();
    assert!(text.contains("IDL:Faults/Probe:1.0") && text.contains("IDL:Stranger:1.0"), "{text}");
    // Without a check, the server rejects the unknown operation.
    let stranger: StrangerRef = orbs.client.resolve_unchecked(&probe.to_string()).await.unwrap();
    assert_eq!(stranger.wave().await.unwrap_err().kind, SystemExceptionKind::BadOperation);
    // The query failed, which is a different error.
    orbs.server.deactivate(&stranger);
    orbs.set_refusing(true);
    orbs.server.shutdown().await;
    let result = orbs.client.resolve::<StrangerRef>(&probe.to_string()).await;
    assert!(matches!(result, Err(ResolveError::Narrow(NarrowError::Call { .. }))), "{result:?}");
}

#[tokio::test]
async fn connections_are_of_the_transport_under_test() {
    let tcp = tcp().await;
    tcp.probe.ping().await.unwrap();
    test_support::transport::assert_used(&tcp.client);
    test_support::transport::assert_used(&tcp.server);
}
