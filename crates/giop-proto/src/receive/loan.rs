//! Memory that the reader of a stream lends, so that the payload is read into it directly.
//!
//! A [`DepositTarget`] provides the memory. While it is lent, a [`Loan`] owns it, which moves from the reader
//! of the stream to the receiver, and with a [`ReadBuf`](super::ReadBuf) to the code that reads the socket.
//! It returns when the memory is full, the stream has ended, or the target failed. Nothing else uses it until
//! then.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;

use super::memory::grant;
use crate::pool::{BASE_ALIGN, Buffer, BufferPool};

/// Memory into which the bytes of a stream are read, such as a buffer of the servant's own pool, a
/// memory-mapped file, or memory shared with a device.
///
/// Every type that implements `AsMut<[u8]>` is a target, such as `Vec<u8>`, `Box<[u8]>`, `BytesMut` and
/// `memmap2::MmapMut`. It accepts as many bytes as its length, from its first byte on, and rejects a longer
/// stream.
///
/// The code that reads the socket owns the target until the read has completed. The kernel may write to the
/// memory returned by [`room`](Self::room) until another method of the target is called or it is dropped.
pub trait DepositTarget: Send + 'static {
    /// Returns the memory for the bytes after the first `at` bytes of the stream. `left` more bytes are to be
    /// received. The memory must have at least one byte; bytes beyond `left` are not used.
    ///
    /// The method may be called several times with the same `at`, and must then return the same memory. It is
    /// called while the connection is read, with io_uring while the connection is locked. Therefore, it must
    /// be fast and must not wait for a task that uses the connection.
    ///
    /// # Errors
    /// The reason why the stream is rejected or cannot continue. An empty slice is also an error.
    fn room(&mut self, at: u64, left: u64) -> io::Result<&mut [u8]>;

    /// Called when `n` bytes, after the first `at` bytes of the stream, have been received.
    ///
    /// # Errors
    /// The reason why the stream cannot continue.
    fn filled(&mut self, at: u64, n: usize) -> io::Result<()> {
        let _ = (at, n);
        Ok(())
    }
}

impl<T: AsMut<[u8]> + Send + 'static> DepositTarget for T {
    fn room(&mut self, at: u64, left: u64) -> io::Result<&mut [u8]> {
        let bytes = self.as_mut();
        let (len, from) = (bytes.len(), usize::try_from(at).unwrap_or(usize::MAX));
        let room = bytes.get_mut(from..).unwrap_or_default();
        if left > room.len() as u64 {
            let all = at.saturating_add(left);
            let text = format!("a stream of {all} bytes does not fit in the {len} bytes of its target");
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        Ok(room)
    }
}

trait Target: DepositTarget + std::any::Any {}

impl<T: DepositTarget> Target for T {}

/// A target that is lent to a connection: see `IncomingStream::lend`.
pub struct Loan {
    target: Box<dyn Target>,
    /// The number of bytes of the stream before the lent memory.
    at: u64,
    /// The number of bytes of the stream from `at` on.
    left: u64,
    pub(super) len: usize,
    pub(super) filled: usize,
    error: Option<io::Error>,
}

impl Loan {
    /// Creates a loan for the bytes after the first `at` bytes, of which `left` are still missing.
    ///
    /// # Errors
    /// The target, and the reason why it provides no memory.
    pub fn new<T: DepositTarget>(
        target: Box<T>,
        at: u64,
        left: u64,
    ) -> Result<Box<Self>, (Box<T>, io::Error)> {
        let mut target = target;
        match room_of(&mut *target, at, left) {
            Ok(room) => {
                let len = room.len();
                Ok(Box::new(Self { target, at, left, len, filled: 0, error: None }))
            }
            Err(error) => Err((target, error)),
        }
    }

    /// Returns the target, the number of bytes read into it, and its error. `None` if it is not a `T`.
    #[must_use]
    pub fn end<T: DepositTarget>(self) -> Option<(Box<T>, usize, Option<io::Error>)> {
        let target = (self.target as Box<dyn std::any::Any>).downcast().ok()?;
        Some((target, self.filled, self.error))
    }

    /// Returns the bytes `start..end` of the lent memory. Runs the target's code. If the target fails,
    /// returns an empty slice; [`end`](Self::end) then returns the error.
    pub(super) fn bytes(&mut self, start: usize, end: usize) -> &mut [u8] {
        let Self { target, at, left, error, .. } = self;
        // A panic of the target must not end the connection.
        let args = AssertUnwindSafe((target.as_mut(), *at, *left));
        let room = catch_unwind(move || room_of_guarded(args));
        let reason = match room.unwrap_or_else(|_| Err(io::Error::other("the target panicked"))) {
            Ok(room) if room.len() >= end => return room.get_mut(start..end).unwrap_or_default(),
            Ok(_) => io::Error::other("the target returned less memory than before"),
            Err(reason) => reason,
        };
        *error = Some(reason);
        &mut []
    }

    pub(super) fn is_done(&self) -> bool {
        self.filled >= self.len || self.error.is_some()
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The target may be in use by the kernel.
        f.debug_struct("Loan").field("len", &self.len).field("filled", &self.filled).finish_non_exhaustive()
    }
}

fn room_of_guarded(args: AssertUnwindSafe<(&mut dyn Target, u64, u64)>) -> io::Result<&mut [u8]> {
    let AssertUnwindSafe((target, at, left)) = args;
    room_of(target, at, left)
}

/// Returns between 1 and `left` bytes of the target's memory.
fn room_of<T: DepositTarget + ?Sized>(target: &mut T, at: u64, left: u64) -> io::Result<&mut [u8]> {
    let room = target.room(at, left)?;
    let len = usize::try_from(left).unwrap_or(usize::MAX).min(room.len());
    match room.get_mut(..len) {
        Some(room) if !room.is_empty() => Ok(room),
        _ => Err(io::Error::new(io::ErrorKind::StorageFull, "the target has no room")),
    }
}

/// The result of [`Input::take_loan`](crate::Input::take_loan).
#[derive(Debug)]
pub enum LoanReturn {
    /// The lent memory.
    Loan(Box<Loan>),
    /// The lent memory has not been returned yet.
    Pending,
    /// Nothing was lent, or the lent memory is lost because the code that reads the socket did not return it.
    Nothing,
}

#[derive(Debug, Default)]
pub(super) enum LoanPlace {
    #[default]
    None,
    /// In the receiver, which will lend it for the next read.
    Ready(Box<Loan>),
    /// In the buffer of the code that reads the socket. `is_awaited` is true if the stream's reader waits for
    /// it.
    Lent { is_awaited: bool },
    /// In the receiver, for the reader of the stream to take back.
    Returned(Box<Loan>),
}

/// A buffer of a pool in which the payload starts at an address with a requested alignment.
///
/// Only a part of it occupies memory before the payload has been received: the maximum of 64 KiB, four times
/// the received part, and the size of the largest message that the connection has received.
#[derive(Debug)]
pub struct AlignedBuffer {
    pool: Arc<BufferPool>,
    buffer: Buffer,
    start: usize,
    len: usize,
    largest_received: usize,
}

impl AlignedBuffer {
    /// The maximum alignment in bytes.
    pub const MAX_ALIGN: usize = 64 * 1024;

    /// Creates a buffer for `len` bytes that start at a multiple of `align`. `align` must be a power of two
    /// up to [`MAX_ALIGN`](Self::MAX_ALIGN). `largest_received` is the result of
    /// `Input::largest_received_bytes`.
    /// Returns `None` if the pool has no memory at present.
    #[must_use]
    pub fn take(pool: &Arc<BufferPool>, len: usize, align: usize, largest_received: usize) -> Option<Self> {
        let size = len.checked_add(align.saturating_sub(BASE_ALIGN))?;
        let first = grant(0, largest_received).saturating_add(align);
        let buffer =
            if pool.can_hold(size) { pool.try_take_granted(size, first)? } else { pool.take_unpooled(size) };
        // The address is used as a number only; nothing is read through it.
        let start = buffer.bytes().as_ptr().addr().wrapping_neg() % align.max(1);
        Some(Self { pool: Arc::clone(pool), buffer, start, len, largest_received })
    }

    /// Returns the payload. Its memory is returned to the pool when the last view of it is dropped.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        let bytes = self.pool.share(std::mem::take(&mut self.buffer));
        bytes.slice(self.start..self.start + self.len)
    }
}

impl DepositTarget for AlignedBuffer {
    fn room(&mut self, at: u64, _: u64) -> io::Result<&mut [u8]> {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.len);
        let to = self.len.min(grant(at, self.largest_received));
        // A payload that has started must continue, even beyond the pool's limit.
        let all = if to == self.len { usize::MAX } else { self.start + to + BASE_ALIGN };
        let _ = self.pool.charge_more(&mut self.buffer, all);
        let room = self.buffer.writable_range(self.start + at..self.start + to);
        Ok(room.unwrap_or_default())
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.buffer));
    }
}
