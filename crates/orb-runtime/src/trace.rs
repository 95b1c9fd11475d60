//! The wire log, and the conventional `-ORBtraceLevel`, which sends the library's events to stderr where the program
//! set no subscriber.

use std::fmt::Write as _;

use giop_codec::giop::MessageHeader;
use tracing::Level;

use crate::transport::Peer;

/// Sets a plain subscriber on stderr. Levels are omniORB's: 0 nothing, 1 warnings, 2 to 9 what happens, from 10 each
/// connection and call, from 25 each message.
pub(crate) fn to_stderr(level: u32) {
    let level = match level {
        0 => return,
        1 => Level::WARN,
        2..=9 => Level::INFO,
        10..=24 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(true)
        .finish();
    // Somebody else's subscriber stays: it was set on purpose.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Octets of a message that the wire log shows.
const SHOWN: usize = 256;

/// How the token of a login begins, behind its length: the object identifier of GSSUP in DER. Nothing is shown from there on.
const LOGIN: &[u8] = &[0x06, 0x06, 0x67, 0x81, 0x02, 0x01, 0x01, 0x01];

/// Which way a message went.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// To the peer.
    Out,
    /// From the peer.
    In,
}

/// Whether anybody reads the wire log (target `zorb::wire`, level trace).
#[inline]
pub(crate) fn wire_enabled() -> bool {
    tracing::enabled!(target: "zorb::wire", Level::TRACE)
}

/// Writes a message into the wire log: its kind, peer, operation and first octets.
#[cold]
pub(crate) fn wire(way: Way, peer: &Peer, operation: &str, octets: &[u8], len: usize) {
    let header = octets.first_chunk().map(MessageHeader::decode);
    let (kind, version) = match header {
        Some(Ok(header)) => (format!("{:?}", header.kind), header.version.to_string()),
        _ => ("?".to_owned(), "?".to_owned()),
    };
    let shown = octets.get(..SHOWN).unwrap_or(octets);
    // A login, of which the password would be readable, whoever sends it.
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
    tracing::trace!(target: "zorb::wire", %peer, kind, version, operation, len, octets = hex, "{arrow}");
}
