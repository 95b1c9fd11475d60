//! Tests of the entries of the wire log.
#![cfg(feature = "trace-stderr")]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "runtime/probe/mod.rs"]
mod probe;

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};

#[cfg(feature = "experiments")]
use orb_runtime::{Demux, OperationDemux};
use probe::{Probe, ProbeRef, builder};

/// Collects log output.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// The log of this thread.
    static OF_THREAD: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Returns a log of all that this thread does from now on. The process has one subscriber. If several began
/// and ended while others are in use, `tracing` might keep a callsite disabled.
fn log() -> Log {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(|| OF_THREAD.with_borrow(|log| log.clone().unwrap_or_default()))
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
    let log = Log::default();
    OF_THREAD.set(Some(log.clone()));
    log
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn a_request_that_waits_is_logged_when_it_comes_and_not_again() {
    let log = log();
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let here: ProbeRef = server.activate(Probe::default()).unwrap();
    let client = builder().build().await.unwrap();
    let probe: ProbeRef = client.resolve(&here.to_string()).await.unwrap();
    let manager = server.root_poa().manager();
    let received = || {
        let text = log.text();
        let lines = text.lines().filter(|line| line.contains("kind=\"Request\""));
        lines.filter(|line| line.contains("operation=\"ping\"") && line.contains(" <- ")).count()
    };

    let _ = manager.hold_requests().unwrap();
    let held = tokio::spawn({
        let probe = probe.clone();
        async move { probe.ping().await }
    });
    while received() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!held.is_finished());
    manager.activate().unwrap();
    held.await.unwrap().unwrap();
    assert_eq!(received(), 1, "{}", log.text());
    probe.ping().await.unwrap();
    assert_eq!(received(), 2, "{}", log.text());
}

#[cfg(feature = "experiments")]
#[tokio::test]
async fn an_operation_that_is_called_by_number_has_its_name_in_the_log_of_both_sides() {
    let log = log();
    let demux = Demux::new().operations(OperationDemux::Numeric);
    let server = builder().demux(demux).listen("iiop://127.0.0.1:0").build().await.unwrap();
    let here: ProbeRef = server.activate(Probe::default()).unwrap();
    let client = builder().build().await.unwrap();
    let probe: ProbeRef = client.resolve(&here.to_string()).await.unwrap();
    probe.ping().await.unwrap();
    let error = probe.nonsense().await.unwrap_err();
    assert_eq!(error.kind, orb_runtime::SystemExceptionKind::BadOperation);

    let log = log.text();
    let requests: Vec<&str> = log.lines().filter(|line| line.contains("kind=\"Request\"")).collect();
    let pings: Vec<_> = requests.iter().filter(|line| line.contains("operation=\"ping\"")).collect();
    assert_eq!(pings.len(), 2, "sent and received: {log}");
    // The number's digit and its NUL, after their length.
    let number = if cfg!(target_endian = "little") { "020000003000" } else { "000000023000" };
    assert!(pings.iter().all(|line| line.contains(number)), "{log}");
    assert!(!log.contains("operation=\"0\""), "{log}");
    assert_eq!(requests.iter().filter(|line| line.contains("operation=\"nonsense\"")).count(), 2, "{log}");
}

/// Neither logs nor `Debug` output contain a password, as text or in hexadecimal digits.
#[cfg(feature = "csi")]
#[tokio::test]
async fn no_password_is_logged_or_shown() {
    use orb_runtime::Reference;
    use orb_runtime::csi::{Authenticator, Credentials, Login, LoginRefused, Logins};

    struct Nosy(Log);
    impl Authenticator for Nosy {
        fn check(&self, login: &Login<'_>, _: &orb_runtime::Peer) -> Result<String, LoginRefused> {
            self.0.0.lock().unwrap().extend_from_slice(format!("{login:?}").as_bytes());
            match login.password() {
                "open sesame" => Ok(login.user().to_owned()),
                _ => Err(LoginRefused::because("the password is another")),
            }
        }
    }

    let log = log();
    let logins = Logins::new(Nosy(log.clone())).allow_plaintext_passwords();
    let server = builder().listen("iiop://127.0.0.1:0").logins(logins.clone());
    let shown = format!("{server:?} {logins:?}");
    let server = server.build().await.unwrap();
    let here: ProbeRef = server.activate(Probe::default()).unwrap();
    let credentials = Credentials::login("ann", "open sesame").allow_plaintext_passwords();
    let client = builder().credentials(credentials.clone()).build().await.unwrap();
    let probe: ProbeRef = client.resolve(&here.to_string()).await.unwrap();
    probe.ping().await.unwrap();
    let wrong = Credentials::login("ann", "shut sesame").allow_plaintext_passwords();
    let refused = probe.with_credentials(&wrong).ping().await.unwrap_err();
    let text =
        format!("{shown} {credentials:?} {wrong:?} {client:?} {probe:?} {refused:?} {refused}") + &log.text();
    assert!(text.contains("Login { user: \"ann\"") && text.contains("the password is another"), "{text}");
    let hex: String = "sesame".bytes().map(|octet| format!("{octet:02x}")).collect();
    assert!(!text.contains("sesame") && !text.contains(&hex), "{text}");
}
