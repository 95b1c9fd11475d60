//! The properties of types, including those that they have only because of the types that they contain. They
//! are computed for all types at once: the properties of each type are propagated to the types that contain
//! it as a member, element or state, or name it in a typedef.

use std::collections::VecDeque;

use super::{DefId, DefKind, Flavour, Model, Primitive, Type, TypeId};
use crate::work;

/// A property of a type that also applies to all types that contain the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Float,
    /// An object reference, or a type that may hold one.
    Reference,
    /// A value, or a type that may hold one.
    Value,
    /// A type that cannot be compared for equality and hashed.
    Unhashable,
    /// A type whose CDR size varies.
    VariableSize,
}

impl Fact {
    const ALL: [Fact; 5] = [Fact::Float, Fact::Reference, Fact::Value, Fact::Unhashable, Fact::VariableSize];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The properties of all types of a model, by the index of the type.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// For each type, the bits of its facts.
    facts: Vec<u8>,
    /// For each type, a local interface that is reachable from it, if there is one.
    locals: Vec<Option<DefId>>,
}

impl Reach {
    fn new(model: &Model) -> Reach {
        let count = model.types.len();
        let mut users: Vec<Vec<TypeId>> = vec![Vec::new(); count];
        let mut reach = Reach { facts: vec![0; count], locals: vec![None; count] };
        let mut queue = VecDeque::new();
        for (index, ty) in model.types.iter().enumerate() {
            let id = TypeId(index as u32);
            let parts = model.parts(ty);
            work::count_steps(1 + parts.len());
            for part in parts {
                users[part.index()].push(id);
            }
            let own = Fact::ALL.into_iter().filter(|fact| model.applies_directly(ty, *fact));
            reach.facts[index] = own.fold(0, |facts, fact| facts | fact.bit());
            reach.locals[index] = model.as_local_interface(ty);
            if reach.facts[index] != 0 || reach.locals[index].is_some() {
                queue.push_back(id);
            }
        }
        // A type is queued again only if its facts have changed, which happens a bounded number of times.
        while let Some(id) = queue.pop_front() {
            let (facts, local) = (reach.facts[id.index()], reach.locals[id.index()]);
            for user in &users[id.index()] {
                work::count_step();
                let known = (reach.facts[user.index()], reach.locals[user.index()]);
                let all = (known.0 | facts, known.1.or(local));
                if all != known {
                    (reach.facts[user.index()], reach.locals[user.index()]) = all;
                    queue.push_back(*user);
                }
            }
        }
        reach
    }

    /// Evaluates `query` with the facts of the model's types, which are computed again if types were added.
    fn query<T>(model: &Model, query: impl FnOnce(&Reach) -> T) -> T {
        let mut reach = model.reach.borrow_mut();
        if reach.facts.len() != model.types.len() {
            *reach = Reach::new(model);
        }
        query(&reach)
    }
}

impl Model {
    /// Returns whether the fact applies to the type or to a type that it contains.
    pub(super) fn reaches(&self, id: TypeId, fact: Fact) -> bool {
        Reach::query(self, |reach| reach.facts[id.index()] & fact.bit() != 0)
    }

    /// Returns a local interface that is reachable from the type through members, elements, state and
    /// typedefs. Values of a type that contains one never leave the process.
    pub fn reachable_local_interface(&self, id: TypeId) -> Option<DefId> {
        Reach::query(self, |reach| reach.locals[id.index()])
    }

    fn applies_directly(&self, ty: &Type, fact: Fact) -> bool {
        let kind = match ty {
            Type::Named(def) => Some(&self.def(*def).kind),
            _ => None,
        };
        match fact {
            Fact::Float => matches!(ty, Type::Primitive(p) if p.is_float()),
            Fact::Reference => match ty {
                Type::Object | Type::Any | Type::ValueBase => true,
                _ => matches!(kind, Some(DefKind::Interface(_) | DefKind::Value(_))),
            },
            Fact::Value => match (ty, kind) {
                (Type::Any | Type::ValueBase, _) => true,
                (_, Some(DefKind::Interface(interface))) => interface.flavour == Flavour::Abstract,
                (_, kind) => matches!(kind, Some(DefKind::Value(_) | DefKind::ValueBox(_))),
            },
            Fact::Unhashable => {
                matches!(kind, Some(DefKind::Native))
                    || self.applies_directly(ty, Fact::Float)
                    || self.applies_directly(ty, Fact::Value)
            }
            Fact::VariableSize => match ty {
                Type::Primitive(p) => *p == Primitive::WChar,
                Type::Array { .. } => false,
                Type::Named(def) => match &self.def(*def).kind {
                    DefKind::Struct(_) => {
                        let members = self.all_struct_members(*def);
                        members.is_empty() || members.iter().any(|member| member.annotations.is_optional())
                    }
                    DefKind::Enum(_) | DefKind::Typedef(_) | DefKind::Bitset(_) | DefKind::Bitmask(_) => {
                        false
                    }
                    _ => true,
                },
                _ => true,
            },
        }
    }

    fn as_local_interface(&self, ty: &Type) -> Option<DefId> {
        let Type::Named(def) = ty else { return None };
        self.is_local_interface(*def).then_some(*def)
    }
}
