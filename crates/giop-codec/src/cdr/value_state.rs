//! The state of decoders and encoders in messages with value types. The tables of the values that were read
//! or written are defined in the module `value`.

use core::fmt;

/// The data of the outermost chunked value.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkedData<'a> {
    /// The bytes that are the `data` of the [`Decoder`](super::Decoder) outside of chunks.
    pub(super) all_data: &'a [u8],
    /// Whether the decoder's `data` ends with the current chunk.
    pub(super) is_limited: bool,
}

/// The nesting of a decoder in chunked values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nesting<'a> {
    pub(super) chunked_data: ChunkedData<'a>,
    /// Number of enclosing chunked values.
    pub(crate) level: u32,
    /// The levels of values that began inside a chunk of the enclosing value, which continues after them.
    pub(crate) levels_in_parent_chunk: Vec<u32>,
    /// The level of the outermost value that the last end tag ends. `None` after all these values have ended.
    pub(crate) ended_from_level: Option<u32>,
}

/// The state of a decoder. It is in one allocation with the tables of the values.
#[derive(Default)]
pub(crate) struct ReadState<'a, T: ?Sized = dyn ReadTables> {
    pub(crate) nesting: Nesting<'a>,
    /// The repository ids that were read, singly or in lists.
    pub(crate) repository_ids: Vec<&'a str>,
    pub(crate) tables: T,
}

/// The tables of the values that a decoder has read.
pub(crate) trait ReadTables: core::any::Any + Send + Sync {
    /// Creates a state from the arguments and a copy of these tables, for a clone of the decoder.
    fn clone_state<'a>(&self, nesting: Nesting<'a>, repository_ids: Vec<&'a str>) -> Box<ReadState<'a>>;
}

/// The state of an encoder. It is in one allocation with the tables of the values.
#[derive(Debug, Default)]
pub(crate) struct WriteState<T: ?Sized = dyn WrittenTables> {
    /// Nesting depth of the values whose members are being written by recursion.
    pub(crate) depth: usize,
    /// Number of enclosing chunked values.
    pub(crate) level: u32,
    pub(crate) chunk: Option<OpenChunk>,
    /// Saved `level`s and `chunk`s, while a chunked value is encoded as if no other value enclosed it.
    pub(crate) enclosing: Vec<(u32, Option<OpenChunk>)>,
    /// The last end tag: its index in the encoder's head, and the position after the tag.
    pub(crate) last_end_tag: Option<(usize, usize)>,
    pub(crate) tables: T,
}

#[derive(Debug)]
pub(crate) struct OpenChunk {
    /// Length of the encoder's head before the padding of the chunk.
    pub(crate) head_len_before: usize,
    /// Index of the chunk's length in the encoder's head.
    pub(crate) length_at: usize,
    /// Position of the chunk's first byte.
    pub(crate) start: usize,
}

/// The tables of the values that an encoder has written.
pub(crate) trait WrittenTables: core::any::Any + fmt::Debug + Send + Sync {
    /// Removes the entries of everything that was written at a position or after it.
    fn forget_from(&mut self, position: usize);
}

impl WriteState {
    pub(super) fn forget_from(&mut self, position: usize) {
        self.last_end_tag = None;
        self.tables.forget_from(position);
    }
}

impl<'a> Clone for Box<ReadState<'a>> {
    fn clone(&self) -> Box<ReadState<'a>> {
        self.tables.clone_state(self.nesting.clone(), self.repository_ids.clone())
    }
}

impl fmt::Debug for ReadState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadState").field("level", &self.nesting.level).finish_non_exhaustive()
    }
}
