//! Processor time of the measured processes.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::clock_getcpuclockid;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// Seconds of processor time, in user and kernel mode together, of one test: start and warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Processor {
    /// Processor time of the server while the client ran.
    pub(crate) server: f64,
    /// Processor time of the client's whole life.
    pub(crate) client: f64,
}

impl Processor {
    /// Returns the sum of both sides.
    pub(crate) fn all(self) -> f64 {
        self.server + self.client
    }
}

/// The starting point of a measurement of processor time.
pub(crate) struct Meter {
    server: Pid,
    used: Option<Duration>,
    children: Option<Duration>,
}

impl Meter {
    /// Starts measuring. Between this call and [`read`](Self::read), no child may end except the client.
    pub(crate) fn start(server: Pid) -> Meter {
        Meter { server, used: of_process(server), children: of_children() }
    }

    /// Returns the time used since the start, after the client has ended and was waited for; `None` if the
    /// system does not provide it.
    pub(crate) fn read(&self) -> Option<Processor> {
        let server = of_process(self.server)?.saturating_sub(self.used?);
        let client = of_children()?.saturating_sub(self.children?);
        Some(Processor { server: server.as_secs_f64(), client: client.as_secs_f64() })
    }
}

/// Returns the time of all children that have ended and were waited for.
fn of_children() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let micros = |t: nix::sys::time::TimeVal| {
        u64::try_from(t.tv_sec() * 1_000_000 + t.tv_usec()).ok().map(Duration::from_micros)
    };
    Some(micros(usage.user_time())? + micros(usage.system_time())?)
}

/// Returns the time of all threads of a process, in nanoseconds. It includes ended threads, because a server
/// with a thread per connection has none of these left after its client's end.
pub(crate) fn of_process(pid: Pid) -> Option<Duration> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get());
    Some(clock_getcpuclockid(pid).ok()?.now().ok()?.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    /// Runs in a process of its own, because the children of other tests are children of this process too.
    #[test]
    fn busy_processes_are_charged_and_idle_ones_are_not() {
        const ALONE: &str = "TTCP_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let name = "harness::processor::tests::busy_processes_are_charged_and_idle_ones_are_not";
            let mut alone = Command::new(std::env::current_exe().unwrap());
            let run = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
            let output = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && output.contains("1 passed"), "{run:?}");
            return;
        }
        let mut server = Command::new("sleep").arg("60").spawn().unwrap();
        let meter = Meter::start(Pid::from_child(&server));
        let begun = Instant::now();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", busy]).status().unwrap().success());
        let took = begun.elapsed().as_secs_f64();
        let used = meter.read().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(used.client > 0.0 && used.client <= took + 0.1, "{used:?} in {took}");
        assert!(used.server < used.client, "{used:?}");
    }

    #[test]
    fn threads_that_have_ended_are_charged() {
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap();
        let before = of_process(own).unwrap();
        let took = std::thread::spawn(|| {
            let begun = ThreadTime::now();
            while begun.elapsed() < Duration::from_millis(20) {
                std::hint::black_box(());
            }
            begun.elapsed()
        });
        let took = took.join().unwrap();
        assert!(of_process(own).unwrap() - before >= took, "{took:?}");
    }

    /// Processor time of this thread.
    struct ThreadTime(Duration);

    impl ThreadTime {
        fn now() -> ThreadTime {
            ThreadTime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap().into())
        }

        fn elapsed(&self) -> Duration {
            ThreadTime::now().0 - self.0
        }
    }
}
