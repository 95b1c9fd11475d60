//! Memory provided by the reader of a stream: the payload is read directly into it.
//!
//! A [`Loan`] moves from the reader of the stream to the receiver and, with a buffer, to the reader of the
//! socket. It returns when the lent memory is full, the stream has ended, or the target failed. Nothing else
//! accesses or drops the target meanwhile.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;

use super::memory::grant;
use crate::pool::{BASE_ALIGN, Buffer, BufferPool};

/// Memory into which the bytes of a stream are read: a buffer of the servant's own pool, a memory-mapped
/// file, or memory shared with a device.
///
/// Every type that implements `AsMut<[u8]>` is one: `Vec<u8>`, `Box<[u8]>`, `BytesMut`, `memmap2::MmapMut`.
/// It accepts as many bytes as its length, from the first byte on, keeps its length, and rejects a longer
/// stream.
///
/// The reader of the socket owns the target until the read has completed. The kernel may write to the memory
/// returned by [`room`](Self::room) until the next method of the target is called, or the target is dropped.
pub trait DepositTarget: Send + 'static {
    /// Returns the memory for the bytes after the first `at` ones, of which `left` are still to be received.
    /// It must have at least one byte; bytes beyond `left` are not used.
    ///
    /// It is called repeatedly, mostly with the same `at`, and must then return the same memory. It is called
    /// while the connection is read, over an io_uring under the connection's lock. It must therefore be fast
    /// and must not wait for a task that uses the connection.
    ///
    /// # Errors
    /// The stream is rejected, or cannot continue. Returning no memory is also such an error.
    fn room(&mut self, at: u64, left: u64) -> io::Result<&mut [u8]>;

    /// Notes that `n` bytes after the first `at` ones have been received.
    ///
    /// # Errors
    /// The stream cannot continue.
    fn filled(&mut self, at: u64, n: usize) -> io::Result<()> {
        let _ = (at, n);
        Ok(())
    }
}

impl<T: AsMut<[u8]> + Send + 'static> DepositTarget for T {
    fn room(&mut self, at: u64, left: u64) -> io::Result<&mut [u8]> {
        let octets = self.as_mut();
        let (len, from) = (octets.len(), usize::try_from(at).unwrap_or(usize::MAX));
        let room = octets.get_mut(from..).unwrap_or_default();
        if left > room.len() as u64 {
            let all = at.saturating_add(left);
            let text = format!("{all} octets do not fit the {len} that are provided");
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        Ok(room)
    }
}

/// A type-erased target.
trait Target: DepositTarget + Any {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: DepositTarget> Target for T {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A target that is lent to a connection: see `Connection::lend`.
pub struct Loan {
    target: Box<dyn Target>,
    /// The number of bytes of the stream that were received before.
    at: u64,
    left: u64,
    /// The number of bytes that it lends.
    pub(super) len: usize,
    /// The number of these bytes that have been received.
    pub(super) filled: usize,
    failed: Option<io::Error>,
}

impl Loan {
    /// Creates a loan of the memory after the first `at` bytes, of which `left` are still to be received.
    /// Queries the target's room.
    ///
    /// # Errors
    /// The target, and the reason why it has no room.
    pub fn new<T: DepositTarget>(
        target: Box<T>,
        at: u64,
        left: u64,
    ) -> Result<Box<Self>, (Box<T>, io::Error)> {
        let mut target = target;
        match room_of(&mut *target, at, left) {
            Ok(room) => {
                let len = room.len();
                Ok(Box::new(Self { target, at, left, len, filled: 0, failed: None }))
            }
            Err(error) => Err((target, error)),
        }
    }

    /// Returns the target, the number of bytes received, and the error because of which it could not
    /// continue, if any. Returns `None` if the target is of another type.
    #[must_use]
    pub fn end<T: DepositTarget>(self) -> Option<(Box<T>, usize, Option<io::Error>)> {
        let target = self.target.into_any().downcast().ok()?;
        Some((target, self.filled, self.failed))
    }

    /// Returns the bytes `from..to` of the lent memory. Empty if the target no longer provides it; the error
    /// is then reported when the loan is returned. Runs the target's code.
    pub(super) fn octets(&mut self, from: usize, to: usize) -> &mut [u8] {
        let Self { target, at, left, failed, .. } = self;
        // A panic of the target must not become one of the connection.
        let asked = AssertUnwindSafe((target.as_mut(), *at, *left));
        let room = catch_unwind(move || ask(asked));
        match room.unwrap_or_else(|_| Err(io::Error::other("the target panicked"))) {
            Ok(room) if room.len() >= to => room.get_mut(from..to).unwrap_or_default(),
            Ok(_) => {
                *failed = Some(io::Error::other("the target gives less room than before"));
                &mut []
            }
            Err(error) => {
                *failed = Some(error);
                &mut []
            }
        }
    }

    /// Returns whether nothing more can be read into it.
    pub(super) fn is_over(&self) -> bool {
        self.filled >= self.len || self.failed.is_some()
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The target may be in use by the kernel.
        f.debug_struct("Loan").field("len", &self.len).field("filled", &self.filled).finish_non_exhaustive()
    }
}

fn ask(asked: AssertUnwindSafe<(&mut dyn Target, u64, u64)>) -> io::Result<&mut [u8]> {
    let AssertUnwindSafe((target, at, left)) = asked;
    room_of(target, at, left)
}

/// Returns at most `left` bytes of room, and at least one.
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
    /// It has not been returned yet.
    Pending,
    /// Nothing was lent, or it is lost because the reader keeps it.
    Nothing,
}

/// The location of the loan.
#[derive(Debug, Default)]
pub(super) enum LoanPlace {
    /// There is no loan.
    #[default]
    Nowhere,
    /// With the receiver, to be read into.
    Waiting(Box<Loan>),
    /// With the reader of the socket. True if the loan is awaited.
    Lent(bool),
    /// With the receiver, to be taken back.
    Back(Box<Loan>),
}

/// A buffer of a pool in which the first byte of the payload has a requested alignment.
///
/// It uses as much of the pool's memory as four times the received part of the payload, or as the connection
/// may use at once.
#[derive(Debug)]
pub struct AlignedBuffer {
    pool: Arc<BufferPool>,
    buffer: Buffer,
    start: usize,
    len: usize,
    largest: usize,
}

impl AlignedBuffer {
    /// The maximum alignment.
    pub const MAX_ALIGN: usize = 64 * 1024;

    /// Creates a buffer for `len` bytes, the first of which is at a multiple of `align`, a power of two up to
    /// [`MAX_ALIGN`](Self::MAX_ALIGN). `granted` is the result of `Input::granted`. Returns `None` if
    /// the pool has no memory at present.
    #[must_use]
    pub fn take(pool: &Arc<BufferPool>, len: usize, align: usize, granted: usize) -> Option<Self> {
        let size = len.checked_add(align.saturating_sub(BASE_ALIGN))?;
        let first = grant(0, granted).saturating_add(align);
        let buffer = if !pool.could_hold(size) {
            pool.take_unpooled(size)
        } else if size <= first {
            pool.try_take(size)?
        } else {
            pool.take_growing(size, first)?
        };
        // The address is used as a number only; nothing is read through it.
        let start = buffer.octets().as_ptr().addr().wrapping_neg() % align.max(1);
        Some(Self { pool: Arc::clone(pool), buffer, start, len, largest: granted })
    }

    /// Returns the payload. Its memory returns to the pool with the last view of it.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        let octets = self.pool.share(std::mem::take(&mut self.buffer));
        octets.slice(self.start..self.start + self.len)
    }
}

impl DepositTarget for AlignedBuffer {
    fn room(&mut self, at: u64, _: u64) -> io::Result<&mut [u8]> {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.len);
        let to = self.len.min(grant(at, self.largest));
        // A started payload always continues: if the pool has no more, the rest is not charged, and not kept
        // afterwards.
        let all = if to == self.len { usize::MAX } else { self.start + to + BASE_ALIGN };
        let _ = self.pool.charge_more(&mut self.buffer, all);
        let room = self.buffer.room(self.start + at..self.start + to);
        Ok(room.unwrap_or_default())
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.buffer));
    }
}
