//! Decoding of graphs of values. An explicit list of frames replaces recursion.

use std::sync::Arc;

use bytes::Bytes;

use super::read::{ReadResult, Reader, boxed, deeper, inside_element, put_aside, within};
use crate::cdr::{CdrDecode, Decoder};
use crate::dynamic::{DynError, Items, Step, Value, ValueNode};
use crate::ior::Ior;
use crate::program::Index;
use crate::typecode::{Nodes, TcKind};
use crate::value::{
    Class, Classes, MemberKind, NextValue, ValueHeader, custom, formal, member_kind, untyped,
};
use crate::walk::{CopiedValues, length, pass_state};
use crate::{DecodeError, DecodeErrorKind};

/// The charge for each value besides its members, in bytes: its node, its frame, and its place.
const VALUE: usize = 160;

/// The state of decoding a graph.
#[derive(Default)]
pub(super) struct Walk {
    frames: Vec<Frame>,
    /// The values read, by their start positions.
    places: CopiedValues,
    classes: Classes,
}

/// A value whose state is being read.
struct Frame {
    class: Arc<Class>,
    node: u32,
    /// Number of members begun.
    member: usize,
    /// The member begun last, if it is an incomplete sequence of values.
    elements: Option<Elements>,
    read: ValueHeader,
    /// Whether the state may contain more than the class has.
    skips: bool,
}

struct Elements {
    kind: Index,
    count: usize,
    left: usize,
    values: Vec<Value>,
}

impl Reader {
    /// Reads the content of a place of a value type, box or abstract interface, and all that it refers to.
    pub(super) fn graph_at(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> ReadResult {
        let floor = self.walk().frames.len();
        let value = self.begin(d, nodes, place)?;
        if self.walk().frames.len() > floor {
            deeper(d, |d| self.states(d, floor))?;
        }
        Ok(value)
    }

    fn walk(&mut self) -> &mut Walk {
        self.walk.get_or_insert_default()
    }

    /// Reads null, an indirection, a reference, or the header of a value; the value's state then becomes a
    /// frame.
    fn begin(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> ReadResult {
        if nodes.at(place).kind() == TcKind::AbstractInterface && d.read_bool()? {
            let reference = Ior::decode(d)?;
            return Ok(Value::Object(boxed(d, reference)?));
        }
        match untyped::next_value(d)? {
            NextValue::Null => Ok(Value::Node(None)),
            NextValue::Back(target) => match self.walk().places.get(target) {
                Some(known) if known.fits(formal(nodes, place)) => Ok(Value::Node(known.to.try_into().ok())),
                Some(_) => Err(DecodeError::new(DecodeErrorKind::Malformed, d.position() - 8).into()),
                None => self.again(d, nodes, place, target),
            },
            NextValue::New(value, ids) => self.enter(d, (nodes, place), value, &ids, None),
        }
    }

    /// Reads a value that begins before the current value.
    #[cold]
    fn again(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index, target: usize) -> ReadResult {
        let (mut fault, mut read) = (None, Value::Void);
        let passed = untyped::read_again(d, target, &mut |d, implied| {
            let start = d.position();
            let NextValue::New(value, ids) = untyped::next_value(d)? else {
                return Err(d.error(DecodeErrorKind::Malformed));
            };
            let floor = self.walk().frames.len();
            let value = self
                .enter(d, (nodes, place), value, &ids, implied)
                .and_then(|value| self.states(d, floor).map(|()| value));
            read = put_aside(&mut fault, start, value)?;
            Ok(())
        });
        passed.map_err(|error| fault.unwrap_or_else(|| error.into()))?;
        Ok(read)
    }

    fn enter(
        &mut self,
        d: &mut Decoder<'_>,
        (nodes, place): (&Nodes, Index),
        value: ValueHeader,
        ids: &[&str],
        implied: Option<&Arc<str>>,
    ) -> ReadResult {
        let next =
            u32::try_from(self.graph.nodes.len()).map_err(|_| d.error(DecodeErrorKind::LimitExceeded))?;
        let walk = self.walk.get_or_insert_default();
        if let Some(known) = walk.places.get(value.at) {
            // This value is a part of a value that began earlier, and was read before that one.
            let node = known.to.try_into().ok();
            pass_state(d, (nodes, place), value, ids, implied, 0)?;
            return Ok(Value::Node(node));
        }
        let chosen = walk.classes.choose(d, (nodes, place), value, ids, implied.map(|id| &**id))?;
        let class = chosen.class;
        d.charge(VALUE)?;
        // A value without an id records the id of its class for later indirections to it.
        let own = class.ids.first().filter(|_| ids.is_empty());
        untyped::enter(d, value, own)?;
        if class.custom {
            let bytes = custom::pass_custom(d, value, &mut |_, _| Ok(()))?;
            untyped::leave(d, value, true)?;
            d.charge(bytes.len())?;
            let bytes = boxed(d, Items::Octets(Bytes::copy_from_slice(bytes)))?;
            let members = vec![Value::Items(bytes)];
            self.graph.nodes.push(ValueNode { code: class.code.clone(), members });
            self.walk().places.insert(value.at, next as usize, Some(&class));
            return Ok(Value::Node(Some(next)));
        }
        let members = self.list(d, class.members.len())?;
        self.graph.nodes.push(ValueNode { code: class.code.clone(), members });
        let walk = self.walk();
        walk.places.insert(value.at, next as usize, Some(&class));
        let skips = chosen.truncated;
        walk.frames.push(Frame { class, node: next, member: 0, elements: None, read: value, skips });
        Ok(Value::Node(Some(next)))
    }

    /// Reads the states of the values that were begun, from the frame `floor` on.
    fn states(&mut self, d: &mut Decoder<'_>, floor: usize) -> ReadResult<()> {
        loop {
            let frames = &mut self.walk().frames;
            let at = frames.len().wrapping_sub(1);
            let Some(frame) = frames.last_mut().filter(|_| at >= floor) else { return Ok(()) };
            let (class, node) = (Arc::clone(&frame.class), frame.node);
            if frame.elements.is_some() {
                let member = frame.member - 1;
                self.element(d, &class, at).map_err(|error| inside(error, &class, node, member))?;
                continue;
            }
            let member = frame.member;
            if member == class.members.len() {
                let (read, skips) = (frame.read, frame.skips);
                frames.pop();
                untyped::leave(d, read, skips)
                    .map_err(|error| DynError::from(error).inside(Step::Node(node)))?;
                continue;
            }
            frame.member += 1;
            self.member(d, &class, at, member).map_err(|error| inside(error, &class, node, member))?;
        }
    }

    /// Reads a member of the value in a frame, or begins it.
    fn member(&mut self, d: &mut Decoder<'_>, class: &Class, at: usize, member: usize) -> ReadResult<()> {
        let nodes = &class.code.nodes;
        let kind = class.members.get(member).map_or(0, |kind| nodes.unaliased(*kind));
        let value = match member_kind(nodes, kind) {
            MemberKind::Value => self.begin(d, nodes, kind)?,
            MemberKind::Values(kind, bound, least) => {
                let count = length(d, least)?;
                within(d, bound, || count <= bound as usize)?;
                let values = self.list(d, count)?;
                let elements = Elements { kind, count, left: count, values };
                if let Some(frame) = self.walk().frames.get_mut(at) {
                    frame.elements = Some(elements);
                }
                return Ok(());
            }
            MemberKind::Other => self.value(d, nodes, kind)?,
        };
        self.keep(at, value);
        Ok(())
    }

    /// Begins the next element of the sequence that is the last member, or ends the sequence.
    fn element(&mut self, d: &mut Decoder<'_>, class: &Class, at: usize) -> ReadResult<()> {
        let frame = self.walk().frames.get_mut(at);
        let Some(mut elements) = frame.and_then(|frame| frame.elements.take()) else { return Ok(()) };
        if elements.left == 0 {
            let items = boxed(d, Items::Values(elements.values))?;
            self.keep(at, Value::Items(items));
            return Ok(());
        }
        let index = elements.count - elements.left;
        let value = self.begin(d, &class.code.nodes, elements.kind);
        self.push(&mut elements.values, value.map_err(|error| inside_element(error, index))?);
        elements.left -= 1;
        if let Some(frame) = self.walk().frames.get_mut(at) {
            frame.elements = Some(elements);
        }
        Ok(())
    }

    /// Appends a member to the value in a frame, unless values are not kept.
    #[inline(never)]
    fn keep(&mut self, at: usize, value: Value) {
        if self.keeps_nothing() {
            return;
        }
        let node = self.walk().frames.get(at).map(|frame| frame.node as usize);
        if let Some(node) = node.and_then(|node| self.graph.nodes.get_mut(node)) {
            node.members.push(value);
        }
    }
}

#[cold]
fn inside(error: DynError, class: &Class, node: u32, member: usize) -> DynError {
    error.inside(Step::Member(class.member_name(member))).inside(Step::Node(node))
}
