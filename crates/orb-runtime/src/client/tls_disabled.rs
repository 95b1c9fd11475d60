//! Replacement of TLS to servers if it is not compiled in.

use std::sync::Arc;

use tokio::net::TcpStream;

use crate::endpoint::Endpoint;
use crate::runtime::Shared;
use crate::transport::Socket;

impl Shared {
    /// Fails, because TLS is not supported.
    pub(crate) async fn secure(self: &Arc<Self>, _: TcpStream, _: &str) -> std::io::Result<Socket> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Returns `None`, because no error is one of TLS.
pub(crate) fn exception_of(
    _: &Endpoint,
    _: &std::io::Error,
) -> Option<giop_codec::exception::SystemException> {
    None
}
