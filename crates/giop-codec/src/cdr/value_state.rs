//! The state of decoders and encoders in messages with value types. The tables of the values are defined by
//! the module of value types.

use core::any::Any;
use core::fmt;

/// The data that contains the chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks<'a> {
    pub(super) full: &'a [u8],
    /// Only the current chunk is visible: `data` of the decoder ends with it.
    pub(super) cut: bool,
}

/// The nesting of a decoder in chunked values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nesting<'a> {
    pub(super) chunks: Chunks<'a>,
    /// Number of chunked values around the current position.
    pub(crate) level: u32,
    /// The levels of the values that began inside of a chunk of the enclosing value, which continues after
    /// them.
    pub(crate) open: Vec<u32>,
    /// Values from this level on have ended, by an end tag that was read before their own end.
    pub(crate) ended: Option<u32>,
}

/// The state of a decoder in a message with value types, in one allocation with the tables of the values.
#[derive(Default)]
pub(crate) struct ReadState<'a, T: ?Sized = dyn ReadTables> {
    pub(crate) nesting: Nesting<'a>,
    /// The repository ids that were read, and lists of them.
    pub(crate) names: Vec<&'a str>,
    pub(crate) tables: T,
}

/// The tables of the values that a decoder has read.
pub(crate) trait ReadTables: Any + Send + Sync {
    /// Returns the state of a clone of the decoder, with a copy of these tables.
    fn complete<'a>(&self, nesting: Nesting<'a>, names: Vec<&'a str>) -> Box<ReadState<'a>>;
}

/// The state of an encoder in a message with value types, in one allocation with the tables of the values.
#[derive(Debug, Default)]
pub(crate) struct WriteState<T: ?Sized = dyn WrittenTables> {
    /// Nesting of values in members that are written as a whole.
    pub(crate) depth: usize,
    /// Number of enclosing chunked values.
    pub(crate) level: u32,
    /// The open chunk.
    pub(crate) chunk: Option<OpenChunk>,
    /// The level and chunk around each chunked value, if such a value is encoded independently of the
    /// enclosing ones.
    pub(crate) around: Vec<(u32, Option<OpenChunk>)>,
    /// The last end tag: its index in the head, and the position after it.
    pub(crate) end: Option<(usize, usize)>,
    pub(crate) tables: T,
}

/// A chunk that is being written.
#[derive(Debug)]
pub(crate) struct OpenChunk {
    /// Length of the head before the padding of the chunk.
    pub(crate) before: usize,
    /// Index of its length in the head.
    pub(crate) length_at: usize,
    /// Position of its first byte.
    pub(crate) start: usize,
}

/// The tables of the values that an encoder has written.
pub(crate) trait WrittenTables: Any + fmt::Debug + Send + Sync {
    /// Forgets everything written from a position on.
    fn forget_from(&mut self, position: usize);
}

impl WriteState {
    /// Forgets everything written from a position on.
    pub(super) fn forget_from(&mut self, position: usize) {
        self.end = None;
        self.tables.forget_from(position);
    }
}

impl<'a> Clone for Box<ReadState<'a>> {
    fn clone(&self) -> Box<ReadState<'a>> {
        self.tables.complete(self.nesting.clone(), self.names.clone())
    }
}

impl fmt::Debug for ReadState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadState").field("level", &self.nesting.level).finish_non_exhaustive()
    }
}
