//! Sizes of large buffers. The system gets their memory back as soon as they are dropped.

/// Buffers from this size on are mapped by themselves. Smaller ones are left to the allocator, which uses their memory again.
pub(super) const LARGE: usize = 4 << 20;

/// glibc's allocator raises the size from which it maps an allocation by itself, up to this one, when such an allocation is freed. After
/// that, buffers of messages lie in its arenas, which rarely shrink: of 15 MB messages, gigabytes stayed there.
const MOST_IN_ARENAS: usize = 32 << 20;

/// A page, for what the allocator keeps beside the buffer.
const PAGE: usize = 4096;

/// How much to allocate for a buffer of that many bytes: as much, or, for a large one, so much that the allocator maps it by itself. What is
/// allocated beyond the buffer is never touched: it takes addresses and no memory. Where addresses are limited, too, nothing is allocated
/// beyond it.
#[must_use]
pub fn mapped_size(bytes: usize) -> usize {
    let mapped = MOST_IN_ARENAS + PAGE;
    if bytes >= LARGE && bytes < mapped && addresses_are_free() { mapped } else { bytes }
}

/// Whether addresses cost nothing: the process has no limit of them (`ulimit -v`, `ulimit -d`), and the system lets programs map more than
/// there is memory (`vm.overcommit_memory`). It is looked at once.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#[cold]
fn addresses_are_free() -> bool {
    static FREE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *FREE.get_or_init(|| {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        is_unlimited(&read("/proc/self/limits")) && read("/proc/sys/vm/overcommit_memory").trim() != "2"
    })
}

/// Other allocators give memory back, or do it in other ways.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
fn addresses_are_free() -> bool {
    false
}

/// Whether a table of the limits of a process (proc_pid_limits(5)) has none for addresses and for data.
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
