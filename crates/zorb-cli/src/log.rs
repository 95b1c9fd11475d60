//! The log of commands that serve: warnings and errors of the libraries, on standard error.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait to be written. Beyond that lines are dropped and counted, so that a reader that stands still stops no server.
const LINES: usize = 1024;

/// Shows warnings and errors from here on.
///
/// # Errors
/// There is no thread for it.
pub(crate) fn start() -> anyhow::Result<()> {
    static STARTED: OnceLock<()> = OnceLock::new();
    if STARTED.set(()).is_err() {
        return Ok(());
    }
    let (lines, queue) = sync_channel(LINES);
    let dropped = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&dropped);
    let thread = std::thread::Builder::new().name("zorb-log".to_owned());
    thread.spawn(move || write(&queue, &counted)).context("cannot start")?;
    let log = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_ansi(false)
        .with_target(false)
        .with_writer(Log { lines, dropped })
        .finish();
    // Another subscriber may be there in tests alone.
    let _ = tracing::subscriber::set_global_default(log);
    Ok(())
}

fn write(queue: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
    while let Ok(line) = queue.recv() {
        let mut out = io::stderr().lock();
        // Nobody reads where that fails.
        let _ = out.write_all(&line);
        let count = dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            let _ = writeln!(out, "{count} lines of the log were dropped: standard error does not take them");
        }
    }
}

/// Gives each line to the thread that writes.
struct Log {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// A line that is being made.
struct Line<'a> {
    log: &'a Log,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { log: self, text: Vec::new() }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if self.log.lines.try_send(std::mem::take(&mut self.text)).is_err() {
            self.log.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
