//! Import of names from other naming services.

mod omni;

pub use omni::{ImportError, ImportSummary, import_omninames};
