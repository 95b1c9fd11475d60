//! Abstract interfaces: handles to objects and values, in every position, and calls of both.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex};

use crate::orbs::{Orbs, run};
use crate::raw::{self, Connection};
use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::typecode::{TcKind, Typed};
use giop_codec::value::{CustomMarshal, Factories, GraphBuilder, Value, ValueForm};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};
use idl_macros::idl;
use zorb::{Abstract, AbstractReference, Reference, Seq, SystemException, SystemExceptionKind, ValueBase};

idl! {
    non_nil("A::Strict::*");

    module A {
        exception Odd { string why; };
        abstract interface Described {
            enum Tone { LOW, HIGH };
            string describe(in Tone tone);
        };
        abstract interface Sized : Described {
            attribute long size;
            long resize(in long by, inout string note, out boolean grown) raises (Odd);
            typedef sequence<long> Longs; void four(in Longs a, out long b, out long c, out long d, out long e);
            oneway void hint(in string<4> text);
        };
        abstract interface Lonely { };
        typedef Described Alias;

        interface Plain : Sized { void plain(); };
        interface Both : Plain, Lonely { };

        valuetype Label supports Described { public string text; };
        valuetype Brick : Label supports Sized {
            public long size_of;
            public Described other;
            public sequence<Described> others;
            public Alias again;
        };
        abstract valuetype Form supports Lonely { };
        valuetype Shell : Form supports Plain { public octet o; };
        valuetype Mute supports Described { };
        valuetype Stranger { public octet o; };
        valuetype Wrap Described;
        custom valuetype Raw supports Described { public Described inner; };

        struct Holder { Described one; Alias two; sequence<Sized> many; Sized pair[2]; };
        union Either switch (boolean) { case TRUE: Described some; case FALSE: long none; };
        exception Refused { Described what; };

        interface Strict { Described same(in Described d); };
        interface Keeper {
            attribute Described kept;
            Described echo(in Described a, inout Sized b, out Described c) raises (Refused);
            Holder hold(in Holder h);
            Either either(in Either e);
            string ask(in Alias d);
            Lonely lone(in Lonely l);
            typedef sequence<Described> All; long count(in All all);
        };
    };
}

use a::*;

/// ORBs that know all value types.
static ORBS: LazyLock<Orbs> = LazyLock::new(|| {
    Orbs::new(|builder| {
        builder
            .register_value_type::<Label>()
            .register_value_type::<Brick>()
            .register_value_type::<Shell>()
            .register_value_type::<Mute>()
            .register_value_type::<Stranger>()
            .register_value_type::<Wrap>()
            .register_value_type::<Raw>()
    })
});

/// The same value types, for decoders without an ORB.
static FACTORIES: LazyLock<Factories> = LazyLock::new(|| {
    let mut factories = Factories::default();
    factories.register::<Label>();
    factories.register::<Brick>();
    factories.register::<Shell>();
    factories.register::<Mute>();
    factories.register::<Stranger>();
    factories.register::<Wrap>();
    factories.register::<Raw>();
    factories
});

fn encoded(value: &impl CdrEncode, order: ByteOrder) -> Bytes {
    let mut e = Encoder::new(order, Version::V1_2);
    value.encode(&mut e).unwrap();
    e.into_bytes()
}

/// Encodes and decodes in both orders; no cut decodes.
fn round_trip<T: CdrEncode + CdrDecode + PartialEq + Debug>(value: &T) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = encoded(value, order);
        assert!(octets.len() >= T::MIN_SIZE);
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).with_context(&*FACTORIES);
        assert_eq!(&T::decode(&mut d).unwrap(), value);
        assert_eq!(d.remaining(), 0);
        for cut in 0..octets.len() {
            let mut d = Decoder::new(&octets[..cut], order, Version::V1_2).with_context(&*FACTORIES);
            assert!(T::decode(&mut d).is_err(), "cut at {cut}");
        }
    }
}

impl DescribedOps for Label {
    fn describe(&self, tone: described::Tone) -> Result<String, SystemException> {
        Ok(format!("label {} {tone:?}", self.text))
    }
}

impl LabelOps for Label {}

impl DescribedOps for Brick {
    fn describe(&self, tone: described::Tone) -> Result<String, SystemException> {
        self.base.describe(tone).map(|text| format!("brick of {text}"))
    }
}

impl SizedOps for Brick {
    fn size(&self) -> Result<i32, SystemException> {
        Ok(self.size_of)
    }

    fn set_size(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn resize(&self, by: i32, note: String) -> Result<(i32, String, bool), sized::ResizeError> {
        if by == 0 {
            return Err(Odd { why: note }.into());
        }
        Ok((self.size_of + by, note, by > 0))
    }

    fn four(&self, a: Seq<i32>) -> Result<sized::FourReply, SystemException> {
        Ok(sized::FourReply { b: a[0], c: a[1], d: a[2], e: a[3] })
    }

    fn hint(&self, text: &str) -> Result<(), SystemException> {
        assert_eq!(text, "four");
        Ok(())
    }
}

/// An object of `Both`.
#[derive(Default)]
struct Thing {
    hints: Mutex<Vec<String>>,
}

impl DescribedServant for Thing {
    async fn describe(&self, tone: described::Tone) -> Result<String, SystemException> {
        Ok(format!("thing {tone:?}"))
    }
}

impl SizedServant for Thing {
    async fn size(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    async fn set_size(&self, value: i32) -> Result<(), SystemException> {
        assert_eq!(value, 5);
        Ok(())
    }

    async fn resize(&self, by: i32, note: String) -> Result<(i32, String, bool), sized::ResizeError> {
        if by == 0 {
            return Err(Odd { why: note }.into());
        }
        Ok((7 + by, note, by > 0))
    }

    async fn four(&self, a: Seq<i32>) -> Result<sized::FourReply, SystemException> {
        Ok(sized::FourReply { b: a[0], c: a[1], d: a[2], e: a[3] })
    }

    async fn hint(&self, text: &str) -> Result<(), SystemException> {
        self.hints.lock().unwrap().push(text.to_owned());
        Ok(())
    }
}

impl PlainServant for Thing {
    async fn plain(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl LonelyServant for Thing {}

impl BothServant for Thing {}

fn thing() -> BothRef {
    ORBS.activate(Thing::default())
}

fn label(text: &str) -> Label {
    Label { text: text.to_owned() }
}

fn brick(size: i32) -> Brick {
    Brick { base: label("b"), size_of: size, ..Brick::default() }
}

#[test]
fn a_handle_calls_what_it_holds() {
    let servant = Arc::new(Thing::default());
    let object: BothRef = ORBS.activate(Arc::clone(&servant));
    let handles = [
        (SizedRef::from(&object), "thing Low"),
        (SizedRef::from(ORBS.collocated(&object)), "thing Low"),
        (SizedRef::from(brick(7)), "brick of label b Low"),
    ];
    for (sized, said) in handles {
        assert_eq!(run(sized.describe(described::Tone::Low)).unwrap(), said);
        assert_eq!(run(sized.size()).unwrap(), 7);
        run(sized.set_size(5)).unwrap();
        assert_eq!(run(sized.resize(-1, "n".to_owned())).unwrap(), (6, "n".to_owned(), false));
        let error = run(sized.resize(0, "zero".to_owned())).unwrap_err();
        assert_eq!(error, sized::ResizeError::Odd(Odd { why: "zero".to_owned() }));
        let reply = run(sized.four(vec![1, 2, 3, 4])).unwrap();
        assert_eq!(reply, sized::FourReply { b: 1, c: 2, d: 3, e: 4 });
        run(sized.hint("four")).unwrap();
        // What is too long reaches neither.
        assert_eq!(run(sized.hint("fives")).unwrap_err().kind, SystemExceptionKind::BadParam);
        let described: DescribedRef = sized.into();
        assert_eq!(run(described.describe(described::Tone::Low)).unwrap(), said);
        // Generic client code, for whatever has the operations.
        assert_eq!(run(tell(&described)).unwrap(), said);
    }
    // Calls of the loop after `hint` show that it was served.
    assert_eq!(*servant.hints.lock().unwrap(), ["four", "four"]);
    assert_eq!(run(tell(&object)).unwrap(), "thing Low");
}

async fn tell(described: &impl Described) -> Result<String, SystemException> {
    described.describe(described::Tone::Low).await
}

#[test]
fn a_value_whose_author_implements_nothing_says_so() {
    let mute = DescribedRef::from(Mute);
    let error = run(mute.describe(described::Tone::High)).unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::NoImplement);
    assert!(Value::new(Mute).get().operations::<dyn DescribedOps>().is_none());
}

#[test]
fn a_handle_says_what_it_holds() {
    let (object, value) = (thing(), Value::new(label("x")));
    let from_object = DescribedRef::from(&object);
    assert_eq!(from_object.as_object(), Some(object.as_object()));
    assert!(from_object.as_value().is_none() && from_object.downcast::<Label>().is_none());
    assert_eq!(DescribedRef::from_object(object.clone()), from_object);

    let from_value = DescribedRef::from(&value);
    assert!(from_value.as_object().is_none());
    assert!(from_value.as_value().unwrap().is_same(&value));
    assert!(from_value.downcast::<Label>().unwrap().is_same(&value));
    assert!(from_value.downcast::<Brick>().is_none());
    let base = from_value.as_value().unwrap().upcast::<ValueBase>();
    assert!(base.is_same(&value) && base.repository_id() == Label::REPOSITORY_ID);
    assert_ne!(from_value, from_object);
    assert_eq!(from_value, DescribedRef::from(label("x")));
    match from_value.as_abstract() {
        Abstract::Value(held) => assert!(held.is_same(&value)),
        Abstract::Object(_) => panic!("a value"),
    }
    assert!(format!("{from_value:?}").starts_with("DescribedRef(Value("));
    assert_eq!(<DescribedRef as AbstractReference>::REPOSITORY_ID, "IDL:A/Described:1.0");
    // Another name of it.
    let alias: AliasRef = from_value;
    assert!(AliasOps::describe(&*alias.downcast::<Label>().unwrap().get(), described::Tone::Low).is_ok());

    // A value that supports an interface which derives from abstract ones, or a base of which supports one.
    let shell = Value::new(Shell::default());
    assert!(SizedRef::from(&shell).downcast::<Shell>().is_some());
    assert!(LonelyRef::from(shell.upcast::<Form>()).downcast::<Shell>().is_some());
}

#[test]
fn octets_are_a_boolean_and_a_reference_or_a_value() {
    let hex = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    assert_eq!(hex(&encoded(&None::<DescribedRef>, ByteOrder::Big)), "0000000000000000");
    let value = Some(DescribedRef::from(label("hi")));
    assert_eq!(
        hex(&encoded(&value, ByteOrder::Big)),
        "000000007fffff020000001049444c3a412f4c6162656c3a312e300000000003686900"
    );
    let object = thing();
    let octets = encoded(&Some(DescribedRef::from(&object)), ByteOrder::Little);
    assert_eq!(hex(&octets[..4]), "01000000");
    assert_eq!(octets[4..], encoded(&Some(object), ByteOrder::Little));
}

#[test]
fn what_is_held_comes_back_in_every_type() {
    let (object, brick) = (thing(), Value::new(brick(3)));
    let (keeper, strict): (KeeperRef, StrictRef) = (ORBS.activate(Keeping), ORBS.activate(Keeping));
    round_trip(&None::<DescribedRef>);
    raw::round_trip(&strict, "same", &DescribedRef::from(&object));
    round_trip(&Some(SizedRef::from(&brick)));
    // Where it is never nil.
    round_trip(&DescribedRef::from(&brick));
    let holder = Holder {
        one: (&brick).into(),
        two: (&object).into(),
        many: vec![None, (&brick).into(), object.clone().into()],
        pair: [(&brick).into(), None],
    };
    raw::round_trip(&keeper, "hold", &holder);
    assert_eq!(Holder::default().pair, [None, None]);
    round_trip(&Either::Some(Label::default().into()));
    raw::round_trip(&keeper, "either", &Either::Some(object.clone().into()));
    round_trip(&Refused { what: brick.clone().into() });
    round_trip(&Some(Value::new(Wrap(label("in").into()))));
    // In the state of a value, with what is around it shared.
    let mut graph = GraphBuilder::new();
    let first = graph.reserve::<Brick>();
    let second =
        graph.add(Brick { other: (&first).into(), others: vec![(&first).into(), None], ..Brick::default() });
    let state = Brick {
        other: (&second).into(),
        others: vec![(&object).into(), (&second).into(), (&first).into()],
        again: label("last").into(),
        ..Brick::default()
    };
    assert!(graph.set(&first, state));
    let ring = graph.finish(&first);
    raw::round_trip(&strict, "same", &DescribedRef::from(&ring));
    let back = run(strict.same(&ring)).unwrap().downcast::<Brick>().unwrap();
    assert!(back == ring && format!("{back:?}") == format!("{ring:?}"));
    let second = back.get().other.clone().unwrap().downcast::<Brick>().unwrap();
    assert!(second.get().other.as_ref().unwrap().as_value().unwrap().is_same(&back));
    assert!(back.get().others[2].as_ref().unwrap().as_value().unwrap().is_same(&back));
}

/// A chain through members of abstract type is as long as one of values may be.
#[test]
fn chains_through_handles_need_no_stack() {
    let mut last = brick(0);
    for size in 1..20_000 {
        let next = match size % 2 {
            0 => Brick { other: last.into(), ..brick(size) },
            _ => Brick { others: vec![last.into()], ..brick(size) },
        };
        last = next;
    }
    let octets = encoded(&Some(DescribedRef::from(last)), ByteOrder::Big);
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2).with_context(&*FACTORIES);
    let back = Option::<DescribedRef>::decode(&mut d).unwrap().unwrap();
    assert_eq!(back, back.clone());
    let (mut length, mut next) = (0, Some(back));
    while let Some(brick) = next.and_then(|next| next.downcast::<Brick>()) {
        length += 1;
        let brick = brick.get();
        next = brick.other.clone().or_else(|| brick.others.first()?.clone());
    }
    assert_eq!(length, 20_000);
}

#[test]
fn what_does_not_support_the_interface_is_refused() {
    let decode = |octets: &Bytes| {
        let mut d = Decoder::from_bytes(octets, ByteOrder::Big, Version::V1_2).with_context(&*FACTORIES);
        Option::<SizedRef>::decode(&mut d)
    };
    for value in [Value::new(Stranger::default()).upcast::<ValueBase>(), Value::new(label("l")).upcast()] {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        e.put_bool(false);
        Some(value).encode(&mut e).unwrap();
        assert_eq!(decode(&e.into_bytes()).unwrap_err().kind, DecodeErrorKind::NoValueFactory);
    }
    // A boolean that is none; a value without an id; one that refers to something else.
    assert!(decode(&Bytes::from_static(&[2, 0, 0, 0, 0, 0, 0, 0])).is_err());
    assert!(decode(&Bytes::from_static(&[0, 0, 0, 0, 0x7f, 0xff, 0xff, 0])).is_err());
    let mut d = Decoder::new(&[0; 8], ByteOrder::Big, Version::V1_2);
    assert_eq!(DescribedRef::decode(&mut d).unwrap_err().kind, DecodeErrorKind::NilReference);
}

struct Keeping;

impl KeeperServant for Keeping {
    async fn kept(&self) -> Result<Option<DescribedRef>, SystemException> {
        Ok(label("kept").into())
    }

    async fn set_kept(&self, value: Option<DescribedRef>) -> Result<(), SystemException> {
        assert_eq!(value, None);
        Ok(())
    }

    async fn echo(
        &self,
        a: Option<DescribedRef>,
        b: Option<SizedRef>,
    ) -> Result<(Option<DescribedRef>, Option<SizedRef>, Option<DescribedRef>), keeper::EchoError> {
        if a.is_none() {
            return Err(Refused { what: b.map(DescribedRef::from) }.into());
        }
        Ok((a.clone(), b, a))
    }

    async fn hold(&self, h: &Holder) -> Result<Holder, SystemException> {
        Ok(h.clone())
    }

    async fn either(&self, e: &Either) -> Result<Either, SystemException> {
        Ok(e.clone())
    }

    async fn ask(&self, d: Option<AliasRef>) -> Result<String, SystemException> {
        match d {
            Some(described) => described.describe(described::Tone::High).await,
            None => Ok("nothing".to_owned()),
        }
    }

    async fn lone(&self, l: Option<LonelyRef>) -> Result<Option<LonelyRef>, SystemException> {
        Ok(l)
    }

    async fn count(&self, all: &[Option<DescribedRef>]) -> Result<i32, SystemException> {
        Ok(all.iter().flatten().count() as i32)
    }
}

impl StrictServant for Keeping {
    async fn same(&self, d: DescribedRef) -> Result<DescribedRef, SystemException> {
        Ok(d)
    }
}

#[test]
fn handles_pass_every_position() {
    let marshalled: KeeperRef = ORBS.activate(Keeping);
    let object = thing();
    for keeper in [ORBS.collocated(&marshalled), marshalled] {
        assert_eq!(run(keeper.kept()).unwrap(), label("kept").into());
        run(keeper.set_kept(None::<DescribedRef>)).unwrap();
        // A reference, a handle, a value, a state: each is what a method takes.
        let brick = Value::new(brick(2));
        let (a, b, c) = run(keeper.echo(&object, &brick)).unwrap();
        assert_eq!((a.clone(), b), (Some(DescribedRef::from(&object)), Some(SizedRef::from(&brick))));
        assert_eq!(a, c);
        let (a, b, c) = run(keeper.echo(DescribedRef::from(&brick), object.clone())).unwrap();
        assert_eq!(b, Some(SizedRef::from(&object)));
        let (a, c) = (a.unwrap(), c.unwrap());
        assert!(a.as_value().unwrap().is_same(c.as_value().unwrap()), "shared in one message");
        for refused in [SizedRef::from(&brick), SizedRef::from(&object)] {
            let error = run(keeper.echo(None::<DescribedRef>, refused.clone())).unwrap_err();
            let keeper::EchoError::Refused(Refused { what }) = error else { panic!("{error}") };
            assert_eq!(what, Some(DescribedRef::from(refused)));
        }

        let holder = Holder { one: (&brick).into(), two: (&object).into(), ..Holder::default() };
        assert_eq!(run(keeper.hold(&holder)).unwrap(), holder);
        assert_eq!(run(keeper.either(&Either::None(3))).unwrap(), Either::None(3));
        assert_eq!(run(keeper.ask(&object)).unwrap(), "thing High");
        assert_eq!(run(keeper.ask(label("l"))).unwrap(), "label l High");
        assert_eq!(run(keeper.ask(brick)).unwrap(), "brick of label b High");
        assert_eq!(run(keeper.ask(None::<AliasRef>)).unwrap(), "nothing");
        let shell = run(keeper.lone(Shell { o: 9 })).unwrap().unwrap();
        assert_eq!(shell.downcast::<Shell>().unwrap().get().o, 9);
        assert_eq!(run(keeper.lone(&object)).unwrap(), Some(LonelyRef::from(&object)));
        assert_eq!(run(keeper.count(&[None, Mute.into(), (&object).into()])).unwrap(), 2);
    }
    let strict: StrictRef = ORBS.activate(Keeping);
    let nil = Connection::open(&strict).call("same", ByteOrder::NATIVE, &[0; 8]).unwrap_err();
    assert_eq!(nil.kind, SystemExceptionKind::InvObjref);
    for strict in [ORBS.collocated(&strict), strict] {
        let handle = DescribedRef::from(&object);
        assert_eq!(run(strict.same(&handle)).unwrap(), handle);
        assert_eq!(run(strict.same(label("l"))).unwrap(), label("l").into());
    }
}

#[test]
fn type_codes_say_abstract_interface() {
    assert_eq!(DescribedRef::type_code().kind(), TcKind::AbstractInterface);
    assert_eq!(DescribedRef::type_code().id(), Ok("IDL:A/Described:1.0"));
    let holder = Holder::type_code().to_string();
    assert!(holder.starts_with("struct A::Holder { A::Described one; A::Alias two;"), "{holder}");
    // In an any, too.
    let object = DescribedRef::from(thing());
    let any = Any::new(Some(object.clone())).unwrap();
    assert_eq!(any.get::<Option<DescribedRef>>().unwrap(), Some(object));
    let any = Any::new(Some(DescribedRef::from(label("kept")))).unwrap();
    let kept = any.get::<Option<DescribedRef>>().unwrap();
    assert_eq!(kept, Some(label("kept").into()));
    let nil = Any::new(None::<SizedRef>).unwrap();
    assert_eq!(nil.get::<Option<SizedRef>>().unwrap(), None);
}

impl CustomMarshal for Raw {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.inner.encode(e)
    }

    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.inner = CdrDecode::decode(d)?;
        Ok(())
    }
}

#[test]
fn authors_write_handles_as_other_values() {
    let raw = |inner| Value::new(Raw { inner: Raw { inner }.into() });
    round_trip(&Some(raw(label("l").into())));
    let strict: StrictRef = ORBS.activate(Keeping);
    raw::round_trip(&strict, "same", &DescribedRef::from(raw(thing().into())));
}
