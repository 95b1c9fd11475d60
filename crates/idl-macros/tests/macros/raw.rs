//! Requests as bytes: with arguments that no stub would send, and in either byte order.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Encoder};
use giop_codec::giop::{
    MessageHeader, MessageType, ReplyMessage, ReplyStatus, RequestHeader, RequestId, ResponseFlags,
    ServiceContexts, TargetAddress, begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use zorb::wire::ObjectKey;
use zorb::{Reference, SystemException, SystemExceptionKind};

/// A connection to the server of an object.
pub(crate) struct Connection {
    stream: TcpStream,
    key: ObjectKey,
}

impl Connection {
    /// Connects to the server of that object.
    pub(crate) fn open(target: &impl Reference) -> Self {
        let profile = target.as_object().ior().iiop_profiles().next().unwrap();
        let stream = TcpStream::connect((profile.host.as_str(), profile.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, key: profile.object_key }
    }

    /// Calls the operation, and returns its results as bytes in native byte order.
    pub(crate) fn call(
        &mut self,
        operation: &str,
        order: ByteOrder,
        arguments: &[u8],
    ) -> Result<Bytes, SystemException> {
        self.stream.write_all(&self.request(operation, order, arguments)).unwrap();
        let reply = self.reply();
        let mut body = reply.body();
        match reply.status() {
            ReplyStatus::NoException => Ok(reply.message().slice(reply.body_at()..)),
            ReplyStatus::SystemException => Err(SystemException::decode(&mut body).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    fn request(&self, operation: &str, order: ByteOrder, arguments: &[u8]) -> Bytes {
        let mut e = Encoder::new(order, Version::V1_2);
        let size_at = put_message_header(&mut e, MessageType::Request);
        let header = RequestHeader {
            request_id: RequestId(1),
            response: ResponseFlags::Target,
            target: TargetAddress::Key(self.key.as_slice()),
            operation,
            contexts: ServiceContexts::EMPTY,
        };
        header.encode(&mut e).unwrap();
        if !arguments.is_empty() {
            begin_body(&mut e);
            e.put_raw(arguments);
        }
        finish_message(&mut e, size_at).unwrap();
        e.into_bytes()
    }

    fn reply(&mut self) -> ReplyMessage {
        let mut octets = vec![0; MessageHeader::LEN];
        self.stream.read_exact(&mut octets).unwrap();
        let header = MessageHeader::decode(octets.first_chunk().unwrap()).unwrap();
        assert_eq!(header.order, ByteOrder::NATIVE);
        octets.resize(MessageHeader::LEN + header.size as usize, 0);
        self.stream.read_exact(&mut octets[MessageHeader::LEN..]).unwrap();
        ReplyMessage::decode(&header, octets.into()).unwrap()
    }
}

/// Sends the value in both byte orders to an operation that returns its argument. A request that is cut
/// anywhere is `MARSHAL`.
///
/// Only an ORB decodes references, so types that contain references to objects make their round trips here.
pub(crate) fn round_trip<T: CdrEncode + PartialEq + Debug>(
    target: &impl Reference,
    operation: &str,
    value: &T,
) {
    let encoded = |order| {
        let mut e = Encoder::new(order, Version::V1_2);
        value.encode(&mut e).unwrap();
        e.into_bytes()
    };
    let mut connection = Connection::open(target);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = encoded(order);
        assert_eq!(connection.call(operation, order, &octets), Ok(encoded(ByteOrder::NATIVE)));
        for cut in 0..octets.len() {
            let error = connection.call(operation, order, &octets[..cut]).unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::Marshal, "cut at {cut}");
        }
    }
}
