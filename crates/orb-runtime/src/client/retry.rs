//! The rules for repeating a call.

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_proto::{CallError, CallErrorKind};

use crate::reference::{ObjectRef, Retry};

/// The remaining repetitions of a call.
pub(crate) struct RetryBudget {
    retry: Retry,
    not_executed: usize,
    uncertain: u32,
}

impl RetryBudget {
    pub(crate) fn new(target: &ObjectRef) -> Self {
        let retry = target.options().retry;
        let uncertain = if let Retry::Idempotent(times) = retry { times } else { 0 };
        Self { retry, not_executed: 2, uncertain }
    }

    /// Returns whether to send the request again after the connection failed.
    pub(crate) fn again(&mut self, error: &CallError) -> bool {
        if self.retry == Retry::Never {
            return false;
        }
        if error.retryable() && self.not_executed > 0 {
            self.not_executed -= 1;
            return true;
        }
        let uncertain =
            error.completed() == CompletionStatus::Maybe && !matches!(error.kind, CallErrorKind::Timeout);
        if uncertain && self.uncertain > 0 {
            self.uncertain -= 1;
            return true;
        }
        false
    }

    /// Returns whether a server's exception may result from a stale forward: one that is older than the call.
    /// `hops` is the number of forwards during the call.
    pub(crate) fn raised(&self, exception: &SystemException, hops: usize) -> bool {
        self.retry != Retry::Never
            && hops == 0
            && exception.completed == CompletionStatus::No
            && matches!(
                exception.kind,
                SystemExceptionKind::Transient
                    | SystemExceptionKind::CommFailure
                    | SystemExceptionKind::ObjectNotExist
            )
    }
}
