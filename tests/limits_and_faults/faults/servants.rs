//! Servants that panic, block or never answer: their effects on others, and on a shutdown.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use tokio::sync::Mutex;
use zorb::prelude::*;
use zorb::testing::{RandomFaults, pair, pair_of, seeds};
use zorb::{Limits, Retry};

use crate::faults::target::{leaves_nothing, over};

const SECOND: Duration = Duration::from_secs(1);

// clause: exc.when.request_timeout
#[tokio::test(start_paused = true)]
async fn hanging_servant_costs_only_its_caller_the_deadline() {
    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    let here: crate::faults::target::TargetRef =
        orbs.server.activation().named("Concurrent").concurrent().activate(Arc::clone(&servant)).unwrap();
    let stuck: crate::faults::target::TargetRef =
        orbs.client.resolve_unchecked(&here.to_string()).await.unwrap();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let stuck = stuck.with_timeout(10 * SECOND);
            tokio::spawn(async move { stuck.never().await })
        })
        .collect();
    tokio::time::sleep(SECOND).await;
    assert_eq!(servant.inside(), 20);
    for i in 0..100 {
        assert_eq!(target.add(i, 1).await.unwrap(), i + 1, "over the same connection");
    }
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(servant.cancelled.load(Ordering::SeqCst), 20, "each was told that nobody waits");
    assert_eq!(orbs.client.open_connections(), 1);
    drop((target, stuck, here));
    // It ignores the cancellation: the shutdown cuts it after the drain timeout.
    let report = orbs.server.shutdown().await;
    assert_eq!((report.connections, report.aborted_connections), (1, 1));
    assert_eq!(
        servant.inside(),
        20,
        "the requests run on, as documented: what a servant awaits is its own affair"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_never_answered_fill_their_connection_alone() {
    let mut limits = Limits::default();
    limits.max_requests = 8;
    let orbs = pair_of(Orb::builder(), Orb::builder().limits(limits));
    let (servant, target) = over(&orbs).await;
    let here: crate::faults::target::TargetRef =
        orbs.server.activation().named("Concurrent").concurrent().activate(Arc::clone(&servant)).unwrap();
    let stuck: crate::faults::target::TargetRef =
        orbs.client.resolve_unchecked(&here.to_string()).await.unwrap();
    let calls: Vec<_> = (0..30)
        .map(|_| {
            let stuck = stuck.with_timeout(10 * SECOND).with_retry(Retry::Never);
            tokio::spawn(async move { stuck.never().await })
        })
        .collect();
    tokio::time::sleep(SECOND).await;
    assert_eq!(servant.inside(), 8, "no more are taken in");
    // A connection of its own.
    let url = "corbaloc:iiop:1.1@server.memory:1/Target";
    let other: crate::faults::target::TargetRef = orbs.client.resolve_unchecked(url).await.unwrap();
    assert_eq!(other.add(20, 3).await.unwrap(), 23);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind, SystemExceptionKind::Timeout);
    }
    drop(target);
}

#[tokio::test(start_paused = true)]
async fn servants_that_panic_cost_one_request_each_whatever_the_pipe_does() {
    for seed in seeds(30) {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let faults = RandomFaults::seeded(seed);
        orbs.set_random_faults(faults.clone());
        let calls: Vec<_> = (0..20)
            .map(|number| {
                let target = target.clone();
                tokio::spawn(async move {
                    if number % 3 == 0 {
                        let error = target.stumble().await.unwrap_err();
                        assert_eq!(error.kind, SystemExceptionKind::Unknown, "{error}");
                    } else {
                        assert_eq!(target.once(number, 0, Bytes::new()).await.unwrap().0, number);
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        assert_eq!(servant.executed(), 13, "{faults}");
        assert_eq!(orbs.client.open_connections(), 1, "{faults}");
        drop(target);
        leaves_nothing(orbs, servant, &faults.to_string()).await;
    }
}

zorb::idl! {
    interface Gate {
        /// Blocks its thread until the gate is opened.
        void pass();
        void open();
    };
}

struct BlockedGate {
    opened: std::sync::Mutex<mpsc::Receiver<()>>,
    opens: Mutex<mpsc::Sender<()>>,
}

impl GateServant for BlockedGate {
    async fn pass(&self) -> Result<(), SystemException> {
        self.opened
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(30))
            .or_system_exception(SystemExceptionKind::Internal)
    }

    async fn open(&self) -> Result<(), SystemException> {
        self.opens.lock().await.send(()).or_system_exception(SystemExceptionKind::Internal)
    }
}

/// On one thread: a servant that blocked it would never see the gate opened.
#[tokio::test]
async fn blocking_servant_does_not_block_other_servants() {
    let server = test_support::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let (opens, opened) = mpsc::channel();
    let servant = Arc::new(BlockedGate { opened: std::sync::Mutex::new(opened), opens: Mutex::new(opens) });
    let blocks: GateRef =
        server.activation().named("Blocks").blocking().activate(Arc::clone(&servant)).unwrap();
    let other: GateRef = server.activate_named("Other", servant).unwrap();
    let client = test_support::transport::builder().build().await.unwrap();
    let blocked: GateRef = client.resolve_unchecked(&blocks.to_string()).await.unwrap();
    let other: GateRef = client.resolve_unchecked(&other.to_string()).await.unwrap();
    for _ in 0..10 {
        let (passed, opened) = tokio::join!(blocked.pass(), other.open());
        passed.unwrap();
        opened.unwrap();
    }
    client.shutdown().await;
    assert_eq!(server.shutdown().await.aborted_connections, 0);
}
