//! Asking servers for the location of objects.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use giop_codec::EncodeError;
use giop_codec::cdr::CdrDecode as _;
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    ContextId, LocateRequestHeader, LocateStatus, MessageType, ReplyStatus, finish_message,
    put_message_header,
};
use giop_codec::ior::Ior;
use giop_proto::{CallError, Reply};

use crate::client::attempt::Attempt;
use crate::client::bind::SharedBinding;
use crate::client::failure::{bad_redirection, not_executed, raised_by, transient};
use crate::client::request::address_of;
use crate::connection::{Binding, SharedConnection, StartedRequest};
use crate::reference::operation::Operation;
use crate::reference::{ObjectRef, Reference};

/// Asks the server for the rest of a reference of which only a URL is known. Errors are ignored, because they
/// do not belong to the request of the caller.
#[cold]
pub(crate) fn ask_reference(target: &ObjectRef) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
    Box::pin(async move {
        let _ = Reference::non_existent(target).await;
    })
}

/// Returns the object's reference if the reply contains it because the server was asked for it.
#[cold]
pub(crate) fn reference_in(reply: &Reply) -> Option<Ior> {
    let has_reference = reply.status() == ReplyStatus::LocationForward
        && reply.contexts().find(ContextId::ZORB_REFERENCE).is_some();
    if has_reference { Ior::decode(&mut reply.body()).ok() } else { None }
}

/// Asks by LocateRequest whether the object exists. With `ignore_rebind_mode`, follows forwards even if the
/// reference's [`RebindMode`](giop_codec::ior::RebindMode) forbids them.
pub(crate) async fn locate(target: &ObjectRef, ignore_rebind_mode: bool) -> Result<bool, SystemException> {
    static LOCATE: Operation = Operation::twoway("LocateRequest");
    let mut attempt = Attempt::new(target, &LOCATE);
    loop {
        let SharedBinding { binding, link } = target.bind_shared(|| attempt.deadline).await?;
        let reply = match ask(target, &link, &binding, attempt.deadline, attempt.begun).await? {
            Ok(reply) => reply,
            Err(error) => {
                target.unbind(&binding);
                attempt.retry_or_fail(error, &link).map_err(not_executed)?;
                continue;
            }
        };
        match reply.locate_status() {
            Some(LocateStatus::ObjectHere) => return Ok(true),
            Some(LocateStatus::UnknownObject) => return Ok(false),
            Some(LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm) => {
                attempt.follow_forward(&mut reply.body(), ignore_rebind_mode)?;
            }
            Some(LocateStatus::SystemException) => {
                let raised = SystemException::decode(&mut reply.body())
                    .unwrap_or_else(|error| bad_redirection(target.orb(), error, &LOCATE));
                return Err(raised_by(raised, &LOCATE, &link));
            }
            Some(LocateStatus::NeedsAddressingMode) => {
                attempt.change_address_form(&mut reply.body(), &binding, &link)?;
            }
            None => {
                let text = format!("{} answered a LocateRequest with another message", link.peer());
                return Err(transient(text));
            }
        }
    }
}

pub(crate) async fn ask(
    target: &ObjectRef,
    link: &Arc<SharedConnection>,
    binding: &Binding,
    deadline: Option<Instant>,
    begun: Instant,
) -> Result<Result<Reply, CallError>, EncodeError> {
    let (pending, StartedRequest { id, mut encoder, .. }) =
        match link.begin_call(deadline, binding.version, None, begun) {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(error)),
        };
    let size_at = put_message_header(&mut encoder, MessageType::LocateRequest);
    let target = address_of(target, binding, binding.addressing.get())?;
    LocateRequestHeader { request_id: id, target }.encode(&mut encoder)?;
    finish_message(&mut encoder, size_at)?;
    pending.send_locate(encoder);
    Ok(pending.locate_reply().await)
}
