//! Classes of values without a Rust type, derived from the type codes of value types and boxes.

use std::collections::HashMap;
use std::sync::Arc;

use super::untyped;
use super::{ValueBase, ValueForm, ValueHeader};
use crate::cdr::Decoder;
use crate::ior::MAX_REPOSITORY_ID_BYTES;
use crate::typecode::{Body, Index, NamedType, Node, Nodes, TcKind, TypeCode, ValueModifier};
use crate::{DecodeError, DecodeErrorKind};

/// The maximum number of types in a chain of bases, including the derived type.
const MAX_BASES: usize = 64;

/// The name of the pseudo-member that holds the state of a custom value as bytes.
pub(crate) const CUSTOM_STATE_MEMBER: &str = "$bytes";

pub(crate) type ValueTypeLookup<'k> = &'k dyn Fn(&str) -> Option<TypeCode>;

/// A concrete value type or value box.
pub(crate) struct Class {
    /// The type code of the type, with aliases resolved.
    pub(crate) code: TypeCode,
    /// The types of all members. The members of the bases come first.
    pub(crate) members: Box<[Index]>,
    /// The number of members up to the end of each base, and up to the end of the type itself.
    pub(crate) member_ends: Box<[usize]>,
    /// The repository id of the type, followed by the ids of the bases to which its values may be truncated.
    pub(crate) ids: Arc<[Arc<str>]>,
    /// Whether the type is custom: only its author knows the structure of its state.
    pub(crate) is_custom: bool,
}

pub(crate) struct ClassChoice {
    pub(crate) class: Arc<Class>,
    /// Whether the class is exactly that of the declared type, and not of a derived one.
    pub(crate) is_exact: bool,
    /// Whether the value is truncated to a base.
    pub(crate) is_truncated: bool,
}

#[derive(Default)]
pub(crate) struct Classes {
    /// The class of each type, by the address of its nodes and its index in them. The nodes are kept, so that
    /// no others can get the same address.
    by_type: HashMap<(usize, Index), (Nodes, Arc<Class>)>,
    /// The indices of the concrete types among some nodes, sorted by id. The key is the address of the nodes.
    by_id: HashMap<usize, (Nodes, Box<[Index]>)>,
    /// The types that the program or the decoder's context knows, by id.
    known: HashMap<Box<str>, TypeCode>,
}

impl Classes {
    /// Selects the class of a value with the declared type `declared`. `ids` are the repository ids in its
    /// header. Without them, the value has the type `implied_id`, or `declared` if that is `None`.
    pub(crate) fn choose(
        &mut self,
        d: &mut Decoder<'_>,
        (nodes, declared): (&Nodes, Index),
        value: ValueHeader,
        ids: &[&str],
        implied_id: Option<&str>,
    ) -> Result<ClassChoice, DecodeError> {
        let unknown = DecodeError::new(DecodeErrorKind::NoValueFactory, value.at);
        let expected_id = declared_id(nodes, declared);
        let ids = if ids.is_empty() { implied_id.as_slice() } else { ids };
        if ids.is_empty() {
            expected_id.ok_or(unknown)?;
            let class = self.charged_class(d, nodes, declared)?;
            return Ok(ClassChoice { class, is_exact: true, is_truncated: false });
        }
        for (index, id) in ids.iter().enumerate() {
            let is_truncated = index > 0;
            if is_truncated && !value.is_chunked {
                break;
            }
            if expected_id == Some(id) {
                let class = self.charged_class(d, nodes, declared)?;
                return Ok(ClassChoice { class, is_exact: true, is_truncated });
            }
            let found = self.type_with_id(&|id| untyped::value_type(d, id), nodes, id);
            let Some(TypeCode { nodes: found, root }) = found else { continue };
            let class = self.charged_class(d, &found, root)?;
            if class.is_a(expected_id) {
                return Ok(ClassChoice { class, is_exact: false, is_truncated });
            }
        }
        Err(unknown)
    }

    /// Returns the concrete value type or box with this id, from `nodes` or from `known`.
    pub(crate) fn type_with_id(
        &mut self,
        known: ValueTypeLookup<'_>,
        nodes: &Nodes,
        id: &str,
    ) -> Option<TypeCode> {
        let (_, by_id) = self.by_id.entry(nodes.address()).or_insert_with(|| {
            let all = 0..nodes.all().len() as Index;
            let mut all: Box<[Index]> = all.filter(|index| concrete_id(nodes.at(*index)).is_some()).collect();
            all.sort_by_key(|index| concrete_id(nodes.at(*index)));
            (nodes.clone(), all)
        });
        let at = by_id.partition_point(|index| concrete_id(nodes.at(*index)) < Some(id));
        if let Some(index) = by_id.get(at).filter(|index| concrete_id(nodes.at(**index)) == Some(id)) {
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
        if let Some((_, class)) = self.by_type.get(&key) {
            return Ok(Arc::clone(class));
        }
        let class = match known_type_with_bases(known, nodes, index) {
            Some(TypeCode { nodes, root }) => Class::new(&nodes, root)?,
            None => Class::new(nodes, index)?,
        };
        let class = Arc::new(class);
        self.by_type.insert(key, (nodes.clone(), Arc::clone(&class)));
        Ok(class)
    }

    /// Like [`class`](Self::class), but deducts the size of a new class from the decoder's memory limit.
    fn charged_class(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        index: Index,
    ) -> Result<Arc<Class>, DecodeError> {
        let before = self.by_type.len();
        let class =
            self.class(&|id| untyped::value_type(d, id), nodes, index).map_err(|kind| d.error(kind))?;
        if self.by_type.len() > before {
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
        let (mut members, mut member_ends) = (Vec::new(), Vec::new());
        let mut ids: Vec<Arc<str>> = Vec::new();
        let (mut is_truncatable, mut is_custom) = (true, false);
        for index in &chain {
            let Node::Named(named) = nodes.at(*index) else { continue };
            if named.id.len() > MAX_REPOSITORY_ID_BYTES {
                return Err(DecodeErrorKind::LimitExceeded);
            }
            if is_truncatable {
                ids.push(Arc::from(&*named.id));
            }
            is_truncatable &=
                matches!(&named.body, Body::Value(value) if value.modifier == ValueModifier::Truncatable);
        }
        for index in chain.iter().rev() {
            match nodes.at(*index) {
                Node::Named(NamedType { body: Body::Value(value), .. }) => {
                    is_custom |= value.modifier == ValueModifier::Custom;
                    members.extend(value.members.iter().map(|member| member.ty));
                }
                Node::Named(NamedType { body: Body::Content(content), .. }) => members.push(*content),
                _ => return Err(DecodeErrorKind::InvalidTypeCode),
            }
            member_ends.push(members.len());
        }
        if is_custom {
            members.clear();
            member_ends.clear();
        }
        let code = TypeCode { nodes: nodes.clone(), root: nodes.unaliased(index) };
        let (members, member_ends) = (members.into(), member_ends.into());
        Ok(Class { code, members, member_ends, ids: ids.into(), is_custom })
    }

    /// Returns whether values of the class may be used where a value of the type `id`, if any, is expected.
    #[inline(never)]
    pub(crate) fn is_a(&self, id: Option<&str>) -> bool {
        id.is_none_or(|id| has_base_with_id(&self.code.nodes, self.code.root, id))
    }

    /// Returns the name of a member. The content of a box is named `value`.
    #[cold]
    pub(crate) fn member_name(&self, mut member: usize) -> Box<str> {
        if self.is_custom {
            return CUSTOM_STATE_MEMBER.into();
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

/// Returns the known type with the same id if it has a base and this type has none: JacORB omits bases.
#[cold]
fn known_type_with_bases(known: ValueTypeLookup<'_>, nodes: &Nodes, index: Index) -> Option<TypeCode> {
    let known = known(concrete_id(nodes.at(index))?)?;
    let has_base = |nodes: &Nodes, index| bases(nodes, index).nth(1).is_some();
    (!has_base(nodes, index) && has_base(&known.nodes, known.root)).then_some(known)
}

/// Iterates over a type and its bases, up to a limit: bases in a malformed type code may form a cycle.
fn bases(nodes: &Nodes, index: Index) -> impl Iterator<Item = Index> {
    core::iter::successors(Some(nodes.unaliased(index)), |index| match nodes.at(*index) {
        Node::Named(NamedType { body: Body::Value(value), .. }) => {
            value.base.map(|base| nodes.unaliased(base))
        }
        _ => None,
    })
    .take(MAX_BASES + 1)
}

pub(crate) fn has_base_with_id(nodes: &Nodes, index: Index, id: &str) -> bool {
    bases(nodes, index).any(|base| matches!(nodes.at(base), Node::Named(named) if named.id == id))
}

fn is_value(node: &Node) -> bool {
    matches!(
        node,
        Node::Named(
            NamedType { body: Body::Value(_), .. }
                | NamedType { kind: TcKind::ValueBox | TcKind::AbstractInterface, .. }
        )
    )
}

/// How a traversal of a graph processes a member of a value.
pub(crate) enum MemberKind {
    /// As a value or an object reference.
    Value,
    /// As a sequence of values of the type `element`, which is no alias, of at least `min_size` bytes each.
    Values { element: Index, bound: u32, min_size: usize },
    /// As a member of any other type.
    Other,
}

/// Returns the kind of a member of this type. Not inlined, because three traversals share the machine code.
#[inline(never)]
pub(crate) fn member_kind(nodes: &Nodes, member: Index) -> MemberKind {
    match nodes.at(member) {
        node if is_value(node) => MemberKind::Value,
        Node::Sequence { element, bound } => {
            let (element, min_size) = (nodes.unaliased(*element), nodes.steps().min_size(*element));
            match is_value(nodes.at(element)) {
                true => MemberKind::Values { element, bound: *bound, min_size },
                false => MemberKind::Other,
            }
        }
        _ => MemberKind::Other,
    }
}

/// Returns the id of a value box or concrete value type, but not of an abstract type or `ValueBase`.
pub(crate) fn concrete_id(node: &Node) -> Option<&str> {
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

/// Returns the id of a declared type, if it is concrete. Values may have a derived type.
pub(crate) fn declared_id(nodes: &Nodes, declared: Index) -> Option<&str> {
    concrete_id(nodes.at(declared))
}
