//! What a client gives for a `@stream` parameter, and a servant for a `@stream` result: bytes that are there, or a source that they are
//! read from.

mod feed;
mod items;
mod payload;
mod seq;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::Stream;
use giop_codec::cdr::Seq;
use tokio::io::AsyncRead;

use feed::{Feed, FileFeed, ItemFeed, ReaderFeed};
pub use items::{ItemSource, LastResult, ResultSource};
pub(crate) use items::{Produce, Produced, TakenFrom};
pub(crate) use payload::{KEPT, Payload, SourceError};
pub use seq::{LastArgument, SeqSource};
pub(crate) use seq::{LastGiven, Unit};

/// The most octets that are taken from a source at a time.
pub(crate) const CHUNK: usize = 256 * 1024;

/// The octets of a `@stream` parameter as a client gives them: all of them, or where to read them and how many there are.
///
/// What is in memory converts into one, and is sent without a copy: `Bytes`, `Vec<u8>`, `&'static [u8]`, `String`. A
/// [file](Self::file), a [reader](Self::reader) or a [stream](Self::stream) is read while it is sent, up to 256 KiB at a time and
/// only as the socket takes them, so a call of any length needs the same memory, about 1 MiB.
///
/// Such a call takes a connection for itself, one that is idle or a new one: other calls of the reference go on beside it, and
/// may overtake it. The server sees a plain request of known length, in every version of GIOP.
///
/// A source can be read once. While no more than 256 KiB were taken, the call is repeated by the same rules as any other; after that
/// never: it fails with the completion status that is true, and with a text that says so. Before a longer source is read, a
/// reference that was not asked yet is asked by LocateRequest where its object is, so that a forward comes before the octets.
///
/// * When the source fails or ends early, or an item of a stream goes beyond its length, the call fails by BAD_PARAM with the
///   source's error as its cause, and the connection is closed: COMPLETED_NO if nothing had been sent, else COMPLETED_MAYBE.
/// * When the servant raises an exception before it got everything, the call fails with that at once, and the connection is closed.
///   A result that comes before is returned when the rest is sent, since the servant may still take it; at the deadline, or when the
///   server closes the connection, it is returned without.
/// * A slow source is limited by the deadline of the call, and by the time that the server gives to a message: zorb's waits
///   for `Limits::message_timeout` and the time for its length at `Limits::min_message_rate`. A server that takes nothing is
///   limited by `Limits::write_timeout`.
/// * A oneway is done when the operating system has all of it.
///
/// A length of 4 GiB or more is refused by IMP_LIMIT, COMPLETED_NO: a GIOP message can not be longer. In a call inside of this process the
/// servant takes the chunks of the source itself, and gets its error.
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
    // A mutex without locking: what is given may be moved between threads, but not shared.
    Payload(Mutex<Payload>),
}

/// What is behind a source.
pub(crate) enum Given {
    Octets(Bytes),
    Payload(Payload),
}

impl ByteSource {
    /// The next `len` octets of a reader. What it has behind them is not read.
    pub fn reader(len: u64, reader: impl AsyncRead + Send + 'static) -> Self {
        Self::feed(len, ReaderFeed::new(reader))
    }

    /// The items of a stream, which must be `len` octets in all, sent without a copy from 4 KiB on. After the last octet it is not
    /// polled again.
    pub fn stream<S, E>(len: u64, stream: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        Self::feed(len, ItemFeed::new(stream))
    }

    /// A file as long as it is now. What is written behind its end later is not read.
    ///
    /// # Errors
    /// It can not be opened, or is no regular file.
    ///
    /// # Cancel safety
    /// Dropping the future opens nothing.
    pub async fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::opened(tokio::fs::File::open(path).await?).await
    }

    /// A file that is open, from where it stands to its end.
    ///
    /// # Errors
    /// It is no regular file, or does not say how long it is.
    pub async fn opened(mut file: tokio::fs::File) -> io::Result<Self> {
        let metadata = file.metadata().await?;
        if !metadata.is_file() {
            let text =
                "a source of known length must be a regular file: use `ByteSource::reader` with a length";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let at = feed::position(&mut file).await?;
        let len = metadata.len().saturating_sub(at);
        Ok(Self::feed(len, FileFeed::new(file.into_std().await)))
    }

    /// How many octets it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Source::Octets(octets) => octets.len() as u64,
            Source::Payload(payload) => payload.lock().map_or(0, |payload| payload.len()),
        }
    }

    /// Whether it has none.
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

/// No octets.
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
        /// Octets that are there, sent without a copy.
        impl From<$octets> for ByteSource {
            fn from(octets: $octets) -> Self {
                Self(Source::Octets(octets.into()))
            }
        }
    )*};
}

source_from! { Bytes Vec<u8> &'static [u8] String &'static str Seq<u8> }
