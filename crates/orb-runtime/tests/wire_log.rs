//! What the wire log says of each message.
#![allow(missing_docs, clippy::unwrap_used)]

mod probe;

use std::io;
use std::sync::{Arc, Mutex};

use orb_runtime::{Demux, OperationDemux};
use probe::{Probe, ProbeRef, builder};

/// Collects what is logged.
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

/// A log that everything on this thread writes into, as long as the guard is there.
fn log() -> (Log, tracing::subscriber::DefaultGuard) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    (log, tracing::subscriber::set_default(subscriber))
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn a_request_that_waits_is_logged_when_it_comes_and_not_again() {
    let (log, _logged) = log();
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

#[tokio::test]
async fn an_operation_that_is_called_by_number_has_its_name_in_the_log_of_both_sides() {
    let (log, _logged) = log();
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
    // The number's digit and its NUL, behind their count.
    let number = if cfg!(target_endian = "little") { "020000003000" } else { "000000023000" };
    assert!(pings.iter().all(|line| line.contains(number)), "{log}");
    assert!(!log.contains("operation=\"0\""), "{log}");
    assert_eq!(requests.iter().filter(|line| line.contains("operation=\"nonsense\"")).count(), 2, "{log}");
}
