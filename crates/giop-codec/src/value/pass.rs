//! Values without a known Rust type, which are copied by their type codes from one stream to another.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::Arc;

use super::boxes::built_in;
use super::header::{CHUNKED, ID_LIST, NULL, ONE_ID, VALUE, is_explicit};
use super::read::{Header, Reading, Start};
use super::{Class, Factory, Made};
use crate::cdr::{Decoder, Encoder};
use crate::typecode::TypeCode;
use crate::{DecodeError, EncodeError};

/// A value that was traversed.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    /// Number of enclosing chunked values.
    pub(super) level: u32,
    /// The repository id, if its header has none.
    pub(super) implied: Option<Arc<str>>,
}

/// The start of a value.
pub(crate) enum Next<'a> {
    Null,
    /// An indirection to the value that began at this position.
    Back(usize),
    /// A value whose state follows, with the repository ids of its header.
    New(Opened, Vec<&'a str>),
}

/// A value whose header was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// The position of its tag.
    pub(crate) at: usize,
    pub(crate) chunked: bool,
    pub(super) around: Option<usize>,
}

/// The type information in the header of a value that is written.
#[derive(Debug)]
pub(crate) struct PassedType {
    /// Its own repository id, then those to which it may be truncated.
    pub(crate) ids: Arc<[Arc<str>]>,
}

/// A callback that reads an earlier value. It receives the repository id, which the header may lack.
pub(crate) type Again<'f, 'a> =
    dyn FnMut(&mut Decoder<'a>, Option<&Arc<str>>) -> Result<(), DecodeError> + 'f;

impl<'a> Decoder<'a> {
    /// Returns the type with this repository id, if the context knows it.
    pub(super) fn find_factory(&self, id: &str) -> Option<&'static Factory> {
        let made = || self.values_read()?.made.as_ref()?.factories.find(id);
        let found = self.factories().and_then(|factories| factories.find(id)).or_else(made);
        found.or_else(|| built_in(id))
    }

    /// Returns the type code of the value type with this repository id, if the context knows it.
    pub(crate) fn value_type(&self, id: &str) -> Option<TypeCode> {
        let known = self.find_factory(id).and_then(|factory| factory.desc).map(TypeCode::of_desc);
        let made = || self.values_read()?.made.as_ref()?.code(id).cloned();
        known.or_else(made).or_else(|| self.known_value_type(id))
    }

    /// Returns the types of the values of a locally created any.
    pub(crate) fn made_types(&self) -> Option<&Arc<Made>> {
        self.values_read()?.made.as_ref()
    }

    /// Returns this decoder with the types of locally created values.
    pub(crate) fn with_made_types(mut self, made: Option<&Arc<Made>>) -> Decoder<'a> {
        if made.is_some() {
            self.reading().made = made.cloned();
        }
        self
    }

    /// Returns the repository ids of a header.
    pub(super) fn names(&mut self, ids: Range<usize>) -> &[&'a str] {
        self.value_state().names.get(ids).unwrap_or_default()
    }

    /// Reads the header of a value.
    pub(crate) fn next_value(&mut self) -> Result<Next<'a>, DecodeError> {
        Ok(match self.read_start()? {
            Start::Null => Next::Null,
            Start::Back(target) => Next::Back(target),
            Start::Header(Header { at, chunked, ids, around }) => {
                Next::New(Opened { at, chunked, around }, self.names(ids).to_vec())
            }
        })
    }

    /// Begins the state of a value, which is then known by its position. `implied` is its repository id, if
    /// the header has none.
    pub(crate) fn enter_passed(
        &mut self,
        value: Opened,
        implied: Option<&Arc<str>>,
    ) -> Result<(), DecodeError> {
        let state = self.value_state();
        let passed = Passed { level: state.level, implied: implied.cloned() };
        Reading::of_mut(&mut state.tables).passed.insert(value.at, passed);
        self.enter_state(value.chunked, value.around.is_some())
    }

    /// Ends the state of a value. `skips` is set if it may contain more data than was read.
    pub(crate) fn leave_passed(&mut self, value: Opened, skips: bool) -> Result<(), DecodeError> {
        self.leave_state(value.chunked, skips, value.around)
    }

    /// Reads the value that began at a position, then returns to the current position.
    pub(crate) fn pass_again(&mut self, position: usize, f: &mut Again<'_, 'a>) -> Result<(), DecodeError> {
        let at = self.position() - 8;
        let reading = self.reading();
        let passed = reading.passed.get(&position).cloned();
        let found = || {
            let (level, id) = reading.found(position)?;
            Some(Passed { level, implied: Some(Arc::from(id)) })
        };
        let passed = passed.or_else(found).ok_or_else(|| self.malformed(at))?;
        self.revisit(position, passed.level, |d| f(d, passed.implied.as_ref()))
    }

    /// Reads the value that began at a position, inside of `level` chunked values, then returns to the
    /// current position.
    pub(super) fn revisit<R>(
        &mut self,
        position: usize,
        level: u32,
        f: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        let at = self.position();
        let Some(view) = self.look_at(position, level > 0)? else { return Err(self.malformed(at)) };
        let state = self.value_state();
        let before = (
            core::mem::replace(&mut state.level, level),
            core::mem::take(&mut state.open),
            state.ended.take(),
        );
        let result = self.nested(f);
        let state = self.value_state();
        (state.level, state.open, state.ended) = before;
        self.look_back(view);
        result
    }
}

impl Encoder {
    /// Stores the types of the values of an any that is put into another one.
    pub(crate) fn note_made_types(&mut self, made: &Made) {
        if self.is_keeping() {
            self.writing().made.merge(made);
        }
    }

    /// Stores the type of a value that is written from a tree.
    pub(crate) fn note_value_type(&mut self, id: &str, code: &TypeCode) {
        if self.is_keeping() {
            self.writing().made.add_code(id, code);
        }
    }

    /// Writes null.
    pub(crate) fn put_null(&mut self) {
        self.put_u32(NULL);
    }

    /// Writes an indirection to the value at this position.
    pub(crate) fn put_back(&mut self, position: usize) -> Result<(), EncodeError> {
        self.put_indirection(position)
    }

    /// Writes the header of a value, with its id, or with all ids unless the type is `exact`ly that of the
    /// place. Returns the position of its tag, and whether its state is in chunks.
    pub(crate) fn open_passed(&mut self, of: &PassedType, exact: bool) -> Result<(usize, bool), EncodeError> {
        let inside = self.is_in_chunked();
        let list = !exact && of.ids.len() > 1;
        let chunked = inside || list;
        if inside {
            self.close_chunk()?;
        }
        let type_info = if list { ID_LIST } else { ONE_ID };
        self.put_u32(VALUE | type_info | if chunked { CHUNKED } else { 0 });
        let at = self.position() - 4;
        match of.ids.first() {
            Some(id) if !list => self.put_passed_id(id)?,
            _ => self.put_passed_ids(&of.ids)?,
        }
        if chunked {
            self.begin_chunked();
            self.open_chunk();
        }
        Ok((at, chunked))
    }

    /// Ends the bases whose members are complete after this number of `members`. `ended` counts the bases
    /// that were ended.
    pub(crate) fn after_members(
        &mut self,
        class: &Class,
        chunked: bool,
        members: usize,
        ended: &mut usize,
    ) -> Result<(), EncodeError> {
        while self.ends_bases && chunked && class.ends.get(*ended) == Some(&members) {
            *ended += 1;
            self.end_base()?;
        }
        Ok(())
    }

    /// Ends the state of a value.
    pub(crate) fn close_passed(&mut self, chunked: bool) -> Result<(), EncodeError> {
        if chunked { self.end_chunked() } else { Ok(()) }
    }

    pub(super) fn put_passed_id(&mut self, id: &str) -> Result<(), EncodeError> {
        let at = self.position().next_multiple_of(4);
        let writing = self.writing();
        if let Some(at) = writing.ids.get(id).copied() {
            return self.put_indirection(at);
        }
        if !is_explicit(id) {
            writing.ids.insert(Cow::Owned(id.to_owned()), at);
        }
        self.put_ascii(id)
    }

    fn put_passed_ids(&mut self, ids: &Arc<[Arc<str>]>) -> Result<(), EncodeError> {
        let at = self.position().next_multiple_of(4);
        let writing = self.writing();
        if let Some(at) = writing.passed_lists.get(ids).copied() {
            return self.put_indirection(at);
        }
        if !ids.iter().any(|id| is_explicit(id)) {
            writing.passed_lists.insert(Arc::clone(ids), at);
        }
        self.put_len(ids.len())?;
        ids.iter().try_for_each(|id| self.put_ascii(id))
    }
}
