//! The limits that a connection imposes on its peer.

mod settings;

use std::time::{Duration, Instant};

pub use settings::LimitsError;

/// The limits of one connection, and some of all connections. They limit what a peer can occupy.
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
    /// The maximum size of a received message in bytes, with all its fragments. Default: 16 MiB.
    ///
    /// A larger GIOP 1.2 request is answered with `IMP_LIMIT`, and any other larger message with
    /// MessageError.
    ///
    /// Of a streamed message, only the part before [the payload](Self::max_stream_size) counts.
    pub max_message_size: usize,
    /// The maximum size in bytes of a payload that is received as a stream. Default: 4 GiB − 1. A larger
    /// request is handled as for `max_message_size`, and a larger result fails with `IMP_LIMIT`.
    ///
    /// The memory that a stream occupies does not depend on its size.
    pub max_stream_size: u64,
    /// The maximum number of incomplete fragmented messages. Default: 8. More are answered with MessageError.
    pub max_fragmented: usize,
    /// The maximum size of all incomplete messages in bytes. Default: 16 MiB. More is answered likewise.
    pub max_fragment_memory: usize,
    /// The maximum number of requests in flight on a connection. Default: 256.
    ///
    /// At this limit, the connection is not read, or requests are refused if this side awaits replies.
    pub max_requests: usize,
    /// The maximum number of requests in flight on all connections, without one request of each connection.
    /// Default: 16,384.
    ///
    /// Further requests are answered with `TRANSIENT`, minor code
    /// [`TRANSIENT_OVERLOADED`](giop_codec::exception::minor::TRANSIENT_OVERLOADED), `COMPLETED_NO`.
    /// Oneways stay unread, because their senders cannot be notified.
    pub max_total_requests: usize,
    /// The maximum number of requests that one POA manager keeps in the holding state. Default: 1,024.
    ///
    /// More are answered with `TRANSIENT`, OMG minor code 1. At most half of
    /// [`max_requests`](Self::max_requests) are held for one connection.
    pub max_held_requests: usize,
    /// The maximum size of these requests in bytes. Default: 16 MiB. More are answered in the same way.
    pub max_held_bytes: usize,
    /// The maximum number of bytes queued for a peer that does not read. Default: 1 MiB.
    ///
    /// While the queued replies exceed it, requests are not read, or are refused if this side awaits replies.
    /// Senders of oneways should check `Output::has_room_for_oneway`. A single message may always be queued.
    pub max_backlog: usize,
    /// The maximum nesting of types and encapsulations. Default: 64. Deeper nesting raises `MARSHAL`.
    pub max_depth: u16,
    /// The maximum memory in bytes that the values decoded from one message may allocate. Default: 16 MiB.
    /// Large messages may allocate more, up to eight times their size. Exceeding the limit raises `MARSHAL`.
    pub max_decoded: usize,
    /// The maximum number of CancelRequests, LocateRequests and unexpected messages in a second. Each request
    /// in the same second permits one more. Default: 10,000. If there are more, the connection is closed.
    pub max_control_rate: u32,
    /// The maximum number of consecutive calls that time out without any byte from the peer. Default: 3.
    ///
    /// At this limit, new calls use a new connection, and this one is closed when its pending calls have
    /// ended. This detects a peer whose system acknowledges data but whose process never answers.
    pub max_unanswered: u32,
    /// The maximum time until the first message header of a client. Default: 10 s. After that, the connection
    /// is closed.
    pub first_header_timeout: Duration,
    /// The maximum time from the first byte of a message to its last one, in addition to its size divided by
    /// [`min_message_rate`](Self::min_message_rate). Default: 30 s. After that, the connection is closed.
    pub message_timeout: Duration,
    /// The minimum number of bytes per second at which a message must be received. Default: 64 KiB.
    pub min_message_rate: usize,
    /// The maximum time in which the peer accepts nothing. Default: 30 s. Then the connection is closed.
    ///
    /// Over TCP on Linux, this is also the `TCP_USER_TIMEOUT`, for data that is sent but not acknowledged.
    pub write_timeout: Duration,
    /// The minimum number of bytes per second that the peer must accept while data is queued for it. Default:
    /// 8 KiB. Applies only if the peer opened the connection. If accepting the data takes longer than at this
    /// rate, by more than [`write_timeout`](Self::write_timeout), the connection is closed.
    pub min_write_rate: usize,
    /// The maximum time without calls or requests. The default `None` means 120 s if this side opened the
    /// connection, and 180 s if the peer did. After that, the connection is closed with CloseConnection.
    pub idle_timeout: Option<Duration>,
    /// The maximum time for the peer to close its side after the last message was sent. Default: 1 s.
    pub linger_timeout: Duration,
}

impl Limits {
    /// Returns the idle timeout of a connection with this role.
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
    // A duration that can be added to the time of every system.
    const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);
    at.checked_add(by).unwrap_or_else(|| at + NEVER)
}

/// The role of this side of a connection, which depends on the side that opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// This side opened the connection. It sends requests, with even ids.
    Client,
    /// The peer opened the connection. This side serves requests.
    Server,
}
