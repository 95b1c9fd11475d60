//! Processes: started in groups of their own, limited in time, always killed and reaped.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::cores::{Cores, confined};

/// Default time for a process to end on request, and to close its pipes after its end.
const GRACE: Duration = Duration::from_secs(2);
/// How many bytes of stderr are kept, the last ones.
const STDERR_KEPT: usize = 8 << 10;
/// How many bytes of a line are read.
const LINE_MAX: u64 = 64 << 10;

/// Starts processes and receives their output.
pub(crate) struct Children {
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    started: u64,
    grace: Duration,
    inherits_stderr: bool,
}

enum Event {
    Line(u64, String),
    Closed(u64),
    Interrupted,
}

/// An event of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProcessEvent {
    /// It wrote this line to stdout.
    Line(String),
    /// It closed stdout, as at its end.
    Closed,
    /// There is no event of the process itself, and the other one closed stdout.
    OtherClosed,
    /// The deadline has passed.
    Timeout,
    /// The user interrupts the program.
    Interrupted,
}

/// A running process. Dropping it kills its whole group and reaps it.
pub(crate) struct Process {
    child: Child,
    number: u64,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: Option<JoinHandle<()>>,
    ended: Option<ExitStatus>,
    grace: Duration,
}

impl Children {
    /// Returns an instance without processes.
    pub(crate) fn new() -> Children {
        // Bounded: a child that writes without end is blocked by the reader instead of exhausting memory.
        let (sender, events) = sync_channel(64);
        Children { events, sender, started: 0, grace: GRACE, inherits_stderr: false }
    }

    /// Lets processes that are started from now on write to this program's stderr. Their stderr is not kept.
    pub(crate) fn inherit_stderr(&mut self) {
        self.inherits_stderr = true;
    }

    /// Sets how long processes that are started from now on may take to end on request; `None`: the default.
    pub(crate) fn set_grace(&mut self, grace: Option<Duration>) {
        self.grace = grace.unwrap_or(GRACE);
    }

    /// Turns SIGINT, SIGTERM and SIGHUP into events: [`ProcessEvent::Interrupted`]. Affects the whole
    /// program, permanently.
    ///
    /// # Errors
    /// The signal handlers or their thread cannot be set up.
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

    /// Starts `command` with both outputs captured, unless stderr is passed on. Its stdin stays open until
    /// the process is dropped; the kernel closes it if this program dies earlier. It runs on `cores` only, if
    /// given.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(crate) fn start(&mut self, command: &[String], cores: Option<&Cores>) -> io::Result<Process> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if self.inherits_stderr { Stdio::inherit() } else { Stdio::piped() })
            .process_group(0);
        let mut child = confined(cores, || command.spawn())?;
        self.started += 1;
        let number = self.started;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut process = Process {
            child,
            number,
            stderr: Arc::default(),
            stderr_reader: None,
            ended: None,
            grace: self.grace,
        };
        if let Some(stdout) = stdout {
            let sender = self.sender.clone();
            thread::Builder::new()
                .name("stdout".into())
                .spawn(move || forward_lines(stdout, number, &sender))?;
        }
        if let Some(stderr) = stderr {
            let kept = process.stderr.clone();
            let reader =
                thread::Builder::new().name("stderr".into()).spawn(move || keep_end(stderr, &kept))?;
            process.stderr_reader = Some(reader);
        }
        Ok(process)
    }

    /// Waits until `deadline` for the next event of `process`. Lines of other processes are dropped; the end
    /// of `other`'s stdout is reported.
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
    /// Returns its process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Writes a line to its stdin. A failed write is ignored: waiting for the answer then reports the end of
    /// the process.
    pub(crate) fn write_line(&mut self, line: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Sends a signal to its whole group, unless it was reaped: then its id may belong to another process.
    pub(crate) fn send(&self, signal: Signal) {
        if self.ended.is_none() {
            self.signal(signal);
        }
    }

    /// Kills its whole group (SIGKILL).
    pub(crate) fn kill(&mut self) {
        if self.ended.is_none() {
            self.reap();
        }
    }

    /// Waits up to `time` for the process to end by itself, then reaps it; `None` if it still runs.
    pub(crate) fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        if self.ended.is_none() && self.ends_within(time) {
            self.reap();
        }
        self.ended
    }

    /// Ends the process and its whole group: SIGTERM first, then SIGKILL. Returns its exit status.
    pub(crate) fn stop(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.signal(Signal::TERM);
            self.ends_within(self.grace);
            self.reap();
        }
        self.ended
    }

    /// Returns the end of what the process wrote to stderr. Complete once it was reaped.
    pub(crate) fn stderr(&mut self) -> String {
        if self.ended.is_some() {
            // Not joined: a process that left the group may hold the pipe.
            let reader = &self.stderr_reader;
            wait_until(GRACE, || reader.as_ref().is_none_or(JoinHandle::is_finished));
        }
        let kept: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        String::from_utf8_lossy(&kept).trim_end().to_owned()
    }

    /// Returns whether the process ends in time. It is not reaped, so that its id and group are not reused.
    fn ends_within(&self, time: Duration) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        wait_until(time, || !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None)))
    }

    /// Kills what is left of the group and collects the exit status.
    fn reap(&mut self) {
        self.signal(Signal::KILL);
        self.ended = self.child.wait().ok();
    }

    fn signal(&self, signal: Signal) {
        // Fails only if the group is empty.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
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

/// Polls with growing pauses until `done` returns true or the time is over.
fn wait_until(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + time;
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
        let event = match stdout.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(1..) => Event::Line(number, String::from_utf8_lossy(&line).trim().to_owned()),
            Ok(0) | Err(_) => Event::Closed(number),
        };
        let last = matches!(event, Event::Closed(_));
        if sender.send(event).is_err() || last {
            return;
        }
    }
}

fn keep_end(mut stderr: impl Read, kept: &Mutex<VecDeque<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(n @ 1..) = stderr.read(&mut piece) {
        let mut kept = lock(kept);
        kept.extend(piece.iter().take(n));
        let surplus = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..surplus);
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
    fn lines_status_and_stderr_are_heard() {
        let mut children = Children::new();
        let mut p = children.start(&shell("echo one; echo two; echo oh >&2; exit 3"), None).unwrap();
        assert_eq!(children.next_event(&p, None, soon()), ProcessEvent::Line("one".into()));
        assert_eq!(children.next_event(&p, None, soon()), ProcessEvent::Line("two".into()));
        assert_eq!(children.next_event(&p, None, soon()), ProcessEvent::Closed);
        assert_eq!(p.wait(Duration::from_secs(20)).map(format_status).as_deref(), Some("status 3"));
        assert_eq!(p.stderr(), "oh");
    }

    #[test]
    fn a_silent_process_times_out_and_the_death_of_another_is_told() {
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
    fn the_whole_group_dies_even_if_it_ignores_the_request() {
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
    fn only_the_end_of_a_long_stderr_is_kept() {
        let mut children = Children::new();
        let mut p = children.start(&shell("seq 1 20000 >&2; echo last words >&2"), None).unwrap();
        assert!(p.wait(Duration::from_secs(20)).is_some());
        let text = p.stderr();
        assert!(text.len() <= STDERR_KEPT && text.ends_with("20000\nlast words"), "{text}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let error = Children::new().start(&["/no/such/program".into()], None).err();
        assert_eq!(error.map(|e| e.kind()), Some(io::ErrorKind::NotFound));
    }
}
