//! Clients of peers, which run one command line after the other.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{Foreign, Process, Scratch};

/// How long one that runs all its command lines in one process may do so.
const BATCH: Duration = Duration::from_secs(600);

/// What runs command lines.
pub enum Client {
    /// A process for each.
    Each(Box<dyn Fn() -> Command + Send>),
    /// One process for all, since a virtual machine takes a second of processor time to start: it runs each line of its input, whose
    /// words stand between tabs, and says `END STATUS` behind what that says. It is killed with this value.
    Batch { process: Process, _scratch: Scratch },
}

impl Client {
    /// A client program of this peer's; see [`Foreign::program`].
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

    /// Runs a command line. Whether it succeeded, `None` where it did not end in time, and what it said.
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
                    // Its last words count.
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
