//! Resources of a process, and the limit of open files.

use std::fs;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the memory of a process in bytes: its private memory and its share of shared memory (PSS). Where
/// PSS is not available, all resident memory.
///
/// # Errors
/// There is no such process, or no `/proc`.
pub(crate) fn memory(process: u32) -> anyhow::Result<u64> {
    if let Ok(text) = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))
        && let Some(kib) = field(&text, "Pss:")
    {
        return Ok(kib << 10);
    }
    resident(process)
}

/// Returns the resident memory of a process in bytes. Unlike [`memory`], which walks all pages, it costs the
/// process nothing.
///
/// # Errors
/// There is no such process, or no `/proc`.
pub(crate) fn resident(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    Ok(field(&text, "VmRSS:").with_context(|| format!("{path} has no VmRSS"))? << 10)
}

/// Returns the number of open descriptors of a process.
///
/// # Errors
/// There is no such process, or no `/proc`, or it is another user's.
pub(crate) fn files(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/fd");
    Ok(fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?.count() as u64)
}

/// Returns the number of threads of a process.
///
/// # Errors
/// There is no such process, or no `/proc`.
pub(crate) fn threads(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    field(&text, "Threads:").with_context(|| format!("{path} has no Threads"))
}

/// Returns the number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Raises the limit of open files to the hard limit, for this process and those that it starts. Returns the
/// limit.
pub(crate) fn raise_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_threads_of_this_process_grow_with_what_it_does() {
        let own = std::process::id();
        let before = memory(own).unwrap();
        let block = vec![1u8; 64 << 20];
        let after = memory(own).unwrap();
        assert!(after > before + (32 << 20), "{before} {after}");
        drop(block);
        assert!(resident(own).unwrap() >= 1 << 20 && files(own).unwrap() >= 3);
        assert!(threads(own).unwrap() >= 1);
        assert!(memory(u32::MAX).is_err() && threads(u32::MAX).is_err());
    }

    #[test]
    fn the_limit_of_files_is_the_hard_one_then() {
        let files = raise_files();
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), files);
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let text = "Rss:   12 kB\nPss:    7 kB\nPss_Anon: 3 kB\n";
        assert_eq!(
            (field(text, "Pss:"), field(text, "Pss_Anon:"), field(text, "Swap:")),
            (Some(7), Some(3), None)
        );
    }
}
