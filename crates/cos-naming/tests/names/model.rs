//! Whatever is done, in whatever order, stores and their model agree.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cos_naming::store::{
    Change, ChangeError, ContextId, DiskStore, Key, Lookup, MayReplace, MemoryStore, PageLimit, Refusal,
    Store, Target,
};
use proptest::prelude::*;
use zorb::cos_naming::{BindingType, NameComponent};

/// Pages of two bindings.
const TWO: PageLimit = PageLimit { bindings: 2, bytes: usize::MAX };

#[derive(Debug, Clone)]
enum Step {
    Bind { context: u64, key: u8, to: u8, may_replace: MayReplace },
    BindContext { context: u64, key: u8, to: u64, may_replace: MayReplace },
    BindNew { context: u64, key: u8 },
    New,
    Unbind { context: u64, key: u8 },
    Destroy { context: u64 },
}

fn may_replace() -> impl Strategy<Value = MayReplace> {
    prop_oneof![Just(MayReplace::Nothing), Just(MayReplace::Object), Just(MayReplace::Context)]
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..5_u64, 0..4_u8);
    prop_oneof![
        3 => (place(), any::<u8>(), may_replace()).prop_map(|((context, key), to, may_replace)| Step::Bind { context, key, to, may_replace }),
        1 => (place(), 0..5_u64, may_replace())
            .prop_map(|((context, key), to, may_replace)| Step::BindContext { context, key, to, may_replace }),
        2 => place().prop_map(|(context, key)| Step::BindNew { context, key }),
        1 => Just(Step::New),
        2 => place().prop_map(|(context, key)| Step::Unbind { context, key }),
        2 => (0..5_u64).prop_map(|context| Step::Destroy { context }),
    ]
}

fn key(number: u8) -> Key {
    Key::new(&NameComponent::new(format!("n{}", number / 2), if number.is_multiple_of(2) { "" } else { "k" }))
        .unwrap()
}

fn change(step: &Step) -> Change {
    let at = |context: &u64| ContextId(*context);
    match step {
        Step::Bind { context, key: k, to, may_replace } => Change::Bind {
            context: at(context),
            key: key(*k),
            target: Target::Object(Bytes::copy_from_slice(&[*to])),
            may_replace: *may_replace,
        },
        Step::BindContext { context, key: k, to, may_replace } => Change::Bind {
            context: at(context),
            key: key(*k),
            target: Target::Context(at(to)),
            may_replace: *may_replace,
        },
        Step::BindNew { context, key: k } => Change::BindNewContext { context: at(context), key: key(*k) },
        Step::New => Change::NewContext,
        Step::Unbind { context, key: k } => Change::Unbind { context: at(context), key: key(*k) },
        Step::Destroy { context } => Change::Destroy { context: at(context) },
    }
}

/// The rules of the standard, as simply as they can be written.
#[derive(Default)]
struct Model {
    contexts: BTreeSet<u64>,
    bindings: BTreeMap<(u64, Key), Target>,
    next: u64,
}

impl Model {
    fn new() -> Self {
        Self { contexts: BTreeSet::from([0]), next: 1, ..Self::default() }
    }

    fn fresh(&mut self) -> u64 {
        self.contexts.insert(self.next);
        self.next += 1;
        self.next - 1
    }

    fn make(&mut self, step: &Step) -> Result<Option<u64>, Refusal> {
        let there =
            |model: &Self, context| model.contexts.contains(&context).then_some(()).ok_or(Refusal::NoContext);
        let is_context = |target: &Target| matches!(target, Target::Context(_));
        match *step {
            Step::New => return Ok(Some(self.fresh())),
            Step::BindNew { context, key: k } => {
                there(self, context)?;
                if self.bindings.contains_key(&(context, key(k))) {
                    return Err(Refusal::AlreadyBound);
                }
                let made = self.fresh();
                self.bindings.insert((context, key(k)), Target::Context(ContextId(made)));
                return Ok(Some(made));
            }
            Step::Bind { context, key: k, may_replace, .. }
            | Step::BindContext { context, key: k, may_replace, .. } => {
                there(self, context)?;
                match (self.bindings.get(&(context, key(k))), may_replace) {
                    (Some(_), MayReplace::Nothing) => return Err(Refusal::AlreadyBound),
                    (Some(found), MayReplace::Object) if is_context(found) => return Err(Refusal::IsContext),
                    (Some(found), MayReplace::Context) if !is_context(found) => {
                        return Err(Refusal::IsObject);
                    }
                    _ => {}
                }
                let Change::Bind { target, .. } = change(step) else { unreachable!() };
                self.bindings.insert((context, key(k)), target);
            }
            Step::Unbind { context, key: k } => {
                there(self, context)?;
                self.bindings.remove(&(context, key(k))).ok_or(Refusal::NotBound)?;
            }
            Step::Destroy { context: 0 } => return Err(Refusal::IsRoot),
            Step::Destroy { context } => {
                there(self, context)?;
                if self.bindings.keys().any(|(in_context, _)| *in_context == context) {
                    return Err(Refusal::NotEmpty);
                }
                self.contexts.remove(&context);
            }
        }
        Ok(None)
    }

    /// Checks that the store has what the model has, by lookups and by pages of two.
    async fn compare(&self, store: &impl Store) {
        for context in 0..self.next + 1 {
            for k in 0..4 {
                let found = store.lookup(ContextId(context), &key(k)).await.unwrap();
                match (found, self.bindings.get(&(context, key(k)))) {
                    (Lookup::Bound(bound), Some(target)) => assert_eq!(bound.target, *target),
                    (Lookup::NotBound, None) => assert!(self.contexts.contains(&context)),
                    (Lookup::NoContext, None) => assert!(!self.contexts.contains(&context)),
                    (found, target) => panic!("{found:?} is not {target:?}"),
                }
            }
            let mut all: Vec<(Key, BindingType)> = Vec::new();
            loop {
                let after = all.last().map(|(key, _)| key.clone());
                let Some(page) = store.page(ContextId(context), after.as_ref(), TWO).await.unwrap() else {
                    assert!(!self.contexts.contains(&context));
                    break;
                };
                all.extend(page.bindings);
                if !page.has_more {
                    break;
                }
            }
            let here = self.bindings.iter().filter(|((at, _), _)| *at == context);
            let here: Vec<_> = here.map(|((_, key), target)| (key.clone(), target.binding_type())).collect();
            assert_eq!(all, here);
        }
    }
}

async fn run(store: &impl Store, model: &mut Model, steps: &[Step]) {
    for step in steps {
        let made = match store.change(change(step)).await {
            Ok(made) => Ok(made.map(|ContextId(id)| id)),
            Err(ChangeError::Refused(refused)) => Err(refused),
            Err(ChangeError::Store(error)) => panic!("{error}"),
        };
        assert_eq!(made, model.make(step), "{step:?}");
    }
    model.compare(store).await;
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn memory_does_what_the_model_does(steps in prop::collection::vec(step(), 0..60)) {
        block_on(run(&MemoryStore::new(), &mut Model::new(), &steps));
    }
}

proptest! {
    // Each step waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_file_does_so_and_has_it_when_it_is_opened_again(
        steps in prop::collection::vec(step(), 0..30),
        later in prop::collection::vec(step(), 0..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names");
        let mut model = Model::new();
        block_on(run(&DiskStore::open(&path).unwrap(), &mut model, &steps));
        let again = DiskStore::open(&path).unwrap();
        block_on(model.compare(&again));
        block_on(run(&again, &mut model, &later));
    }
}

#[cfg(feature = "etcd")]
proptest! {
    // Each step waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(1))]

    #[test]
    fn a_cluster_does_so_and_another_server_sees_it(
        all in prop::collection::vec((prop::collection::vec(step(), 0..30), prop::collection::vec(step(), 0..8)), 12),
    ) {
        if crate::etcd::is_here() {
            block_on_threads(async {
                let cluster = crate::etcd::Cluster::start(1);
                for (number, (steps, later)) in all.iter().enumerate() {
                    let mut model = Model::new();
                    let store = crate::etcd::fresh_store(&cluster, number).await;
                    run(&store, &mut model, steps).await;
                    run(&store, &mut model, later).await;
                    // A store that reads everything at once.
                    model.compare(&crate::etcd::fresh_store(&cluster, number).await).await;
                }
            });
        }
    }
}

#[cfg(feature = "etcd")]
fn block_on_threads<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
