//! Replacement of io_uring if it is not compiled in. No ring can be created, so nothing here ever runs.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::thread::ThreadId;
use std::time::Duration;

use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::ReadBuf;
use tokio::runtime::Handle;

use crate::transport::threads::IoThread;
use crate::transport::{AtATime, RingRead};

#[derive(Debug)]
pub(crate) struct UringSocket(Infallible);

#[derive(Clone)]
pub(crate) struct RingHandle(Infallible);

impl RingHandle {
    pub(crate) fn here() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "it is not compiled in (feature `uring`, on Linux)"))
    }

    pub(crate) fn on(_: &Handle, _: ThreadId) -> io::Result<Self> {
        Self::here()
    }

    pub(crate) fn has_ended(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn enters(&self) -> &Arc<AtomicU64> {
        match self.0 {}
    }
}

impl UringSocket {
    pub(crate) fn new(
        ring: RingHandle,
        _: tokio::net::TcpStream,
        _: &Arc<BufferPool>,
        _: &Arc<AtomicU64>,
        _: Option<Arc<IoThread>>,
    ) -> io::Result<Self> {
        match ring.0 {}
    }

    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        match self.0 {}
    }

    pub(crate) fn is_here(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn set_waker(&self, _: &Context<'_>) {
        match self.0 {}
    }

    pub(crate) fn poll_read_ready(&self, _: &Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    pub(crate) fn take_read(&self) -> RingRead {
        match self.0 {}
    }

    pub(crate) fn start_read(&self, _: ReadBuf, _: AtATime) {
        match self.0 {}
    }

    pub(crate) fn set_low_water(&self, _: usize) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn start_header(&self) {
        match self.0 {}
    }

    pub(crate) fn cancel_read(&self) {
        match self.0 {}
    }

    pub(crate) fn start_write(&self, _: Transmit) {
        match self.0 {}
    }

    pub(crate) fn take_written(&self) -> Option<(Transmit, io::Result<()>)> {
        match self.0 {}
    }

    pub(crate) fn look(&self) {
        match self.0 {}
    }

    pub(crate) fn spin(&self, _: Duration) -> bool {
        match self.0 {}
    }

    pub(crate) fn shut_down_write(&self) {
        match self.0 {}
    }

    pub(crate) fn close(&self) {
        match self.0 {}
    }
}
