//! What tells clients about the interfaces of an ORB's objects: the hook of an Interface Repository.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use giop_codec::any::Any;
use giop_codec::ior::Ior;
use giop_codec::typecode::TypeCode;
use giop_codec::value::ValueTypes;

use super::cache::TypeCodes;
use super::offload::Permits;
use crate::orb::Orb;

/// Where an ORB finds descriptions of interfaces for clients that ask its objects for them.
pub trait InterfaceSource: Send + Sync + 'static {
    /// The `InterfaceDef` of the interface of that repository id, which `_interface` gives; `None` where there is none.
    fn interface(&self, orb: &Orb, repository_id: &str) -> Option<Ior>;

    /// What `omg_get_ifr_metadata` gives of that interface; `None` where there is nothing: then it gets BAD_OPERATION.
    fn metadata(&self, orb: &Orb, repository_id: &str) -> Option<Any>;
}

/// What an ORB knows of types and interfaces beside those that are compiled.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) type_codes: TypeCodes,
    /// For work on large values of any type.
    pub(super) permits: Permits,
    source: RwLock<Option<Arc<dyn InterfaceSource>>>,
    values: RwLock<ValueTypes>,
}

impl Known {
    /// Who describes interfaces.
    pub(crate) fn source(&self) -> Option<Arc<dyn InterfaceSource>> {
        self.source.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The type with that repository id, of those that were [added](Orb::add_value_types).
    pub(crate) fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.values.read().unwrap_or_else(PoisonError::into_inner).find(repository_id).cloned()
    }

    /// All that were added.
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

impl Orb {
    /// Adds value types that are known by their type codes alone, such as those of IDL that is read at run time: dynamic calls and servants, and what reads
    /// JSON for them, take values of these where a base of theirs is expected. A type that is
    /// [registered](crate::OrbBuilder::value) too is read by its Rust type.
    pub fn add_value_types(&self, types: &ValueTypes) {
        let mut all = self.core().known.values.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(types.into_iter().cloned());
    }

    /// Sets who describes the interfaces of this ORB's objects, in place of whoever did: `_interface` and `omg_get_ifr_metadata` of every object ask
    /// there. Without one they raise INTF_REPOS OMG 1 and BAD_OPERATION, for an interface that it has not INTF_REPOS OMG 2 and BAD_OPERATION.
    pub fn set_interface_source(&self, source: Arc<dyn InterfaceSource>) {
        *self.core().known.source.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }
}
