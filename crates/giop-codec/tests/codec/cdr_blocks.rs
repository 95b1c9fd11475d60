//! Long runs of structs are encoded to memory blocks that are reused without being zeroed.

use std::collections::VecDeque;
use std::fmt::Debug;

use crate::cdr_types::{BinStruct, Colour, ORDERS, Odd, decoded, encoded};
use allocation_counter::measure;
use bytes::Bytes;
use giop_codec::cdr::{
    CdrDecode, CdrEncode, Char, Encoder, FixedLayout, FixedReader, FixedWriter, Layout, LongDouble,
};
use giop_codec::{ByteOrder, Version};

/// Padding before a 16-byte number and after a single byte.
#[derive(Clone, Debug, PartialEq)]
struct Sparse {
    a: u8,
    long: LongDouble,
    b: u8,
    three: [u8; 3],
    c: u16,
}

impl FixedLayout for Sparse {
    const LAYOUT: Layout = Layout::EMPTY
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<LongDouble as FixedLayout>::LAYOUT)
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<[u8; 3] as FixedLayout>::LAYOUT)
        .then(<u16 as FixedLayout>::LAYOUT);

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put(&self.a);
        w.put(&self.long);
        w.put(&self.b);
        w.put(&self.three);
        w.put(&self.c);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> Self {
        Sparse { a: r.read(), long: r.read(), b: r.read(), three: r.read(), c: r.read() }
    }
}

giop_codec::fixed_cdr!(Sparse);

/// Encodes `f` and returns the bytes and the number of chunks.
fn encode(e: &mut Encoder, order: ByteOrder, phase: usize, f: impl FnOnce(&mut Encoder)) -> (Vec<u8>, usize) {
    e.reset(order, Version::V1_2);
    e.put_raw(&[0; 8][..phase]);
    f(e);
    let chunks = e.chunk_count();
    let mut pieces = VecDeque::new();
    e.drain_into(&mut pieces);
    (pieces.iter().flatten().copied().skip(phase).collect(), chunks)
}

/// Checks that a run has the same encoding in new memory and in memory that another run filled with ones.
fn no_octet_is_left_over<T: CdrEncode + CdrDecode + PartialEq + Debug + Clone>(item: T) {
    let items = vec![item; 2000];
    let ones = vec![Sparse { a: 255, long: LongDouble::from_bits(!0), b: 255, three: [255; 3], c: !0 }; 1500];
    let dense = vec![BinStruct { s: -1, c: Char(255), l: -1, o: 255, d: f64::from_bits(!0) }; 3000];
    for order in ORDERS {
        for phase in 0..8 {
            let mut e = Encoder::new(order, Version::V1_2);
            for filling in 0..3 {
                let (_, chunks) = encode(&mut e, order, filling, |e| {
                    ones.encode(e).unwrap();
                    dense.encode(e).unwrap();
                });
                assert_eq!(chunks, 2);
            }
            let (octets, chunks) = encode(&mut e, order, phase, |e| items.encode(e).unwrap());
            assert_eq!(chunks, 1);
            let mut one_by_one = Encoder::new_at(order, Version::V1_2, phase);
            one_by_one.put_u32(items.len() as u32);
            items.iter().for_each(|item| item.encode(&mut one_by_one).unwrap());
            assert!(octets == one_by_one.head(), "{order:?} {phase}");
            assert!(octets == encoded(&items, order, phase), "{order:?} {phase}");
            assert!(decoded::<Vec<T>>(&octets, order, phase).unwrap() == items);
        }
    }
}

#[test]
fn a_block_used_again_shows_nothing_of_its_last_use() {
    no_octet_is_left_over(BinStruct::default());
    no_octet_is_left_over(Odd::default());
    no_octet_is_left_over(Odd { colour: Colour::Blue, ..Odd::default() });
    no_octet_is_left_over(Sparse { a: 1, long: 2.5.into(), b: 3, three: [4, 5, 6], c: 7 });
}

#[test]
fn runs_of_changing_lengths_allocate_nothing_while_they_are_sent_in_time() {
    let runs: Vec<Vec<BinStruct>> = [2000, 20_000, 1500, 9000].map(|n| vec![BinStruct::default(); n]).into();
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let mut sending = VecDeque::with_capacity(16);
    let mut message = |last: &mut VecDeque<Bytes>| {
        last.clear();
        e.reset(ByteOrder::NATIVE, Version::V1_2);
        runs.iter().for_each(|run| run.encode(&mut e).unwrap());
        e.drain_into(last);
    };
    (0..10).for_each(|_| message(&mut sending));
    assert_eq!(measure(|| (0..20).for_each(|_| message(&mut sending))).count_total, 0);
}

#[test]
fn a_peer_that_reads_nothing_pins_two_large_blocks_and_no_more() {
    let items = vec![BinStruct::default(); 50_000];
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let mut unsent = VecDeque::new();
    for _ in 0..10 {
        e.reset(ByteOrder::NATIVE, Version::V1_2);
        items.encode(&mut e).unwrap();
        e.drain_into(&mut unsent);
    }
    let whole: Vec<u8> = unsent.iter().flatten().copied().collect();
    let one = encoded(&items, ByteOrder::NATIVE, 0);
    assert!(whole.chunks(one.len()).all(|message| message == one) && whole.len() == 10 * one.len());
    unsent.clear();
    e.reset(ByteOrder::NATIVE, Version::V1_2);
    assert!(e.capacity() < 4 * one.len(), "{}", e.capacity());
}
