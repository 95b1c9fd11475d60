//! Values that are read and written by their type codes, without a Rust type.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::Arc;

use super::header::{CHUNKED, ID_LIST, NULL, ONE_ID, STRING_VALUE, VALUE, ValueHeader, is_explicit};
use super::read;
use super::read::{DecodedValues, ValueStart};
use super::write::{self, EncodedValues};
use super::{Class, Factories, Factory, LocalTypes, StringValue, ValueType, WStringValue};
use crate::cdr::{Decoder, Encoder, chunked};
use crate::typecode::{TypeCode, WSTRING_VALUE, type_lookup};
use crate::{DecodeError, EncodeError};

#[derive(Clone, Debug)]
pub(crate) struct UntypedValue {
    /// Number of enclosing chunked values.
    pub(super) level: u32,
    /// The repository id, if its header has none.
    pub(super) implied: Option<Arc<str>>,
}

pub(crate) enum NextValue<'a> {
    Null,
    /// An indirection to the value at this position.
    Back(usize),
    /// A value whose state follows, with the repository ids of its header.
    New(ValueHeader, Vec<&'a str>),
}

/// Returns the factory for this repository id, if the program has the type.
pub(super) fn find_factory(d: &Decoder<'_>, id: &str) -> Option<&'static Factory> {
    let local_types = || DecodedValues::find(d)?.local_types.as_ref()?.factories.find(id);
    let of_context = || d.dyn_context()?.known_factories()?.downcast_ref::<Factories>()?.find(id);
    match of_context().or_else(local_types) {
        None if id == STRING_VALUE => Some(StringValue::STATE_FACTORY),
        None if id == WSTRING_VALUE => Some(WStringValue::STATE_FACTORY),
        found => found,
    }
}

/// Returns the type code of the value type with this repository id, if the program or its context has it.
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

pub(super) fn names<'d, 'a>(d: &'d mut Decoder<'a>, ids: Range<usize>) -> &'d [&'a str] {
    read::value_state(d).names.get(ids).unwrap_or_default()
}

pub(crate) fn next_value<'a>(d: &mut Decoder<'a>) -> Result<NextValue<'a>, DecodeError> {
    Ok(match read::read_start(d)? {
        ValueStart::Null => NextValue::Null,
        ValueStart::Indirection(target) => NextValue::Back(target),
        ValueStart::Header(header, ids) => NextValue::New(header, names(d, ids).to_vec()),
    })
}

/// Begins the state of a value, to which indirections may refer. `implied` is the id that its header lacks.
pub(crate) fn enter(
    d: &mut Decoder<'_>,
    value: ValueHeader,
    implied: Option<&Arc<str>>,
) -> Result<(), DecodeError> {
    let state = read::value_state(d);
    let untyped = UntypedValue { level: state.nesting.level, implied: implied.cloned() };
    DecodedValues::of_mut(&mut state.tables).untyped.insert(value.at, untyped);
    read::enter_state(d, value.chunked, value.outer_chunk_end.is_some())
}

/// Ends the state of a value. `skips_rest`: data at its end may remain unread.
pub(crate) fn leave(d: &mut Decoder<'_>, value: ValueHeader, skips_rest: bool) -> Result<(), DecodeError> {
    if value.chunked { read::end_chunked(d, skips_rest, value.outer_chunk_end) } else { Ok(()) }
}

/// A callback with the decoder at an earlier value, and the id that its header may lack.
pub(crate) type EarlierValueReader<'f, 'a> =
    dyn FnMut(&mut Decoder<'a>, Option<&Arc<str>>) -> Result<(), DecodeError> + 'f;

pub(crate) fn read_again<'a>(
    d: &mut Decoder<'a>,
    position: usize,
    f: &mut EarlierValueReader<'_, 'a>,
) -> Result<(), DecodeError> {
    let at = d.position() - 8;
    let decoded = DecodedValues::of(d);
    let typed = || {
        let (level, id) = decoded.level_and_id(position)?;
        Some(UntypedValue { level, implied: Some(Arc::from(id)) })
    };
    let untyped = decoded.untyped.get(&position).cloned().or_else(typed);
    let untyped = untyped.ok_or_else(|| read::malformed(at))?;
    revisit(d, position, untyped.level, |d| f(d, untyped.implied.as_ref()))
}

/// Calls `f` with the decoder at an earlier position inside of `level` chunked values.
pub(super) fn revisit<'a, R>(
    d: &mut Decoder<'a>,
    position: usize,
    level: u32,
    f: impl FnOnce(&mut Decoder<'a>) -> Result<R, DecodeError>,
) -> Result<R, DecodeError> {
    let at = d.position();
    let Some(view) = chunked::view_from(d, position, level)? else { return Err(read::malformed(at)) };
    let result = d.nested(f);
    chunked::restore_view(d, view);
    result
}

/// Stores the types of the values of an any that is put into another any.
pub(crate) fn store_local_types(e: &mut Encoder, local_types: &LocalTypes) {
    if e.is_keeping() {
        EncodedValues::of(e).local_types.merge(local_types);
    }
}

/// Stores the type of a value that is written without its Rust type.
pub(crate) fn store_value_type(e: &mut Encoder, id: &str, code: &TypeCode) {
    if e.is_keeping() {
        EncodedValues::of(e).local_types.add_code(id, code);
    }
}

pub(crate) fn put_null(e: &mut Encoder) {
    e.put_u32(NULL);
}

/// Writes the header of a value: with its first id if its type is exactly that of the place, otherwise with
/// all `ids`. Returns the position of its tag, and whether its state is in chunks.
pub(crate) fn open(
    e: &mut Encoder,
    ids: &Arc<[Arc<str>]>,
    exact: bool,
) -> Result<(usize, bool), EncodeError> {
    let in_chunks = write::is_in_chunked(e);
    let list = !exact && ids.len() > 1;
    let chunked = in_chunks || list;
    if in_chunks {
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

/// Ends the bases whose members are all among the first `members`. `ended` counts the ended bases.
pub(crate) fn end_complete_bases(
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

pub(crate) fn close(e: &mut Encoder, chunked: bool) -> Result<(), EncodeError> {
    if chunked { write::end_chunked(e) } else { Ok(()) }
}

pub(super) fn put_id(e: &mut Encoder, id: &str) -> Result<(), EncodeError> {
    write::put_id(e, id, || Cow::Owned(id.to_owned()))
}

fn put_ids(e: &mut Encoder, ids: &Arc<[Arc<str>]>) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let encoded = EncodedValues::of(e);
    if let Some(target) = encoded.untyped_lists.get(ids).copied() {
        return write::put_indirection(e, target);
    }
    if !ids.iter().any(|id| is_explicit(id)) {
        encoded.untyped_lists.insert(Arc::clone(ids), at);
    }
    e.put_len(ids.len())?;
    ids.iter().try_for_each(|id| e.put_ascii(id))
}
