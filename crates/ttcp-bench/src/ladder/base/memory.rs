//! Values in C's memory layout. A sequence is a struct with the members `maximum`, `length` and `buffer`.
//!
//! A buffer is a block of the [`Heap`], which has a number as its handle. While a block is traversed, it is
//! taken out of the heap. Its elements are then plain slices, which cost as little as C pointers. Freed
//! blocks are reused without clearing, so that neither new pages nor zeroing take time.

use super::kind::*;
use super::{Fault, Status};

/// Size and alignment of a sequence in memory, in bytes.
pub(crate) const SEQUENCE_SIZE_AND_ALIGNMENT: (usize, usize) = (16, 8);

/// Size and alignment in bytes of a type code in memory: kind, and end and length of the encoded parameters.
pub(crate) const TYPE_CODE_SIZE_AND_ALIGNMENT: (usize, usize) = (12, 4);

/// Maximum size of a block. It prevents a wrong length in the data from exhausting the memory.
const MAX_BLOCK_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// The index of a block is its handle.
    blocks: Vec<Vec<u8>>,
    free_handles: Vec<usize>,
}

impl Heap {
    /// Allocates a block of at least `size` bytes with arbitrary contents, and returns its handle.
    #[inline(never)]
    pub(crate) fn allocate(&mut self, size: usize) -> Result<u64, Fault> {
        if size > MAX_BLOCK_BYTES {
            return Err(Fault::Memory);
        }
        let handle = self.free_handles.pop().unwrap_or_else(|| {
            self.blocks.push(Vec::new());
            self.blocks.len() - 1
        });
        if let Some(block) = self.blocks.get_mut(handle).filter(|block| block.len() < size) {
            block.resize(size, 0);
        }
        Ok(handle as u64)
    }

    /// Takes a block out of the heap, until it is [returned](Self::return_block).
    #[inline(never)]
    pub(crate) fn take_block(&mut self, handle: u64) -> Vec<u8> {
        self.blocks.get_mut(handle as usize).map(std::mem::take).unwrap_or_default()
    }

    #[inline(never)]
    pub(crate) fn return_block(&mut self, handle: u64, block: Vec<u8>) {
        if let Some(slot) = self.blocks.get_mut(handle as usize) {
            *slot = block;
        }
    }

    #[inline(never)]
    pub(crate) fn release(&mut self, handle: u64) {
        self.free_handles.push(handle as usize);
    }

    #[cfg(test)]
    pub(crate) fn used_blocks(&self) -> usize {
        self.blocks.len() - self.free_handles.len()
    }
}

/// Returns the length and the buffer of a sequence.
#[inline(always)]
pub(crate) fn load_sequence(value: &[u8]) -> Result<(u32, u64), Fault> {
    Ok((u32::from_ne_bytes(load(value, 4)?), u64::from_ne_bytes(load(value, 8)?)))
}

#[inline(always)]
pub(crate) fn store_sequence(value: &mut [u8], length: u32, buffer: u64) -> Status {
    store(value, 0, length.to_ne_bytes())?;
    store(value, 4, length.to_ne_bytes())?;
    store(value, 8, buffer.to_ne_bytes())
}

#[inline(always)]
pub(crate) fn load<const N: usize>(value: &[u8], at: usize) -> Result<[u8; N], Fault> {
    value.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(Fault::Memory)
}

#[inline(always)]
pub(crate) fn store<const N: usize>(value: &mut [u8], at: usize, bytes: [u8; N]) -> Status {
    *value.get_mut(at..).and_then(<[u8]>::first_chunk_mut).ok_or(Fault::Memory)? = bytes;
    Ok(())
}

/// Returns the bytes from `at` on, or an empty slice if `at` is out of bounds.
#[inline(always)]
pub(crate) fn tail(value: &mut [u8], at: usize) -> &mut [u8] {
    value.get_mut(at..).unwrap_or_default()
}

/// Returns the size and the alignment of a basic type or an enum; `None` for other kinds.
#[inline(always)]
pub(crate) fn basic_layout(kind: u32) -> Option<(usize, usize)> {
    Some(match kind {
        NULL | VOID => (0, 1),
        BOOLEAN | CHAR | OCTET => (1, 1),
        SHORT | USHORT => (2, 2),
        LONG | ULONG | FLOAT | ENUM => (4, 4),
        LONGLONG | ULONGLONG | DOUBLE => (8, 8),
        TYPE_CODE => TYPE_CODE_SIZE_AND_ALIGNMENT,
        _ => return None,
    })
}
