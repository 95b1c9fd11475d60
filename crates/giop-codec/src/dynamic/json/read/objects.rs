//! Types whose JSON is an object: structs, unions, anys, values, maps.

use std::collections::HashMap;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess};
use serde_json::Value as Json;

use super::super::super::build::label_of;
use super::super::super::check::{derives, state as state_of};
use super::super::super::part::is_same;
use super::super::super::{DynErrorKind, Dynamic, Items, Step, UnionValue, Value, ValueGraph, ValueNode};
use super::super::{code, key};
use super::{FEW, PartSeed, items};
use crate::any::Any;
use crate::typecode::{Index, Member, NamedType, TcKind, TypeCode, Union};

impl PartSeed<'_> {
    /// Reads members in order from a list.
    pub(super) fn listed<'de, A: SeqAccess<'de>>(
        mut self,
        members: &[Member],
        mut seq: A,
    ) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        for member in members {
            self.state.path.push(Step::Member((*member.name).into()));
            let Some(value) = seq.next_element_seed(self.of(member.kind))? else {
                self.state.path.pop();
                return Err(self.state.fail(DynErrorKind::MissingMember((*member.name).into())));
            };
            self.state.path.pop();
            all.push(value);
        }
        if seq.next_element::<serde::de::IgnoredAny>()?.is_some() {
            return Err(self
                .state
                .fail(DynErrorKind::Bounds { index: members.len() + 1, len: members.len() }));
        }
        Ok(Value::Struct(all.into()))
    }

    pub(super) fn members<'de, A: MapAccess<'de>>(
        mut self,
        named: &NamedType,
        members: &[Member],
        mut map: A,
    ) -> Result<Value, A::Error> {
        let mut all: Vec<Option<Value>> = vec![None; members.len()];
        let (mut next, mut table) = (0, None);
        while let Some(name) = map.next_key::<String>()? {
            if named.kind == TcKind::Except && name == key::EXCEPTION {
                let id = map.next_value::<String>()?;
                if id != *named.id {
                    let wanted = self.code();
                    let found = format!("the exception `{id}`").into();
                    return Err(self.state.fail(DynErrorKind::TypeMismatch { wanted, found }));
                }
                continue;
            }
            let of = |at: usize| members.get(at).map(|member| &*member.name);
            let Some(at) = position(members.len(), of, &mut table, next, &name) else {
                return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into())));
            };
            next = at + 1;
            let (Some(member), Some(place)) = (members.get(at), all.get_mut(at)) else { continue };
            if place.is_some() {
                return Err(self.state.fail(DynErrorKind::DoubledMember(name.into())));
            }
            *place = Some(self.entry(Step::Member(name.into()), member.kind, &mut map)?);
        }
        self.whole(all, members.iter().map(|member| &*member.name)).map(|all| Value::Struct(all.into()))
    }

    fn whole<'n, E: Error>(
        self,
        all: Vec<Option<Value>>,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<Value>, E> {
        let mut whole = Vec::with_capacity(all.len());
        for (value, name) in all.into_iter().zip(names) {
            match value {
                Some(value) => whole.push(value),
                None => return Err(self.state.fail(DynErrorKind::MissingMember(name.into()))),
            }
        }
        Ok(whole)
    }

    pub(super) fn union<'de, A: MapAccess<'de>>(
        mut self,
        union: &Union,
        mut map: A,
    ) -> Result<Value, A::Error> {
        let mut case: Option<i64> = None;
        let mut found: Option<(&Member, bool, Value)> = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == key::CASE {
                let value = self.entry(Step::Member(name.into()), union.discriminator, &mut map)?;
                if case.is_some() {
                    return Err(self.state.fail(DynErrorKind::DoubledMember(key::CASE.into())));
                }
                case = label_of(&value);
                continue;
            }
            // Several members may have this name, each with another label.
            let selected = case.and_then(|case| union.selected(case)).filter(|member| member.name == name);
            let of_name = || {
                let names = union.members.iter().map(|member| &*member.name);
                let place = (self.nodes, self.nodes.unaliased(self.index));
                let (at, only) = self.state.position(place, names, &name)?;
                let is_default = union.default.is_some_and(|default| default as usize == at);
                union.members.get(at).map(|member| (member, only && !is_default))
            };
            let Some((member, says_all)) = selected.map(|member| (member, false)).or_else(of_name) else {
                return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into())));
            };
            if found.is_some() {
                return Err(self.state.fail(DynErrorKind::DoubledMember(name.into())));
            }
            let value = self.entry(Step::Member(name.into()), member.kind, &mut map)?;
            found = Some((member, says_all, value));
        }
        let fault = match (case, found) {
            (Some(discriminator), None) if union.selected(discriminator).is_none() => {
                return Ok(Value::Union(Box::new(UnionValue { discriminator, value: None })));
            }
            (Some(discriminator), Some((member, _, value))) => {
                let selected = union.selected(discriminator);
                if selected.is_some_and(|selected| is_same(self.nodes, selected, member)) {
                    return Ok(Value::Union(Box::new(UnionValue { discriminator, value: Some(value) })));
                }
                DynErrorKind::InvalidValue("`$case` selects another member of the union")
            }
            (Some(_), None) => {
                DynErrorKind::InvalidValue("`$case` selects a member of the union, which is missing")
            }
            // The discriminator is the only label of the member.
            (None, Some((member, true, value))) => {
                let discriminator = member.label;
                return Ok(Value::Union(Box::new(UnionValue { discriminator, value: Some(value) })));
            }
            (None, _) => DynErrorKind::MissingMember(key::CASE.into()),
        };
        Err(self.state.fail(fault))
    }

    pub(super) fn any<'de, A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let (mut code, mut value, mut early) = (None, None, None);
        while let Some(name) = map.next_key::<String>()? {
            match (name.as_str(), &code) {
                (key::TYPE, None) => {
                    let json = map.next_value::<Json>()?;
                    code = Some(match code::from_json(&json) {
                        Ok(code) => code,
                        Err(text) => return Err(self.state.fail(DynErrorKind::Syntax(text.into()))),
                    });
                }
                (key::VALUE, _) if value.is_some() || early.is_some() => {
                    return Err(self.state.fail(DynErrorKind::DoubledMember(name.into())));
                }
                (key::VALUE, Some(code)) => {
                    value = Some(self.content(code, |part| map.next_value_seed(part))?)
                }
                (key::VALUE, None) => early = Some(map.next_value::<Json>()?),
                (key::TYPE, Some(_)) => {
                    return Err(self.state.fail(DynErrorKind::DoubledMember(name.into())));
                }
                _ => return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into()))),
            }
        }
        let Some(code) = code else {
            return Err(self.state.fail(DynErrorKind::MissingMember(key::TYPE.into())));
        };
        if let Some(early) = early {
            value = Some(self.content(&code, |part| part.deserialize(early).map_err(A::Error::custom))?);
        }
        let (value, graph) = match value {
            Some(value) => value,
            None if matches!(code.unaliased().kind(), TcKind::Null | TcKind::Void) => {
                (Value::Void, ValueGraph::default())
            }
            None => return Err(self.state.fail(DynErrorKind::MissingMember(key::VALUE.into()))),
        };
        match Any::from_dynamic(&Dynamic { code, value, graph }) {
            Ok(any) => Ok(any.into()),
            Err(error) => {
                self.state.path.push(Step::Content);
                self.state.path.extend(error.path().steps().iter().cloned());
                Err(self.state.fail(error.kind().clone()))
            }
        }
    }

    /// Reads the content of an any, with a graph of its own.
    fn content<E>(
        &mut self,
        code: &TypeCode,
        read: impl FnOnce(PartSeed<'_>) -> Result<Value, E>,
    ) -> Result<(Value, ValueGraph), E> {
        let around = (std::mem::take(&mut self.state.nodes), std::mem::take(&mut self.state.ids));
        self.state.path.push(Step::Content);
        let part =
            PartSeed { state: self.state, nodes: &code.nodes, index: code.root, depth: self.depth + 1 };
        let value = read(part)?;
        self.state.path.pop();
        let nodes = std::mem::replace(&mut self.state.nodes, around.0);
        self.state.ids = around.1;
        Ok((value, ValueGraph { nodes: nodes.into_iter().flatten().collect() }))
    }

    pub(super) fn value<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut code = self.code().unaliased();
        let place = code.clone();
        let node = u32::try_from(self.state.nodes.len()).unwrap_or(u32::MAX);
        self.state.nodes.push(None);
        let mut known: Option<Vec<(TypeCode, Box<str>)>> = None;
        let (mut all, mut next): (Vec<Option<Value>>, usize) = (Vec::new(), 0);
        let mut table = None;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                key::REF if known.is_none() => {
                    let id = map.next_value::<u64>()?;
                    if map.next_key::<String>()?.is_some() {
                        let text = "nothing stands beside `$ref`";
                        return Err(self.state.fail(DynErrorKind::InvalidValue(text)));
                    }
                    self.state.nodes.pop();
                    let Some(found) = self.state.ids.get(&id).copied() else {
                        return Err(self
                            .state
                            .fail(DynErrorKind::InvalidValue("no `$id` stands before its `$ref`")));
                    };
                    let known = self.state.nodes.get(found as usize).and_then(Option::as_ref);
                    let early = known.is_none();
                    if known.is_some_and(|node| !derives(&node.code, &place)) {
                        return Err(self.mismatch("the value that `$ref` names"));
                    }
                    self.state.early |= early;
                    return Ok(Value::Node(Some(found)));
                }
                key::ID => {
                    let id = map.next_value::<u64>()?;
                    if self.state.ids.insert(id, node).is_some() {
                        return Err(self.state.fail(DynErrorKind::DoubledMember(key::ID.into())));
                    }
                }
                key::TYPE if known.is_none() => {
                    let json = map.next_value::<Json>()?;
                    let id = json.as_str();
                    if id.is_none_or(|id| Ok(id) != place.id()) {
                        let known = id.and_then(|id| self.state.known.find(id).cloned());
                        code = match known.map_or_else(|| code::from_json(&json), Ok) {
                            Ok(code) => code.unaliased(),
                            Err(text) => return Err(self.state.fail(DynErrorKind::Syntax(text.into()))),
                        };
                        if !derives(&code, &place) {
                            return Err(self.mismatch("a value of the type that `$type` names"));
                        }
                    }
                }
                key::TYPE | key::REF => {
                    let text = "`$type` and `$ref` stand before members";
                    return Err(self.state.fail(DynErrorKind::InvalidValue(text)));
                }
                _ => {
                    let members = match &mut known {
                        Some(members) => members,
                        none => match state_of(&code) {
                            Ok(members) => {
                                all = vec![None; members.len()];
                                none.insert(members)
                            }
                            Err(error) => return Err(self.state.fail(error.kind().clone())),
                        },
                    };
                    let of = |at: usize| members.get(at).map(|(_, name)| &**name);
                    let Some(at) = position(members.len(), of, &mut table, next, &name) else {
                        return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into())));
                    };
                    next = at + 1;
                    let (Some((member, _)), Some(place)) = (members.get(at), all.get_mut(at)) else {
                        continue;
                    };
                    if place.is_some() {
                        return Err(self.state.fail(DynErrorKind::DoubledMember(name.into())));
                    }
                    self.state.path.push(Step::Member(name.into()));
                    let (nodes, index, depth) = (&member.nodes, member.root, self.depth + 1);
                    *place =
                        Some(map.next_value_seed(PartSeed { state: self.state, nodes, index, depth })?);
                    self.state.path.pop();
                }
            }
        }
        let names = match known {
            Some(known) => known,
            None => state_of(&code).map_err(|error| self.state.fail(error.kind().clone()))?,
        };
        all.resize(names.len(), None);
        let nodes = self.nodes;
        let part = PartSeed { state: &mut *self.state, nodes, index: self.index, depth: self.depth };
        let members = part.whole(all, names.iter().map(|(_, name)| &**name))?;
        if let Some(place) = self.state.nodes.get_mut(node as usize) {
            *place = Some(ValueNode { code, members });
        }
        Ok(Value::Node(Some(node)))
    }

    /// Reads an object as a `map` with text keys.
    pub(super) fn entries<'de, A: MapAccess<'de>>(
        mut self,
        (key, value, bound): (Index, Index, u32),
        mut map: A,
    ) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let first = self.of(key).text(&name)?;
            let second = self.entry(Step::Member(name.into()), value, &mut map)?;
            all.push(Value::Struct([first, second].into()));
            self.bounded(all.len(), bound)?;
        }
        Ok(items(Items::Values(all)))
    }
}

/// Returns the position of a name among `len` names. The fast path is `next`, because names are mostly in
/// order. A long list is indexed in `table`.
fn position<'n>(
    len: usize,
    at: impl Fn(usize) -> Option<&'n str>,
    table: &mut Option<HashMap<Box<str>, usize>>,
    next: usize,
    name: &str,
) -> Option<usize> {
    if at(next) == Some(name) {
        return Some(next);
    }
    if len <= FEW {
        return (0..len).find(|index| at(*index) == Some(name));
    }
    let all = || (0..len).rev().filter_map(|index| at(index).map(|name| (name.into(), index))).collect();
    table.get_or_insert_with(all).get(name).copied()
}
