//! Serialization of values, driven by their type codes.

use std::cell::{Cell, RefCell};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::super::build::{MAX_DEPTH, discriminator_value};
use super::super::check::value_members;
use super::super::{DynError, DynErrorKind, Dynamic, Items, Step, Value, ValueGraph};
use super::{code, key};
use crate::typecode::{Body, Index, Member, NamedType, Node, Nodes, TcKind, TypeCode};

/// The maximum number of bytes that names and types may take in a text, in addition to [`FREE_NAME_BYTES`]
/// for each. Without a limit, a few bytes of a value could cause many repetitions of long names.
const MAX_NAME_BYTES: usize = 16 << 20;
/// The number of bytes that each name or type adds to the permitted total.
const FREE_NAME_BYTES: usize = 32;

impl Serialize for Dynamic {
    /// Uses the mapping of docs/JSON.md for every format.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        NestedValue { value: self, depth: 0, output: &OutputState::default() }.serialize(to)
    }
}

/// The state of the whole output, including the content of anys.
pub(super) struct OutputState {
    name_bytes_left: Cell<usize>,
    /// The error in a form that serde cannot return, with the path to it from the current part.
    pub(super) fault: RefCell<Option<DynError>>,
}

impl Default for OutputState {
    fn default() -> OutputState {
        OutputState { name_bytes_left: Cell::new(MAX_NAME_BYTES), fault: RefCell::default() }
    }
}

/// A value, which may be the content of an any, and the depth at which it is nested.
pub(super) struct NestedValue<'a> {
    pub(super) value: &'a Dynamic,
    pub(super) depth: usize,
    pub(super) output: &'a OutputState,
}

impl Serialize for NestedValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Dynamic { code, value, graph } = self.value;
        let written = RefCell::new(vec![false; graph.nodes.len()]);
        let graph = GraphOutput { graph, written, output: self.output };
        TypedPart { nodes: &code.nodes, index: code.root, value, graph: &graph, depth: self.depth }
            .serialize(to)
    }
}

struct GraphOutput<'a> {
    graph: &'a ValueGraph,
    /// Whether each node was written.
    written: RefCell<Vec<bool>>,
    output: &'a OutputState,
}

impl GraphOutput<'_> {
    #[cold]
    fn fail<E: Error>(&self, error: impl Into<DynError>) -> E {
        let error = error.into();
        let text = E::custom(&error);
        self.output.fault.replace(Some(error));
        text
    }

    /// Makes the path of an error relative to the enclosing value.
    fn inside<T, E>(&self, result: Result<T, E>, step: impl FnOnce() -> Step) -> Result<T, E> {
        if result.is_err() {
            let fault = self.output.fault.take();
            self.output.fault.replace(fault.map(|fault| fault.inside(step())));
        }
        result
    }

    fn charge_name<E: Error>(&self, len: usize) -> Result<(), E> {
        let remaining = self.output.name_bytes_left.get().saturating_add(FREE_NAME_BYTES).checked_sub(len);
        let limit = DynErrorKind::Limit("names of over 32 bytes would take over 16 MiB");
        self.output.name_bytes_left.set(remaining.ok_or_else(|| self.fail(limit))?);
        Ok(())
    }
}

struct TypedPart<'a> {
    nodes: &'a Nodes,
    index: Index,
    value: &'a Value,
    graph: &'a GraphOutput<'a>,
    depth: usize,
}

/// Writes a number, or a string if it is NaN or an infinity, which JSON cannot represent.
fn number<S: Serializer>(to: S, value: f64) -> Result<S::Ok, S::Error> {
    match value {
        value if value.is_nan() => to.serialize_str("NaN"),
        f64::INFINITY => to.serialize_str("Infinity"),
        f64::NEG_INFINITY => to.serialize_str("-Infinity"),
        value => to.serialize_f64(value),
    }
}

impl TypedPart<'_> {
    fn part<'v>(&'v self, index: Index, value: &'v Value) -> TypedPart<'v> {
        TypedPart { nodes: self.nodes, index, value, graph: self.graph, depth: self.depth + 1 }
    }

    fn members<S: Serializer>(
        &self,
        to: S,
        named: &NamedType,
        members: &[Member],
        values: &[Value],
    ) -> Result<S::Ok, S::Error> {
        let is_exception = named.kind == TcKind::Except;
        if members.iter().any(|member| member.name.is_empty()) && !is_exception {
            let mut seq = to.serialize_seq(Some(members.len()))?;
            for (at, (member, value)) in members.iter().zip(values).enumerate() {
                let result = seq.serialize_element(&self.part(member.ty, value));
                self.graph.inside(result, || Step::Index(at))?;
            }
            return seq.end();
        }
        let mut map = to.serialize_map(Some(members.len() + usize::from(is_exception)))?;
        if is_exception {
            self.graph.charge_name(named.id.len())?;
            map.serialize_entry(key::EXCEPTION, &*named.id)?;
        }
        for (member, value) in members.iter().zip(values) {
            self.graph.charge_name(member.name.len())?;
            let result = map.serialize_entry(&*member.name, &self.part(member.ty, value));
            self.graph.inside(result, || Step::Member((*member.name).into()))?;
        }
        map.end()
    }

    fn node<S: Serializer>(&self, to: S, node: u32, declared: &TypeCode) -> Result<S::Ok, S::Error> {
        let nodes = &self.graph.graph.nodes;
        let no_node = || self.graph.fail(DynErrorKind::Bounds { index: node as usize, len: nodes.len() });
        let found = nodes.get(node as usize).ok_or_else(no_node)?;
        let was_written =
            self.graph.written.borrow_mut().get_mut(node as usize).map(|it| std::mem::replace(it, true));
        if was_written == Some(true) {
            let mut map = to.serialize_map(Some(1))?;
            map.serialize_entry(key::REF, &node)?;
            return map.end();
        }
        let members = value_members(&found.code).map_err(|error| self.graph.fail(error))?;
        let mut map = to.serialize_map(Some(2 + members.len()))?;
        map.serialize_entry(key::ID, &node)?;
        if found.code.equal(declared) {
            let code = found.code.unaliased();
            let id = code.id().unwrap_or_default();
            self.graph.charge_name(id.len())?;
            map.serialize_entry(key::TYPE, id)?;
        } else {
            self.graph.charge_name(code::text_size(&found.code.nodes))?;
            map.serialize_entry(key::TYPE, &found.code)?;
        }
        for ((code, name), value) in members.iter().zip(&found.members) {
            let (nodes, index, depth) = (&code.nodes, code.root, self.depth + 1);
            self.graph.charge_name(name.len())?;
            let result =
                map.serialize_entry(name, &TypedPart { nodes, index, value, graph: self.graph, depth });
            self.graph.inside(result, || Step::Member(name.clone()))?;
        }
        map.end()
    }

    fn items<S: Serializer>(&self, to: S, element: Index, items: &Items) -> Result<S::Ok, S::Error> {
        match items {
            Items::Octets(bytes) => to.serialize_str(&STANDARD.encode(bytes)),
            Items::Values(values) if self.nodes.at(self.nodes.unaliased(element)).kind() == TcKind::Octet => {
                let byte = |value: &Value| if let Value::Octet(byte) = value { Some(*byte) } else { None };
                let bytes: Vec<u8> = values.iter().filter_map(byte).collect();
                to.serialize_str(&STANDARD.encode(bytes))
            }
            Items::Values(values) => {
                let mut seq = to.serialize_seq(Some(values.len()))?;
                for (at, value) in values.iter().enumerate() {
                    let result = seq.serialize_element(&self.part(element, value));
                    self.graph.inside(result, || Step::Index(at))?;
                }
                seq.end()
            }
            items => {
                let mut seq = to.serialize_seq(Some(items.len()))?;
                for value in (0..items.len()).filter_map(|at| items.get(at)) {
                    seq.serialize_element(&self.part(element, &value))?;
                }
                seq.end()
            }
        }
    }
}

impl Serialize for TypedPart<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.depth > MAX_DEPTH {
            return Err(self.graph.fail(DynErrorKind::Limit("values are nested more than 64 levels deep")));
        }
        let root = self.nodes.unaliased(self.index);
        match (self.nodes.at(root), self.value) {
            (_, Value::Void | Value::Node(None)) => to.serialize_unit(),
            (_, Value::Boolean(value)) => to.serialize_bool(*value),
            (_, Value::Octet(value)) => to.serialize_u8(*value),
            (_, Value::Short(value)) => to.serialize_i16(*value),
            (_, Value::UShort(value)) => to.serialize_u16(*value),
            (_, Value::Long(value)) => to.serialize_i32(*value),
            (_, Value::ULong(value)) => to.serialize_u32(*value),
            (_, Value::LongLong(value)) => to.serialize_i64(*value),
            (_, Value::ULongLong(value)) => to.serialize_u64(*value),
            (_, Value::Float(value)) if value.is_finite() => to.serialize_f32(*value),
            (_, Value::Float(value)) => number(to, f64::from(*value)),
            (_, Value::Double(value)) => number(to, *value),
            (_, Value::LongDouble(value)) => to.collect_str(&format_args!("0x{:032x}", value.to_bits())),
            (_, Value::Char(value)) => to.serialize_char(char::from(*value)),
            (_, Value::WChar(value)) => match char::from_u32(value.0.into()) {
                Some(value) => to.serialize_char(value),
                None => to.serialize_u16(value.0),
            },
            (_, Value::String(text)) => to.serialize_str(text),
            (_, Value::WString(text)) => match text.as_str() {
                Ok(text) => to.serialize_str(text),
                Err(_) => to.collect_seq(text.units()),
            },
            (Node::Named(NamedType { body: Body::Enumerators(names), .. }), Value::Enum(ordinal)) => {
                match names.get(*ordinal as usize).filter(|name| !name.is_empty()) {
                    Some(name) => {
                        self.graph.charge_name(name.len())?;
                        to.serialize_str(name)
                    }
                    None => to.serialize_u32(*ordinal),
                }
            }
            (_, Value::Fixed(number)) => to.collect_str(number),
            (_, Value::Any(any)) => {
                let dynamic =
                    any.to_dynamic().map_err(|error| self.graph.fail(error.inside(Step::Content)))?;
                let mut map = to.serialize_map(Some(2))?;
                map.serialize_entry(key::TYPE, &dynamic.code)?;
                let (depth, output) = (self.depth + 1, self.graph.output);
                let result = map.serialize_entry(key::VALUE, &NestedValue { value: &dynamic, depth, output });
                self.graph.inside(result, || Step::Content)?;
                map.end()
            }
            (_, Value::TypeCode(value)) => value.serialize(to),
            (_, Value::Object(ior)) if ior.is_nil() => to.serialize_unit(),
            (_, Value::Object(ior)) => to.collect_str(&**ior),
            (Node::Named(named @ NamedType { body: Body::Members(members), .. }), Value::Struct(values)) => {
                self.members(to, named, members, values)
            }
            (Node::Named(NamedType { body: Body::Union(union), .. }), Value::Union(value)) => {
                let mut map = to.serialize_map(Some(2))?;
                let label = discriminator_value(self.nodes, union.discriminator, value.discriminator);
                map.serialize_entry(key::CASE, &self.part(union.discriminator, &label))?;
                if let (Some(member), Some(value)) = (union.selected(value.discriminator), &value.value) {
                    self.graph.charge_name(member.name.len())?;
                    let result = map.serialize_entry(&*member.name, &self.part(member.ty, value));
                    self.graph.inside(result, || Step::Member((*member.name).into()))?;
                }
                map.end()
            }
            (Node::Sequence { element, .. } | Node::Array { element, .. }, Value::Items(items)) => {
                self.items(to, *element, items)
            }
            (_, Value::Node(Some(node))) => {
                let declared = TypeCode { nodes: self.nodes.clone(), root };
                self.node(to, *node, &declared)
            }
            (_, Value::Principal(bytes)) => to.serialize_str(&STANDARD.encode(bytes)),
            _ => Err(S::Error::custom("the value does not match its type")),
        }
    }
}
