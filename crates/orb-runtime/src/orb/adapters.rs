//! Access to the POAs and POA managers of an ORB, and to the ORB of a request.

use std::sync::Arc;

use crate::orb::Orb;
use crate::poa::manager::{ManagerCore, PoaManager, PoaManagerState};
use crate::poa::{ManagerAlreadyExists, Poa};
use crate::servant::Request;

impl Orb {
    /// Returns the root POA, which also has the objects of [`activate`](Self::activate). Its manager,
    /// `RootPOAManager`, is active.
    #[doc(alias = "resolve_initial_references")]
    #[must_use]
    pub fn root_poa(&self) -> Poa {
        Poa::new(Arc::clone(self.core().adapter().root()), self.core())
    }

    /// Creates a POA manager in the holding state. Pass it to the builders of the POAs that it is to manage.
    ///
    /// # Errors
    /// [`ManagerAlreadyExists`] if a manager has this id.
    #[doc(alias = "create_POAManager")]
    pub fn create_poa_manager(&self, id: &str) -> Result<PoaManager, ManagerAlreadyExists> {
        let orb = self.core();
        let mut managers = orb.adapter().managers();
        if managers.contains_key(id) {
            return Err(ManagerAlreadyExists(id.to_owned()));
        }
        let core = ManagerCore::new(id, PoaManagerState::Holding, false);
        managers.insert(id.into(), Arc::clone(&core));
        Ok(PoaManager::new(core, Arc::clone(orb)))
    }

    /// Returns the POA manager with this id.
    #[doc(alias = "PortableServer::POAManagerFactory::find")]
    #[must_use]
    pub fn find_poa_manager(&self, id: &str) -> Option<PoaManager> {
        let orb = self.core();
        let core = orb.adapter().managers().get(id).map(Arc::clone);
        core.map(|core| PoaManager::new(core, Arc::clone(orb)))
    }

    /// Returns all POA managers, sorted by id.
    #[doc(alias = "PortableServer::POAManagerFactory::list")]
    #[must_use]
    pub fn poa_managers(&self) -> Vec<PoaManager> {
        let orb = self.core();
        let mut all: Vec<_> = orb.adapter().managers().values().map(Arc::clone).collect();
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all.into_iter().map(|core| PoaManager::new(core, Arc::clone(orb))).collect()
    }
}

impl Request {
    /// Returns the ORB that serves the request.
    #[must_use]
    pub fn orb(&self) -> Orb {
        Orb::from_core(self.core())
    }
}
