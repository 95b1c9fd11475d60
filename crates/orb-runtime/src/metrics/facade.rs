//! Export of the ORB's metrics ([`METRICS`]) to the `metrics` facade (feature `metrics`).
//!
//! The values of all ORBs of a process are added. The values of an ORB are updated once a second while it has
//! open connections, a second after a TLS handshake has failed, and by [`Orb::record_metrics`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use giop_proto::{Limit, LimitHits};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use crate::lock::lock;
use crate::metrics::table::{CounterSnapshot, LIMIT_HITS_HELP, LIMIT_HITS_NAME, METRICS};
use crate::orb::Orb;
use crate::runtime::Shared;

const EXPORT_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct MetricsExport {
    exported: Mutex<ExportedValues>,
    is_exporting: AtomicBool,
}

#[derive(Debug, Default)]
struct ExportedValues {
    /// The exported values in the order of [`METRICS`]. Empty until the metrics are described.
    values: Vec<u64>,
    limit_hits: LimitHits,
}

/// Lets the next connection start another task when the task that owns this guard ends or is dropped.
struct ExportGuard(std::sync::Weak<Shared>);

impl Orb {
    /// Updates the metrics of the `metrics` facade now. An exporter that renders them on request calls this.
    pub fn record_metrics(&self) {
        self.core.record_metrics();
    }
}

impl Shared {
    fn metrics(&self) -> &MetricsExport {
        self.extensions.metrics.get_or_default()
    }

    fn record_metrics(&self) {
        // Read the counters under the lock, so that older values cannot be exported after newer ones.
        let mut exported = lock(&self.metrics().exported);
        exported.update(&self.counter_snapshot());
    }

    /// Starts the task that updates the metrics once a second until no connection is open, unless it runs.
    pub(crate) fn spawn_metrics_export(self: &Arc<Self>) {
        // Without a runtime, no task can be started. An aborted handshake may be dropped on a plain thread.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.metrics().is_exporting.swap(true, Ordering::AcqRel) {
            return;
        }
        let guard = ExportGuard(Arc::downgrade(self));
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(EXPORT_INTERVAL).await;
                let Some(core) = guard.0.upgrade() else { return };
                core.record_metrics();
                if core.connections.lock().is_empty() {
                    drop(guard);
                    // Counters may have changed, and a connection may have been opened, before the guard was
                    // dropped. Such a connection has not started another task, so this must be done here.
                    core.record_metrics();
                    if !core.connections.lock().is_empty() {
                        core.spawn_metrics_export();
                    }
                    return;
                }
            }
        });
    }
}

impl ExportedValues {
    fn update(&mut self, now: &CounterSnapshot) {
        if self.values.is_empty() {
            describe();
            self.values.resize(METRICS.len(), 0);
        }
        for (metric, before) in METRICS.iter().zip(&mut self.values) {
            let now = metric.value(now);
            let before = std::mem::replace(before, now);
            if metric.is_gauge {
                move_gauge(metric.name, now, before);
            } else if now > before {
                counter!(metric.name).increment(now - before);
            }
        }
        let before = std::mem::replace(&mut self.limit_hits, now.stats.limit_hits);
        for limit in Limit::ALL {
            let (now, before) = (self.limit_hits.of(*limit), before.of(*limit));
            if now > before {
                counter!(LIMIT_HITS_NAME, "limit" => limit.name()).increment(u64::from(now - before));
            }
        }
    }
}

/// Subtracts this ORB's values from the gauges.
impl Drop for MetricsExport {
    fn drop(&mut self) {
        let exported = self.exported.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (metric, before) in METRICS.iter().zip(&exported.values).filter(|(metric, _)| metric.is_gauge) {
            move_gauge(metric.name, 0, *before);
        }
    }
}

impl Drop for ExportGuard {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.metrics().is_exporting.store(false, Ordering::Release);
        }
    }
}

/// Changes a gauge by the difference, so that a gauge is the sum of all ORBs.
fn move_gauge(name: &'static str, now: u64, before: u64) {
    if now != before {
        gauge!(name).increment(now as f64 - before as f64);
    }
}

fn describe() {
    for metric in METRICS {
        let unit = if metric.is_bytes { Unit::Bytes } else { Unit::Count };
        if metric.is_gauge {
            describe_gauge!(metric.name, unit, metric.help);
        } else {
            describe_counter!(metric.name, unit, metric.help);
        }
    }
    describe_counter!(LIMIT_HITS_NAME, Unit::Count, LIMIT_HITS_HELP);
}
