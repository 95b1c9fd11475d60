//! Values without a known Rust type, which are copied by their type codes from one stream to another.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::Arc;

use super::boxes::built_in;
use super::context;
use super::header::{CHUNKED, ID_LIST, NULL, ONE_ID, VALUE, ValueHeader, is_explicit};
use super::read;
use super::read::{DecodedValues, Start};
use super::write::{self, EncodedValues};
use super::{Class, Factory, LocalTypes};
use crate::cdr::{Decoder, Encoder, chunked};
use crate::typecode::TypeCode;
use crate::{DecodeError, EncodeError};

/// A value that was processed by its type code.
#[derive(Clone, Debug)]
pub(crate) struct UntypedValue {
    /// Number of enclosing chunked values.
    pub(super) level: u32,
    /// The repository id, if its header has none.
    pub(super) implied: Option<Arc<str>>,
}

/// The start of a value.
pub(crate) enum NextValue<'a> {
    Null,
    /// An indirection to the value that began at this position.
    Back(usize),
    /// A value whose state follows, with the repository ids of its header.
    New(ValueHeader, Vec<&'a str>),
}

/// A callback that reads an earlier value. It receives the repository id, which the header may lack.
pub(crate) type Revisit<'f, 'a> =
    dyn FnMut(&mut Decoder<'a>, Option<&Arc<str>>) -> Result<(), DecodeError> + 'f;

/// Returns the type with this repository id, if the context knows it.
pub(super) fn find_factory(d: &Decoder<'_>, id: &str) -> Option<&'static Factory> {
    let local_types = || DecodedValues::find(d)?.local_types.as_ref()?.factories.find(id);
    let found = context::factories(d).and_then(|factories| factories.find(id)).or_else(local_types);
    found.or_else(|| built_in(id))
}

/// Returns the type code of the value type with this repository id, if the context knows it.
pub(crate) fn value_type(d: &Decoder<'_>, id: &str) -> Option<TypeCode> {
    let known = find_factory(d, id).and_then(|factory| factory.desc).map(TypeCode::of_desc);
    let local_types = || DecodedValues::find(d)?.local_types.as_ref()?.code(id).cloned();
    known.or_else(local_types).or_else(|| context::known_value_type(d, id))
}

/// Returns the types of the values of a locally created any.
pub(crate) fn local_types<'d>(d: &'d Decoder<'_>) -> Option<&'d Arc<LocalTypes>> {
    DecodedValues::find(d)?.local_types.as_ref()
}

/// Returns this decoder with the types of locally created values.
pub(crate) fn with_local_types<'a>(mut d: Decoder<'a>, local_types: Option<&Arc<LocalTypes>>) -> Decoder<'a> {
    if local_types.is_some() {
        DecodedValues::of(&mut d).local_types = local_types.cloned();
    }
    d
}

/// Returns the repository ids of a header.
pub(super) fn names<'d, 'a>(d: &'d mut Decoder<'a>, ids: Range<usize>) -> &'d [&'a str] {
    read::value_state(d).names.get(ids).unwrap_or_default()
}

/// Reads the header of a value.
pub(crate) fn next_value<'a>(d: &mut Decoder<'a>) -> Result<NextValue<'a>, DecodeError> {
    Ok(match read::read_start(d)? {
        Start::Null => NextValue::Null,
        Start::Back(target) => NextValue::Back(target),
        Start::Header(header, ids) => NextValue::New(header, names(d, ids).to_vec()),
    })
}

/// Begins the state of a value, which is then known by its position. `implied` is its repository id, if
/// the header has none.
pub(crate) fn enter(
    d: &mut Decoder<'_>,
    value: ValueHeader,
    implied: Option<&Arc<str>>,
) -> Result<(), DecodeError> {
    let state = read::value_state(d);
    let untyped = UntypedValue { level: state.nesting.level, implied: implied.cloned() };
    DecodedValues::of_mut(&mut state.tables).untyped.insert(value.at, untyped);
    read::enter_state(d, value.chunked, value.around.is_some())
}

/// Ends the state of a value. `skips` is set if it may contain more data than was read.
pub(crate) fn leave(d: &mut Decoder<'_>, value: ValueHeader, skips: bool) -> Result<(), DecodeError> {
    read::leave_state(d, value.chunked, skips, value.around)
}

/// Reads the value that began at a position, then returns to the current position.
pub(crate) fn read_again<'a>(
    d: &mut Decoder<'a>,
    position: usize,
    f: &mut Revisit<'_, 'a>,
) -> Result<(), DecodeError> {
    let at = d.position() - 8;
    let decoded = DecodedValues::of(d);
    let untyped = decoded.untyped.get(&position).cloned();
    let found = || {
        let (level, id) = decoded.found(position)?;
        Some(UntypedValue { level, implied: Some(Arc::from(id)) })
    };
    let untyped = untyped.or_else(found).ok_or_else(|| read::malformed(at))?;
    revisit(d, position, untyped.level, |d| f(d, untyped.implied.as_ref()))
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
pub(crate) fn note_local_types(e: &mut Encoder, local_types: &LocalTypes) {
    if e.is_keeping() {
        EncodedValues::of(e).local_types.merge(local_types);
    }
}

/// Stores the type of a value that is written from a tree.
pub(crate) fn note_value_type(e: &mut Encoder, id: &str, code: &TypeCode) {
    if e.is_keeping() {
        EncodedValues::of(e).local_types.add_code(id, code);
    }
}

/// Writes null.
pub(crate) fn put_null(e: &mut Encoder) {
    e.put_u32(NULL);
}

/// Writes the header of a value, with its first id, or with all `ids` unless the type is `exact`ly that of
/// the place. Returns the position of its tag, and whether its state is in chunks.
pub(crate) fn open(
    e: &mut Encoder,
    ids: &Arc<[Arc<str>]>,
    exact: bool,
) -> Result<(usize, bool), EncodeError> {
    let inside = write::is_in_chunked(e);
    let list = !exact && ids.len() > 1;
    let chunked = inside || list;
    if inside {
        write::close_chunk(e)?;
    }
    let type_info = if list { ID_LIST } else { ONE_ID };
    e.put_u32(VALUE | type_info | if chunked { CHUNKED } else { 0 });
    let at = e.position() - 4;
    match ids.first() {
        Some(id) if !list => put_id(e, id)?,
        _ => put_ids(e, ids)?,
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
pub(crate) fn close(e: &mut Encoder, chunked: bool) -> Result<(), EncodeError> {
    if chunked { write::end_chunked(e) } else { Ok(()) }
}

pub(super) fn put_id(e: &mut Encoder, id: &str) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let encoded = EncodedValues::of(e);
    if let Some(at) = encoded.ids.get(id).copied() {
        return write::put_indirection(e, at);
    }
    if !is_explicit(id) {
        encoded.ids.insert(Cow::Owned(id.to_owned()), at);
    }
    e.put_ascii(id)
}

fn put_ids(e: &mut Encoder, ids: &Arc<[Arc<str>]>) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let encoded = EncodedValues::of(e);
    if let Some(at) = encoded.untyped_lists.get(ids).copied() {
        return write::put_indirection(e, at);
    }
    if !ids.iter().any(|id| is_explicit(id)) {
        encoded.untyped_lists.insert(Arc::clone(ids), at);
    }
    e.put_len(ids.len())?;
    ids.iter().try_for_each(|id| e.put_ascii(id))
}
