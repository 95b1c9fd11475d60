//! Memory that whoever takes a stream provides: the payload is read straight into it.
//!
//! A [`Loan`] goes round: from whoever takes the stream to the receiver, with a buffer to the reader, and back when what it
//! lent is full, the stream is over, or the target failed. Nobody else has the target meanwhile, and nobody drops it.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;

use super::memory::grant;
use crate::pool::{BASE_ALIGN, Buffer, BufferPool};

/// Memory into which the octets of a stream are read: a buffer of the servant's own pool, a memory-mapped file, memory that a
/// device sees.
///
/// Everything that lends its octets by `AsMut<[u8]>` is one: `Vec<u8>`, `Box<[u8]>`, `BytesMut`, `memmap2::MmapMut`. It takes as
/// many octets as it has, from its first on, keeps its length, and refuses a stream with more.
///
/// Whoever reads owns the target until the reading is over: the kernel may write to the memory that [`room`](Self::room) gave
/// until a method of the target is called next, or it is dropped.
pub trait DepositTarget: Send + 'static {
    /// Where the octets behind the first `at` ones go, `left` of which are still to come: at least one octet of memory; more than
    /// `left` are not used. It is asked again, mostly with the same `at`, and then gives the same memory. It is asked where the
    /// connection is read, over an io_uring under its lock, so it must be quick and not wait for whoever uses the connection.
    ///
    /// # Errors
    /// The stream is refused, or can not go on. No memory at all is such an error as well.
    fn room(&mut self, at: u64, left: u64) -> io::Result<&mut [u8]>;

    /// `n` octets behind the first `at` ones are there now.
    ///
    /// # Errors
    /// The stream can not go on.
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

/// A target of some type.
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
    /// Octets of the stream that it had before.
    at: u64,
    left: u64,
    /// How many octets it lends.
    pub(super) len: usize,
    /// How many of them are there.
    pub(super) filled: usize,
    failed: Option<io::Error>,
}

impl Loan {
    /// The memory behind the first `at` octets, `left` of which are still to come. Asks the target for its room.
    ///
    /// # Errors
    /// The target, and why it has no room.
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

    /// Gives the target back, with the number of octets that came, and why it could not go on, if so. `None`: it is of another
    /// type.
    #[must_use]
    pub fn end<T: DepositTarget>(self) -> Option<(Box<T>, usize, Option<io::Error>)> {
        let target = self.target.into_any().downcast().ok()?;
        Some((target, self.filled, self.failed))
    }

    /// The memory from `from` to `to` of what it lends; none if the target does not give it any more, which it then says when it
    /// comes back. Runs the target's code.
    pub(super) fn octets(&mut self, from: usize, to: usize) -> &mut [u8] {
        let Self { target, at, left, failed, .. } = self;
        // A panic here would be one of the connection.
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

    /// Whether nothing more can be read into it.
    pub(super) fn is_over(&self) -> bool {
        self.filled >= self.len || self.failed.is_some()
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The target may be with the kernel.
        f.debug_struct("Loan").field("len", &self.len).field("filled", &self.filled).finish_non_exhaustive()
    }
}

fn ask(asked: AssertUnwindSafe<(&mut dyn Target, u64, u64)>) -> io::Result<&mut [u8]> {
    let AssertUnwindSafe((target, at, left)) = asked;
    room_of(target, at, left)
}

/// At most `left` octets of room, and at least one.
fn room_of<T: DepositTarget + ?Sized>(target: &mut T, at: u64, left: u64) -> io::Result<&mut [u8]> {
    let room = target.room(at, left)?;
    let len = usize::try_from(left).unwrap_or(usize::MAX).min(room.len());
    match room.get_mut(..len) {
        Some(room) if !room.is_empty() => Ok(room),
        _ => Err(io::Error::new(io::ErrorKind::StorageFull, "the target has no room")),
    }
}

/// What [`Connection::take_loan`](crate::Connection::take_loan) gives.
#[derive(Debug)]
pub enum Returned {
    /// What was lent.
    Loan(Box<Loan>),
    /// It is not back yet.
    Pending,
    /// Nothing was lent, or it is lost: whoever reads keeps it.
    Nothing,
}

/// Where the target is.
#[derive(Debug, Default)]
pub(super) enum Place {
    /// There is none.
    #[default]
    Nowhere,
    /// Here, to be read into.
    Waiting(Box<Loan>),
    /// With the reader; whether somebody waits for it.
    Lent(bool),
    /// Here, to be taken back.
    Back(Box<Loan>),
}

/// A buffer of a pool whose first octet for the payload is aligned as asked for.
///
/// It takes as much of the pool's memory as has come of the payload, four times over, or as the connection may have at once.
#[derive(Debug)]
pub struct AlignedBuffer {
    pool: Arc<BufferPool>,
    buffer: Buffer,
    start: usize,
    len: usize,
    largest: usize,
}

impl AlignedBuffer {
    /// The largest alignment.
    pub const MAX_ALIGN: usize = 64 * 1024;

    /// For `len` octets, the first of which lies at a multiple of `align`, a power of two up to
    /// [`MAX_ALIGN`](Self::MAX_ALIGN). `granted` is what `Connection::granted` says. `None`: the pool has no memory now.
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
        // An address taken as a number: nothing is read through it.
        let start = buffer.octets().as_ptr().addr().wrapping_neg() % align.max(1);
        Some(Self { pool: Arc::clone(pool), buffer, start, len, largest: granted })
    }

    /// The payload. Its memory goes back to the pool with the last view of it.
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
        // What has begun goes on: where the pool has no more, its rest is not counted, and not kept afterwards.
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
