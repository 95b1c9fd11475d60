//! The metrics of an ORB by their exported names.
//!
//! `table` has each metric once, with its name, kind and value. The admin endpoint shows the table, and
//! `facade` exports it (feature `metrics`).

#[cfg(feature = "metrics")]
mod facade;
mod table;

#[cfg(feature = "admin")]
pub(crate) use table::{Counted, FIGURES, LIMIT_HITS};
