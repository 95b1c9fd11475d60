//! The stream of encoded values, with inlined small routines.
//!
//! Swapping bytes is a separate routine, which is called only if the byte orders differ, so that the inlined
//! code is small. The published engine forced inlining by macros; this engine uses `inline(always)`. Skipping
//! a string and reading a type code remain calls, because they are too long for inlining.

use std::marker::PhantomData;

use super::kind::{ARRAY, ENUM, SEQUENCE, STRUCT};
use super::{CallCounter, Fault, Routine, Status, raise};

#[derive(Debug)]
pub(crate) struct Cdr<'a, T> {
    input: &'a [u8],
    output: Vec<u8>,
    next: usize,
    swaps_bytes: bool,
    counter: PhantomData<T>,
}

impl<'a, T: CallCounter> Cdr<'a, T> {
    /// Returns a reader of these bytes. If `swaps_bytes` is set, they are in the opposite byte order.
    pub(crate) fn reader(input: &'a [u8], swaps_bytes: bool) -> Self {
        Self { input, output: Vec::new(), next: 0, swaps_bytes, counter: PhantomData }
    }

    /// Returns a writer that overwrites this buffer, and extends it if necessary.
    pub(crate) fn writer(output: Vec<u8>, swaps_bytes: bool) -> Self {
        Self { input: &[], output, next: 0, swaps_bytes, counter: PhantomData }
    }

    /// Returns a reader of an encapsulation, whose first byte is its byte order.
    #[inline(always)]
    pub(crate) fn encapsulation(bytes: &'a [u8]) -> Result<Self, Fault> {
        let little = *bytes.first().ok_or(Fault::End)? != 0;
        let swaps_bytes = little != cfg!(target_endian = "little");
        Ok(Self { input: bytes, output: Vec::new(), next: 1, swaps_bytes, counter: PhantomData })
    }

    pub(crate) fn position(&self) -> usize {
        self.next
    }

    /// Returns the buffer, whose first [`position`](Self::position) bytes are the output.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.output
    }

    #[inline(always)]
    fn aligned(&self, size: usize) -> usize {
        self.next.wrapping_add(size - 1) & !(size - 1)
    }

    #[inline(always)]
    fn next_bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let at = self.aligned(N);
        let Some(bytes) = self.input.get(at..).and_then(<[u8]>::first_chunk) else {
            return Err(raise(Fault::End));
        };
        self.next = at + N;
        Ok(*bytes)
    }

    /// Returns the space for the next `N` bytes, aligned to `N`.
    #[inline(always)]
    fn next_space<const N: usize>(&mut self) -> Result<&mut [u8; N], Fault> {
        let at = self.aligned(N);
        self.next = at + N;
        if self.next > self.output.len() {
            self.grow();
        }
        match self.output.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            Some(space) => Ok(space),
            None => Err(raise(Fault::Memory)),
        }
    }

    /// Returns the bytes of the next number, in this machine's byte order.
    #[inline(always)]
    fn next_number<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = self.next_bytes()?;
        if self.swaps_bytes {
            swap_bytes::<T, N>(&mut bytes);
        }
        Ok(bytes)
    }

    /// Writes the bytes of a number, which are in this machine's byte order.
    #[inline(always)]
    fn put_number<const N: usize>(&mut self, mut bytes: [u8; N]) -> Status {
        if self.swaps_bytes {
            swap_bytes::<T, N>(&mut bytes);
        }
        *self.next_space()? = bytes;
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn get_octet(&mut self) -> Result<u8, Fault> {
        self.next_bytes().map(u8::from_ne_bytes)
    }

    #[inline(always)]
    pub(crate) fn get_short(&mut self) -> Result<u16, Fault> {
        self.next_number().map(u16::from_ne_bytes)
    }

    #[inline(always)]
    pub(crate) fn get_long(&mut self) -> Result<u32, Fault> {
        self.next_number().map(u32::from_ne_bytes)
    }

    #[inline(always)]
    pub(crate) fn get_longlong(&mut self) -> Result<u64, Fault> {
        self.next_number().map(u64::from_ne_bytes)
    }

    #[inline(always)]
    pub(crate) fn put_octet(&mut self, value: u8) -> Status {
        *self.next_space()? = [value];
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn put_short(&mut self, value: u16) -> Status {
        self.put_number(value.to_ne_bytes())
    }

    #[inline(always)]
    pub(crate) fn put_long(&mut self, value: u32) -> Status {
        self.put_number(value.to_ne_bytes())
    }

    #[inline(always)]
    pub(crate) fn put_longlong(&mut self, value: u64) -> Status {
        self.put_number(value.to_ne_bytes())
    }

    /// Returns the bytes of `count` consecutive numbers of `size` bytes, with a single bounds check.
    #[inline(always)]
    pub(crate) fn get_run(&mut self, count: usize, size: usize) -> Result<&'a [u8], Fault> {
        if count > 0 {
            self.next = self.aligned(size);
        }
        self.take(count.saturating_mul(size))
    }

    /// Returns the space for `count` consecutive numbers of `size` bytes.
    #[inline(always)]
    pub(crate) fn put_run(&mut self, count: usize, size: usize) -> Result<&mut [u8], Fault> {
        if count > 0 {
            self.next = self.aligned(size);
        }
        let at = self.next;
        self.next = at.saturating_add(count.saturating_mul(size));
        if self.next > self.output.len() {
            self.grow();
        }
        self.output.get_mut(at..self.next).ok_or(Fault::Memory)
    }

    pub(crate) fn swaps_bytes(&self) -> bool {
        self.swaps_bytes
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.output.resize((2 * self.next).max(1 << 10), 0);
    }

    #[inline(never)]
    pub(crate) fn skip_string(&mut self) -> Status {
        T::count(Routine::SkipString);
        let length = self.get_long()? as usize;
        self.take(length).map(drop)
    }

    /// Reads a type code. Returns its kind, and its parameters without copying them.
    #[inline(never)]
    pub(crate) fn get_type_code(&mut self) -> Result<(u32, &'a [u8]), Fault> {
        T::count(Routine::GetTypeCode);
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
        let taken = self.input.get(self.next..).and_then(|rest| rest.get(..length)).ok_or(Fault::End)?;
        self.next += length;
        Ok(taken)
    }
}

#[inline(never)]
fn swap_bytes<T: CallCounter, const N: usize>(bytes: &mut [u8; N]) {
    T::count(Routine::Swap);
    bytes.reverse();
}
