//! Arguments for `@stream` parameters and `@stream` results of servants: bytes in memory, or a source from
//! which they are read.

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

pub use element_source::{ItemSource, LastResult};
pub(crate) use element_source::{Produce, Produced};
pub(crate) use payload::{KEPT, Payload, SourceError};
pub use seq::{LastArgument, SeqSource};
pub(crate) use seq::{LastGiven, Unit};

use crate::stream::reader::{Feed, FileFeed, ItemFeed, ReaderFeed};

/// Maximum number of bytes taken from a source at a time.
pub(crate) const CHUNK: usize = 256 * 1024;

/// The bytes of a `@stream` argument: all of them in memory, or a source with a length.
///
/// Values in memory convert to a `ByteSource` and are sent without a copy: `Bytes`, `Vec<u8>`,
/// `&'static [u8]`, `String`. A [file](Self::file), a [reader](Self::reader) or a [stream](Self::stream) is
/// read while it is sent: up to 256 KiB at a time, and only as the socket accepts data. Therefore calls of
/// any length need the same memory, about 1 MiB.
///
/// Such a call has an exclusive connection, an idle or a new one. Other calls of the reference run
/// concurrently and may overtake it. The server receives an ordinary request of known length, in every
/// version of GIOP.
///
/// A source can be read once. While at most 256 KiB were taken, the call is repeated by the same rules as any
/// other. After that it is never repeated. It then fails with the true completion status and a text that
/// explains it. Before a longer source is read, a reference that was not used yet locates its object by
/// LocateRequest. Thus a forward arrives before the bytes are read.
///
/// * If the source fails or ends early, or an item of a stream exceeds its length, the call fails with
///   BAD_PARAM and the source's error as its cause. The completion status is COMPLETED_NO if nothing had been
///   sent, else COMPLETED_MAYBE. The connection is closed.
/// * If the servant raises an exception before it has received everything, the call fails with that exception
///   at once, and the connection is closed. A result that arrives earlier is returned after the rest is sent,
///   because the servant may still take it. At the deadline, or when the server closes the connection, it is
///   returned without the rest.
/// * A slow source is limited by the deadline of the call, and by the server's timeout for messages. zorb
///   allows `Limits::message_timeout` plus the time for the message's length at `Limits::min_message_rate`. A
///   server that accepts nothing is limited by `Limits::write_timeout`.
/// * A oneway completes when the operating system has accepted all of it.
///
/// A length of 4 GiB or more is rejected with IMP_LIMIT, COMPLETED_NO, because GIOP messages cannot be
/// longer. In a call within this process the servant takes the chunks directly from the source, and receives
/// its error.
///
/// ```
/// # use orb_runtime::ByteSource;
/// # async fn sources() -> std::io::Result<()> {
/// let whole = ByteSource::from("in memory");
/// let file = ByteSource::file("content.bin").await?;
/// // Any reader, of known length.
/// let zeros = ByteSource::reader(1 << 30, tokio::io::repeat(0));
/// assert_eq!((whole.len(), zeros.len()), (9, 1 << 30));
/// # Ok(())
/// # }
/// ```
pub struct ByteSource(Source);

enum Source {
    Octets(Bytes),
    // The mutex makes the type `Sync`: a payload may be moved between threads, but not shared.
    Payload(Mutex<Payload>),
}

/// The contents of a source.
pub(crate) enum Given {
    Octets(Bytes),
    Payload(Payload),
}

impl ByteSource {
    /// Creates a source of the next `len` bytes of a reader. Bytes after them are not read.
    pub fn reader(len: u64, reader: impl AsyncRead + Send + 'static) -> Self {
        Self::feed(len, ReaderFeed::new(reader))
    }

    /// Creates a source of the items of a stream, which must have `len` bytes in all. Items of 4 KiB and more
    /// are sent without a copy. After the last byte the stream is not polled again.
    pub fn stream<S, E>(len: u64, stream: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        Self::feed(len, ItemFeed::new(stream))
    }

    /// Opens a file, with its current length. Bytes appended later are not read.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a regular file.
    ///
    /// # Cancel safety
    /// Dropping the future opens nothing.
    pub async fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::opened(tokio::fs::File::open(path).await?).await
    }

    /// Creates a source of an open file, from its current position to its end.
    ///
    /// # Errors
    /// The file is not a regular file, or its length cannot be determined.
    pub async fn opened(mut file: tokio::fs::File) -> io::Result<Self> {
        let metadata = file.metadata().await?;
        if !metadata.is_file() {
            let text =
                "a source of known length must be a regular file: use `ByteSource::reader` with a length";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let at = crate::stream::reader::position(&mut file).await?;
        let len = metadata.len().saturating_sub(at);
        Ok(Self::feed(len, FileFeed::new(file.into_std().await)))
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Source::Octets(octets) => octets.len() as u64,
            Source::Payload(payload) => payload.lock().map_or(0, |payload| payload.len()),
        }
    }

    /// Returns whether the length is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn feed(len: u64, feed: impl Feed + 'static) -> Self {
        Self(Source::Payload(Mutex::new(Payload::new(len, Box::new(feed)))))
    }

    pub(crate) fn given(self) -> Given {
        match self.0 {
            Source::Octets(octets) => Given::Octets(octets),
            Source::Payload(payload) => {
                Given::Payload(payload.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
            }
        }
    }
}

/// An empty source.
impl Default for ByteSource {
    fn default() -> Self {
        Self(Source::Octets(Bytes::new()))
    }
}

impl fmt::Debug for ByteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = matches!(self.0, Source::Payload(_));
        f.debug_struct("ByteSource").field("len", &self.len()).field("is_read", &read).finish()
    }
}

macro_rules! source_from {
    ($($octets:ty)*) => {$(
        /// Bytes in memory, sent without a copy.
        impl From<$octets> for ByteSource {
            fn from(octets: $octets) -> Self {
                Self(Source::Octets(octets.into()))
            }
        }
    )*};
}

source_from! { Bytes Vec<u8> &'static [u8] String &'static str Seq<u8> }
