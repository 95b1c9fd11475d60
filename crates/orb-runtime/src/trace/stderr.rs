//! Logging to stderr, if the program has set no `tracing` subscriber.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use giop_codec::OneLine;
use tracing::Level;

use crate::lossy::{LossyWriter, missing_lines_notice};

static QUEUE: OnceLock<LossyWriter> = OnceLock::new();

const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sets a subscriber that writes to stderr. If stderr is not read, lines are dropped and counted. Level 0
/// logs nothing, level 1 warnings, 2 also events, 10 also connections and calls, and 25 also messages.
pub(crate) fn log_to_stderr(level: u32) {
    let level = match level {
        0 => return,
        1 => Level::WARN,
        2..=9 => Level::INFO,
        10..=24 => Level::DEBUG,
        _ => Level::TRACE,
    };
    if QUEUE.get().is_none() {
        let Ok(queue) = LossyWriter::new(io::stderr(), LossyWriter::DEFAULT_MAX_BYTES, missing_lines_notice)
        else {
            return;
        };
        let _ = QUEUE.set(queue);
    }
    let Some(queue) = QUEUE.get() else { return };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(|| EscapingWriter(queue))
        .with_target(true)
        .finish();
    // This fails if the program has already set a subscriber, which then stays in use.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Waits until all queued lines are written, for at most [`FLUSH_TIMEOUT`].
pub(crate) async fn flush_stderr() {
    let Some(queue) = QUEUE.get() else { return };
    let done = async {
        while !queue.is_done() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, done).await;
}

/// A writer that escapes control characters in log lines, which may contain text from peers.
struct EscapingWriter(&'static LossyWriter);

impl io::Write for EscapingWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.push(format!("{}\n", OneLine::new(text.trim_end_matches('\n')).whole()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
