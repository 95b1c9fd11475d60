//! The rules for sending the request of a call again.

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_proto::{CallError, CallErrorKind};

use crate::reference::{ObjectRef, Retry};

/// The remaining retries of a call.
pub(crate) struct RetryBudget {
    retry: Retry,
    /// Remaining retries after failures that prove that the request was not executed.
    retries_if_unexecuted: usize,
    /// Remaining retries after failures that leave open whether the request was executed.
    retries_if_uncertain: u32,
}

impl RetryBudget {
    pub(crate) fn new(target: &ObjectRef) -> Self {
        let retry = target.options().retry;
        let retries_if_uncertain = if let Retry::Idempotent(times) = retry { times } else { 0 };
        Self { retry, retries_if_unexecuted: 2, retries_if_uncertain }
    }

    /// Returns whether to send the request again after the connection failed, and subtracts the retry.
    pub(crate) fn take_retry(&mut self, error: &CallError) -> bool {
        if self.retry == Retry::Never {
            return false;
        }
        if error.retryable() && self.retries_if_unexecuted > 0 {
            self.retries_if_unexecuted -= 1;
            return true;
        }
        let is_uncertain =
            error.completed() == CompletionStatus::Maybe && !matches!(error.kind, CallErrorKind::Timeout);
        if is_uncertain && self.retries_if_uncertain > 0 {
            self.retries_if_uncertain -= 1;
            return true;
        }
        false
    }

    /// Returns whether a server's exception may be caused by a stale forward, which was received before this
    /// call. `redirects` is the number of redirections of this call.
    pub(crate) fn may_be_stale_forward(&self, exception: &SystemException, redirects: usize) -> bool {
        self.retry != Retry::Never
            && redirects == 0
            && exception.completed == CompletionStatus::No
            && matches!(
                exception.kind,
                SystemExceptionKind::Transient
                    | SystemExceptionKind::CommFailure
                    | SystemExceptionKind::ObjectNotExist
            )
    }
}
