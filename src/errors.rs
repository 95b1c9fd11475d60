//! Conversions of errors to the exceptions that servants raise.

use orb_runtime::dynamic::DynamicException;
use orb_runtime::private::{OrbError, because_of, unknown_user_exception};
use orb_runtime::{SystemException, SystemExceptionKind};

use crate::cos_naming::NamingError;

/// Converts the error to a system exception:
///
/// * If the text is not a valid name, to `BAD_PARAM`, COMPLETED_NO.
/// * If the name is bound to nil, to `INV_OBJREF`, COMPLETED_NO.
/// * If the bound object has another interface or cannot be queried, to the exception of its [`NarrowError`].
/// * If the naming service raised a user exception, to `UNKNOWN`, minor code OMG 1, COMPLETED_MAYBE. This is
///   the exception for all user exceptions that an operation does not declare.
/// * If a call failed, to its exception.
///
/// [`NarrowError`]: orb_runtime::NarrowError
impl From<NamingError> for SystemException {
    fn from(error: NamingError) -> Self {
        use SystemExceptionKind::{BadParam, InvObjref};
        match error {
            NamingError::System(exception) => exception,
            NamingError::Text { .. } => because_of(BadParam.into(), error),
            NamingError::Nil(_) => because_of(InvObjref.into(), error),
            NamingError::Narrow { ref source, .. } => {
                let raised = Self::from(source.clone());
                because_of(Self::new(raised.kind, raised.minor, raised.completed), error)
            }
            NamingError::InvalidName(_)
            | NamingError::NotFound { .. }
            | NamingError::CannotProceed { .. }
            | NamingError::AlreadyBound(_) => unknown_user_exception(error),
        }
    }
}

impl<E> OrbError<E> for NamingError {}

impl From<NamingError> for DynamicException {
    fn from(error: NamingError) -> Self {
        Self::System(error.into())
    }
}
