//! Failures of commands, and their exit codes.

use std::error::Error;
use std::fmt;

use zorb::cos_naming::NamingError;
use zorb::dynamic::DynamicException;
use zorb::{NarrowError, RaisedBy, ResolveError, SystemException, SystemExceptionKind};

use crate::Verdict;
use crate::output::causes;

/// Options that contradict each other.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// An error with a hint.
#[derive(Debug)]
struct Hinted {
    error: anyhow::Error,
    hint: &'static str,
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", causes(&self.error), self.hint)
    }
}

impl Error for Hinted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let error: &(dyn Error + Send + Sync + 'static) = self.error.as_ref();
        Some(error)
    }
}

/// Adds a hint to an error.
pub(crate) fn hinted(error: impl Into<anyhow::Error>, hint: &'static str) -> anyhow::Error {
    Hinted { error: error.into(), hint }.into()
}

/// Returns the verdict of a command for an error: a negative answer, wrong options, or unknown.
pub(crate) fn verdict(error: &anyhow::Error) -> Verdict {
    error.chain().find_map(of_cause).unwrap_or(Verdict::Unknown)
}

fn of_cause(cause: &(dyn Error + 'static)) -> Option<Verdict> {
    if cause.is::<Usage>() {
        return Some(Verdict::Usage);
    }
    if let Some(error) = cause.downcast_ref::<SystemException>() {
        return Some(of_exception(error));
    }
    if let Some(error) = cause.downcast_ref::<NamingError>() {
        return match error {
            NamingError::System(error) => Some(of_exception(error)),
            NamingError::Narrow { source, .. } => of_cause(source),
            NamingError::Text { .. } => Some(Verdict::Unknown),
            _ => Some(Verdict::Bad),
        };
    }
    if let Some(error) = cause.downcast_ref::<NarrowError>() {
        return match error {
            NarrowError::Call { source, .. } => Some(of_exception(source)),
            _ => Some(Verdict::Bad),
        };
    }
    if let Some(error) = cause.downcast_ref::<ResolveError>() {
        return match error {
            ResolveError::Naming { source, .. } => Some(of_exception(source)),
            ResolveError::Narrow(error) => of_cause(error),
            _ => Some(Verdict::Unknown),
        };
    }
    match cause.downcast_ref::<DynamicException>()? {
        DynamicException::System(error) => Some(of_exception(error)),
        _ => Some(Verdict::Bad),
    }
}

/// Returns the verdict for a system exception. One that a server raised is its answer. Otherwise the result
/// is unknown.
pub(crate) fn of_exception(error: &SystemException) -> Verdict {
    let raised = error.source().is_some_and(|source| source.is::<RaisedBy>());
    let unreached = matches!(
        error.kind,
        SystemExceptionKind::Transient
            | SystemExceptionKind::CommFailure
            | SystemExceptionKind::Timeout
            | SystemExceptionKind::NoResponse
    );
    if unreached && !raised { Verdict::Unknown } else { Verdict::Bad }
}
