//! [`Factories`]: the value types of a program, by repository id.

use core::any::Any;
use core::fmt;
use std::collections::HashMap;

use super::graph::Node;
use super::{ValueBase, ValueType};
use crate::typecode::{TypeCode, TypeDesc};

/// A cast of a value's state to its own type, to one of its bases, or to a trait with operations of its type.
pub(super) type CastFn<T> = for<'a> fn(&'a dyn Any) -> Option<&'a T>;

/// A factory for the states of one value type, with further properties of the type.
pub struct Factory {
    pub(super) repository_id: &'static str,
    /// The ids of the bases to which a receiver may truncate a value.
    pub(super) truncatable_bases: &'static [&'static str],
    pub(super) is_custom: bool,
    /// The number of parts up to the end of each concrete base.
    pub(super) base_ends: &'static [u32],
    pub(super) size: usize,
    pub(super) new: fn() -> Box<dyn Node>,
    /// The description of the type, which anys need.
    pub(super) type_desc: Option<&'static TypeDesc>,
    casts: fn(&mut Casts<'_>),
}

impl Factory {
    /// Creates the factory of `V`.
    pub const fn of<V: ValueType>() -> Factory {
        Factory {
            repository_id: V::REPOSITORY_ID,
            truncatable_bases: V::TRUNCATABLE_BASES,
            is_custom: V::IS_CUSTOM,
            base_ends: V::BASE_PART_COUNTS,
            size: size_of::<V>(),
            new: || Box::new(V::default()),
            type_desc: V::TYPE,
            casts: V::casts,
        }
    }

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

/// A search for the cast from a value type to a requested type: see [`ValueType::casts`].
pub struct Casts<'a> {
    found: &'a mut dyn Any,
}

impl Casts<'_> {
    /// Offers a cast to `T`, which is taken if `T` is the requested type.
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
/// The declared type of a member or parameter needs no entry.
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

/// The types of values that were created in this process, by which they can be read again from an any.
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

    /// Adds all types of `other`. If there is already a type code with the same id, it is kept.
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
