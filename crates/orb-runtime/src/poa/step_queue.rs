//! Steps of servant and adapter activators. For one key, one step runs at a time, and other callers wait for
//! it.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::Shared as SharedFuture;
use giop_codec::exception::{SystemException, minor};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::poa::servants::Boxed;
use crate::runtime::Shared;
use crate::servant::Refusal;
use crate::servant::poa_gate::{Gate, PoaGate};

/// A shared step. After awaiting it, a caller repeats its look-up.
pub(crate) type Making = SharedFuture<Boxed<'static, Result<(), Refusal>>>;

type Map<K> = Mutex<HashMap<K, Making>>;

/// The running steps by key.
pub(crate) struct Steps<K: Eq + Hash>(Arc<Map<K>>);

/// The steps under their lock: none begins or ends meanwhile.
pub(crate) struct Locked<'a, K: Eq + Hash> {
    steps: &'a Steps<K>,
    map: MutexGuard<'a, HashMap<K, Making>>,
}

/// The registration of a running step. Dropping it removes the step, when it ends or its runtime drops it.
struct UnderWay<K: Eq + Hash> {
    map: Arc<Map<K>>,
    key: K,
}

tokio::task_local! {
    /// The address of the ORB for which the current task runs a step.
    static ORB_OF_STEP: usize;
}

/// Returns whether the current task is a step of this ORB, which must not wait for steps.
pub(crate) fn is_step_of(orb: &Shared) -> bool {
    ORB_OF_STEP.try_with(|of| *of == std::ptr::from_ref(orb) as usize).unwrap_or(false)
}

impl<K: Eq + Hash> Default for Steps<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> Steps<K> {
    pub(crate) fn lock(&self) -> Locked<'_, K> {
        Locked { steps: self, map: self.0.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Returns the running step for that key.
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<Making>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.lock().map.get(key).cloned()
    }

    /// Waits for all running steps.
    pub(crate) async fn over(&self) {
        let all: Vec<_> = self.lock().map.values().cloned().collect();
        futures_util::future::join_all(all).await;
    }

    /// Returns the running step for that key, or starts `work` as one.
    ///
    /// # Errors
    /// TRANSIENT, COMPLETED_NO: minor OMG 4 if the POA is destroyed; minor OMG 1 if the limit of running
    /// steps is reached or there is no runtime.
    pub(crate) fn bring<Q, W>(
        &self,
        (poa, orb): (&PoaGate, &Arc<Shared>),
        key: &Q,
        is_there: impl FnOnce() -> bool,
        work: impl FnOnce(K) -> W,
    ) -> Result<Making, SystemException>
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
        // Check under the lock: a destruction that looks at the steps afterwards finds all of them.
        if poa.is_destroyed() {
            return Err(Gate::Destroyed.refusal());
        }
        if is_there() {
            let there: Boxed<'static, _> = Box::pin(std::future::ready(Ok(())));
            return Ok(there.shared());
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

impl<K: Clone + Eq + Hash + Send + 'static> Locked<'_, K> {
    /// Runs the step in a task of its own. A step that the runtime drops ends with TRANSIENT.
    pub(crate) fn run(
        mut self,
        orb: &Arc<Shared>,
        runtime: &Handle,
        key: K,
        work: impl Future<Output = Result<(), Refusal>> + Send + 'static,
    ) -> Making {
        let (tell, told) = oneshot::channel();
        let step: Boxed<'static, _> = Box::pin(told.map(|told| {
            told.unwrap_or_else(|_| Err(transient("the runtime of the activator has ended").into()))
        }));
        let step = step.shared();
        let under_way = UnderWay { map: Arc::clone(&self.steps.0), key: key.clone() };
        self.map.insert(key, step.clone());
        // Unlock before spawning: a runtime that has ended drops the task here, which takes the lock.
        drop(self.map);
        runtime.spawn(ORB_OF_STEP.scope(Arc::as_ptr(orb) as usize, async move {
            let done = work.await;
            // Remove the step before waking callers: a look-up from here on finds its result.
            drop(under_way);
            let _ = tell.send(done);
        }));
        step
    }
}

impl<K: Eq + Hash> Drop for UnderWay<K> {
    fn drop(&mut self) {
        self.map.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// Returns the runtime for the ORB's steps.
///
/// # Errors
/// TRANSIENT minor OMG 1, COMPLETED_NO: there is no runtime.
pub(crate) fn runtime(orb: &Shared) -> Result<Handle, SystemException> {
    let runtime = orb.tasks.home.clone().or_else(|| Handle::try_current().ok());
    runtime.ok_or_else(|| {
        transient("there is no tokio runtime for the activator: build the ORB, or deactivate, inside of one")
    })
}

#[cold]
fn transient(text: &'static str) -> SystemException {
    SystemException::transient().with_minor(minor::TRANSIENT_DISCARDED).with_reason(text)
}
