//! The limits that a connection imposes on its peer.

mod settings;

use std::time::{Duration, Instant};

pub use settings::LimitsError;

/// The limits of one connection, each with a nonzero default. They bound the cost of a peer.
///
/// ```
/// use giop_proto::Limits;
///
/// let mut limits = Limits::default();
/// limits.max_message_size = 64 << 20; // an endpoint for bulk data
/// ```
///
/// [`from_env`](Self::from_env) reads them from the environment, and `serde` from a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a received message, including its headers and all its fragments. Default 16 MiB.
    ///
    /// A larger GIOP 1.2 request is skipped and answered with `IMP_LIMIT`. Any other larger message is
    /// answered with MessageError and ends the connection.
    ///
    /// Of a message with a streamed payload, only the part before the payload counts: see
    /// [`max_stream_size`](Self::max_stream_size).
    pub max_message_size: usize,
    /// Bytes of a payload that is received as a stream. Default 4 GiB - 1, the maximum of a sequence. A
    /// larger request is handled as for `max_message_size`, and a call with a larger result fails with
    /// `IMP_LIMIT`.
    ///
    /// A stream occupies constant memory, whatever its size.
    pub max_stream_size: u64,
    /// Messages of which the last fragment is missing. Default 8. One more is answered with MessageError.
    pub max_fragmented: usize,
    /// Bytes of all incomplete messages together. Default 16 MiB. More is handled as for `max_fragmented`.
    pub max_fragment_memory: usize,
    /// Requests in flight on a connection. Default 256.
    ///
    /// At this limit the connection is not read, or requests are refused if this side awaits replies.
    pub max_requests: usize,
    /// Requests in flight on all connections of an ORB, except the first of each. Default 16,384.
    ///
    /// Further requests are answered with `TRANSIENT`, minor code
    /// [`TRANSIENT_OVERLOADED`](giop_codec::exception::minor::TRANSIENT_OVERLOADED), `COMPLETED_NO`.
    /// Oneways stay unread, because their senders cannot be notified.
    pub max_total_requests: usize,
    /// Requests that one POA manager keeps in the holding state. Default 1,024. Further requests, and those
    /// of one connection beyond half of its `max_requests`, are answered with `TRANSIENT`, minor code OMG 1.
    pub max_held_requests: usize,
    /// Bytes of the requests that a POA manager keeps. Default 16 MiB. More is handled in the same way.
    pub max_held_bytes: usize,
    /// Bytes queued for a peer that does not read. Default 1 MiB.
    ///
    /// While the queued replies exceed it, requests are not read, or refused if this side awaits replies.
    /// Senders of oneways should wait (see `Output::has_room`). A single message may always be queued.
    pub max_backlog: usize,
    /// Nesting of constructed types and encapsulations. Default 64. Deeper nesting raises `MARSHAL`.
    pub max_depth: u16,
    /// Bytes that the values decoded from one message may allocate, or eight times the message if that is
    /// more. Default 16 MiB. More raises `MARSHAL`.
    pub max_decoded: usize,
    /// CancelRequests, LocateRequests and unexpected messages in one second that exceed the number of
    /// requests in that second. Default 10,000. More closes the connection.
    pub max_control_rate: u32,
    /// Consecutive calls that time out without any byte from the peer. Default 3.
    ///
    /// The connection then accepts no new calls, so that they use a new connection, and is closed in good
    /// order when its pending calls have ended. This detects a peer whose system acknowledges data, but
    /// which never answers.
    pub max_unanswered: u32,
    /// The maximum time until the first message header. Default 10 s. Then the connection is closed.
    pub first_header_timeout: Duration,
    /// The maximum time from the first byte of a message to its last, in addition to its size divided by
    /// [`min_message_rate`](Self::min_message_rate). Default 30 s. Then the connection is closed.
    pub message_timeout: Duration,
    /// Bytes per second that a message must grow by. Default 64 KiB.
    pub min_message_rate: usize,
    /// The maximum time in which the peer accepts nothing. Default 30 s. Then the connection is closed.
    ///
    /// Over TCP on Linux it is also the `TCP_USER_TIMEOUT`, for data that is sent but not acknowledged.
    pub write_timeout: Duration,
    /// Bytes per second that a peer which opened the connection must accept while data is queued for it,
    /// after [`write_timeout`](Self::write_timeout). Default 8 KiB. Otherwise the connection is closed.
    pub min_write_rate: usize,
    /// The maximum time without calls or requests. `None`: 120 s if this side opened the connection, 180 s
    /// if the peer did. Then the connection is closed in good order.
    pub idle_timeout: Option<Duration>,
    /// The maximum time for the peer to close its side after the last message was sent. Default 1 s.
    pub linger_timeout: Duration,
}

impl Limits {
    /// Returns the idle timeout in force for a connection of that role.
    pub fn idle_timeout(&self, role: Role) -> Duration {
        self.idle_timeout.unwrap_or(match role {
            Role::Client => Duration::from_secs(120),
            Role::Server => Duration::from_secs(180),
        })
    }

    pub(crate) fn message_time(&self, bytes: usize) -> Duration {
        self.message_timeout
            .saturating_add(Duration::from_secs((bytes / self.min_message_rate.max(1)) as u64))
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

/// Returns the time that is `by` after `at`, or 30 years after `at` if the sum overflows.
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
    /// This side opened the connection. It sends requests, with even ids.
    Client,
    /// The peer opened the connection. This side serves requests.
    Server,
}
