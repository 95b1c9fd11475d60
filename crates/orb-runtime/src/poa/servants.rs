//! The traits of servant managers, which create or find servants when requests arrive.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use giop_codec::exception::SystemException;

use crate::object_key::ObjectId;
use crate::poa::handle::Poa;
use crate::servant::{Refusal, Servant};

/// A servant manager of a POA with RETAIN. It creates (incarnates) a servant when the first request for an
/// object arrives, and cleans up (etherealizes) the servant after the object's deactivation.
///
/// For one object id, at most one method runs at a time. Requests that arrive meanwhile wait. Both methods
/// run in tasks of their own, which continue if a caller is cancelled.
///
/// A deactivated object is etherealized after its last request. If such a request calls the same object
/// again, in this process and possibly through other objects, the nested call is served as a part of the
/// request. A nested dynamic call gets `BAD_INV_ORDER` minor OMG 3 instead, because a message does not
/// identify the request that sends it.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces" (`ServantActivator`).
#[doc(alias = "PortableServer::ServantActivator")]
pub trait ServantActivator: Send + Sync + 'static {
    /// Creates the servant of the object, which is then active under the id.
    ///
    /// After a panic, the waiting requests get UNKNOWN, COMPLETED_MAYBE. If the POA has UNIQUE_ID and the
    /// servant serves another object, they get OBJ_ADAPTER minor OMG 5, COMPLETED_NO.
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> impl Future<Output = Result<Servant, Refusal>> + Send;

    /// Cleans up the servant of a deactivated object, after the object's last request.
    ///
    /// * `cleanup_in_progress`: whether the reason is the destruction of the POA or the deactivation of its
    ///   manager.
    /// * `remaining_activations`: whether the servant serves other objects of the POA.
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

/// A servant manager of a POA with NON_RETAIN. It finds the servant of each request.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces" (`ServantLocator`).
#[doc(alias = "PortableServer::ServantLocator")]
pub trait ServantLocator: Send + Sync + 'static {
    /// A value that `preinvoke` passes to `postinvoke`.
    type Cookie: Send + 'static;

    /// Returns the servant for one request. After a panic, the request gets UNKNOWN, COMPLETED_MAYBE.
    fn preinvoke(
        &self,
        id: &ObjectId,
        poa: &Poa,
        operation: &str,
    ) -> impl Future<Output = Result<(Servant, Self::Cookie), Refusal>> + Send;

    /// Runs after the request, before its reply is sent. It is not called if the request was cancelled.
    ///
    /// # Errors
    /// The exception is sent instead of the reply.
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

pub(crate) trait DynServantActivator: Send + Sync {
    fn incarnate<'a>(&'a self, id: &'a ObjectId, poa: &'a Poa) -> BoxFuture<'a, Result<Servant, Refusal>>;

    fn etherealize<'a>(
        &'a self,
        id: &'a ObjectId,
        poa: &'a Poa,
        servant: Servant,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) -> BoxFuture<'a, ()>;
}

impl<A: ServantActivator> DynServantActivator for A {
    fn incarnate<'a>(&'a self, id: &'a ObjectId, poa: &'a Poa) -> BoxFuture<'a, Result<Servant, Refusal>> {
        Box::pin(ServantActivator::incarnate(self, id, poa))
    }

    fn etherealize<'a>(
        &'a self,
        id: &'a ObjectId,
        poa: &'a Poa,
        servant: Servant,
        cleanup: bool,
        remaining: bool,
    ) -> BoxFuture<'a, ()> {
        Box::pin(ServantActivator::etherealize(self, id, poa, servant, cleanup, remaining))
    }
}

pub(crate) type SharedActivator = Arc<dyn DynServantActivator>;
