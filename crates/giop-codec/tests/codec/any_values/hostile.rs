//! Invalid encodings of graphs: anys and trees have the same result, and memory use stays within the limit.

use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::dynamic::program::Program;
use giop_codec::typecode::{TcKind, TypeCode, Typed, ValueModifier};

use super::trees::{graphs, kind, value_octets};
use super::*;

#[test]
fn hostile_octets_are_refused_by_trees_and_anys_alike() {
    let factories = all();
    let (mut good, mut bad) = (0, 0);
    for any in graphs() {
        let program = Program::of(any.type_code());
        for order in ORDERS {
            let octets = value_octets(&any, order);
            let mut both = |octets: Vec<u8>| {
                let octets = Bytes::from(octets);
                let decoder = || Decoder::from_bytes(&octets, order, Version::V1_2).with_context(&factories);
                let mut d = decoder();
                let read = program.decode(&mut d);
                let mut over = decoder();
                let kept = Any::decode_value(any.type_code(), &mut over);
                match (read, kept) {
                    (Ok(read), Ok(kept)) => {
                        good += 1;
                        assert_eq!(d.position(), over.position());
                        assert_eq!(kept.to_dynamic().unwrap(), read);
                        assert_eq!(Any::from_dynamic(&read).unwrap(), kept);
                    }
                    (Err(read), Err(kept)) => {
                        bad += 1;
                        // A chunk that is shorter than a primitive ends the data, or is not followed by a
                        // chunk.
                        let ended = |kind| match kind {
                            Some(DecodeErrorKind::EndOfData) => Some(DecodeErrorKind::Malformed),
                            kind => kind,
                        };
                        assert_eq!(ended(kind(&read)), ended(Some(kept.kind)), "{read} {kept}");
                    }
                    (Ok(read), Err(kept)) => panic!("{read} {kept}"),
                    (Err(read), Ok(_)) => panic!("{read}"),
                }
            };
            let len = octets.len();
            let places = (0..len).filter(|at| *at < 300 || len - at < 40);
            for at in places {
                both(octets[..at].to_vec());
                for with in [octets[at] ^ 1 << (at % 8), [0, 0xFF][at % 2]] {
                    let mut changed = octets.to_vec();
                    changed[at] = with;
                    both(changed);
                }
            }
        }
    }
    assert!(good > 1_000 && bad > 1_000, "{good} {bad}");
}

#[test]
fn wild_indirections_lead_nowhere() {
    let code = LNode::type_code();
    let program = Program::of(&code);
    // An offset in the second value.
    for offset in [i32::MIN, -1_000, -9, -8, -5, -4, -1, 0, 4, 8, i32::MAX] {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        e.put_u32(0x7FFF_FF00);
        e.put_u32(1);
        e.put_u32(u32::MAX);
        e.put_i32(offset);
        let octets = e.into_bytes();
        let error =
            program.decode(&mut Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2)).unwrap_err();
        assert_eq!(kind(&error), Some(DecodeErrorKind::Malformed), "{offset}");
        assert_eq!(error.path().to_string(), "->0.next", "{offset}");
    }
    // An indirection to a value of another type: for the decoder of the type, for anys and for trees.
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(1);
    some(Tree::default()).encode(&mut e).unwrap();
    e.put_u8(0);
    e.put_u32(u32::MAX);
    e.put_i32(4 - e.position() as i32);
    let octets = e.into_bytes();
    let decoder = || Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let pairs = Vec::<Pair>::type_code();
    assert_eq!(Vec::<Pair>::decode(&mut decoder()).unwrap_err().kind, DecodeErrorKind::Malformed);
    assert_eq!(Any::decode_value(&pairs, &mut decoder()).unwrap_err().kind, DecodeErrorKind::Malformed);
    let error = Program::of(&pairs).decode(&mut decoder()).unwrap_err();
    assert_eq!(
        (kind(&error), error.path().to_string()),
        (Some(DecodeErrorKind::Malformed), "[0].right".into())
    );
}

#[test]
fn nested_value_boxes_of_a_recursive_type_end_at_the_first_null() {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(TcKind::ValueBox.number());
    e.encapsulate(|e| {
        e.put_unconverted_str("IDL:T/Self:1.0")?;
        e.put_unconverted_str("Self")?;
        // To the kind, which is at the start of the message.
        e.put_u32(u32::MAX);
        e.put_i32(-(e.len() as i32));
        Ok(())
    })
    .unwrap();
    let octets = e.into_bytes();
    let code = TypeCode::decode(&mut Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2)).unwrap();
    let mut octets = [0x7F, 0xFF, 0xFF, 0x00].repeat(10_000);
    octets.extend([0; 4]);
    let octets = Bytes::from(octets);
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let tree = Program::of(&code).decode(&mut d).unwrap();
    assert_eq!(tree.graph.nodes.len(), 10_000);
    assert_eq!(Any::from_dynamic(&tree).unwrap().to_dynamic().unwrap(), tree);
}

#[test]
fn trees_take_no_more_memory_than_they_are_granted() {
    // Values without a state, of four bytes each.
    let code = TypeCode::create_value("IDL:T/E:1.0", "E", ValueModifier::None, None, &[]).unwrap();
    let count = 200_000_u32;
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(count);
    (0..count).for_each(|_| e.put_u32(0x7FFF_FF00));
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let error = Program::of(&TypeCode::sequence(&code, 0)).decode(&mut d).unwrap_err();
    assert_eq!(kind(&error), Some(DecodeErrorKind::AllocLimit));
}
