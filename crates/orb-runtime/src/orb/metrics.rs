//! What the ORB counts, told to the `metrics` facade (feature `metrics`).
//!
//! | name | kind | unit |
//! |---|---|---|
//! | `zorb_connections` | gauge | open connections, both directions |
//! | `zorb_pool_cap_bytes` | gauge | the most that the pool of receive buffers may hold |
//! | `zorb_pool_held_bytes` | gauge | what it holds: free buffers, and those that views still pin |
//! | `zorb_pool_outside_bytes` | gauge | what received messages take beside the pool: decoded arguments, pieces of messages |
//! | `zorb_queued_bytes` | gauge | what is queued for peers, by connections that have more than 64 KiB queued |
//! | `zorb_limit_hits_total` | counter | limits that were hit; its label `limit` is the limit's name ([`Limit::name`]) |
//! | `zorb_logins_total`, `zorb_failed_logins_total`, `zorb_throttled_logins_total` | counter | feature `csi`: logins that were good, that were not, and those of these that were not checked (`CsiStats::throttled_logins`) |
//! | `zorb_unknown_callers_total`, `zorb_refused_contexts_total`, `zorb_denied_requests_total` | counter | feature `csi`: requests that did not say who calls, that were not believed, that rules did not allow |
//! | `zorb_refused_requests_total` | counter | requests that connections answered themselves, by a system exception |
//! | `zorb_pool_hits_total` | counter | buffers taken from the pool's lists |
//! | `zorb_pool_misses_total` | counter | buffers that had to be allocated |
//! | `zorb_messages_received_total`, `zorb_messages_sent_total` | counter | GIOP messages; each fragment is one |
//! | `zorb_received_bytes_total`, `zorb_sent_bytes_total` | counter | octets, headers included |
//! | `zorb_socket_reads_total`, `zorb_socket_writes_total` | counter | reads and writes of sockets |
//! | `zorb_copied_received_bytes_total` | counter | received octets that were moved in user space (`Stats::copied`) |
//! | `zorb_copied_sent_bytes_total` | counter | octets that were moved before they were sent (`Stats::copied_out`) |
//! | `zorb_skipped_bytes_total` | counter | octets of messages that were too large or unwanted (`Stats::skipped`) |
//! | `zorb_tls_sessions_total` | counter | TLS sessions that were made, in both directions (`TransportStats::tls_sessions`) |
//! | `zorb_tls_failures_total` | counter | handshakes that failed, took too long or were given up, in both directions (`TransportStats::tls_failures`) |
//! | `zorb_tls_plaintext_total` | counter | clients with plain IIOP at a port for TLS (`TransportStats::tls_plaintext`) |
//! | `zorb_tls_misdirected_total` | counter | clients with TLS at a port of plain IIOP (`TransportStats::tls_misdirected`) |
//! | `zorb_tls_shed_total` | counter | clients that came while too many handshakes were under way (`TransportStats::tls_shed`) |
//!
//! The others have no labels; several ORBs of a process add up. Each is brought up to date once a second while connections are
//! open, a second after a handshake failed, and by [`Orb::record_metrics`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use giop_proto::pool::PoolStats;
use giop_proto::{Limit, Stats};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use super::{Orb, OrbCore};
use crate::transport::TransportStats;

const INTERVAL: Duration = Duration::from_secs(1);

/// What of an ORB was told so far.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    told: Mutex<Told>,
    /// A task tells the rest now and then.
    reporting: AtomicBool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Told {
    described: bool,
    stats: Stats,
    transport: TransportStats,
    hits: u64,
    misses: u64,
    held: usize,
    outside: usize,
    queued: usize,
    cap: usize,
    connections: usize,
    #[cfg(feature = "csi")]
    callers: crate::csi::CsiStats,
}

/// Lets the next connection start a task when this one ends, also with its runtime.
struct Reporting(std::sync::Weak<OrbCore>);

impl Orb {
    /// Brings the metrics of the `metrics` facade up to date now: for an exporter that renders them on request.
    pub fn record_metrics(&self) {
        self.core.record_metrics();
    }
}

impl OrbCore {
    fn record_metrics(&self) {
        // Under the lock, so that nobody tells older figures behind newer ones.
        let mut told = self.metrics.told.lock().unwrap_or_else(PoisonError::into_inner);
        let (stats, pool, connections) = (self.stats(), self.pool.stats(), self.links().len());
        let transport = self.sockets.stats();
        told.tell(stats, transport, pool, connections);
        #[cfg(feature = "csi")]
        told.tell_callers(self.config.security.stats());
    }

    /// Tells what is counted once a second, until no connection is open.
    pub(crate) fn report_metrics(self: &Arc<Self>) {
        // A handshake may be given up where there is none.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.metrics.reporting.swap(true, Ordering::AcqRel) {
            return;
        }
        let reporting = Reporting(Arc::downgrade(self));
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let Some(core) = reporting.0.upgrade() else { return };
                core.record_metrics();
                if core.links().is_empty() {
                    drop(reporting);
                    // Something may have been counted, and a connection come, that still saw this task.
                    core.record_metrics();
                    if !core.links().is_empty() {
                        core.report_metrics();
                    }
                    return;
                }
            }
        });
    }
}

impl Told {
    fn tell(&mut self, stats: Stats, transport: TransportStats, pool: PoolStats, connections: usize) {
        if !std::mem::replace(&mut self.described, true) {
            describe();
        }
        let before = *self;
        let count = |name: &'static str, now: u64, before: u64| {
            if now > before {
                counter!(name).increment(now - before);
            }
        };
        let was = before.stats;
        count("zorb_messages_received_total", stats.messages_in, was.messages_in);
        count("zorb_messages_sent_total", stats.messages_out, was.messages_out);
        count("zorb_received_bytes_total", stats.octets_in, was.octets_in);
        count("zorb_sent_bytes_total", stats.octets_out, was.octets_out);
        count("zorb_socket_reads_total", stats.reads, was.reads);
        count("zorb_socket_writes_total", stats.writes, was.writes);
        count("zorb_copied_received_bytes_total", stats.copied, was.copied);
        count("zorb_copied_sent_bytes_total", stats.copied_out, was.copied_out);
        count("zorb_skipped_bytes_total", stats.skipped, was.skipped);
        count("zorb_refused_requests_total", stats.refused, was.refused);
        for limit in Limit::ALL {
            let (now, before) = (stats.limits.of(*limit), was.limits.of(*limit));
            if now > before {
                counter!("zorb_limit_hits_total", "limit" => limit.name()).increment(u64::from(now - before));
            }
        }
        let was = before.transport;
        count("zorb_tls_sessions_total", transport.tls_sessions, was.tls_sessions);
        count("zorb_tls_failures_total", transport.tls_failures, was.tls_failures);
        count("zorb_tls_plaintext_total", transport.tls_plaintext, was.tls_plaintext);
        count("zorb_tls_misdirected_total", transport.tls_misdirected, was.tls_misdirected);
        count("zorb_tls_shed_total", transport.tls_shed, was.tls_shed);
        count("zorb_pool_hits_total", pool.hits, before.hits);
        count("zorb_pool_misses_total", pool.misses, before.misses);
        move_gauge("zorb_pool_held_bytes", pool.held, before.held);
        move_gauge("zorb_pool_outside_bytes", pool.outside, before.outside);
        move_gauge("zorb_queued_bytes", pool.queued, before.queued);
        move_gauge("zorb_pool_cap_bytes", pool.cap, before.cap);
        move_gauge("zorb_connections", connections, before.connections);
        *self = Self {
            described: true,
            stats,
            transport,
            hits: pool.hits,
            misses: pool.misses,
            held: pool.held,
            outside: pool.outside,
            queued: pool.queued,
            cap: pool.cap,
            connections,
            #[cfg(feature = "csi")]
            callers: before.callers,
        };
    }

    #[cfg(feature = "csi")]
    fn tell_callers(&mut self, now: crate::csi::CsiStats) {
        let before = std::mem::replace(&mut self.callers, now);
        for (name, now, before) in [
            ("zorb_logins_total", now.logins, before.logins),
            ("zorb_failed_logins_total", now.failed_logins, before.failed_logins),
            ("zorb_throttled_logins_total", now.throttled_logins, before.throttled_logins),
            ("zorb_unknown_callers_total", now.unknown_callers, before.unknown_callers),
            ("zorb_refused_contexts_total", now.refused_contexts, before.refused_contexts),
            ("zorb_denied_requests_total", now.denied, before.denied),
        ] {
            if now > before {
                counter!(name).increment(now - before);
            }
        }
    }
}

/// The ORB is gone, and what it held with it.
impl Drop for Metrics {
    fn drop(&mut self) {
        let told = *self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        move_gauge("zorb_pool_held_bytes", 0, told.held);
        move_gauge("zorb_pool_outside_bytes", 0, told.outside);
        move_gauge("zorb_queued_bytes", 0, told.queued);
        move_gauge("zorb_pool_cap_bytes", 0, told.cap);
        move_gauge("zorb_connections", 0, told.connections);
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.metrics.reporting.store(false, Ordering::Release);
        }
    }
}

/// By the difference, so that several ORBs add up.
fn move_gauge(name: &'static str, now: usize, before: usize) {
    if now != before {
        gauge!(name).increment(now as f64 - before as f64);
    }
}

fn describe() {
    describe_gauge!("zorb_connections", Unit::Count, "open connections, both directions");
    describe_gauge!("zorb_pool_cap_bytes", Unit::Bytes, "the most that the pool of receive buffers may hold");
    describe_gauge!(
        "zorb_pool_held_bytes",
        Unit::Bytes,
        "receive buffers, free ones and those that views pin"
    );
    describe_gauge!(
        "zorb_pool_outside_bytes",
        Unit::Bytes,
        "decoded arguments of requests, and pieces of messages, beside the pool's buffers"
    );
    describe_gauge!(
        "zorb_queued_bytes",
        Unit::Bytes,
        "octets queued for peers, of connections with much of them"
    );
    describe_counter!("zorb_limit_hits_total", Unit::Count, "limits that were hit, by their names");
    describe_counter!(
        "zorb_refused_requests_total",
        Unit::Count,
        "requests answered by a system exception unseen"
    );
    #[cfg(feature = "csi")]
    for (name, text) in [
        ("zorb_logins_total", "logins that were checked and good"),
        ("zorb_failed_logins_total", "logins that were not good"),
        ("zorb_throttled_logins_total", "logins that were not checked: too many from the address had failed"),
        ("zorb_unknown_callers_total", "requests that did not say who calls"),
        ("zorb_refused_contexts_total", "requests of which it was not believed who calls"),
        ("zorb_denied_requests_total", "requests that the authoriser did not allow"),
    ] {
        describe_counter!(name, Unit::Count, text);
    }
    describe_counter!("zorb_pool_hits_total", Unit::Count, "buffers taken from the pool's lists");
    describe_counter!("zorb_pool_misses_total", Unit::Count, "buffers that had to be allocated");
    describe_counter!("zorb_messages_received_total", Unit::Count, "GIOP messages and fragments received");
    describe_counter!("zorb_messages_sent_total", Unit::Count, "GIOP messages queued");
    describe_counter!("zorb_received_bytes_total", Unit::Bytes, "octets received");
    describe_counter!("zorb_sent_bytes_total", Unit::Bytes, "octets that the sockets took");
    describe_counter!("zorb_socket_reads_total", Unit::Count, "reads of sockets");
    describe_counter!("zorb_socket_writes_total", Unit::Count, "writes of which a socket took something");
    describe_counter!("zorb_copied_received_bytes_total", Unit::Bytes, "received octets moved in user space");
    describe_counter!("zorb_copied_sent_bytes_total", Unit::Bytes, "octets moved before they were sent");
    describe_counter!("zorb_skipped_bytes_total", Unit::Bytes, "octets of too large or unwanted messages");
    describe_counter!("zorb_tls_sessions_total", Unit::Count, "TLS sessions made, in both directions");
    describe_counter!("zorb_tls_failures_total", Unit::Count, "TLS handshakes that failed or took too long");
    describe_counter!("zorb_tls_plaintext_total", Unit::Count, "clients with plain IIOP at a port for TLS");
    describe_counter!("zorb_tls_misdirected_total", Unit::Count, "clients with TLS at a port of plain IIOP");
    describe_counter!("zorb_tls_shed_total", Unit::Count, "clients beyond the limit of handshakes under way");
}
