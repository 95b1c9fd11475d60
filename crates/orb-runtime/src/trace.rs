//! The wire log, and the conventional `-ORBtraceLevel`, which sends the library's events to stderr if the
//! program has set no subscriber.

use std::fmt::Write as _;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use giop_codec::giop::MessageHeader;
use giop_codec::{OneLine, Printable};
use tracing::Level;

use crate::lossy::{Lossy, missing};
use crate::transport::Peer;

/// The queue before stderr, after [`to_stderr`] has created it.
static QUEUE: OnceLock<Lossy> = OnceLock::new();

/// Time for which the shutdown of an ORB waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Sets a plain subscriber on stderr. A stderr that is not read blocks no call: lines are then dropped and
/// counted. Levels are omniORB's: 0 nothing, 1 warnings, 2 to 9 events, from 10 each connection and call,
/// from 25 each message.
pub(crate) fn to_stderr(level: u32) {
    let level = match level {
        0 => return,
        1 => Level::WARN,
        2..=9 => Level::INFO,
        10..=24 => Level::DEBUG,
        _ => Level::TRACE,
    };
    if QUEUE.get().is_none() {
        let Ok(queue) = Lossy::new(io::stderr(), Lossy::MAX_BYTES, missing) else { return };
        let _ = QUEUE.set(queue);
    }
    let Some(queue) = QUEUE.get() else { return };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(|| Escaped(queue))
        .with_target(true)
        .finish();
    // An existing subscriber stays, because the program has set it on purpose.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Waits until the lines of [`to_stderr`] are written, if it was called; a second at most.
pub(crate) async fn written() {
    let Some(queue) = QUEUE.get() else { return };
    let done = async {
        while !queue.is_done() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = tokio::time::timeout(LAST_LINES, done).await;
}

/// Escapes lines of the log, which may contain text from peers.
struct Escaped(&'static Lossy);

impl io::Write for Escaped {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.push(format!("{}\n", OneLine::new(text.trim_end_matches('\n')).whole()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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
