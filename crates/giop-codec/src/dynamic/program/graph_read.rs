//! Decoding of graphs of value types. A list of frames replaces recursion, to save stack memory. An
//! indirection is a reference to a value that is elsewhere in the message.

use std::sync::Arc;

use bytes::Bytes;

use super::read::{ReadResult, Reader, boxed, inside_element, inside_node, read_boxed, store_error};
use crate::cdr::{CdrDecode, Decoder};
use crate::dynamic::{DynError, Items, Step, Value, ValueNode};
use crate::ior::Ior;
use crate::program::Index;
use crate::typecode::{Nodes, TcKind};
use crate::value::{
    Class, Classes, MemberKind, NextValue, ValueHeader, custom, declared_id, member_kind, untyped,
};
use crate::walk::{CopiedValues, VALUE_CHARGE_BYTES, check_fits, read_length, skip_known_state};
use crate::{DecodeError, DecodeErrorKind};

#[derive(Default)]
pub(super) struct GraphState {
    frames: Vec<Frame>,
    /// The number of the node of each value, as its `counterpart`, by the position of the value.
    nodes_by_position: CopiedValues,
    classes: Classes,
}

/// A value whose state is being read.
struct Frame {
    class: Arc<Class>,
    node: u32,
    next_member: usize,
    /// The elements of the previous member, if it is a sequence of values that is still being read.
    elements: Option<Elements>,
    header: ValueHeader,
    is_truncated: bool,
}

struct Elements {
    element_type: Index,
    count: usize,
    remaining_count: usize,
    values: Vec<Value>,
}

impl Reader {
    /// Reads a part of a value type, value box or abstract interface, with everything to which it refers.
    pub(super) fn read_graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, declared: Index) -> ReadResult {
        let first_frame = self.graph_state().frames.len();
        let value = self.read_part(d, nodes, declared)?;
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

    /// Reads null, an indirection, a reference, or a header. After a header, adds a frame for the state.
    fn read_part(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, declared: Index) -> ReadResult {
        if nodes.at(declared).kind() == TcKind::AbstractInterface && d.read_bool()? {
            return Ok(Value::Object(read_boxed(d, Ior::decode)?));
        }
        match untyped::next_value(d)? {
            NextValue::Null => Ok(Value::Node(None)),
            NextValue::Indirection(target) => match self.graph_state().nodes_by_position.get(target) {
                Some(known) if known.is_a(declared_id(nodes, declared)) => {
                    Ok(Value::Node(known.counterpart.try_into().ok()))
                }
                Some(_) => Err(DecodeError::new(DecodeErrorKind::Malformed, d.position() - 8).into()),
                None => self.read_earlier_value(d, nodes, declared, target),
            },
            NextValue::New(value, ids) => self.read_value(d, (nodes, declared), value, &ids, None),
        }
    }

    /// Reads a value to which an indirection refers, and which was skipped before.
    #[cold]
    fn read_earlier_value(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        declared: Index,
        target: usize,
    ) -> ReadResult {
        let (mut fault, mut read) = (None, Value::Void);
        let result = untyped::read_again(d, target, &mut |d, implied_id| {
            let start = d.position();
            let NextValue::New(value, ids) = untyped::next_value(d)? else {
                return Err(d.error(DecodeErrorKind::Malformed));
            };
            let first_frame = self.graph_state().frames.len();
            let value = self
                .read_value(d, (nodes, declared), value, &ids, implied_id)
                .and_then(|value| self.read_states(d, first_frame).map(|()| value));
            read = store_error(&mut fault, start, value)?;
            Ok(())
        });
        result.map_err(|error| fault.unwrap_or_else(|| error.into()))?;
        Ok(read)
    }

    fn read_value(
        &mut self,
        d: &mut Decoder<'_>,
        (nodes, declared): (&Nodes, Index),
        value: ValueHeader,
        ids: &[&str],
        implied_id: Option<&Arc<str>>,
    ) -> ReadResult {
        let next =
            u32::try_from(self.graph.nodes.len()).map_err(|_| d.error(DecodeErrorKind::LimitExceeded))?;
        let graph_state = self.graph_state.get_or_insert_default();
        if let Some(known) = graph_state.nodes_by_position.get(value.at) {
            // The value was already read because an indirection referred to it.
            let node = known.counterpart.try_into().ok();
            skip_known_state(d, (nodes, declared), value, ids, implied_id, 0)?;
            return Ok(Value::Node(node));
        }
        let chosen =
            graph_state.classes.choose(d, (nodes, declared), value, ids, implied_id.map(|id| &**id))?;
        let class = chosen.class;
        d.charge(VALUE_CHARGE_BYTES)?;
        // If the header has no id, later indirections to the value need the id of its class.
        let missing_id = class.ids.first().filter(|_| ids.is_empty());
        untyped::enter_value(d, value, missing_id)?;
        if class.is_custom {
            let bytes = custom::read_custom_pieces(d, value, &mut |_, _| Ok(()))?;
            untyped::leave_value(d, value, true)?;
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
        let is_truncated = chosen.is_truncated;
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

    /// Reads the states of the values in the frames from `first_frame` on.
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
                untyped::leave_value(d, header, is_truncated)
                    .map_err(|error| DynError::from(error).inside(Step::Node(node)))?;
                continue;
            }
            frame.next_member += 1;
            self.member(d, &class, at, member).map_err(|error| inside_node(error, &class, node, member))?;
        }
    }

    /// Reads a member of the value in the frame `at`. If the member is a value, adds a frame for its state.
    fn member(&mut self, d: &mut Decoder<'_>, class: &Class, at: usize, member: usize) -> ReadResult<()> {
        let nodes = &class.code.nodes;
        let kind = class.members.get(member).map_or(0, |kind| nodes.unaliased(*kind));
        let value = match member_kind(nodes, kind) {
            MemberKind::Value => self.read_part(d, nodes, kind)?,
            MemberKind::Values { element: element_type, bound, min_size } => {
                let count = read_length(d, min_size)?;
                check_fits(d, bound, || count <= bound as usize)?;
                let values = self.new_list(d, count)?;
                let elements = Elements { element_type, count, remaining_count: count, values };
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

    /// Reads the next element of the sequence in the frame `at`, or ends the sequence.
    fn element(&mut self, d: &mut Decoder<'_>, class: &Class, at: usize) -> ReadResult<()> {
        let frame = self.graph_state().frames.get_mut(at);
        let Some(mut elements) = frame.and_then(|frame| frame.elements.take()) else { return Ok(()) };
        if elements.remaining_count == 0 {
            let items = boxed(d, Items::Values(elements.values))?;
            self.append_member(at, Value::Items(items));
            return Ok(());
        }
        let index = elements.count - elements.remaining_count;
        let value = self.read_part(d, &class.code.nodes, elements.element_type);
        self.push(&mut elements.values, value.map_err(|error| inside_element(error, index))?);
        elements.remaining_count -= 1;
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
