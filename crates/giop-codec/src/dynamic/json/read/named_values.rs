//! Several independent values in one object, such as the arguments of a call.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::super::super::{DynErrorKind, Dynamic, Step};
use super::{PartSeed, State};
use crate::typecode::TypeCode;

/// A seed for values of these names and types, each with a graph of its own.
pub(super) struct NamedValues<'s> {
    pub(super) state: &'s mut State,
    pub(super) members: &'s [(&'s str, &'s TypeCode)],
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
                return Err(state.fail(DynErrorKind::DoubledMember(name.into())));
            }
            state.path.push(Step::Member(name.into()));
            let part = PartSeed { state, nodes: &code.nodes, index: code.root, depth: 1 };
            let value = map.next_value_seed(part)?;
            let early = std::mem::take(&mut state.early);
            let whole = Dynamic { code: (*code).clone(), value, graph: state.take_graph() };
            if early && let Err(error) = whole.check() {
                state.path.extend(error.path().steps().iter().cloned());
                return Err(state.fail(error.kind().clone()));
            }
            state.path.pop();
            *place = Some(whole);
        }
        let mut whole = Vec::with_capacity(all.len());
        for (value, (name, _)) in all.into_iter().zip(members) {
            match value {
                Some(value) => whole.push(value),
                None => return Err(state.fail(DynErrorKind::MissingMember((*name).into()))),
            }
        }
        Ok(whole)
    }
}
