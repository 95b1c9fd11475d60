//! The builder of POAs. Invalid combinations of policies do not compile.

use std::fmt;
use std::marker::PhantomData;

use crate::poa::core::ChildInitGuard;
use crate::poa::error::PoaError;
use crate::poa::handle::Poa;
use crate::poa::manager::PoaManager;
use crate::poa::policies::Policies;
use crate::poa::policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy,
    RequestProcessingPolicy, ServantRetentionPolicy, ThreadModel,
};
use crate::poa::servants::{ServantActivator, ServantLocator};
use crate::servant::Servant;

/// Types for the id assignment: see [`PoaBuilder`].
pub mod ids {
    /// The POA chooses ids (SYSTEM_ID).
    #[derive(Debug)]
    pub enum System {}
    /// The program chooses ids (USER_ID).
    #[derive(Debug)]
    pub enum User {}
    /// The POA chooses ids, and asking for the reference of a servant activates it (IMPLICIT_ACTIVATION).
    #[derive(Debug)]
    pub enum Implicit {}
}

/// Types for the request processing: see [`PoaBuilder`].
pub mod serving {
    /// Active objects only (RETAIN, USE_ACTIVE_OBJECT_MAP_ONLY).
    #[derive(Debug)]
    pub enum Map {}
    /// Active objects, and a default servant for all others (RETAIN, USE_DEFAULT_SERVANT).
    #[derive(Debug)]
    pub enum MapOrDefault {}
    /// Active objects, and a servant activator for all others (RETAIN, USE_SERVANT_MANAGER).
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
/// `Ids` is a type of [`ids`], `Serving` one of [`serving`]. Combinations of policies that the standard
/// forbids have no method. Each policy has the default of the standard, except that the manager is that of
/// the parent.
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
/// Combinations that the standard forbids do not compile: implicit activation with ids that the program
/// chooses,
///
/// ```compile_fail,E0599
/// # use orb_runtime::Orb;
/// # fn example(orb: &Orb) {
/// let poa = orb.root_poa().child("p").implicit_activation().user_ids();
/// # }
/// ```
///
/// implicit activation without a map of active objects,
///
/// ```compile_fail,E0599
/// # use orb_runtime::{Orb, Servant};
/// # fn example(orb: &Orb, servant: Servant) {
/// let poa = orb.root_poa().child("p").implicit_activation().default_servant(servant).without_map();
/// # }
/// ```
///
/// and no map without a default servant or servant locator.
///
/// ```compile_fail,E0599
/// # use orb_runtime::Orb;
/// # fn example(orb: &Orb) {
/// let poa = orb.root_poa().child("p").without_map();
/// # }
/// ```
#[must_use = "it does nothing until `create`"]
pub struct PoaBuilder<Ids, Serving> {
    parent: Poa,
    name: String,
    policies: Policies,
    manager: Choice,
    finish: Option<Finish>,
    types: PhantomData<fn() -> (Ids, Serving)>,
}

/// An action that runs after the POA was created.
type Finish = Box<dyn FnOnce(&Poa) -> Result<(), PoaError> + Send>;

/// The choice of the POA's manager.
enum Choice {
    Parents,
    Own,
    Of(PoaManager),
}

impl Poa {
    /// Starts building a child of that name: 1 to 255 bytes of UTF-8.
    pub fn child(&self, name: impl Into<String>) -> PoaBuilder<ids::System, serving::Map> {
        PoaBuilder {
            parent: self.clone(),
            name: name.into(),
            policies: Policies::default(),
            manager: Choice::Parents,
            finish: None,
            types: PhantomData,
        }
    }
}

impl<Ids, Serving> PoaBuilder<Ids, Serving> {
    fn becomes<I, S>(self) -> PoaBuilder<I, S> {
        let Self { parent, name, policies, manager, finish, types: _ } = self;
        PoaBuilder { parent, name, policies, manager, finish, types: PhantomData }
    }

    /// Makes references outlive the process (PERSISTENT). They stay valid in another run of the program, if
    /// it listens at the same address and creates a POA with the same names.
    pub fn persistent(mut self) -> Self {
        self.policies.lifespan = LifespanPolicy::Persistent;
        self
    }

    /// Sets the threads that run its requests, and whether requests are serialized. The default is
    /// ORB_CTRL_MODEL.
    ///
    /// With [`ThreadModel::Single`], requests of all its objects and calls of its servant manager run one at
    /// a time, in order of arrival. A collocated call from one of them runs within its turn. With
    /// [`ThreadModel::Main`], they run one at a time in the task that runs
    /// [`Orb::run_until`](crate::Orb::run_until), together with those of all other such POAs. In both models,
    /// a servant that calls its own POA over a connection waits for itself until the deadline.
    pub fn thread_model(mut self, model: ThreadModel) -> Self {
        self.policies.thread = model;
        self
    }

    /// Allows callbacks to its objects over connections that this ORB opens from now on (BIDIRECTIONAL), if
    /// the ORB listens. An ORB that does not listen offers them by `OrbBuilder::offer_bidirectional`, for the
    /// objects of all POAs.
    pub fn bidirectional(mut self) -> Self {
        self.policies.bidirectional = BidirectionalPolicy::Both;
        self
    }

    /// Sets the manager of the POA.
    pub fn manager(mut self, manager: &PoaManager) -> Self {
        self.manager = Choice::Of(manager.clone());
        self
    }

    /// Gives the POA a manager of its own, initially holding. Call `poa.manager().activate()` to serve
    /// requests.
    pub fn own_manager(mut self) -> Self {
        self.manager = Choice::Own;
        self
    }

    /// Creates the POA.
    ///
    /// # Errors
    /// * [`PoaError::AdapterAlreadyExists`].
    /// * `BAD_INV_ORDER` minor OMG 17 below a POA that is being destroyed, minor OMG 4 after the shutdown has
    ///   begun.
    /// * `BAD_PARAM` for an invalid name.
    pub fn create(self) -> Result<Poa, PoaError> {
        let manager = match self.manager {
            Choice::Parents => Some(self.parent.manager()),
            Choice::Own => None,
            Choice::Of(manager) => Some(manager),
        };
        // Requests must not find the POA before its servant or servant manager is set.
        let _awaited = ChildInitGuard::new(&self.parent.core, &self.name);
        let poa = self.parent.create(&self.name, self.policies, manager.as_ref().map(PoaManager::core))?;
        if let Some(finish) = self.finish {
            finish(&poa)?;
        }
        Ok(poa)
    }
}

impl<Serving> PoaBuilder<ids::System, Serving> {
    /// Lets the program choose ids (USER_ID).
    pub fn user_ids(mut self) -> PoaBuilder<ids::User, Serving> {
        self.policies.id_assignment = IdAssignmentPolicy::User;
        self.becomes()
    }
}

impl PoaBuilder<ids::System, serving::Map> {
    /// Activates a servant when its reference or id is asked for (IMPLICIT_ACTIVATION).
    pub fn implicit_activation(mut self) -> PoaBuilder<ids::Implicit, serving::Map> {
        self.policies.implicit_activation = ImplicitActivationPolicy::Implicit;
        self.becomes()
    }
}

impl<Ids> PoaBuilder<Ids, serving::Map> {
    /// Allows a servant to have several ids (MULTIPLE_ID).
    pub fn multiple_ids(mut self) -> Self {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self
    }

    /// Sets one servant for all objects that are not active (USE_DEFAULT_SERVANT, MULTIPLE_ID).
    /// `request().object_id()` returns the id of the called object. Such objects take no memory.
    pub fn default_servant(mut self, servant: Servant) -> PoaBuilder<Ids, serving::MapOrDefault> {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self.policies.request_processing = RequestProcessingPolicy::DefaultServant;
        self.finish = Some(Box::new(move |poa| poa.set_servant(servant)));
        self.becomes()
    }

    /// Sets the activator that creates a servant when the first request for its object arrives
    /// (USE_SERVANT_MANAGER).
    pub fn servant_activator(
        mut self,
        activator: impl ServantActivator,
    ) -> PoaBuilder<Ids, serving::Activator> {
        self.policies.request_processing = RequestProcessingPolicy::ServantManager;
        self.finish = Some(Box::new(move |poa| poa.set_servant_activator(activator)));
        self.becomes()
    }

    fn locator(mut self, locator: impl ServantLocator) -> PoaBuilder<Ids, serving::Locator> {
        self.policies.request_processing = RequestProcessingPolicy::ServantManager;
        self.policies.servant_retention = ServantRetentionPolicy::NonRetain;
        self.finish = Some(Box::new(move |poa| poa.set_servant_locator(locator)));
        self.becomes()
    }
}

impl PoaBuilder<ids::System, serving::Map> {
    /// Sets the locator that finds a servant for each request (USE_SERVANT_MANAGER, NON_RETAIN).
    pub fn servant_locator(self, locator: impl ServantLocator) -> PoaBuilder<ids::System, serving::Locator> {
        self.locator(locator)
    }
}

impl PoaBuilder<ids::User, serving::Map> {
    /// Sets the locator that finds a servant for each request (USE_SERVANT_MANAGER, NON_RETAIN).
    pub fn servant_locator(self, locator: impl ServantLocator) -> PoaBuilder<ids::User, serving::Locator> {
        self.locator(locator)
    }
}

impl<Ids> PoaBuilder<Ids, serving::Activator> {
    /// Allows a servant to have several ids (MULTIPLE_ID).
    pub fn multiple_ids(mut self) -> Self {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self
    }
}

impl PoaBuilder<ids::System, serving::MapOrDefault> {
    /// Omits the map of active objects: the default servant serves all requests (NON_RETAIN).
    pub fn without_map(self) -> PoaBuilder<ids::System, serving::DefaultOnly> {
        self.non_retain()
    }
}

impl PoaBuilder<ids::User, serving::MapOrDefault> {
    /// Omits the map of active objects: the default servant serves all requests (NON_RETAIN).
    pub fn without_map(self) -> PoaBuilder<ids::User, serving::DefaultOnly> {
        self.non_retain()
    }
}

impl<Ids> PoaBuilder<Ids, serving::MapOrDefault> {
    fn non_retain(mut self) -> PoaBuilder<Ids, serving::DefaultOnly> {
        self.policies.servant_retention = ServantRetentionPolicy::NonRetain;
        self.becomes()
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
