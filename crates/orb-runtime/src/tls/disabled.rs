//! Replaces the module `tls` if the feature `tls` is disabled. Its types have no values.

use std::convert::Infallible;

use giop_codec::ior::SslSecTrans;

#[derive(Debug, Clone)]
pub(crate) struct Tls(Infallible);

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

    pub(crate) fn uses_tls(&self, _: bool) -> bool {
        match self.0 {}
    }

    pub(crate) fn uses_plaintext(&self, _: bool) -> bool {
        match self.0 {}
    }

    pub(crate) fn has_identity(&self) -> bool {
        match self.0 {}
    }
}
