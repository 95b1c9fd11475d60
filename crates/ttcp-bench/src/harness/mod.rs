//! The harness of all measurements: processes, network links, cores, peers, and the environment of a run.

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

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub use options::CommonArgs;
pub use peers::{BuiltInPeer, Peer};

/// The exit code of an interrupted run. Shells use the same code after Ctrl-C.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set from now on.
pub(crate) fn interruption_flag() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
