//! A call from the caller's side.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use giop_codec::giop::RequestId;
use giop_proto::calls::CallId;
use giop_proto::receive::Frame;

use super::{BACKLOG, GATHER, Link, Progress};
use giop_proto::outbox::BATCH;

/// Cancels the call when it is dropped before its reply.
struct Pending<'a> {
    link: &'a Link,
    call: CallId,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let mut state = self.link.lock();
        state.calls.abandon(self.call);
        if !state.driver_reads {
            state.wake_driver();
        }
    }
}

impl Link {
    /// Sends a request and waits for its reply.
    pub async fn call(&self, message: impl FnOnce(RequestId) -> (Bytes, Option<Bytes>)) -> io::Result<Frame> {
        let call = {
            let mut state = self.lock();
            let Some(call) = state.calls.start(None) else { return Err(io::ErrorKind::ResourceBusy.into()) };
            let id = state.calls.request_id(call);
            let (head, chunk) = message(id);
            state.tx.push(&head);
            if let Some(chunk) = chunk {
                state.tx.push_chunk(chunk);
            }
            let _ = self.flush(state);
            call
        };
        let pending = Pending { link: self, call };
        let reply = poll_fn(|cx| self.poll_reply(cx, call)).await;
        std::mem::forget(pending);
        reply
    }

    /// Sends a request that has no reply.
    pub async fn oneway(&self, head: &[u8], mut chunk: Option<Bytes>) -> io::Result<()> {
        poll_fn(|cx| {
            let mut state = self.lock();
            if let Some(error) = &state.closed {
                return Poll::Ready(Err(io::Error::new(error.kind(), Arc::clone(error))));
            }
            if state.tx.backlog() >= BACKLOG {
                let (again, _) = self.flush(state);
                state = again;
                if state.tx.backlog() >= BACKLOG {
                    state.room.push(cx.waker().clone());
                    return Poll::Pending;
                }
            }
            state.tx.push(head);
            if let Some(chunk) = chunk.take() {
                state.tx.push_chunk(chunk);
            }
            let busy = state.writing || state.last_write.is_some_and(|at| at.elapsed() < GATHER);
            if busy && state.tx.backlog() < BATCH {
                state.wake_driver();
            } else {
                let (mut state, _) = self.flush(state);
                state.last_write = Some(std::time::Instant::now());
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn poll_reply(&self, cx: &mut Context<'_>, call: CallId) -> Poll<io::Result<Frame>> {
        let mut state = self.lock();
        loop {
            if let Some(reply) = state.calls.take(call) {
                return Poll::Ready(Ok(reply));
            }
            if let Some(error) = &state.closed {
                return Poll::Ready(Err(io::Error::new(error.kind(), Arc::clone(error))));
            }
            let index = call.index();
            if state.callers.len() <= index {
                state.callers.resize(index + 1, None);
            }
            if let Some(slot) = state.callers.get_mut(index) {
                match slot {
                    Some(waker) if waker.will_wake(cx.waker()) => {}
                    _ => *slot = Some(cx.waker().clone()),
                }
            }
            let alone = self.client_only && state.calls.waiting() == 1 && state.tx.backlog() == 0;
            if !alone || state.reading {
                if !state.driver_reads {
                    state.driver_reads = true;
                    state.wake_driver();
                }
                return Poll::Pending;
            }
            state.driver_reads = false;
            // Readiness is exact (see `try_read`), so asking first costs nothing and spares a buffer.
            match self.stream.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    state.fail(error);
                    continue;
                }
            }
            state.reading = true;
            let mut buf = state.rx.take_read_buf();
            drop(state);
            let outcome = self.try_read(&mut buf);
            state = self.lock();
            state.reading = false;
            match outcome {
                Ok(Some(0)) => {
                    state.rx.handle_read(buf, 0);
                    state.fail(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Some(n)) => {
                    state.rx.handle_read(buf, n);
                    self.deliver(&mut state);
                }
                Ok(None) => {
                    state.rx.handle_read(buf, 0);
                }
                Err(error) => {
                    state.rx.handle_read(buf, 0);
                    state.fail(error);
                }
            }
        }
    }

    /// Hands whole replies to their calls.
    pub(super) fn deliver(&self, state: &mut super::State) {
        loop {
            match state.rx.next_frame() {
                Ok(Some(frame)) => {
                    let id = frame.octets.get(12..16).and_then(|b| b.first_chunk::<4>()).copied().unwrap_or_default();
                    if let Ok(call) = state.calls.complete(RequestId(u32::from_le_bytes(id)), frame) {
                        if let Some(waker) = state.callers.get_mut(call.index()).and_then(Option::take) {
                            waker.wake();
                        }
                    }
                }
                Ok(None) => return,
                Err(error) => return state.fail(io::Error::other(error)),
            }
        }
    }

    /// Waits until everything queued is with the kernel.
    pub async fn flushed(&self) {
        poll_fn(|cx| {
            let (mut state, _): (_, Progress) = self.flush(self.lock());
            if state.tx.backlog() == 0 || state.closed.is_some() {
                return Poll::Ready(());
            }
            state.room.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
