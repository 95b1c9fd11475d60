//! Values in the form that TAO reads: the state of each base ends with an end tag.

use crate::values::*;
use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::dynamic::program::Program;
use giop_codec::typecode::Typed;
use giop_codec::value::{Value, ValueBase, ValueForm};
use giop_codec::{ByteOrder, Version};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

fn to_tao(order: ByteOrder, value: &impl CdrEncode) -> Vec<u8> {
    encoded(order, |e| {
        e.set_base_end_tags(true);
        value.encode(e)
    })
}

fn read<V: ValueForm>(octets: &[u8], order: ByteOrder) -> Option<Value<V>> {
    let factories = all();
    let mut d = Decoder::new(octets, order, Version::V1_2).with_context(&factories);
    let value = CdrDecode::decode(&mut d).unwrap();
    assert_eq!(d.remaining(), 0);
    value
}

fn derived() -> Value<Derived> {
    Value::new(Derived { base: Base { b: 5 }, d: 6 })
}

fn list(items: &[i32]) -> Option<Value<LNode>> {
    items.iter().rev().fold(None, |next, v| Some(Value::new(LNode { v: *v, next })))
}

#[test]
fn each_base_and_the_rest_of_the_state_have_an_end() {
    let value: Option<Value<Base>> = Some(derived().upcast());
    for (order, octets) in [
        (
            ByteOrder::Big,
            "7fffff0e 00000002 00000012 49444c3a542f446572697665643a312e3000 0000 0000000f 49444c3a542f426173653a312e3000 00
             00000002 0005 0000 fffffffe 00000004 00000006 fffffffe ffffffff",
        ),
        (
            ByteOrder::Little,
            "0effff7f 02000000 12000000 49444c3a542f446572697665643a312e3000 0000 0f000000 49444c3a542f426173653a312e3000 00
             02000000 0500 0000 feffffff 04000000 06000000 feffffff ffffffff",
        ),
    ] {
        assert_eq!(to_tao(order, &value), hex(octets));
        assert_eq!(read::<Base>(&hex(octets), order), value);
    }
    // A value of exactly the type of its place has no chunks, and needs no end tags.
    assert_eq!(to_tao(ByteOrder::Big, &Some(derived())), hex("7fffff00 0005 0000 00000006"));
}

#[test]
fn a_value_in_a_chunk_is_part_of_it_and_has_its_own_levels() {
    let tp = |h, a, mid| Value::new(Tp { base: Hdr { h }, a, mid, z: None });
    let inner: Value<Hdr> = tp(9, None, 99).upcast();
    let outer = Value::new(Wrap {
        base: Hdr { h: 1 },
        tree: Some(Value::new(Tree { any: Some(inner.upcast()), ..Tree::default() })),
        ..Wrap::default()
    });
    let octets = to_tao(ByteOrder::Big, &Some(outer.upcast::<Hdr>()));
    let state = hex(
        // The base, then the chunk with the tree, which contains the other value.
        "00000004 00000001 fffffffe 00000088
         7fffff02 0000000f 49444c3a542f547265653a312e3000 00 00000001 00 000000 00000000 00000000
         7fffff0e 00000002 0000000d 49444c3a542f54503a312e3000 000000 0000000e 49444c3a542f4864723a312e3000 0000
         00000004 00000009 fffffffe 0000000c 00000000 00000063 00000000 fffffffe ffffffff
         00000000 00000000 00000000 fffffffe ffffffff",
    );
    let at = octets.len() - state.len().min(octets.len());
    assert_eq!(show(&octets[at..]), show(&state));
    assert_eq!(read::<Hdr>(&octets, ByteOrder::Big), Some(outer.upcast()));
}

fn show(octets: &[u8]) -> String {
    octets
        .chunks(4)
        .map(|word| word.iter().map(|octet| format!("{octet:02x}")).collect::<String>() + " ")
        .collect()
}

/// Checks the encoding of a value, of an any, and of a tree.
fn all_ways<V: ValueForm + Typed>(value: &Value<V>)
where
    Option<Value<V>>: Typed,
{
    let code = <Option<Value<V>>>::type_code();
    for order in ORDERS {
        let value = Some(value.clone());
        let octets = to_tao(order, &value);
        assert_eq!(read::<V>(&octets, order), value, "{order:?}");

        let any = Any::new(value.clone()).unwrap();
        let octets = to_tao(order, &any);
        let shared = Bytes::from(octets);
        let factories = all();
        let mut d = Decoder::from_bytes(&shared, order, Version::V1_2).with_context(&factories);
        let again = Any::decode(&mut d).unwrap();
        assert_eq!(again.get::<Option<Value<V>>>().unwrap(), value, "{order:?}");

        let program = Program::of(&code);
        let octets = to_tao(order, &value);
        let octets = Bytes::from(octets);
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).with_context(&factories);
        let tree = program.decode(&mut d).unwrap();
        let mut e = Encoder::new(order, Version::V1_2);
        e.set_base_end_tags(true);
        program.encode(&tree, &mut e).unwrap();
        assert_eq!(read::<V>(&e.into_bytes(), order), value, "{order:?}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let shared = list(&[1, 2, 3]);
    let tp = Value::new(Tp { base: Hdr { h: 4 }, a: shared.clone(), mid: 5, z: shared.clone() });
    let tree = |any: Option<Value<ValueBase>>| {
        let leaf = Some(Value::new(Tree { name: "leaf".into(), ..Tree::default() }));
        let pair = Pair { left: leaf.clone(), o: 7, right: Some(derived().upcast()) };
        Some(Value::new(Tree { name: "tree".into(), kids: vec![leaf, None], pairs: vec![pair], any }))
    };
    let wrap = |any, tail| {
        let (data, numbers) = (Bytes::from_static(b"data"), vec![1.5, 2.5].into());
        Value::new(Wrap { base: Hdr { h: 8 }, tree: tree(any), data, numbers, tail })
    };
    let deep = wrap(Some(wrap(Some(tp.clone().upcast()), 1).upcast()), 2);
    all_ways::<Base>(&derived().upcast());
    all_ways::<Hdr>(&tp.clone().upcast());
    all_ways::<Hdr>(&wrap(None, 3).upcast());
    all_ways::<Hdr>(&deep.clone().upcast());
    all_ways::<Wrap>(&deep);
    all_ways::<Tp>(&tp);
    // The next message uses the standard form again.
    let value: Option<Value<Base>> = Some(derived().upcast());
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    let standard = encoded(ByteOrder::Big, |e| value.encode(e));
    e.set_base_end_tags(true);
    value.encode(&mut e).unwrap();
    e.reset(ByteOrder::Big, Version::V1_2);
    value.encode(&mut e).unwrap();
    assert_eq!(e.into_bytes(), standard);
}
