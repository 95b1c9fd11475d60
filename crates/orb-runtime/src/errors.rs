//! Exceptions that several modules raise, and the trait of errors that convert to exceptions.

use std::error::Error;

use giop_codec::exception::{MinorCode, SystemException, SystemExceptionKind, minor};

/// An error of the ORB that converts to the error type `E` of an operation, as a system exception. Generated
/// code has `impl<X: OrbError<E>> From<X> for E` for each error enum `E`, so that `?` converts the error in
/// one step.
///
/// The parameter `E` makes these implementations possible. Without it, the compiler would assume that a later
/// version of another crate implements `OrbError` for an exception that `E` also converts from.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not convert to the error `{E}` of the operation",
    note = "`?` converts errors of zorb's own functions, and the exceptions of the operation's raises clause",
    note = "for any other error, use `.or_system_exception(SystemExceptionKind::Internal)?` (`zorb::ResultExt`)"
)]
pub trait OrbError<E>: Into<SystemException> {}

/// Returns a COMPLETED_NO exception with the error as its source.
pub(crate) fn unexecuted_because(
    kind: SystemExceptionKind,
    minor: MinorCode,
    error: impl Error + Send + Sync + 'static,
) -> SystemException {
    because_of(SystemException::from(kind).with_minor(minor), error)
}

/// Adds the error as the source of the exception, or only its text if this includes the text of its source.
#[doc(hidden)]
#[cold]
pub fn because_of(exception: SystemException, error: impl Error + Send + Sync + 'static) -> SystemException {
    let text = error.to_string();
    let includes_source = error.source().is_some_and(|source| text.contains(&source.to_string()));
    if includes_source { exception.with_reason(text) } else { exception.with_source(error) }
}

pub(crate) fn orb_shut_down() -> SystemException {
    SystemException::bad_inv_order()
        .with_minor(minor::BAD_INV_ORDER_SHUTDOWN)
        .with_reason("the ORB has shut down")
}

pub(crate) fn no_runtime() -> SystemException {
    SystemException::initialize()
        .with_reason("calls need a tokio runtime; from a plain thread use zorb::blocking::wait")
}
