//! Logging to stderr, if the program has set no `tracing` subscriber.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use giop_codec::OneLine;
use tracing::Level;

use crate::lossy::{Lossy, missing_lines_notice};

static QUEUE: OnceLock<Lossy> = OnceLock::new();

const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sets a subscriber that writes to stderr. If stderr is not read, lines are dropped and counted. The levels
/// are those of omniORB: 1 for warnings, from 2 events, from 10 connections and calls, from 25 messages.
pub(crate) fn to_stderr(level: u32) {
    let level = match level {
        0 => return,
        1 => Level::WARN,
        2..=9 => Level::INFO,
        10..=24 => Level::DEBUG,
        _ => Level::TRACE,
    };
    if QUEUE.get().is_none() {
        let Ok(queue) = Lossy::new(io::stderr(), Lossy::MAX_BYTES, missing_lines_notice) else { return };
        let _ = QUEUE.set(queue);
    }
    let Some(queue) = QUEUE.get() else { return };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(|| Escaped(queue))
        .with_target(true)
        .finish();
    // If the program has set a subscriber, it is kept.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

pub(crate) async fn flushed() {
    let Some(queue) = QUEUE.get() else { return };
    let done = async {
        while !queue.is_done() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, done).await;
}

/// A writer that escapes log lines, which may contain text from peers.
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
