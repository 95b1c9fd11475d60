//! Values without a known Rust type, which are copied by their type codes from one stream to another.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::Arc;

use super::boxes::built_in;
use super::context;
use super::header::{CHUNKED, ID_LIST, NULL, ONE_ID, VALUE, is_explicit};
use super::read;
use super::read::{Header, Reading, Start};
use super::write::{self, Writing};
use super::{Class, Factory, Made};
use crate::cdr::{Decoder, Encoder, chunked};
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

/// Returns the type with this repository id, if the context knows it.
pub(super) fn find_factory(d: &Decoder<'_>, id: &str) -> Option<&'static Factory> {
    let made = || Reading::find(d)?.made.as_ref()?.factories.find(id);
    let found = context::factories(d).and_then(|factories| factories.find(id)).or_else(made);
    found.or_else(|| built_in(id))
}

/// Returns the type code of the value type with this repository id, if the context knows it.
pub(crate) fn value_type(d: &Decoder<'_>, id: &str) -> Option<TypeCode> {
    let known = find_factory(d, id).and_then(|factory| factory.desc).map(TypeCode::of_desc);
    let made = || Reading::find(d)?.made.as_ref()?.code(id).cloned();
    known.or_else(made).or_else(|| context::known_value_type(d, id))
}

/// Returns the types of the values of a locally created any.
pub(crate) fn made_types<'d>(d: &'d Decoder<'_>) -> Option<&'d Arc<Made>> {
    Reading::find(d)?.made.as_ref()
}

/// Returns this decoder with the types of locally created values.
pub(crate) fn with_made_types<'a>(mut d: Decoder<'a>, made: Option<&Arc<Made>>) -> Decoder<'a> {
    if made.is_some() {
        Reading::of(&mut d).made = made.cloned();
    }
    d
}

/// Returns the repository ids of a header.
pub(super) fn names<'d, 'a>(d: &'d mut Decoder<'a>, ids: Range<usize>) -> &'d [&'a str] {
    read::value_state(d).names.get(ids).unwrap_or_default()
}

/// Reads the header of a value.
pub(crate) fn next_value<'a>(d: &mut Decoder<'a>) -> Result<Next<'a>, DecodeError> {
    Ok(match read::read_start(d)? {
        Start::Null => Next::Null,
        Start::Back(target) => Next::Back(target),
        Start::Header(Header { at, chunked, ids, around }) => {
            Next::New(Opened { at, chunked, around }, names(d, ids).to_vec())
        }
    })
}

/// Begins the state of a value, which is then known by its position. `implied` is its repository id, if
/// the header has none.
pub(crate) fn enter_passed(
    d: &mut Decoder<'_>,
    value: Opened,
    implied: Option<&Arc<str>>,
) -> Result<(), DecodeError> {
    let state = read::value_state(d);
    let passed = Passed { level: state.nesting.level, implied: implied.cloned() };
    Reading::of_mut(&mut state.tables).passed.insert(value.at, passed);
    read::enter_state(d, value.chunked, value.around.is_some())
}

/// Ends the state of a value. `skips` is set if it may contain more data than was read.
pub(crate) fn leave_passed(d: &mut Decoder<'_>, value: Opened, skips: bool) -> Result<(), DecodeError> {
    read::leave_state(d, value.chunked, skips, value.around)
}

/// Reads the value that began at a position, then returns to the current position.
pub(crate) fn pass_again<'a>(
    d: &mut Decoder<'a>,
    position: usize,
    f: &mut Again<'_, 'a>,
) -> Result<(), DecodeError> {
    let at = d.position() - 8;
    let reading = Reading::of(d);
    let passed = reading.passed.get(&position).cloned();
    let found = || {
        let (level, id) = reading.found(position)?;
        Some(Passed { level, implied: Some(Arc::from(id)) })
    };
    let passed = passed.or_else(found).ok_or_else(|| read::malformed(at))?;
    revisit(d, position, passed.level, |d| f(d, passed.implied.as_ref()))
}

/// Reads the value that began at a position, inside of `level` chunked values, then returns to the
/// current position.
pub(super) fn revisit<'a, R>(
    d: &mut Decoder<'a>,
    position: usize,
    level: u32,
    f: impl FnOnce(&mut Decoder<'a>) -> Result<R, DecodeError>,
) -> Result<R, DecodeError> {
    let at = d.position();
    let Some(view) = chunked::look_at(d, position, level)? else { return Err(read::malformed(at)) };
    let result = d.nested(f);
    chunked::look_back(d, view);
    result
}

/// Stores the types of the values of an any that is put into another one.
pub(crate) fn note_made_types(e: &mut Encoder, made: &Made) {
    if e.is_keeping() {
        Writing::of(e).made.merge(made);
    }
}

/// Stores the type of a value that is written from a tree.
pub(crate) fn note_value_type(e: &mut Encoder, id: &str, code: &TypeCode) {
    if e.is_keeping() {
        Writing::of(e).made.add_code(id, code);
    }
}

/// Writes null.
pub(crate) fn put_null(e: &mut Encoder) {
    e.put_u32(NULL);
}

/// Writes the header of a value, with its id, or with all ids unless the type is `exact`ly that of the
/// place. Returns the position of its tag, and whether its state is in chunks.
pub(crate) fn open_passed(
    e: &mut Encoder,
    of: &PassedType,
    exact: bool,
) -> Result<(usize, bool), EncodeError> {
    let inside = write::is_in_chunked(e);
    let list = !exact && of.ids.len() > 1;
    let chunked = inside || list;
    if inside {
        write::close_chunk(e)?;
    }
    let type_info = if list { ID_LIST } else { ONE_ID };
    e.put_u32(VALUE | type_info | if chunked { CHUNKED } else { 0 });
    let at = e.position() - 4;
    match of.ids.first() {
        Some(id) if !list => put_passed_id(e, id)?,
        _ => put_passed_ids(e, &of.ids)?,
    }
    if chunked {
        write::begin_chunked(e);
        write::open_chunk(e);
    }
    Ok((at, chunked))
}

/// Ends the bases whose members are complete after this number of `members`. `ended` counts the bases
/// that were ended.
pub(crate) fn after_members(
    e: &mut Encoder,
    class: &Class,
    chunked: bool,
    members: usize,
    ended: &mut usize,
) -> Result<(), EncodeError> {
    while e.ends_bases && chunked && class.ends.get(*ended) == Some(&members) {
        *ended += 1;
        write::end_base(e)?;
    }
    Ok(())
}

/// Ends the state of a value.
pub(crate) fn close_passed(e: &mut Encoder, chunked: bool) -> Result<(), EncodeError> {
    if chunked { write::end_chunked(e) } else { Ok(()) }
}

pub(super) fn put_passed_id(e: &mut Encoder, id: &str) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let writing = Writing::of(e);
    if let Some(at) = writing.ids.get(id).copied() {
        return write::put_indirection(e, at);
    }
    if !is_explicit(id) {
        writing.ids.insert(Cow::Owned(id.to_owned()), at);
    }
    e.put_ascii(id)
}

fn put_passed_ids(e: &mut Encoder, ids: &Arc<[Arc<str>]>) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let writing = Writing::of(e);
    if let Some(at) = writing.passed_lists.get(ids).copied() {
        return write::put_indirection(e, at);
    }
    if !ids.iter().any(|id| is_explicit(id)) {
        writing.passed_lists.insert(Arc::clone(ids), at);
    }
    e.put_len(ids.len())?;
    ids.iter().try_for_each(|id| e.put_ascii(id))
}
