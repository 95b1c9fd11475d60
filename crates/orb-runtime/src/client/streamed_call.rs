//! Calls whose last argument is read from a source while it is sent, or whose results are read while they
//! arrive.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::giop::{LocateStatus, ReplyStatus, ResponseFlags};
use giop_codec::{EncodeError, EncodeErrorKind};
use giop_proto::calls::CallId;
use giop_proto::{CallError, Reply, SentPart};

use crate::client::CallObserver;
use crate::client::attempt::{Attempt, same_address};
use crate::client::bind::ExclusiveBinding;
use crate::client::failure::{failed, raised_by, system_exception};
use crate::client::locate::ask;
use crate::client::request::Outgoing;
use crate::client::retry::RetryBudget;
use crate::client::{Arguments, deadline};
use crate::connection::exclusive::Lease;
use crate::connection::{Binding, Fed, Pending, SharedConnection, Started, now, poll_deadline};
use crate::reference::operation::CallOperation;
use crate::reference::{ObjectRef, SyncScope};
use crate::servant::Results;
use crate::stream::{MAX_KEPT_BYTES, Payload};
use crate::trace::{self, Direction};

/// Calls with a last argument from a source, over an exclusive connection.
pub(crate) async fn transact(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    response: ResponseFlags,
    encode: Arguments<'_>,
    payload: Payload,
    watch: CallObserver<'_>,
) -> Result<Reply, SystemException> {
    let mut argument = Some(payload);
    let Came { reply, lease, deadline, .. } =
        call(target, operation, (response, None), encode, &mut argument, watch).await?;
    match (reply.status(), argument) {
        (ReplyStatus::NoException, Some(mut payload)) => {
            finish(lease.link(), deadline, &mut payload).await.map(|()| reply)
        }
        _ => Ok(reply),
    }
}

/// Calls with results that are read while they arrive, over an exclusive connection. The rest of the argument
/// is sent meanwhile.
pub(crate) async fn transact_into(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    encode: Arguments<'_>,
    mut payload: Option<Payload>,
    nameless: bool,
    watch: CallObserver<'_>,
) -> Result<Results, SystemException> {
    let wanted = (ResponseFlags::Target, Some(nameless));
    let Came { reply, lease, call, deadline } =
        call(target, operation, wanted, encode, &mut payload, watch).await?;
    let is_result = reply.status() == ReplyStatus::NoException;
    let mut argument = payload.filter(|_| is_result && lease.link().owes() > 0);
    if reply.coming() == 0
        && let Some(mut payload) = argument.take()
    {
        finish(lease.link(), deadline, &mut payload).await?;
    }
    Ok(Results { reply, call, lease, deadline, argument, orb: Arc::clone(target.orb()) })
}

/// The reply to a call, and the connection over which it was received.
struct Came {
    reply: Reply,
    lease: Lease,
    call: CallId,
    deadline: Option<Instant>,
}

/// Calls over an exclusive connection. `results` is set if results are read while they arrive; its value
/// tells whether fragments of GIOP 1.1 are read so, too.
async fn call(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    (response, results): (ResponseFlags, Option<bool>),
    encode: Arguments<'_>,
    payload: &mut Option<Payload>,
    watch: CallObserver<'_>,
) -> Result<Came, SystemException> {
    let count = payload.as_ref().map(count).transpose()?;
    let mut attempt = Attempt::new(target, operation);
    let deadline = attempt.deadline;
    let mut addressing = None;
    loop {
        let ExclusiveBinding { binding, mut lease } = target.bound_alone(deadline).await?;
        let link = &Arc::clone(lease.link());
        let is_large = payload.as_ref().is_some_and(|payload| payload.len() > MAX_KEPT_BYTES);
        if is_large
            && !target.is_located()
            && !locates(target, operation, &mut attempt, &binding, link).await?
        {
            continue;
        }
        let request = Outgoing::new(target, &binding, link, operation, response, addressing).watched(watch);
        watch.sent_to(link.peer());
        let (pending, started) = match link.begin_call(deadline, binding.version, None, attempt.begun) {
            Ok(begun) => begun,
            Err(error) => {
                attempt.repeat_or_fail(error, link)?;
                continue;
            }
        };
        if let Some(nameless) = results {
            pending.stream_reply(nameless);
            lease.set_awaits_result(true);
        }
        let call = pending.call();
        let outcome =
            exchange(request, started, link, pending, encode, operation, payload.as_mut().zip(count));
        let outcome = outcome.await?;
        let reply = match outcome {
            Ok(reply) => reply,
            Err(error) => {
                let judged = operation.adapt_error(error);
                if attempt.repeats(&judged) {
                    if rewind(payload) {
                        continue;
                    }
                    let exception = judged.into_system_exception();
                    return Err(not_repeated(exception, operation, link, payload, error.to_string()));
                }
                return Err(stopped(judged, error, operation, link, payload.as_ref()));
            }
        };
        // From here on, the connection itself tells whether more of the result is outstanding.
        lease.set_awaits_result(false);
        attempt.note_reply(&reply, link);
        match reply.status() {
            ReplyStatus::NoException => {
                target.set_located(true);
                return Ok(Came { reply, lease, call, deadline });
            }
            ReplyStatus::UserException => return Ok(Came { reply, lease, call, deadline }),
            ReplyStatus::SystemException => {
                let raised = system_exception(target, &reply, operation);
                if attempt.goes_home(&raised) {
                    if rewind(payload) {
                        continue;
                    }
                    let text = format!("{} is a place where the object was before", link.peer());
                    return Err(not_repeated(raised, operation, link, payload, text));
                }
                return Err(raised_by(raised, operation, link));
            }
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                attempt.follow(&mut reply.body(), false)?;
                // The address form that this server requested does not apply to the next one.
                addressing = None;
                if !rewind(payload) {
                    let text = "the server forwards it: the next call goes to the new place".to_owned();
                    return Err(not_repeated(transient_bare(), operation, link, payload, text));
                }
            }
            ReplyStatus::NeedsAddressingMode => {
                let wanted = attempt.wanted_address(&mut reply.body())?;
                if addressing.replace(wanted) == Some(wanted) {
                    return Err(same_address(link));
                }
                if !rewind(payload) {
                    let text = "the server asks for another form of address".to_owned();
                    return Err(not_repeated(transient_bare(), operation, link, payload, text));
                }
            }
        }
    }
}

/// Asks the server whether it has the object, before a large payload is sent. Returns `false` if the call
/// begins again: at another location, or over another connection.
///
/// A forward at this point costs a round trip. A forward after the payload has begun can fail the call.
async fn locates(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    attempt: &mut Attempt<'_>,
    binding: &Binding,
    link: &Arc<SharedConnection>,
) -> Result<bool, SystemException> {
    match ask(target, link, binding, attempt.deadline, attempt.begun).await? {
        Ok(reply) => match reply.locate_status() {
            Some(LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm) => {
                attempt.follow(&mut reply.body(), false)?;
                Ok(false)
            }
            Some(LocateStatus::UnknownObject) => {
                let exception = unknown_object(operation, link);
                if attempt.goes_home(&exception) { Ok(false) } else { Err(exception) }
            }
            // Other outcomes will show in the reply to the request.
            _ => {
                target.set_located(true);
                Ok(true)
            }
        },
        Err(error) => {
            // Nothing of the request itself was sent.
            let error = CallError { sent: SentPart::Nothing, ..error };
            if attempt.repeats(&error) {
                return Ok(false);
            }
            Err(failed(error, operation, link).completed(CompletionStatus::No))
        }
    }
}

/// Sends a request, with its payload if it has one, and waits for the reply.
///
/// # Errors
/// The request cannot be encoded, or the source of the payload failed.
async fn exchange(
    request: Outgoing<'_>,
    mut started: Started,
    link: &SharedConnection,
    pending: Pending<'_>,
    encode: Arguments<'_>,
    operation: &CallOperation<'_>,
    payload: Option<(&mut Payload, u32)>,
) -> Result<Result<Reply, CallError>, SystemException> {
    let Some((payload, count)) = payload else {
        send(&request, started, link, &pending, encode, operation)?;
        return Ok(pending.reply().await);
    };
    let call = pending.call();
    let request = request.with_payload(count, payload.layout());
    encode_start(&request, &mut started, link, encode, operation, payload)?;
    // If it fails, the call has ended before any of it was queued: its deadline passed, or the connection
    // failed.
    if pending.begin_payload(started.encoder, count.into()).is_ok() {
        match poll_fn(|cx| link.poll_payload(cx, Some(call), payload)).await {
            Fed::Failed(error, sent) => return Err(error.into_exception(completed(sent))),
            Fed::Whole | Fed::Answered | Fed::Lost => {}
        }
    }
    Ok(pending.reply().await)
}

/// Rewinds the payload to its start. Returns `false` if that is impossible, so that the call cannot be
/// repeated.
fn rewind(payload: &mut Option<Payload>) -> bool {
    payload.as_mut().is_none_or(Payload::rewind)
}

/// Sends a request that is encoded completely.
fn send(
    request: &Outgoing<'_>,
    mut started: Started,
    link: &SharedConnection,
    pending: &Pending<'_>,
    encode: Arguments<'_>,
    operation: &CallOperation<'_>,
) -> Result<(), SystemException> {
    let flow = match request.encode(&mut started, encode) {
        Ok(flow) => flow,
        Err(error) => {
            link.discard(started.encoder);
            return Err(error.into());
        }
    };
    trace_out(&started, link, operation);
    Ok(pending.send(started.encoder, flow)?)
}

fn trace_out(started: &Started, link: &SharedConnection, operation: &CallOperation<'_>) {
    if trace::wire_enabled() {
        let encoder = &started.encoder;
        trace::wire(Direction::Out, link.peer(), operation.name, encoder.head(), encoder.len());
    }
}

/// Sends a oneway over an exclusive connection. The operating system has accepted all of it when the future
/// completes.
pub(crate) async fn send_oneway(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    encode: Arguments<'_>,
    mut payload: Payload,
    watch: CallObserver<'_>,
) -> Result<(), SystemException> {
    let response = match target.options().sync_scope {
        SyncScope::Queued | SyncScope::Transport => ResponseFlags::None,
        SyncScope::Server => ResponseFlags::Server,
        SyncScope::Target => ResponseFlags::Target,
    };
    if response != ResponseFlags::None {
        return transact(target, operation, response, encode, payload, watch).await.map(drop);
    }
    let count = count(&payload)?;
    let deadline = deadline(target, now());
    let mut budget = RetryBudget::new(target);
    loop {
        let ExclusiveBinding { binding, lease } = target.bound_alone(deadline).await?;
        let link = lease.link();
        let request = Outgoing::new(target, &binding, link, operation, response, None)
            .with_payload(count, payload.layout())
            .watched(watch);
        watch.sent_to(link.peer());
        let mut started = link.begin_oneway(binding.version, None);
        encode_start(&request, &mut started, link, encode, operation, &payload)?;
        let lost = match link.begin_payload(started.encoder, count.into()) {
            Err(error) => error,
            Ok(()) => match feed(link, None, deadline, &mut payload).await {
                None => return Err(late(operation, link, &payload)),
                Some(Fed::Failed(error, sent)) => return Err(error.into_exception(completed(sent))),
                Some(Fed::Whole | Fed::Answered) => match flushed(link, deadline).await {
                    None => return Err(late(operation, link, &payload)),
                    Some(Ok(())) => return Ok(()),
                    Some(Err(error)) => CallError { sent: SentPart::Whole, ..error },
                },
                Some(Fed::Lost) => CallError { sent: SentPart::Whole, ..link.lost() },
            },
        };
        if budget.again(&lost) && payload.rewind() {
            continue;
        }
        return Err(stopped(lost, lost, operation, link, Some(&payload)));
    }
}

/// Returns the length of the sequence in bytes.
fn count(payload: &Payload) -> Result<u32, SystemException> {
    u32::try_from(payload.len()).map_err(|_| too_long(payload))
}

#[cold]
fn too_long(payload: &Payload) -> SystemException {
    let text = format!("{} octets and a header do not fit the 4 GiB of a GIOP message", payload.len());
    SystemException::imp_limit().with_reason(text)
}

/// Encodes the request except for its payload.
fn encode_start(
    request: &Outgoing<'_>,
    started: &mut Started,
    link: &SharedConnection,
    encode: Arguments<'_>,
    operation: &CallOperation<'_>,
    payload: &Payload,
) -> Result<(), SystemException> {
    if let Err(error) = request.encode(started, encode) {
        let whole = u64::try_from(started.encoder.len()).unwrap_or(u64::MAX).saturating_add(payload.len());
        return Err(match error {
            EncodeError { .. } if error == EncodeErrorKind::TooLong.into() && whole > u32::MAX.into() => {
                too_long(payload)
            }
            error => error.into(),
        });
    }
    trace_out(started, link, operation);
    Ok(())
}

/// Sends the rest of the payload. Returns `None` if the deadline passes.
async fn feed(
    link: &SharedConnection,
    call: Option<CallId>,
    deadline: Option<Instant>,
    payload: &mut Payload,
) -> Option<Fed> {
    let mut timer = pin!(None);
    poll_fn(|cx| match link.poll_payload(cx, call, payload) {
        Poll::Ready(fed) => Poll::Ready(Some(fed)),
        Poll::Pending => poll_deadline(timer.as_mut(), &|| deadline, cx).map(|()| None),
    })
    .await
}

/// Waits until the kernel has accepted all queued bytes. Returns `None` if the deadline passes.
async fn flushed(link: &SharedConnection, deadline: Option<Instant>) -> Option<Result<(), CallError>> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), link.flushed()).await.ok(),
        None => Some(link.flushed().await),
    }
}

/// Sends the rest of the payload after the result was received, because the servant may still read it.
async fn finish(
    link: &SharedConnection,
    deadline: Option<Instant>,
    payload: &mut Payload,
) -> Result<(), SystemException> {
    if link.owes() > 0
        && let Some(Fed::Failed(error, _)) = feed(link, None, deadline, payload).await
    {
        return Err(error.into_exception(CompletionStatus::Yes));
    }
    Ok(())
}

/// Creates the exception that the server would raise after it had received the whole payload.
#[cold]
fn unknown_object(operation: &CallOperation<'_>, link: &SharedConnection) -> SystemException {
    SystemException::object_not_exist().with_minor(minor::OBJECT_NOT_EXIST_NO_OBJECT).with_reason(format!(
        "{} does not know the object, as it said before `{}` was sent",
        link.peer(),
        operation.name
    ))
}

/// Returns the completion status. A servant that reads bytes while they arrive may have executed any part.
fn completed(sent: SentPart) -> CompletionStatus {
    match sent {
        SentPart::Nothing => CompletionStatus::No,
        SentPart::Partly | SentPart::Whole => CompletionStatus::Maybe,
    }
}

fn transient_bare() -> SystemException {
    SystemException::transient()
}

/// Creates the exception for a call that failed during its payload.
#[cold]
fn stopped(
    judged: CallError,
    error: CallError,
    operation: &CallOperation<'_>,
    link: &SharedConnection,
    payload: Option<&Payload>,
) -> SystemException {
    let Some(payload) = payload.filter(|payload| payload.returned() < payload.len()) else {
        return failed(judged, operation, link);
    };
    judged.into_system_exception().with_reason(format!(
        "`{}` at {} with {} of the {} octets of its source read: {error}",
        operation.name,
        link.peer(),
        payload.returned(),
        payload.len()
    ))
}

/// Creates the exception for a call that would be repeated if its source could be read again.
#[cold]
fn not_repeated(
    exception: SystemException,
    operation: &CallOperation<'_>,
    link: &SharedConnection,
    payload: &Option<Payload>,
    why: String,
) -> SystemException {
    // The payload exists, because a call without one would have been repeated.
    let (given, len) = payload.as_ref().map_or((0, 0), |payload| (payload.returned(), payload.len()));
    exception.with_reason(format!(
        "`{}` at {}: {why}; it was not sent again, because {given} of the {len} octets of its source were read, and a source can be read once",
        operation.name,
        link.peer(),
    ))
}

#[cold]
fn late(operation: &CallOperation<'_>, link: &SharedConnection, payload: &Payload) -> SystemException {
    SystemException::timeout()
        .with_minor(minor::TIMEOUT_REQUEST_END)
        .completed(CompletionStatus::Maybe)
        .with_reason(format!(
            "`{}` at {}: the deadline passed with {} of the {} octets of its source read",
            operation.name,
            link.peer(),
            payload.returned(),
            payload.len()
        ))
}
