//! The types and interfaces that an ORB learns at run time, and the hook for an Interface Repository.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use giop_codec::any::Any;
use giop_codec::cdr::InvalidText;
use giop_codec::ior::Ior;
use giop_codec::typecode::{TypeCode, TypeCodeCache};
use giop_codec::value::{DecodeContext, Factories, ValueTypes};

use crate::dynamic::cache::BoundedTypeCodeCache;
use crate::dynamic::offload::OffloadPermits;
use crate::orb::Orb;
use crate::runtime::Shared;

/// A source of interface descriptions, for clients that request them from objects of the ORB.
pub trait InterfaceSource: Send + Sync + 'static {
    /// Returns the result of `_interface`: a reference to the `InterfaceDef` of the interface with this
    /// repository id, or `None` if this source does not have the interface.
    fn interface(&self, orb: &Orb, repository_id: &str) -> Option<Ior>;

    /// Returns the result of `omg_get_ifr_metadata` for this interface, or `None` to raise BAD_OPERATION.
    fn metadata(&self, orb: &Orb, repository_id: &str) -> Option<Any>;
}

/// The types and interfaces that an ORB knows in addition to the types of generated code.
#[derive(Default)]
pub(crate) struct RuntimeTypes {
    pub(crate) type_codes: BoundedTypeCodeCache,
    pub(super) offload_permits: OffloadPermits,
    source: RwLock<Option<Arc<dyn InterfaceSource>>>,
    value_types: RwLock<ValueTypes>,
}

impl RuntimeTypes {
    pub(crate) fn interface_source(&self) -> Option<Arc<dyn InterfaceSource>> {
        self.source.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the [added](Orb::add_value_types) type with this repository id.
    pub(crate) fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.value_types.read().unwrap_or_else(PoisonError::into_inner).find(repository_id).cloned()
    }

    #[cfg(feature = "serde")]
    pub(super) fn value_types(&self) -> ValueTypes {
        self.value_types.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for RuntimeTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeTypes")
            .field("has_source", &self.interface_source().is_some())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn runtime_types(&self) -> &RuntimeTypes {
        self.extensions.interfaces.get_or_default()
    }
}

/// Decoded references belong to this ORB. Values are decoded with its value types and factories.
impl DecodeContext for Shared {
    fn factories(&self) -> Option<&Factories> {
        Some(&self.config.value_factories)
    }

    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.runtime_types().value_type(repository_id)
    }

    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        Some(&self.runtime_types().type_codes)
    }

    fn invalid_text(&self) -> InvalidText {
        self.config.connection.invalid_text
    }
}

impl Orb {
    /// Adds value types that are known only by their type codes. Dynamic calls, dynamic servants and the JSON
    /// reader accept values of these types where a base type is expected. A type that is also
    /// [registered](crate::OrbBuilder::register_value_type) is decoded to its Rust type.
    pub fn add_value_types(&self, types: &ValueTypes) {
        let mut all = self.core().runtime_types().value_types.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(types.into_iter().cloned());
    }

    /// Sets or replaces the source of interface descriptions. The operations `_interface` and
    /// `omg_get_ifr_metadata` of all objects use it.
    ///
    /// Without a source, `_interface` raises INTF_REPOS minor OMG 1. For an interface that the source does
    /// not have, it raises INTF_REPOS minor OMG 2. In both cases, `omg_get_ifr_metadata` raises
    /// BAD_OPERATION.
    pub fn set_interface_source(&self, source: Arc<dyn InterfaceSource>) {
        *self.core().runtime_types().source.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }
}
