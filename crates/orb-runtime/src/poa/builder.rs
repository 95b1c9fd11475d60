//! Creating POAs whose policies go together because nothing else compiles.

use std::fmt;
use std::marker::PhantomData;

use super::core::Awaited;
use super::error::PoaError;
use super::handle::Poa;
use super::manager::PoaManager;
use super::policies::Policies;
use super::policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy,
    RequestProcessingPolicy, ServantRetentionPolicy, ThreadModel,
};
use super::servants::{ServantActivator, ServantLocator};
use crate::serve::Servant;

/// Who chooses ids, as a type: see [`PoaBuilder`].
pub mod ids {
    /// The POA does (SYSTEM_ID).
    #[derive(Debug)]
    pub enum System {}
    /// The program does (USER_ID).
    #[derive(Debug)]
    pub enum User {}
    /// The POA does, and asking for the reference of a servant activates it (IMPLICIT_ACTIVATION).
    #[derive(Debug)]
    pub enum Implicit {}
}

/// What serves requests, as a type: see [`PoaBuilder`].
pub mod serving {
    /// Objects that were activated (RETAIN, USE_ACTIVE_OBJECT_MAP_ONLY).
    #[derive(Debug)]
    pub enum Map {}
    /// Those, and a default servant for all others (RETAIN, USE_DEFAULT_SERVANT).
    #[derive(Debug)]
    pub enum MapOrDefault {}
    /// Objects that were activated, and a servant activator for all others (RETAIN, USE_SERVANT_MANAGER).
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
/// `Ids` is of [`ids`], `Serving` of [`serving`]: combinations of policies that the standard forbids have no method. Each policy has the
/// default of the standard but for the manager, which is that of the parent.
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
/// What the standard forbids does not compile: implicit activation with ids of the program's,
///
/// ```compile_fail,E0599
/// # use orb_runtime::Orb;
/// # fn example(orb: &Orb) {
/// let poa = orb.root_poa().child("p").implicit_activation().user_ids();
/// # }
/// ```
///
/// or without a map of active objects;
///
/// ```compile_fail,E0599
/// # use orb_runtime::{Orb, Servant};
/// # fn example(orb: &Orb, servant: Servant) {
/// let poa = orb.root_poa().child("p").implicit_activation().default_servant(servant).without_map();
/// # }
/// ```
///
/// and no map without something else that serves.
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

/// What is set when the POA is there.
type Finish = Box<dyn FnOnce(&Poa) -> Result<(), PoaError> + Send>;

/// Whose manager the POA gets.
enum Choice {
    Parents,
    Own,
    Of(PoaManager),
}

impl Poa {
    /// Begins a child of that name: 1 to 255 octets of UTF-8.
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

    /// References are good for ever: in another run of the program too, if it listens at the same address and makes a POA of the same
    /// names (PERSISTENT).
    pub fn persistent(mut self) -> Self {
        self.policies.lifespan = LifespanPolicy::Persistent;
        self
    }

    /// Which threads run its requests, and whether they take turns (ORB_CTRL_MODEL unless this says otherwise).
    ///
    /// With [`ThreadModel::Single`] requests of all its objects, and calls of its servant manager, run one after the other, in the order in
    /// which they came; a collocated call from one of them runs within its turn. With [`ThreadModel::Main`] they do so in the task that
    /// runs [`Orb::run_until`](crate::Orb::run_until), those of all such POAs together. A servant that calls its own POA over a connection waits for itself, up to the
    /// deadline.
    pub fn thread_model(mut self, model: ThreadModel) -> Self {
        self.policies.thread = model;
        self
    }

    /// Callbacks to its objects may come over connections that this ORB opens from now on (BIDIRECTIONAL), if it listens; one that does not
    /// offers them by `OrbBuilder::offer_call_backs`, for the objects of all POAs.
    pub fn bidirectional(mut self) -> Self {
        self.policies.bidirectional = BidirectionalPolicy::Both;
        self
    }

    /// Is managed by that manager.
    pub fn manager(mut self, manager: &PoaManager) -> Self {
        self.manager = Choice::Of(manager.clone());
        self
    }

    /// Gets a manager of its own, which holds: `poa.manager().activate()` has it serve.
    pub fn own_manager(mut self) -> Self {
        self.manager = Choice::Own;
        self
    }

    /// Creates it.
    ///
    /// # Errors
    /// [`PoaError::AdapterAlreadyExists`]; `BAD_INV_ORDER` minor OMG 17 below a POA that is being destroyed, minor OMG 4 after the
    /// shutdown has begun; `BAD_PARAM` for a name that can not be.
    pub fn create(self) -> Result<Poa, PoaError> {
        let manager = match self.manager {
            Choice::Parents => Some(self.parent.manager()),
            Choice::Own => None,
            Choice::Of(manager) => Some(manager),
        };
        // Nobody finds it without what serves its requests.
        let _awaited = Awaited::new(&self.parent.core, &self.name);
        let poa = self.parent.create(&self.name, self.policies, manager.as_ref().map(PoaManager::core))?;
        if let Some(finish) = self.finish {
            finish(&poa)?;
        }
        Ok(poa)
    }
}

impl<Serving> PoaBuilder<ids::System, Serving> {
    /// The program chooses ids (USER_ID).
    pub fn user_ids(mut self) -> PoaBuilder<ids::User, Serving> {
        self.policies.id_assignment = IdAssignmentPolicy::User;
        self.becomes()
    }
}

impl PoaBuilder<ids::System, serving::Map> {
    /// Asking for the reference or the id of a servant activates it (IMPLICIT_ACTIVATION).
    pub fn implicit_activation(mut self) -> PoaBuilder<ids::Implicit, serving::Map> {
        self.policies.implicit_activation = ImplicitActivationPolicy::Implicit;
        self.becomes()
    }
}

impl<Ids> PoaBuilder<Ids, serving::Map> {
    /// A servant may have several ids (MULTIPLE_ID).
    pub fn multiple_ids(mut self) -> Self {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self
    }

    /// One servant serves all objects that were not activated: `request().object_id()` tells it which is called. It costs no memory for
    /// each of them (USE_DEFAULT_SERVANT, MULTIPLE_ID).
    pub fn default_servant(mut self, servant: Servant) -> PoaBuilder<Ids, serving::MapOrDefault> {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self.policies.request_processing = RequestProcessingPolicy::DefaultServant;
        self.finish = Some(Box::new(move |poa| poa.set_servant(servant)));
        self.becomes()
    }

    /// Servants are made when the first request for their object comes (USE_SERVANT_MANAGER).
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
    /// A servant is found for each request (USE_SERVANT_MANAGER, NON_RETAIN).
    pub fn servant_locator(self, locator: impl ServantLocator) -> PoaBuilder<ids::System, serving::Locator> {
        self.locator(locator)
    }
}

impl PoaBuilder<ids::User, serving::Map> {
    /// A servant is found for each request (USE_SERVANT_MANAGER, NON_RETAIN).
    pub fn servant_locator(self, locator: impl ServantLocator) -> PoaBuilder<ids::User, serving::Locator> {
        self.locator(locator)
    }
}

impl<Ids> PoaBuilder<Ids, serving::Activator> {
    /// A servant may have several ids (MULTIPLE_ID).
    pub fn multiple_ids(mut self) -> Self {
        self.policies.id_uniqueness = IdUniquenessPolicy::Multiple;
        self
    }
}

impl PoaBuilder<ids::System, serving::MapOrDefault> {
    /// No object can be activated, so that nothing is looked up but the default servant (NON_RETAIN).
    pub fn without_map(self) -> PoaBuilder<ids::System, serving::DefaultOnly> {
        self.non_retain()
    }
}

impl PoaBuilder<ids::User, serving::MapOrDefault> {
    /// No object can be activated, so that nothing is looked up but the default servant (NON_RETAIN).
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
