//! Values of value types and boxes in anys: graphs, walked with a list in place of the stack.
//!
//! Where a value is written it always says its type, so that nobody needs the any's type code for that. What is shared inside of an
//! any stays shared; what it shares with the rest of a message is walked again, so that an any can be kept without the message.

use std::sync::Arc;

use super::places::Places;
use super::walk::{Done, Walker, spell};
use super::{Any, canonical};
use crate::cdr::{CdrDecode, DecodeLimits, Decoder};
use crate::dynamic::program::Act;
use crate::typecode::{Index, Nodes, TcKind, TypeCode};
use crate::value::{
    Chosen, Class, Classes, Next, Opened, Part, ValueBase, ValueForm, formal, has_base_with_id, part,
};
use crate::{DecodeError, DecodeErrorKind};

/// What each value is charged for beside its octets.
pub(super) const VALUE: usize = 160;

/// A value whose state is being copied.
struct Frame {
    class: Arc<Class>,
    /// How many members were begun.
    member: usize,
    /// Elements to come of the member before, which is a sequence of values: their type, and how many.
    elements: Option<(Index, usize)>,
    read: Opened,
    /// There may be more than the class knows.
    skips: bool,
    /// Whether it is written in chunks.
    chunked: bool,
    /// How many of the bases have their end.
    ended: usize,
}

/// What a walk knows of values.
#[derive(Default)]
pub(super) struct Graph {
    /// What is read is not needed: nor is what it refers to.
    pub(super) skips: bool,
    /// Writes headers with all ids, whatever is expected in the place, so that each value may be truncated.
    pub(super) spells: bool,
    frames: Vec<Frame>,
    /// Where values that were read were written.
    pub(super) places: Places,
    classes: Classes,
}

impl Walker<'_> {
    /// Copies what is in a place of such a type, with all that it refers to.
    pub(super) fn graph_at(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> Done {
        let floor = self.graph.frames.len();
        self.begin(d, nodes, place)?;
        if self.graph.frames.len() > floor { d.nested(|d| self.states(d, floor)) } else { Ok(()) }
    }

    /// Copies null, an indirection, or the header of a value whose state is then a frame.
    fn begin(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> Done {
        if nodes.at(place).kind() == TcKind::AbstractInterface {
            let reference = d.read_bool()?;
            self.e.put_bool(reference);
            if reference {
                return self.reference(d);
            }
        }
        self.seen.values = true;
        match d.next_value()? {
            Next::Null => {
                self.e.put_null();
                Ok(())
            }
            Next::Back(target) => match self.graph.places.get(target) {
                Some(known) if !known.fits(formal(nodes, place)) => {
                    Err(DecodeError::new(DecodeErrorKind::Malformed, d.position() - 8))
                }
                Some(known) => {
                    let position = known.to;
                    self.put(d, |e| e.put_back(position))
                }
                None if self.graph.skips => {
                    self.e.put_null();
                    Ok(())
                }
                // It is not in this any.
                None => d.pass_again(target, &mut |d, implied| match d.next_value()? {
                    Next::New(value, ids) => {
                        let floor = self.graph.frames.len();
                        self.enter(d, nodes, place, value, &ids, implied)?;
                        self.states(d, floor)
                    }
                    Next::Null | Next::Back(_) => Err(d.error(DecodeErrorKind::Malformed)),
                }),
            },
            Next::New(value, ids) => self.enter(d, nodes, place, value, &ids, None),
        }
    }

    fn enter(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        place: Index,
        value: Opened,
        ids: &[&str],
        implied: Option<&Arc<str>>,
    ) -> Done {
        if let Some(known) = self.graph.places.get(value.at) {
            // A part of something that is not in this any was copied before the whole.
            let position = known.to;
            self.put(d, |e| e.put_back(position))?;
            return pass_state(d, (nodes, place), value, ids, implied, self.anys);
        }
        let chosen = self.graph.classes.choose(d, (nodes, place), value, ids, implied.map(|id| &**id))?;
        let Chosen { class, exact, truncated: skips } = chosen;
        let exact = exact && !self.graph.spells;
        if class.custom {
            return self.custom(d, class, value, ids, implied);
        }
        // Of one without an id it is remembered for whoever comes back to it.
        let own = class.passed.ids.first().filter(|_| ids.is_empty());
        d.charge(VALUE)?;
        d.enter_passed(value, own)?;
        let mut written = (0, false);
        self.put(d, |e| {
            written = e.open_passed(&class.passed, exact)?;
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

    /// Ends the states of bases whose members are written, where the receiver is told of that.
    fn end_bases(&mut self, d: &mut Decoder<'_>) -> Done {
        let Some(frame) = self.graph.frames.last().filter(|_| self.e.ends_bases) else { return Ok(()) };
        if frame.elements.is_some() {
            return Ok(());
        }
        let (class, chunked, member, mut ended) =
            (Arc::clone(&frame.class), frame.chunked, frame.member, frame.ended);
        self.put(d, |e| e.after_members(&class, chunked, member, &mut ended))?;
        if let Some(frame) = self.graph.frames.last_mut() {
            frame.ended = ended;
        }
        Ok(())
    }

    /// Copies the states of the values that were begun, from the frame `floor` on.
    fn states(&mut self, d: &mut Decoder<'_>, floor: usize) -> Done {
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
                d.leave_passed(read, skips)?;
                self.put(d, |e| e.close_passed(chunked))?;
                self.settle(d)?;
                continue;
            };
            frame.member += 1;
            let member = nodes.unaliased(*member);
            match part(nodes, member) {
                Part::Value => self.begin(d, nodes, member)?,
                Part::Values(element, bound, least) => {
                    let count = self.counted(d, least, bound)?;
                    if let Some(frame) = self.graph.frames.last_mut() {
                        frame.elements = (count > 0).then_some((element, count));
                    }
                }
                Part::Other => self.value(d, nodes, member)?,
            }
        }
        Ok(())
    }
}

/// Whether values of the first type are of the second one, which is a base of it or `ValueBase`.
pub(super) fn has_base(code: &TypeCode, base: &TypeCode) -> bool {
    let (of, wanted) = (code.unaliased(), base.unaliased());
    let is_of_value_type = |kind| matches!(kind, TcKind::Value | TcKind::Event);
    if wanted.kind() == TcKind::Value && wanted.id() == Ok(ValueBase::REPOSITORY_ID) {
        return is_of_value_type(of.kind()) || of.kind() == TcKind::ValueBox;
    }
    is_of_value_type(of.kind())
        && formal(&wanted.nodes, wanted.root).is_some_and(|id| has_base_with_id(&of.nodes, of.root, id))
}

impl Any {
    /// The value as one of a base of its type, which the program knows.
    #[cold]
    pub(super) fn get_truncated<T: CdrDecode>(&self, error: DecodeError) -> Result<T, DecodeError> {
        let kept = self.kept()?;
        let mut e = kept.stream.encoder();
        let mut d = kept.decoder();
        d.set_limits(DecodeLimits { alloc: usize::MAX, ..d.limits() });
        spell(&self.code, &mut d, &mut e).map_err(|_| error)?;
        let value = e.into_bytes();
        let mut d = kept.decoder_of(&value);
        let value = T::decode(&mut d)?;
        if d.remaining() == 0 { Ok(value) } else { Err(d.error(DecodeErrorKind::Malformed)) }
    }
}

/// Goes over the state of a value that was read before, behind its header; so many anys are around.
pub(crate) fn pass_state(
    d: &mut Decoder<'_>,
    (nodes, place): (&Nodes, Index),
    value: Opened,
    ids: &[&str],
    implied: Option<&Arc<str>>,
    anys: usize,
) -> Done {
    let mut unused = canonical();
    let mut over = Walker::new(&mut unused);
    (over.anys, over.graph.skips) = (anys, true);
    over.enter(d, nodes, place, value, ids, implied)?;
    d.nested(|d| over.states(d, 0))
}
