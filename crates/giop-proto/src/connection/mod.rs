//! [`Connection`]: the state of one GIOP connection.

mod backlog;
mod calling;
mod closing;
mod fragmenting;
mod growing;
mod incremental;
mod load;
mod memory;
mod oneways;
mod pace;
mod payload;
mod peer;
mod reading;
mod refusing;
mod serving;
mod streaming;
mod time;
mod unusual;
mod writing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::{ByteOrder, Version};

use crate::calls::Calls;
use crate::error::CallError;
use crate::event::{Event, Notice};
use crate::fragments::Fragments;
use crate::limits::{Limits, Role};
use crate::message::{LastHead, Reply};
use crate::outbox::Outbox;
use crate::pool::BufferPool;
use crate::receive::{Receiver, StreamSelector};
use crate::request_budget::{BudgetShare, RequestBudget};
use crate::serving::ActiveRequests;
use crate::stats::Stats;
use backlog::{PoolShare, ReplyBacklog};
pub use calling::PendingCall;
pub use closing::Lifecycle;
use fragmenting::FragmentQueue;
pub use growing::ReplyRoom;
pub use incremental::{IncrementalMessage, IncrementalReply};
use oneways::Oneways;
use payload::PartialRequest;
pub use payload::UnfinishedRequest;
pub use peer::Peer;
pub use serving::ServedRequest;
use streaming::IncomingPayload;
pub use streaming::{IncomingStream, StreamId};
use time::{Clock, WriteTimer};
pub use unusual::GLASSFISH_FRAGMENT_SIZE;

/// The configuration of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The role of this side. The client is the side that opened the connection.
    pub role: Role,
    /// The limits imposed on the peer.
    pub limits: Arc<Limits>,
    /// The pool of receive buffers.
    pub pool: Arc<BufferPool>,
    /// The budget of requests in flight, which connections may share. By default, it is not shared.
    pub budget: Arc<RequestBudget>,
    /// The highest version that this side supports, 1.2 by default. A MessageError has this version. On a
    /// connection that this side opened, so does a CloseConnection or CancelRequest before any other message.
    pub max_version: Version,
    /// True if requests are served. The default is true if the peer opened the connection.
    pub accepts_requests: bool,
    /// True if large messages are read directly into buffers that decoded values share, as by default.
    ///
    /// If it is false, everything is read through a window of 64 KiB, copied into the message's buffer, and
    /// copied again when it is decoded. This is meant for comparison with a classical implementation.
    pub deposits_enabled: bool,
    /// The maximum size in bytes of a GIOP 1.2 Request or Reply that is sent in one piece. Larger messages
    /// are sent in fragments, between which other messages may be sent. The size is rounded down to a
    /// multiple of 8, and is at least 24. Headers of requests and replies are never cut.
    ///
    /// With `None`, the default, messages are not fragmented, except replies that are
    /// [started](ServedRequest::begin_reply) before they are complete. This size does not apply to requests
    /// that are started by [`Connection::begin_request`]; [`Connection::limit_fragment_size`] does.
    pub fragment_size: Option<usize>,
    /// The code sets of text until others are negotiated. The default is ISO 8859-1, without wide text.
    pub assumed_code_sets: CodeSets,
    /// Selects the requests that are handed out before their payload is received. By default, there are none.
    pub streams: Option<Arc<dyn StreamSelector>>,
}

impl Config {
    /// Returns the default configuration.
    #[must_use]
    pub fn new(role: Role, limits: Arc<Limits>, pool: Arc<BufferPool>) -> Self {
        Self {
            role,
            budget: Arc::new(RequestBudget::new(limits.max_total_requests)),
            limits,
            pool,
            max_version: Version::V1_2,
            accepts_requests: role == Role::Server,
            deposits_enabled: true,
            fragment_size: None,
            assumed_code_sets: CodeSets::default(),
            streams: None,
        }
    }
}

/// One GIOP connection, without its socket.
///
/// Its methods never block or read a clock:
///
/// * *Input*: [`take_read_buf`](Self::take_read_buf) lends a buffer to the driver, and
///   [`handle_read`](Self::handle_read) takes it back with the received bytes.
/// * *Events*: [`poll_event`](Self::poll_event) processes received messages until it has an event to return.
/// * *Output*: [`take_transmit`](Self::take_transmit) lends queued bytes to the driver, and
///   [`handle_written`](Self::handle_written) takes them back when they are written.
/// * *Failures*: the driver reports them to [`handle_eof`](Self::handle_eof),
///   [`handle_read_error`](Self::handle_read_error) and [`handle_write_error`](Self::handle_write_error).
/// * *Time*: [`poll_timeout`](Self::poll_timeout) tells when to call
///   [`handle_timeout`](Self::handle_timeout).
/// * *Commands*: calls, replies, [`close`](Self::close), [`abort`](Self::abort).
///
/// A driver repeats this loop:
///
/// 1. Call [`poll_event`](Self::poll_event) until it returns `None`.
/// 2. While [`has_output`](Self::has_output) is true, call `take_transmit`, write, and call `handle_written`.
///    When [`Lifecycle::wants_shutdown`] is true, shut down the socket's write side.
/// 3. If [`wants_read`](Self::wants_read) is true, call `take_read_buf`, read, and call `handle_read`. If
///    not, wait until the socket is writable, a request is finished, or the timeout expires.
///
/// After [`Event::Closed`], the socket is no longer needed. A lent buffer or transmit may still be returned.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Arc<Limits>,
    max_version: Version,
    peer: Peer,
    accepts_requests: bool,
    lifecycle: Lifecycle,
    input: Input,
    output: Output,
    calls: Calls<Outcome>,
    serving: ActiveRequests,
    admission: RequestAdmission,
    notices: VecDeque<Notice>,
    clock: Clock,
    oneways: Oneways,
    unanswered: UnansweredCalls,
}

/// The calls that timed out since the last byte was received.
#[derive(Debug, Clone, Copy, Default)]
struct UnansweredCalls {
    bytes_in: u64,
    count: u32,
}

#[derive(Debug)]
struct RequestAdmission {
    /// The number of requests that may be in flight at present. It is increased on demand.
    granted: usize,
    share: BudgetShare,
    /// True if the shared budget is exhausted. Requests beyond it are then refused instead of left unread.
    refuses_excess: bool,
    /// The number of messages that had been received when requests last had to wait.
    last_wait: Option<u64>,
}

type Outcome = Result<Reply, CallError>;

/// The input of a connection: data that is received from the peer.
#[derive(Debug)]
pub struct Input {
    rx: Receiver,
    fragments: Fragments,
    /// True if received messages must be processed before anything more is read.
    has_unprocessed: bool,
    incoming_payload: Option<IncomingPayload>,
    memory_attempts: MemoryAttempts,
}

/// The failed attempts to obtain memory since the last message was received.
#[derive(Debug, Clone, Copy, Default)]
struct MemoryAttempts {
    messages: u64,
    attempts: u32,
}

/// The output of a connection: messages that are queued for the peer.
#[derive(Debug)]
pub struct Output {
    tx: Outbox,
    /// The version of the last message in either direction, used for CancelRequest and CloseConnection.
    version: Version,
    partial_request: Option<PartialRequest>,
    /// The parts of a large message that is being moved to the outbox. It is kept to reuse its memory.
    outgoing_chunks: VecDeque<Bytes>,
    /// The encoder of answers that the connection itself sends, such as refusals.
    control_encoder: Encoder,
    /// The size of these answers since the outbox was last empty.
    control_backlog: usize,
    reply_backlog: ReplyBacklog,
    pool_share: PoolShare,
    fragment_queue: FragmentQueue,
    timer: WriteTimer,
    max_backlog: usize,
    /// The counters of the connection, in both directions.
    stats: Stats,
}

impl Connection {
    /// Creates a connection that was opened at `now`.
    #[must_use]
    pub fn new(config: Config, now: Instant) -> Self {
        let Config { role, limits, pool, max_version, .. } = config;
        let pool_share = PoolShare::new(Arc::clone(&pool));
        let mut rx = Receiver::new(Arc::clone(&pool), limits.max_message_size, config.deposits_enabled);
        if let Some(streams) = config.streams {
            (rx.stream.selector, rx.stream.max_payload_bytes) = (Some(streams), limits.max_stream_size);
        }
        Self {
            role,
            max_version,
            peer: Peer {
                opened_connection: role == Role::Server,
                code_sets: None,
                assumed_code_sets: config.assumed_code_sets,
                listen_points: Vec::new(),
                reads_blocks: false,
                last_head: LastHead::default(),
            },
            accepts_requests: config.accepts_requests,
            lifecycle: Lifecycle::default(),
            input: Input {
                rx,
                fragments: Fragments::new(pool),
                has_unprocessed: false,
                incoming_payload: None,
                memory_attempts: MemoryAttempts::default(),
            },
            calls: Calls::new(role == Role::Client),
            serving: ActiveRequests::default(),
            admission: RequestAdmission {
                granted: 1.min(limits.max_requests),
                share: BudgetShare::new(config.budget),
                refuses_excess: false,
                last_wait: None,
            },
            notices: VecDeque::new(),
            clock: Clock::new(role, &limits, now),
            output: Output {
                tx: Outbox::default(),
                // A server uses version 1.0, which every peer understands, until the peer's version is known.
                version: if role == Role::Client { max_version } else { Version::V1_0 },
                partial_request: None,
                outgoing_chunks: VecDeque::new(),
                control_encoder: Encoder::new(ByteOrder::NATIVE, max_version),
                control_backlog: 0,
                reply_backlog: ReplyBacklog::default(),
                pool_share,
                fragment_queue: FragmentQueue::new(config.fragment_size),
                timer: WriteTimer::new(role, &limits),
                max_backlog: limits.max_backlog,
                stats: Stats::default(),
            },
            oneways: Oneways::default(),
            unanswered: UnansweredCalls::default(),
            limits,
        }
    }

    /// Returns the state of the connection: open, closing or closed.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Returns the input.
    #[inline]
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Returns the input for changes, for example of how a payload is received.
    #[inline]
    pub fn input_mut(&mut self) -> &mut Input {
        &mut self.input
    }

    /// Returns the output.
    #[inline]
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Returns the limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns whether requests of the peer are served.
    pub fn accepts_requests(&self) -> bool {
        self.accepts_requests
    }

    /// Sets whether requests of the peer are served (Bidirectional GIOP). If they are not, a request is
    /// answered with MessageError. A client must enable them before it announces listen points.
    pub fn set_accepts_requests(&mut self, accepts: bool) {
        self.accepts_requests = accepts;
    }

    /// Returns the known properties of the peer.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Sets the code sets that the client negotiated ("Code Set Negotiation").
    pub fn set_code_sets(&mut self, code_sets: CodeSets) {
        self.peer.code_sets = Some(code_sets);
    }

    /// Limits the size in bytes of GIOP 1.2 Requests and Replies in one piece. Larger ones are fragmented.
    pub fn limit_fragment_size(&mut self, size: usize) {
        self.output.fragment_queue.limit_piece_size(size);
    }

    /// Returns the number of received messages and the number of received bytes.
    #[inline]
    pub fn received_counts(&self) -> (u64, u64) {
        (self.output.stats.messages_in, self.output.stats.bytes_in)
    }

    /// Returns the counters of the connection.
    pub fn stats(&self) -> Stats {
        Stats {
            bytes_copied_in: self.input.rx.memory.copied_bytes + self.input.fragments.copied,
            bytes_skipped: self.input.rx.skip.total_received,
            bytes_out: self.output.tx.written(),
            writes: self.output.tx.writes(),
            bytes_copied_out: self.output.stats.bytes_copied_out + self.output.tx.copied(),
            ..self.output.stats
        }
    }

    /// Returns the next event; `None` until something is read, sent or finished, or a timeout expires.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if !self.notices.is_empty() {
            return self.notices.pop_front().map(Event::from);
        }
        self.poll_message()
    }
}
