//! Type codes of generated types. `any`, `CORBA::TypeCode` and `Object` as members, parameters and results.

use crate::orbs::{activate, collocated, run};
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{ByteOrder, Version};
use idl_macros::idl;
use zorb::{Any, SystemException, TcKind, TypeCode, Typed};

idl! {
    typedef long RootLong;

    #pragma prefix "acme.com"

    module Types {
        typedef string<4> Code;
        typedef Code Codes[2][3];
        typedef sequence<Codes, 5> CodeLists;
        typedef RootLong Far;

        enum Color { RED, green, Bright_Blue };
        typedef Color Paint;
        struct Node;
        typedef sequence<Node> NodeSeq;
        struct Node { long v; NodeSeq kids; };
        struct Ping; struct Pong;
        struct Ping { sequence<Pong> pongs; };
        struct Pong { sequence<Ping> pings; Ping one; };

        struct All {
            boolean b; octet o; int8 i8; uint8 u8; short i16; unsigned short u16; long i32; unsigned long u32;
            long long i64; unsigned long long u64; float f32; double f64; long double f128; char c; wchar w;
            string s; wstring ws; wstring<3> w3; any a; CORBA::TypeCode t; Object obj; fixed<5, 2> f;
            Codes codes; sequence<octet> octets; long grid[2][3]; Paint paint; Far far;
        };

        union U switch (Paint) { case green: long g; case RED: case Bright_Blue: string rest; };
        union L switch (long) { case -3: case 1: default: any a; case 4: Object x; };
        union B switch (unsigned long long) { case 18446744073709551615: long top; };
        union C switch (char) { case 'a': octet a; };
        union W switch (wchar) { case 'x': octet a; };
        union F switch (boolean) { case FALSE: octet a; };

        exception Bad { string why; any detail; };
        exception Empty {};

        interface Thing;
        typedef Thing Stuff;
        struct Holder { Stuff thing; sequence<Thing> things; };

        @zero_copy struct Raw { long a; octet o; double d; };
        typedef sequence<Raw> Raws;

        interface Thing {
            typedef any Inner;
            struct Nested { Inner inner; };
            attribute any value;
            readonly attribute CORBA::TypeCode type;
            any echo(in any a, inout any b, out any c) raises (Bad);
            CORBA::TypeCode type_of(in any a, in CORBA::TypeCode fallback);
            Object self_as(in Object o, inout CORBA::TypeCode t);
            typedef sequence<any> Anys;
            Anys reversed(in Anys list);
        };
    };
}

use types::*;

#[test]
fn every_type_says_what_the_idl_says() {
    for (code, text) in [
        (
            All::type_code(),
            "struct Types::All { boolean b; octet o; octet i8; octet u8; short i16; unsigned short u16; long i32; \
             unsigned long u32; long long i64; unsigned long long u64; float f32; double f64; long double f128; \
             char c; wchar w; string s; wstring ws; wstring<3> w3; any a; CORBA::TypeCode t; CORBA::Object obj; \
             fixed<5, 2> f; Types::Codes codes; sequence<octet> octets; long[2][3] grid; Types::Paint paint; \
             Types::Far far; }",
        ),
        (Color::type_code(), "enum Types::Color { RED, green, Bright_Blue }"),
        (
            U::type_code(),
            "union Types::U switch (Types::Paint) { case green: long g; case RED: string rest; \
             case Bright_Blue: string rest; }",
        ),
        (
            L::type_code(),
            "union Types::L switch (long) { case -3: any a; case 1: any a; default: any a; case 4: CORBA::Object x; }",
        ),
        (
            B::type_code(),
            "union Types::B switch (unsigned long long) { case 18446744073709551615: long top; }",
        ),
        (C::type_code(), "union Types::C switch (char) { case 'a': octet a; }"),
        (W::type_code(), "union Types::W switch (wchar) { case 'x': octet a; }"),
        (F::type_code(), "union Types::F switch (boolean) { case FALSE: octet a; }"),
        (Bad::type_code(), "exception Types::Bad { string why; any detail; }"),
        (Empty::type_code(), "exception Types::Empty { }"),
        (ThingRef::type_code(), "interface Types::Thing"),
        (Holder::type_code(), "struct Types::Holder { Types::Stuff thing; sequence<Types::Thing> things; }"),
        (Raw::type_code(), "struct Types::Raw { long a; octet o; double d; }"),
        (thing::Nested::type_code(), "struct Types::Thing::Nested { Types::Thing::Inner inner; }"),
        (root_long_type_code(), "typedef long RootLong"),
        (far_type_code(), "typedef RootLong Types::Far"),
        (codes_type_code(), "typedef Types::Code[2][3] Types::Codes"),
        (code_lists_type_code(), "typedef sequence<Types::Codes, 5> Types::CodeLists"),
        (paint_type_code(), "typedef Types::Color Types::Paint"),
        (stuff_type_code(), "typedef Types::Thing Types::Stuff"),
        (raws_type_code(), "typedef sequence<Types::Raw> Types::Raws"),
        (thing::inner_type_code(), "typedef any Types::Thing::Inner"),
    ] {
        assert_eq!(code.to_string(), text);
    }
    assert_eq!(All::type_code().id(), Ok("IDL:acme.com/Types/All:1.0"));
    assert_eq!(root_long_type_code().id(), Ok("IDL:RootLong:1.0"));
    assert_eq!(Node::type_code().member_type(1).unwrap(), node_seq_type_code());
    assert_eq!(node_seq_type_code().content_type().unwrap().content_type().unwrap(), Node::type_code());
    let ping = Pong::type_code().member_type(1).unwrap();
    assert_eq!(ping, Ping::type_code());
    assert_eq!(ping.member_type(0).unwrap(), Vec::<Pong>::type_code());
    assert_eq!(U::type_code().default_index(), Ok(None));
    assert_eq!(L::type_code().default_index(), Ok(Some(2)));
    assert_eq!(Option::<ThingRef>::type_code(), ThingRef::type_code());
}

/// The same any after the wire, in both byte orders.
fn round_trip(any: &Any) -> Any {
    let mut all = [ByteOrder::Big, ByteOrder::Little].map(|order| {
        let mut e = Encoder::new(order, Version::V1_2);
        any.encode(&mut e).unwrap();
        let octets = e.into_bytes();
        let again = Any::decode(&mut Decoder::from_bytes(&octets, order, Version::V1_2)).unwrap();
        assert_eq!(&again, any);
        again
    });
    std::mem::take(&mut all[0])
}

#[test]
fn values_of_every_kind_go_in_and_come_out() {
    let node = Node { v: 1, kids: vec![Node { v: 2, kids: vec![] }, Node::default()] };
    assert_eq!(round_trip(&Any::new(&node).unwrap()).get::<Node>().unwrap(), node);
    let all = All {
        a: Any::new(&node).unwrap(),
        t: Pong::type_code(),
        f: "-1.25".parse().unwrap(),
        paint: Color::BrightBlue,
        octets: vec![1, 2, 3].into(),
        u64: u64::MAX,
        ws: "wide".into(),
        ..All::default()
    };
    let any = round_trip(&Any::new(&all).unwrap());
    let again: All = any.get().unwrap();
    assert_eq!(again, all);
    assert_eq!(again.a.get::<Node>().unwrap(), node);
    for u in [U::G(7), U::Rest(Color::Red, "r".into()), U::Rest(Color::BrightBlue, "b".into())] {
        assert_eq!(round_trip(&Any::new(&u).unwrap()).get::<U>().unwrap(), u);
    }
    for l in [L::A(1, Any::new("a").unwrap()), L::A(77, Any::default()), L::X(None)] {
        assert_eq!(round_trip(&Any::new(&l).unwrap()).get::<L>().unwrap(), l);
    }
    let bad = Bad { why: "no".into(), detail: Any::new(5_i32).unwrap() };
    assert_eq!(round_trip(&Any::new(&bad).unwrap()).get::<Bad>().unwrap(), bad);
    assert_eq!(round_trip(&Any::new(Empty).unwrap()).get::<Empty>().unwrap(), Empty);
    let raws: Raws = vec![Raw { a: 1, o: 2, d: 1.5, ..Raw::default() }; 3].into();
    let any = round_trip(&Any::with_type(&raws_type_code(), &raws).unwrap());
    assert_eq!(any.type_code().name(), Ok("Raws"));
    assert_eq!(any.get::<Raws>().unwrap(), raws);
    assert!(any.get::<Vec<Node>>().is_err());
    assert_eq!(Any::new(Color::Green).unwrap().type_code().kind(), TcKind::Enum);
}

#[derive(Default)]
struct Servant(std::sync::Mutex<Any>);

impl ThingServant for Servant {
    async fn value(&self) -> Result<Any, SystemException> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn set_value(&self, value: &Any) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = value.clone();
        Ok(())
    }

    async fn r#type(&self) -> Result<TypeCode, SystemException> {
        Ok(self.0.lock().unwrap().type_code().clone())
    }

    async fn echo(&self, a: &Any, b: Any) -> Result<(Any, Any, Any), thing::EchoError> {
        if let Ok(why) = a.get::<String>() {
            return Err(Bad { why, detail: b }.into());
        }
        Ok((a.clone(), Any::new(&b).unwrap(), b))
    }

    async fn type_of(&self, a: &Any, fallback: &TypeCode) -> Result<TypeCode, SystemException> {
        Ok(if a.type_code() == &TypeCode::NULL { fallback.clone() } else { a.type_code().clone() })
    }

    async fn self_as(
        &self,
        o: Option<zorb::ObjectRef>,
        t: TypeCode,
    ) -> Result<(Option<zorb::ObjectRef>, TypeCode), SystemException> {
        Ok((o, t.unaliased()))
    }

    async fn reversed(&self, list: &[Any]) -> Result<Vec<Any>, SystemException> {
        Ok(list.iter().rev().cloned().collect())
    }
}

#[test]
fn anys_and_type_codes_are_parameters_and_results() {
    let thing: ThingRef = activate(Servant::default());
    for thing in [collocated(&thing), thing] {
        run(async {
            let node = Any::new(Node { v: 5, kids: vec![] }).unwrap();
            thing.set_value(&node).await.unwrap();
            assert_eq!(thing.value().await.unwrap().get::<Node>().unwrap().v, 5);
            assert_eq!(thing.r#type().await.unwrap(), Node::type_code());
            let (a, b, c) = thing.echo(&node, Any::new(1_u8).unwrap()).await.unwrap();
            assert_eq!((a, c.get::<u8>().unwrap()), (node.clone(), 1));
            assert_eq!(b.get::<Any>().unwrap().get::<u8>().unwrap(), 1);
            let error = thing.echo(&Any::new("no").unwrap(), node.clone()).await.unwrap_err();
            let thing::EchoError::Bad(bad) = error else { panic!("{error:?}") };
            assert_eq!(bad, Bad { why: "no".into(), detail: node.clone() });
            let code = thing.type_of(&Any::default(), &codes_type_code()).await.unwrap();
            assert_eq!(code, codes_type_code());
            let (object, code) = thing.self_as(&thing, codes_type_code()).await.unwrap();
            assert!(object.is_some() && code.kind() == TcKind::Array);
            let list = [node.clone(), Any::new(2_i16).unwrap()];
            assert_eq!(thing.reversed(&list).await.unwrap(), [list[1].clone(), list[0].clone()]);
        });
    }
}
