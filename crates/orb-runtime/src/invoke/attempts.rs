//! When a call may be made again.

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_proto::{CallError, CallErrorKind};

use crate::reference::{ObjectRef, Retry};

/// How often a call may be made again.
pub(super) struct Attempts {
    retry: Retry,
    not_executed: usize,
    uncertain: u32,
}

impl Attempts {
    pub(super) fn new(target: &ObjectRef) -> Self {
        let retry = target.options().retry;
        let uncertain = if let Retry::Idempotent(times) = retry { times } else { 0 };
        Self { retry, not_executed: 2, uncertain }
    }

    /// Whether to send again after the connection failed.
    pub(super) fn again(&mut self, error: &CallError) -> bool {
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

    /// Whether a server's exception may be due to a stale forward: one that is older than the call, which was forwarded `hops` times.
    pub(super) fn raised(&self, exception: &SystemException, hops: usize) -> bool {
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
