//! Export of the ORB's metrics ([`FIGURES`]) to the `metrics` facade (feature `metrics`).
//!
//! The values of several ORBs of a process add up. Those of each ORB are updated once a second while
//! connections are open, a second after a handshake has failed, and by [`Orb::record_metrics`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use giop_proto::{Limit, LimitHits};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use crate::metrics::table::{Counted, FIGURES, LIMIT_HITS};
use crate::orb::Orb;
use crate::runtime::Shared;

const INTERVAL: Duration = Duration::from_secs(1);

/// The state of the export of an ORB's metrics.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    told: Mutex<Exported>,
    /// A task updates the metrics periodically.
    reporting: AtomicBool,
}

#[derive(Debug, Default)]
struct Exported {
    /// The exported values in the order of the table. Empty until the metrics are described.
    values: Vec<u64>,
    limits: LimitHits,
}

/// Resets the flag when the task ends, even with its runtime, so that the next connection can start another
/// one.
struct Reporting(std::sync::Weak<Shared>);

impl Orb {
    /// Updates the metrics of the `metrics` facade now, for an exporter that renders them on request.
    pub fn record_metrics(&self) {
        self.core.record_metrics();
    }
}

impl Shared {
    fn metrics(&self) -> &Metrics {
        self.extensions.metrics.get_or_default()
    }

    fn record_metrics(&self) {
        // Count under the lock, so that older values cannot be exported after newer ones.
        let mut told = self.metrics().told.lock().unwrap_or_else(PoisonError::into_inner);
        told.tell(&self.counted());
    }

    /// Starts the task that updates the metrics once a second until no connection is open.
    pub(crate) fn report_metrics(self: &Arc<Self>) {
        // An aborted handshake may be dropped outside of a runtime.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.metrics().reporting.swap(true, Ordering::AcqRel) {
            return;
        }
        let reporting = Reporting(Arc::downgrade(self));
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let Some(core) = reporting.0.upgrade() else { return };
                core.record_metrics();
                if core.links.lock().is_empty() {
                    drop(reporting);
                    // Something may have been counted, or a connection opened, while this task still seemed
                    // to run.
                    core.record_metrics();
                    if !core.links.lock().is_empty() {
                        core.report_metrics();
                    }
                    return;
                }
            }
        });
    }
}

impl Exported {
    fn tell(&mut self, now: &Counted) {
        if self.values.is_empty() {
            describe();
            self.values.resize(FIGURES.len(), 0);
        }
        for (figure, before) in FIGURES.iter().zip(&mut self.values) {
            let now = figure.of(now);
            let before = std::mem::replace(before, now);
            if figure.is_gauge {
                move_gauge(figure.name, now, before);
            } else if now > before {
                counter!(figure.name).increment(now - before);
            }
        }
        let before = std::mem::replace(&mut self.limits, now.stats.limits);
        for limit in Limit::ALL {
            let (now, before) = (self.limits.of(*limit), before.of(*limit));
            if now > before {
                counter!(LIMIT_HITS.0, "limit" => limit.name()).increment(u64::from(now - before));
            }
        }
    }
}

/// Subtracts this ORB's gauges, because the ORB has ended.
impl Drop for Metrics {
    fn drop(&mut self) {
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (figure, before) in FIGURES.iter().zip(&told.values).filter(|(figure, _)| figure.is_gauge) {
            move_gauge(figure.name, 0, *before);
        }
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.metrics().reporting.store(false, Ordering::Release);
        }
    }
}

/// Moves a gauge by the difference, so that the values of several ORBs add up.
fn move_gauge(name: &'static str, now: u64, before: u64) {
    if now != before {
        gauge!(name).increment(now as f64 - before as f64);
    }
}

fn describe() {
    for figure in FIGURES {
        let unit = if figure.is_octets { Unit::Bytes } else { Unit::Count };
        if figure.is_gauge {
            describe_gauge!(figure.name, unit, figure.help);
        } else {
            describe_counter!(figure.name, unit, figure.help);
        }
    }
    describe_counter!(LIMIT_HITS.0, Unit::Count, LIMIT_HITS.1);
}
