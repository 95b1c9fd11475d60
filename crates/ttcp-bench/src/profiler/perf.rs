//! `perf`: samples of the processor's location, in the program and in the kernel, and counts of system calls.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Profile, SYSTEM_CALLS, last_line, nameless, plain};

/// Maximum number of samples a second of a processor.
const HERTZ: u64 = 10_000;
/// The kernel's maximum.
const HERTZ_ALLOWED: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
/// The event of the samples. It needs no hardware counter, which virtual machines often lack.
const CLOCK: &str = "cpu-clock";
const ENTER: &str = "syscalls:sys_enter_";
/// Kernel functions that only serve perf.
const OWN: [&str; 2] = ["perf_", "syscall_trace_enter"];
/// The first kernel address.
const KERNEL: u64 = 1 << 63;

/// The installed, working program.
#[derive(Debug, Clone)]
pub(crate) struct Perf {
    /// Samples a second.
    hertz: u64,
    /// The system calls that can be counted.
    calls: Vec<&'static str>,
}

impl Perf {
    /// Checks whether it works here, and with which features.
    ///
    /// # Errors
    /// It is not installed, or may not sample the kernel; the message contains the reason.
    pub(crate) fn find() -> Result<Perf, String> {
        let dir = tempfile::tempdir().map_err(|e| format!("no directory to try it: {e}"))?;
        let file = dir.path().join("probe");
        let allowed = std::fs::read_to_string(HERTZ_ALLOWED).ok().and_then(|text| text.trim().parse().ok());
        let mut perf = Perf { hertz: allowed.unwrap_or(HERTZ).min(HERTZ), calls: Vec::new() };
        // With the kernel alone, it fails in cases in which it would otherwise silently omit the kernel.
        let kernel = ["-e".to_owned(), format!("{CLOCK}:k")];
        perf.tried(&file, &kernel)?;
        let there = |call: &&&str| perf.tried(&file, &entries(&[call])).is_ok();
        // All at once where possible, which is nearly everywhere: testing each takes a while.
        perf.calls = if perf.tried(&file, &entries(SYSTEM_CALLS)).is_ok() {
            SYSTEM_CALLS.to_vec()
        } else {
            SYSTEM_CALLS.iter().filter(there).copied().collect()
        };
        Ok(perf)
    }

    fn tried(&self, file: &Path, events: &[String]) -> Result<(), String> {
        let (program, words) = ("perf", ["record", "-q", "-B", "-N", "-o"]);
        let mut command = Command::new(program);
        command.args(words).arg(file).args(events).args(["--", "true"]);
        match command.stdin(Stdio::null()).output() {
            Ok(out) if out.status.success() => Ok(()),
            Ok(out) => Err(last_line(&out.stderr)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err("it is not installed (Debian: linux-perf)".to_owned())
            }
            Err(e) => Err(e.to_string()),
        }
    }

    /// Returns whether it counts system calls.
    pub(crate) fn counts(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the words before a command that is to be profiled into `file`.
    pub(crate) fn around(&self, file: &str) -> Vec<String> {
        let clock = format!("{CLOCK}/freq={}/", self.hertz);
        // Timestamps of the monotonic clock, which select the samples that count.
        let mut words: Vec<String> =
            ["perf", "record", "-q", "-B", "-N", "-k", "CLOCK_MONOTONIC", "-g", "-o", file, "-e", &clock]
                .map(String::from)
                .to_vec();
        words.extend(entries(&self.calls));
        words.push("--".to_owned());
        words
    }

    /// Returns the cost of the processes of `file` within a span of the monotonic clock, and the number of
    /// samples.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self, file: &Path, within: &Range<Duration>) -> Result<(Profile, u64), String> {
        let mut child = Command::new("perf")
            .args(["script", "--no-inline", "--ns", "-F", "time,event,period,ip,sym,dso", "-i"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start perf script: {e}"))?;
        let mut samples = Samples { within: within.clone(), profile: Profile::new(), count: 0, open: None };
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).split(b'\n') {
                let line = line.map_err(|e| format!("perf script cannot be read: {e}"))?;
                samples.line(&String::from_utf8_lossy(&line));
            }
        }
        samples.close();
        let status = child.wait().map_err(|e| format!("perf script: {e}"))?;
        if !status.success() {
            return Err(format!("perf script cannot read its samples: {status}"));
        }
        Ok((samples.profile, samples.count))
    }
}

/// Returns options for the events of those calls, without the call stacks.
fn entries(calls: &[&str]) -> Vec<String> {
    calls.iter().flat_map(|call| ["-e".to_owned(), format!("{ENTER}{call}/call-graph=no/")]).collect()
}

/// The parser of `perf script` output: a line for each event. A clock event is followed by its stack, the
/// innermost function first.
struct Samples {
    within: Range<Duration>,
    profile: Profile,
    count: u64,
    open: Option<Stack>,
}

/// The stack of a sample.
struct Stack {
    ms: f64,
    /// The entry point into the kernel: the outermost kernel function that identifies it.
    kernel: Option<String>,
    /// The innermost function outside the kernel.
    user: Option<String>,
    /// Whether perf itself was running.
    own: bool,
}

impl Samples {
    fn line(&mut self, line: &str) {
        if let Some(frame) = line.strip_prefix('\t') {
            if let Some(stack) = &mut self.open {
                stack.frame(frame.trim());
            }
            return;
        }
        self.close();
        let mut words = line.split_whitespace();
        let (Some(time), Some(period), Some(event)) = (words.next(), words.next(), words.next()) else {
            return;
        };
        let Some(time) =
            time.trim_end_matches(':').parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok())
        else {
            return;
        };
        if !self.within.contains(&time) {
            return;
        }
        if let Some(call) = event.strip_prefix(ENTER) {
            let call = call.trim_end_matches(':').split('/').next().unwrap_or_default();
            self.profile.entry(call.to_owned()).or_default().calls += 1.0;
        } else if event.starts_with(CLOCK) {
            let ms = period.parse::<f64>().unwrap_or_default() / 1e6;
            self.open = Some(Stack { ms, kernel: None, user: None, own: false });
        }
    }

    fn close(&mut self) {
        let Some(stack) = self.open.take().filter(|stack| !stack.own) else { return };
        let name = stack.kernel.or(stack.user).unwrap_or_else(|| "?".to_owned());
        self.profile.entry(name).or_default().own += stack.ms;
        self.count += 1;
    }
}

impl Stack {
    /// Parses a line such as `ffffffff82 tcp_sendmsg_locked ([kernel.kallsyms])`.
    fn frame(&mut self, frame: &str) {
        let Some((address, rest)) = frame.split_once(' ') else { return };
        // Both may contain blanks and brackets, but objects begin with a path or `[`.
        let end = [" (/", " (["].iter().filter_map(|start| rest.find(start)).min().unwrap_or(rest.len());
        let (name, object) = rest.split_at(end);
        let object = object.trim_start_matches(" (").trim_end_matches(')');
        if u64::from_str_radix(address, 16).is_ok_and(|address| address >= KERNEL) {
            if OWN.iter().any(|own| name.starts_with(own)) {
                self.own = true;
            }
            if let Some(entered) = entered(name) {
                self.kernel = Some(entered);
            } else if self.kernel.is_none() {
                self.kernel = Some("interrupts and scheduling".to_owned());
            }
        } else if self.user.is_none() {
            self.user = Some(if name == "[unknown]" { nameless(object) } else { plain(name) });
        }
    }
}

/// Returns why the kernel runs, if this function of it is conclusive: the name of a system call, or a page
/// fault.
fn entered(function: &str) -> Option<String> {
    if let Some((machine, call)) = function.split_once("_sys_") {
        // `__x64_sys_sendto`, `__arm64_sys_sendto`; but not `do_sys_poll` or `vm_sys_something`.
        if machine.starts_with("__") && machine != "__do" {
            return Some(call.to_owned());
        }
    }
    // Functions that only call another one are often optimised away: `do_writev`, `ksys_read`,
    // `__sys_sendmsg`.
    let call = ["do_", "ksys_", "__sys_"].iter().find_map(|start| function.strip_prefix(start));
    if let Some(call) = call.filter(|call| SYSTEM_CALLS.contains(call)) {
        return Some(call.to_owned());
    }
    let fault =
        ["exc_page_fault", "do_page_fault", "do_mem_abort"].iter().any(|fault| function.ends_with(fault));
    fault.then(|| "page fault".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
 99.999999999:     100000          cpu-clock/freq=10000/: 
\tffffffff81000000 before ([kernel.kallsyms])

 100.000000001:          1      syscalls:sys_enter_writev:      5631d4243603 orb::write_all (/bin/ttcp)
 100.100000000:     100000          cpu-clock/freq=10000/: 
\tffffffff81b69ab4 _copy_from_iter ([kernel.kallsyms])
\tffffffff816c55e4 exc_page_fault ([kernel.kallsyms])
\tffffffff8200db03 tcp_sendmsg_locked ([kernel.kallsyms])
\tffffffff816c55e4 __x64_sys_writev ([kernel.kallsyms])
\tffffffff821ec951 do_syscall_64 ([kernel.kallsyms])
\t    7fead8cf2ad7 __writev (/usr/lib/libc.so.6)
\t    5631d4243603 orb::write_all (/bin/ttcp)

 100.200000000:     250000          cpu-clock/freq=10000/: 
\t          3d3610 <impl orb::Put for (u8, u8)>::put (/tmp/a (b)/ttcp)
\t          3d3611 main (/bin/ttcp)

 100.300000000:     100000          cpu-clock/freq=10000/: 
\tffffffff821f2486 exc_page_fault ([kernel.kallsyms])
\tffffffff81000c82 asm_exc_page_fault ([kernel.kallsyms])
\t    7fead8cf2ad7 __memmove_avx512_unaligned_erms (/usr/lib/libc.so.6)

 100.400000000:     100000          cpu-clock/freq=10000/: 
\t    7fead8cf2ad7 [unknown] (/usr/lib/libomniORB4.so.2)

 100.500000000:     100000          cpu-clock/freq=10000/: 
\tffffffff821f2486 handle_softirqs ([kernel.kallsyms])
\tffffffff81000c82 asm_sysvec_apic_timer_interrupt ([kernel.kallsyms])
\t    5631d4243603 orb::write_all (/bin/ttcp)

 100.600000000:     100000          cpu-clock/freq=10000/: 
\tffffffff821f2486 perf_tp_event ([kernel.kallsyms])
\tffffffff81000c82 syscall_trace_enter ([kernel.kallsyms])
\t    5631d4243603 orb::write_all (/bin/ttcp)

 200.000000000:     100000          cpu-clock/freq=10000/: 
\t    5631d4243603 after (/bin/ttcp)
";

    #[test]
    fn the_kernels_time_is_that_of_the_call_that_entered_it() {
        let within = Duration::from_secs(100)..Duration::from_secs(200);
        let mut samples = Samples { within, profile: Profile::new(), count: 0, open: None };
        SCRIPT.lines().for_each(|line| samples.line(line));
        samples.close();
        assert_eq!(samples.count, 5, "of what is counted");
        let own = |name: &str| {
            samples.profile.get(name).unwrap_or_else(|| panic!("{name}: {:?}", samples.profile)).own
        };
        let near = |name: &str, ms: f64| assert!((own(name) - ms).abs() < 1e-9, "{name}: {}", own(name));
        near("writev", 0.1);
        near("<impl orb::Put for (u8, u8)>::put", 0.25);
        near("page fault", 0.1);
        near("? in libomniORB4.so.2", 0.1);
        near("interrupts and scheduling", 0.1);
        assert!((samples.profile["writev"].calls - 1.0).abs() < 1e-9);
        assert_eq!(samples.profile.len(), 5, "{:?}", samples.profile);
    }

    #[test]
    fn calls_of_the_system_have_their_names_on_every_machine() {
        for (function, wanted) in [
            ("__x64_sys_sendto", Some("sendto")),
            ("__arm64_sys_readv", Some("readv")),
            ("__do_sys_brk", None),
            ("do_sys_poll", None),
            ("vfs_readv", None),
            ("do_writev", Some("writev")),
            ("ksys_read", Some("read")),
            ("do_softirq", None),
            ("asm_exc_page_fault", Some("page fault")),
        ] {
            assert_eq!(entered(function).as_deref(), wanted, "{function}");
        }
    }
}
