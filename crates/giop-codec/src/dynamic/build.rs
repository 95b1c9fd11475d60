//! Default values, as the standard defines them for a `DynAny` created from a type code.

use std::collections::HashSet;

use bytes::Bytes;

use super::{Decimal, DynError, DynErrorKind, Dynamic, Items, Step, UnionValue, Value, ValueGraph};
use crate::any::Any;
use crate::cdr::{Char, LongDouble, Seq, WChar};
use crate::ior::Ior;
use crate::typecode::{Body, Index, Labels, NamedType, Node, Nodes, TcKind, TypeCode, Union};

/// The maximum nesting of structs, unions, sequences, arrays and anys.
pub(super) const MAX_DEPTH: usize = crate::cdr::MAX_DEPTH as usize;

/// The maximum memory of a default value in bytes, counted roughly. Also the maximum by which a sequence
/// grows at a time.
pub(super) const MAX_SIZE: usize = 64 << 20;

impl Dynamic {
    /// Returns the default value of a type: zeros, empty texts and sequences, nil references, null values,
    /// the first enumerator, the first member of a union.
    ///
    /// # Errors
    /// [`Inconsistent`](DynErrorKind::Inconsistent): the type has no values outside of its process, or
    /// contains itself without end. [`Limit`](DynErrorKind::Limit): its arrays would take more than 64 MiB.
    pub fn default_of(code: &TypeCode) -> Result<Dynamic, DynError> {
        let value = default_value(&code.nodes, code.root)?;
        Ok(Dynamic { code: code.clone(), value, graph: ValueGraph::default() })
    }
}

/// Returns the default value of a type.
pub(super) fn default_value(nodes: &Nodes, index: Index) -> Result<Value, DynError> {
    sized_default(nodes, index).map(|(value, _)| value)
}

/// Returns the default value of a type, and its memory in bytes, counted roughly.
pub(super) fn sized_default(nodes: &Nodes, index: Index) -> Result<(Value, usize), DynError> {
    let mut defaults = Defaults { nodes, left: MAX_SIZE };
    let value = defaults.value(index, 0)?;
    Ok((value, MAX_SIZE - defaults.left))
}

/// Returns a discriminator that selects the member: its label, or, for the default member, a value that is
/// not the label of another member.
pub(super) fn discriminator_for(nodes: &Nodes, union: &Union, member: usize) -> Option<i64> {
    if union.default != u32::try_from(member).ok() {
        return union.members.get(member).map(|member| member.label);
    }
    unlabelled(nodes, union)
}

/// Returns a discriminator that is not the label of a member.
pub(super) fn unlabelled(nodes: &Nodes, union: &Union) -> Option<i64> {
    let of = Labels::of_node(nodes, union.discriminator)?;
    let default = union.default.map(|default| default as usize);
    let labelled = union.members.iter().enumerate().filter(|(at, _)| Some(*at) != default);
    let labels: HashSet<i64> = labelled.map(|(_, member)| member.label).collect();
    let free = |label: &i64| !labels.contains(label);
    // Values nearest to zero first: zero is a discriminator of each type. The search ends, because there are
    // more candidates than labels, or the type has no more values.
    let mut candidates = (0..)
        .take_while(|label| of.has(*label))
        .chain((1..).map(|label: i64| -label).take_while(|label| of.has(*label)));
    candidates.find(free)
}

/// Returns a label as a value of the discriminator's type.
pub(super) fn discriminator_value(nodes: &Nodes, index: Index, label: i64) -> Value {
    match nodes.at(nodes.unaliased(index)) {
        Node::Basic(TcKind::Boolean) => Value::Boolean(label != 0),
        Node::Basic(TcKind::Octet) => Value::Octet(label as u8),
        Node::Basic(TcKind::Char) => Value::Char(Char(label as u8)),
        Node::Basic(TcKind::Short) => Value::Short(label as i16),
        Node::Basic(TcKind::UShort) => Value::UShort(label as u16),
        Node::Basic(TcKind::WChar) => Value::WChar(WChar(label as u16)),
        Node::Basic(TcKind::Long) => Value::Long(label as i32),
        Node::Basic(TcKind::ULong) => Value::ULong(label as u32),
        Node::Basic(TcKind::ULongLong) => Value::ULongLong(label.cast_unsigned()),
        Node::Basic(_) => Value::LongLong(label),
        _ => Value::Enum(label as u32),
    }
}

/// Returns the label for a value of the discriminator.
pub(super) fn label_of(value: &Value) -> Option<i64> {
    Some(match value {
        Value::Boolean(value) => i64::from(*value),
        Value::Octet(value) => (*value).into(),
        Value::Char(value) => value.0.into(),
        Value::WChar(value) => value.0.into(),
        Value::Short(value) => (*value).into(),
        Value::UShort(value) => (*value).into(),
        Value::Long(value) => (*value).into(),
        Value::ULong(value) | Value::Enum(value) => (*value).into(),
        Value::LongLong(value) => *value,
        Value::ULongLong(value) => value.cast_signed(),
        _ => return None,
    })
}

/// Returns an empty list of elements, in contiguous form if the element type allows it.
pub(super) fn no_items(nodes: &Nodes, element: Index) -> Items {
    match nodes.at(nodes.unaliased(element)) {
        Node::Basic(TcKind::Octet) => Items::Octets(Bytes::new()),
        Node::Basic(TcKind::Char) => Items::Chars(Seq::default()),
        Node::Basic(TcKind::Short) => Items::Shorts(Seq::default()),
        Node::Basic(TcKind::UShort) => Items::UShorts(Seq::default()),
        Node::Basic(TcKind::Long) => Items::Longs(Seq::default()),
        Node::Basic(TcKind::ULong) => Items::ULongs(Seq::default()),
        Node::Basic(TcKind::LongLong) => Items::LongLongs(Seq::default()),
        Node::Basic(TcKind::ULongLong) => Items::ULongLongs(Seq::default()),
        Node::Basic(TcKind::Float) => Items::Floats(Seq::default()),
        Node::Basic(TcKind::Double) => Items::Doubles(Seq::default()),
        _ => Items::Values(Vec::new()),
    }
}

struct Defaults<'a> {
    nodes: &'a Nodes,
    /// Bytes that may still be used.
    left: usize,
}

impl Defaults<'_> {
    fn charge(&mut self, size: usize) -> Result<(), DynError> {
        let too_much = || DynErrorKind::Limit("a value to begin with takes over 64 MiB");
        self.left = self.left.checked_sub(size).ok_or_else(too_much)?;
        Ok(())
    }

    fn value(&mut self, index: Index, depth: usize) -> Result<Value, DynError> {
        if depth > MAX_DEPTH {
            return Err(
                DynErrorKind::Inconsistent("a value of the type contains itself without an end").into()
            );
        }
        self.charge(size_of::<Value>())?;
        let nodes = self.nodes;
        let node = nodes.at(nodes.unaliased(index));
        Ok(match node {
            Node::Basic(kind) => basic(*kind)?,
            Node::Text { wide: false, .. } => Value::String("".into()),
            Node::Text { wide: true, .. } => Value::WString("".into()),
            Node::Fixed { digits, scale } => {
                Value::Fixed(Box::new(Decimal { unscaled: 0, digits: *digits, scale: *scale }))
            }
            Node::Sequence { element, .. } => Value::Items(Box::new(no_items(nodes, *element))),
            Node::Array { element, length } => {
                Value::Items(Box::new(self.array(*element, *length as usize, depth)?))
            }
            Node::Recursive(_) => return Err(DynErrorKind::Inconsistent("the type is not whole").into()),
            Node::Named(NamedType { kind, body, .. }) => match body {
                Body::Members(members) => {
                    let member = |member: &crate::typecode::Member| {
                        let value = self.value(member.kind, depth + 1);
                        value.map_err(|error| error.inside(Step::Member((*member.name).into())))
                    };
                    Value::Struct(members.iter().map(member).collect::<Result<_, _>>()?)
                }
                Body::Union(union) => self.union(union, depth)?,
                Body::Enumerators(names) if names.is_empty() => {
                    return Err(
                        DynErrorKind::Inconsistent("an enum without enumerators has no values").into()
                    );
                }
                Body::Enumerators(_) => Value::Enum(0),
                Body::Value(_) | Body::Content(_) => Value::Node(None),
                Body::Opaque => match kind {
                    TcKind::AbstractInterface => Value::Node(None),
                    TcKind::Native | TcKind::LocalInterface => return Err(unmarshalled()),
                    _ => Value::Object(Box::new(Ior::nil())),
                },
            },
        })
    }

    fn array(&mut self, element: Index, length: usize, depth: usize) -> Result<Items, DynError> {
        macro_rules! zeros {
            ($kind:ident, $zero:expr) => {{
                self.charge(length.saturating_mul(size_of_val(&$zero)))?;
                Items::$kind(vec![$zero; length].into())
            }};
        }
        Ok(match no_items(self.nodes, element) {
            Items::Octets(_) => zeros!(Octets, 0_u8),
            Items::Chars(_) => zeros!(Chars, Char(0)),
            Items::Shorts(_) => zeros!(Shorts, 0_i16),
            Items::UShorts(_) => zeros!(UShorts, 0_u16),
            Items::Longs(_) => zeros!(Longs, 0_i32),
            Items::ULongs(_) => zeros!(ULongs, 0_u32),
            Items::LongLongs(_) => zeros!(LongLongs, 0_i64),
            Items::ULongLongs(_) => zeros!(ULongLongs, 0_u64),
            Items::Floats(_) => zeros!(Floats, 0_f32),
            Items::Doubles(_) => zeros!(Doubles, 0_f64),
            Items::Values(_) => {
                let mut items = Vec::new();
                for at in 0..length {
                    let item = self.value(element, depth + 1);
                    items.push(item.map_err(|error| error.inside(Step::Index(at)))?);
                }
                Items::Values(items)
            }
        })
    }

    fn union(&mut self, union: &Union, depth: usize) -> Result<Value, DynError> {
        let discriminator = discriminator_for(self.nodes, union, 0);
        let discriminator = discriminator
            .ok_or(DynErrorKind::Inconsistent("no discriminator selects a member of the union"))?;
        let value = match union.selected(discriminator) {
            Some(member) => {
                let value = self.value(member.kind, depth + 1);
                Some(value.map_err(|error| error.inside(Step::Member((*member.name).into())))?)
            }
            None => None,
        };
        Ok(Value::Union(Box::new(UnionValue { discriminator, value })))
    }
}

fn basic(kind: TcKind) -> Result<Value, DynError> {
    Ok(match kind {
        TcKind::Null | TcKind::Void => Value::Void,
        TcKind::Boolean => Value::Boolean(false),
        TcKind::Octet => Value::Octet(0),
        TcKind::Char => Value::Char(Char(0)),
        TcKind::WChar => Value::WChar(WChar(0)),
        TcKind::Short => Value::Short(0),
        TcKind::UShort => Value::UShort(0),
        TcKind::Long => Value::Long(0),
        TcKind::ULong => Value::ULong(0),
        TcKind::LongLong => Value::LongLong(0),
        TcKind::ULongLong => Value::ULongLong(0),
        TcKind::Float => Value::Float(0.0),
        TcKind::Double => Value::Double(0.0),
        TcKind::LongDouble => Value::LongDouble(LongDouble::default()),
        TcKind::Any => Value::Any(Box::default()),
        TcKind::TypeCode => Value::TypeCode(Box::default()),
        _ => return Err(unmarshalled()),
    })
}

fn unmarshalled() -> DynError {
    DynErrorKind::Inconsistent("the type has no values outside of its process").into()
}

impl From<Any> for Value {
    fn from(any: Any) -> Value {
        Value::Any(Box::new(any))
    }
}

macro_rules! from {
    ($($variant:ident $rust:ty;)*) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Value {
                Value::$variant(value)
            }
        }
    )*};
}

from! {
    Boolean bool; Octet u8; Short i16; UShort u16; Long i32; ULong u32; LongLong i64; ULongLong u64; Float f32; Double f64;
    LongDouble LongDouble; Char Char; WChar WChar;
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text.into())
    }
}
