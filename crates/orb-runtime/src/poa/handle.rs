//! The POA for programs.

use std::fmt;
use std::sync::Arc;

use super::core::PoaCore;
use super::manager::PoaManager;
use crate::orb::{Orb, OrbCore};

/// A Portable Object Adapter: it has objects, and decides how their requests find them.
///
/// Cheap to clone; clones are the same POA. A handle does not keep the ORB open.
///
/// Source clause: "The Object Adapter / POA Interface".
#[doc(alias = "PortableServer::POA")]
#[derive(Clone)]
pub struct Poa {
    core: Arc<PoaCore>,
    orb: Arc<OrbCore>,
}

impl Orb {
    /// The root POA, in which [`activate`](Self::activate) activates. Its manager, `RootPOAManager`, is active.
    #[doc(alias = "resolve_initial_references")]
    #[must_use]
    pub fn root_poa(&self) -> Poa {
        let orb = self.core();
        Poa { core: Arc::clone(orb.adapter().root()), orb: Arc::clone(orb) }
    }
}

impl Poa {
    /// Its name among the children of its parent; `RootPOA` for the root.
    #[must_use]
    #[doc(alias = "the_name")]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The manager that decides whether its requests are served.
    #[must_use]
    #[doc(alias = "the_POAManager")]
    pub fn manager(&self) -> PoaManager {
        PoaManager::new(Arc::clone(&self.core.manager), Arc::clone(&self.orb))
    }
}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poa").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl PartialEq for Poa {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl Eq for Poa {}
