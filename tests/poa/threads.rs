//! Thread models: concurrent, one at a time, and on the main task.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use test_support::{events, transport};
use zorb::poa::{Refusal, ServantActivator, ThreadModel};
use zorb::prelude::*;
use zorb::{ObjectId, Poa, Servant};

zorb::idl! {
    module Turns {
        interface Thing {
            /// Takes its time, and says how many did at once.
            long work();
            /// Calls another in the same process.
            long through(in Thing other);
            /// The name of the thread that runs it.
            string where();
            void panics();
        };
    };
}

use turns::{ThingRef, ThingServant};

#[derive(Clone, Default)]
struct Thing {
    running: Arc<AtomicUsize>,
}

impl Thing {
    async fn count(&self) -> i32 {
        struct Runs<'a>(&'a AtomicUsize);
        impl Drop for Runs<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let at_once = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _runs = Runs(&self.running);
        tokio::time::sleep(Duration::from_millis(5)).await;
        at_once as i32
    }
}

impl ThingServant for Thing {
    async fn work(&self) -> Result<i32, SystemException> {
        Ok(self.count().await)
    }

    async fn through(&self, other: Option<ThingRef>) -> Result<i32, SystemException> {
        other.unwrap().work().await
    }

    async fn r#where(&self) -> Result<String, SystemException> {
        tokio::task::yield_now().await;
        Ok(std::thread::current().name().unwrap_or_default().to_owned())
    }

    async fn panics(&self) -> Result<(), SystemException> {
        tokio::task::yield_now().await;
        panic!("a servant panics in its turn")
    }
}

impl ServantActivator for Thing {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        assert_eq!(self.count().await, 1, "servant managers take turns as well");
        Ok(Servant::of::<ThingRef, _>(self.clone()))
    }
}

struct Place {
    server: Orb,
    client: Orb,
    thing: Thing,
}

async fn place() -> Place {
    let (server, client) = events::orbs().await;
    Place { server, client, thing: Thing::default() }
}

impl Place {
    fn poa(&self, name: &str, model: ThreadModel) -> Poa {
        self.server.root_poa().child(name).user_ids().multiple_ids().thread_model(model).create().unwrap()
    }

    /// Returns two objects of the POA, each as seen by a remote caller and in the same process.
    async fn objects(&self, poa: &Poa) -> Vec<ThingRef> {
        let mut all = Vec::new();
        for id in ["a", "b"] {
            let here: ThingRef = poa.activate_with_id(id, self.thing.clone()).unwrap();
            all.push(self.client.resolve_unchecked(&here.to_string()).await.unwrap());
            all.push(here);
        }
        all
    }
}

/// Returns the maximum number of concurrent calls to all of them.
async fn most_at_once(objects: &[ThingRef]) -> i32 {
    let calls = (0..3).flat_map(|_| objects).map(ThingRef::work);
    let counts = futures_util::future::join_all(calls).await;
    counts.into_iter().map(Result::unwrap).max().unwrap()
}

// clause: poa.policy.thread.orb_ctrl, poa.policy.thread.single
#[tokio::test]
async fn requests_run_side_by_side_or_in_turns() {
    let place = place().await;
    let side_by_side = place.objects(&place.poa("orb", ThreadModel::OrbControl)).await;
    assert!(most_at_once(&side_by_side).await > 1);
    let single = place.poa("single", ThreadModel::Single);
    let objects = place.objects(&single).await;
    assert_eq!(most_at_once(&objects).await, 1);
    for modes in [Servant::blocking, Servant::spawned, Servant::concurrent] {
        let servant = modes(Servant::of::<ThingRef, _>(place.thing.clone()));
        single.activate_object_with_id(&"c".into(), servant).unwrap();
        let c: ThingRef = single.create_reference_with_id("c").unwrap();
        let c: ThingRef = place.client.resolve_unchecked(&c.to_string()).await.unwrap();
        assert_eq!(most_at_once(&[c, objects[0].clone()]).await, 1);
        single.deactivate_object(&"c".into()).unwrap().completed().await;
    }
    // A turn ends when its call panics, or is cancelled.
    assert_eq!(objects[0].panics().await.unwrap_err().kind, SystemExceptionKind::Unknown);
    for object in &objects {
        assert!(object.work().now_or_never().is_none());
        assert_eq!(object.work().await.unwrap(), 1);
    }
}

// clause: poa.policy.thread.single, poa.activator.incarnate
#[tokio::test]
async fn servant_managers_take_turns_with_requests() {
    let place = place().await;
    let poa = place.server.root_poa().child("p").user_ids().thread_model(ThreadModel::Single);
    let poa = poa.servant_activator(place.thing.clone()).create().unwrap();
    let mut objects = Vec::new();
    for id in ["a", "b", "c", "d"] {
        let here: ThingRef = poa.create_reference_with_id(id).unwrap();
        objects.push(place.client.resolve_unchecked::<ThingRef>(&here.to_string()).await.unwrap());
    }
    assert_eq!(most_at_once(&objects).await, 1);
}

// clause: poa.policy.thread.single_reentrant
#[tokio::test]
async fn a_call_within_the_turn_does_not_wait_for_it() {
    let place = place().await;
    let single = place.objects(&place.poa("single", ThreadModel::Single)).await;
    let plain = place.objects(&place.poa("plain", ThreadModel::OrbControl)).await;
    for outer in [&single[0], &single[1]] {
        assert_eq!(outer.through(&single[3]).await.unwrap(), 1);
        assert_eq!(outer.through(&plain[1]).await.unwrap(), 1);
    }
    // Over a connection it would wait for itself.
    let afar = single[2].with_timeout(Duration::from_secs(10));
    assert_eq!(single[1].with_timeout(Duration::from_secs(10)).through(&plain[1]).await.unwrap(), 1);
    let many = futures_util::future::join_all((0..4).map(|_| single[0].through(&single[3]))).await;
    assert!(many.into_iter().all(|count| count.unwrap() == 1));
    assert_eq!(afar.work().await.unwrap(), 1);
}

// clause: poa.policy.thread.main, poa.orb.run
#[test]
fn main_requests_run_where_run_until_does() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("worker")
        .enable_all()
        .build()
        .unwrap();
    let main = std::thread::Builder::new().name("the main thread".into());
    let main = main.spawn(move || {
        runtime.block_on(async {
            let place = place().await;
            let main = place.objects(&place.poa("main", ThreadModel::Main)).await;
            let other = place.objects(&place.poa("other", ThreadModel::Main)).await;
            let plain = place.objects(&place.poa("plain", ThreadModel::OrbControl)).await;
            let early = main[0].with_timeout(Duration::from_millis(50)).work().await;
            assert_eq!(early.unwrap_err().kind, SystemExceptionKind::Timeout, "nobody runs it");
            let calls = tokio::spawn(async move {
                for object in main.iter().chain(&other) {
                    assert_eq!(object.r#where().await.unwrap(), "the main thread");
                }
                assert_ne!(plain[0].r#where().await.unwrap(), "the main thread");
                let both: Vec<_> = main.iter().chain(&other).cloned().collect();
                assert_eq!(most_at_once(&both).await, 1, "all such POAs take turns together");
                assert_eq!(main[0].through(&other[1]).await.unwrap(), 1);
                assert_eq!(main[0].panics().await.unwrap_err().kind, SystemExceptionKind::Unknown);
                main[0].work().await.unwrap();
            });
            let end = async { calls.await.map_err(|error| error.to_string()) };
            place.server.run_until(end).await.unwrap();
        });
    });
    main.unwrap().join().unwrap();
}

#[tokio::test]
async fn pending_main_thread_requests_are_dropped_with_the_orb() {
    let builder = transport::builder().listen("iiop://127.0.0.1:0").drain_timeout(Duration::from_millis(50));
    let (server, client) = (builder.build().await.unwrap(), transport::builder().build().await.unwrap());
    let place = Place { server, client, thing: Thing::default() };
    let thing = place.thing.clone();
    let main = place.objects(&place.poa("main", ThreadModel::Main)).await;
    let waits = tokio::spawn({
        let afar = main[0].clone();
        async move { afar.work().await }
    });
    while place.server.stats().messages_in < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    place.server.shutdown().await;
    assert!(waits.await.unwrap().is_err());
    drop((main, place));
    for _ in 0..1000 {
        if Arc::strong_count(&thing.running) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("its servant is still there: {} hold it", Arc::strong_count(&thing.running));
}
