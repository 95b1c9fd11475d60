//! Errors of POA operations.

use giop_codec::exception::{MinorCode, SystemException, minor};

use crate::object_key::{KeyError, NameError};
use crate::poa::policies::InvalidPolicy;

/// An error of a POA operation.
///
/// Variants other than `System` are the user exceptions of the standard, with the same names.
///
/// Source clause: "The Object Adapter / POA Interface".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoaError {
    /// The parent has a child with this name.
    #[error("a POA `{0}` exists already: use another name, or `find` the existing POA")]
    AdapterAlreadyExists(String),
    /// No child has this name, and no adapter activator created one.
    #[error("there is no POA `{0}`")]
    AdapterNonExistent(String),
    /// The list of policies is invalid.
    #[error(transparent)]
    InvalidPolicy(#[from] InvalidPolicy),
    /// The POA lacks policies that the operation requires.
    #[error("`{operation}` requires a POA with {required}")]
    WrongPolicy {
        /// The name of the operation in IDL.
        operation: &'static str,
        /// The required policies.
        required: &'static str,
    },
    /// The reference does not refer to an object of this POA.
    #[error("the object does not belong to this POA")]
    WrongAdapter,
    /// An object with this id is active, or was deactivated and still serves requests.
    #[error("an object with this id is active, or still finishes its last requests: use another id")]
    ObjectAlreadyActive,
    /// No object is active under this id.
    #[error("no object is active under this id")]
    ObjectNotActive,
    /// The servant serves an object of this POA already, and the POA has UNIQUE_ID.
    #[error("the servant is active under another id, and the POA has UNIQUE_ID")]
    ServantAlreadyActive,
    /// The servant serves no object of this POA, and the POA has NO_IMPLICIT_ACTIVATION.
    #[error("the servant is not active, and the POA has NO_IMPLICIT_ACTIVATION")]
    ServantNotActive,
    /// No default servant is set.
    #[error("the POA has no default servant: call `set_servant` first")]
    NoServant,
    /// A system exception.
    #[error(transparent)]
    System(#[from] SystemException),
}

impl PoaError {
    pub(crate) fn wrong_policy(operation: &'static str, required: &'static str) -> Self {
        Self::WrongPolicy { operation, required }
    }

    pub(crate) fn being_destroyed(name: &str) -> Self {
        let text = format!("the POA `{name}` is being destroyed");
        Self::system(SystemException::bad_inv_order(), minor::BAD_INV_ORDER_POA_DESTROYED, text)
    }

    pub(crate) fn wrong_manager_kind(text: &str) -> Self {
        Self::system(SystemException::obj_adapter(), minor::OBJ_ADAPTER_NO_SERVANT_MANAGER, text)
    }

    pub(crate) fn manager_is_set() -> Self {
        let text = "the POA already has a servant manager, which cannot be replaced";
        Self::system(SystemException::bad_inv_order(), minor::BAD_INV_ORDER_MANAGER_SET, text)
    }

    pub(crate) fn already_destroyed() -> Self {
        let text = "the POA is destroyed or being destroyed: `find` or create another POA with its name";
        Self::system(SystemException::object_not_exist(), minor::OBJECT_NOT_EXIST_NO_ADAPTER, text)
    }

    pub(crate) fn shut_down() -> Self {
        let text = "the ORB is shutting down or has shut down";
        Self::system(SystemException::bad_inv_order(), minor::BAD_INV_ORDER_SHUTDOWN, text)
    }

    pub(crate) fn foreign_id() -> Self {
        let text = "the POA has SYSTEM_ID, but did not choose this id";
        Self::system(SystemException::bad_param(), minor::BAD_PARAM_OBJECT_ID, text)
    }

    fn system(exception: SystemException, minor: MinorCode, text: impl Into<String>) -> Self {
        Self::System(exception.with_minor(minor).with_reason(text.into()))
    }
}

impl From<NameError> for PoaError {
    fn from(error: NameError) -> Self {
        SystemException::bad_param().with_reason(error.to_string()).into()
    }
}

impl From<KeyError> for PoaError {
    fn from(error: KeyError) -> Self {
        Self::system(SystemException::bad_param(), minor::BAD_PARAM_OBJECT_ID, error.to_string())
    }
}
