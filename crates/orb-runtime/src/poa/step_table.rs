//! Steps: the incarnations and etherealizations of servant activators, and the activations of adapter
//! activators. For one object id or POA name, at most one step runs at a time, and other callers wait for it.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use giop_codec::exception::{SystemException, minor};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::runtime::Shared;
use crate::servant::Refusal;
use crate::servant::poa_core::{Gate, PoaCore};

/// A future that completes when a running step ends. Its awaiter then repeats the look-up.
pub(crate) type RunningStep = SharedFuture<BoxFuture<'static, Result<(), Refusal>>>;

type Map<K> = Mutex<HashMap<K, RunningStep>>;

pub(crate) struct StepTable<K: Eq + Hash>(Arc<Map<K>>);

/// The table of running steps while it is locked, so that no step begins or ends.
pub(crate) struct LockedStepTable<'a, K: Eq + Hash> {
    steps: &'a StepTable<K>,
    map: MutexGuard<'a, HashMap<K, RunningStep>>,
}

/// Removes a step from the table on drop: when the step ends, or when the runtime drops its task.
struct StepRegistration<K: Eq + Hash> {
    map: Arc<Map<K>>,
    key: K,
}

tokio::task_local! {
    /// The address of the ORB for which the current task runs a step.
    static ORB_OF_STEP: usize;
}

/// Returns whether the current task runs an activator of this ORB. Such a task must not wait for steps.
pub(crate) fn is_in_activator_of(orb: &Shared) -> bool {
    ORB_OF_STEP.try_with(|of| *of == std::ptr::from_ref(orb) as usize).unwrap_or(false)
}

impl<K: Eq + Hash> Default for StepTable<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> StepTable<K> {
    pub(crate) fn lock(&self) -> LockedStepTable<'_, K> {
        LockedStepTable { steps: self, map: self.0.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<RunningStep>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.lock().map.get(key).cloned()
    }

    pub(crate) async fn wait_for_running(&self) {
        let all: Vec<_> = self.lock().map.values().cloned().collect();
        futures_util::future::join_all(all).await;
    }

    /// Returns the running step for this key, or starts `work` as a new one. If `already_exists` returns
    /// true, the result is a completed step. Fails with TRANSIENT, COMPLETED_NO: minor OMG 4 if the POA is
    /// destroyed, minor OMG 1 if the limit of running steps is reached or there is no runtime.
    pub(crate) fn start_or_join<Q, W>(
        &self,
        (poa, orb): (&PoaCore, &Arc<Shared>),
        key: &Q,
        already_exists: impl FnOnce() -> bool,
        work: impl FnOnce(K) -> W,
    ) -> Result<RunningStep, SystemException>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
        for<'q> &'q Q: Into<K>,
        W: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        let locked = self.lock();
        if let Some(step) = locked.map.get(key) {
            return Ok(step.clone());
        }
        // Check under the lock: the destruction of the POA then finds every step that passed this check.
        if poa.is_destroyed() {
            return Err(Gate::Destroyed.refusal());
        }
        if already_exists() {
            return Ok(std::future::ready(Ok(())).boxed().shared());
        }
        if locked.map.len() >= orb.config.limits.max_held_requests {
            orb.counters.hit(giop_proto::Limit::HeldRequests);
            return Err(Gate::Holding.refusal());
        }
        let runtime = runtime(orb)?;
        let key: K = key.into();
        let work = work(key.clone());
        Ok(locked.run(orb, &runtime, key, work))
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> LockedStepTable<'_, K> {
    /// Runs the step in a task of its own. If the runtime drops the task, the step ends with TRANSIENT.
    pub(crate) fn run(
        mut self,
        orb: &Arc<Shared>,
        runtime: &Handle,
        key: K,
        work: impl Future<Output = Result<(), Refusal>> + Send + 'static,
    ) -> RunningStep {
        let (sender, receiver) = oneshot::channel();
        let result = receiver.map(|result| {
            result.unwrap_or_else(|_| Err(transient("the runtime of the activator has ended").into()))
        });
        let step = result.boxed().shared();
        let registration = StepRegistration { map: Arc::clone(&self.steps.0), key: key.clone() };
        self.map.insert(key, step.clone());
        // Unlock before spawning: a runtime that has ended drops the task at once, and dropping
        // `registration` takes the lock.
        drop(self.map);
        runtime.spawn(ORB_OF_STEP.scope(Arc::as_ptr(orb) as usize, async move {
            let result = work.await;
            // Remove the step before waking callers: their look-ups must find the step's result.
            drop(registration);
            let _ = sender.send(result);
        }));
        step
    }
}

impl<K: Eq + Hash> Drop for StepRegistration<K> {
    fn drop(&mut self) {
        self.map.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// Returns the runtime for the ORB's steps, or TRANSIENT minor OMG 1, COMPLETED_NO, if there is none.
pub(crate) fn runtime(orb: &Shared) -> Result<Handle, SystemException> {
    let runtime = orb.tasks.runtime.clone().or_else(|| Handle::try_current().ok());
    runtime.ok_or_else(|| {
        transient("there is no tokio runtime for the activator: build the ORB inside of a runtime")
    })
}

#[cold]
fn transient(text: &'static str) -> SystemException {
    SystemException::transient().with_minor(minor::TRANSIENT_DISCARDED).with_reason(text)
}
