//! Descriptions of an ORB's interfaces for clients: the hook for an Interface Repository.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use giop_codec::any::Any;
use giop_codec::cdr::InvalidText;
use giop_codec::ior::Ior;
use giop_codec::typecode::{TypeCode, TypeCodeCache};
use giop_codec::value::{DecodeContext, Factories, ValueTypes};

use crate::dynamic::cache::TypeCodes;
use crate::dynamic::offload::Permits;
use crate::orb::Orb;
use crate::runtime::Shared;

/// A source of interface descriptions for clients that ask the ORB's objects for them.
pub trait InterfaceSource: Send + Sync + 'static {
    /// Returns the `InterfaceDef` of the interface with that repository id, for `_interface`; `None` if there
    /// is none.
    fn interface(&self, orb: &Orb, repository_id: &str) -> Option<Ior>;

    /// Returns the result of `omg_get_ifr_metadata` for that interface. `None` raises BAD_OPERATION.
    fn metadata(&self, orb: &Orb, repository_id: &str) -> Option<Any>;
}

/// The types and interfaces that an ORB knows in addition to those that are compiled.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) type_codes: TypeCodes,
    /// Permits for work on large values of any type.
    pub(super) permits: Permits,
    source: RwLock<Option<Arc<dyn InterfaceSource>>>,
    values: RwLock<ValueTypes>,
}

impl Known {
    /// Returns the source of interface descriptions.
    pub(crate) fn source(&self) -> Option<Arc<dyn InterfaceSource>> {
        self.source.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the type with that repository id, among those that were [added](Orb::add_value_types).
    pub(crate) fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.values.read().unwrap_or_else(PoisonError::into_inner).find(repository_id).cloned()
    }

    /// Returns all types that were added.
    #[cfg(feature = "serde")]
    pub(super) fn value_types(&self) -> ValueTypes {
        self.values.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("has_source", &self.source().is_some()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Returns the types and interfaces that are known at run time.
    pub(crate) fn known(&self) -> &Known {
        self.extensions.interfaces.get_or_default()
    }
}

/// Gives decoded references their ORB, and access to its registered value types.
impl DecodeContext for Shared {
    fn factories(&self) -> Option<&Factories> {
        Some(&self.config.values)
    }

    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.known().value_type(repository_id)
    }

    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        Some(&self.known().type_codes)
    }

    fn invalid_text(&self) -> InvalidText {
        self.config.connection.invalid_text
    }
}

impl Orb {
    /// Adds value types that are known only by their type codes, such as those of IDL that is read at run
    /// time. Dynamic calls and servants, and the JSON reader for them, accept values of these types where a
    /// base type is expected. A type that is also [registered](crate::OrbBuilder::register_value_type) is
    /// read as its Rust type.
    pub fn add_value_types(&self, types: &ValueTypes) {
        let mut all = self.core().known().values.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(types.into_iter().cloned());
    }

    /// Sets or replaces the source of interface descriptions, which `_interface` and `omg_get_ifr_metadata`
    /// of every object query.
    ///
    /// Without a source, they raise INTF_REPOS OMG 1 and BAD_OPERATION. For an interface that the source does
    /// not have, they raise INTF_REPOS OMG 2 and BAD_OPERATION.
    pub fn set_interface_source(&self, source: Arc<dyn InterfaceSource>) {
        *self.core().known().source.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }
}
