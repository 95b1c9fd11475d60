//! Conversions of errors to the exceptions that servants raise.

use orb_runtime::dynamic::DynamicException;
use orb_runtime::private::{OrbError, because_of, unknown_user_exception};
use orb_runtime::{SystemException, SystemExceptionKind};

use crate::cos_naming::NamingError;

/// Converts the error as follows:
///
/// * An invalid name: `BAD_PARAM`, COMPLETED_NO.
/// * Nil: `INV_OBJREF`, COMPLETED_NO.
/// * An exception of the naming service: `UNKNOWN`, minor code OMG 1, COMPLETED_MAYBE, as for any exception
///   that the operation does not raise.
/// * A failed call: its exception.
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
