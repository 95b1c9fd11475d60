//! POAs: their tree, their policies, their objects, called remotely and in the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::{events, transport};
use zorb::poa::{
    IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, ManagerAlreadyExists, PoaError, PoaManagerState,
    Policy, RequestProcessingPolicy, ServantRetentionPolicy,
};
use zorb::prelude::*;
use zorb::{ObjectId, Poa, Servant};

zorb::idl! {
    module Adapted {
        interface Thing {
            string name();
            /// The id of the object, as the servant sees it, and the name of its POA.
            string id();
            string poa();
            /// What the default servant's id is in its own request.
            string servant_id();
            /// A reference to the object that is called.
            Thing itself();
            /// The reference of its own servant, as the POA says it.
            Thing own_reference();
        };
        interface Other {};
    };
}

use adapted::{OtherRef, ThingRef, ThingServant};

struct Thing(&'static str);

impl ThingServant for Thing {
    async fn name(&self) -> Result<String, SystemException> {
        Ok(self.0.to_owned())
    }

    async fn id(&self) -> Result<String, SystemException> {
        Ok(ObjectId::from(zorb::request().object_id()).to_string())
    }

    async fn poa(&self) -> Result<String, SystemException> {
        Ok(zorb::request().poa().unwrap().name().to_owned())
    }

    async fn servant_id(&self) -> Result<String, SystemException> {
        let request = zorb::request();
        let id = request.poa().unwrap().servant_to_id(&request.servant().unwrap());
        Ok(id.unwrap().to_string())
    }

    async fn own_reference(&self) -> Result<Option<ThingRef>, SystemException> {
        let request = zorb::request();
        let own = request.poa().unwrap().servant_to_reference(&request.servant().unwrap());
        Ok(Some(ThingRef::from_object(own.unwrap())))
    }

    async fn itself(&self) -> Result<Option<ThingRef>, SystemException> {
        Ok(Some(zorb::request().target()))
    }
}

fn thing(name: &'static str) -> Servant {
    Servant::of::<ThingRef, _>(Thing(name))
}

struct Place {
    server: Orb,
    client: Orb,
    root: Poa,
}

async fn place() -> Place {
    let (server, client) = events::orbs().await;
    let root = server.root_poa();
    Place { server, client, root }
}

impl Place {
    /// Returns the reference as the client sees it, and as the server itself does.
    async fn both(&self, reference: &impl Reference) -> [ThingRef; 2] {
        let url = reference.as_object().to_string();
        [
            self.client.resolve_unchecked(&url).await.unwrap(),
            self.server.resolve_unchecked(&url).await.unwrap(),
        ]
    }
}

fn not_there(error: &SystemException) {
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
}

#[track_caller]
fn wrong_policy<T: std::fmt::Debug>(result: Result<T, PoaError>) {
    assert!(matches!(result, Err(PoaError::WrongPolicy { .. })), "{result:?}");
}

// clause: poa.life.create, poa.life.create.adapter_already_exists, poa.life.the_name, poa.life.the_parent, poa.life.the_children, poa.life.find, poa.life.find.adapter_non_existent, poa.life.id
#[tokio::test]
async fn poas_are_a_tree_with_names() {
    let Place { server, root, .. } = place().await;
    assert!(root.parent().is_none());
    let a = root.child("a").create().unwrap();
    let b = a.child("b").user_ids().persistent().create().unwrap();
    let other = root.child("b").create().unwrap();
    assert_ne!(b, other);
    assert_ne!(b.id(), other.id());
    assert_eq!((a.name(), b.name()), ("a", "b"));
    assert_eq!(b.parent(), Some(a.clone()));
    assert_eq!(a.parent(), Some(root.clone()));
    assert_eq!(root.children(), [a.clone(), other]);
    assert_eq!(root.find("a").unwrap().find("b").unwrap(), b);
    assert!(matches!(root.find("c"), Err(PoaError::AdapterNonExistent(name)) if name == "c"));
    assert!(matches!(root.child("a").create(), Err(PoaError::AdapterAlreadyExists(name)) if name == "a"));
    for name in [String::new(), "x".repeat(256)] {
        let error = root.child(name).create().unwrap_err();
        assert!(matches!(error, PoaError::System(error) if error.kind == SystemExceptionKind::BadParam));
    }
    server.shutdown().await;
    let error = root.child("late").create().unwrap_err();
    assert!(matches!(error, PoaError::System(error) if error.minor == zorb::minor::BAD_INV_ORDER_SHUTDOWN));
}

// clause: poa.life.create.own_manager, poa.manager.initial, poa.manager.shared, poa.manager.holding_others
#[tokio::test]
async fn managers_are_shared_or_ones_own() {
    let place = place().await;
    let [shares, own] = [place.root.child("shares"), place.root.child("own").own_manager()];
    let (shares, own) = (shares.create().unwrap(), own.create().unwrap());
    assert_eq!(shares.manager(), place.root.manager());
    assert_eq!((own.manager().id(), own.manager().state()), ("own-manager", PoaManagerState::Holding));
    let listed = place.root.create_poa("listed", None, &[]).unwrap();
    assert_eq!(listed.manager().state(), PoaManagerState::Holding);
    let held: ThingRef = own.activate(Thing("held")).unwrap();
    let goes_on: ThingRef = shares.activate(Thing("goes on")).unwrap();
    for (held, goes_on) in place.both(&held).await.iter().zip(place.both(&goes_on).await) {
        let waits = held.with_timeout(Duration::from_millis(50)).name().await;
        assert_eq!(waits.unwrap_err().kind, SystemExceptionKind::Timeout);
        assert_eq!(goes_on.name().await.unwrap(), "goes on");
    }
    own.manager().activate().unwrap();
    for held in place.both(&held).await {
        assert_eq!(held.name().await.unwrap(), "held");
    }
}

// clause: poa.factory.create, poa.factory.already_exists, poa.factory.list, poa.factory.find
#[tokio::test]
async fn managers_have_ids() {
    let Place { server, root, .. } = place().await;
    let mine = server.create_poa_manager("mine").unwrap();
    assert_eq!(mine.state(), PoaManagerState::Holding);
    assert_eq!(server.create_poa_manager("mine").unwrap_err(), ManagerAlreadyExists("mine".into()));
    assert_eq!(server.find_poa_manager("mine"), Some(mine.clone()));
    assert_eq!(server.find_poa_manager("yours"), None);
    let ids: Vec<_> = server.poa_managers().iter().map(|manager| manager.id().to_owned()).collect();
    assert_eq!(ids, ["RootPOAManager", "mine"]);
    let poa = root.child("p").manager(&mine).create().unwrap();
    assert_eq!(poa.manager(), mine);
    // A name that is already in use does not create a manager.
    assert!(root.create_poa("p", None, &[]).is_err());
    assert_eq!(server.poa_managers().len(), 2);
}

// clause: poa.combination.index
#[tokio::test]
async fn policies_that_contradict_each_other_are_refused() {
    let Place { root, .. } = place().await;
    let error = root.create_poa(
        "x",
        None,
        &[LifespanPolicy::Persistent.into(), Policy::from(ServantRetentionPolicy::NonRetain)],
    );
    assert!(matches!(error, Err(PoaError::InvalidPolicy(error)) if error.index == 1));
    assert!(root.find("x").is_err());
}

// clause: poa.op.activate_object, poa.op.activate_object.servant_already_active, poa.op.activate_object.wrong_policy, poa.op.activate_object_with_id.servant_already_active, poa.op.servant_to_id, poa.op.servant_to_id.servant_not_active, poa.policy.id_uniqueness.unique, poa.policy.id_uniqueness.multiple, poa.policy.id_assignment.system, poa.id.unique, poa.current.get_object_id, poa.current.get_poa
#[tokio::test]
async fn a_servant_has_one_object_or_many() {
    let place = place().await;
    let [once, often] = [place.root.child("once"), place.root.child("often").multiple_ids()];
    let (once, often) = (once.create().unwrap(), often.create().unwrap());
    let servant = thing("one");
    let id = once.activate_object(servant.clone()).unwrap();
    let again = once.activate_object(servant.clone());
    assert!(matches!(again, Err(PoaError::ServantAlreadyActive)), "{again:?}");
    let unique = place.root.child("unique").user_ids().create().unwrap();
    unique.activate_object_with_id(&"1".into(), servant.clone()).unwrap();
    let again = unique.activate_object_with_id(&"2".into(), servant.clone());
    assert!(matches!(again, Err(PoaError::ServantAlreadyActive)), "{again:?}");
    assert_eq!(once.servant_to_id(&servant).unwrap(), id);
    // The servant may have an object in another POA, and another one here after the first is deactivated.
    let ids = [(); 2].map(|()| often.activate_object(servant.clone()).unwrap());
    assert_ne!(ids[0], ids[1]);
    once.deactivate_object(&id).unwrap().completed().await;
    assert!(matches!(once.servant_to_id(&servant), Err(PoaError::ServantNotActive)));
    let new = once.activate_object(servant.clone()).unwrap();
    assert_ne!(new, id, "ids are not used again");
    for (poa, id) in [(&once, &new), (&often, &ids[0]), (&often, &ids[1])] {
        for here in place.both(&poa.id_to_reference(id).unwrap()).await {
            assert_eq!(here.name().await.unwrap(), "one");
            assert_eq!(here.id().await.unwrap(), id.to_string());
            assert_eq!(here.poa().await.unwrap(), poa.name());
        }
    }
    let user = place.root.child("user").user_ids().create().unwrap();
    wrong_policy(user.activate_object(thing("no")));
}

// clause: poa.op.activate_object_with_id, poa.op.activate_object_with_id.object_already_active
// clause: poa.op.activate_object_with_id.foreign_id, poa.op.create_reference_with_id.foreign_id
// clause: poa.op.deactivate_object, poa.op.deactivate_object.object_not_active, poa.policy.id_assignment.user
// clause: poa.policy.servant_retention.retain, poa.policy.request_processing.map_only, poa.request.map
// clause: poa.request.not_in_map, poa.current.get_reference, exc.minor.bad_param.14
#[tokio::test]
async fn objects_under_ids_of_the_programs() {
    let place = place().await;
    let user = place.root.child("user").user_ids().create().unwrap();
    let here: ThingRef = user.activate_with_id("a/b", Thing("a/b")).unwrap();
    let taken = user.activate_object_with_id(&"a/b".into(), thing("no"));
    assert!(matches!(taken, Err(PoaError::ObjectAlreadyActive)));
    // Long ids, an empty one, and ids that look like keys.
    let odd = [ObjectId::default(), vec![7; 3000].into(), b"\xfbzo\x01".into(), "\u{e9}".into()];
    for id in &odd {
        user.activate_object_with_id(id, thing("odd")).unwrap();
        for there in place.both(&user.id_to_reference(id).unwrap()).await {
            assert_eq!(there.id().await.unwrap(), id.to_string());
            assert_eq!(there.itself().await.unwrap().unwrap().id().await.unwrap(), id.to_string());
        }
    }
    let too_long = user.activate_object_with_id(&vec![0; 70_000].into(), thing("no"));
    assert!(matches!(too_long, Err(PoaError::System(error)) if error.kind == SystemExceptionKind::BadParam));
    let there = place.both(&here).await;
    user.deactivate_object(&"a/b".into()).unwrap().completed().await;
    for gone in &there {
        not_there(&gone.name().await.unwrap_err());
        assert!(gone.non_existent().await.unwrap());
        assert!(!gone.locate().await.unwrap());
    }
    assert!(matches!(user.deactivate_object(&"a/b".into()), Err(PoaError::ObjectNotActive)));
    // The same references reach the next object with that id.
    user.activate_object_with_id(&"a/b".into(), thing("next")).unwrap();
    for next in &there {
        assert_eq!(next.name().await.unwrap(), "next");
    }
    let system = place.root.child("system").create().unwrap();
    for foreign in ["mine", "12345678"] {
        let error = system.activate_object_with_id(&foreign.into(), thing("no")).unwrap_err();
        assert!(matches!(error, PoaError::System(error) if error.minor == zorb::minor::BAD_PARAM_OBJECT_ID));
        let error = system.create_reference_with_id::<ThingRef>(foreign).unwrap_err();
        assert!(matches!(error, PoaError::System(error) if error.minor == zorb::minor::BAD_PARAM_OBJECT_ID));
    }
}

// clause: poa.op.create_reference, poa.op.create_reference.wrong_policy, poa.op.create_reference_with_id, poa.op.reference_to_id, poa.op.reference_to_id.wrong_adapter, poa.op.id_to_reference
#[tokio::test]
async fn references_before_objects() {
    let place = place().await;
    let system = place.root.child("system").create().unwrap();
    let lasting = place.root.child("lasting").persistent().create().unwrap();
    let user = place.root.child("user").user_ids().create().unwrap();
    wrong_policy(user.create_reference::<ThingRef>());
    let user_made: ThingRef = user.create_reference_with_id("u").unwrap();
    let made =
        [(&system, system.create_reference().unwrap()), (&lasting, lasting.create_reference().unwrap())];
    for (poa, reference) in made.iter().map(|(poa, reference)| (*poa, reference)).chain([(&user, &user_made)])
    {
        let reference: &ThingRef = reference;
        let there = place.both(reference).await;
        for early in &there {
            not_there(&early.name().await.unwrap_err());
        }
        let id = poa.reference_to_id(reference).unwrap();
        assert_eq!(poa.create_reference_with_id::<ThingRef>(&id).unwrap(), *reference);
        poa.activate_object_with_id(&id, thing("late")).unwrap();
        let taken = poa.activate_object_with_id(&id, thing("later"));
        assert!(matches!(taken, Err(PoaError::ObjectAlreadyActive)));
        for late in there.iter().chain([reference]) {
            assert_eq!(late.name().await.unwrap(), "late");
        }
        assert_eq!(poa.id_to_reference(&id).unwrap(), *reference.as_object());
        assert!(matches!(place.root.reference_to_id(reference), Err(PoaError::WrongAdapter)));
    }
    let afar = place.both(&user_made).await;
    assert!(matches!(user.reference_to_id(&afar[0]), Err(PoaError::WrongAdapter)), "of another ORB");
    assert_eq!(user.reference_to_id(&afar[1]).unwrap(), "u");
}

// clause: poa.op.servant_to_id.implicit, poa.op.servant_to_id.wrong_policy, poa.op.servant_to_reference, poa.op.servant_to_reference.servant_not_active, poa.op.servant_to_reference.wrong_policy, poa.op.id_to_servant, poa.op.id_to_servant.object_not_active, poa.op.id_to_reference.object_not_active, poa.op.reference_to_servant, poa.policy.implicit_activation.implicit, poa.policy.implicit_activation.no_implicit, poa.op.this
#[tokio::test]
async fn asking_for_a_servants_object_may_activate_it() {
    let place = place().await;
    let servant = thing("implicit");
    let reference = place.root.servant_to_reference(&servant).unwrap();
    assert_eq!(place.root.servant_to_reference(&servant).unwrap(), reference);
    let id = place.root.servant_to_id(&servant).unwrap();
    assert_eq!(place.root.id_to_servant(&id).unwrap(), servant);
    assert_eq!(place.root.reference_to_servant(&reference).unwrap(), servant);
    for here in place.both(&reference).await {
        assert_eq!(here.name().await.unwrap(), "implicit");
    }
    let often = place.root.child("often").implicit_activation().multiple_ids().create().unwrap();
    let ids = [(); 2].map(|()| often.servant_to_id(&servant).unwrap());
    assert_ne!(ids[0], ids[1]);
    let plain = place.root.child("plain").create().unwrap();
    assert!(matches!(plain.servant_to_id(&servant), Err(PoaError::ServantNotActive)));
    assert!(matches!(plain.servant_to_reference(&servant), Err(PoaError::ServantNotActive)));
    assert!(matches!(plain.id_to_servant(&"x".into()), Err(PoaError::ObjectNotActive)));
    assert!(matches!(plain.id_to_reference(&"x".into()), Err(PoaError::ObjectNotActive)));
    // A servant without a handle is found by its id, and has a handle from then on.
    let value: ThingRef = plain.activate(Thing("value")).unwrap();
    let handle = plain.reference_to_servant(&value).unwrap();
    assert_eq!(plain.servant_to_reference(&handle).unwrap(), *value.as_object());
    let multiple = place.root.child("multiple").multiple_ids().create().unwrap();
    wrong_policy(multiple.servant_to_id(&servant));
    wrong_policy(multiple.servant_to_reference(&servant));
}

// clause: poa.policy.request_processing.default_servant, poa.policy.servant_retention.non_retain, poa.request.default_servant, poa.op.servant_to_id.default_servant, poa.op.set_servant, poa.op.set_servant.wrong_policy, poa.op.get_servant.no_servant, poa.op.activate_object_with_id.wrong_policy, poa.op.deactivate_object.wrong_policy, poa.op.id_to_reference.wrong_policy, poa.request.no_default_servant, exc.when.no_default_servant, exc.minor.obj_adapter.3, poa.current.get_servant
#[tokio::test]
async fn a_default_servant_serves_what_is_not_there() {
    let place = place().await;
    let mixed = place.root.child("mixed").user_ids().default_servant(thing("any")).create().unwrap();
    let only = place.root.child("only").user_ids().persistent().default_servant(thing("any")).without_map();
    let only = only.create().unwrap();
    mixed.activate_object_with_id(&"special".into(), thing("special")).unwrap();
    for poa in [&mixed, &only] {
        for id in ["1", "2", ""] {
            let reference: ThingRef = poa.create_reference_with_id(id).unwrap();
            for here in place.both(&reference).await.iter().chain([&reference]) {
                assert_eq!(here.name().await.unwrap(), "any");
                assert_eq!(here.id().await.unwrap(), id);
                assert_eq!(here.servant_id().await.unwrap(), id);
                assert_eq!(here.poa().await.unwrap(), poa.name());
                assert_eq!(here.itself().await.unwrap().unwrap().id().await.unwrap(), id);
                assert!(!here.non_existent().await.unwrap());
                assert!(here.locate().await.unwrap());
            }
        }
    }
    let special: ThingRef = mixed.create_reference_with_id("special").unwrap();
    for here in place.both(&special).await {
        assert_eq!(here.name().await.unwrap(), "special");
    }
    mixed.deactivate_object(&"special".into()).unwrap().completed().await;
    for here in place.both(&special).await {
        assert_eq!(here.name().await.unwrap(), "any");
    }
    // Another default servant replaces it, even for references that were already used.
    let before: ThingRef = only.create_reference_with_id("1").unwrap();
    let there = place.both(&before).await;
    assert_eq!(only.servant().unwrap().repository_id(), "IDL:Adapted/Thing:1.0");
    only.set_servant(thing("other")).unwrap();
    for here in there.iter().chain([&before]) {
        assert_eq!(here.name().await.unwrap(), "other");
    }
    wrong_policy(only.activate_object_with_id(&"x".into(), thing("no")));
    wrong_policy(only.deactivate_object(&"x".into()));
    wrong_policy(only.id_to_reference(&"x".into()));
    wrong_policy(place.root.servant());
    wrong_policy(place.root.set_servant(thing("no")));
    // No default servant is set yet.
    let policies = [
        RequestProcessingPolicy::DefaultServant.into(),
        IdUniquenessPolicy::Multiple.into(),
        IdAssignmentPolicy::User.into(),
    ];
    let empty = place.root.create_poa("empty", Some(&place.root.manager()), &policies).unwrap();
    assert!(matches!(empty.servant(), Err(PoaError::NoServant)));
    let nobody: ThingRef = empty.create_reference_with_id("x").unwrap();
    let error = place.both(&nobody).await[0].name().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjAdapter);
    assert_eq!(error.minor, zorb::minor::OBJ_ADAPTER_NO_DEFAULT_SERVANT);
}

// clause: poa.request.forged_key, exc.when.poa_unknown, exc.minor.object_not_exist.2
#[tokio::test]
async fn forged_keys_lead_nowhere() {
    let place = place().await;
    let lasting = place.root.child("lasting").persistent().user_ids().create().unwrap();
    let user = place.root.child("user").user_ids().create().unwrap();
    let real: ThingRef = lasting.activate_with_id("x", Thing("x")).unwrap();
    let passing: ThingRef = user.activate_with_id("x", Thing("x")).unwrap();
    let active: ThingRef = place.root.activate(Thing("x")).unwrap();
    for here in [&real, &passing, &active] {
        let key = here.as_object().ior().iiop_profile().unwrap().object_key;
        let url = |octets: &[u8]| {
            let text: String = octets.iter().map(|octet| format!("%{octet:02x}")).collect();
            format!("corbaloc:iiop:1.2@{}/{text}", place.server.endpoints()[0])
        };
        let good: ThingRef = place.client.resolve_unchecked(&url(key.as_slice())).await.unwrap();
        assert_eq!(good.name().await.unwrap(), "x");
        let mut minors = std::collections::BTreeSet::new();
        // Every truncation, and every changed byte, is another object's key or invalid.
        for at in 1..key.as_slice().len() {
            let mut changed = key.as_slice().to_vec();
            changed[at] ^= 1;
            for forged in [url(&changed), url(&key.as_slice()[..at])] {
                let forged: ThingRef = place.client.resolve_unchecked(&forged).await.unwrap();
                let error = forged.name().await.unwrap_err();
                not_there(&error);
                minors.insert(error.minor.code());
                assert!(!forged.locate().await.unwrap());
            }
        }
        assert_eq!(good.name().await.unwrap(), "x", "the connection is as it was");
        assert!(minors.iter().all(|minor| [1, 2].contains(minor)), "{minors:?}");
        assert!(minors.contains(&1));
        assert_eq!(minors.contains(&2), here.as_object() != active.as_object(), "an index has no POA in it");
    }
}

// clause: poa.policy.lifespan.persistent, poa.policy.lifespan.transient, poa.id.transient, poa.id.persistent_key
#[tokio::test]
async fn persistent_references_outlive_the_run() {
    let mut references: Vec<(String, bool)> = Vec::new();
    let mut port = String::from("0");
    for run in 0..2 {
        let server = loop {
            match transport::builder().listen(format!("iiop://127.0.0.1:{port}")).build().await {
                Ok(server) => break server,
                // The port of the last connection becomes free after a moment.
                Err(_) if run > 0 => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => panic!("{error}"),
            }
        };
        port = server.endpoints()[0].rsplit_once(':').unwrap().1.to_owned();
        let root = server.root_poa();
        let deep = root.child("a").create().unwrap().child("b").persistent().user_ids().create().unwrap();
        let passing = root.child("passing").user_ids().create().unwrap();
        let there: ThingRef = deep.activate_with_id("x", Thing("x")).unwrap();
        let gone: ThingRef = passing.activate_with_id("x", Thing("x")).unwrap();
        let active: ThingRef = root.activate(Thing("x")).unwrap();
        let client = transport::builder().build().await.unwrap();
        for (url, good) in &references {
            let old: ThingRef = client.resolve_unchecked(url).await.unwrap();
            match good {
                true => assert_eq!(old.name().await.unwrap(), "x"),
                false => not_there(&old.name().await.unwrap_err()),
            }
        }
        references = vec![(there.to_string(), true), (gone.to_string(), false), (active.to_string(), false)];
        client.shutdown().await;
        server.shutdown().await;
    }
}

// clause: exc.when.object_not_active
#[tokio::test]
async fn a_plain_key_that_is_taken_keeps_its_object() {
    let Place { server, client, .. } = place().await;
    let first: ThingRef = server.activate_named("Thing", Thing("first")).unwrap();
    let taken = server.activate_named::<ThingRef, _>("Thing", Thing("second"));
    assert_eq!(taken.unwrap_err(), zorb::ActivateError::KeyInUse("Thing".into()));
    let url = format!("corbaloc:iiop:1.2@{}/Thing", server.endpoints()[0]);
    let afar: ThingRef = client.resolve_unchecked(&url).await.unwrap();
    assert_eq!(afar.name().await.unwrap(), "first");
    assert_eq!(afar.id().await.unwrap(), "Thing");
    assert!(server.deactivate(&first));
    not_there(&afar.name().await.unwrap_err());
}

// clause: poa.current.no_context
#[test]
fn outside_a_request_there_is_no_current_one() {
    assert!(zorb::try_request().is_none());
    assert!(std::panic::catch_unwind(zorb::request).is_err());
}

// clause: poa.op.reference_to_servant.object_not_active, poa.op.reference_to_servant.wrong_adapter, poa.op.servant_to_reference.in_request
#[tokio::test]
async fn servants_of_references() {
    let place = place().await;
    let poa = place.root.child("p").user_ids().create().unwrap();
    let nobody: ThingRef = poa.create_reference_with_id("x").unwrap();
    assert!(matches!(poa.reference_to_servant(&nobody), Err(PoaError::ObjectNotActive)));
    assert!(matches!(place.root.reference_to_servant(&nobody), Err(PoaError::WrongAdapter)));
    let only = place.root.child("only").user_ids().default_servant(thing("any")).without_map();
    let only = only.create().unwrap();
    wrong_policy(only.servant_to_reference(&only.servant().unwrap()));
    let any: ThingRef = only.create_reference_with_id("any of them").unwrap();
    for here in place.both(&any).await {
        assert_eq!(here.own_reference().await.unwrap().unwrap().id().await.unwrap(), "any of them");
    }
}

/// Counts how many are dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl adapted::OtherServant for Counted {}

// clause: poa.op.reference_count
#[tokio::test]
async fn an_orb_that_goes_frees_its_servants() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = || Counted(Arc::clone(&dropped));
    let other = || Servant::of::<OtherRef, _>(counted());
    {
        let Place { server, root, .. } = place().await;
        let _: OtherRef = server.activate(counted()).unwrap();
        let _: OtherRef = server.activate_named("plain", counted()).unwrap();
        let user = root.child("user").user_ids().default_servant(other()).create().unwrap();
        user.activate_object_with_id(&"x".into(), other()).unwrap();
        let deep = user.child("deep").persistent().create().unwrap();
        let _: OtherRef = deep.activate(counted()).unwrap();
        user.set_servant(other()).unwrap();
        server.shutdown().await;
    }
    for _ in 0..100 {
        if dropped.load(Ordering::SeqCst) == 6 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 6);
}

// clause: poa.op.create_reference_with_id
#[tokio::test]
async fn a_template_gives_the_references_that_the_poa_gives() {
    let path = std::env::temp_dir().join(format!("zorb-template-{}.sock", std::process::id()));
    let unix = format!("uiop://{}", path.display());
    for addresses in
        [&["iiop://127.0.0.1:0"][..], &["iiop://127.0.0.1:0", "iiop://127.0.0.1:0", &unix], &[&unix], &[]]
    {
        let builder =
            addresses.iter().fold(transport::builder(), |builder, address| builder.listen(*address));
        let orb = builder.build().await.unwrap();
        let poa = orb.root_poa().child("many").user_ids().persistent().create().unwrap();
        poa.activate_with_id::<ThingRef, _>("abc", Thing("a thing")).unwrap();
        let template = poa.template::<ThingRef>();
        for len in 0..40 {
            let id =
                ObjectId::from("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz".get(..len).unwrap());
            let same: ThingRef = poa.create_reference_with_id(id.clone()).unwrap();
            assert_eq!(&template.ior(id.clone()).unwrap(), same.as_object().ior(), "{addresses:?} {len}");
            assert!(template.reference(id).unwrap().is_equivalent(&same));
        }
        let thing: ThingRef = template.reference("abc").unwrap();
        assert_eq!(thing.name().await.unwrap(), "a thing");
        let foreign = orb.root_poa().template::<ThingRef>().ior("abc").unwrap_err();
        assert!(matches!(foreign, PoaError::System(error) if error.minor == zorb::MinorCode::omg(14)));
        orb.shutdown().await;
    }
}
