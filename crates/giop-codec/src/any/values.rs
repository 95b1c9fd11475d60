//! Values of value types and boxes in anys: graphs, walked with a list in place of the stack.
//!
//! Where a value is written it always says its type, so that nobody needs the any's type code for that. What is shared inside of an
//! any stays shared; what it shares with the rest of a message is walked again, so that an any can be kept without the message.

use std::collections::HashMap;
use std::sync::Arc;

use super::canonical;
use super::walk::{Done, Walker};
use crate::cdr::Decoder;
use crate::typecode::{Body, Index, Named, Node, Nodes, TcKind, TypeCode, ValueModifier};
use crate::value::{Next, Opened, PassedType, ValueBase, ValueForm};
use crate::{DecodeError, DecodeErrorKind};

/// Classes above each other, as many as there may be repository ids in a list.
const MAX_BASES: usize = 64;
/// Octets of a repository id.
const MAX_ID: usize = 1024;
/// What each value is charged for beside its octets.
const VALUE: usize = 160;

/// A concrete value type or box.
struct Class {
    nodes: Nodes,
    /// Types of the members, those of the bases first.
    members: Box<[Index]>,
    passed: PassedType,
}

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
}

/// What a walk knows of values.
#[derive(Default)]
pub(super) struct Graph {
    /// What is read is not needed: nor is what it refers to.
    skips: bool,
    frames: Vec<Frame>,
    /// Where values that were read were written.
    places: HashMap<usize, usize>,
    /// By the address of the types, and the index of one. The types are kept, so that no others come to be there.
    classes: HashMap<(usize, Index), (Nodes, Arc<Class>)>,
    /// By the address of the types among which they are looked for first, which are kept.
    by_id: HashMap<(usize, Box<str>), (Nodes, Option<TypeCode>)>,
}

/// Whether values of the type are null, or a graph.
pub(super) fn is_value(node: &Node) -> bool {
    matches!(node, Node::Named(Named { body: Body::Value(_), .. } | Named { kind: TcKind::ValueBox, .. }))
        || matches!(node, Node::Named(Named { kind: TcKind::AbstractInterface, .. }))
}

impl Walker<'_> {
    /// Copies what is in a place of such a type, with all that it refers to.
    pub(super) fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> Done {
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
            Next::Back(target) => match self.graph.places.get(&target).copied() {
                Some(position) => self.put(d, |e| e.put_back(position)),
                None if self.graph.skips => {
                    self.e.put_null();
                    Ok(())
                }
                // It is not in this any.
                None => d.pass_again(target, |d, implied| match d.next_value()? {
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
        implied: Option<Arc<str>>,
    ) -> Done {
        if let Some(position) = self.graph.places.get(&value.at).copied() {
            // A part of something that is not in this any was copied before the whole.
            self.put(d, |e| e.put_back(position))?;
            let mut unused = canonical();
            let mut over = Walker::new(&mut unused);
            (over.anys, over.graph.skips) = (self.anys, true);
            over.enter(d, nodes, place, value, ids, implied)?;
            return d.nested(|d| over.states(d, 0));
        }
        let (class, exact, skips) = self.class_of(d, nodes, place, value, ids, implied.as_deref())?;
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
        self.graph.places.insert(value.at, position);
        self.graph.frames.push(Frame { class, member: 0, elements: None, read: value, skips, chunked });
        self.settle(d)
    }

    /// Copies the states of the values that were begun, from the frame `floor` on.
    fn states(&mut self, d: &mut Decoder<'_>, floor: usize) -> Done {
        while self.graph.frames.len() > floor {
            let Some(frame) = self.graph.frames.last_mut() else { return Ok(()) };
            let class = Arc::clone(&frame.class);
            let nodes = &class.nodes;
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
            match nodes.at(member) {
                node if is_value(node) => self.begin(d, nodes, member)?,
                Node::Sequence { element, bound } if is_value(nodes.at(nodes.unaliased(*element))) => {
                    let count = self.count(d, nodes, *element, *bound)?;
                    if let Some(frame) = self.graph.frames.last_mut() {
                        frame.elements = (count > 0).then_some((nodes.unaliased(*element), count));
                    }
                }
                _ => self.value(d, nodes, member)?,
            }
        }
        Ok(())
    }

    /// What a value is, whether that is what the place says, and whether it is cut to a base.
    fn class_of(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        place: Index,
        value: Opened,
        ids: &[&str],
        implied: Option<&str>,
    ) -> Result<(Arc<Class>, bool, bool), DecodeError> {
        let unknown = DecodeError::new(DecodeErrorKind::NoValueFactory, value.at);
        let formal = concrete(nodes.at(place));
        let ids = if ids.is_empty() { implied.as_slice() } else { ids };
        if ids.is_empty() {
            formal.ok_or(unknown)?;
            return Ok((self.class(d, nodes, place)?, true, false));
        }
        for (index, id) in ids.iter().enumerate() {
            let truncated = index > 0;
            if truncated && !value.chunked {
                break;
            }
            if formal == Some(id) {
                return Ok((self.class(d, nodes, place)?, true, truncated));
            }
            let Some(TypeCode { nodes: found, root }) = self.type_with_id(d, nodes, id) else { continue };
            let class = self.class(d, &found, root)?;
            let derived =
                bases(&found, root).any(|base| formal.is_none_or(|formal| id_of(found.at(base)) == formal));
            if derived {
                return Ok((class, false, truncated));
            }
        }
        Err(unknown)
    }

    /// The concrete value type or box with this id: of those that a type code says, or that the program knows.
    fn type_with_id(&mut self, d: &Decoder<'_>, nodes: &Nodes, id: &str) -> Option<TypeCode> {
        let key = (address(nodes), Box::from(id));
        if let Some((_, known)) = self.graph.by_id.get(&key) {
            return known.clone();
        }
        let mut indices = 0..nodes.all().len() as Index;
        let found = match indices.find(|index| concrete(nodes.at(*index)) == Some(id)) {
            Some(index) => Some(TypeCode { nodes: nodes.clone(), root: index }),
            None => d.value_type(id),
        };
        self.graph.by_id.insert(key, (nodes.clone(), found.clone()));
        found
    }

    fn class(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, index: Index) -> Result<Arc<Class>, DecodeError> {
        let key = (address(nodes), index);
        if let Some((_, class)) = self.graph.classes.get(&key) {
            return Ok(Arc::clone(class));
        }
        let class = match known_bases(d, nodes, index) {
            Some(TypeCode { nodes, root }) => Class::new(d, &nodes, root)?,
            None => Class::new(d, nodes, index)?,
        };
        let class = Arc::new(class);
        self.graph.classes.insert(key, (nodes.clone(), Arc::clone(&class)));
        Ok(class)
    }
}

impl Class {
    fn new(d: &mut Decoder<'_>, nodes: &Nodes, index: Index) -> Result<Class, DecodeError> {
        let chain: Vec<Index> = bases(nodes, index).take(MAX_BASES + 1).collect();
        if chain.len() > MAX_BASES {
            return Err(d.error(DecodeErrorKind::InvalidTypeCode));
        }
        let mut members = Vec::new();
        let mut ids: Vec<Arc<str>> = Vec::new();
        let mut truncatable = true;
        for index in &chain {
            let Node::Named(named) = nodes.at(*index) else { continue };
            if named.id.len() > MAX_ID {
                return Err(d.error(DecodeErrorKind::LimitExceeded));
            }
            if truncatable {
                d.charge(named.id.len() + 32)?;
                ids.push(Arc::from(&*named.id));
            }
            truncatable &=
                matches!(&named.body, Body::Value(value) if value.modifier == ValueModifier::Truncatable);
        }
        for index in chain.iter().rev() {
            match nodes.at(*index) {
                Node::Named(Named { body: Body::Value(value), .. }) => {
                    if value.modifier == ValueModifier::Custom {
                        return Err(d.error(DecodeErrorKind::NotInAny));
                    }
                    d.charge(value.members.len() * size_of::<Index>())?;
                    members.extend(value.members.iter().map(|member| member.kind));
                }
                Node::Named(Named { body: Body::Content(content), .. }) => members.push(*content),
                _ => return Err(d.error(DecodeErrorKind::InvalidTypeCode)),
            }
        }
        Ok(Class { nodes: nodes.clone(), members: members.into(), passed: PassedType { ids: ids.into() } })
    }
}

/// The type as the program knows it, where that has a base and the type code says of none: JacORB leaves bases out.
#[cold]
fn known_bases(d: &Decoder<'_>, nodes: &Nodes, index: Index) -> Option<TypeCode> {
    let known = d.value_type(concrete(nodes.at(index))?)?;
    let has_base = |nodes: &Nodes, index| bases(nodes, index).nth(1).is_some();
    (!has_base(nodes, index) && has_base(&known.nodes, known.root)).then_some(known)
}

/// A type and its concrete bases; it may not end where a type code is of no type that can be.
fn bases(nodes: &Nodes, index: Index) -> impl Iterator<Item = Index> {
    core::iter::successors(Some(nodes.unaliased(index)), |index| match nodes.at(*index) {
        Node::Named(Named { body: Body::Value(value), .. }) => value.base.map(|base| nodes.unaliased(base)),
        _ => None,
    })
    .take(MAX_BASES + 1)
}

/// The id of a type of which there are values: not abstract, not `ValueBase`.
fn concrete(node: &Node) -> Option<&str> {
    match node {
        Node::Named(Named { id, body: Body::Value(value), .. })
            if value.modifier != ValueModifier::Abstract && *id != *ValueBase::REPOSITORY_ID =>
        {
            Some(id)
        }
        Node::Named(Named { kind: TcKind::ValueBox, id, .. }) => Some(id),
        _ => None,
    }
}

fn id_of(node: &Node) -> &str {
    match node {
        Node::Named(named) => &named.id,
        _ => "",
    }
}

fn address(nodes: &Nodes) -> usize {
    nodes.all().as_ptr().addr()
}
