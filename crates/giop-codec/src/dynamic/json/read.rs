//! Deserialization of values, driven by their type codes.

mod objects;
mod scalars;

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::super::build::MAX_DEPTH;
use super::super::{DynError, DynErrorKind, Dynamic, Items, Path, Step, Value, ValueGraph, ValueNode};
use super::{code, syntax};
use crate::ior::Ior;
use crate::typecode::{Body, Index, NamedType, Node, Nodes, TcKind, TypeCode};
use crate::value::ValueTypes;

/// A `serde` seed that reads a value of a given type from any self-describing format.
///
/// ```
/// use giop_codec::dynamic::DynamicSeed;
/// use giop_codec::typecode::TypeCode;
/// use serde::de::DeserializeSeed;
///
/// let longs = TypeCode::sequence(&TypeCode::LONG, 0);
/// let mut json = serde_json::Deserializer::from_str("[1, 2, 70000]");
/// let value = DynamicSeed::new(&longs).deserialize(&mut json)?;
/// assert_eq!(value.at("[2]")?.1, 70000_i32.into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DynamicSeed<'a> {
    code: &'a TypeCode,
    known_types: ValueTypes,
}

impl<'a> DynamicSeed<'a> {
    /// Creates a seed for values of this type.
    pub fn new(code: &'a TypeCode) -> DynamicSeed<'a> {
        DynamicSeed { code, known_types: ValueTypes::default() }
    }

    /// Permits the text to name these value types by their repository ids.
    #[must_use]
    pub fn with_known_types(self, types: &ValueTypes) -> DynamicSeed<'a> {
        DynamicSeed { known_types: types.clone(), ..self }
    }

    pub(super) fn read<'de>(
        &self,
        from: impl Deserializer<'de, Error = serde_json::Error>,
    ) -> Result<Dynamic, DynError> {
        let mut state = State { known_types: self.known_types.clone(), ..State::default() };
        let value = self.part(&mut state).deserialize(from).map_err(|error| state.error(error))?;
        self.complete(value, state)
    }

    fn complete(&self, value: Value, mut state: State) -> Result<Dynamic, DynError> {
        let value = Dynamic { code: self.code.clone(), value, graph: state.take_graph() };
        if state.has_unchecked_reference {
            value.check()?;
        }
        Ok(value)
    }

    fn part<'s>(&'s self, state: &'s mut State) -> PartSeed<'s> {
        PartSeed { state, nodes: &self.code.nodes, index: self.code.root, depth: 0 }
    }
}

impl<'de> DeserializeSeed<'de> for DynamicSeed<'_> {
    type Value = Dynamic;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Dynamic, D::Error> {
        let mut state = State { known_types: self.known_types.clone(), ..State::default() };
        let value = self.part(&mut state).deserialize(from);
        match value {
            Ok(value) => self.complete(value, state).map_err(D::Error::custom),
            Err(error) if state.path.is_empty() => Err(error),
            Err(error) => Err(D::Error::custom(format_args!("{}: {error}", state.path()))),
        }
    }
}

#[derive(Default)]
struct State {
    path: Vec<Step>,
    /// The error in a form that serde cannot return. The path leads to it.
    fault: Option<DynErrorKind>,
    nodes: Vec<Option<ValueNode>>,
    /// Whether the text has a reference to a value inside that value itself. The type of such a reference can
    /// be checked only when the value is complete.
    has_unchecked_reference: bool,
    /// The index of each value of a value type, by its id in the text.
    ids: HashMap<u64, u32>,
    /// Value types that the text may name.
    known_types: ValueTypes,
    /// Tables of the names in long enums and unions, by the address and index of the type. They retain the
    /// types, so that the addresses are not reused.
    names: HashMap<(usize, Index), (Nodes, Names)>,
}

/// For each name, its first position and whether it occurs only once.
type Names = HashMap<Box<str>, (usize, bool)>;

/// A list of more names than this is searched by a table.
const MAX_LINEARLY_SEARCHED_NAMES: usize = 16;

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

    /// Returns the first position of `name` among the names of a type, and whether it occurs only once.
    fn find_name<'n>(
        &mut self,
        (nodes, index): (&Nodes, Index),
        names: impl ExactSizeIterator<Item = &'n str> + Clone,
        name: &str,
    ) -> Option<(usize, bool)> {
        if names.len() <= MAX_LINEARLY_SEARCHED_NAMES {
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

    /// Takes the graph of the values that were read, and clears their ids.
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

pub(super) fn read_named_values<'de>(
    members: &[(&str, &TypeCode)],
    known_types: &ValueTypes,
    from: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<Vec<Dynamic>, DynError> {
    let mut state = State { known_types: known_types.clone(), ..State::default() };
    let read = NamedValues { state: &mut state, members }.deserialize(from);
    read.map_err(|error| state.error(error))
}

/// Returns the values, or an error if one is missing.
fn all_members<'n, T, E: Error>(
    state: &mut State,
    values: Vec<Option<T>>,
    names: impl Iterator<Item = &'n str>,
) -> Result<Vec<T>, E> {
    let all = values.into_iter().zip(names);
    all.map(|(value, name)| value.ok_or_else(|| state.fail(DynErrorKind::MissingMember(name.into()))))
        .collect()
}

/// A seed for values with these names and types. Each value has a separate graph.
struct NamedValues<'s> {
    state: &'s mut State,
    members: &'s [(&'s str, &'s TypeCode)],
}

impl<'de> DeserializeSeed<'de> for NamedValues<'_> {
    type Value = Vec<Dynamic>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<Dynamic>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NamedValues<'_> {
    type Value = Vec<Dynamic>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Dynamic>, A::Error> {
        let NamedValues { state, members } = self;
        let mut all: Vec<Option<Dynamic>> = vec![None; members.len()];
        while let Some(name) = map.next_key::<String>()? {
            let found = members.iter().zip(&mut all).find(|((member, _), _)| **member == *name);
            let Some(((_, code), place)) = found else {
                return Err(state.fail(DynErrorKind::NoSuchMember(name.into())));
            };
            if place.is_some() {
                return Err(state.fail(DynErrorKind::DuplicateMember(name.into())));
            }
            state.path.push(Step::Member(name.into()));
            let part = PartSeed { state, nodes: &code.nodes, index: code.root, depth: 1 };
            let value = map.next_value_seed(part)?;
            let value = Dynamic { code: (*code).clone(), value, graph: state.take_graph() };
            if std::mem::take(&mut state.has_unchecked_reference)
                && let Err(error) = value.check()
            {
                state.path.extend(error.path().steps().iter().cloned());
                return Err(state.fail(error.kind().clone()));
            }
            state.path.pop();
            *place = Some(value);
        }
        all_members(state, all, members.iter().map(|(name, _)| *name))
    }
}

/// A seed for a part of a value.
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
            return Err(self.state.fail(DynErrorKind::Limit("values are nested more than 64 levels deep")));
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

    fn part(&mut self, index: Index) -> PartSeed<'_> {
        PartSeed { state: self.state, nodes: self.nodes, index, depth: self.depth + 1 }
    }

    fn entry<'de, A: MapAccess<'de>>(
        &mut self,
        step: Step,
        index: Index,
        map: &mut A,
    ) -> Result<Value, A::Error> {
        self.state.path.push(step);
        let value = map.next_value_seed(self.part(index))?;
        self.state.path.pop();
        Ok(value)
    }

    fn check_bound<E: Error>(&mut self, len: usize, bound: u32) -> Result<(), E> {
        if bound != 0 && len > bound as usize {
            return Err(self.state.fail(DynErrorKind::Bounds { index: len, len: bound as usize }));
        }
        Ok(())
    }

    fn check_length<E: Error>(&mut self, found: usize, length: Option<u32>) -> Result<(), E> {
        match length.map(|length| length as usize) {
            Some(wanted) if found != wanted => Err(self.state.fail(DynErrorKind::Length { wanted, found })),
            _ => Ok(()),
        }
    }

    fn is_of_octets(&self, element: Index) -> bool {
        matches!(self.nodes.at(self.nodes.unaliased(element)), Node::Basic(TcKind::Octet))
    }

    fn type_code<E: Error>(self, json: &Json) -> Result<Value, E> {
        let code = code::from_json(json);
        let code = code.map_err(|text| self.state.fail(DynErrorKind::Syntax(text.into())))?;
        Ok(Value::TypeCode(Box::new(code)))
    }

    fn elements<'de, A: SeqAccess<'de>>(
        mut self,
        element: Index,
        (bound, length): (u32, Option<u32>),
        mut seq: A,
    ) -> Result<Value, A::Error> {
        let max =
            length.map_or(if bound == 0 { usize::MAX } else { bound as usize }, |length| length as usize);
        let mut at = 0;
        macro_rules! numbers {
            ($variant:ident $item:ident) => {{
                let mut all = Vec::new();
                while let Some(value) = self.element(element, at, (max, length.is_some()), &mut seq)? {
                    if let Value::$item(value) = value {
                        all.push(value);
                    }
                    at += 1;
                }
                Items::$variant(all.into())
            }};
        }
        let all = match Items::empty(self.nodes, element) {
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
                while let Some(value) = self.element(element, at, (max, length.is_some()), &mut seq)? {
                    all.push(value);
                    at += 1;
                }
                Items::Values(all)
            }
        };
        self.check_length(all.len(), length)?;
        Ok(items(all))
    }

    fn element<'de, A: SeqAccess<'de>>(
        &mut self,
        element: Index,
        at: usize,
        (max, is_array): (usize, bool),
        seq: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        self.state.path.push(Step::Index(at));
        let value = seq.next_element_seed(self.part(element))?;
        self.state.path.pop();
        if value.is_some() && at >= max {
            let mut found = at + 1;
            while is_array && seq.next_element::<IgnoredAny>()?.is_some() {
                found += 1;
            }
            return Err(self.state.fail(match is_array {
                true => DynErrorKind::Length { wanted: max, found },
                false => DynErrorKind::Bounds { index: found, len: max },
            }));
        }
        Ok(value)
    }

    /// Returns the key and value types if the elements are entries of an IDL `map` with string keys.
    fn map_types(&self, element: Index) -> Option<(Index, Index)> {
        let Node::Named(NamedType { body: Body::Members(members), id, .. }) =
            self.nodes.at(self.nodes.unaliased(element))
        else {
            return None;
        };
        let [key, value] = &**members else { return None };
        let text = matches!(self.nodes.at(self.nodes.unaliased(key.ty)), Node::Text { .. });
        (text && id.is_empty()).then_some((key.ty, value.ty))
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
            Node::Text { wide: true, bound } => self.utf16_units(*bound, seq),
            Node::Named(NamedType { body: Body::Members(members), .. }) => {
                self.members_from_list(members, seq)
            }
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
            | Node::Named(NamedType { kind: TcKind::ValueBox | TcKind::AbstractInterface, .. }) => {
                self.value(map)
            }
            Node::Sequence { element, bound } => match self.map_types(*element) {
                Some((key, value)) => self.map_entries((key, value, *bound), map),
                None => Err(self.mismatch("an object")),
            },
            _ => Err(self.mismatch("an object")),
        }
    }
}
