//! Deposits, in which the bytes of a `@stream` parameter or result are read directly to their destination.

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

use crate::connection::incoming_stream::LoanResult;
use crate::servant::stream::ByteStream;

const MEMORY_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// An error of [`ByteStream::deposit_into`]: the target failed, or the stream failed. The error contains the
/// target.
///
/// It converts to the exception of the stream, or to NO_RESOURCES, COMPLETED_MAYBE, with the target's error
/// as its source.
pub struct DepositError<T> {
    target: Option<Box<T>>,
    deposited: u64,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Target(io::Error),
    Stream(SystemException),
}

impl ByteStream {
    /// Returns all remaining bytes in one buffer that starts at a multiple of `align`. `align` must be a
    /// power of two up to 64 KiB; 4096 is a page.
    ///
    /// * Bytes that were received before the call are copied, unless they are already aligned and complete:
    ///   up to 64 KiB if no chunks were taken before. All following bytes are read from the socket directly
    ///   into the buffer.
    /// * The memory comes from the receive pool. It grows with the received bytes: to four times their
    ///   number, or to the size of the connection's largest message so far.
    /// * If the pool has no memory at first, the method waits for memory. When the buffer grows later, it
    ///   exceeds the pool's capacity if necessary.
    ///
    /// # Errors
    /// * The errors of [`next`](Self::next).
    /// * IMP_LIMIT, COMPLETED_NO, if more than `limit` bytes remain.
    /// * BAD_PARAM, COMPLETED_NO, for an invalid alignment.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream: remaining bytes are skipped.
    ///
    /// ```
    /// # use orb_runtime::{ByteStream, SystemException};
    /// async fn page(stream: ByteStream) -> Result<usize, SystemException> {
    ///     let bytes = stream.into_aligned(4096, 16 << 20).await?;
    ///     assert_eq!(bytes.as_ptr() as usize % 4096, 0);
    ///     Ok(bytes.len())
    /// }
    /// ```
    pub async fn into_aligned(mut self, align: usize, limit: usize) -> Result<Bytes, SystemException> {
        if !align.is_power_of_two() || align > AlignedBuffer::MAX_ALIGN {
            let text =
                format!("the alignment {align} must be a power of two up to {}", AlignedBuffer::MAX_ALIGN);
            return Err(SystemException::bad_param().with_reason(text));
        }
        let len = self.len_within(limit)?;
        if self.first.len() == len && self.first.as_ptr().addr().is_multiple_of(align) {
            self.finish_argument().await?;
            return Ok(std::mem::take(&mut self.first));
        }
        // A stream from this process has no pool, so its memory is not counted.
        let pool = self.pool.clone().unwrap_or_else(|| Arc::new(BufferPool::new(0)));
        let preallocation_limit =
            self.connection.as_ref().map_or(len, |connection| connection.link.preallocation_limit());
        let buffer = loop {
            match AlignedBuffer::take(&pool, len, align, preallocation_limit) {
                Some(buffer) => break buffer,
                None => tokio::time::sleep(MEMORY_RETRY_INTERVAL).await,
            }
        };
        Ok(self.deposit_into(buffer).await?.into_bytes())
    }

    /// Writes all remaining bytes to memory of the caller, the target, and returns the target.
    ///
    /// Bytes that were received before the call are copied: up to 64 KiB if no chunks were taken before.
    /// `Stats::bytes_copied_in` counts them. The kernel writes all following bytes directly to the memory
    /// that [`DepositTarget::room`] returns. The methods of the target run in this future. `room` also runs
    /// in the task or thread that reads the connection.
    ///
    /// # Errors
    /// The target fails or has no capacity, or the stream fails as in [`next`](Self::next). Remaining bytes
    /// are skipped, and the connection stays usable if possible.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream: remaining bytes are skipped. The target is dropped too, but
    /// not before the kernel has stopped writing to it.
    ///
    /// ```
    /// # use orb_runtime::{ByteStream, SystemException, SystemExceptionKind};
    /// async fn read_frame(stream: ByteStream, mut frame: Box<[u8]>) -> Result<(), SystemException> {
    ///     let len = stream.remaining() as usize;
    ///     match stream.deposit_into(frame).await {
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
                    Err(error) => return Err(DepositError::target_failed(target, at, error)),
                },
                Ok(None) => {}
                Err(exception) => return Err(DepositError::stream_failed(Some(target), at, exception)),
            }
            if self.bytes_left == 0 {
                return match self.finish_argument().await {
                    Ok(()) => Ok(*target),
                    Err(exception) => Err(DepositError::stream_failed(Some(target), at, exception)),
                };
            }
            let loan = match Loan::new(target, at, self.bytes_left) {
                Ok(loan) => loan,
                Err((target, error)) => return Err(DepositError::target_failed(target, at, error)),
            };
            let (loan, only_chunks) = match self.lend(loan).await {
                LoanResult::Returned(loan) => (Some(loan), false),
                LoanResult::Unused(loan) => (Some(loan), true),
                LoanResult::Lost => (None, true),
            };
            let Some((returned, n, error)) = loan.and_then(|loan| loan.end::<T>()) else {
                let exception =
                    self.truncated(SystemExceptionKind::CommFailure, "the runtime that read the stream");
                return Err(DepositError::stream_failed(None, at, exception));
            };
            target = returned;
            self.advance(n);
            let filled = if n > 0 { target.filled(at, n) } else { Ok(()) };
            at += n as u64;
            if let Err(error) = error.map_or(filled, Err) {
                return Err(DepositError::target_failed(target, at, error));
            }
            if only_chunks {
                let next = self.next().await;
                let next = next
                    .unwrap_or_else(|| Err(self.truncated(SystemExceptionKind::CommFailure, "the source")));
                let chunk = match next {
                    Ok(chunk) => chunk,
                    Err(exception) => return Err(DepositError::stream_failed(Some(target), at, exception)),
                };
                if let Err(error) = self.copy_into(&mut *target, at, &chunk) {
                    return Err(DepositError::target_failed(target, at, error));
                }
                at += chunk.len() as u64;
            }
        }
    }

    fn copy_into<T: DepositTarget>(&self, target: &mut T, mut at: u64, chunk: &[u8]) -> io::Result<()> {
        let mut chunk = chunk;
        while !chunk.is_empty() {
            let memory = target.room(at, self.bytes_left.saturating_add(chunk.len() as u64))?;
            let n = memory.len().min(chunk.len());
            let (Some(to), Some((from, tail))) = (memory.get_mut(..n), chunk.split_at_checked(n)) else {
                break;
            };
            if n == 0 {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "the target has no room"));
            }
            to.copy_from_slice(from);
            target.filled(at, n)?;
            if let Some(connection) = &self.connection {
                connection.link.count_copied(n);
            }
            at += n as u64;
            chunk = tail;
        }
        Ok(())
    }

    /// Lends the target to the connection, which reads bytes into it, and waits until it is returned.
    async fn lend(&mut self, loan: Box<Loan>) -> LoanResult {
        let mut loan = Some(loan);
        poll_fn(|cx| {
            // If sending the argument fails, the connection ends, which also ends the loan.
            let _ = self.poll_send_argument(cx);
            match &self.connection {
                Some(connection) => connection.link.poll_loan(connection.stream_id, &mut loan, cx),
                None => Poll::Ready(loan.take().map_or(LoanResult::Lost, LoanResult::Unused)),
            }
        })
        .await
    }

    /// Returns the number of remaining bytes, or IMP_LIMIT, COMPLETED_NO, if it exceeds `limit`.
    pub(crate) fn len_within(&self, limit: usize) -> Result<usize, SystemException> {
        usize::try_from(self.bytes_left).ok().filter(|len| *len <= limit).ok_or_else(|| {
            let text = format!("{} bytes of the stream exceed the limit of {limit}", self.bytes_left);
            SystemException::imp_limit().with_reason(text)
        })
    }
}

impl<T> DepositError<T> {
    fn target_failed(target: Box<T>, deposited: u64, error: io::Error) -> Self {
        Self { target: Some(target), deposited, cause: Cause::Target(error) }
    }

    fn stream_failed(target: Option<Box<T>>, deposited: u64, exception: SystemException) -> Self {
        Self { target, deposited, cause: Cause::Stream(exception) }
    }

    /// Returns the target. Returns `None` only if a runtime ended while the kernel wrote to the target.
    #[must_use]
    pub fn into_target(self) -> Option<T> {
        self.target.map(|target| *target)
    }

    /// Returns the number of bytes that were written to the target.
    #[must_use]
    pub fn deposited(&self) -> u64 {
        self.deposited
    }

    /// Returns the error of the target, or `None` if the stream failed.
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
            Cause::Target(error) => write!(f, "the target failed after {} bytes: {error}", self.deposited),
            Cause::Stream(exception) => exception.fmt(f),
        }
    }
}

impl<T> fmt::Debug for DepositError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DepositError")
            .field("deposited", &self.deposited)
            .field("cause", &self.cause)
            .finish_non_exhaustive()
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
    fn error_of_the_target_is_no_resources_and_error_of_the_stream_is_its_exception() {
        let full = DepositError::target_failed(Box::new(()), 7, io::ErrorKind::StorageFull.into());
        let raised = SystemException::from(full);
        assert_eq!(
            (raised.kind, raised.completed),
            (SystemExceptionKind::NoResources, CompletionStatus::Maybe)
        );
        let lost = SystemException::comm_failure().with_reason("the connection ended");
        assert_eq!(SystemException::from(DepositError::<()>::stream_failed(None, 7, lost.clone())), lost);
    }
}
