//! All four pairs: compiled and dynamic callers and servants, over the same operations.

use std::sync::Arc;

use zorb::dynamic::{Interface, Request};
use zorb::prelude::*;
use zorb::testing::{Pair, pair};
use zorb::{Context, Servant};

use super::meter::{ByName, Compiled, DivideError, Kept, MeterRef, Reading, Refused, interface, reading};

/// Returns a servant of either kind, as its client sees it.
pub(crate) async fn served(orbs: &Pair, dynamic: bool) -> (ObjectRef, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let here = match dynamic {
        true => {
            let servant = Servant::dynamic(interface(), ByName(Arc::clone(&kept)));
            orbs.server.activation().activate_erased(servant).unwrap()
        }
        false => {
            let meter: MeterRef = orbs.server.activate(Compiled(Arc::clone(&kept))).unwrap();
            meter.as_object().clone()
        }
    };
    (orbs.client.resolve_unchecked(&here.to_string()).await.unwrap(), kept)
}

fn context() -> Context {
    Context::new().with("user", "ann").with("net.host", "h1").with("secret", "x")
}

fn unsorted() -> Vec<Reading> {
    vec![reading(9), reading(-3), reading(4)]
}

async fn call_typed(meter: &MeterRef) {
    assert_eq!(meter.title().await.unwrap(), "meter");
    assert_eq!(meter.mean(1, 2, 6.0).await.unwrap(), 3.0);
    assert_eq!(meter.divide(6.0, 4.0, 7).await.unwrap(), (1.5, "6/4".to_owned(), 8));
    match meter.divide(1.0, 0.0, 7).await {
        Err(DivideError::Refused(refused)) => assert_eq!(refused.code, 7),
        other => panic!("{other:?}"),
    }
    let sorted = meter.sorted(&unsorted()).await.unwrap();
    assert_eq!(sorted, [reading(-3), reading(4), reading(9)]);
    meter.set_level(-5).await.unwrap();
    assert_eq!(meter.level().await.unwrap(), -5);
    meter.note("typed;").await.unwrap();
    assert_eq!(meter.other(meter.as_object().clone()).await.unwrap().as_ref(), Some(meter.as_object()));
    assert_eq!(meter.other(None).await.unwrap(), None);
    let any = Any::new(unsorted()).unwrap();
    assert_eq!(meter.kept(&any).await.unwrap(), any);
    assert_eq!(meter.who("hello", &context()).await.unwrap(), "hello net.host=h1 user=ann");
    let bulk = Bytes::from(vec![7; 300_000]);
    assert_eq!(meter.bulk(bulk.clone()).await.unwrap(), bulk);
    assert!(meter.is_a(MeterRef::REPOSITORY_ID).await.unwrap());
}

async fn call_described(meter: &ObjectRef, interface: &Interface) {
    let of = |name| Request::of(meter, interface, name).unwrap();
    let title = of("_get_title").invoke().await.unwrap();
    assert_eq!(title.get::<String>().unwrap(), "meter");
    let mean = of("mean").with("a", 1).unwrap().with("b", 2_u64).unwrap().with("c", 6.0).unwrap();
    assert_eq!(mean.invoke().await.unwrap().get::<f64>().unwrap(), 3.0);

    let divide = of("divide").with("a", 6.0).unwrap().with("count", 7).unwrap();
    let quotient = divide.clone().with("b", 4.0).unwrap().invoke().await.unwrap();
    assert_eq!(quotient.get::<f64>().unwrap(), 1.5);
    assert_eq!(quotient.outputs.iter().map(|out| &*out.name).collect::<Vec<_>>(), ["remark", "count"]);
    assert_eq!(quotient.out::<String>("remark").unwrap(), "6/4");
    assert_eq!(quotient.out::<i32>("count").unwrap(), 8);
    let refused = divide.with("b", 0.0).unwrap().invoke().await.unwrap_err();
    assert_eq!(refused.get(), Some(Refused { why: "zero".to_owned(), code: 7 }));

    let sorted = of("sorted").with("given", unsorted()).unwrap().invoke().await.unwrap();
    assert_eq!(sorted.get::<Vec<Reading>>().unwrap(), [reading(-3), reading(4), reading(9)]);
    of("_set_level").with("value", -5).unwrap().invoke().await.unwrap();
    assert_eq!(of("_get_level").invoke().await.unwrap().get::<i32>().unwrap(), -5);
    // A oneway with its interface: nothing is awaited.
    let noted = of("note").with("text", "dynamic;".to_owned()).unwrap().invoke().await.unwrap();
    assert_eq!(noted, zorb::dynamic::DynamicReply::default());
    let other = of("other").with("given", meter.clone()).unwrap().invoke().await.unwrap();
    assert_eq!(other.get::<ObjectRef>().unwrap(), *meter);
    let any = Any::new(unsorted()).unwrap();
    let kept = of("kept").with("given", any.clone()).unwrap().invoke().await.unwrap();
    assert_eq!(kept.get::<Any>().unwrap(), any);
    let who = of("who").with("greeting", "hello".to_owned()).unwrap().context(&context());
    assert_eq!(who.invoke().await.unwrap().get::<String>().unwrap(), "hello net.host=h1 user=ann");
    let bulk = Bytes::from(vec![7; 300_000]);
    let echoed = of("bulk").with("data", bulk.clone()).unwrap().invoke().await.unwrap();
    assert_eq!(echoed.get::<Bytes>().unwrap(), bulk);
    let is_a = Request::new(meter, "_is_a").input("id", "IDL:Metering/Base:1.0".to_owned()).unwrap();
    assert!(is_a.returns(TypeCode::BOOLEAN).invoke().await.unwrap().get::<bool>().unwrap());
}

#[tokio::test]
async fn results_of_dynamic_and_compiled_calls_and_servants_are_equal() {
    let interface = interface();
    for dynamic in [false, true] {
        let orbs = pair();
        let (meter, kept) = served(&orbs, dynamic).await;
        call_typed(&MeterRef::from_object(meter.clone())).await;
        call_described(&meter, &interface).await;
        let notes = Request::new(&meter, "notes").returns(TypeCode::string(0)).invoke().await.unwrap();
        assert_eq!(notes.get::<String>().unwrap(), "typed;dynamic;");
        assert_eq!(*kept.notes.lock().unwrap(), "typed;dynamic;");
    }
}

#[tokio::test]
async fn a_dynamic_servant_in_the_same_process_is_called_like_any_other() {
    let orbs = pair();
    let servant = Servant::dynamic(interface(), ByName(Arc::default()));
    let here = orbs.server.activation().activate_erased(servant).unwrap();
    assert_eq!(here.ior().type_id, MeterRef::REPOSITORY_ID);
    let typed: MeterRef = here.narrow().await.unwrap();
    call_typed(&typed).await;
    call_described(&here, &interface()).await;
    assert!(orbs.server.deactivate(&here));
    let gone = typed.title().await.unwrap_err();
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
}

#[tokio::test]
async fn a_compiled_servant_in_the_same_process_is_called_dynamically() {
    let orbs = pair();
    let here: MeterRef = orbs.server.activate(Compiled(Arc::default())).unwrap();
    call_described(here.as_object(), &interface()).await;
}
