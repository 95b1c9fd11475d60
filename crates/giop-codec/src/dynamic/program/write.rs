//! Encoding of trees of values.

use super::Program;
use super::graph_write::GraphState;
use super::read::{inside_element, inside_member};
use crate::cdr::{CdrEncode, Encoder, check_bound};
use crate::dynamic::check::NO_DISCRIMINATOR;
use crate::dynamic::{Decimal, DynError, DynErrorKind, Dynamic, Items, UnionValue, Value, ValueGraph};
use crate::program::{Index, LabelEncoding, put_numbers};
use crate::typecode::{Body, Member, NamedType, Node, Nodes, TcKind, TypeCode, Union};
use crate::value::write;
use crate::{EncodeError, EncodeErrorKind};

const MAX_DEPTH: usize = crate::cdr::MAX_DEPTH as usize;

pub(super) const WRONG_MEMBER_COUNT: &str = "the number of members is not that of the type";

pub(super) type WriteResult<T = ()> = Result<T, DynError>;

impl Program {
    /// Writes a tree, which must match this type. Long runs of numbers are shared if byte order permits.
    ///
    /// # Errors
    /// [`Encode`](DynErrorKind::Encode) if a part has no encoding, or another kind of error if the tree does
    /// not match the type. The error has the path to the fault. After an error, the encoder contains an
    /// incomplete value and must be rewound.
    pub fn encode(&self, value: &Dynamic, e: &mut Encoder) -> Result<(), DynError> {
        let mut writer = Writer { depth: 0, graph: &value.graph, graph_state: None };
        let result = writer.value(e, self.nodes(), self.code.root, &value.value);
        if result.is_err() && writer.graph_state.is_some() {
            // Later values must not refer to parts of an incomplete value.
            write::forget_values(e);
        }
        result
    }
}

pub(super) struct Writer<'v> {
    depth: usize,
    pub(super) graph: &'v ValueGraph,
    pub(super) graph_state: Option<Box<GraphState<'v>>>,
}

impl Writer<'_> {
    pub(super) fn value(
        &mut self,
        e: &mut Encoder,
        nodes: &Nodes,
        index: Index,
        value: &Value,
    ) -> WriteResult {
        let index = nodes.steps().unaliased(index);
        match (nodes.at(index), value) {
            (Node::Basic(kind), value) => {
                if !put_basic(e, *kind, value)? {
                    return Err(mismatch(nodes, index, value));
                }
            }
            (Node::Text { wide: false, bound }, Value::String(text)) => {
                if *bound != 0 {
                    check_bound(&**text, *bound as usize)?;
                }
                e.put_str(text)?;
            }
            (Node::Text { wide: true, bound }, Value::WString(text)) => {
                if *bound != 0 {
                    check_bound(text, *bound as usize)?;
                }
                e.put_wstr(text)?;
            }
            (Node::Fixed { digits, scale }, Value::Fixed(number)) => put_decimal(e, *digits, *scale, number)?,
            (Node::Sequence { element, bound }, Value::Items(items)) => {
                put_count(e, items.len(), *bound)?;
                self.items(e, nodes, *element, items)?;
            }
            (Node::Array { element, length }, Value::Items(items)) => {
                let (found, wanted) = (items.len(), *length as usize);
                if found != wanted {
                    return Err(DynErrorKind::Length { wanted, found }.into());
                }
                self.items(e, nodes, *element, items)?;
            }
            (Node::Named(named), value) => return self.named(e, nodes, index, named, value),
            (_, value) => return Err(mismatch(nodes, index, value)),
        }
        Ok(())
    }

    fn named(
        &mut self,
        e: &mut Encoder,
        nodes: &Nodes,
        index: Index,
        named: &NamedType,
        value: &Value,
    ) -> WriteResult {
        match (&named.body, named.kind, value) {
            (Body::Members(members), kind, Value::Struct(values)) => {
                if kind == TcKind::Except {
                    e.put_unconverted_str(&named.id)?;
                }
                self.nested(|writer| writer.members(e, nodes, members, values))
            }
            (Body::Enumerators(names), _, Value::Enum(ordinal)) => {
                if *ordinal as usize >= names.len() {
                    return Err(
                        DynErrorKind::InvalidValue("the type has no enumerator with this ordinal").into()
                    );
                }
                e.put_u32(*ordinal);
                Ok(())
            }
            (Body::Union(union), _, Value::Union(value)) => self.union(e, nodes, union, value),
            (_, TcKind::ObjRef | TcKind::Component | TcKind::Home, Value::Object(reference)) => {
                Ok(reference.encode(e)?)
            }
            (_, TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface, _) => {
                self.write_graph(e, nodes, index, value)
            }
            (_, TcKind::LocalInterface | TcKind::Native, _) => {
                Err(EncodeError::new(EncodeErrorKind::LocalObject).into())
            }
            _ => Err(mismatch(nodes, index, value)),
        }
    }

    fn members(
        &mut self,
        e: &mut Encoder,
        nodes: &Nodes,
        members: &[Member],
        values: &[Value],
    ) -> WriteResult {
        if values.len() != members.len() {
            return Err(DynErrorKind::InvalidValue(WRONG_MEMBER_COUNT).into());
        }
        for (member, value) in members.iter().zip(values) {
            self.value(e, nodes, member.ty, value).map_err(|error| inside_member(error, member))?;
        }
        Ok(())
    }

    fn union(&mut self, e: &mut Encoder, nodes: &Nodes, union: &Union, value: &UnionValue) -> WriteResult {
        let labels = LabelEncoding::of_node(nodes, union.discriminator);
        let label = value.discriminator;
        let labels = labels.filter(|labels| labels.is_valid(label));
        let labels = labels.ok_or(DynErrorKind::InvalidValue(NO_DISCRIMINATOR))?;
        labels.write(e, label)?;
        match (union.selected(label), &value.value) {
            (Some(member), Some(value)) => {
                let result = self.nested(|writer| writer.value(e, nodes, member.ty, value));
                result.map_err(|error| inside_member(error, member))
            }
            (None, None) => Ok(()),
            (Some(member), None) => Err(DynErrorKind::MissingMember(Box::from(&*member.name)).into()),
            (None, Some(_)) => Err(EncodeError::new(EncodeErrorKind::IllegalDiscriminator).into()),
        }
    }

    fn items(&mut self, e: &mut Encoder, nodes: &Nodes, element: Index, items: &Items) -> WriteResult {
        let element = nodes.steps().unaliased(element);
        if let Items::Values(values) = items {
            return self.nested(|writer| {
                for (index, value) in values.iter().enumerate() {
                    writer.value(e, nodes, element, value).map_err(|error| inside_element(error, index))?;
                }
                Ok(())
            });
        }
        let (log2_size, bytes) = match (nodes.at(element).kind(), items) {
            (TcKind::Octet, Items::Octets(items)) => (0, items),
            (TcKind::Char, Items::Chars(items)) => (0, items.bytes_ref()),
            (TcKind::Short, Items::Shorts(items)) => (1, items.bytes_ref()),
            (TcKind::UShort, Items::UShorts(items)) => (1, items.bytes_ref()),
            (TcKind::Long, Items::Longs(items)) => (2, items.bytes_ref()),
            (TcKind::ULong, Items::ULongs(items)) => (2, items.bytes_ref()),
            (TcKind::LongLong, Items::LongLongs(items)) => (3, items.bytes_ref()),
            (TcKind::ULongLong, Items::ULongLongs(items)) => (3, items.bytes_ref()),
            (TcKind::Float, Items::Floats(items)) => (2, items.bytes_ref()),
            (TcKind::Double, Items::Doubles(items)) => (3, items.bytes_ref()),
            (_, items) => {
                return match items.get(0) {
                    Some(value) => Err(inside_element(mismatch(nodes, element, &value), 0)),
                    None => Ok(()),
                };
            }
        };
        put_numbers(e, log2_size, bytes);
        Ok(())
    }

    pub(super) fn nested(&mut self, f: impl FnOnce(&mut Self) -> WriteResult) -> WriteResult {
        if self.depth >= MAX_DEPTH {
            return Err(EncodeError::new(EncodeErrorKind::DepthLimit).into());
        }
        self.depth += 1;
        f(self)?;
        self.depth -= 1;
        Ok(())
    }
}

/// Writes the count of a sequence. A bound of 0 means unbounded.
pub(super) fn put_count(e: &mut Encoder, count: usize, bound: u32) -> WriteResult {
    if bound != 0 && count > bound as usize {
        return Err(DynErrorKind::Bounds { index: count, len: bound as usize }.into());
    }
    Ok(e.put_len(count)?)
}

/// Writes a value of a basic type. Returns `false`, and writes nothing, if the value is of another kind.
fn put_basic(e: &mut Encoder, kind: TcKind, value: &Value) -> WriteResult<bool> {
    match (kind, value) {
        (TcKind::Boolean, Value::Boolean(value)) => put_number(e, 0, (*value).into()),
        (TcKind::Char, Value::Char(value)) => put_number(e, 0, value.0.into()),
        (TcKind::Octet, Value::Octet(value)) => put_number(e, 0, (*value).into()),
        (TcKind::Short, Value::Short(value)) => put_number(e, 1, value.cast_unsigned().into()),
        (TcKind::UShort, Value::UShort(value)) => put_number(e, 1, (*value).into()),
        (TcKind::Long, Value::Long(value)) => put_number(e, 2, value.cast_unsigned().into()),
        (TcKind::ULong, Value::ULong(value)) => put_number(e, 2, (*value).into()),
        (TcKind::LongLong, Value::LongLong(value)) => put_number(e, 3, value.cast_unsigned()),
        (TcKind::ULongLong, Value::ULongLong(value)) => put_number(e, 3, *value),
        (TcKind::Float, Value::Float(value)) => put_number(e, 2, value.to_bits().into()),
        (TcKind::Double, Value::Double(value)) => put_number(e, 3, value.to_bits()),
        (TcKind::LongDouble, Value::LongDouble(value)) => e.put_fixed(value),
        (TcKind::WChar, Value::WChar(value)) => e.put_wchar(*value)?,
        (TcKind::Any, Value::Any(value)) => value.encode(e)?,
        (TcKind::TypeCode, Value::TypeCode(value)) => value.encode(e)?,
        (TcKind::Principal, Value::Principal(bytes)) => {
            e.put_len(bytes.len())?;
            e.put_raw(bytes);
        }
        (TcKind::Null | TcKind::Void, Value::Void) => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Writes a number of `1 << log2_size` bytes. Not inlined, to keep the code small.
#[inline(never)]
fn put_number(e: &mut Encoder, log2_size: u8, number: u64) {
    match log2_size {
        0 => e.put_u8(number as u8),
        1 => e.put_u16(number as u16),
        2 => e.put_u32(number as u32),
        _ => e.put_u64(number),
    }
}

fn put_decimal(e: &mut Encoder, digits: u16, scale: i16, number: &Decimal) -> WriteResult {
    let limit = 10_u128.checked_pow(digits.into()).unwrap_or(u128::MAX);
    let mut remaining = number.unscaled.unsigned_abs();
    if number.scale != scale || remaining >= limit {
        return Err(DynErrorKind::InvalidValue(
            "the number has too many digits or another scale than its type",
        )
        .into());
    }
    let mut bytes = [0; 16];
    let mut low = if number.unscaled < 0 { 0xD } else { 0xC };
    for byte in bytes.iter_mut().rev() {
        *byte = low | ((remaining % 10) as u8) << 4;
        low = (remaining / 10 % 10) as u8;
        remaining /= 100;
    }
    let width = usize::from(digits) / 2 + 1;
    e.put_raw(bytes.get(16_usize.saturating_sub(width)..).unwrap_or_default());
    Ok(())
}

#[cold]
pub(super) fn mismatch(nodes: &Nodes, index: Index, value: &Value) -> DynError {
    let wanted = TypeCode::new(nodes.clone(), index);
    DynErrorKind::TypeMismatch { wanted, found: value.kind_name().into() }.into()
}
