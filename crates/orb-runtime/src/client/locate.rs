//! LocateRequests, by which servers are asked whether they have an object.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use giop_codec::EncodeError;
use giop_codec::cdr::CdrDecode as _;
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    ContextId, LocateRequestHeader, LocateStatus, MessageType, ReplyStatus, finish_message,
    put_message_header,
};
use giop_codec::ior::Ior;
use giop_proto::{CallError, Reply};

use crate::client::bind::SharedBinding;
use crate::client::call_progress::{CallProgress, ForwardRule};
use crate::client::failure::{bad_redirection, not_executed, raised_by, transient};
use crate::client::request::address_of;
use crate::connection::{Binding, SharedConnection, StartedRequest};
use crate::reference::operation::Operation;
use crate::reference::{ObjectRef, Reference};

/// Calls the object so that its server sends the object's reference, of which only a URL is known. Ignores
/// errors, because they do not belong to the request of the caller.
#[cold]
pub(crate) fn fetch_reference(target: &ObjectRef) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
    Box::pin(async move {
        let _ = Reference::non_existent(target).await;
    })
}

/// Returns the object's reference, if the reply contains it because it was requested.
#[cold]
pub(crate) fn reference_in(reply: &Reply) -> Option<Ior> {
    let has_reference = reply.status() == ReplyStatus::LocationForward
        && reply.contexts().find(ContextId::ZORB_REFERENCE).is_some();
    if has_reference { Ior::decode(&mut reply.body()).ok() } else { None }
}

/// Asks by LocateRequest whether the object exists. With [`ForwardRule::Always`], follows forwards even if
/// the reference's [`RebindMode`](giop_codec::ior::RebindMode) forbids that.
pub(crate) async fn locate(target: &ObjectRef, rule: ForwardRule) -> Result<bool, SystemException> {
    static LOCATE: Operation = Operation::twoway("LocateRequest");
    let mut progress = CallProgress::new(target, &LOCATE);
    loop {
        let SharedBinding { binding, link } = target.bind_shared(|| progress.deadline).await?;
        let reply = match send_locate_request(target, &link, &binding, &progress).await? {
            Ok(reply) => reply,
            Err(error) => {
                target.unbind(&binding);
                progress.retry_or_fail(error, &link).map_err(not_executed)?;
                continue;
            }
        };
        match reply.locate_status() {
            Some(LocateStatus::ObjectHere) => return Ok(true),
            Some(LocateStatus::UnknownObject) => return Ok(false),
            Some(LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm) => {
                progress.follow_forward(&mut reply.body(), rule)?;
            }
            Some(LocateStatus::SystemException) => {
                let raised = SystemException::decode(&mut reply.body())
                    .unwrap_or_else(|error| bad_redirection(target.orb(), error, &LOCATE));
                return Err(raised_by(raised, &LOCATE, &link));
            }
            Some(LocateStatus::NeedsAddressingMode) => {
                progress.change_address_form(&mut reply.body(), &binding, &link)?;
            }
            None => {
                let text = format!("{} answered a LocateRequest with another message", link.peer());
                return Err(transient(text));
            }
        }
    }
}

/// Sends a LocateRequest. Fails if it cannot be encoded. Returns the reply, or the failure of the connection.
pub(crate) async fn send_locate_request(
    target: &ObjectRef,
    link: &Arc<SharedConnection>,
    binding: &Binding,
    progress: &CallProgress<'_>,
) -> Result<Result<Reply, CallError>, EncodeError> {
    let (pending, StartedRequest { id, mut encoder, .. }) =
        match link.begin_call(progress.deadline, binding.version, None, progress.request_start) {
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
