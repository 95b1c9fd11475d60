//! The security mechanisms that a reference announces, and the TLS address among them.

use super::mechanisms::{CompoundSecMechList, TransportAddress, TransportMechanism};
use crate::EncodeError;
use crate::cdr::{CdrDecode, CdrEncode};
use crate::ior::{ComponentTag, IiopProfile, TaggedComponent, encapsulation, without_brackets};

impl TaggedComponent {
    /// `TAG_CSI_SEC_MECH_LIST`: the security that the server supports and requires.
    ///
    /// # Errors
    /// A host name that has no encoding because it contains a NUL, or a list with more elements than a ulong
    /// can count.
    pub fn csi_mechanisms(list: &CompoundSecMechList) -> Result<Self, EncodeError> {
        Ok(Self { tag: ComponentTag::CSI_SEC_MECH_LIST, data: encapsulation(|e| list.encode(e))? })
    }

    /// Returns the security that the server supports and requires.
    pub fn as_csi_mechanisms(&self) -> Option<CompoundSecMechList> {
        self.read(ComponentTag::CSI_SEC_MECH_LIST, CompoundSecMechList::decode)
    }
}

impl IiopProfile {
    /// Returns the security that the server supports and requires; `None` if the component is missing or does
    /// not decode.
    pub fn csi_mechanisms(&self) -> Option<CompoundSecMechList> {
        self.component(ComponentTag::CSI_SEC_MECH_LIST)?.as_csi_mechanisms()
    }

    /// Returns host and port for TLS from `TAG_SSL_SEC_TRANS`. Without that component, returns the first
    /// address among the mechanisms of CSIv2, the only place where application servers give it. `None` if
    /// there is no such port. The host has no brackets, as in [`addresses`](Self::addresses).
    pub fn secure_address(&self) -> Option<(String, u16)> {
        if let Some(ssl) = self.ssl() {
            return (ssl.port != 0).then(|| (without_brackets(self.host.clone()), ssl.port));
        }
        let list = self.csi_mechanisms()?;
        let mut addresses = list.mechanisms.into_iter().flat_map(|mechanism| match mechanism.transport {
            TransportMechanism::Tls(tls) => tls.addresses,
            _ => Vec::new(),
        });
        let TransportAddress { host, port } = addresses.find(|address| address.port != 0)?;
        let host = if host.is_empty() { self.host.clone() } else { host };
        Some((without_brackets(host), port))
    }

    /// Returns whether the server can be called only over TLS.
    pub fn requires_tls(&self) -> bool {
        match self.ssl() {
            Some(ssl) => ssl.port != 0 && ssl.is_required(),
            None => self.secure_address().is_some() && self.csi_mechanisms().is_some_and(by_tls_alone),
        }
    }
}

/// Returns whether every mechanism requires TLS.
fn by_tls_alone(list: CompoundSecMechList) -> bool {
    list.mechanisms.iter().all(|mechanism| matches!(mechanism.transport, TransportMechanism::Tls(_)))
}
