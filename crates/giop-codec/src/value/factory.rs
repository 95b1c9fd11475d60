//! [`Factories`]: the value types of a program, and the operations on a type of which only the id is known.

use core::any::Any;
use core::fmt;
use std::collections::HashMap;

use super::graph::Node;
use super::{ValueBase, ValueType};
use crate::typecode::{TypeCode, TypeDesc};

/// A cast of a state to one of its bases, or to one of its traits of operations.
pub(super) type CastFn<T> = for<'a> fn(&'a dyn Any) -> Option<&'a T>;

/// A factory for the states of one value type, with further properties of the type.
pub struct Factory {
    pub(super) repository_id: &'static str,
    pub(super) truncatable: &'static [&'static str],
    pub(super) custom: bool,
    /// Number of parts up to the end of each concrete base.
    pub(super) base_ends: &'static [u32],
    pub(super) size: usize,
    pub(super) new: fn() -> Box<dyn Node>,
    /// The type code, for anys.
    pub(super) type_desc: Option<&'static TypeDesc>,
    casts: fn(&mut Casts<'_>),
}

impl Factory {
    /// Creates the factory of `V`.
    pub const fn of<V: ValueType>() -> Factory {
        Factory {
            repository_id: V::REPOSITORY_ID,
            truncatable: V::TRUNCATABLE,
            custom: V::CUSTOM,
            base_ends: V::BASE_PARTS,
            size: size_of::<V>(),
            new: || Box::new(V::default()),
            type_desc: V::TYPE,
            casts: V::casts,
        }
    }

    /// Returns the cast to `T`, if the type has one.
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

/// The requested cast from a type, and the place for it: see [`ValueType::casts`].
pub struct Casts<'a> {
    found: &'a mut dyn Any,
}

impl Casts<'_> {
    /// Offers a cast to `T`.
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

/// The value types that a peer may send where one of their bases is expected ("Value Factories").
///
/// The declared type of a place needs no entry.
#[derive(Clone, Debug, Default)]
pub struct Factories {
    by_id: HashMap<&'static str, &'static Factory>,
}

impl Factories {
    /// Registers the type `V`.
    pub fn register<V: ValueType>(&mut self) {
        self.add(V::STATE_FACTORY);
    }

    pub(super) fn add(&mut self, factory: &'static Factory) {
        self.by_id.insert(factory.repository_id, factory);
    }

    pub(super) fn find(&self, repository_id: &str) -> Option<&'static Factory> {
        self.by_id.get(repository_id).copied()
    }
}

/// The types of locally created values, needed to read them again in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalTypes {
    pub(super) factories: Factories,
    /// Type codes of values that were written without their Rust types.
    pub(super) codes: HashMap<Box<str>, TypeCode>,
}

impl LocalTypes {
    pub(crate) fn is_empty(&self) -> bool {
        self.factories.by_id.is_empty() && self.codes.is_empty()
    }

    /// Adds all types of `other`. If two type codes have one id, the first is kept.
    pub(super) fn merge(&mut self, other: &LocalTypes) {
        self.factories.by_id.extend(&other.factories.by_id);
        other.codes.iter().for_each(|(id, code)| self.add_code(id, code));
    }

    pub(super) fn add_code(&mut self, id: &str, code: &TypeCode) {
        if !self.codes.contains_key(id) {
            self.codes.insert(id.into(), code.clone());
        }
    }
}
