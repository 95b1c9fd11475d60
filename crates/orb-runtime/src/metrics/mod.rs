//! The metrics of an ORB: a table, shown by the admin endpoint and exported by `facade` (feature `metrics`).

#[cfg(feature = "metrics")]
mod facade;
mod table;

#[cfg(feature = "admin")]
pub(crate) use table::{CounterSnapshot, LIMIT_HITS, METRICS};
