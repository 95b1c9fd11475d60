//! Segmented messages: wherever a message is split, it is decoded to the same values or errors as in one
//! piece.

use crate::cdr_types::{BinStruct, Colour, Node, ORDERS, Odd, U};
use bytes::{Bytes, BytesMut};
use giop_codec::cdr::{
    Bounded, CdrDecode, CdrEncode, Char, Decoder, Element, Encoder, FixedLayout, FixedReader, FixedSeq,
    FixedWriter, Layout, LongDouble, Pad, Rewrites, Segments, Seq, WString,
};
use giop_codec::{ByteOrder, DecodeError, Version};
use proptest::prelude::*;

/// A random number generator that depends only on its seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 27)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn many<T>(&mut self, f: impl Fn(&mut Self) -> T) -> Vec<T> {
        let n = self.below(9);
        (0..n).map(|_| f(self)).collect()
    }

    fn text(&mut self) -> String {
        self.many(|d| char::from(b'a' + d.below(26) as u8)).into_iter().collect()
    }

    fn bin(&mut self) -> BinStruct {
        let (s, c, l, o) =
            (self.next() as i16, Char(self.next() as u8), self.next() as i32, self.next() as u8);
        BinStruct { s, c, l, o, d: self.below(1000) as f64 }
    }

    fn colour(&mut self) -> Colour {
        [Colour::Red, Colour::Green, Colour::Blue][self.below(3)]
    }

    fn odd(&mut self) -> Odd {
        let bins = [self.bin(), self.bin(), self.bin()];
        Odd { o: self.next() as u8, bins, colour: self.colour(), flag: true, ..Odd::default() }
    }
}

/// For each kind of member: writes a random one, and reads one as text.
macro_rules! members {
    ($($name:ident: $ty:ty = $make:expr;)*) => {
        const KINDS: usize = [$(stringify!($name)),*].len();

        fn put(kind: usize, dice: &mut Dice, e: &mut Encoder) {
            let mut at = 0;
            $(
                if at == kind {
                    let make: fn(&mut Dice) -> $ty = $make;
                    return make(dice).encode(e).unwrap();
                }
                at += 1;
            )*
            let length = dice.below(30);
            match kind - at {
                0 => e.encapsulate(|e| (0..length).try_for_each(|i| (i as u32).encode(e))).unwrap(),
                _ => e.put_raw(&vec![7; length]),
            }
        }

        fn read(kind: usize, dice: &mut Dice, d: &mut Decoder<'_>) -> Result<String, DecodeError> {
            let mut at = 0;
            $(
                if at == kind {
                    return <$ty>::decode(d).map(|value| format!("{value:?}"));
                }
                at += 1;
            )*
            let length = dice.below(30);
            match kind - at {
                0 => {
                    let mut inner = d.encapsulation()?;
                    let mut read = Vec::new();
                    while inner.remaining() > 0 {
                        read.push(inner.read_u32()?);
                    }
                    Ok(format!("{read:?}"))
                }
                _ => d.take(length).map(|octets| format!("{octets:?}")),
            }
        }
    };
}

members! {
    octet: u8 = |d| d.next() as u8;
    flag: bool = |d| d.below(2) == 1;
    short: i16 = |d| d.next() as i16;
    long: u32 = |d| d.next() as u32;
    double: f64 = |d| d.below(1 << 20) as f64;
    wide: LongDouble = |_| LongDouble::default();
    text: String = |d| d.text();
    texts: Vec<String> = |d| d.many(Dice::text);
    wide_text: WString = |d| WString::from(d.text());
    octets: Bytes = |d| d.many(|d| d.next() as u8).into();
    octet_lists: Vec<Vec<u8>> = |d| d.many(|d| d.many(|d| d.next() as u8));
    octets_lists: Vec<Bytes> = |d| d.many(|d| d.many(|d| d.next() as u8).into());
    shorts: Vec<u16> = |d| d.many(|d| d.next() as u16);
    longs: Seq<u32> = |d| d.many(|d| d.next() as u32).into();
    doubles: Seq<f64> = |d| d.many(|d| d.below(99) as f64).into();
    doubles_copied: Vec<f64> = |d| d.many(|d| d.below(99) as f64);
    five: FixedSeq<u32, 5> = |d| [d.next() as u32; 5].into();
    array: [i16; 3] = |d| [d.next() as i16; 3];
    arrays: Vec<[u64; 2]> = |d| d.many(|d| [d.next(); 2]);
    bounded: Bounded<String, 5> = |d| Bounded::new(d.text().chars().take(5).collect()).unwrap();
    bin: BinStruct = Dice::bin;
    bins: Vec<BinStruct> = |d| d.many(Dice::bin);
    three_bins: [BinStruct; 3] = |d| [d.bin(), d.bin(), d.bin()];
    odd: Odd = Dice::odd;
    odds: Vec<Odd> = |d| d.many(Dice::odd);
    colours: Vec<Colour> = |d| d.many(Dice::colour);
    choice: U = |d| if d.below(2) == 0 { U::A(3) } else { U::B(2, d.text()) };
    nodes: Node = |d| Node { v: 1, next: d.many(|d| Node { v: d.next() as i32, next: Vec::new() }) };
    over: Seq<Over> = |d| (0..d.below(5)).map(Over::sample).collect();
}

/// Splits a message at the given positions. Returns a buffer with the control part, and the segments, of
/// which some are blocks.
fn cut(message: &[u8], cuts: &[(usize, bool)]) -> (Bytes, Segments) {
    let mut places: Vec<(usize, bool)> =
        cuts.iter().map(|(at, block)| (at % (message.len() + 1), *block)).collect();
    places.sort_unstable();
    places.push((message.len(), true));
    let (mut control, mut segments, mut from, mut as_block) =
        (BytesMut::new(), Segments::default(), 0, false);
    for (at, block) in places {
        let piece = &message[from..at];
        if as_block {
            segments.push_block(Bytes::copy_from_slice(piece));
        } else {
            // Some pieces keep their alignment, others do not.
            let gap = if piece.len().is_multiple_of(3) { 1 } else { from.wrapping_sub(control.len()) % 8 };
            control.extend_from_slice(&[0xDD; 8][..if segments.is_empty() { 0 } else { gap }]);
            segments.push_control(control.len(), piece.len());
            control.extend_from_slice(piece);
        }
        (from, as_block) = (at, block);
    }
    (control.freeze(), segments)
}

/// Reads members up to the first error. Returns their text, the error, and the reader's position.
fn story(
    kinds: &[usize],
    seed: u64,
    d: &mut Decoder<'_>,
) -> (Vec<String>, Option<DecodeError>, usize, usize) {
    let (mut told, mut dice) = (Vec::new(), Dice(seed));
    for kind in kinds {
        match read(*kind, &mut dice, d) {
            Ok(text) => told.push(text),
            Err(error) => return (told, Some(error), 0, 0),
        }
    }
    (told, None, d.position(), d.remaining())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn wherever_a_message_is_cut_the_same_is_decoded(
        kinds in proptest::collection::vec(0..KINDS + 2, 1..12),
        seed in any::<u64>(),
        foreign in any::<bool>(),
        start in 0usize..20,
        cuts in proptest::collection::vec((any::<usize>(), any::<bool>()), 0..12),
        lost in prop_oneof![3 => Just(0), 1 => 0usize..40],
        damage in prop_oneof![2 => Just(None), 1 => any::<(usize, u8)>().prop_map(Some)],
    ) {
        let order = ORDERS[usize::from(foreign)];
        let mut e = Encoder::new(order, Version::V1_2);
        e.put_raw(&[0xEE; 20][..start]);
        let mut dice = Dice(seed);
        // The reader draws other random numbers, so its lengths of raw bytes may differ.
        kinds.iter().for_each(|kind| put(*kind, &mut dice, &mut e));
        let mut message = e.into_bytes().to_vec();
        message.truncate(message.len().saturating_sub(lost).max(start));
        if let Some((at, flip)) = damage {
            let len = message.len();
            if len > 0 {
                message[at % len] ^= flip;
            }
        }
        let whole = Bytes::from(message);
        let mut d = Decoder::from_bytes(&whole, order, Version::V1_2).at(start);
        let expected = story(&kinds, seed, &mut d);

        let (control, segments) = cut(&whole, &cuts);
        prop_assert_eq!(segments.len(), whole.len());
        let mut d = Decoder::from_bytes(&control, order, Version::V1_2).with_segments(&segments).at(start);
        prop_assert_eq!((d.position(), d.remaining()), (start, whole.len() - start));
        let found = story(&kinds, seed, &mut d);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn what_lies_in_a_block_is_a_view_of_it() {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let octets = Bytes::from(vec![1; 301]);
    let doubles = Seq::from(vec![2.5; 40]);
    7u32.encode(&mut e).unwrap();
    octets.encode(&mut e).unwrap();
    doubles.encode(&mut e).unwrap();
    "tail".encode(&mut e).unwrap();
    let message = e.into_bytes();
    let at = |inner: &[u8]| message.windows(inner.len()).position(|window| window == inner).unwrap();
    let (first, second) = (at(&octets), at(doubles.as_bytes()));
    let blocks: [Bytes; 2] = [Bytes::from(octets.to_vec()), Seq::from(doubles.to_vec()).into()];
    let control = [&message[..first], &message[first + 301..second], &message[second + 320..]].concat();
    let mut segments = Segments::default();
    let (between, tail) = (second - first - 301, message.len() - second - 320);
    segments.push_control(0, first);
    segments.push_block(blocks[0].clone());
    segments.push_control(first, between);
    segments.push_block(blocks[1].clone());
    segments.push_control(first + between, tail);
    let control = Bytes::from(control);

    let mut d = Decoder::from_bytes(&control, ByteOrder::NATIVE, Version::V1_2).with_segments(&segments);
    assert_eq!(d.read_u32(), Ok(7));
    assert_eq!(Bytes::decode(&mut d).unwrap().as_ptr(), blocks[0].as_ptr());
    let again = Vec::<f64>::decode(&mut d.clone()).unwrap();
    let viewed = Seq::<f64>::decode(&mut d).unwrap();
    assert_eq!((viewed.as_bytes().as_ptr(), viewed.as_slice()), (blocks[1].as_ptr(), &*again));
    assert_eq!((String::decode(&mut d).unwrap(), d.remaining()), ("tail".into(), 0));
    assert_eq!(segments.pieces(&control).flatten().copied().collect::<Vec<u8>>(), message);

    // All are views except one element that is split across two segments; for it the message is copied once
    // and shared.
    let mut segments = Segments::default();
    segments.push_control(0, message.len() - 3);
    segments.push_control(message.len() - 3, 3);
    let mut d = Decoder::from_bytes(&message, ByteOrder::NATIVE, Version::V1_2).with_segments(&segments);
    d.read_u32().unwrap();
    let view = Bytes::decode(&mut d).unwrap();
    assert!(message.as_ptr_range().contains(&view.as_ptr()));
    Seq::<f64>::decode(&mut d).unwrap();
    assert_eq!(String::decode(&mut d).unwrap(), "tail");
}

/// At phase 4 the layout of the first element differs from that in memory.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C)]
struct Over {
    s: i16,
    c: u8,
    _p: Pad<1>,
    l: i32,
    o: u8,
    _q: Pad<7>,
    d: f64,
}

impl Over {
    fn sample(i: usize) -> Over {
        Over { s: i as i16, c: 3, l: -(i as i32), o: 5, d: i as f64, ..Over::default() }
    }
}

impl FixedLayout for Over {
    const LAYOUT: Layout = <i16 as FixedLayout>::LAYOUT
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<i32 as FixedLayout>::LAYOUT)
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<f64 as FixedLayout>::LAYOUT);

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put(&self.s);
        w.put(&self.c);
        w.put(&self.l);
        w.put(&self.o);
        w.put(&self.d);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> Self {
        let (s, c, l, o, d) = (r.read(), r.read(), r.read(), r.read(), r.read());
        Over { s, c, l, o, d, ..Over::default() }
    }

    giop_codec::element_bytes!();
}

impl Element for Over {}

giop_codec::fixed_cdr!(Over);

type Story = ((Bytes, Seq<Over>), (Bytes, Seq<Over>));

fn two_and_two(d: &mut Decoder<'_>) -> Result<Story, DecodeError> {
    let first = (Bytes::decode(d)?, Seq::<Over>::decode(d)?);
    Ok((first, (Bytes::decode(d)?, Seq::<Over>::decode(d)?)))
}

fn over<'a>(control: &'a Bytes, segments: &'a Segments) -> Decoder<'a> {
    Decoder::from_bytes(control, ByteOrder::NATIVE, Version::V1_2).with_segments(segments)
}

/// Counts the sequences that become views of the control part. The range `apart` is a block of its own; the
/// part after it is `shift` bytes off its alignment.
fn views(apart: std::ops::Range<usize>, shift: usize) -> usize {
    let items: Seq<Over> = (0..1000).map(Over::sample).collect();
    let octets = Bytes::from(vec![1; 100]);
    let expected: Story = ((octets.clone(), items.clone()), (octets, items));
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    for (octets, items) in [&expected.0, &expected.1] {
        octets.encode(&mut e).unwrap();
        items.encode(&mut e).unwrap();
    }
    let message = e.into_bytes();
    let mut memory = BytesMut::zeroed(message.len() + 128);
    let base = memory.as_ptr().align_offset(64);
    let tail = message.len() - apart.end;
    let behind = apart.start.next_multiple_of(8) + apart.end % 8 + shift;
    memory[base..base + apart.start].copy_from_slice(&message[..apart.start]);
    memory[base + behind..base + behind + tail].copy_from_slice(&message[apart.end..]);
    let mut segments = Segments::default();
    segments.push_control(0, apart.start);
    segments.push_block(message.slice(apart));
    segments.push_control(behind, tail);

    let mut control = memory.freeze().slice(base..);
    let mut rewrites = Rewrites::default();
    let decoded = two_and_two(&mut over(&control, &segments).with_rewrites(&rewrites)).unwrap();
    if rewrites.is_empty() {
        assert!(decoded == expected);
        return 0;
    }
    drop(decoded);
    let mut memory = control.try_into_mut().unwrap();
    rewrites.apply(&mut memory);
    control = memory.freeze();
    let decoded = two_and_two(&mut over(&control, &segments).with_rewrites(&rewrites)).unwrap();
    assert!(decoded == expected);
    let is_view = |items: &&Seq<Over>| control.as_ptr_range().contains(&items.as_bytes().as_ptr());
    [&decoded.0.1, &decoded.1.1].iter().filter(|items| is_view(items)).count()
}

#[test]
fn first_elements_are_rewritten_in_control_octets_and_nowhere_else() {
    // The first of a thousand elements is four bytes shorter than in memory, and a count precedes the bytes.
    let second = 4 + 100 + 4 + (1000 * size_of::<Over>() - 4) + 4;
    assert_eq!(views(4..104, 0), 2, "both lie in control octets");
    assert_eq!(views(second..second + 100, 0), 2);
    assert_eq!(views(4..104, 4), 0, "an offset of other alignment");
    assert_eq!(views(second..second + 100, 4), 1);
    assert_eq!(views(4..second + 100, 0), 1, "one lies in the block");
    assert_eq!(
        views(second - 20..second + 100, 0),
        0,
        "one lies on both sides of a joint: the message is copied"
    );
    assert_eq!(views(104..106, 0), 0, "so does a count");
}
