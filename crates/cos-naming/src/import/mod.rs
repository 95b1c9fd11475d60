//! Import of names from other naming services.

mod omni;

pub use omni::{ImportError, Imported, import_omninames};
