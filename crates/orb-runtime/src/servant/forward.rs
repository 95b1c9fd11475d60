//! Forwarding of requests to other locations.

use std::any::Any;
use std::sync::Arc;

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::exception::SystemException;
use giop_codec::ior::Ior;
use giop_codec::{EncodeError, EncodeErrorKind};

use crate::servant::request::{OBJECT_REPOSITORY_ID, ServerRequest};
use crate::servant::skeleton::{DispatchSlot, Skeleton};

/// Another location of an object. The caller repeats the request there, and sends later requests there while
/// that location answers.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces"
/// (`PortableServer::ForwardRequest`).
#[doc(alias = "PortableServer::ForwardRequest")]
#[derive(Debug, Clone)]
pub struct ForwardRequest {
    /// `None` if the object has no address.
    pub(crate) to: Option<Arc<Ior>>,
    pub(crate) is_permanent: bool,
}

impl ForwardRequest {
    /// Fails if the object belongs to an ORB that does not listen, and therefore has no address.
    pub(crate) fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.to.as_ref().ok_or(EncodeErrorKind::NoEndpoint)?.encode(e)
    }

    /// Makes the forward permanent (LOCATION_FORWARD_PERM): the caller replaces its reference. This applies
    /// only to callers with GIOP 1.2.
    #[must_use]
    pub fn permanently(mut self) -> Self {
        self.is_permanent = true;
        self
    }
}

/// The reason why a servant manager returns no servant.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The object is at another location.
    Forward(ForwardRequest),
    /// The request fails with this exception.
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

/// A skeleton that answers every request with a LOCATION_FORWARD reply.
pub(crate) struct Forwarder(pub(crate) ForwardRequest);

impl Skeleton for Forwarder {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[OBJECT_REPOSITORY_ID]
    }

    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot) {
        slot.set(async move { request.refuse(self.0.clone().into()) });
    }

    fn forward_location(&self) -> Option<&ForwardRequest> {
        Some(&self.0)
    }

    /// Sets nothing, because there is no local servant: collocated calls are dispatched as requests too.
    fn downcast_into(self: Arc<Self>, _: &mut dyn Any) {}
}
