//! The builder of POAs. Invalid combinations of policies do not compile.

use std::fmt;
use std::marker::PhantomData;

use crate::poa::error::PoaError;
use crate::poa::handle::Poa;
use crate::poa::manager::PoaManager;
use crate::poa::node::ChildInitGuard;
use crate::poa::policies::Policies;
use crate::poa::policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy,
    RequestProcessingPolicy, ServantRetentionPolicy, ThreadModel,
};
use crate::poa::servants::{ServantActivator, ServantLocator};
use crate::servant::Servant;

/// The types for the parameter `Ids` of [`PoaBuilder`]: how ids are assigned.
pub mod ids {
    /// The POA chooses ids (SYSTEM_ID).
    #[derive(Debug)]
    pub enum System {}
    /// The program chooses ids (USER_ID).
    #[derive(Debug)]
    pub enum User {}
    /// The POA chooses ids, and activates a servant when the program asks for its reference
    /// (SYSTEM_ID, IMPLICIT_ACTIVATION).
    #[derive(Debug)]
    pub enum Implicit {}

    /// An assignment of ids without implicit activation, which a POA without an active object map requires.
    pub trait NoImplicit {}
    impl NoImplicit for System {}
    impl NoImplicit for User {}
}

/// The types for the parameter `Serving` of [`PoaBuilder`]: how a request finds its servant.
pub mod serving {
    /// Active objects only (RETAIN, USE_ACTIVE_OBJECT_MAP_ONLY).
    #[derive(Debug)]
    pub enum Map {}
    /// Active objects, and a default servant for all other objects (RETAIN, USE_DEFAULT_SERVANT).
    #[derive(Debug)]
    pub enum MapOrDefault {}
    /// Active objects, and a servant activator for all other objects (RETAIN, USE_SERVANT_MANAGER).
    #[derive(Debug)]
    pub enum Activator {}
    /// A servant locator (NON_RETAIN, USE_SERVANT_MANAGER).
    #[derive(Debug)]
    pub enum Locator {}
    /// A default servant (NON_RETAIN, USE_DEFAULT_SERVANT).
    #[derive(Debug)]
    pub enum DefaultOnly {}
}

/// Creates a POA: `root.child("accounts").user_ids().persistent().create()?`.
///
/// `Ids` is one of the types in [`ids`], and `Serving` one of the types in [`serving`]. Policies have the
/// defaults of the standard. By default, the POA has the manager of its parent.
///
/// ```
/// # use orb_runtime::Orb;
/// # async fn example(orb: &Orb) -> Result<(), orb_runtime::poa::PoaError> {
/// let accounts = orb.root_poa().child("accounts").user_ids().persistent().create()?;
/// # let _ = accounts;
/// # Ok(())
/// # }
/// ```
///
/// Combinations that the standard forbids do not compile. Implicit activation requires that the POA chooses
/// the ids:
///
/// ```compile_fail,E0599
/// # use orb_runtime::Orb;
/// # fn example(orb: &Orb) {
/// let poa = orb.root_poa().child("p").implicit_activation().user_ids();
/// # }
/// ```
///
/// Implicit activation requires an active object map:
///
/// ```compile_fail,E0599
/// # use orb_runtime::{Orb, Servant};
/// # fn example(orb: &Orb, servant: Servant) {
/// let poa = orb.root_poa().child("p").implicit_activation().default_servant(servant).without_map();
/// # }
/// ```
///
/// A POA without an active object map requires a default servant or a servant locator:
///
/// ```compile_fail,E0599
/// # use orb_runtime::Orb;
/// # fn example(orb: &Orb) {
/// let poa = orb.root_poa().child("p").without_map();
/// # }
/// ```
#[must_use = "no POA is created until `create` is called"]
pub struct PoaBuilder<Ids, Serving> {
    parent: Poa,
    name: String,
    policies: Policies,
    manager: ManagerChoice,
    initialize: Option<Initializer>,
    types: PhantomData<fn() -> (Ids, Serving)>,
}

type Initializer = Box<dyn FnOnce(&Poa) -> Result<(), PoaError> + Send>;

enum ManagerChoice {
    OfParent,
    New,
    Given(PoaManager),
}

impl Poa {
    /// Returns a builder of a child with this name, which must have 1 to 255 bytes.
    pub fn child(&self, name: impl Into<String>) -> PoaBuilder<ids::System, serving::Map> {
        PoaBuilder {
            parent: self.clone(),
            name: name.into(),
            policies: Policies::default(),
            manager: ManagerChoice::OfParent,
            initialize: None,
            types: PhantomData,
        }
    }
}

impl<Ids, Serving> PoaBuilder<Ids, Serving> {
    fn with_types<I, S>(self) -> PoaBuilder<I, S> {
        let Self { parent, name, policies, manager, initialize, types: _ } = self;
        PoaBuilder { parent, name, policies, manager, initialize, types: PhantomData }
    }

    /// Makes references outlive the process (PERSISTENT). They are valid in a later run of the program if it
    /// listens at the same address and creates a POA with the same name and ancestors.
    pub fn persistent(mut self) -> Self {
        self.policies.lifespan = LifespanPolicy::Persistent;
        self
    }

    /// Sets the threads that run requests, and whether requests are serialized. The default is
    /// [`ThreadModel::OrbControl`].
    ///
    /// * [`ThreadModel::Single`]: the requests for all objects of the POA and the calls of its servant
    ///   manager run one at a time, in order of arrival. A collocated call from such a request to the same
    ///   POA runs as a part of the request.
    /// * [`ThreadModel::Main`]: the requests of all POAs with this model run one at a time, in the task that
    ///   runs [`Orb::run_until`](crate::Orb::run_until).
    ///
    /// In these two models, a servant that calls its own POA over a connection blocks itself until the call's
    /// deadline.
    pub fn thread_model(mut self, model: ThreadModel) -> Self {
        self.policies.thread = model;
        self
    }

    /// Allows peers to call the objects of this POA over connections that this ORB opens after the POA is
    /// created (BIDIRECTIONAL). Objects of other POAs can then be called over them, too. In an ORB that does
    /// not listen, use `OrbBuilder::offer_bidirectional` instead.
    pub fn bidirectional(mut self) -> Self {
        self.policies.bidirectional = BidirectionalPolicy::Both;
        self
    }

    /// Sets the manager of the POA.
    pub fn manager(mut self, manager: &PoaManager) -> Self {
        self.manager = ManagerChoice::Given(manager.clone());
        self
    }

    /// Gives the POA a manager of its own, initially holding. Call `poa.manager().activate()` to serve
    /// requests.
    pub fn own_manager(mut self) -> Self {
        self.manager = ManagerChoice::New;
        self
    }

    /// Creates the POA.
    ///
    /// # Errors
    /// * [`PoaError::AdapterAlreadyExists`] if the parent has a child with this name.
    /// * `BAD_INV_ORDER` minor OMG 17 if the parent is being destroyed, and minor OMG 4 after the shutdown of
    ///   the ORB has begun.
    /// * `BAD_PARAM` for a name that is empty or longer than 255 bytes, or for a child more than 255 POAs
    ///   below the root. The same, with minor OMG 14, if the object keys would be too long.
    pub fn create(self) -> Result<Poa, PoaError> {
        let manager = match self.manager {
            ManagerChoice::OfParent => Some(self.parent.manager()),
            ManagerChoice::New => None,
            ManagerChoice::Given(manager) => Some(manager),
        };
        // Requests must not find the POA before its servant or servant manager is set.
        let _init_guard = ChildInitGuard::new(&self.parent.core, &self.name);
        let poa = self.parent.create(&self.name, self.policies, manager.as_ref().map(PoaManager::core))?;
        if let Some(initialize) = self.initialize {
            initialize(&poa)?;
        }
        Ok(poa)
    }
}

impl<Serving> PoaBuilder<ids::System, Serving> {
    /// Lets the program choose ids (USER_ID).
    pub fn user_ids(mut self) -> PoaBuilder<ids::User, Serving> {
        self.policies.id_assignment = IdAssignmentPolicy::User;
        self.with_types()
    }
}

impl PoaBuilder<ids::System, serving::Map> {
    /// Activates a servant when the program asks for its reference or id (IMPLICIT_ACTIVATION).
    pub fn implicit_activation(mut self) -> PoaBuilder<ids::Implicit, serving::Map> {
        self.policies.implicit_activation = ImplicitActivationPolicy::Implicit;
        self.with_types()
    }
}

impl<Ids> PoaBuilder<Ids, serving::Map> {
    /// Allows a servant to have several ids (MULTIPLE_ID).
    pub fn multiple_ids(mut self) -> Self {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self
    }

    /// Sets one servant for all objects that are not active (USE_DEFAULT_SERVANT, MULTIPLE_ID). These objects
    /// take no memory. `request().object_id()` tells the servant which object is called.
    pub fn default_servant(mut self, servant: Servant) -> PoaBuilder<Ids, serving::MapOrDefault> {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self.policies.request_processing = RequestProcessingPolicy::DefaultServant;
        self.initialize = Some(Box::new(move |poa| poa.set_servant(servant)));
        self.with_types()
    }

    /// Sets the activator that creates a servant when the first request for its object arrives
    /// (USE_SERVANT_MANAGER).
    pub fn servant_activator(
        mut self,
        activator: impl ServantActivator,
    ) -> PoaBuilder<Ids, serving::Activator> {
        self.policies.request_processing = RequestProcessingPolicy::ServantManager;
        self.initialize = Some(Box::new(move |poa| poa.set_servant_activator(activator)));
        self.with_types()
    }
}

impl<Ids: ids::NoImplicit> PoaBuilder<Ids, serving::Map> {
    /// Sets the locator that finds a servant for each request (USE_SERVANT_MANAGER, NON_RETAIN).
    pub fn servant_locator(mut self, locator: impl ServantLocator) -> PoaBuilder<Ids, serving::Locator> {
        self.policies.request_processing = RequestProcessingPolicy::ServantManager;
        self.policies.servant_retention = ServantRetentionPolicy::NonRetain;
        self.initialize = Some(Box::new(move |poa| poa.set_servant_locator(locator)));
        self.with_types()
    }
}

impl<Ids> PoaBuilder<Ids, serving::Activator> {
    /// Allows a servant to have several ids (MULTIPLE_ID).
    pub fn multiple_ids(mut self) -> Self {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self
    }
}

impl<Ids: ids::NoImplicit> PoaBuilder<Ids, serving::MapOrDefault> {
    /// Omits the map of active objects: the default servant serves all requests (NON_RETAIN).
    pub fn without_map(mut self) -> PoaBuilder<Ids, serving::DefaultOnly> {
        self.policies.servant_retention = ServantRetentionPolicy::NonRetain;
        self.with_types()
    }
}

impl<Ids, Serving> fmt::Debug for PoaBuilder<Ids, Serving> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaBuilder")
            .field("name", &self.name)
            .field("policies", &self.policies)
            .finish_non_exhaustive()
    }
}
