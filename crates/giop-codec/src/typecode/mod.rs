//! Type codes: types as values, which can be compared, inspected and sent ("TypeCodes").
//!
//! [`TypeCode`] is such a value. [`Typed`] is the trait of Rust types that have a type code, and [`TypeDesc`]
//! describes types in generated code. The types of a type code refer to each other by index, so that a
//! recursive type is no ownership cycle. A received type code has at most [`MAX_NODES`] types in
//! [`MAX_LEVELS`] levels.

mod check;
mod compare;
mod compile;
mod create;
mod decode;
mod desc;
mod display;
mod encode;
mod kind;
mod kind_cdr;
mod node;
mod set;
mod typed;

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

pub use check::CreateError;
pub use decode::{MAX_LEVELS, MAX_NODES, TypeCodeCache};
pub use desc::{Definition, MemberDesc, Shape, TypeDesc, UnionMemberDesc, ValueMemberDesc};
pub use kind::{TcKind, TypeCodeError, ValueModifier, Visibility};
pub use set::{TypeRef, TypeSet, UnionLabel};
pub use typed::Typed;

pub(crate) use crate::program::LabelEncoding;
pub(crate) use decode::{TypeLookup, WSTRING_VALUE, is_valid_fixed, type_lookup};
pub(crate) use node::{Body, Builder, Index, Member, NamedType, Node, Nodes, Union, Value};

/// A type as a value.
///
/// Cloning increments a reference count. The type codes of basic types need no allocation. The result of
/// [`member_type`](TypeCode::member_type) or a similar method keeps the whole type code in memory.
///
/// A query of a type code fails with [`TypeCodeError::BadKind`] if types of its kind do not have the
/// requested property, and with [`TypeCodeError::Bounds`] if it has no member with the given index.
///
/// `==` is [`equal`](TypeCode::equal). [`equivalent`](TypeCode::equivalent) tells whether values of one type
/// can be used as values of the other. `Display` formats the type as IDL.
///
/// ```
/// use giop_codec::typecode::{TcKind, TypeCode, TypeCodeError, Typed};
///
/// let lists = Vec::<Vec<i32>>::type_code();
/// assert_eq!(lists.kind(), TcKind::Sequence);
/// assert_eq!(lists.content_type()?.content_type()?, TypeCode::LONG);
/// assert_eq!(lists.to_string(), "sequence<sequence<long>>");
/// assert_eq!(lists.member_count(), Err(TypeCodeError::BadKind));
/// # Ok::<(), TypeCodeError>(())
/// ```
#[doc(alias = "CORBA::TypeCode")]
#[derive(Clone)]
pub struct TypeCode {
    pub(crate) nodes: Nodes,
    pub(crate) root: Index,
}

macro_rules! constants {
    ($($at:literal $name:ident = $node:expr, $doc:literal;)*) => {
        static CONSTANTS: [Node; [$($at),*].len()] = [$($node),*];

        impl TypeCode {
            $(#[doc = $doc] pub const $name: TypeCode = TypeCode { nodes: Nodes::Static(&CONSTANTS), root: $at };)*
        }
    };
}

constants! {
    0 NULL = Node::Basic(TcKind::Null), "The type of an any without a value.";
    1 VOID = Node::Basic(TcKind::Void), "The result type of an operation without a result.";
    2 SHORT = Node::Basic(TcKind::Short), "`short`.";
    3 LONG = Node::Basic(TcKind::Long), "`long`.";
    4 USHORT = Node::Basic(TcKind::UShort), "`unsigned short`.";
    5 ULONG = Node::Basic(TcKind::ULong), "`unsigned long`.";
    6 FLOAT = Node::Basic(TcKind::Float), "`float`.";
    7 DOUBLE = Node::Basic(TcKind::Double), "`double`.";
    8 BOOLEAN = Node::Basic(TcKind::Boolean), "`boolean`.";
    9 CHAR = Node::Basic(TcKind::Char), "`char`.";
    10 OCTET = Node::Basic(TcKind::Octet), "`octet`, also used for `int8` and `uint8`, which have no type codes.";
    11 ANY = Node::Basic(TcKind::Any), "`any`.";
    12 TYPE_CODE = Node::Basic(TcKind::TypeCode), "`CORBA::TypeCode`.";
    13 PRINCIPAL = Node::Basic(TcKind::Principal), "`CORBA::Principal`, which exists only in GIOP 1.0 and 1.1.";
    14 LONGLONG = Node::Basic(TcKind::LongLong), "`long long`.";
    15 ULONGLONG = Node::Basic(TcKind::ULongLong), "`unsigned long long`.";
    16 LONGDOUBLE = Node::Basic(TcKind::LongDouble), "`long double`.";
    17 WCHAR = Node::Basic(TcKind::WChar), "`wchar`.";
    18 STRING = Node::Text { wide: false, bound: 0 }, "`string` without a bound.";
    19 WSTRING = Node::Text { wide: true, bound: 0 }, "`wstring` without a bound.";
    20 OBJECT = Node::Named(NamedType {
        kind: TcKind::ObjRef,
        id: Cow::Borrowed("IDL:omg.org/CORBA/Object:1.0"),
        name: Cow::Borrowed("Object"),
        body: Body::Opaque,
    }), "`Object`, the base of all interfaces.";
}

impl TypeCode {
    pub(crate) fn new(nodes: Nodes, root: Index) -> TypeCode {
        TypeCode { nodes, root }
    }

    /// Returns the type code of a basic kind; `None` if the kind is not [basic](TcKind::is_basic).
    pub fn basic(kind: TcKind) -> Option<TypeCode> {
        let root = CONSTANTS.iter().position(|node| node.kind() == kind)?;
        kind.is_basic().then_some(TypeCode { nodes: Nodes::Static(&CONSTANTS), root: root as Index })
    }

    /// Returns `string<bound>`; a bound of 0 means unbounded.
    pub fn string(bound: u32) -> TypeCode {
        TypeCode::leaf(Node::Text { wide: false, bound })
    }

    /// Returns `wstring<bound>`. The bound is in UTF-16 code units; 0 means unbounded.
    pub fn wstring(bound: u32) -> TypeCode {
        TypeCode::leaf(Node::Text { wide: true, bound })
    }

    /// Returns `sequence<element, bound>`; a bound of 0 means unbounded. Copies all types of `element`.
    pub fn sequence(element: &TypeCode, bound: u32) -> TypeCode {
        TypeCode::of_elements(element, |element| Node::Sequence { element, bound })
    }

    /// Returns an array of `length` elements; an array of several dimensions is an array of arrays. Copies
    /// all types of `element`.
    pub fn array(element: &TypeCode, length: u32) -> TypeCode {
        TypeCode::of_elements(element, |element| Node::Array { element, length })
    }

    fn leaf(node: Node) -> TypeCode {
        TypeCode { nodes: Nodes::from(Box::from([node])), root: 0 }
    }

    fn of_elements(content: &TypeCode, node: impl FnOnce(Index) -> Node) -> TypeCode {
        let mut builder = Builder::default();
        let root = builder.reserve();
        let content = builder.copy_from(&content.nodes, content.root);
        builder.set(root, node(content));
        builder.finish().map_or(TypeCode::NULL, |nodes| TypeCode { nodes, root })
    }

    pub(crate) fn node(&self) -> &Node {
        self.nodes.at(self.root)
    }

    pub(crate) fn with_root(&self, root: Index) -> TypeCode {
        TypeCode { nodes: self.nodes.clone(), root }
    }

    /// Returns the kind of the type.
    pub fn kind(&self) -> TcKind {
        self.node().kind()
    }

    fn named(&self) -> Result<&NamedType, TypeCodeError> {
        match self.node() {
            Node::Named(named) => Ok(named),
            _ => Err(TypeCodeError::BadKind),
        }
    }

    /// Returns the repository id, which may be empty, of a type whose kind [has one](TcKind::is_named).
    pub fn id(&self) -> Result<&str, TypeCodeError> {
        self.named().map(|named| &*named.id)
    }

    /// Returns the name without its scope of a type whose kind [has one](TcKind::is_named). May be empty.
    pub fn name(&self) -> Result<&str, TypeCodeError> {
        self.named().map(|named| &*named.name)
    }

    fn members(&self) -> Result<&[Member], TypeCodeError> {
        match &self.named()?.body {
            Body::Members(_) | Body::Union(_) | Body::Value(_) => Ok(self.node().members()),
            Body::Opaque | Body::Content(_) | Body::Enumerators(_) => Err(TypeCodeError::BadKind),
        }
    }

    pub(crate) fn member(&self, index: usize) -> Result<&Member, TypeCodeError> {
        self.members()?.get(index).ok_or(TypeCodeError::Bounds)
    }

    /// Returns the number of members of a struct, exception, union or value, or of enumerators of an enum.
    /// Members of a value's bases do not count. A member of a union counts once for each of its labels.
    pub fn member_count(&self) -> Result<usize, TypeCodeError> {
        match &self.named()?.body {
            Body::Enumerators(names) => Ok(names.len()),
            _ => self.members().map(<[Member]>::len),
        }
    }

    /// Returns the name of a member or enumerator. It may be empty.
    pub fn member_name(&self, index: usize) -> Result<&str, TypeCodeError> {
        match &self.named()?.body {
            Body::Enumerators(names) => names.get(index).map(|name| &**name).ok_or(TypeCodeError::Bounds),
            _ => self.member(index).map(|member| &*member.name),
        }
    }

    /// Returns the type of a member of a struct, exception, union or value.
    pub fn member_type(&self, index: usize) -> Result<TypeCode, TypeCodeError> {
        self.member(index).map(|member| self.with_root(member.ty))
    }

    pub(crate) fn union(&self) -> Result<&Union, TypeCodeError> {
        match &self.named()?.body {
            Body::Union(union) => Ok(union),
            _ => Err(TypeCodeError::BadKind),
        }
    }

    /// Returns the label of a union's member as a number; `None` for the default member. It is the value of
    /// an integer (an `unsigned long long` as an `i64`), the ordinal of an enumerator, the code of a
    /// character, or 0 or 1 for a boolean.
    pub fn member_discriminator(&self, index: usize) -> Result<Option<i64>, TypeCodeError> {
        let union = self.union()?;
        let member = union.members.get(index).ok_or(TypeCodeError::Bounds)?;
        let is_default = union.default.map(|default| default as usize) == Some(index);
        Ok((!is_default).then_some(member.label_or_visibility))
    }

    /// Returns the type of a union's discriminator.
    pub fn discriminator_type(&self) -> Result<TypeCode, TypeCodeError> {
        self.union().map(|union| self.with_root(union.discriminator))
    }

    /// Returns the index of a union's default member, if it has one.
    pub fn default_index(&self) -> Result<Option<usize>, TypeCodeError> {
        self.union().map(|union| union.default.map(|index| index as usize))
    }

    /// Returns the length of an array, or the bound of a text or sequence. A bound of 0 means unbounded.
    pub fn length(&self) -> Result<u32, TypeCodeError> {
        match self.node() {
            Node::Text { bound, .. } | Node::Sequence { bound, .. } => Ok(*bound),
            Node::Array { length, .. } => Ok(*length),
            _ => Err(TypeCodeError::BadKind),
        }
    }

    /// Returns the element type of a sequence or array, the original type of an alias, or the content type of
    /// a value box.
    pub fn content_type(&self) -> Result<TypeCode, TypeCodeError> {
        match self.node() {
            Node::Sequence { element: content, .. }
            | Node::Array { element: content, .. }
            | Node::Named(NamedType { body: Body::Content(content), .. }) => Ok(self.with_root(*content)),
            _ => Err(TypeCodeError::BadKind),
        }
    }

    /// Returns the number of decimal digits of a `fixed`.
    pub fn fixed_digits(&self) -> Result<u16, TypeCodeError> {
        match self.node() {
            Node::Fixed { digits, .. } => Ok(*digits),
            _ => Err(TypeCodeError::BadKind),
        }
    }

    /// Returns the number of digits of a `fixed` after the decimal point.
    pub fn fixed_scale(&self) -> Result<i16, TypeCodeError> {
        match self.node() {
            Node::Fixed { scale, .. } => Ok(*scale),
            _ => Err(TypeCodeError::BadKind),
        }
    }

    fn value(&self) -> Result<&Value, TypeCodeError> {
        match &self.named()?.body {
            Body::Value(value) => Ok(value),
            _ => Err(TypeCodeError::BadKind),
        }
    }

    /// Returns the visibility of a member of a value.
    pub fn member_visibility(&self, index: usize) -> Result<Visibility, TypeCodeError> {
        match self.value()?.members.get(index).ok_or(TypeCodeError::Bounds)?.label_or_visibility {
            0 => Ok(Visibility::Private),
            _ => Ok(Visibility::Public),
        }
    }

    /// Returns the modifier of a value type: custom, abstract, truncatable or none.
    pub fn type_modifier(&self) -> Result<ValueModifier, TypeCodeError> {
        self.value().map(|value| value.modifier)
    }

    /// Returns the concrete base of a value type, whose members precede its own; `None` if there is none.
    pub fn concrete_base_type(&self) -> Result<Option<TypeCode>, TypeCodeError> {
        self.value().map(|value| value.base.map(|base| self.with_root(base)))
    }

    /// Returns the type with all aliases resolved.
    pub fn unaliased(&self) -> TypeCode {
        self.with_root(self.nodes.unaliased(self.root))
    }
}

impl Default for TypeCode {
    fn default() -> TypeCode {
        TypeCode::NULL
    }
}

impl PartialEq for TypeCode {
    fn eq(&self, other: &TypeCode) -> bool {
        self.equal(other)
    }
}

impl Eq for TypeCode {}

impl Hash for TypeCode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind().hash(state);
        match self.node() {
            Node::Basic(_) => {}
            Node::Text { bound, .. } | Node::Sequence { bound, .. } => bound.hash(state),
            Node::Array { length, .. } => length.hash(state),
            Node::Fixed { digits, scale } => (digits, scale).hash(state),
            Node::Named(named) => (&named.id, &named.name).hash(state),
            Node::Placeholder(id) => id.hash(state),
        }
    }
}
