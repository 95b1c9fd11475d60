//! Values, boxes and abstract interfaces in anys: graphs are kept without a Rust type, and taken out as one.

mod custom;
mod hostile;
#[cfg(feature = "serde")]
mod json;
mod peers;
mod trees;

use crate::values::*;
use bytes::Bytes;
use giop_codec::any::{Any, AnyError};
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, Seq};
use giop_codec::ior::Ior;
use giop_codec::typecode::{Definition, Shape, TcKind, TypeCode, TypeDesc, Typed};
use giop_codec::value::{DecodeContext, Factories, GraphBuilder, Value, ValueBase};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeErrorKind, Version};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

type Of<V> = Option<Value<V>>;

fn some<V: giop_codec::value::ValueType>(state: V) -> Of<V> {
    Some(Value::new(state))
}

fn octets(any: &Any, order: ByteOrder) -> Bytes {
    Bytes::from(encoded(order, |e| any.encode(e)))
}

fn decode(octets: &Bytes, order: ByteOrder) -> Result<Any, DecodeErrorKind> {
    decode_with(octets, order, &Factories::default())
}

fn decode_with(octets: &Bytes, order: ByteOrder, context: &Factories) -> Result<Any, DecodeErrorKind> {
    let mut d = Decoder::from_bytes(octets, order, Version::V1_2).with_context(context);
    let any = Any::decode(&mut d).map_err(|e| e.kind)?;
    assert_eq!(d.remaining(), 0);
    Ok(any)
}

/// Returns the any after it was sent in both orders through receivers that do not know its types.
fn passed_on(any: &Any) -> Any {
    ORDERS.iter().fold(any.clone(), |any, order| {
        let passed = decode(&octets(&any, *order), *order).unwrap();
        assert_eq!(passed, any);
        passed
    })
}

/// Returns an any with this type code, followed by the output of `f`.
fn raw(code: &TypeCode, order: ByteOrder, f: impl FnOnce(&mut Encoder)) -> Bytes {
    let mut e = Encoder::new(order, Version::V1_2);
    code.encode(&mut e).unwrap();
    f(&mut e);
    e.into_bytes()
}

fn list(n: i32) -> Of<LNode> {
    let mut graph = GraphBuilder::new();
    let mut next = None;
    for v in (0..n).rev() {
        next = Some(graph.add(LNode { v, next }));
    }
    next.map(|first| graph.finish(&first))
}

fn ring() -> Value<LNode> {
    let mut graph = GraphBuilder::new();
    let first = graph.reserve::<LNode>();
    let second = graph.add(LNode { v: 2, next: Some(first.clone()) });
    assert!(graph.set(&first, LNode { v: 1, next: Some(second) }));
    graph.finish(&first)
}

fn tree() -> Value<Tree> {
    let shared = Value::new(Tree { name: "shared".into(), ..Tree::default() });
    let base = Value::new(Base { b: -1 });
    let pair = |o| Pair { left: Some(shared.clone()), o, right: Some(base.clone()) };
    Value::new(Tree {
        name: "root".into(),
        kids: vec![Some(shared.clone()), None, Some(shared.clone()), some(Tree::default())],
        pairs: vec![pair(1), Pair::default(), pair(2)],
        any: Some(base.upcast()),
    })
}

#[test]
fn values_come_out_as_they_went_in() {
    let base = Any::new(some(Base { b: 5 })).unwrap();
    assert_eq!(base.type_code(), &Base::type_code());
    assert_eq!(passed_on(&base).get::<Of<Base>>().unwrap(), some(Base { b: 5 }));
    let null = Any::new(None::<Value<Base>>).unwrap();
    assert_eq!(passed_on(&null).get::<Of<Base>>().unwrap(), None);
    let boxed = Any::new(some(BoxStr("hi".into()))).unwrap();
    assert_eq!(passed_on(&boxed).get::<Of<BoxStr>>().unwrap(), some(BoxStr("hi".into())));
    // A handle is inserted unchanged.
    assert_eq!(Any::new(Value::new(Base { b: 5 })), Ok(base.clone()));
    let of_any_type = Any::new(Value::new(Base { b: 5 }).upcast::<ValueBase>()).unwrap();
    assert_eq!(of_any_type.type_code(), &ValueBase::type_code());
    assert!(matches!(base.get::<Of<LNode>>(), Err(AnyError::TypeMismatch { .. })));
}

#[test]
fn sharing_and_cycles_are_kept() {
    let any = passed_on(&Any::new(Some(ring())).unwrap());
    let first = any.get::<Of<LNode>>().unwrap().unwrap();
    let second = first.get().next.clone().unwrap();
    assert_eq!((first.get().v, second.get().v), (1, 2));
    assert!(second.get().next.as_ref().unwrap().is_same(&first));

    let whole = passed_on(&Any::new(Some(tree())).unwrap());
    // `Tree` has a `ValueBase`, which is a `Base`, as in the type code of `Pair`.
    let root = whole.get::<Of<Tree>>().unwrap().unwrap();
    assert_eq!(root, tree());
    let root = root.get();
    let shared = root.kids[0].as_ref().unwrap();
    assert!(shared.is_same(root.kids[2].as_ref().unwrap()));
    assert!(shared.is_same(root.pairs[0].left.as_ref().unwrap()));
    assert!(root.any.as_ref().unwrap().is_same(root.pairs[2].right.as_ref().unwrap()));

    let members = vec![Pair { left: Some(tree()), o: 7, right: None }, Pair::default()];
    let any = passed_on(&Any::new(&members).unwrap());
    assert_eq!(any.get::<Vec<Pair>>().unwrap(), members);
}

#[test]
fn long_lists_need_no_stack() {
    let any = Any::new(list(20_000)).unwrap();
    let passed = passed_on(&any);
    let mut next = passed.get::<Of<LNode>>().unwrap();
    let mut count = 0;
    while let Some(node) = next {
        assert_eq!(node.get().v, count);
        count += 1;
        next = node.get().next.clone();
    }
    assert_eq!(count, 20_000);
}

#[test]
fn derived_values_keep_their_type_where_it_is_known() {
    for value in [
        Value::new(Derived { base: Base { b: 1 }, d: 2 }).upcast::<Base>(),
        Value::new(Vb2 { base: Base { b: 1 }, d: 2 }).upcast(),
    ] {
        let any = Any::new(Some(value.clone())).unwrap();
        assert_eq!(any.get::<Of<Base>>().unwrap().unwrap(), value);
        // In another any, and taken out of it.
        let inner = Any::new(any.clone()).unwrap().get::<Any>().unwrap();
        assert_eq!(inner.get::<Of<Base>>().unwrap().unwrap(), value);
        for order in ORDERS {
            let any = decode_with(&octets(&any, order), order, &all()).unwrap();
            assert_eq!(any.get::<Of<Base>>().unwrap().unwrap(), value);
            let again = decode_with(&octets(&any, order), order, &all()).unwrap();
            assert_eq!(again.get::<Of<Base>>().unwrap().unwrap(), value);
        }
    }
}

#[test]
fn what_is_not_known_is_truncated_if_it_may_be() {
    let derived = Value::new(Derived { base: Base { b: 1 }, d: 2 }).upcast::<Base>();
    let tp = Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: list(1) };
    let tp = Value::new(tp).upcast::<Hdr>();
    for order in ORDERS {
        let any = decode(&octets(&Any::new(Some(derived.clone())).unwrap(), order), order).unwrap();
        assert_eq!(any, Any::new(some(Base { b: 1 })).unwrap());
        assert_eq!(passed_on(&any).get::<Of<Base>>().unwrap(), some(Base { b: 1 }));
        // With values in the truncated part, and data after it.
        let mut e = Encoder::new(order, Version::V1_2);
        Any::new(Some(tp.clone())).unwrap().encode(&mut e).unwrap();
        e.put_u16(0x1234);
        let octets = e.into_bytes();
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
        assert_eq!(Any::decode(&mut d).unwrap().get::<Of<Hdr>>().unwrap(), some(Hdr { h: 9 }));
        assert_eq!(d.read_u16().unwrap(), 0x1234);
    }
    let vb2 = Any::new(Some(Value::new(Vb2::default()).upcast::<Base>())).unwrap();
    assert_eq!(decode(&octets(&vb2, ByteOrder::Big), ByteOrder::Big), Err(DecodeErrorKind::NoValueFactory));
    let unknown = Any::new(some(Hdr { h: 1 }).map(|v| v.upcast::<ValueBase>())).unwrap();
    let octets = octets(&unknown, ByteOrder::Big);
    assert_eq!(decode(&octets, ByteOrder::Big), Err(DecodeErrorKind::NoValueFactory));
    assert!(decode_with(&octets, ByteOrder::Big, &all()).is_ok());
}

#[test]
fn chunked_values_are_read_however_they_are_cut() {
    // `TP` as itself, its members in chunks around and between its values.
    let tp = Some(Value::new(Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: None }));
    let state = hex("0a ff ff 7f 0d000000 49444c3a542f54503a312e3000 000000 04000000 09000000 \
         0affff7f 10000000 49444c3a542f4c4e6f64653a312e3000 04000000 00000000 \
         0affff7f ffffffff dcffffff 04000000 01000000 04000000 00000000 feffffff 08000000 0a000000 00000000 ffffffff");
    let code = Tp::type_code();
    let any = decode(
        &raw(&code, ByteOrder::Little, |e| {
            e.align(4);
            e.put_raw(&state);
        }),
        ByteOrder::Little,
    )
    .unwrap();
    assert_eq!(any, Any::new(tp.clone()).unwrap());
    assert_eq!(any.get::<Of<Tp>>().unwrap(), tp);
}

#[test]
fn an_any_in_a_chunked_value_is_chunked() {
    // `Tree` contains no any, so a value that contains one is needed.
    let wrap = Wrap {
        base: Hdr { h: 1 },
        tree: Some(tree()),
        data: Bytes::from(vec![7; 10_000]),
        numbers: Seq::from([0.5; 600]),
        tail: -1,
    };
    let any = Any::new(Some(Value::new(wrap.clone()).upcast::<Hdr>())).unwrap();
    for order in ORDERS {
        let any = decode_with(&octets(&any, order), order, &all()).unwrap();
        let value = any.get::<Of<Hdr>>().unwrap().unwrap().downcast::<Wrap>().unwrap();
        assert_eq!(*value.get(), wrap);
    }
}

#[test]
fn goldens_of_other_orbs() {
    // Without an id if the type code determines the type, as omniORB sends it.
    let code = Base::type_code();
    let any = decode(
        &raw(&code, ByteOrder::Big, |e| {
            e.put_u32(0x7FFF_FF00);
            e.put_u16(5);
        }),
        ByteOrder::Big,
    )
    .unwrap();
    assert_eq!(any, Any::new(some(Base { b: 5 })).unwrap());
    // The encoding by zorb always has an id.
    let sent = octets(&any, ByteOrder::Big);
    let at = raw(&code, ByteOrder::Big, |e| e.align(4)).len();
    assert_eq!(sent[at..], hex("7fffff02 0000000f 49444c3a542f426173653a312e3000 00 0005")[..]);
}

#[test]
fn what_is_shared_with_another_any_or_value_is_copied() {
    for (order, in_place) in [(ByteOrder::Big, false), (ByteOrder::Little, true)] {
        // A value, then an any with the same value, then both again.
        let mut e = Encoder::new(order, Version::V1_2);
        if in_place {
            Some(ring()).encode(&mut e).unwrap();
        } else {
            LNode::type_code().encode(&mut e).unwrap();
            Some(ring()).encode(&mut e).unwrap();
        }
        let ring_at = if in_place {
            0
        } else {
            encoded(order, |e| LNode::type_code().encode(e)).len().next_multiple_of(4)
        };
        let second_at = ring_at + 8;
        let back = |e: &mut Encoder, to: usize| {
            e.put_u32(u32::MAX);
            e.put_i32(to as i32 - e.position() as i32);
        };
        LNode::type_code().encode(&mut e).unwrap();
        back(&mut e, second_at);
        back(&mut e, second_at);
        back(&mut e, ring_at);
        let octets = e.into_bytes();
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
        let check = |value: Of<LNode>, v: i32| {
            let value = value.unwrap();
            assert_eq!(value.get().v, v);
            let next = value.get().next.clone().unwrap();
            assert_eq!(next.get().v, 3 - v);
            assert!(next.get().next.as_ref().unwrap().is_same(&value));
        };
        if in_place {
            check(CdrDecode::decode(&mut d).unwrap(), 1);
        } else {
            check(Any::decode(&mut d).unwrap().get().unwrap(), 1);
        }
        let any = Any::decode(&mut d).unwrap();
        check(passed_on(&any).get().unwrap(), 2);
        let second = Of::<LNode>::decode(&mut d).unwrap().unwrap();
        let first = Of::<LNode>::decode(&mut d).unwrap().unwrap();
        check(Some(first.clone()), 1);
        assert!(first.get().next.as_ref().unwrap().is_same(&second));
        assert_eq!(d.remaining(), 0);
    }
}

#[test]
fn a_value_in_an_any_is_never_taken_for_another_type() {
    // A value without an id has the type in the type code of its any, wherever it is referred to.
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    Derived::type_code().encode(&mut e).unwrap();
    e.put_u32(0x7FFF_FF00);
    let at = e.position() - 4;
    e.put_u16(5);
    e.put_u32(6);
    for _ in 0..2 {
        e.put_u32(u32::MAX);
        e.put_i32(at as i32 - e.position() as i32);
    }
    let octets = e.into_bytes();
    let factories = all();
    let d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let mut known = d.clone().with_context(&factories);
    Any::decode(&mut known).unwrap();
    let base = Of::<Base>::decode(&mut known).unwrap().unwrap();
    assert_eq!(base.downcast::<Derived>().unwrap().get().d, 6);
    assert_eq!(Of::<LNode>::decode(&mut known).unwrap_err().kind, DecodeErrorKind::Malformed);
    let mut unknown = d.clone();
    Any::decode(&mut unknown).unwrap();
    assert_eq!(Of::<Base>::decode(&mut unknown).unwrap_err().kind, DecodeErrorKind::NoValueFactory);
}

const ABSTRACT: &TypeDesc = &TypeDesc::Defined(|| {
    static ABS: Definition =
        Definition::new("IDL:T/Abs:1.0", "Abs", Shape::Opaque(TcKind::AbstractInterface));
    &ABS
});

/// `abstract interface Abs`.
#[derive(Debug, PartialEq)]
enum Abs {
    Object(Ior),
    Value(Of<ValueBase>),
}

impl Typed for Abs {
    const DESC: &'static TypeDesc = ABSTRACT;
}

impl CdrEncode for Abs {
    fn encode(&self, e: &mut Encoder) -> Result<(), giop_codec::EncodeError> {
        e.put_bool(matches!(self, Abs::Object(_)));
        match self {
            Abs::Object(ior) => ior.encode(e),
            Abs::Value(value) => value.encode(e),
        }
    }
}

impl CdrDecode for Abs {
    const MIN_SIZE: usize = 5;

    fn decode(d: &mut Decoder<'_>) -> Result<Abs, DecodeError> {
        Ok(if d.read_bool()? {
            Abs::Object(CdrDecode::decode(d)?)
        } else {
            Abs::Value(CdrDecode::decode(d)?)
        })
    }
}

#[test]
fn abstract_interfaces_are_references_or_values() {
    let ior = Ior { type_id: "IDL:T/I:1.0".into(), profiles: Vec::new() };
    let base = || some(Base { b: 3 }).map(|value| value.upcast());
    for value in [Abs::Object(ior), Abs::Value(None), Abs::Value(base())] {
        let any = Any::new(&value).unwrap();
        for order in ORDERS {
            let any = decode_with(&octets(&any, order), order, &all()).unwrap();
            assert_eq!(any.get::<Abs>().unwrap(), value);
        }
    }
    // The second occurrence of the shared value is an indirection.
    let shared = base();
    let two = vec![Abs::Value(shared.clone()), Abs::Value(shared)];
    let any = Any::new(&two).unwrap();
    let octets = octets(&any, ByteOrder::Big);
    let any = decode_with(&octets, ByteOrder::Big, &all()).unwrap();
    let out = any.get::<Vec<Abs>>().unwrap();
    let [Abs::Value(Some(a)), Abs::Value(Some(b))] = &out[..] else { panic!("{out:?}") };
    assert!(a.is_same(b));
}

#[test]
fn cut_or_changed_anywhere_it_is_an_error_or_an_any() {
    let tp = Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: list(1) };
    let anys = [
        Any::new(Some(tree())).unwrap(),
        Any::new(Some(Value::new(tp).upcast::<Hdr>())).unwrap(),
        Any::new(vec![Pair { left: Some(tree()), o: 1, right: None }]).unwrap(),
        Any::new(vec![Any::new(Some(ring())).unwrap(), Any::new(some(BoxStr("x".into()))).unwrap()]).unwrap(),
    ];
    let factories = all();
    for any in anys {
        for order in ORDERS {
            let octets = octets(&any, order);
            let new = |octets: &[u8]| {
                Any::decode(&mut Decoder::new(octets, order, Version::V1_2).with_context(&factories))
            };
            for end in 0..octets.len() {
                assert!(new(&octets[..end]).is_err(), "{any:?} {end}");
            }
            for at in 0..octets.len() {
                for bit in [at % 8, 0, 7] {
                    let mut changed = octets.to_vec();
                    changed[at] ^= 1 << bit;
                    if let Ok(any) = new(&changed) {
                        assert_eq!(new(&encoded(order, |e| any.encode(e))).unwrap(), any);
                    }
                }
            }
        }
    }
}

#[test]
fn what_refers_to_much_much_often_ends() {
    // A thousand anys, each with the same list of a thousand values.
    let code = LNode::type_code();
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(20_000);
    code.encode(&mut e).unwrap();
    e.align(4);
    let at = e.position();
    list(20_000).encode(&mut e).unwrap();
    for _ in 1..20_000 {
        code.encode(&mut e).unwrap();
        e.put_u32(u32::MAX);
        e.put_i32(at as i32 - e.position() as i32);
    }
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    assert_eq!(Vec::<Any>::decode(&mut d).unwrap_err().kind, DecodeErrorKind::AllocLimit);
}

#[test]
fn types_that_are_their_own_base_are_refused() {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(TcKind::Value.number());
    e.encapsulate(|e| {
        e.put_unconverted_str("IDL:T/Self:1.0")?;
        e.put_unconverted_str("Self")?;
        e.put_u16(3);
        e.put_u32(u32::MAX);
        // To the kind, which is at the start of the message.
        e.put_i32(-(e.len() as i32));
        e.put_len(0)
    })
    .unwrap();
    e.put_u32(0x7FFF_FF00);
    let refused = decode(&e.into_bytes(), ByteOrder::Big);
    assert_eq!(refused, Err(DecodeErrorKind::InvalidTypeCode));
}

#[test]
fn only_what_a_context_or_type_code_names_is_made() {
    struct Nobody;
    impl DecodeContext for Nobody {}
    let any = Any::new(Some(Value::new(Derived::default()).upcast::<Base>())).unwrap();
    let octets = octets(&any, ByteOrder::Big);
    let nobody = std::sync::Arc::new(Nobody);
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&nobody);
    let value = Any::decode(&mut d).unwrap().get::<Of<Base>>().unwrap().unwrap();
    assert!(value.downcast::<Derived>().is_none());
}

#[test]
fn a_type_code_without_the_base_is_that_of_a_known_type() {
    // The form in which JacORB sends them.
    fn put(e: &mut Encoder, d: i32) -> Of<Derived> {
        e.put_u32(TcKind::Value.number());
        e.encapsulate(|e| {
            e.put_unconverted_str("IDL:T/Derived:1.0")?;
            e.put_unconverted_str("Derived")?;
            e.put_u16(0);
            e.put_u32(0);
            e.put_len(1)?;
            e.put_unconverted_str("d")?;
            e.put_u32(TcKind::Long.number());
            e.put_u16(1);
            Ok(())
        })
        .unwrap();
        let derived = some(Derived { base: Base { b: 1 }, d });
        derived.encode(e).unwrap();
        derived
    }
    for order in ORDERS {
        let mut e = Encoder::new(order, Version::V1_2);
        let derived = put(&mut e, 2);
        let octets = e.into_bytes();
        let any = decode_with(&octets, order, &all()).unwrap();
        assert_eq!(any.get::<Of<Derived>>().unwrap(), derived);

        // Among anys of other types.
        let mut e = Encoder::new(order, Version::V1_2);
        <Vec<Any>>::type_code().encode(&mut e).unwrap();
        e.put_u32(40);
        for d in 0..20 {
            put(&mut e, d);
            Any::new(some(BoxStr("x".into()))).unwrap().encode(&mut e).unwrap();
        }
        let octets = e.into_bytes();
        let any = decode_with(&octets, order, &all()).unwrap();
        for (index, any) in any.get::<Vec<Any>>().unwrap().iter().enumerate() {
            match index % 2 {
                0 => assert_eq!(any.get::<Of<Derived>>().unwrap().unwrap().get().d, index as i32 / 2),
                _ => assert_eq!(any.get::<Of<BoxStr>>().unwrap(), some(BoxStr("x".into()))),
            }
        }
    }
}
