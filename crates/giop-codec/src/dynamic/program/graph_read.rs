//! Decoding of graphs of values. An explicit list of frames replaces recursion.

use std::sync::Arc;

use bytes::Bytes;

use super::read::{ReadResult, Reader, boxed, inside_element, inside_node, read_boxed, store_error};
use crate::cdr::{CdrDecode, Decoder};
use crate::dynamic::{DynError, Items, Step, Value, ValueNode};
use crate::ior::Ior;
use crate::program::Index;
use crate::typecode::{Nodes, TcKind};
use crate::value::{
    Class, Classes, MemberKind, NextValue, ValueHeader, custom, formal, member_kind, untyped,
};
use crate::walk::{CopiedValues, VALUE_CHARGE, check_fits, read_length, skip_known_state};
use crate::{DecodeError, DecodeErrorKind};

#[derive(Default)]
pub(super) struct GraphState {
    frames: Vec<Frame>,
    nodes_by_position: CopiedValues,
    classes: Classes,
}

struct Frame {
    class: Arc<Class>,
    node: u32,
    next_member: usize,
    /// The previous member, if it is an incomplete sequence of values.
    elements: Option<Elements>,
    header: ValueHeader,
    is_truncated: bool,
}

struct Elements {
    kind: Index,
    count: usize,
    left: usize,
    values: Vec<Value>,
}

impl Reader {
    /// Reads a part of a value type, box or abstract interface, with everything that it refers to.
    pub(super) fn graph_at(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> ReadResult {
        let first_frame = self.graph_state().frames.len();
        let value = self.read_part(d, nodes, place)?;
        if self.graph_state().frames.len() > first_frame {
            d.descend()?;
            let result = self.read_states(d, first_frame);
            d.ascend();
            result?;
        }
        Ok(value)
    }

    fn graph_state(&mut self) -> &mut GraphState {
        self.graph_state.get_or_insert_default()
    }

    /// Reads null, an indirection, a reference, or the header of a value; the value's state then becomes a
    /// frame.
    fn read_part(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> ReadResult {
        if nodes.at(place).kind() == TcKind::AbstractInterface && d.read_bool()? {
            return Ok(Value::Object(read_boxed(d, Ior::decode)?));
        }
        match untyped::next_value(d)? {
            NextValue::Null => Ok(Value::Node(None)),
            NextValue::Back(target) => match self.graph_state().nodes_by_position.get(target) {
                Some(known) if known.is_a(formal(nodes, place)) => {
                    Ok(Value::Node(known.new_position.try_into().ok()))
                }
                Some(_) => Err(DecodeError::new(DecodeErrorKind::Malformed, d.position() - 8).into()),
                None => self.read_earlier_value(d, nodes, place, target),
            },
            NextValue::New(value, ids) => self.read_value(d, (nodes, place), value, &ids, None),
        }
    }

    /// Reads a value that began earlier and was not read then.
    #[cold]
    fn read_earlier_value(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        place: Index,
        target: usize,
    ) -> ReadResult {
        let (mut fault, mut read) = (None, Value::Void);
        let passed = untyped::read_again(d, target, &mut |d, implied| {
            let start = d.position();
            let NextValue::New(value, ids) = untyped::next_value(d)? else {
                return Err(d.error(DecodeErrorKind::Malformed));
            };
            let first_frame = self.graph_state().frames.len();
            let value = self
                .read_value(d, (nodes, place), value, &ids, implied)
                .and_then(|value| self.read_states(d, first_frame).map(|()| value));
            read = store_error(&mut fault, start, value)?;
            Ok(())
        });
        passed.map_err(|error| fault.unwrap_or_else(|| error.into()))?;
        Ok(read)
    }

    fn read_value(
        &mut self,
        d: &mut Decoder<'_>,
        (nodes, place): (&Nodes, Index),
        value: ValueHeader,
        ids: &[&str],
        implied: Option<&Arc<str>>,
    ) -> ReadResult {
        let next =
            u32::try_from(self.graph.nodes.len()).map_err(|_| d.error(DecodeErrorKind::LimitExceeded))?;
        let graph_state = self.graph_state.get_or_insert_default();
        if let Some(known) = graph_state.nodes_by_position.get(value.at) {
            // This value is a part of a value that began earlier, and was read before that one.
            let node = known.new_position.try_into().ok();
            skip_known_state(d, (nodes, place), value, ids, implied, 0)?;
            return Ok(Value::Node(node));
        }
        let chosen = graph_state.classes.choose(d, (nodes, place), value, ids, implied.map(|id| &**id))?;
        let class = chosen.class;
        d.charge(VALUE_CHARGE)?;
        // Later indirections to a value without an id need the id of its class.
        let missing_id = class.ids.first().filter(|_| ids.is_empty());
        untyped::enter(d, value, missing_id)?;
        if class.custom {
            let bytes = custom::read_custom_pieces(d, value, &mut |_, _| Ok(()))?;
            untyped::leave(d, value, true)?;
            d.charge(bytes.len())?;
            let bytes = boxed(d, Items::Octets(Bytes::copy_from_slice(bytes)))?;
            let members = vec![Value::Items(bytes)];
            self.graph.nodes.push(ValueNode { code: class.code.clone(), members });
            self.graph_state().nodes_by_position.insert(value.at, next as usize, Some(&class));
            return Ok(Value::Node(Some(next)));
        }
        let members = self.new_list(d, class.members.len())?;
        self.graph.nodes.push(ValueNode { code: class.code.clone(), members });
        let graph_state = self.graph_state();
        graph_state.nodes_by_position.insert(value.at, next as usize, Some(&class));
        let is_truncated = chosen.truncated;
        graph_state.frames.push(Frame {
            class,
            node: next,
            next_member: 0,
            elements: None,
            header: value,
            is_truncated,
        });
        Ok(Value::Node(Some(next)))
    }

    /// Reads the states of the values whose headers were read, from the frame `first_frame` on.
    fn read_states(&mut self, d: &mut Decoder<'_>, first_frame: usize) -> ReadResult<()> {
        loop {
            let frames = &mut self.graph_state().frames;
            let at = frames.len().wrapping_sub(1);
            let Some(frame) = frames.last_mut().filter(|_| at >= first_frame) else { return Ok(()) };
            let (class, node) = (Arc::clone(&frame.class), frame.node);
            if frame.elements.is_some() {
                let member = frame.next_member - 1;
                self.element(d, &class, at).map_err(|error| inside_node(error, &class, node, member))?;
                continue;
            }
            let member = frame.next_member;
            if member == class.members.len() {
                let (header, is_truncated) = (frame.header, frame.is_truncated);
                frames.pop();
                untyped::leave(d, header, is_truncated)
                    .map_err(|error| DynError::from(error).inside(Step::Node(node)))?;
                continue;
            }
            frame.next_member += 1;
            self.member(d, &class, at, member).map_err(|error| inside_node(error, &class, node, member))?;
        }
    }

    /// Reads a member of the value in a frame. The state of a member that is a value becomes a frame.
    fn member(&mut self, d: &mut Decoder<'_>, class: &Class, at: usize, member: usize) -> ReadResult<()> {
        let nodes = &class.code.nodes;
        let kind = class.members.get(member).map_or(0, |kind| nodes.unaliased(*kind));
        let value = match member_kind(nodes, kind) {
            MemberKind::Value => self.read_part(d, nodes, kind)?,
            MemberKind::Values(kind, bound, least) => {
                let count = read_length(d, least)?;
                check_fits(d, bound, || count <= bound as usize)?;
                let values = self.new_list(d, count)?;
                let elements = Elements { kind, count, left: count, values };
                if let Some(frame) = self.graph_state().frames.get_mut(at) {
                    frame.elements = Some(elements);
                }
                return Ok(());
            }
            MemberKind::Other => self.value(d, nodes, kind)?,
        };
        self.append_member(at, value);
        Ok(())
    }

    /// Reads the next element of the sequence that is the previous member, or ends the sequence.
    fn element(&mut self, d: &mut Decoder<'_>, class: &Class, at: usize) -> ReadResult<()> {
        let frame = self.graph_state().frames.get_mut(at);
        let Some(mut elements) = frame.and_then(|frame| frame.elements.take()) else { return Ok(()) };
        if elements.left == 0 {
            let items = boxed(d, Items::Values(elements.values))?;
            self.append_member(at, Value::Items(items));
            return Ok(());
        }
        let index = elements.count - elements.left;
        let value = self.read_part(d, &class.code.nodes, elements.kind);
        self.push(&mut elements.values, value.map_err(|error| inside_element(error, index))?);
        elements.left -= 1;
        if let Some(frame) = self.graph_state().frames.get_mut(at) {
            frame.elements = Some(elements);
        }
        Ok(())
    }

    #[inline(never)]
    fn append_member(&mut self, at: usize, value: Value) {
        if self.only_locates {
            return;
        }
        let node = self.graph_state().frames.get(at).map(|frame| frame.node as usize);
        if let Some(node) = node.and_then(|node| self.graph.nodes.get_mut(node)) {
            node.members.push(value);
        }
    }
}
