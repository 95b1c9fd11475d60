//! The POA for programs.

use std::fmt;
use std::sync::Arc;

use giop_codec::giop::ObjectKey;

use super::core::PoaCore;
use super::error::PoaError;
use super::manager::{ManagerCore, PoaManager, PoaManagerState};
use super::policies::Policies;
use super::policy::Policy;
use crate::orb::{Orb, OrbCore};
use crate::reference::ObjectRef;

/// A Portable Object Adapter: it has objects, and decides how their requests find them.
///
/// Of a million objects each takes 130 octets beside its servant where the POA chooses ids and only what was activated is served, 126 where it
/// is found by its id, and none where a default servant stands for it.
///
/// Cheap to clone; clones are the same POA, and two handles are equal if they are of the same. A handle does not keep the ORB open.
///
/// Source clause: "The Object Adapter / POA Interface".
#[doc(alias = "PortableServer::POA")]
#[derive(Clone)]
pub struct Poa {
    pub(super) core: Arc<PoaCore>,
    pub(super) orb: Arc<OrbCore>,
}

impl Orb {
    /// The root POA, in which [`activate`](Self::activate) activates. Its manager, `RootPOAManager`, is active.
    #[doc(alias = "resolve_initial_references")]
    #[must_use]
    pub fn root_poa(&self) -> Poa {
        Poa::new(Arc::clone(self.core().adapter().root()), self.core())
    }

    /// Makes a POA manager, which holds. The POAs that it manages are named when they are created.
    ///
    /// # Errors
    /// [`ManagerAlreadyExists`]: a manager has the id.
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

    /// The POA manager of that id.
    #[doc(alias = "PortableServer::POAManagerFactory::find")]
    #[must_use]
    pub fn find_poa_manager(&self, id: &str) -> Option<PoaManager> {
        let orb = self.core();
        let core = orb.adapter().managers().get(id).map(Arc::clone);
        core.map(|core| PoaManager::new(core, Arc::clone(orb)))
    }

    /// All POA managers, by their ids.
    #[doc(alias = "PortableServer::POAManagerFactory::list")]
    #[must_use]
    pub fn poa_managers(&self) -> Vec<PoaManager> {
        let orb = self.core();
        let mut all: Vec<_> = orb.adapter().managers().values().map(Arc::clone).collect();
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all.into_iter().map(|core| PoaManager::new(core, Arc::clone(orb))).collect()
    }
}

/// A POA manager has the id.
///
/// Source clause: "The Object Adapter / POAManagerFactory Interface".
#[doc(alias = "PortableServer::POAManagerFactory::ManagerAlreadyExists")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is a POA manager `{0}` already: take another id, or find it")]
pub struct ManagerAlreadyExists(pub String);

impl Poa {
    pub(crate) fn new(core: Arc<PoaCore>, orb: &Arc<OrbCore>) -> Self {
        Self { core, orb: Arc::clone(orb) }
    }

    /// Its name among the children of its parent; `RootPOA` for the root.
    #[must_use]
    #[doc(alias = "the_name")]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The octets that tell it from all other POAs of the ORB, as long as it is there.
    #[must_use]
    pub fn id(&self) -> Vec<u8> {
        [self.core.path.as_path().as_slice(), &[0], &*self.core.prefix].concat()
    }

    /// The POA below which it was created; `None` of the root.
    #[must_use]
    #[doc(alias = "the_parent")]
    pub fn parent(&self) -> Option<Self> {
        self.core.parent.upgrade().map(|core| self.of(core))
    }

    /// The POAs that were created below it, by their names.
    #[must_use]
    #[doc(alias = "the_children")]
    pub fn children(&self) -> Vec<Self> {
        let mut children: Vec<_> = self.core.family().children.values().map(Arc::clone).collect();
        children.sort_by(|a, b| a.name.cmp(&b.name));
        children.into_iter().map(|core| self.of(core)).collect()
    }

    /// The manager that decides whether its requests are served.
    #[must_use]
    #[doc(alias = "the_POAManager")]
    pub fn manager(&self) -> PoaManager {
        PoaManager::new(Arc::clone(&self.core.manager), Arc::clone(&self.orb))
    }

    /// Its policies.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.core.policies
    }

    /// The child of that name.
    ///
    /// # Errors
    /// [`PoaError::AdapterNonExistent`].
    #[doc(alias = "find_POA")]
    pub fn find(&self, name: &str) -> Result<Self, PoaError> {
        let child = self.core.child(name).map(|core| self.of(core));
        child.ok_or_else(|| PoaError::AdapterNonExistent(name.to_owned()))
    }

    /// Creates a child by a list of policies, as in other languages; [`child`](Self::child) makes one whose policies the compiler
    /// looks at. Without a manager it gets one of its own, which holds, and has the id `NAME-manager` or one like it.
    ///
    /// # Errors
    /// [`PoaError::InvalidPolicy`] with the index of a policy that can not be; [`PoaError::AdapterAlreadyExists`]; `BAD_INV_ORDER` minor OMG 17 of a
    /// POA that is being destroyed; `BAD_PARAM` for a name that is empty, longer than 255 octets, or more than 255 POAs below the root.
    ///
    /// Source clause: "The Object Adapter / POA Interface" (`create_POA`).
    #[doc(alias = "create_POA")]
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<&PoaManager>,
        policies: &[Policy],
    ) -> Result<Self, PoaError> {
        let policies = Policies::from_list(policies)?;
        self.create(name, policies, manager.map(PoaManager::core))
    }

    pub(super) fn create(
        &self,
        name: &str,
        policies: Policies,
        manager: Option<&Arc<ManagerCore>>,
    ) -> Result<Self, PoaError> {
        if self.orb.is_closing() {
            return Err(PoaError::shut_down());
        }
        let adapter = self.orb.adapter();
        if let Some(manager) = manager {
            return adapter.create_poa(&self.core, name, policies, manager).map(|core| self.of(core));
        }
        let manager = own_manager(&self.orb, name);
        let created = adapter.create_poa(&self.core, name, policies, &manager);
        if created.is_err() {
            adapter.managers().remove(manager.id());
        }
        created.map(|core| self.of(core))
    }

    pub(super) fn of(&self, core: Arc<PoaCore>) -> Self {
        Self::new(core, &self.orb)
    }

    /// The reference of an object that has, or gets, the id.
    pub(super) fn reference(&self, type_id: &str, id: &[u8]) -> ObjectRef {
        ObjectRef::of_key(&self.orb, type_id, ObjectKey::from(self.core.key(id).as_slice()), None)
    }
}

/// A manager for one POA.
fn own_manager(orb: &OrbCore, name: &str) -> Arc<ManagerCore> {
    let mut managers = orb.adapter().managers();
    let mut id = format!("{name}-manager");
    let mut number = 1_u64;
    while managers.contains_key(id.as_str()) {
        number += 1;
        id = format!("{name}-manager-{number}");
    }
    let manager = ManagerCore::new(id.as_str(), PoaManagerState::Holding, true);
    managers.insert(id.into(), Arc::clone(&manager));
    manager
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
