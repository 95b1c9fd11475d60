//! The harness of all measurements: processes, links, pins, peers, and the environment of a run.

pub(crate) mod child;
pub(crate) mod children;
pub(crate) mod cores;
pub(crate) mod environment;
pub(crate) mod links;
mod options;
pub(crate) mod peers;
pub(crate) mod placement;
pub(crate) mod processor;
pub(crate) mod progress;

pub use options::CommonArgs;
pub use peers::{BuiltIn, Peer};

/// The exit code of an interrupted run, as a shell gives it after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
