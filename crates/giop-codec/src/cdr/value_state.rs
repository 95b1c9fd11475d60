//! The state of decoders and encoders in messages with value types. The module `value` defines the tables of
//! the values.

use core::any::Any;
use core::fmt;

/// The chunks of the outermost chunked value.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks<'a> {
    /// What [`Decoder`](super::Decoder) has as `data` outside of chunks.
    pub(super) all_data: &'a [u8],
    /// Whether the decoder's `data` ends with the current chunk.
    pub(super) is_limited: bool,
}

/// The nesting of a decoder in chunked values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nesting<'a> {
    pub(super) chunks: Chunks<'a>,
    /// Number of enclosing chunked values.
    pub(crate) level: u32,
    /// The levels of values that began inside a chunk of the enclosing value. That chunk continues after
    /// them.
    pub(crate) open: Vec<u32>,
    /// Values from this level on have ended by one end tag, which the innermost of them has read.
    pub(crate) ended: Option<u32>,
}

/// The state of a decoder, in one allocation with the tables of the values.
#[derive(Default)]
pub(crate) struct ReadState<'a, T: ?Sized = dyn ReadTables> {
    pub(crate) nesting: Nesting<'a>,
    /// The repository ids that were read, including those in lists.
    pub(crate) names: Vec<&'a str>,
    pub(crate) tables: T,
}

/// The tables of the values that a decoder has read.
pub(crate) trait ReadTables: Any + Send + Sync {
    /// Returns the state with a copy of these tables, for a clone of the decoder.
    fn complete<'a>(&self, nesting: Nesting<'a>, names: Vec<&'a str>) -> Box<ReadState<'a>>;
}

/// The state of an encoder, in one allocation with the tables of the values.
#[derive(Debug, Default)]
pub(crate) struct WriteState<T: ?Sized = dyn WrittenTables> {
    /// Nesting of values whose members are written by recursion.
    pub(crate) depth: usize,
    /// Number of enclosing chunked values.
    pub(crate) level: u32,
    pub(crate) chunk: Option<OpenChunk>,
    /// The saved `level` and `chunk` of the enclosing values, while a chunked value is encoded as if it had
    /// none.
    pub(crate) around: Vec<(u32, Option<OpenChunk>)>,
    /// The last end tag: its index in the head, and the position after it.
    pub(crate) end: Option<(usize, usize)>,
    pub(crate) tables: T,
}

#[derive(Debug)]
pub(crate) struct OpenChunk {
    /// Length of the head before the padding of the chunk.
    pub(crate) before: usize,
    /// Index of the chunk's length in the head.
    pub(crate) length_at: usize,
    /// Position of the chunk's first byte.
    pub(crate) start: usize,
}

/// The tables of the values that an encoder has written.
pub(crate) trait WrittenTables: Any + fmt::Debug + Send + Sync {
    /// Forgets everything written from a position on.
    fn forget_from(&mut self, position: usize);
}

impl WriteState {
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
