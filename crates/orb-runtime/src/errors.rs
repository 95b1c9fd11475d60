//! Exceptions that all modules raise, and the trait of errors that become exceptions.

use std::error::Error;
use std::time::Duration;

use giop_codec::exception::{MinorCode, SystemException, SystemExceptionKind, minor};

/// An error of the ORB that converts to the error type `E` of an operation, as a system exception. Generated
/// code has `impl<X: OrbError<E>> From<X> for E` for each error enum `E`, so that `?` converts it in one
/// step.
///
/// The parameter exists for coherence: the crate of the enum can then rely on an exception of another crate
/// not being an `OrbError` of the enum.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not become the error `{E}` of the operation by itself",
    note = "errors of zorb's own operations do, and the exceptions of the operation's raises clause",
    note = "of any other error `.or_system_exception(SystemExceptionKind::Internal)?` (`zorb::ResultExt`) makes a system exception"
)]
pub trait OrbError<E>: Into<SystemException> {}

/// Returns a COMPLETED_NO exception with the error as its source.
pub(crate) fn not_done(
    kind: SystemExceptionKind,
    minor: MinorCode,
    error: impl Error + Send + Sync + 'static,
) -> SystemException {
    because_of(SystemException::from(kind).with_minor(minor), error)
}

/// Adds the error as the source of the exception. An error whose text includes its own source is added as
/// text, because `Display` would repeat that source.
#[doc(hidden)]
#[cold]
pub fn because_of(exception: SystemException, error: impl Error + Send + Sync + 'static) -> SystemException {
    let text = error.to_string();
    let says_all = error.source().is_some_and(|source| text.contains(&source.to_string()));
    if says_all { exception.with_reason(text) } else { exception.with_source(error) }
}

/// Returns the exception of a call after the shutdown.
pub(crate) fn closed() -> SystemException {
    SystemException::bad_inv_order()
        .with_minor(minor::BAD_INV_ORDER_SHUTDOWN)
        .with_reason("the ORB has shut down")
}

/// Returns the exception of a call without a runtime.
pub(crate) fn no_runtime() -> SystemException {
    SystemException::initialize()
        .with_reason("calls need a tokio runtime; from a plain thread use zorb::blocking::wait")
}

/// Formats a duration for people.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{duration:?}")
}
