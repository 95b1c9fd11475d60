//! Calls that are recorded in spans, if there is a subscriber or an admin endpoint (see `telemetry`).
//!
//! Without the feature `tracing`, these functions only make the calls. With the feature, the future of a
//! recorded call is boxed, so that the futures of all other calls stay small.

use giop_codec::exception::SystemException;
use giop_codec::giop::ResponseFlags;
use giop_proto::Reply;

use crate::client::CallObserver;
#[cfg(feature = "tracing")]
use crate::client::call_span::CallSpan;
use crate::client::{Arguments, call, streamed_call as streamed};
use crate::reference::ObjectRef;
use crate::reference::operation::CallOperation;
use crate::servant::Results;
use crate::stream::Payload;

/// Defines a function that calls `$call` and then evaluates `$record`, which records the outcome in the span.
macro_rules! observed {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $call:path, |$span:ident, $outcome:ident| $record:expr) => {
        $(#[$doc])*
        #[cfg(feature = "tracing")]
        pub(crate) async fn $name(
            target: &ObjectRef,
            operation: &CallOperation<'_>,
            $($argument: $type),*
        ) -> Result<$result, SystemException> {
            let Some(mut $span) = CallSpan::begin(target, operation) else {
                return $call(target, operation, $($argument,)* CallObserver::NONE).await;
            };
            Box::pin(async move {
                let $outcome = $call(target, operation, $($argument,)* CallObserver::new(&$span)).await;
                $record;
                $outcome
            })
            .await
        }

        $(#[$doc])*
        #[cfg(not(feature = "tracing"))]
        #[inline(always)]
        pub(crate) fn $name(
            target: &ObjectRef,
            operation: &CallOperation<'_>,
            $($argument: $type),*
        ) -> impl Future<Output = Result<$result, SystemException>> + Send {
            $call(target, operation, $($argument,)* CallObserver::NONE)
        }
    };
}

observed! {
    /// Sends a request and waits for its reply: see [`call`].
    transact(response: ResponseFlags, encode: Arguments<'_>) -> Reply, call,
    |span, outcome| span.record_reply(outcome.as_ref())
}

observed! {
    /// Sends a request whose last argument is read from a source, and waits for its reply.
    transact_from(response: ResponseFlags, encode: Arguments<'_>, payload: Payload) -> Reply, streamed::transact,
    |span, outcome| span.record_reply(outcome.as_ref())
}

observed! {
    /// Sends a request, and returns results that are read while they are received.
    transact_into(encode: Arguments<'_>, payload: Option<Payload>, unaligned_fragments: bool) -> Results, streamed::transact_into,
    |span, outcome| span.record_reply(outcome.as_ref().map(|results| &results.reply))
}

observed! {
    queue(encode: Arguments<'_>) -> (), crate::client::queue,
    |span, outcome| span.record_sent(outcome.as_ref().copied())
}

observed! {
    /// Sends a oneway whose last argument is read from a source.
    send_oneway_from(encode: Arguments<'_>, payload: Payload) -> (), streamed::send_oneway,
    |span, outcome| span.record_sent(outcome.as_ref().copied())
}
