//! POAs that are created on demand.

use std::sync::{Arc, Mutex};

use test_support::transport;
use tokio::sync::Semaphore;
use zorb::poa::{AdapterActivator, PoaError};
use zorb::prelude::*;
use zorb::{Poa, Servant};

zorb::idl! {
    module Levels {
        interface Thing {
            string poa();
        };
    };
}

use levels::{ThingRef, ThingServant};

struct Thing;

impl ThingServant for Thing {
    async fn poa(&self) -> Result<String, SystemException> {
        Ok(zorb::request().poa().unwrap().name().to_owned())
    }
}

/// Creates POAs with a default servant and itself as their activator, unless the name selects something else.
#[derive(Clone)]
struct Maker {
    story: Arc<Mutex<Vec<String>>>,
    /// Awaited before it creates a POA, and before it returns.
    gate: Arc<Semaphore>,
    end: Arc<Semaphore>,
}

impl Maker {
    fn new() -> Self {
        let open = || Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        Self { story: Arc::default(), gate: open(), end: open() }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.story.lock().unwrap())
    }
}

impl AdapterActivator for Maker {
    async fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        self.story.lock().unwrap().push(format!("{} in {}", name, parent.name()));
        self.gate.acquire().await.unwrap().forget();
        match name {
            "no" => return Ok(false),
            "lies" => return Ok(true),
            "raises" => {
                return Err(SystemException::no_memory());
            }
            "panics" => panic!("an activator panics"),
            _ => {}
        }
        let poa = parent.child(name).user_ids().persistent();
        let poa = poa.default_servant(Servant::of::<ThingRef, _>(Thing)).create().unwrap();
        if name == "calls itself" {
            poa.child("below").user_ids().persistent().create().unwrap();
            let own: ThingRef = poa.create_reference_with_id("own").unwrap();
            let found = own.poa().await?;
            self.story.lock().unwrap().push(format!("it is {found}"));
        }
        self.end.acquire().await.unwrap().forget();
        poa.set_adapter_activator(self.clone());
        Ok(true)
    }
}

/// Returns references to objects of the POA with these names. They are created by an ORB that had the POA and
/// listened where `server` does.
async fn references(client: &Orb, server: &Orb, path: &[&str]) -> ThingRef {
    let other = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let mut poa = other.root_poa();
    for name in path {
        poa = poa.child(*name).user_ids().persistent().create().unwrap();
    }
    let made: ThingRef = poa.create_reference_with_id("x").unwrap();
    let key = made.as_object().ior().iiop_profile().unwrap().object_key;
    let key: String = key.as_slice().iter().map(|octet| format!("%{octet:02x}")).collect();
    let url = format!("corbaloc:iiop:1.2@{}/{key}", server.endpoints()[0]);
    client.resolve_unchecked(&url).await.unwrap()
}

async fn pair() -> (Orb, Orb) {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    (transport::builder().build().await.unwrap(), server)
}

// clause: poa.adapter_activator.levels, poa.adapter_activator.once, poa.adapter_activator.no_activator, poa.life.the_activator
#[tokio::test]
async fn requests_make_the_levels_that_are_missing() {
    let (client, server) = pair().await;
    let deep = references(&client, &server, &["a", "b", "c"]).await;
    let error = deep.poa().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
    assert_eq!(error.minor, zorb::minor::OBJECT_NOT_EXIST_NO_ADAPTER);
    assert!(!deep.locate().await.unwrap());
    let maker = Maker { gate: Arc::new(Semaphore::new(0)), ..Maker::new() };
    let root = server.root_poa();
    assert!(!root.has_adapter_activator());
    root.set_adapter_activator(maker.clone());
    assert!(root.has_adapter_activator());
    assert!(deep.locate().await.unwrap(), "it may be made");
    let other = references(&client, &server, &["a", "b"]).await;
    let calls: Vec<_> = [&deep, &other, &deep]
        .map(|who| {
            let who = who.clone();
            tokio::spawn(async move { who.poa().await })
        })
        .into();
    while maker.story.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(maker.take(), ["a in RootPOA"]);
    maker.gate.add_permits(100);
    let names: Vec<_> = futures_util::future::join_all(calls).await;
    let names: Vec<_> = names.into_iter().map(|name| name.unwrap().unwrap()).collect();
    assert_eq!(names, ["c", "b", "c"]);
    assert_eq!(maker.take(), ["b in a", "c in b"]);
    root.set_adapter_activator::<Maker>(None);
    assert!(!root.has_adapter_activator());
}

// clause: poa.adapter_activator.once
#[tokio::test]
async fn a_poa_is_served_when_its_activator_is_done_with_it() {
    let (client, server) = pair().await;
    let maker = Maker { end: Arc::new(Semaphore::new(0)), ..Maker::new() };
    let root = server.root_poa();
    root.set_adapter_activator(maker.clone());
    let name = "calls itself";
    let (it, below) =
        (references(&client, &server, &[name]).await, references(&client, &server, &[name, "below"]).await);
    let first = tokio::spawn({
        let it = it.clone();
        async move { it.poa().await }
    });
    // It exists at this point, and its activator's own calls are served.
    while maker.story.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(maker.take(), ["calls itself in RootPOA", "it is calls itself"]);
    let there = root.find(name).unwrap();
    root.manager().activate().unwrap();
    let collocated: ThingRef = there.create_reference_with_id("x").unwrap();
    for who in [&it, &below, &collocated] {
        let waits = who.with_timeout(Duration::from_millis(50)).poa().await;
        assert_eq!(waits.unwrap_err().kind, SystemExceptionKind::Timeout);
    }
    let found = tokio::spawn({
        let root = root.clone();
        async move { root.find_or_activate(name).await }
    });
    let mut waiting = Vec::new();
    for who in [it.clone(), collocated, references(&client, &server, &[name, "other"]).await] {
        waiting.push(tokio::spawn(async move { who.poa().await }));
    }
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(!first.is_finished() && !found.is_finished() && waiting.iter().all(|call| !call.is_finished()));
    maker.end.add_permits(100);
    assert_eq!(found.await.unwrap().unwrap(), there);
    assert_eq!(first.await.unwrap().unwrap(), name);
    let names: Vec<_> = futures_util::future::join_all(waiting).await;
    let names: Vec<_> = names.into_iter().map(|name| name.unwrap().unwrap()).collect();
    assert_eq!(names, [name, name, "other"]);
    let error = below.poa().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist, "{error}");
    assert_eq!(maker.take(), ["other in calls itself"]);
}

// clause: poa.adapter_activator.false, poa.adapter_activator.raises, exc.when.unknown_adapter_false, exc.when.unknown_adapter_raises, poa.life.find.activates, poa.life.find.activator_raises
#[tokio::test]
async fn an_activator_may_fail() {
    let (client, server) = pair().await;
    let root = server.root_poa();
    let none = root.find_or_activate("x").await.unwrap_err();
    assert!(matches!(none, PoaError::AdapterNonExistent(name) if name == "x"));
    root.set_adapter_activator(Maker::new());
    for (name, kind, minor) in [
        ("no", SystemExceptionKind::ObjectNotExist, zorb::minor::OBJECT_NOT_EXIST_NO_ADAPTER),
        ("lies", SystemExceptionKind::ObjAdapter, zorb::minor::OBJ_ADAPTER_UNKNOWN_ADAPTER),
        ("raises", SystemExceptionKind::ObjAdapter, zorb::minor::OBJ_ADAPTER_UNKNOWN_ADAPTER),
        ("panics", SystemExceptionKind::ObjAdapter, zorb::minor::OBJ_ADAPTER_UNKNOWN_ADAPTER),
    ] {
        for path in [vec![name], vec!["fine", name, "below"]] {
            let error = references(&client, &server, &path).await.poa().await.unwrap_err();
            assert_eq!(
                (error.kind, error.minor, error.completed),
                (kind, minor, CompletionStatus::No),
                "{name}"
            );
        }
        match root.find_or_activate(name).await.unwrap_err() {
            PoaError::AdapterNonExistent(gone) => assert_eq!((gone.as_str(), name), ("no", "no")),
            PoaError::System(error) => assert_eq!(error.minor, minor),
            other => panic!("{other}"),
        }
    }
    let made = root.find_or_activate("made").await.unwrap();
    assert_eq!(root.find("made").unwrap(), made);
    assert_eq!(root.find_or_activate("made").await.unwrap(), made);
}

// clause: poa.adapter_activator.parent_holding, poa.adapter_activator.parent_discarding
#[tokio::test]
async fn no_poa_is_made_below_one_that_does_not_serve() {
    let (client, server) = pair().await;
    let (root, maker) = (server.root_poa(), Maker::new());
    let parent = root.child("parent").own_manager().create().unwrap();
    parent.set_adapter_activator(maker.clone());
    let below = references(&client, &server, &["parent", "below"]).await;
    let waits = below.with_timeout(Duration::from_millis(50)).poa().await;
    assert_eq!(waits.unwrap_err().kind, SystemExceptionKind::Timeout);
    let held = tokio::spawn({
        let below = below.clone();
        async move { below.poa().await }
    });
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(maker.take().is_empty());
    let _ = parent.manager().discard_requests().unwrap();
    for error in [held.await.unwrap().unwrap_err(), below.poa().await.unwrap_err()] {
        assert_eq!(error.minor, zorb::minor::TRANSIENT_DISCARDED);
    }
    assert!(maker.take().is_empty());
    parent.manager().activate().unwrap();
    assert_eq!(below.poa().await.unwrap(), "below");
    assert_eq!(maker.take(), ["below in parent"]);
}
