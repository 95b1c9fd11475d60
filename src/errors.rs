//! Errors of this crate as what servants raise, as those of `orb_runtime` are.

use orb_runtime::dynamic::DynamicException;
use orb_runtime::private::{OrbError, because_of, unknown_user_exception};
use orb_runtime::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};

use crate::cos_naming::NamingError;

/// A text that is no name: `BAD_PARAM`; nil: `INV_OBJREF`, both COMPLETED_NO; an exception of the naming service: `UNKNOWN` minor OMG 1,
/// COMPLETED_MAYBE, as where generated code passes on one that the operation does not raise; a failed call: what it brought.
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

/// IDL that is not taken: `BAD_PARAM`, COMPLETED_NO.
#[cfg(feature = "dynamic")]
impl From<crate::dynamic::IdlError> for SystemException {
    fn from(error: crate::dynamic::IdlError) -> Self {
        not_done(SystemExceptionKind::BadParam, error)
    }
}

/// The call's exception; `INTF_REPOS`, COMPLETED_NO, where the repository does not know the interface, or does not describe one.
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

/// What its adapter or key was refused with.
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
