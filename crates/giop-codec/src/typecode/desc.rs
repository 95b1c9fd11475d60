//! [`TypeDesc`]: types as constant data, which is converted to type codes on demand.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::TypeCode;
use super::kind::{TcKind, ValueModifier, Visibility};
use super::node::{Body, Builder, Index, Member, NamedType, Node, Union, Value};

/// A type as constant data. The [`TypeCode`] of a type with a name is created once, on first use.
///
/// Types without a name are written in place. A type with a name is a [`Definition`]: a `static` that a
/// function returns, so that types can refer to each other recursively, even through generic types.
///
/// For example, `struct Node { long v; NodeSeq kids; };` and `typedef sequence<Node> NodeSeq;` become:
///
/// ```
/// use giop_codec::typecode::{Definition, Shape, TcKind, TypeCode, TypeDesc, Typed};
///
/// struct Node {
///     v: i32,
///     kids: Vec<Node>,
/// }
///
/// impl Typed for Node {
///     const DESC: &'static TypeDesc = &TypeDesc::Defined(|| {
///         static DEFINITION: Definition = Definition::new(
///             "IDL:Node:1.0",
///             "Node",
///             Shape::Struct(&[("v", <i32 as Typed>::DESC), ("kids", NODE_SEQ)]),
///         );
///         &DEFINITION
///     });
/// }
///
/// // Rust has no distinct type for an alias: members and signatures use this constant.
/// const NODE_SEQ: &TypeDesc = &TypeDesc::Defined(|| {
///     static DEFINITION: Definition =
///         Definition::new("IDL:NodeSeq:1.0", "NodeSeq", Shape::Alias(<Vec<Node> as Typed>::DESC));
///     &DEFINITION
/// });
///
/// assert_eq!(Node::type_code().to_string(), "struct Node { long v; NodeSeq kids; }");
/// assert_eq!(Node::type_code().member_type(1), Ok(TypeCode::of_desc(NODE_SEQ)));
/// ```
///
/// [`Shape`] lists the shapes of all other named types. An array of several dimensions is an array of arrays.
#[derive(Clone, Copy, Debug)]
pub enum TypeDesc {
    /// A type that is fully described by its kind: see [`TcKind::is_basic`].
    Basic(TcKind),
    /// `string`; a bound of 0 means unbounded.
    String {
        /// The maximum number of characters.
        bound: u32,
    },
    /// `wstring`; a bound of 0 means unbounded.
    WString {
        /// The maximum number of UTF-16 code units.
        bound: u32,
    },
    /// `fixed`.
    Fixed {
        /// The number of decimal digits, 1 to 31.
        digits: u16,
        /// The number of digits after the decimal point.
        scale: i16,
    },
    /// `sequence`; a bound of 0 means unbounded.
    Sequence {
        /// The element type.
        element: &'static TypeDesc,
        /// The maximum number of elements.
        bound: u32,
    },
    /// `map`, whose type code is that of a sequence of unnamed structs with the members `key` and `value`.
    Map {
        /// The key type.
        key: &'static TypeDesc,
        /// The value type.
        value: &'static TypeDesc,
        /// The maximum number of entries.
        bound: u32,
    },
    /// An array of one dimension.
    Array {
        /// The element type.
        element: &'static TypeDesc,
        /// The number of elements.
        length: u32,
    },
    /// A type with a repository id.
    Defined(fn() -> &'static Definition),
}

macro_rules! constants {
    ($($name:ident $kind:ident;)*) => {
        impl TypeDesc {
            $(
                #[doc = concat!("`", stringify!($kind), "`.")]
                pub const $name: &'static TypeDesc = &TypeDesc::Basic(TcKind::$kind);
            )*
        }
    };
}

constants! {
    NULL Null; VOID Void; SHORT Short; LONG Long; USHORT UShort; ULONG ULong; FLOAT Float; DOUBLE Double; BOOLEAN Boolean;
    CHAR Char; OCTET Octet; ANY Any; TYPE_CODE TypeCode; LONGLONG LongLong; ULONGLONG ULongLong; LONGDOUBLE LongDouble;
    WCHAR WChar;
}

impl TypeDesc {
    /// `string` without a bound.
    pub const STRING: &'static TypeDesc = &TypeDesc::String { bound: 0 };
    /// `wstring` without a bound.
    pub const WSTRING: &'static TypeDesc = &TypeDesc::WString { bound: 0 };
    /// `Object`.
    pub const OBJECT: &'static TypeDesc = &TypeDesc::Defined(|| {
        static OBJECT: Definition =
            Definition::new("IDL:omg.org/CORBA/Object:1.0", "Object", Shape::Opaque(TcKind::ObjRef));
        &OBJECT
    });
    /// `ValueBase`.
    pub const VALUE_BASE: &'static TypeDesc = &TypeDesc::Defined(|| {
        const SHAPE: Shape =
            Shape::Value { kind: TcKind::Value, modifier: ValueModifier::None, base: None, members: &[] };
        static VALUE_BASE: Definition =
            Definition::new("IDL:omg.org/CORBA/ValueBase:1.0", "ValueBase", SHAPE);
        &VALUE_BASE
    });
}

/// A type with a repository id. Its type code is created on first use.
#[derive(Debug)]
pub struct Definition {
    id: &'static str,
    name: &'static str,
    shape: Shape,
    code: OnceLock<TypeCode>,
}

impl Definition {
    /// Creates a type with this repository id and this name. The name does not include the scope.
    pub const fn new(id: &'static str, name: &'static str, shape: Shape) -> Definition {
        Definition { id, name, shape, code: OnceLock::new() }
    }

    /// Returns the type code. `desc` must be the description that refers to this definition.
    pub(crate) fn code(&self, desc: &TypeDesc) -> &TypeCode {
        self.code.get_or_init(|| build(desc))
    }
}

/// A member: its name and its type.
pub type MemberDesc = (&'static str, &'static TypeDesc);

/// One label of a union's member (see [`TypeCode::member_discriminator`]), the member's name and type.
pub type UnionMemberDesc = (i64, &'static str, &'static TypeDesc);

/// A value's member: its name, its type, and its visibility.
pub type ValueMemberDesc = (&'static str, &'static TypeDesc, Visibility);

/// The definition of a named type.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// An interface (also abstract or local), component, home, or `native` type.
    Opaque(TcKind),
    /// A struct.
    Struct(&'static [MemberDesc]),
    /// An exception.
    Except(&'static [MemberDesc]),
    /// An enum.
    Enum(&'static [&'static str]),
    /// A union.
    Union {
        /// The discriminator type: an integer, character, `boolean`, `octet`, enum, or an alias of one.
        discriminator: &'static TypeDesc,
        /// The index of the default member, whose label is ignored.
        default: Option<u32>,
        /// One member for each label.
        members: &'static [UnionMemberDesc],
    },
    /// A `typedef`.
    Alias(&'static TypeDesc),
    /// A value box.
    ValueBox(&'static TypeDesc),
    /// A value type, or an event type.
    Value {
        /// [`TcKind::Value`] or [`TcKind::Event`].
        kind: TcKind,
        /// Custom, abstract, truncatable, or none of these.
        modifier: ValueModifier,
        /// The base type, whose members precede the members of this type.
        base: Option<&'static TypeDesc>,
        /// The members, without the members of the base.
        members: &'static [ValueMemberDesc],
    },
}

impl TypeCode {
    /// Returns the type code of a description. Basic and named types and unbounded text are not built anew.
    pub fn of_desc(desc: &TypeDesc) -> TypeCode {
        match desc {
            TypeDesc::Basic(kind) => TypeCode::basic(*kind).unwrap_or(TypeCode::NULL),
            TypeDesc::String { bound: 0 } => TypeCode::STRING,
            TypeDesc::WString { bound: 0 } => TypeCode::WSTRING,
            TypeDesc::Defined(definition) => definition().code(desc).clone(),
            _ => build(desc),
        }
    }
}

fn build(desc: &TypeDesc) -> TypeCode {
    let mut desc_builder = DescBuilder::default();
    let root = desc_builder.add(desc);
    desc_builder.builder.finish().map_or(TypeCode::NULL, |nodes| TypeCode::new(nodes, root))
}

#[derive(Default)]
struct DescBuilder {
    builder: Builder,
    /// The indices of the named types created so far, by the address of their definition.
    known: HashMap<usize, Index>,
}

impl DescBuilder {
    fn add(&mut self, desc: &TypeDesc) -> Index {
        let node = match *desc {
            TypeDesc::Basic(kind) => return self.builder.basic(kind),
            TypeDesc::String { bound } => Node::Text { wide: false, bound },
            TypeDesc::WString { bound } => Node::Text { wide: true, bound },
            TypeDesc::Fixed { digits, scale } => Node::Fixed { digits, scale },
            TypeDesc::Sequence { element, bound } => {
                return self.add_with_element(element, |element| Node::Sequence { element, bound });
            }
            TypeDesc::Array { element, length } => {
                return self.add_with_element(element, |element| Node::Array { element, length });
            }
            TypeDesc::Map { key, value, bound } => {
                let (index, entry) = (self.builder.reserve(), self.builder.reserve());
                let body = Body::Members(self.members(&[("key", key), ("value", value)]));
                let (kind, id, name) = (TcKind::Struct, Cow::Borrowed(""), Cow::Borrowed(""));
                self.builder.set(entry, Node::Named(NamedType { kind, id, name, body }));
                self.builder.set(index, Node::Sequence { element: entry, bound });
                return index;
            }
            TypeDesc::Defined(definition) => return self.add_definition(definition()),
        };
        self.builder.push(node)
    }

    fn add_with_element(&mut self, element: &TypeDesc, node: impl FnOnce(Index) -> Node) -> Index {
        let index = self.builder.reserve();
        let element = self.add(element);
        self.builder.set(index, node(element));
        index
    }

    fn add_definition(&mut self, definition: &'static Definition) -> Index {
        let address = std::ptr::from_ref(definition).addr();
        if let Some(index) = self.known.get(&address) {
            return *index;
        }
        let index = self.builder.reserve();
        self.known.insert(address, index);
        let (kind, body) = self.shape(&definition.shape);
        let (id, name) = (Cow::Borrowed(definition.id), Cow::Borrowed(definition.name));
        self.builder.set(index, Node::Named(NamedType { kind, id, name, body }));
        index
    }

    fn shape(&mut self, shape: &Shape) -> (TcKind, Body) {
        match *shape {
            Shape::Opaque(kind) => (kind, Body::Opaque),
            Shape::Struct(members) => (TcKind::Struct, Body::Members(self.members(members))),
            Shape::Except(members) => (TcKind::Except, Body::Members(self.members(members))),
            Shape::Enum(names) => {
                (TcKind::Enum, Body::Enumerators(names.iter().map(|name| Cow::Borrowed(*name)).collect()))
            }
            Shape::Union { discriminator, default, members } => {
                let discriminator = self.add(discriminator);
                let member = |(index, (label, name, desc)): (usize, &UnionMemberDesc)| Member {
                    name: Cow::Borrowed(*name),
                    ty: self.add(desc),
                    label_or_visibility: if default == Some(index as u32) { 0 } else { *label },
                };
                let members = members.iter().enumerate().map(member).collect();
                (TcKind::Union, Body::Union(Box::new(Union::new(discriminator, default, members))))
            }
            Shape::Alias(content) => (TcKind::Alias, Body::Content(self.add(content))),
            Shape::ValueBox(content) => (TcKind::ValueBox, Body::Content(self.add(content))),
            Shape::Value { kind, modifier, base, members } => {
                let base = base.map(|base| self.add(base));
                let member = |(name, desc, visibility): &ValueMemberDesc| Member {
                    name: Cow::Borrowed(*name),
                    ty: self.add(desc),
                    label_or_visibility: *visibility as i64,
                };
                let members = members.iter().map(member).collect();
                (kind, Body::Value(Box::new(Value { modifier, base, members })))
            }
        }
    }

    fn members(&mut self, members: &[MemberDesc]) -> Box<[Member]> {
        let member = |(name, desc): &MemberDesc| Member {
            name: Cow::Borrowed(*name),
            ty: self.add(desc),
            label_or_visibility: 0,
        };
        members.iter().map(member).collect()
    }
}
