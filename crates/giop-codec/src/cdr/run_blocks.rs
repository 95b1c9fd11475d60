//! Reusable blocks of memory for long runs of structs.

use bytes::{Bytes, BytesMut};

use super::encoder::Encoder;
use super::fixed::write_strided;
use super::layout::FixedLayout;
use super::mapped::mapped_size;
use super::swapped::{TILE, swap};

/// Maximum bytes of blocks that are kept for the next runs. Two blocks are kept whatever their size: one is
/// filled while another one is queued for the socket.
const BLOCKS: usize = 2 << 20;

impl Encoder {
    /// Writes elements into the first `len` bytes of a block, which becomes a chunk. All elements start at
    /// the phase at which elements end.
    pub(super) fn put_block<T: FixedLayout>(
        &mut self,
        items: &[T],
        mut block: BytesMut,
        len: usize,
        whole: bool,
    ) {
        write_strided(block.get_mut(..len).unwrap_or_default(), items, self.is_foreign());
        self.push_block(block, len, whole);
    }

    /// Writes the numbers of `1 << width` bytes in `octets` in the other byte order. A long run is written to
    /// a block.
    #[inline(never)]
    pub(crate) fn put_swapped(&mut self, width: u8, octets: &[u8]) {
        let len = octets.len();
        if self.is_large(len)
            && let Some(mut block) = self.free_block(len)
        {
            swap(width, octets, block.get_mut(..len).unwrap_or_default());
            return self.push_block(block, len, true);
        }
        self.reserve(len);
        for some in octets.chunks(TILE) {
            swap(width, some, self.grow(some.len()));
        }
    }

    fn push_block(&mut self, block: BytesMut, len: usize, whole: bool) {
        let block = block.freeze();
        self.push_chunk(block.slice(..len), whole);
        self.blocks.push(block);
    }

    pub(super) fn block_octets(&self) -> usize {
        self.blocks.iter().map(Bytes::len).sum()
    }

    /// Returns a block of at least `len` bytes. `None` if all blocks are still held by the sender.
    pub(super) fn free_block(&mut self, len: usize) -> Option<BytesMut> {
        // Prefer the shortest block that is long enough. Otherwise evict the shortest one to make space for a
        // longer one.
        let free = self.blocks.iter().enumerate().filter(|(_, block)| block.is_unique());
        let best = free
            .min_by_key(|(_, block)| (block.len() < len, block.len()))
            .map(|(at, block)| (at, block.len()));
        match best {
            Some((at, found)) if found >= len => return self.blocks.swap_remove(at).try_into_mut().ok(),
            _ if self.blocks.len() < 2 || self.block_octets() + len <= BLOCKS => {}
            Some((at, _)) => drop(self.blocks.swap_remove(at)),
            None => return None,
        }
        // The split makes the block reference-counted from the start, so that freezing it never allocates.
        let mut block = BytesMut::zeroed(mapped_size(len + 1));
        drop(block.split_off(len));
        Some(block)
    }
}
