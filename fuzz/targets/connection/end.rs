//! One machine with its socket, and a model of the state that it must have.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{RequestId, ResponseFlags};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::MAX_SLICES;
use giop_proto::receive::PIECE_HEADER_LEN;
use giop_proto::{
    BufferPool, CallId, Config, Connection, IncomingRequest, Limits, ReadBuf, RequestBudget, Role,
    ServeToken, StreamSelector, Transmit,
};

use crate::messages::Tag;
use crate::streams::Payload;
use crate::wire::Wire;

/// The key of the object whose requests are delivered before their payload has arrived.
pub const STREAMED: &[u8] = b"streamed";

/// One end of a connection.
pub struct End {
    pub conn: Connection,
    pub role: Role,
    /// Bytes in transit to this end, and whether the end of the stream follows.
    pub wire: VecDeque<u8>,
    pub eof: bool,
    /// The buffers that are lent to a reader and to a writer.
    pub reader: Option<ReadBuf>,
    pub writer: Option<Transmit>,
    /// The data that it wrote and read so far.
    pub out: Wire,
    pub read: u64,
    pub calls: Vec<Call>,
    /// Calls that were given up: their results may already have been in transit.
    pub given_up: Vec<CallId>,
    pub served: Vec<Served>,
    pub locates: Vec<(RequestId, Version, ByteOrder)>,
    pub payloads: Vec<Payload>,
    /// The rest of a partially sent request, and of one that is sent while it is encoded.
    pub part: Option<(Option<CallId>, Bytes)>,
    pub flow: Option<(u64, Bytes)>,
    /// Messages of a stranger in pieces.
    pub pieces: Vec<VecDeque<Vec<u8>>>,
    /// Requests that are kept: they pin the memory into which they were received.
    pub kept: Vec<IncomingRequest>,
    pub closed: bool,
    /// Its socket no longer accepts data.
    pub broken: bool,
    /// Its side of the socket is shut down.
    pub shut: bool,
    pub ended: bool,
}

/// A pending call.
pub struct Call {
    pub id: CallId,
    pub request: RequestId,
    pub tag: Tag,
    /// It may end by a timeout.
    pub timed: bool,
    pub streamed: bool,
}

/// A request in service.
pub struct Served {
    pub token: ServeToken,
    pub id: RequestId,
    pub version: Version,
    pub order: ByteOrder,
    pub response: ResponseFlags,
    pub tag: Option<Tag>,
    pub cancelled: bool,
    pub answer: Answer,
}

/// The state of its reply.
pub enum Answer {
    Open,
    /// It is sent: the request has to be finished.
    Sent,
    /// It is sent before it is complete.
    Growing(Encoder, Bytes),
    /// It is sent while it is encoded.
    Flowing(u64, Bytes),
}

/// A table in which one operation of one object is streamed.
#[derive(Debug)]
struct Table;

impl StreamSelector for Table {
    fn any_streamed(&self) -> bool {
        true
    }

    fn is_streamed(&self, key: &[u8], operation: &[u8]) -> bool {
        key == STREAMED && operation == b"ping"
    }
}

/// The configuration, and the state shared by both ends.
pub struct Setup {
    pub limits: Arc<Limits>,
    pub pool: Arc<BufferPool>,
    pub budget: Arc<RequestBudget>,
    pub both_serve: bool,
    pub deposit: bool,
    pub streams: bool,
}

impl End {
    pub fn new(role: Role, setup: &Setup, fragment_size: Option<usize>, now: Instant) -> Self {
        let mut config = Config::new(role, Arc::clone(&setup.limits), Arc::clone(&setup.pool));
        config.budget = Arc::clone(&setup.budget);
        config.accepts_requests |= setup.both_serve;
        config.deposits_enabled = setup.deposit;
        config.fragment_size = fragment_size;
        config.streams = setup.streams.then(|| Arc::new(Table) as Arc<dyn StreamSelector>);
        Self {
            conn: Connection::new(config, now),
            role,
            wire: VecDeque::new(),
            eof: false,
            reader: None,
            writer: None,
            out: Wire::default(),
            read: 0,
            calls: Vec::new(),
            given_up: Vec::new(),
            served: Vec::new(),
            locates: Vec::new(),
            payloads: Vec::new(),
            part: None,
            flow: None,
            pieces: Vec::new(),
            kept: Vec::new(),
            closed: false,
            broken: false,
            shut: false,
            ended: false,
        }
    }

    /// Returns whether nothing may be sent because a request is only partially queued.
    pub fn is_blocked(&mut self) -> bool {
        self.conn.unfinished_request().wants_part()
    }

    /// Reads once, and returns whether any data moved. With `hold`, the reader keeps the buffer for later.
    pub fn read(&mut self, most: usize, hold: bool, now: Instant) -> bool {
        let mut buf = match self.reader.take() {
            Some(buf) => buf,
            None if !self.conn.wants_read() || self.ended => return false,
            None if self.wire.is_empty() && !hold => {
                if !std::mem::take(&mut self.eof) {
                    return false;
                }
                self.ended = true;
                self.conn.handle_eof(now);
                return true;
            }
            None => {
                let mut buf = self.conn.take_read_buf();
                let room: usize = buf.io_slices().iter().map(|slice| slice.len()).sum();
                assert_eq!(room, buf.capacity());
                assert!(room > 0, "a lent buffer takes something");
                if hold {
                    self.reader = Some(buf);
                    return false;
                }
                buf
            }
        };
        let mut n = 0;
        for mut slice in buf.io_slices() {
            let len = slice.len().min(self.wire.len()).min(most - n);
            for (to, from) in slice.iter_mut().zip(self.wire.drain(..len)) {
                *to = from;
            }
            n += len;
        }
        self.read += n as u64;
        self.conn.handle_read(buf, n, now);
        true
    }

    /// Takes bytes that arrived without a buffer; `false` if not all of them fitted. Between messages there
    /// is space for a header, and no such reads happen at other times.
    pub fn read_early(&mut self, most: usize, now: Instant) -> bool {
        if self.reader.is_some() || !self.conn.wants_read() || self.ended {
            return true;
        }
        let between = !self.conn.may_wait_with_buf();
        let len = self.wire.len().min(most).min(64);
        let octets: Vec<u8> = self.wire.drain(..len).collect();
        let before = self.conn.stats().bytes_in;
        let fitted = self.conn.handle_early_bytes(&octets, now);
        let taken = self.conn.stats().bytes_in - before;
        assert_eq!(fitted, taken == octets.len() as u64, "it counts what there was room for");
        self.read += taken;
        if !fitted {
            assert!(
                !between || taken >= PIECE_HEADER_LEN as u64,
                "there is always room for the header of a message"
            );
            // The stream is lost: a driver closes the connection.
            self.conn.abort(giop_proto::CloseReason::Local);
        }
        fitted
    }

    /// Writes some of the queued data, and returns what the socket accepted. With `hold`, the writer
    /// continues later.
    pub fn write(&mut self, most: usize, hold: bool, now: Instant) -> Option<Vec<u8>> {
        let fresh = self.writer.is_none();
        let mut transmit = self.writer.take().or_else(|| self.conn.take_transmit())?;
        if fresh && hold {
            self.writer = Some(transmit);
            return None;
        }
        if self.broken {
            self.conn.handle_written(transmit, now);
            self.conn.handle_write_error(&std::io::ErrorKind::BrokenPipe.into(), now);
            return Some(Vec::new());
        }
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let used = transmit.io_slices(&mut slices);
        let mut octets: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
        octets.truncate(most);
        if !self.shut {
            self.out.wrote(&octets);
        }
        transmit.advance(octets.len());
        self.conn.handle_written(transmit, now);
        Some(octets)
    }

    /// Handles expired timeouts. They must not be due again immediately.
    pub fn tick(&mut self, now: Instant) {
        for _ in 0..4 {
            match self.conn.poll_timeout() {
                Some(at) if at <= now => self.conn.handle_timeout(now),
                _ => return,
            }
            // A call's end is not late, but the first check may come too early.
        }
        let at = self.conn.poll_timeout();
        assert!(at.is_none_or(|at| at > now), "its time is over, and over again: {at:?} at {now:?}");
    }

    /// Checks the invariants, after all events have been taken.
    pub fn check(&mut self) {
        let conn = &mut self.conn;
        let stats = conn.stats();
        assert_eq!(conn.serving_count(), self.served.len(), "what is served");
        assert!(self.served.len() <= conn.limits().max_requests.max(1), "more than may be in flight");
        assert_eq!(conn.pending_call_count(), self.calls.len(), "what waits");
        assert_eq!(conn.lifecycle().is_closed(), self.closed, "it says so");
        assert_eq!(
            conn.lifecycle().close_reason().is_some(),
            conn.lifecycle().is_closing(),
            "there is a reason for it"
        );
        assert_eq!(stats.bytes_in, self.read);
        if self.closed {
            assert!(!conn.wants_read() && !conn.unfinished_request().wants_part() && !conn.has_output());
            assert_eq!(conn.poll_timeout(), None);
            assert!(self.calls.is_empty());
            assert!(conn.output().backlog() == 0 || self.writer.is_some());
            return;
        }
        assert_eq!(stats.bytes_out, self.out.written);
        assert!(
            conn.wants_read()
                || self.ended
                || self.reader.is_some()
                || self.writer.is_some()
                || conn.has_output()
                || !self.served.is_empty()
                || !self.payloads.is_empty()
                || conn.poll_timeout().is_some(),
            "it waits for nothing: {conn:?}"
        );
    }
}
