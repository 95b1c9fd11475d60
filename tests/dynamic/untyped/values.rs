//! Value types, boxes and abstract interfaces in dynamic calls and servants.

use zorb::dynamic::{DynServant, Dynamic, DynamicException, Interface, Request, ServerRequest};
use zorb::prelude::*;
use zorb::testing::{Pair, pair};
use zorb::{GraphBuilder, Servant, Value};

zorb::idl! {
    module Zoo {
        valuetype Link { public long number; public Link next; };
        valuetype Animal { public string name; };
        valuetype Bird : truncatable Animal { public double span; public Animal friend; };
        valuetype Note string;
        typedef sequence<Animal> Animals;
        struct Cage { Animals inside; Link chain; };
        exception Escaped { Animal who; Note why; };
        interface Keeper {
            // The result is a, b becomes what follows it, c tells how many there are.
            Link turned(in Link a, inout Link b, out Note c);
            Cage opened(in Cage given);
            Animal freed(in Animal given) raises (Escaped);
        };
    };
}

use zoo::*;

struct Compiled;

impl KeeperServant for Compiled {
    async fn turned(
        &self,
        a: Option<Value<Link>>,
        b: Option<Value<Link>>,
    ) -> Result<(Option<Value<Link>>, Option<Value<Link>>, Option<Value<Note>>), SystemException> {
        let next = b.and_then(|b| b.get().next.clone());
        Ok((a, next, Some(Value::new(Note("two".to_owned())))))
    }

    async fn opened(&self, given: &Cage) -> Result<Cage, SystemException> {
        Ok(given.clone())
    }

    async fn freed(&self, given: Option<Value<Animal>>) -> Result<Option<Value<Animal>>, keeper::FreedError> {
        match &given {
            Some(_) => Ok(given),
            None => {
                Err(Escaped { who: Some(animal("who")), why: Some(Value::new(Note("open".to_owned()))) }
                    .into())
            }
        }
    }
}

/// The same with value trees.
struct ByTrees;

impl DynServant for ByTrees {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let tree = |name: &str| -> Result<Dynamic, SystemException> {
            let value = request.arguments().named(name).and_then(|argument| argument.value.clone());
            Ok(value.unwrap_or_default().to_dynamic()?)
        };
        match request.operation() {
            "turned" => {
                let (a, mut b) = (tree("a")?, tree("b")?);
                b.value = b.at("next")?.1;
                request.set("b", Any::from_dynamic(&b)?)?;
                request.set_result(Any::from_dynamic(&a)?);
                Ok(request.with("c", Some(Value::new(Note("two".to_owned()))))?)
            }
            "freed" if tree("given")?.value == zorb::dynamic::Value::Node(None) => {
                let escaped = Dynamic::default_of(&Escaped::type_code())?;
                let escaped = zorb::dynamic::DynAny::from(escaped);
                let of = |at| {
                    escaped.seek(at)?;
                    escaped.current_component()?.unwrap().as_value()
                };
                of(0)?.set_to_value()?;
                of(0)?.insert_string("who".to_owned())?;
                of(1)?.set_to_value()?;
                of(1)?.insert_string("open".to_owned())?;
                Err(DynamicException::User(escaped.to_any()?))
            }
            _ => {
                let given = tree("given")?;
                request.set_result(Any::from_dynamic(&given)?);
                Ok(request)
            }
        }
    }
}

fn animal(name: &str) -> Value<Animal> {
    Value::new(Animal { name: name.to_owned() })
}

fn bird() -> Bird {
    let base = Animal { name: "bird".to_owned() };
    Bird { base, span: 0.5, friend: Some(animal("friend")) }
}

fn ring() -> Option<Value<Link>> {
    let mut graph = GraphBuilder::new();
    let first = graph.reserve::<Link>();
    let second = graph.add(Link { number: 2, next: Some(first.clone()) });
    assert!(graph.set(&first, Link { number: 1, next: Some(second) }));
    Some(graph.finish(&first))
}

fn is_ring(link: &Option<Value<Link>>, number: i32) {
    let link = link.as_ref().unwrap();
    assert_eq!(link.get().number, number);
    let next = link.get().next.clone().unwrap();
    assert_eq!(next.get().number, 3 - number);
    assert!(next.get().next.as_ref().unwrap().is_same(link));
}

async fn served(orbs: &Pair, dynamic: bool) -> KeeperRef {
    let here = match dynamic {
        true => {
            let servant = Servant::dynamic(Interface::of::<KeeperRef>(), ByTrees);
            orbs.server.activation().activate_erased(servant).unwrap()
        }
        false => orbs.server.activate::<KeeperRef, _>(Compiled).unwrap().as_object().clone(),
    };
    orbs.client.resolve_unchecked(&here.to_string()).await.unwrap()
}

async fn call_typed(keeper: &KeeperRef) {
    let (a, b, c) = keeper.turned(ring(), ring()).await.unwrap();
    is_ring(&a, 1);
    is_ring(&b, 2);
    assert_eq!(c.unwrap().get().0, "two");
    let one = animal("one");
    let cage = Cage { inside: vec![Some(one.clone()), None, Some(one)], chain: ring() };
    let opened = keeper.opened(&cage).await.unwrap();
    assert_eq!(opened, cage);
    assert!(opened.inside[0].as_ref().unwrap().is_same(opened.inside[2].as_ref().unwrap()));
    // The server does not know the type of birds.
    let freed = keeper.freed(Some(Value::new(bird()).upcast())).await.unwrap().unwrap();
    assert_eq!(freed, animal("bird"));
    match keeper.freed(None).await {
        Err(keeper::FreedError::Escaped(escaped)) => {
            assert_eq!((escaped.who, escaped.why.unwrap().get().0.as_str()), (Some(animal("who")), "open"));
        }
        other => panic!("{other:?}"),
    }
}

async fn call_by_name(keeper: &KeeperRef) {
    let interface = Interface::of::<KeeperRef>();
    let of = |name| Request::of(keeper, &interface, name).unwrap();
    let turned = of("turned").with("a", ring()).unwrap().with("b", ring()).unwrap().invoke().await.unwrap();
    is_ring(&turned.get().unwrap(), 1);
    is_ring(&turned.out("b").unwrap(), 2);
    assert_eq!(turned.out::<Option<Value<Note>>>("c").unwrap().unwrap().get().0, "two");
    let tree = turned.result.to_dynamic().unwrap();
    assert_eq!(tree.to_string(), "->0 { number: 1, next: ->1 { number: 2, next: ->0 } }");
    let escaped = of("freed").with("given", None::<Value<Animal>>).unwrap().invoke().await.unwrap_err();
    assert_eq!(escaped.get::<Escaped>().unwrap().who, Some(animal("who")));
    // A tree of a type that only the sender knows: it is truncated by the receiver.
    let mut tree = Any::new(Some(Value::new(bird()))).unwrap().to_dynamic().unwrap();
    tree.code = Animal::type_code();
    let mut freed = of("freed");
    freed.set("given", Any::from_dynamic(&tree).unwrap()).unwrap();
    assert_eq!(freed.invoke().await.unwrap().get::<Option<Value<Animal>>>().unwrap(), Some(animal("bird")));
}

#[cfg(feature = "serde")]
async fn call_with_json(keeper: &KeeperRef) {
    let interface = Interface::of::<KeeperRef>();
    let call = async |operation: &str, arguments: &str| {
        let answered = keeper.as_object().call_json(&interface, operation, arguments).await;
        answered.unwrap_or_else(|error| format!("! {}", error.to_json().unwrap()))
    };
    let ring = r#"{"$id":0,"number":1,"next":{"number":2,"next":{"$ref":0}}}"#;
    let link = |id: u32, number: u32, next: &str| {
        format!(r#"{{"$id":{id},"$type":"IDL:Zoo/Link:1.0","number":{number},"next":{next}}}"#)
    };
    let (first, second) = (link(1, 2, r#"{"$ref":0}"#), link(1, 1, r#"{"$ref":0}"#));
    assert_eq!(
        call("turned", &format!(r#"{{"a":{ring},"b":{ring}}}"#)).await,
        format!(
            r#"{{"$result":{},"b":{},"c":{{"$id":0,"$type":"IDL:Zoo/Note:1.0","value":"two"}}}}"#,
            link(0, 1, &first),
            link(0, 2, &second)
        )
    );
    assert_eq!(
        call("freed", r#"{"given":null}"#).await,
        r#"! {"$exception":"IDL:Zoo/Escaped:1.0","who":{"$id":0,"$type":"IDL:Zoo/Animal:1.0","name":"who"},"why":{"$id":1,"$type":"IDL:Zoo/Note:1.0","value":"open"}}"#
    );
    assert_eq!(
        call("opened", r#"{"given":{"inside":[null],"chain":null}}"#).await,
        r#"{"$result":{"inside":[null],"chain":null}}"#
    );
}

#[tokio::test]
async fn graphs_pass_between_all_pairs_of_callers_and_servants() {
    for dynamic in [false, true] {
        let orbs = pair();
        let keeper = served(&orbs, dynamic).await;
        call_typed(&keeper).await;
        call_by_name(&keeper).await;
        #[cfg(feature = "serde")]
        call_with_json(&keeper).await;
    }
}
