//! Describes the state of an ORB in JSON.

use std::time::UNIX_EPOCH;

use giop_proto::Limit;
use serde_json::{Value, json};

use crate::admin::adapters::adapters;
use crate::metrics::CounterSnapshot;
use crate::runtime::Shared;
use crate::telemetry::latency::{BUCKETS, upper_bound_us};
use crate::telemetry::operation_stats::Side;

const MAX_LISTED_CONNECTIONS: usize = 100;

/// Returns the document that the page of the admin endpoint and `zorb top` show.
pub(crate) fn status(core: &Shared) -> Value {
    let CounterSnapshot { stats, pool, transport, objects, failed_oneways, .. } = core.counter_snapshot();
    let mut open = core.connections.to_vec();
    let count = open.len();
    open.sort_by_cached_key(|link| link.peer().to_string());
    open.truncate(MAX_LISTED_CONNECTIONS);
    let connections: Vec<_> = open
        .iter()
        .map(|link| {
            let stats = link.stats();
            json!({
                "peer": link.peer().to_string(),
                "incoming": link.serves_peer(),
                "received_bytes": stats.bytes_in,
                "sent_bytes": stats.bytes_out,
                "received_messages": stats.messages_in,
                "sent_messages": stats.messages_out,
            })
        })
        .collect();
    let limits: serde_json::Map<String, Value> = Limit::ALL
        .iter()
        .map(|limit| (limit.name().to_owned(), stats.limit_hits.of(*limit)))
        .filter(|(_, hits)| *hits > 0)
        .map(|(name, hits)| (name, hits.into()))
        .collect();
    let calls = |side| -> Vec<Value> {
        let rows = core.operation_stats().map(|stats| stats.table(side).snapshots()).unwrap_or_default();
        rows.iter()
            .map(|row| {
                json!({
                    "interface": row.interface,
                    "operation": row.operation,
                    "calls": row.calls,
                    "user_exceptions": row.user_exceptions,
                    "failures": row.failures,
                    "micros": row.total_nanos / 1000,
                    "max_us": row.longest_nanos as f64 / 1e3,
                    "buckets": row.latencies.nonempty_buckets().collect::<Vec<_>>(),
                })
            })
            .collect()
    };
    let bounds: Vec<f64> = (0..BUCKETS).map(upper_bound_us).collect();
    let endpoints = core.endpoints.iter().filter(|endpoint| !endpoint.is_placeholder());
    let (adapters, more_adapters) = adapters(core);
    let history = core.admin().history().json();
    json!({
        "zorb": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "started_ms": core.admin().started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64,
        "uptime_ms": core.admin().uptime().as_millis() as u64,
        "ready": core.is_ready(),
        "problems": core.admin().problems(),
        "endpoints": endpoints.map(ToString::to_string).collect::<Vec<_>>(),
        "objects": objects,
        "adapters": adapters,
        "more_adapters": more_adapters,
        "open_connections": count,
        "connections": connections,
        "messages": {
            "received": stats.messages_in,
            "sent": stats.messages_out,
            "received_bytes": stats.bytes_in,
            "sent_bytes": stats.bytes_out,
            "refused": stats.requests_refused,
            "failed_oneways": failed_oneways,
        },
        "pool": {
            "cap": pool.cap,
            "held": pool.held,
            "free": pool.free,
            "outside": pool.outside,
            "queued": pool.queued,
            "hits": pool.hits,
            "misses": pool.misses,
        },
        "tls": { "sessions": transport.tls_sessions, "failures": transport.tls_failures },
        "limits": limits,
        "bounds_us": bounds,
        "served": calls(Side::Served),
        "made": calls(Side::Made),
        "history": history,
    })
}
