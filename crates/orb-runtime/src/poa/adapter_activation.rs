//! On-demand creation of child POAs by an adapter activator, when a request or the program asks for them.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use giop_codec::exception::{SystemException, SystemExceptionKind, minor};

use crate::poa::core::ChildInitGuard;
use crate::poa::error::PoaError;
use crate::poa::handle::Poa;
use crate::poa::lookup::no_such_poa;
use crate::poa::servants::Boxed;
use crate::poa::step_queue as steps;
use crate::poa::step_queue::{Making, Steps};
use crate::runtime::Shared;
use crate::servant::Refusal;
use crate::servant::poa_gate::PoaGate;
use crate::servant::request::panicked;

/// Creates missing child POAs on demand.
///
/// For one name, at most one activation runs at a time. Requests that arrive meanwhile are held, including
/// those for objects of the POA that it has already created, and of POAs below that one. The activator can
/// therefore finish initialization before requests are served. Its own collocated calls of these objects are
/// served. It must not wait for calls of other callers. It runs in a task of its own, so that a cancelled
/// caller does not stop it.
///
/// Source clause: "The Object Adapter / AdapterActivator Interface".
#[doc(alias = "PortableServer::AdapterActivator")]
pub trait AdapterActivator: Send + Sync + 'static {
    /// Creates the child of that name. Returns `Ok(false)` if there is no such child.
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

/// A type-erased [`AdapterActivator`].
trait Activator: Send + Sync {
    fn unknown_adapter<'a>(
        &'a self,
        parent: &'a Poa,
        name: &'a str,
    ) -> Boxed<'a, Result<bool, SystemException>>;
}

impl<A: AdapterActivator> Activator for A {
    fn unknown_adapter<'a>(
        &'a self,
        parent: &'a Poa,
        name: &'a str,
    ) -> Boxed<'a, Result<bool, SystemException>> {
        Box::pin(AdapterActivator::unknown_adapter(self, parent, name))
    }
}

/// The adapter activator of a POA, and its running activations by child name.
#[derive(Default)]
pub(crate) struct AdapterActivations {
    activator: Mutex<Option<Arc<dyn Activator>>>,
    steps: Steps<Box<str>>,
}

impl AdapterActivations {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Activator>>> {
        self.activator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn are_possible(&self) -> bool {
        self.lock().is_some()
    }

    fn set(&self, activator: Option<Arc<dyn Activator>>) {
        let before = std::mem::replace(&mut *self.lock(), activator);
        drop(before);
    }

    pub(crate) fn release(&self) {
        self.set(None);
    }
}

impl Poa {
    /// Sets or replaces the adapter activator, which creates missing POAs below this one. `None` removes it.
    #[doc(alias = "the_activator")]
    pub fn set_adapter_activator<A: AdapterActivator>(&self, activator: impl Into<Option<A>>) {
        let activator = activator.into().map(|activator| Arc::new(activator) as Arc<dyn Activator>);
        self.core.node().adapter_activations.set(activator);
        if self.core.is_destroyed() {
            self.core.node().adapter_activations.release();
        }
    }

    /// Returns whether an adapter activator is set.
    #[must_use]
    #[doc(alias = "the_activator")]
    pub fn has_adapter_activator(&self) -> bool {
        self.core.node().adapter_activations.are_possible()
    }

    /// Returns the child of that name. If it is missing, the adapter activator creates it. If an activation
    /// is running, waits until it has finished.
    ///
    /// # Errors
    /// [`PoaError::AdapterNonExistent`]; `OBJ_ADAPTER` minor OMG 1, COMPLETED_NO: the activator failed.
    ///
    /// # Cancel safety
    /// The activation continues if this future is dropped.
    #[doc(alias = "find_POA")]
    pub async fn find_or_activate(&self, name: &str) -> Result<Self, PoaError> {
        loop {
            if let Ok(child) = self.find(name) {
                if let Some(step) = self.core.node().adapter_activations.steps.get(name)
                    && !steps::is_step_of(&self.orb)
                {
                    let _ = step.await;
                }
                return Ok(child);
            }
            let none = || PoaError::AdapterNonExistent(name.to_owned());
            let step = self.core.activate_child(&self.orb, name)?.ok_or_else(none)?;
            match step.await {
                Ok(()) => {}
                Err(Refusal::System(error)) if error.kind != SystemExceptionKind::ObjectNotExist => {
                    return Err(error.into());
                }
                Err(_) => return Err(none()),
            }
        }
    }
}

impl PoaGate {
    /// Starts, or joins, the activation of a missing child. Returns `None` if there is no activator and no
    /// activation is running.
    ///
    /// # Errors
    /// Those of [`Steps::bring`].
    pub(crate) fn activate_child(
        self: &Arc<Self>,
        orb: &Arc<Shared>,
        name: &str,
    ) -> Result<Option<Making>, SystemException> {
        let activator = self.node().adapter_activations.lock().clone();
        let Some(activator) = activator else { return Ok(self.node().adapter_activations.steps.get(name)) };
        let is_there = || self.child(name).is_some();
        let parent = Poa::new(Arc::clone(self), orb);
        let work = |name: Box<str>| async move {
            let _turn = parent.core.take_turn().await;
            let _awaited = ChildInitGuard::new(&parent.core, &name);
            let asked = AssertUnwindSafe(activator.unknown_adapter(&parent, &name)).catch_unwind().await;
            let made = match asked {
                Ok(Ok(true)) if parent.core.child(&name).is_some() => Ok(()),
                Ok(Ok(true)) => Err(failed(&name, "it says that it made the POA, which is not there")),
                Ok(Ok(false)) => Err(no_such_poa(&name)),
                Ok(Err(error)) => Err(failed(&name, &error.to_string())),
                Err(panic) => Err(failed(&name, &panicked(&*panic).to_string())),
            };
            made.map_err(Refusal::System)
        };
        self.node().adapter_activations.steps.bring((self, orb), name, is_there, work).map(Some)
    }
}

#[cold]
fn failed(name: &str, text: &str) -> SystemException {
    SystemException::obj_adapter()
        .with_minor(minor::OBJ_ADAPTER_UNKNOWN_ADAPTER)
        .with_reason(format!("the adapter activator failed for `{name}`: {text}"))
}

impl fmt::Debug for AdapterActivations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Births").finish_non_exhaustive()
    }
}
