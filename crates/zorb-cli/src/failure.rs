//! Failures of commands, and their exit codes.

use std::error::Error;
use std::fmt;

use zorb::cos_naming::NamingError;
use zorb::dynamic::DynamicException;
use zorb::{NarrowError, RaisedBy, ResolveError, SystemException, SystemExceptionKind};

use crate::output::with_causes;

/// The result of a command. The value is the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good = 0,
    /// The answer is negative: for example, the object raises an exception or does not exist.
    Bad = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The answer is not known, for example because the server cannot be reached.
    Unknown = 3,
}

#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UsageError {}

#[derive(Debug)]
struct ErrorWithHint {
    error: anyhow::Error,
    hint: &'static str,
}

impl fmt::Display for ErrorWithHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", with_causes(&self.error), self.hint)
    }
}

impl Error for ErrorWithHint {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let error: &(dyn Error + Send + Sync + 'static) = self.error.as_ref();
        Some(error)
    }
}

pub(crate) fn with_hint(error: impl Into<anyhow::Error>, hint: &'static str) -> anyhow::Error {
    ErrorWithHint { error: error.into(), hint }.into()
}

pub(crate) fn verdict(error: &anyhow::Error) -> Verdict {
    error.chain().find_map(verdict_of_cause).unwrap_or(Verdict::Unknown)
}

fn verdict_of_cause(cause: &(dyn Error + 'static)) -> Option<Verdict> {
    if cause.is::<UsageError>() {
        return Some(Verdict::Usage);
    }
    if let Some(error) = cause.downcast_ref::<SystemException>() {
        return Some(verdict_of_exception(error));
    }
    if let Some(error) = cause.downcast_ref::<NamingError>() {
        return match error {
            NamingError::System(error) => Some(verdict_of_exception(error)),
            NamingError::Narrow { source, .. } => verdict_of_cause(source),
            NamingError::Text { .. } => Some(Verdict::Unknown),
            _ => Some(Verdict::Bad),
        };
    }
    if let Some(error) = cause.downcast_ref::<NarrowError>() {
        return match error {
            NarrowError::Call { source, .. } => Some(verdict_of_exception(source)),
            _ => Some(Verdict::Bad),
        };
    }
    if let Some(error) = cause.downcast_ref::<ResolveError>() {
        return match error {
            ResolveError::Naming { source, .. } => Some(verdict_of_exception(source)),
            ResolveError::Narrow(error) => verdict_of_cause(error),
            _ => Some(Verdict::Unknown),
        };
    }
    cause.downcast_ref::<DynamicException>().map(verdict_of_dynamic)
}

pub(crate) fn verdict_of_dynamic(exception: &DynamicException) -> Verdict {
    match exception {
        DynamicException::System(error) => verdict_of_exception(error),
        _ => Verdict::Bad,
    }
}

/// Returns the verdict for a system exception. The verdict is [`Verdict::Unknown`] if the ORB of this process
/// raised the exception because there was no answer.
pub(crate) fn verdict_of_exception(error: &SystemException) -> Verdict {
    let is_from_server = error.source().is_some_and(|source| source.is::<RaisedBy>());
    let means_no_answer = matches!(
        error.kind,
        SystemExceptionKind::Transient
            | SystemExceptionKind::CommFailure
            | SystemExceptionKind::Timeout
            | SystemExceptionKind::NoResponse
    );
    if means_no_answer && !is_from_server { Verdict::Unknown } else { Verdict::Bad }
}
