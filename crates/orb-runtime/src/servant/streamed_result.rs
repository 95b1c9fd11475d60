//! Replies with a `@stream` result, which is encoded and sent in parts.
//!
//! A result that fits in one part becomes an ordinary reply. The first part of a longer result is sent at
//! once. For each further part, the source is polled when at most one part is queued. The request stays
//! active until the last part is queued. In GIOP 1.0 and 1.1, the whole reply is encoded before it is sent.

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
use crate::servant::skeleton::BoxedFuture;
use crate::stream::{EncodeParts, ResultContent, StreamedResult};
use crate::trace::{self, Direction};

/// The number of bytes after which the task yields to other requests of the connection.
const MAX_BURST_BYTES: usize = 256 * 1024;

impl ServerRequest {
    /// Replies with a `@stream` result, which is sent while its source produces it. If the future is dropped
    /// after the first part was sent, the connection is closed.
    pub fn reply_streamed(self, result: impl Into<StreamedResult>) -> BoxedFuture<'static, Outcome> {
        // The future is boxed, so that the common future type of the interface's operations stays small.
        match result.into().0 {
            ResultContent::Source(source) => Box::pin(self.stream_reply(source)),
            ResultContent::Bytes(bytes, layout) => {
                let outcome = self.reply(|e| {
                    layout.encode_start(bytes.len(), e)?;
                    e.put_shared_ref(&bytes);
                    Ok(())
                });
                Box::pin(std::future::ready(outcome))
            }
        }
    }

    async fn stream_reply(mut self, mut source: Box<dyn EncodeParts>) -> Outcome {
        let to = self.to;
        if !to.wants_reply {
            return to.no_reply(self.encoder);
        }
        let Extras { contexts, forward, .. } = self.current.take_extras();
        if let Some(forward) = forward {
            return to.forward(self.encoder, &forward);
        }
        let current = self.current.clone();
        let mut cancelled = pin!(current.cancelled());
        let link = self.encoder.link().filter(|_| to.version >= Version::V1_2).cloned();
        let part_size = link.as_ref().map_or(usize::MAX, |link| link.reply_piece_size());

        let head = match to.put_head(&mut self.encoder, ReplyStatus::NoException, &contexts) {
            Ok(head) => head,
            Err(error) => {
                return to.system_exception(self.encoder, error.to_system_exception(CompletionStatus::Yes));
            }
        };
        let started = match source.begin(&mut self.encoder) {
            Ok(()) => {
                encode_until(&mut *source, &mut self.encoder, part_size.saturating_add(1), cancelled.as_mut())
                    .await
            }
            Err(exception) => Progress::Failed(exception),
        };
        let link = match (started, link) {
            (Progress::Failed(exception), _) => return self.fail(exception),
            (Progress::Unwanted, _) => return self.end_without_reply(),
            (Progress::LimitReached, Some(link)) => link,
            // Without a connection, the size of a part is unlimited.
            (Progress::Complete | Progress::LimitReached, _) => {
                return match finish_message(&mut self.encoder, head.size_at) {
                    Ok(_) => Outcome { token: to.token, encoder: self.encoder, oneway_failure: None },
                    Err(error) => {
                        to.system_exception(self.encoder, error.to_system_exception(CompletionStatus::Yes))
                    }
                };
            }
        };

        let encoder = &mut self.encoder;
        if trace::is_wire_log_enabled() {
            trace::log_message(Direction::Out, link.peer(), "", encoder.head(), encoder.len());
        }
        if !poll_fn(|cx| link.poll_begin_reply(cx, to.token, encoder, head.body_start)).await {
            return self.end_without_reply();
        }
        let started_reply = StartedReply { link: &link, token: to.token };
        let mut queued = self.encoder.position();
        loop {
            if !poll_fn(|cx| link.poll_reply_room(cx, to.token)).await {
                break;
            }
            let until = self.encoder.position().saturating_add(part_size);
            let encoder = &mut self.encoder;
            let is_last = match encode_until(&mut *source, encoder, until, cancelled.as_mut()).await {
                Progress::LimitReached => false,
                Progress::Complete => true,
                Progress::Unwanted => break,
                Progress::Failed(exception) => {
                    if link.break_reply(to.token) {
                        drop(started_reply);
                        return self.fail(exception);
                    }
                    self.current.span().record_system_exception(&exception);
                    let text =
                        "closed the connection because a result failed after its first bytes were sent";
                    tracing::warn!(target: "zorb", %exception, peer = %link.peer(), "{text}");
                    break;
                }
            };
            link.continue_reply(to.token, &mut self.encoder, is_last);
            if is_last {
                break;
            }
            if self.encoder.position() - queued >= MAX_BURST_BYTES {
                queued = self.encoder.position();
                yield_once().await;
            }
        }
        drop(started_reply);
        self.end_without_reply()
    }

    fn fail(self, exception: SystemException) -> Outcome {
        self.current.span().record_system_exception(&exception);
        self.to.system_exception(self.encoder, exception)
    }

    /// Ends the request without a further reply, because the reply was sent or no client waits for it.
    fn end_without_reply(mut self) -> Outcome {
        self.encoder.reset(self.to.order, self.to.version);
        self.to.no_reply(self.encoder)
    }
}

enum Progress {
    /// The encoder has reached the requested position. The source has further data.
    LimitReached,
    Complete,
    /// The client has cancelled the call, or its connection has ended.
    Unwanted,
    Failed(SystemException),
}

async fn encode_until(
    source: &mut dyn EncodeParts,
    encoder: &mut Encoder,
    until: usize,
    mut cancelled: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Progress {
    poll_fn(|cx| {
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Progress::Unwanted);
        }
        source.poll_encode(cx, encoder, until).map(|made| match made {
            Ok(false) => Progress::LimitReached,
            Ok(true) => Progress::Complete,
            Err(exception) => Progress::Failed(exception),
        })
    })
    .await
}

async fn yield_once() {
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

/// Closes the connection on drop if only a part of the reply has been queued.
struct StartedReply<'a> {
    link: &'a SharedConnection,
    token: ServeToken,
}

impl Drop for StartedReply<'_> {
    fn drop(&mut self) {
        self.link.break_reply(self.token);
    }
}
