//! Failures of calls: exceptions in replies, malformed replies, calls without a reply.

use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::{DecodeError, Printable};
use giop_proto::{CallError, Reply};

use crate::connection::SharedConnection;
use crate::reference::ObjectRef;
use crate::reference::operation::CallOperation;
use crate::runtime::Shared;

#[cold]
pub(crate) fn user_exception<E: From<SystemException>>(
    orb: &Shared,
    body: &mut Decoder<'_>,
    operation: &CallOperation<'_>,
    raised: impl Fn(&str, &mut Decoder<'_>) -> Option<Result<E, DecodeError>>,
) -> E {
    let id = match body.read_str_ascii() {
        Ok(id) => id,
        Err(error) => return bad_reply(orb, error, operation).into(),
    };
    match raised(id, body) {
        Some(Ok(exception)) => exception,
        Some(Err(error)) => bad_reply(orb, error, operation).into(),
        None => unlisted(operation, id).into(),
    }
}

/// Creates the exception for a user exception that is not in the raises clause.
#[cold]
pub(crate) fn unlisted(operation: &CallOperation<'_>, id: &str) -> SystemException {
    SystemException::unknown()
        .with_minor(minor::UNKNOWN_USER_EXCEPTION)
        .completed(CompletionStatus::Yes)
        .with_reason(format!(
            "`{}` raised {}, which is not in its raises clause",
            operation.name,
            Printable::new(id)
        ))
}

/// Creates the exception for a reply that does not decode. Counts the failure if a limit caused it.
#[cold]
pub(crate) fn bad_reply(orb: &Shared, error: DecodeError, operation: &CallOperation<'_>) -> SystemException {
    orb.counters.hit_decoding_limit(&error);
    let exception = error.system(CompletionStatus::Yes);
    SystemException::new(exception.kind, exception.minor, CompletionStatus::Yes)
        .with_reason(format!("the reply of `{}` does not decode: {error}", operation.name))
}

/// Creates the exception for a malformed reply that redirects the call: nothing was executed.
#[cold]
pub(crate) fn bad_direction(
    orb: &Shared,
    error: DecodeError,
    operation: &CallOperation<'_>,
) -> SystemException {
    not_executed(bad_reply(orb, error, operation))
}

/// Changes the completion status to COMPLETED_NO, because the call did not reach its object. A LocateRequest
/// never does.
#[cold]
pub(crate) fn not_executed(mut exception: SystemException) -> SystemException {
    exception.completed = CompletionStatus::No;
    exception
}

/// Creates the exception for an action that the reference's [`RebindMode`] forbids.
#[cold]
pub(crate) fn no_rebind(text: &str) -> SystemException {
    SystemException::rebind().with_reason(format!("{text}: `validate_connection` binds the reference anew"))
}

/// Decodes the system exception in a reply.
#[cold]
pub(crate) fn system_exception(
    target: &ObjectRef,
    reply: &Reply,
    operation: &CallOperation<'_>,
) -> SystemException {
    let raised = SystemException::decode(&mut reply.body())
        .unwrap_or_else(|error| bad_reply(target.orb(), error, operation));
    #[cfg(feature = "csi")]
    let raised = crate::csi::explained(raised, reply);
    raised
}

#[cold]
pub(crate) fn failed(
    error: CallError,
    operation: &CallOperation<'_>,
    link: &SharedConnection,
) -> SystemException {
    let exception = error.into_system_exception();
    SystemException::new(exception.kind, exception.minor, exception.completed).with_source(Failed {
        operation: operation.name.into(),
        peer: link.peer().to_string(),
        source: error,
    })
}

/// Adds the server and operation that raised an exception, unless the exception has another cause.
#[cold]
pub(crate) fn raised_by(
    exception: SystemException,
    operation: &CallOperation<'_>,
    link: &SharedConnection,
) -> SystemException {
    if std::error::Error::source(&exception).is_some() {
        return exception;
    }
    exception.with_source(RaisedBy { operation: operation.name.into(), peer: link.peer().to_string() })
}

/// The cause of a system exception that was received in a reply.
///
/// An exception for which the server gave another cause, such as one with an unknown id, has that cause
/// instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("raised by `{operation}` at {peer}")]
#[non_exhaustive]
pub struct RaisedBy {
    /// The name of the operation on the wire.
    pub operation: Box<str>,
    /// The address of the server.
    pub peer: String,
}

#[cold]
pub(crate) fn transient(text: String) -> SystemException {
    SystemException::transient().with_reason(text)
}

/// The operation and the peer of a failed call.
#[derive(Debug, thiserror::Error)]
#[error("`{operation}` at {peer}")]
struct Failed {
    operation: Box<str>,
    peer: String,
    source: CallError,
}
