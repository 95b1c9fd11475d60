//! The stream of encoded values. Each value costs a call with alignment, bounds check and byte order check.

use std::marker::PhantomData;

use super::kind::{ARRAY, ENUM, SEQUENCE, STRUCT};
use super::{CallCounter, Fault, Routine, Status};

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

    #[inline(never)]
    pub(crate) fn get_octet(&mut self) -> Result<u8, Fault> {
        T::count(Routine::Get);
        let octet = *self.input.get(self.next).ok_or(Fault::End)?;
        self.next += 1;
        Ok(octet)
    }

    #[inline(never)]
    pub(crate) fn get_short(&mut self) -> Result<u16, Fault> {
        T::count(Routine::Get);
        let at = self.aligned(2);
        let bytes = self.input.get(at..).and_then(<[u8]>::first_chunk).ok_or(Fault::End)?;
        self.next = at + 2;
        let value = u16::from_ne_bytes(*bytes);
        Ok(if self.swaps_bytes { value.swap_bytes() } else { value })
    }

    #[inline(never)]
    pub(crate) fn get_long(&mut self) -> Result<u32, Fault> {
        T::count(Routine::Get);
        let at = self.aligned(4);
        let bytes = self.input.get(at..).and_then(<[u8]>::first_chunk).ok_or(Fault::End)?;
        self.next = at + 4;
        let value = u32::from_ne_bytes(*bytes);
        Ok(if self.swaps_bytes { value.swap_bytes() } else { value })
    }

    #[inline(never)]
    pub(crate) fn get_longlong(&mut self) -> Result<u64, Fault> {
        T::count(Routine::Get);
        let at = self.aligned(8);
        let bytes = self.input.get(at..).and_then(<[u8]>::first_chunk).ok_or(Fault::End)?;
        self.next = at + 8;
        let value = u64::from_ne_bytes(*bytes);
        Ok(if self.swaps_bytes { value.swap_bytes() } else { value })
    }

    #[inline(never)]
    pub(crate) fn put_octet(&mut self, value: u8) -> Status {
        T::count(Routine::Put);
        *self.next_space(1)?.first_mut().ok_or(Fault::Memory)? = value;
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn put_short(&mut self, value: u16) -> Status {
        T::count(Routine::Put);
        let value = if self.swaps_bytes { value.swap_bytes() } else { value };
        self.next_space(2)?.copy_from_slice(&value.to_ne_bytes());
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn put_long(&mut self, value: u32) -> Status {
        T::count(Routine::Put);
        let value = if self.swaps_bytes { value.swap_bytes() } else { value };
        self.next_space(4)?.copy_from_slice(&value.to_ne_bytes());
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn put_longlong(&mut self, value: u64) -> Status {
        T::count(Routine::Put);
        let value = if self.swaps_bytes { value.swap_bytes() } else { value };
        self.next_space(8)?.copy_from_slice(&value.to_ne_bytes());
        Ok(())
    }

    /// Returns the space for the next `size` bytes, aligned to `size`.
    #[inline(always)]
    fn next_space(&mut self, size: usize) -> Result<&mut [u8], Fault> {
        let at = self.aligned(size);
        self.next = at + size;
        if self.next > self.output.len() {
            self.grow();
        }
        self.output.get_mut(at..at + size).ok_or(Fault::Memory)
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
