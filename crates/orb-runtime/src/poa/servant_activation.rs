//! Incarnation and etherealization of servants by a servant activator.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use giop_codec::exception::{SystemException, minor};
use tokio::sync::OwnedSemaphorePermit;

use crate::object_key::ObjectId;
use crate::poa::handle::Poa;
use crate::poa::servants::SharedActivator;
use crate::poa::step_table::{self, RunningStep, StepTable};
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::poa_core::PoaCore;
use crate::servant::request::panicked;
use crate::servant::{Refusal, Servant};

#[derive(Default)]
pub(crate) struct ServantActivations {
    activator: Mutex<Option<SharedActivator>>,
    /// The running incarnations and etherealizations, by object id.
    pub(crate) steps: StepTable<ObjectId>,
}

impl ServantActivations {
    fn lock(&self) -> MutexGuard<'_, Option<SharedActivator>> {
        self.activator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the activator. Returns `false` if one is set already.
    pub(crate) fn set(&self, activator: SharedActivator) -> bool {
        let mut set = self.lock();
        if set.is_some() {
            return false;
        }
        *set = Some(activator);
        true
    }

    pub(crate) fn has_activator(&self) -> bool {
        self.lock().is_some()
    }

    fn activator(&self) -> Option<SharedActivator> {
        self.lock().clone()
    }

    /// Drops the activator, which may hold a handle of the POA.
    pub(crate) fn release(&self) {
        let activator = self.lock().take();
        drop(activator);
    }
}

impl PoaCore {
    /// If the thread model serializes requests, waits until the servant manager may run.
    pub(crate) async fn take_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(self.turn.as_ref()?).acquire_owned().await.ok()
    }

    /// Returns the step for which a request for an inactive object must wait: the running step for its id, or
    /// a new incarnation. Returns `None` if no step is running and there is no activator.
    pub(crate) fn incarnate(
        self: &Arc<Self>,
        orb: &Arc<Shared>,
        id: &[u8],
    ) -> Result<Option<RunningStep>, SystemException> {
        let Some(activator) = self.node().servant_activations.activator() else {
            return Ok(self.node().servant_activations.steps.get(id));
        };
        let already_exists = || self.node().lookup.objects.get(id).is_some();
        let poa = Poa::new(Arc::clone(self), orb);
        let work = |id: ObjectId| async move {
            let turn = poa.core.take_turn().await;
            let incarnated = AssertUnwindSafe(activator.incarnate(&id, &poa)).catch_unwind().await;
            drop(turn);
            let servant = incarnated.unwrap_or_else(|panic| Err(panicked(&*panic).into()))?;
            poa.core.activate_incarnated(&poa.orb, &id, servant)
        };
        self.node().servant_activations.steps.start_or_join((self, orb), id, already_exists, work).map(Some)
    }

    fn activate_incarnated(
        self: &Arc<Self>,
        orb: &Shared,
        id: &ObjectId,
        servant: Servant,
    ) -> Result<(), Refusal> {
        let identity = servant.identity();
        if self.has_unique_ids() && !self.objects_of_servant(identity).is_empty() {
            let text = "the servant activator returned a servant that serves another object, and the POA has UNIQUE_ID";
            let exception = SystemException::obj_adapter().with_minor(minor::OBJ_ADAPTER_INCARNATE_POLICY);
            return Err(Refusal::System(exception.with_reason(text)));
        }
        // If the program activated an object under the id meanwhile, that object serves the requests.
        if let Some(entry) = orb.adapter().activate_with_id(self, id.as_slice(), servant) {
            self.record_servant(identity, &entry, false);
        }
        Ok(())
    }

    /// Deactivates an object of a POA with a servant activator, which etherealizes it after its last request.
    /// Returns `false` if the object was deactivated before.
    pub(crate) fn etherealize(
        self: &Arc<Self>,
        orb: &Arc<Shared>,
        entry: &Arc<ActiveObject>,
        cleanup_in_progress: bool,
    ) -> bool {
        let activator = self.node().servant_activations.activator();
        let (activator, runtime) = match (activator, step_table::runtime(orb)) {
            (Some(activator), Ok(runtime)) => (activator, runtime),
            (None, _) => return orb.adapter().deactivate(entry),
            (Some(_), Err(error)) => {
                tracing::warn!(target: "zorb", poa = &*self.node().name, %error, "cannot etherealize a servant");
                return orb.adapter().deactivate(entry);
            }
        };
        let steps = self.node().servant_activations.steps.lock();
        // Deactivate the object under the lock: a request that finds it deactivated must also find the
        // etherealization.
        if !entry.mark_deactivated() {
            return false;
        }
        orb.adapter().count_deactivation(self);
        let (entry, poa) = (Arc::clone(entry), Poa::new(Arc::clone(self), orb));
        let id = ObjectId::from(entry.id());
        let _ending = steps.run(orb, &runtime, id.clone(), async move {
            entry.wait_until_idle().await;
            poa.orb.adapter().remove_from_tables(&entry);
            poa.core.forget_servant(&entry);
            let remaining = !poa.core.objects_of_servant(entry.servant_address()).is_empty();
            let servant = Servant { skeleton: Arc::clone(&entry.skeleton), mode: entry.mode };
            drop(entry);
            let _turn = poa.core.take_turn().await;
            let ended = activator.etherealize(&id, &poa, servant, cleanup_in_progress, remaining);
            if let Err(panic) = AssertUnwindSafe(ended).catch_unwind().await {
                let error = panicked(&*panic);
                tracing::error!(target: "zorb", poa = poa.name(), %id, %error, "a servant activator panicked in etherealize");
            }
            Ok(())
        });
        true
    }

    pub(crate) fn running_etherealization(&self, entry: &ActiveObject) -> Option<RunningStep> {
        self.node().servant_activations.steps.get(entry.id())
    }
}
