//! Encoding of graphs of values. An explicit list of frames replaces recursion.

use std::collections::HashMap;
use std::sync::Arc;

use super::read::inside_element;
use super::write::{WriteResult, Writer, mismatch};
use crate::DecodeErrorKind;
use crate::cdr::{CdrEncode, Encoder};
use crate::dynamic::check::CUSTOM;
use crate::dynamic::{DynError, DynErrorKind, Items, Step, Value, ValueNode};
use crate::program::Index;
use crate::typecode::{Nodes, TcKind, TypeCode};
use crate::value::{Class, Classes, MemberKind, concrete, formal, member_kind, untyped, write};
use crate::walk::CopiedValues;

/// The state of encoding a graph.
#[derive(Default)]
pub(super) struct Walk<'v> {
    frames: Vec<Frame<'v>>,
    /// The position and class of each written node.
    places: CopiedValues,
    classes: Classes,
    /// The types of nodes by their ids: the first type for each id.
    types: HashMap<Box<str>, TypeCode>,
}

/// A value whose state is being written.
struct Frame<'v> {
    class: Arc<Class>,
    node: u32,
    members: &'v [Value],
    /// Number of members begun.
    member: usize,
    /// Elements of the member begun last: their type, all of them, and the number of elements begun.
    elements: Option<(Index, &'v [Value], usize)>,
    chunked: bool,
    /// Number of bases whose end is written.
    ended: usize,
}

impl<'v> Writer<'v> {
    /// Writes the content of a place of a value type, box or abstract interface, and all that it refers to.
    pub(super) fn graph_at(
        &mut self,
        e: &mut Encoder,
        nodes: &Nodes,
        place: Index,
        value: &Value,
    ) -> WriteResult {
        let floor = self.walk().frames.len();
        self.begin(e, nodes, place, value)?;
        if self.walk().frames.len() == floor {
            return Ok(());
        }
        self.deeper(|writer| writer.states(e, floor))
    }

    fn walk(&mut self) -> &mut Walk<'v> {
        self.walk.get_or_insert_default()
    }

    /// Writes null, an indirection, a reference, or the header of a value; the value's state then becomes a
    /// frame.
    fn begin(&mut self, e: &mut Encoder, nodes: &Nodes, place: Index, value: &Value) -> WriteResult {
        let is_abstract = nodes.at(place).kind() == TcKind::AbstractInterface;
        let node = match value {
            Value::Object(reference) if is_abstract => {
                e.put_bool(true);
                return Ok(reference.encode(e)?);
            }
            Value::Node(node) => *node,
            _ => return Err(mismatch(nodes, place, value)),
        };
        if is_abstract {
            e.put_bool(false);
        }
        let Some(node) = node else {
            untyped::put_null(e);
            return Ok(());
        };
        if let Some(known) = self.walk().places.get(node as usize) {
            if !known.fits(formal(nodes, place)) {
                return Err(mismatch(nodes, place, value));
            }
            return Ok(write::put_indirection(e, known.to)?);
        }
        let graph = self.graph;
        let none = || DynErrorKind::Bounds { index: node as usize, len: graph.nodes.len() };
        let found = graph.nodes.get(node as usize).ok_or_else(none)?;
        let (class, exact) = self.class_of(found, nodes, place)?;
        if !class.is_a(formal(nodes, place)) {
            return Err(mismatch(nodes, place, value));
        }
        if class.custom {
            return Err(DynError::from(DynErrorKind::Inconsistent(CUSTOM)).inside(Step::Node(node)));
        }
        let members = &found.members[..];
        if members.len() != class.members.len() {
            let text = "it has another number of members than its type";
            return Err(DynError::new(DynErrorKind::InvalidValue(text)).inside(Step::Node(node)));
        }
        let (at, chunked) = untyped::open(e, &class.ids, exact)?;
        if let Some(id) = class.ids.first() {
            untyped::note_value_type(e, id, &class.code);
        }
        let walk = self.walk();
        walk.places.insert(node as usize, at, Some(&class));
        walk.frames.push(Frame { class, node, members, member: 0, elements: None, chunked, ended: 0 });
        Ok(())
    }

    /// Returns the class of a node in a place, as the receiver determines it, and whether it is exactly the
    /// type of the place.
    fn class_of(&mut self, node: &ValueNode, nodes: &Nodes, place: Index) -> WriteResult<(Arc<Class>, bool)> {
        let TypeCode { nodes: of, root } = node.code.unaliased();
        let none = DynErrorKind::Inconsistent("a node of the graph is of no type that has values");
        let id = concrete(of.at(root)).ok_or(none)?;
        let walk = self.walk();
        if !walk.types.contains_key(id) {
            walk.types.insert(id.into(), TypeCode { nodes: of.clone(), root });
        }
        let Walk { classes, types, .. } = walk;
        let known = |id: &str| types.get(id).cloned();
        let exact = formal(nodes, place) == Some(id);
        let found = if exact { None } else { classes.type_with_id(&known, nodes, id) };
        let class = match &found {
            Some(found) => classes.class(&known, &found.nodes, found.root),
            None => classes.class(&known, nodes, place),
        };
        Ok((class.map_err(no_class)?, exact))
    }

    /// Writes the states of the values that were begun, from the frame `floor` on.
    fn states(&mut self, e: &mut Encoder, floor: usize) -> WriteResult {
        loop {
            let frames = &mut self.walk().frames;
            let at = frames.len().wrapping_sub(1);
            let Some(frame) = frames.last_mut().filter(|_| at >= floor) else { return Ok(()) };
            let (class, node) = (Arc::clone(&frame.class), frame.node);
            let nodes = &class.code.nodes;
            if let Some((kind, values, index)) = frame.elements {
                let member = frame.member - 1;
                let Some(value) = values.get(index) else {
                    frame.elements = None;
                    continue;
                };
                frame.elements = Some((kind, values, index + 1));
                self.begin(e, nodes, kind, value)
                    .map_err(|error| inside(inside_element(error, index), &class, node, member))?;
                continue;
            }
            let member = frame.member;
            untyped::after_members(e, &class, frame.chunked, member, &mut frame.ended)?;
            let (Some(kind), Some(value)) = (class.members.get(member), frame.members.get(member)) else {
                let chunked = frame.chunked;
                frames.pop();
                untyped::close(e, chunked)?;
                continue;
            };
            frame.member += 1;
            let kind = nodes.unaliased(*kind);
            self.member(e, nodes, kind, value, at).map_err(|error| inside(error, &class, node, member))?;
        }
    }

    /// Writes a member of the value in a frame, or begins it.
    fn member(
        &mut self,
        e: &mut Encoder,
        nodes: &Nodes,
        kind: Index,
        value: &'v Value,
        at: usize,
    ) -> WriteResult {
        match (member_kind(nodes, kind), value) {
            (MemberKind::Value, value) => self.begin(e, nodes, kind, value),
            (MemberKind::Values(element, bound, _), Value::Items(items)) => {
                let Items::Values(values) = &**items else { return self.value(e, nodes, kind, value) };
                let (len, most) = (values.len(), bound as usize);
                if most != 0 && len > most {
                    return Err(DynErrorKind::Bounds { index: len, len: most }.into());
                }
                e.put_len(len)?;
                if let Some(frame) = self.walk().frames.get_mut(at) {
                    frame.elements = Some((element, values, 0));
                }
                Ok(())
            }
            _ => self.value(e, nodes, kind, value),
        }
    }
}

#[cold]
fn inside(error: DynError, class: &Class, node: u32, member: usize) -> DynError {
    error.inside(Step::Member(class.member_name(member))).inside(Step::Node(node))
}

#[cold]
fn no_class(kind: DecodeErrorKind) -> DynError {
    DynErrorKind::Inconsistent(match kind {
        DecodeErrorKind::LimitExceeded => "the repository id of a value type is longer than 1024 octets",
        _ => "a value type has other bases than can be",
    })
    .into()
}
