//! Requests, replies, oneways and locates between two machines, with streams that are cut everywhere.

use std::sync::Arc;

use crate::util;
use crate::util::messages::{Ask, locate, locate_reply};
use crate::util::{Cut, Pair, every_cut};
use bytes::{Bytes, BytesMut};
use giop_codec::exception::CompletionStatus;
use giop_codec::giop::{LocateStatus, ReplyStatus, ResponseFlags};
use giop_codec::{ByteOrder, Version};
use giop_proto::{CallErrorKind, SentPart};

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

// clause: giop.msg.request, giop.msg.reply, giop.version.reply, giop.header.byte_order
#[test]
fn a_request_arrives_and_its_reply_comes_back() {
    for version in VERSIONS {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            every_cut(|pair| {
                let ask =
                    Ask { version, order, operation: "add".into(), body: vec![1, 2, 3], ..Ask::default() };
                let call = pair.call(&ask);
                pair.drive();
                let request = pair.request();
                assert_eq!((request.version(), request.order()), (version, order));
                assert_eq!((request.key(), request.operation()), (&b"key"[..], "add"));
                assert_eq!(request.response(), ResponseFlags::Target);
                assert_eq!(request.id(), pair.client.conn.call(call).request_id());
                assert_eq!(request.arguments().rest(), [1, 2, 3]);
                assert_eq!(pair.server.conn.serving_count(), 1);
                pair.answer(&request, b"result");
                pair.drive();
                let reply = pair.client.outcome(call).unwrap();
                assert_eq!((reply.status(), reply.version()), (ReplyStatus::NoException, version));
                assert_eq!(reply.body().rest(), b"result");
                assert_eq!((pair.client.conn.pending_call_count(), pair.server.conn.serving_count()), (0, 0));
            });
        }
    }
}

// clause: giop.reply.any_order, giop.version.mixed
#[test]
fn many_requests_are_answered_in_any_order() {
    every_cut(|pair| {
        let asks: Vec<Ask> = (0..5)
            .map(|i| Ask { version: VERSIONS[i % 3], body: vec![i as u8; 3 * i], ..Ask::default() })
            .collect();
        let calls: Vec<_> = asks.iter().map(|ask| pair.call(ask)).collect();
        pair.drive();
        let mut requests: Vec<_> = (0..5).map(|_| pair.request()).collect();
        requests.reverse();
        for request in &requests {
            let body = request.arguments().rest().to_vec();
            pair.answer(request, &body);
        }
        pair.drive();
        for (call, ask) in calls.iter().zip(&asks).rev() {
            assert_eq!(pair.client.outcome(*call).unwrap().body().rest(), ask.body);
        }
    });
}

// clause: giop.response_flags.none
#[test]
fn oneways_arrive_in_order_and_take_no_reply() {
    every_cut(|pair| {
        for i in 0..4 {
            let id = pair.client.conn.next_oneway_id().0;
            let ask = Ask { id, response: ResponseFlags::None, body: vec![i; 9], ..Ask::default() };
            pair.client.conn.send_oneway(&mut ask.encoder()).unwrap();
        }
        pair.drive();
        for i in 0..4 {
            let request = pair.request();
            assert_eq!(request.arguments().rest(), [i; 9]);
            assert_eq!(request.response(), ResponseFlags::None);
            // A reply to a oneway must never be sent.
            pair.answer(&request, b"no");
        }
        assert_eq!(pair.server.conn.serving_count(), 0);
        assert!(!pair.server.conn.has_output());
    });
}

// clause: giop.msg.locate_request, giop.msg.locate_reply
#[test]
fn a_locate_request_gets_its_locate_reply() {
    for version in VERSIONS {
        every_cut(|pair| {
            let call = pair.client.conn.start_call(None, pair.now).unwrap();
            let id = pair.client.conn.call(call).request_id();
            pair.client.conn.call(call).send_locate(&mut locate(version, id, b"there"));
            pair.drive();
            let asked = pair.server.locates.pop_front().unwrap();
            assert_eq!((asked.key(), asked.id(), asked.version()), (&b"there"[..], id, version));
            pair.server.conn.send_locate_reply(&mut locate_reply(version, id, LocateStatus::ObjectHere));
            pair.drive();
            let reply = pair.client.outcome(call).unwrap();
            assert_eq!(reply.locate_status(), Some(LocateStatus::ObjectHere));
        });
    }
}

#[test]
fn large_bodies_arrive_whole_and_are_not_copied_on_their_way_out() {
    let body: Vec<u8> = (0..300_000u32).map(|i| (i * 7) as u8).collect();
    for cut in [Cut::Whole, Cut::At(1), Cut::At(11), Cut::At(13), Cut::At(70_000), Cut::At(150_000)] {
        let mut pair = Pair::new(cut);
        for _ in 0..3 {
            let call = pair.call(&Ask { body: body.clone(), ..Ask::default() });
            pair.drive();
            let request = pair.request();
            assert!(request.arguments().rest() == body);
            pair.answer(&request, &body);
            drop(request);
            pair.drive();
            assert!(pair.client.outcome(call).unwrap().body().rest() == body);
        }
    }
}

#[test]
fn a_request_like_the_one_before_is_recognised() {
    every_cut(|pair| {
        let ask = |id, operation: &str, body: &[u8]| {
            Ask { id, operation: operation.into(), body: body.to_vec(), ..Ask::default() }.octets()
        };
        let stream = [
            (ask(2, "put", b"a"), false),
            (ask(4, "put", b"bcd"), true),
            (ask(6, "put", b""), true),
            (ask(8, "get", b""), false),
            (ask(10, "put", &[7; 30]), false),
            (
                Ask { id: 12, operation: "put".into(), order: ByteOrder::Big, ..Ask::default() }.octets(),
                false,
            ),
            (
                Ask { id: 14, operation: "put".into(), version: Version::V1_1, ..Ask::default() }.octets(),
                false,
            ),
            (ask(16, "put", &[8; 3]), false),
        ];
        for (octets, _) in &stream {
            pair.server.inject(octets);
        }
        pair.drive();
        for (i, (octets, repeats)) in stream.iter().enumerate() {
            let request = pair.request();
            assert_eq!(request.message(), octets);
            assert_eq!(request.id().0, 2 * i as u32 + 2);
            assert_eq!(request.repeats_last_header(), *repeats, "request {i}");
            assert_eq!((request.key(), request.operation().len()), (&b"key"[..], 3));
            let body = request.arguments();
            let whole = giop_codec::giop::RequestMessage::decode(
                &giop_codec::giop::MessageHeader::decode(octets.first_chunk().unwrap()).unwrap(),
                octets.clone().into(),
            )
            .unwrap();
            assert_eq!(body.position(), whole.body_at(), "request {i}");
            assert_eq!(body.rest(), whole.body().rest());
        }
    });
}

// clause: giop.target.profile, giop.target.reference, giop.target.no_key
#[test]
fn targets_may_be_addressed_by_profile_and_by_reference() {
    use giop_codec::giop::{ObjectKey, TargetAddress, TargetReference};
    use giop_codec::ior::{IiopProfile, Ior};

    let iiop = IiopProfile::new("localhost", 2809, ObjectKey::from_static(b"inner key"));
    let profile = iiop.to_tagged().unwrap();
    let ior = Ior::from_profiles("IDL:T:1.0", &[iiop]).unwrap();
    let targets = [
        TargetAddress::Profile(profile),
        TargetAddress::Reference(Box::new(TargetReference { selected_profile: 0, ior: ior.clone() })),
        TargetAddress::Reference(Box::new(TargetReference { selected_profile: 1, ior })),
    ];
    for (i, target) in targets.into_iter().enumerate() {
        every_cut(|pair| {
            let call = pair.client.conn.start_call(None, pair.now).unwrap();
            let id = pair.client.conn.call(call).request_id();
            pair.client.conn.call(call).send_request(&mut util::messages::request_to(id, target.clone()));
            pair.drive();
            if i < 2 {
                assert_eq!(pair.request().key(), b"inner key");
            } else {
                let reply = pair.client.outcome(call).unwrap();
                let exception: giop_codec::exception::SystemException =
                    giop_codec::cdr::CdrDecode::decode(&mut reply.body()).unwrap();
                assert_eq!(exception.kind, giop_codec::exception::SystemExceptionKind::ObjectNotExist);
                assert!(!pair.server.conn.lifecycle().is_closing());
            }
        });
    }
}

// clause: giop.code_sets.kept
#[test]
fn the_server_learns_the_code_sets_from_the_first_request() {
    use giop_codec::cdr::{CharSet, CodeSets, WCharSet};
    use giop_codec::code_set::{CodeSetContext, CodeSetId};

    every_cut(|pair| {
        let sets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };
        let context = CodeSetContext::from(sets).to_service_context().unwrap();
        let before = pair.call(&Ask::default());
        let with = Ask { contexts: vec![context], ..Ask::default() };
        let first = pair.call(&with);
        let second = pair.call(&with);
        let after = pair.call(&Ask::default());
        let other = CodeSetContext { char_data: CodeSetId::ISO_8859_1, wchar_data: CodeSetId::NONE };
        let changed =
            pair.call(&Ask { contexts: vec![other.to_service_context().unwrap()], ..Ask::default() });
        pair.drive();
        let got: Vec<CodeSets> = (0..4).map(|_| pair.request().code_sets()).collect();
        assert_eq!(got, [CodeSets { char: CharSet::Latin1, wchar: None }, sets, sets, sets]);
        assert_eq!(pair.server.conn.peer().code_sets(), Some(sets));
        let refused = pair.client.outcome(changed).unwrap();
        assert_eq!(refused.status(), ReplyStatus::SystemException);
        pair.client.conn.set_code_sets(sets);
        assert_eq!(refused.body().code_sets(), CodeSets::default(), "set after it came");
        for call in [before, first, second, after] {
            assert!(pair.client.conn.call(call).take_outcome().is_none());
        }
    });
}

// clause: giop.context.unknown
#[test]
fn service_contexts_are_handed_on() {
    use giop_codec::giop::{ContextId, ServiceContext};

    for version in VERSIONS {
        every_cut(|pair| {
            let contexts: Vec<_> = (0..3)
                .map(|i| ServiceContext {
                    id: ContextId(500 + i),
                    data: bytes::Bytes::from(vec![i as u8; i as usize]),
                })
                .collect();
            pair.call(&Ask { version, contexts: contexts.clone(), body: vec![1; 5], ..Ask::default() });
            pair.call(&Ask { version, contexts: contexts.clone(), body: vec![2; 5], ..Ask::default() });
            pair.drive();
            for _ in 0..2 {
                let request = pair.request();
                assert_eq!(request.contexts().to_vec(), contexts);
                assert_eq!(request.arguments().remaining(), 5);
            }
        });
    }
}

// clause: giop.connection.lost, exc.completed.no_reply
#[test]
fn the_end_of_the_stream_fails_the_calls_that_wait() {
    every_cut(|pair| {
        let written = pair.call(&Ask::default());
        pair.drive();
        pair.client.awake = false;
        let unwritten = pair.call(&Ask::default());
        pair.client.conn.handle_eof(pair.now);
        assert!(pair.client.conn.start_call(None, pair.now).is_err());
        pair.client.poll();
        assert!(pair.client.closed && pair.client.conn.lifecycle().is_closed());
        let error = pair.client.outcome(written).unwrap_err();
        assert_eq!((error.sent, error.completed()), (SentPart::Whole, CompletionStatus::Maybe));
        assert!(!error.is_retryable());
        let error = pair.client.outcome(unwritten).unwrap_err();
        assert!(matches!(error.kind, CallErrorKind::Lost(_)));
        assert_eq!((error.sent, error.completed()), (SentPart::Nothing, CompletionStatus::No));
        assert!(error.is_retryable());
    });
}

#[test]
fn the_arguments_of_a_large_request_are_taken_out_and_its_headers_stay() {
    use giop_codec::giop::{ContextId, ServiceContext};
    let mut room = BytesMut::new();
    for version in VERSIONS {
        let mut pair = Pair::new(Cut::Whole);
        let body = vec![5; 100_000];
        let contexts = vec![ServiceContext { id: ContextId(7), data: Bytes::from_static(b"\x01\x02\x03") }];
        pair.call(&Ask { version, operation: "put".into(), body: body.clone(), contexts, ..Ask::default() });
        pair.drive();
        let mut request = pair.request();
        let whole = request.message().clone();
        let arguments = request.take_arguments(&mut room).unwrap();
        assert_eq!((request.key(), request.operation()), (&b"key"[..], "put"));
        assert_eq!(request.contexts().iter().count(), 1);
        assert!(request.message().len() < 200 && whole.starts_with(request.message()));
        assert_eq!(request.arguments().remaining(), 0);
        assert!(request.take_arguments(&mut room).is_none());
        assert!(arguments.decoder().rest() == body);
        let pool = Arc::clone(&pair.pool);
        assert!(arguments.decode(&pool, |d| Ok(d.rest() == body)).unwrap());
    }
    let mut pair = Pair::new(Cut::Whole);
    pair.call(&Ask { body: vec![1; 100], ..Ask::default() });
    pair.drive();
    assert!(pair.request().take_arguments(&mut room).is_none(), "small ones stay as they are");
}
