//! Names of other services.

mod omni;

pub use omni::{ImportError, Imported, import_omninames};
