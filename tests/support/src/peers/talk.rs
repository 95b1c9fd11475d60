//! Peers that receive commands line by line, and answer each.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{Process, Scratch};

/// Timeout of an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// A process that answers `LINE` by `LINE = RESULT`; killed when this is dropped.
pub struct Talk {
    process: Process,
    _scratch: Scratch,
}

/// A line that was sent to it.
pub struct Told {
    line: String,
    /// Number of lines that it had printed before.
    from: usize,
}

impl Talk {
    /// Starts it, and waits for READY.
    pub fn start(command: Command, limit: Duration) -> Self {
        let scratch = Scratch::new();
        let mut process = Process::start(command, &scratch);
        process.ready(limit);
        Self { process, _scratch: scratch }
    }

    /// Sends it a line without waiting.
    pub fn tell(&mut self, line: &str) -> Told {
        let from = self.process.output().lines().count();
        self.process.say(line);
        Told { line: line.to_owned(), from }
    }

    /// Returns its answer to that line.
    pub async fn answer(&mut self, told: Told) -> String {
        let start = format!("{} = ", told.line);
        let found = |output: &str| {
            let mut lines = output.lines().skip(told.from);
            lines.find_map(|line| line.strip_prefix(&start).map(str::to_owned))
        };
        self.until(&told.line, found).await
    }

    /// Sends it a line, and waits for its answer.
    pub async fn ask(&mut self, line: &str) -> String {
        let told = self.tell(line);
        self.answer(told).await
    }

    /// Waits until it has printed that line `times` times.
    pub async fn says(&mut self, line: &str, times: usize) {
        let said =
            |output: &str| (output.lines().filter(|said| *said == line).count() >= times).then_some(());
        self.until(line, said).await;
    }

    async fn until<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            // Checked before the output is read, so that its last output is included.
            let ended = self.process.is_ended();
            let output = self.process.output();
            if let Some(found) = found(&output) {
                return found;
            }
            assert!(!ended && start.elapsed() < ANSWER, "nothing of `{what}`:\n{output}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Kills it (SIGKILL), so that it notifies no peer.
    pub fn kill(mut self) {
        self.process.kill();
    }
}
