//! The bytes of a `@stream` parameter or result, read directly to their destination.

use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_proto::pool::BufferPool;
use giop_proto::{AlignedBuffer, DepositTarget, Loan};

use crate::connection::incoming_stream::Lent;
use crate::servant::stream::ByteStream;

/// Interval at which a stream retries to take memory from the pool.
const RETRY_MEMORY: Duration = Duration::from_millis(5);

/// The reason why [`ByteStream::deposit_into`] failed: the target failed, or the stream broke off. Contains
/// the target.
///
/// Converts to the system exception of the stream, or to NO_RESOURCES, COMPLETED_MAYBE, with the target's
/// error as its cause.
pub struct DepositError<T> {
    target: Option<Box<T>>,
    deposited: u64,
    cause: Cause,
}

enum Cause {
    Target(io::Error),
    Stream(SystemException),
}

impl ByteStream {
    /// Returns all remaining bytes in one buffer that starts at a multiple of `align`. `align` must be a
    /// power of two up to 64 KiB; 4096 is a page.
    ///
    /// Bytes received before the call are copied: up to 64 KiB if no chunks were taken before. The socket
    /// reads all following bytes directly into the buffer. The memory comes from the receive pool. It grows
    /// with the bytes received: up to four times their number, or to the size of the largest message of the
    /// connection so far. While the pool has no memory, this waits. Once begun, it completes, past the pool's
    /// cap if necessary.
    ///
    /// # Errors
    /// Those of [`next`](Self::next). IMP_LIMIT, COMPLETED_NO, if more than `limit` bytes remain. BAD_PARAM,
    /// COMPLETED_NO, for an invalid alignment.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream: its rest is skipped.
    ///
    /// ```
    /// # use orb_runtime::{ByteStream, SystemException};
    /// async fn page(octets: ByteStream) -> Result<usize, SystemException> {
    ///     let octets = octets.into_aligned(4096, 16 << 20).await?;
    ///     assert_eq!(octets.as_ptr() as usize % 4096, 0);
    ///     Ok(octets.len())
    /// }
    /// ```
    pub async fn into_aligned(mut self, align: usize, limit: usize) -> Result<Bytes, SystemException> {
        if !align.is_power_of_two() || align > AlignedBuffer::MAX_ALIGN {
            let text =
                format!("an alignment of {align} is no power of two up to {}", AlignedBuffer::MAX_ALIGN);
            return Err(refusal(SystemExceptionKind::BadParam, text));
        }
        let len = self.len_within(limit)?;
        if self.first.len() == len && self.first.as_ptr().addr().is_multiple_of(align) {
            self.settle().await?;
            return Ok(std::mem::take(&mut self.first));
        }
        // Without a pool no memory is counted.
        let pool = self.pool.clone().unwrap_or_else(|| Arc::new(BufferPool::new(0)));
        let granted = self.rest.as_ref().map_or(len, |rest| rest.link.granted());
        let buffer = loop {
            match AlignedBuffer::take(&pool, len, align, granted) {
                Some(buffer) => break buffer,
                None => tokio::time::sleep(RETRY_MEMORY).await,
            }
        };
        Ok(self.deposit_into(buffer).await?.into_bytes())
    }

    /// Moves all remaining bytes into memory of the caller, and returns it.
    ///
    /// Bytes received before the call are copied: up to 64 KiB if no chunks were taken before. The kernel
    /// writes all following bytes directly into the memory returned by [`DepositTarget::room`].
    /// `Stats::copied` counts the copied ones. The target is moved in. Its methods run in this future. `room`
    /// also runs where the connection is read.
    ///
    /// # Errors
    /// The target fails or has no capacity, or the stream breaks off as in [`next`](Self::next). The rest of
    /// the bytes is skipped, and the connection stays usable if possible.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream: its rest is skipped. The target is dropped with it. If the
    /// kernel is writing to the target, it is dropped after the kernel has released it.
    ///
    /// ```
    /// # use orb_runtime::{ByteStream, SystemException, SystemExceptionKind};
    /// /// Keeps what fits a frame.
    /// async fn frame(octets: ByteStream, mut frame: Box<[u8]>) -> Result<(), SystemException> {
    ///     let len = octets.remaining() as usize;
    ///     match octets.deposit_into(frame).await {
    ///         Ok(filled) => frame = filled,
    ///         Err(error) => {
    ///             println!("{error}");
    ///             return Err(error.into());
    ///         }
    ///     }
    ///     println!("{:?}", &frame[..len]);
    ///     Ok(())
    /// }
    /// ```
    pub async fn deposit_into<T: DepositTarget>(mut self, target: T) -> Result<T, DepositError<T>> {
        let (mut target, mut at) = (Box::new(target), 0);
        loop {
            match self.ready_chunk() {
                Ok(Some(chunk)) => match self.copy_into(&mut *target, at, &chunk) {
                    Ok(()) => {
                        at += chunk.len() as u64;
                        continue;
                    }
                    Err(error) => return Err(DepositError::refused(target, at, error)),
                },
                Ok(None) => {}
                Err(exception) => return Err(DepositError::broken(Some(target), at, exception)),
            }
            if self.left == 0 {
                return match self.settle().await {
                    Ok(()) => Ok(*target),
                    Err(exception) => Err(DepositError::broken(Some(target), at, exception)),
                };
            }
            let loan = match Loan::new(target, at, self.left) {
                Ok(loan) => loan,
                Err((target, error)) => return Err(DepositError::refused(target, at, error)),
            };
            let (loan, useless) = match self.lend(loan).await {
                Lent::Back(loan) => (Some(loan), false),
                Lent::Useless(loan) => (Some(loan), true),
                Lent::Lost => (None, true),
            };
            let Some((back, n, failed)) = loan.and_then(|loan| loan.end::<T>()) else {
                let exception = self.breaks_off(SystemExceptionKind::CommFailure, "the runtime that read it");
                return Err(DepositError::broken(None, at, exception));
            };
            target = back;
            self.advance(n);
            let filled = if n > 0 { target.filled(at, n) } else { Ok(()) };
            at += n as u64;
            if let Err(error) = failed.map_or(filled, Err) {
                return Err(DepositError::refused(target, at, error));
            }
            if useless {
                // Only chunks are available.
                let chunk = match self.next().await {
                    Some(Ok(chunk)) => chunk,
                    Some(Err(exception)) => return Err(DepositError::broken(Some(target), at, exception)),
                    None => {
                        let exception = self.breaks_off(SystemExceptionKind::CommFailure, "the source");
                        return Err(DepositError::broken(Some(target), at, exception));
                    }
                };
                if let Err(error) = self.copy_into(&mut *target, at, &chunk) {
                    return Err(DepositError::refused(target, at, error));
                }
                at += chunk.len() as u64;
            }
        }
    }

    /// Copies bytes that were handed out into the target, at position `at`.
    fn copy_into<T: DepositTarget>(&self, target: &mut T, mut at: u64, chunk: &[u8]) -> io::Result<()> {
        let mut chunk = chunk;
        while !chunk.is_empty() {
            let room = target.room(at, self.left.saturating_add(chunk.len() as u64))?;
            let n = room.len().min(chunk.len());
            let (Some(to), Some((now, then))) = (room.get_mut(..n), chunk.split_at_checked(n)) else { break };
            if n == 0 {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "the target has no room"));
            }
            to.copy_from_slice(now);
            target.filled(at, n)?;
            if let Some(rest) = &self.rest {
                rest.link.count_copied(n);
            }
            at += n as u64;
            chunk = then;
        }
        Ok(())
    }

    async fn lend(&mut self, loan: Box<Loan>) -> Lent {
        let mut loan = Some(loan);
        poll_fn(|cx| {
            // If it fails, the connection ends, and the loan with it.
            let _ = self.poll_settled(cx);
            match &self.rest {
                Some(rest) => rest.link.poll_lent(rest.of, &mut loan, cx),
                None => Poll::Ready(loan.take().map_or(Lent::Lost, Lent::Useless)),
            }
        })
        .await
    }

    /// Returns the number of remaining bytes, if it is within the limit.
    pub(crate) fn len_within(&self, limit: usize) -> Result<usize, SystemException> {
        usize::try_from(self.left).ok().filter(|len| *len <= limit).ok_or_else(|| {
            let text = format!("{} octets are more than the limit of {limit}", self.left);
            refusal(SystemExceptionKind::ImpLimit, text)
        })
    }
}

fn refusal(kind: SystemExceptionKind, text: String) -> SystemException {
    SystemException::from(kind).with_reason(text)
}

impl<T> DepositError<T> {
    fn refused(target: Box<T>, deposited: u64, error: io::Error) -> Self {
        Self { target: Some(target), deposited, cause: Cause::Target(error) }
    }

    fn broken(target: Option<Box<T>>, deposited: u64, exception: SystemException) -> Self {
        Self { target, deposited, cause: Cause::Stream(exception) }
    }

    /// Returns the target. `None` only if a runtime ended while the kernel wrote to the target.
    #[must_use]
    pub fn into_target(self) -> Option<T> {
        self.target.map(|target| *target)
    }

    /// Returns the number of bytes in the target.
    #[must_use]
    pub fn deposited(&self) -> u64 {
        self.deposited
    }

    /// Returns the target's error. `None` if the stream broke off.
    #[must_use]
    pub fn target_error(&self) -> Option<&io::Error> {
        match &self.cause {
            Cause::Target(error) => Some(error),
            Cause::Stream(_) => None,
        }
    }
}

impl<T> From<DepositError<T>> for SystemException {
    fn from(error: DepositError<T>) -> Self {
        match error.cause {
            Cause::Stream(exception) => exception,
            Cause::Target(error) => {
                Self::no_resources().completed(CompletionStatus::Maybe).with_source(error)
            }
        }
    }
}

impl<T> fmt::Display for DepositError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Target(error) => write!(f, "the target failed behind {} octets: {error}", self.deposited),
            Cause::Stream(exception) => exception.fmt(f),
        }
    }
}

impl<T> fmt::Debug for DepositError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("DepositError");
        debug.field("deposited", &self.deposited);
        match &self.cause {
            Cause::Target(error) => debug.field("target", error),
            Cause::Stream(exception) => debug.field("stream", exception),
        };
        debug.finish_non_exhaustive()
    }
}

impl<T> Error for DepositError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Target(error) => Some(error),
            Cause::Stream(exception) => exception.source(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // clause: exc.kind.no_resources
    #[test]
    fn a_target_that_can_take_no_more_is_no_resources_and_the_stream_fails_as_it_did() {
        let full = DepositError::refused(Box::new(()), 7, io::ErrorKind::StorageFull.into());
        let raised = SystemException::from(full);
        assert_eq!(
            (raised.kind, raised.completed),
            (SystemExceptionKind::NoResources, CompletionStatus::Maybe)
        );
        let broken = refusal(SystemExceptionKind::CommFailure, "it broke off".to_owned());
        assert_eq!(SystemException::from(DepositError::<()>::broken(None, 7, broken.clone())), broken);
    }
}
