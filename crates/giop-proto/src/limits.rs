//! The limits that a connection imposes on its peer.

mod settings;

use std::time::{Duration, Instant};

pub use settings::LimitsError;

/// The limits of one connection. Every field has a safe, nonzero default. A peer can never make an endpoint
/// allocate, spin or wait beyond them.
///
/// ```
/// use giop_proto::Limits;
///
/// let mut limits = Limits::default();
/// limits.max_message_size = 64 << 20; // an endpoint for bulk data
/// ```
///
/// [`from_env`](Self::from_env) reads them from the environment. With the feature `serde` they are a section
/// of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of an inbound message, including its headers and all its fragments. Default 16 MiB.
    ///
    /// A larger GIOP 1.2 request is skipped and answered with `IMP_LIMIT`. Any other larger message is
    /// answered with MessageError and ends the connection.
    ///
    /// The limit bounds what is held in memory. For a stream, an argument or a result, it bounds only the
    /// part that is joined before the message is handed out: see [`max_stream_size`](Self::max_stream_size).
    pub max_message_size: usize,
    /// Bytes of the payload of a request or result that is received as a stream, in one piece or in
    /// fragments. Default 4 GiB - 1, which is the maximum that a sequence can have. A larger request is
    /// handled as for `max_message_size`. A call whose result is larger fails with `IMP_LIMIT`.
    ///
    /// A stream takes constant memory, whatever its size. A servant that stores the received data sets its
    /// own limit.
    pub max_stream_size: u64,
    /// Messages of which some fragments have arrived, but not the last one. Default 8. One more is answered
    /// with MessageError and ends the connection.
    pub max_fragmented: usize,
    /// Bytes of all incomplete messages together. Default 16 MiB. More is handled as for `max_fragmented`.
    pub max_fragment_memory: usize,
    /// Requests handed out and not finished. Default 256.
    ///
    /// At this limit the connection is not read. If it must be read because this side awaits replies, further
    /// requests are answered with `TRANSIENT`.
    pub max_requests: usize,
    /// Requests handed out and not finished, over all connections of an ORB, not counting the first of each
    /// connection. Default 16,384.
    ///
    /// Beyond it a connection has one request at a time. Further requests are answered immediately with
    /// `TRANSIENT`, minor code [`TRANSIENT_OVERLOADED`](giop_codec::exception::minor::TRANSIENT_OVERLOADED),
    /// `COMPLETED_NO`. Oneways stay unread, because their senders cannot be notified.
    pub max_total_requests: usize,
    /// Requests of all connections that one POA manager keeps in the holding state. Default 1,024. Further
    /// requests are answered with `TRANSIENT`, minor code OMG 1. So are those beyond half of
    /// [`max_requests`](Self::max_requests) of one connection.
    pub max_held_requests: usize,
    /// Bytes of the requests that a POA manager keeps. Default 16 MiB. More is handled as for
    /// `max_held_requests`.
    pub max_held_bytes: usize,
    /// Bytes queued for a peer that does not read. Default 1 MiB.
    ///
    /// When the queued replies alone exceed it, no requests are read, or they are refused if this side awaits
    /// replies. Senders of oneways should wait (see `Output::has_room`). One message may always be
    /// queued.
    pub max_backlog: usize,
    /// Nesting of constructed types and encapsulations in a message. Default 64. Deeper nesting raises
    /// `MARSHAL`.
    pub max_depth: u16,
    /// Bytes that the values decoded from one message may allocate, or eight times the message if that is
    /// more. Default 16 MiB. More raises `MARSHAL`.
    pub max_decoded: usize,
    /// CancelRequests, LocateRequests and stray messages in one second, beyond the number of requests in that
    /// second. Default 10,000. More closes the connection.
    pub max_control_rate: u32,
    /// Consecutive calls that time out without any byte from the peer. Default 3.
    ///
    /// Then the connection accepts no new calls, so that they use a new connection. It is closed in good
    /// order when its pending calls have ended. This handles a peer whose system acknowledges what is sent,
    /// but which never answers.
    pub max_unanswered: u32,
    /// The maximum time until the first message header of an accepted connection. Default 10 s. Then the
    /// connection is closed.
    pub first_header_timeout: Duration,
    /// The maximum time from the first byte of a message to its last, in addition to its size divided by
    /// [`min_message_rate`](Self::min_message_rate). Default 30 s. Then the connection is closed.
    pub message_timeout: Duration,
    /// Bytes per second by which a message must grow. Default 64 KiB.
    pub min_message_rate: usize,
    /// The maximum time in which the peer accepts nothing of what is queued for it. Default 30 s. Then the
    /// connection is closed.
    ///
    /// Over TCP on Linux the same timeout applies to data that the system has accepted (`TCP_USER_TIMEOUT`).
    /// The connection is given up if the peer's system acknowledges nothing for this time because it is gone
    /// or unreachable.
    pub write_timeout: Duration,
    /// Bytes per second that a peer which opened the connection must accept while data is queued for it, in
    /// addition to [`write_timeout`](Self::write_timeout). Default 8 KiB. A peer that accepts a byte now and
    /// then is therefore closed like one that accepts nothing.
    pub min_write_rate: usize,
    /// The maximum time that a connection without calls and requests stays open. `None`: 120 s if this side
    /// opened it, 180 s if the peer did. Then it is closed in good order.
    pub idle_timeout: Option<Duration>,
    /// The maximum time for the peer to close its side after CloseConnection or MessageError was sent.
    /// Default 1 s.
    pub linger_timeout: Duration,
}

impl Limits {
    const IDLE_OUTGOING: Duration = Duration::from_secs(120);
    const IDLE_INCOMING: Duration = Duration::from_secs(180);

    /// Returns the idle timeout in force for a connection of that role.
    #[must_use]
    pub fn idle_timeout(&self, role: Role) -> Duration {
        self.idle_timeout.unwrap_or(match role {
            Role::Client => Self::IDLE_OUTGOING,
            Role::Server => Self::IDLE_INCOMING,
        })
    }

    /// Returns the maximum duration of a message of that many bytes.
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
            max_held_bytes: 16 << 20,
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

/// Returns the time that is `by` later than `at`. If the sum overflows, as for `Duration::MAX`, returns a
/// time 30 years after `at`, because such a limit means none.
#[inline]
#[must_use]
pub fn later(at: Instant, by: Duration) -> Instant {
    // The longest duration that every system can represent.
    const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);
    at.checked_add(by).unwrap_or_else(|| at + NEVER)
}

/// The side that opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// This side opened it: it sends requests, with even ids.
    Client,
    /// The peer opened it: this side serves.
    Server,
}
