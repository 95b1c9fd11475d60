//! Positions in the outermost stream, from within encapsulations.

use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::{ByteOrder, Version};

/// Writes marks at several depths; returns the bytes and the encoder's position of each mark.
fn nested(order: ByteOrder, bulk: usize) -> (Bytes, Vec<usize>) {
    let mut e = Encoder::new(order, Version::V1_2);
    let mut places = Vec::new();
    let mark = |e: &mut Encoder, places: &mut Vec<usize>| {
        e.align(4);
        places.push(e.len());
        e.put_u32(0xABCD);
    };
    e.put_u8(9);
    mark(&mut e, &mut places);
    e.put_shared(Bytes::from(vec![7; bulk]));
    e.encapsulate(|e| {
        mark(e, &mut places);
        e.put_u8(1);
        e.encapsulate(|e| {
            mark(e, &mut places);
            Ok(())
        })?;
        mark(e, &mut places);
        Ok(())
    })
    .unwrap();
    mark(&mut e, &mut places);
    (e.into_bytes(), places)
}

#[test]
fn a_decoder_in_an_encapsulation_knows_where_it_is_in_the_whole() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        // Unaligned, so that positions modulo 4 differ inside and outside; in place, and as a separate chunk.
        for bulk in [0, 3, 5001] {
            let (octets, places) = nested(order, bulk);
            let mut found = Vec::new();
            let mark = |d: &mut Decoder<'_>, found: &mut Vec<usize>| {
                assert_eq!(d.read_u32().unwrap(), 0xABCD);
                found.push(d.stream_position() - 4);
            };
            let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
            d.read_u8().unwrap();
            mark(&mut d, &mut found);
            d.take(bulk).unwrap();
            let mut inner = d.encapsulation().unwrap();
            mark(&mut inner, &mut found);
            inner.read_u8().unwrap();
            let mut innermost = inner.encapsulation().unwrap();
            mark(&mut innermost, &mut found);
            mark(&mut inner, &mut found);
            mark(&mut d, &mut found);
            assert_eq!(found, places);
            assert_eq!(d.stream_position(), octets.len());
            for place in places {
                let mark = octets[place..place + 4].try_into().unwrap();
                let mark =
                    if order == ByteOrder::Big { u32::from_be_bytes(mark) } else { u32::from_le_bytes(mark) };
                assert_eq!(mark, 0xABCD);
            }
        }
    }
}
