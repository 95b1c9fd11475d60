//! What one connection grants to its peer.

mod settings;

use std::time::{Duration, Instant};

pub use settings::LimitsError;

/// The limits of one connection. Every field has a safe default that is not zero; a peer can never make an
/// endpoint allocate, spin or wait beyond them.
///
/// ```
/// use giop_proto::Limits;
///
/// let mut limits = Limits::default();
/// limits.max_message_size = 64 << 20; // an endpoint for bulk data
/// ```
///
/// [`from_env`](Self::from_env) reads them from the environment. With the feature `serde` they are a section of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Octets of an inbound message, its headers and all its fragments included. Default 16 MiB.
    ///
    /// Beyond it a GIOP 1.2 request is skipped and answered by `IMP_LIMIT`; any other message is answered by
    /// MessageError and ends the connection.
    ///
    /// It bounds what is held in memory. Of a stream, an argument or a result, it bounds only the part that is joined before the message is
    /// handed out: see [`max_stream_size`](Self::max_stream_size).
    pub max_message_size: usize,
    /// Bytes of the payload of a request, or of a result, that is taken as a stream, in one piece or in fragments. Default 4 GiB - 1,
    /// which is all that a sequence can have. Beyond it as for `max_message_size`; a call whose result is larger fails by `IMP_LIMIT`.
    ///
    /// A stream takes constant memory whatever its size; a servant that keeps what comes says for itself how much it keeps.
    pub max_stream_size: u64,
    /// Messages of which fragments have come but not the last one. Default 8. One more is answered by
    /// MessageError and ends the connection.
    pub max_fragmented: usize,
    /// Octets of all such messages together. Default 16 MiB. Beyond it as for `max_fragmented`.
    pub max_fragment_memory: usize,
    /// Requests handed out and not finished. Default 256.
    ///
    /// Beyond it the connection is not read; where it must be, because this side waits for replies, further
    /// requests are answered by `TRANSIENT`.
    pub max_requests: usize,
    /// Requests handed out and not finished, on all connections of an ORB together, but for the first of each. Default 16,384.
    ///
    /// Beyond it a connection has one request at a time: further ones are answered at once by `TRANSIENT` with minor
    /// [`TRANSIENT_OVERLOADED`](giop_codec::exception::minor::TRANSIENT_OVERLOADED), `COMPLETED_NO`; oneways, whose senders can not be told,
    /// wait unread.
    pub max_total_requests: usize,
    /// Requests that one POA manager keeps while it holds, of all connections. Default 1,024. Beyond it, and beyond half of
    /// [`max_requests`](Self::max_requests) of one connection, `TRANSIENT` with minor OMG 1.
    pub max_held_requests: usize,
    /// Octets of those requests. Default 16 MiB. Beyond it as for `max_held_requests`.
    pub max_held_octets: usize,
    /// Octets queued for a peer that does not read. Default 1 MiB. Beyond as much of replies no requests are read,
    /// or they are refused where replies are awaited; whoever sends oneways should wait (see `Connection::has_room`). One message may always
    /// be queued.
    pub max_backlog: usize,
    /// Nesting of constructed types and encapsulations in a message. Default 64. Beyond it `MARSHAL`.
    pub max_depth: u16,
    /// Octets that the values decoded from one message may allocate; eight times the message where that is more.
    /// Default 16 MiB. Beyond it `MARSHAL`.
    pub max_decoded: usize,
    /// CancelRequests, LocateRequests and messages that belong to nothing, in one second and beyond the number
    /// of requests in it. Default 10,000. Beyond it the connection is closed.
    pub max_control_rate: u32,
    /// Calls in a row that time out while not a byte comes from the peer. Default 3.
    ///
    /// Then the connection takes no new calls, so that they go over a new one. It is closed in good order when its pending calls have ended.
    /// A peer whose system acknowledges what is sent, but which never answers, is left by that.
    pub max_unanswered: u32,
    /// How long an accepted connection may take to its first message header. Default 10 s. Then it is closed.
    pub first_header_timeout: Duration,
    /// How long a message may take from its first octet to its last, besides the time for its size at
    /// [`min_message_rate`](Self::min_message_rate). Default 30 s. Then the connection is closed.
    pub message_timeout: Duration,
    /// Octets per second by which a message must grow. Default 64 KiB.
    pub min_message_rate: usize,
    /// How long the peer may take nothing of what is queued for it. Default 30 s. Then the connection is closed.
    ///
    /// Over TCP on Linux the same holds for what the system has taken: a peer whose system acknowledges nothing for so long, because
    /// it is gone or can not be reached, is given up (`TCP_USER_TIMEOUT`).
    pub write_timeout: Duration,
    /// Octets per second that a peer which opened the connection must take while something is queued for it, besides the time of
    /// [`write_timeout`](Self::write_timeout). Default 8 KiB. Who takes an octet now and then is closed as one that takes nothing.
    pub min_write_rate: usize,
    /// How long a connection without calls and requests stays open. `None`: 120 s where this side opened it,
    /// 180 s where the peer did. Then it is closed in good order.
    pub idle_timeout: Option<Duration>,
    /// How long the peer may take to close its side after CloseConnection or MessageError was sent. Default 1 s.
    pub linger_timeout: Duration,
}

impl Limits {
    const IDLE_OUTGOING: Duration = Duration::from_secs(120);
    const IDLE_INCOMING: Duration = Duration::from_secs(180);

    /// The idle timeout in force for a connection of that role.
    #[must_use]
    pub fn idle_timeout(&self, role: Role) -> Duration {
        self.idle_timeout.unwrap_or(match role {
            Role::Client => Self::IDLE_OUTGOING,
            Role::Server => Self::IDLE_INCOMING,
        })
    }

    /// How long a message of so many octets may take.
    pub(crate) fn message_time(&self, octets: usize) -> Duration {
        let worth = Duration::from_secs((octets / self.min_message_rate.max(1)) as u64);
        self.message_timeout.saturating_add(worth)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_size: 16 << 20,
            max_stream_size: u32::MAX as u64,
            max_fragmented: 8,
            max_fragment_memory: 16 << 20,
            max_requests: 256,
            max_total_requests: 16 << 10,
            max_held_requests: 1024,
            max_held_octets: 16 << 20,
            max_backlog: 1 << 20,
            max_depth: 64,
            max_decoded: 16 << 20,
            max_control_rate: 10_000,
            max_unanswered: 3,
            first_header_timeout: Duration::from_secs(10),
            message_timeout: Duration::from_secs(30),
            min_message_rate: 64 << 10,
            write_timeout: Duration::from_secs(30),
            min_write_rate: 8 << 10,
            idle_timeout: None,
            linger_timeout: Duration::from_secs(1),
        }
    }
}

/// The time that is `by` later than `at`. Where there is no such time, as for `Duration::MAX`, one that nobody lives to see: whoever sets a limit
/// like that wants none.
#[inline]
#[must_use]
pub fn later(at: Instant, by: Duration) -> Instant {
    // As far as all systems can count.
    const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);
    at.checked_add(by).unwrap_or_else(|| at + NEVER)
}

/// Who opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// This side did: it sends requests, with even ids.
    Client,
    /// The peer did: this side serves.
    Server,
}
