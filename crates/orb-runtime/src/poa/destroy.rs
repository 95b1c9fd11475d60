//! Destruction of a POA: waits for its children and its requests, then removes its objects and its name.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use giop_codec::exception::SystemException;
use tokio::runtime::Handle;

use crate::poa::handle::Poa;
use crate::poa::manager::check_deadlock;
use crate::runtime::Shared;
use crate::servant::poa_core::PoaCore;

/// A running destruction of a POA. It continues if this value is dropped; without a tokio runtime, it runs
/// only while it is awaited.
#[derive(Clone)]
pub struct Destruction {
    orb: Arc<Shared>,
    done: DestructionFuture,
}

pub(crate) type DestructionFuture = SharedFuture<BoxFuture<'static, ()>>;

impl Poa {
    /// Begins the destruction of the POA and its descendants.
    ///
    /// 1. From now on, new requests get TRANSIENT minor OMG 4, COMPLETED_NO. Running requests continue.
    /// 2. After the last request, objects are deactivated. If `etherealize` is set, the servant activator
    ///    etherealizes them.
    /// 3. Then the name can be used for another POA, and requests get OBJECT_NOT_EXIST.
    ///
    /// A second call returns the destruction that the first call began.
    ///
    /// Source clause: "The Object Adapter / POA Interface" (`destroy`).
    pub fn destroy(&self, etherealize: bool) -> Destruction {
        let done = self.core.destroy(&self.orb, etherealize);
        Destruction { orb: Arc::clone(&self.orb), done }
    }
}

impl Destruction {
    /// Waits until the POA is destroyed.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` minor OMG 3, `COMPLETED_NO`, if the caller is a servant, servant manager or adapter
    /// activator of this ORB, because the destruction may wait for the caller. The destruction continues.
    ///
    /// # Cancel safety
    /// Dropping this future has the same effect as dropping the [`Destruction`].
    pub async fn completed(self) -> Result<(), SystemException> {
        check_deadlock(&self.orb)?;
        self.done.await;
        Ok(())
    }
}

impl PoaCore {
    pub(crate) fn destroy(self: &Arc<Self>, orb: &Arc<Shared>, etherealize: bool) -> DestructionFuture {
        let mut children = self.children();
        if let Some(destruction) = &children.destruction {
            return destruction.clone();
        }
        // While `children` is locked, no child can be created. After `remove_poa`, no request starts.
        self.node().manager.remove_poa(self);
        let child_destructions: Vec<_> =
            children.by_name.values().map(|child| child.destroy(orb, etherealize)).collect();
        let (poa, work_orb) = (Arc::clone(self), Arc::clone(orb));
        let work = async move {
            futures_util::future::join_all(child_destructions).await;
            poa.finish_destruction(&work_orb, etherealize).await;
        };
        let destruction: BoxFuture<'static, ()> =
            match orb.tasks.runtime.clone().or_else(|| Handle::try_current().ok()) {
                Some(runtime) => Box::pin(runtime.spawn(work).map(drop)),
                // No runtime is available: the first task that awaits the destruction runs it.
                None => Box::pin(work),
            };
        let destruction = destruction.shared();
        children.destruction = Some(destruction.clone());
        destruction
    }

    async fn finish_destruction(self: &Arc<Self>, orb: &Arc<Shared>, etherealize: bool) {
        orb.adapter().wait_until_idle(self).await;
        // Running incarnations may still activate objects.
        self.node().servant_activations.steps.wait_for_running().await;
        // Pairs with the fence in `Poa::activate_servant`: an activation after this point sees that the POA
        // is destroyed, and reverts itself.
        fence(Ordering::SeqCst);
        for entries in orb.adapter().objects_of(self).chunks(4096) {
            for entry in entries {
                if etherealize {
                    orb.deactivate(entry, true);
                    if let Some(ending) = self.running_etherealization(entry) {
                        let _ = ending.await;
                    }
                } else {
                    orb.adapter().deactivate(entry);
                }
            }
            tokio::task::yield_now().await;
        }
        self.release();
        orb.adapter().forget_poa(self);
        if let Some(parent) = self.node().parent.upgrade() {
            let mut children = parent.children();
            if children.by_name.get(&self.node().name).is_some_and(|child| Arc::ptr_eq(child, self)) {
                children.by_name.remove(&self.node().name);
            }
        }
    }
}

impl fmt::Debug for Destruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destruction").finish_non_exhaustive()
    }
}
