//! Value types: their states, graphs of them in every position, their operations and factories.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use crate::orbs::{activate, collocated, run};
use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::typecode::{TypeCode, Typed, Visibility};
use giop_codec::value::CustomMarshal;
use giop_codec::value::{Factories, GraphBuilder, Value, ValueForm};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use giop_codec::{DecodeError, EncodeError};
use idl_macros::idl;
use zorb::{SystemException, ValueBase};

idl! {
    default_bodies("T::Lazy::*");

    module T {
        valuetype Base { public short b; };
        valuetype Derived : truncatable Base { public long d; };
        valuetype VB2 : Base { public long d; };
        valuetype Deepest : truncatable Derived { public string text; private long secret; };
        valuetype LNode { public long v; public LNode next; };
        valuetype Hdr { public long h; };
        valuetype TP : truncatable Hdr { public LNode a; public long mid; public LNode z; };

        valuetype Carrier : truncatable Base { public any what; public LNode more; };
        valuetype Empty { };
        valuetype Tree {
            struct Pair { Tree left; octet o; Base right; };
            typedef sequence<Tree> Forest;
            enum Kind { OAK, ELM };
            public string name;
            public Kind tree_kind;
            public Forest kids;
            public sequence<Pair> pairs;
            public ValueBase anything;
            public Tree ring[2];
            public sequence<Tree, 3> few;
            private Empty empty;
        };

        abstract valuetype Named { string title(); };
        abstract valuetype Loud : Named { string shout(in short times); };
        exception Silent { string why; };
        valuetype Dog : Base, Loud {
            public string called;
            attribute long age;
            Dog breed(in Dog other, inout Base base, out boolean ok) raises (Silent);
            factory make(in string called);
            factory cloned(in Dog of, in long times) raises (Silent);
        };
        valuetype Puppy : Dog { };
        valuetype Lazy : Named { public octet o; long size(); };
        valuetype Mute : Named { public octet o; };

        custom valuetype Raw : Base { public string text; public LNode inner; };
        valuetype RawChild : Raw { public long more; };

        valuetype Text string;
        valuetype Numbers sequence<long>;
        valuetype Nodes sequence<LNode>;
        valuetype Point struct PointValue { long x; long y; };
        typedef Text Alias;
        typedef LNode NodeAlias;
        typedef ValueBase AnyValue;

        union Either switch (boolean) { case TRUE: LNode node; case FALSE: Text text; };
        struct Holder { Alias text; NodeAlias node; AnyValue any_value; Either either; };
        exception Broken { LNode at; Holder holder; };

        interface Keeper {
            attribute LNode first;
            LNode echo(in LNode node);
            Holder hold(in Holder h, inout Nodes nodes, out Text text);
            boolean same(in LNode a, in ValueBase b, in NodeAlias c);
            void both(out LNode a, out LNode b);
            long count(in Tree::Forest forest) raises (Broken);
            oneway void tell(in Text text);
        };
    };
}

use t::*;

/// What a peer may send in place of a base.
fn all() -> Factories {
    let mut factories = Factories::default();
    factories.register::<Derived>();
    factories.register::<Vb2>();
    factories.register::<Deepest>();
    factories.register::<LNode>();
    factories.register::<Tp>();
    factories.register::<Tree>();
    factories.register::<Dog>();
    factories.register::<Puppy>();
    factories.register::<Raw>();
    factories.register::<RawChild>();
    factories.register::<Text>();
    factories.register::<Numbers>();
    factories.register::<Nodes>();
    factories.register::<Point>();
    factories
}

fn encoded(value: &impl CdrEncode, order: ByteOrder) -> Bytes {
    let mut e = Encoder::new(order, Version::V1_2);
    value.encode(&mut e).unwrap();
    e.into_bytes()
}

fn decoded<T: CdrDecode>(octets: &Bytes, order: ByteOrder, factories: &Factories) -> Result<T, DecodeError> {
    let mut d = Decoder::from_bytes(octets, order, Version::V1_2).with_context(factories);
    let value = T::decode(&mut d)?;
    assert_eq!(d.remaining(), 0);
    Ok(value)
}

/// Encodes and decodes in both orders; no cut decodes.
fn round_trip<T: CdrEncode + CdrDecode + PartialEq + Debug>(value: &T) {
    let factories = all();
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = encoded(value, order);
        assert!(octets.len() >= T::MIN_SIZE);
        assert_eq!(&decoded::<T>(&octets, order, &factories).unwrap(), value);
        for cut in 0..octets.len() {
            let mut d = Decoder::new(&octets[..cut], order, Version::V1_2).with_context(&factories);
            assert!(T::decode(&mut d).is_err(), "cut at {cut}");
        }
    }
}

fn hex(octets: &Bytes) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn node(v: i32, next: Option<Value<LNode>>) -> Option<Value<LNode>> {
    Some(Value::new(LNode { v, next }))
}

#[test]
fn octets_are_those_of_other_orbs() {
    let big = |value: &dyn Fn(&mut Encoder)| {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        value(&mut e);
        hex(&e.into_bytes())
    };
    let base = Value::new(Base { b: 5 });
    let derived = Value::new(Derived { base: Base { b: 5 }, d: 6 });
    assert_eq!(big(&|e| None::<Value<Base>>.encode(e).unwrap()), "00000000");
    assert_eq!(big(&|e| Some(base.clone()).encode(e).unwrap()), "7fffff000005");
    assert_eq!(
        big(&|e| Some(base.upcast::<ValueBase>()).encode(e).unwrap()),
        "7fffff020000000f49444c3a542f426173653a312e3000000005"
    );
    assert_eq!(big(&|e| Some(derived.clone()).encode(e).unwrap()), "7fffff000005000000000006");
    let other = Value::new(Vb2 { base: Base { b: 5 }, d: 6 });
    assert_eq!(
        big(&|e| Some(other.upcast::<Base>()).encode(e).unwrap()),
        "7fffff020000000e49444c3a542f5642323a312e3000000500000006"
    );
    assert_eq!(
        big(&|e| Some(derived.upcast::<Base>()).encode(e).unwrap()),
        "7fffff0e000000020000001249444c3a542f446572697665643a312e300000000000000f49444c3a542f426173653a312e\
         300000000000080005000000000006ffffffff"
    );
    assert_eq!(
        big(&|e| {
            Some(base.clone()).encode(e).unwrap();
            Some(base.clone()).encode(e).unwrap();
        }),
        "7fffff0000050000fffffffffffffff4"
    );
    let text = Some(Value::new(Text("hi".to_owned())));
    assert_eq!(big(&|e| text.encode(e).unwrap()), "7fffff0000000003686900");
    let tp = Tp { base: Hdr { h: 9 }, a: node(1, node(2, None)), mid: 10, z: node(3, None) };
    let tp = Some(Value::new(tp).upcast::<Hdr>());
    assert_eq!(
        hex(&encoded(&tp, ByteOrder::Little)),
        "0effff7f020000000d00000049444c3a542f54503a312e30000000000e00000049444c3a542f4864723a312e3000000004\
         000000090000000affff7f1000000049444c3a542f4c4e6f64653a312e300004000000010000000affff7fffffffffdcff\
         ffff080000000200000000000000feffffff040000000a0000000affff7fffffffffb8ffffff0800000003000000000000\
         00ffffffff"
    );
}

#[test]
fn every_state_comes_back_as_it_was() {
    let leaf = || Some(Value::new(Tree { name: "leaf".to_owned(), ..Tree::default() }));
    let tree = Tree {
        name: "root".to_owned(),
        tree_kind: tree::Kind::Elm,
        kids: vec![leaf(), None, leaf()],
        pairs: vec![
            tree::Pair { left: leaf(), o: 7, right: Some(Value::new(Derived::default()).upcast()) },
            tree::Pair::default(),
        ],
        anything: Some(Value::new(Numbers(vec![1, 2, 3].into())).upcast()),
        ring: [leaf(), None],
        few: vec![leaf()].try_into().unwrap(),
        empty: Some(Value::new(Empty)),
    };
    round_trip(&Some(Value::new(tree.clone())));
    round_trip(&Some(Value::new(tree.clone()).upcast::<ValueBase>()));
    round_trip(&vec![Some(Value::new(tree)), None]);
    round_trip(&node(1, node(2, None)));
    let deepest =
        Deepest { base: Derived { base: Base { b: 1 }, d: 2 }, text: "three".to_owned(), secret: 4 };
    round_trip(&Some(Value::new(deepest.clone())));
    round_trip(&Some(Value::new(deepest.clone()).upcast::<Derived>()));
    round_trip(&Some(Value::new(deepest).upcast::<Base>()));
    round_trip(&Some(Value::new(Nodes(vec![node(1, None), None]))));
    round_trip(&Some(Value::new(Point(PointValue { x: 1, y: 2 })).upcast::<ValueBase>()));
    round_trip(&Holder {
        text: Some(Value::new(Text("t".to_owned()))),
        node: node(3, None),
        any_value: None,
        either: Either::Text(None),
    });
    round_trip(&Either::Node(node(1, None)));
    round_trip(&None::<Value<Empty>>);
    assert_eq!(Holder::default().node, None);
}

#[test]
fn sharing_and_cycles_survive() {
    let mut graph = GraphBuilder::new();
    let first = graph.reserve::<LNode>();
    let second = graph.add(LNode { v: 2, next: Some(first.clone()) });
    assert!(graph.set(&first, LNode { v: 1, next: Some(second) }));
    let ring = Some(graph.finish(&first));
    round_trip(&ring);
    assert_eq!(hex(&encoded(&ring, ByteOrder::Big)), "7fffff00000000017fffff0000000002ffffffffffffffec");

    let shared = node(9, None);
    let forest = Tree {
        kids: vec![Some(Value::new(Tree {
            anything: shared.as_ref().map(Value::upcast),
            ..Tree::default()
        }))],
        anything: shared.as_ref().map(Value::upcast),
        ..Tree::default()
    };
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = encoded(&Some(Value::new(forest.clone())), order);
        let back = decoded::<Option<Value<Tree>>>(&octets, order, &all()).unwrap().unwrap();
        let kid = back.get().kids[0].clone().unwrap();
        assert!(kid.get().anything.as_ref().unwrap().is_same(back.get().anything.as_ref().unwrap()));
    }
}

#[test]
fn what_is_not_known_is_cut_to_a_base_or_refused() {
    let deepest = Deepest { base: Derived { base: Base { b: 1 }, d: 2 }, text: "gone".to_owned(), secret: 3 };
    let octets = encoded(&Some(Value::new(deepest).upcast::<Base>()), ByteOrder::Big);
    let mut some = Factories::default();
    let cut = |factories: &Factories| decoded::<Option<Value<Base>>>(&octets, ByteOrder::Big, factories);
    assert_eq!(cut(&some).unwrap().unwrap().repository_id(), Base::REPOSITORY_ID);
    some.register::<Derived>();
    let derived = cut(&some).unwrap().unwrap();
    assert_eq!(*derived.downcast::<Derived>().unwrap().get(), Derived { base: Base { b: 1 }, d: 2 });
    assert!(derived.downcast::<Deepest>().is_none());
    assert_eq!(cut(&all()).unwrap().unwrap().downcast::<Deepest>().unwrap().get().text, "gone");

    let octets = encoded(&Some(Value::new(Vb2::default()).upcast::<Base>()), ByteOrder::Big);
    let refused = decoded::<Option<Value<Base>>>(&octets, ByteOrder::Big, &Factories::default()).unwrap_err();
    assert_eq!(refused.kind, DecodeErrorKind::NoValueFactory);
    // Known, but not what the place wants.
    assert!(decoded::<Option<Value<LNode>>>(&octets, ByteOrder::Big, &all()).is_err());
}

impl NamedOps for Dog {
    fn title(&self) -> Result<String, SystemException> {
        Ok(self.called.clone())
    }
}

impl LoudOps for Dog {
    fn shout(&self, times: i16) -> Result<String, SystemException> {
        Ok(self.title()?.repeat(times.unsigned_abs().into()))
    }
}

impl DogOps for Dog {
    fn age(&self) -> Result<i32, SystemException> {
        Ok(self.base.b.into())
    }

    fn set_age(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn breed(
        &self,
        other: Option<Value<Dog>>,
        base: Option<Value<Base>>,
    ) -> Result<(Option<Value<Dog>>, Option<Value<Base>>, bool), dog::BreedError> {
        let Some(other) = other else { return Err(Silent { why: "alone".to_owned() }.into()) };
        let puppy = Dog { called: self.called.clone() + &other.get().called, ..Dog::default() };
        Ok((puppy.into(), base, true))
    }
}

impl DogFactory for Dog {
    fn make(called: &str) -> Result<Dog, SystemException> {
        Ok(Dog { called: called.to_owned(), ..Dog::default() })
    }

    fn cloned(of: Option<Value<Dog>>, times: i32) -> Result<Dog, dog::ClonedError> {
        let of = of.ok_or_else(|| Silent { why: times.to_string() })?;
        Ok(Dog::clone(&of.get()))
    }
}

impl NamedOps for Lazy {
    fn title(&self) -> Result<String, SystemException> {
        Ok("lazy".to_owned())
    }
}

impl LazyOps for Lazy {}

#[test]
fn operations_are_those_of_the_value_behind_a_handle() {
    let dog = Dog::make("Rex").unwrap();
    let kennel = [Value::new(dog).upcast::<Named>(), Value::new(Lazy::default()).upcast()];
    let titles =
        kennel.iter().map(|named| named.get().operations::<dyn NamedOps>().unwrap().title().unwrap());
    assert_eq!(titles.collect::<Vec<_>>(), ["Rex", "lazy"]);
    let [dog, lazy] = kennel;
    let base = dog.downcast::<Base>().unwrap();
    assert_eq!(base.get().operations::<dyn LoudOps>().unwrap().shout(2).unwrap(), "RexRex");
    assert!(lazy.get().operations::<dyn LoudOps>().is_none());
    assert!(lazy.downcast::<Base>().is_none() && lazy.downcast::<Named>().is_some());
    // An operation without a body of its own.
    assert!(lazy.get().operations::<dyn LazyOps>().unwrap().size().is_err());
    // These types have no implemented operations.
    assert!(Value::new(Mute::default()).get().operations::<dyn NamedOps>().is_none());
    let puppy = Value::new(Puppy::default());
    assert!(puppy.get().operations::<dyn DogOps>().is_none());
    assert_eq!(puppy.upcast::<Dog>().get().called, "");

    let rex = dog.downcast::<Dog>().unwrap();
    let (puppy, back, ok) = rex.get().breed(Some(rex.clone()), None).unwrap();
    assert_eq!((puppy.unwrap().get().called.as_str(), back, ok), ("RexRex", None, true));
    assert_eq!(rex.get().breed(None, None).unwrap_err().to_string(), "T::Silent: why \"alone\"");
    let failed = Dog::cloned(None, 3).unwrap_err();
    assert_eq!(failed, dog::ClonedError::Silent(Silent { why: "3".to_owned() }));
    assert_eq!(Dog::cloned(Some(rex.clone()), 1).unwrap(), *rex.get());
}

impl CustomMarshal for Raw {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.text.encode(e)?;
        self.inner.encode(e)?;
        e.put_u64(7);
        Ok(())
    }

    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.text = CdrDecode::decode(d)?;
        self.inner = CdrDecode::decode(d)?;
        Ok(())
    }
}

impl CustomMarshal for RawChild {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.base.marshal(e)?;
        self.more.encode(e)
    }

    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.base.unmarshal(d)?;
        let _ = d.read_u64()?;
        self.more = CdrDecode::decode(d)?;
        Ok(())
    }
}

#[test]
fn custom_values_are_written_by_their_author() {
    let raw = Raw { base: Base::default(), text: "raw".to_owned(), inner: node(1, None) };
    round_trip(&Some(Value::new(raw.clone())));
    round_trip(&Some(Value::new(raw.clone()).upcast::<Base>()));
    let child = Some(Value::new(RawChild { base: raw, more: 5 }).upcast::<Raw>());
    round_trip(&child);
    assert!(hex(&encoded(&child, ByteOrder::Big)).starts_with("7fffff0a"), "one id, in chunks");
}

#[derive(Default)]
struct Keeping {
    told: Mutex<Vec<String>>,
}

impl KeeperServant for Keeping {
    async fn first(&self) -> Result<Option<Value<LNode>>, SystemException> {
        Ok(node(1, None))
    }

    async fn set_first(&self, value: Option<Value<LNode>>) -> Result<(), SystemException> {
        assert_eq!(value.unwrap().get().v, 4);
        Ok(())
    }

    async fn echo(&self, node: Option<Value<LNode>>) -> Result<Option<Value<LNode>>, SystemException> {
        Ok(node)
    }

    async fn hold(
        &self,
        h: &Holder,
        nodes: Option<Value<Nodes>>,
    ) -> Result<(Holder, Option<Value<Nodes>>, Option<Value<Text>>), SystemException> {
        Ok((h.clone(), nodes, Text("out".to_owned()).into()))
    }

    async fn same(
        &self,
        a: Option<Value<LNode>>,
        b: Option<Value<ValueBase>>,
        c: Option<Value<NodeAlias>>,
    ) -> Result<bool, SystemException> {
        let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
        Ok(a.is_same(&b) && c.is_same(&a))
    }

    async fn both(&self) -> Result<(Option<Value<LNode>>, Option<Value<LNode>>), SystemException> {
        let one = node(1, None);
        Ok((one.clone(), one))
    }

    async fn count(&self, forest: &[Option<Value<Tree>>]) -> Result<i32, keeper::CountError> {
        if forest.is_empty() {
            return Err(Broken { at: node(7, None), holder: Holder::default() }.into());
        }
        Ok(forest.len() as i32)
    }

    async fn tell(&self, text: Option<Value<Text>>) -> Result<(), SystemException> {
        self.told.lock().unwrap().push(text.unwrap().get().0.clone());
        Ok(())
    }
}

#[test]
fn values_pass_every_position() {
    let servant = Arc::new(Keeping::default());
    let marshalled: KeeperRef = activate(Arc::clone(&servant));
    for keeper in [collocated(&marshalled), marshalled] {
        assert_eq!(run(keeper.first()).unwrap().unwrap().get().v, 1);
        let shared = Value::new(LNode { v: 4, next: None });
        run(keeper.set_first(&shared)).unwrap();
        run(keeper.set_first(LNode { v: 4, next: None })).unwrap();
        assert_eq!(run(keeper.echo(shared.clone())).unwrap(), Some(shared.clone()));
        assert_eq!(run(keeper.echo(None::<Value<LNode>>)).unwrap(), None);
        assert!(run(keeper.same(&shared, shared.upcast::<ValueBase>(), &shared)).unwrap());
        let (a, b) = run(keeper.both()).unwrap();
        assert!(a.unwrap().is_same(&b.unwrap()));
        let holder = Holder { node: Some(shared), ..Holder::default() };
        let (back, nodes, text) = run(keeper.hold(&holder, Nodes(vec![None]))).unwrap();
        assert_eq!((back, nodes.unwrap().get().0.len()), (holder, 1));
        assert_eq!(text.unwrap().get().0, "out");
        assert_eq!(run(keeper.count(&[None, Tree::default().into()])).unwrap(), 2);
        let Err(keeper::CountError::Broken(broken)) = run(keeper.count(&[])) else { panic!("Broken") };
        assert_eq!(broken.at.unwrap().get().v, 7);
        run(keeper.tell(Text::from("told".to_owned()))).unwrap();
        // The server serves the requests of a connection in order.
        run(keeper.both()).unwrap();
        assert_eq!(std::mem::take(&mut *servant.told.lock().unwrap()), ["told"]);
    }
}

#[test]
fn values_say_what_they_are() {
    let said = |code: TypeCode, text: &str| assert_eq!(code.to_string(), text);
    said(Derived::type_code(), "valuetype T::Derived : truncatable T::Base { public long d; }");
    said(Dog::type_code(), "valuetype T::Dog : T::Base { public string called; }");
    said(LNode::type_code(), "valuetype T::LNode { public long v; public T::LNode next; }");
    let raw = "custom valuetype T::Raw : T::Base { public string text; public T::LNode inner; }";
    said(Raw::type_code(), raw);
    said(Named::type_code(), "abstract valuetype T::Named { }");
    said(Nodes::type_code(), "valuetype T::Nodes sequence<T::LNode>");
    said(alias_type_code(), "typedef T::Text T::Alias");
    said(
        Holder::type_code(),
        "struct T::Holder { T::Alias text; T::NodeAlias node; T::AnyValue any_value; T::Either either; }",
    );
    assert_eq!(Deepest::type_code().member_visibility(1), Ok(Visibility::Private));
    assert!(Dog::type_code().concrete_base_type().unwrap().unwrap().equal(&Base::type_code()));
}

#[test]
fn values_pass_in_anys() {
    let shared = Value::new(LNode { v: 4, next: None });
    let holder = Holder {
        text: Text::from("boxed".to_owned()).into(),
        node: Some(shared.clone()),
        any_value: Some(shared.upcast()),
        either: Either::Node(Some(shared.clone())),
    };
    let deepest = Value::new(Deepest { text: "x".into(), ..Deepest::default() });
    let what = vec![Any::new(&holder).unwrap(), Any::new(deepest.upcast::<Base>()).unwrap()];
    let carrier = Carrier { base: Base { b: 1 }, what: Any::new(&what).unwrap(), more: Some(shared) };
    let carrier = Value::new(carrier);
    let any = Any::new(carrier.upcast::<Base>()).unwrap();
    let mut factories = all();
    factories.register::<Carrier>();
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let any: Any = decoded(&encoded(&any, order), order, &factories).unwrap();
        let value = any.get::<Option<Value<Base>>>().unwrap().unwrap();
        assert_eq!(value.downcast::<Carrier>().unwrap(), carrier);
        let out = value.downcast::<Carrier>().unwrap().get().what.get::<Vec<Any>>().unwrap();
        let out_holder = out[0].get::<Holder>().unwrap();
        assert_eq!(out_holder, holder);
        assert!(out_holder.node.unwrap().is_same(&out_holder.any_value.unwrap()));
        let out = out[1].get::<Option<Value<Base>>>().unwrap().unwrap();
        assert_eq!(out.downcast::<Deepest>().unwrap(), deepest);
        // A receiver that knows neither type gets the base.
        let cut: Any = decoded(&encoded(&any, order), order, &Factories::default()).unwrap();
        let base = cut.get::<Option<Value<Base>>>().unwrap().unwrap();
        assert_eq!((base.get().b, base.downcast::<Carrier>()), (1, None));
    }
}
