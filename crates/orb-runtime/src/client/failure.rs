//! Creates the exceptions of failed calls, from replies and for malformed or missing replies.

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
    decode_exception: impl Fn(&str, &mut Decoder<'_>) -> Option<Result<E, DecodeError>>,
) -> E {
    let id = match body.read_unconverted_str() {
        Ok(id) => id,
        Err(error) => return bad_reply(orb, error, operation).into(),
    };
    match decode_exception(id, body) {
        Some(Ok(exception)) => exception,
        Some(Err(error)) => bad_reply(orb, error, operation).into(),
        None => undeclared_user_exception(operation, id).into(),
    }
}

#[cold]
pub(crate) fn undeclared_user_exception(operation: &CallOperation<'_>, id: &str) -> SystemException {
    let text =
        format!("`{}` raised {}, which is not in its raises clause", operation.name, Printable::new(id));
    SystemException::unknown()
        .with_minor(minor::UNKNOWN_USER_EXCEPTION)
        .completed(CompletionStatus::Yes)
        .with_reason(text)
}

/// Creates the exception for a reply that cannot be decoded. Counts the failure if a limit caused it.
#[cold]
pub(crate) fn bad_reply(orb: &Shared, error: DecodeError, operation: &CallOperation<'_>) -> SystemException {
    orb.counters.hit_decoding_limit(&error);
    let exception = error.to_system_exception(CompletionStatus::Yes);
    SystemException::new(exception.kind, exception.minor, CompletionStatus::Yes)
        .with_reason(format!("the reply of `{}` cannot be decoded: {error}", operation.name))
}

/// Creates the exception, with COMPLETED_NO, for a malformed reply that redirects the call.
#[cold]
pub(crate) fn bad_redirection(
    orb: &Shared,
    error: DecodeError,
    operation: &CallOperation<'_>,
) -> SystemException {
    not_executed(bad_reply(orb, error, operation))
}

/// Changes the completion status to COMPLETED_NO, because the call did not reach its object.
#[cold]
pub(crate) fn not_executed(mut exception: SystemException) -> SystemException {
    exception.completed = CompletionStatus::No;
    exception
}

/// Creates the exception for an action that the `RebindMode` of the reference forbids.
#[cold]
pub(crate) fn rebind_forbidden(text: &str) -> SystemException {
    SystemException::rebind()
        .with_reason(format!("{text}; call `validate_connection` to bind the reference again"))
}

#[cold]
pub(crate) fn system_exception(
    target: &ObjectRef,
    reply: &Reply,
    operation: &CallOperation<'_>,
) -> SystemException {
    let raised = SystemException::decode(&mut reply.body())
        .unwrap_or_else(|error| bad_reply(target.orb(), error, operation));
    #[cfg(feature = "csi")]
    let raised = crate::csi::with_refusal_reason(raised, reply);
    raised
}

#[cold]
pub(crate) fn call_failed(
    error: CallError,
    operation: &CallOperation<'_>,
    link: &SharedConnection,
) -> SystemException {
    let exception = error.into_system_exception();
    SystemException::new(exception.kind, exception.minor, exception.completed).with_source(FailedCall {
        operation: operation.name.into(),
        peer: link.peer().to_string(),
        source: error,
    })
}

/// Sets the operation and the server that raised an exception as its source, unless it already has a source.
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

/// The source of a system exception that was received in a reply.
///
/// Some received exceptions have a more specific source instead, such as one with an unknown repository id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("raised by `{operation}` at {peer}")]
#[non_exhaustive]
pub struct RaisedBy {
    /// The name of the operation in requests, such as `_get_balance` for an attribute.
    pub operation: Box<str>,
    /// The address of the server.
    pub peer: String,
}

#[cold]
pub(crate) fn transient(text: String) -> SystemException {
    SystemException::transient().with_reason(text)
}

#[derive(Debug, thiserror::Error)]
#[error("`{operation}` at {peer}")]
struct FailedCall {
    operation: Box<str>,
    peer: String,
    source: CallError,
}
