//! Classes of values without a Rust type, derived from the type codes of value types and boxes.

use std::collections::HashMap;
use std::sync::Arc;

use super::untyped;
use super::{ValueBase, ValueForm, ValueHeader};
use crate::cdr::Decoder;
use crate::ior::MAX_REPOSITORY_ID;
use crate::typecode::{Body, Index, NamedType, Node, Nodes, TcKind, TypeCode, ValueModifier};
use crate::{DecodeError, DecodeErrorKind};

/// Maximum length of a chain of bases: the maximum number of repository ids in a list.
const MAX_BASES: usize = 64;

/// Name of the pseudo-member that holds the state of a custom value as bytes.
pub(crate) const BYTES: &str = "$bytes";

pub(crate) type ValueTypeLookup<'k> = &'k dyn Fn(&str) -> Option<TypeCode>;

/// A concrete value type or box.
pub(crate) struct Class {
    /// Type code of the type, without aliases.
    pub(crate) code: TypeCode,
    /// Types of the members, those of the bases first.
    pub(crate) members: Box<[Index]>,
    /// For each base, then the type itself: the number of members up to its end.
    pub(crate) ends: Box<[usize]>,
    /// The repository id of the type, then those of the bases to which its values may be truncated.
    pub(crate) ids: Arc<[Arc<str>]>,
    /// Whether the type is custom: only its author knows the structure of its state.
    pub(crate) custom: bool,
}

/// The class selected for a value.
pub(crate) struct ClassChoice {
    pub(crate) class: Arc<Class>,
    /// Whether it is exactly the type of the place.
    pub(crate) exact: bool,
    /// Whether the value is truncated to a base.
    pub(crate) truncated: bool,
}

/// The classes that were used so far.
#[derive(Default)]
pub(crate) struct Classes {
    /// By address and index of a type. The types are stored too, so that their addresses are not reused.
    by_place: HashMap<(usize, Index), (Nodes, Arc<Class>)>,
    /// The indices of concrete types, sorted by id, by address of the types.
    by_id: HashMap<usize, (Nodes, Box<[Index]>)>,
    /// Types that the program or its context has.
    known: HashMap<Box<str>, TypeCode>,
}

impl Classes {
    /// Selects the class of a value. Without ids it has the implied type, or otherwise that of the place.
    pub(crate) fn choose(
        &mut self,
        d: &mut Decoder<'_>,
        (nodes, place): (&Nodes, Index),
        value: ValueHeader,
        ids: &[&str],
        implied: Option<&str>,
    ) -> Result<ClassChoice, DecodeError> {
        let unknown = DecodeError::new(DecodeErrorKind::NoValueFactory, value.at);
        let formal = formal(nodes, place);
        let ids = if ids.is_empty() { implied.as_slice() } else { ids };
        if ids.is_empty() {
            formal.ok_or(unknown)?;
            let class = self.charged(d, nodes, place)?;
            return Ok(ClassChoice { class, exact: true, truncated: false });
        }
        for (index, id) in ids.iter().enumerate() {
            let truncated = index > 0;
            if truncated && !value.chunked {
                break;
            }
            if formal == Some(id) {
                let class = self.charged(d, nodes, place)?;
                return Ok(ClassChoice { class, exact: true, truncated });
            }
            let found = self.type_with_id(&|id| untyped::value_type(d, id), nodes, id);
            let Some(TypeCode { nodes: found, root }) = found else { continue };
            let class = self.charged(d, &found, root)?;
            if class.is_a(formal) {
                return Ok(ClassChoice { class, exact: false, truncated });
            }
        }
        Err(unknown)
    }

    /// Returns the concrete value type or box with this id, from the type code or `known`.
    pub(crate) fn type_with_id(
        &mut self,
        known: ValueTypeLookup<'_>,
        nodes: &Nodes,
        id: &str,
    ) -> Option<TypeCode> {
        let (_, by_id) = self.by_id.entry(nodes.address()).or_insert_with(|| {
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

    /// Returns the class of values of a type, which must not be an alias.
    pub(crate) fn class(
        &mut self,
        known: ValueTypeLookup<'_>,
        nodes: &Nodes,
        index: Index,
    ) -> Result<Arc<Class>, DecodeErrorKind> {
        let key = (nodes.address(), index);
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

    /// Like [`class`](Self::class), but charges the decoder for a new class.
    fn charged(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        index: Index,
    ) -> Result<Arc<Class>, DecodeError> {
        let before = self.by_place.len();
        let class =
            self.class(&|id| untyped::value_type(d, id), nodes, index).map_err(|kind| d.error(kind))?;
        if self.by_place.len() > before {
            let ids: usize = class.ids.iter().map(|id| id.len() + 32).sum();
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
                Node::Named(NamedType { body: Body::Value(value), .. }) => {
                    custom |= value.modifier == ValueModifier::Custom;
                    members.extend(value.members.iter().map(|member| member.kind));
                }
                Node::Named(NamedType { body: Body::Content(content), .. }) => members.push(*content),
                _ => return Err(DecodeErrorKind::InvalidTypeCode),
            }
            ends.push(members.len());
        }
        if custom {
            members.clear();
            ends.clear();
        }
        let code = TypeCode { nodes: nodes.clone(), root: nodes.unaliased(index) };
        Ok(Class { code, members: members.into(), ends: ends.into(), ids: ids.into(), custom })
    }

    /// Returns whether values of the class may be in a place of the concrete type `formal`, if it has one.
    #[inline(never)]
    pub(crate) fn is_a(&self, formal: Option<&str>) -> bool {
        formal.is_none_or(|formal| has_base_with_id(&self.code.nodes, self.code.root, formal))
    }

    /// Returns the name of a member; that of a box is `value`.
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

/// Returns the known type if it has a base but the type code has none, because JacORB omits bases.
#[cold]
fn known_bases(known: ValueTypeLookup<'_>, nodes: &Nodes, index: Index) -> Option<TypeCode> {
    let known = known(concrete(nodes.at(index))?)?;
    let has_base = |nodes: &Nodes, index| bases(nodes, index).nth(1).is_some();
    (!has_base(nodes, index) && has_base(&known.nodes, known.root)).then_some(known)
}

/// Iterates over a type and its concrete bases. A malformed type code may contain a cycle of bases.
fn bases(nodes: &Nodes, index: Index) -> impl Iterator<Item = Index> {
    core::iter::successors(Some(nodes.unaliased(index)), |index| match nodes.at(*index) {
        Node::Named(NamedType { body: Body::Value(value), .. }) => {
            value.base.map(|base| nodes.unaliased(base))
        }
        _ => None,
    })
    .take(MAX_BASES + 1)
}

/// Returns whether the type, or a base of it, has this id.
pub(crate) fn has_base_with_id(nodes: &Nodes, index: Index, id: &str) -> bool {
    bases(nodes, index).any(|base| matches!(nodes.at(base), Node::Named(named) if named.id == id))
}

/// Returns whether members of the type are values or abstract interfaces.
fn is_value(node: &Node) -> bool {
    matches!(
        node,
        Node::Named(
            NamedType { body: Body::Value(_), .. }
                | NamedType { kind: TcKind::ValueBox | TcKind::AbstractInterface, .. }
        )
    )
}

/// The kind of a member of a value in a traversal of a graph.
pub(crate) enum MemberKind {
    Value,
    /// A sequence of values: their type without aliases, the bound, and the minimum size of each in bytes.
    Values(Index, u32, usize),
    Other,
}

/// Not inlined, because three traversals share its machine code.
#[inline(never)]
pub(crate) fn member_kind(nodes: &Nodes, member: Index) -> MemberKind {
    match nodes.at(member) {
        node if is_value(node) => MemberKind::Value,
        Node::Sequence { element, bound } => {
            let kind = nodes.unaliased(*element);
            match is_value(nodes.at(kind)) {
                true => MemberKind::Values(kind, *bound, nodes.compiled().least(*element)),
                false => MemberKind::Other,
            }
        }
        _ => MemberKind::Other,
    }
}

/// Returns the id of a value box or a concrete value type: not abstract, not `ValueBase`.
pub(crate) fn concrete(node: &Node) -> Option<&str> {
    match node {
        Node::Named(NamedType { id, body: Body::Value(value), .. })
            if value.modifier != ValueModifier::Abstract && *id != *ValueBase::REPOSITORY_ID =>
        {
            Some(id)
        }
        Node::Named(NamedType { kind: TcKind::ValueBox, id, .. }) => Some(id),
        _ => None,
    }
}

/// Returns the id of the concrete type of a place. Values there have this type or a derived one.
pub(crate) fn formal(nodes: &Nodes, place: Index) -> Option<&str> {
    concrete(nodes.at(place))
}
