//! Clients of peers, which run one command line after the other.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{Foreign, Process, Scratch};

/// Timeout of a client that runs all its command lines in one process.
const BATCH: Duration = Duration::from_secs(600);

/// Runs command lines.
pub enum Client {
    /// A process for each command line.
    Each(Box<dyn Fn() -> Command + Send>),
    /// One process for all, because a virtual machine takes a second of processor time to start. It runs each
    /// line of its input, with words separated by tabs, and prints `END STATUS` after the output of each. It
    /// is killed when this is dropped.
    Batch {
        /// The process.
        process: Process,
        /// The directory of its files.
        _scratch: Scratch,
    },
}

impl Client {
    /// Returns a client program of this peer; see [`Foreign::program`].
    pub fn of(orb: Foreign, program: &str) -> Option<Self> {
        let path = orb.program(program)?;
        if !orb.is_java() {
            return Some(Self::Each(Box::new(move || Command::new(&path))));
        }
        let scratch = Scratch::new();
        let mut command = Command::new(path);
        command.args(["batch", "--seconds", &BATCH.as_secs().to_string()]);
        Some(Self::Batch { process: Process::start(command, &scratch), _scratch: scratch })
    }

    /// Runs a command line. Returns whether it succeeded, `None` if it did not end in time, and its output.
    pub fn run(&mut self, words: &[&str], limit: Duration) -> (Option<bool>, String) {
        match self {
            Self::Each(begin) => {
                let scratch = Scratch::new();
                let mut command = begin();
                command.args(words);
                let mut process = Process::start(command, &scratch);
                let status = process.end(limit);
                (status.map(|status| status.success()), process.output())
            }
            Self::Batch { process, .. } => {
                let (from, start) = (process.output().len(), Instant::now());
                process.say(&words.join("\t"));
                loop {
                    // Checked before the output is read, so that its last output is included.
                    let is_over = process.is_ended() || start.elapsed() > limit;
                    let said = process.output().split_off(from);
                    let end = said.lines().find_map(|line| line.strip_prefix("END ")).map(|end| end == "0");
                    if end.is_some() || is_over {
                        return (end, said);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }
}
