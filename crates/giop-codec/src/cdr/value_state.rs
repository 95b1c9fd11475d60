//! The state of decoders and encoders in messages with value types. The tables of the values are defined by
//! the module of value types.

use core::any::Any;
use core::fmt;

/// The data that contains the chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks<'a> {
    pub(super) full: &'a [u8],
    /// Only the current chunk is visible: `data` of the decoder ends with it.
    pub(super) cut: bool,
}

/// The state of a decoder in a message with value types, in one allocation with the tables of the values.
pub(crate) struct ValueState<'a, T: ?Sized = dyn ReadTables> {
    pub(crate) chunks: Chunks<'a>,
    /// Number of chunked values around the current position.
    pub(crate) level: u32,
    /// The levels of the values that began inside of a chunk of the enclosing value, which continues after
    /// them.
    pub(crate) open: Vec<u32>,
    /// Values from this level on have ended, by an end tag that was read before their own end.
    pub(crate) ended: Option<u32>,
    /// The repository ids that were read, and lists of them.
    pub(crate) names: Vec<&'a str>,
    pub(crate) tables: T,
}

/// The tables of the values that a decoder has read.
pub(crate) trait ReadTables: Any + Send + Sync {
    /// Completes the state of a clone of the decoder with a copy of these tables.
    fn complete<'a>(&self, state: ValueState<'a, ()>) -> Box<ValueState<'a>>;
}

/// The tables of the values that an encoder has written.
pub(crate) trait WrittenTables: Any + fmt::Debug + Send + Sync {
    /// Forgets everything written from a position on.
    fn forget_from(&mut self, position: usize);
}

impl<'a> ValueState<'a, ()> {
    /// Adds tables to a state.
    pub(crate) fn with<T>(self, tables: T) -> ValueState<'a, T> {
        let ValueState { chunks, level, open, ended, names, tables: () } = self;
        ValueState { chunks, level, open, ended, names, tables }
    }
}

impl<T: Default> Default for ValueState<'_, T> {
    fn default() -> Self {
        let (chunks, open, names) = (Chunks::default(), Vec::new(), Vec::new());
        ValueState { chunks, level: 0, open, ended: None, names, tables: T::default() }
    }
}

impl<'a> Clone for Box<ValueState<'a>> {
    fn clone(&self) -> Box<ValueState<'a>> {
        self.tables.complete(ValueState {
            chunks: self.chunks.clone(),
            level: self.level,
            open: self.open.clone(),
            ended: self.ended,
            names: self.names.clone(),
            tables: (),
        })
    }
}

impl fmt::Debug for ValueState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueState").field("level", &self.level).finish_non_exhaustive()
    }
}
