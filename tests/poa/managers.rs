//! POA managers: requests are served, held or rejected according to the manager's state, from remote callers
//! and in the same process.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use test_support::transport;
use tokio::sync::Notify;
use zorb::poa::{AdapterInactive, PoaManagerState};
use zorb::prelude::*;
use zorb::{Limits, OrbBuilder, PoaManager, SyncScope};

zorb::idl! {
    module Managed {
        typedef sequence<long> Numbers;
        interface Log {
            oneway void add(in long number);
            Numbers all();
            /// Waits until the test lets it go on.
            void stay();
            /// What its own manager says to a wait for its own request.
            long wait_for_itself();
        };
    };
}

use managed::{LogRef, LogServant};

#[derive(Default)]
struct Log {
    numbers: Mutex<Vec<i32>>,
    here: Notify,
    go: Notify,
}

#[derive(Clone, Default)]
struct Shared(Arc<Log>);

impl LogServant for Shared {
    async fn add(&self, number: i32) -> Result<(), SystemException> {
        self.0.numbers.lock().unwrap().push(number);
        Ok(())
    }

    async fn all(&self) -> Result<Seq<i32>, SystemException> {
        Ok(self.0.numbers.lock().unwrap().clone().into())
    }

    async fn stay(&self) -> Result<(), SystemException> {
        self.0.here.notify_one();
        self.0.go.notified().await;
        Ok(())
    }

    async fn wait_for_itself(&self) -> Result<i32, SystemException> {
        let manager = zorb::request().orb().root_poa().manager();
        let completion = manager.hold_requests().unwrap();
        let error = completion.completed().await.unwrap_err();
        manager.activate().unwrap();
        assert_eq!(error.completed, CompletionStatus::No);
        Ok(if error.kind == SystemExceptionKind::BadInvOrder { error.minor.code() as i32 } else { -1 })
    }
}

struct Place {
    _server: Orb,
    _client: Orb,
    manager: PoaManager,
    log: Arc<Log>,
    afar: LogRef,
    near: LogRef,
}

async fn place_of(builder: OrbBuilder) -> Place {
    let server = builder.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = transport::builder().build().await.unwrap();
    let shared = Shared::default();
    let near: LogRef = server.activate(shared.clone()).unwrap();
    let afar = client.resolve_unchecked(&near.to_string()).await.unwrap();
    let manager = server.root_poa().manager();
    Place { _server: server, _client: client, manager, log: shared.0, afar, near }
}

async fn place() -> Place {
    place_of(transport::builder()).await
}

impl Place {
    /// Waits until the server has received `requests` requests.
    async fn until_come(&self, requests: u64) {
        while self._server.stats().messages_in < requests {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn discarded(error: &SystemException) {
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    assert_eq!(error.minor, zorb::minor::TRANSIENT_DISCARDED);
}

// clause: poa.manager.get_id, poa.manager.get_state, poa.manager.root, poa.manager.active, poa.life.the_poa_manager
#[tokio::test]
async fn the_root_manager_is_active_and_has_its_name() {
    let place = place().await;
    assert_eq!(place.manager.id(), "RootPOAManager");
    assert_eq!(place.manager.state(), PoaManagerState::Active);
    assert_eq!(place._server.root_poa().name(), "RootPOA");
    assert!(place.afar.all().await.unwrap().is_empty());
    assert!(place.near.all().await.unwrap().is_empty());
}

// clause: poa.manager.holding, poa.manager.hold_requests, poa.manager.activate
#[tokio::test]
async fn what_was_held_is_served_in_order_and_before_what_comes_later() {
    let place = place().await;
    let _ = place.manager.hold_requests().unwrap();
    for number in 0..100 {
        place.afar.add(number).await.unwrap();
    }
    place.afar.flush().await.unwrap();
    for who in [&place.afar, &place.near] {
        let waits = who.with_timeout(Duration::from_millis(100));
        assert_eq!(waits.all().await.unwrap_err().kind, SystemExceptionKind::Timeout);
    }
    assert!(place.log.numbers.lock().unwrap().is_empty());
    let later = tokio::spawn({
        let near = place.near.clone();
        async move { near.all().await }
    });
    place.manager.activate().unwrap();
    place.afar.add(100).await.unwrap();
    assert_eq!(place.afar.all().await.unwrap(), (0..=100).collect::<Vec<_>>());
    later.await.unwrap().unwrap();
}

// clause: poa.manager.discarding, poa.manager.discard_requests, poa.request.object_operations, exc.when.poa_discarding, exc.minor.transient.1
#[tokio::test]
async fn what_was_held_is_refused_when_the_manager_discards() {
    let place = place().await;
    let _ = place.manager.hold_requests().unwrap();
    let calls: Vec<_> = [&place.afar, &place.near]
        .map(|who| {
            let who = who.clone();
            tokio::spawn(async move { who.all().await })
        })
        .into();
    // Both have arrived before it discards.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let _ = place.manager.discard_requests().unwrap();
    for call in calls {
        discarded(&call.await.unwrap().unwrap_err());
    }
    for who in [&place.afar, &place.near] {
        discarded(&who.all().await.unwrap_err());
        discarded(&who.is_a("IDL:Other:1.0").await.unwrap_err());
        discarded(&who.non_existent().await.unwrap_err());
    }
    let told = place.afar.with_sync_scope(SyncScope::Server);
    discarded(&told.add(1).await.unwrap_err());
    place.manager.activate().unwrap();
    assert!(place.afar.all().await.unwrap().is_empty());
}

// clause: poa.manager.inactive, poa.manager.deactivate, poa.manager.deactivate_twice
// clause: poa.manager.adapter_inactive, exc.when.poa_inactive, exc.minor.obj_adapter.1, exc.kind.obj_adapter
#[tokio::test]
async fn inactive_is_for_good() {
    let place = place().await;
    let _ = place.manager.hold_requests().unwrap();
    let held = tokio::spawn({
        let afar = place.afar.clone();
        async move { afar.all().await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let _ = place.manager.deactivate(false).unwrap();
    let refused = |error: SystemException| {
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
        assert_eq!(error.minor, zorb::minor::OBJ_ADAPTER_UNKNOWN_ADAPTER);
    };
    refused(held.await.unwrap().unwrap_err());
    refused(place.afar.all().await.unwrap_err());
    refused(place.near.all().await.unwrap_err());
    assert_eq!(place.manager.state(), PoaManagerState::Inactive);
    assert_eq!(place.manager.activate(), Err(AdapterInactive));
    assert!(place.manager.hold_requests().is_err());
    assert!(place.manager.discard_requests().is_err());
    assert!(place.manager.deactivate(false).is_err());
}

// clause: poa.manager.wait
#[tokio::test]
async fn completion_waits_for_requests_under_way() {
    let place = place().await;
    for who in [&place.afar, &place.near] {
        let call = tokio::spawn({
            let who = who.clone();
            async move { who.stay().await }
        });
        place.log.here.notified().await;
        let completion = place.manager.hold_requests().unwrap();
        let mut completed = Box::pin(completion.completed());
        let early = tokio::time::timeout(Duration::from_millis(50), &mut completed).await;
        assert!(early.is_err(), "a request is under way");
        place.log.go.notify_one();
        completed.await.unwrap();
        call.await.unwrap().unwrap();
        place.manager.activate().unwrap();
    }
}

// clause: poa.manager.wait_would_deadlock, exc.minor.bad_inv_order.3
#[tokio::test]
async fn a_servant_does_not_wait_for_itself() {
    let place = place().await;
    assert_eq!(place.afar.wait_for_itself().await.unwrap(), 3);
    assert_eq!(place.near.wait_for_itself().await.unwrap(), 3);
}

// clause: poa.manager.holding_full, exc.when.poa_holding_full
#[tokio::test]
async fn a_manager_keeps_no_more_than_it_may() {
    let mut limits = Limits::default();
    limits.max_held_requests = 4;
    let place = place_of(transport::builder().limits(limits)).await;
    let _ = place.manager.hold_requests().unwrap();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let afar = place.afar.clone();
            tokio::spawn(async move { afar.all().await })
        })
        .collect();
    place.until_come(6).await;
    // The exception of this call arrives after those of the earlier calls.
    discarded(&place.afar.all().await.unwrap_err());
    discarded(&place.near.all().await.unwrap_err());
    place.manager.activate().unwrap();
    let mut served = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => served += 1,
            Err(error) => discarded(&error),
        }
    }
    assert_eq!(served, 4);
    // Their slots are free again.
    let _ = place.manager.hold_requests().unwrap();
    let again = place.near.with_timeout(Duration::from_millis(50)).all().await;
    assert_eq!(again.unwrap_err().kind, SystemExceptionKind::Timeout);
}

// clause: poa.manager.holding_full
#[tokio::test]
async fn a_manager_keeps_no_more_octets_than_it_may() {
    let mut limits = Limits::default();
    limits.max_held_bytes = 256;
    let place = place_of(transport::builder().limits(limits)).await;
    let _ = place.manager.hold_requests().unwrap();
    let told = place.afar.with_sync_scope(SyncScope::Target);
    let mut calls: FuturesUnordered<_> = (0..5).map(|number| told.add(number)).collect();
    // Nothing is served yet: the first that ends exceeds the limit, and those before it are held.
    let mut refused = vec![calls.next().await.unwrap().unwrap_err()];
    place.manager.activate().unwrap();
    while let Some(result) = calls.next().await {
        refused.extend(result.err());
    }
    refused.iter().for_each(discarded);
    assert!((1..5).contains(&refused.len()), "{}", refused.len());
}

// clause: poa.manager.deactivated_while_held
#[tokio::test]
async fn an_object_that_goes_while_its_request_is_held_does_not_serve_it() {
    let place = place().await;
    let _ = place.manager.hold_requests().unwrap();
    let calls = [&place.afar, &place.near].map(|who| {
        let who = who.clone();
        tokio::spawn(async move { who.all().await })
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(place._server.deactivate(&place.near));
    place.manager.activate().unwrap();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::ObjectNotExist, CompletionStatus::No)
        );
    }
}

// clause: poa.manager.cancelled_while_held
#[tokio::test]
async fn a_held_request_that_is_cancelled_is_never_served() {
    let place = place().await;
    let _ = place.manager.hold_requests().unwrap();
    let told = place.afar.with_sync_scope(SyncScope::Target);
    let given_up = tokio::time::timeout(Duration::from_millis(50), told.add(1)).await;
    assert!(given_up.is_err());
    let kept = tokio::spawn(async move { told.add(2).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    place.manager.activate().unwrap();
    kept.await.unwrap().unwrap();
    assert_eq!(place.afar.all().await.unwrap(), [2]);
}
