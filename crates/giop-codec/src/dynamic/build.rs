//! Default values of types, as the standard defines them for a `DynAny` that is created from a type code.

use std::collections::HashSet;

use super::{Decimal, DynError, DynErrorKind, Dynamic, Items, Step, UnionValue, Value, ValueGraph};
use crate::any::Any;
use crate::cdr::{Char, LongDouble, WChar};
use crate::ior::Ior;
use crate::typecode::{Body, Index, LabelEncoding, Member, NamedType, Node, Nodes, TcKind, TypeCode, Union};

pub(super) const MAX_DEPTH: usize = crate::cdr::MAX_DEPTH as usize;

/// The approximate maximum of memory for a default value, and for elements that are added to a sequence.
pub(super) const MAX_BYTES: usize = 64 << 20;

impl Dynamic {
    /// Returns the default value of a type. It consists of zeros, empty strings and sequences, nil
    /// references, null value types, first enumerators, and first members of unions.
    ///
    /// # Errors
    /// [`Inconsistent`](DynErrorKind::Inconsistent) if the type is incomplete, has no default value or has
    /// over 64 levels. [`Limit`](DynErrorKind::Limit) if the value would take more than 64 MiB.
    pub fn default_of(code: &TypeCode) -> Result<Dynamic, DynError> {
        let value = default_value(&code.nodes, code.root)?;
        Ok(Dynamic { code: code.clone(), value, graph: ValueGraph::default() })
    }
}

pub(super) fn default_value(nodes: &Nodes, index: Index) -> Result<Value, DynError> {
    sized_default(nodes, index).map(|(value, _)| value)
}

/// Returns the default value of a type, and the approximate size in bytes of the value in memory.
pub(super) fn sized_default(nodes: &Nodes, index: Index) -> Result<(Value, usize), DynError> {
    let mut defaults = Defaults { nodes, remaining_bytes: MAX_BYTES };
    let value = defaults.value(index, 0)?;
    Ok((value, MAX_BYTES - defaults.remaining_bytes))
}

/// Returns a discriminator that selects the member with this index. For the default member, it is a value
/// that is not the label of another member.
pub(super) fn discriminator_for(nodes: &Nodes, union: &Union, member: usize) -> Option<i64> {
    if union.default != u32::try_from(member).ok() {
        return union.members.get(member).map(|member| member.label_or_visibility);
    }
    unlabelled_discriminator(nodes, union)
}

/// Returns a discriminator that is not the label of a member.
pub(super) fn unlabelled_discriminator(nodes: &Nodes, union: &Union) -> Option<i64> {
    let labels = LabelEncoding::of_node(nodes, union.discriminator)?;
    let default = union.default.map(|default| default as usize);
    let labelled = union.members.iter().enumerate().filter(|(at, _)| Some(*at) != default);
    let used: HashSet<i64> = labelled.map(|(_, member)| member.label_or_visibility).collect();
    // Every discriminator type has the value zero: try the values from zero upwards, then from -1 downwards.
    // The search ends because there are more candidates than labels, or the type has no further value.
    let mut candidates = (0..)
        .take_while(|label| labels.is_valid(*label))
        .chain((1..).map(|label: i64| -label).take_while(|label| labels.is_valid(*label)));
    candidates.find(|label| !used.contains(label))
}

/// Returns a label as a value of the discriminator's type, which is at `index`.
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

/// Returns a discriminator's value as a label. `None` if its type cannot be that of a discriminator.
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

/// Builds a default value.
struct Defaults<'a> {
    nodes: &'a Nodes,
    /// The number of bytes that the value may still take.
    remaining_bytes: usize,
}

impl Defaults<'_> {
    fn charge(&mut self, size: usize) -> Result<(), DynError> {
        let too_large = || DynErrorKind::Limit("the default value would take more than 64 MiB");
        self.remaining_bytes = self.remaining_bytes.checked_sub(size).ok_or_else(too_large)?;
        Ok(())
    }

    fn value(&mut self, index: Index, depth: usize) -> Result<Value, DynError> {
        if depth > MAX_DEPTH {
            return Err(DynErrorKind::Inconsistent("values of the type would be nested too deeply").into());
        }
        self.charge(size_of::<Value>())?;
        let nodes = self.nodes;
        Ok(match nodes.at(nodes.unaliased(index)) {
            Node::Basic(kind) => basic(*kind)?,
            Node::Text { wide: false, .. } => Value::String("".into()),
            Node::Text { wide: true, .. } => Value::WString("".into()),
            Node::Fixed { digits, scale } => {
                Value::Fixed(Box::new(Decimal { unscaled: 0, digits: *digits, scale: *scale }))
            }
            Node::Sequence { element, .. } => Value::Items(Box::new(Items::empty(nodes, *element))),
            Node::Array { element, length } => {
                Value::Items(Box::new(self.array(*element, *length as usize, depth)?))
            }
            Node::Placeholder(_) => return Err(DynErrorKind::Inconsistent("the type is incomplete").into()),
            Node::Named(NamedType { kind, body, .. }) => match body {
                Body::Members(members) => {
                    let values = members.iter().map(|member| self.member(member, depth));
                    Value::Struct(values.collect::<Result<_, _>>()?)
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
                    TcKind::Native | TcKind::LocalInterface => return Err(no_default()),
                    _ => Value::Object(Box::new(Ior::nil())),
                },
            },
        })
    }

    fn member(&mut self, member: &Member, depth: usize) -> Result<Value, DynError> {
        let value = self.value(member.ty, depth + 1);
        value.map_err(|error| error.inside(Step::Member((*member.name).into())))
    }

    fn array(&mut self, element: Index, length: usize, depth: usize) -> Result<Items, DynError> {
        let mut items = Items::empty(self.nodes, element);
        if items.resize_contiguous(length, |size| self.charge(size))? {
            return Ok(items);
        }
        let mut values = Vec::new();
        for index in 0..length {
            let value = self.value(element, depth + 1);
            values.push(value.map_err(|error| error.inside(Step::Index(index)))?);
        }
        Ok(Items::Values(values))
    }

    fn union(&mut self, union: &Union, depth: usize) -> Result<Value, DynError> {
        let discriminator = discriminator_for(self.nodes, union, 0)
            .ok_or(DynErrorKind::Inconsistent("no discriminator selects a member of the union"))?;
        let selected = union.selected(discriminator);
        let value = selected.map(|member| self.member(member, depth)).transpose()?;
        Ok(Value::Union(Box::new(UnionValue { discriminator, value })))
    }
}

fn no_default() -> DynError {
    DynErrorKind::Inconsistent("the type has no default value").into()
}

impl From<Any> for Value {
    fn from(any: Any) -> Value {
        Value::Any(Box::new(any))
    }
}

macro_rules! basic_values {
    ($($variant:ident $rust:ty;)*) => {
        $(
            impl From<$rust> for Value {
                fn from(value: $rust) -> Value {
                    Value::$variant(value)
                }
            }
        )*

        impl Value {
            /// Returns the kind of the value's type, if the kind fully describes the type.
            pub(super) fn basic_kind(&self) -> Option<TcKind> {
                Some(match self {
                    $(Value::$variant(_) => TcKind::$variant,)*
                    Value::Void => TcKind::Void,
                    Value::Any(_) => TcKind::Any,
                    Value::TypeCode(_) => TcKind::TypeCode,
                    Value::Principal(_) => TcKind::Principal,
                    _ => return None,
                })
            }
        }

        fn basic(kind: TcKind) -> Result<Value, DynError> {
            Ok(match kind {
                $(TcKind::$variant => Value::$variant(<$rust>::default()),)*
                TcKind::Null | TcKind::Void => Value::Void,
                TcKind::Any => Value::Any(Box::default()),
                TcKind::TypeCode => Value::TypeCode(Box::default()),
                _ => return Err(no_default()),
            })
        }
    };
}

basic_values! {
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
