//! Encoding of values.

use core::any::Any;
use core::fmt;
use core::hash::{Hash, Hasher};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::graph::Graph;
use super::header::{CHUNKED, ID_LIST, INDIRECTION, NULL, ONE_ID, VALUE, is_always_in_full, is_always_named};
use super::read;
use super::{Factory, Flow, LocalTypes, Progress, Value, ValueForm};
use crate::cdr::{CdrEncode, Encoder, Nilable, OpenChunk, WriteState, WrittenTables};
use crate::{EncodeError, EncodeErrorKind};

/// The maximum nesting of values in members that are not [parts](super::ValuePart), as in the decoder.
const MAX_VALUE_DEPTH: usize = crate::cdr::MAX_DEPTH as usize + 1;

/// The positions, from the alignment origin, of the values and repository ids that were written.
#[derive(Default)]
pub(super) struct EncodedValues {
    values: HashMap<NodeKey, usize>,
    pub(super) ids: HashMap<Cow<'static, str>, usize>,
    /// The positions of lists of ids, by the first id.
    id_lists: HashMap<&'static str, usize>,
    /// The positions of lists of ids of values that were written without a Rust type, such as those in anys.
    pub(super) untyped_id_lists: HashMap<Arc<[Arc<str>]>, usize>,
    /// The types of values that are in anys inside this any, or that were written without a Rust type.
    pub(super) local_types: LocalTypes,
    frames: Vec<Frame>,
}

#[derive(Clone)]
struct NodeKey {
    graph: Arc<Graph>,
    index: u32,
}

impl PartialEq for NodeKey {
    fn eq(&self, other: &NodeKey) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.graph, &other.graph)
    }
}

impl Eq for NodeKey {}

impl Hash for NodeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.graph).addr(), self.index).hash(state);
    }
}

/// A value whose state is being written.
struct Frame {
    key: NodeKey,
    part: u32,
    progress: Progress,
    is_chunked: bool,
    ended_base_count: usize,
}

impl WrittenTables for EncodedValues {
    fn forget_from(&mut self, position: usize) {
        self.values.retain(|_, at| *at < position);
        self.ids.retain(|_, at| *at < position);
        self.id_lists.retain(|_, at| *at < position);
        self.untyped_id_lists.retain(|_, at| *at < position);
    }
}

impl EncodedValues {
    pub(super) fn of(e: &mut Encoder) -> &mut EncodedValues {
        EncodedValues::of_mut(&mut value_state(e).tables)
    }

    fn of_mut(tables: &mut dyn WrittenTables) -> &mut EncodedValues {
        (tables as &mut dyn Any)
            .downcast_mut()
            .unwrap_or_else(|| unreachable!("only this module creates the tables"))
    }

    fn take_types(&mut self) -> LocalTypes {
        let mut types = core::mem::take(&mut self.local_types);
        for key in self.values.keys() {
            if let Some(node) = key.graph.node(key.index) {
                types.factories.add(node.factory());
            }
        }
        types
    }
}

impl fmt::Debug for EncodedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedValues").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

/// Forgets all written values, so that no later indirection refers to them.
#[cold]
pub(crate) fn forget_values(e: &mut Encoder) {
    e.values = None;
}

/// Takes the types of all written values; `None` if no value has been written.
pub(crate) fn take_value_types(e: &mut Encoder) -> Option<LocalTypes> {
    e.values.is_some().then(|| EncodedValues::of(e).take_types())
}

pub(super) fn value_state(e: &mut Encoder) -> &mut WriteState {
    e.values.get_or_insert_with(|| Box::<WriteState<EncodedValues>>::default())
}

/// Writes null, an indirection, or the header of a value. Returns `true` if its state must follow.
pub(super) fn begin_value<V: ValueForm>(
    e: &mut Encoder,
    value: Option<&Value<V>>,
) -> Result<bool, EncodeError> {
    let Some(value) = value else {
        e.put_u32(NULL);
        return Ok(false);
    };
    let error = EncodeErrorKind::Unrepresentable;
    let key = NodeKey { graph: value.link.graph().ok_or(error)?, index: value.index };
    let factory = key.graph.node(key.index).ok_or(error)?.factory();
    let is_nested_in_chunks = is_in_chunked_value(e);
    let at = e.position().next_multiple_of(4);
    match EncodedValues::of(e).values.entry(key) {
        Entry::Occupied(known) => {
            let target = *known.get();
            put_indirection(e, target).map(|()| false)
        }
        Entry::Vacant(new) => {
            let key = new.key().clone();
            // In a chunked value, this position is not final: `put_header` may remove an empty chunk.
            if !is_nested_in_chunks {
                new.insert(at);
            }
            put_header::<V>(e, key, factory, is_nested_in_chunks).map(|()| true)
        }
    }
}

fn put_header<V: ValueForm>(
    e: &mut Encoder,
    key: NodeKey,
    factory: &'static Factory,
    is_nested_in_chunks: bool,
) -> Result<(), EncodeError> {
    let is_exact = V::FACTORY.is_some_and(|own| own.repository_id == factory.repository_id);
    let is_nested = value_state(e).level > 0;
    // A receiver that truncates the enclosing value, and therefore does not know the declared type of this
    // nested value, must be able to read it. Therefore nested values always have an id.
    let type_info = match (is_exact, factory.truncatable_bases.is_empty()) {
        (true, _) if !is_nested && !is_always_named(factory.repository_id) => 0,
        (false, false) => ID_LIST,
        _ => ONE_ID,
    };
    let is_chunked = is_nested_in_chunks || factory.is_custom || type_info == ID_LIST;
    if is_nested_in_chunks {
        close_chunk(e)?;
    }
    e.put_u32(VALUE | type_info | if is_chunked { CHUNKED } else { 0 });
    let at = e.position() - 4;
    let encoded = EncodedValues::of(e);
    if is_nested_in_chunks {
        encoded.values.insert(key.clone(), at);
    }
    let progress = Progress::default();
    encoded.frames.push(Frame { key, part: 0, progress, is_chunked, ended_base_count: 0 });
    match type_info {
        ID_LIST => put_id_list(e, factory)?,
        ONE_ID => put_id(e, factory.repository_id, || Cow::Borrowed(factory.repository_id))?,
        _ => {}
    }
    if is_chunked {
        begin_chunked_value(e);
        open_chunk(e);
    }
    Ok(())
}

pub(crate) fn put_indirection(e: &mut Encoder, to: usize) -> Result<(), EncodeError> {
    e.put_u32(INDIRECTION);
    let offset = i64::try_from(e.position() - to).ok().and_then(|back| i32::try_from(-back).ok());
    e.put_i32(offset.ok_or(EncodeErrorKind::TooLong)?);
    Ok(())
}

/// Writes a repository id, or an indirection to it. `key` returns the id as it is stored for indirections.
pub(super) fn put_id(
    e: &mut Encoder,
    id: &str,
    key: impl FnOnce() -> Cow<'static, str>,
) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let encoded = EncodedValues::of(e);
    if let Some(target) = encoded.ids.get(id).copied() {
        return put_indirection(e, target);
    }
    if !is_always_in_full(id) {
        encoded.ids.insert(key(), at);
    }
    e.put_unconverted_str(id)
}

fn put_id_list(e: &mut Encoder, factory: &'static Factory) -> Result<(), EncodeError> {
    let at = e.position().next_multiple_of(4);
    let encoded = EncodedValues::of(e);
    if let Some(target) = encoded.id_lists.get(factory.repository_id).copied() {
        return put_indirection(e, target);
    }
    if !is_always_in_full(factory.repository_id) {
        encoded.id_lists.insert(factory.repository_id, at);
    }
    e.put_len(factory.truncatable_bases.len() + 1)?;
    e.put_unconverted_str(factory.repository_id)?;
    factory.truncatable_bases.iter().try_for_each(|id| e.put_unconverted_str(id))
}

/// Returns whether the next value is inside a chunked value whose chunk must end before it.
pub(super) fn is_in_chunked_value(e: &mut Encoder) -> bool {
    !e.writes_base_end_tags && value_state(e).level > 0
}

pub(super) fn begin_chunked_value(e: &mut Encoder) {
    let restarts_levels = e.writes_base_end_tags;
    let state = value_state(e);
    if restarts_levels {
        let outer = (core::mem::take(&mut state.level), state.chunk.take());
        state.enclosing.push(outer);
    }
    state.level += 1;
}

/// Writes the end tag of the state of a base, as TAO does. Its level is that of the value plus 1.
pub(crate) fn end_base(e: &mut Encoder) -> Result<(), EncodeError> {
    close_chunk(e)?;
    let deeper = value_state(e).level + 1;
    e.put_u32(deeper.wrapping_neg());
    open_chunk(e);
    Ok(())
}

/// Writes the states of the values in `frames` from the index `first_frame` on.
fn put_states(e: &mut Encoder, first_frame: usize) -> Result<(), EncodeError> {
    let error = EncodeErrorKind::Unrepresentable;
    let writes_base_end_tags = e.writes_base_end_tags;
    // The index of the frame of which a part was written last, with its new part and progress.
    let mut written: Option<(usize, u32, Progress)> = None;
    loop {
        let frames = &mut EncodedValues::of(e).frames;
        if let Some((index, part, progress)) = written.take() {
            let frame = frames.get_mut(index).ok_or(error)?;
            (frame.part, frame.progress) = (part, progress);
        }
        let index = frames.len().wrapping_sub(1);
        let Some(frame) = frames.last_mut().filter(|_| index >= first_frame) else { return Ok(()) };
        let (key, part, mut progress) = (frame.key.clone(), frame.part, frame.progress);
        let node = key.graph.node(key.index).ok_or(error)?;
        let (is_chunked, ended_base_count) = (frame.is_chunked, frame.ended_base_count);
        let factory = node.factory();
        let writes_base_end_tags = writes_base_end_tags && is_chunked && !factory.is_custom;
        if writes_base_end_tags && factory.base_ends.get(ended_base_count) == Some(&part) {
            frame.ended_base_count += 1;
            end_base(e)?;
            continue;
        }
        if part == node.part_count() {
            frames.pop();
            if writes_base_end_tags {
                end_base(e)?;
            }
            if is_chunked {
                end_chunked_value(e)?;
            }
            continue;
        }
        written = Some(match node.encode_part(part, e, &mut progress)? {
            Flow::Next => (index, part + 1, Progress::default()),
            Flow::Again => (index, part, progress),
        });
    }
}

fn put_value<V: ValueForm>(e: &mut Encoder, value: &Value<V>) -> Result<(), EncodeError> {
    let state = value_state(e);
    if state.depth == MAX_VALUE_DEPTH {
        return Err(EncodeErrorKind::DepthLimit.into());
    }
    state.depth += 1;
    let first_frame = EncodedValues::of_mut(&mut state.tables).frames.len();
    let result = match begin_value(e, Some(value)) {
        Ok(true) => put_states(e, first_frame),
        other => other.map(|_| ()),
    };
    match result {
        Ok(()) => value_state(e).depth -= 1,
        // The value is incomplete: no indirection may refer to anything in it.
        Err(_) => forget_values(e),
    }
    result
}

pub(super) fn open_chunk(e: &mut Encoder) {
    let before = e.head().len();
    e.put_u32(0);
    let chunk = OpenChunk { head_len_before: before, length_at: e.head().len() - 4, start: e.position() };
    value_state(e).chunk = Some(chunk);
}

/// Ends the open chunk, or removes it if it is empty.
pub(super) fn close_chunk(e: &mut Encoder) -> Result<(), EncodeError> {
    let Some(OpenChunk { head_len_before: before, length_at, start }) = value_state(e).chunk.take() else {
        return Ok(());
    };
    let length = e.position() - start;
    if length == 0 {
        e.truncate_head(before);
        return Ok(());
    }
    let length = u32::try_from(length).ok().filter(|length| *length < VALUE);
    e.patch_u32(length_at, length.ok_or(EncodeErrorKind::TooLong)?);
    Ok(())
}

/// Ends the innermost chunked value. It shares the end tag of a nested value that ended at the same position.
pub(super) fn end_chunked_value(e: &mut Encoder) -> Result<(), EncodeError> {
    close_chunk(e)?;
    let position = e.position();
    let state = value_state(e);
    let level = state.level;
    let tag = level.wrapping_neg();
    if let Some((level, chunk)) = state.enclosing.pop() {
        (state.level, state.chunk) = (level, chunk);
        e.put_u32(tag);
        return Ok(());
    }
    state.level = level.saturating_sub(1);
    match state.last_end_tag {
        Some((tag_at, end)) if end == position => e.patch_u32(tag_at, tag),
        _ => {
            e.put_u32(tag);
            let end = (e.head().len() - 4, e.position());
            value_state(e).last_end_tag = Some(end);
        }
    }
    if level > 1 {
        open_chunk(e);
    }
    Ok(())
}

impl<V: ValueForm> Nilable for Value<V> {
    const MIN_SIZE: usize = 4;

    fn encode_some(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        put_value(e, self)
    }

    fn encode_nil(e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(NULL);
        Ok(())
    }

    fn decode_nilable(d: &mut crate::cdr::Decoder<'_>) -> Result<Option<Value<V>>, crate::DecodeError> {
        read::read_value(d)
    }
}

/// The encoding is the same as that of `Some(value)`, an `Option<Value<V>>`.
impl<V: ValueForm> CdrEncode for Value<V> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        put_value(e, self)
    }
}
