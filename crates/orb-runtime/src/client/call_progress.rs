//! [`CallProgress`], the state of a call that may need several requests.

use std::time::Instant;

use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_codec::giop::{AddressingDisposition, ReplyStatus};
use giop_codec::ior::{Ior, RebindMode};
use giop_proto::{CallError, CallErrorKind, Reply};

use crate::client::deadline;
use crate::client::failure::{
    bad_redirection, call_failed, raised_by, rebind_forbidden, system_exception, transient,
};
use crate::client::locate::{fetch_reference, reference_in};
use crate::connection::{Binding, SharedConnection, now};
use crate::reference::operation::CallOperation;
use crate::reference::{ObjectRef, Retry};
use crate::trace::{self, Direction};

const MAX_REDIRECTS: usize = 10;

/// Whether a forward to another location is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardRule {
    ByRebindMode,
    Always,
}

/// The state of a call. It may need several requests, because of retries, forwards, or the address form.
pub(crate) struct CallProgress<'a> {
    target: &'a ObjectRef,
    operation: &'a CallOperation<'a>,
    pub(crate) deadline: Option<Instant>,
    /// The start of the current request.
    pub(crate) request_start: Instant,
    budget: RetryBudget,
    redirects: usize,
    has_fetched_reference: bool,
}

impl<'a> CallProgress<'a> {
    pub(crate) fn new(target: &'a ObjectRef, operation: &'a CallOperation<'a>) -> Self {
        let request_start = now();
        let (deadline, budget) = (deadline(target, request_start), RetryBudget::new(target));
        let (redirects, has_fetched_reference) = (0, false);
        Self { target, operation, deadline, request_start, budget, redirects, has_fetched_reference }
    }

    /// Returns whether to send the request again after the connection failed.
    pub(crate) fn should_retry(&mut self, error: &CallError) -> bool {
        let should_retry = self.budget.take_retry(error);
        if should_retry {
            self.request_start = now();
        }
        should_retry
    }

    /// Prepares for sending the request again, or fails if it must not be sent again.
    pub(crate) fn retry_or_fail(
        &mut self,
        error: CallError,
        link: &SharedConnection,
    ) -> Result<(), SystemException> {
        if self.should_retry(&error) { Ok(()) } else { Err(call_failed(error, self.operation, link)) }
    }

    /// If only a URL of the object is known, requests its reference from the server, at most once for each
    /// call. Returns whether it was requested. The request of the caller must then be encoded again.
    pub(crate) async fn fetch_reference_once(&mut self, binding: &Binding) -> bool {
        let fetches = binding.requests_reference
            && self.target.must_fetch_reference()
            && !std::mem::replace(&mut self.has_fetched_reference, true);
        if fetches {
            fetch_reference(self.target).await;
        }
        fetches
    }

    /// Logs a reply in the wire log, and stores its service contexts if the caller requested them.
    pub(crate) fn record_reply(&self, reply: &Reply, link: &SharedConnection) {
        if trace::is_wire_log_enabled() {
            let bytes = reply.message();
            trace::log_message(Direction::In, link.peer(), self.operation.name, bytes, bytes.len());
        }
        if let Some(info) = &self.target.options().reply_info {
            info.set(reply.contexts().to_vec());
        }
    }

    /// Adopts the object's reference from the reply, if it was requested. Returns whether the reference has
    /// changed, so that the request must be sent again.
    pub(crate) fn adopt_reference(&mut self, reply: &Reply, binding: &Binding) -> bool {
        if !binding.requests_reference || !self.target.must_fetch_reference() {
            return false;
        }
        if let Some(reference) = reference_in(reply)
            && self.target.merge_fetched_reference(&binding.profile, &reference)
        {
            self.redirects += 1;
            return true;
        }
        self.target.set_reference_fetched();
        false
    }

    /// Returns `true` if the reply is a result or a user exception. Returns `false` if the request must be
    /// sent again: to another location, or with another form of the address. Fails with the system exception
    /// of the server, or if a redirection cannot be followed.
    pub(crate) fn accept_reply(
        &mut self,
        reply: &Reply,
        binding: &Binding,
        link: &SharedConnection,
    ) -> Result<bool, SystemException> {
        match reply.status() {
            ReplyStatus::NoException | ReplyStatus::UserException => return Ok(true),
            ReplyStatus::SystemException => {
                let raised = system_exception(self.target, reply, self.operation);
                if !self.discard_stale_forward(&raised) {
                    return Err(raised_by(raised, self.operation, link));
                }
            }
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                self.follow_forward(&mut reply.body(), ForwardRule::ByRebindMode)?;
            }
            ReplyStatus::NeedsAddressingMode => self.change_address_form(&mut reply.body(), binding, link)?,
        }
        Ok(false)
    }

    /// Discards an earlier forward, if it may have caused the exception. Returns whether one was discarded.
    pub(crate) fn discard_stale_forward(&self, raised: &SystemException) -> bool {
        self.budget.may_be_stale_forward(raised, self.redirects) && self.target.drop_forward()
    }

    /// Changes to the form of the address that the server requested. Fails with TRANSIENT if that is the form
    /// of the last request, or after too many redirections.
    pub(crate) fn change_address_form(
        &mut self,
        body: &mut Decoder<'_>,
        binding: &Binding,
        link: &SharedConnection,
    ) -> Result<(), SystemException> {
        let form = self.decode_address_form(body)?;
        self.redirects += 1;
        if !binding.addressing.set(form) || self.redirects > MAX_REDIRECTS {
            return Err(address_form_repeated(link));
        }
        Ok(())
    }

    pub(crate) fn decode_address_form(
        &self,
        body: &mut Decoder<'_>,
    ) -> Result<AddressingDisposition, SystemException> {
        AddressingDisposition::decode(body)
            .map_err(|error| bad_redirection(self.target.orb(), error, self.operation))
    }

    /// Follows a forward to another location. Fails with REBIND if the reference's [`RebindMode`] forbids
    /// that, unless `rule` is [`ForwardRule::Always`]. Fails with TRANSIENT after too many forwards, and with
    /// INV_OBJREF if the location has no usable address.
    pub(crate) fn follow_forward(
        &mut self,
        body: &mut Decoder<'_>,
        rule: ForwardRule,
    ) -> Result<(), SystemException> {
        self.redirects += 1;
        if rule == ForwardRule::ByRebindMode && self.target.options().rebind != RebindMode::Transparent {
            return Err(rebind_forbidden(
                "the server forwarded the call, and the reference's RebindMode forbids following it",
            ));
        }
        let name = self.operation.name;
        let ior =
            Ior::decode(body).map_err(|error| bad_redirection(self.target.orb(), error, self.operation))?;
        if self.redirects > MAX_REDIRECTS {
            return Err(transient(format!(
                "`{name}` was forwarded {MAX_REDIRECTS} times: the servers may forward it in a cycle"
            )));
        }
        if ior.is_nil() || !self.target.forward_to(&ior) {
            return Err(SystemException::inv_objref()
                .with_reason(format!("`{name}` was forwarded to a reference without a usable address")));
        }
        Ok(())
    }
}

#[cold]
pub(crate) fn address_form_repeated(link: &SharedConnection) -> SystemException {
    transient(format!("{} requests the same form of the object's address again", link.peer()))
}

/// The number of times that a call may still be retried.
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

    /// Returns whether to send the request again after the connection failed. If so, counts the retry.
    pub(crate) fn take_retry(&mut self, error: &CallError) -> bool {
        if self.retry == Retry::Never {
            return false;
        }
        if error.is_retryable() && self.retries_if_unexecuted > 0 {
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

    /// Returns whether a server's exception may be caused by a forward that was received before this call and
    /// is outdated. `redirects` is the number of redirections of this call.
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
