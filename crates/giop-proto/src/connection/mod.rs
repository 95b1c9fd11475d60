//! [`Connection`]: the state of one GIOP connection.

mod backlog;
mod calling;
mod closing;
mod flow;
mod fragmenting;
mod growing;
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
use crate::receive::{Receiver, Streams};
use crate::request_budget::{BudgetShare, RequestBudget};
use crate::serving::ActiveRequests;
use crate::stats::Stats;
use backlog::{PoolShare, ReplyBacklog};
pub use calling::PendingCall;
pub use closing::Lifecycle;
pub use flow::{OutgoingFlow, ReplyFlow};
use fragmenting::FragmentQueue;
pub use growing::ReplyRoom;
use oneways::Oneways;
use payload::PartialRequest;
pub use payload::UnfinishedRequest;
pub use peer::Peer;
pub use serving::ServedRequest;
use streaming::IncomingPayload;
pub use streaming::{IncomingStream, StreamOf};
use time::{Clock, WriteTimer};
pub use unusual::GLASSFISH_FRAGMENT;

/// The configuration of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The side that opened the connection.
    pub role: Role,
    /// The limits imposed on the peer.
    pub limits: Arc<Limits>,
    /// The pool of receive buffers.
    pub pool: Arc<BufferPool>,
    /// The budget of requests in flight, which connections may share. Default: `Limits::max_total_requests`.
    pub budget: Arc<RequestBudget>,
    /// The highest version that this side supports. MessageError carries it, and the connection's own
    /// messages have it until the peer's version is known. Default 1.2.
    pub max_version: Version,
    /// True if requests are served. Default: true if the peer opened the connection.
    pub accept_requests: bool,
    /// True if large messages are read into their final position, and decoded values share that memory.
    /// Default `true`. With `false`, for comparison with a classical implementation, everything is read
    /// through a window of 64 KiB, copied into the message's buffer, and copied again when it is decoded.
    pub deposit: bool,
    /// The maximum size in bytes of a GIOP 1.2 Request or Reply in one piece. Larger messages are sent in
    /// fragments, between which other messages may be sent. Rounded down to a multiple of 8, and at least 24;
    /// headers of requests and replies are never cut. Default `None`: messages are not fragmented, except
    /// replies that are [started](ServedRequest::begin_reply) before they are complete.
    ///
    /// [`Connection::limit_fragment_size`] must be called to fragment requests by
    /// [`Connection::begin_request`].
    pub fragment_size: Option<usize>,
    /// The code sets of text until others are negotiated. Default: ISO 8859-1, and no wide text.
    pub assumed_code_sets: CodeSets,
    /// Selects the requests that are handed out before their payload is received. Default: none.
    pub streams: Option<Arc<dyn Streams>>,
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
            accept_requests: role == Role::Server,
            deposit: true,
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
/// * *Input*: [`take_read_buf`](Self::take_read_buf) lends a buffer, and [`handle_read`](Self::handle_read)
///   takes it back with the received bytes. [`handle_eof`](Self::handle_eof),
///   [`handle_read_error`](Self::handle_read_error), [`handle_write_error`](Self::handle_write_error) and
///   [`handle_timeout`](Self::handle_timeout) report other events.
/// * *Events*: each [`poll_event`](Self::poll_event) processes the next message.
/// * *Output*: [`take_transmit`](Self::take_transmit) lends what is to be written, and
///   [`handle_written`](Self::handle_written) takes it back; [`poll_timeout`](Self::poll_timeout).
/// * *Commands*: calls, replies, [`close`](Self::close), [`abort`](Self::abort).
///
/// A driver repeats this loop:
///
/// 1. [`poll_event`](Self::poll_event) until it returns `None`;
/// 2. while [`has_output`](Self::has_output): `take_transmit`, write, `handle_written`; once its lifecycle
///    [`wants_shutdown`](Lifecycle::wants_shutdown), shut down the socket's write side;
/// 3. if [`wants_read`](Self::wants_read): `take_read_buf`, read, `handle_read`. Otherwise wait until the
///    socket is writable, a request is finished, or the timeout expires.
///
/// After [`Event::Closed`] the socket is not needed. A lent buffer or transmit may still be returned.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Arc<Limits>,
    max_version: Version,
    peer: Peer,
    accept_requests: bool,
    lifecycle: Lifecycle,
    input: Input,
    output: Output,
    calls: Calls<Outcome>,
    serving: ActiveRequests,
    requests: RequestAdmission,
    /// Events that do not result from messages.
    notices: VecDeque<Notice>,
    clock: Clock,
    oneways: Oneways,
    /// The number of received bytes when a call last timed out, and the number of timeouts at that count.
    unanswered: (u64, u32),
}

#[derive(Debug)]
struct RequestAdmission {
    /// The number of requests that may be in flight at present. It is increased on demand.
    granted: usize,
    share: BudgetShare,
    /// True if the endpoint's budget is exhausted: excess requests are then refused, not left unread.
    refuses_excess: bool,
    /// The number of received messages when requests last had to wait.
    last_wait: Option<u64>,
}

type Outcome = Result<Reply, CallError>;

/// The input of a connection: messages that are received from the peer.
#[derive(Debug)]
pub struct Input {
    rx: Receiver,
    fragments: Fragments,
    /// True if received messages must be processed before anything more is read.
    has_unprocessed: bool,
    /// The message whose payload is being received as a stream.
    streamed: Option<IncomingPayload>,
    /// A message count, and the number of failed attempts to obtain memory at that count.
    starved: (u64, u32),
}

/// The output of a connection: messages that are queued for the peer.
#[derive(Debug)]
pub struct Output {
    tx: Outbox,
    /// The version of the last message in either direction. The connection's own messages have it.
    version: Version,
    partial_request: Option<PartialRequest>,
    /// Reused for the parts of a large message on their way to the outbox.
    pieces: VecDeque<Bytes>,
    /// Reused for the connection's own messages.
    control_encoder: Encoder,
    /// Bytes of the connection's own answers since the outbox was last empty.
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
        let mut rx = Receiver::new(Arc::clone(&pool), limits.max_message_size, config.deposit);
        if let Some(streams) = config.streams {
            (rx.stream.selector, rx.stream.max) = (Some(streams), limits.max_stream_size);
        }
        Self {
            role,
            max_version,
            peer: Peer {
                opened: role == Role::Server,
                code_sets: None,
                assumed_code_sets: config.assumed_code_sets,
                listen_points: Vec::new(),
                reads_blocks: false,
                last_head: LastHead::default(),
            },
            accept_requests: config.accept_requests,
            lifecycle: Lifecycle::default(),
            input: Input {
                rx,
                fragments: Fragments::new(pool),
                has_unprocessed: false,
                streamed: None,
                starved: (0, 0),
            },
            calls: Calls::new(role == Role::Client),
            serving: ActiveRequests::default(),
            requests: RequestAdmission {
                granted: 1.min(limits.max_requests),
                share: BudgetShare::new(config.budget),
                refuses_excess: false,
                last_wait: None,
            },
            notices: VecDeque::new(),
            clock: Clock::new(role, &limits, now),
            output: Output {
                tx: Outbox::default(),
                // Every peer understands 1.0. It is used until the peer's version is known.
                version: if role == Role::Client { max_version } else { Version::V1_0 },
                partial_request: None,
                pieces: VecDeque::new(),
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
            unanswered: (0, 0),
            limits,
        }
    }

    /// Returns the state: open, closing or closed.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Returns the input.
    #[inline]
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Returns the input, to set how a payload is received.
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
        self.accept_requests
    }

    /// Sets whether requests of the peer are served (Bidirectional GIOP). A client enables this before it
    /// announces listen points. Otherwise a request is answered with MessageError.
    pub fn set_accept_requests(&mut self, accept: bool) {
        self.accept_requests = accept;
    }

    /// Returns what is known of the peer.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Sets the code sets that the client negotiated ("Code Set Negotiation").
    pub fn set_code_sets(&mut self, code_sets: CodeSets) {
        self.peer.code_sets = Some(code_sets);
    }

    /// Limits the size in bytes of GIOP 1.2 messages. From now on larger ones are sent in fragments.
    pub fn limit_fragment_size(&mut self, size: usize) {
        self.output.fragment_queue.lower_to(size);
    }

    /// Returns the numbers of received messages and bytes, from which a reader measures its progress.
    #[inline]
    pub fn received(&self) -> (u64, u64) {
        (self.output.stats.messages_in, self.output.stats.bytes_in)
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        Stats {
            copied: self.input.rx.memory.copied + self.input.fragments.copied,
            skipped: self.input.rx.skip.total,
            bytes_out: self.output.tx.written(),
            writes: self.output.tx.writes(),
            copied_out: self.output.stats.copied_out + self.output.tx.copied(),
            ..self.output.stats
        }
    }

    /// Returns the next event, or `None` if there is none until something is handled, sent or finished.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if !self.notices.is_empty() {
            return self.notices.pop_front().map(Event::from);
        }
        self.poll_message()
    }
}
