//! Headers of every version and byte order: they round-trip, and every truncation is an error.

use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::{
    AddressingDisposition, CancelRequest, ContextId, FragmentHeader, LocateReplyHeader, LocateRequestHeader,
    LocateStatus, MAX_OBJECT_KEY_BYTES, MAX_OPERATION_NAME_BYTES, MAX_SERVICE_CONTEXTS, Message,
    MessageHeader, MessageType, ObjectKey, ReplyHeader, ReplyStatus, RequestHeader, RequestId,
    RequestMessage, RequestTemplate, ResponseFlags, ServiceContext, ServiceContexts, TargetAddress,
    TargetError, TargetReference, begin_body, finish_message, response_flags_word,
};
use giop_codec::ior::{IiopProfile, Ior, ProfileTag, TaggedProfile};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use proptest::prelude::*;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];
const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Returns the whole message and the end of its header.
fn encode(message: &Message<'_>, order: ByteOrder, version: Version, body: Option<u64>) -> (Bytes, usize) {
    let mut e = Encoder::new(order, version);
    let size_at = message.encode(&mut e).unwrap();
    let end = e.position();
    if let Some(value) = body {
        if matches!(message, Message::Request(_) | Message::Reply(_)) {
            begin_body(&mut e);
        }
        e.put_u64(value);
    }
    let size = finish_message(&mut e, size_at).unwrap();
    let octets = e.into_bytes();
    assert_eq!(size as usize + MessageHeader::LEN, octets.len());
    (octets, end)
}

fn decode(octets: &[u8]) -> Result<(Message<'_>, Decoder<'_>), giop_codec::DecodeError> {
    let header = MessageHeader::decode(octets.first_chunk().unwrap()).unwrap();
    let mut d = Decoder::new(octets, header.order, header.version).at(MessageHeader::LEN);
    Ok((Message::decode(header.kind, &mut d)?, d))
}

fn contexts() -> impl Strategy<Value = Vec<ServiceContext>> {
    let context = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(id, data)| ServiceContext { id: ContextId(id), data: data.into() });
    prop::collection::vec(context, 0..5)
}

fn reference() -> impl Strategy<Value = Ior> {
    let profile = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(tag, data)| TaggedProfile { tag: ProfileTag(tag), data: data.into() });
    ("[A-Za-z:/.0-9]{0,20}", prop::collection::vec(profile, 0..4))
        .prop_map(|(type_id, profiles)| Ior { type_id, profiles })
}

fn target() -> impl Strategy<Value = (AddressingDisposition, Vec<u8>, u32, Ior)> {
    let disposition = prop_oneof![
        Just(AddressingDisposition::Key),
        Just(AddressingDisposition::Profile),
        Just(AddressingDisposition::Reference)
    ];
    (disposition, prop::collection::vec(any::<u8>(), 0..40), any::<u32>(), reference())
}

/// In GIOP 1.0 and 1.1 only keys can be sent.
fn build(parts: &(AddressingDisposition, Vec<u8>, u32, Ior), version: Version) -> TargetAddress<'_> {
    let (disposition, key, number, ior) = parts;
    match disposition {
        AddressingDisposition::Profile if version == Version::V1_2 => {
            TargetAddress::Profile(TaggedProfile { tag: ProfileTag(*number), data: key.clone().into() })
        }
        AddressingDisposition::Reference if version == Version::V1_2 => {
            TargetAddress::Reference(Box::new(TargetReference {
                selected_profile: *number,
                ior: ior.clone(),
            }))
        }
        _ => TargetAddress::Key(key),
    }
}

proptest! {
    // clause: giop.msg.request, giop.msg.reply, giop.msg.cancel_request, giop.msg.locate_request
    // clause: giop.msg.locate_reply, giop.msg.close_connection, giop.msg.message_error, giop.msg.fragment
    #[test]
    fn messages_round_trip_and_every_cut_of_their_header_is_an_error(
        id in any::<u32>(),
        flags in 0..3_usize,
        status in 0..6_u32,
        target in target(),
        operation in "[a-z_]{0,30}",
        contexts in contexts(),
        body in prop::option::of(any::<u64>()),
    ) {
        let request_id = RequestId(id);
        let contexts = ServiceContexts::from(contexts.as_slice());
        for version in VERSIONS {
            let v12 = version == Version::V1_2;
            // GIOP 1.0 and 1.1 cannot distinguish the two kinds of replies that are requested.
            let response = [ResponseFlags::None, ResponseFlags::Target, ResponseFlags::Server][flags.min(1 + usize::from(v12))];
            let fragment_id = v12.then_some(request_id);
            let mut messages = vec![
                Message::Request(RequestHeader {
                    request_id, response, target: build(&target, version), operation: &operation, contexts,
                }),
                Message::CancelRequest(CancelRequest { request_id }),
                Message::LocateRequest(LocateRequestHeader { request_id, target: build(&target, version) }),
                Message::CloseConnection,
                Message::MessageError,
            ];
            if version > Version::V1_0 {
                messages.push(Message::Fragment(FragmentHeader { request_id: fragment_id }));
            }
            if let Some(status) = ReplyStatus::from_wire(status, version) {
                messages.push(Message::Reply(ReplyHeader { request_id, status, contexts }));
            }
            if let Some(status) = LocateStatus::from_wire(status, version) {
                messages.push(Message::LocateReply(LocateReplyHeader { request_id, status }));
            }
            for (order, message) in ORDERS.iter().flat_map(|order| messages.iter().map(move |m| (*order, m))) {
                let (octets, end) = encode(message, order, version, body);
                let (decoded, mut d) = decode(&octets).unwrap();
                prop_assert_eq!(&decoded, message);
                match body {
                    Some(value) => prop_assert_eq!(d.read_u64(), Ok(value)),
                    None => prop_assert_eq!(d.position(), end),
                }
                prop_assert_eq!(d.remaining(), 0);
                for cut in MessageHeader::LEN..end {
                    prop_assert!(decode(&octets[..cut]).is_err(), "{:?} cut to {} of {}", message, cut, end);
                }
            }
        }
    }

    #[test]
    fn a_template_writes_what_the_header_writes(
        id in any::<u32>(),
        target in target(),
        operation in "[a-z_]{0,30}",
        contexts in contexts(),
        before in 0..40_usize,
    ) {
        let contexts = ServiceContexts::from(contexts.as_slice());
        for (version, order) in VERSIONS.into_iter().flat_map(|v| ORDERS.map(|o| (v, o))) {
            for response in [ResponseFlags::None, ResponseFlags::Server, ResponseFlags::Target] {
                let request_id = RequestId(id);
                let header = RequestHeader {
                    request_id, response, target: build(&target, version), operation: &operation, contexts,
                };
                let (expected, _) = encode(&Message::Request(header), order, version, None);
                let template = RequestTemplate::new(version, order, build(&target, version), &operation).unwrap();
                // After another message in the same buffer.
                let mut e = Encoder::new(order, version);
                e.put_raw(&vec![0xee; before]);
                e.begin_message(order, version);
                let layout = template.encode(&mut e, RequestId(!id), ResponseFlags::None, &contexts).unwrap();
                finish_message(&mut e, layout.message_size_at).unwrap();
                e.patch_u32(layout.request_id_at, id);
                e.patch_u32(layout.response_at, response_flags_word(response, order, version));
                prop_assert_eq!(layout.end, e.head().len());
                prop_assert_eq!(&e.head()[before..], &expected[..]);
            }
        }
    }

    #[test]
    fn invented_octets_never_panic(octets in prop::collection::vec(any::<u8>(), 12..200), kind in 0..8_u8) {
        for (version, order) in VERSIONS.into_iter().flat_map(|v| ORDERS.map(|o| (v, o))) {
            let kind = MessageType::from_wire(kind).unwrap();
            let mut d = Decoder::new(&octets, order, version).at(MessageHeader::LEN);
            if let Ok(message) = Message::decode(kind, &mut d) {
                prop_assert_eq!(message.contexts().iter().count(), message.contexts().len());
            }
            let shared = Bytes::from(octets.clone());
            let header = MessageHeader::new(version, order, MessageType::Request);
            if let Ok(request) = RequestMessage::decode(&header, shared) {
                let _ = request.object_key();
                prop_assert_eq!(request.contexts().iter().count(), request.contexts().len());
            }
        }
    }
}

// clause: giop.request.body_alignment
#[test]
fn a_1_2_body_is_aligned_to_8_and_its_absence_leaves_no_padding() {
    let header = |operation| {
        let (response, target) = (ResponseFlags::Target, TargetAddress::Key(b"key"));
        let contexts = ServiceContexts::EMPTY;
        Message::Request(RequestHeader { request_id: RequestId(1), response, target, operation, contexts })
    };
    // 12 + 4 + 4 + 4 + 8 + 4 + 4 + 4: ends at 44, so four bytes of padding follow.
    let (with, end) = encode(&header("abc"), ByteOrder::Big, Version::V1_2, Some(7));
    assert_eq!((end, with.len()), (44, 56));
    let (without, _) = encode(&header("abc"), ByteOrder::Big, Version::V1_2, None);
    assert_eq!(without.len(), 44);
    let (older, _) = encode(&header("abc"), ByteOrder::Big, Version::V1_1, Some(7));
    assert_eq!(older.len() % 8, 0, "the octets of a u64 align themselves");
    for (version, body_at) in [(Version::V1_0, 44), (Version::V1_1, 44), (Version::V1_2, 48)] {
        let mut e = Encoder::new(ByteOrder::Big, version);
        // The header happens to have the same length in all versions.
        let size_at = header("abc").encode(&mut e).unwrap();
        assert_eq!(e.position(), 44, "{version}");
        begin_body(&mut e);
        e.put_u8(0xaa);
        finish_message(&mut e, size_at).unwrap();
        let octets = e.into_bytes();
        assert_eq!(octets.len(), body_at + 1, "{version}");
        let (_, mut d) = decode(&octets).unwrap();
        assert_eq!((d.position(), d.read_u8()), (body_at, Ok(0xaa)), "{version}");
    }
    // Truncated padding is no body.
    let (message, d) = decode(&with[..46]).unwrap();
    assert_eq!((message.kind(), d.remaining()), (MessageType::Request, 0));
}

// clause: giop.reply.body_alignment, giop.context.reply
#[test]
fn a_1_2_reply_has_its_body_at_a_multiple_of_8_behind_whatever_contexts() {
    for version in VERSIONS {
        for len in [1, 2, 4, 8] {
            let list = [ServiceContext { id: ContextId(5), data: vec![0; len].into() }];
            let header = ReplyHeader {
                contexts: (&list).into(),
                ..ReplyHeader::new(RequestId(1), ReplyStatus::NoException)
            };
            let mut e = Encoder::new(ByteOrder::Big, version);
            let size_at = Message::Reply(header).encode(&mut e).unwrap();
            let end = e.position();
            begin_body(&mut e);
            e.put_u8(0xaa);
            finish_message(&mut e, size_at).unwrap();
            let octets = e.into_bytes();
            let (message, mut d) = decode(&octets).unwrap();
            assert_eq!((message.contexts().to_vec(), d.read_u8()), (list.to_vec(), Ok(0xaa)), "{version}");
            // Up to 1.1, id and status follow the contexts, and the body follows them.
            let body = if version == Version::V1_2 { end.next_multiple_of(8) } else { end };
            assert_eq!(octets.len(), body + 1, "{version}, context of {len}");
        }
    }
}

// clause: giop.target.key, giop.target.profile, giop.target.reference, giop.target.no_key
#[test]
fn all_three_forms_of_target_lead_to_the_key() {
    let profile = IiopProfile::new("host", 1, ObjectKey::from_static(b"the key")).to_tagged().unwrap();
    let other = TaggedProfile { tag: ProfileTag(77), data: Bytes::from_static(b"?") };
    let ior = Ior { type_id: "IDL:X:1.0".into(), profiles: vec![other.clone(), profile.clone()] };
    let reference = |selected_profile| {
        TargetAddress::Reference(Box::new(TargetReference { selected_profile, ior: ior.clone() }))
    };
    let table = [
        (TargetAddress::Key(b"the key"), Ok(&b"the key"[..])),
        (TargetAddress::Profile(profile), Ok(&b"the key"[..])),
        (reference(1), Ok(&b"the key"[..])),
        (reference(0), Err(TargetError::NoUsableProfile)),
        (reference(2), Err(TargetError::NoUsableProfile)),
        (TargetAddress::Profile(other), Err(TargetError::NoUsableProfile)),
    ];
    for (target, key) in table {
        assert_eq!(
            target.object_key().as_ref().map(ObjectKey::as_slice),
            key.as_ref().map(|key| *key),
            "{target:?}"
        );
        let header = RequestHeader {
            request_id: RequestId(1),
            response: ResponseFlags::Target,
            target: target.clone(),
            operation: "op",
            contexts: ServiceContexts::EMPTY,
        };
        let (octets, _) = encode(&Message::Request(header), ByteOrder::Big, Version::V1_2, None);
        let request =
            RequestMessage::decode(&MessageHeader::decode(octets.first_chunk().unwrap()).unwrap(), octets)
                .unwrap();
        assert_eq!(request.object_key(), key, "{target:?}");
        assert_eq!(request.operation(), "op");
    }
    let error = SystemException::from(TargetError::NoUsableProfile);
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
}

// clause: giop.target.old
#[test]
fn older_versions_send_the_key_of_the_profile() {
    let profile = IiopProfile::new("host", 1, ObjectKey::from_static(b"k")).to_tagged().unwrap();
    let locate = Message::LocateRequest(LocateRequestHeader {
        request_id: RequestId(1),
        target: TargetAddress::Profile(profile),
    });
    let (octets, _) = encode(&locate, ByteOrder::Little, Version::V1_1, None);
    let expected = LocateRequestHeader { request_id: RequestId(1), target: TargetAddress::Key(b"k") };
    assert_eq!(decode(&octets).unwrap().0, Message::LocateRequest(expected));
}

// clause: giop.limit.contexts, giop.limit.operation, giop.limit.key
#[test]
fn limits_hold() {
    let many = vec![ServiceContext { id: ContextId(9), data: Bytes::new() }; MAX_SERVICE_CONTEXTS + 1];
    let long_name = "x".repeat(MAX_OPERATION_NAME_BYTES + 1);
    let long_key = vec![b'k'; MAX_OBJECT_KEY_BYTES + 1];
    let build = |contexts: usize, name: usize, key: usize| {
        let header = RequestHeader {
            request_id: RequestId(1),
            response: ResponseFlags::Target,
            target: TargetAddress::Key(&long_key[..key]),
            operation: &long_name[..name],
            contexts: many[..contexts].into(),
        };
        let (octets, _) = encode(&Message::Request(header), ByteOrder::Little, Version::V1_2, None);
        RequestMessage::decode(&MessageHeader::decode(octets.first_chunk().unwrap()).unwrap(), octets)
    };
    let request = build(MAX_SERVICE_CONTEXTS, MAX_OPERATION_NAME_BYTES, MAX_OBJECT_KEY_BYTES).unwrap();
    assert_eq!(request.contexts().len(), MAX_SERVICE_CONTEXTS);
    assert_eq!(request.object_key().map(<[u8]>::len), Ok(MAX_OBJECT_KEY_BYTES));
    assert_eq!(build(MAX_SERVICE_CONTEXTS + 1, 1, 1).unwrap_err().kind, DecodeErrorKind::LimitExceeded);
    assert_eq!(build(0, MAX_OPERATION_NAME_BYTES + 1, 1).unwrap_err().kind, DecodeErrorKind::LimitExceeded);
    let request = build(0, 1, MAX_OBJECT_KEY_BYTES + 1).unwrap();
    assert_eq!(request.object_key(), Err(TargetError::KeyTooLong(MAX_OBJECT_KEY_BYTES + 1)));
    assert!(TargetAddress::Key(&long_key[1..]).object_key().is_ok());
    assert_eq!(
        TargetAddress::Key(&long_key).object_key(),
        Err(TargetError::KeyTooLong(MAX_OBJECT_KEY_BYTES + 1)),
        "the same limit on both ways to the key"
    );
}

// clause: giop.context.duplicate
#[test]
fn of_two_contexts_with_one_id_the_first_counts() {
    let list = [
        ServiceContext { id: ContextId(5), data: Bytes::from_static(b"first") },
        ServiceContext { id: ContextId(5), data: Bytes::from_static(b"second") },
    ];
    let header =
        ReplyHeader { contexts: (&list).into(), ..ReplyHeader::new(RequestId(1), ReplyStatus::NoException) };
    let (octets, _) = encode(&Message::Reply(header), ByteOrder::Big, Version::V1_1, None);
    let (message, _) = decode(&octets).unwrap();
    assert_eq!(message.contexts().find(ContextId(5)).map(|c| c.data), Some(&b"first"[..]));
    assert_eq!(message.contexts().find(ContextId(6)), None);
    assert_eq!(message.contexts().to_vec(), list);
}

// clause: giop.response_flags.none, giop.response_flags.server, giop.response_flags.target
// clause: giop.response_flags.illegal
#[test]
fn the_illegal_response_flag_means_no_reply_and_reserved_bits_are_ignored() {
    for (flags, expected) in [
        (0x00, ResponseFlags::None),
        (0x01, ResponseFlags::Server),
        (0x02, ResponseFlags::None),
        (0x03, ResponseFlags::Target),
        (0xf1, ResponseFlags::Server),
    ] {
        let template =
            RequestTemplate::new(Version::V1_2, ByteOrder::Big, TargetAddress::Key(b"k"), "op").unwrap();
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        let layout =
            template.encode(&mut e, RequestId(1), ResponseFlags::None, &ServiceContexts::EMPTY).unwrap();
        e.patch_u32(layout.response_at, flags << 24);
        finish_message(&mut e, layout.message_size_at).unwrap();
        let octets = e.into_bytes();
        let Message::Request(request) = decode(&octets).unwrap().0 else { panic!("a request") };
        assert_eq!(request.response, expected);
    }
}

// clause: giop.status.unknown, giop.target.unknown
#[test]
fn statuses_and_dispositions_that_do_not_exist_are_refused() {
    let reply = Message::Reply(ReplyHeader::new(RequestId(1), ReplyStatus::NoException));
    for (version, first_bad) in [(Version::V1_0, 4), (Version::V1_1, 4), (Version::V1_2, 6)] {
        let (octets, _) = encode(&reply, ByteOrder::Big, version, None);
        let status_at = if version == Version::V1_2 { 16 } else { 20 };
        for status in 0..10_u8 {
            let mut octets = octets.to_vec();
            octets[status_at + 3] = status;
            assert_eq!(decode(&octets).is_ok(), status < first_bad, "{version} status {status}");
        }
    }
    let target = TargetAddress::Key(b"k");
    let locate = Message::LocateRequest(LocateRequestHeader { request_id: RequestId(1), target });
    let mut octets = encode(&locate, ByteOrder::Big, Version::V1_2, None).0.to_vec();
    octets[17] = 9;
    let error = decode(&octets).unwrap_err();
    assert_eq!((error.kind, error.offset), (DecodeErrorKind::InvalidDiscriminator, 16));
}
