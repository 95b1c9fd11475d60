//! GIOP messages from a hostile peer: the octets alone, and fed to both ends of a connection.
//!
//! Any capture is a seed: there is no prefix, and what varies (splits, answers) is derived from the input. What the
//! connection makes of a stream may not depend on how it arrives, so each input runs whole and in pieces, and both
//! runs must tell the same story.
#![no_main]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use giop_codec::cdr::{CdrEncode, Decoder, Encoder};
use giop_codec::giop::{
    Message, MessageHeader, MessageType, ReplyHeader, ReplyMessage, ReplyStatus, RequestHeader,
    RequestMessage, ResponseFlags, ServiceContexts, TargetAddress, begin_body, finish_message,
    put_message_header,
};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::MAX_SLICES;
use giop_proto::{BufferPool, CallId, Config, Connection, Event, IncomingRequest, Limits, Reply, Role};
use libfuzzer_sys::fuzz_target;

/// Octets of the whole pool: small, so that its end comes into sight.
const POOL: usize = 4 << 20;

fuzz_target!(|data: &[u8]| {
    decode_alone(data);
    for role in [Role::Client, Role::Server] {
        let whole = converse(role, data, None);
        let pieces = converse(role, data, Some(Dice::new(data)));
        assert_eq!(whole.0, pieces.0, "{role:?}: the story depends on how the octets arrive");
        // What is not written when the peer closes is dropped, and in pieces more is written before.
        assert!(pieces.1.starts_with(&whole.1), "{role:?}: the answers depend on how the octets arrive");
    }
});

/// Decodes the first message without a connection; what decodes must survive being written again.
fn decode_alone(data: &[u8]) {
    let Some(start) = data.first_chunk() else { return };
    let Ok(header) = MessageHeader::decode(start) else { return };
    assert_eq!(MessageHeader::decode(&header.encode()), Ok(header));
    let octets = Bytes::copy_from_slice(data);
    let mut d = Decoder::from_bytes(&octets, header.order, header.version).at(MessageHeader::LEN);
    if let Ok(message) = Message::decode(header.kind, &mut d) {
        assert_eq!(message.kind(), header.kind);
        for context in &message.contexts() {
            let _ = context.open();
        }
        let mut e = Encoder::new(header.order, header.version);
        if let Ok(size_at) = message.encode(&mut e) {
            finish_message(&mut e, size_at).expect("as long as the input");
            let again = e.into_bytes();
            let mut d = Decoder::from_bytes(&again, header.order, header.version).at(MessageHeader::LEN);
            assert_eq!(Message::decode(header.kind, &mut d).as_ref(), Ok(&message));
        }
    }
    if let Ok(request) = RequestMessage::decode(&header, octets.clone()) {
        let _ =
            (request.object_key(), request.operation(), request.contexts().len(), request.body().remaining());
    }
    if let Ok(reply) = ReplyMessage::decode(&header, octets) {
        let _ = (reply.contexts().len(), reply.body().remaining());
    }
}

/// What a run is judged by: the events in words, and all octets that the connection sent.
type Story = (Vec<String>, Vec<u8>);

/// Feeds the stream to one end of a connection, whole or in pieces.
fn converse(role: Role, data: &[u8], mut pieces: Option<Dice>) -> Story {
    let start = Instant::now();
    let mut limits = Limits::default();
    limits.max_message_size = 1 << 20;
    limits.max_requests = 1 << 20; // back-pressure would make the story depend on the splits
    let pool = Arc::new(BufferPool::new(POOL));
    let mut config = Config::new(role, Arc::new(limits), Arc::clone(&pool));
    config.accept_requests = true;
    let mut end =
        End { conn: Connection::new(config, start), story: (Vec::new(), Vec::new()), closed: false };
    if role == Role::Client {
        end.call();
    }
    let mut rest = data;
    while !rest.is_empty() && end.turn(start) {
        let most = pieces.as_mut().map_or(usize::MAX, Dice::length);
        let mut buf = end.conn.take_read_buf();
        assert!(buf.capacity() > 0, "a lent buffer takes something");
        let mut n = 0;
        for slice in &mut buf.io_slices() {
            let (now, later) = rest.split_at(slice.len().min(rest.len()).min(most - n));
            slice[..now.len()].copy_from_slice(now);
            rest = later;
            n += now.len();
        }
        end.conn.handle_read(buf, n, start);
    }
    end.turn(start);
    end.conn.handle_eof(start);
    end.turn(start);
    // Nothing may be left that time does not end.
    let mut now = start;
    for _ in 0..64 {
        let Some(at) = end.conn.poll_timeout() else { break };
        now = now.max(at) + Duration::from_millis(1);
        end.conn.handle_timeout(now);
        end.turn(now);
    }
    assert!(end.closed, "a connection whose peer is gone comes to its end");
    assert_eq!(end.conn.calls_waiting(), 0, "no call waits on a closed connection");
    assert!(pool.stats().held <= POOL, "the pool keeps its cap");
    end.story.0.push(format!("listens at {:?}", end.conn.peer_listen_points()));
    end.story
}

/// One end of a connection with its story.
struct End {
    conn: Connection,
    story: Story,
    closed: bool,
}

impl End {
    /// Calls in all states a reply can meet: waiting, a locate, cancelled.
    fn call(&mut self) {
        let now = Instant::now();
        for i in 0..4 {
            let Ok(call) = self.conn.start_call(None, now) else { return };
            let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
            let request_id = self.conn.request_id(call);
            let size_at = put_message_header(&mut e, MessageType::Request);
            let header = RequestHeader {
                request_id,
                response: ResponseFlags::Target,
                target: TargetAddress::Key(b"key"),
                operation: "op",
                contexts: ServiceContexts::EMPTY,
            };
            header.encode(&mut e).and_then(|_| finish_message(&mut e, size_at)).expect("a request encodes");
            match i {
                2 => self.conn.send_locate(call, &mut e),
                _ => self.conn.send_request(call, &mut e),
            }
            if i == 3 {
                self.conn.cancel_call(call);
            }
        }
    }

    /// Takes events and writes until nothing moves; says whether there is reading to be done.
    fn turn(&mut self, now: Instant) -> bool {
        loop {
            let mut moved = false;
            while let Some(event) = self.conn.poll_event() {
                moved = true;
                assert!(!self.closed, "nothing comes after `Closed`: {event:?}");
                self.take(event);
            }
            while let Some(mut transmit) = self.conn.take_transmit() {
                moved = true;
                while !transmit.is_empty() {
                    let mut slices = [std::io::IoSlice::new(&[]); MAX_SLICES];
                    let used = transmit.io_slices(&mut slices);
                    let before = self.story.1.len();
                    self.story.1.extend(slices[..used].iter().flat_map(|slice| slice.iter().copied()));
                    transmit.advance(self.story.1.len() - before);
                }
                self.conn.handle_written(transmit, now);
            }
            if !moved {
                break;
            }
        }
        assert_eq!(self.closed, self.conn.is_closed());
        self.conn.wants_read()
    }

    fn take(&mut self, event: Event) {
        let line = match event {
            Event::Request(request) => self.serve(&request),
            Event::Locate(locate) => {
                let _ = (locate.version(), locate.order(), locate.key().len());
                format!("locate {} {:?}", locate.id(), locate.key())
            }
            Event::Cancelled(token) => {
                self.conn.finish_request(token);
                format!("cancelled {token:?}")
            }
            Event::Reply(call) => self.outcome(call),
            Event::Closed => {
                self.closed = true;
                format!("closed: {:?}", self.conn.close_reason())
            }
        };
        self.story.0.push(line);
    }

    /// Looks at all of a request; answers most at once and leaves some open, so that cancels meet them.
    fn serve(&mut self, request: &IncomingRequest) -> String {
        let mut arguments = request.arguments();
        let _ = arguments.read_string();
        let contexts: Vec<_> = request.contexts().iter().map(|context| context.open().is_ok()).collect();
        let line = format!(
            "request {} {:?} {:?} {:?} {contexts:?} {}",
            request.id(),
            request.key(),
            request.operation(),
            request.response(),
            request.message().len()
        );
        if request.response() == ResponseFlags::None {
            self.conn.finish_request(request.token());
        } else if request.id().0 % 4 != 3 {
            let mut e = Encoder::new(request.order(), request.version());
            let size_at = put_message_header(&mut e, MessageType::Reply);
            ReplyHeader::new(request.id(), ReplyStatus::NoException).encode(&mut e).expect("a reply encodes");
            begin_body(&mut e);
            Bytes::copy_from_slice(request.key()).encode(&mut e).expect("no longer than the request");
            finish_message(&mut e, size_at).expect("no longer than the request");
            self.conn.send_reply(request.token(), &mut e);
        }
        line
    }

    fn outcome(&mut self, call: CallId) -> String {
        match self.conn.take_outcome(call) {
            Some(Ok(reply)) => format!("reply {call:?} {}", describe(&reply)),
            Some(Err(error)) => format!("failed {call:?} {error} {:?}", error.into_system_exception()),
            None => panic!("an announced outcome is there"),
        }
    }
}

fn describe(reply: &Reply) -> String {
    let mut body = reply.body();
    let _ = body.read_string();
    format!("{:?} {:?} {}", reply.status(), reply.locate_status(), reply.contexts().len())
}

/// Numbers that depend on the input alone.
struct Dice(u64);

impl Dice {
    fn new(data: &[u8]) -> Self {
        let mix = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        Self(data.iter().fold(0xcbf2_9ce4_8422_2325, mix) | 1)
    }

    /// How much one read gets: mostly a few octets, at times much.
    fn length(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let length = (self.0 >> 8) as usize;
        1 + length % if self.0.is_multiple_of(8) { 4096 } else { 24 }
    }
}
