//! Calls with a `@stream` argument from a source or a `@stream` result, over exclusive connections.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use giop_codec::EncodeErrorKind;
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::giop::{LocateStatus, ReplyStatus, ResponseFlags};
use giop_proto::calls::CallId;
use giop_proto::{CallError, Reply, SentPart};

use crate::client::CallObserver;
use crate::client::bind::ExclusiveBinding;
use crate::client::call_progress::{CallProgress, ForwardRule, RetryBudget, address_form_repeated};
use crate::client::failure::{call_failed, raised_by, system_exception};
use crate::client::locate::send_locate_request;
use crate::client::request::OutgoingRequest;
use crate::client::{Arguments, deadline, trace_request};
use crate::connection::exclusive::Lease;
use crate::connection::{
    Binding, PayloadOutcome, PendingCall, SharedConnection, StartedRequest, now, poll_deadline,
};
use crate::reference::operation::CallOperation;
use crate::reference::{ObjectRef, SyncScope};
use crate::servant::Results;
use crate::stream::{MAX_KEPT_BYTES, Payload};

pub(crate) async fn transact(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    response: ResponseFlags,
    encode: Arguments<'_>,
    payload: Payload,
    observer: CallObserver<'_>,
) -> Result<Reply, SystemException> {
    let mut argument = Some(payload);
    let ReceivedReply { reply, lease, deadline, .. } =
        call(target, operation, (response, None), encode, &mut argument, observer).await?;
    match (reply.status(), argument) {
        (ReplyStatus::NoException, Some(mut payload)) => {
            finish_payload(lease.link(), deadline, &mut payload).await.map(|()| reply)
        }
        _ => Ok(reply),
    }
}

/// Makes a call whose results are read while they are received and while the rest of the argument is sent.
/// See [`call`] for `unaligned_fragments`.
pub(crate) async fn transact_into(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    encode: Arguments<'_>,
    mut payload: Option<Payload>,
    unaligned_fragments: bool,
    observer: CallObserver<'_>,
) -> Result<Results, SystemException> {
    let response = (ResponseFlags::Target, Some(unaligned_fragments));
    let ReceivedReply { reply, lease, call, deadline } =
        call(target, operation, response, encode, &mut payload, observer).await?;
    let is_result = reply.status() == ReplyStatus::NoException;
    let mut argument = payload.filter(|_| is_result && lease.link().unsent_payload_bytes() > 0);
    if reply.stream_len() == 0
        && let Some(mut payload) = argument.take()
    {
        finish_payload(lease.link(), deadline, &mut payload).await?;
    }
    Ok(Results { reply, call, lease, deadline, argument, orb: Arc::clone(target.orb()) })
}

struct ReceivedReply {
    reply: Reply,
    lease: Lease,
    call: CallId,
    deadline: Option<Instant>,
}

/// Makes a call over an exclusive connection. `unaligned_fragments` is `Some` if the results are read while
/// they are received. It is `Some(true)` if this includes GIOP 1.1 fragments, whose values may be unaligned.
async fn call(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    (response, unaligned_fragments): (ResponseFlags, Option<bool>),
    encode: Arguments<'_>,
    payload: &mut Option<Payload>,
    observer: CallObserver<'_>,
) -> Result<ReceivedReply, SystemException> {
    let size = payload.as_ref().map(payload_size).transpose()?;
    let mut progress = CallProgress::new(target, operation);
    let deadline = progress.deadline;
    let mut addressing = None;
    loop {
        let ExclusiveBinding { binding, mut lease } = target.bind_exclusive(deadline).await?;
        let link = &Arc::clone(lease.link());
        let is_large = payload.as_ref().is_some_and(|payload| payload.len() > MAX_KEPT_BYTES);
        if is_large
            && !target.is_located()
            && !locate_first(target, operation, &mut progress, &binding, link).await?
        {
            continue;
        }
        let request = OutgoingRequest::new(target, &binding, link, operation, response, addressing)
            .with_observer(observer);
        observer.record_peer(link.peer());
        let (pending, started) =
            match link.begin_call(deadline, binding.version, None, progress.request_start) {
                Ok(begun) => begun,
                Err(error) => {
                    progress.retry_or_fail(error, link)?;
                    continue;
                }
            };
        if let Some(unaligned_fragments) = unaligned_fragments {
            pending.stream_reply(unaligned_fragments);
            lease.set_awaits_result(true);
        }
        let call = pending.call();
        let argument = payload.as_mut().zip(size);
        let reply = match exchange(request, started, link, pending, encode, operation, argument).await? {
            Ok(reply) => reply,
            Err(error) => {
                let adapted = operation.adapt_error(error);
                if progress.should_retry(&adapted) {
                    let exception = adapted.into_system_exception();
                    rewind(payload, operation, link, exception, error.to_string())?;
                    continue;
                }
                return Err(failed_during_payload(adapted, error, operation, link, payload.as_ref()));
            }
        };
        // From now on, the connection knows whether a part of the result is outstanding.
        lease.set_awaits_result(false);
        progress.record_reply(&reply, link);
        match reply.status() {
            ReplyStatus::NoException => {
                target.set_located(true);
                return Ok(ReceivedReply { reply, lease, call, deadline });
            }
            ReplyStatus::UserException => return Ok(ReceivedReply { reply, lease, call, deadline }),
            ReplyStatus::SystemException => {
                let raised = system_exception(target, &reply, operation);
                if !progress.discard_stale_forward(&raised) {
                    return Err(raised_by(raised, operation, link));
                }
                let reason = format!("{} is no longer the location of the object", link.peer());
                rewind(payload, operation, link, raised, reason)?;
            }
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                progress.follow_forward(&mut reply.body(), ForwardRule::ByRebindMode)?;
                // The form of the address that this server requested does not apply to the next server.
                addressing = None;
                let reason = "the server forwarded the call; the next call is sent to the new location";
                rewind(payload, operation, link, SystemException::transient(), reason.to_owned())?;
            }
            ReplyStatus::NeedsAddressingMode => {
                let form = progress.decode_address_form(&mut reply.body())?;
                if addressing.replace(form) == Some(form) {
                    return Err(address_form_repeated(link));
                }
                let reason = "the server requests another form of the object's address";
                rewind(payload, operation, link, SystemException::transient(), reason.to_owned())?;
            }
        }
    }
}

/// Asks the server by LocateRequest whether it has the object, before a large payload is sent. A forward at
/// this time costs a round trip, but after the payload has begun, it can make the call fail. Returns `false`
/// if the call must begin again, at another location or over another connection.
async fn locate_first(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    progress: &mut CallProgress<'_>,
    binding: &Binding,
    link: &Arc<SharedConnection>,
) -> Result<bool, SystemException> {
    match send_locate_request(target, link, binding, progress).await? {
        Ok(reply) => match reply.locate_status() {
            Some(LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm) => {
                progress.follow_forward(&mut reply.body(), ForwardRule::ByRebindMode)?;
                Ok(false)
            }
            Some(LocateStatus::UnknownObject) => {
                let (peer, name) = (link.peer(), operation.name);
                let text = format!("{peer} does not have the object; `{name}` was not sent");
                let exception = SystemException::object_not_exist()
                    .with_minor(minor::OBJECT_NOT_EXIST_NO_OBJECT)
                    .with_reason(text);
                if progress.discard_stale_forward(&exception) { Ok(false) } else { Err(exception) }
            }
            // In all other cases, the reply to the request determines the outcome.
            _ => {
                target.set_located(true);
                Ok(true)
            }
        },
        Err(error) => {
            // At most the LocateRequest was sent, and nothing of the request itself.
            let error = CallError { sent: SentPart::Nothing, ..error };
            if progress.should_retry(&error) {
                return Ok(false);
            }
            Err(call_failed(error, operation, link).completed(CompletionStatus::No))
        }
    }
}

/// Sends a request, with its payload if it has one, and waits for the reply. The outer error means that the
/// request cannot be encoded or that the source of the payload failed, the inner one that the call failed.
async fn exchange(
    request: OutgoingRequest<'_>,
    mut started: StartedRequest,
    link: &SharedConnection,
    pending: PendingCall<'_>,
    encode: Arguments<'_>,
    operation: &CallOperation<'_>,
    payload: Option<(&mut Payload, u32)>,
) -> Result<Result<Reply, CallError>, SystemException> {
    let Some((payload, size)) = payload else {
        let flow = match request.encode(&mut started, encode) {
            Ok(flow) => flow,
            Err(error) => {
                link.discard(started.encoder);
                return Err(error.into());
            }
        };
        trace_request(&started.encoder, link, operation);
        pending.send(started.encoder, flow)?;
        return Ok(pending.reply().await);
    };
    let call = pending.call();
    let request = request.with_payload(size, payload.layout());
    encode_start(&request, &mut started, link, encode, operation, payload)?;
    // This fails if the call has ended before any of its bytes were queued. The reply has the reason.
    if pending.begin_payload(started.encoder, size.into()).is_ok() {
        match poll_fn(|cx| link.poll_payload(cx, Some(call), payload)).await {
            PayloadOutcome::Failed(error, sent) => return Err(error.into_exception(completion_status(sent))),
            PayloadOutcome::Complete | PayloadOutcome::CallEnded | PayloadOutcome::ConnectionLost => {}
        }
    }
    Ok(pending.reply().await)
}

/// Rewinds the payload, if there is one, so that the request can be sent again. If the payload cannot be
/// rewound, fails with `exception`. `reason` is why the request had to be sent again.
#[cold]
fn rewind(
    payload: &mut Option<Payload>,
    operation: &CallOperation<'_>,
    link: &SharedConnection,
    exception: SystemException,
    reason: String,
) -> Result<(), SystemException> {
    let Some(payload) = payload else { return Ok(()) };
    if payload.rewind() {
        return Ok(());
    }
    Err(exception.with_reason(format!(
        "`{}` at {}: {reason}; the request was not sent again, because {} of the {} bytes of its source were already read, and the source can be read only once",
        operation.name,
        link.peer(),
        payload.returned_bytes(),
        payload.len(),
    )))
}

/// Sends a oneway over an exclusive connection, and waits until the operating system has accepted all of it.
pub(crate) async fn send_oneway(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    encode: Arguments<'_>,
    mut payload: Payload,
    observer: CallObserver<'_>,
) -> Result<(), SystemException> {
    let response = match target.options().sync_scope {
        SyncScope::Queued | SyncScope::Transport => ResponseFlags::None,
        SyncScope::Server => ResponseFlags::Server,
        SyncScope::Target => ResponseFlags::Target,
    };
    if response != ResponseFlags::None {
        return transact(target, operation, response, encode, payload, observer).await.map(drop);
    }
    let size = payload_size(&payload)?;
    let deadline = deadline(target, now());
    let mut budget = RetryBudget::new(target);
    loop {
        let ExclusiveBinding { binding, lease } = target.bind_exclusive(deadline).await?;
        let link = lease.link();
        let request = OutgoingRequest::new(target, &binding, link, operation, response, None)
            .with_payload(size, payload.layout())
            .with_observer(observer);
        observer.record_peer(link.peer());
        let mut started = link.begin_oneway(binding.version, None);
        encode_start(&request, &mut started, link, encode, operation, &payload)?;
        let failure = match link.begin_payload(started.encoder, size.into()) {
            Err(error) => error,
            Ok(()) => match send_payload(link, None, deadline, &mut payload).await {
                None => return Err(unsent_at_deadline(operation, link, &payload)),
                Some(PayloadOutcome::Failed(error, sent)) => {
                    return Err(error.into_exception(completion_status(sent)));
                }
                Some(PayloadOutcome::Complete | PayloadOutcome::CallEnded) => {
                    match flush(link, deadline).await {
                        None => return Err(unsent_at_deadline(operation, link, &payload)),
                        Some(Ok(())) => return Ok(()),
                        Some(Err(error)) => CallError { sent: SentPart::Whole, ..error },
                    }
                }
                Some(PayloadOutcome::ConnectionLost) => {
                    CallError { sent: SentPart::Whole, ..link.loss_error() }
                }
            },
        };
        if budget.take_retry(&failure) && payload.rewind() {
            continue;
        }
        return Err(failed_during_payload(failure, failure, operation, link, Some(&payload)));
    }
}

fn payload_size(payload: &Payload) -> Result<u32, SystemException> {
    u32::try_from(payload.len()).map_err(|_| too_long(payload))
}

#[cold]
fn too_long(payload: &Payload) -> SystemException {
    let text =
        format!("{} bytes and a header exceed the maximum size of a GIOP message, 4 GiB", payload.len());
    SystemException::imp_limit().with_reason(text)
}

fn encode_start(
    request: &OutgoingRequest<'_>,
    started: &mut StartedRequest,
    link: &SharedConnection,
    encode: Arguments<'_>,
    operation: &CallOperation<'_>,
    payload: &Payload,
) -> Result<(), SystemException> {
    if let Err(error) = request.encode(started, encode) {
        let whole = u64::try_from(started.encoder.len()).unwrap_or(u64::MAX).saturating_add(payload.len());
        let is_too_long = error == EncodeErrorKind::TooLong.into() && whole > u32::MAX.into();
        return Err(if is_too_long { too_long(payload) } else { error.into() });
    }
    trace_request(&started.encoder, link, operation);
    Ok(())
}

/// Sends the rest of the payload. Returns `None` if the deadline passes.
async fn send_payload(
    link: &SharedConnection,
    call: Option<CallId>,
    deadline: Option<Instant>,
    payload: &mut Payload,
) -> Option<PayloadOutcome> {
    let mut timer = pin!(None);
    poll_fn(|cx| match link.poll_payload(cx, call, payload) {
        Poll::Ready(fed) => Poll::Ready(Some(fed)),
        Poll::Pending => poll_deadline(timer.as_mut(), &|| deadline, cx).map(|()| None),
    })
    .await
}

/// Waits until the kernel has accepted all queued bytes. Returns `None` if the deadline passes.
async fn flush(link: &SharedConnection, deadline: Option<Instant>) -> Option<Result<(), CallError>> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), link.flushed()).await.ok(),
        None => Some(link.flushed().await),
    }
}

/// Sends the rest of the payload after the result was received, because the servant may still read it.
async fn finish_payload(
    link: &SharedConnection,
    deadline: Option<Instant>,
    payload: &mut Payload,
) -> Result<(), SystemException> {
    if link.unsent_payload_bytes() > 0
        && let Some(PayloadOutcome::Failed(error, _)) = send_payload(link, None, deadline, payload).await
    {
        return Err(error.into_exception(CompletionStatus::Yes));
    }
    Ok(())
}

/// Returns the completion status of a failed call. The status is uncertain as soon as a part of the request
/// was sent, because a servant may read a stream while it is received.
fn completion_status(sent: SentPart) -> CompletionStatus {
    match sent {
        SentPart::Nothing => CompletionStatus::No,
        SentPart::Partly | SentPart::Whole => CompletionStatus::Maybe,
    }
}

/// Creates the exception for a call that failed with `error`. `adapted` is the same error as it applies to
/// the operation, see [`CallOperation::adapt_error`].
#[cold]
fn failed_during_payload(
    adapted: CallError,
    error: CallError,
    operation: &CallOperation<'_>,
    link: &SharedConnection,
    payload: Option<&Payload>,
) -> SystemException {
    let Some(payload) = payload.filter(|payload| payload.returned_bytes() < payload.len()) else {
        return call_failed(adapted, operation, link);
    };
    adapted.into_system_exception().with_reason(format!(
        "`{}` at {} failed after {} of the {} bytes of its source were read: {error}",
        operation.name,
        link.peer(),
        payload.returned_bytes(),
        payload.len()
    ))
}

#[cold]
fn unsent_at_deadline(
    operation: &CallOperation<'_>,
    link: &SharedConnection,
    payload: &Payload,
) -> SystemException {
    SystemException::timeout()
        .with_minor(minor::TIMEOUT_REQUEST_END)
        .completed(CompletionStatus::Maybe)
        .with_reason(format!(
            "`{}` at {}: the deadline passed after {} of the {} bytes of its source were read",
            operation.name,
            link.peer(),
            payload.returned_bytes(),
            payload.len()
        ))
}
