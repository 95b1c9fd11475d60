//! One end of a connection that receives bytes of a stranger, and the story of its events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags, ServiceContexts, TargetAddress,
    begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::{BufferPool, CallId, Config, Connection, Event, IncomingRequest, Limits, Reply, Role};

/// Size of the whole pool, bytes: small, so that it can be exhausted.
const POOL: usize = 4 << 20;

/// The events as text.
pub type Story = Vec<String>;

/// One end of a connection with its story.
pub struct End {
    pub conn: Connection,
    pub story: Story,
    pub closed: bool,
    /// The last write accepted less than it was given.
    pub blocked: bool,
    pool: Arc<BufferPool>,
}

/// Takes the output of an end. Returns whether it took all of it.
pub trait Way {
    fn write(&mut self, transmit: &mut Transmit) -> bool;
}

impl End {
    pub fn new(role: Role, start: Instant) -> Self {
        let mut limits = Limits::default();
        limits.max_message_size = 1 << 20;
        limits.max_requests = 1 << 20; // back-pressure would make the story depend on the splits
        let pool = Arc::new(BufferPool::new(POOL));
        let mut config = Config::new(role, Arc::new(limits), Arc::clone(&pool));
        config.accepts_requests = true;
        let conn = Connection::new(config, start);
        Self { conn, story: Vec::new(), closed: false, blocked: false, pool }
    }

    /// Makes calls in all states that a reply can find: pending, a locate, cancelled.
    pub fn call(&mut self) {
        let now = Instant::now();
        for i in 0..4 {
            let Ok(call) = self.conn.start_call(None, now) else { return };
            let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
            let request_id = self.conn.call(call).request_id();
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
                2 => self.conn.call(call).send_locate(&mut e),
                _ => self.conn.call(call).send_request(&mut e),
            }
            if i == 3 {
                self.conn.call(call).cancel();
            }
        }
    }

    /// Takes events and writes until nothing moves. Returns whether the end wants to read.
    pub fn turn(&mut self, way: &mut impl Way, now: Instant) -> bool {
        self.blocked = false;
        loop {
            let mut moved = false;
            while let Some(event) = self.conn.poll_event() {
                moved = true;
                assert!(!self.closed, "nothing comes after `Closed`: {event:?}");
                self.take(event);
            }
            while !self.blocked
                && let Some(mut transmit) = self.conn.take_transmit()
            {
                moved = true;
                self.blocked = !way.write(&mut transmit);
                self.conn.handle_written(transmit, now);
            }
            if !moved {
                break;
            }
        }
        assert_eq!(self.closed, self.conn.lifecycle().is_closed());
        self.conn.wants_read()
    }

    /// Handles the end of the peer's stream: only state that a timeout ends may be left.
    pub fn finish(&mut self, way: &mut impl Way, start: Instant) {
        self.turn(way, start);
        self.conn.handle_eof(start);
        self.turn(way, start);
        let mut now = start;
        for _ in 0..64 {
            let Some(at) = self.conn.poll_timeout() else { break };
            now = now.max(at) + Duration::from_millis(1);
            self.conn.handle_timeout(now);
            self.turn(way, now);
        }
        assert!(self.closed, "a connection whose peer is gone comes to its end");
        assert_eq!(self.conn.pending_call_count(), 0, "no call waits on a closed connection");
        assert!(self.pool.stats().held <= POOL, "the pool keeps its cap");
        self.story.push(format!("listens at {:?}", self.conn.peer().listen_points()));
    }

    fn take(&mut self, event: Event) {
        let line = match event {
            Event::Request(request) => self.serve(&request),
            Event::Locate(locate) => {
                let _ = (locate.version(), locate.order(), locate.key().len());
                format!("locate {} {:?}", locate.id(), locate.key())
            }
            Event::Cancelled(token) => {
                self.conn.request(token).finish();
                format!("cancelled {token:?}")
            }
            Event::Reply(call) => self.outcome(call),
            Event::Closed => {
                self.closed = true;
                format!("closed: {:?}", self.conn.lifecycle().close_reason())
            }
        };
        self.story.push(line);
    }

    /// Decodes all of a request. Answers most requests immediately and leaves some open, so that cancels find
    /// them.
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
            self.conn.request(request.token()).finish();
        } else if request.id().0 % 4 != 3 {
            let mut e = Encoder::new(request.order(), request.version());
            let size_at = put_message_header(&mut e, MessageType::Reply);
            ReplyHeader::new(request.id(), ReplyStatus::NoException).encode(&mut e).expect("a reply encodes");
            begin_body(&mut e);
            Bytes::copy_from_slice(request.key()).encode(&mut e).expect("no longer than the request");
            finish_message(&mut e, size_at).expect("no longer than the request");
            self.conn.request(request.token()).send_reply(&mut e);
        }
        line
    }

    fn outcome(&mut self, call: CallId) -> String {
        match self.conn.call(call).take_outcome() {
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

/// Memory accepts everything.
impl Way for Vec<u8> {
    fn write(&mut self, transmit: &mut Transmit) -> bool {
        while !transmit.is_empty() {
            let mut slices = [std::io::IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let before = self.len();
            self.extend(slices[..used].iter().flat_map(|slice| slice.iter().copied()));
            transmit.advance(self.len() - before);
        }
        true
    }
}

/// Feeds the stream to one end of a connection, whole or in pieces. Returns its story and all bytes that it
/// sent.
pub fn converse(role: Role, data: &[u8], mut pieces: Option<Dice>) -> (Story, Vec<u8>) {
    let (start, mut sent) = (Instant::now(), Vec::new());
    let mut end = End::new(role, start);
    if role == Role::Client {
        end.call();
    }
    let mut rest = data;
    while !rest.is_empty() && end.turn(&mut sent, start) {
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
    end.finish(&mut sent, start);
    (end.story, sent)
}

/// Pseudo-random numbers that depend only on the input.
pub struct Dice(u64);

impl Dice {
    pub fn new(data: &[u8]) -> Self {
        let mix = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        Self(data.iter().fold(0xcbf2_9ce4_8422_2325, mix) | 1)
    }

    /// Returns the size of a read: mostly a few bytes, sometimes many.
    pub fn length(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let length = (self.0 >> 8) as usize;
        1 + length % if self.0.is_multiple_of(8) { 4096 } else { 24 }
    }
}
