//! POAs that an adapter activator makes when a request, or the program, asks for them.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};

use super::core::{Gate, PoaCore};
use super::error::PoaError;
use super::handle::Poa;
use super::making::{Making, in_a_task};
use super::servants::{Boxed, Refusal};
use crate::orb::OrbCore;
use crate::serve::request::panicked;

/// Makes POAs that are missing below the one that has it.
///
/// For one name it runs once at a time: requests that come meanwhile wait. It runs in a task of its own, so that a caller who goes away does
/// not stop it.
///
/// Source clause: "The Object Adapter / AdapterActivator Interface".
#[doc(alias = "PortableServer::AdapterActivator")]
pub trait AdapterActivator: Send + Sync + 'static {
    /// Creates the child of that name, or says that there is none: `Ok(false)`.
    ///
    /// # Errors
    /// Requests get OBJ_ADAPTER minor OMG 1, as they do when it panics, or says that it made what is not there.
    fn unknown_adapter(
        &self,
        parent: &Poa,
        name: &str,
    ) -> impl Future<Output = Result<bool, SystemException>> + Send;
}

/// An adapter activator of whatever type.
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

/// The adapter activator of a POA, and the children that it is making.
#[derive(Default)]
pub(crate) struct Births {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    activator: Option<Arc<dyn Activator>>,
    steps: HashMap<Box<str>, Making>,
}

impl Births {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn are_possible(&self) -> bool {
        self.lock().activator.is_some()
    }

    pub(super) fn let_go(&self) {
        self.lock().activator = None;
    }
}

impl Poa {
    /// Sets what makes missing POAs below this one, in place of what did; `None`: nothing does.
    #[doc(alias = "the_activator")]
    pub fn set_adapter_activator<A: AdapterActivator>(&self, activator: impl Into<Option<A>>) {
        let activator = activator.into().map(|activator| Arc::new(activator) as Arc<dyn Activator>);
        self.core.births.lock().activator = activator;
    }

    /// Whether missing POAs below this one are made.
    #[must_use]
    #[doc(alias = "the_activator")]
    pub fn has_adapter_activator(&self) -> bool {
        self.core.births.are_possible()
    }

    /// The child of that name, which the adapter activator makes if it is not there.
    ///
    /// # Errors
    /// [`PoaError::AdapterNonExistent`]; `OBJ_ADAPTER` minor OMG 1, COMPLETED_NO: the activator failed.
    ///
    /// # Cancel safety
    /// The activator goes on.
    #[doc(alias = "find_POA")]
    pub async fn find_or_activate(&self, name: &str) -> Result<Self, PoaError> {
        loop {
            if let Ok(child) = self.find(name) {
                return Ok(child);
            }
            let none = || PoaError::AdapterNonExistent(name.to_owned());
            let step = self.core.bear(&self.orb, name)?.ok_or_else(none)?;
            match step.await {
                Ok(()) => {}
                Err(Refusal::System(error)) if error.kind == SystemExceptionKind::ObjectNotExist => {
                    return Err(none());
                }
                Err(Refusal::System(error)) => return Err(error.into()),
                Err(Refusal::Forward(_)) => return Err(none()),
            }
        }
    }
}

impl PoaCore {
    /// The making of a child that is missing. `None`: there is no activator.
    ///
    /// # Errors
    /// TRANSIENT minor OMG 1: the activator is at as many POAs as it may be.
    pub(crate) fn bear(
        self: &Arc<Self>,
        orb: &Arc<OrbCore>,
        name: &str,
    ) -> Result<Option<Making>, SystemException> {
        let mut state = self.births.lock();
        if let Some(step) = state.steps.get(name) {
            return Ok(Some(step.clone()));
        }
        let Some(activator) = state.activator.clone() else { return Ok(None) };
        if self.child(name).is_some() {
            // It came meanwhile.
            let there: Boxed<'static, _> = Box::pin(std::future::ready(Ok(())));
            return Ok(Some(there.shared()));
        }
        if state.steps.len() >= orb.config.limits.max_held_requests {
            return Err(Gate::Holding.refusal());
        }
        let parent = Poa::new(Arc::clone(self), orb);
        let step = in_a_task(orb, {
            let name: Box<str> = name.into();
            async move {
                let _turn = parent.core.take_turn().await;
                let asked = AssertUnwindSafe(activator.unknown_adapter(&parent, &name)).catch_unwind().await;
                let made = match asked {
                    Ok(Ok(true)) if parent.core.child(&name).is_some() => Ok(()),
                    Ok(Ok(true)) => Err(failed(&name, "it says that it made the POA, which is not there")),
                    Ok(Ok(false)) => Err(parent.orb.no_such_poa(&name)),
                    Ok(Err(error)) => Err(failed(&name, &error.to_string())),
                    Err(panic) => Err(failed(&name, &panicked(&*panic).to_string())),
                };
                parent.core.births.lock().steps.remove(&name);
                made.map_err(Refusal::System)
            }
        });
        state.steps.insert(name.into(), step.clone());
        Ok(Some(step))
    }
}

#[cold]
fn failed(name: &str, text: &str) -> SystemException {
    let kind = SystemExceptionKind::ObjAdapter;
    SystemException::new(kind, minor::OBJ_ADAPTER_UNKNOWN_ADAPTER, CompletionStatus::No)
        .because(format!("the adapter activator failed for `{name}`: {text}"))
}

impl fmt::Debug for Births {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Births").finish_non_exhaustive()
    }
}
