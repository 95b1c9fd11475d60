//! Peers that are told what to do line by line, and answer so.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{Process, Scratch};

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// A process that answers `LINE` by `LINE = RESULT`; killed with this value.
pub struct Talk {
    process: Process,
    _scratch: Scratch,
}

/// A line that it was told.
pub struct Told {
    line: String,
    /// How much it had said before.
    from: usize,
}

impl Talk {
    /// Starts it; it says READY first.
    pub fn start(command: Command, limit: Duration) -> Self {
        let scratch = Scratch::new();
        let mut process = Process::start(command, &scratch);
        process.ready(limit);
        Self { process, _scratch: scratch }
    }

    /// Tells it a line, and does not wait.
    pub fn tell(&mut self, line: &str) -> Told {
        let from = self.process.output().lines().count();
        self.process.say(line);
        Told { line: line.to_owned(), from }
    }

    /// What it says to that line.
    pub async fn answer(&mut self, told: Told) -> String {
        let start = format!("{} = ", told.line);
        let found = |output: &str| {
            let mut lines = output.lines().skip(told.from);
            lines.find_map(|line| line.strip_prefix(&start).map(str::to_owned))
        };
        self.until(&told.line, found).await
    }

    /// Tells it a line and waits for its answer.
    pub async fn ask(&mut self, line: &str) -> String {
        let told = self.tell(line);
        self.answer(told).await
    }

    /// Waits until it has said that line so often.
    pub async fn says(&mut self, line: &str, times: usize) {
        let said =
            |output: &str| (output.lines().filter(|said| *said == line).count() >= times).then_some(());
        self.until(line, said).await;
    }

    async fn until<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            // Its last words count.
            let ended = self.process.is_ended();
            let output = self.process.output();
            if let Some(found) = found(&output) {
                return found;
            }
            assert!(!ended && start.elapsed() < ANSWER, "nothing of `{what}`:\n{output}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends it at once, without a word to anybody (SIGKILL).
    pub fn kill(mut self) {
        self.process.kill();
    }
}
