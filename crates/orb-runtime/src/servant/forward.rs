//! Forwarding of requests to other locations.

use std::sync::Arc;

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::exception::SystemException;
use giop_codec::ior::Ior;
use giop_codec::{EncodeError, EncodeErrorKind};

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
    pub(crate) permanent: bool,
}

impl ForwardRequest {
    /// Encodes the location.
    ///
    /// # Errors
    /// The object belongs to an ORB that does not listen, and therefore has no address.
    pub(crate) fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match &self.to {
            Some(ior) => ior.encode(e),
            None => Err(EncodeErrorKind::NoEndpoint.into()),
        }
    }

    /// Makes the forward permanent (LOCATION_FORWARD_PERM): the caller replaces its reference. This applies
    /// only to callers with GIOP 1.2.
    #[must_use]
    pub fn permanently(mut self) -> Self {
        self.permanent = true;
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
