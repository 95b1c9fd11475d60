//! Random sequences of operations on POAs and their managers, with concurrent calls, compared with a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use zorb::poa::{PoaError, PoaManagerState, Refusal, ServantActivator, ServantLocator, ThreadModel};
use zorb::prelude::*;
use zorb::testing::{Pair, pair};
use zorb::{MinorCode, ObjectId, Poa, Servant, minor};

zorb::idl! {
    module Sequences {
        interface Thing {
            /// Which of all servants it is.
            unsigned long number();
        };
    };
}

use sequences::{ThingRef, ThingServant};

/// Counts the created servants and the calls that they served.
#[derive(Clone, Default)]
struct Counts {
    made: Arc<AtomicU32>,
    ended: Arc<AtomicU32>,
    served: Arc<AtomicU32>,
}

struct Thing {
    number: u32,
    counts: Counts,
}

impl Counts {
    fn thing(&self) -> Thing {
        Thing { number: self.made.fetch_add(1, Ordering::SeqCst), counts: self.clone() }
    }

    fn servant(&self) -> Servant {
        Servant::of::<ThingRef, _>(self.thing())
    }
}

impl ThingServant for Thing {
    async fn number(&self) -> Result<u32, SystemException> {
        self.counts.served.fetch_add(1, Ordering::SeqCst);
        Ok(self.number)
    }
}

impl ServantActivator for Counts {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        tokio::task::yield_now().await;
        Ok(self.servant())
    }

    async fn etherealize(&self, _: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        tokio::task::yield_now().await;
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl ServantLocator for Counts {
    type Cookie = ();

    async fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, ()), Refusal> {
        Ok((self.servant(), ()))
    }

    async fn postinvoke(
        &self,
        _: &ObjectId,
        _: &Poa,
        _: &str,
        (): (),
        _: Servant,
    ) -> Result<(), SystemException> {
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Map,
    Activator,
    Default,
    DefaultOnly,
    Locator,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Activate(u8),
    Deactivate(u8),
    /// By a remote caller or in the same process.
    Call(u8, bool),
    Locate(u8),
    Serve,
    Hold,
    Discard,
    Close(bool),
    /// Destroys the POA and creates another of its name.
    Destroy(bool),
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Map),
        Just(Kind::Activator),
        Just(Kind::Default),
        Just(Kind::DefaultOnly),
        Just(Kind::Locator)
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..3_u8;
    let step = prop_oneof![
        3 => id.clone().prop_map(Step::Activate),
        3 => id.clone().prop_map(Step::Deactivate),
        8 => (id.clone(), any::<bool>()).prop_map(|(id, afar)| Step::Call(id, afar)),
        2 => id.prop_map(Step::Locate),
        4 => Just(Step::Serve),
        1 => Just(Step::Hold),
        1 => Just(Step::Discard),
        1 => any::<bool>().prop_map(Step::Close),
        1 => any::<bool>().prop_map(Step::Destroy),
    ];
    proptest::collection::vec(step, 1..60)
}

/// The expected state.
struct Model {
    kind: Kind,
    state: PoaManagerState,
    /// The number of the servant of each active object.
    active: BTreeMap<u8, u32>,
    default: Option<u32>,
    served: u32,
    ended: u32,
}

/// The expected result of a call.
enum Expected {
    Number(u32),
    /// The number of a servant that is created for the call.
    New,
    Exception(SystemExceptionKind, MinorCode),
}

impl Model {
    fn call(&mut self, id: u8, next: u32) -> Expected {
        match self.state {
            PoaManagerState::Holding => {
                return Expected::Exception(SystemExceptionKind::Timeout, minor::TIMEOUT_REPLY_END);
            }
            PoaManagerState::Discarding => {
                return Expected::Exception(SystemExceptionKind::Transient, minor::TRANSIENT_DISCARDED);
            }
            PoaManagerState::Inactive => {
                let minor = minor::OBJ_ADAPTER_UNKNOWN_ADAPTER;
                return Expected::Exception(SystemExceptionKind::ObjAdapter, minor);
            }
            PoaManagerState::Active => {}
        }
        if let Some(number) = self.active.get(&id).copied().or(self.default) {
            self.served += 1;
            return Expected::Number(number);
        }
        match self.kind {
            Kind::Activator => {
                self.active.insert(id, next);
                self.served += 1;
                Expected::New
            }
            Kind::Locator => {
                self.served += 1;
                self.ended += 1;
                Expected::New
            }
            _ => Expected::Exception(SystemExceptionKind::ObjectNotExist, minor::OBJECT_NOT_EXIST_NO_OBJECT),
        }
    }

    fn may_be_here(&self, id: u8) -> bool {
        let made = matches!(self.kind, Kind::Activator | Kind::Locator | Kind::Default | Kind::DefaultOnly);
        made || self.active.contains_key(&id) || self.state == PoaManagerState::Holding
    }

    fn retains(&self) -> bool {
        !matches!(self.kind, Kind::DefaultOnly | Kind::Locator)
    }
}

struct World {
    pair: Pair,
    counts: Counts,
    model: Model,
    threads: ThreadModel,
    poa: Poa,
}

impl World {
    fn new(kind: Kind, threads: ThreadModel) -> Self {
        let pair = pair();
        let counts = Counts::default();
        let state = PoaManagerState::Holding;
        let model = Model { kind, state, active: BTreeMap::new(), default: None, served: 0, ended: 0 };
        let root = pair.server.root_poa();
        let mut world = Self { pair, counts, model, threads, poa: root };
        world.create();
        world
    }

    fn create(&mut self) {
        let child = self.pair.server.root_poa().child("p").user_ids().persistent();
        let child = child.own_manager().multiple_ids().thread_model(self.threads);
        let next = self.counts.made.load(Ordering::SeqCst);
        let poa = match self.model.kind {
            Kind::Map => child.create(),
            Kind::Activator => child.servant_activator(self.counts.clone()).create(),
            Kind::Default => child.default_servant(self.counts.servant()).create(),
            Kind::DefaultOnly => child.default_servant(self.counts.servant()).without_map().create(),
            Kind::Locator => child.servant_locator(self.counts.clone()).create(),
        };
        let has_default = matches!(self.model.kind, Kind::Default | Kind::DefaultOnly);
        self.model.default = has_default.then_some(next);
        self.model.state = PoaManagerState::Holding;
        self.poa = poa.unwrap();
    }

    async fn reference(&self, id: u8, afar: bool) -> ThingRef {
        let here: ThingRef = self.poa.create_reference_with_id([id]).unwrap();
        let here = here.with_timeout(Duration::from_secs(1));
        if !afar {
            return here;
        }
        let there: ThingRef = self.pair.client.resolve_unchecked(&here.to_string()).await.unwrap();
        there.with_timeout(Duration::from_secs(1))
    }

    async fn step(&mut self, step: Step) {
        let manager = self.poa.manager();
        match step {
            Step::Activate(id) => {
                let next = self.counts.made.load(Ordering::SeqCst);
                let done = self.poa.activate_object_with_id(&[id].into(), self.counts.servant());
                match done {
                    Ok(()) => {
                        assert!(self.model.retains());
                        assert_eq!(self.model.active.insert(id, next), None);
                    }
                    Err(PoaError::WrongPolicy { .. }) => assert!(!self.model.retains()),
                    Err(PoaError::ObjectAlreadyActive) => assert!(self.model.active.contains_key(&id)),
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Deactivate(id) => match self.poa.deactivate_object(&[id].into()) {
                Ok(end) => {
                    end.completed().await;
                    assert!(self.model.active.remove(&id).is_some());
                    self.model.ended += u32::from(self.model.kind == Kind::Activator);
                }
                Err(PoaError::WrongPolicy { .. }) => assert!(!self.model.retains()),
                Err(PoaError::ObjectNotActive) => assert!(!self.model.active.contains_key(&id)),
                Err(error) => panic!("{error}"),
            },
            Step::Call(id, afar) => {
                let next = self.counts.made.load(Ordering::SeqCst);
                let got = self.reference(id, afar).await.number().await;
                match (self.model.call(id, next), got) {
                    (Expected::Number(number), Ok(got)) => assert_eq!(got, number),
                    (Expected::New, Ok(got)) => assert_eq!(got, next),
                    (Expected::Exception(kind, minor), Err(error)) => {
                        assert_eq!((error.kind, error.minor), (kind, minor), "{error}");
                    }
                    (_, got) => panic!("{got:?}"),
                }
            }
            Step::Locate(id) => {
                for afar in [true, false] {
                    let here = self.reference(id, afar).await.locate().await.unwrap();
                    assert_eq!(here, self.model.may_be_here(id));
                }
            }
            Step::Serve => self.changed(PoaManagerState::Active, manager.activate().is_ok()),
            Step::Hold => {
                let changed = manager.hold_requests();
                self.changed(PoaManagerState::Holding, changed.is_ok());
                if let Ok(completion) = changed {
                    completion.completed().await.unwrap();
                }
            }
            Step::Discard => {
                let changed = manager.discard_requests();
                self.changed(PoaManagerState::Discarding, changed.is_ok());
                if let Ok(completion) = changed {
                    completion.completed().await.unwrap();
                }
            }
            Step::Close(etherealize) => {
                let changed = manager.deactivate(etherealize);
                self.changed(PoaManagerState::Inactive, changed.is_ok());
                if let Ok(completion) = changed {
                    completion.completed().await.unwrap();
                    if etherealize && self.model.kind == Kind::Activator {
                        self.model.ended += self.model.active.len() as u32;
                        self.model.active.clear();
                    }
                }
            }
            Step::Destroy(etherealize) => {
                self.poa.destroy(etherealize).completed().await.unwrap();
                if etherealize && self.model.kind == Kind::Activator {
                    self.model.ended += self.model.active.len() as u32;
                }
                self.model.active.clear();
                let error = self.reference(0, true).await.number().await.unwrap_err();
                assert_eq!(error.minor, minor::OBJECT_NOT_EXIST_NO_ADAPTER);
                self.create();
            }
        }
        assert_eq!(self.poa.manager().state(), self.model.state);
        assert_eq!(self.pair.server.active_objects(), self.model.active.len());
        assert_eq!(
            self.counts.served.load(Ordering::SeqCst),
            self.model.served,
            "what was refused did not run"
        );
        assert_eq!(self.counts.ended.load(Ordering::SeqCst), self.model.ended);
        assert_eq!(self.pair.server.poa_managers().len(), 2, "managers go with their POAs");
    }

    fn changed(&mut self, state: PoaManagerState, changed: bool) {
        assert_eq!(changed, self.model.state != PoaManagerState::Inactive);
        if changed {
            self.model.state = state;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    // clause: poa.manager.activate, poa.manager.hold_requests, poa.manager.discard_requests, poa.manager.deactivate
    // clause: poa.activator.incarnate, poa.activator.etherealize, poa.life.destroy.name_free
    #[test]
    fn any_sequence_goes_as_the_model_says(kind in kinds(), single in any::<bool>(), steps in steps()) {
        let threads = if single { ThreadModel::Single } else { ThreadModel::OrbControl };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(kind, threads);
            for step in steps {
                world.step(step).await;
            }
        });
    }
}
