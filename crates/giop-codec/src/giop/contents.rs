//! Service contexts of code sets and of policies.

use super::context::{ContextId, ServiceContext};
use crate::EncodeError;
use crate::code_set::CodeSetContext;
use crate::ior::Policies;

impl CodeSetContext {
    /// Returns the service context to send.
    ///
    /// # Errors
    /// Currently none.
    pub fn to_service_context(self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::CODE_SETS, &self)
    }
}

impl Policies {
    /// Returns the service context to send, with the policies that the caller requests.
    ///
    /// # Errors
    /// More policies than a ulong can count.
    pub fn to_service_context(&self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::INVOCATION_POLICIES, self)
    }
}
