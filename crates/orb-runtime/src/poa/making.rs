//! Objects that come and go through a servant activator: for one id one step at a time.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::FutureExt;
use futures_util::future::Shared;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::ObjectId;
use super::core::PoaCore;
use super::handle::Poa;
use super::servants::{Boxed, Refusal, SharedActivator};
use crate::orb::OrbCore;
use crate::serve::Servant;
use crate::serve::entry::Entry;
use crate::serve::request::panicked;

/// A step of one object, incarnation or end, that others wait for. What is awaited again looks the object up again.
pub(crate) type Making = Shared<Boxed<'static, Result<(), Refusal>>>;

/// The servant activator of a POA, and what it is at.
#[derive(Default)]
pub(crate) struct Makers {
    activator: OnceLock<SharedActivator>,
    steps: Mutex<HashMap<ObjectId, Making>>,
}

impl Makers {
    /// Sets the activator; `false`: there is one.
    pub(super) fn set(&self, activator: SharedActivator) -> bool {
        self.activator.set(activator).is_ok()
    }

    pub(crate) fn are_there(&self) -> bool {
        self.activator.get().is_some()
    }

    fn steps(&self) -> MutexGuard<'_, HashMap<ObjectId, Making>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoaCore {
    /// The turn of a servant manager, where the thread model has it take turns with requests.
    pub(super) async fn take_turn(&self) -> Option<OwnedSemaphorePermit> {
        match &self.turn {
            Some(turn) => Arc::clone(turn).acquire_owned().await.ok(),
            None => None,
        }
    }

    /// What a request for an object that is not there waits for: the end of the last one, or the making of the next. `None`: there is no activator.
    ///
    /// # Errors
    /// TRANSIENT minor OMG 1: the activator is at as many objects as it may be.
    pub(crate) fn make(
        self: &Arc<Self>,
        orb: &Arc<OrbCore>,
        id: &[u8],
    ) -> Result<Option<Making>, SystemException> {
        let Some(activator) = self.makers.activator.get() else { return Ok(None) };
        let mut steps = self.makers.steps();
        if let Some(step) = steps.get(id) {
            return Ok(Some(step.clone()));
        }
        if self.objects.get(id).is_some() {
            // It came meanwhile.
            let there: Boxed<'static, _> = Box::pin(std::future::ready(Ok(())));
            return Ok(Some(there.shared()));
        }
        if steps.len() >= orb.config.limits.max_held_requests {
            return Err(super::core::Gate::Holding.refusal());
        }
        let (activator, poa) = (Arc::clone(activator), Poa::new(Arc::clone(self), orb));
        let id = ObjectId::from(id);
        let step = in_a_task(orb, {
            let id = id.clone();
            async move {
                let turn = poa.core.take_turn().await;
                let made = AssertUnwindSafe(activator.incarnate(&id, &poa)).catch_unwind().await;
                drop(turn);
                let made = made.unwrap_or_else(|panic| Err(panicked(&*panic).into()));
                let done = made.and_then(|servant| poa.core.enter_into_map(&poa.orb, &id, servant));
                // Who looks from here on finds the object.
                poa.core.makers.steps().remove(id.as_slice());
                done
            }
        });
        steps.insert(id, step.clone());
        Ok(Some(step))
    }

    fn enter_into_map(
        self: &Arc<Self>,
        orb: &OrbCore,
        id: &ObjectId,
        servant: Servant,
    ) -> Result<(), Refusal> {
        let violated = |text: &str| {
            let exception = SystemException::new(
                SystemExceptionKind::ObjAdapter,
                minor::OBJ_ADAPTER_INCARNATE_POLICY,
                CompletionStatus::No,
            );
            Refusal::System(exception.because(text.to_owned()))
        };
        let identity = servant.identity();
        if self.is_unique() && !self.objects_of(identity).is_empty() {
            return Err(violated(
                "the servant that was incarnated has an object already, and the POA has UNIQUE_ID",
            ));
        }
        let adapter = orb.adapter();
        match adapter.activate_with_id(self, id.as_slice(), servant.skeleton, servant.mode) {
            Some(entry) => {
                self.note_servant(identity, &entry, false);
                Ok(())
            }
            // The program was faster: its object serves.
            None => Ok(()),
        }
    }

    /// Takes an object with an activator out of service, and ends it behind its last request. Says whether this is who did it.
    pub(crate) fn unmake(
        self: &Arc<Self>,
        orb: &Arc<OrbCore>,
        entry: &Arc<Entry>,
        cleanup_in_progress: bool,
    ) -> bool {
        let Some(activator) = self.makers.activator.get().map(Arc::clone) else { return false };
        let mut steps = self.makers.steps();
        // Under the lock: who finds it gone finds the step.
        if !entry.retire() {
            return false;
        }
        orb.adapter().note_retired();
        let (entry, poa) = (Arc::clone(entry), Poa::new(Arc::clone(self), orb));
        let id = ObjectId::from(entry.id());
        let step = in_a_task(orb, {
            let id = id.clone();
            async move {
                entry.idle().await;
                poa.core.objects.remove(id.as_slice());
                poa.core.forget_servant(&entry);
                let remaining = !poa.core.objects_of(entry.servant()).is_empty();
                let servant = Servant { skeleton: Arc::clone(&entry.skeleton), mode: entry.mode };
                drop(entry);
                let _turn = poa.core.take_turn().await;
                let ended = activator.etherealize(&id, &poa, servant, cleanup_in_progress, remaining);
                if let Err(panic) = AssertUnwindSafe(ended).catch_unwind().await {
                    let error = panicked(&*panic);
                    tracing::error!(target: "zorb", poa = poa.name(), %id, %error, "a servant activator failed to end a servant");
                }
                poa.core.makers.steps().remove(id.as_slice());
                Ok(())
            }
        });
        steps.insert(id, step);
        true
    }

    /// The end of an object that was taken out of service, if it is not done.
    pub(crate) fn ending(&self, entry: &Entry) -> Option<Making> {
        self.makers.steps().get(entry.id()).cloned()
    }
}

/// Runs the step whoever waits for it; one that the runtime drops ends with TRANSIENT.
pub(super) fn in_a_task(
    orb: &OrbCore,
    step: impl Future<Output = Result<(), Refusal>> + Send + 'static,
) -> Making {
    let runtime = orb.home().cloned().or_else(|| Handle::try_current().ok());
    let Some(runtime) = runtime else {
        let text = "there is no tokio runtime for the servant activator: build the ORB, or deactivate, inside of one";
        let exception = SystemException::new(
            SystemExceptionKind::Transient,
            minor::TRANSIENT_DISCARDED,
            CompletionStatus::No,
        );
        tracing::error!(target: "zorb", "{text}");
        let refused: Boxed<'static, _> = Box::pin(std::future::ready(Err(exception.because(text).into())));
        return refused.shared();
    };
    let task = runtime.spawn(step);
    let step: Boxed<'static, _> = Box::pin(async move {
        task.await.unwrap_or_else(|error| {
            let exception = SystemException::new(
                SystemExceptionKind::Transient,
                minor::TRANSIENT_DISCARDED,
                CompletionStatus::No,
            );
            Err(exception.with_source(error).into())
        })
    });
    step.shared()
}
