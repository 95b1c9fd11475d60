//! Children that are this program itself: told what to do over stdin, heard over stdout.

use std::io::{BufRead, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::children::{Children, Heard, Process, describe};

/// How long one that closed its stdout may take to be gone.
const END: Duration = Duration::from_secs(1);

/// A child. It ends when its stdin does, which the kernel closes whoever dies; dropping it kills and reaps it.
///
/// It is in a process group of its own, so Ctrl-C is not for it.
pub(crate) struct Child {
    children: Children,
    process: Process,
    closed: bool,
}

impl Child {
    /// This program with other arguments.
    ///
    /// # Errors
    /// It can not be started.
    pub(crate) fn start(arguments: &[String]) -> anyhow::Result<Child> {
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let mut children = Children::new();
        // Those that are told to end do so in order; those that are dropped need not.
        children.allow(Some(Duration::ZERO));
        children.pass_stderr();
        let command: Vec<String> = std::iter::once(program).chain(arguments.iter().cloned()).collect();
        let process = children.start(&command, None).context("cannot start a child")?;
        Ok(Child { children, process, closed: false })
    }

    /// Its number.
    pub(crate) fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Tells it something. One that is gone does not hear it: who waits for its answer learns that.
    pub(crate) fn order(&mut self, line: &str) {
        self.process.tell(line);
    }

    /// Waits for what it says behind a word. Other words are dropped.
    ///
    /// # Errors
    /// It says nothing of the kind in time, or ends.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self, word: &str, time: Duration) -> anyhow::Result<T> {
        self.try_hear(word, time)?.with_context(|| format!("no {word} within {} s", time.as_secs()))
    }

    /// The same; `None` where it said nothing of the kind in time.
    ///
    /// # Errors
    /// It ends, or says something else behind that word.
    pub(crate) fn try_hear<T: DeserializeOwned>(
        &mut self,
        word: &str,
        time: Duration,
    ) -> anyhow::Result<Option<T>> {
        let deadline = Instant::now() + time;
        while !self.closed {
            match self.children.listen(&self.process, None, deadline) {
                Heard::Line(line) => {
                    if let Some((said, what)) = line.split_once(' ')
                        && said == word
                    {
                        return serde_json::from_str::<T>(what)
                            .map(Some)
                            .with_context(|| format!("it said {line:?}"));
                    }
                }
                Heard::Closed => self.closed = true,
                Heard::Timeout => return Ok(None),
                // There are no others, and signals are not heeded here.
                Heard::OtherClosed | Heard::Interrupted => {}
            }
        }
        let how = self.process.wait(END).map_or_else(|| "it still runs".to_owned(), describe);
        bail!("it ended before {word}: {how}")
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.wait(Duration::ZERO)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It goes on, or ended with an error.
    pub(crate) fn wait(&mut self, time: Duration) -> anyhow::Result<()> {
        match self.process.wait(time) {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("it ended with {}", describe(status)),
            None => bail!("it did not end within {} s", time.as_secs()),
        }
    }

    /// Kills it: it can do nothing about it.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops it where it is.
    pub(crate) fn stop(&self) {
        self.process.send(Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.process.send(Signal::CONT);
    }
}

/// The orders that come on stdin, in a child. When that ends, so does the process: the kernel closes it even when who gives them is
/// killed. One that is stopped at that time hears of no end; where the kernel can, it kills it then.
///
/// # Errors
/// The thread can not be started.
pub(crate) fn orders<T: Send + 'static>(
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

/// Says a word and what belongs to it, in a line, as a child.
///
/// # Errors
/// Nobody listens any more.
pub(crate) fn say(word: &str, what: &impl Serialize) -> anyhow::Result<()> {
    let line = format!("{word} {}\n", serde_json::to_string(what)?);
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}
