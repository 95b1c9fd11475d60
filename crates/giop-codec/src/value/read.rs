//! Decoding of values.

use core::any::Any;
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::graph::{Graph, Link, Node};
use super::header::{
    CHUNKED, CODEBASE, ID_LIST, INDIRECTION, NULL, ONE_ID, TYPE_INFO, ValueHeader, is_chunk, is_end_tag,
    is_header,
};
use super::untyped::{self, UntypedValue};
use super::{Factory, Flow, LocalTypes, Progress, Value, ValueForm};
use crate::cdr::{Decoder, Nesting, ReadState, ReadTables, chunked};
use crate::ior::MAX_REPOSITORY_ID_BYTES;
use crate::{DecodeError, DecodeErrorKind};

/// The maximum number of repository ids in the header of a value.
const MAX_IDS: usize = 64;

/// The values of a decoder's message, by position from the alignment origin. The vectors are sorted.
#[derive(Default)]
pub(super) struct DecodedValues {
    values: Vec<(usize, ValueEntry)>,
    /// Values in anys that were read after values at later positions.
    out_of_order_values: BTreeMap<usize, ValueEntry>,
    /// Values that were read without a Rust type, such as those in anys.
    pub(super) untyped: BTreeMap<usize, UntypedValue>,
    /// The types of the values of a locally created any.
    pub(super) local_types: Option<Arc<LocalTypes>>,
    /// The index of each repository id in the `repository_ids` of the [`ReadState`].
    ids: Vec<(usize, usize)>,
    /// The range of each list of ids in `repository_ids`.
    id_lists: Vec<(usize, Range<usize>)>,
    urls: Vec<(usize, ())>,
    graphs: Vec<Arc<Graph>>,
    /// The nodes of the graph that is being read, the last of `graphs`. One is taken out to read its state.
    nodes: Option<Vec<Option<Box<dyn Node>>>>,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy)]
struct ValueEntry {
    graph: usize,
    node: u32,
    /// The number of enclosing chunked values.
    level: u32,
    factory: &'static Factory,
}

pub(super) enum ValueStart {
    Null,
    /// An indirection to the value at this position.
    Indirection(usize),
    /// The header of a value, and the indices of its repository ids in `repository_ids`.
    Header(ValueHeader, Range<usize>),
}

/// A value whose state is being read.
#[derive(Clone, Copy)]
struct Frame {
    node: u32,
    part: u32,
    progress: Progress,
    is_chunked: bool,
    /// Whether data at the end of the state may remain unread.
    skips_rest: bool,
    outer_chunk_end: Option<usize>,
}

impl ReadTables for DecodedValues {
    // The clone knows the complete values, but does not continue to read the incomplete ones.
    fn clone_state<'a>(&self, nesting: Nesting<'a>, names: Vec<&'a str>) -> Box<ReadState<'a>> {
        let tables = DecodedValues {
            values: self.values.clone(),
            out_of_order_values: self.out_of_order_values.clone(),
            untyped: self.untyped.clone(),
            local_types: self.local_types.clone(),
            ids: self.ids.clone(),
            id_lists: self.id_lists.clone(),
            urls: self.urls.clone(),
            graphs: self.graphs.clone(),
            nodes: None,
            frames: Vec::new(),
        };
        Box::new(ReadState { nesting, repository_ids: names, tables })
    }
}

/// Returns the item at a position. Indirections of Yoko may refer to padding: then it is the item after that.
fn find_aligned<T>(table: &[(usize, T)], position: usize) -> Option<&T> {
    item_at(table, position).or_else(|| item_at(table, position.checked_next_multiple_of(4)?))
}

/// Inserts an item in the order of positions, which ascend unless data is read again. Keeps an existing one.
fn insert_item<T>(table: &mut Vec<(usize, T)>, position: usize, item: T) {
    if table.last().is_none_or(|(last, _)| *last < position) {
        table.push((position, item));
    } else if let Err(index) = table.binary_search_by_key(&position, |(at, _)| *at) {
        table.insert(index, (position, item));
    }
}

fn item_at<T>(table: &[(usize, T)], position: usize) -> Option<&T> {
    let index = table.binary_search_by_key(&position, |(at, _)| *at).ok()?;
    table.get(index).map(|(_, item)| item)
}

pub(super) fn value_state<'d, 'a>(d: &'d mut Decoder<'a>) -> &'d mut ReadState<'a> {
    d.values.get_or_insert_with(|| Box::<ReadState<'a, DecodedValues>>::default())
}

pub(super) fn malformed(at: usize) -> DecodeError {
    DecodeError::new(DecodeErrorKind::Malformed, at)
}

/// Reads a value with all values that it refers to, or null, or an indirection to an earlier value.
pub(super) fn read_value<V: ValueForm>(d: &mut Decoder<'_>) -> Result<Option<Value<V>>, DecodeError> {
    let decoded = DecodedValues::of(d);
    let first_frame = decoded.frames.len();
    if decoded.nodes.is_some() {
        // This value is inside a member of another value, whose frame precedes `first_frame`.
        let (value, is_new) = begin_value(d)?;
        if is_new {
            d.nested(|d| read_states(d, first_frame))?;
        }
        return Ok(value);
    }
    // Sequences inside values cannot be rewritten, because chunks may separate the count from the elements.
    let rewrites = d.rewrites.take();
    let (value, is_new) = begin_value(d)?;
    if is_new {
        read_states(d, first_frame)?;
    }
    let decoded = DecodedValues::of(d);
    if let Some(nodes) = decoded.nodes.take()
        && let Some(graph) = decoded.graphs.last()
    {
        graph.complete(nodes.into_iter().flatten().collect());
    }
    d.rewrites = rewrites;
    // `value` is weak. Its clone keeps the graph alive, which is complete now.
    Ok(value.clone())
}

/// Reads null, an indirection, or the header of a value. Returns `true` if the state of a new value follows.
pub(super) fn begin_value<V: ValueForm>(
    d: &mut Decoder<'_>,
) -> Result<(Option<Value<V>>, bool), DecodeError> {
    match read_start(d)? {
        ValueStart::Null => Ok((None, false)),
        ValueStart::Indirection(target) => earlier_value(d, target).map(|value| (value, false)),
        ValueStart::Header(header, ids) => begin_state(d, header, ids, None).map(|value| (value, true)),
    }
}

/// Returns the value to which an indirection refers. Reads it if it was in an any and has not been read yet.
fn earlier_value<V: ValueForm>(d: &mut Decoder<'_>, target: usize) -> Result<Option<Value<V>>, DecodeError> {
    let at = d.position() - 8;
    let decoded = DecodedValues::of(d);
    if let Some(entry) = decoded.entry(target).copied() {
        entry.factory.cast::<V>().ok_or_else(|| malformed(at))?;
        return Ok(decoded.handle(entry));
    }
    let Some(untyped) = decoded.untyped.get(&target).cloned() else { return Err(malformed(at)) };
    let first_frame = decoded.frames.len();
    untyped::revisit(d, target, untyped.level, |d| match read_start(d)? {
        ValueStart::Header(header, ids) => {
            let value = begin_state(d, header, ids, untyped.implied_id.as_deref())?;
            read_states(d, first_frame)?;
            Ok(value)
        }
        ValueStart::Null | ValueStart::Indirection(_) => Err(malformed(target)),
    })
}

/// Creates the value whose header was read. Its type is given by `ids`, else by `implied_id`, else it is `V`.
fn begin_state<V: ValueForm>(
    d: &mut Decoder<'_>,
    header: ValueHeader,
    ids: Range<usize>,
    implied_id: Option<&str>,
) -> Result<Option<Value<V>>, DecodeError> {
    let ValueHeader { at, is_chunked, outer_chunk_end } = header;
    let (factory, is_truncated) = choose_factory::<V>(d, ids, implied_id, at)?;
    if is_truncated && !is_chunked {
        return Err(DecodeError::new(DecodeErrorKind::NoValueFactory, at));
    }
    d.charge(factory.size.saturating_add(size_of::<ValueEntry>() + size_of::<Frame>() + 48))?;
    let state = value_state(d);
    let level = state.nesting.level;
    let decoded = DecodedValues::of_mut(&mut state.tables);
    if decoded.nodes.is_none() {
        decoded.nodes = Some(Vec::new());
        decoded.graphs.push(Arc::default());
    }
    let nodes = decoded.nodes.get_or_insert_default();
    let node = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    nodes.push(Some((factory.new)()));
    let entry = ValueEntry { graph: decoded.graphs.len() - 1, node, level, factory };
    // A value in an any may already have been read through an indirection. The result is then the same value.
    let mut known = entry;
    if decoded.values.last().is_none_or(|(last, _)| *last < at) {
        decoded.values.push((at, entry));
    } else if let Some(before) = item_at(&decoded.values, at) {
        known = *before;
    } else {
        known = *decoded.out_of_order_values.entry(at).or_insert(entry);
    }
    let skips_rest = is_truncated || factory.is_custom;
    let progress = Progress::default();
    decoded.frames.push(Frame { node, part: 0, progress, is_chunked, skips_rest, outer_chunk_end });
    // `factory` was chosen for the type `V`, but the factory of a value that was read before was not.
    if !core::ptr::eq(known.factory, factory) {
        known.factory.cast::<V>().ok_or(DecodeError::new(DecodeErrorKind::Malformed, at))?;
    }
    let value = decoded.handle(known);
    enter_state(d, is_chunked, outer_chunk_end.is_some())?;
    Ok(value)
}

pub(super) fn read_start(d: &mut Decoder<'_>) -> Result<ValueStart, DecodeError> {
    let (tag, mut outer_chunk_end) = value_tag(d)?;
    let at = d.position() - 4;
    match tag {
        NULL => return Ok(ValueStart::Null),
        INDIRECTION => return indirection_target(d).map(ValueStart::Indirection),
        _ => {}
    }
    let is_chunked = tag & CHUNKED != 0;
    if !is_header(tag) || (value_state(d).nesting.level > 0 && !is_chunked && outer_chunk_end.is_none()) {
        return Err(malformed(at));
    }
    let ids = if tag & (CODEBASE | TYPE_INFO) == 0 { 0..0 } else { read_type_info(d, tag)? };
    // TAO writes nested values without chunks. Their state is then a part of the enclosing chunk.
    if let Some(end) = outer_chunk_end.take_if(|_| !is_chunked) {
        chunked::resume_chunk(d, end)?;
    }
    Ok(ValueStart::Header(ValueHeader { at, is_chunked, outer_chunk_end }, ids))
}

/// Begins a state. `is_in_open_chunk` tells whether the chunk of the enclosing value has not ended.
pub(super) fn enter_state(
    d: &mut Decoder<'_>,
    is_chunked: bool,
    is_in_open_chunk: bool,
) -> Result<(), DecodeError> {
    if is_chunked {
        let nesting = &mut value_state(d).nesting;
        nesting.level += 1;
        if is_in_open_chunk {
            nesting.levels_in_parent_chunk.push(nesting.level);
        }
        if nesting.level == 1 {
            chunked::begin_chunks(d)?;
        }
        chunked::hide_until_next_chunk(d);
    }
    Ok(())
}

/// Reads the tag of the next value.
///
/// In a chunked value, null and indirections are inside a chunk, and headers are between two chunks. TAO does
/// not end the chunk before a header. In that case, the end of the chunk is returned too.
fn value_tag(d: &mut Decoder<'_>) -> Result<(u32, Option<usize>), DecodeError> {
    while chunked::is_view_limited(d) && !chunked::has_aligned_data_in_chunk(d, 4) {
        if value_state(d).nesting.ended_from_level.is_some() {
            return Err(d.error(DecodeErrorKind::Malformed));
        }
        chunked::leave_chunk(d);
        let tag = chunked::read_tag_between_chunks(d)?;
        if !is_chunk(tag) {
            let at = d.position() - 4;
            let is_expected = is_header(tag) || tag == NULL;
            return if is_expected { Ok((tag, None)) } else { Err(malformed(at)) };
        }
        chunked::enter_chunk(d, tag as usize)?;
    }
    let tag = d.read_u32()?;
    let outer_chunk_end =
        (chunked::is_view_limited(d) && is_header(tag)).then(|| chunked::interrupt_chunk(d));
    Ok((tag, outer_chunk_end))
}

fn indirection_target(d: &mut Decoder<'_>) -> Result<usize, DecodeError> {
    let offset = d.read_i32()?;
    let at = d.position() - 4;
    // An offset of -4 would refer to the indirection itself.
    let back = usize::try_from(offset.unsigned_abs()).ok().filter(|_| offset < -4);
    back.and_then(|back| at.checked_sub(back)).ok_or_else(|| malformed(at))
}

/// Reads the type information of a header and returns the indices of the value's ids in `repository_ids`.
pub(super) fn read_type_info(d: &mut Decoder<'_>, tag: u32) -> Result<Range<usize>, DecodeError> {
    if tag & CODEBASE != 0 {
        skip_url(d)?;
    }
    match tag & TYPE_INFO {
        ONE_ID => read_id(d).map(|name| name..name + 1),
        ID_LIST => read_id_list(d),
        _ => Ok(0..0),
    }
}

/// Reads a `string` and returns its position and bytes; for an indirection, its target and `None`.
fn read_text<'a>(d: &mut Decoder<'a>) -> Result<(usize, Option<&'a [u8]>), DecodeError> {
    let len = d.read_u32()?;
    let at = d.position() - 4;
    if len == INDIRECTION {
        return Ok((indirection_target(d)?, None));
    }
    d.charge(size_of::<(usize, usize)>() + size_of::<&str>())?;
    match d.take(len as usize)?.split_last() {
        Some((0, text)) if !text.contains(&0) => Ok((at, Some(text))),
        _ => Err(DecodeError::new(DecodeErrorKind::StringNotTerminated, at)),
    }
}

fn read_id(d: &mut Decoder<'_>) -> Result<usize, DecodeError> {
    let (at, text) = read_text(d)?;
    let state = value_state(d);
    let decoded = DecodedValues::of_mut(&mut state.tables);
    match text {
        Some(text) if text.len() > MAX_REPOSITORY_ID_BYTES => {
            Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at))
        }
        Some(text) => {
            let index = state.repository_ids.len();
            let text = core::str::from_utf8(text);
            state
                .repository_ids
                .push(text.map_err(|_| DecodeError::new(DecodeErrorKind::InvalidIdentifier, at))?);
            insert_item(&mut decoded.ids, at, index);
            Ok(index)
        }
        None => find_aligned(&decoded.ids, at).copied().ok_or_else(|| malformed(at)),
    }
}

fn read_id_list(d: &mut Decoder<'_>) -> Result<Range<usize>, DecodeError> {
    let count = d.read_u32()?;
    let at = d.position() - 4;
    if count == INDIRECTION {
        let target = indirection_target(d)?;
        return find_aligned(&DecodedValues::of(d).id_lists, target).cloned().ok_or_else(|| malformed(at));
    }
    if count as usize > MAX_IDS {
        return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
    }
    d.charge(size_of::<(usize, Range<usize>)>() + count as usize * size_of::<&str>())?;
    let mut listed = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let index = read_id(d)?;
        listed.extend(value_state(d).repository_ids.get(index).copied());
    }
    let state = value_state(d);
    let first = state.repository_ids.len();
    state.repository_ids.extend(listed);
    let list = first..state.repository_ids.len();
    insert_item(&mut DecodedValues::of_mut(&mut state.tables).id_lists, at, list.clone());
    Ok(list)
}

fn skip_url(d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let (at, text) = read_text(d)?;
    let urls = &mut DecodedValues::of(d).urls;
    match text {
        Some(_) => insert_item(urls, at, ()),
        None => *item_at(urls, at).ok_or_else(|| malformed(at))?,
    }
    Ok(())
}

/// Returns the factory for a value with these ids as a `V`, and whether the value is truncated.
fn choose_factory<V: ValueForm>(
    d: &mut Decoder<'_>,
    ids: Range<usize>,
    implied_id: Option<&str>,
    at: usize,
) -> Result<(&'static Factory, bool), DecodeError> {
    let unknown = DecodeError::new(DecodeErrorKind::NoValueFactory, at);
    let names = d.values.as_ref().and_then(|state| state.repository_ids.get(ids)).unwrap_or_default();
    if names.is_empty() && implied_id.is_none() {
        return V::FACTORY.map(|factory| (factory, false)).ok_or(unknown);
    }
    let names = names.iter().copied().chain(implied_id.filter(|_| names.is_empty()));
    names
        .enumerate()
        .find_map(|(index, id)| {
            let own = V::FACTORY.filter(|own| own.repository_id == id);
            let factory = own.or_else(|| untyped::find_factory(d, id))?;
            factory.cast::<V>()?;
            Some((factory, index > 0))
        })
        .ok_or(unknown)
}

/// Reads the states of the values in `frames` from the index `first_frame` on.
fn read_states(d: &mut Decoder<'_>, first_frame: usize) -> Result<(), DecodeError> {
    'values: loop {
        let mut decoded = DecodedValues::of(d);
        let index = decoded.frames.len().wrapping_sub(1);
        let Some(mut frame) = decoded.frames.last().copied().filter(|_| index >= first_frame) else {
            return Ok(());
        };
        let Some(mut node) = decoded.node(frame.node).and_then(Option::take) else {
            return Err(d.error(DecodeErrorKind::Malformed));
        };
        while frame.part != node.part_count() {
            if let Flow::Next = node.decode_part(frame.part, d, &mut frame.progress)? {
                (frame.part, frame.progress) = (frame.part + 1, Progress::default());
            }
            decoded = DecodedValues::of(d);
            if decoded.frames.len() > index + 1 {
                // The call ended with the header of a value, whose state follows immediately.
                decoded.put_back(frame.node, node);
                if let Some(place) = decoded.frames.get_mut(index) {
                    *place = frame;
                }
                continue 'values;
            }
        }
        decoded.put_back(frame.node, node);
        decoded.frames.pop();
        if frame.is_chunked {
            end_chunked_value(d, frame.skips_rest, frame.outer_chunk_end)?;
        }
    }
}

/// Ends the innermost chunked value, whose state must have no rest unless `skips_rest` is set.
pub(super) fn end_chunked_value(
    d: &mut Decoder<'_>,
    skips_rest: bool,
    outer_chunk_end: Option<usize>,
) -> Result<(), DecodeError> {
    let level = value_state(d).nesting.level;
    if chunked::has_aligned_data_in_chunk(d, 1) && !skips_rest {
        return Err(d.error(DecodeErrorKind::Malformed));
    }
    if value_state(d).nesting.ended_from_level.is_none() {
        skip_to_end(d, level, skips_rest, outer_chunk_end)?;
    }
    let nesting = &mut value_state(d).nesting;
    nesting.levels_in_parent_chunk.pop_if(|open| *open == level);
    nesting.ended_from_level = nesting.ended_from_level.filter(|ended| *ended < level);
    nesting.level = level.saturating_sub(1);
    if nesting.level == 0 {
        chunked::end_chunks(d);
    } else {
        chunked::hide_until_next_chunk(d);
    }
    outer_chunk_end.map_or(Ok(()), |end| chunked::resume_chunk(d, end))
}

/// Skips the rest of the value at `level`, including its end tag.
fn skip_to_end(
    d: &mut Decoder<'_>,
    level: u32,
    skips_rest: bool,
    outer_chunk_end: Option<usize>,
) -> Result<(), DecodeError> {
    chunked::leave_chunk(d);
    let mut inner_level = level;
    loop {
        let tag = d.read_u32()?;
        let at = d.position() - 4;
        let end = tag.wrapping_neg();
        if is_end_tag(tag) && outer_chunk_end.is_some() {
            // TAO counts levels from 1 again inside an open chunk.
            if end == 1 || (end == level && chunked::is_at_chunk_end(d, outer_chunk_end)) {
                value_state(d).nesting.ended_from_level = Some(level);
                return Ok(());
            }
        } else if is_end_tag(tag) {
            if end > inner_level {
                // TAO ends the state of each base with such a tag, whose level is that of no value.
                continue;
            }
            if end <= level {
                value_state(d).nesting.ended_from_level = Some(end);
                return Ok(());
            }
            inner_level = end - 1;
        } else if is_chunk(tag) && skips_rest {
            d.take(tag as usize)?;
        } else if is_header(tag) && tag & CHUNKED != 0 && skips_rest {
            // The nested value is skipped, but other values may refer to its ids.
            read_type_info(d, tag)?;
            inner_level += 1;
        } else {
            return Err(malformed(at));
        }
    }
}

impl DecodedValues {
    pub(super) fn of<'d>(d: &'d mut Decoder<'_>) -> &'d mut DecodedValues {
        DecodedValues::of_mut(&mut value_state(d).tables)
    }

    pub(super) fn find<'d>(d: &'d Decoder<'_>) -> Option<&'d DecodedValues> {
        (&d.values.as_ref()?.tables as &dyn Any).downcast_ref()
    }

    pub(super) fn of_mut(tables: &mut dyn ReadTables) -> &mut DecodedValues {
        (tables as &mut dyn Any)
            .downcast_mut()
            .unwrap_or_else(|| unreachable!("only this module creates the tables"))
    }

    /// Returns the level and the repository id of the value with a Rust type at this position.
    pub(super) fn level_and_id(&self, position: usize) -> Option<(u32, &'static str)> {
        self.entry(position).map(|entry| (entry.level, entry.factory.repository_id))
    }

    fn entry(&self, position: usize) -> Option<&ValueEntry> {
        item_at(&self.values, position).or_else(|| self.out_of_order_values.get(&position))
    }

    #[inline]
    fn put_back(&mut self, index: u32, node: Box<dyn Node>) {
        if let Some(place) = self.node(index) {
            *place = Some(node);
        }
    }

    fn node(&mut self, index: u32) -> Option<&mut Option<Box<dyn Node>>> {
        self.nodes.as_mut()?.get_mut(index as usize)
    }

    /// Returns a handle. It is weak until the graph is complete, because the graph may contain the handle.
    fn handle<V>(&self, entry: ValueEntry) -> Option<Value<V>> {
        let graph = self.graphs.get(entry.graph)?;
        let link = match graph.is_complete() {
            true => Link::Strong(Arc::clone(graph)),
            false => Link::Weak(Arc::downgrade(graph)),
        };
        Some(Value::from_link(link, entry.node))
    }
}
