//! Sizes of large buffers. The system gets their memory back as soon as they are dropped.

/// Buffers from this size on are mapped by themselves. Smaller ones are left to the allocator, which uses their memory again.
pub(super) const LARGE: usize = 4 << 20;

/// glibc's allocator raises the size from which it maps an allocation by itself, up to this one, when such an allocation is freed. After
/// that, buffers of messages lie in its arenas, which rarely shrink: of 15 MB messages, gigabytes stayed there.
const MOST_IN_ARENAS: usize = 32 << 20;

/// A page, for what the allocator keeps beside the buffer.
const PAGE: usize = 4096;

/// How much to allocate for a buffer of that many bytes: as much, or, for a large one, so much that the allocator maps it by itself. What is
/// allocated beyond the buffer is never touched: it takes addresses and no memory.
#[must_use]
pub const fn mapped_size(bytes: usize) -> usize {
    let mapped = MOST_IN_ARENAS + PAGE;
    let keeps = cfg!(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"));
    if keeps && bytes >= LARGE && bytes < mapped { mapped } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_buffers_are_mapped_by_themselves() {
        assert_eq!(mapped_size(LARGE - 1), LARGE - 1);
        assert!(mapped_size(LARGE) >= LARGE);
        assert_eq!(mapped_size(100 << 20), 100 << 20);
        if cfg!(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")) {
            assert!(mapped_size(LARGE) > MOST_IN_ARENAS);
        }
    }
}
