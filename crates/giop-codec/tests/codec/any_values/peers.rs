//! Values in anys in the encodings of other ORBs.

use giop_codec::value::{StringValue, WStringValue};

use super::*;

fn any_of(code: &TypeCode, order: ByteOrder, value: &str) -> Bytes {
    raw(code, order, |e| {
        e.align(4);
        e.put_raw(&hex(value));
    })
}

#[test]
fn end_tags_that_end_nothing_are_passed_over_in_anys() {
    let tao = "0effff7f 02000000 0d000000 49444c3a542f54503a312e3000 000000 0e000000 49444c3a542f4864723a312e3000 0000 \
        04000000 09000000 feffffff 0c000000 00000000 63000000 00000000 feffffff ffffffff";
    let octets = any_of(&Hdr::type_code(), ByteOrder::Little, tao);
    let whole = Value::new(Tp { base: Hdr { h: 9 }, a: None, mid: 99, z: None });
    let known = decode_with(&octets, ByteOrder::Little, &all()).unwrap();
    assert_eq!(known.get::<Of<Hdr>>().unwrap(), Some(whole.upcast()));
    let cut = decode(&octets, ByteOrder::Little).unwrap();
    assert_eq!(cut.get::<Of<Hdr>>().unwrap(), some(Hdr { h: 9 }));
    assert_eq!(cut.to_dynamic().unwrap().graph.nodes.len(), 1);
}

#[test]
fn values_without_chunks_are_read_inside_of_a_chunk_of_an_any() {
    let value = "7fffff0a 0000000d 49444c3a542f54503a312e3000 000000 00000014 00000009 7fffff00 00000001 00000000 00000063 \
        00000004 00000000 fffffffe ffffffff";
    let any = decode(&any_of(&Tp::type_code(), ByteOrder::Big, value), ByteOrder::Big).unwrap();
    let tp = Tp { base: Hdr { h: 9 }, a: some(LNode { v: 1, next: None }), mid: 99, z: None };
    assert_eq!(any.get::<Of<Tp>>().unwrap(), some(tp));
}

/// The any that the ORB of the JDK sends for a `String`: the type code is that of a box of a `string`, the
/// value is a box of a `wstring`.
const JAVA_STRING: &str = "0000001e 00000044 00 000000 00000023 49444c3a6f6d672e6f72672f434f5242412f57537472696e6756616c75653a312e3000 00 \
    0000000c 537472696e6756616c756500 00000012 00000000 \
    7fffff02 00000023 49444c3a6f6d672e6f72672f434f5242412f57537472696e6756616c75653a312e3000 00 0000000c feff 0062 006f 0078 0065 0064";

#[test]
fn a_box_of_the_id_of_wstring_value_is_of_a_wstring() {
    let octets = Bytes::from(hex(JAVA_STRING));
    let any = decode(&octets, ByteOrder::Big).unwrap();
    assert_eq!(any.type_code().content_type().unwrap(), TypeCode::WSTRING);
    assert_eq!(any.get::<Of<WStringValue>>().unwrap(), some(WStringValue("boxed".into())));
    assert_eq!(passed_on(&any), any);
    assert!(any.to_dynamic().is_ok());
    // A box with another id contains a `string`.
    let mut other = hex(JAVA_STRING);
    for at in 0..other.len() - 7 {
        if &other[at..at + 7] == b"WString" {
            other[at..at + 7].copy_from_slice(b"TString");
        }
    }
    assert_eq!(decode(&Bytes::from(other), ByteOrder::Big), Err(DecodeErrorKind::StringNotTerminated));
}

#[test]
fn strings_of_java_are_wide_in_the_type_codes_of_other_values() {
    // `valuetype Person { WStringValue name; string id; };`, whose two members share one type code of a
    // string.
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(TcKind::Value.number());
    e.encapsulate(|e| {
        e.put_unconverted_str("RMI:demo.Person:0:0")?;
        e.put_unconverted_str("Person")?;
        e.put_u16(0);
        e.put_u32(TcKind::Null.number());
        e.put_u32(2);
        e.put_unconverted_str("name")?;
        e.put_u32(TcKind::ValueBox.number());
        e.encapsulate(|e| {
            e.put_unconverted_str("IDL:omg.org/CORBA/WStringValue:1.0")?;
            e.put_unconverted_str("StringValue")?;
            e.put_u32(TcKind::String.number());
            e.put_u32(0);
            Ok(())
        })?;
        e.put_u16(0);
        e.put_unconverted_str("id")?;
        e.put_u32(u32::MAX);
        // The kind of the string, before its bound, the visibility and the name.
        e.put_i32(-24);
        e.put_u16(0);
        Ok(())
    })
    .unwrap();
    e.align(4);
    e.put_raw(&hex("7fffff02 00000014 524d493a64656d6f2e506572736f6e3a303a3000"));
    e.put_raw(&hex("7fffff02 00000023 49444c3a6f6d672e6f72672f434f5242412f57537472696e6756616c75653a312e3000 00 00000004 00e90061"));
    e.put_raw(&hex("00000003 686900"));
    let any = decode(&e.into_bytes(), ByteOrder::Big).unwrap();
    let person = any.to_dynamic().unwrap();
    assert_eq!(person.graph.nodes[0].members[1], giop_codec::dynamic::Value::String("hi".into()));
    assert_eq!(person.graph.nodes[1].members[0], giop_codec::dynamic::Value::WString("\u{e9}a".into()));
}

#[test]
fn boxes_of_text_need_no_registration() {
    let values = [
        Value::new(WStringValue("w".into())).upcast::<ValueBase>(),
        Value::new(StringValue("s".into())).upcast(),
    ];
    for order in ORDERS {
        for value in &values {
            let octets = octets(&Any::new(Some(value.clone())).unwrap(), order);
            assert_eq!(decode(&octets, order).unwrap().get::<Of<ValueBase>>().unwrap().as_ref(), Some(value));
        }
    }
}
