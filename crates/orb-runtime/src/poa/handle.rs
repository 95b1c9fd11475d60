//! The public handle of a POA.

use std::fmt;
use std::sync::Arc;

use giop_codec::giop::ObjectKey;

use crate::poa::error::PoaError;
use crate::poa::manager::{ManagerCore, PoaManager, PoaManagerState};
use crate::poa::policies::Policies;
use crate::poa::policy::Policy;
use crate::reference::ObjectRef;
use crate::runtime::Shared;
use crate::servant::Request;
use crate::servant::poa_gate::PoaGate;

/// A Portable Object Adapter: holds objects and decides how requests find them.
///
/// Measured with a million objects, each takes 130 bytes besides its servant if the POA chooses ids and
/// serves active objects only. It takes 126 bytes if it is looked up by its id, and none if a default servant
/// serves it.
///
/// Cheap to clone; clones are the same POA. Two handles are equal if they refer to the same POA. A handle
/// does not keep the ORB open.
///
/// Source clause: "The Object Adapter / POA Interface".
#[doc(alias = "PortableServer::POA")]
#[derive(Clone)]
pub struct Poa {
    pub(crate) core: Arc<PoaGate>,
    pub(crate) orb: Arc<Shared>,
}

/// A POA manager has the id already.
///
/// Source clause: "The Object Adapter / POAManagerFactory Interface".
#[doc(alias = "PortableServer::POAManagerFactory::ManagerAlreadyExists")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is a POA manager `{0}` already: take another id, or find it")]
pub struct ManagerAlreadyExists(pub String);

impl Request {
    /// Returns the POA of the object. `None` if no request is being served.
    #[must_use]
    #[doc(alias = "get_POA")]
    pub fn poa(&self) -> Option<Poa> {
        let entry = self.entry()?;
        Some(Poa::new(Arc::clone(&entry.poa), self.core()))
    }
}

impl Poa {
    pub(crate) fn new(core: Arc<PoaGate>, orb: &Arc<Shared>) -> Self {
        Self { core, orb: Arc::clone(orb) }
    }

    /// Returns its name among the children of its parent; `RootPOA` for the root.
    #[must_use]
    #[doc(alias = "the_name")]
    pub fn name(&self) -> &str {
        &self.core.node().name
    }

    /// Returns the bytes that identify the POA within its ORB while it exists.
    #[must_use]
    pub fn id(&self) -> Vec<u8> {
        [self.core.node().path.as_path().as_slice(), &[0], &*self.core.node().keys.prefix].concat()
    }

    /// Returns the POA below which it was created; `None` for the root.
    #[must_use]
    #[doc(alias = "the_parent")]
    pub fn parent(&self) -> Option<Self> {
        self.core.node().parent.upgrade().map(|core| self.of(core))
    }

    /// Returns its children, sorted by name.
    #[must_use]
    #[doc(alias = "the_children")]
    pub fn children(&self) -> Vec<Self> {
        let mut children: Vec<_> = self.core.family().children.values().map(Arc::clone).collect();
        children.sort_by(|a, b| a.node().name.cmp(&b.node().name));
        children.into_iter().map(|core| self.of(core)).collect()
    }

    /// Returns the manager that decides whether its requests are served.
    #[must_use]
    #[doc(alias = "the_POAManager")]
    pub fn manager(&self) -> PoaManager {
        PoaManager::new(Arc::clone(&self.core.node().manager), Arc::clone(&self.orb))
    }

    /// Returns its policies.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.core.node().policies
    }

    /// Returns the child of that name.
    ///
    /// # Errors
    /// [`PoaError::AdapterNonExistent`].
    #[doc(alias = "find_POA")]
    pub fn find(&self, name: &str) -> Result<Self, PoaError> {
        let child = self.core.child(name).map(|core| self.of(core));
        child.ok_or_else(|| PoaError::AdapterNonExistent(name.to_owned()))
    }

    /// Creates a child with a list of policies, as in other language mappings. [`child`](Self::child) creates
    /// one whose policies are checked at compile time. Without `manager`, the child gets a manager of its
    /// own, initially holding, with the id `NAME-manager` or a numbered variant.
    ///
    /// # Errors
    /// * [`PoaError::InvalidPolicy`] with the index of an invalid policy.
    /// * [`PoaError::AdapterAlreadyExists`].
    /// * `BAD_INV_ORDER` minor OMG 17 if this POA is being destroyed.
    /// * `BAD_PARAM` for a name that is empty or longer than 255 bytes, or for a child more than 255 POAs
    ///   below the root.
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

    pub(crate) fn create(
        &self,
        name: &str,
        policies: Policies,
        manager: Option<&Arc<ManagerCore>>,
    ) -> Result<Self, PoaError> {
        if self.orb.closing.has_begun() {
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

    pub(crate) fn of(&self, core: Arc<PoaGate>) -> Self {
        Self::new(core, &self.orb)
    }

    /// Returns the reference of an object that has, or will have, the id.
    pub(crate) fn reference(&self, type_id: &str, id: &[u8]) -> ObjectRef {
        ObjectRef::of_key(&self.orb, type_id, ObjectKey::from(self.core.key(id).as_slice()), None)
    }
}

/// Creates a manager for one POA.
fn own_manager(orb: &Shared, name: &str) -> Arc<ManagerCore> {
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
