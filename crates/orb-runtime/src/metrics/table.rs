//! The table of an ORB's metrics that have no labels, unlike [`LIMIT_HITS_NAME`] and the calls by operation.

use giop_proto::Stats;
use giop_proto::pool::PoolStats;

use crate::runtime::Shared;
use crate::transport::TransportStats;

/// The name of the counter of reached limits. Its label `limit` is `Limit::name`.
pub(crate) const LIMIT_HITS_NAME: &str = "zorb_limit_hits_total";
pub(crate) const LIMIT_HITS_HELP: &str = "how often a limit was reached, by the name of the limit";

/// The data from which the values of the metrics are taken.
pub(crate) struct CounterSnapshot {
    pub(crate) stats: Stats,
    pub(crate) pool: PoolStats,
    pub(crate) transport: TransportStats,
    pub(crate) connections: usize,
    pub(crate) objects: usize,
    pub(crate) failed_oneways: u64,
    #[cfg(feature = "csi")]
    callers: crate::csi::CsiStats,
}

#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// Whether the value can decrease. A counter never decreases.
    pub(crate) is_gauge: bool,
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "the text format has no units"))]
    pub(crate) is_bytes: bool,
    value: ValueFn,
}

type ValueFn = fn(&CounterSnapshot) -> u64;

impl Metric {
    pub(crate) fn value(&self, counters: &CounterSnapshot) -> u64 {
        (self.value)(counters)
    }
}

const fn count(name: &'static str, help: &'static str, value: ValueFn) -> Metric {
    Metric { name, help, is_gauge: false, is_bytes: false, value }
}

const fn bytes(name: &'static str, help: &'static str, value: ValueFn) -> Metric {
    Metric { is_bytes: true, ..count(name, help, value) }
}

const fn gauge(name: &'static str, help: &'static str, value: ValueFn) -> Metric {
    Metric { is_gauge: true, ..count(name, help, value) }
}

const fn byte_gauge(name: &'static str, help: &'static str, value: ValueFn) -> Metric {
    Metric { is_gauge: true, ..bytes(name, help, value) }
}

pub(crate) const METRICS: &[Metric] = &[
    gauge("zorb_connections", "open connections, in both directions", |now| now.connections as u64),
    gauge("zorb_objects", "active objects", |now| now.objects as u64),
    byte_gauge("zorb_pool_cap_bytes", "the limit of the pool of receive buffers", |now| now.pool.cap as u64),
    byte_gauge("zorb_pool_held_bytes", "receive buffers that are free, or pinned by views", |now| {
        now.pool.held as u64
    }),
    byte_gauge(
        "zorb_pool_outside_bytes",
        "decoded arguments and message fragments outside the pool's buffers",
        |now| now.pool.outside as u64,
    ),
    byte_gauge("zorb_queued_bytes", "bytes queued for peers by connections with large queues", |now| {
        now.pool.queued as u64
    }),
    count(
        "zorb_failed_oneways_total",
        "oneway requests that failed; their clients receive no error",
        |now| now.failed_oneways,
    ),
    count(
        "zorb_refused_requests_total",
        "requests answered with a system exception before dispatch",
        |now| now.stats.requests_refused,
    ),
    count("zorb_pool_hits_total", "receive buffers taken from the pool's lists", |now| now.pool.hits),
    count("zorb_pool_misses_total", "receive buffers that had to be allocated", |now| now.pool.misses),
    count("zorb_messages_received_total", "GIOP messages and fragments received", |now| {
        now.stats.messages_in
    }),
    count("zorb_messages_sent_total", "GIOP messages and fragments queued", |now| now.stats.messages_out),
    bytes("zorb_received_bytes_total", "bytes received, including headers", |now| now.stats.bytes_in),
    bytes("zorb_sent_bytes_total", "bytes that the sockets accepted", |now| now.stats.bytes_out),
    count("zorb_socket_reads_total", "reads of sockets", |now| now.stats.reads),
    count("zorb_socket_writes_total", "writes of which a socket accepted at least a part", |now| {
        now.stats.writes
    }),
    bytes("zorb_copied_received_bytes_total", "received bytes copied in user space", |now| {
        now.stats.bytes_copied_in
    }),
    bytes("zorb_copied_sent_bytes_total", "bytes copied before they were sent", |now| {
        now.stats.bytes_copied_out
    }),
    bytes("zorb_skipped_bytes_total", "bytes of messages that were too large or unwanted", |now| {
        now.stats.bytes_skipped
    }),
    count("zorb_tls_sessions_total", "TLS sessions established, in both directions", |now| {
        now.transport.tls_sessions
    }),
    count("zorb_tls_failures_total", "TLS handshakes that failed, timed out or were cancelled", |now| {
        now.transport.tls_failures
    }),
    count("zorb_tls_plaintext_total", "clients with plain IIOP at a TLS port", |now| {
        now.transport.tls_plaintext
    }),
    count("zorb_tls_misdirected_total", "clients with TLS at a plain IIOP port", |now| {
        now.transport.tls_misdirected
    }),
    count("zorb_tls_shed_total", "clients rejected by the limit of concurrent handshakes", |now| {
        now.transport.tls_rejected_by_limit
    }),
    #[cfg(feature = "csi")]
    count("zorb_logins_total", "successful logins", |now| now.callers.logins),
    #[cfg(feature = "csi")]
    count("zorb_failed_logins_total", "failed logins", |now| now.callers.failed_logins),
    #[cfg(feature = "csi")]
    count(
        "zorb_throttled_logins_total",
        "logins rejected without a check: too many failures from the same address, or a full queue",
        |now| now.callers.throttled_logins,
    ),
    #[cfg(feature = "csi")]
    count("zorb_unknown_callers_total", "requests that did not identify their caller", |now| {
        now.callers.unknown_callers
    }),
    #[cfg(feature = "csi")]
    count("zorb_refused_contexts_total", "requests whose identification was rejected", |now| {
        now.callers.refused_contexts
    }),
    #[cfg(feature = "csi")]
    count("zorb_denied_requests_total", "requests that the authorizer denied", |now| now.callers.denied),
];

impl Shared {
    pub(crate) fn counter_snapshot(&self) -> CounterSnapshot {
        CounterSnapshot {
            stats: self.stats(),
            pool: self.pool.stats(),
            transport: self.transport.stats(),
            connections: self.connections.lock().len(),
            objects: self.adapter().active_objects(),
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
    fn names_end_with_their_kind_and_unit_and_are_in_the_guide() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/OBSERVABILITY.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        for Metric { name, is_gauge, is_bytes, .. } in METRICS {
            assert_eq!(name.ends_with("_total"), !is_gauge, "{name}");
            assert_eq!(name.trim_end_matches("_total").ends_with("_bytes"), *is_bytes, "{name}");
            assert_eq!(METRICS.iter().filter(|other| other.name == *name).count(), 1, "{name}");
            let kind = if *is_gauge { "gauge" } else { "counter" };
            assert!(
                guide.contains(&format!("| `{name}` | {kind} |")),
                "{name} is not in docs/OBSERVABILITY.md"
            );
        }
        assert!(guide.contains(&format!("| `{}` | counter |", LIMIT_HITS_NAME)));
    }
}
