//! Allocation sizes of large buffers. The memory of a large buffer returns to the system as soon as it is
//! dropped.

/// Buffers of at least this size get a mapping of their own. The allocator keeps and reuses the memory of
/// smaller ones.
pub(super) const LARGE: usize = 4 << 20;

/// The upper limit of glibc's dynamic mmap threshold. glibc raises the threshold up to this limit when a
/// mapped allocation is freed. Later message buffers are then in its arenas, which rarely shrink: with 15 MB
/// messages, they retained gigabytes.
const MOST_IN_ARENAS: usize = 32 << 20;

/// One page, for the allocator's own data beside the buffer.
const PAGE: usize = 4096;

/// Returns the number of bytes to allocate for a buffer of that many bytes. A large buffer gets enough for
/// the allocator to map it separately; every other one gets just its size. The excess is never touched: it
/// uses address space, but no memory. Where address space is limited too, nothing is allocated in excess.
#[must_use]
pub fn mapped_size(bytes: usize) -> usize {
    let mapped = MOST_IN_ARENAS + PAGE;
    if bytes >= LARGE && bytes < mapped && addresses_are_free() { mapped } else { bytes }
}

/// Returns whether address space is free: the process has no limit on it (`ulimit -v`, `ulimit -d`), and the
/// system allows overcommit (`vm.overcommit_memory`). Checked once per process.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#[cold]
fn addresses_are_free() -> bool {
    static FREE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *FREE.get_or_init(|| {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        is_unlimited(&read("/proc/self/limits")) && read("/proc/sys/vm/overcommit_memory").trim() != "2"
    })
}

/// Returns `false`: other allocators return memory to the system, or do so in other ways.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
fn addresses_are_free() -> bool {
    false
}

/// Returns whether the limits of a process (proc_pid_limits(5)) leave address space and data unlimited.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
fn is_unlimited(limits: &str) -> bool {
    ["Max address space", "Max data size"].iter().all(|name| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        line.is_some_and(|line| line.trim_start().starts_with("unlimited"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_buffers_are_mapped_by_themselves() {
        assert_eq!(mapped_size(LARGE - 1), LARGE - 1);
        assert!(mapped_size(LARGE) >= LARGE);
        assert_eq!(mapped_size(100 << 20), 100 << 20);
        assert!(!addresses_are_free() || mapped_size(LARGE) > MOST_IN_ARENAS);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    fn limited_addresses_are_found() {
        let limits = |data: &str, addresses: &str| {
            format!(
                "Max data size     {data}   unlimited   bytes\nMax address space     {addresses}   unlimited   bytes\n"
            )
        };
        assert!(is_unlimited(&limits("unlimited", "unlimited")));
        assert!(!is_unlimited(&limits("unlimited", "1073741824")));
        assert!(!is_unlimited(&limits("1073741824", "unlimited")));
        assert!(!is_unlimited(""), "no table");
    }
}
