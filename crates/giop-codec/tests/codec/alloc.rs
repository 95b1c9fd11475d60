//! Counts of heap allocations: none for encoding any type, nor for decoding fixed-layout and bulk types, once
//! the buffers have their size.

use std::collections::VecDeque;
use std::hint::black_box;

use crate::cdr_types::{BinStruct, Colour, Odd, U};
use allocation_counter::measure;
use bytes::{Bytes, BytesMut};
use giop_codec::any::Any;
use giop_codec::cdr::{
    Bounded, CdrDecode, CdrEncode, CharSet, CodeSets, DecodeLimits, Decoder, Encoder, LongDouble, Seq,
    WCharSet, WString,
};
use giop_codec::dynamic::program::Program;
use giop_codec::ior::Ior;
use giop_codec::typecode::TypeCode;
use giop_codec::{ByteOrder, EncodeError, Version};

const FOREIGN: ByteOrder =
    if matches!(ByteOrder::NATIVE, ByteOrder::Big) { ByteOrder::Little } else { ByteOrder::Big };

struct Everything {
    text: String,
    wide: WString,
    bounded: Bounded<String, 20>,
    strings: Vec<String>,
    octets: Bytes,
    doubles: Seq<f64>,
    bins: Vec<BinStruct>,
    odd: Odd,
    unions: Vec<U>,
    long: LongDouble,
    matrix: Box<[[f64; 64]; 64]>,
}

impl Everything {
    fn new() -> Everything {
        Everything {
            text: "na\u{ef}ve".repeat(100),
            wide: "\u{20ac}".repeat(100).into(),
            bounded: "bounded".try_into().unwrap(),
            strings: vec!["one".into(), "two".into()],
            octets: vec![1; 10_000].into(),
            doubles: vec![1.5; 5000].into(),
            bins: vec![BinStruct::default(); 3000],
            odd: Odd::default(),
            unions: vec![U::A(1), U::B(2, "b".into()), U::C(4, 0.5)],
            long: 1.5.into(),
            matrix: Box::new([[0.5; 64]; 64]),
        }
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(7);
        self.text.encode(e)?;
        self.wide.encode(e)?;
        self.bounded.encode(e)?;
        self.strings.encode(e)?;
        self.octets.encode(e)?;
        self.doubles.encode(e)?;
        self.bins.encode(e)?;
        self.odd.encode(e)?;
        self.unions.encode(e)?;
        self.long.encode(e)?;
        self.matrix.encode(e)?;
        e.encapsulate(|e| e.put_unconverted_str("inside"))
    }
}

#[test]
fn encoding_allocates_nothing_in_steady_state() {
    let values = Everything::new();
    for order in [ByteOrder::NATIVE, FOREIGN] {
        for char in [CharSet::Latin1, CharSet::Utf8] {
            let mut e = Encoder::new(order, Version::V1_2);
            let mut pieces = VecDeque::new();
            let mut message = || {
                e.reset(order, Version::V1_2);
                e.set_code_sets(CodeSets { char, wchar: Some(WCharSet::Utf16) });
                values.encode(&mut e).unwrap();
                e.drain_into(&mut pieces);
                black_box(&pieces);
                pieces.clear();
            };
            (0..3).for_each(|_| message());
            let counts = measure(|| (0..100).for_each(|_| message()));
            assert_eq!(counts.count_total, 0, "{order:?} {char:?}");
        }
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(measure(|| drop(black_box(vec![1u8]))).count_total, 1);
}

#[test]
fn a_drained_buffer_that_is_held_is_not_reused() {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let mut pieces = VecDeque::new();
    for message in 0..100u64 {
        e.reset(ByteOrder::NATIVE, Version::V1_2);
        [message; 50].encode(&mut e).unwrap();
        e.drain_into(&mut pieces);
    }
    assert_eq!(pieces.len(), 100);
    for (message, piece) in pieces.iter().enumerate() {
        let mut d = Decoder::new(piece, ByteOrder::NATIVE, Version::V1_2);
        assert_eq!(d.read_fixed::<[u64; 50]>(), Ok([message as u64; 50]));
    }
}

/// Copies `octets` to a shared buffer at a multiple of 64, as the receive pool provides it.
fn received(octets: &[u8]) -> Bytes {
    let mut memory = BytesMut::zeroed(octets.len() + 64);
    let start = memory.as_ptr().align_offset(64);
    memory[start..start + octets.len()].copy_from_slice(octets);
    let _ = memory.split_to(start);
    memory.split_to(octets.len()).freeze()
}

#[test]
fn decoding_fixed_layout_and_bulk_types_allocates_nothing() {
    for order in [ByteOrder::NATIVE, FOREIGN] {
        let values = Everything::new();
        let mut e = Encoder::new(order, Version::V1_2);
        values.octets.encode(&mut e).unwrap();
        values.odd.encode(&mut e).unwrap();
        values.long.encode(&mut e).unwrap();
        Colour::Blue.encode(&mut e).unwrap();
        [[1.5f64; 4]; 4].encode(&mut e).unwrap();
        values.bins.encode(&mut e).unwrap();
        e.encapsulate(|e| values.octets.encode(e)).unwrap();
        values.doubles.encode(&mut e).unwrap();
        let message = received(&e.into_bytes());
        let mut bins: Vec<BinStruct> = Vec::with_capacity(values.bins.len());
        let counts = measure(|| {
            let mut d = Decoder::from_bytes(&message, order, Version::V1_2);
            assert_eq!(Bytes::decode(&mut d).unwrap().len(), 10_000);
            assert_eq!(Odd::decode(&mut d).unwrap(), values.odd);
            assert_eq!(LongDouble::decode(&mut d).unwrap(), values.long);
            assert_eq!(Colour::decode(&mut d), Ok(Colour::Blue));
            assert_eq!(<[[f64; 4]; 4]>::decode(&mut d), Ok([[1.5; 4]; 4]));
            let n = d.read_len(20).unwrap();
            d.read_fixed_into(n, &mut bins).unwrap();
            let mut inner = d.encapsulation().unwrap();
            assert_eq!(Bytes::decode(&mut inner).unwrap().len(), 10_000);
            if order == ByteOrder::NATIVE {
                assert_eq!(Seq::<f64>::decode(&mut d).unwrap().len(), 5000);
            }
        });
        assert_eq!(bins, values.bins);
        assert_eq!(counts.count_total, 0, "{order:?}");
    }
}

#[test]
fn a_sequence_of_structs_takes_one_allocation() {
    for order in [ByteOrder::NATIVE, FOREIGN] {
        let mut e = Encoder::new(order, Version::V1_2);
        vec![BinStruct::default(); 3000].encode(&mut e).unwrap();
        let message = e.into_bytes();
        let counts = measure(|| {
            let mut d = Decoder::from_bytes(&message, order, Version::V1_2);
            drop(black_box(Vec::<BinStruct>::decode(&mut d).unwrap()));
        });
        assert_eq!(counts.count_total, 1, "{order:?}");
    }
}

#[test]
fn programs_go_over_values_and_turn_them_without_allocating() {
    let inner = TypeCode::create_struct(
        "IDL:S:1.0",
        "S",
        &[("a", &TypeCode::SHORT), ("b", &TypeCode::DOUBLE), ("c", &TypeCode::BOOLEAN)],
    )
    .unwrap();
    let members = [
        ("structs", &TypeCode::sequence(&inner, 0)),
        ("texts", &TypeCode::sequence(&TypeCode::STRING, 0)),
        ("numbers", &TypeCode::array(&TypeCode::LONG, 100)),
        ("any", &TypeCode::ANY),
        ("object", &TypeCode::OBJECT),
    ];
    let code = TypeCode::create_struct("IDL:T:1.0", "T", &members).unwrap();
    let program = Program::of(&code);
    for order in [ByteOrder::NATIVE, FOREIGN] {
        let mut e = Encoder::new(order, Version::V1_2);
        e.put_u32(1000);
        for _ in 0..1000 {
            e.put_i16(1);
            e.put_f64(1.5);
            e.put_bool(true);
        }
        vec!["text".to_owned(); 1000].encode(&mut e).unwrap();
        [7_i32; 100].encode(&mut e).unwrap();
        Any::new(5_i32).unwrap().encode(&mut e).unwrap();
        Ior::nil().encode(&mut e).unwrap();
        let mut octets = e.into_bytes().to_vec();
        let over = || {
            let mut d = Decoder::new(black_box(&octets), order, Version::V1_2);
            program.skip(&mut d).unwrap();
            assert_eq!(d.remaining(), 0);
            let mut d = Decoder::new(black_box(&octets), order, Version::V1_2);
            program.validate(&mut d).unwrap();
        };
        // The first use caches the properties of a type.
        over();
        assert_eq!(measure(over).count_total, 0);
        let turn = || {
            let limits = DecodeLimits::for_data(octets.len());
            program.swap(black_box(&mut octets), 0, order, Version::V1_2, limits).unwrap();
        };
        assert_eq!(measure(turn).count_total, 0);
    }
}
