//! [`Limit`]: the limits by name, and how often each was hit.

use std::ops::AddAssign;

use giop_codec::{DecodeError, DecodeErrorKind};

macro_rules! limits {
    ($($variant:ident $name:literal $option:literal $text:literal;)+) => {
        /// A limit of an endpoint, with its name in metrics and the option that sets it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Limit {
            $(#[doc = $text] $variant,)+
        }

        impl Limit {
            /// All limits.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the limit's name in metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the option that sets the limit. Empty if the limit is fixed.
            pub const fn option(self) -> &'static str {
                match self { $(Self::$variant => $option,)+ }
            }
        }

        const LIMIT_COUNT: usize = [$(Limit::$variant,)+].len();
    };
}

limits! {
    MessageSize "max_message_size" "Limits::max_message_size" "Bytes of a message.";
    StreamSize "max_stream_size" "Limits::max_stream_size" "Bytes of a payload that is received as a stream.";
    Fragmented "max_fragmented" "Limits::max_fragmented" "Messages of which the last fragment has not been received.";
    FragmentMemory "max_fragment_memory" "Limits::max_fragment_memory" "Bytes of all incomplete messages.";
    Requests "max_requests" "Limits::max_requests" "Requests in flight on a connection: reading was suspended, or a request was refused.";
    TotalRequests "max_total_requests" "Limits::max_total_requests" "Requests in flight on all connections: a request was refused, or a oneway had to wait.";
    HeldRequests "max_held_requests" "Limits::max_held_requests" "Requests that a POA manager holds, or their bytes.";
    Backlog "max_backlog" "Limits::max_backlog" "Bytes queued for a peer that does not read: its requests had to wait, or the connection was closed.";
    Depth "max_depth" "Limits::max_depth" "Nesting of values.";
    Decoded "max_decoded" "Limits::max_decoded" "Bytes that the decoded values of a message occupy.";
    Count "count" "" "Fixed limits: the sizes of names and keys, and the numbers of profiles, components and contexts.";
    ControlRate "max_control_rate" "Limits::max_control_rate" "CancelRequests, LocateRequests and unexpected messages in a second.";
    Unanswered "max_unanswered" "Limits::max_unanswered" "Consecutive calls that timed out without any byte from the peer: the connection was closed.";
    FirstHeader "first_header_timeout" "Limits::first_header_timeout" "Time to the first message header.";
    MessageTime "message_timeout" "Limits::message_timeout" "Time for a message.";
    WriteTime "write_timeout" "Limits::write_timeout" "Time in which a peer accepted too little of the data queued for it.";
    Idle "idle_timeout" "Limits::idle_timeout" "Time without calls or requests.";
    Linger "linger_timeout" "Limits::linger_timeout" "Time for the peer to close its side.";
    Pool "max_receive_memory" "OrbBuilder::max_receive_memory" "Bytes of receive buffers and decoded values, or bytes queued for all peers: reading was suspended, a reply was refused, or the connection of a slow reader was closed.";
    Connections "max_connections" "OrbBuilder::max_connections" "Connections of an endpoint: a connection was refused.";
    ConnectionsPerAddress "max_connections_per_address" "OrbBuilder::max_connections" "Connections from one address: a connection was refused.";
    Displaced "evict_idle_after" "OrbBuilder::evict_idle_after" "Connections of a full endpoint that had sent no message, and TLS handshakes: evicted in favour of new connections.";
    CallTime "timeout" "OrbBuilder::timeout" "Deadlines of calls.";
    HandshakeTime "handshake_timeout" "TlsBuilder::handshake_timeout" "Time for a TLS handshake.";
    Handshakes "max_handshakes" "TlsBuilder::max_handshakes" "TLS handshakes in progress: a connection was refused.";
    ConnectTime "connect_timeout" "OrbBuilder::connect_timeout" "Time to connect.";
}

impl Limit {
    /// Returns the limit that a message exceeded, if that is the cause of the error.
    #[cold]
    #[must_use]
    pub const fn of_decoding(error: &DecodeError) -> Option<Self> {
        match error.kind {
            DecodeErrorKind::AllocLimit => Some(Self::Decoded),
            DecodeErrorKind::DepthLimit => Some(Self::Depth),
            DecodeErrorKind::LimitExceeded => Some(Self::Count),
            _ => None,
        }
    }
}

/// The number of times that each limit was hit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitHits([u32; LIMIT_COUNT]);

impl LimitHits {
    /// Returns the number of times that `limit` was hit.
    pub fn of(&self, limit: Limit) -> u32 {
        self.0.get(limit as usize).copied().unwrap_or_default()
    }

    /// Counts one hit of `limit`.
    #[cold]
    pub fn hit(&mut self, limit: Limit) {
        self.add(limit, 1);
    }

    #[cold]
    pub(crate) fn hit_by(&mut self, error: &DecodeError) {
        if let Some(limit) = Limit::of_decoding(error) {
            self.hit(limit);
        }
    }

    /// Counts `times` hits of `limit`.
    pub fn add(&mut self, limit: Limit, times: u32) {
        if let Some(count) = self.0.get_mut(limit as usize) {
            *count = count.saturating_add(times);
        }
    }
}

impl AddAssign for LimitHits {
    fn add_assign(&mut self, other: Self) {
        for (limit, times) in Limit::ALL.iter().zip(other.0) {
            self.add(*limit, times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_are_counted_of_what_is_wrong_with_a_message() {
        let mut hits = LimitHits::default();
        for kind in [DecodeErrorKind::AllocLimit, DecodeErrorKind::DepthLimit, DecodeErrorKind::LimitExceeded]
        {
            hits.hit_by(&DecodeError::new(kind, 0));
        }
        hits.hit_by(&DecodeError::new(DecodeErrorKind::EndOfData, 0));
        let counted = Limit::ALL.iter().map(|limit| hits.of(*limit)).sum::<u32>();
        assert_eq!(counted, 3);
        assert_eq!([Limit::Decoded, Limit::Depth, Limit::Count].map(|limit| hits.of(limit)), [1, 1, 1]);
    }

    #[test]
    fn each_limit_is_counted_by_itself() {
        let mut hits = LimitHits::default();
        for (i, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, i);
            hits.add(*limit, i as u32);
        }
        let before = hits;
        hits += before;
        hits.hit(Limit::Requests);
        for (i, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(hits.of(*limit), 2 * i as u32 + u32::from(*limit == Limit::Requests));
        }
    }
}
