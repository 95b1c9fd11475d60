//! Simulated servers and clients that send single GIOP messages.

use std::sync::{Arc, Mutex};

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, MessageHeader, MessageType, ObjectKey, ReplyHeader, ReplyMessage,
    ReplyStatus, RequestHeader, RequestId, RequestMessage, ResponseFlags, ServiceContext, ServiceContexts,
    TargetAddress, begin_body, finish_message, put_message_header,
};
use giop_codec::ior::{IiopProfile, Ior, TaggedComponent};
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zorb::prelude::*;

/// Writes a body.
pub(crate) type Body = Box<dyn FnOnce(&mut Encoder) + Send>;

/// A test server's answer to a message.
pub(crate) enum Answer {
    Reply(ReplyStatus, Body),
    Locate(LocateStatus, Body),
    /// A LocateReply with this number as its status.
    LocateNumber(u32),
    /// CloseConnection, and the end of the connection.
    Close,
    /// The end of the connection without a message.
    Drop,
}

impl Answer {
    pub(crate) fn value<T: CdrEncode + Send + 'static>(value: T) -> Self {
        Self::Reply(ReplyStatus::NoException, Box::new(move |e| value.encode(e).unwrap()))
    }

    pub(crate) fn raise(exception: SystemException) -> Self {
        Self::Reply(ReplyStatus::SystemException, Box::new(move |e| exception.encode(e).unwrap()))
    }

    pub(crate) fn forward(to: &Ior) -> Self {
        let to = to.clone();
        Self::Reply(ReplyStatus::LocationForward, Box::new(move |e| to.encode(e).unwrap()))
    }
}

/// A message that a test server received.
pub(crate) struct Asked {
    pub(crate) header: MessageHeader,
    /// The complete message.
    pub(crate) octets: Bytes,
    /// The number of earlier messages.
    pub(crate) before: usize,
}

impl Asked {
    pub(crate) fn request(&self) -> RequestMessage {
        RequestMessage::decode(&self.header, self.octets.clone()).unwrap()
    }

    pub(crate) fn operation(&self) -> String {
        match self.header.kind {
            MessageType::Request => self.request().operation().to_owned(),
            other => format!("{other:?}"),
        }
    }

    fn id(&self) -> RequestId {
        match self.header.kind {
            MessageType::Request => self.request().request_id(),
            _ => {
                let id: [u8; 4] = self.octets[12..16].try_into().unwrap();
                RequestId(u32::from_ne_bytes(id))
            }
        }
    }
}

/// A server whose answers a function determines.
pub(crate) struct Fake {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// Starts a server that runs until the end of the test's runtime.
    pub(crate) async fn new(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (all, answer) = (Arc::clone(&asked), Arc::new(answer));
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(socket, Arc::clone(&all), Arc::clone(&answer)));
            }
        });
        Self { port, asked }
    }

    /// Returns the requested operations, and the names of other messages.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(Asked::operation).collect()
    }

    /// Applies a function to the last message.
    pub(crate) fn last<T>(&self, f: impl FnOnce(&Asked) -> T) -> T {
        f(self.asked.lock().unwrap().last().unwrap())
    }

    pub(crate) fn profile(&self) -> IiopProfile {
        IiopProfile::new("127.0.0.1", self.port, ObjectKey::from_static(b"desk"))
    }

    /// Returns a reference to it, of the type `Wire::Desk`.
    pub(crate) fn ior(&self) -> Ior {
        reference(&[self.profile()])
    }
}

/// Returns a reference of the type `Wire::Desk`.
pub(crate) fn reference(profiles: &[IiopProfile]) -> Ior {
    Ior::from_profiles("IDL:Wire/Desk:1.0", profiles).unwrap()
}

/// Returns a component with zorb's code sets.
pub(crate) fn code_sets() -> TaggedComponent {
    TaggedComponent::code_sets(&giop_codec::code_set::CodeSetComponentInfo::zorb_default()).unwrap()
}

/// Returns a port without a listener.
pub(crate) fn dead_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn serve<F: Fn(&Asked) -> Answer>(mut socket: TcpStream, all: Arc<Mutex<Vec<Asked>>>, answer: Arc<F>) {
    while let Some((header, octets)) = read(&mut socket).await {
        if !matches!(header.kind, MessageType::Request | MessageType::LocateRequest) {
            continue;
        }
        let before = all.lock().unwrap().len();
        let asked = Asked { header, octets, before };
        let (id, version) = (asked.id(), header.version);
        let wanted =
            header.kind == MessageType::LocateRequest || asked.request().response() != ResponseFlags::None;
        let answer = answer(&asked);
        all.lock().unwrap().push(asked);
        if !wanted && !matches!(answer, Answer::Drop) {
            continue;
        }
        let octets = match answer {
            Answer::Reply(status, body) => message(version, MessageType::Reply, |e| {
                let contexts = ServiceContexts::EMPTY;
                ReplyHeader { request_id: id, status, contexts }.encode(e).unwrap();
                begin_body(e);
                body(e);
            }),
            Answer::Locate(status, body) => message(version, MessageType::LocateReply, |e| {
                LocateReplyHeader { request_id: id, status }.encode(e).unwrap();
                body(e);
            }),
            Answer::LocateNumber(number) => message(version, MessageType::LocateReply, |e| {
                id.0.encode(e).unwrap();
                number.encode(e).unwrap();
            }),
            Answer::Close => {
                let bye = message(version, MessageType::CloseConnection, |_| ());
                let _ = socket.write_all(&bye).await;
                return;
            }
            Answer::Drop => return,
        };
        if socket.write_all(&octets).await.is_err() {
            return;
        }
    }
}

/// Reads a complete message; `None` at the end.
pub(crate) async fn read(socket: &mut TcpStream) -> Option<(MessageHeader, Bytes)> {
    let mut octets = vec![0; MessageHeader::LEN];
    socket.read_exact(&mut octets).await.ok()?;
    let header = MessageHeader::decode(octets.first_chunk().unwrap()).unwrap();
    octets.resize(MessageHeader::LEN + header.size as usize, 0);
    socket.read_exact(&mut octets[MessageHeader::LEN..]).await.ok()?;
    Some((header, octets.into()))
}

/// Returns a message in this machine's order.
pub(crate) fn message(version: Version, kind: MessageType, put: impl FnOnce(&mut Encoder)) -> Bytes {
    let mut e = Encoder::new(ByteOrder::NATIVE, version);
    let size_at = put_message_header(&mut e, kind);
    put(&mut e);
    finish_message(&mut e, size_at).unwrap();
    e.into_bytes()
}

/// A client that sends arbitrary requests.
pub(crate) struct Raw {
    pub(crate) socket: TcpStream,
    pub(crate) version: Version,
    pub(crate) key: Vec<u8>,
    pub(crate) response: ResponseFlags,
    next: u32,
}

impl Raw {
    pub(crate) async fn connect(orb: &Orb, key: &[u8]) -> Self {
        let socket = TcpStream::connect(&orb.endpoints()[0]).await.unwrap();
        Self { socket, version: Version::V1_2, key: key.to_vec(), response: ResponseFlags::Target, next: 2 }
    }

    pub(crate) async fn send(
        &mut self,
        operation: &str,
        contexts: &[ServiceContext],
        body: impl FnOnce(&mut Encoder),
    ) -> RequestId {
        let id = RequestId(self.next);
        self.next += 2;
        let octets = message(self.version, MessageType::Request, |e| {
            let target = TargetAddress::Key(&self.key);
            let contexts = contexts.into();
            let response = self.response;
            RequestHeader { request_id: id, response, target, operation, contexts }.encode(e).unwrap();
            begin_body(e);
            body(e);
        });
        self.socket.write_all(&octets).await.unwrap();
        id
    }

    /// Returns the next reply.
    pub(crate) async fn reply(&mut self) -> ReplyMessage {
        let (header, octets) = read(&mut self.socket).await.unwrap();
        ReplyMessage::decode(&header, octets).unwrap()
    }

    pub(crate) async fn call(
        &mut self,
        operation: &str,
        contexts: &[ServiceContext],
        body: impl FnOnce(&mut Encoder),
    ) -> ReplyMessage {
        let id = self.send(operation, contexts, body).await;
        let reply = self.reply().await;
        assert_eq!((reply.request_id(), reply.version()), (id, self.version));
        reply
    }
}
