//! The client side of calls: binding, encoding, sending, awaiting the reply, and retries.
//!
//! This file contains the loop of a call ([`invoke`] and its variants). `bind` finds the connection of a
//! reference in `connection_pool`, which uses `dialer` to open connections. `collocated` calls local
//! servants.

#![expect(
    clippy::manual_async_fn,
    reason = "with `+ Send` in the signature, the compiler proves it here once instead of for each stub"
)]

pub(crate) mod bidirectional;
mod bind;
mod call_progress;
#[cfg(feature = "tracing")]
mod call_span;
pub(crate) mod collocated;
pub(crate) mod connection_pool;
pub(crate) mod corbaname;
mod deferred;
pub(crate) mod dial;
mod dialer;
mod failure;
pub(crate) mod fan_out;
mod locate;
mod object_operations;
mod request;
mod streamed_call;
#[cfg(feature = "tls")]
mod tls_handshake;
mod traced_call;

use std::future::Future;
use std::time::{Duration, Instant};

use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::exception::{SystemException, minor};
use giop_codec::giop::{ReplyStatus, ResponseFlags};
use giop_codec::{DecodeError, EncodeError};
use giop_proto::{Reply, later};

pub(crate) use bind::{incompatible_encoding, is_incompatible_encoding};
pub(crate) use collocated::exists_here;
pub use collocated::{LocalServant, local};
pub use deferred::{Defer, Deferred, boxed_array, sendc};
pub use failure::RaisedBy;
pub(crate) use failure::{bad_reply, undeclared_user_exception};
pub use fan_out::{Answer, FanOut, fan_out};
pub(crate) use traced_call::transact;

use crate::client::bind::SharedBinding;
use crate::client::call_progress::{CallProgress, RetryBudget};
#[cfg(feature = "tracing")]
use crate::client::call_span::CallObserver;
use crate::client::failure::{call_failed, user_exception};
use crate::client::locate::fetch_reference;
use crate::client::request::OutgoingRequest;
use crate::connection::{OnewayError, SharedConnection, now};
use crate::reference::operation::{CallOperation, Operation};
use crate::reference::{ObjectRef, SyncScope};
use crate::servant::{BadResults, ResultStream, deadline_for_call};
use crate::stream::{ArgumentContent, ElementLayout, StreamedArgument};
#[cfg(not(feature = "tracing"))]
use crate::telemetry::CallObserver;
use crate::trace::{self, Direction};

/// The idle timeout of a connection that later calls do not use, because a new address was received.
const UNUSED_CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);

/// A function that encodes the arguments. It may be called several times for a call.
type Arguments<'a> = &'a (dyn Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync + 'a);

/// Calls an operation and waits for its results. Called by generated stubs. `decode_exception` decodes an
/// exception of the operation's raises clause, and returns `None` for other repository ids.
///
/// Fails with the exception that the servant raised; with MARSHAL, COMPLETED_YES, if the reply cannot be
/// decoded; and with TRANSIENT, COMM_FAILURE or TIMEOUT if there is no reply. Dropping the future cancels the
/// call. If the request was already sent, a CancelRequest is sent. The connection remains usable.
pub fn invoke<R, E: From<SystemException>>(
    target: &ObjectRef,
    operation: &'static Operation,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
    decode: impl Fn(&mut Decoder<'_>) -> Result<R, DecodeError> + Send + Sync,
    decode_exception: impl Fn(&str, &mut Decoder<'_>) -> Option<Result<E, DecodeError>> + Send + Sync,
) -> impl Future<Output = Result<R, E>> + Send {
    async move {
        let reply = transact(target, operation, ResponseFlags::Target, &encode).await?;
        decode_results(target, operation, reply, decode, decode_exception)
    }
}

/// Calls an operation whose last argument is a `@stream`, like [`invoke`]. `encode` encodes the other
/// arguments. Fails with BAD_PARAM if the source fails (see [`ByteSource`](crate::ByteSource)). Unless the
/// source is a buffer, the call uses an exclusive connection. That is closed if the future is dropped after a
/// part of the source was sent.
pub fn invoke_from<R, E: From<SystemException>>(
    target: &ObjectRef,
    operation: &'static Operation,
    source: StreamedArgument,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
    decode: impl Fn(&mut Decoder<'_>) -> Result<R, DecodeError> + Send + Sync,
    decode_exception: impl Fn(&str, &mut Decoder<'_>) -> Option<Result<E, DecodeError>> + Send + Sync,
) -> impl Future<Output = Result<R, E>> + Send {
    async move {
        let response = ResponseFlags::Target;
        let reply = match source.into_content() {
            ArgumentContent::Bytes(bytes, layout) => {
                transact(target, operation, response, &with_sequence(&encode, bytes, layout)).await?
            }
            ArgumentContent::Payload(payload) => {
                Box::pin(traced_call::transact_from(target, operation, response, &encode, payload)).await?
            }
        };
        decode_results(target, operation, reply, decode, decode_exception)
    }
}

/// Calls an operation with a `@stream` result over an exclusive connection, like [`invoke`]. `source` is the
/// last argument, if that is also a `@stream`. Fails with IMP_LIMIT, COMPLETED_YES, if the result has more
/// bytes than `Limits::max_stream_size`. Dropping the future closes the connection.
pub fn invoke_into<S: ResultStream, E: From<SystemException>>(
    target: &ObjectRef,
    operation: &'static Operation,
    source: Option<StreamedArgument>,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
    decode_exception: impl Fn(&str, &mut Decoder<'_>) -> Option<Result<E, DecodeError>> + Send + Sync,
) -> impl Future<Output = Result<S, E>> + Send {
    async move {
        let unaligned_fragments = S::ACCEPTS_UNALIGNED_FRAGMENTS;
        let transact = |encode, payload| {
            Box::pin(traced_call::transact_into(target, operation, encode, payload, unaligned_fragments))
        };
        let results = match source.map(StreamedArgument::into_content) {
            Some(ArgumentContent::Bytes(bytes, layout)) => {
                transact(&with_sequence(&encode, bytes, layout), None).await?
            }
            Some(ArgumentContent::Payload(payload)) => transact(&encode, Some(payload)).await?,
            None => transact(&encode, None).await?,
        };
        let orb = target.orb();
        if results.reply.status() != ReplyStatus::NoException {
            let body = &mut results.reply.body().with_context(orb);
            return Err(user_exception(orb, body, operation, decode_exception));
        }
        S::from_results(results).map_err(|error| match error {
            BadResults::Malformed(error) => bad_reply(orb, error, operation).into(),
            BadResults::Refused(exception) => exception.into(),
        })
    }
}

/// Sends a oneway whose last argument is a `@stream`: see [`invoke_from`]. Called by generated stubs.
pub fn send_oneway_from(
    target: &ObjectRef,
    operation: &'static Operation,
    source: StreamedArgument,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
) -> impl Future<Output = Result<(), SystemException>> + Send {
    async move {
        match source.into_content() {
            ArgumentContent::Bytes(bytes, layout) => {
                send_oneway(target, operation, with_sequence(&encode, bytes, layout)).await
            }
            ArgumentContent::Payload(payload) => {
                Box::pin(traced_call::send_oneway_from(target, operation, &encode, payload)).await
            }
        }
    }
}

/// Returns a function that encodes the arguments, followed by a sequence whose elements are `bytes`.
fn with_sequence(
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
    bytes: Bytes,
    layout: ElementLayout,
) -> impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync {
    move |e| {
        encode(e)?;
        layout.encode_start(bytes.len(), e)?;
        e.put_shared_ref(&bytes);
        Ok(())
    }
}

#[inline(always)]
fn decode_results<R, E: From<SystemException>>(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    reply: Reply,
    decode: impl Fn(&mut Decoder<'_>) -> Result<R, DecodeError>,
    decode_exception: impl Fn(&str, &mut Decoder<'_>) -> Option<Result<E, DecodeError>>,
) -> Result<R, E> {
    let orb = target.orb();
    if reply.status() == ReplyStatus::NoException {
        return reply
            .decode(&orb.pool, |body| decode(&mut body.with_context(orb)))
            .map_err(|error| bad_reply(orb, error, operation).into());
    }
    Err(user_exception(orb, &mut reply.body().with_context(orb), operation, decode_exception))
}

/// Sends a oneway with the sync scope of the reference. Called by generated stubs. If the future is dropped,
/// the message is either queued completely or not at all.
///
/// Fails with TRANSIENT or COMM_FAILURE if the oneway could not be sent, and with TIMEOUT if the queue of the
/// connection stayed full until the deadline. With the scopes `Server` and `Target`, also fails with server
/// exceptions.
pub fn send_oneway(
    target: &ObjectRef,
    operation: &'static Operation,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
) -> impl Future<Output = Result<(), SystemException>> + Send {
    send_without_reply(target, operation, encode)
}

/// Sends a request of any operation without waiting for results: see [`send_oneway`].
pub(crate) async fn send_without_reply(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
) -> Result<(), SystemException> {
    match target.options().sync_scope {
        SyncScope::Queued => traced_call::queue(target, operation, &encode).await,
        SyncScope::Transport => {
            traced_call::queue(target, operation, &encode).await?;
            Box::pin(crate::reference::Reference::flush(target)).await
        }
        // Boxed, so that the futures of the common scope are small.
        scope @ (SyncScope::Server | SyncScope::Target) => {
            let is_server = scope == SyncScope::Server;
            let response = if is_server { ResponseFlags::Server } else { ResponseFlags::Target };
            Box::pin(transact(target, operation, response, &encode)).await.map(drop)
        }
    }
}

async fn queue(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    encode: Arguments<'_>,
    observer: CallObserver<'_>,
) -> Result<(), SystemException> {
    let mut budget = RetryBudget::new(target);
    let mut has_fetched_reference = false;
    loop {
        let SharedBinding { binding, link } = target.bind_shared(|| deadline(target, now())).await?;
        let request = OutgoingRequest::new(target, &binding, &link, operation, ResponseFlags::None, None);
        let request = request.with_observer(observer);
        observer.record_peer(link.peer());
        let mut started = link.begin_oneway(binding.version, request.header_key());
        let flow = match request.encode(&mut started, encode) {
            Ok(flow) => flow,
            Err(error) => {
                link.discard(started.encoder);
                if binding.requests_reference
                    && target.must_fetch_reference()
                    && !std::mem::replace(&mut has_fetched_reference, true)
                {
                    fetch_reference(target).await;
                    continue;
                }
                return Err(error.into());
            }
        };
        let encoder = started.encoder;
        trace_request(&encoder, &link, operation);
        match link.send_oneway(encoder, flow, || deadline(target, now())).await {
            Ok(()) => {
                crate::connection::blocking::flush_later(&link);
                return Ok(());
            }
            Err(OnewayError::Closed(error)) => {
                target.unbind(&binding);
                if !budget.take_retry(&error) {
                    return Err(call_failed(error, operation, &link));
                }
            }
            Err(OnewayError::Encode(error)) => return Err(error.into()),
            Err(OnewayError::Full) => {
                let (peer, name) = (link.peer(), operation.name);
                let text =
                    format!("the queue of oneways to {peer} stayed full until the deadline of `{name}`");
                return Err(SystemException::timeout()
                    .with_minor(minor::TIMEOUT_REQUEST_END)
                    .with_reason(text));
            }
        }
    }
}

/// Sends a request and waits for a reply with results or a user exception. Follows forwards, and sends the
/// request again if the retry rules allow it.
async fn call(
    target: &ObjectRef,
    operation: &CallOperation<'_>,
    response: ResponseFlags,
    encode: Arguments<'_>,
    observer: CallObserver<'_>,
) -> Result<Reply, SystemException> {
    let mut progress = CallProgress::new(target, operation);
    loop {
        let SharedBinding { binding, link } = target.bind_shared(|| progress.deadline).await?;
        let addressing = binding.addressing.get();
        let request = OutgoingRequest::new(target, &binding, &link, operation, response, addressing)
            .with_observer(observer);
        observer.record_peer(link.peer());
        let begun =
            link.begin_call(progress.deadline, binding.version, request.header_key(), progress.request_start);
        let (pending, mut started) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                target.unbind(&binding);
                progress.retry_or_fail(error, &link)?;
                continue;
            }
        };
        let flow = match request.encode(&mut started, encode) {
            Ok(flow) => flow,
            Err(error) => {
                link.discard(started.encoder);
                if progress.fetch_reference_once(&binding).await {
                    continue;
                }
                return Err(error.into());
            }
        };
        let encoder = started.encoder;
        trace_request(&encoder, &link, operation);
        if operation.is_raw() {
            pending.forward_reply_encoded();
        }
        pending.send(encoder, flow)?;
        let reply = match pending.reply().await {
            Ok(reply) => reply,
            Err(error) => {
                if !link.is_usable() {
                    target.unbind(&binding);
                }
                progress.retry_or_fail(operation.adapt_error(error), &link)?;
                continue;
            }
        };
        progress.record_reply(&reply, &link);
        if progress.adopt_reference(&reply, &binding) {
            link.set_idle_timeout(UNUSED_CONNECTION_TIMEOUT);
        } else if progress.accept_reply(&reply, &binding, &link)? {
            return Ok(reply);
        }
    }
}

#[inline]
fn trace_request(encoder: &Encoder, link: &SharedConnection, operation: &CallOperation<'_>) {
    if trace::is_wire_log_enabled() {
        trace::log_message(Direction::Out, link.peer(), operation.name, encoder.head(), encoder.len());
    }
}

/// Returns the deadline of a call through this reference that begins now. The timeout of the reference, or
/// else of the ORB, determines it. It is at most the deadline of the reference and of the current request.
pub(crate) fn deadline(target: &ObjectRef, now: Instant) -> Option<Instant> {
    let timeout = target.options().timeout.unwrap_or(target.orb().config.client.timeout);
    let own = timeout.map(|timeout| later(now, timeout));
    let own = match target.options().deadline {
        Some(until) => Some(own.map_or(until, |own| own.min(until))),
        None => own,
    };
    match (own, deadline_for_call()) {
        (Some(own), Some(inherited)) => Some(own.min(inherited)),
        (own, inherited) => own.or(inherited),
    }
}
