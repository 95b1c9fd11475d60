//! All strategies of finding POAs, objects and operations give the same results.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use zorb::poa::{PoaError, Refusal, ServantActivator, ServantLocator};
use zorb::prelude::*;
use zorb::testing::{Pair, pair_of};
use zorb::wire::{Ior, ObjectKey};
use zorb::{Demux, MinorCode, ObjectDemux, ObjectId, OperationDemux, PathDemux, Poa, Servant, minor};

zorb::idl! {
    module Trees {
        typedef sequence<octet> Key;
        interface Base {
            /// Which of all servants it is.
            unsigned long number();
            readonly attribute string poa;
        };
        interface Thing : Base {
            /// The key that was called.
            Key key();
            void nothing();
        };
    };
}

use trees::{BaseServant, ThingRef, ThingServant};

/// Creates servants that are numbered in order of creation.
#[derive(Clone, Default)]
struct Maker(Arc<AtomicU32>);

struct Thing(u32);

impl Maker {
    fn servant(&self) -> Servant {
        Servant::of::<ThingRef, _>(Thing(self.0.fetch_add(1, Ordering::SeqCst)))
    }
}

impl BaseServant for Thing {
    async fn number(&self) -> Result<u32, SystemException> {
        Ok(self.0)
    }

    async fn poa(&self) -> Result<String, SystemException> {
        assert_eq!(zorb::request().operation(), "_get_poa");
        Ok(zorb::request().poa().unwrap().name().to_owned())
    }
}

impl ThingServant for Thing {
    async fn key(&self) -> Result<Bytes, SystemException> {
        Ok(Bytes::copy_from_slice(zorb::request().object_key()))
    }

    async fn nothing(&self) -> Result<(), SystemException> {
        assert_eq!(zorb::request().operation(), "nothing");
        Ok(())
    }
}

impl ServantActivator for Maker {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(self.servant())
    }

    async fn etherealize(&self, _: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {}
}

impl ServantLocator for Maker {
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
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    System,
    LastingSystem,
    User,
    LastingUser,
    Activator,
    Default,
    DefaultOnly,
    Locator,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Index of the parent POA, name, kind.
    Create(usize, u8, Kind),
    Activate(usize, u8),
    /// Creates a reference without an object.
    Refer(usize, u8),
    /// Activates the object of the last such reference.
    Fulfil,
    Deactivate(usize),
    Destroy(usize),
    Call(usize, u8),
    Locate(usize),
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::System),
        2 => Just(Kind::LastingSystem),
        2 => Just(Kind::User),
        2 => Just(Kind::LastingUser),
        1 => Just(Kind::Activator),
        1 => Just(Kind::Default),
        1 => Just(Kind::DefaultOnly),
        1 => Just(Kind::Locator),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || 0..1000_usize;
    let step = prop_oneof![
        2 => (at(), 0..2_u8, kinds()).prop_map(|(at, name, kind)| Step::Create(at, name, kind)),
        5 => (at(), 0..3_u8).prop_map(|(at, id)| Step::Activate(at, id)),
        1 => (at(), 0..3_u8).prop_map(|(at, id)| Step::Refer(at, id)),
        1 => Just(Step::Fulfil),
        3 => at().prop_map(Step::Deactivate),
        1 => at().prop_map(Step::Destroy),
        9 => (at(), 0..6_u8).prop_map(|(at, operation)| Step::Call(at, operation)),
        2 => at().prop_map(Step::Locate),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Returns all combinations of strategies for POAs and objects, each with a strategy for operations.
fn ways() -> impl Iterator<Item = Demux> {
    let paths = PathDemux::ALL.into_iter().flat_map(|path| ObjectDemux::ALL.map(|objects| (path, objects)));
    let operations = OperationDemux::ALL.into_iter().cycle();
    paths
        .zip(operations)
        .map(|((path, objects), operations)| Demux::new().path(path).objects(objects).operations(operations))
}

struct Adapter {
    poa: Poa,
    kind: Kind,
    parent: usize,
    alive: bool,
}

struct Known {
    here: ThingRef,
    there: ThingRef,
    adapter: usize,
}

struct World {
    pair: Pair,
    maker: Maker,
    adapters: Vec<Adapter>,
    known: Vec<Known>,
    /// A reference to an object that did not exist yet.
    promised: Option<(usize, ObjectId)>,
    /// The observed results.
    seen: Vec<String>,
}

impl World {
    fn new(demux: Demux) -> Self {
        let pair = pair_of(Orb::builder(), Orb::builder().demux(demux));
        let root = pair.server.root_poa();
        let root = Adapter { poa: root, kind: Kind::System, parent: 0, alive: true };
        let maker = Maker::default();
        Self { pair, maker, adapters: vec![root], known: Vec::new(), promised: None, seen: Vec::new() }
    }

    fn create(&mut self, parent: usize, name: &str, kind: Kind) -> Result<usize, PoaError> {
        let child = self.adapters[parent].poa.child(name);
        let maker = &self.maker;
        let poa = match kind {
            Kind::System => child.create(),
            Kind::LastingSystem => child.persistent().create(),
            Kind::User => child.user_ids().create(),
            Kind::LastingUser => child.user_ids().persistent().create(),
            Kind::Activator => child.user_ids().servant_activator(maker.clone()).create(),
            Kind::Default => child.user_ids().persistent().default_servant(maker.servant()).create(),
            Kind::DefaultOnly => child.user_ids().default_servant(maker.servant()).without_map().create(),
            Kind::Locator => child.user_ids().servant_locator(maker.clone()).create(),
        }?;
        self.adapters.push(Adapter { poa, kind, parent, alive: true });
        Ok(self.adapters.len() - 1)
    }

    /// Returns the index of one of the existing POAs.
    fn adapter(&self, at: usize) -> usize {
        let alive: Vec<_> =
            (0..self.adapters.len()).filter(|adapter| self.adapters[*adapter].alive).collect();
        alive[at % alive.len()]
    }

    async fn know(&mut self, adapter: usize, here: ThingRef) {
        let there = self.pair.client.resolve_unchecked(&here.to_string()).await.unwrap();
        self.known.push(Known { here, there, adapter });
    }

    async fn activate(&mut self, at: usize, id: u8) -> Result<(), PoaError> {
        let Adapter { poa, kind, .. } = &self.adapters[at];
        let id = match kind {
            Kind::System | Kind::LastingSystem => poa.activate_object(self.maker.servant())?,
            _ => {
                let id = ObjectId::from(&[id]);
                poa.activate_object_with_id(&id, self.maker.servant())?;
                id
            }
        };
        let here = ThingRef::from_object(poa.id_to_reference(&id)?);
        self.know(at, here).await;
        Ok(())
    }

    async fn refer(&mut self, at: usize, id: u8) {
        let Adapter { poa, kind, .. } = &self.adapters[at];
        let here: ThingRef = match kind {
            Kind::System | Kind::LastingSystem => poa.create_reference().unwrap(),
            _ => poa.create_reference_with_id([id]).unwrap(),
        };
        self.promised = Some((at, poa.reference_to_id(&here).unwrap()));
        self.know(at, here).await;
    }

    fn fulfil(&mut self) -> Result<(), PoaError> {
        match self.promised.take() {
            Some((at, id)) if self.adapters[at].alive => {
                self.adapters[at].poa.activate_object_with_id(&id, self.maker.servant())
            }
            _ => Ok(()),
        }
    }

    /// Deactivates an object. Returns whether there was one.
    async fn deactivate(&self, known: &Known) -> bool {
        let poa = &self.adapters[known.adapter].poa;
        let Ok(id) = poa.reference_to_id(&known.here) else { return false };
        let Ok(end) = poa.deactivate_object(&id) else { return false };
        end.completed().await;
        true
    }

    /// Returns the result of a call. It contains the minor code only if the POA exists, because an invalid
    /// index does not show whether it does.
    async fn call(&self, known: &Known, operation: u8) -> String {
        let Known { here, there, adapter } = known;
        let object = if operation == 5 { here } else { there };
        let called = match operation {
            0 | 5 => object.number().await.map(|number| number.to_string()),
            1 => object.poa().await,
            2 => object.key().await.map(|key| {
                let asked = here.as_object().ior().iiop_profile().unwrap().object_key;
                assert_eq!(key, asked.as_slice());
                String::from("the key")
            }),
            3 => object.is_a("IDL:Trees/Base:1.0").await.map(|is| is.to_string()),
            _ => object.nothing().await.map(|()| String::from("nothing")),
        };
        match called {
            Ok(result) => result,
            Err(error) if self.adapters[*adapter].alive => {
                format!("{:?} {:?} {:?}", error.kind, error.minor, error.completed)
            }
            Err(error) => format!("{:?} {:?}", error.kind, error.completed),
        }
    }

    async fn step(&mut self, step: Step) {
        let known = |at: usize| self.known.get(at % self.known.len().max(1));
        let saw = match step {
            Step::Create(at, name, kind) => {
                let created = self.create(self.adapter(at), ["a", "b"][usize::from(name)], kind);
                format!("{created:?}")
            }
            Step::Activate(at, id) => format!("{:?}", self.activate(self.adapter(at), id).await),
            Step::Refer(at, id) => format!("{:?}", self.refer(self.adapter(at), id).await),
            Step::Fulfil => format!("{:?}", self.fulfil()),
            Step::Deactivate(at) => match known(at) {
                Some(known) => self.deactivate(known).await.to_string(),
                None => String::new(),
            },
            Step::Destroy(at) => match self.adapter(at) {
                0 => String::new(),
                at => {
                    self.adapters[at].poa.destroy(true).completed().await.unwrap();
                    for below in at..self.adapters.len() {
                        let parent = self.adapters[below].parent;
                        self.adapters[below].alive &= below != at && self.adapters[parent].alive;
                    }
                    String::new()
                }
            },
            Step::Call(at, operation) => match known(at) {
                Some(known) => self.call(known, operation).await,
                None => String::new(),
            },
            Step::Locate(at) => match known(at) {
                Some(known) => format!("{:?}", known.there.locate().await),
                None => String::new(),
            },
        };
        self.seen.push(format!("{step:?}: {saw} of {}", self.pair.server.active_objects()));
    }

    /// Creates nested POAs, each with an object.
    async fn grow(&mut self, chain: &[Kind]) {
        let mut last = 0;
        for (depth, kind) in chain.iter().enumerate() {
            last = self.create(last, &format!("level {depth}"), *kind).unwrap();
            let _ = self.activate(last, 0).await;
            self.refer(last, 1).await;
        }
    }
}

fn run(what: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(what);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    // clause: poa.request.stale_key, poa.request.not_in_map, poa.id.transient
    #[test]
    fn all_ways_find_the_same(chain in proptest::collection::vec(kinds(), 1..=32), steps in steps()) {
        run(async {
            let mut first: Option<Vec<String>> = None;
            for demux in ways() {
                let mut world = World::new(demux);
                world.grow(&chain).await;
                for at in 0..world.known.len() {
                    world.step(Step::Call(at, (at % 6) as u8)).await;
                }
                for step in &steps {
                    world.step(*step).await;
                }
                // All objects, whatever state they are in.
                for at in 0..world.known.len() {
                    world.step(Step::Call(at, 0)).await;
                }
                match &first {
                    None => first = Some(world.seen),
                    Some(first) => assert_eq!(first, &world.seen, "{demux:?}"),
                }
            }
        });
    }
}

/// Returns a small tree whose POAs have objects, and no default servants.
async fn tree(demux: Demux) -> World {
    let mut world = World::new(demux);
    world.activate(0, 0).await.unwrap();
    world.grow(&[Kind::System, Kind::LastingSystem, Kind::User, Kind::LastingUser]).await;
    world
}

/// Returns the reference with another object key.
async fn to_key(client: &Orb, reference: &ThingRef, key: &[u8]) -> ThingRef {
    let ior = reference.as_object().ior();
    let mut profile = ior.iiop_profile().unwrap();
    profile.object_key = ObjectKey::from(key);
    let ior = Ior::from_profiles(ior.type_id.clone(), &[profile]).unwrap();
    client.resolve_unchecked(&ior.to_string()).await.unwrap()
}

fn key_of(reference: &ThingRef) -> Vec<u8> {
    reference.as_object().ior().iiop_profile().unwrap().object_key.as_slice().to_vec()
}

// clause: poa.request.forged_key, poa.request.foreign_key, ior.key.unknown
#[test]
fn forged_keys_lead_nowhere_or_where_they_say() {
    run(async {
        for demux in ways() {
            let world = tree(demux).await;
            let mut minors = BTreeSet::new();
            let live: BTreeSet<_> = world.known.iter().map(|known| key_of(&known.here)).collect();
            for known in &world.known {
                let key = key_of(&known.here);
                let good = known.there.number().await;
                // Every truncation, every changed byte, keys that are too long, and the keys of others with a
                // byte of this one.
                let changed = (0..key.len()).map(|at| {
                    let mut changed = key.clone();
                    changed[at] ^= 1;
                    changed
                });
                let cut = (0..key.len()).map(|at| key[..at].to_vec());
                let joined =
                    live.iter().map(|other| [&other[..other.len() - 1], &key[key.len() - 1..]].concat());
                let longer = [[&key[..], &[0]].concat(), [&key[..], &key[..]].concat()];
                for forged in changed.chain(cut).chain(joined).chain(longer) {
                    let object = to_key(&world.pair.client, &known.there, &forged).await;
                    match object.key().await {
                        Ok(called) => {
                            assert!(live.contains(&forged) && called == forged, "{demux:?}: {forged:02x?}")
                        }
                        Err(error) => {
                            let expected = (SystemExceptionKind::ObjectNotExist, CompletionStatus::No);
                            assert_eq!((error.kind, error.completed), expected, "{demux:?}: {error}");
                            minors.insert(error.minor.code());
                        }
                    }
                }
                let again = known.there.number().await;
                assert_eq!(good.ok(), again.ok(), "the connection is as it was");
            }
            let both =
                [minor::OBJECT_NOT_EXIST_NO_OBJECT, minor::OBJECT_NOT_EXIST_NO_ADAPTER].map(MinorCode::code);
            assert!(minors.iter().eq(&BTreeSet::from(both)), "{demux:?}: {minors:?}");
        }
    });
}

// clause: poa.request.not_in_map, poa.id.transient, exc.when.object_not_active
#[test]
fn keys_of_what_was_there_lead_nowhere() {
    run(async {
        for demux in ways() {
            let mut world = tree(demux).await;
            let poa = world.create(0, "again", Kind::User).unwrap();
            world.activate(poa, 7).await.unwrap();
            let indexed = world.create(0, "indexed", Kind::System).unwrap();
            world.activate(indexed, 0).await.unwrap();
            let [user, system] = &world.known[world.known.len() - 2..] else { unreachable!() };
            let [user, system] = [user.there.clone(), system.there.clone()];
            assert!(user.number().await.is_ok() && system.number().await.is_ok());

            // The object is deactivated, and another one reuses its slot.
            let gone = world.known.last().unwrap();
            assert!(world.deactivate(gone).await);
            world.activate(indexed, 0).await.unwrap();
            let error = system.number().await.unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist, "{demux:?}");
            assert_eq!(error.minor, minor::OBJECT_NOT_EXIST_NO_OBJECT, "{demux:?}");

            // The POA is destroyed, and another of its name has an object with the id.
            world.adapters[poa].poa.destroy(true).completed().await.unwrap();
            let poa = world.create(0, "again", Kind::User).unwrap();
            world.activate(poa, 7).await.unwrap();
            let error = user.number().await.unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist, "{demux:?}");
            assert_eq!(error.minor, minor::OBJECT_NOT_EXIST_NO_ADAPTER, "{demux:?}");
            assert!(world.known.last().unwrap().there.number().await.is_ok());
        }
    });
}

#[test]
fn keys_say_the_way() {
    run(async {
        for (path, objects, forms) in [
            (PathDemux::Flat, ObjectDemux::Active, [1, 1, 3, 2, 3]),
            (PathDemux::Flat, ObjectDemux::Hash, [2, 2, 3, 2, 3]),
            (PathDemux::Flat, ObjectDemux::Linear, [2, 2, 3, 2, 3]),
            (PathDemux::DeLayered, ObjectDemux::Active, [1, 1, 3, 2, 3]),
            (PathDemux::Layered, ObjectDemux::Active, [4, 4, 3, 4, 3]),
            (PathDemux::Layered, ObjectDemux::Hash, [4, 4, 3, 4, 3]),
        ] {
            let world = tree(Demux::new().path(path).objects(objects)).await;
            let forms =
                [forms[0], forms[1], forms[1], forms[2], forms[2], forms[3], forms[3], forms[4], forms[4]];
            let seen: Vec<u8> = world.known.iter().map(|known| key_of(&known.here)[3]).collect();
            assert_eq!(seen, forms, "{path:?} {objects:?}");
        }
    });
}

// clause: ior.key.stable
#[test]
fn keys_of_lasting_objects_are_the_same_with_all_ways() {
    run(async {
        let mut first: Option<Vec<u8>> = None;
        for demux in ways() {
            let mut world = World::new(demux);
            let poa = world.create(0, "bank", Kind::LastingUser).unwrap();
            world.activate(poa, 7).await.unwrap();
            let key = key_of(&world.known[0].here);
            assert_eq!(first.get_or_insert_with(|| key.clone()), &key);
        }
    });
}

#[test]
fn an_orb_that_goes_frees_its_servants() {
    struct Counted(Arc<AtomicU32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    struct Held(#[expect(dead_code, reason = "it is there to be dropped")] Counted);
    impl BaseServant for Held {
        async fn number(&self) -> Result<u32, SystemException> {
            Ok(0)
        }
        async fn poa(&self) -> Result<String, SystemException> {
            Ok(String::new())
        }
    }
    impl ThingServant for Held {
        async fn key(&self) -> Result<Bytes, SystemException> {
            Ok(Bytes::new())
        }
        async fn nothing(&self) -> Result<(), SystemException> {
            Ok(())
        }
    }
    for demux in ways() {
        let dropped = Arc::new(AtomicU32::new(0));
        run(async {
            let pair = pair_of(Orb::builder(), Orb::builder().demux(demux));
            let root = pair.server.root_poa();
            let user = root.child("user").user_ids().create().unwrap();
            let held = || Held(Counted(Arc::clone(&dropped)));
            let _: ThingRef = root.activate(held()).unwrap();
            let there: ThingRef = user.activate_with_id("x", held()).unwrap();
            let gone: ThingRef = user.activate_with_id("y", held()).unwrap();
            let there: ThingRef = pair.client.resolve_unchecked(&there.to_string()).await.unwrap();
            there.number().await.unwrap();
            user.deactivate_object(&user.reference_to_id(&gone).unwrap()).unwrap().completed().await;
            drop(gone);
            assert_eq!(dropped.load(Ordering::SeqCst), 1, "{demux:?}: at once");
            pair.client.shutdown().await;
            pair.server.shutdown().await;
        });
        assert_eq!(dropped.load(Ordering::SeqCst), 3, "{demux:?}");
    }
}
