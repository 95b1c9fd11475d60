//! [`TypeSet`]: types that a program creates, which may refer to each other recursively.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::TypeCode;
use super::check::{self, CreateError};
use super::kind::{TcKind, ValueModifier, Visibility};
use super::node::{Body, Builder, Index, Member, Name, NamedType, Node, Nodes, Union, Value};

/// A type of a [`TypeSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeRef(Index);

/// The label of a union's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnionLabel {
    /// The bits of a value of the discriminator's type: see [`TypeCode::member_discriminator`].
    Case(i64),
    /// The label of the member that all other values select.
    Default,
}

/// A set of types created at run time, from which type codes are taken.
///
/// A type is declared first and defined once, before or after other types that refer to it. Unlike the OMG's
/// interface, which has [`create_recursive`](TypeCode::create_recursive), this needs no placeholders for
/// recursive types. An invalid type is rejected when it is defined. Errors that depend on all types together
/// are reported when the type code is requested.
///
/// Example: `struct Node { long v; sequence<Node> kids; };`
///
/// ```
/// use giop_codec::typecode::{CreateError, TypeCode, TypeSet};
///
/// let mut types = TypeSet::new();
/// let node = types.declare();
/// let (v, kids) = (types.add(&TypeCode::LONG), types.sequence(node, 0)?);
/// types.define_struct(node, "IDL:Node:1.0", "Node", &[("v", v), ("kids", kids)])?;
/// let code = types.type_code(node)?;
/// assert_eq!(code.to_string(), "struct Node { long v; sequence<Node> kids; }");
/// # Ok::<(), CreateError>(())
/// ```
#[derive(Debug, Default)]
pub struct TypeSet {
    builder: Builder,
    /// Indices of the types added from type codes, by the address of their arena.
    added: HashMap<(usize, Index), Index>,
    /// Keeps the arenas alive, so that these addresses stay valid.
    arenas: HashMap<usize, Nodes>,
    /// The id of placeholders, and the type that replaces them when they are added.
    recursive: Option<(Box<str>, Index)>,
    /// Approximate size in bytes of all type codes taken from the set.
    taken: AtomicUsize,
}

/// The maximum size in bytes of all type codes of one set. Each contains all the types that it consists of,
/// so the size can grow with the square of the number of types.
const MOST: usize = 256 << 20;

impl TypeSet {
    /// Creates an empty set.
    pub fn new() -> TypeSet {
        TypeSet::default()
    }

    /// Creates a set for one type, which replaces placeholders with its id.
    pub(super) fn around(id: &str) -> (TypeSet, TypeRef) {
        let mut set = TypeSet::new();
        let root = set.declare();
        set.recursive = (!id.is_empty()).then(|| (id.into(), root.0));
        (set, root)
    }

    /// Declares a type, to be defined later.
    pub fn declare(&mut self) -> TypeRef {
        TypeRef(self.builder.reserve())
    }

    /// Returns whether a type is defined.
    pub fn is_defined(&self, of: TypeRef) -> bool {
        self.builder.get(of.0).is_some()
    }

    /// Adds an existing type code with all the types that it consists of.
    ///
    /// Types that are shared within one type code are shared here too, so nothing is copied twice.
    pub fn add(&mut self, code: &TypeCode) -> TypeRef {
        self.arenas.entry(address(&code.nodes)).or_insert_with(|| code.nodes.clone());
        let mut waiting = Vec::new();
        let place = self.place(&code.nodes, code.root, &mut waiting);
        while let Some((from, to)) = waiting.pop() {
            let mut node = code.nodes.at(from).clone();
            node.each_index(|index| *index = self.place(&code.nodes, *index, &mut waiting));
            self.builder.set(to, node);
        }
        TypeRef(place)
    }

    fn place(&mut self, nodes: &Nodes, index: Index, waiting: &mut Vec<(Index, Index)>) -> Index {
        match nodes.at(index) {
            Node::Basic(kind) => return self.builder.basic(*kind),
            Node::Recursive(id) => {
                if let Some((_, root)) = self.recursive.as_ref().filter(|(around, _)| **around == **id) {
                    return *root;
                }
            }
            _ => {}
        }
        let from = (address(nodes), index);
        if let Some(place) = self.added.get(&from) {
            return *place;
        }
        let place = self.builder.reserve();
        self.added.insert(from, place);
        waiting.push((index, place));
        place
    }

    /// Adds `sequence<element, bound>`; a bound of 0 means unbounded.
    ///
    /// # Errors
    /// [`CreateError::ContentType`].
    pub fn sequence(&mut self, element: TypeRef, bound: u32) -> Result<TypeRef, CreateError> {
        let element = self.content(element)?;
        Ok(TypeRef(self.builder.push(Node::Sequence { element, bound })))
    }

    /// Adds an array of `length` elements; an array of several dimensions is an array of arrays.
    ///
    /// # Errors
    /// [`CreateError::ContentType`].
    pub fn array(&mut self, element: TypeRef, length: u32) -> Result<TypeRef, CreateError> {
        let element = self.content(element)?;
        Ok(TypeRef(self.builder.push(Node::Array { element, length })))
    }

    fn content(&self, content: TypeRef) -> Result<Index, CreateError> {
        check::has_values(&self.builder, content.0).then_some(content.0).ok_or(CreateError::ContentType)
    }

    /// Defines a struct.
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName),
    /// [`InvalidMember`](CreateError::InvalidMember), [`MemberType`](CreateError::MemberType),
    /// [`Redefined`](CreateError::Redefined).
    pub fn define_struct(
        &mut self,
        at: TypeRef,
        id: &str,
        name: &str,
        members: &[(&str, TypeRef)],
    ) -> Result<(), CreateError> {
        let body = Body::Members(self.members(members)?);
        self.define(at, TcKind::Struct, id, name, body)
    }

    /// Defines an exception, whose members must all be complete.
    ///
    /// # Errors
    /// Those of [`define_struct`](TypeSet::define_struct).
    pub fn define_exception(
        &mut self,
        at: TypeRef,
        id: &str,
        name: &str,
        members: &[(&str, TypeRef)],
    ) -> Result<(), CreateError> {
        let body = Body::Members(self.members(members)?);
        self.define(at, TcKind::Except, id, name, body)
    }

    fn members(&self, members: &[(&str, TypeRef)]) -> Result<Box<[Member]>, CreateError> {
        check::names(members.iter().map(|(name, _)| *name), |_, _| false)?;
        let member = |(at, (name, kind)): (usize, &(&str, TypeRef))| {
            Ok(Member { name: owned(name), kind: self.member(at, *kind)?, label: 0 })
        };
        members.iter().enumerate().map(member).collect()
    }

    fn member(&self, at: usize, kind: TypeRef) -> Result<Index, CreateError> {
        check::has_values(&self.builder, kind.0).then_some(kind.0).ok_or(CreateError::MemberType(at))
    }

    /// Defines an enum.
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName),
    /// [`InvalidMember`](CreateError::InvalidMember), [`Redefined`](CreateError::Redefined).
    pub fn define_enum(
        &mut self,
        at: TypeRef,
        id: &str,
        name: &str,
        enumerators: &[&str],
    ) -> Result<(), CreateError> {
        check::names(enumerators.iter().copied(), |_, _| false)?;
        let body = Body::Enumerators(enumerators.iter().map(|name| owned(name)).collect());
        self.define(at, TcKind::Enum, id, name, body)
    }

    /// Defines a union with a member for each label; the discriminator must be defined. Members with the same
    /// name are one member, and must have the same type.
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName),
    /// [`InvalidMember`](CreateError::InvalidMember), [`MemberType`](CreateError::MemberType),
    /// [`Discriminator`](CreateError::Discriminator), [`Incomplete`](CreateError::Incomplete) for a
    /// discriminator that is not defined, [`LabelType`](CreateError::LabelType),
    /// [`DoubledLabel`](CreateError::DoubledLabel) also for a second default,
    /// [`Redefined`](CreateError::Redefined).
    pub fn define_union(
        &mut self,
        at: TypeRef,
        id: &str,
        name: &str,
        discriminator: TypeRef,
        members: &[(UnionLabel, &str, TypeRef)],
    ) -> Result<(), CreateError> {
        let kinds = |one: usize, other: usize| {
            members.get(one).map(|member| member.2) == members.get(other).map(|member| member.2)
        };
        self.union(at, id, name, discriminator, members, kinds)
    }

    /// Defines a union like [`define_union`](TypeSet::define_union); `same` returns whether two members have
    /// the same type.
    pub(super) fn union(
        &mut self,
        at: TypeRef,
        id: &str,
        name: &str,
        discriminator: TypeRef,
        members: &[(UnionLabel, &str, TypeRef)],
        same: impl Fn(usize, usize) -> bool,
    ) -> Result<(), CreateError> {
        let labels = check::labels(&self.builder, discriminator.0)?;
        check::distinct(labels, members.iter().map(|(label, ..)| *label))?;
        check::names(members.iter().map(|(_, name, _)| *name), same)?;
        let mut default = None;
        let member = |(at, (label, name, kind)): (usize, &(UnionLabel, &str, TypeRef))| {
            let label = match label {
                UnionLabel::Case(label) => *label,
                UnionLabel::Default => {
                    default = u32::try_from(at).ok();
                    0
                }
            };
            Ok(Member { name: owned(name), kind: self.member(at, *kind)?, label })
        };
        let members = members.iter().enumerate().map(member).collect::<Result<_, CreateError>>()?;
        let body = Body::Union(Box::new(Union::new(discriminator.0, default, members)));
        self.define(at, TcKind::Union, id, name, body)
    }

    /// Defines a `typedef`.
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName),
    /// [`ContentType`](CreateError::ContentType), [`Redefined`](CreateError::Redefined).
    pub fn define_alias(
        &mut self,
        at: TypeRef,
        id: &str,
        name: &str,
        original: TypeRef,
    ) -> Result<(), CreateError> {
        let body = Body::Content(self.content(original)?);
        self.define(at, TcKind::Alias, id, name, body)
    }

    /// Defines a value box.
    ///
    /// # Errors
    /// Those of [`define_alias`](TypeSet::define_alias).
    pub fn define_value_box(
        &mut self,
        at: TypeRef,
        id: &str,
        name: &str,
        content: TypeRef,
    ) -> Result<(), CreateError> {
        let body = Body::Content(self.content(content)?);
        self.define(at, TcKind::ValueBox, id, name, body)
    }

    /// Defines a value type ([`TcKind::Value`]) or an event type ([`TcKind::Event`]) with the members that it
    /// adds to those of its base. The base must be defined.
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName),
    /// [`InvalidMember`](CreateError::InvalidMember), [`MemberType`](CreateError::MemberType),
    /// [`BaseType`](CreateError::BaseType) if the base or `kind` is not a value or event type,
    /// [`Incomplete`](CreateError::Incomplete) for a base that is not defined,
    /// [`Redefined`](CreateError::Redefined).
    #[allow(clippy::too_many_arguments, reason = "a value type has so many parts")]
    pub fn define_value(
        &mut self,
        at: TypeRef,
        kind: TcKind,
        id: &str,
        name: &str,
        modifier: ValueModifier,
        base: Option<TypeRef>,
        members: &[(&str, TypeRef, Visibility)],
    ) -> Result<(), CreateError> {
        if !matches!(kind, TcKind::Value | TcKind::Event) {
            return Err(CreateError::BaseType);
        }
        base.map_or(Ok(()), |base| check::base(&self.builder, base.0))?;
        check::names(members.iter().map(|(name, ..)| *name), |_, _| false)?;
        let member = |(at, (name, kind, visibility)): (usize, &(&str, TypeRef, Visibility))| {
            Ok(Member { name: owned(name), kind: self.member(at, *kind)?, label: *visibility as i64 })
        };
        let members = members.iter().enumerate().map(member).collect::<Result<_, CreateError>>()?;
        let body = Body::Value(Box::new(Value { modifier, base: base.map(|base| base.0), members }));
        self.define(at, kind, id, name, body)
    }

    /// Defines a type that consists only of an id and a name: an interface of any kind, a component, a home
    /// or a `native` type.
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId), also for another kind,
    /// [`InvalidName`](CreateError::InvalidName), [`Redefined`](CreateError::Redefined).
    pub fn define_opaque(
        &mut self,
        at: TypeRef,
        kind: TcKind,
        id: &str,
        name: &str,
    ) -> Result<(), CreateError> {
        let opaque = matches!(
            kind,
            TcKind::ObjRef
                | TcKind::AbstractInterface
                | TcKind::LocalInterface
                | TcKind::Component
                | TcKind::Home
                | TcKind::Native
        );
        if !opaque {
            return Err(CreateError::InvalidId);
        }
        self.define(at, kind, id, name, Body::Opaque)
    }

    fn define(
        &mut self,
        at: TypeRef,
        kind: TcKind,
        id: &str,
        name: &str,
        body: Body,
    ) -> Result<(), CreateError> {
        check::id_and_name(kind, id, name)?;
        if self.builder.get(at.0).is_some() {
            return Err(CreateError::Redefined);
        }
        self.builder.set(at.0, Node::Named(NamedType { kind, id: owned(id), name: owned(name), body }));
        Ok(())
    }

    pub(super) fn any(&self, f: impl Fn(&Node) -> bool) -> bool {
        (0..self.builder.len()).any(|at| self.builder.get(at as Index).is_some_and(&f))
    }

    /// Returns the type code of a type, a copy of all the types that it consists of.
    ///
    /// # Errors
    /// [`Incomplete`](CreateError::Incomplete) if a type within it is declared but not defined,
    /// [`Endless`](CreateError::Endless), [`TooLarge`](CreateError::TooLarge).
    pub fn type_code(&self, of: TypeRef) -> Result<TypeCode, CreateError> {
        check::ends(&self.builder, of.0)?;
        let found = check::reachable(&self.builder, of.0);
        let size = found.iter().filter_map(|index| self.builder.get(*index)).map(Node::memory).sum();
        if self.taken.fetch_add(size, Ordering::Relaxed).saturating_add(size) > MOST {
            return Err(CreateError::TooLarge);
        }
        let places: HashMap<Index, Index> = found.iter().copied().zip(0..).collect();
        let nodes = found.iter().map(|index| {
            let mut node = self.builder.get(*index).ok_or(CreateError::Incomplete)?.clone();
            node.each_index(|index| *index = places.get(index).copied().unwrap_or(0));
            Ok(node)
        });
        let code = TypeCode::new(Nodes::of(nodes.collect::<Result<Vec<Node>, CreateError>>()?), 0);
        // An exception is never part of a type that could replace the placeholder.
        if code.kind() == TcKind::Except && !code.is_complete() {
            return Err(CreateError::Incomplete);
        }
        Ok(code)
    }
}

fn address(nodes: &Nodes) -> usize {
    nodes.all().as_ptr().addr()
}

fn owned(text: &str) -> Name {
    if text.is_empty() { Cow::Borrowed("") } else { Cow::Owned(text.to_owned()) }
}
