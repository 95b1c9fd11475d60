//! Value types between two ORBs and within one: sharing is preserved, unknown types are truncated or
//! rejected.

use std::sync::Mutex;

use test_support::transport;
use zorb::values::GraphBuilder;
use zorb::{CompletionStatus, Orb, SystemException, SystemExceptionKind, Value, ValueBase};

zorb::idl! {
    module Zoo {
        valuetype Animal { public string name; private long age; };
        valuetype Bird : truncatable Animal { public double span; public Animal friend; };
        valuetype Fish : Animal { public long depth; };
        valuetype Link { public long number; public Link next; };
        typedef sequence<Animal> Animals;
        valuetype Note string;
        exception Escaped { Animal who; Note why; };
        struct Cage { Animals inside; ValueBase sign; };

        interface Keeper {
            Animal echo(in Animal animal);
            ValueBase any_value(in ValueBase value);
            Animals all(in Animals animals, inout Link first, out Link last);
            boolean same(in Animal a, in ValueBase b, in Cage cage);
            void free(in Animal animal) raises (Escaped);
            long length(in Link list);
            attribute Note note;
            oneway void feed(in Animal animal);
            Fish fish();
        };
    };
}

use zoo::*;

#[derive(Default)]
struct Servant {
    note: Mutex<Option<Value<Note>>>,
    fed: Mutex<Vec<String>>,
}

impl KeeperServant for Servant {
    async fn echo(&self, animal: Option<Value<Animal>>) -> Result<Option<Value<Animal>>, SystemException> {
        Ok(animal)
    }

    async fn any_value(
        &self,
        value: Option<Value<ValueBase>>,
    ) -> Result<Option<Value<ValueBase>>, SystemException> {
        Ok(value)
    }

    async fn all(
        &self,
        animals: &[Option<Value<Animal>>],
        first: Option<Value<Link>>,
    ) -> Result<(Vec<Option<Value<Animal>>>, Option<Value<Link>>, Option<Value<Link>>), SystemException> {
        let last = first.as_ref().and_then(|first| first.get().next.clone());
        Ok((animals.iter().rev().cloned().collect(), first, last))
    }

    async fn same(
        &self,
        a: Option<Value<Animal>>,
        b: Option<Value<ValueBase>>,
        cage: &Cage,
    ) -> Result<bool, SystemException> {
        let (a, b) = (a.unwrap(), b.unwrap());
        let inside =
            cage.inside.iter().all(|animal| animal.as_ref().is_some_and(|animal| animal.is_same(&a)));
        Ok(a.is_same(&b) && inside && cage.sign.as_ref().is_some_and(|sign| sign.is_same(&b)))
    }

    async fn free(&self, animal: Option<Value<Animal>>) -> Result<(), keeper::FreeError> {
        let why = Some(Value::new(Note("open".to_owned())));
        Err(Escaped { who: animal, why }.into())
    }

    async fn length(&self, list: Option<Value<Link>>) -> Result<i32, SystemException> {
        let (mut length, mut next) = (0, list);
        while let Some(link) = next {
            length += 1;
            next = link.get().next.clone();
        }
        Ok(length)
    }

    async fn note(&self) -> Result<Option<Value<Note>>, SystemException> {
        Ok(self.note.lock().unwrap().clone())
    }

    async fn set_note(&self, value: Option<Value<Note>>) -> Result<(), SystemException> {
        *self.note.lock().unwrap() = value;
        Ok(())
    }

    async fn feed(&self, animal: Option<Value<Animal>>) -> Result<(), SystemException> {
        self.fed.lock().unwrap().push(animal.unwrap().get().name.clone());
        Ok(())
    }

    async fn fish(&self) -> Result<Option<Value<Fish>>, SystemException> {
        Ok(Fish { base: animal("fish"), depth: 3 }.into())
    }
}

fn animal(name: &str) -> Animal {
    Animal { name: name.to_owned(), age: 4 }
}

fn bird(name: &str) -> Bird {
    Bird { base: animal(name), span: 0.5, friend: animal("friend").into() }
}

/// Returns a reference with marshalled calls, and one with direct calls.
async fn keepers(server: zorb::OrbBuilder, client: zorb::OrbBuilder) -> (Vec<KeeperRef>, Vec<Orb>) {
    let server = server.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = client.build().await.unwrap();
    let local: KeeperRef = server.activate(Servant::default()).unwrap();
    let remote: KeeperRef = client.resolve(&local.to_string()).await.unwrap();
    (vec![remote, local], vec![server, client])
}

#[tokio::test]
async fn values_come_as_they_were_in_every_position() {
    let known = || {
        transport::builder()
            .register_value_type::<Bird>()
            .register_value_type::<Fish>()
            .register_value_type::<Link>()
            .register_value_type::<Note>()
    };
    let (keepers, orbs) = keepers(known(), known()).await;
    for keeper in keepers {
        assert_eq!(keeper.echo(None::<Value<Animal>>).await.unwrap(), None);
        let bird = Value::new(bird("wren"));
        let back = keeper.echo(bird.upcast::<Animal>()).await.unwrap().unwrap();
        assert_eq!(back.downcast::<Bird>().unwrap(), bird);
        let back = keeper.any_value(bird.upcast::<ValueBase>()).await.unwrap().unwrap();
        assert_eq!(back.downcast::<Bird>().unwrap().get().friend.as_ref().unwrap().get().name, "friend");

        let animals = [Some(bird.upcast()), None, Some(Value::new(animal("ant")))];
        let chain = Value::new(Link { number: 1, next: Link { number: 2, next: None }.into() });
        let (all, first, last) = keeper.all(&animals, &chain).await.unwrap();
        assert!(all.iter().rev().eq(&animals));
        let (first, last) = (first.unwrap(), last.unwrap());
        assert!(first == chain && first.get().next.as_ref().unwrap().is_same(&last));

        let one = Value::new(animal("one"));
        let cage = Cage { inside: vec![Some(one.clone()), Some(one.clone())], sign: Some(one.upcast()) };
        assert!(keeper.same(&one, one.upcast::<ValueBase>(), &cage).await.unwrap());

        let error = keeper.free(&one).await.unwrap_err();
        let keeper::FreeError::Escaped(escaped) = error else { panic!("{error}") };
        assert_eq!((escaped.who, escaped.why.unwrap().get().0.as_str()), (Some(one), "open"));

        keeper.set_note(Note("closed".to_owned())).await.unwrap();
        assert_eq!(keeper.note().await.unwrap().unwrap().get().0, "closed");
        keeper.set_note(None::<Value<Note>>).await.unwrap();
        assert_eq!(keeper.note().await.unwrap(), None);
        keeper.feed(animal("cat")).await.unwrap();
        assert_eq!(keeper.fish().await.unwrap().unwrap().get().depth, 3);
    }
    drop(orbs);
}

#[tokio::test]
async fn circles_and_long_chains_pass() {
    let (keepers, orbs) = keepers(transport::builder(), transport::builder()).await;
    for keeper in keepers {
        let mut graph = GraphBuilder::new();
        let first = graph.reserve::<Link>();
        let second = graph.add(Link { number: 2, next: Some(first.clone()) });
        assert!(graph.set(&first, Link { number: 1, next: Some(second) }));
        let ring = graph.finish(&first);
        let (_, first, last) = keeper.all(&[], &ring).await.unwrap();
        let (first, last) = (first.unwrap(), last.unwrap());
        assert!(first.get().next.as_ref().unwrap().is_same(&last));
        assert!(last.get().next.as_ref().unwrap().is_same(&first));

        let mut list = None;
        for number in 0..50_000 {
            list = Link { number, next: list }.into();
        }
        assert_eq!(keeper.length(list).await.unwrap(), 50_000);
    }
    drop(orbs);
}

#[tokio::test]
async fn types_that_a_receiver_does_not_know_are_cut_or_refused() {
    let (keepers, orbs) = keepers(
        transport::builder(),
        transport::builder().register_value_type::<Bird>().register_value_type::<Fish>(),
    )
    .await;
    let keeper = &keepers[0];
    let back = keeper.echo(Value::new(bird("wren")).upcast::<Animal>()).await.unwrap().unwrap();
    assert_eq!((back.repository_id(), back.get().name.as_str()), ("IDL:Zoo/Animal:1.0", "wren"));
    let fish = Value::new(Fish::default());
    let error = keeper.echo(fish.upcast::<Animal>()).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::No));
    assert_eq!(error.minor, zorb::minor::MARSHAL_NO_VALUE_FACTORY);
    // The connection remains usable.
    assert_eq!(keeper.echo(None::<Value<Animal>>).await.unwrap(), None);
    let error = keeper.any_value(fish.upcast::<ValueBase>()).await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::Marshal);
    drop(orbs);
}
