//! Servant activators and locators, and forwards: by remote callers and in the same process.

use std::sync::{Arc, Mutex};

use test_support::{events, transport};
use tokio::sync::Semaphore;
use zorb::poa::{
    ForwardRequest, IdAssignmentPolicy, PoaError, Refusal, RequestProcessingPolicy, ServantActivator,
    ServantLocator, ServantRetentionPolicy,
};
use zorb::prelude::*;
use zorb::{ObjectId, Poa, Servant, SyncScope};

zorb::idl! {
    module Managed {
        interface Thing;
        typedef sequence<Thing> Things;
        interface Thing {
            string name();
            oneway void tell();
            void stay();
            /// Answers from somewhere else.
            string go(in Thing to, in boolean permanently);
            /// What `zorb::request()` says of the servant: its name.
            boolean is_own_servant();
            /// Returns the name of the last object of the path; each object asks the next one. The first one
            /// that stays does so before it asks.
            string relay(in boolean stays, in Things way);
            /// The same of itself, by a dynamic call.
            string asks_itself_dynamically();
        };
    };
}

use events::{Story, orbs};
use managed::{ThingRef, ThingServant};

#[derive(Clone)]
struct Thing {
    name: String,
    story: Story,
    go: Arc<Semaphore>,
}

impl ThingServant for Thing {
    async fn name(&self) -> Result<String, SystemException> {
        Ok(self.name.clone())
    }

    async fn tell(&self) -> Result<(), SystemException> {
        self.story.tell(format!("told {}", self.name));
        Ok(())
    }

    async fn stay(&self) -> Result<(), SystemException> {
        self.story.tell(format!("stays {}", self.name));
        self.go.acquire().await.unwrap().forget();
        self.story.tell(format!("left {}", self.name));
        Ok(())
    }

    async fn go(&self, to: Option<ThingRef>, permanently: bool) -> Result<String, SystemException> {
        if self.name == "end" {
            return Ok(self.name.clone());
        }
        let forward = ForwardRequest::to(&to.unwrap());
        zorb::request().forward(if permanently { forward.permanently() } else { forward });
        Ok("nobody reads this".into())
    }

    async fn relay(&self, stays: bool, way: &[Option<ThingRef>]) -> Result<String, SystemException> {
        if stays {
            self.stay().await?;
        }
        match way {
            [Some(next), rest @ ..] => next.relay(false, rest).await,
            _ => self.name().await,
        }
    }

    async fn asks_itself_dynamically(&self) -> Result<String, SystemException> {
        self.stay().await?;
        let own: ThingRef = zorb::request().target();
        assert!(!own.non_existent().await?);
        let asked = zorb::dynamic::Request::new(own.as_object(), "name")
            .returns(zorb::TypeCode::STRING)
            .invoke()
            .await;
        Ok(asked.map_or_else(|error| error.to_string(), |_| "answered".into()))
    }

    async fn is_own_servant(&self) -> Result<bool, SystemException> {
        let request = zorb::request();
        let id = ObjectId::from(request.object_id()).to_string();
        Ok(request.servant().unwrap().repository_id() == "IDL:Managed/Thing:1.0" && self.name == id)
    }
}

/// Incarnates things, unless their id selects something else.
#[derive(Clone)]
struct Manager {
    story: Story,
    go: Arc<Semaphore>,
    /// Awaited by `incarnate`.
    gate: Arc<Semaphore>,
    shared: Arc<Mutex<Option<Servant>>>,
    elsewhere: Option<ThingRef>,
}

impl Manager {
    fn new() -> Self {
        Self {
            story: Story::default(),
            go: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            shared: Arc::default(),
            elsewhere: None,
        }
    }

    fn servant(&self, id: &ObjectId) -> Result<Servant, Refusal> {
        match id.to_text().unwrap() {
            "no" => Err(SystemException::no_permission().into()),
            "elsewhere" => Err(ForwardRequest::to(self.elsewhere.as_ref().unwrap()).into()),
            "panic" => panic!("a servant manager panics"),
            id if id.starts_with("shared") => Ok(self.shared.lock().unwrap().clone().unwrap()),
            id => Ok(self.thing(id)),
        }
    }

    fn thing(&self, name: &str) -> Servant {
        let thing = Thing { name: name.into(), story: self.story.clone(), go: Arc::clone(&self.go) };
        Servant::of::<ThingRef, _>(thing)
    }
}

impl ServantActivator for Manager {
    async fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Servant, Refusal> {
        self.story.tell(format!("makes {id} in {}", poa.name()));
        self.gate.acquire().await.unwrap().forget();
        self.servant(id)
    }

    async fn etherealize(&self, id: &ObjectId, _: &Poa, servant: Servant, cleanup: bool, remaining: bool) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(servant.repository_id(), "IDL:Managed/Thing:1.0");
        self.story.tell(format!("ends {id} {cleanup} {remaining}"));
    }
}

impl ServantLocator for Manager {
    type Cookie = String;

    async fn preinvoke(&self, id: &ObjectId, _: &Poa, operation: &str) -> Result<(Servant, String), Refusal> {
        self.story.tell(format!("before {operation} of {id}"));
        Ok((self.servant(id)?, format!("cookie of {id}")))
    }

    async fn postinvoke(
        &self,
        id: &ObjectId,
        _: &Poa,
        operation: &str,
        cookie: String,
        _: Servant,
    ) -> Result<(), SystemException> {
        self.story.tell(format!("behind {operation} of {id}: {cookie}"));
        match id.to_text().unwrap() {
            "after" => Err(SystemException::persist_store().completed(CompletionStatus::Yes)),
            _ => Ok(()),
        }
    }
}

struct Place {
    server: Orb,
    client: Orb,
    root: Poa,
}

async fn place() -> Place {
    let (server, client) = orbs().await;
    let root = server.root_poa();
    Place { server, client, root }
}

impl Place {
    async fn both(&self, poa: &Poa, id: &str) -> [ThingRef; 2] {
        let here: ThingRef = poa.create_reference_with_id(id).unwrap();
        [self.client.resolve_unchecked(&here.to_string()).await.unwrap(), here]
    }

    async fn afar(&self, poa: &Poa, id: &str) -> ThingRef {
        let [afar, _] = self.both(poa, id).await;
        afar
    }
}

// clause: poa.activator.incarnate, poa.activator.locate, poa.policy.request_processing.servant_manager
#[tokio::test]
async fn the_first_request_makes_the_object() {
    let place = place().await;
    let manager = Manager::new();
    let poa =
        place.root.child("p").user_ids().persistent().servant_activator(manager.clone()).create().unwrap();
    for (id, first) in [("a", 0), ("b", 1)] {
        let who = place.both(&poa, id).await;
        assert!(who[first].locate().await.unwrap(), "it may be made");
        assert!(manager.story.take().is_empty());
        assert_eq!(who[first].name().await.unwrap(), id);
        assert_eq!(manager.story.take(), [format!("makes {id} in p")]);
        for who in &who {
            assert_eq!(who.name().await.unwrap(), id);
            assert!(who.is_own_servant().await.unwrap());
        }
        assert!(manager.story.take().is_empty(), "it is active from then on");
    }
    assert_eq!(place.server.active_objects(), 2);
}

// clause: poa.activator.incarnate_once
#[tokio::test]
async fn requests_wait_for_one_making_and_keep_their_order() {
    let place = place().await;
    let manager = Manager { gate: Arc::new(Semaphore::new(0)), ..Manager::new() };
    let poa = place.root.child("p").user_ids().servant_activator(manager.clone()).create().unwrap();
    let other: ThingRef = place.root.activate(Thing { name: "other".into(), ..thing_of(&manager) }).unwrap();
    let other: ThingRef = place.client.resolve_unchecked(&other.to_string()).await.unwrap();
    let [afar, near] = place.both(&poa, "a").await;
    let told = afar.with_sync_scope(SyncScope::Target);
    let calls: Vec<_> = (0..10)
        .map(|number| {
            let who = if number % 3 == 2 { near.clone() } else { afar.clone() };
            tokio::spawn(async move { who.name().await })
        })
        .collect();
    let tells = tokio::spawn(async move { told.tell().await });
    manager.story.until("makes a in p").await;
    // Requests for other objects are served in the meantime, on the same connection.
    assert_eq!(other.name().await.unwrap(), "other");
    // A cancelled request does not stop the incarnation.
    let impatient = afar.with_timeout(Duration::from_millis(50)).name().await;
    assert_eq!(impatient.unwrap_err().kind, SystemExceptionKind::Timeout);
    manager.gate.add_permits(1);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "a");
    }
    tells.await.unwrap().unwrap();
    assert_eq!(manager.story.take(), ["makes a in p", "told a"]);
}

fn thing_of(manager: &Manager) -> Thing {
    Thing { name: String::new(), story: manager.story.clone(), go: Arc::clone(&manager.go) }
}

// clause: poa.activator.system_exception, poa.activator.forward, poa.activator.panic, poa.activator.unique_id, exc.minor.obj_adapter.5
#[tokio::test]
async fn an_activator_may_refuse() {
    let place = place().await;
    let manager = Manager::new();
    let elsewhere: ThingRef =
        place.root.activate(Thing { name: "elsewhere".into(), ..thing_of(&manager) }).unwrap();
    *manager.shared.lock().unwrap() = Some(manager.thing("shared"));
    let manager = Manager { elsewhere: Some(elsewhere), ..manager };
    let poa = place.root.child("p").user_ids().servant_activator(manager.clone()).create().unwrap();
    for round in 0..2 {
        for no in place.both(&poa, "no").await {
            let error = no.name().await.unwrap_err();
            assert_eq!(
                (error.kind, error.completed),
                (SystemExceptionKind::NoPermission, CompletionStatus::No)
            );
        }
        for panics in place.both(&poa, "panic").await {
            assert_eq!(panics.name().await.unwrap_err().kind, SystemExceptionKind::Unknown);
        }
        for forwarded in place.both(&poa, "elsewhere").await {
            assert_eq!(forwarded.name().await.unwrap(), "elsewhere", "round {round}");
        }
    }
    for (id, good) in [("shared 1", true), ("shared 2", false)] {
        for shared in place.both(&poa, id).await {
            match shared.name().await {
                Ok(name) => assert!(good && name == "shared"),
                Err(error) => {
                    assert!(!good, "{error}");
                    assert_eq!(error.minor, zorb::minor::OBJ_ADAPTER_INCARNATE_POLICY);
                }
            }
        }
    }
}

// clause: poa.activator.etherealize, poa.activator.never_together, poa.activator.remaining_activations, poa.op.deactivate_object.then_etherealize, poa.op.activate_object_with_id.deactivating
#[tokio::test]
async fn an_object_ends_behind_its_last_request_and_comes_again() {
    let place = place().await;
    let manager = Manager::new();
    *manager.shared.lock().unwrap() = Some(manager.thing("shared"));
    let poa = place.root.child("p").user_ids().servant_activator(manager.clone()).multiple_ids();
    let poa = poa.create().unwrap();
    for (from, who) in place.both(&poa, "a").await.into_iter().enumerate() {
        let staying = tokio::spawn({
            let who = who.clone();
            async move { who.stay().await }
        });
        manager.story.until("stays a").await;
        let ended = poa.deactivate_object(&"a".into()).unwrap();
        assert!(matches!(poa.deactivate_object(&"a".into()), Err(PoaError::ObjectNotActive)));
        let taken = poa.activate_object_with_id(&"a".into(), manager.thing("a"));
        assert!(matches!(taken, Err(PoaError::ObjectAlreadyActive)));
        let next = tokio::spawn({
            let who = who.clone();
            async move { who.name().await }
        });
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(!next.is_finished(), "it waits for the end of the last one");
        manager.go.add_permits(1);
        staying.await.unwrap().unwrap();
        ended.completed().await;
        assert_eq!(next.await.unwrap().unwrap(), "a");
        let mut expected = vec!["makes a in p", "stays a", "left a", "ends a false false", "makes a in p"];
        if from == 1 {
            // The object is still active from the first round.
            expected.remove(0);
        }
        assert_eq!(manager.story.take(), expected);
    }
    for id in ["shared 1", "shared 2"] {
        assert_eq!(place.afar(&poa, id).await.name().await.unwrap(), "shared");
    }
    manager.story.take();
    for (id, event) in [("shared 1", "ends shared 1 false true"), ("shared 2", "ends shared 2 false false")] {
        poa.deactivate_object(&id.into()).unwrap().completed().await;
        assert_eq!(manager.story.take(), [event]);
    }
}

// clause: poa.op.deactivate_object.then_etherealize
#[tokio::test]
async fn an_object_calls_itself_while_it_ends() {
    let place = place().await;
    let manager = Manager::new();
    let poa = place.root.child("p").user_ids().servant_activator(manager.clone()).create().unwrap();
    let [_, b] = place.both(&poa, "b").await;
    // The first request of an object is a message, wherever its caller is.
    b.name().await.unwrap();
    for who in place.both(&poa, "a").await {
        let [_, a] = place.both(&poa, "a").await;
        let ways =
            [vec![a.clone()], vec![b.clone(), a.clone()], vec![a.clone(), b.clone(), b.clone(), a.clone()]];
        for way in ways {
            let way: Vec<_> = way.into_iter().map(Some).collect();
            let calling = tokio::spawn({
                let who = who.clone();
                async move { who.relay(true, &way).await }
            });
            assert_eq!(ends_meanwhile(&manager, &poa, calling).await, "a");
        }
        // A message does not identify its sender.
        let calling = tokio::spawn({
            let who = who.clone();
            async move { who.asks_itself_dynamically().await }
        });
        let said = ends_meanwhile(&manager, &poa, calling).await;
        assert!(said.contains("BAD_INV_ORDER (OMG minor 3"), "{said}");
    }
}

/// Returns the result of a call of the object `a`, which is deactivated while the call is executing.
async fn ends_meanwhile(
    manager: &Manager,
    poa: &Poa,
    calling: tokio::task::JoinHandle<Result<String, SystemException>>,
) -> String {
    manager.story.until("stays a").await;
    let ended = poa.deactivate_object(&"a".into()).unwrap();
    manager.go.add_permits(1);
    let called = tokio::time::timeout(Duration::from_secs(20), calling).await;
    let called = called.unwrap_or_else(|_| panic!("it waits for itself")).unwrap().unwrap();
    ended.completed().await;
    let story = manager.story.take();
    assert_eq!(story.last().unwrap(), "ends a false false", "{story:?}");
    called
}

// clause: poa.locator.preinvoke, poa.locator.postinvoke, poa.locator.postinvoke_raises, poa.locator.forward, poa.current.nested, poa.op.id_to_servant.wrong_policy, poa.op.reference_to_servant.wrong_policy
#[tokio::test]
async fn a_locator_stands_around_each_request() {
    let place = place().await;
    let manager = Manager::new();
    let elsewhere: ThingRef =
        place.root.activate(Thing { name: "elsewhere".into(), ..thing_of(&manager) }).unwrap();
    let manager = Manager { elsewhere: Some(elsewhere), ..manager };
    let poa = place.root.child("p").user_ids().servant_locator(manager.clone()).create().unwrap();
    for who in place.both(&poa, "a").await {
        assert_eq!(who.name().await.unwrap(), "a");
        assert_eq!(manager.story.take(), ["before name of a", "behind name of a: cookie of a"]);
        assert!(who.is_own_servant().await.unwrap());
        assert!(!who.non_existent().await.unwrap());
        manager.story.take();
        who.with_sync_scope(SyncScope::Target).tell().await.unwrap();
        assert_eq!(manager.story.take(), ["before tell of a", "told a", "behind tell of a: cookie of a"]);
    }
    let [_, here] = place.both(&poa, "a").await;
    assert!(matches!(poa.id_to_servant(&"a".into()), Err(PoaError::WrongPolicy { .. })));
    assert!(matches!(poa.reference_to_servant(&here), Err(PoaError::WrongPolicy { .. })));
    for who in place.both(&poa, "after").await {
        assert_eq!(who.name().await.unwrap_err().kind, SystemExceptionKind::PersistStore);
    }
    for who in place.both(&poa, "no").await {
        assert_eq!(who.name().await.unwrap_err().kind, SystemExceptionKind::NoPermission);
    }
    for who in place.both(&poa, "panic").await {
        assert_eq!(who.name().await.unwrap_err().kind, SystemExceptionKind::Unknown);
    }
    for who in place.both(&poa, "elsewhere").await {
        assert_eq!(who.name().await.unwrap(), "elsewhere");
    }
}

// clause: poa.op.set_servant_manager, poa.op.set_servant_manager.twice, poa.op.set_servant_manager.wrong_kind, poa.op.set_servant_manager.wrong_policy, poa.request.no_servant_manager, exc.when.no_servant_manager, exc.minor.obj_adapter.4, exc.minor.bad_inv_order.6
#[tokio::test]
async fn servant_managers_are_set_once_and_of_the_right_kind() {
    let place = place().await;
    let system = |error: PoaError| match error {
        PoaError::System(error) => error.minor,
        other => panic!("{other}"),
    };
    for retention in [ServantRetentionPolicy::Retain, ServantRetentionPolicy::NonRetain] {
        let policies = [
            RequestProcessingPolicy::ServantManager.into(),
            IdAssignmentPolicy::User.into(),
            retention.into(),
        ];
        let name = format!("{retention:?}");
        let poa = place.root.create_poa(&name, Some(&place.root.manager()), &policies).unwrap();
        assert!(!poa.has_servant_manager().unwrap());
        let error = place.afar(&poa, "x").await.name().await.unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::ObjAdapter);
        assert_eq!(error.minor, zorb::minor::OBJ_ADAPTER_NO_SERVANT_MANAGER);
        let retains = retention == ServantRetentionPolicy::Retain;
        let set = |activator: bool| match activator {
            true => poa.set_servant_activator(Manager::new()),
            false => poa.set_servant_locator(Manager::new()),
        };
        assert_eq!(system(set(!retains).unwrap_err()), zorb::minor::OBJ_ADAPTER_NO_SERVANT_MANAGER);
        set(retains).unwrap();
        assert!(poa.has_servant_manager().unwrap());
        assert_eq!(system(set(retains).unwrap_err()), zorb::minor::BAD_INV_ORDER_MANAGER_SET);
        assert_eq!(place.afar(&poa, "x").await.name().await.unwrap(), "x");
    }
    let wrong = |result: Result<(), PoaError>| assert!(matches!(result, Err(PoaError::WrongPolicy { .. })));
    wrong(place.root.set_servant_activator(Manager::new()));
    wrong(place.root.set_servant_locator(Manager::new()));
    wrong(place.root.has_servant_manager().map(drop));
}

// clause: giop.status.location_forward.sent, giop.status.location_forward, giop.status.location_forward_perm
#[tokio::test]
async fn a_servant_may_send_its_caller_elsewhere() {
    let place = place().await;
    let manager = Manager::new();
    let thing = |name: &str| Thing { name: name.into(), ..thing_of(&manager) };
    let end: ThingRef = place.root.activate(thing("end")).unwrap();
    let round: ThingRef = place.root.activate(thing("round")).unwrap();
    for permanently in [false, true] {
        let here: ThingRef = place.root.activate(thing("here")).unwrap();
        let url = here.to_string();
        let here: ThingRef = place.client.resolve_unchecked(&url).await.unwrap();
        assert_eq!(here.name().await.unwrap(), "here");
        assert_eq!(here.go(&end, permanently).await.unwrap(), "end");
        assert_eq!(here.name().await.unwrap(), "end", "and those that follow");
        let again: ThingRef = place.client.resolve_unchecked(&url).await.unwrap();
        assert_eq!(again.name().await.unwrap(), "here", "the reference itself leads where it led");
        // Each location forwards to the next, forever.
        let error = again.go(&round, permanently).await.unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::Transient);
    }
}

// clause: poa.activator.incarnate, poa.locator.preinvoke
#[tokio::test]
async fn an_orb_that_does_not_listen_has_servant_managers_too() {
    let orb = transport::builder().build().await.unwrap();
    let (root, manager) = (orb.root_poa(), Manager::new());
    let elsewhere: ThingRef =
        root.activate(Thing { name: "elsewhere".into(), ..thing_of(&manager) }).unwrap();
    let manager = Manager { elsewhere: Some(elsewhere), ..manager };
    let makes = root.child("makes").user_ids().servant_activator(manager.clone()).create().unwrap();
    let finds = root.child("finds").user_ids().servant_locator(manager.clone()).create().unwrap();
    for poa in [&makes, &finds] {
        let here: ThingRef = poa.create_reference_with_id("a").unwrap();
        assert_eq!(here.name().await.unwrap(), "a");
        assert!(here.is_own_servant().await.unwrap());
        assert!(!here.non_existent().await.unwrap());
        let no: ThingRef = poa.create_reference_with_id("no").unwrap();
        assert_eq!(no.name().await.unwrap_err().kind, SystemExceptionKind::NoPermission);
    }
    let gone: ThingRef = root.create_reference().unwrap();
    assert_eq!(gone.name().await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    assert!(gone.non_existent().await.unwrap());
}
