//! [`Connection`]: the state of one GIOP connection.

mod backlog;
mod bidirectional;
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
mod reading;
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
use giop_codec::giop::ListenPoint;
use giop_codec::{ByteOrder, Version};

use crate::calls::Calls;
use crate::error::{CallError, CloseReason};
use crate::event::{Event, Notice};
use crate::fragments::Fragments;
use crate::limits::{Limits, Role};
use crate::load::{Load, Share};
use crate::message::{LastHead, Reply, Terms};
use crate::outbox::Outbox;
use crate::pool::BufferPool;
use crate::receive::{Receiver, Streams};
use crate::serving::Serving;
use crate::stats::Stats;
use backlog::{Owed, Queued};
use closing::Phase;
pub use flow::ReplyFlow;
use fragmenting::Fragmenting;
pub use growing::ReplyRoom;
use oneways::Oneways;
use payload::Unfinished;
pub use streaming::StreamOf;
use streaming::Streamed;
use time::Clock;
pub use unusual::GLASSFISH_FRAGMENT;

/// How a connection is set up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Who opened it.
    pub role: Role,
    /// What the peer may take.
    pub limits: Arc<Limits>,
    /// Where receive buffers come from.
    pub pool: Arc<BufferPool>,
    /// What is in flight on all connections that have the same. Default: one of its own, for `Limits::max_total_requests`.
    pub load: Arc<Load>,
    /// The highest version that this side speaks: what MessageError names, and what messages of the machine's own are
    /// sent in until the peer's version is known. Default 1.2.
    pub max_version: Version,
    /// Whether requests are served. Default: where the peer opened the connection.
    pub accept_requests: bool,
    /// Whether large messages are read to their final place, and what is decoded shares it. Default `true`; `false` is the
    /// classical way, to compare with: everything is read through a window of 64 KiB, copied into its message's buffer
    /// and copied again when it is decoded.
    pub deposit: bool,
    /// The most octets of a GIOP 1.2 Request or Reply in one piece, its message header included: larger ones leave in fragments, between
    /// which other messages may leave. Rounded down to a multiple of 8; at least 24, and the header of the first piece is always
    /// whole. Default `None`: all messages leave whole, but replies that [begin](Connection::begin_reply) before they are.
    ///
    /// Requests whose payload is announced and queued in parts, as [`Connection::begin_request`] does it, leave whole, unless the peer
    /// [takes no more](Connection::cut_at).
    pub fragment_size: Option<usize>,
    /// The code sets of text until others are agreed on. Default: ISO 8859-1, and no wide text.
    pub unannounced: CodeSets,
    /// Which requests are handed out before their payload is there. Default: none.
    pub streams: Option<Arc<dyn Streams>>,
}

impl Config {
    /// The usual connection of that role.
    #[must_use]
    pub fn new(role: Role, limits: Arc<Limits>, pool: Arc<BufferPool>) -> Self {
        Self {
            role,
            load: Arc::new(Load::new(limits.max_total_requests)),
            limits,
            pool,
            max_version: Version::V1_2,
            accept_requests: role == Role::Server,
            deposit: true,
            fragment_size: None,
            unannounced: CodeSets::default(),
            streams: None,
        }
    }
}

/// One GIOP connection, without its socket.
///
/// Four kinds of methods, none of which blocks or looks at a clock:
///
/// * *Input*: [`take_read_buf`](Self::take_read_buf) lends a buffer, [`handle_read`](Self::handle_read) takes it back
///   with what the socket had; [`handle_eof`](Self::handle_eof), [`handle_read_error`](Self::handle_read_error),
///   [`handle_write_error`](Self::handle_write_error), [`handle_timeout`](Self::handle_timeout).
/// * *Events*: [`poll_event`](Self::poll_event). Messages are cut one by one as it is called.
/// * *Output*: [`take_transmit`](Self::take_transmit) lends what is to be written,
///   [`handle_written`](Self::handle_written) takes it back; [`poll_timeout`](Self::poll_timeout).
/// * *Commands*: calls, replies, [`close`](Self::close), [`abort`](Self::abort).
///
/// A driver goes round this loop, a caller that reads for itself likewise:
///
/// 1. [`poll_event`](Self::poll_event) until it returns `None`;
/// 2. while [`has_output`](Self::has_output): `take_transmit`, write, `handle_written`; once
///    [`wants_shutdown`](Self::wants_shutdown), shut down the socket's write side;
/// 3. if [`wants_read`](Self::wants_read): `take_read_buf`, read, `handle_read`, else wait for the socket to take more,
///    for a request to be finished, or for the time; and again.
///
/// After [`Event::Closed`] the socket is of no more use. The machine never waits for whoever lent a buffer or transmit out: both
/// may come back at any time, also after the end.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Arc<Limits>,
    max_version: Version,
    /// Of the last message in either direction.
    version: Version,
    accept_requests: bool,
    phase: Phase,
    rx: Receiver,
    fragments: Fragments,
    tx: Outbox,
    /// Messages of this side that are not queued whole.
    fragmenting: Fragmenting,
    calls: Calls<Result<Reply, CallError>>,
    serving: Serving,
    /// How many requests may be in flight now: it is given more where it needs them.
    granted: usize,
    share: Share,
    /// The endpoint has no more to give: requests beyond what is granted are refused, not left unread.
    shedding: bool,
    /// Messages that came were left to be looked at later, before anything more is read.
    uncut: bool,
    /// How many messages had come when requests last had to wait.
    waited_at: Option<u64>,
    /// For how many looks at the pool nothing came, and after how many messages.
    starved: (u64, u32),
    /// The message whose payload is being received.
    streamed: Option<Streamed>,
    /// The request of this side that is not queued whole.
    unfinished: Option<Unfinished>,
    last_head: LastHead,
    code_sets: Option<CodeSets>,
    unannounced: CodeSets,
    /// Where the peer would listen.
    listen_points: Vec<ListenPoint>,
    /// A request of the peer said so.
    peer_reads_blocks: bool,
    /// Events of things that are not messages.
    notices: VecDeque<Notice>,
    clock: Clock,
    stats: Stats,
    /// For the pieces of a large message on their way to the outbox.
    pieces: VecDeque<Bytes>,
    /// For messages of the machine's own.
    own: Encoder,
    /// Octets of the machine's own answers since the outbox was last empty.
    own_backlog: usize,
    owed: Owed,
    /// What others are told of the outbox.
    queued: Queued,
    oneways: Oneways,
    /// How many calls timed out since a byte came, and how many bytes had come then.
    unanswered: (u64, u32),
}

impl Connection {
    /// A connection that was opened at `now`.
    #[must_use]
    pub fn new(config: Config, now: Instant) -> Self {
        let Config {
            role,
            limits,
            pool,
            load,
            max_version,
            accept_requests,
            deposit,
            fragment_size,
            unannounced,
            streams,
        } = config;
        let queued = Queued::new(Arc::clone(&pool));
        let mut rx = Receiver::new(Arc::clone(&pool), limits.max_message_size, deposit);
        if let Some(streams) = streams {
            rx.set_streams(streams, limits.max_stream_size);
        }
        Self {
            role,
            max_version,
            // Until the peer has spoken, any peer understands 1.0.
            version: if role == Role::Client { max_version } else { Version::V1_0 },
            accept_requests,
            phase: Phase::Open,
            fragments: Fragments::new(pool),
            rx,
            tx: Outbox::default(),
            fragmenting: Fragmenting::new(fragment_size),
            calls: Calls::new(role == Role::Client),
            serving: Serving::default(),
            granted: 1.min(limits.max_requests),
            share: Share::new(load),
            shedding: false,
            uncut: false,
            waited_at: None,
            starved: (0, 0),
            streamed: None,
            unfinished: None,
            last_head: LastHead::default(),
            code_sets: None,
            unannounced,
            listen_points: Vec::new(),
            peer_reads_blocks: false,
            notices: VecDeque::new(),
            clock: Clock::new(role, &limits, now),
            stats: Stats::default(),
            pieces: VecDeque::new(),
            own: Encoder::new(ByteOrder::NATIVE, max_version),
            own_backlog: 0,
            owed: Owed::default(),
            queued,
            oneways: Oneways::default(),
            unanswered: (0, 0),
            limits,
        }
    }

    /// Who opened the connection.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether requests of the peer are served.
    #[must_use]
    pub fn accepts_requests(&self) -> bool {
        self.accept_requests
    }

    /// Serves requests of the peer from now on, or no more (Bidirectional GIOP): a client does so before it announces listen points. A request
    /// that comes to a side that serves none is answered by MessageError.
    pub fn set_accept_requests(&mut self, accept: bool) {
        self.accept_requests = accept;
    }

    /// The code sets agreed on, if any: what the client set, or what its requests announced to the server.
    #[must_use]
    pub fn code_sets(&self) -> Option<CodeSets> {
        self.code_sets
    }

    /// Sets what the client negotiated ("Code Set Negotiation").
    pub fn set_code_sets(&mut self, code_sets: CodeSets) {
        self.code_sets = Some(code_sets);
    }

    /// The peer takes no more than so many bytes in one piece: from now on all larger messages of GIOP 1.2 leave in fragments.
    pub fn cut_at(&mut self, size: usize) {
        self.fragmenting.lower_to(size);
    }

    /// Messages and octets received so far: by them a reader sees how much it has done at a time, whatever came of it.
    #[inline]
    #[must_use]
    pub fn received(&self) -> (u64, u64) {
        (self.stats.messages_in, self.stats.octets_in)
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            copied: self.rx.copied() + self.fragments.copied(),
            skipped: self.rx.skipped(),
            octets_out: self.tx.written(),
            writes: self.tx.writes(),
            copied_out: self.stats.copied_out + self.tx.copied(),
            ..self.stats
        }
    }

    /// The next thing that happened; `None`: nothing more until something is handled, sent or finished.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if !self.notices.is_empty() {
            return self.notices.pop_front().map(Event::from);
        }
        self.poll_message()
    }

    /// The code sets that text on this connection is in now.
    #[must_use]
    pub fn code_sets_in_force(&self) -> CodeSets {
        self.code_sets.unwrap_or(self.unannounced)
    }

    /// What holds for all messages that are handed out now.
    fn terms(&self) -> Terms {
        Terms::new(&self.limits, self.code_sets_in_force(), self.rx.deposits(), self.peer_reads_blocks)
    }

    fn closed(&self) -> Option<&CloseReason> {
        match &self.phase {
            Phase::Closed { reason } => Some(reason),
            _ => None,
        }
    }
}
