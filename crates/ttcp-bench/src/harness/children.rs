//! Child processes in process groups of their own, which are always killed and reaped.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::cores::{Cores, with_cores};

/// Default time for a process to end after SIGTERM, and time for its stderr to be closed after its end.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Maximum number of bytes of stderr that are stored. Only the last bytes are kept.
const MAX_STDERR_BYTES: usize = 8 << 10;
/// Maximum size of a line in bytes. Longer lines are split.
const MAX_LINE_BYTES: u64 = 64 << 10;

pub(crate) struct Children {
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    start_count: u64,
    grace_period: Duration,
    inherits_stderr: bool,
}

/// An event of the process with this number, or a signal.
enum Event {
    Line(u64, String),
    Closed(u64),
    Interrupted,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProcessEvent {
    Line(String),
    /// The process closed stdout, which it also does when it ends.
    Closed,
    /// The other process closed stdout.
    OtherClosed,
    Timeout,
    Interrupted,
}

/// A running process. Dropping it kills its whole group and reaps it.
pub(crate) struct Process {
    child: Child,
    number: u64,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: Option<JoinHandle<()>>,
    status: Option<ExitStatus>,
    grace_period: Duration,
}

impl Children {
    pub(crate) fn new() -> Children {
        // The channel is bounded: a child that writes too much blocks, instead of exhausting the memory.
        let (sender, events) = sync_channel(64);
        Children { events, sender, start_count: 0, grace_period: GRACE_PERIOD, inherits_stderr: false }
    }

    /// Makes processes that are started from now on write to this program's stderr, which is not stored.
    pub(crate) fn inherit_stderr(&mut self) {
        self.inherits_stderr = true;
    }

    /// Sets the grace period of processes that are started from now on. `None` sets the default.
    pub(crate) fn set_grace_period(&mut self, time: Option<Duration>) {
        self.grace_period = time.unwrap_or(GRACE_PERIOD);
    }

    /// From now on, turns SIGINT, SIGTERM and SIGHUP of this program into [`ProcessEvent::Interrupted`].
    pub(crate) fn watch_signals(&self) -> io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let sender = self.sender.clone();
        thread::Builder::new().name("signals".into()).spawn(move || {
            for _ in signals.forever() {
                if sender.send(Event::Interrupted).is_err() {
                    break;
                }
            }
        })?;
        Ok(())
    }

    /// Starts `command`, on `cores` if given, and captures stdout, and stderr unless inherited. The stdin
    /// of the process stays open until the returned value is dropped, or this program dies.
    pub(crate) fn start(&mut self, command: &[String], cores: Option<&Cores>) -> io::Result<Process> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if self.inherits_stderr { Stdio::inherit() } else { Stdio::piped() })
            .process_group(0);
        let mut child = with_cores(cores, || command.spawn())?;
        self.start_count += 1;
        let number = self.start_count;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut process = Process {
            child,
            number,
            stderr: Arc::default(),
            stderr_reader: None,
            status: None,
            grace_period: self.grace_period,
        };
        if let Some(stdout) = stdout {
            let sender = self.sender.clone();
            thread::Builder::new()
                .name("stdout".into())
                .spawn(move || forward_lines(stdout, number, &sender))?;
        }
        if let Some(stderr) = stderr {
            let stored = process.stderr.clone();
            let reader = thread::Builder::new().name("stderr".into());
            process.stderr_reader = Some(reader.spawn(move || store_end(stderr, &stored))?);
        }
        Ok(process)
    }

    /// Waits until `deadline` for an event of `process` or a signal. Drops events of other processes, except
    /// the end of `other`.
    pub(crate) fn next_event(
        &self,
        process: &Process,
        other: Option<&Process>,
        deadline: Instant,
    ) -> ProcessEvent {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Line(n, line)) if n == process.number => return ProcessEvent::Line(line),
                Ok(Event::Closed(n)) if n == process.number => return ProcessEvent::Closed,
                Ok(Event::Closed(n)) if other.is_some_and(|o| n == o.number) => {
                    return ProcessEvent::OtherClosed;
                }
                Ok(Event::Line(..) | Event::Closed(_)) => {}
                Ok(Event::Interrupted) => return ProcessEvent::Interrupted,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return ProcessEvent::Timeout;
                }
            }
        }
    }
}

impl Process {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Writes a line to the stdin of the process. A failed write is ignored, because a later wait for an
    /// answer reports that the process ended.
    pub(crate) fn write_line(&mut self, line: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Sends a signal to the whole process group, unless the process was reaped and its id may be reused.
    pub(crate) fn send(&self, signal: Signal) {
        if self.status.is_none() {
            // This fails only if the group is empty.
            let _ = kill_process_group(self.pid(), signal);
        }
    }

    pub(crate) fn kill(&mut self) {
        if self.status.is_none() {
            self.send(Signal::KILL);
            self.status = self.child.wait().ok();
        }
    }

    /// Waits for the process to end by itself. If it ends, kills the rest of its group. Returns the status.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        if self.status.is_none() && self.ends_within(timeout) {
            self.kill();
        }
        self.status
    }

    /// Ends the whole process group, by SIGTERM and then by SIGKILL. Returns the exit status of the process.
    pub(crate) fn stop(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.send(Signal::TERM);
            self.ends_within(self.grace_period);
            self.kill();
        }
        self.status
    }

    /// Returns the end of the process's stderr. It may be incomplete before the process is reaped.
    pub(crate) fn stderr(&mut self) -> String {
        if self.status.is_some() {
            // The reader is not joined, because a process that left the group may hold the pipe open.
            let reader = &self.stderr_reader;
            wait_until(GRACE_PERIOD, || reader.as_ref().is_none_or(JoinHandle::is_finished));
        }
        let stored: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        String::from_utf8_lossy(&stored).trim_end().to_owned()
    }

    /// Returns whether the process ends within `timeout`. Does not reap it, so that its id is not reused.
    fn ends_within(&self, timeout: Duration) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        wait_until(timeout, || !matches!(waitid(WaitId::Pid(self.pid()), options), Ok(None)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Formats an exit status: `status 1` or `signal 9`.
pub(crate) fn format_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Polls with increasing pauses until `done` returns true, or the timeout expires.
fn wait_until(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_micros(100);
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn forward_lines(stdout: impl Read, number: u64, sender: &SyncSender<Event>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let event = match stdout.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(1..) => Event::Line(number, String::from_utf8_lossy(&line).trim().to_owned()),
            Ok(0) | Err(_) => Event::Closed(number),
        };
        let is_last = matches!(event, Event::Closed(_));
        if sender.send(event).is_err() || is_last {
            return;
        }
    }
}

/// Reads stderr until it is closed, and stores its last bytes.
fn store_end(mut stderr: impl Read, stored: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = stderr.read(&mut buffer) {
        let mut stored = lock(stored);
        stored.extend(buffer.iter().take(n));
        let surplus = stored.len().saturating_sub(MAX_STDERR_BYTES);
        stored.drain(..surplus);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(String::from).to_vec()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn lines_status_and_stderr_are_received() {
        let mut children = Children::new();
        let mut p = children.start(&shell("echo one; echo two; echo oh >&2; exit 3"), None).unwrap();
        assert_eq!(children.next_event(&p, None, soon()), ProcessEvent::Line("one".into()));
        assert_eq!(children.next_event(&p, None, soon()), ProcessEvent::Line("two".into()));
        assert_eq!(children.next_event(&p, None, soon()), ProcessEvent::Closed);
        assert_eq!(p.wait(Duration::from_secs(20)).map(format_status).as_deref(), Some("status 3"));
        assert_eq!(p.stderr(), "oh");
    }

    #[test]
    fn a_silent_process_times_out_and_the_end_of_another_is_reported() {
        let mut children = Children::new();
        let silent = children.start(&shell("sleep 60"), None).unwrap();
        assert_eq!(
            children.next_event(&silent, None, Instant::now() + Duration::from_millis(50)),
            ProcessEvent::Timeout
        );
        let other = children.start(&shell("exit 0"), None).unwrap();
        assert_eq!(children.next_event(&silent, Some(&other), soon()), ProcessEvent::OtherClosed);
    }

    #[test]
    fn a_group_that_ignores_sigterm_is_killed() {
        let mut children = Children::new();
        let p = children.start(&shell("trap '' TERM; sleep 60 & echo $!; wait; sleep 60"), None).unwrap();
        let ProcessEvent::Line(pid) = children.next_event(&p, None, soon()) else { panic!("no pid") };
        let stat = format!("/proc/{pid}/stat");
        assert!(std::fs::exists(&stat).unwrap());
        drop(p);
        // The orphan may be a zombie that init has not reaped yet.
        let dead = || std::fs::read_to_string(&stat).map_or(true, |s| s.contains(") Z "));
        assert!(wait_until(Duration::from_secs(20), dead), "{stat}");
    }

    #[test]
    fn only_the_end_of_a_long_stderr_is_stored() {
        let mut children = Children::new();
        let mut p = children.start(&shell("seq 1 20000 >&2; echo last words >&2"), None).unwrap();
        assert!(p.wait(Duration::from_secs(20)).is_some());
        let text = p.stderr();
        assert!(text.len() <= MAX_STDERR_BYTES && text.ends_with("20000\nlast words"), "{text}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let error = Children::new().start(&["/no/such/program".into()], None).err();
        assert_eq!(error.map(|e| e.kind()), Some(io::ErrorKind::NotFound));
    }
}
