//! Replacement of TLS if it is not compiled in: see [`crate::tls`].

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use giop_proto::outbox::Transmit;
use giop_proto::receive::ReadBuf;

use crate::tls::TlsSession;
use crate::transport::Progress;

#[derive(Debug)]
pub(crate) struct TlsSocket(Infallible);

impl TlsSocket {
    pub(crate) fn session(&self) -> &Arc<TlsSession> {
        match self.0 {}
    }

    pub(super) fn try_read(&self, _: &mut ReadBuf) -> io::Result<Option<usize>> {
        match self.0 {}
    }

    pub(super) fn spin_read(&self, _: &mut ReadBuf, _: Duration) -> io::Result<Option<usize>> {
        match self.0 {}
    }

    pub(super) fn try_write(&self, _: &mut Transmit) -> io::Result<Progress> {
        match self.0 {}
    }

    pub(super) fn write_now(&self, _: &mut Transmit) -> io::Result<Progress> {
        match self.0 {}
    }

    pub(super) fn wait(&self, _: bool, _: bool, _: Duration) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn poll_read_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    pub(super) fn poll_write_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    pub(super) fn shut_down_write(&self) {
        match self.0 {}
    }

    pub(super) fn shut_down_socket(&self) {
        match self.0 {}
    }
}
