//! [`Factories`]: the value types that a program knows, and what can be done with one of which only the id is known.

use core::any::Any;
use core::fmt;
use std::collections::HashMap;

use super::graph::Node;
use super::{ValueBase, ValueType};
use crate::typecode::{TypeCode, TypeDesc};

/// The way from a state to one of its bases, or to itself as a trait.
pub(super) type CastFn<T> = for<'a> fn(&'a dyn Any) -> Option<&'a T>;

/// Makes states of one value type, and knows what else is known about it.
pub struct Factory {
    pub(super) repository_id: &'static str,
    pub(super) truncatable: &'static [&'static str],
    pub(super) custom: bool,
    /// How many parts are before the end of each concrete base.
    pub(super) base_parts: &'static [u32],
    /// Octets of a state in memory.
    pub(super) size: usize,
    pub(super) new: fn() -> Box<dyn Node>,
    /// What it says of itself in anys.
    pub(super) desc: Option<&'static TypeDesc>,
    casts: fn(&mut Casts<'_>),
}

impl Factory {
    /// That of `V`.
    pub const fn of<V: ValueType>() -> Factory {
        Factory {
            repository_id: V::REPOSITORY_ID,
            truncatable: V::TRUNCATABLE,
            custom: V::CUSTOM,
            base_parts: V::BASE_PARTS,
            size: size_of::<V>(),
            new: || Box::new(V::default()),
            desc: V::TYPE,
            casts: V::casts,
        }
    }

    /// The way to `T`, if the type has one.
    pub(super) fn cast<T: ?Sized + 'static>(&self) -> Option<CastFn<T>> {
        let mut found: Option<CastFn<T>> = None;
        let mut casts = Casts { found: &mut found };
        casts.offer::<ValueBase>(|_| Some(&ValueBase));
        (self.casts)(&mut casts);
        found
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Factory").field(&self.repository_id).finish()
    }
}

/// Takes the one way from a type that is looked for: see [`ValueType::casts`].
pub struct Casts<'a> {
    found: &'a mut dyn Any,
}

impl Casts<'_> {
    /// Offers the way to `T`.
    pub fn offer<T: ?Sized + 'static>(&mut self, cast: for<'a> fn(&'a dyn Any) -> Option<&'a T>) {
        if let Some(found) = self.found.downcast_mut::<Option<CastFn<T>>>() {
            *found = Some(cast);
        }
    }
}

impl fmt::Debug for Casts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Casts").finish_non_exhaustive()
    }
}

/// The value types that a peer may send where a base of theirs is expected ("Value Factories").
///
/// The static type of a place needs no entry.
#[derive(Clone, Debug, Default)]
pub struct Factories {
    by_id: HashMap<&'static str, &'static Factory>,
}

impl Factories {
    /// Adds the type `V`.
    pub fn register<V: ValueType>(&mut self) {
        self.add(V::MAKER);
    }

    pub(super) fn add(&mut self, factory: &'static Factory) {
        self.by_id.insert(factory.repository_id, factory);
    }

    /// Adds what the other one has.
    pub(super) fn merge(&mut self, other: &Factories) {
        other.by_id.values().for_each(|factory| self.add(factory));
    }

    pub(super) fn find(&self, repository_id: &str) -> Option<&'static Factory> {
        self.by_id.get(repository_id).copied()
    }
}

/// The types of values that were made here, for whoever reads them again in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made {
    pub(super) factories: Factories,
    /// Of values that were trees.
    codes: HashMap<Box<str>, TypeCode>,
}

impl Made {
    /// Whether it has none.
    pub(crate) fn is_empty(&self) -> bool {
        self.factories.by_id.is_empty() && self.codes.is_empty()
    }

    /// Adds what the other one has. Of two type codes with one id the first is kept.
    pub(super) fn merge(&mut self, other: &Made) {
        self.factories.merge(&other.factories);
        other.codes.iter().for_each(|(id, code)| self.add_code(id, code));
    }

    pub(super) fn add_code(&mut self, id: &str, code: &TypeCode) {
        if !self.codes.contains_key(id) {
            self.codes.insert(id.into(), code.clone());
        }
    }

    pub(super) fn code(&self, id: &str) -> Option<&TypeCode> {
        self.codes.get(id)
    }
}
