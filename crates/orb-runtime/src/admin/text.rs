//! What an ORB counts, as Prometheus reads it.

use std::fmt::{self, Display, Write as _};

use giop_proto::Limit;

use super::calls::{Figures, Side};
use crate::orb::OrbCore;

/// The page of all figures, in the text format, version 0.0.4. Names are those that the feature `metrics` tells, and those of calls.
pub(super) fn metrics(core: &OrbCore) -> String {
    let mut page = Page(String::with_capacity(8 * 1024));
    let (stats, pool, transport) = (core.counted(), core.pool().stats(), core.transport_counted());
    page.gauge("zorb_connections", "open connections, both directions", core.link_count());
    page.gauge("zorb_objects", "active objects", core.adapter().len());
    page.gauge("zorb_pool_cap_bytes", "the most that the pool of receive buffers may hold", pool.cap);
    page.gauge("zorb_pool_held_bytes", "receive buffers, free ones and those that views pin", pool.held);
    page.gauge(
        "zorb_pool_outside_bytes",
        "what received messages take beside the pool's buffers",
        pool.outside,
    );
    page.gauge("zorb_queued_bytes", "octets queued for peers, of connections with much of them", pool.queued);
    for (name, help, value) in [
        ("zorb_failed_oneways_total", "oneways that failed in their servants", core.oneways_failed()),
        ("zorb_refused_requests_total", "requests answered by a system exception unseen", stats.refused),
        ("zorb_pool_hits_total", "buffers taken from the pool's lists", pool.hits),
        ("zorb_pool_misses_total", "buffers that had to be allocated", pool.misses),
        ("zorb_messages_received_total", "GIOP messages and fragments received", stats.messages_in),
        ("zorb_messages_sent_total", "GIOP messages queued", stats.messages_out),
        ("zorb_received_bytes_total", "octets received", stats.octets_in),
        ("zorb_sent_bytes_total", "octets that the sockets took", stats.octets_out),
        ("zorb_socket_reads_total", "reads of sockets", stats.reads),
        ("zorb_socket_writes_total", "writes of which a socket took something", stats.writes),
        ("zorb_copied_received_bytes_total", "received octets moved in user space", stats.copied),
        ("zorb_copied_sent_bytes_total", "octets moved before they were sent", stats.copied_out),
        ("zorb_skipped_bytes_total", "octets of too large or unwanted messages", stats.skipped),
        ("zorb_tls_sessions_total", "TLS sessions made, in both directions", transport.tls_sessions),
        ("zorb_tls_failures_total", "TLS handshakes that failed or took too long", transport.tls_failures),
        ("zorb_tls_plaintext_total", "clients with plain IIOP at a port for TLS", transport.tls_plaintext),
        ("zorb_tls_misdirected_total", "clients with TLS at a port of plain IIOP", transport.tls_misdirected),
        ("zorb_tls_shed_total", "clients beyond the limit of handshakes under way", transport.tls_shed),
    ] {
        page.head(name, help, "counter");
        page.line(name, &[], value);
    }
    page.head("zorb_limit_hits_total", "limits that were hit, by their names", "counter");
    for limit in Limit::ALL {
        page.line("zorb_limit_hits_total", &[("limit", limit.name())], stats.limits.of(*limit));
    }
    #[cfg(feature = "csi")]
    {
        let csi = core.config.security.stats();
        for (name, help, value) in [
            ("zorb_logins_total", "logins that were checked and good", csi.logins),
            ("zorb_failed_logins_total", "logins that were not good", csi.failed_logins),
            ("zorb_unknown_callers_total", "requests that did not say who calls", csi.unknown_callers),
            (
                "zorb_refused_contexts_total",
                "requests of which it was not believed who calls",
                csi.refused_contexts,
            ),
            ("zorb_denied_requests_total", "requests that the authoriser did not allow", csi.denied),
        ] {
            page.head(name, help, "counter");
            page.line(name, &[], value);
        }
    }
    if let Some(calls) = core.calls() {
        let all = [(Side::Served, "served"), (Side::Made, "made")]
            .map(|(side, name)| (name, calls.table(side).figures()));
        page.calls("zorb_calls_total", "calls that are over, by operation", &all, |row| row.calls);
        page.calls("zorb_call_failures_total", "those that ended with an exception", &all, |row| {
            row.failures
        });
        page.durations(&all);
    }
    page.0
}

struct Page(String);

type Sides = [(&'static str, Vec<Figures>); 2];

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{}\"", if at == 0 { '{' } else { ',' }, Escaped(text));
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn gauge(&mut self, name: &str, help: &str, value: usize) {
        self.head(name, help, "gauge");
        self.line(name, &[], value);
    }

    fn calls(&mut self, name: &str, help: &str, sides: &Sides, value: impl Fn(&Figures) -> u64) {
        self.head(name, help, "counter");
        for (side, rows) in sides {
            for row in rows {
                self.line(name, &labels(side, row), value(row));
            }
        }
    }

    fn durations(&mut self, sides: &Sides) {
        let name = "zorb_call_duration_seconds";
        self.head(name, "how long calls took", "histogram");
        for (side, rows) in sides {
            for row in rows {
                let [side, interface, operation] = labels(side, row);
                let mut sum = 0;
                for (at, count) in row.buckets.iter().enumerate() {
                    sum += count;
                    let bound = match at {
                        super::calls::BOUNDS => "+Inf".to_owned(),
                        at => format!("{}", (1_u64 << at) as f64 / 1e6),
                    };
                    let labels = [side, interface, operation, ("le", &bound)];
                    self.line("zorb_call_duration_seconds_bucket", &labels, sum);
                }
                let labels = [side, interface, operation];
                self.line("zorb_call_duration_seconds_sum", &labels, row.micros as f64 / 1e6);
                self.line("zorb_call_duration_seconds_count", &labels, sum);
            }
        }
    }
}

fn labels<'a>(side: &'a str, row: &'a Figures) -> [(&'a str, &'a str); 3] {
    [("side", side), ("interface", &row.interface), ("operation", &row.operation)]
}

/// A label's value: names of operations come from peers.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = Page(String::new());
        page.line("a", &[("b", "x\"\\\ny"), ("c", "d")], 1);
        page.line("a", &[], 0.5);
        assert_eq!(page.0, "a{b=\"x\\\"\\\\\\ny\",c=\"d\"} 1\na 0.5\n");
    }
}
