//! [`TypeSet`]: types that are created at run time, and may refer to each other recursively.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::TypeCode;
use super::check::{
    CreateError, check_base, check_discriminator, check_finite, check_id_and_name, check_labels, check_names,
    has_values, reachable,
};
use super::kind::{TcKind, ValueModifier, Visibility};
use super::node::{Body, Builder, Index, Member, Name, NamedType, Node, Nodes, Union, Value};

/// A type of a [`TypeSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeRef(Index);

/// The label of a union's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnionLabel {
    /// A value of the discriminator's type, as a number: see [`TypeCode::member_discriminator`].
    Case(i64),
    /// The label `default`, which stands for all values that are not a label.
    Default,
}

/// A set of types created at run time. [`type_code`](Self::type_code) returns the type code of one of them.
///
/// A type is declared first. It is defined once, before or after the definition of other types that refer to
/// it. Therefore recursive types need no placeholders, which the OMG's interface requires
/// ([`create_recursive`](TypeCode::create_recursive)). An invalid type is rejected when it is defined. Errors
/// that depend on several types are reported when the type code is requested.
///
/// All definitions check their parts ([`InvalidId`](CreateError::InvalidId),
/// [`InvalidName`](CreateError::InvalidName), [`InvalidMember`](CreateError::InvalidMember),
/// [`MemberType`](CreateError::MemberType), [`ContentType`](CreateError::ContentType),
/// [`Redefined`](CreateError::Redefined)).
///
/// For example, this creates `struct Node { long v; sequence<Node> kids; };`:
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
    /// The indices of types added from type codes, by the address of their arena and their index in it.
    copies: HashMap<(usize, Index), Index>,
    /// The arenas of these type codes. They are kept, so that no other arena can get the same address.
    arenas: HashMap<usize, Nodes>,
    /// The id of the placeholders that are replaced when they are added, and the type that replaces them.
    placeholder: Option<(Box<str>, Index)>,
    /// The approximate size in bytes of all type codes that were requested from the set.
    total_bytes: AtomicUsize,
}

/// The maximum size in bytes of all type codes of a set. Each has its own copies of its types.
const MAX_TOTAL_BYTES: usize = 256 << 20;

impl TypeSet {
    /// Creates an empty set.
    pub fn new() -> TypeSet {
        TypeSet::default()
    }

    /// Creates a set, and declares a type that replaces the placeholders with this id.
    pub(super) fn replacing(id: &str) -> (TypeSet, TypeRef) {
        let mut set = TypeSet::new();
        let root = set.declare();
        set.placeholder = (!id.is_empty()).then(|| (id.into(), root.0));
        (set, root)
    }

    /// Declares a type, which must be defined later.
    pub fn declare(&mut self) -> TypeRef {
        TypeRef(self.builder.reserve())
    }

    /// Returns whether a type is defined.
    pub fn is_defined(&self, ty: TypeRef) -> bool {
        self.builder.get(ty.0).is_some()
    }

    /// Adds the types of an existing type code. Types that are shared within the type code remain shared.
    pub fn add(&mut self, code: &TypeCode) -> TypeRef {
        self.arenas.entry(code.nodes.address()).or_insert_with(|| code.nodes.clone());
        let mut pending = Vec::new();
        let root = self.index_for(&code.nodes, code.root, &mut pending);
        while let Some((from, to)) = pending.pop() {
            let mut node = code.nodes.at(from).clone();
            node.for_each_index_mut(|index| *index = self.index_for(&code.nodes, *index, &mut pending));
            self.builder.set(to, node);
        }
        TypeRef(root)
    }

    fn index_for(&mut self, nodes: &Nodes, index: Index, pending: &mut Vec<(Index, Index)>) -> Index {
        match nodes.at(index) {
            Node::Basic(kind) => return self.builder.basic(*kind),
            Node::Placeholder(id) => {
                if let Some((_, root)) = self.placeholder.as_ref().filter(|(replaced, _)| **replaced == **id)
                {
                    return *root;
                }
            }
            _ => {}
        }
        *self.copies.entry((nodes.address(), index)).or_insert_with(|| {
            let copy = self.builder.reserve();
            pending.push((index, copy));
            copy
        })
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
        self.require_values(content, CreateError::ContentType)
    }

    fn require_values(&self, ty: TypeRef, error: CreateError) -> Result<Index, CreateError> {
        has_values(&self.builder, ty.0).then_some(ty.0).ok_or(error)
    }

    /// Defines a struct.
    pub fn define_struct(
        &mut self,
        declared: TypeRef,
        id: &str,
        name: &str,
        members: &[(&str, TypeRef)],
    ) -> Result<(), CreateError> {
        let body = Body::Members(self.members(members)?);
        self.define(declared, TcKind::Struct, id, name, body)
    }

    /// Defines an exception. The types of its members must be complete when the type code is requested.
    pub fn define_exception(
        &mut self,
        declared: TypeRef,
        id: &str,
        name: &str,
        members: &[(&str, TypeRef)],
    ) -> Result<(), CreateError> {
        let body = Body::Members(self.members(members)?);
        self.define(declared, TcKind::Except, id, name, body)
    }

    fn members(&self, members: &[(&str, TypeRef)]) -> Result<Box<[Member]>, CreateError> {
        check_names(members.iter().map(|(name, _)| *name), |_, _| false)?;
        self.new_members(members.iter().map(|(name, ty)| (*name, *ty, 0)))
    }

    fn new_members<'m>(
        &self,
        members: impl Iterator<Item = (&'m str, TypeRef, i64)>,
    ) -> Result<Box<[Member]>, CreateError> {
        let member = |(index, (name, ty, label))| {
            let ty = self.require_values(ty, CreateError::MemberType(index))?;
            Ok(Member { name: owned(name), ty, label_or_visibility: label })
        };
        members.enumerate().map(member).collect()
    }

    /// Defines an enum.
    pub fn define_enum(
        &mut self,
        declared: TypeRef,
        id: &str,
        name: &str,
        enumerators: &[&str],
    ) -> Result<(), CreateError> {
        check_names(enumerators.iter().copied(), |_, _| false)?;
        let body = Body::Enumerators(enumerators.iter().map(|name| owned(name)).collect());
        self.define(declared, TcKind::Enum, id, name, body)
    }

    /// Defines a union. `members` has an entry for each label. Entries with one name must have the same type.
    ///
    /// # Errors
    /// The errors of all definitions, and:
    /// - [`Incomplete`](CreateError::Incomplete) if the discriminator is not defined yet.
    /// - [`Discriminator`](CreateError::Discriminator), [`LabelType`](CreateError::LabelType).
    /// - [`DuplicateLabel`](CreateError::DuplicateLabel), also for a second default.
    pub fn define_union(
        &mut self,
        declared: TypeRef,
        id: &str,
        name: &str,
        discriminator: TypeRef,
        members: &[(UnionLabel, &str, TypeRef)],
    ) -> Result<(), CreateError> {
        let have_same_type = |one: usize, other: usize| {
            members.get(one).map(|member| member.2) == members.get(other).map(|member| member.2)
        };
        self.define_union_with(declared, id, name, discriminator, members, have_same_type)
    }

    /// Like [`define_union`](TypeSet::define_union); `have_same_type` compares the types of two entries.
    pub(super) fn define_union_with(
        &mut self,
        declared: TypeRef,
        id: &str,
        name: &str,
        discriminator: TypeRef,
        members: &[(UnionLabel, &str, TypeRef)],
        have_same_type: impl Fn(usize, usize) -> bool,
    ) -> Result<(), CreateError> {
        let labels = check_discriminator(&self.builder, discriminator.0)?;
        check_labels(labels, members.iter().map(|(label, ..)| *label))?;
        check_names(members.iter().map(|(_, name, _)| *name), have_same_type)?;
        let default = members.iter().position(|(label, ..)| *label == UnionLabel::Default);
        let default = default.and_then(|index| u32::try_from(index).ok());
        let members = self.new_members(members.iter().map(|(label, name, ty)| match label {
            UnionLabel::Case(label) => (*name, *ty, *label),
            UnionLabel::Default => (*name, *ty, 0),
        }))?;
        let body = Body::Union(Box::new(Union::new(discriminator.0, default, members)));
        self.define(declared, TcKind::Union, id, name, body)
    }

    /// Defines a `typedef`.
    pub fn define_alias(
        &mut self,
        declared: TypeRef,
        id: &str,
        name: &str,
        original: TypeRef,
    ) -> Result<(), CreateError> {
        let body = Body::Content(self.content(original)?);
        self.define(declared, TcKind::Alias, id, name, body)
    }

    /// Defines a value box.
    pub fn define_value_box(
        &mut self,
        declared: TypeRef,
        id: &str,
        name: &str,
        content: TypeRef,
    ) -> Result<(), CreateError> {
        let body = Body::Content(self.content(content)?);
        self.define(declared, TcKind::ValueBox, id, name, body)
    }

    /// Defines a value type or event type (`kind`). `members` must not include the members of the base.
    ///
    /// # Errors
    /// The errors of all definitions, and:
    /// - [`BaseType`](CreateError::BaseType) if the base or `kind` is neither a value type nor an event type.
    /// - [`Incomplete`](CreateError::Incomplete) if the base is not defined yet.
    #[allow(clippy::too_many_arguments, reason = "these are the parts of a value type")]
    pub fn define_value(
        &mut self,
        declared: TypeRef,
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
        base.map_or(Ok(()), |base| check_base(&self.builder, base.0))?;
        check_names(members.iter().map(|(name, ..)| *name), |_, _| false)?;
        let members =
            self.new_members(members.iter().map(|(name, ty, visibility)| (*name, *ty, *visibility as i64)))?;
        let body = Body::Value(Box::new(Value { modifier, base: base.map(|base| base.0), members }));
        self.define(declared, kind, id, name, body)
    }

    /// Defines a type that consists only of an id and a name: an interface of any kind, a component, a home
    /// or a `native` type.
    ///
    /// # Errors
    /// The errors of all definitions. [`InvalidId`](CreateError::InvalidId) also if `kind` is another kind.
    pub fn define_opaque(
        &mut self,
        declared: TypeRef,
        kind: TcKind,
        id: &str,
        name: &str,
    ) -> Result<(), CreateError> {
        match kind {
            TcKind::ObjRef
            | TcKind::AbstractInterface
            | TcKind::LocalInterface
            | TcKind::Component
            | TcKind::Home
            | TcKind::Native => self.define(declared, kind, id, name, Body::Opaque),
            _ => Err(CreateError::InvalidId),
        }
    }

    fn define(
        &mut self,
        declared: TypeRef,
        kind: TcKind,
        id: &str,
        name: &str,
        body: Body,
    ) -> Result<(), CreateError> {
        check_id_and_name(kind, id, name)?;
        if self.builder.get(declared.0).is_some() {
            return Err(CreateError::Redefined);
        }
        self.builder.set(declared.0, Node::Named(NamedType { kind, id: owned(id), name: owned(name), body }));
        Ok(())
    }

    pub(super) fn has_node(&self, f: impl Fn(&Node) -> bool) -> bool {
        (0..self.builder.len()).any(|index| self.builder.get(index as Index).is_some_and(&f))
    }

    /// Returns the type code of a type, with copies of all types that it consists of.
    ///
    /// # Errors
    /// - [`Incomplete`](CreateError::Incomplete) if a part is not defined, or an exception has a placeholder.
    /// - [`InfiniteType`](CreateError::InfiniteType), [`TooLarge`](CreateError::TooLarge).
    pub fn type_code(&self, ty: TypeRef) -> Result<TypeCode, CreateError> {
        check_finite(&self.builder, ty.0)?;
        let found = reachable(&self.builder, ty.0);
        let size = found.iter().filter_map(|index| self.builder.get(*index)).map(Node::memory).sum();
        if self.total_bytes.fetch_add(size, Ordering::Relaxed).saturating_add(size) > MAX_TOTAL_BYTES {
            return Err(CreateError::TooLarge);
        }
        let places: HashMap<Index, Index> = found.iter().copied().zip(0..).collect();
        let nodes = found.iter().map(|index| {
            let mut node = self.builder.get(*index).ok_or(CreateError::Incomplete)?.clone();
            node.for_each_index_mut(|index| *index = places.get(index).copied().unwrap_or(0));
            Ok(node)
        });
        let code = TypeCode::new(Nodes::from(nodes.collect::<Result<Box<[Node]>, CreateError>>()?), 0);
        // The placeholder could never be replaced, because an exception is not a part of any other type.
        if code.kind() == TcKind::Except && !code.is_complete() {
            return Err(CreateError::Incomplete);
        }
        Ok(code)
    }
}

fn owned(text: &str) -> Name {
    if text.is_empty() { Cow::Borrowed("") } else { Cow::Owned(text.to_owned()) }
}
