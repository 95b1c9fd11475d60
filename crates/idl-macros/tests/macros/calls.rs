//! Operations, attributes, exceptions and inheritance, each called with marshalling and without.

use std::future::Future;
use std::sync::{Arc, Mutex};

use crate::orbs::{activate, collocated, run};
use crate::raw::Connection;
use bytes::Bytes;
use giop_codec::ByteOrder;
use idl_macros::idl;
use zorb::{
    Bounded, CompletionStatus, MinorCode, ObjectRef, Reference, Seq, Serves, SystemException,
    SystemExceptionKind, WStr, WString,
};

idl! {
    module Shop {
        enum Color { RED, GREEN };
        struct Point { double x; double y; };
        union Value switch (boolean) { case TRUE: long number; case FALSE: string text; };
        typedef sequence<string> Names;
        typedef sequence<octet> Data;
        typedef sequence<long> Longs;
        typedef string<4> Code;
        typedef sequence<octet, 4> Digest;
        typedef sequence<string, 2> Few;
        typedef wstring<2> Wide;
        typedef boolean Bits[5000];
        typedef long Cell[2];

        exception Empty { };
        exception Refused { string why; long code; };
        module Other { exception Refused { long code; }; };
        exception System { };

        interface Callback;

        interface Base {
            exception Gone { };
            const long LIMIT = 7;
            readonly attribute long count;
            attribute string title;
            string greet(in string name) raises (Gone);
        };

        interface Everything : Base {
            void values(in boolean b, in long l, in Color c, in double d);
            string borrowed(in string s, in wstring w, in Names n, in Point p, in Value v, in Cell c);
            Data shared(in Data data, in Longs longs);
            string bounded(in Code s, in Digest d, in Few f, in Wide w);
            void bounded_back(inout Code s, inout Digest d, out Few f, out Wide w);
            boolean last(in Bits bits);
            void swap(inout string a, inout Point p, inout Data d, inout Callback c);
            long outs(in long a, out long b, inout long c);
            long many(out string b, out Point c, inout Names d);
            Callback reference(in Callback c, in Object o);
            oneway void note(in string text);
            void fail(in long how) raises (Empty, Refused, Other::Refused, System);
            attribute Point place getraises (Empty) setraises (Refused, Empty);
        };

        interface Second { long two(); };

        interface Callback : Everything, Second {
            long called(in long depth);
        };

        typedef Base Alias;
    };
}

use shop::everything::{FailError, ManyReply};
use shop::*;

#[derive(Default)]
struct Servant {
    title: Mutex<String>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl BaseServant for Servant {
    async fn count(&self) -> Result<i32, SystemException> {
        Ok(3)
    }

    async fn title(&self) -> Result<String, SystemException> {
        Ok(self.title.lock().unwrap().clone())
    }

    async fn set_title(&self, value: &str) -> Result<(), SystemException> {
        *self.title.lock().unwrap() = value.to_owned();
        Ok(())
    }

    async fn greet(&self, name: &str) -> Result<String, base::GreetError> {
        if name.is_empty() {
            return Err(base::Gone.into());
        }
        Ok(format!("hello {name}"))
    }
}

impl EverythingServant for Servant {
    async fn values(&self, b: bool, l: i32, c: Color, d: f64) -> Result<(), SystemException> {
        assert_eq!((b, l, c, d), (true, -1, Color::Green, 0.5));
        Ok(())
    }

    async fn borrowed(
        &self,
        s: &str,
        w: WStr<'_>,
        n: &[String],
        p: &Point,
        v: &Value,
        c: &[i32; 2],
    ) -> Result<String, SystemException> {
        Ok(format!("{s} {w} {n:?} {p:?} {v:?} {c:?}"))
    }

    async fn shared(&self, data: Bytes, longs: Seq<i32>) -> Result<Bytes, SystemException> {
        assert_eq!(longs, [1, 2]);
        Ok(data)
    }

    async fn bounded(&self, s: &str, d: Bytes, f: &[String], w: WStr<'_>) -> Result<String, SystemException> {
        Ok(format!("{s} {d:?} {f:?} {w}"))
    }

    async fn bounded_back(
        &self,
        s: Code,
        d: Bounded<Bytes, 4>,
    ) -> Result<everything::BoundedBackReply, SystemException> {
        let w = Bounded::<WString, 2>::try_from("w").unwrap();
        Ok(everything::BoundedBackReply { s, d, f: Bounded::<Vec<String>, 2>::default(), w })
    }

    async fn last(&self, bits: &[bool; 5000]) -> Result<bool, SystemException> {
        Ok(bits[4999])
    }

    async fn swap(
        &self,
        a: String,
        p: Point,
        d: Bytes,
        c: Option<CallbackRef>,
    ) -> Result<everything::SwapReply, SystemException> {
        Ok(everything::SwapReply { a: a + "!", p: Point { x: p.y, y: p.x }, d, c })
    }

    async fn outs(&self, a: i32, c: i32) -> Result<(i32, i32, i32), SystemException> {
        Ok((a, a + 1, c + 2))
    }

    async fn many(&self, d: Names) -> Result<ManyReply, SystemException> {
        Ok(ManyReply { result: 1, b: String::from("b"), c: Point::default(), d })
    }

    async fn reference(
        &self,
        c: Option<CallbackRef>,
        o: Option<ObjectRef>,
    ) -> Result<Option<CallbackRef>, SystemException> {
        assert!(o.is_none());
        match c {
            // A call inside of a call.
            Some(c) => Ok((c.called(1).await? == 2).then_some(c)),
            None => Ok(None),
        }
    }

    async fn note(&self, text: &str) -> Result<(), SystemException> {
        self.notes.lock().unwrap().push(text.to_owned());
        Ok(())
    }

    async fn fail(&self, how: i32) -> Result<(), FailError> {
        match how {
            0 => Ok(()),
            1 => Err(Empty.into()),
            2 => Err(Refused { why: String::from("no"), code: 2 }.into()),
            3 => Err(other::Refused { code: 3 }.into()),
            4 => Err(System.into()),
            _ => Err(no_memory().into()),
        }
    }

    async fn place(&self) -> Result<Point, everything::PlaceError> {
        Err(Empty.into())
    }

    async fn set_place(&self, value: &Point) -> Result<(), everything::SetPlaceError> {
        if value.x < 0.0 { Err(Refused { why: String::from("left"), code: 0 }.into()) } else { Ok(()) }
    }
}

impl SecondServant for Servant {
    async fn two(&self) -> Result<i32, SystemException> {
        Ok(2)
    }
}

impl CallbackServant for Servant {
    async fn called(&self, depth: i32) -> Result<i32, SystemException> {
        Ok(depth + 1)
    }
}

fn no_memory() -> SystemException {
    SystemException::no_memory().with_minor(MinorCode(5)).completed(CompletionStatus::Maybe)
}

/// Runs the test with both ways of calling.
fn both<F: Future<Output = ()>>(test: impl Fn(CallbackRef) -> F) {
    let remote: CallbackRef = activate(Servant::default());
    run(test(remote.clone()));
    run(test(collocated(&remote)));
}

#[test]
fn arguments_of_all_forms_arrive() {
    both(|object| async move {
        object.values(true, -1, Color::Green, 0.5).await.unwrap();
        let names = [String::from("n")];
        let text = object
            .borrowed("s", "é", &names, &Point { x: 1.0, y: 2.0 }, &Value::Number(3), &[4, 5])
            .await
            .unwrap();
        assert_eq!(text, "s é [\"n\"] Point { x: 1.0, y: 2.0 } Number(3) [4, 5]");
        assert_eq!(object.shared(vec![7_u8], vec![1, 2]).await.unwrap(), [7][..]);
        assert_eq!(object.shared(Bytes::from_static(b"x"), [1, 2]).await.unwrap(), b"x"[..]);
        let mut bits = Box::new([false; 5000]);
        bits[4999] = true;
        assert!(object.last(&bits).await.unwrap());
    });
}

#[test]
fn bounded_arguments_are_plain_and_checked_before_they_are_sent() {
    both(|object| async move {
        let few = [String::from("f")];
        let text = object.bounded("abcd", &b"wxyz"[..], &few, "w").await.unwrap();
        assert_eq!(text, "abcd b\"wxyz\" [\"f\"] w");
        let refused = |result: Result<String, SystemException>| {
            let error = result.unwrap_err();
            assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
            std::error::Error::source(&error).unwrap().to_string()
        };
        let long = vec![String::new(); 3];
        assert_eq!(
            refused(object.bounded("abcde", Bytes::new(), &[], "").await),
            "argument `s` has 5 characters, but its bound is 4"
        );
        assert_eq!(
            refused(object.bounded("", &b"12345"[..], &[], "").await),
            "argument `d` has 5 bytes, but its bound is 4"
        );
        assert_eq!(
            refused(object.bounded("", Bytes::new(), &long, "").await),
            "argument `f` has 3 elements, but its bound is 2"
        );
        // One character, two UTF-16 units, and a third.
        assert_eq!(
            refused(object.bounded("", Bytes::new(), &[], "\u{1F600}x").await),
            "argument `w` has 3 UTF-16 units, but its bound is 2"
        );
        let code = Code::try_from("in").unwrap();
        let digest = Digest::try_from(Bytes::from_static(b"d")).unwrap();
        let reply = object.bounded_back(code, digest).await.unwrap();
        let texts: (&str, &str) = (&reply.s, reply.w.as_str().unwrap());
        assert_eq!((texts, &reply.d[..], reply.f.len()), (("in", "w"), &b"d"[..], 0));
    });
}

#[test]
fn results_are_a_value_a_tuple_or_a_struct() {
    both(|object| async move {
        assert_eq!(object.count().await.unwrap(), 3);
        assert_eq!(object.outs(1, 5).await.unwrap(), (1, 2, 7));
        let reply: ManyReply = object.many(vec![String::from("d")]).await.unwrap();
        assert_eq!((reply.result, &*reply.b, reply.d.len()), (1, "b", 1));
        let reply =
            object.swap(String::from("a"), Point { x: 1.0, y: 2.0 }, vec![1_u8], &object).await.unwrap();
        assert_eq!((&*reply.a, reply.p.x, &reply.d[..], reply.c.is_some()), ("a!", 2.0, &[1][..], true));
    });
}

#[test]
fn references_go_in_and_come_back_also_nil() {
    both(|object| async move {
        let back = object.reference(&object, None).await.unwrap().unwrap();
        assert_eq!(back, object);
        assert_eq!(back.called(9).await.unwrap(), 10);
        assert!(object.reference(None, None).await.unwrap().is_none());
        assert!(object.reference(Some(object.clone()), None).await.unwrap().is_some());
    });
}

#[test]
fn attributes_have_a_getter_and_a_setter_with_their_own_errors() {
    both(|object| async move {
        object.set_title("t").await.unwrap();
        assert_eq!(object.title().await.unwrap(), "t");
        assert_eq!(object.place().await, Err(everything::PlaceError::Empty(Empty)));
        object.set_place(&Point::default()).await.unwrap();
        let error = object.set_place(&Point { x: -1.0, y: 0.0 }).await.unwrap_err();
        assert_eq!(error.to_string(), "Shop::Refused: why \"left\", code 0");
    });
}

#[test]
fn exceptions_arrive_as_variants_and_alike_or_reserved_ones_take_their_scope() {
    both(|object| async move {
        object.fail(0).await.unwrap();
        assert_eq!(object.fail(1).await, Err(FailError::Empty(Empty)));
        assert!(matches!(object.fail(2).await, Err(FailError::ShopRefused(Refused { code: 2, .. }))));
        assert!(matches!(object.fail(3).await, Err(FailError::OtherRefused(other::Refused { code: 3 }))));
        assert!(matches!(object.fail(4).await, Err(FailError::ShopSystem(System))));
        assert_eq!(object.fail(5).await, Err(FailError::System(no_memory())));
    });
}

#[test]
fn errors_become_system_exceptions_with_their_cause() {
    let system = SystemException::from(FailError::Empty(Empty));
    assert_eq!(system.kind, SystemExceptionKind::Unknown);
    let cause = std::error::Error::source(&system).unwrap();
    assert!(cause.is::<FailError>() && cause.to_string() == "Shop::Empty");
    assert_eq!(SystemException::from(FailError::System(no_memory())), no_memory());
    let boxed: Box<dyn std::error::Error + Send + Sync> = FailError::System(no_memory()).into();
    assert_eq!(boxed.to_string(), no_memory().to_string());
}

#[test]
fn oneways_are_sent_and_served() {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let object: EverythingRef = activate(Servant { notes: Arc::clone(&notes), ..Servant::default() });
    run(object.note("one")).unwrap();
    // The server serves the requests of a connection in order.
    run(object.count()).unwrap();
    run(collocated(&object).note("two")).unwrap();
    assert_eq!(*notes.lock().unwrap(), ["one", "two"]);
}

#[test]
fn a_reference_has_inherited_operations_and_converts_into_every_base() {
    both(|object| async move {
        assert_eq!(object.two().await.unwrap(), 2);
        assert_eq!(object.greet("you").await.unwrap(), "hello you");
        assert_eq!(object.greet("").await, Err(callback::GreetError::Gone(callback::Gone)));
        assert_eq!(callback::LIMIT, base::LIMIT);
        let everything: EverythingRef = (&object).into();
        let base: BaseRef = everything.clone().into();
        assert_eq!(base.greet("me").await.unwrap(), "hello me");
        let second: SecondRef = object.clone().into();
        assert_eq!(second.two().await.unwrap(), 2);
        let untyped: ObjectRef = (&base).into();
        assert_eq!(&untyped, object.as_object());
        let optional: Option<BaseRef> = (&object).into();
        assert_eq!(optional, Some(base));
    });
}

#[test]
fn generic_clients_use_the_traits() {
    async fn greet(object: &impl Base) -> Result<String, base::GreetError> {
        object.greet("generic").await
    }
    async fn both_bases<C: Callback>(object: &C) -> i32 {
        let data = object.shared(vec![1_u8], [1, 2]).await.unwrap();
        object.two().await.unwrap() + data.len() as i32 + object.called(1).await.unwrap()
    }
    both(|object| async move {
        assert_eq!(greet(&object).await.unwrap(), "hello generic");
        assert_eq!(both_bases(&object).await, 5);
    });
}

#[test]
fn an_arc_of_a_servant_is_a_servant() {
    let servant = Arc::new(Servant::default());
    let object: CallbackRef = activate(Arc::clone(&servant));
    run(object.set_title("shared")).unwrap();
    run(collocated(&object).set_title("also")).unwrap();
    assert_eq!(*servant.title.lock().unwrap(), "also");
}

#[test]
fn a_typedef_of_an_interface_has_all_its_names() {
    struct Mine;
    impl AliasServant for Mine {
        async fn count(&self) -> Result<i32, SystemException> {
            Ok(1)
        }
        async fn title(&self) -> Result<String, SystemException> {
            Ok(String::new())
        }
        async fn set_title(&self, _: &str) -> Result<(), SystemException> {
            Ok(())
        }
        async fn greet(&self, _: &str) -> Result<String, alias::GreetError> {
            Err(alias::Gone.into())
        }
    }
    fn alias(object: &impl Alias) -> i32 {
        run(object.count()).unwrap()
    }
    let object: AliasRef = activate(Mine);
    assert_eq!(alias(&object), 1);
    let same: BaseRef = object;
    assert_eq!(run(same.greet("x")), Err(base::GreetError::Gone(base::Gone)));
}

#[test]
fn repository_ids_are_listed_from_the_most_derived() {
    assert_eq!(CallbackRef::REPOSITORY_ID, "IDL:Shop/Callback:1.0");
    let ids = ["Callback", "Second", "Everything", "Base"].map(|name| format!("IDL:Shop/{name}:1.0"));
    assert_eq!(CallbackRef::skeleton(Servant::default()).repository_ids(), ids);
    let object: CallbackRef = activate(Servant::default());
    let error = Connection::open(&object).call("no_such", ByteOrder::NATIVE, &[]).unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::BadOperation);
}

#[test]
fn operations_are_found_by_their_wire_names() {
    let object: CallbackRef = activate(Servant::default());
    let mut connection = Connection::open(&object);
    let mut call = |operation| connection.call(operation, ByteOrder::NATIVE, &[]);
    for operation in ["_get_count", "_get_title", "two"] {
        assert!(call(operation).is_ok(), "{operation}");
    }
    for operation in ["count", "_set_count", "Two", "tw", ""] {
        assert_eq!(call(operation).unwrap_err().kind, SystemExceptionKind::BadOperation, "{operation}");
    }
}

#[test]
fn arguments_that_do_not_decode_are_marshal_errors() {
    let object: CallbackRef = activate(Servant::default());
    let mut connection = Connection::open(&object);
    for operation in ["values", "borrowed", "bounded", "outs", "_set_title", "note"] {
        let error = connection.call(operation, ByteOrder::NATIVE, &[0xff; 5]).unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::Marshal, CompletionStatus::No),
            "{operation}"
        );
    }
}

#[test]
fn futures_of_calls_can_be_sent_to_other_threads() {
    fn is_send<T: Send>(_: &T) {}
    let object: CallbackRef = activate(Servant::default());
    is_send(&object.shared(vec![1_u8], [1]));
    is_send(&object.borrowed("", "", &[], &Point::default(), &Value::default(), &[0, 0]));
    is_send(&object.swap(String::new(), Point::default(), Bytes::new(), &object));
    is_send(&Everything::reference(&object, None, &object));
}
