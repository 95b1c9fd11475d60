//! Conversions of this crate's errors to exceptions that servants raise, as for those of `orb_runtime`.

use orb_runtime::dynamic::DynamicException;
use orb_runtime::private::{OrbError, because_of};
use orb_runtime::{SystemException, SystemExceptionKind};

use crate::idl::IdlError;
use crate::ifr::{FetchError, ServeError};

/// `BAD_PARAM`, COMPLETED_NO.
impl From<IdlError> for SystemException {
    fn from(error: IdlError) -> Self {
        not_done(SystemExceptionKind::BadParam, error)
    }
}

/// The call's exception. `INTF_REPOS`, COMPLETED_NO, if the repository does not have the interface, or does
/// not describe one.
impl From<FetchError> for SystemException {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Call(exception) => exception.into(),
            FetchError::System(exception) => exception,
            FetchError::Unknown(_) | FetchError::Description(_) | FetchError::Foreign(_) => {
                not_done(SystemExceptionKind::IntfRepos, error)
            }
        }
    }
}

/// The exception for the error of its adapter or key.
impl From<ServeError> for SystemException {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Poa(error) => error.into(),
            ServeError::Key(error) => error.into(),
            ServeError::Own(exception) => exception,
        }
    }
}

fn not_done(
    kind: SystemExceptionKind,
    error: impl std::error::Error + Send + Sync + 'static,
) -> SystemException {
    because_of(SystemException::from(kind), error)
}

macro_rules! orb_errors {
    ($($error:ty),+) => {
        $(
            impl<E> OrbError<E> for $error {}

            impl From<$error> for DynamicException {
                fn from(error: $error) -> Self {
                    Self::System(error.into())
                }
            }
        )+
    };
}

orb_errors!(FetchError, IdlError, ServeError);
