//! Conversion of this crate's errors to exceptions that servants raise, as for those of `orb_runtime`.

use orb_runtime::dynamic::DynamicException;
use orb_runtime::private::{OrbError, because_of, unknown_user_exception};
use orb_runtime::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};

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

/// `BAD_PARAM`, COMPLETED_NO.
#[cfg(feature = "dynamic")]
impl From<crate::dynamic::IdlError> for SystemException {
    fn from(error: crate::dynamic::IdlError) -> Self {
        not_done(SystemExceptionKind::BadParam, error)
    }
}

/// The call's exception. `INTF_REPOS`, COMPLETED_NO, if the repository does not have the interface, or does
/// not describe one.
#[cfg(feature = "dynamic")]
impl From<crate::dynamic::FetchError> for SystemException {
    fn from(error: crate::dynamic::FetchError) -> Self {
        use crate::dynamic::FetchError;
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
#[cfg(feature = "dynamic")]
impl From<crate::dynamic::ServeError> for SystemException {
    fn from(error: crate::dynamic::ServeError) -> Self {
        use crate::dynamic::ServeError;
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
    because_of(SystemException::new(kind, MinorCode::NONE, CompletionStatus::No), error)
}

macro_rules! orb_errors {
    ($($(#[$on:meta])* $error:ty;)+) => {
        $(
            $(#[$on])*
            impl<E> OrbError<E> for $error {}

            $(#[$on])*
            impl From<$error> for DynamicException {
                fn from(error: $error) -> Self {
                    Self::System(error.into())
                }
            }
        )+
    };
}

orb_errors! {
    NamingError;
    #[cfg(feature = "dynamic")] crate::dynamic::FetchError;
    #[cfg(feature = "dynamic")] crate::dynamic::IdlError;
    #[cfg(feature = "dynamic")] crate::dynamic::ServeError;
}
