//! Destruction of a POA: its children first, then its requests, its objects and its name.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use futures_util::FutureExt;
use futures_util::future::Shared as SharedFuture;
use giop_codec::exception::SystemException;
use tokio::runtime::Handle;

use crate::poa::handle::Poa;
use crate::poa::manager::would_deadlock;
use crate::poa::servants::Boxed;
use crate::runtime::Shared;
use crate::servant::poa_gate::PoaGate;

/// The destruction of a POA. It continues whether this is awaited or dropped.
#[derive(Clone)]
pub struct Destruction {
    orb: Arc<Shared>,
    done: Ending,
}

/// A shared future that completes when a POA is destroyed.
pub(crate) type Ending = SharedFuture<Boxed<'static, ()>>;

impl Poa {
    /// Destroys the POA and those below it.
    ///
    /// * From now on, requests get TRANSIENT minor OMG 4, COMPLETED_NO. After the destruction, they get
    ///   OBJECT_NOT_EXIST.
    /// * Running requests continue to their ends.
    /// * Then, if `etherealize` is set, the servant activator etherealizes the objects that it incarnated.
    /// * Then the name is free for another POA.
    ///
    /// A second call returns the destruction that the first one began.
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
    /// `BAD_INV_ORDER` minor OMG 3, `COMPLETED_NO`, if a servant or a servant manager of this ORB calls it,
    /// because it would wait for its own request or step. The destruction continues.
    ///
    /// # Cancel safety
    /// The destruction continues if this future is dropped.
    pub async fn completed(self) -> Result<(), SystemException> {
        would_deadlock(&self.orb)?;
        self.done.await;
        Ok(())
    }
}

impl PoaGate {
    pub(crate) fn destroy(self: &Arc<Self>, orb: &Arc<Shared>, etherealize: bool) -> Ending {
        let mut family = self.family();
        if let Some(ending) = &family.ending {
            return ending.clone();
        }
        // The family is locked: from here on, no request starts and no child can be created.
        self.node().manager.lose(self);
        let children: Vec<_> =
            family.children.values().map(|child| child.destroy(orb, etherealize)).collect();
        let poa = Arc::clone(self);
        let core = Arc::clone(orb);
        let work = async move {
            futures_util::future::join_all(children).await;
            poa.end(&core, etherealize).await;
        };
        let ending: Boxed<'static, ()> = match orb.tasks.home.clone().or_else(|| Handle::try_current().ok()) {
            Some(runtime) => Box::pin(runtime.spawn(work).map(drop)),
            // No runtime is available: the first task that awaits the destruction runs it.
            None => Box::pin(work),
        };
        let ending = ending.shared();
        family.ending = Some(ending.clone());
        ending
    }

    async fn end(self: &Arc<Self>, orb: &Arc<Shared>, etherealize: bool) {
        orb.adapter().idle(self).await;
        // Running steps of the servant activator finish first.
        self.node().servant_activations.steps.over().await;
        // Pairs with the fence in `Poa::put`: an activation after this point sees that the POA is destroyed,
        // and reverts itself.
        fence(Ordering::SeqCst);
        for entries in orb.adapter().objects_of(self).chunks(4096) {
            for entry in entries {
                if etherealize {
                    orb.deactivate(entry, true);
                    if let Some(ending) = self.ending(entry) {
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
            let mut family = parent.family();
            if family.children.get(&self.node().name).is_some_and(|child| Arc::ptr_eq(child, self)) {
                family.children.remove(&self.node().name);
            }
        }
    }
}

impl fmt::Debug for Destruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destruction").finish_non_exhaustive()
    }
}
