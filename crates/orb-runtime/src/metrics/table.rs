//! The metrics of an ORB by their exported names: one table for the `metrics` facade and for the page of the
//! admin endpoint.
//!
//! Not in the table are [`LIMIT_HITS`], which has a label, and the metrics of calls by operation, which only
//! the endpoint has.

use giop_proto::Stats;
use giop_proto::pool::PoolStats;

use crate::runtime::Shared;
use crate::transport::TransportStats;

/// The counter of limits that were hit. Its label `limit` is the limit's name
/// ([`Limit::name`](giop_proto::Limit::name)).
pub(crate) const LIMIT_HITS: (&str, &str) = ("zorb_limit_hits_total", "limits that were hit, by their names");

/// A snapshot of all counters.
pub(crate) struct Counted {
    pub(crate) stats: Stats,
    pub(crate) pool: PoolStats,
    pub(crate) transport: TransportStats,
    pub(crate) connections: usize,
    pub(crate) objects: usize,
    pub(crate) failed_oneways: u64,
    #[cfg(feature = "csi")]
    callers: crate::csi::CsiStats,
}

/// One metric.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// It is a gauge, which can decrease. A counter never decreases.
    pub(crate) is_gauge: bool,
    /// Its unit is bytes.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "the text format has no units"))]
    pub(crate) is_octets: bool,
    of: fn(&Counted) -> u64,
}

impl Figure {
    pub(crate) fn of(&self, counted: &Counted) -> u64 {
        (self.of)(counted)
    }
}

const fn count(name: &'static str, help: &'static str, of: fn(&Counted) -> u64) -> Figure {
    Figure { name, help, is_gauge: false, is_octets: false, of }
}

const fn octets(name: &'static str, help: &'static str, of: fn(&Counted) -> u64) -> Figure {
    Figure { is_octets: true, ..count(name, help, of) }
}

const fn gauge(name: &'static str, help: &'static str, of: fn(&Counted) -> u64) -> Figure {
    Figure { is_gauge: true, ..count(name, help, of) }
}

const fn gauge_of_octets(name: &'static str, help: &'static str, of: fn(&Counted) -> u64) -> Figure {
    Figure { is_gauge: true, ..octets(name, help, of) }
}

/// All metrics of the table.
pub(crate) const FIGURES: &[Figure] = &[
    gauge("zorb_connections", "open connections, both directions", |now| now.connections as u64),
    gauge("zorb_objects", "active objects", |now| now.objects as u64),
    gauge_of_octets("zorb_pool_cap_bytes", "the most that the pool of receive buffers may hold", |now| {
        now.pool.cap as u64
    }),
    gauge_of_octets("zorb_pool_held_bytes", "receive buffers, free ones and those that views pin", |now| {
        now.pool.held as u64
    }),
    gauge_of_octets(
        "zorb_pool_outside_bytes",
        "decoded arguments of requests, and pieces of messages, beside the pool's buffers",
        |now| now.pool.outside as u64,
    ),
    gauge_of_octets(
        "zorb_queued_bytes",
        "octets queued for peers, of connections with much of them",
        |now| now.pool.queued as u64,
    ),
    count(
        "zorb_failed_oneways_total",
        "oneways that failed in their servants, of which nobody is told",
        |now| now.failed_oneways,
    ),
    count("zorb_refused_requests_total", "requests answered by a system exception unseen", |now| {
        now.stats.refused
    }),
    count("zorb_pool_hits_total", "buffers taken from the pool's lists", |now| now.pool.hits),
    count("zorb_pool_misses_total", "buffers that had to be allocated", |now| now.pool.misses),
    count("zorb_messages_received_total", "GIOP messages and fragments received", |now| {
        now.stats.messages_in
    }),
    count("zorb_messages_sent_total", "GIOP messages and fragments queued", |now| now.stats.messages_out),
    octets("zorb_received_bytes_total", "octets received, headers included", |now| now.stats.octets_in),
    octets("zorb_sent_bytes_total", "octets that the sockets took", |now| now.stats.octets_out),
    count("zorb_socket_reads_total", "reads of sockets", |now| now.stats.reads),
    count("zorb_socket_writes_total", "writes of which a socket took something", |now| now.stats.writes),
    octets("zorb_copied_received_bytes_total", "received octets moved in user space", |now| now.stats.copied),
    octets("zorb_copied_sent_bytes_total", "octets moved before they were sent", |now| now.stats.copied_out),
    octets("zorb_skipped_bytes_total", "octets of messages that were too large or unwanted", |now| {
        now.stats.skipped
    }),
    count("zorb_tls_sessions_total", "TLS sessions made, in both directions", |now| {
        now.transport.tls_sessions
    }),
    count("zorb_tls_failures_total", "TLS handshakes that failed, took too long or were given up", |now| {
        now.transport.tls_failures
    }),
    count("zorb_tls_plaintext_total", "clients with plain IIOP at a port for TLS", |now| {
        now.transport.tls_plaintext
    }),
    count("zorb_tls_misdirected_total", "clients with TLS at a port of plain IIOP", |now| {
        now.transport.tls_misdirected
    }),
    count("zorb_tls_shed_total", "clients beyond the limit of handshakes under way", |now| {
        now.transport.tls_shed
    }),
    #[cfg(feature = "csi")]
    count("zorb_logins_total", "logins that were checked and good", |now| now.callers.logins),
    #[cfg(feature = "csi")]
    count("zorb_failed_logins_total", "logins that were not good", |now| now.callers.failed_logins),
    #[cfg(feature = "csi")]
    count(
        "zorb_throttled_logins_total",
        "logins that were not checked: too many from the address had failed",
        |now| now.callers.throttled_logins,
    ),
    #[cfg(feature = "csi")]
    count("zorb_unknown_callers_total", "requests that did not say who calls", |now| {
        now.callers.unknown_callers
    }),
    #[cfg(feature = "csi")]
    count("zorb_refused_contexts_total", "requests of which it was not believed who calls", |now| {
        now.callers.refused_contexts
    }),
    #[cfg(feature = "csi")]
    count("zorb_denied_requests_total", "requests that the authoriser did not allow", |now| {
        now.callers.denied
    }),
];

impl Shared {
    /// Returns a snapshot of all counters.
    pub(crate) fn counted(&self) -> Counted {
        Counted {
            stats: self.stats(),
            pool: self.pool.stats(),
            transport: self.sockets.stats(),
            connections: self.links.lock().len(),
            objects: self.adapter().len(),
            failed_oneways: self.counters.failed_oneways.load(std::sync::atomic::Ordering::Relaxed),
            #[cfg(feature = "csi")]
            callers: self.security().stats(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_kind_they_are_of_and_the_guide_has_each() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/OBSERVABILITY.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        for Figure { name, is_gauge, is_octets, .. } in FIGURES {
            assert_eq!(name.ends_with("_total"), !is_gauge, "{name}");
            assert_eq!(name.trim_end_matches("_total").ends_with("_bytes"), *is_octets, "{name}");
            assert_eq!(FIGURES.iter().filter(|other| other.name == *name).count(), 1, "{name}");
            let kind = if *is_gauge { "gauge" } else { "counter" };
            assert!(
                guide.contains(&format!("| `{name}` | {kind} |")),
                "{name} is not in docs/OBSERVABILITY.md"
            );
        }
        assert!(guide.contains(&format!("| `{}` | counter |", LIMIT_HITS.0)));
    }
}
