//! The processes: told what to do over stdin, heard over stdout, always killed and reaped.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::DeserializeOwned;

/// A child. It ends when its stdin does, which the kernel closes whoever dies; dropping it kills and reaps it.
///
/// It is in a process group of its own, so Ctrl-C is not for it.
pub(super) struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Child {
    /// This program with other arguments.
    ///
    /// # Errors
    /// It can not be started.
    pub(super) fn start(arguments: &[String]) -> anyhow::Result<Child> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut process = command.spawn().context("cannot start a child")?;
        let (sender, lines) = channel();
        let stdout = process.stdout.take().context("no stdout")?;
        std::thread::Builder::new().name("stdout".into()).spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        })?;
        let stdin = process.stdin.take();
        Ok(Child { process, stdin, lines })
    }

    /// Tells it something. One that is gone does not hear it: who waits for its answer learns that.
    pub(super) fn order(&mut self, word: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{word}\n").as_bytes());
        }
    }

    /// Waits for what it says behind a word. Other words are dropped.
    ///
    /// # Errors
    /// It says nothing of the kind in time, or ends.
    pub(super) fn hear<T: DeserializeOwned>(&mut self, word: &str, time: Duration) -> anyhow::Result<T> {
        let deadline = Instant::now() + time;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some((said, what)) = line.split_once(' ')
                        && said == word
                    {
                        return serde_json::from_str(what).with_context(|| format!("it said {line:?}"));
                    }
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    bail!("no {word} within {} s", time.as_secs())
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                    bail!(
                        "it ended before {word}: {}",
                        self.ended().map_or_else(String::new, |status| status.to_string())
                    )
                }
            }
        }
    }

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It goes on, or ended with an error.
    pub(super) fn wait(&mut self, time: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            match self.ended() {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("it ended with {status}"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        bail!("it did not end within {} s", time.as_secs())
    }

    /// Kills it: it can do nothing about it.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.process.wait();
    }

    /// Stops it where it is.
    pub(super) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub(super) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // Fails only if it is gone.
        let _ = kill_process_group(Pid::from_child(&self.process), signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Its number is its own until it is waited for, and that is done here at the latest.
        if self.ended().is_none() {
            self.kill();
        }
    }
}
