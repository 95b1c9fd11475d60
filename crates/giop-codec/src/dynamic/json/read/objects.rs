//! Types whose JSON is an object: structs, exceptions, unions, anys, value types and maps.

use std::collections::HashMap;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess};
use serde_json::Value as Json;

use super::super::super::build::label_of;
use super::super::super::check::{is_usable_as, value_members};
use super::super::super::part::is_same_member;
use super::super::super::{DynErrorKind, Dynamic, Items, Step, UnionValue, Value, ValueGraph, ValueNode};
use super::super::{code, key};
use super::{MAX_LINEARLY_SEARCHED_NAMES, PartSeed, all_members, items};
use crate::any::Any;
use crate::typecode::{Index, Member, NamedType, TcKind, TypeCode, Union};

impl PartSeed<'_> {
    pub(super) fn members_from_list<'de, A: SeqAccess<'de>>(
        mut self,
        members: &[Member],
        mut seq: A,
    ) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        for member in members {
            self.state.path.push(Step::Member((*member.name).into()));
            let Some(value) = seq.next_element_seed(self.part(member.ty))? else {
                self.state.path.pop();
                return Err(self.state.fail(DynErrorKind::MissingMember((*member.name).into())));
            };
            self.state.path.pop();
            all.push(value);
        }
        if seq.next_element::<serde::de::IgnoredAny>()?.is_some() {
            let len = members.len();
            return Err(self.state.fail(DynErrorKind::Bounds { index: len + 1, len }));
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
            let name_at = |at: usize| members.get(at).map(|member| &*member.name);
            let Some(at) = find_name(members.len(), name_at, &mut table, next, &name) else {
                return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into())));
            };
            next = at + 1;
            let (Some(member), Some(place)) = (members.get(at), all.get_mut(at)) else { continue };
            if place.is_some() {
                return Err(self.state.fail(DynErrorKind::DuplicateMember(name.into())));
            }
            *place = Some(self.entry(Step::Member(name.into()), member.ty, &mut map)?);
        }
        let values = all_members(self.state, all, members.iter().map(|member| &*member.name))?;
        Ok(Value::Struct(values.into()))
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
                    return Err(self.state.fail(DynErrorKind::DuplicateMember(key::CASE.into())));
                }
                case = label_of(&value);
                continue;
            }
            // A member with several labels is listed once for each label.
            let selected = case.and_then(|case| union.selected(case)).filter(|member| member.name == name);
            let find = || {
                let names = union.members.iter().map(|member| &*member.name);
                let node = (self.nodes, self.nodes.unaliased(self.index));
                let (at, is_unique) = self.state.find_name(node, names, &name)?;
                let is_default = union.default.is_some_and(|default| default as usize == at);
                union.members.get(at).map(|member| (member, is_unique && !is_default))
            };
            let Some((member, has_one_label)) = selected.map(|member| (member, false)).or_else(find) else {
                return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into())));
            };
            if found.is_some() {
                return Err(self.state.fail(DynErrorKind::DuplicateMember(name.into())));
            }
            let value = self.entry(Step::Member(name.into()), member.ty, &mut map)?;
            found = Some((member, has_one_label, value));
        }
        let fault = match (case, found) {
            (Some(discriminator), None) if union.selected(discriminator).is_none() => {
                return Ok(Value::Union(Box::new(UnionValue { discriminator, value: None })));
            }
            (Some(discriminator), Some((member, _, value))) => {
                let selected = union.selected(discriminator);
                if selected.is_some_and(|selected| is_same_member(self.nodes, selected, member)) {
                    return Ok(Value::Union(Box::new(UnionValue { discriminator, value: Some(value) })));
                }
                DynErrorKind::InvalidValue("`$case` selects another member of the union")
            }
            (Some(_), None) => DynErrorKind::InvalidValue("the member that `$case` selects is missing"),
            // Without `$case`, the discriminator is the member's label, if it has only one.
            (None, Some((member, true, value))) => {
                let discriminator = member.label_or_visibility;
                return Ok(Value::Union(Box::new(UnionValue { discriminator, value: Some(value) })));
            }
            (None, _) => DynErrorKind::MissingMember(key::CASE.into()),
        };
        Err(self.state.fail(fault))
    }

    pub(super) fn any<'de, A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let (mut code, mut value, mut json_value) = (None, None, None);
        while let Some(name) = map.next_key::<String>()? {
            match (name.as_str(), &code) {
                (key::TYPE, None) => {
                    let json = map.next_value::<Json>()?;
                    let syntax = |text: String| self.state.fail(DynErrorKind::Syntax(text.into()));
                    code = Some(code::from_json(&json).map_err(syntax)?);
                }
                (key::VALUE, _) if value.is_some() || json_value.is_some() => {
                    return Err(self.state.fail(DynErrorKind::DuplicateMember(name.into())));
                }
                (key::VALUE, Some(code)) => {
                    value = Some(self.content(code, |part| map.next_value_seed(part))?)
                }
                (key::VALUE, None) => json_value = Some(map.next_value::<Json>()?),
                (key::TYPE, Some(_)) => {
                    return Err(self.state.fail(DynErrorKind::DuplicateMember(name.into())));
                }
                _ => return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into()))),
            }
        }
        let Some(code) = code else {
            return Err(self.state.fail(DynErrorKind::MissingMember(key::TYPE.into())));
        };
        if let Some(json_value) = json_value {
            value = Some(self.content(&code, |part| part.deserialize(json_value).map_err(A::Error::custom))?);
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

    /// Reads the content of an any, which has a separate graph.
    fn content<E>(
        &mut self,
        code: &TypeCode,
        read: impl FnOnce(PartSeed<'_>) -> Result<Value, E>,
    ) -> Result<(Value, ValueGraph), E> {
        let outer = (std::mem::take(&mut self.state.nodes), std::mem::take(&mut self.state.ids));
        self.state.path.push(Step::Content);
        let part =
            PartSeed { state: self.state, nodes: &code.nodes, index: code.root, depth: self.depth + 1 };
        let value = read(part)?;
        self.state.path.pop();
        let graph = self.state.take_graph();
        (self.state.nodes, self.state.ids) = outer;
        Ok((value, graph))
    }

    pub(super) fn value<'de, A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut code = self.code().unaliased();
        let expected = code.clone();
        let node = u32::try_from(self.state.nodes.len()).unwrap_or(u32::MAX);
        self.state.nodes.push(None);
        let mut member_types: Option<Vec<(TypeCode, Box<str>)>> = None;
        let (mut all, mut next): (Vec<Option<Value>>, usize) = (Vec::new(), 0);
        let mut table = None;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                key::REF if member_types.is_none() => {
                    let id = map.next_value::<u64>()?;
                    if map.next_key::<String>()?.is_some() {
                        let text = "an object with `$ref` must not have other members";
                        return Err(self.state.fail(DynErrorKind::InvalidValue(text)));
                    }
                    self.state.nodes.pop();
                    let Some(found) = self.state.ids.get(&id).copied() else {
                        let text = "`$ref` must name an `$id` that occurs before it";
                        return Err(self.state.fail(DynErrorKind::InvalidValue(text)));
                    };
                    match self.state.nodes.get(found as usize).and_then(Option::as_ref) {
                        Some(node) if !is_usable_as(&node.code, &expected) => {
                            return Err(self.mismatch("the value that `$ref` names"));
                        }
                        Some(_) => {}
                        None => self.state.has_unchecked_reference = true,
                    }
                    return Ok(Value::Node(Some(found)));
                }
                key::ID => {
                    let id = map.next_value::<u64>()?;
                    if self.state.ids.insert(id, node).is_some() {
                        return Err(self.state.fail(DynErrorKind::DuplicateMember(key::ID.into())));
                    }
                }
                key::TYPE if member_types.is_none() => {
                    let json = map.next_value::<Json>()?;
                    let id = json.as_str();
                    if id.is_none_or(|id| Ok(id) != expected.id()) {
                        let known = id.and_then(|id| self.state.known_types.find(id).cloned());
                        let syntax = |text: String| self.state.fail(DynErrorKind::Syntax(text.into()));
                        let found = known.map_or_else(|| code::from_json(&json), Ok).map_err(syntax)?;
                        code = found.unaliased();
                        if !is_usable_as(&code, &expected) {
                            return Err(self.mismatch("a value of the type that `$type` names"));
                        }
                    }
                }
                key::TYPE | key::REF => {
                    let text = "`$type` and `$ref` must precede the members";
                    return Err(self.state.fail(DynErrorKind::InvalidValue(text)));
                }
                _ => {
                    if member_types.is_none() {
                        let members = self.value_members(&code)?;
                        all = vec![None; members.len()];
                        member_types = Some(members);
                    }
                    let members = member_types.as_deref().unwrap_or_default();
                    let name_at = |at: usize| members.get(at).map(|(_, name)| &**name);
                    let Some(at) = find_name(members.len(), name_at, &mut table, next, &name) else {
                        return Err(self.state.fail(DynErrorKind::NoSuchMember(name.into())));
                    };
                    next = at + 1;
                    let (Some((member, _)), Some(place)) = (members.get(at), all.get_mut(at)) else {
                        continue;
                    };
                    if place.is_some() {
                        return Err(self.state.fail(DynErrorKind::DuplicateMember(name.into())));
                    }
                    self.state.path.push(Step::Member(name.into()));
                    let (nodes, index, depth) = (&member.nodes, member.root, self.depth + 1);
                    *place =
                        Some(map.next_value_seed(PartSeed { state: self.state, nodes, index, depth })?);
                    self.state.path.pop();
                }
            }
        }
        let names = match member_types {
            Some(members) => members,
            None => self.value_members(&code)?,
        };
        all.resize(names.len(), None);
        let members = all_members(self.state, all, names.iter().map(|(_, name)| &**name))?;
        if let Some(place) = self.state.nodes.get_mut(node as usize) {
            *place = Some(ValueNode { code, members });
        }
        Ok(Value::Node(Some(node)))
    }

    fn value_members<E: Error>(&mut self, code: &TypeCode) -> Result<Vec<(TypeCode, Box<str>)>, E> {
        value_members(code).map_err(|error| self.state.fail(error.kind().clone()))
    }

    /// Reads an object as an IDL `map` with string keys.
    pub(super) fn map_entries<'de, A: MapAccess<'de>>(
        mut self,
        (key, value, bound): (Index, Index, u32),
        mut map: A,
    ) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let key = self.part(key).text(&name)?;
            let value = self.entry(Step::Member(name.into()), value, &mut map)?;
            all.push(Value::Struct([key, value].into()));
            self.check_bound(all.len(), bound)?;
        }
        Ok(items(Items::Values(all)))
    }
}

/// Returns the position of a name among `len` names. Tries `next` first, because names usually occur in the
/// order of the type. `table` is filled and used if the list is long.
fn find_name<'n>(
    len: usize,
    name_at: impl Fn(usize) -> Option<&'n str>,
    table: &mut Option<HashMap<Box<str>, usize>>,
    next: usize,
    name: &str,
) -> Option<usize> {
    if name_at(next) == Some(name) {
        return Some(next);
    }
    if len <= MAX_LINEARLY_SEARCHED_NAMES {
        return (0..len).find(|index| name_at(*index) == Some(name));
    }
    let entry = |index| name_at(index).map(|name| (name.into(), index));
    table.get_or_insert_with(|| (0..len).rev().filter_map(entry).collect()).get(name).copied()
}
