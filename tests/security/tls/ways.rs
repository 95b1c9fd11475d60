//! References that offer TLS at one address and plaintext at another: after a failure by TLS, plaintext is
//! never tried.

use tokio::net::TcpListener;
use zorb::SystemExceptionKind::{NoPermission, Transient};
use zorb::tls::{OutgoingTls, Tls};
use zorb::{Orb, SystemExceptionKind};

use crate::tls::refusals::refused;
use crate::tls::{Vault, VaultRef, client, tls, transport};
use test_support::certificates::Authority;

/// Returns a server with two ports, one with TLS, and both references.
async fn both(tls: Tls) -> (Orb, String, String) {
    let builder = transport::builder().tls(tls).listen("iiop://127.0.0.1:0").listen("ssliop://127.0.0.1:0");
    let orb = builder.build().await.unwrap();
    let _: VaultRef = orb.activate_named("vault", Vault::default()).unwrap();
    let [plain, secure] = orb.endpoints().try_into().unwrap();
    (orb, format!("iiop:1.2@{plain}"), secure.replace("ssliop://", "ssliop:1.2@"))
}

/// Returns a port that closes every connection at once.
async fn blocked() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    port
}

/// Returns a port without a listener.
async fn closed() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

async fn caller(tls: Tls, addresses: [&str; 2]) -> String {
    let (_client, vault) = client(tls, &reference(addresses)).await;
    vault.caller().await.unwrap()
}

fn reference([first, second]: [&str; 2]) -> String {
    format!("corbaloc:{first},{second}/vault")
}

#[tokio::test]
async fn a_server_that_can_not_be_reached_by_tls_is_not_called_in_plaintext() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let (_mistrusted, _, mistrusted) = both(tls(&other, "server").build().unwrap()).await;
    let (server, plain, _) = both(tls(&ca, "server").build().unwrap()).await;
    let (blocked, closed) = (blocked().await, closed().await);
    for outgoing in [OutgoingTls::Preferred, OutgoingTls::Required] {
        let check = async |secure: &str, kind: SystemExceptionKind, words: &str| {
            for addresses in [[secure, &plain], [&plain, secure]] {
                let careful = tls(&ca, "client").outgoing(outgoing).build().unwrap();
                refused(careful, &reference(addresses), kind, words).await;
            }
        };
        check(&format!("ssliop:1.2@127.0.0.1:{closed}"), Transient, "refused").await;
        check(&format!("ssliop:1.2@127.0.0.1:{blocked}"), Transient, "TLS").await;
        check(&mistrusted, NoPermission, "is rejected").await;
    }
    assert_eq!((server.stats().messages_in, server.transport_stats().tls_sessions), (0, 0));
}

#[tokio::test]
async fn tls_in_any_profile_is_taken_before_plaintext_in_all_of_them() {
    let ca = Authority::new("ca");
    let (_server, plain, secure) = both(tls(&ca, "server").build().unwrap()).await;
    for (outgoing, expected) in [
        (OutgoingTls::Preferred, "V1_3 nobody 0"),
        (OutgoingTls::Required, "V1_3 nobody 0"),
        (OutgoingTls::WhereRequired, "plaintext"),
    ] {
        for addresses in [[&*secure, &*plain], [&*plain, &*secure]] {
            let choosing = tls(&ca, "client").outgoing(outgoing).build().unwrap();
            assert_eq!(caller(choosing, addresses).await, expected, "{outgoing:?} {addresses:?}");
        }
    }
}

#[tokio::test]
async fn client_that_prefers_tls_calls_plaintext_servers() {
    let ca = Authority::new("ca");
    let (_server, plain, _) = both(tls(&ca, "server").build().unwrap()).await;
    let dead = format!("iiop:1.2@127.0.0.1:{}", closed().await);
    let preferring = tls(&ca, "client").outgoing(OutgoingTls::Preferred).build().unwrap();
    assert_eq!(caller(preferring, [&dead, &plain]).await, "plaintext");
}

#[tokio::test]
async fn client_that_prefers_plaintext_tries_it_before_tls() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let (mistrusted, _, secure) = both(tls(&other, "server").build().unwrap()).await;
    let (_server, plain, good) = both(tls(&ca, "server").build().unwrap()).await;
    let plainly = || tls(&ca, "client").outgoing(OutgoingTls::WhereRequired).build().unwrap();
    assert_eq!(caller(plainly(), [&secure, &plain]).await, "plaintext");
    let stats = mistrusted.transport_stats();
    assert_eq!((stats.tls_failures, stats.tls_sessions), (0, 0));
    // A change from plaintext to TLS is harmless.
    let dead = format!("iiop:1.2@127.0.0.1:{}", closed().await);
    assert_eq!(caller(plainly(), [&dead, &good]).await, "V1_3 nobody 0");
}
