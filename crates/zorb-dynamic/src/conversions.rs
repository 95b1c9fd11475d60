//! Conversions of errors to the exceptions that servants raise.

use orb_runtime::dynamic::DynamicException;
use orb_runtime::private::{OrbError, because_of};
use orb_runtime::{SystemException, SystemExceptionKind};

use crate::idl::IdlError;
use crate::ifr::{FetchError, ServeError};

/// Converts to `BAD_PARAM`, COMPLETED_NO.
impl From<IdlError> for SystemException {
    fn from(error: IdlError) -> Self {
        because_of(SystemExceptionKind::BadParam.into(), error)
    }
}

/// Converts to the exception of the call. Other errors become `INTF_REPOS`, COMPLETED_NO.
impl From<FetchError> for SystemException {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Call(exception) => exception.into(),
            FetchError::System(exception) => exception,
            FetchError::Unknown(_) | FetchError::Description(_) | FetchError::UnexpectedType(_) => {
                because_of(SystemExceptionKind::IntfRepos.into(), error)
            }
        }
    }
}

/// Converts to the exception that corresponds to the contained error.
impl From<ServeError> for SystemException {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Poa(error) => error.into(),
            ServeError::Key(error) => error.into(),
            ServeError::InvalidIdl(exception) => exception,
        }
    }
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
