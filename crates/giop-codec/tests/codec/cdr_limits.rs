//! The encoder's bookkeeping, encapsulations, and the limits of a decoder for hostile data.

use crate::cdr_types;

use std::collections::VecDeque;

use crate::cdr_types::{Node, ORDERS, encoded, hex};
use bytes::Bytes;
use giop_codec::ByteOrder::{Big, Little};
use giop_codec::cdr::{CdrDecode, CdrEncode, DecodeLimits, Decoder, Encoder, Seq};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeErrorKind, Version};

#[test]
fn a_count_beyond_the_data_is_refused_before_anything_is_allocated() {
    for count in [2u32, 1 << 20, u32::MAX] {
        for order in ORDERS {
            let mut e = Encoder::new(order, Version::V1_2);
            e.put_u32(count);
            e.put_u8(1);
            let octets = e.into_bytes();
            let refused = |kind: Result<(), DecodeError>| {
                assert_eq!(kind, Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, 0)), "{count}");
            };
            let d = || Decoder::new(&octets, order, Version::V1_2);
            refused(Bytes::decode(&mut d()).map(drop));
            refused(String::decode(&mut d()).map(drop));
            refused(Vec::<bool>::decode(&mut d()).map(drop));
            refused(Vec::<()>::decode(&mut d()).map(drop));
            refused(Vec::<String>::decode(&mut d()).map(drop));
            refused(Seq::<u64>::decode(&mut d()).map(drop));
            refused(Vec::<[f64; 1000]>::decode(&mut d()).map(drop));
            refused(d().encapsulation().map(drop));
        }
    }
}

#[test]
fn values_stop_at_the_memory_limit() {
    let octets = encoded(&vec![String::new(); 1000], Big, 0);
    let mut d = Decoder::new(&octets, Big, Version::V1_2);
    assert_eq!(d.limits(), DecodeLimits { depth: 64, alloc: 16 << 20 });
    d.set_limits(DecodeLimits { depth: 64, alloc: 24_000 });
    assert!(Vec::<String>::decode(&mut d.clone()).is_ok());
    d.set_limits(DecodeLimits { depth: 64, alloc: 23_999 });
    let error = Vec::<String>::decode(&mut d.clone()).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::AllocLimit);

    let octets = encoded(&Bytes::from(vec![1; 100]), Big, 0);
    let mut d = Decoder::new(&octets, Big, Version::V1_2);
    d.set_limits(DecodeLimits { depth: 1, alloc: 99 });
    assert_eq!(Bytes::decode(&mut d.clone()).unwrap_err().kind, DecodeErrorKind::AllocLimit);
    assert_eq!(Vec::<u8>::decode(&mut d).unwrap_err().kind, DecodeErrorKind::AllocLimit);
    // A view allocates nothing.
    let owner = Bytes::from(octets);
    let mut d = Decoder::from_bytes(&owner, Big, Version::V1_2);
    d.set_limits(DecodeLimits { depth: 1, alloc: 0 });
    assert_eq!(Bytes::decode(&mut d).unwrap().len(), 100);
}

#[test]
fn the_default_memory_limit_grows_with_the_data() {
    assert_eq!(DecodeLimits::for_data(4 << 20).alloc, 32 << 20);
    assert_eq!(DecodeLimits::for_data(usize::MAX).alloc, usize::MAX);
}

// clause: giop.limit.depth
#[test]
fn recursion_stops_at_the_depth_limit() {
    let nest =
        |levels: usize| (1..levels).fold(Node::default(), |inner, v| Node { v: v as i32, next: vec![inner] });
    for order in ORDERS {
        let octets = encoded(&nest(64), order, 0);
        assert_eq!(cdr_types::decoded(&octets, order, 0), Ok(nest(64)));
        let octets = encoded(&nest(66), order, 0);
        let error = cdr_types::decoded::<Node>(&octets, order, 0).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::DepthLimit);
    }
    let mut e = Encoder::new(Big, Version::V1_2);
    e.encapsulate(|e| e.encapsulate(|e| e.encapsulate(|_| Ok(())))).unwrap();
    let octets = e.into_bytes();
    let mut d = Decoder::new(&octets, Big, Version::V1_2);
    d.set_limits(DecodeLimits { depth: 2, alloc: 0 });
    let mut inner = d.encapsulation().unwrap().encapsulation().unwrap();
    assert_eq!(inner.encapsulation().unwrap_err().kind, DecodeErrorKind::DepthLimit);
}

#[test]
fn depth_is_given_back() {
    let octets = encoded(&vec![vec![1u32], vec![2]], Big, 0);
    let mut d = Decoder::new(&octets, Big, Version::V1_2);
    d.set_limits(DecodeLimits { depth: 3, alloc: 1000 });
    assert!(Vec::<Vec<u32>>::decode(&mut d).is_ok());
    assert!(d.nested(|d| d.read_u32()).is_err());
    assert_eq!(d.limits().depth, 3);
}

#[test]
fn an_encapsulation_has_its_own_origin_and_order() {
    for order in ORDERS {
        let chunk = Bytes::from(vec![9; 5000]);
        let mut e = Encoder::new(order, Version::V1_2);
        e.put_u8(1);
        e.encapsulate(|e| {
            assert_eq!(e.position(), 1);
            e.put_f64(1.5);
            chunk.encode(e)?;
            e.put_u16(7);
            Ok(())
        })
        .unwrap();
        assert_eq!(e.position(), 8 + 16 + 4 + 5000 + 2);
        e.put_u32(0xAABB);
        assert_eq!((e.chunk_count(), e.position()), (1, 5036));

        let octets = e.into_bytes();
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
        d.read_u8().unwrap();
        let mut inner = d.encapsulation().unwrap();
        assert_eq!((inner.position(), inner.order(), inner.remaining()), (1, order, 5021));
        assert_eq!(inner.read_f64(), Ok(1.5));
        let view = Bytes::decode(&mut inner).unwrap();
        assert_eq!(view, chunk);
        assert!(octets.as_ptr_range().contains(&view.as_ptr()), "a view through the encapsulation");
        assert_eq!(inner.read_u16(), Ok(7));
        assert_eq!(inner.remaining(), 0);
        assert_eq!(d.read_u32(), Ok(0xAABB));
    }
    // An encapsulation in the other byte order, and an empty one.
    let octets = hex("00000008 01 000000 02010000 00000000");
    let mut d = Decoder::new(&octets, Big, Version::V1_0);
    let mut inner = d.encapsulation().unwrap();
    assert_eq!((inner.order(), inner.version()), (Little, Version::V1_2));
    assert_eq!(inner.read_u32(), Ok(0x102));
    assert_eq!(d.encapsulation().unwrap_err().kind, DecodeErrorKind::EndOfData);
}

#[test]
fn a_failing_encapsulation_leaves_the_outer_state() {
    let mut e = Encoder::new(Big, Version::V1_1);
    e.put_u8(1);
    let mark = e.mark();
    let sets = e.code_sets();
    let result = e.encapsulate(|e| {
        Bytes::from(vec![0; 9000]).encode(e)?;
        e.put_str("a\0")
    });
    assert_eq!(result, Err(EncodeErrorKind::EmbeddedNul.into()));
    assert_eq!((e.version(), e.code_sets()), (Version::V1_1, sets));
    e.rewind(mark);
    assert_eq!((e.position(), e.chunk_count(), e.len()), (1, 0, 1));
    e.put_u32(2);
    assert_eq!(e.head(), hex("0100000000000002"));
}

#[test]
fn messages_gathered_in_one_encoder_align_each_on_its_own() {
    let mut e = Encoder::new(Big, Version::V1_2);
    e.put_raw(b"abc");
    Bytes::from(vec![0; 5000]).encode(&mut e).unwrap();
    e.begin_message(Little, Version::V1_0);
    assert_eq!((e.position(), e.order(), e.version()), (0, Little, Version::V1_0));
    e.put_u8(1);
    let at = e.head().len() + 3;
    e.put_u32(2);
    e.patch_u32(at, 3);
    e.patch_u32(usize::MAX, 4);
    e.patch_u32(e.head().len() - 3, 4);
    assert_eq!(e.position(), 8);
    assert!(e.into_bytes().ends_with(&hex("0100000003000000")));
}

#[test]
fn an_encoder_is_the_same_after_drain_and_reset() {
    let mut e = Encoder::new_at(Big, Version::V1_2, 4);
    e.put_u64(1);
    assert_eq!(e.head(), hex("00000000 0000000000000001"));
    let mut pieces = VecDeque::new();
    e.drain_into(&mut pieces);
    assert_eq!((pieces.len(), e.len(), e.chunk_count()), (1, 0, 0));
    e.reset(Little, Version::V1_1);
    e.align(8);
    e.put_u8(1);
    e.align(4);
    e.put_i64(-2);
    assert_eq!(e.head(), hex("01000000 00000000 feffffffffffffff"));
    assert_eq!(pieces[0], hex("00000000 0000000000000001"), "what was drained is untouched");
}

#[test]
fn alignment_is_checked_against_the_data() {
    let data = [0; 5];
    let mut d = Decoder::new(&data, Big, Version::V1_2);
    d.read_u32().unwrap();
    assert_eq!(d.read_u16(), Err(DecodeError::new(DecodeErrorKind::EndOfData, 4)));
    assert_eq!((d.position(), d.remaining()), (4, 1));
    d.read_u8().unwrap();
    assert_eq!(d.align(8), Err(DecodeError::new(DecodeErrorKind::EndOfData, 5)));
    assert_eq!(d.align(1), Ok(()));
    assert_eq!(d.read_u64().unwrap_err().kind, DecodeErrorKind::EndOfData);
    assert_eq!(Decoder::new(&data, Big, Version::V1_2).at(99).remaining(), 0);
    assert_eq!(d.take(usize::MAX).unwrap_err().kind, DecodeErrorKind::EndOfData);
    assert_eq!(d.error(DecodeErrorKind::EndOfData).to_string(), "data ends inside a value (at byte 5)");
}
