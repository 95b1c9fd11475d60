//! The progress of a run on stderr: a bar if stderr is a terminal, or else lines of text.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a run. The bar is drawn only between measurements, because drawing would affect them.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    start: Instant,
    total: u64,
    done: u64,
}

impl Progress {
    pub(crate) fn new(total: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            let style =
                ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} ({eta} left) {wide_msg}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, start: Instant::now(), total, done: 0 }
    }

    pub(crate) fn begin(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.tick();
        }
    }

    pub(crate) fn end(&mut self, what: &str, outcome: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => {
                let time = format_minutes(self.start.elapsed());
                eprintln!("[{}/{} {time}] {what}: {outcome}", self.done, self.total);
            }
        }
    }

    /// Prints a text that the bar does not overwrite.
    pub(crate) fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn format_minutes(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_minutes_and_seconds() {
        assert_eq!(format_minutes(Duration::from_millis(5_900)), "0:05");
        assert_eq!(format_minutes(Duration::from_secs(3_671)), "61:11");
    }
}
