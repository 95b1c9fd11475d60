//! The log of servers on standard error: warnings and errors of the libraries.

use std::io::{self, Write};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::output;

/// Enables the log of warnings and errors. It uses the queue of
/// [`Output::make_nonblocking`](crate::output::Output::make_nonblocking).
pub(crate) fn start() {
    let log = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_ansi(false)
        .with_target(false)
        .with_writer(LineWriter)
        .finish();
    // This fails if there is already another subscriber, which happens only in tests.
    let _ = tracing::subscriber::set_global_default(log);
}

struct LineWriter;

/// The text of one event, which is written as a whole when it is dropped.
struct Line(Vec<u8>);

impl MakeWriter<'_> for LineWriter {
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
