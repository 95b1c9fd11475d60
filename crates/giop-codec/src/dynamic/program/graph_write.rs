//! Encoding of graphs of value types. A list of frames replaces recursion, to save stack memory. An
//! indirection is a reference to a value that was written before.

use std::collections::HashMap;
use std::sync::Arc;

use super::read::{inside_element, inside_node};
use super::write::{WRONG_MEMBER_COUNT, WriteResult, Writer, mismatch, put_count};
use crate::DecodeErrorKind;
use crate::cdr::{CdrEncode, Encoder};
use crate::dynamic::check::CUSTOM_STATE_UNKNOWN;
use crate::dynamic::{DynError, DynErrorKind, Items, Step, Value, ValueNode};
use crate::program::Index;
use crate::typecode::{Nodes, TcKind, TypeCode};
use crate::value::{Class, Classes, MemberKind, concrete_id, declared_id, member_kind, untyped, write};
use crate::walk::CopiedValues;

#[derive(Default)]
pub(super) struct GraphState<'v> {
    frames: Vec<Frame<'v>>,
    /// The position of each value in the output, as its `counterpart`, by the number of its node.
    written: CopiedValues,
    classes: Classes,
    /// The types of nodes by their repository ids. If several types have the same id, the first one.
    types: HashMap<Box<str>, TypeCode>,
}

/// A value whose state is being written.
struct Frame<'v> {
    class: Arc<Class>,
    node: u32,
    members: &'v [Value],
    next_member: usize,
    /// The elements of the previous member, if it is a sequence of values that is still being written: their
    /// type, the elements, and the index of the next one.
    elements: Option<(Index, &'v [Value], usize)>,
    chunked: bool,
    ended_base_count: usize,
}

impl<'v> Writer<'v> {
    /// Writes a part of a value type, value box or abstract interface, with everything to which it refers.
    pub(super) fn write_graph(
        &mut self,
        e: &mut Encoder,
        nodes: &Nodes,
        declared: Index,
        value: &Value,
    ) -> WriteResult {
        let first_frame = self.graph_state().frames.len();
        self.write_part(e, nodes, declared, value)?;
        if self.graph_state().frames.len() == first_frame {
            return Ok(());
        }
        self.nested(|writer| writer.write_states(e, first_frame))
    }

    fn graph_state(&mut self) -> &mut GraphState<'v> {
        self.graph_state.get_or_insert_default()
    }

    /// Writes null, an indirection, a reference, or a header. After a header, adds a frame for the state.
    fn write_part(&mut self, e: &mut Encoder, nodes: &Nodes, declared: Index, value: &Value) -> WriteResult {
        let is_abstract = nodes.at(declared).kind() == TcKind::AbstractInterface;
        let node = match value {
            Value::Object(reference) if is_abstract => {
                e.put_bool(true);
                return Ok(reference.encode(e)?);
            }
            Value::Node(node) => *node,
            _ => return Err(mismatch(nodes, declared, value)),
        };
        if is_abstract {
            e.put_bool(false);
        }
        let Some(node) = node else {
            untyped::put_null(e);
            return Ok(());
        };
        if let Some(known) = self.graph_state().written.get(node as usize) {
            if !known.is_a(declared_id(nodes, declared)) {
                return Err(mismatch(nodes, declared, value));
            }
            return Ok(write::put_indirection(e, known.counterpart)?);
        }
        let graph = self.graph;
        let out_of_bounds = || DynErrorKind::Bounds { index: node as usize, len: graph.nodes.len() };
        let found = graph.nodes.get(node as usize).ok_or_else(out_of_bounds)?;
        let (class, exact) = self.class_of(found, nodes, declared)?;
        if !class.is_a(declared_id(nodes, declared)) {
            return Err(mismatch(nodes, declared, value));
        }
        if class.is_custom {
            return Err(
                DynError::from(DynErrorKind::Inconsistent(CUSTOM_STATE_UNKNOWN)).inside(Step::Node(node))
            );
        }
        let members = &found.members[..];
        if members.len() != class.members.len() {
            let error = DynError::new(DynErrorKind::InvalidValue(WRONG_MEMBER_COUNT));
            return Err(error.inside(Step::Node(node)));
        }
        let (at, chunked) = untyped::open_value(e, &class.ids, exact)?;
        if let Some(id) = class.ids.first() {
            untyped::store_value_type(e, id, &class.code);
        }
        let graph_state = self.graph_state();
        graph_state.written.insert(node as usize, at, Some(&class));
        graph_state.frames.push(Frame {
            class,
            node,
            members,
            next_member: 0,
            elements: None,
            chunked,
            ended_base_count: 0,
        });
        Ok(())
    }

    /// Returns the class that the receiver will determine for a node of the declared type `declared`, and
    /// whether the node is of exactly that type.
    fn class_of(
        &mut self,
        node: &ValueNode,
        nodes: &Nodes,
        declared: Index,
    ) -> WriteResult<(Arc<Class>, bool)> {
        let TypeCode { nodes: own_nodes, root } = node.code.unaliased();
        let not_value_type =
            DynErrorKind::Inconsistent("the type of a node of the graph is not a value type");
        let id = concrete_id(own_nodes.at(root)).ok_or(not_value_type)?;
        let graph_state = self.graph_state();
        if !graph_state.types.contains_key(id) {
            graph_state.types.insert(id.into(), TypeCode { nodes: own_nodes.clone(), root });
        }
        let GraphState { classes, types, .. } = graph_state;
        let known = |id: &str| types.get(id).cloned();
        let exact = declared_id(nodes, declared) == Some(id);
        let found = if exact { None } else { classes.type_with_id(&known, nodes, id) };
        let class = match &found {
            Some(found) => classes.class(&known, &found.nodes, found.root),
            None => classes.class(&known, nodes, declared),
        };
        Ok((class.map_err(no_class)?, exact))
    }

    /// Writes the states of the values in the frames from `first_frame` on.
    fn write_states(&mut self, e: &mut Encoder, first_frame: usize) -> WriteResult {
        loop {
            let frames = &mut self.graph_state().frames;
            let at = frames.len().wrapping_sub(1);
            let Some(frame) = frames.last_mut().filter(|_| at >= first_frame) else { return Ok(()) };
            let (class, node) = (Arc::clone(&frame.class), frame.node);
            let nodes = &class.code.nodes;
            if let Some((kind, values, index)) = frame.elements {
                let member = frame.next_member - 1;
                let Some(value) = values.get(index) else {
                    frame.elements = None;
                    continue;
                };
                frame.elements = Some((kind, values, index + 1));
                self.write_part(e, nodes, kind, value)
                    .map_err(|error| inside_node(inside_element(error, index), &class, node, member))?;
                continue;
            }
            let member = frame.next_member;
            untyped::end_complete_bases(e, &class, frame.chunked, member, &mut frame.ended_base_count)?;
            let (Some(kind), Some(value)) = (class.members.get(member), frame.members.get(member)) else {
                let chunked = frame.chunked;
                frames.pop();
                untyped::close_value(e, chunked)?;
                continue;
            };
            frame.next_member += 1;
            let kind = nodes.unaliased(*kind);
            self.member(e, nodes, kind, value, at)
                .map_err(|error| inside_node(error, &class, node, member))?;
        }
    }

    /// Writes a member of the value in the frame `at`. If the member is a value, adds a frame for its state.
    fn member(
        &mut self,
        e: &mut Encoder,
        nodes: &Nodes,
        kind: Index,
        value: &'v Value,
        at: usize,
    ) -> WriteResult {
        match (member_kind(nodes, kind), value) {
            (MemberKind::Value, value) => self.write_part(e, nodes, kind, value),
            (MemberKind::Values { element, bound, .. }, Value::Items(items)) => {
                let Items::Values(values) = &**items else { return self.value(e, nodes, kind, value) };
                put_count(e, values.len(), bound)?;
                if let Some(frame) = self.graph_state().frames.get_mut(at) {
                    frame.elements = Some((element, values, 0));
                }
                Ok(())
            }
            _ => self.value(e, nodes, kind, value),
        }
    }
}

#[cold]
fn no_class(kind: DecodeErrorKind) -> DynError {
    DynErrorKind::Inconsistent(match kind {
        DecodeErrorKind::LimitExceeded => "the repository id of a value type is longer than 1024 bytes",
        _ => "the bases of a value type are invalid",
    })
    .into()
}
