//! A call from its first request to its outcome: repetitions, forwards, and other forms of the address.

use std::time::Instant;

use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{AddressingDisposition, ReplyStatus};
use giop_codec::ior::{Ior, RebindMode};
use giop_proto::{CallError, Reply};

use crate::client::deadline;
use crate::client::failure::{bad_direction, failed, no_rebind, raised_by, system_exception, transient};
use crate::client::locate::{ask_reference, told_by};
use crate::client::retry::RetryBudget;
use crate::connection::{Binding, SharedConnection, now};
use crate::reference::ObjectRef;
use crate::reference::operation::CallOperation;
use crate::trace::{self, Direction};

/// The maximum number of forwards of one call.
const MAX_HOPS: usize = 10;

/// A call that may take several requests.
pub(crate) struct Attempt<'a> {
    target: &'a ObjectRef,
    operation: &'a CallOperation<'a>,
    pub(crate) deadline: Option<Instant>,
    /// The start of the current request.
    pub(crate) begun: Instant,
    budget: RetryBudget,
    /// The number of times that the call was redirected.
    hops: usize,
    /// Whether the server was asked for the reference.
    asked: bool,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(target: &'a ObjectRef, operation: &'a CallOperation<'a>) -> Self {
        let begun = now();
        let deadline = deadline(target, begun);
        Self { target, operation, deadline, begun, budget: RetryBudget::new(target), hops: 0, asked: false }
    }

    /// Returns whether to send the request again after the connection failed.
    pub(crate) fn repeats(&mut self, error: &CallError) -> bool {
        let repeats = self.budget.again(error);
        if repeats {
            self.begun = now();
        }
        repeats
    }

    /// Allows another request after the connection failed.
    ///
    /// # Errors
    /// The failure, if the call is not repeated.
    pub(crate) fn repeat_or_fail(
        &mut self,
        error: CallError,
        link: &SharedConnection,
    ) -> Result<(), SystemException> {
        if self.repeats(&error) { Ok(()) } else { Err(failed(error, self.operation, link)) }
    }

    /// Asks the server for the reference of an object of which only a URL is known, once. Returns whether it
    /// did, so that the request is encoded again.
    pub(crate) async fn asks_for_reference(&mut self, binding: &Binding) -> bool {
        let asks =
            binding.asks && self.target.must_fetch_reference() && !std::mem::replace(&mut self.asked, true);
        if asks {
            ask_reference(self.target).await;
        }
        asks
    }

    /// Records a reply, whatever its status is.
    pub(crate) fn note_reply(&self, reply: &Reply, link: &SharedConnection) {
        if trace::wire_enabled() {
            let bytes = reply.message();
            trace::wire(Direction::In, link.peer(), self.operation.name, bytes, bytes.len());
        }
        if let Some(info) = &self.target.options().reply_info {
            info.set(reply.contexts().to_vec());
        }
    }

    /// Takes the object's reference from the reply of a server that was asked for it. Returns whether the
    /// reference changed, so that the call is sent again.
    pub(crate) fn learns_reference(&mut self, reply: &Reply, binding: &Binding) -> bool {
        if !binding.asks || !self.target.must_fetch_reference() {
            return false;
        }
        if let Some(reference) = told_by(reply)
            && self.target.merge_fetched_reference(&binding.profile, &reference)
        {
            self.hops += 1;
            return true;
        }
        self.target.set_reference_fetched();
        false
    }

    /// Returns whether the reply is a result or a user exception. If not, the call is sent again: to another
    /// location, or with another form of the address.
    ///
    /// # Errors
    /// The system exception of the server; a redirection that cannot be followed.
    pub(crate) fn is_answered_by(
        &mut self,
        reply: &Reply,
        binding: &Binding,
        link: &SharedConnection,
    ) -> Result<bool, SystemException> {
        match reply.status() {
            ReplyStatus::NoException | ReplyStatus::UserException => return Ok(true),
            ReplyStatus::SystemException => {
                let raised = system_exception(self.target, reply, self.operation);
                if !self.goes_home(&raised) {
                    return Err(raised_by(raised, self.operation, link));
                }
            }
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                self.follow(&mut reply.body(), false)?;
            }
            ReplyStatus::NeedsAddressingMode => self.change_address(&mut reply.body(), binding, link)?,
        }
        Ok(false)
    }

    /// Returns whether an exception may result from a stale forward. If so, the forward is discarded.
    pub(crate) fn goes_home(&self, raised: &SystemException) -> bool {
        self.budget.raised(raised, self.hops) && self.target.drop_forward()
    }

    /// Uses the form of the address that the server asked for.
    ///
    /// # Errors
    /// TRANSIENT if the server asks for the same form again.
    pub(crate) fn change_address(
        &mut self,
        body: &mut Decoder<'_>,
        binding: &Binding,
        link: &SharedConnection,
    ) -> Result<(), SystemException> {
        let wanted = self.wanted_address(body)?;
        self.hops += 1;
        if !binding.addressing.set(wanted) || self.hops > MAX_HOPS {
            return Err(same_address(link));
        }
        Ok(())
    }

    /// Returns the form of the address that the server asked for.
    ///
    /// # Errors
    /// The reply is malformed.
    pub(crate) fn wanted_address(
        &self,
        body: &mut Decoder<'_>,
    ) -> Result<AddressingDisposition, SystemException> {
        AddressingDisposition::decode(body)
            .map_err(|error| bad_direction(self.target.orb(), error, self.operation))
    }

    /// Follows a forward to another location. `anew`: the reference is bound anew, so that its [`RebindMode`]
    /// does not forbid it.
    ///
    /// # Errors
    /// REBIND; TRANSIENT after too many forwards; INV_OBJREF for a location without a usable address.
    pub(crate) fn follow(&mut self, body: &mut Decoder<'_>, anew: bool) -> Result<(), SystemException> {
        self.hops += 1;
        if !anew && self.target.options().rebind != RebindMode::Transparent {
            return Err(no_rebind("the server sends the call elsewhere, and NO_REBIND forbids to follow"));
        }
        let name = self.operation.name;
        let ior =
            Ior::decode(body).map_err(|error| bad_direction(self.target.orb(), error, self.operation))?;
        if self.hops > MAX_HOPS {
            return Err(transient(format!(
                "`{name}` was forwarded {MAX_HOPS} times: do the servers send it in a circle?"
            )));
        }
        if ior.is_nil() || !self.target.forward_to(&ior) {
            return Err(SystemException::inv_objref()
                .with_reason(format!("`{name}` was forwarded to a reference without a usable address")));
        }
        Ok(())
    }
}

/// Creates the exception for a server that asks for the form of the address that it was sent.
#[cold]
pub(crate) fn same_address(link: &SharedConnection) -> SystemException {
    transient(format!("{} asks for the same address form again", link.peer()))
}
