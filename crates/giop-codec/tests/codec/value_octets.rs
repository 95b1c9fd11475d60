//! Encodings of values: equal to those of omniORB 4.2.5, in both byte orders.

use crate::values::*;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder};
use giop_codec::ior::MAX_REPOSITORY_ID_BYTES;
use giop_codec::value::{Factories, GraphBuilder, StringValue, Value, ValueBase, ValueForm, WStringValue};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};

fn big(value: &impl CdrEncode) -> Vec<u8> {
    encoded(ByteOrder::Big, |e| value.encode(e))
}

fn decode<V: ValueForm>(octets: &[u8], order: ByteOrder) -> Option<Value<V>> {
    let factories = all();
    let mut d = Decoder::new(octets, order, Version::V1_2).with_context(&factories);
    let value = CdrDecode::decode(&mut d).unwrap();
    assert_eq!(d.remaining(), 0);
    value
}

/// Checks that a value is encoded as these bytes, and decoded from them.
fn both_ways<V: ValueForm>(value: Option<Value<V>>, octets: &str) {
    let octets = hex(octets);
    assert_eq!(big(&value), octets, "{}", show(&big(&value)));
    assert_eq!(decode::<V>(&octets, ByteOrder::Big), value);
    let little = encoded(ByteOrder::Little, |e| value.encode(e));
    assert_eq!(decode::<V>(&little, ByteOrder::Little), value);
}

fn show(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn base(b: i16) -> Value<Base> {
    Value::new(Base { b })
}

fn derived(b: i16, d: i32) -> Value<Derived> {
    Value::new(Derived { base: Base { b }, d })
}

fn list(items: &[i32]) -> Option<Value<LNode>> {
    items.iter().rev().fold(None, |next, v| Some(Value::new(LNode { v: *v, next })))
}

#[test]
fn null_and_values_of_the_expected_type_have_no_id() {
    both_ways::<Base>(None, "00000000");
    both_ways(Some(base(5)), "7fffff000005");
    both_ways(Some(derived(5, 6)), "7fffff000005000000000006");
    both_ways(Some(Value::new(BoxStr("hi".into()))), "7fffff0000000003686900");
}

#[test]
fn ids_of_java_are_written_also_where_the_type_is_that_of_the_place() {
    both_ways(
        Some(Value::new(Date { millis: 7 })),
        "7fffff02 00000012 524d493a64656d6f2e446174653a303a3000 0000 0000 0000 0000000000000007",
    );
    both_ways(
        Some(Value::new(WStringValue("hé".into()))),
        "7fffff02 00000023 49444c3a6f6d672e6f72672f434f5242412f57537472696e6756616c75653a312e3000 00 00000004 006800e9",
    );
    // An `RMI:` id is never an indirection; an `IDL:` id is.
    let values = [Some(Value::new(Date { millis: 7 })), Some(Value::new(Date { millis: 8 }))];
    let octets = big(&values.to_vec());
    assert_eq!(octets.windows(9).filter(|octets| *octets == b"RMI:demo.").count(), 2);
    let texts = ["a", "b"].map(|text| Some(Value::new(WStringValue(text.into()))));
    assert_eq!(show(&big(&texts.to_vec())).matches("57537472696e6756616c7565").count(), 1);
    // Other values have no id.
    both_ways(Some(Value::new(StringValue("hi".into()))), "7fffff00 00000003 686900");
    // All can be read without an id, too.
    let date = decode::<Date>(&hex("7fffff00 00000000 0000000000000007"), ByteOrder::Big);
    assert_eq!(date, Some(Value::new(Date { millis: 7 })));
}

#[test]
fn values_of_another_type_have_one_id() {
    both_ways(Some(base(5).upcast::<ValueBase>()), "7fffff020000000f49444c3a542f426173653a312e3000000005");
    let other = Value::new(Vb2 { base: Base { b: 5 }, d: 6 });
    both_ways(Some(other.upcast::<Base>()), "7fffff020000000e49444c3a542f5642323a312e3000000500000006");
}

#[test]
fn a_truncatable_value_has_all_ids_and_chunks() {
    both_ways(
        Some(derived(5, 6).upcast::<Base>()),
        "7fffff0e000000020000001249444c3a542f446572697665643a312e300000000000000f49444c3a542f426173653a312e30\
         0000000000080005000000000006ffffffff",
    );
}

#[test]
fn the_same_value_again_is_an_indirection() {
    let value = Some(base(5));
    let octets = encoded(ByteOrder::Big, |e| {
        value.encode(e)?;
        value.encode(e)
    });
    assert_eq!(octets, hex("7fffff0000050000fffffffffffffff4"));
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    let first = Option::<Value<Base>>::decode(&mut d).unwrap().unwrap();
    let second = Option::<Value<ValueBase>>::decode(&mut d).unwrap().unwrap();
    assert!(first.is_same(&second));
    assert_eq!(second.downcast::<Base>().unwrap().get().b, 5);
}

#[test]
fn a_cycle_ends_in_an_indirection() {
    let mut graph = GraphBuilder::new();
    let node = graph.reserve::<LNode>();
    assert!(graph.set(&node, LNode { v: 1, next: Some(node.clone()) }));
    let ring = graph.finish(&node);
    both_ways(Some(ring), "7fffff0000000001fffffffffffffff4");
    let ring = decode::<LNode>(&hex("7fffff0000000001fffffffffffffff4"), ByteOrder::Big).unwrap();
    assert!(ring.get().next.as_ref().unwrap().is_same(&ring));
}

#[test]
fn a_second_list_of_ids_is_an_indirection() {
    let values = [Some(derived(5, 6).upcast::<Base>()), Some(derived(7, 8).upcast::<Base>())];
    let octets = encoded(ByteOrder::Big, |e| values.iter().try_for_each(|value| value.encode(e)));
    assert_eq!(
        octets,
        hex(
            "7fffff0e000000020000001249444c3a542f446572697665643a312e300000000000000f49444c3a542f426173653a312e30\
             0000000000080005000000000006ffffffff7fffff0effffffffffffffb8000000080007000000000008ffffffff"
        )
    );
    let factories = all();
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&factories);
    for value in values {
        assert_eq!(Option::<Value<Base>>::decode(&mut d).unwrap(), value);
    }
}

/// cdr: "Chunking", with values in a chunked value.
const NESTED: &str = "0effff7f020000000d00000049444c3a542f54503a312e30000000000e00000049444c3a542f4864723a312e30000000\
    04000000090000000affff7f1000000049444c3a542f4c4e6f64653a312e300004000000010000000affff7fffffffffdcffffff\
    080000000200000000000000feffffff040000000a0000000affff7fffffffffb8ffffff080000000300000000000000ffffffff";

fn nested() -> Value<Tp> {
    Value::new(Tp { base: Hdr { h: 9 }, a: list(&[1, 2]), mid: 10, z: list(&[3]) })
}

#[test]
fn chunks_end_where_values_begin() {
    let octets = encoded(ByteOrder::Little, |e| Some(nested().upcast::<Hdr>()).encode(e));
    assert_eq!(octets, hex(NESTED), "{}", show(&octets));
    let read = decode::<Hdr>(&octets, ByteOrder::Little).unwrap();
    assert_eq!(read, nested().upcast());
    let whole = read.downcast::<Tp>().unwrap();
    assert_eq!(whole.get().z.as_ref().unwrap().get().v, 3);
}

#[test]
fn null_members_are_data_of_a_chunk() {
    let value = Value::new(Tp { base: Hdr { h: 9 }, a: None, mid: 10, z: None });
    let octets = encoded(ByteOrder::Little, |e| Some(value.upcast::<Hdr>()).encode(e));
    assert_eq!(
        octets,
        hex("0effff7f020000000d00000049444c3a542f54503a312e30000000000e00000049444c3a542f4864723a312e3000\
             00001000000009000000000000000a00000000000000ffffffff")
    );
}

#[test]
fn what_is_not_known_is_cut_off() {
    let mut octets = hex(NESTED);
    octets.extend([7, 0, 0, 0]);
    let mut d = Decoder::new(&octets, ByteOrder::Little, Version::V1_2);
    let value = Option::<Value<Hdr>>::decode(&mut d).unwrap().unwrap();
    assert_eq!(value, Value::new(Hdr { h: 9 }));
    assert_eq!(d.read_u32().unwrap(), 7);
}

#[test]
fn nothing_is_made_that_is_not_registered() {
    let octets = hex("7fffff020000000e49444c3a542f5642323a312e3000000500000006");
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    let error = Option::<Value<Base>>::decode(&mut d).unwrap_err();
    assert_eq!((error.kind, error.offset), (DecodeErrorKind::NoValueFactory, 0));
    let raised = error.to_system_exception(giop_codec::exception::CompletionStatus::No);
    assert_eq!(raised.minor, giop_codec::exception::minor::MARSHAL_NO_VALUE_FACTORY);
    // The type is known, but is not `LNode`.
    let factories = all();
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&factories);
    let error = Option::<Value<LNode>>::decode(&mut d).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::NoValueFactory);
    // An abstract type without an id.
    let octets = hex("7fffff00 0005");
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&factories);
    assert_eq!(Option::<Value<Named>>::decode(&mut d).unwrap_err().kind, DecodeErrorKind::NoValueFactory);
}

#[test]
fn a_codebase_is_read_and_dropped() {
    // "a" at 8, and an indirection to it.
    let octets = hex("7fffff01 00000002 6100 0005 7fffff01 ffffffff fffffff0 0006");
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    assert_eq!(Option::<Value<Base>>::decode(&mut d).unwrap(), Some(base(5)));
    assert_eq!(Option::<Value<Base>>::decode(&mut d).unwrap(), Some(base(6)));
}

#[test]
fn chunks_may_end_between_any_two_primitives() {
    // LNode in chunks of 4 and 4; then Tree with its string's length in one chunk and its text in another.
    let octets = hex("7fffff08 00000004 00000001 00000004 00000000 ffffffff");
    assert_eq!(decode::<LNode>(&octets, ByteOrder::Big), list(&[1]));
    let octets = hex(
        "7fffff08 00000004 00000003 00000003 686900 00 00000004 00000000 00000008 00000000 00000000 ffffffff",
    );
    let tree = Value::new(Tree { name: "hi".into(), ..Tree::default() });
    assert_eq!(decode::<Tree>(&octets, ByteOrder::Big), Some(tree));
    // A primitive split across two chunks is invalid.
    let octets = hex("7fffff08 00000002 0000 0000 00000006 0001 00000000 0000 ffffffff");
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    assert!(Option::<Value<LNode>>::decode(&mut d).is_err());
}

#[test]
fn a_chunk_may_stay_open_around_a_value() {
    // TAO's form: the outer chunk of 44 bytes contains the whole inner value.
    let whole = hex(
        "7fffff08 0000002c 00000001 7fffff0a 00000010 49444c3a542f4c4e6f64653a312e3000 00000008 00000002 00000000 fffffffe
         ffffffff",
    );
    assert_eq!(decode::<LNode>(&whole, ByteOrder::Big), list(&[1, 2]));
}

/// `Tp`, whose base is `Hdr`, in the encoding of TAO 2.2.1: the state of each base ends with the end tag of a
/// level that no value has.
const TAO_DERIVED: &str = "0effff7f 02000000 0d000000 49444c3a542f54503a312e3000 000000 0e000000 49444c3a542f4864723a312e3000 0000 \
     04000000 09000000 feffffff 0c000000 00000000 63000000 00000000 feffffff ffffffff";

/// Returns the same words in the other byte order; ids consist of bytes.
fn swapped(octets: &[u8], ids: &[core::ops::Range<usize>]) -> Vec<u8> {
    let mut swapped = Vec::new();
    for (at, word) in octets.chunks(4).enumerate() {
        let in_id = ids.iter().any(|id| id.contains(&(at * 4)));
        swapped.extend(word.iter().copied().rev().filter(|_| !in_id));
        swapped.extend(word.iter().copied().filter(|_| in_id));
    }
    swapped
}

#[test]
fn end_tags_of_levels_that_no_value_has_end_nothing() {
    let whole = Value::new(Tp { base: Hdr { h: 9 }, a: None, mid: 99, z: None });
    let little = hex(TAO_DERIVED);
    let big = swapped(&little, &[12..28, 32..48]);
    for (order, mut octets) in [(ByteOrder::Little, little), (ByteOrder::Big, big)] {
        assert_eq!(decode::<Hdr>(&octets, order), Some(whole.upcast()), "whole");
        octets.extend([7; 4]);
        // Only the base is known.
        let mut d = Decoder::new(&octets, order, Version::V1_2);
        let cut = Option::<Value<Hdr>>::decode(&mut d).unwrap().unwrap();
        assert_eq!((cut.get().h, d.read_u32().unwrap()), (9, 0x0707_0707));
    }
}

#[test]
fn values_without_chunks_are_read_inside_of_a_chunk() {
    // The chunk of `Tp` holds two of `LNode`, one without an id and without chunks, and the other with an id.
    for (order, octets) in [
        (
            ByteOrder::Big,
            "7fffff08 0000003c 00000009 7fffff00 00000001 7fffff02 00000010 49444c3a542f4c4e6f64653a312e3000 00000002 00000000
             00000063 7fffff00 00000003 00000000 fffffffe ffffffff 07070707",
        ),
        (
            ByteOrder::Little,
            "08ffff7f 3c000000 09000000 00ffff7f 01000000 02ffff7f 10000000 49444c3a542f4c4e6f64653a312e3000 02000000 00000000
             63000000 00ffff7f 03000000 00000000 feffffff ffffffff 07070707",
        ),
    ] {
        let octets = hex(octets);
        let mut d = Decoder::new(&octets, order, Version::V1_2);
        let value = Option::<Value<Tp>>::decode(&mut d).unwrap().unwrap();
        let whole = Value::new(Tp { base: Hdr { h: 9 }, a: list(&[1, 2]), mid: 99, z: list(&[3]) });
        assert_eq!((value, d.read_u32().unwrap()), (whole, 0x0707_0707));
    }
}

#[test]
fn levels_begin_anew_inside_of_an_open_chunk() {
    // A `Tree` without name, kids or pairs, and a `Tp` in its chunk in TAO's form.
    let octets = hex(
        "7fffff08 00000064 00000001 00 000000 00000000 00000000
         7fffff0e 00000002 0000000d 49444c3a542f54503a312e3000 000000 0000000e 49444c3a542f4864723a312e3000 0000
         00000004 00000009 fffffffe 0000000c 00000000 00000063 00000000 fffffffe ffffffff ffffffff 07070707",
    );
    let tree = |value: Value<Hdr>| Tree { any: Some(value.upcast()), ..Tree::default() };
    let tp = Value::new(Tp { base: Hdr { h: 9 }, a: None, mid: 99, z: None });
    for (factories, value) in [(all(), tp.upcast()), (only_hdr(), Value::new(Hdr { h: 9 }))] {
        let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&factories);
        let read = Option::<Value<Tree>>::decode(&mut d).unwrap().unwrap();
        assert_eq!(read, Value::new(tree(value)));
        assert_eq!(d.read_u32().unwrap(), 0x0707_0707);
    }
}

fn only_hdr() -> Factories {
    let mut factories = Factories::default();
    factories.register::<Hdr>();
    factories
}

#[test]
fn a_value_of_end_tags_alone_ends() {
    let mut octets = hex("7fffff08 00000004 00000001");
    octets.extend([0xff, 0xff, 0xff, 0xf0].repeat(10_000));
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    assert_eq!(Option::<Value<LNode>>::decode(&mut d).unwrap_err().kind, DecodeErrorKind::EndOfData);
}

#[test]
fn an_indirection_to_an_id_may_lead_to_the_padding_before_it() {
    for (octets, order) in [
        (
            "7fffff0e 00000002 00000012 49444c3a542f446572697665643a312e3000 0000 0000000f 49444c3a542f426173653a312e3000 00
             00000008 0005 0000 00000006 ffffffff 7fffff02 ffffffff ffffffd4 0007",
            ByteOrder::Big,
        ),
        (
            "0effff7f 02000000 12000000 49444c3a542f446572697665643a312e3000 0000 0f000000 49444c3a542f426173653a312e3000 00
             08000000 0500 0000 06000000 ffffffff 02ffff7f ffffffff d4ffffff 0700",
            ByteOrder::Little,
        ),
    ] {
        let exact = hex(octets);
        let last = exact.len() - 6..exact.len() - 2;
        // The offset that leads to the id, and all offsets that lead to the two bytes of padding before it.
        for (back, found) in [(0, true), (1, true), (2, true), (3, true), (4, false), (-1, false)] {
            let mut octets = exact.clone();
            let word: [u8; 4] = octets[last.clone()].try_into().unwrap();
            let offset = |word| if order == ByteOrder::Big { i32::from_be_bytes(word) } else { i32::from_le_bytes(word) };
            let offset = offset(word) - back;
            let word = if order == ByteOrder::Big { offset.to_be_bytes() } else { offset.to_le_bytes() };
            octets[last.clone()].copy_from_slice(&word);
            let factories = all();
            let mut d = Decoder::new(&octets, order, Version::V1_2).with_context(&factories);
            assert_eq!(Option::<Value<Base>>::decode(&mut d).unwrap(), Some(derived(5, 6).upcast()));
            let again = Option::<Value<Base>>::decode(&mut d);
            assert_eq!(again == Ok(Some(base(7))), found, "{back}: {again:?}");
        }
    }
}

#[test]
fn custom_values_are_what_their_author_writes() {
    let raw = Raw { base: Base { b: 5 }, text: "hello".into(), inner: list(&[1, 2]) };
    let value = Some(Value::new(raw));
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = encoded(order, |e| {
            value.encode(e)?;
            value.encode(e)?;
            e.put_u32(7);
            Ok(())
        });
        let mut d = Decoder::new(&octets, order, Version::V1_2);
        // Data that the implementation of the type does not read is skipped.
        let read = Option::<Value<Raw>>::decode(&mut d).unwrap();
        assert_eq!(read, value);
        assert!(Option::<Value<Raw>>::decode(&mut d).unwrap().unwrap().is_same(&read.unwrap()));
        assert_eq!(d.read_u32().unwrap(), 7);
    }
}

#[test]
fn encapsulations_have_their_own_values() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let value = Some(base(5));
        let octets = encoded(order, |e| {
            value.encode(e)?;
            e.encapsulate(|e| {
                value.encode(e)?;
                value.encode(e)
            })?;
            value.encode(e)
        });
        let mut d = Decoder::new(&octets, order, Version::V1_2);
        let first = Option::<Value<Base>>::decode(&mut d).unwrap();
        let mut inner = d.encapsulation().unwrap();
        let second = Option::<Value<Base>>::decode(&mut inner).unwrap().unwrap();
        let third = Option::<Value<Base>>::decode(&mut inner).unwrap().unwrap();
        assert!(second.is_same(&third));
        assert!(!second.is_same(first.as_ref().unwrap()));
        let fourth = Option::<Value<Base>>::decode(&mut d).unwrap().unwrap();
        assert!(fourth.is_same(&first.unwrap()));
    }
}

#[test]
fn only_what_a_type_names_is_made() {
    let factories = Factories::default();
    let octets = hex("7fffff020000000f49444c3a542f426173653a312e3000000005");
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&factories);
    assert_eq!(Option::<Value<Base>>::decode(&mut d).unwrap(), Some(base(5)));
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&factories);
    assert!(Option::<Value<ValueBase>>::decode(&mut d).is_err());
}

#[test]
fn repository_ids_and_lists_of_them_over_their_limits_are_refused() {
    // Returns the error of decoding a value with these ids.
    let refused = |ids: &[String]| {
        let octets = encoded(ByteOrder::Big, |e| {
            match ids {
                [id] => {
                    e.put_u32(0x7FFF_FF02);
                    e.put_unconverted_str(id)?;
                }
                ids => {
                    e.put_u32(0x7FFF_FF06);
                    e.put_u32(u32::try_from(ids.len()).unwrap());
                    for id in ids {
                        e.put_unconverted_str(id)?;
                    }
                }
            }
            e.put_i16(5);
            Ok(())
        });
        Option::<Value<Base>>::decode(&mut Decoder::new(&octets, ByteOrder::Big, Version::V1_2))
            .unwrap_err()
            .kind
    };
    let (long, longer) = ("x".repeat(MAX_REPOSITORY_ID_BYTES), "x".repeat(MAX_REPOSITORY_ID_BYTES + 1));
    assert_eq!(refused(&[long]), DecodeErrorKind::NoValueFactory);
    assert_eq!(refused(&[longer]), DecodeErrorKind::LimitExceeded);
    let list = |n: usize| -> Vec<_> { (0..n).map(|i| format!("IDL:T/V{i}:1.0")).collect() };
    assert_eq!(refused(&list(64)), DecodeErrorKind::NoValueFactory);
    assert_eq!(refused(&list(65)), DecodeErrorKind::LimitExceeded);
}
