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
use crate::servant::poa_core::PoaCore;

/// A Portable Object Adapter (POA), which holds objects and determines how requests find their servants.
///
/// An object takes this memory in addition to its servant, measured with a million objects:
///
/// * 130 bytes if the POA chooses ids and serves only active objects;
/// * 126 bytes if the POA looks objects up by their ids;
/// * no memory if a default servant serves it.
///
/// Handles are cheap to clone. Two handles are equal if they refer to the same POA. A handle does not keep
/// the ORB open.
///
/// Source clause: "The Object Adapter / POA Interface".
#[doc(alias = "PortableServer::POA")]
#[derive(Clone)]
pub struct Poa {
    pub(crate) core: Arc<PoaCore>,
    pub(crate) orb: Arc<Shared>,
}

/// A POA manager with this id exists already.
///
/// Source clause: "The Object Adapter / POAManagerFactory Interface".
#[doc(alias = "PortableServer::POAManagerFactory::ManagerAlreadyExists")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a POA manager `{0}` exists already: use another id, or find the existing manager")]
pub struct ManagerAlreadyExists(pub String);

impl Request {
    /// Returns the POA of the called object, or `None` outside of a request.
    #[must_use]
    #[doc(alias = "get_POA")]
    pub fn poa(&self) -> Option<Poa> {
        let entry = self.entry()?;
        Some(Poa::new(Arc::clone(&entry.poa), self.core()))
    }
}

impl Poa {
    pub(crate) fn new(core: Arc<PoaCore>, orb: &Arc<Shared>) -> Self {
        Self { core, orb: Arc::clone(orb) }
    }

    /// Returns the name of the POA, which is unique among its siblings. The name of the root is `RootPOA`.
    #[must_use]
    #[doc(alias = "the_name")]
    pub fn name(&self) -> &str {
        &self.core.node().name
    }

    /// Returns the bytes that identify the POA within its ORB while it exists.
    #[must_use]
    pub fn id(&self) -> Vec<u8> {
        [self.core.node().path.as_path().as_slice(), &[0], &*self.core.node().lookup.key_prefix].concat()
    }

    /// Returns the parent of the POA, or `None` for the root.
    #[must_use]
    #[doc(alias = "the_parent")]
    pub fn parent(&self) -> Option<Self> {
        self.core.node().parent.upgrade().map(|core| Self::new(core, &self.orb))
    }

    /// Returns the children of the POA, sorted by name.
    #[must_use]
    #[doc(alias = "the_children")]
    pub fn children(&self) -> Vec<Self> {
        let mut children: Vec<_> = self.core.children().by_name.values().map(Arc::clone).collect();
        children.sort_by(|a, b| a.node().name.cmp(&b.node().name));
        children.into_iter().map(|core| Self::new(core, &self.orb)).collect()
    }

    /// Returns the POA's manager, which decides whether requests are served.
    #[must_use]
    #[doc(alias = "the_POAManager")]
    pub fn manager(&self) -> PoaManager {
        PoaManager::new(Arc::clone(&self.core.node().manager), Arc::clone(&self.orb))
    }

    /// Returns the POA's policies.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.core.node().policies
    }

    /// Returns the child with this name, or [`PoaError::AdapterNonExistent`].
    #[doc(alias = "find_POA")]
    pub fn find(&self, name: &str) -> Result<Self, PoaError> {
        let child = self.core.child(name).map(|core| Self::new(core, &self.orb));
        child.ok_or_else(|| PoaError::AdapterNonExistent(name.to_owned()))
    }

    /// Creates a child with a list of policies, as in other language mappings. [`child`](Self::child) is the
    /// alternative that checks policies at compile time. Without `manager`, the child gets a manager of its
    /// own, initially holding, with the id `NAME-manager` or `NAME-manager-2` and so on.
    ///
    /// # Errors
    /// * [`PoaError::InvalidPolicy`] with the index of an invalid policy.
    /// * [`PoaError::AdapterAlreadyExists`] if this POA has a child with this name.
    /// * `BAD_INV_ORDER` minor OMG 17 if this POA is being destroyed, and minor OMG 4 after the shutdown of
    ///   the ORB has begun.
    /// * `BAD_PARAM` for a name that is empty or longer than 255 bytes, or for a child more than 255 POAs
    ///   below the root. The same, with minor OMG 14, if the object keys would be too long.
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
            return adapter
                .create_poa(&self.core, name, policies, manager)
                .map(|core| Self::new(core, &self.orb));
        }
        let manager = create_own_manager(&self.orb, name);
        let created = adapter.create_poa(&self.core, name, policies, &manager);
        if created.is_err() {
            adapter.managers().remove(manager.id());
        }
        created.map(|core| Self::new(core, &self.orb))
    }

    /// Returns the reference of the object with this id, which need not be active.
    pub(crate) fn reference(&self, type_id: &str, id: &[u8]) -> ObjectRef {
        ObjectRef::own_with_key(&self.orb, type_id, ObjectKey::from(self.core.key(id).as_slice()), None)
    }
}

/// Creates a manager that only the new POA `name` uses.
fn create_own_manager(orb: &Shared, name: &str) -> Arc<ManagerCore> {
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
