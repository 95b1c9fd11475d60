//! The limits by name, and the number of times that each was hit.

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
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the option that raises the limit. Empty if the limit is fixed.
            #[must_use]
            pub const fn option(self) -> &'static str {
                match self { $(Self::$variant => $option,)+ }
            }
        }

        const COUNT: usize = [$(Limit::$variant,)+].len();
    };
}

limits! {
    MessageSize "max_message_size" "Limits::max_message_size" "Octets of a message.";
    StreamSize "max_stream_size" "Limits::max_stream_size" "Octets of a payload that is taken as a stream.";
    Fragmented "max_fragmented" "Limits::max_fragmented" "Messages of which fragments are missing.";
    FragmentMemory "max_fragment_memory" "Limits::max_fragment_memory" "Octets of these.";
    Requests "max_requests" "Limits::max_requests" "Requests in flight on a connection: it was not read, or one was refused.";
    TotalRequests "max_total_requests" "Limits::max_total_requests" "Requests in flight on all connections: one was shed, or a oneway waited.";
    HeldRequests "max_held_requests" "Limits::max_held_requests" "Requests, or octets of them, that a POA manager keeps.";
    Backlog "max_backlog" "Limits::max_backlog" "Octets queued for a peer that does not read: its requests waited, or it was cut off.";
    Depth "max_depth" "Limits::max_depth" "Nesting of values.";
    Decoded "max_decoded" "Limits::max_decoded" "Octets that the values of a message take.";
    Count "count" "" "Octets of names and keys, and numbers of profiles, components and contexts, which are fixed.";
    ControlRate "max_control_rate" "Limits::max_control_rate" "CancelRequests, LocateRequests and stray messages in a second.";
    Unanswered "max_unanswered" "Limits::max_unanswered" "Calls that timed out without a byte from the peer: the connection was closed.";
    FirstHeader "first_header_timeout" "Limits::first_header_timeout" "Time to the first message header.";
    MessageTime "message_timeout" "Limits::message_timeout" "Time for a message.";
    WriteTime "write_timeout" "Limits::write_timeout" "Time in which a peer took too little of what was queued.";
    Idle "idle_timeout" "Limits::idle_timeout" "Time without calls and requests.";
    Linger "linger_timeout" "Limits::linger_timeout" "Time for the peer to close its side.";
    Pool "max_receive_memory" "OrbBuilder::max_receive_memory" "Bytes of receive buffers and decoded values, or bytes queued for all peers: reading waited, a reply was refused, or a slow reader was closed.";
    Connections "max_connections" "OrbBuilder::max_connections" "Connections of an endpoint: one was refused.";
    ConnectionsPerAddress "max_connections_per_address" "OrbBuilder::max_connections" "Connections from one address: one was refused.";
    Displaced "evict_idle_after" "OrbBuilder::evict_idle_after" "Connections of a full endpoint, and TLS handshakes, that gave way to newcomers: they had sent no message.";
    CallTime "timeout" "OrbBuilder::timeout" "Deadlines of calls.";
    HandshakeTime "handshake_timeout" "TlsBuilder::handshake_timeout" "Time for a TLS handshake.";
    Handshakes "max_handshakes" "TlsBuilder::max_handshakes" "TLS handshakes under way: a connection was refused.";
    ConnectTime "connect_timeout" "OrbBuilder::connect_timeout" "Time to connect.";
}

impl Limit {
    /// Returns the limit that the values or the header of a message exceeded, if the error is caused by one.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitHits([u32; COUNT]);

impl LimitHits {
    /// Returns the number of times that `limit` was hit.
    #[must_use]
    pub fn of(&self, limit: Limit) -> u32 {
        self.0.get(limit as usize).copied().unwrap_or_default()
    }

    /// Counts one hit of `limit`.
    #[cold]
    pub fn hit(&mut self, limit: Limit) {
        self.add(limit, 1);
    }

    /// Counts one hit of the limit that caused `error`, if any.
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

impl Default for LimitHits {
    fn default() -> Self {
        Self([0; COUNT])
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
