//! Reusable blocks of memory for large runs of structs and numbers.

use bytes::{Bytes, BytesMut};

use super::allocation::allocation_size;
use super::byte_swap::{TILE_BYTES, swap};
use super::encoder::Encoder;
use super::fixed::write_strided;
use super::layout::FixedLayout;

/// Maximum number of bytes in all blocks that are kept for later runs. Two blocks are kept whatever their
/// size, so that one can be filled while the other is queued for the socket.
const MAX_KEPT_BYTES: usize = 2 << 20;

impl Encoder {
    /// Writes elements into the first `len` bytes of a block, which become a chunk. The encoder must be at
    /// the phase (offset modulo 8) at which elements end, so that all elements start there.
    pub(super) fn put_block<T: FixedLayout>(
        &mut self,
        items: &[T],
        mut block: BytesMut,
        len: usize,
        is_whole_run: bool,
    ) {
        write_strided(block.get_mut(..len).unwrap_or_default(), items, self.is_foreign_order());
        self.push_block(block, len, is_whole_run);
    }

    /// Writes numbers of `1 << log2_size` bytes in the foreign byte order. A large run is written to a block,
    /// if one is free or may be added.
    #[inline(never)]
    pub(crate) fn put_swapped(&mut self, log2_size: u8, numbers: &[u8]) {
        let len = numbers.len();
        if self.is_large_run(len)
            && let Some(mut block) = self.take_free_block(len)
        {
            swap(log2_size, numbers, block.get_mut(..len).unwrap_or_default());
            return self.push_block(block, len, true);
        }
        self.reserve(len);
        for tile in numbers.chunks(TILE_BYTES) {
            swap(log2_size, tile, self.append_zeros(tile.len()));
        }
    }

    fn push_block(&mut self, block: BytesMut, len: usize, is_whole_run: bool) {
        let block = block.freeze();
        self.push_chunk(block.slice(..len), is_whole_run);
        self.blocks.push(block);
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.blocks.iter().map(Bytes::len).sum()
    }

    /// Returns a block of at least `len` bytes. `None` if all are in use and no further one may be kept.
    pub(super) fn take_free_block(&mut self, len: usize) -> Option<BytesMut> {
        // Prefer the shortest free block that is long enough. If all free blocks are too short, allocate a
        // new one, and drop the shortest free block if the total would exceed the maximum.
        let free = self.blocks.iter().enumerate().filter(|(_, block)| block.is_unique());
        let best = free.min_by_key(|(_, block)| (block.len() < len, block.len()));
        match best.map(|(index, block)| (index, block.len())) {
            Some((index, best_len)) if best_len >= len => {
                return self.blocks.swap_remove(index).try_into_mut().ok();
            }
            _ if self.blocks.len() < 2 || self.block_bytes() + len <= MAX_KEPT_BYTES => {}
            Some((index, _)) => drop(self.blocks.swap_remove(index)),
            None => return None,
        }
        // The split makes the block reference-counted, so that freezing it later does not allocate.
        let mut block = BytesMut::zeroed(allocation_size(len + 1));
        drop(block.split_off(len));
        Some(block)
    }
}
