//! [`Value`]: values as a tree, whatever their types.

use bytes::Bytes;

use super::Decimal;
use crate::any::Any;
use crate::cdr::{Char, LongDouble, Seq, WChar, WString};
use crate::ior::Ior;
use crate::typecode::TypeCode;

/// A value as a tree. It does not know its type: [`Dynamic`] is the two together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `void`, and the `null` that an empty any holds.
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
    /// A reference to an object of whatever interface; [`Ior::nil`] where there is none.
    Object(Box<Ior>),
    /// The members of a struct or exception, in order.
    Struct(Box<[Value]>),
    /// A union.
    Union(Box<UnionValue>),
    /// The elements of a sequence or array.
    Items(Box<Items>),
    /// A value of a value type, or what is in a value box: a node of the [`Dynamic`]'s graph, or null.
    Node(Option<u32>),
    /// `CORBA::Principal`.
    Principal(Box<[u8]>),
}

// Trees are vectors of them.
const _: () = assert!(size_of::<Value>() <= 24);

/// A union's discriminator, and the member that it selects.
#[derive(Clone, Debug, PartialEq)]
pub struct UnionValue {
    /// As [`TypeCode::member_discriminator`] has labels.
    pub discriminator: i64,
    /// `None` where the discriminator selects no member.
    pub value: Option<Value>,
}

/// The elements of a sequence or array. Numbers lie side by side, and may be a view of what was received.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Items {
    /// Of octets.
    Octets(Bytes),
    /// Of chars.
    Chars(Seq<Char>),
    /// Of shorts.
    Shorts(Seq<i16>),
    /// Of unsigned shorts.
    UShorts(Seq<u16>),
    /// Of longs.
    Longs(Seq<i32>),
    /// Of unsigned longs.
    ULongs(Seq<u32>),
    /// Of long longs.
    LongLongs(Seq<i64>),
    /// Of unsigned long longs.
    ULongLongs(Seq<u64>),
    /// Of floats.
    Floats(Seq<f32>),
    /// Of doubles.
    Doubles(Seq<f64>),
    /// Of all else.
    Values(Vec<Value>),
}

impl Items {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Items::Octets(items) => items.len(),
            Items::Chars(items) => items.len(),
            Items::Shorts(items) => items.len(),
            Items::UShorts(items) => items.len(),
            Items::Longs(items) => items.len(),
            Items::ULongs(items) => items.len(),
            Items::LongLongs(items) => items.len(),
            Items::ULongLongs(items) => items.len(),
            Items::Floats(items) => items.len(),
            Items::Doubles(items) => items.len(),
            Items::Values(items) => items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn get(&self, index: usize) -> Option<Value> {
        Some(match self {
            Items::Octets(items) => Value::Octet(*items.get(index)?),
            Items::Chars(items) => Value::Char(*items.get(index)?),
            Items::Shorts(items) => Value::Short(*items.get(index)?),
            Items::UShorts(items) => Value::UShort(*items.get(index)?),
            Items::Longs(items) => Value::Long(*items.get(index)?),
            Items::ULongs(items) => Value::ULong(*items.get(index)?),
            Items::LongLongs(items) => Value::LongLong(*items.get(index)?),
            Items::ULongLongs(items) => Value::ULongLong(*items.get(index)?),
            Items::Floats(items) => Value::Float(*items.get(index)?),
            Items::Doubles(items) => Value::Double(*items.get(index)?),
            Items::Values(items) => items.get(index)?.clone(),
        })
    }

    /// All of them, each by itself.
    pub fn into_values(self) -> Vec<Value> {
        match self {
            Items::Values(items) => items,
            items => (0..items.len()).filter_map(|index| items.get(index)).collect(),
        }
    }
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamic {
    /// The type, aliases included.
    pub code: TypeCode,
    /// The value.
    pub value: Value,
    /// What its [`Value::Node`]s are.
    pub graph: ValueGraph,
}

/// The values of value types in a [`Dynamic`], which may name each other in circles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueGraph {
    /// By the numbers of [`Value::Node`].
    pub nodes: Vec<ValueNode>,
}

/// A value of a value type, or a value box.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueNode {
    /// What it is of, which may be derived from what its place says.
    pub code: TypeCode,
    /// Its state, that of its bases first; one value of a box.
    pub members: Vec<Value>,
}
