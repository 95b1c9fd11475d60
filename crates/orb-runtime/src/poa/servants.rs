//! What programs give a POA to make or find servants when requests come.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use giop_codec::exception::SystemException;

use super::ObjectId;
use super::handle::Poa;
use crate::reference::{ObjectRef, Reference};
use crate::serve::Servant;

/// Where the object is: the caller goes there, with this request and, as long as that answers, with those that follow.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces" (`PortableServer::ForwardRequest`).
#[doc(alias = "PortableServer::ForwardRequest")]
#[derive(Debug, Clone)]
pub struct ForwardRequest {
    pub(crate) to: ObjectRef,
    pub(crate) permanent: bool,
}

impl ForwardRequest {
    /// To the object of that reference.
    #[must_use]
    pub fn to<R: Reference>(reference: &R) -> Self {
        Self { to: reference.as_object().clone(), permanent: false }
    }

    /// For good: the caller forgets the reference that it had (LOCATION_FORWARD_PERM, with callers of GIOP 1.2).
    #[must_use]
    pub fn permanently(mut self) -> Self {
        self.permanent = true;
        self
    }
}

/// Why a servant manager gives no servant.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The object is elsewhere.
    Forward(ForwardRequest),
    /// The request ends with that exception.
    System(SystemException),
}

impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl From<ForwardRequest> for Refusal {
    fn from(forward: ForwardRequest) -> Self {
        Self::Forward(forward)
    }
}

/// Makes the servants of a POA with RETAIN when their first request comes, and ends them.
///
/// For one id neither method runs twice at a time, nor beside the other: requests that come meanwhile wait. Both run in tasks of their own, so
/// that a caller who goes away stops neither.
///
/// An object that was deactivated ends behind its last request. What such a request calls of the same object in this process belongs to it and
/// does not wait for the end, by way of other active objects of the process too; only a dynamic call to itself gets `BAD_INV_ORDER` minor OMG 3, since a message
/// does not say which request sends it.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces" (`ServantActivator`).
#[doc(alias = "PortableServer::ServantActivator")]
pub trait ServantActivator: Send + Sync + 'static {
    /// Makes the servant of the object; it is active under the id from then on.
    ///
    /// A panic is UNKNOWN, COMPLETED_MAYBE for the requests that wait. With UNIQUE_ID a servant that has an object already is OBJ_ADAPTER minor
    /// OMG 5, COMPLETED_NO.
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> impl Future<Output = Result<Servant, Refusal>> + Send;

    /// Ends the servant of an object that was deactivated and whose last request is done.
    ///
    /// `cleanup_in_progress`: the POA or its manager goes. `remaining_activations`: the servant has other objects of the POA.
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
    /// What `preinvoke` hands to `postinvoke`.
    type Cookie: Send + 'static;

    /// Gives the servant for one request. A panic is UNKNOWN, COMPLETED_MAYBE.
    fn preinvoke(
        &self,
        id: &ObjectId,
        poa: &Poa,
        operation: &str,
    ) -> impl Future<Output = Result<(Servant, Self::Cookie), Refusal>> + Send;

    /// The request is done: its reply leaves behind this. It is not called for a request that was given up.
    ///
    /// # Errors
    /// The exception takes the place of the reply.
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

/// A servant activator of whatever type.
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

/// What a POA with a servant activator has.
pub(crate) type SharedActivator = Arc<dyn Activator>;
