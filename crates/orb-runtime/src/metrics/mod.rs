//! The metrics of an ORB, which the admin endpoint shows and `facade` exports (feature `metrics`).

#[cfg(feature = "metrics")]
mod facade;
mod table;

#[cfg(feature = "admin")]
pub(crate) use table::{CounterSnapshot, LIMIT_HITS_HELP, LIMIT_HITS_NAME, METRICS};
