//! Forwards of requests to other locations.

use std::sync::Arc;

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::exception::SystemException;
use giop_codec::ior::Ior;
use giop_codec::{EncodeError, EncodeErrorKind};

/// Another location of the object. The caller sends this request there and, while that location responds, the
/// following ones too.
///
/// Source clause: "The Object Adapter / PortableServer / Servant Manager Interfaces"
/// (`PortableServer::ForwardRequest`).
#[doc(alias = "PortableServer::ForwardRequest")]
#[derive(Debug, Clone)]
pub struct ForwardRequest {
    /// `None` for an object that has no address.
    pub(crate) to: Option<Arc<Ior>>,
    pub(crate) permanent: bool,
}

impl ForwardRequest {
    /// Encodes the location.
    ///
    /// # Errors
    /// The object belongs to an ORB that does not listen, and has no address.
    pub(crate) fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match &self.to {
            Some(ior) => ior.encode(e),
            None => Err(EncodeErrorKind::NoEndpoint.into()),
        }
    }

    /// Makes the forward permanent: the caller discards the reference that it had (LOCATION_FORWARD_PERM, to
    /// callers with GIOP 1.2).
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
