//! The end of POAs, of their objects, and of their ORB.

use std::sync::{Arc, Mutex};

use test_support::events;
use tokio::sync::Notify;
use zorb::poa::{PoaError, Refusal, ServantActivator};
use zorb::prelude::*;
use zorb::{ActivateError, ObjectId, Poa, Servant};

zorb::idl! {
    module Ending {
        interface Thing {
            string name();
            void stay();
            /// Destroys its own POA and says what waiting for that gives: the minor code.
            long destroy_own();
        };
    };
}

use ending::{ThingRef, ThingServant};
use events::{Story, orbs};

#[derive(Clone, Default)]
struct Thing {
    here: Arc<Notify>,
    go: Arc<Notify>,
}

impl ThingServant for Thing {
    async fn name(&self) -> Result<String, SystemException> {
        Ok(ObjectId::from(zorb::request().object_id()).to_string())
    }

    async fn stay(&self) -> Result<(), SystemException> {
        self.here.notify_one();
        self.go.notified().await;
        Ok(())
    }

    async fn destroy_own(&self) -> Result<i32, SystemException> {
        let destruction = zorb::request().poa().unwrap().destroy(true);
        let error = destruction.completed().await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
        Ok(error.minor.code() as i32)
    }
}

#[derive(Clone, Default)]
struct Maker {
    story: Story,
    thing: Thing,
}

impl ServantActivator for Maker {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(Servant::of::<ThingRef, _>(self.thing.clone()))
    }

    async fn etherealize(&self, id: &ObjectId, poa: &Poa, _: Servant, cleanup: bool, _: bool) {
        self.story.tell(format!("ends {id} of {} {cleanup}", poa.name()));
    }
}

struct Place {
    server: Orb,
    client: Orb,
    root: Poa,
    maker: Maker,
}

async fn place() -> Place {
    let (server, client) = orbs().await;
    let root = server.root_poa();
    Place { server, client, root, maker: Maker::default() }
}

impl Place {
    fn poa(&self, parent: &Poa, name: &str) -> Poa {
        let child = parent.child(name).user_ids().persistent();
        child.servant_activator_of(&self.maker)
    }

    async fn both(&self, poa: &Poa, id: &str) -> [ThingRef; 2] {
        let here: ThingRef = poa.create_reference_with_id(id).unwrap();
        [self.client.resolve_unchecked(&here.to_string()).await.unwrap(), here]
    }
}

trait WithMaker {
    fn servant_activator_of(self, maker: &Maker) -> Poa;
}

impl WithMaker for zorb::poa::PoaBuilder<zorb::poa::ids::User, zorb::poa::serving::Map> {
    fn servant_activator_of(self, maker: &Maker) -> Poa {
        self.servant_activator(maker.clone()).multiple_ids().create().unwrap()
    }
}

fn minor(error: PoaError) -> zorb::MinorCode {
    match error {
        PoaError::System(error) => error.minor,
        other => panic!("{other}"),
    }
}

// clause: poa.life.destroy.children_first, poa.life.destroy.refuses, poa.life.destroy.running_finish, poa.life.destroy.waits, poa.life.destroy.etherealizes, poa.life.destroy.name_free, poa.life.destroy.twice, poa.life.create.parent_destroyed, poa.life.create.while_destroyed, exc.minor.transient.4, exc.minor.bad_inv_order.17
#[tokio::test]
async fn a_poa_ends_behind_its_children_and_requests() {
    let place = place().await;
    for from in [0, 1] {
        let parent = place.poa(&place.root, "parent");
        let child = place.poa(&parent, "child");
        for poa in [&parent, &child] {
            for id in ["a", "b"] {
                assert_eq!(place.both(poa, id).await[from].name().await.unwrap(), id);
            }
        }
        let stays = place.both(&child, "a").await[from].clone();
        let staying = tokio::spawn(async move { stays.stay().await });
        place.maker.thing.here.notified().await;
        let ending = parent.destroy(true);
        let again = parent.destroy(false);
        let mut done = Box::pin(ending.completed());
        let early = tokio::time::timeout(Duration::from_millis(50), &mut done).await;
        assert!(early.is_err(), "a request of the child is under way");
        assert_eq!(place.maker.story.take(), ["ends b of child true"; 0]);
        for poa in [&parent, &child] {
            for late in place.both(poa, "a").await {
                let error = late.name().await.unwrap_err();
                assert_eq!(
                    (error.kind, error.completed),
                    (SystemExceptionKind::Transient, CompletionStatus::No)
                );
                assert_eq!(error.minor, zorb::minor::TRANSIENT_POA_DESTROYED);
            }
        }
        let born = parent.child("late").create().unwrap_err();
        assert_eq!(minor(born), zorb::minor::BAD_INV_ORDER_POA_DESTROYED);
        assert!(matches!(place.root.child("parent").create(), Err(PoaError::AdapterAlreadyExists(_))));
        place.maker.thing.go.notify_one();
        staying.await.unwrap().unwrap();
        done.await.unwrap();
        again.completed().await.unwrap();
        let mut story = place.maker.story.take();
        assert!(story.iter().take(2).all(|event| event.contains("of child true")), "{story:?}");
        story.sort();
        let expected = [
            "ends a of child true",
            "ends a of parent true",
            "ends b of child true",
            "ends b of parent true",
        ];
        assert_eq!(story, expected);
        assert_eq!(place.server.active_objects(), 0);
        assert!(place.root.children().is_empty());
        for gone in place.both(&child, "a").await {
            let error = gone.name().await.unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
            assert_eq!(error.minor, zorb::minor::OBJECT_NOT_EXIST_NO_ADAPTER);
            assert!(!gone.locate().await.unwrap());
        }
        let dead = parent.activate_object_with_id(&"x".into(), Servant::of::<ThingRef, _>(Thing::default()));
        assert_eq!(minor(dead.unwrap_err()), zorb::minor::OBJECT_NOT_EXIST_NO_ADAPTER);
        // The name is free: the next round uses it, and its references are the same.
    }
}

// clause: poa.life.destroy.without_etherealize
#[tokio::test]
async fn objects_may_end_without_a_word() {
    let place = place().await;
    let poa = place.poa(&place.root, "p");
    assert_eq!(place.both(&poa, "a").await[0].name().await.unwrap(), "a");
    poa.destroy(false).completed().await.unwrap();
    assert!(place.maker.story.take().is_empty());
    assert_eq!(place.server.active_objects(), 0);
    // Other POAs are unaffected, and POAs of every kind can be destroyed.
    let kinds = [
        place.root.child("indexed").create().unwrap(),
        place.root.child("users").user_ids().create().unwrap(),
        place
            .root
            .child("default")
            .default_servant(Servant::of::<ThingRef, _>(Thing::default()))
            .create()
            .unwrap(),
    ];
    let here: ThingRef = place.root.activate(Thing::default()).unwrap();
    let indexed: ThingRef = kinds[0].activate(Thing::default()).unwrap();
    let users: ThingRef = kinds[1].activate_with_id("x", Thing::default()).unwrap();
    let default: ThingRef = kinds[2].create_reference().unwrap();
    let mut all = Vec::new();
    for reference in [&indexed, &users, &default] {
        let afar: ThingRef = place.client.resolve_unchecked(&reference.to_string()).await.unwrap();
        afar.name().await.unwrap();
        reference.name().await.unwrap();
        all.extend([afar, reference.clone()]);
    }
    for poa in &kinds {
        poa.destroy(true).completed().await.unwrap();
    }
    for gone in all {
        assert_eq!(gone.name().await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    }
    here.name().await.unwrap();
    assert_eq!(place.server.active_objects(), 1);
}

// clause: poa.life.destroy.would_deadlock
#[tokio::test]
async fn a_servant_destroys_its_poa_but_does_not_wait_for_it() {
    let place = place().await;
    for from in [0, 1] {
        let poa = place.poa(&place.root, "p");
        let who = place.both(&poa, "a").await;
        who[from].name().await.unwrap();
        assert_eq!(who[from].destroy_own().await.unwrap(), 3);
        poa.destroy(true).completed().await.unwrap();
        assert_eq!(place.maker.story.take(), ["ends a of p true"]);
    }
}

// clause: poa.manager.deactivate_etherealizes
#[tokio::test]
async fn a_manager_that_deactivates_may_end_all_objects() {
    let place = place().await;
    let own = place.root.child("own").user_ids().own_manager().servant_activator(place.maker.clone());
    let own = own.multiple_ids().create().unwrap();
    let other = place.poa(&place.root, "other");
    own.manager().activate().unwrap();
    for poa in [&own, &other] {
        place.both(poa, "a").await[0].name().await.unwrap();
    }
    own.manager().deactivate(true).unwrap().completed().await.unwrap();
    assert_eq!(place.maker.story.take(), ["ends a of own true"]);
    place.both(&other, "a").await[0].name().await.unwrap();
    assert_eq!(place.server.active_objects(), 1);
}

// clause: poa.orb.shutdown
#[tokio::test]
async fn the_end_of_the_orb_ends_its_objects() {
    let place = place().await;
    let poa = place.poa(&place.root, "p");
    place.both(&poa, "a").await[0].name().await.unwrap();
    place.server.shutdown().await;
    assert_eq!(place.maker.story.take(), ["ends a of p true"]);
    assert_eq!(place.server.active_objects(), 0);
}

// clause: poa.life.destroy.root
#[tokio::test]
async fn a_root_that_was_destroyed_stays_so() {
    let place = place().await;
    let child = place.poa(&place.root, "p");
    let here: ThingRef = place.server.activate(Thing::default()).unwrap();
    let here: ThingRef = place.client.resolve_unchecked(&here.to_string()).await.unwrap();
    here.name().await.unwrap();
    let plain: ThingRef = place.server.activate_named("Plain", Thing::default()).unwrap();
    place.root.destroy(true).completed().await.unwrap();
    assert_eq!(here.name().await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    assert!(child.destroy(true).completed().await.is_ok());
    assert_eq!(place.server.root_poa(), place.root);
    let error = place.server.activate::<ThingRef, _>(Thing::default()).unwrap_err();
    assert_eq!(error, ActivateError::Destroyed);
    plain.name().await.unwrap();
}

/// Incarnates a thing when it is permitted to, and records its POA.
#[derive(Clone, Default)]
struct Slow {
    thing: Thing,
    story: Story,
    poa: Arc<Mutex<Option<Poa>>>,
    /// Freed together with the activator.
    freed: Arc<()>,
}

impl ServantActivator for Slow {
    async fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Servant, Refusal> {
        *self.poa.lock().unwrap() = Some(poa.clone());
        self.thing.stay().await?;
        self.story.tell(format!("made {id}"));
        if id.as_slice() == b"own" {
            let error = poa.destroy(true).completed().await.unwrap_err();
            self.story.tell(format!("{:?} {}", error.kind, error.minor.code()));
        }
        Ok(Servant::of::<ThingRef, _>(self.thing.clone()))
    }

    async fn etherealize(&self, id: &ObjectId, _: &Poa, _: Servant, cleanup: bool, _: bool) {
        self.story.tell(format!("ends {id} {cleanup}"));
    }
}

fn slow(place: &Place, slow: &Slow) -> Poa {
    place.root.child("slow").user_ids().servant_activator(slow.clone()).multiple_ids().create().unwrap()
}

// clause: poa.life.destroy.etherealizes, poa.life.destroy.waits
#[tokio::test]
async fn an_object_that_is_being_made_ends_with_its_poa() {
    let place = place().await;
    let activator = Slow::default();
    let poa = slow(&place, &activator);
    for (from, thing) in place.both(&poa, "a").await.into_iter().enumerate() {
        let poa = if from == 0 { poa.clone() } else { slow(&place, &activator) };
        let thing = if from == 0 { thing } else { place.both(&poa, "a").await[1].clone() };
        let call = tokio::spawn(async move { thing.name().await });
        activator.thing.here.notified().await;
        let destruction = poa.destroy(true);
        let mut end = Box::pin(destruction.completed());
        assert!(futures_util::poll!(&mut end).is_pending());
        activator.thing.go.notify_one();
        end.await.unwrap();
        assert_eq!(activator.story.take(), ["made a", "ends a true"]);
        let error = call.await.unwrap().unwrap_err();
        let gone = [SystemExceptionKind::Transient, SystemExceptionKind::ObjectNotExist];
        assert!(gone.contains(&error.kind) && error.completed == CompletionStatus::No, "{error}");
        assert_eq!(place.server.active_objects(), 0);
    }
}

// clause: poa.life.destroy.would_deadlock
#[tokio::test]
async fn a_servant_manager_destroys_its_poa_but_does_not_wait_for_it() {
    let place = place().await;
    let activator = Slow::default();
    let poa = slow(&place, &activator);
    let thing = place.both(&poa, "own").await[0].clone();
    activator.thing.go.notify_one();
    thing.name().await.unwrap_err();
    poa.destroy(true).completed().await.unwrap();
    assert_eq!(activator.story.take(), ["made own", "BadInvOrder 3", "ends own true"]);
}

#[tokio::test]
async fn managers_and_servants_that_know_their_poa_are_let_go_of_with_it() {
    let place = place().await;
    let activator = Slow::default();
    let freed = Arc::downgrade(&activator.freed);
    let poa = slow(&place, &activator);
    activator.thing.go.notify_one();
    place.both(&poa, "a").await[0].name().await.unwrap();
    assert!(activator.poa.lock().unwrap().is_some());
    drop(activator);
    poa.destroy(true).completed().await.unwrap();
    assert!(freed.upgrade().is_none());

    let gone = |error| assert_eq!(minor(error), zorb::MinorCode::omg(2));
    let late = Slow::default();
    let freed = Arc::downgrade(&late.freed);
    gone(poa.set_servant_activator(late).unwrap_err());
    assert!(freed.upgrade().is_none());
}

#[test]
fn an_object_may_end_where_no_runtime_is() {
    let activator = Slow::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (orb, poa, thing) = runtime.block_on(async {
        let place = place().await;
        let poa = slow(&place, &activator);
        let thing = place.both(&poa, "a").await[1].clone();
        activator.thing.go.notify_one();
        thing.name().await.unwrap();
        (place.server, poa, thing)
    });
    // Its task is dropped with the runtime before it began.
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ended = poa.deactivate_object(&"a".into()).unwrap();
        ended.completed().await;
        assert_eq!(orb.active_objects(), 0);
        drop(thing);
    });
}
