//! What type codes say of value types and boxes: the classes of values of which no Rust type is known.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Opened, PassedType, ValueBase, ValueForm};
use crate::cdr::Decoder;
use crate::ior::MAX_REPOSITORY_ID;
use crate::typecode::{Body, Index, Named, Node, Nodes, TcKind, TypeCode, ValueModifier};
use crate::{DecodeError, DecodeErrorKind};

/// Classes above each other, as many as there may be repository ids in a list.
const MAX_BASES: usize = 64;

/// What stands for the members of a custom value: the bytes of its state.
pub(crate) const BYTES: &str = "$bytes";

/// Who knows value types by their repository ids.
pub(crate) type Known<'k> = &'k dyn Fn(&str) -> Option<TypeCode>;

/// A concrete value type or box.
pub(crate) struct Class {
    /// Of the type, without aliases.
    pub(crate) code: TypeCode,
    /// Types of the members, those of the bases first.
    pub(crate) members: Box<[Index]>,
    /// How many of them are before the end of each base, and of the type itself.
    pub(crate) ends: Box<[usize]>,
    pub(crate) passed: PassedType,
    /// What is in its values only their authors know.
    pub(crate) custom: bool,
}

/// What a value is.
pub(crate) struct Chosen {
    pub(crate) class: Arc<Class>,
    /// It is of the type of its place.
    pub(crate) exact: bool,
    /// It is cut to a base.
    pub(crate) truncated: bool,
}

/// The classes that were met.
#[derive(Default)]
pub(crate) struct Classes {
    /// By the address of the types, and the index of one. The types are kept, so that no others come to be there.
    by_place: HashMap<(usize, Index), (Nodes, Arc<Class>)>,
    /// By the address of types, which are kept: those of which there are values, by their ids. What is unknown takes no memory.
    by_id: HashMap<usize, (Nodes, Box<[Index]>)>,
    /// Types of the program.
    known: HashMap<Box<str>, TypeCode>,
}

impl Classes {
    /// What a value with these ids in its header is, in a place of that type; one without ids is of the type that is implied, else of that of the
    /// place.
    pub(crate) fn choose(
        &mut self,
        d: &mut Decoder<'_>,
        (nodes, place): (&Nodes, Index),
        value: Opened,
        ids: &[&str],
        implied: Option<&str>,
    ) -> Result<Chosen, DecodeError> {
        let unknown = DecodeError::new(DecodeErrorKind::NoValueFactory, value.at);
        let formal = formal(nodes, place);
        let ids = if ids.is_empty() { implied.as_slice() } else { ids };
        if ids.is_empty() {
            formal.ok_or(unknown)?;
            let class = self.charged(d, nodes, place)?;
            return Ok(Chosen { class, exact: true, truncated: false });
        }
        for (index, id) in ids.iter().enumerate() {
            let truncated = index > 0;
            if truncated && !value.chunked {
                break;
            }
            if formal == Some(id) {
                let class = self.charged(d, nodes, place)?;
                return Ok(Chosen { class, exact: true, truncated });
            }
            let found = self.type_with_id(&|id| d.value_type(id), nodes, id);
            let Some(TypeCode { nodes: found, root }) = found else { continue };
            let class = self.charged(d, &found, root)?;
            if class.is_a(formal) {
                return Ok(Chosen { class, exact: false, truncated });
            }
        }
        Err(unknown)
    }

    /// The concrete value type or box with this id: of those that a type code says, or that are known.
    pub(crate) fn type_with_id(&mut self, known: Known<'_>, nodes: &Nodes, id: &str) -> Option<TypeCode> {
        let (_, by_id) = self.by_id.entry(address(nodes)).or_insert_with(|| {
            let all = 0..nodes.all().len() as Index;
            let mut all: Box<[Index]> = all.filter(|index| concrete(nodes.at(*index)).is_some()).collect();
            all.sort_by_key(|index| concrete(nodes.at(*index)));
            (nodes.clone(), all)
        });
        let at = by_id.partition_point(|index| concrete(nodes.at(*index)) < Some(id));
        if let Some(index) = by_id.get(at).filter(|index| concrete(nodes.at(**index)) == Some(id)) {
            return Some(TypeCode { nodes: nodes.clone(), root: *index });
        }
        if let Some(found) = self.known.get(id) {
            return Some(found.clone());
        }
        let found = known(id)?;
        self.known.insert(id.into(), found.clone());
        Some(found)
    }

    /// The class of values of a type, which is no alias.
    pub(crate) fn class(
        &mut self,
        known: Known<'_>,
        nodes: &Nodes,
        index: Index,
    ) -> Result<Arc<Class>, DecodeErrorKind> {
        let key = (address(nodes), index);
        if let Some((_, class)) = self.by_place.get(&key) {
            return Ok(Arc::clone(class));
        }
        let class = match known_bases(known, nodes, index) {
            Some(TypeCode { nodes, root }) => Class::new(&nodes, root)?,
            None => Class::new(nodes, index)?,
        };
        let class = Arc::new(class);
        self.by_place.insert(key, (nodes.clone(), Arc::clone(&class)));
        Ok(class)
    }

    /// The same, paid for when it is met first.
    fn charged(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        index: Index,
    ) -> Result<Arc<Class>, DecodeError> {
        let before = self.by_place.len();
        let class = self.class(&|id| d.value_type(id), nodes, index).map_err(|kind| d.error(kind))?;
        if self.by_place.len() > before {
            let ids: usize = class.passed.ids.iter().map(|id| id.len() + 32).sum();
            d.charge(ids + class.members.len() * size_of::<Index>())?;
        }
        Ok(class)
    }
}

impl Class {
    fn new(nodes: &Nodes, index: Index) -> Result<Class, DecodeErrorKind> {
        let chain: Vec<Index> = bases(nodes, index).take(MAX_BASES + 1).collect();
        if chain.len() > MAX_BASES {
            return Err(DecodeErrorKind::InvalidTypeCode);
        }
        let (mut members, mut ends) = (Vec::new(), Vec::new());
        let mut ids: Vec<Arc<str>> = Vec::new();
        let (mut truncatable, mut custom) = (true, false);
        for index in &chain {
            let Node::Named(named) = nodes.at(*index) else { continue };
            if named.id.len() > MAX_REPOSITORY_ID {
                return Err(DecodeErrorKind::LimitExceeded);
            }
            if truncatable {
                ids.push(Arc::from(&*named.id));
            }
            truncatable &=
                matches!(&named.body, Body::Value(value) if value.modifier == ValueModifier::Truncatable);
        }
        for index in chain.iter().rev() {
            match nodes.at(*index) {
                Node::Named(Named { body: Body::Value(value), .. }) => {
                    custom |= value.modifier == ValueModifier::Custom;
                    members.extend(value.members.iter().map(|member| member.kind));
                }
                Node::Named(Named { body: Body::Content(content), .. }) => members.push(*content),
                _ => return Err(DecodeErrorKind::InvalidTypeCode),
            }
            ends.push(members.len());
        }
        if custom {
            members.clear();
            ends.clear();
        }
        let code = TypeCode { nodes: nodes.clone(), root: nodes.unaliased(index) };
        Ok(Class {
            code,
            members: members.into(),
            ends: ends.into(),
            passed: PassedType { ids: ids.into() },
            custom,
        })
    }

    /// Whether its values may be in a place of that concrete type; all may be in one that is of none.
    #[inline(never)]
    pub(crate) fn is_a(&self, formal: Option<&str>) -> bool {
        formal.is_none_or(|formal| has_base_with_id(&self.code.nodes, self.code.root, formal))
    }

    /// The name of a member; that of a box is `value`.
    #[cold]
    pub(crate) fn member_name(&self, mut member: usize) -> Box<str> {
        if self.custom {
            return BYTES.into();
        }
        let nodes = &self.code.nodes;
        let chain: Vec<Index> = bases(nodes, self.code.root).collect();
        for index in chain.into_iter().rev() {
            let members = nodes.at(index).members();
            match members.get(member) {
                Some(member) => return Box::from(&*member.name),
                None => member -= members.len(),
            }
        }
        "value".into()
    }
}

/// The type as it is known, where that has a base and the type code says of none: JacORB leaves bases out.
#[cold]
fn known_bases(known: Known<'_>, nodes: &Nodes, index: Index) -> Option<TypeCode> {
    let known = known(concrete(nodes.at(index))?)?;
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

/// Whether the type, or a base of it, has this id.
pub(crate) fn has_base_with_id(nodes: &Nodes, index: Index, id: &str) -> bool {
    bases(nodes, index).any(|base| id_of(nodes.at(base)) == id)
}

/// Whether values of the type are null, or a graph.
fn is_value(node: &Node) -> bool {
    matches!(node, Node::Named(Named { body: Body::Value(_), .. } | Named { kind: TcKind::ValueBox, .. }))
        || matches!(node, Node::Named(Named { kind: TcKind::AbstractInterface, .. }))
}

/// What a member of a value is to a walk over a graph.
pub(crate) enum Part {
    Value,
    /// A sequence of values: their type without aliases, the bound, and the least that each takes.
    Values(Index, u32, usize),
    Other,
}

/// Machine code that three walks share.
#[inline(never)]
pub(crate) fn part(nodes: &Nodes, member: Index) -> Part {
    match nodes.at(member) {
        node if is_value(node) => Part::Value,
        Node::Sequence { element, bound } => {
            let kind = nodes.unaliased(*element);
            match is_value(nodes.at(kind)) {
                true => Part::Values(kind, *bound, nodes.compiled().least(*element)),
                false => Part::Other,
            }
        }
        _ => Part::Other,
    }
}

/// The id of a type of which there are values: not abstract, not `ValueBase`.
pub(crate) fn concrete(node: &Node) -> Option<&str> {
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

/// The id of what values in a place must be, if it is of a concrete type.
pub(crate) fn formal(nodes: &Nodes, place: Index) -> Option<&str> {
    concrete(nodes.at(place))
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
