//! The stream: one call a value, each with its own alignment, its own check of what is left, and its own look at the
//! byte order.

use super::{ARRAY, ENUM, SEQUENCE, STRUCT};
use super::{Fault, Status, TypeCode};

/// Octets that are read, or written, from the first on.
pub struct Cdr<'a> {
    read: &'a [u8],
    written: Vec<u8>,
    next: usize,
    swap: bool,
}

impl<'a> Cdr<'a> {
    /// Reads these octets; `swap` if they are not in the byte order of this machine.
    pub fn reader(read: &'a [u8], swap: bool) -> Self {
        Self { read, written: Vec::new(), next: 0, swap }
    }

    /// Writes to this buffer, over what is in it, and makes it longer where it must.
    pub fn writer(written: Vec<u8>, swap: bool) -> Self {
        Self { read: &[], written, next: 0, swap }
    }

    /// Reads an encapsulation, whose first octet is its byte order.
    ///
    /// # Errors
    /// [`Fault::End`] if it is empty.
    pub fn encapsulation(octets: &'a [u8]) -> Result<Self, Fault> {
        let little = *octets.first().ok_or(Fault::End)? != 0;
        Ok(Self {
            read: octets,
            written: Vec::new(),
            next: 1,
            swap: little != cfg!(target_endian = "little"),
        })
    }

    /// How many octets were read or written.
    pub fn position(&self) -> usize {
        self.next
    }

    /// The buffer, of which [`position`](Self::position) octets are written.
    pub fn into_buffer(self) -> Vec<u8> {
        self.written
    }

    fn aligned(&self, size: usize) -> usize {
        self.next.wrapping_add(size - 1) & !(size - 1)
    }

    #[inline(never)]
    pub fn get_octet(&mut self) -> Result<u8, Fault> {
        let octet = *self.read.get(self.next).ok_or(Fault::End)?;
        self.next += 1;
        Ok(octet)
    }

    #[inline(never)]
    pub fn get_short(&mut self) -> Result<u16, Fault> {
        let at = self.aligned(2);
        let octets = self.read.get(at..).and_then(<[u8]>::first_chunk).ok_or(Fault::End)?;
        self.next = at + 2;
        let value = u16::from_ne_bytes(*octets);
        Ok(if self.swap { value.swap_bytes() } else { value })
    }

    #[inline(never)]
    pub fn get_long(&mut self) -> Result<u32, Fault> {
        let at = self.aligned(4);
        let octets = self.read.get(at..).and_then(<[u8]>::first_chunk).ok_or(Fault::End)?;
        self.next = at + 4;
        let value = u32::from_ne_bytes(*octets);
        Ok(if self.swap { value.swap_bytes() } else { value })
    }

    #[inline(never)]
    pub fn get_longlong(&mut self) -> Result<u64, Fault> {
        let at = self.aligned(8);
        let octets = self.read.get(at..).and_then(<[u8]>::first_chunk).ok_or(Fault::End)?;
        self.next = at + 8;
        let value = u64::from_ne_bytes(*octets);
        Ok(if self.swap { value.swap_bytes() } else { value })
    }

    #[inline(never)]
    pub fn put_octet(&mut self, value: u8) -> Status {
        *self.room(1)?.first_mut().ok_or(Fault::Memory)? = value;
        Ok(())
    }

    #[inline(never)]
    pub fn put_short(&mut self, value: u16) -> Status {
        let value = if self.swap { value.swap_bytes() } else { value };
        self.room(2)?.copy_from_slice(&value.to_ne_bytes());
        Ok(())
    }

    #[inline(never)]
    pub fn put_long(&mut self, value: u32) -> Status {
        let value = if self.swap { value.swap_bytes() } else { value };
        self.room(4)?.copy_from_slice(&value.to_ne_bytes());
        Ok(())
    }

    #[inline(never)]
    pub fn put_longlong(&mut self, value: u64) -> Status {
        let value = if self.swap { value.swap_bytes() } else { value };
        self.room(8)?.copy_from_slice(&value.to_ne_bytes());
        Ok(())
    }

    /// The next octets to write, aligned to their number.
    #[inline(always)]
    fn room(&mut self, size: usize) -> Result<&mut [u8], Fault> {
        let at = self.aligned(size);
        self.next = at + size;
        if self.next > self.written.len() {
            self.grow();
        }
        self.written.get_mut(at..at + size).ok_or(Fault::Memory)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.written.resize((2 * self.next).max(1 << 10), 0);
    }

    /// Goes behind a string.
    ///
    /// # Errors
    /// [`Fault::End`] if there is none.
    #[inline(never)]
    pub fn skip_string(&mut self) -> Status {
        let length = self.get_long()? as usize;
        self.take(length).map(drop)
    }

    /// A type code, of which the parameters stay where they are.
    ///
    /// # Errors
    /// [`Fault::Kind`] for kinds that this engine does not know, [`Fault::End`].
    #[inline(never)]
    pub fn get_type_code(&mut self) -> Result<TypeCode<'a>, Fault> {
        let kind = self.get_long()?;
        let parameters = match kind {
            0..=12 | 23 | 24 => &[],
            STRUCT | ENUM | SEQUENCE | ARRAY => {
                let length = self.get_long()? as usize;
                self.take(length)?
            }
            _ => return Err(Fault::Kind(kind)),
        };
        Ok(TypeCode::new(kind, parameters))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let taken = self.read.get(self.next..).and_then(|rest| rest.get(..length)).ok_or(Fault::End)?;
        self.next += length;
        Ok(taken)
    }
}
