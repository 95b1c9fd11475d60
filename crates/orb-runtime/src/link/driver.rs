//! The task of a connection: it reads where no caller does, serves requests in place and finishes writes.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use giop_proto::outbox::BATCH;
use giop_proto::receive::Frame;
use tokio_util::sync::ReusableBoxFuture;

use super::{Link, Progress, State};

/// Requests served before the driver lets other tasks run.
const BURST: usize = 64;
const SLICE: Duration = Duration::from_micros(200);

/// A recycled place for one dispatch future.
pub type Slot = ReusableBoxFuture<'static, Outcome>;

/// What a dispatched request leaves.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The reply, unless it is a oneway.
    pub head: BytesMut,
    /// Its bulk part.
    pub chunk: Option<Bytes>,
}

/// Sets the future of a request into a slot.
pub trait Dispatch: Send + Sync + 'static {
    /// The future of the request.
    fn dispatch(&self, frame: Frame, reply: BytesMut, slot: &mut Slot);
}

/// The driver of one link.
pub struct Driver<D> {
    link: Arc<Link>,
    dispatch: Option<D>,
    slots: Vec<Slot>,
    pending: Vec<Slot>,
    spare: Vec<BytesMut>,
}

impl<D: Dispatch> Driver<D> {
    /// A driver that serves requests by `dispatch`.
    pub fn new(link: Arc<Link>, dispatch: Option<D>) -> Self {
        Self { link, dispatch, slots: Vec::new(), pending: Vec::new(), spare: Vec::new() }
    }

    fn serve(&mut self, cx: &mut Context<'_>, frame: Frame) {
        let Some(dispatch) = &self.dispatch else { return };
        let mut slot = self.slots.pop().unwrap_or_else(|| ReusableBoxFuture::new(std::future::pending()));
        let reply = self.spare.pop().unwrap_or_default();
        dispatch.dispatch(frame, reply, &mut slot);
        match slot.poll(cx) {
            Poll::Ready(outcome) => {
                self.slots.push(slot);
                self.reply(outcome);
            }
            Poll::Pending => self.pending.push(slot),
        }
    }

    fn reply(&mut self, mut outcome: Outcome) {
        if !outcome.head.is_empty() {
            let mut state = self.link.lock();
            state.tx.push(&outcome.head);
            if let Some(chunk) = outcome.chunk {
                state.tx.push_chunk(chunk);
            }
            if state.tx.backlog() >= BATCH {
                drop(self.link.flush(state));
            }
        }
        outcome.head.clear();
        self.spare.push(outcome.head);
    }
}

impl<D: Dispatch + Unpin> Future for Driver<D> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let link = Arc::clone(&this.link);
        let mut state = link.lock();
        state.driver_awake = true;
        if !state.driver.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
        }
        let started = Instant::now();
        let mut served = 0;
        loop {
            // Finish what callers could not write.
            while !state.tx.is_empty() && !state.writing {
                let (again, progress) = link.flush(state);
                state = again;
                if progress == Progress::Blocked {
                    match link.stream.poll_write_ready(cx) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => state.fail(error),
                        Poll::Pending => break,
                    }
                }
            }
            if state.closed.is_some() {
                return Poll::Ready(Ok(()));
            }
            if state.reading || !(state.driver_reads || state.calls.waiting() != 1) {
                state.driver_awake = false;
                return Poll::Pending;
            }
            if served >= BURST && started.elapsed() > SLICE {
                drop(state);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            state.driver_reads = true;
            state.driver_awake = false;
            match link.stream.poll_read_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    state.fail(error);
                    continue;
                }
                Poll::Pending => return Poll::Pending,
            }
            state.driver_awake = true;
            state.reading = true;
            let mut buf = state.rx.take_read_buf();
            drop(state);
            let outcome = link.try_read(&mut buf);
            state = link.lock();
            state.reading = false;
            match outcome {
                Ok(Some(0)) => {
                    state.rx.handle_read(buf, 0);
                    state.fail(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Some(n)) => {
                    state.rx.handle_read(buf, n);
                    if this.dispatch.is_some() {
                        loop {
                            let frame = state.rx.next_frame();
                            drop(state);
                            match frame {
                                Ok(Some(frame)) => this.serve(cx, frame),
                                Ok(None) => break,
                                Err(error) => {
                                    link.lock().fail(io::Error::other(error));
                                    break;
                                }
                            }
                            served += 1;
                            state = link.lock();
                        }
                        state = link.lock();
                    } else {
                        link.deliver(&mut state);
                    }
                }
                Ok(None) => state.rx.handle_read(buf, 0),
                Err(error) => {
                    state.rx.handle_read(buf, 0);
                    state.fail(error);
                }
            }
        }
    }
}

impl<D> Drop for Driver<D> {
    fn drop(&mut self) {
        let mut state: std::sync::MutexGuard<'_, State> = self.link.lock();
        state.fail(io::ErrorKind::ConnectionAborted.into());
    }
}
