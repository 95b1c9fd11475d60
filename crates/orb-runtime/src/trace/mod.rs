//! The wire log, which shows the messages of connections, and logging to stderr (`-ORBtraceLevel`).

#[cfg(feature = "trace-stderr")]
mod stderr;

use std::fmt::Write as _;

use giop_codec::Printable;
use giop_codec::giop::MessageHeader;
use tracing::Level;

#[cfg(feature = "trace-stderr")]
pub(crate) use stderr::{flush_stderr, log_to_stderr};

use crate::transport::Peer;

const MAX_LOGGED_BYTES: usize = 256;
/// The object identifier of GSSUP, in DER. In a token with user name and password, only a tag and the length
/// precede it.
const LOGIN_TOKEN_MARKER: &[u8] = &[0x06, 0x06, 0x67, 0x81, 0x02, 0x01, 0x01, 0x01];

#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    /// To the peer.
    Out,
    /// From the peer.
    In,
}

/// Returns whether the wire log (target `zorb::wire`, level trace) is enabled.
#[inline]
pub(crate) fn is_wire_log_enabled() -> bool {
    tracing::enabled!(target: "zorb::wire", Level::TRACE)
}

/// Writes a message of `len` bytes to the wire log. `bytes` must contain at least its first
/// [`MAX_LOGGED_BYTES`], or the whole message if that is shorter.
#[cold]
pub(crate) fn log_message(direction: Direction, peer: &Peer, operation: &str, bytes: &[u8], len: usize) {
    let header = bytes.first_chunk().map(MessageHeader::decode);
    let (kind, version) = match header {
        Some(Ok(header)) => (format!("{:?}", header.kind), header.version.to_string()),
        _ => ("?".to_owned(), "?".to_owned()),
    };
    let shown = bytes.get(..MAX_LOGGED_BYTES).unwrap_or(bytes);
    // Omit a login token and all bytes after it, because its password would be readable.
    let login = shown.windows(LOGIN_TOKEN_MARKER.len()).position(|window| window == LOGIN_TOKEN_MARKER);
    let shown = login.and_then(|at| shown.get(..at)).unwrap_or(shown);
    let mut hex = String::with_capacity(2 * MAX_LOGGED_BYTES + 3);
    for byte in shown {
        let _ = write!(hex, "{byte:02x}");
    }
    if len > shown.len() {
        hex.push_str("...");
    }
    let arrow = match direction {
        Direction::Out => "->",
        Direction::In => "<-",
    };
    let operation = Printable::new(operation).to_string();
    tracing::trace!(target: "zorb::wire", %peer, kind, version, operation, len, octets = hex, "{arrow}");
}
