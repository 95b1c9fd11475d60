//! The hot path does not allocate: a request is decoded in place, and a request from a template is written to
//! an existing buffer.

use std::collections::VecDeque;

use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::code_set::{CodeSetContext, CodeSetId};
use giop_codec::giop::MessageType;
use giop_codec::giop::{
    ContextId, MessageHeader, ReplyHeader, ReplyMessage, ReplyStatus, RequestId, RequestMessage,
    RequestTemplate, ResponseFlags, ServiceContexts, TargetAddress, begin_body, finish_message,
    put_message_header,
};
use giop_codec::{ByteOrder, Version};

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

fn allocations<R>(f: impl FnOnce() -> R) -> (u64, R) {
    let mut result = None;
    let info = allocation_counter::measure(|| result = Some(f()));
    (info.count_total, result.unwrap())
}

#[test]
fn requests_and_replies_cost_no_allocation() {
    let sets = CodeSetContext { char_data: CodeSetId::UTF_8, wchar_data: CodeSetId::UTF_16 };
    let contexts = [sets.to_service_context().unwrap()];
    let contexts = ServiceContexts::from(&contexts);
    for version in VERSIONS {
        let order = ByteOrder::NATIVE;
        let template =
            RequestTemplate::new(version, order, TargetAddress::Key(b"a key"), "operation").unwrap();
        let mut encoder = Encoder::new(order, version);
        encoder.reserve(4096);
        let mut out = VecDeque::with_capacity(4);

        let (count, ()) = allocations(|| {
            let layout =
                template.encode(&mut encoder, RequestId(7), ResponseFlags::Target, &contexts).unwrap();
            begin_body(&mut encoder);
            encoder.put_f64(1.5);
            finish_message(&mut encoder, layout.message_size_at).unwrap();
        });
        assert_eq!(count, 0, "encoding a request in GIOP {version}");

        encoder.drain_into(&mut out);
        let message = out.pop_front().unwrap();
        let (count, value) = allocations(|| {
            let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
            let request = RequestMessage::decode(&header, message.clone()).unwrap();
            assert_eq!(request.object_key(), Ok(&b"a key"[..]));
            assert_eq!(request.operation(), "operation");
            let context = request.contexts().find(ContextId::CODE_SETS).unwrap();
            assert_eq!(context.value(), Ok(sets));
            request.body().read_f64().unwrap()
        });
        assert_eq!((count, value), (0, 1.5), "decoding a request in GIOP {version}");

        let mut encoder = Encoder::new(order, version);
        encoder.reserve(4096);
        let (count, ()) = allocations(|| {
            let size_at = put_message_header(&mut encoder, MessageType::Reply);
            ReplyHeader::new(RequestId(7), ReplyStatus::NoException).encode(&mut encoder).unwrap();
            begin_body(&mut encoder);
            encoder.put_u32(3);
            finish_message(&mut encoder, size_at).unwrap();
        });
        assert_eq!(count, 0, "encoding a reply in GIOP {version}");

        let message: Bytes = encoder.into_bytes();
        let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
        // A new `Bytes` allocates its reference count at the first clone; buffers of the pool already have
        // one.
        let first = message.clone();
        let (count, value) =
            allocations(|| ReplyMessage::decode(&header, first).unwrap().body().read_u32().unwrap());
        assert_eq!((count, value), (0, 3), "decoding a reply in GIOP {version}");
    }
}
