//! Values that are read and written by their type codes, without a Rust type.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::Arc;

use super::header::{CHUNKED, ID_LIST, NULL, ONE_ID, STRING_VALUE, VALUE, ValueHeader, is_always_in_full};
use super::read;
use super::read::{DecodedValues, ValueStart};
use super::write::{self, EncodedValues};
use super::{Class, Factories, Factory, LocalTypes, StringValue, ValueType, WStringValue};
use crate::cdr::{Decoder, Encoder, chunked};
use crate::typecode::{TypeCode, WSTRING_VALUE, type_lookup};
use crate::{DecodeError, EncodeError};

#[derive(Clone, Debug)]
pub(crate) struct UntypedValue {
    /// The number of enclosing chunked values.
    pub(super) level: u32,
    /// The repository id, if the header of the value has none.
    pub(super) implied_id: Option<Arc<str>>,
}

pub(crate) enum NextValue<'a> {
    Null,
    /// An indirection to the value at this position.
    Indirection(usize),
    /// A value whose state follows, with the repository ids of its header.
    New(ValueHeader, Vec<&'a str>),
}

/// Returns the factory for this repository id, if the program knows the type.
pub(super) fn find_factory(d: &Decoder<'_>, id: &str) -> Option<&'static Factory> {
    let local_types = || DecodedValues::find(d)?.local_types.as_ref()?.factories.find(id);
    let of_context = || d.dyn_context()?.known_factories()?.downcast_ref::<Factories>()?.find(id);
    match of_context().or_else(local_types) {
        None if id == STRING_VALUE => Some(StringValue::STATE_FACTORY),
        None if id == WSTRING_VALUE => Some(WStringValue::STATE_FACTORY),
        found => found,
    }
}

/// Returns the type code of the value type with this id, if the program or the decoder's context knows it.
pub(crate) fn value_type(d: &Decoder<'_>, id: &str) -> Option<TypeCode> {
    let known = find_factory(d, id).and_then(|factory| factory.type_desc).map(TypeCode::of_desc);
    let local_types = || DecodedValues::find(d)?.local_types.as_ref()?.codes.get(id).cloned();
    known.or_else(local_types).or_else(|| {
        let (context, lookup) = type_lookup(d)?;
        (lookup.value_type)(context, id)
    })
}

pub(crate) fn local_types<'d>(d: &'d Decoder<'_>) -> Option<&'d Arc<LocalTypes>> {
    DecodedValues::find(d)?.local_types.as_ref()
}

pub(crate) fn with_local_types<'a>(mut d: Decoder<'a>, local_types: Option<&Arc<LocalTypes>>) -> Decoder<'a> {
    if local_types.is_some() {
        DecodedValues::of(&mut d).local_types = local_types.cloned();
    }
    d
}

pub(super) fn repository_ids<'d, 'a>(d: &'d mut Decoder<'a>, ids: Range<usize>) -> &'d [&'a str] {
    read::value_state(d).repository_ids.get(ids).unwrap_or_default()
}

pub(crate) fn next_value<'a>(d: &mut Decoder<'a>) -> Result<NextValue<'a>, DecodeError> {
    Ok(match read::read_start(d)? {
        ValueStart::Null => NextValue::Null,
        ValueStart::Indirection(target) => NextValue::Indirection(target),
        ValueStart::Header(header, ids) => NextValue::New(header, repository_ids(d, ids).to_vec()),
    })
}

/// Begins the state of a value. `implied_id` is the repository id of a value whose header has none.
pub(crate) fn enter_value(
    d: &mut Decoder<'_>,
    value: ValueHeader,
    implied_id: Option<&Arc<str>>,
) -> Result<(), DecodeError> {
    let state = read::value_state(d);
    let untyped = UntypedValue { level: state.nesting.level, implied_id: implied_id.cloned() };
    DecodedValues::of_mut(&mut state.tables).untyped.insert(value.at, untyped);
    read::enter_state(d, value.is_chunked, value.outer_chunk_end.is_some())
}

/// Ends the state of a value. If `skips_rest` is set, data at its end may remain unread.
pub(crate) fn leave_value(
    d: &mut Decoder<'_>,
    value: ValueHeader,
    skips_rest: bool,
) -> Result<(), DecodeError> {
    if value.is_chunked { read::end_chunked_value(d, skips_rest, value.outer_chunk_end) } else { Ok(()) }
}

/// A callback that reads an earlier value from its header on. It gets the id that the header lacks.
pub(crate) type EarlierValueReader<'f, 'a> =
    dyn FnMut(&mut Decoder<'a>, Option<&Arc<str>>) -> Result<(), DecodeError> + 'f;

/// Reads the value at an earlier position with `f`, and returns to the current position.
pub(crate) fn read_again<'a>(
    d: &mut Decoder<'a>,
    position: usize,
    f: &mut EarlierValueReader<'_, 'a>,
) -> Result<(), DecodeError> {
    let at = d.position() - 8;
    let decoded = DecodedValues::of(d);
    let typed = || {
        let (level, id) = decoded.level_and_id(position)?;
        Some(UntypedValue { level, implied_id: Some(Arc::from(id)) })
    };
    let untyped = decoded.untyped.get(&position).cloned().or_else(typed);
    let untyped = untyped.ok_or_else(|| read::malformed(at))?;
    revisit(d, position, untyped.level, |d| f(d, untyped.implied_id.as_ref()))
}

/// Calls `f` with the decoder at an earlier position, inside `level` chunked values. Then
/// returns to the current position.
pub(super) fn revisit<'a, R>(
    d: &mut Decoder<'a>,
    position: usize,
    level: u32,
    f: impl FnOnce(&mut Decoder<'a>) -> Result<R, DecodeError>,
) -> Result<R, DecodeError> {
    let at = d.position();
    let Some(view) = chunked::move_view_to(d, position, level)? else { return Err(read::malformed(at)) };
    let result = d.nested(f);
    chunked::restore_view(d, view);
    result
}

/// Stores the types of the values in an any that is written into another any.
pub(crate) fn store_local_types(e: &mut Encoder, local_types: &LocalTypes) {
    if e.is_storing_values() {
        EncodedValues::of(e).local_types.merge(local_types);
    }
}

pub(crate) fn store_value_type(e: &mut Encoder, id: &str, code: &TypeCode) {
    if e.is_storing_values() {
        EncodedValues::of(e).local_types.add_code(id, code);
    }
}

pub(crate) fn put_null(e: &mut Encoder) {
    e.put_u32(NULL);
}

/// Writes the header of a value. `ids` are the repository ids of its type and the bases to which it may be
/// truncated. If `is_exact` is set, the receiver expects exactly this type, so only the first id is written.
///
/// Returns the position of the tag, and whether the state is in chunks.
pub(crate) fn open_value(
    e: &mut Encoder,
    ids: &Arc<[Arc<str>]>,
    is_exact: bool,
) -> Result<(usize, bool), EncodeError> {
    let is_nested_in_chunks = write::is_in_chunked_value(e);
    let has_id_list = !is_exact && ids.len() > 1;
    let is_chunked = is_nested_in_chunks || has_id_list;
    if is_nested_in_chunks {
        write::close_chunk(e)?;
    }
    let type_info = if has_id_list { ID_LIST } else { ONE_ID };
    e.put_u32(VALUE | type_info | if is_chunked { CHUNKED } else { 0 });
    let at = e.position() - 4;
    match ids.first() {
        Some(id) if !has_id_list => put_id(e, id)?,
        _ => put_ids(e, ids)?,
    }
    if is_chunked {
        write::begin_chunked_value(e);
        write::open_chunk(e);
    }
    Ok((at, is_chunked))
}

/// Writes the end tags of the bases that end after the first `member_count` members, if the encoder writes
/// such tags.
pub(crate) fn end_complete_bases(
    e: &mut Encoder,
    class: &Class,
    is_chunked: bool,
    member_count: usize,
    ended_base_count: &mut usize,
) -> Result<(), EncodeError> {
    while e.writes_base_end_tags
        && is_chunked
        && class.member_ends.get(*ended_base_count) == Some(&member_count)
    {
        *ended_base_count += 1;
        write::end_base(e)?;
    }
    Ok(())
}

pub(crate) fn close_value(e: &mut Encoder, is_chunked: bool) -> Result<(), EncodeError> {
    if is_chunked { write::end_chunked_value(e) } else { Ok(()) }
}

pub(super) fn put_id(e: &mut Encoder, id: &str) -> Result<(), EncodeError> {
    write::put_id(e, id, || Cow::Owned(id.to_owned()))
}

fn put_ids(e: &mut Encoder, ids: &Arc<[Arc<str>]>) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let encoded = EncodedValues::of(e);
    if let Some(target) = encoded.untyped_id_lists.get(ids).copied() {
        return write::put_indirection(e, target);
    }
    if !ids.iter().any(|id| is_always_in_full(id)) {
        encoded.untyped_id_lists.insert(Arc::clone(ids), at);
    }
    e.put_len(ids.len())?;
    ids.iter().try_for_each(|id| e.put_unconverted_str(id))
}
