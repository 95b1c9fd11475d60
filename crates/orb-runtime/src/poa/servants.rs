//! Servant managers: create or find servants when requests arrive.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use giop_codec::exception::SystemException;

use crate::object_key::ObjectId;
use crate::poa::handle::Poa;
use crate::servant::{Refusal, Servant};

/// Creates the servants of a POA with RETAIN when their first request arrives, and etherealizes them.
///
/// For one id, at most one method runs at a time. Requests that arrive meanwhile wait. Both methods run in
/// tasks of their own, so that a cancelled caller stops neither.
///
/// A deactivated object is etherealized after its last request. A call that such a request makes to the same
/// object in this process is part of the request and does not wait for the etherealization. This also holds
/// for calls by way of other active objects of the process. Only a dynamic call to itself gets
/// `BAD_INV_ORDER` minor OMG 3, because a message does not identify the request that sends it.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces" (`ServantActivator`).
#[doc(alias = "PortableServer::ServantActivator")]
pub trait ServantActivator: Send + Sync + 'static {
    /// Creates the servant of the object, which is active under the id from then on.
    ///
    /// A panic raises UNKNOWN, COMPLETED_MAYBE in the waiting requests. With UNIQUE_ID, a servant that has an
    /// object already raises OBJ_ADAPTER minor OMG 5, COMPLETED_NO.
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> impl Future<Output = Result<Servant, Refusal>> + Send;

    /// Ends the servant of a deactivated object after its last request.
    ///
    /// * `cleanup_in_progress`: the POA is being destroyed, or its manager deactivated.
    /// * `remaining_activations`: the servant has other objects of the POA.
    #[doc(alias = "etherealise")]
    fn etherealize(
        &self,
        id: &ObjectId,
        poa: &Poa,
        servant: Servant,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) -> impl Future<Output = ()> + Send {
        let _ = (id, poa, servant, cleanup_in_progress, remaining_activations);
        async {}
    }
}

/// Finds a servant for each request of a POA with NON_RETAIN.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces" (`ServantLocator`).
#[doc(alias = "PortableServer::ServantLocator")]
pub trait ServantLocator: Send + Sync + 'static {
    /// A value that `preinvoke` passes to `postinvoke`.
    type Cookie: Send + 'static;

    /// Returns the servant for one request. A panic raises UNKNOWN, COMPLETED_MAYBE.
    fn preinvoke(
        &self,
        id: &ObjectId,
        poa: &Poa,
        operation: &str,
    ) -> impl Future<Output = Result<(Servant, Self::Cookie), Refusal>> + Send;

    /// Runs after the request, before its reply is sent. It is not called for a request that was cancelled.
    ///
    /// # Errors
    /// The exception replaces the reply.
    fn postinvoke(
        &self,
        id: &ObjectId,
        poa: &Poa,
        operation: &str,
        cookie: Self::Cookie,
        servant: Servant,
    ) -> impl Future<Output = Result<(), SystemException>> + Send {
        let _ = (id, poa, operation, cookie, servant);
        async { Ok(()) }
    }
}

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A type-erased [`ServantActivator`].
pub(crate) trait Activator: Send + Sync {
    fn incarnate<'a>(&'a self, id: &'a ObjectId, poa: &'a Poa) -> Boxed<'a, Result<Servant, Refusal>>;

    fn etherealize<'a>(
        &'a self,
        id: &'a ObjectId,
        poa: &'a Poa,
        servant: Servant,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) -> Boxed<'a, ()>;
}

impl<A: ServantActivator> Activator for A {
    fn incarnate<'a>(&'a self, id: &'a ObjectId, poa: &'a Poa) -> Boxed<'a, Result<Servant, Refusal>> {
        Box::pin(ServantActivator::incarnate(self, id, poa))
    }

    fn etherealize<'a>(
        &'a self,
        id: &'a ObjectId,
        poa: &'a Poa,
        servant: Servant,
        cleanup: bool,
        remaining: bool,
    ) -> Boxed<'a, ()> {
        Box::pin(ServantActivator::etherealize(self, id, poa, servant, cleanup, remaining))
    }
}

impl fmt::Debug for dyn Activator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Activator")
    }
}

/// A shared, type-erased servant activator.
pub(crate) type SharedActivator = Arc<dyn Activator>;
