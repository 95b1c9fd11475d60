//! Replacement of TLS if it is not compiled in. No value of these types exists, so nothing here ever runs.

use std::convert::Infallible;

use giop_codec::ior::SslSecTrans;

/// Cannot be created.
#[derive(Debug, Clone)]
pub(crate) struct Tls(Infallible);

/// Cannot be created.
#[derive(Debug)]
pub(crate) enum TlsSession {}

impl TlsSession {
    #[cfg(feature = "csi")]
    pub(crate) fn subject(&self) -> Option<&str> {
        match *self {}
    }
}

impl Tls {
    pub(crate) fn component(&self, _: u16, _: bool) -> SslSecTrans {
        match self.0 {}
    }

    pub(crate) fn takes_tls(&self, _: bool) -> bool {
        match self.0 {}
    }

    pub(crate) fn takes_plaintext(&self, _: bool) -> bool {
        match self.0 {}
    }

    pub(crate) fn has_identity(&self) -> bool {
        match self.0 {}
    }
}
