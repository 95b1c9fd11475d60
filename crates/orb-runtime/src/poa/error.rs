//! Errors of POA operations.

use giop_codec::exception::{SystemException, minor};

use crate::object_key::{NoKey, NoName};
use crate::poa::policies::InvalidPolicy;

/// An error of a POA operation.
///
/// Source clause: "The Object Adapter / POA Interface": its user exceptions under their names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoaError {
    /// A sibling has the name.
    #[error("there is a POA `{0}` already: take another name, or `find` it")]
    AdapterAlreadyExists(String),
    /// No child has the name, and no adapter activator created one.
    #[error("there is no POA `{0}`")]
    AdapterNonExistent(String),
    /// The policies contradict each other.
    #[error(transparent)]
    InvalidPolicy(#[from] InvalidPolicy),
    /// The operation needs other policies.
    #[error("`{operation}` needs a POA with {needs}")]
    WrongPolicy {
        /// Its name in IDL.
        operation: &'static str,
        /// The policies.
        needs: &'static str,
    },
    /// The reference is of an object of another POA.
    #[error("the object is one of another POA")]
    WrongAdapter,
    /// An object with the id is active, or is deactivated with requests still running.
    #[error("an object is active under the id: deactivate it, or take another id")]
    ObjectAlreadyActive,
    /// No object has the id.
    #[error("no object is active under the id")]
    ObjectNotActive,
    /// UNIQUE_ID: the servant has an object of this POA.
    #[error("the servant is active under another id, and the POA has UNIQUE_ID")]
    ServantAlreadyActive,
    /// The servant has no object of this POA, and the POA has no implicit activation.
    #[error("the servant is not active, and the POA has no IMPLICIT_ACTIVATION")]
    ServantNotActive,
    /// No default servant is set.
    #[error("the POA has no default servant yet")]
    NoServant,
    /// A system exception.
    #[error(transparent)]
    System(#[from] SystemException),
}

impl PoaError {
    pub(crate) fn wrong_policy(operation: &'static str, needs: &'static str) -> Self {
        Self::WrongPolicy { operation, needs }
    }

    /// The POA is being destroyed.
    pub(crate) fn destroyed(name: &str) -> Self {
        SystemException::bad_inv_order()
            .with_minor(minor::BAD_INV_ORDER_POA_DESTROYED)
            .with_reason(format!("the POA `{name}` is being destroyed"))
            .into()
    }

    /// A servant manager of the wrong kind.
    pub(crate) fn wrong_manager(text: &str) -> Self {
        SystemException::obj_adapter()
            .with_minor(minor::OBJ_ADAPTER_NO_SERVANT_MANAGER)
            .with_reason(text.to_owned())
            .into()
    }

    /// A servant manager is already set and cannot be replaced.
    pub(crate) fn manager_is_set() -> Self {
        SystemException::bad_inv_order()
            .with_minor(minor::BAD_INV_ORDER_MANAGER_SET)
            .with_reason("the POA has a servant manager, and keeps it")
            .into()
    }

    /// The POA is destroyed.
    pub(crate) fn gone() -> Self {
        SystemException::object_not_exist()
            .with_minor(minor::OBJECT_NOT_EXIST_NO_ADAPTER)
            .with_reason("the POA is destroyed: `find` or create the one that has its name now")
            .into()
    }

    /// The ORB has shut down.
    pub(crate) fn shut_down() -> Self {
        SystemException::bad_inv_order()
            .with_minor(minor::BAD_INV_ORDER_SHUTDOWN)
            .with_reason("the ORB is shutting down")
            .into()
    }

    /// The id is not one that the POA chose.
    pub(crate) fn foreign_id() -> Self {
        SystemException::bad_param()
            .with_minor(minor::BAD_PARAM_OBJECT_ID)
            .with_reason("the POA has SYSTEM_ID, and this is not an id that it chose")
            .into()
    }
}

impl From<NoName> for PoaError {
    fn from(error: NoName) -> Self {
        let exception = SystemException::bad_param();
        exception.with_reason(error.to_string()).into()
    }
}

impl From<NoKey> for PoaError {
    fn from(error: NoKey) -> Self {
        let exception = SystemException::bad_param().with_minor(minor::BAD_PARAM_OBJECT_ID);
        exception.with_reason(error.to_string()).into()
    }
}
