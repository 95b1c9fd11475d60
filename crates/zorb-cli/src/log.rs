//! The log of commands that serve: warnings and errors of the libraries, on standard error.

use std::io::{self, Write};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::output;

/// Enables the log of warnings and errors, written through the queue of
/// [`Output::never_block`](crate::output::Output::never_block).
pub(crate) fn start() {
    let log = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_ansi(false)
        .with_target(false)
        .with_writer(Log)
        .finish();
    // Another subscriber can exist only in tests.
    let _ = tracing::subscriber::set_global_default(log);
}

/// A writer that passes on complete lines.
struct Log;

/// A line that is being written.
struct Line(Vec<u8>);

impl MakeWriter<'_> for Log {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line(Vec::new())
    }
}

impl Write for Line {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        output::log_line(String::from_utf8_lossy(&self.0).trim_end());
    }
}
