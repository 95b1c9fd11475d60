//! Values of value types and boxes in anys: graphs, which are traversed with an explicit list instead of
//! recursion.
//!
//! A written value always includes its type, so that it can be read without the any's type code. Sharing
//! within an any is preserved. A value that the any shares with the rest of the message is traversed again,
//! so that the any can be kept without the message.

use std::sync::Arc;

use super::copy::{CopyResult, Walker};
use super::custom::canonical;
use super::places::CopiedValues;
use super::run::StepActions;
use crate::cdr::Decoder;
use crate::program::Index;
use crate::typecode::{Nodes, TcKind};
use crate::value::{
    Class, ClassChoice, Classes, MemberKind, NextValue, ValueHeader, formal, member_kind, untyped, write,
};
use crate::{DecodeError, DecodeErrorKind};

/// Memory charged for each value in addition to its bytes.
pub(super) const VALUE: usize = 160;

/// A value whose state is being copied.
struct Frame {
    class: Arc<Class>,
    /// Number of members that were begun.
    member: usize,
    /// Remaining elements of the previous member, if that is a sequence of values: their type and number.
    elements: Option<(Index, usize)>,
    read: ValueHeader,
    /// Whether the state may contain more than the class defines.
    skips: bool,
    /// Whether it is written in chunks.
    chunked: bool,
    /// Number of bases whose state was ended.
    ended: usize,
}

/// The state of a walk over values.
#[derive(Default)]
pub(super) struct GraphWalk {
    /// Whether the result of the read is discarded, so that indirections need not be resolved.
    pub(super) skips: bool,
    /// Whether to write headers with all ids, whatever type is expected, so that each value can be truncated.
    pub(super) spells: bool,
    frames: Vec<Frame>,
    /// The target positions of values that were read.
    pub(super) places: CopiedValues,
    classes: Classes,
}

impl Walker<'_> {
    /// Copies the content of a place of this type, with everything that it refers to.
    pub(super) fn graph_at(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> CopyResult {
        let floor = self.graph.frames.len();
        self.begin(d, nodes, place)?;
        if self.graph.frames.len() > floor { d.nested(|d| self.states(d, floor)) } else { Ok(()) }
    }

    /// Copies null, an indirection, or the header of a value whose state then becomes a frame.
    fn begin(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> CopyResult {
        if nodes.at(place).kind() == TcKind::AbstractInterface {
            let reference = d.read_bool()?;
            self.e.put_bool(reference);
            if reference {
                return self.reference(d);
            }
        }
        self.seen.values = true;
        match untyped::next_value(d)? {
            NextValue::Null => {
                untyped::put_null(self.e);
                Ok(())
            }
            NextValue::Back(target) => match self.graph.places.get(target) {
                Some(known) if !known.fits(formal(nodes, place)) => {
                    Err(DecodeError::new(DecodeErrorKind::Malformed, d.position() - 8))
                }
                Some(known) => {
                    let position = known.to;
                    self.put(d, |e| write::put_indirection(e, position))
                }
                None if self.graph.skips => {
                    untyped::put_null(self.e);
                    Ok(())
                }
                // The value is outside of this any.
                None => untyped::read_again(d, target, &mut |d, implied| match untyped::next_value(d)? {
                    NextValue::New(value, ids) => {
                        let floor = self.graph.frames.len();
                        self.enter(d, nodes, place, value, &ids, implied)?;
                        self.states(d, floor)
                    }
                    NextValue::Null | NextValue::Back(_) => Err(d.error(DecodeErrorKind::Malformed)),
                }),
            },
            NextValue::New(value, ids) => self.enter(d, nodes, place, value, &ids, None),
        }
    }

    fn enter(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        place: Index,
        value: ValueHeader,
        ids: &[&str],
        implied: Option<&Arc<str>>,
    ) -> CopyResult {
        if let Some(known) = self.graph.places.get(value.at) {
            // A part of a value outside of this any was copied before the whole.
            let position = known.to;
            self.put(d, |e| write::put_indirection(e, position))?;
            return pass_state(d, (nodes, place), value, ids, implied, self.anys);
        }
        let chosen = self.graph.classes.choose(d, (nodes, place), value, ids, implied.map(|id| &**id))?;
        let ClassChoice { class, exact, truncated: skips } = chosen;
        let exact = exact && !self.graph.spells;
        if class.custom {
            return self.custom(d, class, value, ids, implied);
        }
        // Remember the type of a value without an id for later indirections to it.
        let own = class.ids.first().filter(|_| ids.is_empty());
        d.charge(VALUE)?;
        untyped::enter(d, value, own)?;
        let mut written = (0, false);
        self.put(d, |e| {
            written = untyped::open(e, &class.ids, exact)?;
            Ok(())
        })?;
        let (position, chunked) = written;
        self.graph.places.insert(value.at, position, Some(&class));
        self.graph.frames.push(Frame {
            class,
            member: 0,
            elements: None,
            read: value,
            skips,
            chunked,
            ended: 0,
        });
        self.settle(d)
    }

    /// Ends the states of bases whose members are written, if the receiver expects that.
    fn end_bases(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let Some(frame) = self.graph.frames.last().filter(|_| self.e.ends_bases) else { return Ok(()) };
        if frame.elements.is_some() {
            return Ok(());
        }
        let (class, chunked, member, mut ended) =
            (Arc::clone(&frame.class), frame.chunked, frame.member, frame.ended);
        self.put(d, |e| untyped::after_members(e, &class, chunked, member, &mut ended))?;
        if let Some(frame) = self.graph.frames.last_mut() {
            frame.ended = ended;
        }
        Ok(())
    }

    /// Copies the states of the values that were begun, from the frame `floor` on.
    fn states(&mut self, d: &mut Decoder<'_>, floor: usize) -> CopyResult {
        while self.graph.frames.len() > floor {
            self.end_bases(d)?;
            let Some(frame) = self.graph.frames.last_mut() else { return Ok(()) };
            let class = Arc::clone(&frame.class);
            let nodes = &class.code.nodes;
            if let Some((element, left)) = frame.elements {
                frame.elements = (left > 1).then_some((element, left - 1));
                self.begin(d, nodes, element)?;
                continue;
            }
            let Some(member) = class.members.get(frame.member) else {
                let (read, skips, chunked) = (frame.read, frame.skips, frame.chunked);
                self.graph.frames.pop();
                untyped::leave(d, read, skips)?;
                self.put(d, |e| untyped::close(e, chunked))?;
                self.settle(d)?;
                continue;
            };
            frame.member += 1;
            let member = nodes.unaliased(*member);
            match member_kind(nodes, member) {
                MemberKind::Value => self.begin(d, nodes, member)?,
                MemberKind::Values(element, bound, least) => {
                    let count = self.counted(d, least, bound)?;
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

/// Skips the state of a value that was read before, after its header. `anys` is the number of enclosing anys.
pub(crate) fn pass_state(
    d: &mut Decoder<'_>,
    (nodes, place): (&Nodes, Index),
    value: ValueHeader,
    ids: &[&str],
    implied: Option<&Arc<str>>,
    anys: usize,
) -> CopyResult {
    let mut unused = canonical();
    let mut skipper = Walker::new(&mut unused);
    (skipper.anys, skipper.graph.skips) = (anys, true);
    skipper.enter(d, nodes, place, value, ids, implied)?;
    d.nested(|d| skipper.states(d, 0))
}
