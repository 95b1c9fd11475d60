//! Serialization of values.

use std::cell::{Cell, RefCell};

use base64::Engine;
use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::super::build::{MAX_DEPTH, discriminator_value};
use super::super::check::state;
use super::super::{DynError, DynErrorKind, Dynamic, Items, Step, Value, ValueGraph};
use super::{code, key};
use crate::typecode::{Body, Index, NamedType, Node, Nodes, TcKind, TypeCode};

/// The maximum number of bytes that names and types take in a text, plus `NAME` bytes for each name. Without
/// a limit, a few bytes of a value could repeat long names often.
const MAX_NAMES: usize = 16 << 20;
const NAME: usize = 32;

impl Serialize for Dynamic {
    /// Uses the mapping of docs/JSON.md for every format.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        NestedValue { value: self, depth: 0, all: &OutputState::default() }.serialize(to)
    }
}

/// The state of the whole output, including the content of anys.
pub(super) struct OutputState {
    /// Bytes that are left for names.
    names: Cell<usize>,
    /// A fault that is not an error of the format, with the path to it from the current part.
    pub(super) fault: RefCell<Option<DynError>>,
}

impl Default for OutputState {
    fn default() -> OutputState {
        OutputState { names: Cell::new(MAX_NAMES), fault: RefCell::default() }
    }
}

/// A value, possibly the content of an any, at a given depth.
pub(super) struct NestedValue<'a> {
    pub(super) value: &'a Dynamic,
    pub(super) depth: usize,
    pub(super) all: &'a OutputState,
}

impl Serialize for NestedValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Dynamic { code, value, graph } = self.value;
        let written = RefCell::new(vec![false; graph.nodes.len()]);
        let graph = GraphOutput { graph, written, all: self.all };
        TypedPart { nodes: &code.nodes, index: code.root, value, graph: &graph, depth: self.depth }
            .serialize(to)
    }
}

/// The graph of a value, and the nodes already written.
struct GraphOutput<'a> {
    graph: &'a ValueGraph,
    written: RefCell<Vec<bool>>,
    all: &'a OutputState,
}

impl GraphOutput<'_> {
    #[cold]
    fn fail<E: Error>(&self, error: impl Into<DynError>) -> E {
        let error = error.into();
        let text = E::custom(&error);
        self.all.fault.replace(Some(error));
        text
    }

    /// Makes the path of an error relative to the enclosing value.
    fn inside<T, E>(&self, done: Result<T, E>, step: impl FnOnce() -> Step) -> Result<T, E> {
        if done.is_err() {
            let fault = self.all.fault.take();
            self.all.fault.replace(fault.map(|fault| fault.inside(step())));
        }
        done
    }

    /// Charges a name of `len` bytes.
    fn name<E: Error>(&self, len: usize) -> Result<(), E> {
        let left = self.all.names.get().saturating_add(NAME).checked_sub(len);
        let limit = DynErrorKind::Limit("names in the text take over 16 MiB, and over 32 octets each");
        self.all.names.set(left.ok_or_else(|| self.fail(limit))?);
        Ok(())
    }
}

/// A part of a value with its type.
struct TypedPart<'a> {
    nodes: &'a Nodes,
    index: Index,
    value: &'a Value,
    graph: &'a GraphOutput<'a>,
    depth: usize,
}

/// Writes a number, or a text for a number that JSON cannot represent.
fn number<S: Serializer>(to: S, value: f64) -> Result<S::Ok, S::Error> {
    match value {
        value if value.is_nan() => to.serialize_str("NaN"),
        f64::INFINITY => to.serialize_str("Infinity"),
        f64::NEG_INFINITY => to.serialize_str("-Infinity"),
        value => to.serialize_f64(value),
    }
}

impl<'a> TypedPart<'a> {
    fn of(&self, index: Index, value: &'a Value) -> TypedPart<'a> {
        TypedPart { nodes: self.nodes, index, value, graph: self.graph, depth: self.depth + 1 }
    }

    fn members<S: Serializer>(
        &self,
        to: S,
        named: &NamedType,
        members: &[crate::typecode::Member],
        values: &'a [Value],
    ) -> Result<S::Ok, S::Error> {
        let exception = named.kind == TcKind::Except;
        if members.iter().any(|member| member.name.is_empty()) && !exception {
            let mut seq = to.serialize_seq(Some(members.len()))?;
            for (at, (member, value)) in members.iter().zip(values).enumerate() {
                let done = seq.serialize_element(&self.of(member.kind, value));
                self.graph.inside(done, || Step::Index(at))?;
            }
            return seq.end();
        }
        let mut map = to.serialize_map(Some(members.len() + usize::from(exception)))?;
        if exception {
            self.graph.name(named.id.len())?;
            map.serialize_entry(key::EXCEPTION, &*named.id)?;
        }
        for (member, value) in members.iter().zip(values) {
            self.graph.name(member.name.len())?;
            let done = map.serialize_entry(&*member.name, &self.of(member.kind, value));
            self.graph.inside(done, || Step::Member((*member.name).into()))?;
        }
        map.end()
    }

    fn node<S: Serializer>(&self, to: S, node: u32, place: &TypeCode) -> Result<S::Ok, S::Error> {
        let nodes = &self.graph.graph.nodes;
        let none = || self.graph.fail(DynErrorKind::Bounds { index: node as usize, len: nodes.len() });
        let found = nodes.get(node as usize).ok_or_else(none)?;
        let again =
            self.graph.written.borrow_mut().get_mut(node as usize).map(|it| std::mem::replace(it, true));
        if again == Some(true) {
            let mut map = to.serialize_map(Some(1))?;
            map.serialize_entry(key::REF, &node)?;
            return map.end();
        }
        let state = state(&found.code).map_err(|error| self.graph.fail(error))?;
        let mut map = to.serialize_map(Some(2 + state.len()))?;
        map.serialize_entry(key::ID, &node)?;
        if found.code.equal(place) {
            let of = found.code.unaliased();
            let id = of.id().unwrap_or_default();
            self.graph.name(id.len())?;
            map.serialize_entry(key::TYPE, id)?;
        } else {
            self.graph.name(code::size(&found.code.nodes))?;
            map.serialize_entry(key::TYPE, &code::Code(&found.code))?;
        }
        for ((code, name), value) in state.iter().zip(&found.members) {
            let (nodes, index, depth) = (&code.nodes, code.root, self.depth + 1);
            self.graph.name(name.len())?;
            let done =
                map.serialize_entry(name, &TypedPart { nodes, index, value, graph: self.graph, depth });
            self.graph.inside(done, || Step::Member(name.clone()))?;
        }
        map.end()
    }

    fn items<S: Serializer>(&self, to: S, element: Index, items: &'a Items) -> Result<S::Ok, S::Error> {
        match items {
            Items::Octets(octets) => {
                to.serialize_str(&base64::engine::general_purpose::STANDARD.encode(octets))
            }
            Items::Values(values) if self.nodes.at(self.nodes.unaliased(element)).kind() == TcKind::Octet => {
                let octet = |value: &Value| if let Value::Octet(octet) = value { Some(*octet) } else { None };
                let octets: Vec<u8> = values.iter().filter_map(octet).collect();
                to.serialize_str(&base64::engine::general_purpose::STANDARD.encode(octets))
            }
            Items::Values(values) => {
                let mut seq = to.serialize_seq(Some(values.len()))?;
                for (at, value) in values.iter().enumerate() {
                    let done = seq.serialize_element(&self.of(element, value));
                    self.graph.inside(done, || Step::Index(at))?;
                }
                seq.end()
            }
            items => {
                let mut seq = to.serialize_seq(Some(items.len()))?;
                for value in (0..items.len()).filter_map(|at| items.get(at)) {
                    seq.serialize_element(&self.of_owned(element, &value))?;
                }
                seq.end()
            }
        }
    }
}

impl Serialize for TypedPart<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.depth > MAX_DEPTH {
            return Err(self.graph.fail(DynErrorKind::Limit("values are nested over 64 deep")));
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
                        self.graph.name(name.len())?;
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
                map.serialize_entry(key::TYPE, &code::Code(&dynamic.code))?;
                let (depth, all) = (self.depth + 1, self.graph.all);
                let done = map.serialize_entry(key::VALUE, &NestedValue { value: &dynamic, depth, all });
                self.graph.inside(done, || Step::Content)?;
                map.end()
            }
            (_, Value::TypeCode(value)) => code::Code(value).serialize(to),
            (_, Value::Object(ior)) if ior.is_nil() => to.serialize_unit(),
            (_, Value::Object(ior)) => to.collect_str(&**ior),
            (Node::Named(named @ NamedType { body: Body::Members(members), .. }), Value::Struct(values)) => {
                self.members(to, named, members, values)
            }
            (Node::Named(NamedType { body: Body::Union(union), .. }), Value::Union(value)) => {
                let mut map = to.serialize_map(Some(2))?;
                let label = discriminator_value(self.nodes, union.discriminator, value.discriminator);
                map.serialize_entry(key::CASE, &self.of_owned(union.discriminator, &label))?;
                if let (Some(member), Some(value)) = (union.selected(value.discriminator), &value.value) {
                    self.graph.name(member.name.len())?;
                    let done = map.serialize_entry(&*member.name, &self.of(member.kind, value));
                    self.graph.inside(done, || Step::Member((*member.name).into()))?;
                }
                map.end()
            }
            (Node::Sequence { element, .. } | Node::Array { element, .. }, Value::Items(items)) => {
                self.items(to, *element, items)
            }
            (_, Value::Node(Some(node))) => {
                let place = TypeCode { nodes: self.nodes.clone(), root };
                self.node(to, *node, &place)
            }
            (_, Value::Principal(octets)) => {
                to.serialize_str(&base64::engine::general_purpose::STANDARD.encode(octets))
            }
            _ => Err(S::Error::custom("the value is none of its type")),
        }
    }
}

impl TypedPart<'_> {
    fn of_owned<'v>(&'v self, index: Index, value: &'v Value) -> TypedPart<'v> {
        TypedPart { nodes: self.nodes, index, value, graph: self.graph, depth: self.depth + 1 }
    }
}
