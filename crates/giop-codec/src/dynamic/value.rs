//! [`Value`]: values of any type as a tree.

use bytes::Bytes;

use super::Decimal;
use crate::any::Any;
use crate::cdr::{Char, LongDouble, Seq, WChar, WString};
use crate::ior::Ior;
use crate::typecode::{Index, Node, Nodes, TcKind, TypeCode};

/// A value as a tree, without its type. [`Dynamic`] combines a value and its type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `void`, or the content of an empty any.
    Void,
    /// `boolean`.
    Boolean(bool),
    /// `octet`.
    Octet(u8),
    /// `short`.
    Short(i16),
    /// `unsigned short`.
    UShort(u16),
    /// `long`.
    Long(i32),
    /// `unsigned long`.
    ULong(u32),
    /// `long long`.
    LongLong(i64),
    /// `unsigned long long`.
    ULongLong(u64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `long double`.
    LongDouble(LongDouble),
    /// `char`.
    Char(Char),
    /// `wchar`.
    WChar(WChar),
    /// `string`.
    String(Box<str>),
    /// `wstring`.
    WString(WString),
    /// An enumerator, by its ordinal.
    Enum(u32),
    /// `fixed`.
    Fixed(Box<Decimal>),
    /// `any`.
    Any(Box<Any>),
    /// `CORBA::TypeCode`.
    TypeCode(Box<TypeCode>),
    /// A reference to an object of any interface. The nil reference is [`Ior::nil`].
    Object(Box<Ior>),
    /// The members of a struct or exception, in the order of the IDL.
    Struct(Box<[Value]>),
    /// A union.
    Union(Box<UnionValue>),
    /// The elements of a sequence or array.
    Items(Box<Items>),
    /// An instance of a value type or value box: a node of the [`Dynamic`]'s graph, or `None` for null.
    Node(Option<u32>),
    /// `CORBA::Principal`.
    Principal(Box<[u8]>),
}

// A tree consists of vectors of values, so a value must be small.
const _: () = assert!(size_of::<Value>() <= 24);

/// A union's discriminator and the member that it selects.
#[derive(Clone, Debug, PartialEq)]
pub struct UnionValue {
    /// The label, represented as by [`TypeCode::member_discriminator`].
    pub discriminator: i64,
    /// The selected member, or `None` if the discriminator selects none.
    pub value: Option<Value>,
}

/// The elements of a sequence or array. Most numbers and characters are contiguous or a view of a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Items {
    /// Elements of type `octet`.
    Octets(Bytes),
    /// Elements of type `char`.
    Chars(Seq<Char>),
    /// Elements of type `short`.
    Shorts(Seq<i16>),
    /// Elements of type `unsigned short`.
    UShorts(Seq<u16>),
    /// Elements of type `long`.
    Longs(Seq<i32>),
    /// Elements of type `unsigned long`.
    ULongs(Seq<u32>),
    /// Elements of type `long long`.
    LongLongs(Seq<i64>),
    /// Elements of type `unsigned long long`.
    ULongLongs(Seq<u64>),
    /// Elements of type `float`.
    Floats(Seq<f32>),
    /// Elements of type `double`.
    Doubles(Seq<f64>),
    /// Elements of any other type, or elements of the types above as separate values.
    Values(Vec<Value>),
}

macro_rules! contiguous_items {
    ($($variant:ident $kind:ident $element:ty;)*) => {
        impl Items {
            /// Returns the number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Items::$variant(items) => items.len(),)*
                    Items::Values(items) => items.len(),
                }
            }

            /// Returns the element at `index`.
            pub fn get(&self, index: usize) -> Option<Value> {
                Some(match self {
                    $(Items::$variant(items) => Value::$kind(*items.get(index)?),)*
                    Items::Values(items) => items.get(index)?.clone(),
                })
            }

            pub(super) fn element_kind(&self) -> Option<TcKind> {
                match self {
                    $(Items::$variant(_) => Some(TcKind::$kind),)*
                    Items::Values(_) => None,
                }
            }

            /// Returns an empty list. It is contiguous if the element type permits.
            pub(super) fn empty(nodes: &Nodes, element: Index) -> Items {
                match nodes.at(nodes.unaliased(element)) {
                    $(Node::Basic(TcKind::$kind) => Items::$variant(Default::default()),)*
                    _ => Items::Values(Vec::new()),
                }
            }

            /// Truncates contiguous elements, or appends zeros. First calls `charge` with the number of bytes
            /// to be appended. Returns `false`, and does nothing, if the elements are not contiguous.
            pub(super) fn resize_contiguous<E>(
                &mut self,
                length: usize,
                charge: impl FnOnce(usize) -> Result<(), E>,
            ) -> Result<bool, E> {
                match self {
                    $(Items::$variant(items) => {
                        charge(length.saturating_sub(items.len()).saturating_mul(size_of::<$element>()))?;
                        let mut resized = items.to_vec();
                        resized.resize(length, <$element>::default());
                        *items = resized.into();
                    })*
                    Items::Values(_) => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

contiguous_items! {
    Octets Octet u8; Chars Char Char; Shorts Short i16; UShorts UShort u16; Longs Long i32; ULongs ULong u32;
    LongLongs LongLong i64; ULongLongs ULongLong u64; Floats Float f32; Doubles Double f64;
}

impl Items {
    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts to a vector of separate values.
    pub fn into_values(self) -> Vec<Value> {
        match self {
            Items::Values(items) => items,
            items => (0..items.len()).filter_map(|index| items.get(index)).collect(),
        }
    }
}

/// A value and its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamic {
    /// The type, including aliases.
    pub code: TypeCode,
    /// The value.
    pub value: Value,
    /// The nodes to which [`Value::Node`]s refer.
    pub graph: ValueGraph,
}

/// The instances of value types in a [`Dynamic`], which may refer to each other in cycles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueGraph {
    /// The nodes. The number in a [`Value::Node`] is an index of this vector.
    pub nodes: Vec<ValueNode>,
}

/// An instance of a value type or value box.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueNode {
    /// The type of the value. It may be derived from the declared type of a reference to the value.
    pub code: TypeCode,
    /// Its members, beginning with those of its bases. A value box has a single member.
    pub members: Vec<Value>,
}
