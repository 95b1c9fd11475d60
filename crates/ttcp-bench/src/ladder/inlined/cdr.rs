//! The stream, whose small routines are inlined; in the original they were calls.
//!
//! Swapping the byte order is a separate routine, called where the orders differ, so that the inlined part is
//! small. The original needed macros to force inlining; here `inline(always)` does it. Skipping a string and
//! reading a type code remain calls, because they are too long for inlining.

use std::marker::PhantomData;

use super::kind::{ARRAY, ENUM, SEQUENCE, STRUCT};
use super::{Fault, Routine, Status, Tally, rare};

/// Bytes that are read or written, starting with the first.
#[derive(Debug)]
pub struct Cdr<'a, T> {
    read: &'a [u8],
    written: Vec<u8>,
    next: usize,
    swap: bool,
    tally: PhantomData<T>,
}

impl<'a, T: Tally> Cdr<'a, T> {
    /// Returns a reader of these bytes; `swap` if they are not in this machine's byte order.
    pub fn reader(read: &'a [u8], swap: bool) -> Self {
        Self { read, written: Vec::new(), next: 0, swap, tally: PhantomData }
    }

    /// Returns a writer that overwrites this buffer and extends it where needed.
    pub fn writer(written: Vec<u8>, swap: bool) -> Self {
        Self { read: &[], written, next: 0, swap, tally: PhantomData }
    }

    /// Returns a reader of an encapsulation, whose first byte is its byte order.
    ///
    /// # Errors
    /// [`Fault::End`] if it is empty.
    #[inline(always)]
    pub fn encapsulation(octets: &'a [u8]) -> Result<Self, Fault> {
        let little = *octets.first().ok_or(Fault::End)? != 0;
        let swap = little != cfg!(target_endian = "little");
        Ok(Self { read: octets, written: Vec::new(), next: 1, swap, tally: PhantomData })
    }

    /// Returns the number of bytes that were read or written.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Returns the buffer, of which [`position`](Self::position) bytes are written.
    pub fn into_buffer(self) -> Vec<u8> {
        self.written
    }

    #[inline(always)]
    fn aligned(&self, size: usize) -> usize {
        self.next.wrapping_add(size - 1) & !(size - 1)
    }

    #[inline(always)]
    fn next_octets<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let at = self.aligned(N);
        let Some(octets) = self.read.get(at..).and_then(<[u8]>::first_chunk) else {
            return Err(rare(Fault::End));
        };
        self.next = at + N;
        Ok(*octets)
    }

    /// Returns the next `N` bytes to write, aligned to `N`.
    #[inline(always)]
    fn room<const N: usize>(&mut self) -> Result<&mut [u8; N], Fault> {
        let at = self.aligned(N);
        self.next = at + N;
        if self.next > self.written.len() {
            self.grow();
        }
        match self.written.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => Ok(room),
            None => Err(rare(Fault::Memory)),
        }
    }

    /// Reads an `octet`.
    ///
    /// # Errors
    /// [`Fault::End`].
    #[inline(always)]
    pub fn get_octet(&mut self) -> Result<u8, Fault> {
        self.next_octets().map(u8::from_ne_bytes)
    }

    /// Reads a number of 2 bytes.
    ///
    /// # Errors
    /// [`Fault::End`].
    #[inline(always)]
    pub fn get_short(&mut self) -> Result<u16, Fault> {
        let mut octets = self.next_octets()?;
        if self.swap {
            swapped::<T, 2>(&mut octets);
        }
        Ok(u16::from_ne_bytes(octets))
    }

    /// Reads a number of 4 bytes.
    ///
    /// # Errors
    /// [`Fault::End`].
    #[inline(always)]
    pub fn get_long(&mut self) -> Result<u32, Fault> {
        let mut octets = self.next_octets()?;
        if self.swap {
            swapped::<T, 4>(&mut octets);
        }
        Ok(u32::from_ne_bytes(octets))
    }

    /// Reads a number of 8 bytes.
    ///
    /// # Errors
    /// [`Fault::End`].
    #[inline(always)]
    pub fn get_longlong(&mut self) -> Result<u64, Fault> {
        let mut octets = self.next_octets()?;
        if self.swap {
            swapped::<T, 8>(&mut octets);
        }
        Ok(u64::from_ne_bytes(octets))
    }

    /// Writes an `octet`.
    ///
    /// # Errors
    /// None: a stream grows.
    #[inline(always)]
    pub fn put_octet(&mut self, value: u8) -> Status {
        *self.room()? = [value];
        Ok(())
    }

    /// Writes a number of 2 bytes.
    ///
    /// # Errors
    /// None: a stream grows.
    #[inline(always)]
    pub fn put_short(&mut self, value: u16) -> Status {
        let mut octets = value.to_ne_bytes();
        if self.swap {
            swapped::<T, 2>(&mut octets);
        }
        *self.room()? = octets;
        Ok(())
    }

    /// Writes a number of 4 bytes.
    ///
    /// # Errors
    /// None: a stream grows.
    #[inline(always)]
    pub fn put_long(&mut self, value: u32) -> Status {
        let mut octets = value.to_ne_bytes();
        if self.swap {
            swapped::<T, 4>(&mut octets);
        }
        *self.room()? = octets;
        Ok(())
    }

    /// Writes a number of 8 bytes.
    ///
    /// # Errors
    /// None: a stream grows.
    #[inline(always)]
    pub fn put_longlong(&mut self, value: u64) -> Status {
        let mut octets = value.to_ne_bytes();
        if self.swap {
            swapped::<T, 8>(&mut octets);
        }
        *self.room()? = octets;
        Ok(())
    }

    /// Returns the bytes of `count` numbers, from the aligned position of the first: one bounds check for
    /// all.
    ///
    /// # Errors
    /// [`Fault::End`].
    #[inline(always)]
    pub fn get_run(&mut self, count: usize, size: usize) -> Result<&'a [u8], Fault> {
        if count > 0 {
            self.next = self.aligned(size);
        }
        self.take(count.saturating_mul(size))
    }

    /// Returns the space for `count` numbers, from the aligned position of the first.
    ///
    /// # Errors
    /// [`Fault::Memory`] if these are too many.
    #[inline(always)]
    pub fn put_run(&mut self, count: usize, size: usize) -> Result<&mut [u8], Fault> {
        if count > 0 {
            self.next = self.aligned(size);
        }
        let at = self.next;
        self.next = at.saturating_add(count.saturating_mul(size));
        if self.next > self.written.len() {
            self.grow();
        }
        self.written.get_mut(at..self.next).ok_or(Fault::Memory)
    }

    /// Returns whether numbers are in the other byte order.
    pub fn swaps(&self) -> bool {
        self.swap
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.written.resize((2 * self.next).max(1 << 10), 0);
    }

    /// Skips a string.
    ///
    /// # Errors
    /// [`Fault::End`] if there is none.
    #[inline(never)]
    pub fn skip_string(&mut self) -> Status {
        T::call(Routine::SkipString);
        let length = self.get_long()? as usize;
        self.take(length).map(drop)
    }

    /// Returns the kind and the parameters of a type code, which are not copied.
    ///
    /// # Errors
    /// [`Fault::Kind`] for kinds that this engine does not support, [`Fault::End`].
    #[inline(never)]
    pub fn get_type_code(&mut self) -> Result<(u32, &'a [u8]), Fault> {
        T::call(Routine::GetTypeCode);
        let kind = self.get_long()?;
        let parameters = match kind {
            0..=12 | 23 | 24 => &[][..],
            STRUCT | ENUM | SEQUENCE | ARRAY => {
                let length = self.get_long()? as usize;
                self.take(length)?
            }
            _ => return Err(Fault::Kind(kind)),
        };
        Ok((kind, parameters))
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let taken = self.read.get(self.next..).and_then(|rest| rest.get(..length)).ok_or(Fault::End)?;
        self.next += length;
        Ok(taken)
    }
}

#[inline(never)]
fn swapped<T: Tally, const N: usize>(octets: &mut [u8; N]) {
    T::call(Routine::Swap);
    octets.reverse();
}
