//! Values in C's memory layout: numbers at their alignment, a sequence as `{ maximum, length, buffer }`.
//!
//! A buffer is a block of the [`Heap`], identified by a number. While a block is walked it is lent out, so
//! that an element is one slice, as an address is one register. Freed blocks are reused without clearing:
//! neither fresh pages nor zeroing cost time.

use super::kind::*;
use super::{Fault, Status};

/// Size and alignment of a sequence in memory, bytes.
pub const SEQUENCE_SIZE: (usize, usize) = (16, 8);

/// Size and alignment of a type code in memory, bytes: its kind, and offset and length of its parameters.
pub const TYPE_CODE_SIZE: (usize, usize) = (12, 4);

/// Size of the largest block. A wrong length results in an error instead of exhausted memory.
const LARGEST: usize = 4 << 20;

/// The allocator of the buffers.
#[derive(Debug, Default)]
pub struct Heap {
    blocks: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl Heap {
    /// Returns a block of at least `size` bytes with arbitrary contents.
    ///
    /// # Errors
    /// [`Fault::Memory`] if it would be too large.
    #[inline(never)]
    pub fn allocate(&mut self, size: usize) -> Result<u64, Fault> {
        if size > LARGEST {
            return Err(Fault::Memory);
        }
        let handle = self.free.pop().unwrap_or_else(|| {
            self.blocks.push(Vec::new());
            self.blocks.len() - 1
        });
        if let Some(block) = self.blocks.get_mut(handle).filter(|block| block.len() < size) {
            block.resize(size, 0);
        }
        Ok(handle as u64)
    }

    /// Lends a block. Its slot is empty until it is [put back](Self::put_back).
    #[inline(never)]
    pub fn lend(&mut self, handle: u64) -> Vec<u8> {
        self.blocks.get_mut(handle as usize).map(std::mem::take).unwrap_or_default()
    }

    /// Puts back a lent block.
    #[inline(never)]
    pub fn put_back(&mut self, handle: u64, block: Vec<u8>) {
        if let Some(place) = self.blocks.get_mut(handle as usize) {
            *place = block;
        }
    }

    /// Frees a block for reuse.
    #[inline(never)]
    pub fn release(&mut self, handle: u64) {
        self.free.push(handle as usize);
    }

    /// Returns the number of blocks that are not free.
    pub fn used(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}

/// Returns length and buffer of the sequence at this address.
///
/// # Errors
/// [`Fault::Memory`] if the memory is too short.
#[inline(always)]
pub fn sequence(value: &[u8]) -> Result<(u32, u64), Fault> {
    Ok((u32::from_ne_bytes(load(value, 4)?), u64::from_ne_bytes(load(value, 8)?)))
}

/// Writes length and buffer of a sequence.
///
/// # Errors
/// [`Fault::Memory`] if the memory is too short.
#[inline(always)]
pub fn store_sequence(value: &mut [u8], length: u32, buffer: u64) -> Status {
    store(value, 0, length.to_ne_bytes())?;
    store(value, 4, length.to_ne_bytes())?;
    store(value, 8, buffer.to_ne_bytes())
}

/// Returns the bytes of a number.
///
/// # Errors
/// [`Fault::Memory`] if the memory is too short.
#[inline(always)]
pub fn load<const N: usize>(value: &[u8], at: usize) -> Result<[u8; N], Fault> {
    value.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(Fault::Memory)
}

/// Writes the bytes of a number.
///
/// # Errors
/// [`Fault::Memory`] if the memory is too short.
#[inline(always)]
pub fn store<const N: usize>(value: &mut [u8], at: usize, octets: [u8; N]) -> Status {
    *value.get_mut(at..).and_then(<[u8]>::first_chunk_mut).ok_or(Fault::Memory)? = octets;
    Ok(())
}

/// Returns the bytes from `at` on, or an empty slice if `at` is out of bounds.
#[inline(always)]
pub fn at(value: &mut [u8], at: usize) -> &mut [u8] {
    value.get_mut(at..).unwrap_or_default()
}

/// Returns size and alignment of types without parameters, and of enums.
#[inline(always)]
pub fn basic(kind: u32) -> Option<(usize, usize)> {
    Some(match kind {
        NULL | VOID => (0, 1),
        BOOLEAN | CHAR | OCTET => (1, 1),
        SHORT | USHORT => (2, 2),
        LONG | ULONG | FLOAT | ENUM => (4, 4),
        LONGLONG | ULONGLONG | DOUBLE => (8, 8),
        TYPE_CODE => TYPE_CODE_SIZE,
        _ => return None,
    })
}
