//! How calls fail: exceptions in replies, replies that do not decode, calls that get no reply.

use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::{DecodeError, Printable};
use giop_proto::{CallError, Reply};

use super::Called;
use crate::link::Link;
use crate::orb::OrbCore;
use crate::reference::ObjectRef;

#[cold]
pub(super) fn user_exception<E: From<SystemException>>(
    orb: &OrbCore,
    body: &mut Decoder<'_>,
    operation: &Called<'_>,
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

/// The exception for a user exception that is not in the raises clause.
#[cold]
pub(crate) fn unlisted(operation: &Called<'_>, id: &str) -> SystemException {
    let (kind, minor) = (SystemExceptionKind::Unknown, minor::UNKNOWN_USER_EXCEPTION);
    SystemException::new(kind, minor, CompletionStatus::Yes).because(format!(
        "`{}` raised {}, which is not in its raises clause",
        operation.name,
        Printable::new(id)
    ))
}

/// A reply that does not decode; counted, where that is because of a limit.
#[cold]
pub(crate) fn bad_reply(orb: &OrbCore, error: DecodeError, operation: &Called<'_>) -> SystemException {
    orb.hit_by(&error);
    let exception = error.system(CompletionStatus::Yes);
    SystemException::new(exception.kind, exception.minor, CompletionStatus::Yes)
        .because(format!("the reply of `{}` does not decode: {error}", operation.name))
}

/// The same of a reply that says that nothing was executed: where else to call, or how.
#[cold]
pub(super) fn bad_direction(orb: &OrbCore, error: DecodeError, operation: &Called<'_>) -> SystemException {
    not_executed(bad_reply(orb, error, operation))
}

/// The same exception of a call that did not reach its object, as no LocateRequest does.
#[cold]
pub(super) fn not_executed(mut exception: SystemException) -> SystemException {
    exception.completed = CompletionStatus::No;
    exception
}

/// What the reference's [`RebindMode`] forbids.
#[cold]
pub(super) fn no_rebind(text: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::Rebind, MinorCode::NONE, CompletionStatus::No)
        .because(format!("{text}: `validate_connection` binds the reference anew"))
}

/// The system exception in a reply.
#[cold]
pub(super) fn system_exception(target: &ObjectRef, reply: &Reply, operation: &Called<'_>) -> SystemException {
    let raised = SystemException::decode(&mut reply.body())
        .unwrap_or_else(|error| bad_reply(target.orb(), error, operation));
    #[cfg(feature = "csi")]
    let raised = crate::csi::explained(raised, reply);
    raised
}

#[cold]
pub(super) fn failed(error: CallError, operation: &Called<'_>, link: &Link) -> SystemException {
    let exception = error.into_system_exception();
    SystemException::new(exception.kind, exception.minor, exception.completed).with_source(Failed {
        operation: operation.name.into(),
        peer: link.peer().to_string(),
        source: error,
    })
}

/// Adds where an exception in a reply was raised, unless the exception has another cause.
#[cold]
pub(super) fn raised_by(exception: SystemException, operation: &Called<'_>, link: &Link) -> SystemException {
    if std::error::Error::source(&exception).is_some() {
        return exception;
    }
    exception.with_source(RaisedBy { operation: operation.name.into(), peer: link.peer().to_string() })
}

/// The cause of a system exception that came in a reply: the server answered, and says no.
///
/// An exception that a server gave another cause, such as one of an unknown id, has that one instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("raised by `{operation}` at {peer}")]
#[non_exhaustive]
pub struct RaisedBy {
    /// The operation, as messages name it.
    pub operation: Box<str>,
    /// Where the server is.
    pub peer: String,
}

#[cold]
pub(crate) fn transient(text: String) -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::NONE, CompletionStatus::No).because(text)
}

/// Which call failed where.
#[derive(Debug, thiserror::Error)]
#[error("`{operation}` at {peer}")]
struct Failed {
    operation: Box<str>,
    peer: String,
    source: CallError,
}
