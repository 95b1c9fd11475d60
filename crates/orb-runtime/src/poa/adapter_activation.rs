//! On-demand creation of child POAs by an adapter activator, when a request or the program asks for them.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use giop_codec::exception::{SystemException, SystemExceptionKind, minor};

use crate::poa::error::PoaError;
use crate::poa::handle::Poa;
use crate::poa::lookup::no_such_poa;
use crate::poa::node::ChildInitGuard;
use crate::poa::step_table::{RunningStep, StepTable, is_in_activator_of};
use crate::runtime::Shared;
use crate::servant::Refusal;
use crate::servant::poa_core::PoaCore;
use crate::servant::request::panicked;

/// Creates missing child POAs on demand.
///
/// * For one name, at most one activation runs at a time.
/// * Requests for the new POA and its descendants are held until the activation ends, so that the activator
///   can finish the initialization first. Only collocated calls from the activator itself are served.
/// * Therefore the activator must not wait for calls of other callers to these objects.
/// * An activation runs in a task of its own. It continues if its caller is cancelled.
///
/// Source clause: "The Object Adapter / AdapterActivator Interface".
#[doc(alias = "PortableServer::AdapterActivator")]
pub trait AdapterActivator: Send + Sync + 'static {
    /// Creates the child of `parent` with this name, and returns `Ok(true)`. Returns `Ok(false)` if there is
    /// to be no such child. Requests for its objects then get OBJECT_NOT_EXIST.
    ///
    /// # Errors
    /// On an error, requests get OBJ_ADAPTER minor OMG 1. The same happens if the activator panics, or
    /// returns `Ok(true)` without having created the child.
    fn unknown_adapter(
        &self,
        parent: &Poa,
        name: &str,
    ) -> impl Future<Output = Result<bool, SystemException>> + Send;
}

trait DynAdapterActivator: Send + Sync {
    fn unknown_adapter<'a>(
        &'a self,
        parent: &'a Poa,
        name: &'a str,
    ) -> BoxFuture<'a, Result<bool, SystemException>>;
}

impl<A: AdapterActivator> DynAdapterActivator for A {
    fn unknown_adapter<'a>(
        &'a self,
        parent: &'a Poa,
        name: &'a str,
    ) -> BoxFuture<'a, Result<bool, SystemException>> {
        Box::pin(AdapterActivator::unknown_adapter(self, parent, name))
    }
}

#[derive(Default)]
pub(crate) struct AdapterActivations {
    activator: Mutex<Option<Arc<dyn DynAdapterActivator>>>,
    /// The running activations, by the name of the child.
    steps: StepTable<Box<str>>,
}

impl AdapterActivations {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn DynAdapterActivator>>> {
        self.activator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_activator(&self) -> bool {
        self.lock().is_some()
    }

    fn set(&self, activator: Option<Arc<dyn DynAdapterActivator>>) {
        let before = std::mem::replace(&mut *self.lock(), activator);
        drop(before);
    }

    pub(crate) fn release(&self) {
        self.set(None);
    }
}

impl Poa {
    /// Sets or replaces the adapter activator, which creates missing children of this POA. `None` removes it.
    #[doc(alias = "the_activator")]
    pub fn set_adapter_activator<A: AdapterActivator>(&self, activator: impl Into<Option<A>>) {
        let activator = activator.into().map(|activator| Arc::new(activator) as Arc<dyn DynAdapterActivator>);
        self.core.node().adapter_activations.set(activator);
        if self.core.is_destroyed() {
            self.core.node().adapter_activations.release();
        }
    }

    /// Returns whether an adapter activator is set.
    #[must_use]
    #[doc(alias = "the_activator")]
    pub fn has_adapter_activator(&self) -> bool {
        self.core.node().adapter_activations.has_activator()
    }

    /// Returns the child with this name. If the child is missing, the adapter activator creates it. If an
    /// activation of this name is running, waits until it has finished.
    ///
    /// # Errors
    /// * [`PoaError::AdapterNonExistent`] if there is no such child, and no activator creates it.
    /// * `OBJ_ADAPTER` minor OMG 1, COMPLETED_NO, if the activator failed.
    /// * `TRANSIENT`, COMPLETED_NO, if this POA is being destroyed, if too many activations are running, or
    ///   if there is no tokio runtime.
    ///
    /// # Cancel safety
    /// The activation continues if this future is dropped.
    #[doc(alias = "find_POA")]
    pub async fn find_or_activate(&self, name: &str) -> Result<Self, PoaError> {
        loop {
            if let Ok(child) = self.find(name) {
                if let Some(step) = self.core.node().adapter_activations.steps.get(name)
                    && !is_in_activator_of(&self.orb)
                {
                    let _ = step.await;
                }
                return Ok(child);
            }
            let not_found = || PoaError::AdapterNonExistent(name.to_owned());
            let step = self.core.activate_child(&self.orb, name)?.ok_or_else(not_found)?;
            match step.await {
                Ok(()) => {}
                Err(Refusal::System(error)) if error.kind != SystemExceptionKind::ObjectNotExist => {
                    return Err(error.into());
                }
                Err(_) => return Err(not_found()),
            }
        }
    }
}

impl PoaCore {
    /// Starts or joins the activation of a missing child. Returns `None` if neither is possible.
    pub(crate) fn activate_child(
        self: &Arc<Self>,
        orb: &Arc<Shared>,
        name: &str,
    ) -> Result<Option<RunningStep>, SystemException> {
        let activator = self.node().adapter_activations.lock().clone();
        let Some(activator) = activator else { return Ok(self.node().adapter_activations.steps.get(name)) };
        let already_exists = || self.child(name).is_some();
        let parent = Poa::new(Arc::clone(self), orb);
        let work = |name: Box<str>| async move {
            let _turn = parent.core.take_turn().await;
            let _init_guard = ChildInitGuard::new(&parent.core, &name);
            let answer = AssertUnwindSafe(activator.unknown_adapter(&parent, &name)).catch_unwind().await;
            let failed = |text: &str| Err(activator_failed(&name, text));
            let result = match answer {
                Ok(Ok(true)) if parent.core.child(&name).is_some() => Ok(()),
                Ok(Ok(true)) => failed("`unknown_adapter` returned true, but the POA does not exist"),
                Ok(Ok(false)) => Err(no_such_poa(&name)),
                Ok(Err(error)) => failed(&error.to_string()),
                Err(panic) => failed(&panicked(&*panic).to_string()),
            };
            result.map_err(Refusal::System)
        };
        self.node().adapter_activations.steps.start_or_join((self, orb), name, already_exists, work).map(Some)
    }
}

#[cold]
fn activator_failed(name: &str, text: &str) -> SystemException {
    SystemException::obj_adapter()
        .with_minor(minor::OBJ_ADAPTER_UNKNOWN_ADAPTER)
        .with_reason(format!("the adapter activator failed for `{name}`: {text}"))
}
