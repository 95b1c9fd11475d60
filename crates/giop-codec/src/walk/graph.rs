//! Copies of graphs of values of IDL value types, with a list of frames instead of recursion.
//!
//! A copied value always includes its type, so that it can be read without the type code of the any that
//! contains it. Sharing within an any is preserved. A value that the any shares with the rest of the message
//! is copied into the any, so that the any can be stored without the message.

use std::collections::HashMap;
use std::sync::Arc;

use super::copy::{Copier, CopyResult};
use super::custom::canonical_encoder;
use super::run::{StepActions, read_count};
use crate::cdr::Decoder;
use crate::program::Index;
use crate::typecode::{Nodes, TcKind};
use crate::value::{
    Class, ClassChoice, Classes, MemberKind, NextValue, ValueHeader, declared_id, member_kind, untyped, write,
};
use crate::{DecodeError, DecodeErrorKind};

/// The bytes deducted from the decoder's memory limit for each value, in addition to its contents.
pub(crate) const VALUE_CHARGE_BYTES: usize = 160;

/// The counterpart of each value: a position in the target of a copy, or the number of a node in a graph.
/// The key is the position in the source. One type serves copying, reading and writing to save code.
#[derive(Default)]
pub(crate) struct CopiedValues(HashMap<usize, CopiedValue>);

pub(crate) struct CopiedValue {
    pub(crate) counterpart: usize,
    /// `None` for a value in the state of a custom value, because its type is not known.
    class: Option<Arc<Class>>,
}

impl CopiedValue {
    /// Returns whether the value may be used where a value of the type `id` is expected.
    pub(crate) fn is_a(&self, id: Option<&str>) -> bool {
        self.class.as_ref().is_none_or(|class| class.is_a(id))
    }
}

impl CopiedValues {
    #[inline(never)]
    pub(crate) fn get(&self, position: usize) -> Option<&CopiedValue> {
        self.0.get(&position)
    }

    #[inline(never)]
    pub(crate) fn insert(&mut self, position: usize, counterpart: usize, class: Option<&Arc<Class>>) {
        self.0.insert(position, CopiedValue { counterpart, class: class.cloned() });
    }
}

struct Frame {
    class: Arc<Class>,
    next_member: usize,
    /// The type and number of the remaining elements of the previous member, if it is a sequence of values.
    elements: Option<(Index, usize)>,
    header: ValueHeader,
    /// Whether the source has members that the class does not have.
    is_truncated: bool,
    is_written_in_chunks: bool,
    ended_base_count: usize,
}

#[derive(Default)]
pub(super) struct GraphState {
    /// Whether the output for this graph is discarded, so that indirections need not be resolved.
    pub(super) discards_result: bool,
    /// Whether each header contains the ids of all bases, so that any value can be truncated by a receiver.
    pub(super) writes_all_ids: bool,
    frames: Vec<Frame>,
    pub(super) copied_values: CopiedValues,
    classes: Classes,
}

impl Copier<'_> {
    /// Copies a part of this value type, value box or abstract interface, with all that it refers to.
    pub(super) fn copy_graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, declared: Index) -> CopyResult {
        let first_frame = self.graph.frames.len();
        self.begin_part(d, nodes, declared)?;
        if self.graph.frames.len() > first_frame {
            d.nested(|d| self.copy_states(d, first_frame))
        } else {
            Ok(())
        }
    }

    /// Copies null, an object reference, an indirection, or the header of a value, which becomes a frame.
    fn begin_part(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, declared: Index) -> CopyResult {
        if nodes.at(declared).kind() == TcKind::AbstractInterface {
            let is_reference = d.read_bool()?;
            self.e.put_bool(is_reference);
            if is_reference {
                return self.object(d);
            }
        }
        self.findings.has_value_types = true;
        match untyped::next_value(d)? {
            NextValue::Null => {
                untyped::put_null(self.e);
                Ok(())
            }
            NextValue::Indirection(target) => match self.graph.copied_values.get(target) {
                Some(value) if !value.is_a(declared_id(nodes, declared)) => {
                    Err(DecodeError::new(DecodeErrorKind::Malformed, d.position() - 8))
                }
                Some(value) => {
                    let position = value.counterpart;
                    self.put(d, |e| write::put_indirection(e, position))
                }
                None if self.graph.discards_result => {
                    untyped::put_null(self.e);
                    Ok(())
                }
                // The value is outside of this any, so it is copied into the any.
                None => untyped::read_again(d, target, &mut |d, implied_id| match untyped::next_value(d)? {
                    NextValue::New(value, ids) => {
                        let first_frame = self.graph.frames.len();
                        self.begin_value(d, nodes, declared, value, &ids, implied_id)?;
                        self.copy_states(d, first_frame)
                    }
                    NextValue::Null | NextValue::Indirection(_) => Err(d.error(DecodeErrorKind::Malformed)),
                }),
            },
            NextValue::New(value, ids) => self.begin_value(d, nodes, declared, value, &ids, None),
        }
    }

    fn begin_value(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        declared: Index,
        value: ValueHeader,
        ids: &[&str],
        implied_id: Option<&Arc<str>>,
    ) -> CopyResult {
        if let Some(part) = self.graph.copied_values.get(value.at) {
            // The value is a part of another value outside of this any, and has already been copied.
            let position = part.counterpart;
            self.put(d, |e| write::put_indirection(e, position))?;
            return skip_known_state(d, (nodes, declared), value, ids, implied_id, self.nested_anys);
        }
        let chosen =
            self.graph.classes.choose(d, (nodes, declared), value, ids, implied_id.map(|id| &**id))?;
        let ClassChoice { class, is_exact, is_truncated } = chosen;
        let is_exact = is_exact && !self.graph.writes_all_ids;
        if class.is_custom {
            return self.copy_custom(d, class, value, ids, implied_id);
        }
        // A later indirection to a value whose header has no id needs the id of its class.
        let missing_id = class.ids.first().filter(|_| ids.is_empty());
        d.charge(VALUE_CHARGE_BYTES)?;
        untyped::enter_value(d, value, missing_id)?;
        let (position, is_written_in_chunks) =
            self.put(d, |e| untyped::open_value(e, &class.ids, is_exact))?;
        self.graph.copied_values.insert(value.at, position, Some(&class));
        self.graph.frames.push(Frame {
            class,
            next_member: 0,
            elements: None,
            header: value,
            is_truncated,
            is_written_in_chunks,
            ended_base_count: 0,
        });
        self.after_step(d)
    }

    fn end_bases(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let frame =
            self.graph.frames.last().filter(|frame| self.e.writes_base_end_tags && frame.elements.is_none());
        let Some(frame) = frame else { return Ok(()) };
        let (class, is_written_in_chunks, member, mut ended_base_count) =
            (Arc::clone(&frame.class), frame.is_written_in_chunks, frame.next_member, frame.ended_base_count);
        self.put(d, |e| {
            untyped::end_complete_bases(e, &class, is_written_in_chunks, member, &mut ended_base_count)
        })?;
        if let Some(frame) = self.graph.frames.last_mut() {
            frame.ended_base_count = ended_base_count;
        }
        Ok(())
    }

    /// Copies the states of the values in `frames`, from the index `first_frame` on.
    fn copy_states(&mut self, d: &mut Decoder<'_>, first_frame: usize) -> CopyResult {
        while self.graph.frames.len() > first_frame {
            self.end_bases(d)?;
            let Some(frame) = self.graph.frames.last_mut() else { return Ok(()) };
            let class = Arc::clone(&frame.class);
            let nodes = &class.code.nodes;
            if let Some((element, left)) = frame.elements {
                frame.elements = (left > 1).then_some((element, left - 1));
                self.begin_part(d, nodes, element)?;
                continue;
            }
            let Some(member) = class.members.get(frame.next_member) else {
                let (header, is_truncated, is_written_in_chunks) =
                    (frame.header, frame.is_truncated, frame.is_written_in_chunks);
                self.graph.frames.pop();
                untyped::leave_value(d, header, is_truncated)?;
                self.put(d, |e| untyped::close_value(e, is_written_in_chunks))?;
                self.after_step(d)?;
                continue;
            };
            frame.next_member += 1;
            let member = nodes.unaliased(*member);
            match member_kind(nodes, member) {
                MemberKind::Value => self.begin_part(d, nodes, member)?,
                MemberKind::Values { element, bound, min_size } => {
                    let count = read_count(d, min_size, bound)?;
                    self.on_count(d, count)?;
                    if let Some(frame) = self.graph.frames.last_mut() {
                        frame.elements = (count > 0).then_some((element, count));
                    }
                }
                MemberKind::Other => self.value(d, nodes, member)?,
            }
        }
        Ok(())
    }
}

/// Skips the state of a value that was copied before. The decoder is after the header of the value.
pub(crate) fn skip_known_state(
    d: &mut Decoder<'_>,
    (nodes, declared): (&Nodes, Index),
    value: ValueHeader,
    ids: &[&str],
    implied_id: Option<&Arc<str>>,
    nested_anys: usize,
) -> CopyResult {
    let mut unused = canonical_encoder();
    let mut skipper = Copier::new(&mut unused);
    (skipper.nested_anys, skipper.graph.discards_result) = (nested_anys, true);
    skipper.begin_value(d, nodes, declared, value, ids, implied_id)?;
    d.nested(|d| skipper.copy_states(d, 0))
}
