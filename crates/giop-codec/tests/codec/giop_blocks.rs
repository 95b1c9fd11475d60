//! Block lists of messages: announced positions are correct, and invalid lists are ignored.

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, Seq};
use giop_codec::giop::{
    BlockList, ContextId, MAX_BLOCK_HEAD_BYTES, MAX_BLOCKS, MAX_SERVICE_CONTEXTS, MIN_BLOCK_BYTES,
    MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader, RequestId, ResponseFlags,
    ServiceContext, ServiceContexts, TargetAddress, begin_body, enter_body, finish_message,
    insert_block_list, put_message_header,
};
use giop_codec::ior::{OrbType, TaggedComponent};
use giop_codec::{ByteOrder, Version};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

fn context(len: usize) -> ServiceContext {
    ServiceContext { id: ContextId(0x1234), data: vec![9; len].into() }
}

/// A request or reply with that body; also returns whether its blocks were announced.
fn message(
    order: ByteOrder,
    contexts: &[ServiceContext],
    is_reply: bool,
    body: impl FnOnce(&mut Encoder),
) -> (Vec<u8>, bool) {
    let mut e = Encoder::new(order, Version::V1_2);
    let contexts = ServiceContexts::from(contexts);
    if is_reply {
        put_message_header(&mut e, MessageType::Reply);
        ReplyHeader { request_id: RequestId(7), status: ReplyStatus::NoException, contexts }
            .encode(&mut e)
            .unwrap();
    } else {
        put_message_header(&mut e, MessageType::Request);
        RequestHeader {
            request_id: RequestId(7),
            response: ResponseFlags::Target,
            target: TargetAddress::Key(b"key"),
            operation: "take",
            contexts,
        }
        .encode(&mut e)
        .unwrap();
    }
    begin_body(&mut e);
    body(&mut e);
    let announced = insert_block_list(&mut e);
    finish_message(&mut e, MessageHeader::SIZE_AT).unwrap();
    (e.into_bytes().to_vec(), announced)
}

fn octets(len: usize) -> Bytes {
    (0..len).map(|i| (i * 7) as u8).collect()
}

fn header(message: &[u8]) -> MessageHeader {
    MessageHeader::decode(message.first_chunk().unwrap()).unwrap()
}

fn list(message: &[u8]) -> Option<BlockList> {
    BlockList::read(&header(message), message).unwrap()
}

fn body_of(message: &[u8]) -> (Decoder<'_>, ServiceContexts<'_>) {
    let header = header(message);
    assert_eq!(header.size as usize + 12, message.len());
    let mut d = Decoder::new(message, header.order, header.version).at(12);
    let contexts = match header.kind {
        MessageType::Request => RequestHeader::decode(&mut d).unwrap().contexts,
        _ => ReplyHeader::decode(&mut d).unwrap().contexts,
    };
    enter_body(&mut d);
    (d, contexts)
}

#[test]
fn blocks_are_where_the_list_says_and_the_message_says_the_same_as_without() {
    let doubles: Seq<f64> = (0..10_000).map(f64::from).collect();
    for order in ORDERS {
        for is_reply in [false, true] {
            let own_list = vec![BlockList::empty_context()];
            for own in [
                own_list,
                vec![],
                vec![context(0)],
                vec![context(1), context(3)],
                vec![context(2), context(5)],
            ] {
                let native = order == ByteOrder::NATIVE;
                let (message, announced) = message(order, &own, is_reply, |e| {
                    "first".encode(e).unwrap();
                    octets(MIN_BLOCK_BYTES).encode(e).unwrap();
                    octets(MIN_BLOCK_BYTES - 1).encode(e).unwrap();
                    octets(100_001).encode(e).unwrap();
                    doubles.encode(e).unwrap();
                    77u16.encode(e).unwrap();
                });
                assert!(announced);
                let (mut d, contexts) = body_of(&message);
                assert_eq!(contexts.to_vec()[..own.len()], own);
                assert_eq!(contexts.len(), own.len() + 1);
                assert!(BlockList::is_read_by_sender(&contexts));
                let list = list(&message).unwrap();
                assert_eq!(list.body_at, d.position());
                assert_eq!(list.blocks.len(), 3);
                let sent = [octets(MIN_BLOCK_BYTES), octets(100_001), doubles.bytes()];
                for (i, ((at, len), expected)) in list.blocks.iter().zip(sent).enumerate() {
                    assert_eq!(*len, expected.len());
                    assert!(message[*at..*at + *len] == expected || i == 2 && !native, "{i}");
                }
                assert_eq!(String::decode(&mut d).unwrap(), "first");
                assert!(Bytes::decode(&mut d).unwrap() == octets(MIN_BLOCK_BYTES));
                assert!(Bytes::decode(&mut d).unwrap() == octets(MIN_BLOCK_BYTES - 1));
                assert!(Bytes::decode(&mut d).unwrap() == octets(100_001));
                assert!(Seq::<f64>::decode(&mut d).unwrap() == doubles);
                assert_eq!((d.read_u16().unwrap(), d.remaining()), (77, 0));
                // Truncation within the header is an error. The whole header is enough for the list.
                for cut in 12..list.body_at - 8 {
                    assert!(BlockList::read(&header(&message), &message[..cut]).is_err());
                }
                let found = BlockList::read(&header(&message), &message[..list.body_at]);
                assert_eq!(found.unwrap().as_ref(), Some(&list));
            }
        }
    }
}

#[test]
fn what_needs_no_list_or_would_suffer_by_one_gets_none() {
    let plain = |body: &dyn Fn(&mut Encoder), own: &[ServiceContext]| {
        let (message, announced) = message(ByteOrder::NATIVE, own, false, body);
        assert!(!announced && list(&message).is_none());
        assert_eq!(body_of(&message).1.to_vec(), own, "nothing is left of the attempt");
    };
    let two = |e: &mut Encoder| (0..2).for_each(|_| octets(MIN_BLOCK_BYTES).encode(e).unwrap());
    plain(&|e| octets(1 << 20).encode(e).unwrap(), &[]);
    plain(&|e| (0..9).for_each(|_| octets(MIN_BLOCK_BYTES - 1).encode(e).unwrap()), &[]);
    // A large sequence in an encapsulation.
    plain(
        &|e| {
            two(e);
            e.encapsulate(|e| octets(MIN_BLOCK_BYTES).encode(e)).unwrap();
        },
        &[],
    );
    plain(&two, &vec![context(0); MAX_SERVICE_CONTEXTS]);
    plain(&two, &[context(MAX_BLOCK_HEAD_BYTES)]);
    for version in [Version::V1_0, Version::V1_1] {
        let mut e = Encoder::new(ByteOrder::NATIVE, version);
        put_message_header(&mut e, MessageType::Reply);
        ReplyHeader::new(RequestId(7), ReplyStatus::NoException).encode(&mut e).unwrap();
        two(&mut e);
        assert!(!insert_block_list(&mut e));
    }
}

#[test]
fn more_blocks_than_a_list_takes_are_sent_all_the_same() {
    let (message, announced) = message(ByteOrder::NATIVE, &[], false, |e| {
        (0..MAX_BLOCKS + 3).for_each(|_| octets(MIN_BLOCK_BYTES).encode(e).unwrap());
    });
    assert!(announced);
    assert_eq!(list(&message).unwrap().blocks.len(), MAX_BLOCKS);
    let mut d = body_of(&message).0;
    for _ in 0..MAX_BLOCKS + 3 {
        assert!(Bytes::decode(&mut d).unwrap() == octets(MIN_BLOCK_BYTES));
    }
}

/// A request with a context of this content.
fn claiming(count: u32, pairs: &[(u32, u32)], version: u8) -> Vec<u8> {
    let mut data = vec![ByteOrder::NATIVE.flag(), version, 0, 0];
    data.extend(count.to_ne_bytes());
    for (offset, len) in pairs {
        data.extend(offset.to_ne_bytes());
        data.extend(len.to_ne_bytes());
    }
    let lie = ServiceContext { id: ContextId::ZORB_BLOCKS, data: data.into() };
    message(ByteOrder::NATIVE, &[lie], false, |e| e.put_raw(&vec![5; 1 << 20])).0
}

#[test]
fn a_list_that_can_not_be_true_is_none() {
    let (least, n) = (MIN_BLOCK_BYTES as u32, 1 << 20);
    assert_eq!(
        list(&claiming(2, &[(200, least), (200 + least, least)], 1)).unwrap().blocks,
        [(200, MIN_BLOCK_BYTES), (200 + MIN_BLOCK_BYTES, MIN_BLOCK_BYTES)]
    );
    let good = (500_000, least);
    for pairs in [
        &[(200, least), (199 + least, least)][..], // overlapping
        &[good, (200, least)],                     // not ascending
        &[good, good],
        &[(16, least), good],      // in the header
        &[(n, least), (n, least)], // beyond the end
        &[(200, u32::MAX)],
        &[(u32::MAX, u32::MAX)],
        &[(200, 0), good],
        &[(200, least - 1), good],
    ] {
        assert_eq!(list(&claiming(pairs.len() as u32, pairs, 1)), None, "{pairs:?}");
    }
    assert_eq!(list(&claiming(0, &[], 1)), None);
    assert_eq!(list(&claiming(1, &[good], 2)), None, "another version");
    assert_eq!(list(&claiming(2, &[good], 1)), None, "a pair too few");
    assert_eq!(list(&claiming(u32::MAX, &[good], 1)), None);
    let thousands: Vec<(u32, u32)> = (0..5000).map(|i| (200 + i, least)).collect();
    assert_eq!(list(&claiming(5000, &thousands, 1)), None);
}

#[test]
fn an_empty_list_and_the_component_say_that_lists_are_read() {
    let (message, _) = message(ByteOrder::NATIVE, &[BlockList::empty_context()], false, |e| e.put_u32(1));
    assert_eq!(list(&message), None);
    assert!(BlockList::is_read_by_sender(&body_of(&message).1));
    assert!(!BlockList::is_read_by_sender(&ServiceContexts::EMPTY));
    assert!(TaggedComponent::zorb_blocks().is_zorb_blocks());
    assert!(!TaggedComponent::orb_type(OrbType(1)).is_zorb_blocks());
}
