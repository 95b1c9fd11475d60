//! Child processes that run this program. They receive orders as lines on stdin, and report on stdout.

use std::io::{BufRead, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::children::{Children, Process, ProcessEvent, format_status};

/// Time within which a child must exit after it has closed its stdout.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A child process. It exits when its stdin is closed, which the kernel does if this process dies. Dropping
/// this value kills and reaps the child.
///
/// The child is in a process group of its own, so that Ctrl-C does not reach it.
pub(crate) struct Child {
    children: Children,
    process: Process,
    has_closed_stdout: bool,
}

impl Child {
    pub(crate) fn start(arguments: &[String]) -> anyhow::Result<Child> {
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let mut children = Children::new();
        // Children normally exit on an order. A child that is dropped instead is killed immediately.
        children.set_grace_period(Some(Duration::ZERO));
        children.inherit_stderr();
        let command: Vec<String> = std::iter::once(program).chain(arguments.iter().cloned()).collect();
        let process = children.start(&command, None).context("cannot start a child")?;
        Ok(Child { children, process, has_closed_stdout: false })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Sends an order. A failed write is ignored, because a later wait for a report fails anyway.
    pub(crate) fn send_order(&mut self, line: &str) {
        self.process.write_line(line);
    }

    /// Waits for the report with this name, and returns its value. Other reports are dropped.
    pub(crate) fn receive<T: DeserializeOwned>(
        &mut self,
        name: &str,
        timeout: Duration,
    ) -> anyhow::Result<T> {
        self.try_receive(name, timeout)?
            .with_context(|| format!("the process did not report {name} within {} s", timeout.as_secs()))
    }

    /// Waits for the report with this name, and returns its value; `None` if the child does not send this
    /// report in time. Other reports are dropped.
    pub(crate) fn try_receive<T: DeserializeOwned>(
        &mut self,
        name: &str,
        timeout: Duration,
    ) -> anyhow::Result<Option<T>> {
        let deadline = Instant::now() + timeout;
        while !self.has_closed_stdout {
            match self.children.next_event(&self.process, None, deadline) {
                ProcessEvent::Line(line) => {
                    if let Some((reported, value)) = line.split_once(' ')
                        && reported == name
                    {
                        return serde_json::from_str::<T>(value)
                            .map(Some)
                            .with_context(|| format!("the process sent an invalid report: {line:?}"));
                    }
                }
                ProcessEvent::Closed => self.has_closed_stdout = true,
                ProcessEvent::Timeout => return Ok(None),
                // There are no other processes, and signals are not handled here.
                ProcessEvent::OtherClosed | ProcessEvent::Interrupted => {}
            }
        }
        let status =
            self.process.wait(EXIT_TIMEOUT).map_or_else(|| "it closed stdout".to_owned(), format_status);
        bail!("the process ended before it reported {name}: {status}")
    }

    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.process.wait(Duration::ZERO)
    }

    /// Waits until the child has ended successfully.
    pub(crate) fn wait(&mut self, timeout: Duration) -> anyhow::Result<()> {
        match self.process.wait(timeout) {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the process ended with {}", format_status(status)),
            None => bail!("the process did not end within {} s", timeout.as_secs()),
        }
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    pub(crate) fn suspend(&self) {
        self.process.send(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.process.send(Signal::CONT);
    }
}

/// Returns the orders that this process, which is a child, receives on stdin. The process exits when stdin is
/// closed, which the kernel does even if the parent is killed. A suspended child cannot notice this.
/// Therefore, on Linux, the kernel also kills the child when its parent dies.
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

/// Sends a report to the parent: a line with a name and a JSON value.
pub(crate) fn send_report(name: &str, value: &impl Serialize) -> anyhow::Result<()> {
    let line = format!("{name} {}\n", serde_json::to_string(value)?);
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}
