//! Progress on stderr: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a run. Draws only between measurements, because a ticking bar would affect them.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    total: u64,
    done: u64,
}

impl Progress {
    /// Starts a progress display of `total` measurements.
    pub(crate) fn new(total: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            let style =
                ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} (still {eta}) {wide_msg}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, started: Instant::now(), total, done: 0 }
    }

    /// Shows the start of a measurement.
    pub(crate) fn begin(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.tick();
        }
    }

    /// Shows the end of a measurement.
    pub(crate) fn end(&mut self, what: &str, outcome: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => eprintln!(
                "[{}/{} {}] {what}: {outcome}",
                self.done,
                self.total,
                clock(self.started.elapsed())
            ),
        }
    }

    /// Prints a text that remains visible.
    pub(crate) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_millis(5_900)), "0:05");
        assert_eq!(clock(Duration::from_secs(3_671)), "61:11");
    }
}
