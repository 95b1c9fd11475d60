//! Copies of graphs of values, with an explicit list of frames instead of recursion.
//!
//! A written value always includes its type, so that it can be read without the any's type code. Sharing
//! within an any is preserved. A value that the any shares with the rest of the message is copied again, so
//! that the any can be stored without the message.

use std::collections::HashMap;
use std::sync::Arc;

use super::copy::{Copier, CopyResult};
use super::custom::canonical_encoder;
use super::run::{StepActions, read_count};
use crate::cdr::Decoder;
use crate::program::Index;
use crate::typecode::{Nodes, TcKind};
use crate::value::{
    Class, ClassChoice, Classes, MemberKind, NextValue, ValueHeader, formal, member_kind, untyped, write,
};
use crate::{DecodeError, DecodeErrorKind};

/// The charge in bytes for each value of a value type in addition to its bytes or members.
pub(crate) const VALUE_CHARGE: usize = 160;

/// The new positions of values, by their positions in the source. They are positions in the target of a copy,
/// or numbers of nodes. Copying, reading and writing share its machine code.
#[derive(Default)]
pub(crate) struct CopiedValues(HashMap<usize, CopiedValue>);

pub(crate) struct CopiedValue {
    pub(crate) new_position: usize,
    /// `None` for a value in the state of a custom value, because its type is not known.
    class: Option<Arc<Class>>,
}

impl CopiedValue {
    /// Returns whether the value may be used where this type is expected.
    pub(crate) fn is_a(&self, formal: Option<&str>) -> bool {
        self.class.as_ref().is_none_or(|class| class.is_a(formal))
    }
}

impl CopiedValues {
    #[inline(never)]
    pub(crate) fn get(&self, position: usize) -> Option<&CopiedValue> {
        self.0.get(&position)
    }

    #[inline(never)]
    pub(crate) fn insert(&mut self, position: usize, new_position: usize, class: Option<&Arc<Class>>) {
        self.0.insert(position, CopiedValue { new_position, class: class.cloned() });
    }
}

struct Frame {
    class: Arc<Class>,
    next_member: usize,
    /// The remaining elements of the previous member, if that is a sequence of values: their type and number.
    elements: Option<(Index, usize)>,
    header: ValueHeader,
    is_truncated: bool,
    is_written_in_chunks: bool,
    ended_bases: usize,
}

#[derive(Default)]
pub(super) struct GraphState {
    /// Whether the output for this graph is discarded, so that indirections need not be resolved.
    pub(super) discards_result: bool,
    /// Whether to write headers with all ids, whatever type is expected, so that each value can be truncated.
    pub(super) writes_all_ids: bool,
    frames: Vec<Frame>,
    pub(super) copied: CopiedValues,
    classes: Classes,
}

impl Copier<'_> {
    /// Copies a part of this value type, box or abstract interface, with everything that it refers to.
    pub(super) fn copy_graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> CopyResult {
        let first_frame = self.graph.frames.len();
        self.begin_part(d, nodes, place)?;
        if self.graph.frames.len() > first_frame {
            d.nested(|d| self.copy_states(d, first_frame))
        } else {
            Ok(())
        }
    }

    /// Copies null, an indirection, or the header of a value whose state then becomes a frame.
    fn begin_part(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> CopyResult {
        if nodes.at(place).kind() == TcKind::AbstractInterface {
            let is_reference = d.read_bool()?;
            self.e.put_bool(is_reference);
            if is_reference {
                return self.object(d);
            }
        }
        self.findings.graphs = true;
        match untyped::next_value(d)? {
            NextValue::Null => {
                untyped::put_null(self.e);
                Ok(())
            }
            NextValue::Back(target) => match self.graph.copied.get(target) {
                Some(value) if !value.is_a(formal(nodes, place)) => {
                    Err(DecodeError::new(DecodeErrorKind::Malformed, d.position() - 8))
                }
                Some(value) => {
                    let position = value.new_position;
                    self.put(d, |e| write::put_indirection(e, position))
                }
                None if self.graph.discards_result => {
                    untyped::put_null(self.e);
                    Ok(())
                }
                // The value is outside of this any.
                None => untyped::read_again(d, target, &mut |d, implied| match untyped::next_value(d)? {
                    NextValue::New(value, ids) => {
                        let first_frame = self.graph.frames.len();
                        self.begin_value(d, nodes, place, value, &ids, implied)?;
                        self.copy_states(d, first_frame)
                    }
                    NextValue::Null | NextValue::Back(_) => Err(d.error(DecodeErrorKind::Malformed)),
                }),
            },
            NextValue::New(value, ids) => self.begin_value(d, nodes, place, value, &ids, None),
        }
    }

    fn begin_value(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        place: Index,
        value: ValueHeader,
        ids: &[&str],
        implied: Option<&Arc<str>>,
    ) -> CopyResult {
        if let Some(part) = self.graph.copied.get(value.at) {
            // This value is a part of a value outside of this any, and was copied before the whole.
            let position = part.new_position;
            self.put(d, |e| write::put_indirection(e, position))?;
            return skip_known_state(d, (nodes, place), value, ids, implied, self.anys);
        }
        let chosen = self.graph.classes.choose(d, (nodes, place), value, ids, implied.map(|id| &**id))?;
        let ClassChoice { class, exact, truncated: is_truncated } = chosen;
        let exact = exact && !self.graph.writes_all_ids;
        if class.custom {
            return self.copy_custom(d, class, value, ids, implied);
        }
        // Later indirections to a value without an id need the id of its class.
        let missing_id = class.ids.first().filter(|_| ids.is_empty());
        d.charge(VALUE_CHARGE)?;
        untyped::enter(d, value, missing_id)?;
        let (position, is_written_in_chunks) = self.put(d, |e| untyped::open(e, &class.ids, exact))?;
        self.graph.copied.insert(value.at, position, Some(&class));
        self.graph.frames.push(Frame {
            class,
            next_member: 0,
            elements: None,
            header: value,
            is_truncated,
            is_written_in_chunks,
            ended_bases: 0,
        });
        self.after_step(d)
    }

    fn end_bases(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let frame = self.graph.frames.last().filter(|frame| self.e.ends_bases && frame.elements.is_none());
        let Some(frame) = frame else { return Ok(()) };
        let (class, in_chunks, member, mut ended_bases) =
            (Arc::clone(&frame.class), frame.is_written_in_chunks, frame.next_member, frame.ended_bases);
        self.put(d, |e| untyped::end_complete_bases(e, &class, in_chunks, member, &mut ended_bases))?;
        if let Some(frame) = self.graph.frames.last_mut() {
            frame.ended_bases = ended_bases;
        }
        Ok(())
    }

    /// Copies the states of the values whose headers were copied, from the frame `first_frame` on.
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
                let (header, is_truncated, in_chunks) =
                    (frame.header, frame.is_truncated, frame.is_written_in_chunks);
                self.graph.frames.pop();
                untyped::leave(d, header, is_truncated)?;
                self.put(d, |e| untyped::close(e, in_chunks))?;
                self.after_step(d)?;
                continue;
            };
            frame.next_member += 1;
            let member = nodes.unaliased(*member);
            match member_kind(nodes, member) {
                MemberKind::Value => self.begin_part(d, nodes, member)?,
                MemberKind::Values(element, bound, least) => {
                    let count = read_count(d, least, bound)?;
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

/// Skips the state of a value that was copied before, after its header. `anys` is the number of enclosing
/// anys.
pub(crate) fn skip_known_state(
    d: &mut Decoder<'_>,
    (nodes, place): (&Nodes, Index),
    value: ValueHeader,
    ids: &[&str],
    implied: Option<&Arc<str>>,
    anys: usize,
) -> CopyResult {
    let mut unused = canonical_encoder();
    let mut skipper = Copier::new(&mut unused);
    (skipper.anys, skipper.graph.discards_result) = (anys, true);
    skipper.begin_value(d, nodes, place, value, ids, implied)?;
    d.nested(|d| skipper.copy_states(d, 0))
}
