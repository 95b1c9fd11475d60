//! Fixed-layout types in runs: every phase and both byte orders, compared with members written one by one.
//! Also tests when [`Seq`] shares and copies.

use crate::cdr_types;

use std::collections::VecDeque;

use crate::cdr_types::{BinStruct, Colour, ORDERS, Odd, check_truncations, decoded, encoded, put_fields};
use bytes::{Bytes, BytesMut};
use giop_codec::cdr::{
    CdrDecode, CdrEncode, Char, Decoder, Element, Encoder, FixedLayout, FixedLengthError, FixedSeq, Layout,
    LongDouble, Seq,
};
use giop_codec::{ByteOrder, Version};
use proptest::prelude::*;

fn bins(n: usize) -> Vec<BinStruct> {
    (0..n)
        .map(|i| BinStruct {
            s: i as i16 - 7,
            c: Char(i as u8),
            l: -(i as i32) * 77_777,
            o: 255 - i as u8,
            d: i as f64 / 3.0,
        })
        .collect()
}

fn odd(n: usize) -> Odd {
    Odd {
        o: n as u8,
        bins: [bins(n + 1)[n].clone(), BinStruct::default(), bins(3)[2].clone()],
        colour: [Colour::Red, Colour::Green, Colour::Blue][n % 3],
        grid: [[1, -2, 3], [n as i16, 5, -6]],
        flag: n % 2 == 1,
    }
}

#[test]
fn struct_runs_equal_their_members_one_by_one() {
    for order in ORDERS {
        for phase in 0..8 {
            for n in [0, 1, 2, 3, 400] {
                let items = bins(n);
                let mut twin = Encoder::new_at(order, Version::V1_2, phase);
                twin.put_u32(n as u32);
                items.iter().for_each(|item| put_fields(item, &mut twin));
                let octets = encoded(&items, order, phase);
                assert_eq!(octets, twin.into_bytes(), "{n} {order:?} at {phase}");
                assert_eq!(decoded::<Vec<BinStruct>>(&octets, order, phase), Ok(items));
            }
        }
    }
}

#[test]
fn the_layout_of_bin_struct_is_that_of_the_book() {
    let layout = BinStruct::LAYOUT;
    assert_eq!((layout.align(), layout.size(0), layout.size(4), layout.stride()), (8, 24, 20, 24));
    assert!((0..8).all(|phase| layout.end_phase(phase) == 0));
    assert_eq!((layout.run_size(0, 3), layout.run_size(4, 3), layout.run_size(4, 0)), (72, 68, 0));
    assert_eq!((layout.run_padding(0), layout.run_padding(4), layout.min_size()), (Some(0), None, 20));
    let double = <f64 as FixedLayout>::LAYOUT;
    assert_eq!((double.run_padding(4), double.size(4), double.stride()), (Some(4), 12, 8));
    assert_eq!(Layout::EMPTY.then(double), double);
    assert_eq!(<[f64; 0] as FixedLayout>::LAYOUT, Layout::EMPTY);
}

#[test]
fn nested_layouts_return_at_every_phase() {
    for order in ORDERS {
        for phase in 0..8 {
            let items: Vec<Odd> = (0..5).map(odd).collect();
            let octets = encoded(&items, order, phase);
            assert_eq!(decoded::<Vec<Odd>>(&octets, order, phase).as_ref(), Ok(&items));
            check_truncations::<Vec<Odd>>(&octets, order, phase);

            let mut twin = Encoder::new_at(order, Version::V1_2, phase);
            twin.put_u32(5);
            for item in &items {
                twin.put_u8(item.o);
                item.bins.iter().for_each(|bin| put_fields(bin, &mut twin));
                twin.put_u32(item.colour as u32);
                item.grid.as_flattened().iter().for_each(|cell| twin.put_i16(*cell));
                twin.put_bool(item.flag);
            }
            assert_eq!(octets, twin.into_bytes(), "{order:?} at {phase}");
        }
    }
}

#[test]
fn arrays_have_no_count_and_go_in_row_major_order() {
    let array = [[1u16, 2, 3], [4, 5, 6]];
    for order in ORDERS {
        for phase in 0..8 {
            let octets = encoded(&array, order, phase);
            assert_eq!(octets.len(), phase % 2 + 12);
            assert_eq!(decoded(&octets, order, phase), Ok(array));
            assert_eq!(decoded::<Box<[[u16; 3]; 2]>>(&octets, order, phase).as_deref(), Ok(&array));
            check_truncations::<[[u16; 3]; 2]>(&octets, order, phase);
            let texts = ["a".to_string(), String::new()];
            let octets = encoded(&texts, order, phase);
            assert_eq!(decoded(&octets, order, phase), Ok(texts));
            check_truncations::<[String; 2]>(&octets, order, phase);
        }
    }
    assert_eq!(decoded::<[f64; 0]>(&[], ByteOrder::Big, 3), Ok([]));
}

#[test]
fn empty_values_take_no_octets() {
    assert!(encoded(&[[(); 3]; 2], ByteOrder::Big, 1).is_empty());
    let units = encoded(&vec![(); 3], ByteOrder::Big, 0);
    assert_eq!(units, [0, 0, 0, 3]);
    // A count of values that take no bytes is still limited by the remaining data.
    assert!(decoded::<Vec<()>>(&units, ByteOrder::Big, 0).is_err());
}

/// A message with `items` in native order after `lead` bytes, in memory that is `shift` bytes off alignment.
fn native<T: Element>(items: &Seq<T>, lead: usize, shift: usize) -> Bytes {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    e.put_raw(&vec![0; lead]);
    items.encode(&mut e).unwrap();
    let octets = e.into_bytes();
    let mut memory = BytesMut::zeroed(64 + octets.len() + shift);
    let start = memory.as_ptr().align_offset(64) + shift;
    memory[start..start + octets.len()].copy_from_slice(&octets);
    memory.freeze().slice(start..start + octets.len())
}

#[test]
fn aligned_sequences_are_views_and_misaligned_ones_copies() {
    let items: Seq<f64> = (0..100).map(f64::from).collect();
    for shift in 0..8 {
        let message = native(&items, 0, shift);
        let mut d = Decoder::from_bytes(&message, ByteOrder::NATIVE, Version::V1_2);
        let read = Seq::<f64>::decode(&mut d).unwrap();
        assert_eq!(read, items);
        assert_eq!(d.remaining(), 0);
        let inside = message.as_ptr_range().contains(&read.as_bytes().as_ptr());
        assert_eq!(inside, shift == 0, "shift {shift}");
        let mut d = Decoder::new(&message, ByteOrder::NATIVE, Version::V1_2);
        let copied = Seq::<f64>::decode(&mut d).unwrap();
        assert_eq!(copied, items);
        assert!(!message.as_ptr_range().contains(&copied.as_bytes().as_ptr()));
    }
}

#[test]
fn views_survive_their_message() {
    let items: Seq<u32> = (0..5000).collect();
    let message = native(&items, 4, 0);
    let mut d = Decoder::from_bytes(&message, ByteOrder::NATIVE, Version::V1_2).at(4);
    let read = Seq::<u32>::decode(&mut d).unwrap();
    drop(message);
    assert_eq!(read, items);
    assert_eq!(read.clone().into_vec(), (0..5000).collect::<Vec<u32>>());
}

#[test]
fn large_native_sequences_are_sent_without_a_copy() {
    let items: Seq<f64> = (0..1000).map(f64::from).collect();
    let octets = Bytes::from(vec![7; 5000]);
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    e.put_u8(1);
    items.encode(&mut e).unwrap();
    octets.encode(&mut e).unwrap();
    Seq::from([1u8, 2]).encode(&mut e).unwrap();
    assert_eq!((e.chunk_count(), e.position()), (2, 8 + 8000 + 4 + 5000 + 4 + 2));
    assert_eq!(e.len(), e.position());
    let mut pieces = VecDeque::new();
    e.drain_into(&mut pieces);
    assert!(e.is_empty());
    assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [8, 8000, 4, 5000, 6]);
    assert_eq!(pieces[1].as_ptr(), items.as_bytes().as_ptr());
    assert_eq!(pieces[3].as_ptr(), octets.as_ptr());
    let whole = pieces.iter().flatten().copied().collect::<Vec<u8>>();
    let mut d = Decoder::new(&whole, ByteOrder::NATIVE, Version::V1_2);
    assert_eq!(d.read_u8(), Ok(1));
    assert_eq!(Seq::<f64>::decode(&mut d).unwrap(), items);
    assert_eq!(Bytes::decode(&mut d).unwrap(), octets);
    assert_eq!(Seq::<u8>::decode(&mut d).unwrap(), [1, 2]);
}

#[test]
fn foreign_order_is_swapped_into_the_head() {
    let foreign = if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
    let items: Seq<u32> = (0..5000).collect();
    let mut e = Encoder::new(foreign, Version::V1_2);
    items.encode(&mut e).unwrap();
    assert_eq!(e.chunk_count(), 0);
    let octets = e.into_bytes();
    assert_eq!(decoded::<Seq<u32>>(&octets, foreign, 0).unwrap(), items);
    assert_eq!(octets[4..8], [0; 4]);
    assert_eq!(octets[8..12], if foreign == ByteOrder::Big { [0, 0, 0, 1] } else { [1, 0, 0, 0] });
}

/// A struct whose memory layout is its encoding, like `@zero_copy` types:
/// `{ short a; octet b; octet c; double d; }`.
#[derive(
    Clone,
    Debug,
    PartialEq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C)]
struct Plain {
    a: u16,
    b: u8,
    c: u8,
    e: [u8; 4],
    d: f64,
}

impl FixedLayout for Plain {
    const LAYOUT: Layout = Layout::EMPTY
        .then(<u16 as FixedLayout>::LAYOUT)
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<[u8; 4] as FixedLayout>::LAYOUT)
        .then(<f64 as FixedLayout>::LAYOUT);

    #[inline(always)]
    fn put(&self, w: &mut giop_codec::cdr::FixedWriter<'_>) {
        w.put(&self.a);
        w.put(&self.b);
        w.put(&self.c);
        w.put(&self.e);
        w.put(&self.d);
    }

    #[inline(always)]
    fn get(r: &mut giop_codec::cdr::FixedReader<'_>) -> Self {
        Plain { a: r.read(), b: r.read(), c: r.read(), e: r.read(), d: r.read() }
    }

    giop_codec::element_bytes!();
}

impl Element for Plain {}

giop_codec::fixed_cdr!(Plain);

#[test]
fn struct_elements_are_shared_from_the_second_on_when_the_first_has_another_phase() {
    let items: Seq<Plain> =
        (0..500u16).map(|i| Plain { a: i, b: 1, c: 2, e: [3; 4], d: f64::from(i) }).collect();
    for order in ORDERS {
        for phase in 0..8 {
            let mut twin = Encoder::new_at(order, Version::V1_2, phase);
            twin.put_u32(500);
            for item in &items {
                twin.put_u16(item.a);
                twin.put_raw(&[item.b, item.c]);
                twin.put_raw(&item.e);
                twin.put_f64(item.d);
            }
            let mut e = Encoder::new_at(order, Version::V1_2, phase);
            items.encode(&mut e).unwrap();
            assert_eq!(e.chunk_count(), usize::from(order == ByteOrder::NATIVE));
            let octets = e.into_bytes();
            assert_eq!(octets, twin.into_bytes(), "{order:?} at {phase}");
            assert_eq!(encoded(&items.to_vec(), order, phase), octets);
            assert_eq!(decoded::<Seq<Plain>>(&octets, order, phase).unwrap(), items);
            assert_eq!(decoded::<Vec<Plain>>(&octets, order, phase).unwrap(), items.to_vec());
        }
    }
}

#[test]
fn large_arrays_are_shared_and_have_no_count() {
    let grid: FixedSeq<[f64; 40], 30> = vec![[1.5; 40]; 30].try_into().unwrap();
    assert_eq!(FixedSeq::<u8, 3>::try_from(vec![1]), Err(FixedLengthError { length: 1, expected: 3 }));
    assert_eq!(FixedSeq::<u8, 3>::default(), [0; 3].into());
    for order in ORDERS {
        for phase in 0..8 {
            let mut e = Encoder::new_at(order, Version::V1_2, phase);
            grid.encode(&mut e).unwrap();
            assert_eq!(e.chunk_count(), usize::from(order == ByteOrder::NATIVE));
            let octets = e.into_bytes();
            assert_eq!(octets, encoded(&[[1.5; 40]; 30], order, phase));
            assert_eq!(decoded::<FixedSeq<[f64; 40], 30>>(&octets, order, phase).as_ref(), Ok(&grid));
            let short = decoded::<FixedSeq<[f64; 40], 31>>(&octets, order, phase);
            assert!(short.is_err());
        }
    }
}

#[test]
fn long_doubles_are_binary128_aligned_to_eight() {
    for (value, bits) in [
        (1.5, 0x3fff_8000_0000_0000_0000_0000_0000_0000_u128),
        (-2.0, 0xc000_0000_0000_0000_0000_0000_0000_0000),
        (0.0, 0),
        (-0.0, 1 << 127),
        (f64::INFINITY, 0x7fff << 112),
        (5e-324, 0x3bcd << 112),
        (f64::MIN_POSITIVE, 0x3c01 << 112),
    ] {
        let long = LongDouble::from(value);
        assert_eq!(long.to_bits(), bits, "{value}");
        assert_eq!(long.to_f64().to_bits(), f64::to_bits(value));
    }
    assert!(LongDouble::from(f64::NAN).is_nan() && LongDouble::from(f64::NAN).to_f64().is_nan());
    let octets = encoded(&LongDouble::from(1.5), ByteOrder::Big, 4);
    assert_eq!(octets, [&[0; 4][..], &[0x3f, 0xff, 0x80], &[0; 13]].concat());
    let octets = encoded(&LongDouble::from(1.5), ByteOrder::Little, 0);
    assert_eq!(octets, [&[0; 13][..], &[0x80, 0xff, 0x3f]].concat());
    // Halfway between 1 and the next f64: ties to even; a bit more rounds up.
    let one = LongDouble::from(1.0).to_bits();
    assert_eq!(LongDouble::from_bits(one | 1 << 59).to_f64(), 1.0);
    assert_eq!(LongDouble::from_bits(one | 1 << 59 | 1).to_f64(), 1.0 + f64::EPSILON);
    assert_eq!(LongDouble::from_bits(one | 3 << 59).to_f64(), 1.0 + 2.0 * f64::EPSILON);
    // Out of f64's range on either side, and rounding up into the next exponent.
    assert_eq!(LongDouble::from_bits(0x43ff << 112).to_f64(), f64::INFINITY);
    assert_eq!(LongDouble::from_bits(0x3bcc << 112).to_f64(), 0.0);
    assert_eq!(LongDouble::from_bits(0x3bcc << 112 | 1).to_f64(), 5e-324);
    assert_eq!(LongDouble::from_bits(0x43fe << 112 | u128::MAX >> 16).to_f64(), f64::INFINITY);
    assert_eq!(LongDouble::from_bits(1).to_f64(), 0.0);
}

/// Checks that `value` is decoded from its encoding in both orders at every phase, and that truncated
/// encodings are errors.
fn returns<T: CdrEncode + CdrDecode + PartialEq + std::fmt::Debug>(value: &T) {
    for order in ORDERS {
        for phase in 0..8 {
            let octets = encoded(value, order, phase);
            assert_eq!(decoded::<T>(&octets, order, phase).as_ref(), Ok(value), "{order:?} at {phase}");
            check_truncations::<T>(&octets, order, phase);
        }
    }
}

fn bin() -> impl Strategy<Value = BinStruct> {
    (any::<i16>(), any::<u8>(), any::<i32>(), any::<u8>(), -1e300..1e300f64)
        .prop_map(|(s, c, l, o, d)| BinStruct { s, c: Char(c), l, o, d })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn primitives_return(a: u8, b: i8, c: u16, d: i16, e: u32, f: i32, g: u64, h: i64, i: bool, k in -1e30..1e30f32) {
        returns(&a);
        returns(&b);
        returns(&c);
        returns(&d);
        returns(&e);
        returns(&f);
        returns(&g);
        returns(&h);
        returns(&i);
        returns(&k);
        returns(&f64::from(k));
        returns(&Char(a));
        returns(&LongDouble::from(f64::from(k)));
    }

    #[test]
    fn sequences_return(
        a: Vec<bool>,
        b in proptest::collection::vec(any::<i16>(), 0..20),
        c in proptest::collection::vec(any::<u64>(), 0..20),
        d in proptest::collection::vec(bin(), 0..6),
        e in proptest::collection::vec("[^\\x00-\\x1f\\u{100}-\\u{10ffff}]{0,6}", 0..6),
    ) {
        returns(&a);
        returns(&Seq::from(b.clone()));
        returns(&b);
        returns(&Seq::from(c.clone()));
        returns(&vec![c.clone(), Vec::new(), c]);
        returns(&d);
        returns(&e);
        returns(&Bytes::from(b.iter().map(|b| *b as u8).collect::<Vec<u8>>()));
    }

    #[test]
    fn every_f64_passes_through_long_double(bits: u64) {
        let value = f64::from_bits(bits);
        let back = LongDouble::from(value).to_f64();
        prop_assert!(back.to_bits() == bits || value.is_nan() && back.is_nan());
    }

    #[test]
    fn random_octets_never_panic(octets: Vec<u8>, little: bool, phase in 0usize..8) {
        let order = ByteOrder::from_flag(u8::from(little));
        let data = [vec![0; phase], octets].concat();
        let d = || Decoder::new(&data, order, Version::V1_2).at(phase);
        let _ = Vec::<Odd>::decode(&mut d());
        let _ = Vec::<cdr_types::U>::decode(&mut d());
        let _ = Vec::<cdr_types::Node>::decode(&mut d());
        let _ = Vec::<Seq<f64>>::decode(&mut d());
        let _ = Vec::<[Bytes; 3]>::decode(&mut d());
        let _ = <[Odd; 3]>::decode(&mut d());
        let _ = d().encapsulation().and_then(|mut d| d.encapsulation());
    }
}
