//! An output that never blocks its writers.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// A bounded queue of lines. A dedicated thread writes them to an output.
///
/// A pipe or terminal that is not read blocks only that thread. Lines that do not fit into the queue are
/// dropped, and in their place the output gets a line with their number. An empty queue accepts a line of any
/// length.
///
/// Unlike `tracing-appender`, the queue is bounded in bytes, reports missing lines at their position in the
/// output, and can be flushed at the end of a process. Clones share the queue.
#[derive(Clone, Debug)]
pub struct LossyWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    filled: Condvar,
    emptied: Condvar,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Item>,
    /// The length of all queued lines.
    queued_bytes: usize,
    /// Whether the thread has removed an item from the queue and has not written it yet.
    is_writing: bool,
    /// Whether a write to the output has failed. Nothing is written after that.
    has_failed: bool,
}

#[derive(Debug)]
enum Item {
    Line(Vec<u8>),
    /// A number of consecutive lines that were dropped.
    DroppedLines(u64),
}

impl LossyWriter {
    /// The default capacity of the queue, in bytes.
    pub const DEFAULT_MAX_BYTES: usize = 1 << 20;

    /// Starts the thread that writes to `out`. `notice` formats the line that replaces dropped lines.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn new(
        out: impl Write + Send + 'static,
        max_bytes: usize,
        notice: fn(u64) -> String,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            max_bytes,
        });
        let writer = Arc::clone(&shared);
        thread::Builder::new().name("zorb-output".to_owned()).spawn(move || writer.run(out, notice))?;
        Ok(Self { shared })
    }

    /// Queues a line with its line break. Returns `false` if the line is dropped. Never blocks.
    pub fn push(&self, line: impl Into<Vec<u8>>) -> bool {
        let line = line.into();
        let mut state = lock(&self.shared.state);
        let queued_bytes = state.queued_bytes.saturating_add(line.len());
        let fits = state.queued_bytes == 0 || queued_bytes <= self.shared.max_bytes;
        if state.has_failed {
            return false;
        }
        if !fits {
            match state.queue.back_mut() {
                Some(Item::DroppedLines(count)) => *count += 1,
                _ => state.queue.push_back(Item::DroppedLines(1)),
            }
            return false;
        }
        state.queued_bytes = queued_bytes;
        state.queue.push_back(Item::Line(line));
        self.shared.filled.notify_one();
        true
    }

    /// Blocks until the queue is written or the output has failed. Returns `false` after `timeout`.
    pub fn flush(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        let mut state = lock(&self.shared.state);
        while !state.is_done() {
            let Some(left) = timeout.checked_sub(start.elapsed()) else { return false };
            let waited = self.shared.emptied.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Returns whether the output has failed. Nothing is written after that.
    pub fn has_failed(&self) -> bool {
        lock(&self.shared.state).has_failed
    }

    /// Returns whether the whole queue is written, or the output has failed.
    pub fn is_done(&self) -> bool {
        lock(&self.shared.state).is_done()
    }
}

/// Formats the line that stands for dropped lines in a log.
pub fn missing_lines_notice(lines: u64) -> String {
    let (what, are) = if lines == 1 { ("line", "is") } else { ("lines", "are") };
    format!("zorb: {lines} {what} {are} missing here: the output was not read in time\n")
}

/// Each call of `write` queues or drops one line, and `flush` does nothing. Neither fails.
impl Write for LossyWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl State {
    fn is_done(&self) -> bool {
        self.has_failed || self.queue.is_empty() && !self.is_writing
    }
}

impl Shared {
    fn run(&self, mut out: impl Write, notice: fn(u64) -> String) {
        let mut state = lock(&self.state);
        loop {
            let Some(item) = state.queue.pop_front() else {
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if let Item::Line(line) = &item {
                state.queued_bytes -= line.len();
            }
            state.is_writing = true;
            drop(state);
            let written = match item {
                Item::Line(line) => out.write_all(&line),
                Item::DroppedLines(count) => out.write_all(notice(count).as_bytes()),
            };
            let written = written.and_then(|()| out.flush());
            state = lock(&self.state);
            state.is_writing = false;
            if written.is_err() {
                (state.has_failed, state.queued_bytes) = (true, 0);
                state.queue.clear();
                self.emptied.notify_all();
                return;
            }
            if state.is_done() {
                self.emptied.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// An output that accepts one write for each permit.
    struct Gate {
        permits: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permits.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gate(max_bytes: usize) -> (LossyWriter, mpsc::Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (permit, permits) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let gate = Gate { permits, written: Arc::clone(&written) };
        let lossy = LossyWriter::new(gate, max_bytes, missing_lines_notice).unwrap();
        (lossy, permit, written)
    }

    fn text(written: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn unread_output_does_not_block_and_lines_beyond_the_capacity_are_counted() {
        let (lossy, permit, written) = gate(10);
        let accepted = (0..1000).filter(|_| lossy.push("12345678\n")).count();
        // The thread holds one line and the queue another. Only one is accepted if the thread is slow.
        assert!((1..=2).contains(&accepted), "{accepted}");
        assert!(!lossy.flush(Duration::ZERO));
        (0..10).for_each(|_| permit.send(()).unwrap());
        assert!(lossy.flush(Duration::MAX));
        let dropped = 1000 - accepted as u64;
        let notice = missing_lines_notice(dropped);
        assert_eq!(text(&written), "12345678\n".repeat(accepted) + &notice);
        assert!(lossy.push("again\n"));
        permit.send(()).unwrap();
        assert!(lossy.flush(Duration::MAX));
        assert!(text(&written).ends_with(&(notice + "again\n")));
    }

    #[test]
    fn dropped_lines_are_reported_at_their_position() {
        let (lossy, permit, written) = gate(10);
        assert!(lossy.push("the first\n"));
        while lock(&lossy.shared.state).queued_bytes > 0 {
            thread::yield_now(); // Until the thread has taken the line.
        }
        let pushed =
            ["five\n", "too long\n", "two\n", "long again\n", "and again\n"].map(|line| lossy.push(line));
        assert_eq!(pushed, [true, false, true, false, false]);
        (0..5).for_each(|_| permit.send(()).unwrap());
        assert!(lossy.flush(Duration::MAX));
        let [one, two] = [1, 2].map(missing_lines_notice);
        assert_eq!(text(&written), format!("the first\nfive\n{one}two\n{two}"));
    }

    #[test]
    fn flush_returns_after_all_queued_lines_are_written_in_order() {
        let (lossy, permit, written) = gate(1 << 20);
        let lines: Vec<String> = (0..100).map(|n| format!("{n}\n")).collect();
        for line in &lines {
            assert!(lossy.push(line.as_str()));
            permit.send(()).unwrap();
        }
        assert!(lossy.flush(Duration::MAX));
        assert_eq!(text(&written), lines.concat());
        assert!(lossy.is_done());
    }

    #[test]
    fn flush_of_a_failed_output_returns_at_once() {
        let (lossy, permit, _) = gate(10);
        drop(permit);
        lossy.push("x\n");
        assert!(lossy.flush(Duration::MAX));
        assert!(!lossy.push("y\n"));
        assert!(lossy.flush(Duration::MAX));
    }
}
