//! Graphs of values as trees: decoding and encoding, paths of their parts, and hostile data.

use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::dynamic::program::Program;
use giop_codec::dynamic::{DynAny, DynError, DynErrorKind, Dynamic, Items, Value as Part, ValueNode};
use giop_codec::typecode::{TypeCode, Typed, ValueModifier, Visibility};

use super::*;

/// Anys with graphs of every kind.
pub(super) fn graphs() -> Vec<Any> {
    let derived = Value::new(Derived { base: Base { b: 1 }, d: 2 });
    let tp = Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: list(1) };
    let wrap = Wrap {
        base: Hdr { h: 1 },
        tree: Some(tree()),
        data: Bytes::from(vec![7; 5_000]),
        numbers: Seq::from([0.5; 600]),
        tail: -1,
    };
    let pairs = vec![Pair { left: Some(tree()), o: 7, right: Some(derived.upcast()) }, Pair::default()];
    let ior = Ior { type_id: "IDL:T/I:1.0".into(), profiles: Vec::new() };
    let base = || some(Base { b: 3 }).map(|value| value.upcast::<ValueBase>());
    let shared = base();
    let forms = vec![
        Abs::Object(ior),
        Abs::Value(None),
        Abs::Value(shared.clone()),
        Abs::Value(shared),
        Abs::Value(some(BoxStr("b".into())).map(|value| value.upcast())),
    ];
    [
        Any::new(some(Base { b: 5 })),
        Any::new(None::<Value<Base>>),
        Any::new(some(BoxStr("hi".into()))),
        Any::new(list(5)),
        Any::new(Some(ring())),
        Any::new(Some(tree())),
        Any::new(pairs),
        Any::new(Some(derived.upcast::<Base>())),
        Any::new(Some(Value::new(Vb2 { base: Base { b: 1 }, d: 2 }).upcast::<Base>())),
        Any::new(Some(Value::new(tp).upcast::<Hdr>())),
        Any::new(Some(Value::new(wrap).upcast::<Hdr>())),
        Any::new(vec![Some(derived.upcast::<ValueBase>()), base(), None, Some(derived.upcast())]),
        Any::new(Any::new(Some(ring())).unwrap()),
        Any::new(vec![Any::new(Some(tree())).unwrap(), Any::new(7_i32).unwrap()]),
        Any::new(forms),
    ]
    .map(Result::unwrap)
    .into()
}

pub(super) fn value_octets(any: &Any, order: ByteOrder) -> Bytes {
    Bytes::from(encoded(order, |e| any.encode_value(e)))
}

fn node(value: &Dynamic, index: usize) -> &ValueNode {
    &value.graph.nodes[index]
}

fn null(code: &TypeCode) -> Dynamic {
    Dynamic { code: code.clone(), value: Part::Node(None), graph: Default::default() }
}

/// Returns a tree of the type whose first node has those members.
fn tree_with(code: &TypeCode, members: impl Into<Vec<Part>>) -> Dynamic {
    let mut tree = Dynamic { value: Part::Node(Some(0)), ..null(code) };
    tree.graph.nodes.push(ValueNode { code: code.clone(), members: members.into() });
    tree
}

pub(super) fn kind(error: &DynError) -> Option<DecodeErrorKind> {
    match error.kind() {
        DynErrorKind::Decode(error) => Some(error.kind),
        _ => None,
    }
}

#[test]
fn graphs_are_trees_and_trees_are_graphs() {
    let factories = all();
    for any in graphs() {
        let tree = any.to_dynamic().unwrap();
        tree.check().unwrap();
        let again = Any::from_dynamic(&tree).unwrap();
        assert_eq!(again, any, "{tree}");
        assert_eq!(again.to_dynamic().unwrap(), tree);
        let program = Program::of(any.type_code());
        for order in ORDERS {
            let octets = value_octets(&any, order);
            assert_eq!(value_octets(&again, order), octets);
            let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).with_context(&factories);
            assert_eq!(program.decode(&mut d).unwrap(), tree);
            assert_eq!(d.remaining(), 0);
            let mut e = Encoder::new(order, Version::V1_2);
            program.encode(&tree, &mut e).unwrap();
            assert_eq!(e.into_bytes(), octets, "{tree}");
        }
    }
}

/// Checks that the encoding of the Rust type is decoded as the tree, and the encoding of the tree as the
/// value.
#[track_caller]
fn same_as_compiled<T: Typed + CdrEncode + CdrDecode + PartialEq + std::fmt::Debug>(value: T) {
    let factories = all();
    let program = Program::of(&T::type_code());
    for order in ORDERS {
        for before in 0..8 {
            let octets = encoded(order, |e| {
                e.put_raw(&vec![0xAA; before]);
                value.encode(e)
            });
            let octets = Bytes::from(octets);
            let decoder = |octets| {
                let mut d = Decoder::from_bytes(octets, order, Version::V1_2).with_context(&factories);
                d.take(before).unwrap();
                d
            };
            let mut d = decoder(&octets);
            let tree = program.decode(&mut d).unwrap();
            assert_eq!(d.remaining(), 0);
            let octets = encoded(order, |e| {
                e.put_raw(&vec![0xAA; before]);
                program.encode(&tree, e).unwrap();
                Ok(())
            });
            assert_eq!(T::decode(&mut decoder(&Bytes::from(octets))).unwrap(), value);
        }
    }
}

#[test]
fn trees_are_what_encoders_of_the_types_write() {
    let derived = || Value::new(Derived { base: Base { b: 1 }, d: 2 }).upcast::<Base>();
    same_as_compiled(list(4));
    same_as_compiled(Some(tree()));
    same_as_compiled(Some(derived()));
    same_as_compiled(vec![Some(derived()), None, some(Base { b: 4 })]);
    same_as_compiled(some(BoxStr("box".into())));
    same_as_compiled(vec![Pair { left: Some(tree()), o: 7, right: Some(derived()) }, Pair::default()]);
    let tp = Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: list(1) };
    same_as_compiled(vec![Some(Value::new(tp).upcast::<Hdr>()), some(Hdr { h: 3 })]);
    let wrap = Wrap { tree: Some(tree()), data: Bytes::from(vec![7; 50]), tail: 3, ..Wrap::default() };
    same_as_compiled(Some(Value::new(wrap).upcast::<Hdr>()));
}

#[test]
fn sharing_cycles_and_null_are_numbers_of_nodes() {
    let ring = Any::new(Some(ring())).unwrap().to_dynamic().unwrap();
    assert_eq!(ring.value, Part::Node(Some(0)));
    assert_eq!(node(&ring, 0).members, [1_i32.into(), Part::Node(Some(1))]);
    assert_eq!(node(&ring, 1).members, [2_i32.into(), Part::Node(Some(0))]);
    assert_eq!(ring.graph.nodes.len(), 2);
    assert_eq!(ring.to_string(), "->0 { v: 1, next: ->1 { v: 2, next: ->0 } }");
    assert_eq!(ring.at("next.next.next.v").unwrap().1, 2.into());
    let mut changed = ring.clone();
    changed.set("next.next.next.next.v", 5).unwrap();
    assert_eq!(changed.at("v").unwrap().1, 5.into());
    assert_eq!(changed.set("next.next.w", 5).unwrap_err().to_string(), "next.next: there is no member `w`");
    changed.set("next.next.next", Part::Node(None)).unwrap();
    assert_eq!(changed.to_string(), "->0 { v: 5, next: null }");

    let mut tree = Any::new(Some(tree())).unwrap().to_dynamic().unwrap();
    let shared = tree.at("kids[0]").unwrap().1;
    assert_eq!(tree.at("kids[2]").unwrap().1, shared);
    assert_eq!(tree.at("pairs[0].left").unwrap().1, shared);
    assert_eq!(tree.at("kids[1]").unwrap().1, Part::Node(None));
    assert_eq!(tree.at("any").unwrap().1, tree.at("pairs[2].right").unwrap().1);
    // A change of a shared value is visible at all its places.
    tree.set("kids[2].name", "changed").unwrap();
    assert_eq!(tree.at("pairs[2].left.name").unwrap().1, "changed".into());
    let root = Any::from_dynamic(&tree).unwrap().get::<Of<Tree>>().unwrap().unwrap();
    let root = root.get();
    assert_eq!(root.kids[0].as_ref().unwrap().get().name, "changed");
    assert!(root.kids[0].as_ref().unwrap().is_same(root.pairs[2].left.as_ref().unwrap()));
    let derived = Value::new(Derived { base: Base { b: 1 }, d: 2 }).upcast::<Base>();
    let derived = Any::new(Some(derived)).unwrap().to_dynamic().unwrap();
    assert_eq!(derived.at("d").unwrap(), (TypeCode::LONG, 2.into()));
}

#[test]
fn graphs_need_no_stack() {
    let any = Any::new(list(20_000)).unwrap();
    let list = any.to_dynamic().unwrap();
    assert_eq!(list.graph.nodes.len(), 20_000);
    assert_eq!(node(&list, 19_999).members, [19_999_i32.into(), Part::Node(None)]);
    list.check().unwrap();
    assert!(list.to_string().contains("->63 { v: ..., next: ... }"), "{list}");
    assert_eq!(Any::from_dynamic(&list.clone()).unwrap(), any);
    // Nesting through sequences, and through boxes of their own kind.
    let code = Tree::type_code();
    let mut kids = Part::Items(Box::new(Items::Values(Vec::new())));
    let mut deep = tree_with(&code, []);
    deep.graph.nodes.clear();
    for index in 0..5_000 {
        let name = format!("{index}").into();
        let pairs = Part::Items(Box::new(Items::Values(Vec::new())));
        deep.graph
            .nodes
            .push(ValueNode { code: code.clone(), members: vec![name, kids, pairs, Part::Node(None)] });
        kids = Part::Items(Box::new(Items::Values(vec![Part::Node(Some(index)), Part::Node(None)])));
    }
    deep.value = Part::Node(Some(4_999));
    let any = Any::from_dynamic(&deep).unwrap();
    assert_eq!(any.to_dynamic().unwrap().graph.nodes.len(), 5_000);
    assert_eq!(any.get::<Of<Tree>>().unwrap().unwrap().get().name, "4999");
}

#[test]
fn values_inside_of_members_are_levels() {
    // Each value is in a struct in a sequence in the previous one.
    let code = Tree::type_code();
    let levels = |n: u32| {
        let mut deep = null(&code);
        for index in 0..n {
            let pair = Part::Struct([deep.value, Part::Octet(0), Part::Node(None)].into());
            let items = |values| Part::Items(Box::new(Items::Values(values)));
            let members = vec!["x".into(), items(vec![]), items(vec![pair]), Part::Node(None)];
            deep.graph.nodes.push(ValueNode { code: code.clone(), members });
            deep.value = Part::Node(Some(index));
        }
        deep
    };
    assert_eq!(Any::from_dynamic(&levels(15)).unwrap().to_dynamic().unwrap().graph.nodes.len(), 15);
    let error = Any::from_dynamic(&levels(40)).unwrap_err();
    assert!(matches!(error.kind(), DynErrorKind::Encode(error) if error.kind == EncodeErrorKind::DepthLimit));
    assert!(error.path().to_string().starts_with("->39.pairs[0].left->38.pairs[0]"), "{error}");
    // The encoding of a peer without such a limit.
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    for _ in 0..40 {
        e.put_u32(0x7FFF_FF00);
        e.put_str("x").unwrap();
        e.put_u32(0);
        e.put_u32(1);
    }
    let octets = e.into_bytes();
    let error = Program::of(&code).decode(&mut Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2));
    assert_eq!(kind(&error.unwrap_err()), Some(DecodeErrorKind::DepthLimit));
}

#[test]
fn what_is_not_known_is_truncated_in_trees_too() {
    let tp = Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: list(1) };
    let any = Any::new(Some(Value::new(tp).upcast::<Hdr>())).unwrap();
    for order in ORDERS {
        let octets = value_octets(&any, order);
        let program = Program::of(any.type_code());
        let cut = program.decode(&mut Decoder::from_bytes(&octets, order, Version::V1_2)).unwrap();
        assert_eq!(cut.graph.nodes.len(), 1);
        assert!(node(&cut, 0).code.equal(&Hdr::type_code()));
        assert_eq!(node(&cut, 0).members, [9.into()]);
        assert_eq!(Any::from_dynamic(&cut).unwrap().get::<Of<Hdr>>().unwrap(), some(Hdr { h: 9 }));
    }
    // A value that must not be truncated is rejected, with its path.
    let pair = Pair { right: Some(Value::new(Vb2::default()).upcast()), ..Pair::default() };
    let octets = Bytes::from(encoded(ByteOrder::Big, |e| vec![Pair::default(), pair].encode(e)));
    let program = Program::of(&Vec::<Pair>::type_code());
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let error = program.decode(&mut d).unwrap_err();
    assert_eq!(
        (kind(&error), error.path().to_string()),
        (Some(DecodeErrorKind::NoValueFactory), "[1].right".into())
    );
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    assert_eq!(program.validate(&mut d).unwrap_err(), error);
}

#[test]
fn chunks_are_read_however_they_are_cut() {
    let state = hex("0a ff ff 7f 0d000000 49444c3a542f54503a312e3000 000000 04000000 09000000 \
         0affff7f 10000000 49444c3a542f4c4e6f64653a312e3000 04000000 00000000 \
         0affff7f ffffffff dcffffff 04000000 01000000 04000000 00000000 feffffff 08000000 0a000000 00000000 ffffffff");
    let state = Bytes::from(state);
    let mut d = Decoder::from_bytes(&state, ByteOrder::Little, Version::V1_2);
    let read = Program::of(&Tp::type_code()).decode(&mut d).unwrap();
    assert_eq!(d.remaining(), 0);
    let tp = Some(Value::new(Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: None }));
    assert_eq!(read, Any::new(tp.clone()).unwrap().to_dynamic().unwrap());
    assert_eq!(Any::from_dynamic(&read).unwrap().get::<Of<Tp>>().unwrap(), tp);
}

#[test]
fn what_began_before_the_tree_is_copied_into_it() {
    for order in ORDERS {
        let mut e = Encoder::new(order, Version::V1_2);
        Some(ring()).encode(&mut e).unwrap();
        let back = |e: &mut Encoder, to: usize| {
            e.put_u32(u32::MAX);
            e.put_i32(to as i32 - e.position() as i32);
        };
        // The second value, then both in a sequence, the part before the whole.
        back(&mut e, 8);
        e.put_u32(2);
        back(&mut e, 8);
        back(&mut e, 0);
        let octets = e.into_bytes();
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
        let program = Program::of(&LNode::type_code());
        let first = program.decode(&mut d).unwrap();
        let second = program.decode(&mut d).unwrap();
        assert_eq!(second.at("v").unwrap().1, 2.into());
        assert_eq!(second.at("next.next.v").unwrap().1, 2.into());
        assert_eq!(second.graph.nodes.len(), 2);
        let both = Program::of(&Vec::<Of<LNode>>::type_code()).decode(&mut d).unwrap();
        assert_eq!(both.graph, second.graph);
        assert_eq!((both.at("[0].v").unwrap().1, both.at("[1].v").unwrap().1), (2.into(), 1.into()));
        assert_eq!(d.remaining(), 0);
        assert_eq!(first, Any::new(Some(self::ring())).unwrap().to_dynamic().unwrap());
    }
}

#[test]
fn custom_and_abstract_values_are_refused() {
    let octets = Bytes::from(encoded(ByteOrder::Big, |e| some(Raw::default()).encode(e)));
    let raw = Raw::type_code();
    let pair = TypeCode::create_struct("IDL:S:1.0", "S", &[("n", &TypeCode::LONG), ("raw", &raw)]).unwrap();
    let octets = Bytes::from([vec![0; 4], octets.to_vec()].concat());
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    // A custom value consists only of its bytes.
    let read = Program::of(&pair).decode(&mut d).unwrap();
    assert!(matches!(&read.graph.nodes[0].members[..], [Part::Items(_)]), "{read}");
    let text = "the members of a `custom` value are known only to the implementation of its type";
    let tree = tree_with(&raw, [Part::Items(Box::new(Items::Octets(Bytes::new())))]);
    assert!(tree.check().is_ok());
    assert_eq!(Any::from_dynamic(&tree).unwrap_err().to_string(), format!("->0: {text}"));
    let any = DynAny::of_type(&raw).unwrap().as_value().unwrap();
    assert_eq!(any.set_to_value().unwrap_err().to_string(), text);
    assert!(any.is_null().unwrap());
    for (code, text) in [
        (Named::type_code(), "an abstract value type has no values"),
        (ValueBase::type_code(), "an abstract value type has no values"),
    ] {
        assert_eq!(Any::from_dynamic(&null(&code)).unwrap().to_dynamic().unwrap(), null(&code));
        let tree = tree_with(&code, []);
        assert_eq!(tree.check().unwrap_err().to_string(), format!("->0: {text}"));
        assert!(matches!(Any::from_dynamic(&tree).unwrap_err().kind(), DynErrorKind::Inconsistent(_)));
        let any = DynAny::of_type(&code).unwrap().as_value().unwrap();
        assert_eq!(any.set_to_value().unwrap_err().to_string(), text);
        assert!(any.is_null().unwrap());
    }
}

#[test]
fn trees_that_are_none_are_refused_with_their_place() {
    let error = |tree: &Dynamic| Any::from_dynamic(tree).unwrap_err().to_string();
    let lnode = LNode::type_code();
    assert_eq!(error(&tree_with(&lnode, [1.into()])), "->0: the number of members is not that of the type");
    assert_eq!(
        error(&tree_with(&lnode, [1.into(), Part::Node(Some(7))])),
        "->0.next: index or length 7 is out of bounds: the actual or maximum length is 1"
    );
    let of_type = tree_with(&lnode, [Part::Boolean(true), Part::Node(None)]);
    assert_eq!(error(&of_type), "->0.v: a boolean does not match type `long`");
    let mut other = tree_with(&lnode, [1.into(), Part::Node(Some(1))]);
    other.graph.nodes.push(ValueNode { code: Base::type_code(), members: vec![Part::Short(1)] });
    assert!(
        error(&other).starts_with("->0.next: a value of a value type does not match type `"),
        "{}",
        error(&other)
    );
    // First in a place where it fits, then in a place where it does not.
    let code = Tree::type_code();
    let items = |values| Part::Items(Box::new(Items::Values(values)));
    let pair = Part::Struct([Part::Node(None), Part::Octet(1), Part::Node(Some(0))].into());
    let wrong = tree_with(
        &code,
        ["x".into(), items(vec![Part::Node(Some(0))]), items(vec![pair]), Part::Node(Some(0))],
    );
    assert!(error(&wrong).starts_with("->0.pairs[0].right: "), "{}", error(&wrong));
    let wrong = tree_with(&code, ["x".into(), items(vec![1.into()]), items(vec![]), Part::Node(None)]);
    assert!(error(&wrong).starts_with("->0.kids[0]: a long does not match type `"), "{}", error(&wrong));
    let wrong = Dynamic { value: Part::Octet(1), ..null(&lnode) };
    assert!(error(&wrong).starts_with("an octet does not match type `"));
}

#[test]
fn types_that_are_known_only_from_a_tree_are_kept() {
    // A type that is created here and derived from the type of its place.
    let base = Base::type_code();
    let member = |name| (name, &TypeCode::LONG, Visibility::Public);
    let made = TypeCode::create_value(
        "IDL:T/Made:1.0",
        "Made",
        ValueModifier::Truncatable,
        Some(&base),
        &[member("m")],
    )
    .unwrap();
    let mut tree = tree_with(&made, [Part::Short(1), 2.into()]);
    tree.code = base.clone();
    let any = Any::from_dynamic(&tree).unwrap();
    assert_eq!(any.to_dynamic().unwrap(), tree);
    assert_eq!(any.get::<Of<Base>>().unwrap(), some(Base { b: 1 }));
    // In another any, and taken out of it.
    let outer = Any::new(any.clone()).unwrap().to_dynamic().unwrap();
    let outer = Any::from_dynamic(&outer).unwrap();
    assert_eq!(outer.get::<Any>().unwrap().to_dynamic().unwrap(), tree);
    for order in ORDERS {
        // A receiver that does not know the type gets the base.
        let sent = decode(&octets(&any, order), order).unwrap();
        assert_eq!(sent, Any::new(some(Base { b: 1 })).unwrap());
    }
    // A receiver that knows the type gets the whole value.
    let derived = tree_with(&Derived::type_code(), [Part::Short(1), 2.into()]);
    let any = Any::from_dynamic(&Dynamic { code: base, ..derived }).unwrap();
    for order in ORDERS {
        let sent = decode_with(&octets(&any, order), order, &all()).unwrap();
        let value = sent.get::<Of<Base>>().unwrap().unwrap().downcast::<Derived>().unwrap();
        assert_eq!(*value.get(), Derived { base: Base { b: 1 }, d: 2 });
    }
}

#[test]
fn a_value_in_an_any_in_a_value_is_a_tree_in_a_tree() {
    let (base, list) = (Base::type_code(), LNode::type_code());
    let keeper = TypeCode::create_value(
        "IDL:T/Keeper:1.0",
        "Keeper",
        ValueModifier::Truncatable,
        Some(&base),
        &[("what", &TypeCode::ANY, Visibility::Public), ("after", &list, Visibility::Private)],
    )
    .unwrap();
    let code = TypeCode::create_struct("IDL:S:1.0", "S", &[("b", &base), ("k", &keeper)]).unwrap();
    let inner = Any::new(vec![Any::new(Some(ring())).unwrap(), Any::new(some(BoxStr("x".into()))).unwrap()]);
    let node =
        |members: &[Part], code: &TypeCode| ValueNode { code: code.clone(), members: members.to_vec() };
    let keeps =
        |after| [Part::Short(1), Part::Any(Box::new(inner.clone().unwrap())), Part::Node(Some(after))];
    // In chunks in the place of its base, and without chunks in its own.
    let tree = Dynamic {
        value: Part::Struct([Part::Node(Some(0)), Part::Node(Some(2))].into()),
        graph: giop_codec::dynamic::ValueGraph {
            nodes: vec![
                node(&keeps(1), &keeper),
                node(&[5.into(), Part::Node(None)], &list),
                node(&keeps(1), &keeper),
            ],
        },
        code,
    };
    let any = Any::from_dynamic(&tree).unwrap();
    assert_eq!(any.to_dynamic().unwrap(), tree);
    let passed = passed_on(&any);
    assert_eq!(passed.to_dynamic().unwrap(), tree);
    let (_, what) = passed.to_dynamic().unwrap().at("b.what").unwrap();
    let Part::Any(what) = what else { panic!("{what:?}") };
    let first = &what.get::<Vec<Any>>().unwrap()[0];
    assert_eq!(first.to_dynamic().unwrap().at("next.next.v").unwrap().1, 1.into());
    #[cfg(feature = "serde")]
    assert_eq!(Any::from_json(&any.to_json().unwrap()).unwrap(), any);
}

#[test]
fn a_type_code_without_the_base_has_whole_trees_where_it_is_known() {
    let code = TypeCode::create_value(
        "IDL:T/Derived:1.0",
        "Derived",
        ValueModifier::None,
        None,
        &[("d", &TypeCode::LONG, Visibility::Public)],
    )
    .unwrap();
    let derived = some(Derived { base: Base { b: 1 }, d: 2 });
    let octets = raw(&code, ByteOrder::Big, |e| derived.encode(e).unwrap());
    let any = decode_with(&octets, ByteOrder::Big, &all()).unwrap();
    let tree = any.to_dynamic().unwrap();
    assert_eq!(node(&tree, 0).members, [Part::Short(1), 2.into()]);
    let again = Any::from_dynamic(&tree).unwrap();
    assert_eq!(again, any);
    assert_eq!(again.get::<Of<Derived>>().unwrap(), derived);
}

#[test]
fn values_are_walked_through_and_changed_as_dyn_anys() {
    let list = DynAny::of_type(&LNode::type_code()).unwrap();
    let first = list.as_value().unwrap();
    assert!(first.is_null().unwrap());
    first.set_to_value().unwrap();
    assert_eq!(first.component_count().unwrap(), 2);
    first.insert_long(1).unwrap();
    assert!(first.next().unwrap());
    assert_eq!(&*first.current_member_name().unwrap(), "next");
    let next = first.current_component().unwrap().unwrap().as_value().unwrap();
    next.set_members(vec![
        ("v".into(), Dynamic { value: 2.into(), ..null(&TypeCode::LONG) }),
        ("next".into(), null(&LNode::type_code())),
    ])
    .unwrap();
    let any = list.to_any().unwrap();
    let value = any.get::<Of<LNode>>().unwrap().unwrap();
    assert_eq!((value.get().v, value.get().next.as_ref().unwrap().get().v), (1, 2));

    let ring = DynAny::from_any(&Any::new(Some(self::ring())).unwrap()).unwrap();
    let mut at = ring.clone();
    for v in [1, 2, 1, 2] {
        at.rewind().unwrap();
        assert_eq!(at.get_long().unwrap(), v);
        at.next().unwrap();
        at = at.current_component().unwrap().unwrap();
    }
    at.rewind().unwrap();
    at.insert_long(9).unwrap();
    assert_eq!(ring.dynamic().unwrap().at("v").unwrap().1, 9.into());
    assert!(!ring.equal(&DynAny::from_any(&any).unwrap()).unwrap());
    ring.assign_any(&any).unwrap();
    assert!(ring.equal(&list).unwrap());

    let label = DynAny::of_type(&BoxStr::type_code()).unwrap();
    let boxed = label.as_value().unwrap();
    boxed.set_to_value().unwrap();
    label.insert_string("text".into()).unwrap();
    assert_eq!(label.to_any().unwrap().get::<Of<BoxStr>>().unwrap(), some(BoxStr("text".into())));
}
