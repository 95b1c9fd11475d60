//! Messages that are sent while they are encoded: byte for byte equal to messages that are encoded as a
//! whole.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::cdr_types::{BinStruct, Colour, ORDERS, Odd};
use bytes::Bytes;
use giop_codec::cdr::{CdrEncode, Char, CodeSets, Encoder, MIN_STREAMED_RUN_BYTES, Outlet, PIECE_BYTES};
use giop_codec::{ByteOrder, EncodeError, Version};
use proptest::prelude::*;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

/// An outlet that copies what it takes and reports that it was sent immediately.
#[derive(Debug, Default)]
struct Sink {
    taken: Mutex<Taken>,
    /// From this piece on nothing is sent; what it takes is held.
    blocks_at: usize,
}

#[derive(Debug, Default)]
struct Taken {
    octets: Vec<u8>,
    pieces: Vec<usize>,
    held: VecDeque<Bytes>,
    addresses: Vec<usize>,
}

impl Outlet for Sink {
    fn take(&self, message: u64, encoder: &mut Encoder) -> bool {
        assert_eq!(message, 7);
        let mut taken = self.taken.lock().unwrap();
        let mut parts = VecDeque::new();
        encoder.drain_into(&mut parts);
        taken.pieces.push(parts.iter().map(Bytes::len).sum());
        for part in &parts {
            taken.octets.extend_from_slice(part);
        }
        taken.addresses.extend(
            parts.iter().filter(|part| part.len() > PIECE_BYTES / 4).map(|part| part.as_ptr() as usize),
        );
        let leaves = taken.pieces.len() < self.blocks_at;
        if !leaves {
            taken.held.append(&mut parts);
        }
        leaves
    }
}

/// Encodes `put` in pieces, as a message whose first `offset` bytes are elsewhere. Returns the pieces and the
/// number of long runs.
fn in_pieces(
    e: &mut Encoder,
    (order, version, offset): (ByteOrder, Version, usize),
    blocks_at: usize,
    put: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
) -> (Taken, u32) {
    e.reset(order, version);
    e.put_raw(&vec![0; offset]);
    let begun = e.mark();
    e.begin_measuring_runs();
    put(e).unwrap();
    let (octets, runs) = (e.position(), e.end_measuring_runs());
    e.rewind(begun);
    let sink = Arc::new(Sink { blocks_at, ..Sink::default() });
    e.stream_to(order, version, CodeSets::default_for(version), offset, Arc::<Sink>::clone(&sink), 7);
    put(e).unwrap();
    assert_eq!(e.position(), octets, "the first pass counted right");
    let len = e.len();
    sink.take(7, e);
    e.reset(order, version);
    let taken = Arc::into_inner(sink).expect("the encoder let go of it").taken.into_inner().unwrap();
    assert_eq!((len, taken.octets.len()), (octets - offset, octets - offset));
    (taken, runs)
}

fn whole(
    (order, version, offset): (ByteOrder, Version, usize),
    put: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
) -> Vec<u8> {
    let mut e = Encoder::new_at(order, version, offset);
    put(&mut e).unwrap();
    e.into_bytes().to_vec()
}

fn bins(n: usize) -> Vec<BinStruct> {
    (0..n)
        .map(|i| BinStruct {
            s: i as i16,
            c: Char((i * 3) as u8),
            l: i as i32 * 77,
            o: (i >> 8) as u8,
            d: i as f64,
        })
        .collect()
}

fn odds(n: usize) -> Vec<Odd> {
    bins(n)
        .into_iter()
        .enumerate()
        .map(|(i, bin)| Odd {
            o: i as u8,
            bins: [bin.clone(), BinStruct::default(), bin],
            colour: [Colour::Red, Colour::Green, Colour::Blue][i % 3],
            grid: [[i as i16; 3], [7; 3]],
            flag: i % 2 == 0,
        })
        .collect()
}

/// A value of a message.
#[derive(Clone, Debug)]
enum Part {
    Text(usize),
    Octet,
    Long,
    Bins(usize),
    Odds(usize),
    Shared(usize),
    Enclosed(usize),
}

fn put(parts: &[Part], e: &mut Encoder) -> Result<(), EncodeError> {
    for part in parts {
        match *part {
            Part::Text(len) => "x".repeat(len).as_str().encode(e)?,
            Part::Octet => e.put_u8(9),
            Part::Long => e.put_u64(0x0102_0304_0506_0708),
            Part::Bins(n) => bins(n).as_slice().encode(e)?,
            Part::Odds(n) => odds(n).as_slice().encode(e)?,
            Part::Shared(len) => Bytes::from(vec![5; len]).encode(e)?,
            Part::Enclosed(n) => e.encapsulate(|e| bins(n).as_slice().encode(e))?,
        }
    }
    Ok(())
}

/// Numbers of elements around the length at which runs are long, and around whole pieces.
fn count(stride: usize) -> impl Strategy<Value = usize> {
    let about = |octets: usize| octets / stride;
    prop_oneof![
        0..3usize,
        about(MIN_STREAMED_RUN_BYTES) - 3..about(MIN_STREAMED_RUN_BYTES) + 3,
        about(3 * PIECE_BYTES) - 3..about(3 * PIECE_BYTES) + 3,
        about(7 * PIECE_BYTES / 2) - 3..about(7 * PIECE_BYTES / 2) + 3,
        about(MIN_STREAMED_RUN_BYTES)..about(6 * PIECE_BYTES),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        (0..40usize).prop_map(Part::Text),
        Just(Part::Octet),
        Just(Part::Long),
        count(24).prop_map(Part::Bins),
        count(96).prop_map(Part::Odds),
        prop_oneof![0..10usize, 4_000..9_000usize].prop_map(Part::Shared),
        count(24).prop_map(Part::Enclosed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_message_in_pieces_is_the_message(
        parts in prop::collection::vec(part(), 0..5),
        order in prop::sample::select(ORDERS.to_vec()),
        version in prop::sample::select(VERSIONS.to_vec()),
        offset in 0..17usize,
        blocks_at in 0..6usize,
    ) {
        let at = (order, version, offset);
        let expected = whole(at, |e| put(&parts, e));
        let mut e = Encoder::new(order, version);
        // The memory of one message is reused for the next.
        for _ in 0..2 {
            let (taken, _) = in_pieces(&mut e, at, blocks_at, |e| put(&parts, e));
            prop_assert!(taken.octets == expected);
        }
    }
}

#[test]
fn long_runs_leave_in_pieces_of_the_same_memory() {
    let values = bins(PIECE_BYTES / 6);
    let put = |e: &mut Encoder| {
        "before".encode(e)?;
        values.as_slice().encode(e)?;
        "behind".encode(e)
    };
    let at = (ByteOrder::NATIVE, Version::V1_2, 4);
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let (taken, runs) = in_pieces(&mut e, at, usize::MAX, put);
    assert_eq!((runs, taken.pieces.len()), (1, 4), "{:?}", taken.pieces);
    assert!(taken.pieces.iter().all(|len| *len < PIECE_BYTES * 3 / 2 + 100), "{:?}", taken.pieces);
    assert!(taken.addresses.iter().all(|address| *address == taken.addresses[0]));
    let room = e.capacity();
    assert!(room < 2 * PIECE_BYTES, "{room} octets are held");
    // Data that cannot be sent is encoded immediately.
    let (taken, _) = in_pieces(&mut e, at, 2, put);
    assert_eq!(taken.pieces.len(), 3, "{:?}", taken.pieces);
    assert!(taken.pieces[2] > PIECE_BYTES * 3 / 2);
}

#[test]
fn short_runs_and_those_in_encapsulations_stay() {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let at = (ByteOrder::NATIVE, Version::V1_2, 0);
    for part in [
        Part::Bins(MIN_STREAMED_RUN_BYTES / 24 - 1),
        Part::Enclosed(MIN_STREAMED_RUN_BYTES / 12),
        Part::Shared(MIN_STREAMED_RUN_BYTES),
    ] {
        let (taken, runs) = in_pieces(&mut e, at, usize::MAX, |e| put(std::slice::from_ref(&part), e));
        assert_eq!((runs, taken.pieces.len()), (0, 1), "{part:?}");
    }
}

#[test]
fn an_outlet_is_let_go_of_with_the_message() {
    let sink = Arc::new(Sink::default());
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let sets = CodeSets::default_for(Version::V1_2);
    e.stream_to(ByteOrder::NATIVE, Version::V1_2, sets, 0, Arc::<Sink>::clone(&sink), 7);
    assert_eq!(Arc::strong_count(&sink), 2);
    e.reset(ByteOrder::NATIVE, Version::V1_2);
    assert_eq!(Arc::strong_count(&sink), 1);
    bins(MIN_STREAMED_RUN_BYTES / 12).as_slice().encode(&mut e).unwrap();
    assert_eq!(sink.taken.lock().unwrap().pieces.len(), 0);
}
