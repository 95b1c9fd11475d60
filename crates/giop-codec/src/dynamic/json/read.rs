//! Deserialization of values, driven by their types.

mod named_values;
mod objects;
mod scalars;

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::super::build::{MAX_DEPTH, no_items};
use super::super::{DynError, DynErrorKind, Dynamic, Items, Path, Step, Value, ValueGraph, ValueNode};
use super::{code, syntax};
use crate::ior::Ior;
use crate::typecode::{Body, Index, NamedType, Node, Nodes, TcKind, TypeCode};
use crate::value::ValueTypes;

/// A `serde` seed that reads a value of a type from any format.
///
/// ```
/// use giop_codec::dynamic::OfType;
/// use giop_codec::typecode::TypeCode;
/// use serde::de::DeserializeSeed;
///
/// let longs = TypeCode::sequence(&TypeCode::LONG, 0);
/// let mut json = serde_json::Deserializer::from_str("[1, 2, 70000]");
/// let value = OfType::new(&longs).deserialize(&mut json)?;
/// assert_eq!(value.at("[2]")?.1, 70000_i32.into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OfType<'a> {
    code: &'a TypeCode,
    known: ValueTypes,
}

impl<'a> OfType<'a> {
    /// Creates a seed for values of that type.
    pub fn new(code: &'a TypeCode) -> OfType<'a> {
        OfType { code, known: ValueTypes::default() }
    }

    /// Allows the text to name these value types by their repository ids.
    #[must_use]
    pub fn knowing(self, types: &ValueTypes) -> OfType<'a> {
        OfType { known: types.clone(), ..self }
    }

    pub(super) fn read<'de>(
        &self,
        from: impl Deserializer<'de, Error = serde_json::Error>,
    ) -> Result<Dynamic, DynError> {
        let mut state = State { known: self.known.clone(), ..State::default() };
        let value = self.part(&mut state).deserialize(from).map_err(|error| state.error(error))?;
        self.whole(value, state)
    }

    fn whole(&self, value: Value, mut state: State) -> Result<Dynamic, DynError> {
        let whole = Dynamic { code: self.code.clone(), value, graph: state.take_graph() };
        if state.early {
            whole.check()?;
        }
        Ok(whole)
    }

    fn part<'s>(&'s self, state: &'s mut State) -> PartSeed<'s> {
        PartSeed { state, nodes: &self.code.nodes, index: self.code.root, depth: 0 }
    }
}

impl<'de> DeserializeSeed<'de> for OfType<'_> {
    type Value = Dynamic;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Dynamic, D::Error> {
        let mut state = State { known: self.known.clone(), ..State::default() };
        let value = self.part(&mut state).deserialize(from);
        match value {
            Ok(value) => self.whole(value, state).map_err(D::Error::custom),
            Err(error) if state.path.is_empty() => Err(error),
            Err(error) => Err(D::Error::custom(format_args!("{}: {error}", state.path()))),
        }
    }
}

/// The state of deserialization, with the current path.
#[derive(Default)]
struct State {
    path: Vec<Step>,
    /// A fault that is not a syntax error.
    fault: Option<DynErrorKind>,
    nodes: Vec<Option<ValueNode>>,
    /// Whether a value was referenced before it was complete, so that its type was not checked at that place.
    early: bool,
    /// The nodes by their ids in the text.
    ids: HashMap<u64, u32>,
    /// Value types that the text may name.
    known: ValueTypes,
    /// Index of the names in long enums and unions, by the address of their types. The types are kept, so
    /// that the addresses are not reused.
    names: HashMap<(usize, Index), (Nodes, Names)>,
}

/// The first position of each name, and whether the name is unique.
type Names = HashMap<Box<str>, (usize, bool)>;

/// The maximum number of names for a linear search.
const FEW: usize = 16;

impl State {
    fn path(&self) -> Path {
        self.path.iter().cloned().collect()
    }

    fn error(&mut self, error: serde_json::Error) -> DynError {
        match self.fault.take() {
            Some(fault) => DynError::at(fault, self.path()),
            None => DynError::at(syntax(error).kind().clone(), self.path()),
        }
    }

    /// Returns the first position of a name among those of a node, and whether the name is unique.
    fn position<'n>(
        &mut self,
        (nodes, index): (&Nodes, Index),
        names: impl ExactSizeIterator<Item = &'n str> + Clone,
        name: &str,
    ) -> Option<(usize, bool)> {
        if names.len() <= FEW {
            let mut found = names.enumerate().filter(|(_, other)| *other == name);
            return found.next().map(|(at, _)| (at, found.next().is_none()));
        }
        let key = (nodes.all().as_ptr().addr(), index);
        let table = || {
            let mut table = Names::with_capacity(names.len());
            for (at, name) in names.enumerate() {
                table.entry(name.into()).and_modify(|(_, only)| *only = false).or_insert((at, true));
            }
            (nodes.clone(), table)
        };
        self.names.entry(key).or_insert_with(table).1.get(name).copied()
    }

    /// Takes the graph of the values that were read, and forgets their ids.
    fn take_graph(&mut self) -> ValueGraph {
        self.ids.clear();
        ValueGraph { nodes: std::mem::take(&mut self.nodes).into_iter().flatten().collect() }
    }

    #[cold]
    fn fail<E: Error>(&mut self, kind: DynErrorKind) -> E {
        let error = E::custom(&kind);
        self.fault = Some(kind);
        error
    }
}

/// Reads an object with values of these names and types, each with a graph of its own.
pub(super) fn read_apart<'de>(
    members: &[(&str, &TypeCode)],
    known: &ValueTypes,
    from: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<Vec<Dynamic>, DynError> {
    let mut state = State { known: known.clone(), ..State::default() };
    let read = named_values::NamedValues { state: &mut state, members }.deserialize(from);
    read.map_err(|error| state.error(error))
}

/// A seed for a part of the value.
struct PartSeed<'s> {
    state: &'s mut State,
    nodes: &'s Nodes,
    index: Index,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for PartSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(self.state.fail(DynErrorKind::Limit("values are nested over 64 deep")));
        }
        from.deserialize_any(self)
    }
}

impl<'s> PartSeed<'s> {
    fn node(&self) -> &'s Node {
        self.nodes.at(self.nodes.unaliased(self.index))
    }

    fn code(&self) -> TypeCode {
        TypeCode { nodes: self.nodes.clone(), root: self.index }
    }

    #[cold]
    fn mismatch<E: Error>(self, found: &str) -> E {
        let wanted = self.code();
        self.state.fail(DynErrorKind::TypeMismatch { wanted, found: found.into() })
    }

    #[cold]
    fn out_of_range<E: Error>(self) -> E {
        self.state.fail(DynErrorKind::InvalidValue("the number is out of the range of its type"))
    }

    fn of(&mut self, index: Index) -> PartSeed<'_> {
        PartSeed { state: self.state, nodes: self.nodes, index, depth: self.depth + 1 }
    }

    /// Reads the value of an entry of a map.
    fn entry<'de, A: MapAccess<'de>>(
        &mut self,
        step: Step,
        index: Index,
        map: &mut A,
    ) -> Result<Value, A::Error> {
        self.state.path.push(step);
        let value = map.next_value_seed(self.of(index))?;
        self.state.path.pop();
        Ok(value)
    }

    fn bounded<E: Error>(&mut self, len: usize, bound: u32) -> Result<(), E> {
        if bound != 0 && len > bound as usize {
            return Err(self.state.fail(DynErrorKind::Bounds { index: len, len: bound as usize }));
        }
        Ok(())
    }

    fn is_of_octets(&self, element: Index) -> bool {
        matches!(self.nodes.at(self.nodes.unaliased(element)), Node::Basic(TcKind::Octet))
    }

    fn type_code<E: Error>(self, json: &Json) -> Result<Value, E> {
        match code::from_json(json) {
            Ok(code) => Ok(Value::TypeCode(Box::new(code))),
            Err(text) => Err(self.state.fail(DynErrorKind::Syntax(text.into()))),
        }
    }

    fn elements<'de, A: SeqAccess<'de>>(
        mut self,
        element: Index,
        (bound, length): (u32, Option<u32>),
        mut seq: A,
    ) -> Result<Value, A::Error> {
        let most =
            length.map_or(if bound == 0 { usize::MAX } else { bound as usize }, |length| length as usize);
        let mut at = 0;
        macro_rules! numbers {
            ($variant:ident $item:ident) => {{
                let mut all = Vec::new();
                while let Some(value) = self.element(element, at, (most, length.is_some()), &mut seq)? {
                    if let Value::$item(value) = value {
                        all.push(value);
                    }
                    at += 1;
                }
                Items::$variant(all.into())
            }};
        }
        let all = match no_items(self.nodes, element) {
            Items::Octets(_) => numbers!(Octets Octet),
            Items::Chars(_) => numbers!(Chars Char),
            Items::Shorts(_) => numbers!(Shorts Short),
            Items::UShorts(_) => numbers!(UShorts UShort),
            Items::Longs(_) => numbers!(Longs Long),
            Items::ULongs(_) => numbers!(ULongs ULong),
            Items::LongLongs(_) => numbers!(LongLongs LongLong),
            Items::ULongLongs(_) => numbers!(ULongLongs ULongLong),
            Items::Floats(_) => numbers!(Floats Float),
            Items::Doubles(_) => numbers!(Doubles Double),
            _ => {
                let mut all = Vec::new();
                while let Some(value) = self.element(element, at, (most, length.is_some()), &mut seq)? {
                    all.push(value);
                    at += 1;
                }
                Items::Values(all)
            }
        };
        match length {
            Some(length) if all.len() != length as usize => {
                let (wanted, found) = (length as usize, all.len());
                Err(self.state.fail(DynErrorKind::Length { wanted, found }))
            }
            _ => Ok(items(all)),
        }
    }

    fn element<'de, A: SeqAccess<'de>>(
        &mut self,
        element: Index,
        at: usize,
        (most, is_array): (usize, bool),
        seq: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        self.state.path.push(Step::Index(at));
        let value = seq.next_element_seed(self.of(element))?;
        self.state.path.pop();
        if value.is_some() && at >= most {
            let mut found = at + 1;
            while is_array && seq.next_element::<IgnoredAny>()?.is_some() {
                found += 1;
            }
            return Err(self.state.fail(match is_array {
                true => DynErrorKind::Length { wanted: most, found },
                false => DynErrorKind::Bounds { index: found, len: most },
            }));
        }
        Ok(value)
    }

    /// Returns the key and value types, if the elements are entries of a `map` with text keys.
    fn is_map(&self, element: Index) -> Option<(Index, Index)> {
        let Node::Named(NamedType { body: Body::Members(members), id, .. }) =
            self.nodes.at(self.nodes.unaliased(element))
        else {
            return None;
        };
        let [key, value] = &**members else { return None };
        let text = matches!(self.nodes.at(self.nodes.unaliased(key.kind)), Node::Text { .. });
        (text && id.is_empty()).then_some((key.kind, value.kind))
    }
}

fn items(items: Items) -> Value {
    Value::Items(Box::new(items))
}

impl<'de> Visitor<'de> for PartSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of type `{}`", self.code())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        match self.node() {
            Node::Basic(TcKind::Null | TcKind::Void) => Ok(Value::Void),
            Node::Named(NamedType { body: Body::Value(_), .. })
            | Node::Named(NamedType { kind: TcKind::ValueBox | TcKind::AbstractInterface, .. }) => {
                Ok(Value::Node(None))
            }
            Node::Named(NamedType { body: Body::Opaque, kind, .. })
                if !matches!(kind, TcKind::Native | TcKind::LocalInterface) =>
            {
                Ok(Value::Object(Box::new(Ior::nil())))
            }
            _ => Err(self.mismatch("null")),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        match self.node() {
            Node::Basic(TcKind::Boolean) => Ok(Value::Boolean(value)),
            _ => Err(self.mismatch("a boolean")),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.integer(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.integer(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.float(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Value, A::Error> {
        match self.node() {
            Node::Sequence { element, bound } => self.elements(*element, (*bound, None), seq),
            Node::Array { element, length } => self.elements(*element, (0, Some(*length)), seq),
            Node::Text { wide: true, bound } => self.units(*bound, seq),
            Node::Named(NamedType { body: Body::Members(members), .. }) => self.listed(members, seq),
            _ => Err(self.mismatch("an array")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        match self.node() {
            Node::Basic(TcKind::Any) => self.any(map),
            Node::Basic(TcKind::TypeCode) => {
                let json = Json::deserialize(MapAccessDeserializer::new(map))?;
                self.type_code(&json)
            }
            Node::Named(named @ NamedType { body: Body::Members(members), .. }) => {
                self.members(named, members, map)
            }
            Node::Named(NamedType { body: Body::Union(union), .. }) => self.union(union, map),
            Node::Named(NamedType { body: Body::Value(_), .. })
            | Node::Named(NamedType { kind: TcKind::ValueBox, .. }) => self.value(map),
            Node::Named(NamedType { kind: TcKind::AbstractInterface, .. }) => self.value(map),
            Node::Sequence { element, bound } => match self.is_map(*element) {
                Some((key, value)) => self.entries((key, value, *bound), map),
                None => Err(self.mismatch("an object")),
            },
            _ => Err(self.mismatch("an object")),
        }
    }
}
