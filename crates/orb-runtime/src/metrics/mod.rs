//! The metrics of an ORB by their exported names.
//!
//! `table` lists the metrics with their names, kinds and values. The admin endpoint shows them, and `facade`
//! exports them (feature `metrics`).

#[cfg(feature = "metrics")]
mod facade;
mod table;

#[cfg(feature = "admin")]
pub(crate) use table::{CounterSnapshot, LIMIT_HITS, METRICS};
