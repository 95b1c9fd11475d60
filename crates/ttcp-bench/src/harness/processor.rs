//! The processor times of the measured processes.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::clock_getcpuclockid;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// The processor times of one test in seconds, each the sum of user mode and kernel mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessorTime {
    pub(crate) server: f64,
    /// Time of the client from its start to its end, which includes the warm-up.
    pub(crate) client: f64,
}

impl ProcessorTime {
    pub(crate) fn sum(self) -> f64 {
        self.server + self.client
    }
}

pub(crate) struct Meter {
    server: Pid,
    server_start: Option<Duration>,
    children_start: Option<Duration>,
}

impl Meter {
    /// Starts measuring. Until [`read`](Self::read), no child process except the client may end.
    pub(crate) fn start(server: Pid) -> Meter {
        Meter { server, server_start: process_time(server), children_start: children_time() }
    }

    /// Returns the times since the start; `None` if they are not available. The client must have been reaped.
    pub(crate) fn read(&self) -> Option<ProcessorTime> {
        let server = process_time(self.server)?.saturating_sub(self.server_start?);
        let client = children_time()?.saturating_sub(self.children_start?);
        Some(ProcessorTime { server: server.as_secs_f64(), client: client.as_secs_f64() })
    }
}

/// Returns the time of all child processes that have ended and were waited for.
fn children_time() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let micros = |t: nix::sys::time::TimeVal| {
        u64::try_from(t.tv_sec() * 1_000_000 + t.tv_usec()).ok().map(Duration::from_micros)
    };
    Some(micros(usage.user_time())? + micros(usage.system_time())?)
}

/// Returns the time of all threads of a process, including ended threads. These matter for a server with one
/// thread for each connection, whose threads end with the client.
pub(crate) fn process_time(pid: Pid) -> Option<Duration> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get());
    Some(clock_getcpuclockid(pid).ok()?.now().ok()?.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    /// The test runs in a process of its own, because the children of other tests would be counted too.
    #[test]
    fn busy_processes_are_charged_and_idle_ones_are_not() {
        const IS_SUBPROCESS: &str = "TTCP_TEST_ALONE";
        if std::env::var_os(IS_SUBPROCESS).is_none() {
            let name = "harness::processor::tests::busy_processes_are_charged_and_idle_ones_are_not";
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", name, "--nocapture"]).env(IS_SUBPROCESS, "1");
            let run = command.output().unwrap();
            let output = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && output.contains("1 passed"), "{run:?}");
            return;
        }
        let mut server = Command::new("sleep").arg("60").spawn().unwrap();
        let meter = Meter::start(Pid::from_child(&server));
        let start = Instant::now();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", busy]).status().unwrap().success());
        let elapsed = start.elapsed().as_secs_f64();
        let used = meter.read().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(used.client > 0.0 && used.client <= elapsed + 0.1, "{used:?} in {elapsed}");
        assert!(used.server < used.client, "{used:?}");
    }

    #[test]
    fn time_of_ended_threads_is_included() {
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap();
        let before = process_time(own).unwrap();
        let thread = std::thread::spawn(|| {
            let thread_time = || Duration::from(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap());
            let start = thread_time();
            while thread_time() - start < Duration::from_millis(20) {
                std::hint::black_box(());
            }
            thread_time() - start
        });
        let used = thread.join().unwrap();
        assert!(process_time(own).unwrap() - before >= used, "{used:?}");
    }
}
