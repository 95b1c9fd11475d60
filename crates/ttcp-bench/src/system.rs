//! The resources that processes use, and the limit of open files.

use std::fs;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the memory of a process in bytes: its private memory and its share of shared memory (PSS). If PSS
/// is not available, returns all resident memory.
pub(crate) fn memory_bytes(process: u32) -> anyhow::Result<u64> {
    if let Ok(text) = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))
        && let Some(kib) = field(&text, "Pss:")
    {
        return Ok(kib << 10);
    }
    resident_bytes(process)
}

/// Returns the resident memory of a process in bytes. Reading this number does not disturb the process,
/// because the kernel keeps it. For the PSS of [`memory_bytes`], it must walk all pages of the process.
pub(crate) fn resident_bytes(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    Ok(field(&text, "VmRSS:").with_context(|| format!("{path} has no VmRSS"))? << 10)
}

/// Returns the number of open descriptors of a process.
pub(crate) fn open_file_count(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/fd");
    Ok(fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?.count() as u64)
}

pub(crate) fn thread_count(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    field(&text, "Threads:").with_context(|| format!("{path} has no Threads"))
}

/// Returns the first number of the line that begins with `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Raises the limit of open files to the hard limit, for this process and the processes that it starts.
/// Returns the limit that is then in effect.
pub(crate) fn raise_open_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_an_allocation_and_unknown_processes_are_errors() {
        let own = std::process::id();
        let before = memory_bytes(own).unwrap();
        let block = vec![1u8; 64 << 20];
        let after = memory_bytes(own).unwrap();
        assert!(after > before + (32 << 20), "{before} {after}");
        drop(block);
        assert!(resident_bytes(own).unwrap() >= 1 << 20 && open_file_count(own).unwrap() >= 3);
        assert!(thread_count(own).unwrap() >= 1);
        assert!(memory_bytes(u32::MAX).is_err() && thread_count(u32::MAX).is_err());
    }

    #[test]
    fn the_open_file_limit_is_raised_to_the_hard_limit() {
        let limit = raise_open_file_limit();
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), limit);
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "Rss:   12 kB\nPss:    7 kB\nPss_Anon: 3 kB\n";
        assert_eq!(
            (field(text, "Pss:"), field(text, "Pss_Anon:"), field(text, "Swap:")),
            (Some(7), Some(3), None)
        );
    }
}
