//! Allocation sizes of large buffers, so that the memory of a dropped buffer returns to the system at once.

/// Minimum size of a buffer that is allocated large enough for a memory mapping of its own. The allocator
/// reuses the memory of smaller buffers.
pub(super) const MIN_MAPPED_BYTES: usize = 4 << 20;

/// The upper limit of glibc's dynamic mmap threshold. When a mapped allocation is freed, glibc raises its
/// threshold to the size of that allocation, up to this limit. Later message buffers below the threshold are
/// allocated in arenas, which rarely shrink. With messages of 15 MB, the arenas retained gigabytes.
const MAX_MMAP_THRESHOLD_BYTES: usize = 32 << 20;

/// Returns the number of bytes to allocate for a buffer of `bytes` bytes. The number for a large buffer is
/// great enough that the allocator maps the buffer separately. The excess is never touched, so it uses
/// address space but no memory. If address space is limited, there is no excess.
#[must_use]
pub fn allocation_size(bytes: usize) -> usize {
    // The additional page is for the allocator's own data.
    let mapped = MAX_MMAP_THRESHOLD_BYTES + 4096;
    if bytes >= MIN_MAPPED_BYTES && bytes < mapped && is_address_space_unlimited() { mapped } else { bytes }
}

/// Returns whether the process has no limit on address space (`ulimit -v`, `ulimit -d`), and the system
/// allows overcommit (`vm.overcommit_memory`). Checked once per process.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#[cold]
fn is_address_space_unlimited() -> bool {
    static UNLIMITED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *UNLIMITED.get_or_init(|| {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        is_unlimited(&read("/proc/self/limits")) && read("/proc/sys/vm/overcommit_memory").trim() != "2"
    })
}

/// Other allocators return freed memory without an excess.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
fn is_address_space_unlimited() -> bool {
    false
}

/// Returns whether the limits on address space and data are unlimited. `limits` is the content of
/// `/proc/self/limits`; see proc_pid_limits(5).
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
        assert_eq!(allocation_size(MIN_MAPPED_BYTES - 1), MIN_MAPPED_BYTES - 1);
        assert!(allocation_size(MIN_MAPPED_BYTES) >= MIN_MAPPED_BYTES);
        assert_eq!(allocation_size(100 << 20), 100 << 20);
        assert!(
            !is_address_space_unlimited() || allocation_size(MIN_MAPPED_BYTES) > MAX_MMAP_THRESHOLD_BYTES
        );
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
