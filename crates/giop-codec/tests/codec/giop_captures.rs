//! Messages captured from omniORB 4.2.5: encoded and decoded byte for byte, and truncated at every length.

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, Decoder, Encoder};
use giop_codec::code_set::{CodeSetContext, CodeSetId};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException};
use giop_codec::giop::{
    ContextId, LocateReplyHeader, LocateRequestHeader, LocateStatus, Message, MessageHeader, ReplyHeader,
    ReplyMessage, ReplyStatus, RequestHeader, RequestId, RequestMessage, RequestTemplate, ResponseFlags,
    ServiceContexts, TargetAddress, begin_body, finish_message, put_exception_reply,
};
use giop_codec::{ByteOrder, Version};

const KEY: &[u8] = &[0xfe, 0x27, 0xf2, 0x00, 0x6b, 0, 0, 0x54, 0x5c, 0, 0, 0, 0, 0];
const KEY_HEX: &str = "fe27f2006b0000545c0000000000";

fn octets(hex: &str) -> Bytes {
    let digits: Vec<u32> = hex
        .replace("KEY", KEY_HEX)
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '|')
        .map(|c| c.to_digit(16).unwrap())
        .collect();
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn header_of(message: &Bytes) -> MessageHeader {
    let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
    assert_eq!(header.size as usize, message.len() - MessageHeader::LEN, "the size field fits the capture");
    header
}

/// Decodes the message and passes it, with a decoder at its body, to `check`.
fn decode<R>(message: &Bytes, check: impl FnOnce(Message<'_>, &mut Decoder<'_>) -> R) -> R {
    let header = header_of(message);
    let mut d = Decoder::from_bytes(message, header.order, header.version).at(MessageHeader::LEN);
    let decoded = Message::decode(header.kind, &mut d).unwrap();
    check(decoded, &mut d)
}

/// Encodes a header and a body in the version and order of the capture.
fn encode(like: &Bytes, message: &Message<'_>, body: impl FnOnce(&mut Encoder)) -> Bytes {
    let header = header_of(like);
    let mut e = Encoder::new(header.order, header.version);
    let size_at = message.encode(&mut e).unwrap();
    body(&mut e);
    finish_message(&mut e, size_at).unwrap();
    e.into_bytes()
}

fn request<'a>(
    id: u32,
    response: ResponseFlags,
    operation: &'a str,
    contexts: ServiceContexts<'a>,
) -> Message<'a> {
    let target = TargetAddress::Key(KEY);
    Message::Request(RequestHeader { request_id: RequestId(id), response, target, operation, contexts })
}

fn reply(id: u32, status: ReplyStatus) -> Message<'static> {
    Message::Reply(ReplyHeader::new(RequestId(id), status))
}

const PING: &str = "47494f50 01020100 44000000 | 04000000 03 000000 0000 0000 0e000000 KEY 0000
    05000000 70696e6700 000000 01000000 | 01000000 0c000000 01 000000 01000100 09010100";
const ADD_1_2: &str = "47494f50 01020100 34000000 | 08000000 03 000000 0000 0000 0e000000 KEY 0000
    04000000 61646400 00000000 | 01000000 02000000";
const ADD_1_0: &str = "47494f50 01000100 34000000 | 00000000 08000000 01 000000 0e000000 KEY 0000
    04000000 61646400 00000000 01000000 02000000";
const ONEWAY: &str = "47494f50 01020100 30000000 | 06000000 00 000000 0000 0000 0e000000 KEY 0000
    03000000 6f7700 00 00000000 | 05000000";
const REPLY_VOID: &str = "47494f50 01020101 0c000000 | 04000000 00000000 00000000";
const REPLY_3_1_2: &str = "47494f50 01020101 10000000 | 08000000 00000000 00000000 | 03000000";
const REPLY_3_1_0: &str = "47494f50 01000101 10000000 | 00000000 08000000 00000000 03000000";
const REPLY_TRUE: &str = "47494f50 01020101 0d000000 | 28000000 00000000 00000000 | 00";
const USER_EXCEPTION: &str = "47494f50 01020101 2c000000 | 0a000000 01000000 00000000 |
    0e000000 49444c3a542f4261643a312e3000 0000 03000000 6e6f00 00 07000000";
const SYSTEM_EXCEPTION: &str = "47494f50 01020101 3c000000 | 0e000000 02000000 00000000 |
    24000000 49444c3a6f6d672e6f72672f434f5242412f4e4f5f5045524d495353494f4e3a312e3000 01004d4f 00000000";
const LOCATE_REQUEST: &str = "47494f50 01020103 1a000000 | 02000000 0000 0000 0e000000 KEY";
const LOCATE_REPLY: &str = "47494f50 01020104 08000000 | 02000000 01000000";

// clause: giop.request.order_1_2, giop.target.key, giop.context.code_sets, giop.header.alignment
#[test]
fn ping_announces_code_sets_and_has_no_body() {
    let capture = octets(PING);
    let sets = CodeSetContext { char_data: CodeSetId::ISO_8859_1, wchar_data: CodeSetId::UTF_16 };
    let contexts = [sets.to_service_context().unwrap()];
    let expected = request(4, ResponseFlags::Target, "ping", (&contexts).into());
    decode(&capture, |message, d| {
        assert_eq!(message, expected);
        let context = message.contexts().find(ContextId::CODE_SETS).unwrap();
        assert_eq!(context.value::<CodeSetContext>().unwrap(), sets);
        assert_eq!(d.remaining(), 0);
    });
    assert_eq!(encode(&capture, &expected, |_| ()), capture);
}

// clause: giop.request.order_1_0, giop.request.order_1_2
#[test]
fn requests_with_arguments_match_in_1_2_and_1_0() {
    for (hex, response) in [(ADD_1_2, ResponseFlags::Target), (ADD_1_0, ResponseFlags::Target)] {
        let capture = octets(hex);
        let expected = request(8, response, "add", ServiceContexts::EMPTY);
        decode(&capture, |message, d| {
            assert_eq!(message, expected);
            assert_eq!((d.read_i32().unwrap(), d.read_i32().unwrap(), d.remaining()), (1, 2, 0));
        });
        let encoded = encode(&capture, &expected, |e| {
            begin_body(e);
            e.put_i32(1);
            e.put_i32(2);
        });
        assert_eq!(encoded, capture);
    }
}

// clause: giop.response_flags.none
#[test]
fn oneway_expects_no_reply() {
    let capture = octets(ONEWAY);
    let expected = request(6, ResponseFlags::None, "ow", ServiceContexts::EMPTY);
    decode(&capture, |message, d| {
        assert_eq!(message, expected);
        assert_eq!((d.read_i32().unwrap(), d.remaining()), (5, 0));
    });
    let encoded = encode(&capture, &expected, |e| {
        begin_body(e);
        e.put_i32(5);
    });
    assert_eq!(encoded, capture);
}

// clause: giop.reply.order_1_0, giop.reply.order_1_2, giop.status.no_exception
#[test]
fn replies_match_with_and_without_body() {
    let void = octets(REPLY_VOID);
    decode(&void, |message, d| {
        assert_eq!(message, reply(4, ReplyStatus::NoException));
        assert_eq!(d.remaining(), 0);
    });
    assert_eq!(encode(&void, &reply(4, ReplyStatus::NoException), |_| ()), void);

    for hex in [REPLY_3_1_2, REPLY_3_1_0] {
        let capture = octets(hex);
        decode(&capture, |message, d| {
            assert_eq!(message, reply(8, ReplyStatus::NoException));
            assert_eq!((d.read_i32().unwrap(), d.remaining()), (3, 0));
        });
        let encoded = encode(&capture, &reply(8, ReplyStatus::NoException), |e| {
            begin_body(e);
            e.put_i32(3);
        });
        assert_eq!(encoded, capture);
    }

    let boolean = octets(REPLY_TRUE);
    decode(&boolean, |message, d| {
        assert_eq!(message.request_id(), Some(RequestId(0x28)));
        assert!(!d.read_bool().unwrap());
        assert_eq!(d.remaining(), 0);
    });
}

// clause: giop.status.user_exception, exc.user.body
#[test]
fn user_exception_starts_with_its_repository_id() {
    let capture = octets(USER_EXCEPTION);
    decode(&capture, |message, d| {
        assert_eq!(message, reply(10, ReplyStatus::UserException));
        assert_eq!(d.read_unconverted_str().unwrap(), "IDL:T/Bad:1.0");
        assert_eq!((d.read_string().unwrap().as_str(), d.read_i32().unwrap(), d.remaining()), ("no", 7, 0));
    });
    let encoded = encode(&capture, &reply(10, ReplyStatus::UserException), |e| {
        begin_body(e);
        e.put_unconverted_str("IDL:T/Bad:1.0").unwrap();
        e.put_str("no").unwrap();
        e.put_i32(7);
    });
    assert_eq!(encoded, capture);
}

// clause: giop.status.system_exception
#[test]
fn system_exception_matches() {
    let capture = octets(SYSTEM_EXCEPTION);
    let expected =
        SystemException::no_permission().with_minor(MinorCode::omg(1)).completed(CompletionStatus::Yes);
    decode(&capture, |message, d| {
        assert_eq!(message, reply(14, ReplyStatus::SystemException));
        assert_eq!(SystemException::decode(d).unwrap(), expected);
        assert_eq!(d.remaining(), 0);
    });
    let mut e = Encoder::new(ByteOrder::Little, Version::V1_2);
    put_exception_reply(&mut e, RequestId(14), &expected, &ServiceContexts::EMPTY).unwrap();
    assert_eq!(e.into_bytes(), capture);
}

// clause: giop.msg.locate_request, giop.msg.locate_reply, giop.locate.object_here
#[test]
fn locate_messages_match() {
    let capture = octets(LOCATE_REQUEST);
    let expected = Message::LocateRequest(LocateRequestHeader {
        request_id: RequestId(2),
        target: TargetAddress::Key(KEY),
    });
    decode(&capture, |message, d| {
        assert_eq!(message, expected);
        assert_eq!(d.remaining(), 0);
    });
    assert_eq!(encode(&capture, &expected, |_| ()), capture);

    let capture = octets(LOCATE_REPLY);
    let expected = Message::LocateReply(LocateReplyHeader {
        request_id: RequestId(2),
        status: LocateStatus::ObjectHere,
    });
    decode(&capture, |message, _| assert_eq!(message, expected));
    assert_eq!(encode(&capture, &expected, |_| ()), capture);
}

#[test]
fn a_template_gives_the_same_octets_as_the_header() {
    for (hex, version) in [(ADD_1_2, Version::V1_2), (ADD_1_0, Version::V1_0)] {
        let capture = octets(hex);
        let template =
            RequestTemplate::new(version, ByteOrder::Little, TargetAddress::Key(KEY), "add").unwrap();
        let mut e = Encoder::new(ByteOrder::Little, version);
        let layout =
            template.encode(&mut e, RequestId(8), ResponseFlags::Target, &ServiceContexts::EMPTY).unwrap();
        begin_body(&mut e);
        e.put_i32(1);
        e.put_i32(2);
        finish_message(&mut e, layout.message_size_at).unwrap();
        assert_eq!(e.into_bytes(), capture);
    }
}

#[test]
fn an_owned_request_gives_the_same_views() {
    for (hex, id, operation, body) in
        [(PING, 4, "ping", 80), (ADD_1_2, 8, "add", 56), (ADD_1_0, 8, "add", 56)]
    {
        let capture = octets(hex);
        let request = RequestMessage::decode(&header_of(&capture), capture.clone()).unwrap();
        assert_eq!(request.request_id(), RequestId(id));
        assert_eq!(request.response(), ResponseFlags::Target);
        assert_eq!(request.object_key(), Ok(KEY));
        assert_eq!(request.operation(), operation);
        assert_eq!(request.body_at(), body);
        assert_eq!(request.contexts().len(), usize::from(operation == "ping"));
        assert_eq!(request.contexts().find(ContextId::CODE_SETS).is_some(), operation == "ping");
        assert_eq!(request.into_message(), capture);
    }
    let capture = octets(REPLY_3_1_2);
    let reply = ReplyMessage::decode(&header_of(&capture), capture.clone()).unwrap();
    assert_eq!((reply.request_id(), reply.status()), (RequestId(8), ReplyStatus::NoException));
    assert_eq!(reply.body().read_i32(), Ok(3));
    assert!(RequestMessage::decode(&header_of(&capture), capture.clone()).is_err(), "a Reply is no Request");
}

/// Each capture with the end of its header, or of its body for exceptions: truncation before that must be an
/// error.
#[test]
fn every_cut_is_an_error() {
    let header_only: &[(&str, usize)] = &[
        (PING, 80),
        (ADD_1_2, 56),
        (ADD_1_0, 56),
        (ONEWAY, 56),
        (REPLY_VOID, 24),
        (REPLY_3_1_0, 24),
        (LOCATE_REQUEST, 38),
        (LOCATE_REPLY, 20),
    ];
    for (hex, end) in header_only {
        let capture = octets(hex);
        let header = header_of(&capture);
        for cut in MessageHeader::LEN..*end {
            let part = capture.slice(..cut);
            let mut d = Decoder::from_bytes(&part, header.order, header.version).at(MessageHeader::LEN);
            assert!(Message::decode(header.kind, &mut d).is_err(), "{hex} cut to {cut}");
        }
        let mut d = Decoder::from_bytes(&capture, header.order, header.version).at(MessageHeader::LEN);
        assert!(Message::decode(header.kind, &mut d).is_ok());
    }
    let capture = octets(SYSTEM_EXCEPTION);
    let header = header_of(&capture);
    for cut in 24..capture.len() {
        let reply = ReplyMessage::decode(&header, capture.slice(..cut)).unwrap();
        assert!(SystemException::decode(&mut reply.body()).is_err(), "exception cut to {cut}");
    }
}

/// Flips every bit of every capture: decoding may succeed or fail, but must not panic.
#[test]
fn every_flipped_bit_is_survived() {
    let all = [
        PING,
        ADD_1_2,
        ADD_1_0,
        ONEWAY,
        REPLY_VOID,
        REPLY_3_1_2,
        REPLY_3_1_0,
        USER_EXCEPTION,
        SYSTEM_EXCEPTION,
        LOCATE_REQUEST,
        LOCATE_REPLY,
    ];
    let mut decoded = 0;
    for hex in all {
        let capture = octets(hex);
        for bit in 0..capture.len() * 8 {
            let mut flipped = capture.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let Ok(header) = MessageHeader::decode(flipped.first_chunk().unwrap()) else { continue };
            let mut d = Decoder::new(&flipped, header.order, header.version).at(MessageHeader::LEN);
            if let Ok(message) = Message::decode(header.kind, &mut d) {
                decoded += message.contexts().iter().count() + 1;
                let _ = SystemException::decode(&mut d);
            }
        }
    }
    assert!(decoded > 1000, "most flips hit octets that may be anything: {decoded}");
}
