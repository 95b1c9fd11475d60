//! Anys as received: their content is not inspected until it is used.

use bytes::Bytes;
use giop_codec::any::{Any, AnyError};
use giop_codec::cdr::{CdrDecode, CdrEncode, CharSet, CodeSets, Decoder, Encoder, Seq, WCharSet};
use giop_codec::typecode::TypeCode;
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, Version};

fn message_of(any: &Any) -> Bytes {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    any.encode(&mut e).unwrap();
    e.into_bytes()
}

fn utf() -> CodeSets {
    CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) }
}

#[test]
fn what_comes_out_is_a_view_of_the_message() {
    // A short value is copied, so that it does not pin the message.
    let message = message_of(&Any::new(vec![1.5_f64; 100]).unwrap());
    let any = Any::decode(&mut Decoder::from_bytes(&message, ByteOrder::NATIVE, Version::V1_2)).unwrap();
    assert!(message.is_unique() && any.is_as_received());
    let values = Seq::from(vec![1.5_f64; 10_000]);
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    Any::new(&values).unwrap().encode(&mut e).unwrap();
    let message = e.into_bytes();
    let any = Any::decode(&mut Decoder::from_bytes(&message, ByteOrder::NATIVE, Version::V1_2)).unwrap();
    assert!(!message.is_unique());
    let (one, other): (Seq<f64>, Seq<f64>) = (any.get().unwrap(), any.get().unwrap());
    assert_eq!(one, values);
    assert!(std::ptr::eq(&one[0], &other[0]));
    assert!(message.as_ptr_range().contains(&std::ptr::from_ref(&one[0]).cast()));
    // The value is sent without a copy.
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    any.encode(&mut e).unwrap();
    assert_eq!(e.chunk_count(), 1);
    assert!(e.copied() < 100);
}

/// A value that is not inspected is sent unchanged, from the message that contained it.
#[test]
fn an_any_that_is_passed_on_is_neither_decoded_nor_copied() {
    let foreign = if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
    let text = "\u{20ac}uro".repeat(3000);
    for order in [ByteOrder::NATIVE, foreign] {
        for any in
            [Any::new(vec![1.5_f64; 3000]), Any::new(vec![text.clone()]), Any::new(Any::new(&*text).unwrap())]
        {
            let written = |any: &Any, order| {
                let mut e = Encoder::new(order, Version::V1_2);
                e.set_code_sets(utf());
                any.encode(&mut e).unwrap();
                (e.chunk_count(), e.into_bytes())
            };
            let any = any.unwrap();
            let (_, message) = written(&any, order);
            let mut d = Decoder::from_bytes(&message, order, Version::V1_2);
            d.set_code_sets(utf());
            let received = Any::decode(&mut d).unwrap();
            assert!(received.is_as_received());
            let mut e = Encoder::new(order, Version::V1_2);
            e.set_code_sets(utf());
            received.encode(&mut e).unwrap();
            // Only the type code is copied.
            assert_eq!((e.chunk_count(), e.copied()), (1, 0));
            let mut pieces = std::collections::VecDeque::new();
            e.drain_into(&mut pieces);
            let payload = pieces.pop_back().unwrap();
            assert!(message.as_ptr_range().contains(&payload.as_ptr()));
            assert!(received.is_as_received());
            assert_eq!(written(&received, order).1, message);
            // A peer with the other byte order receives the same value.
            let other = if order == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
            assert_eq!(written(&received, other).1, written(&any, other).1);
            assert!(received.is_as_received());
            assert_eq!(received, any);
            assert!(!received.is_as_received());
        }
    }
}

#[test]
fn what_is_wrong_with_a_received_value_is_found_when_it_is_taken() {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    TypeCode::sequence(&TypeCode::STRING, 0).encode(&mut e).unwrap();
    e.put_u32(2);
    e.put_str("a").unwrap();
    e.put_u32(2);
    e.put_raw(&[0xFF, 0]);
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    d.set_code_sets(utf());
    let any = Any::decode(&mut d).unwrap();
    assert!(matches!(
        any.get::<Vec<String>>(),
        Err(AnyError::Decode(DecodeError { kind: DecodeErrorKind::InvalidText, .. }))
    ));
    assert_eq!(any.validate().unwrap_err().path().to_string(), "[1]");
    assert_eq!(any.to_dynamic().unwrap_err().path().to_string(), "[1]");
    assert_ne!(any, Any::new(vec!["a", "b"]).unwrap());
    assert_eq!(any, any.clone());
}

/// An any in an any, with a `true` encoded as 0x52, which no encoder writes.
#[test]
fn an_any_made_of_a_received_one_is_equal_to_it() {
    let octets = [11, 0, 0, 0, 8, 0, 0, 0, 0x52];
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut octets = octets;
        if order == ByteOrder::Big {
            octets[..4].reverse();
            octets[4..8].reverse();
        }
        let octets = Bytes::copy_from_slice(&octets);
        let outer = Any::decode(&mut Decoder::from_bytes(&octets, order, Version::V1_2)).unwrap();
        let inner: Any = outer.get().unwrap();
        assert!(inner.get::<bool>().unwrap());
        assert_eq!(Any::with_type(outer.type_code(), &inner).unwrap(), outer);
        assert_eq!(Any::new(vec![inner]).unwrap().get::<Vec<Any>>().unwrap(), [Any::new(true).unwrap()]);
    }
}

#[test]
fn an_any_made_of_one_that_is_no_value_is_made_all_the_same() {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    TypeCode::STRING.encode(&mut e).unwrap();
    e.put_u32(2);
    e.put_raw(&[0xFF, 0]);
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::NATIVE, Version::V1_2);
    d.set_code_sets(utf());
    let outer = Any::new(Any::decode(&mut d).unwrap()).unwrap();
    assert!(outer.get::<Any>().unwrap().get::<String>().is_err());
}
