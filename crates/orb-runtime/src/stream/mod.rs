//! The sources of arguments and results with the annotation `@stream`: values in memory, or inputs.

mod element_source;
mod payload;
mod reader;
mod seq;

use std::path::Path;
use std::sync::Mutex;
use std::{fmt, io};

use bytes::Bytes;
use futures_util::Stream;
use giop_codec::cdr::Seq;
use tokio::io::AsyncRead;

pub(crate) use element_source::{EncodeParts, ResultContent};
pub use element_source::{ItemSource, StreamedResult};
pub(crate) use payload::{MAX_KEPT_BYTES, Payload, SourceError};
pub(crate) use seq::{ArgumentContent, ElementLayout};
pub use seq::{SeqSource, StreamedArgument};

use crate::stream::reader::{FileInput, Input, ReaderInput, StreamInput};

/// The maximum number of bytes that are taken from a source at a time.
pub(crate) const MAX_CHUNK_BYTES: usize = 256 * 1024;

/// The bytes of a `@stream` argument or result, in memory or read from an input of known length.
///
/// * `Bytes`, `Vec<u8>`, `&'static [u8]` and `String` convert to a `ByteSource`, and are sent without a copy.
/// * A [file](Self::file), a [reader](Self::reader) or a [stream](Self::stream) is read while it is sent, as
///   fast as the socket accepts data. A call needs about 1 MiB of memory, independent of the length.
///
/// The following rules apply to arguments that are read from an input.
///
/// **Connection.** The call uses an idle or new connection exclusively. Other calls of the reference run
/// concurrently and may overtake it. The server receives an ordinary request of known length. GIOP messages
/// are shorter than 4 GiB. A longer input is rejected with IMP_LIMIT, COMPLETED_NO.
///
/// **Repetition.** An input can be read only once, and at most 256 KiB or 64 chunks of it are kept in memory.
/// When more was taken from it, the call is never repeated, and fails with the actual completion status.
/// Before an input of more than 256 KiB is read, a reference that has not been used yet sends a
/// LocateRequest, so that it follows forwards to other servers first.
///
/// **Errors and timeouts.**
///
/// * If the input fails or ends early, or yields too many bytes, the call fails with BAD_PARAM: COMPLETED_NO
///   if nothing had been sent, else COMPLETED_MAYBE. The connection is closed.
/// * If the servant raises an exception before it has received all bytes, the call fails with this exception
///   at once, and the connection is closed.
/// * If the servant returns a result before it has received all bytes, the call still sends the remaining
///   bytes, because the servant may read them. The call ends at its deadline or at the end of the connection.
/// * A slow input is limited by the deadline of the call and by the server's timeout for messages. A zorb
///   server allows `Limits::message_timeout` plus the time for the message's length at
///   `Limits::min_message_rate`. A server that does not read is limited by `Limits::write_timeout`.
/// * A oneway call completes when the operating system has accepted all bytes.
///
/// In a call within this process, the servant reads the chunks, or an error, directly from the input.
///
/// ```
/// # use orb_runtime::ByteSource;
/// # async fn sources() -> std::io::Result<()> {
/// let in_memory = ByteSource::from("in memory");
/// let file = ByteSource::file("content.bin").await?;
/// let zeros = ByteSource::reader(1 << 30, tokio::io::repeat(0));
/// assert_eq!((in_memory.len(), zeros.len()), (9, 1 << 30));
/// # Ok(())
/// # }
/// ```
pub struct ByteSource(Source);

enum Source {
    Bytes(Bytes),
    // The mutex makes the type `Sync`, because a payload is only `Send`.
    Payload(Mutex<Payload>),
}

pub(crate) enum SourceContent {
    Bytes(Bytes),
    Payload(Payload),
}

impl ByteSource {
    /// Creates a source of the next `len` bytes of a reader. Further bytes are not read.
    pub fn reader(len: u64, reader: impl AsyncRead + Send + 'static) -> Self {
        Self::from_input(len, ReaderInput::new(reader))
    }

    /// Creates a source of the items of a stream, which must have `len` bytes in total. Items of at least 4
    /// KiB are sent without a copy. After the last byte, the stream is not polled again.
    pub fn stream<S, E>(len: u64, stream: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        Self::from_input(len, StreamInput::new(stream))
    }

    /// Creates a source of a file with its current length. Bytes that are appended later are not read.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a regular file.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_file(tokio::fs::File::open(path).await?).await
    }

    /// Creates a source of an open file, from its current position to its end.
    ///
    /// # Errors
    /// The file is not a regular file, or its length cannot be determined.
    pub async fn open_file(mut file: tokio::fs::File) -> io::Result<Self> {
        let metadata = file.metadata().await?;
        if !metadata.is_file() {
            let text = "the length of the file is unknown, because it is not a regular file: use `ByteSource::reader`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let at = crate::stream::reader::position(&mut file).await?;
        let len = metadata.len().saturating_sub(at);
        Ok(Self::from_input(len, FileInput::new(file.into_std().await)))
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Source::Bytes(bytes) => bytes.len() as u64,
            Source::Payload(payload) => payload.lock().map_or(0, |payload| payload.len()),
        }
    }

    /// Returns whether the length is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn from_input(len: u64, input: impl Input + 'static) -> Self {
        Self(Source::Payload(Mutex::new(Payload::new(len, Box::new(input)))))
    }

    pub(crate) fn into_content(self) -> SourceContent {
        match self.0 {
            Source::Bytes(bytes) => SourceContent::Bytes(bytes),
            Source::Payload(payload) => SourceContent::Payload(
                payload.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner),
            ),
        }
    }
}

impl Default for ByteSource {
    fn default() -> Self {
        Self(Source::Bytes(Bytes::new()))
    }
}

impl fmt::Debug for ByteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = matches!(self.0, Source::Payload(_));
        f.debug_struct("ByteSource").field("len", &self.len()).field("is_read", &read).finish()
    }
}

macro_rules! source_from {
    ($($bytes:ty)*) => {$(
        /// Creates a source of bytes in memory, which are sent without a copy.
        impl From<$bytes> for ByteSource {
            fn from(bytes: $bytes) -> Self {
                Self(Source::Bytes(bytes.into()))
            }
        }
    )*};
}

source_from! { Bytes Vec<u8> &'static [u8] String &'static str Seq<u8> }
