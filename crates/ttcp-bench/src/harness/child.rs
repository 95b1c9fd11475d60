//! Children that run this program itself: they receive orders on stdin, and report on stdout.

use std::io::{BufRead, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::children::{Children, Process, ProcessEvent, format_status};

/// How long a child that closed its stdout may take to exit.
const END: Duration = Duration::from_secs(1);

/// A child. It ends when its stdin ends, which the kernel closes if this process dies. Dropping it kills and
/// reaps it.
///
/// It is in a process group of its own, so that Ctrl-C does not reach it.
pub(crate) struct Child {
    children: Children,
    process: Process,
    closed: bool,
}

impl Child {
    /// Starts this program with other arguments.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(arguments: &[String]) -> anyhow::Result<Child> {
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let mut children = Children::new();
        // Children that are ordered to end do so in order; dropped ones are killed at once.
        children.set_grace(Some(Duration::ZERO));
        children.inherit_stderr();
        let command: Vec<String> = std::iter::once(program).chain(arguments.iter().cloned()).collect();
        let process = children.start(&command, None).context("cannot start a child")?;
        Ok(Child { children, process, closed: false })
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Sends it an order. A failed write is ignored: waiting for the answer then reports the end of the
    /// child.
    pub(crate) fn send_order(&mut self, line: &str) {
        self.process.write_line(line);
    }

    /// Waits for the value that it prints after `word`. Other words are dropped.
    ///
    /// # Errors
    /// It does not print `word` in time, or ends.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self, word: &str, time: Duration) -> anyhow::Result<T> {
        self.try_receive(word, time)?.with_context(|| format!("no {word} within {} s", time.as_secs()))
    }

    /// Waits for the value that it prints after `word`; `None` if it does not print it in time.
    ///
    /// # Errors
    /// It ends, or prints something else after that word.
    pub(crate) fn try_receive<T: DeserializeOwned>(
        &mut self,
        word: &str,
        time: Duration,
    ) -> anyhow::Result<Option<T>> {
        let deadline = Instant::now() + time;
        while !self.closed {
            match self.children.next_event(&self.process, None, deadline) {
                ProcessEvent::Line(line) => {
                    if let Some((name, what)) = line.split_once(' ')
                        && name == word
                    {
                        return serde_json::from_str::<T>(what)
                            .map(Some)
                            .with_context(|| format!("it said {line:?}"));
                    }
                }
                ProcessEvent::Closed => self.closed = true,
                ProcessEvent::Timeout => return Ok(None),
                // There are no other processes, and signals are not handled here.
                ProcessEvent::OtherClosed | ProcessEvent::Interrupted => {}
            }
        }
        let how = self.process.wait(END).map_or_else(|| "it still runs".to_owned(), format_status);
        bail!("it ended before {word}: {how}")
    }

    /// Returns its exit status, if it ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.wait(Duration::ZERO)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It still runs, or ended with an error.
    pub(crate) fn wait(&mut self, time: Duration) -> anyhow::Result<()> {
        match self.process.wait(time) {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("it ended with {}", format_status(status)),
            None => bail!("it did not end within {} s", time.as_secs()),
        }
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Suspends it (SIGSTOP).
    pub(crate) fn suspend(&self) {
        self.process.send(Signal::STOP);
    }

    /// Resumes it (SIGCONT).
    pub(crate) fn resume(&self) {
        self.process.send(Signal::CONT);
    }
}

/// Returns the orders that a child receives on stdin. The process ends when stdin does: the kernel closes it
/// even if the parent is killed. A suspended child does not notice that; where the kernel supports it, the
/// child is killed instead.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn receive_orders<T: Send + 'static>(
    parse: impl Fn(&str) -> Option<T> + Send + 'static,
) -> std::io::Result<mpsc::UnboundedReceiver<T>> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let (sender, orders) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if let Some(order) = parse(&line) {
                let _ = sender.send(order);
            }
        }
        std::process::exit(0);
    })?;
    Ok(orders)
}

/// Prints a word and its value on a line, as a child.
///
/// # Errors
/// stdout is closed.
pub(crate) fn send_report(word: &str, what: &impl Serialize) -> anyhow::Result<()> {
    let line = format!("{word} {}\n", serde_json::to_string(what)?);
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}
