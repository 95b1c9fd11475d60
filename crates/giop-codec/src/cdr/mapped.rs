//! Allocation sizes of large buffers, chosen so that their memory returns to the system as soon as they are
//! dropped.

/// Minimum size of a buffer that gets a mapping of its own. The allocator reuses the memory of smaller ones.
pub(super) const MIN_MAPPED_BYTES: usize = 4 << 20;

/// The upper limit of glibc's dynamic mmap threshold. glibc raises the threshold up to this limit when a
/// mapped allocation is freed. Later message buffers are then in its arenas, which rarely shrink: with 15 MB
/// messages, they retained gigabytes.
const MAX_MMAP_THRESHOLD_BYTES: usize = 32 << 20;

/// Returns the number of bytes to allocate for a buffer of that many bytes. A large buffer gets enough for
/// the allocator to map it separately. The excess is never touched: it uses address space, but no memory.
/// Where address space is limited, there is no excess.
#[must_use]
pub fn mapped_size(bytes: usize) -> usize {
    // One page is for the allocator's own data.
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

/// Other allocators need no excess.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
fn is_address_space_unlimited() -> bool {
    false
}

/// `limits` is the content of `/proc/self/limits`: see proc_pid_limits(5).
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
        assert_eq!(mapped_size(MIN_MAPPED_BYTES - 1), MIN_MAPPED_BYTES - 1);
        assert!(mapped_size(MIN_MAPPED_BYTES) >= MIN_MAPPED_BYTES);
        assert_eq!(mapped_size(100 << 20), 100 << 20);
        assert!(!is_address_space_unlimited() || mapped_size(MIN_MAPPED_BYTES) > MAX_MMAP_THRESHOLD_BYTES);
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
