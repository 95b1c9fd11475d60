//! The wire log, and the conventional `-ORBtraceLevel`.

#[cfg(feature = "trace-stderr")]
mod stderr;

use std::fmt::Write as _;

use giop_codec::Printable;
use giop_codec::giop::MessageHeader;
use tracing::Level;

#[cfg(feature = "trace-stderr")]
pub(crate) use stderr::{to_stderr, written};

use crate::transport::Peer;

/// Maximum number of bytes of a message that the wire log shows.
const SHOWN: usize = 256;

/// The start of a login token, after its length: the object identifier of GSSUP in DER. The log shows nothing
/// from there on.
const LOGIN: &[u8] = &[0x06, 0x06, 0x67, 0x81, 0x02, 0x01, 0x01, 0x01];

/// The direction of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// To the peer.
    Out,
    /// From the peer.
    In,
}

/// Returns whether the wire log (target `zorb::wire`, level trace) is enabled.
#[inline]
pub(crate) fn wire_enabled() -> bool {
    tracing::enabled!(target: "zorb::wire", Level::TRACE)
}

/// Writes a message into the wire log: its kind, peer, operation and first bytes.
#[cold]
pub(crate) fn wire(way: Way, peer: &Peer, operation: &str, octets: &[u8], len: usize) {
    let header = octets.first_chunk().map(MessageHeader::decode);
    let (kind, version) = match header {
        Some(Ok(header)) => (format!("{:?}", header.kind), header.version.to_string()),
        _ => ("?".to_owned(), "?".to_owned()),
    };
    let shown = octets.get(..SHOWN).unwrap_or(octets);
    // Omit a login, whichever side sends it, because its password would be readable.
    let login = shown.windows(LOGIN.len()).position(|octets| octets == LOGIN);
    let shown = login.and_then(|at| shown.get(..at)).unwrap_or(shown);
    let mut hex = String::with_capacity(2 * SHOWN + 3);
    for octet in shown {
        let _ = write!(hex, "{octet:02x}");
    }
    if len > shown.len() {
        hex.push_str("...");
    }
    let arrow = match way {
        Way::Out => "->",
        Way::In => "<-",
    };
    let operation = Printable::new(operation).to_string();
    tracing::trace!(target: "zorb::wire", %peer, kind, version, operation, len, octets = hex, "{arrow}");
}
