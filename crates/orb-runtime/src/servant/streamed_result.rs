//! Results that are encoded while their reply is sent: the elements of a `@stream` result leave in parts.
//!
//! Up to the size of one part, the result becomes an ordinary reply. A longer one is started, and its source
//! is polled only while less than one part is queued. The request stays active until the last part is queued.
//! Before GIOP 1.2 a reply is encoded whole.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::giop::{ReplyStatus, finish_message};
use giop_proto::ServeToken;

use crate::connection::SharedConnection;
use crate::servant::current::Extras;
use crate::servant::request::{Outcome, ServerRequest};
use crate::servant::servant_future::LocalFuture;
use crate::stream::{LastResult, Produce, Produced};
use crate::trace::{self, Way};

/// Number of bytes queued before the task yields to other requests of the connection.
const BURST: usize = 256 * 1024;

impl ServerRequest {
    /// Replies with a `@stream` result, which is sent while it is produced.
    ///
    /// # Cancel safety
    /// Dropping the future during the reply closes the connection.
    pub fn reply_streamed(self, result: impl Into<LastResult>) -> LocalFuture<'static, Outcome> {
        // Boxed, so that the futures of the interface's other operations do not grow.
        match result.into().0 {
            Produced::Source(source) => Box::pin(self.flow_out(source)),
            Produced::Octets(octets, unit) => {
                let outcome = self.reply(|e| {
                    unit.encode_start(octets.len(), e)?;
                    e.put_shared_ref(&octets);
                    Ok(())
                });
                Box::pin(std::future::ready(outcome))
            }
        }
    }

    async fn flow_out(mut self, mut source: Box<dyn Produce>) -> Outcome {
        let to = self.to;
        if !to.wanted {
            return to.nothing(self.encoder);
        }
        let Extras { contexts, forward, .. } = self.current.take_extras();
        if let Some(forward) = forward {
            return to.forward(self.encoder, &forward);
        }
        let current = self.current.clone();
        let mut given_up = pin!(current.cancelled());
        let link = self.encoder.link().filter(|_| to.version >= Version::V1_2).cloned();
        let piece = link.as_ref().map_or(usize::MAX, |link| link.reply_piece());

        let head = match to.put_head(&mut self.encoder, ReplyStatus::NoException, &contexts) {
            Ok(head) => head,
            Err(error) => {
                let exception = error.system(CompletionStatus::Yes);
                return to.system_exception(self.encoder, exception);
            }
        };
        let started = match source.begin(&mut self.encoder) {
            Ok(()) => more(&mut *source, &mut self.encoder, piece.saturating_add(1), given_up.as_mut()).await,
            Err(exception) => Made::Failed(exception),
        };
        let link = match (started, link) {
            (Made::Failed(exception), _) => return self.fails(exception),
            (Made::Unwanted, _) => return self.unanswered(),
            (Made::Full, Some(link)) => link,
            // Without a link the size is unlimited.
            (Made::Whole | Made::Full, _) => {
                return match finish_message(&mut self.encoder, head.size_at) {
                    Ok(_) => Outcome { token: to.token, encoder: self.encoder, failed: None },
                    Err(error) => {
                        let exception = error.system(CompletionStatus::Yes);
                        to.system_exception(self.encoder, exception)
                    }
                };
            }
        };

        let encoder = &mut self.encoder;
        if trace::wire_enabled() {
            trace::wire(Way::Out, link.peer(), "", encoder.head(), encoder.len());
        }
        if !poll_fn(|cx| link.poll_begin_reply(cx, to.token, encoder, head.body)).await {
            return self.unanswered();
        }
        let begun = Begun { link: &link, token: to.token };
        let mut queued = self.encoder.position();
        loop {
            if !poll_fn(|cx| link.poll_reply_room(cx, to.token)).await {
                break;
            }
            let until = self.encoder.position().saturating_add(piece);
            let last = match more(&mut *source, &mut self.encoder, until, given_up.as_mut()).await {
                Made::Full => false,
                Made::Whole => true,
                Made::Unwanted => break,
                Made::Failed(exception) => {
                    if link.break_reply(to.token) {
                        drop(begun);
                        return self.fails(exception);
                    }
                    self.current.seen().system_exception(&exception);
                    let text = "a result failed after its first bytes were sent: the connection is closed";
                    tracing::warn!(target: "zorb", %exception, peer = %link.peer(), "{text}");
                    break;
                }
            };
            link.continue_reply(to.token, &mut self.encoder, last);
            if last {
                break;
            }
            if self.encoder.position() - queued >= BURST {
                queued = self.encoder.position();
                pause().await;
            }
        }
        drop(begun);
        self.unanswered()
    }

    /// Replies with an exception raised by the source of the result.
    fn fails(self, exception: SystemException) -> Outcome {
        self.current.seen().system_exception(&exception);
        self.to.system_exception(self.encoder, exception)
    }

    /// Ends the request without another reply: the reply was sent, or no client waits for it.
    fn unanswered(mut self) -> Outcome {
        self.encoder.reset(self.to.order, self.to.version);
        self.to.nothing(self.encoder)
    }
}

/// The result of encoding part of a source.
enum Made {
    /// The position was reached, and more follows.
    Full,
    /// The source is exhausted.
    Whole,
    /// The client cancelled the call, or its connection is gone.
    Unwanted,
    Failed(SystemException),
}

/// Encodes until the encoder reaches position `until`.
async fn more(
    source: &mut dyn Produce,
    encoder: &mut Encoder,
    until: usize,
    mut given_up: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Made {
    poll_fn(|cx| {
        if given_up.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Made::Unwanted);
        }
        source.poll_put(cx, encoder, until).map(|made| match made {
            Ok(false) => Made::Full,
            Ok(true) => Made::Whole,
            Err(exception) => Made::Failed(exception),
        })
    })
    .await
}

/// Yields to other tasks once.
async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A reply that was begun. If it is incomplete when this is dropped, it cannot be completed.
struct Begun<'a> {
    link: &'a SharedConnection,
    token: ServeToken,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.link.break_reply(self.token);
    }
}
