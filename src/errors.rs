//! Conversion of this crate's errors to exceptions that servants raise, as for those of `orb_runtime`.

use orb_runtime::dynamic::DynamicException;
use orb_runtime::private::{OrbError, because_of, unknown_user_exception};
use orb_runtime::{SystemException, SystemExceptionKind};

use crate::cos_naming::NamingError;

/// Converts the error as follows:
///
/// * An invalid name: `BAD_PARAM`, COMPLETED_NO.
/// * Nil: `INV_OBJREF`, COMPLETED_NO.
/// * An exception of the naming service: `UNKNOWN`, minor code OMG 1, COMPLETED_MAYBE. Generated code does
///   the same for an exception that the operation does not raise.
/// * A failed call: its exception.
impl From<NamingError> for SystemException {
    fn from(error: NamingError) -> Self {
        use SystemExceptionKind::{BadParam, InvObjref};
        match error {
            NamingError::System(exception) => exception,
            NamingError::Text { .. } => not_done(BadParam, error),
            NamingError::Nil(_) => not_done(InvObjref, error),
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

fn not_done(
    kind: SystemExceptionKind,
    error: impl std::error::Error + Send + Sync + 'static,
) -> SystemException {
    because_of(SystemException::from(kind), error)
}

impl<E> OrbError<E> for NamingError {}

impl From<NamingError> for DynamicException {
    fn from(error: NamingError) -> Self {
        Self::System(error.into())
    }
}
