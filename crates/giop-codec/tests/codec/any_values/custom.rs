//! Custom values in anys, which are kept unchanged, and values that are taken out as a base.

use giop_codec::EncodeError;
use giop_codec::dynamic::{DynErrorKind, Items, Value as Part};

use super::*;

fn stamp() -> Value<Stamp> {
    let shared = list(2);
    Value::new(Stamp { at: 1 << 40, one: shared.clone(), two: shared, until: 2 << 40 })
}

/// Returns the encoding of the any at that offset in a message.
fn at_offset(any: &Any, order: ByteOrder, offset: usize) -> Result<Vec<u8>, EncodeError> {
    let mut e = Encoder::new_at(order, Version::V1_2, offset);
    any.encode(&mut e)?;
    Ok(e.into_bytes().to_vec())
}

/// Returns an any with a value that its implementation wrote in that order.
fn received<V: giop_codec::value::ValueType + Typed>(value: &Value<V>, order: ByteOrder) -> Any {
    let octets = raw(&V::type_code(), order, |e| Some(value.clone()).encode(e).unwrap());
    decode(&octets, order).unwrap()
}

#[test]
fn custom_values_are_carried_whole_in_their_own_order() {
    for order in ORDERS {
        let any = received(&stamp(), order);
        assert_eq!(any.get::<Of<Stamp>>().unwrap(), Some(stamp()));
        let other = if order == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
        let refused = at_offset(&any, other, 0).unwrap_err();
        assert_eq!(refused.kind, EncodeErrorKind::UnconvertibleCustomState);
        // At any offset, the 8-byte numbers in it remain aligned.
        for offset in 0..8 {
            let mut octets = vec![0; offset];
            octets.extend(at_offset(&any, order, offset).unwrap());
            let octets = Bytes::from(octets);
            let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
            d.take(offset).unwrap();
            let again = Any::decode(&mut d).unwrap();
            assert_eq!((d.remaining(), &again), (0, &any), "{offset}");
            let value = again.get::<Of<Stamp>>().unwrap().unwrap();
            assert_eq!(value, stamp());
            let value = value.get();
            assert!(value.one.as_ref().unwrap().is_same(value.two.as_ref().unwrap()));
        }
    }
    let made = Any::new(Some(stamp())).unwrap();
    assert_eq!(made.get::<Of<Stamp>>().unwrap(), Some(stamp()));
    let raw = Raw { base: Base { b: 5 }, text: "hello".into(), inner: list(2) };
    for order in ORDERS {
        assert_eq!(received(&Value::new(raw.clone()), order).get::<Of<Raw>>().unwrap(), some(raw.clone()));
    }
    assert!(Any::new(None::<Value<Raw>>).is_ok());
}

#[test]
fn bytes_of_a_custom_value_stay_as_they_are() {
    // With two values in it; the id of the second one is an indirection.
    let value = "7fffff0a 00000013 524d493a64656d6f2e5374616d703a303a3000 00 0000000c 0000000000000000 01020304 \
        7fffff0a 00000010 49444c3a542f4c4e6f64653a312e3000 00000003 010203 00 fffffffe \
        7fffff0a ffffffff ffffffd8 00000004 ffffffff fffffffe 00000004 7fffffff ffffffff";
    let moved = value.replacen("7fffff0a", "7fffff0e 00000001", 1);
    let mut phase = 0;
    let octets = raw(&Stamp::type_code(), ByteOrder::Big, |e| {
        e.align(4);
        phase = e.position() % 8;
        e.put_raw(&hex(value));
    });
    let any = decode(&octets, ByteOrder::Big).unwrap();
    let written = |phase| {
        let mut e = Encoder::new_at(ByteOrder::Big, Version::V1_2, phase);
        any.encode_value(&mut e).unwrap();
        e.into_bytes()
    };
    assert_eq!(written(phase), hex(value));
    // At the other phase the id is a list of one.
    assert_eq!(written(phase + 4), hex(&moved));
}

#[test]
fn a_custom_value_with_several_ids_may_be_sent_again_and_again() {
    let octets = raw(&Stamp::type_code(), ByteOrder::Big, |e| {
        e.align(4);
        e.put_raw(&hex("7fffff0e 00000002 0000000d 49444c3a542f54503a322e3000 000000 \
            00000013 524d493a64656d6f2e5374616d703a303a3000 00 00000004 01020304 ffffffff"));
    });
    let mut any = decode(&octets, ByteOrder::Big).unwrap();
    let (original, size) = (any.clone(), octets.len());
    // Each time that the state would lose its alignment, the list repeats one of its ids.
    for offset in [0, 4, 0, 4, 4, 0] {
        let mut octets = vec![0; offset];
        octets.extend(at_offset(&any, ByteOrder::Big, offset).unwrap());
        let octets = Bytes::from(octets);
        let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
        d.take(offset).unwrap();
        any = Any::decode(&mut d).unwrap();
        any.validate().unwrap();
        assert_eq!(d.remaining(), 0);
        assert_eq!(any, original);
        assert!(octets.len() <= offset + size + 24, "repeated ids do not accumulate");
    }
}

#[test]
fn custom_values_that_refer_to_what_is_not_in_the_any_are_refused() {
    for order in ORDERS {
        let shared = Value::new(LNode { v: 1, next: None });
        let stamp = Stamp { one: Some(shared.clone()), ..Stamp::default() };
        let mut e = Encoder::new(order, Version::V1_2);
        Some(shared).encode(&mut e).unwrap();
        Stamp::type_code().encode(&mut e).unwrap();
        some(stamp).encode(&mut e).unwrap();
        let octets = e.into_bytes();
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
        Of::<LNode>::decode(&mut d).unwrap();
        assert_eq!(Any::decode(&mut d).unwrap_err().kind, DecodeErrorKind::NotInAny);
    }
}

#[test]
fn custom_values_in_other_values_are_carried_too() {
    let (stamp, factories) = (stamp(), all());
    let one = stamp.get().one.clone().unwrap();
    // A value within the custom value is referred to from outside of it.
    let kids = vec![some(Tree { any: Some(one.upcast()), ..Tree::default() })];
    let tree = Value::new(Tree {
        name: "t".into(),
        any: Some(stamp.upcast()),
        kids: kids.clone(),
        ..Tree::default()
    });
    let later = Value::new(Tree { kids: vec![Some(tree.clone()), kids[0].clone()], ..Tree::default() });
    for order in ORDERS {
        for value in [&tree, &later] {
            let octets = raw(&Tree::type_code(), order, |e| Some(value.clone()).encode(e).unwrap());
            let any = decode_with(&octets, order, &factories).unwrap();
            assert_eq!(any.get::<Of<Tree>>().unwrap().as_ref(), Some(value));
            for offset in [0, 4] {
                let again = Bytes::from(at_offset(&any, order, offset).unwrap());
                let mut padded = vec![0; offset];
                padded.extend_from_slice(&again);
                let padded = Bytes::from(padded);
                let mut d = Decoder::from_bytes(&padded, order, Version::V1_2).with_context(&factories);
                d.take(offset).unwrap();
                let again = Any::decode(&mut d).unwrap();
                assert_eq!(again.get::<Of<Tree>>().unwrap().as_ref(), Some(value));
            }
        }
    }
}

#[test]
fn custom_values_are_shown_as_bytes() {
    for order in ORDERS {
        let any = received(&Value::new(Stamp { at: 1, ..Stamp::default() }), order);
        let dynamic = any.to_dynamic().unwrap();
        let node = &dynamic.graph.nodes[0];
        let Part::Items(items) = &node.members[0] else { panic!("{node:?}") };
        let Items::Octets(bytes) = &**items else { panic!("{node:?}") };
        let state = "00000018 0000000000000001 00000000 00000000 0000000000000000";
        let mut state = hex(state);
        if order == ByteOrder::Little {
            state[..4].reverse();
            state[4..12].reverse();
        }
        assert_eq!(bytes[..], state[..], "{order:?}");
        assert!(dynamic.check().is_ok());
        assert!(dynamic.to_string().contains("$bytes"), "{dynamic}");
        let error = Any::from_dynamic(&dynamic).unwrap_err();
        assert!(matches!(error.kind(), DynErrorKind::Inconsistent(_)), "{error}");
        #[cfg(feature = "serde")]
        assert!(any.to_json().unwrap().to_string().contains("\"$bytes\":\""));
    }
}

#[test]
fn hostile_custom_values_are_refused_or_carried() {
    for order in ORDERS {
        let octets = raw(&Stamp::type_code(), order, |e| Some(stamp()).encode(e).unwrap());
        for at in 0..octets.len() {
            for with in [octets[at] ^ 1 << (at % 8), 0, 0xFF] {
                let mut changed = octets.to_vec();
                changed[at] = with;
                let changed = Bytes::from(changed);
                let mut d = Decoder::from_bytes(&changed, order, Version::V1_2);
                let Ok(any) = Any::decode(&mut d) else { continue };
                let _ = (any.get::<Of<Stamp>>(), any.to_dynamic());
                if let Ok(octets) = at_offset(&any, order, 0) {
                    assert_eq!(decode(&Bytes::from(octets), order).as_ref(), Ok(&any), "{at} {with}");
                }
            }
            assert!(decode(&octets.slice(..at), order).is_err());
        }
    }
}

#[test]
fn values_are_taken_out_as_a_base_or_as_value_base() {
    let derived = Derived { base: Base { b: 1 }, d: 2 };
    let whole = Value::new(derived.clone());
    let made = Any::new(some(derived)).unwrap();
    assert!(made.is::<Of<Base>>() && made.is::<Of<ValueBase>>() && !made.is::<Of<Hdr>>());
    assert_eq!(made.get::<Of<Base>>().unwrap(), Some(whole.upcast()));
    assert_eq!(made.get::<Of<ValueBase>>().unwrap().unwrap().downcast::<Derived>().unwrap(), whole);
    for order in ORDERS {
        // Known to the receiver; then unknown, so that it is truncated.
        let any = decode_with(&octets(&made, order), order, &all()).unwrap();
        assert_eq!(any.get::<Of<Base>>().unwrap(), Some(whole.upcast()));
        let any = decode(&octets(&made, order), order).unwrap();
        assert_eq!(any.get::<Of<Base>>().unwrap(), some(Base { b: 1 }));
        assert_eq!(any.get::<Of<Derived>>().unwrap(), Some(whole.clone()));
        assert!(matches!(any.get::<Of<Hdr>>(), Err(AnyError::TypeMismatch { .. })));
        let unknown =
            |error| matches!(error, AnyError::Decode(error) if error.kind == DecodeErrorKind::NoValueFactory);
        assert!(unknown(any.get::<Of<ValueBase>>().unwrap_err()));
        // A value that must not be truncated.
        let vb2 = Any::new(some(Vb2 { base: Base { b: 1 }, d: 2 })).unwrap();
        let vb2 = decode(&octets(&vb2, order), order).unwrap();
        assert!(vb2.is::<Of<Base>>());
        assert!(unknown(vb2.get::<Of<Base>>().unwrap_err()));
        // With values in the truncated part.
        let tp = Any::new(some(Tp { base: Hdr { h: 9 }, a: list(2), mid: 10, z: list(1) })).unwrap();
        let tp = decode(&octets(&tp, order), order).unwrap();
        assert_eq!(tp.get::<Of<Hdr>>().unwrap(), some(Hdr { h: 9 }));
    }
    let boxed = Any::new(some(BoxStr("hi".into()))).unwrap();
    let boxed = boxed.get::<Of<ValueBase>>().unwrap().unwrap();
    assert_eq!(boxed.downcast::<BoxStr>().unwrap().get().0, "hi");
    assert!(matches!(Any::new(7_i32).unwrap().get::<Of<ValueBase>>(), Err(AnyError::TypeMismatch { .. })));
    let null = Any::new(None::<Value<Derived>>).unwrap();
    assert_eq!(null.get::<Of<Base>>().unwrap(), None);
}
