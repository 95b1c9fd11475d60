//! The harness of all measurements: processes, links, cores, peers, and the environment of a run.

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

/// The exit code of an interrupted run. Shells use the same code after Ctrl-C.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;
