//! `@zero_copy` structs: explicit padding, and the same bytes as a plain struct at every position.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use bytes::{Bytes, BytesMut};
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{ByteOrder, Version};
use idl_macros::idl;
use zorb::{Bounded, Char, FixedSeq, Pad, Seq};

idl! {
    module Plain {
        struct Bin { short s; char c; long l; octet o; double d; };
        struct Nested { Bin two[2]; octet tag; unsigned long long stamp; };
        typedef sequence<Bin> Bins;
        typedef sequence<Nested> Nests;
        typedef double Row[40];
        struct Big { octet tag; Row rows[30]; };
        struct Bigs { Big one; Big few[3]; sequence<Big> all; };
        struct Holder {
            octet lead; Bins items; Bin one; Bin few[3]; Bin many[300]; sequence<Bin, 4> some; Nests nests; string tail;
        };
        union Choice switch (long) { case 1: Bins items; case 2: Bin one; case 3: Bin pair[2]; case 4: Nested nested; };
    };

    module Zero {
        @zero_copy struct Bin { short s; char c; long l; octet o; double d; };
        @zero_copy struct Nested { Bin two[2]; octet tag; unsigned long long stamp; };
        typedef sequence<Bin> Bins;
        typedef sequence<Nested> Nests;
        struct Holder {
            octet lead; Bins items; Bin one; Bin few[3]; Bin many[300]; sequence<Bin, 4> some; Nests nests; string tail;
        };
        union Choice switch (long) { case 1: Bins items; case 2: Bin one; case 3: Bin pair[2]; case 4: Nested nested; };

        @zero_copy struct Small { octet a; unsigned short b; char c[3]; octet d; long e; };
        typedef double Row[40];
        @zero_copy struct Big { octet tag; Row rows[30]; };
        struct Bigs { Big one; Big few[3]; sequence<Big> all; };
        @zero_copy struct Renamed { octet a; @rust_name("_pad0") unsigned long b; };
    };
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];
const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

fn zero_bin(i: usize) -> zero::Bin {
    zero::Bin {
        s: i as i16,
        c: Char(i as u8),
        l: -(i as i32),
        o: !(i as u8),
        d: i as f64 / 4.0,
        ..Default::default()
    }
}

fn plain_bin(i: usize) -> plain::Bin {
    let zero::Bin { s, c, l, o, d, .. } = zero_bin(i);
    plain::Bin { s, c, l, o, d }
}

fn zero_nested(i: usize) -> zero::Nested {
    zero::Nested {
        two: [zero_bin(i), zero_bin(i + 1)],
        tag: i as u8,
        stamp: i as u64 * 3,
        ..Default::default()
    }
}

fn plain_nested(i: usize) -> plain::Nested {
    plain::Nested { two: [plain_bin(i), plain_bin(i + 1)], tag: i as u8, stamp: i as u64 * 3 }
}

fn zero_holder() -> zero::Holder {
    zero::Holder {
        lead: 9,
        items: (0..9).map(zero_bin).collect(),
        one: zero_bin(1),
        few: [zero_bin(2), zero_bin(3), zero_bin(4)],
        many: FixedSeq::try_from((0..300).map(zero_bin).collect::<Vec<_>>()).unwrap(),
        some: Bounded::try_from((0..4).map(zero_bin).collect::<Seq<_>>()).unwrap(),
        nests: (0..5).map(zero_nested).collect(),
        tail: String::from("end"),
    }
}

fn plain_holder() -> plain::Holder {
    plain::Holder {
        lead: 9,
        items: (0..9).map(plain_bin).collect(),
        one: plain_bin(1),
        few: [plain_bin(2), plain_bin(3), plain_bin(4)],
        many: (0..300).map(plain_bin).collect::<Vec<_>>().try_into().unwrap(),
        some: Bounded::try_from((0..4).map(plain_bin).collect::<Vec<_>>()).unwrap(),
        nests: (0..5).map(plain_nested).collect(),
        tail: String::from("end"),
    }
}

/// Checks that both have the same bytes at every phase, in each byte order and version, and that each can
/// read the other's bytes.
fn alike<P, Z>(plain: &P, zero: &Z)
where
    P: CdrEncode + CdrDecode + PartialEq + Debug,
    Z: CdrEncode + CdrDecode + PartialEq + Debug,
{
    for order in ORDERS {
        for version in VERSIONS {
            for phase in 0..8 {
                let octets = encoded(plain, order, version, phase);
                assert_eq!(octets, encoded(zero, order, version, phase), "{order:?} {version:?} {phase}");
                assert_eq!(&decoded::<P>(&octets, order, version, phase).unwrap(), plain);
                assert_eq!(&decoded::<Z>(&octets, order, version, phase).unwrap(), zero);
                for cut in (phase..octets.len()).step_by(7.max(octets.len() / 100)) {
                    let cut = octets.slice(..cut);
                    assert!(decoded::<Z>(&cut, order, version, phase).is_err());
                }
            }
        }
    }
}

/// Returns the encoded value after `phase` bytes of filling, at an address that is a multiple of 64.
fn encoded(value: &impl CdrEncode, order: ByteOrder, version: Version, phase: usize) -> Bytes {
    let mut e = Encoder::new(order, version);
    // Wherever it has a choice, the encoder shares.
    e.set_chunk_threshold(1);
    e.put_raw(&[0xff; 8][..phase]);
    value.encode(&mut e).unwrap();
    let octets = e.into_bytes();
    let mut memory = BytesMut::zeroed(octets.len() + 64);
    let base = memory.as_ptr().align_offset(64);
    memory[base..base + octets.len()].copy_from_slice(&octets);
    memory.freeze().slice(base..base + octets.len())
}

fn decoded<T: CdrDecode>(
    octets: &Bytes,
    order: ByteOrder,
    version: Version,
    phase: usize,
) -> Result<T, giop_codec::DecodeError> {
    let mut d = Decoder::from_bytes(octets, order, version).at(phase);
    let value = T::decode(&mut d)?;
    assert_eq!(d.remaining(), 0);
    Ok(value)
}

#[test]
fn they_have_the_octets_of_plain_structs_wherever_they_stand() {
    alike(&plain_bin(3), &zero_bin(3));
    alike(&plain_nested(3), &zero_nested(3));
    for n in [0, 1, 2, 50] {
        alike(&(0..n).map(plain_bin).collect::<Vec<_>>(), &(0..n).map(zero_bin).collect::<Seq<_>>());
        alike(&(0..n).map(plain_nested).collect::<Vec<_>>(), &(0..n).map(zero_nested).collect::<Seq<_>>());
    }
    alike(&plain_holder(), &zero_holder());
    alike(&vec![plain_holder(), plain_holder()], &vec![zero_holder(), zero_holder()]);
}

#[test]
fn large_arrays_lie_in_place() {
    let rows = |i: usize| -> [[f64; 40]; 30] {
        std::array::from_fn(|row| std::array::from_fn(|at| (i * row + at) as f64))
    };
    let zero = |i| zero::Big { tag: i as u8, rows: rows(i), ..Default::default() };
    let plain = |i| plain::Big { tag: i as u8, rows: Box::new(rows(i)) };
    let zeros = zero::Bigs {
        one: zero(1),
        few: FixedSeq::<zero::Big, 3>::from([zero(2), zero(3), zero(4)]),
        all: (5..9).map(zero).collect::<Seq<_>>(),
    };
    let plains =
        plain::Bigs { one: plain(1), few: [plain(2), plain(3), plain(4)], all: (5..9).map(plain).collect() };
    assert_eq!((size_of::<zero::Big>(), zero::Big::default().rows[29][39]), (8 + 9600, 0.0));
    alike(&plains, &zeros);
}

#[test]
fn they_may_be_members_of_unions() {
    use plain::Choice as P;
    use zero::Choice as Z;
    alike(&P::Items((0..3).map(plain_bin).collect()), &Z::Items((0..3).map(zero_bin).collect()));
    alike(&P::One(plain_bin(1)), &Z::One(zero_bin(1)));
    alike(&P::Pair([plain_bin(1), plain_bin(2)]), &Z::Pair([zero_bin(1), zero_bin(2)]));
    alike(&P::Nested(plain_nested(1)), &Z::Nested(zero_nested(1)));
}

#[test]
fn memory_is_laid_out_as_cdr_with_padding_as_members() {
    let zero::Bin { _pad0, _pad1, .. } = zero::Bin::default();
    assert_eq!((size_of_val(&_pad0), size_of_val(&_pad1)), (1, 7));
    assert_eq!((size_of::<zero::Bin>(), size_of::<zero::Nested>(), size_of::<zero::Small>()), (24, 64, 12));
    let small = zero::Small { a: 1, b: 2, c: [Char(3), Char(4), Char(5)], d: 6, e: 7, ..Default::default() };
    assert_eq!(small._pad0, Pad::<1>::ZERO);
    let memory = Seq::from([small]);
    assert_eq!(memory.as_bytes()[..2], [1, 0]);
    assert_eq!(memory.as_bytes()[4..8], [3, 4, 5, 6]);
    // Padding does not get the name of another member.
    let renamed = zero::Renamed { a: 1, _pad0: 5, _pad1: Pad::ZERO };
    assert_eq!(renamed._pad0, 5_u32);
}

#[test]
fn padding_is_ignored_on_receipt_and_zero_in_copies() {
    let order = ByteOrder::NATIVE;
    let items: Seq<zero::Nested> = (0..4).map(zero_nested).collect();
    let clean = encoded(&items, order, Version::V1_2, 4);
    let at = 8;
    // Overwrite every byte of padding.
    let mut dirty = BytesMut::from(&clean[..]);
    for element in 0..4 {
        for pad in [3, 9, 10, 15, 24 + 3, 24 + 9, 48 + 1, 48 + 7] {
            dirty[at + 64 * element + pad] = 0xAA;
        }
    }
    let mut memory = BytesMut::zeroed(dirty.len() + 64);
    let base = memory.as_ptr().align_offset(64);
    memory[base..base + dirty.len()].copy_from_slice(&dirty);
    let dirty = memory.freeze().slice(base..base + dirty.len());
    let view: Seq<zero::Nested> = decoded(&dirty, order, Version::V1_2, 4).unwrap();
    assert!(dirty.as_ptr_range().contains(&view.as_bytes().as_ptr()));
    assert_eq!(view, items);
    let hash = |item: &zero::Small| {
        let mut hasher = DefaultHasher::new();
        item.hash(&mut hasher);
        hasher.finish()
    };
    assert_eq!(hash(&zero::Small::default()), hash(&zero::Small::default()));
    assert_eq!(Seq::from(view.to_vec()).as_bytes(), items.as_bytes());
    assert_eq!(format!("{:?}", view[0]._pad0), "Pad");
    for phase in 0..8 {
        assert_eq!(
            encoded(&view.to_vec(), order, Version::V1_2, phase),
            encoded(&items, order, Version::V1_2, phase)
        );
    }
}
