//! [`Limit`]: the names of all limits. [`LimitHits`]: how often each was hit.

use std::ops::AddAssign;

use giop_codec::{DecodeError, DecodeErrorKind};

macro_rules! limits {
    ($($variant:ident $name:literal $option:literal $text:literal;)+) => {
        /// A limit of a connection or endpoint, with its name in metrics and the option that sets it.
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

            /// Returns the option that sets the limit, or an empty text if the limit is fixed.
            pub const fn option(self) -> &'static str {
                match self { $(Self::$variant => $option,)+ }
            }
        }

        const LIMIT_COUNT: usize = [$(Limit::$variant,)+].len();
    };
}

limits! {
    MessageSize "max_message_size" "Limits::max_message_size" "The size of a message.";
    StreamSize "max_stream_size" "Limits::max_stream_size" "The size of a payload that is received as a stream.";
    Fragmented "max_fragmented" "Limits::max_fragmented" "The number of messages whose last fragment has not been received.";
    FragmentMemory "max_fragment_memory" "Limits::max_fragment_memory" "The size of all incomplete messages together.";
    Requests "max_requests" "Limits::max_requests" "The number of requests in flight on a connection. At a hit, reading is suspended, or a request is refused.";
    TotalRequests "max_total_requests" "Limits::max_total_requests" "The number of requests in flight on all connections. At a hit, a request is refused, or a oneway must wait.";
    HeldRequests "max_held_requests" "Limits::max_held_requests" "The number or the size of the requests that a POA manager holds.";
    Backlog "max_backlog" "Limits::max_backlog" "The number of bytes queued for a peer that does not read. At a hit, its requests must wait or are refused, or the connection is closed.";
    Depth "max_depth" "Limits::max_depth" "The nesting of values.";
    Decoded "max_decoded" "Limits::max_decoded" "The memory that the decoded values of a message occupy.";
    Fixed "count" "" "All fixed limits, such as the sizes of names and keys, and the numbers of profiles, components and contexts.";
    ControlRate "max_control_rate" "Limits::max_control_rate" "The number of CancelRequests, LocateRequests and unexpected messages in a second.";
    Unanswered "max_unanswered" "Limits::max_unanswered" "The number of consecutive calls that timed out without any byte from the peer. At a hit, the connection is closed.";
    FirstHeader "first_header_timeout" "Limits::first_header_timeout" "The time until the first message header.";
    MessageTime "message_timeout" "Limits::message_timeout" "The time in which a message must be received.";
    WriteTime "write_timeout" "Limits::write_timeout" "The time in which a peer may accept too little of the data queued for it.";
    Idle "idle_timeout" "Limits::idle_timeout" "The time without calls or requests.";
    Linger "linger_timeout" "Limits::linger_timeout" "The time for the peer to close its side.";
    Pool "max_receive_memory" "OrbBuilder::max_receive_memory" "The memory of receive buffers and decoded values, or the number of bytes queued for all peers. At a hit, reading is suspended, a reply is refused, or the connection of a slow reader is closed.";
    Connections "max_connections" "OrbBuilder::max_connections" "The number of connections of an endpoint. At a hit, a connection is refused.";
    ConnectionsPerAddress "max_connections_per_address" "OrbBuilder::max_connections" "The number of connections from one address. At a hit, a connection is refused.";
    Evicted "evict_idle_after" "OrbBuilder::evict_idle_after" "The age at which a connection of a full endpoint may be evicted in favour of a new one. Only TLS handshakes, and connections without a complete message, are evicted.";
    CallTime "timeout" "OrbBuilder::timeout" "The deadline of a call.";
    HandshakeTime "handshake_timeout" "TlsBuilder::handshake_timeout" "The time for a TLS handshake.";
    Handshakes "max_handshakes" "TlsBuilder::max_handshakes" "The number of TLS handshakes in progress. At a hit, a connection is refused.";
    ConnectTime "connect_timeout" "OrbBuilder::connect_timeout" "The time to connect.";
}

impl Limit {
    /// Returns the limit that a message exceeded, if that caused the error.
    #[cold]
    #[must_use]
    pub const fn of_decoding(error: &DecodeError) -> Option<Self> {
        match error.kind {
            DecodeErrorKind::AllocLimit => Some(Self::Decoded),
            DecodeErrorKind::DepthLimit => Some(Self::Depth),
            DecodeErrorKind::LimitExceeded => Some(Self::Fixed),
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
    fn a_decode_error_is_counted_only_if_a_limit_caused_it() {
        let mut hits = LimitHits::default();
        for kind in [DecodeErrorKind::AllocLimit, DecodeErrorKind::DepthLimit, DecodeErrorKind::LimitExceeded]
        {
            hits.hit_by(&DecodeError::new(kind, 0));
        }
        hits.hit_by(&DecodeError::new(DecodeErrorKind::EndOfData, 0));
        let counted = Limit::ALL.iter().map(|limit| hits.of(*limit)).sum::<u32>();
        assert_eq!(counted, 3);
        assert_eq!([Limit::Decoded, Limit::Depth, Limit::Fixed].map(|limit| hits.of(limit)), [1, 1, 1]);
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
