//! Calls that can be observed (`telemetry`).
//!
//! Without the feature `tracing`, these are the calls themselves. With it, the future of an observed call is
//! boxed, so that futures of all other calls stay small.

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

/// Defines a function that returns the outcome of `$call` and reports it to the observer.
macro_rules! watched {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $call:path, |$seen:ident, $done:ident| $end:expr) => {
        $(#[$doc])*
        #[cfg(feature = "tracing")]
        pub(crate) async fn $name(
            target: &ObjectRef,
            operation: &CallOperation<'_>,
            $($argument: $type),*
        ) -> Result<$result, SystemException> {
            let Some(mut $seen) = CallSpan::begin(target, operation) else {
                return $call(target, operation, $($argument,)* CallObserver::NONE).await;
            };
            Box::pin(async move {
                let $done = $call(target, operation, $($argument,)* CallObserver::by(&$seen)).await;
                $end;
                $done
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

watched! {
    /// Sends a request and waits for its reply: see [`call`].
    transact(response: ResponseFlags, encode: Arguments<'_>) -> Reply, call,
    |seen, done| seen.replied(done.as_ref())
}

watched! {
    /// Sends a request whose last argument comes from a source, and waits for its reply.
    transact_from(response: ResponseFlags, encode: Arguments<'_>, payload: Payload) -> Reply, streamed::transact,
    |seen, done| seen.replied(done.as_ref())
}

watched! {
    /// Sends a request, and returns results that are read while they arrive.
    transact_into(encode: Arguments<'_>, payload: Option<Payload>, nameless: bool) -> Results, streamed::transact_into,
    |seen, done| seen.replied(done.as_ref().map(|results| &results.reply))
}

watched! {
    /// Queues a oneway.
    queue(encode: Arguments<'_>) -> (), crate::client::queue,
    |seen, done| seen.sent(done.as_ref().copied())
}

watched! {
    /// Sends a oneway with a last argument from a source.
    send_oneway_from(encode: Arguments<'_>, payload: Payload) -> (), streamed::send_oneway,
    |seen, done| seen.sent(done.as_ref().copied())
}
