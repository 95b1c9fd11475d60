//! The events of the library on stderr, if the program has set no subscriber.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use giop_codec::OneLine;
use tracing::Level;

use crate::lossy::{Lossy, missing};

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
