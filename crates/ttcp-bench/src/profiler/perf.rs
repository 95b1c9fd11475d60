//! `perf`: samples of the executed function, in the program and in the kernel, and counts of system calls.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Profile, SYSTEM_CALLS, last_line, normalised_name, unknown_function_in};

const MAX_SAMPLE_RATE_HERTZ: u64 = 10_000;
/// The file with the maximum sample rate that the kernel permits.
const MAX_SAMPLE_RATE_FILE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
/// The event at which samples are taken. It needs no hardware counters, which many virtual machines lack.
const CLOCK_EVENT: &str = "cpu-clock";
const SYSCALL_EVENT_PREFIX: &str = "syscalls:sys_enter_";
/// Prefixes of the names of kernel functions that run only because of perf.
const PERF_FUNCTION_PREFIXES: [&str; 2] = ["perf_", "syscall_trace_enter"];
const FIRST_KERNEL_ADDRESS: u64 = 1 << 63;

/// The program `perf`, which is installed and works.
#[derive(Debug, Clone)]
pub(crate) struct Perf {
    sample_rate_hertz: u64,
    /// The system calls that can be counted.
    countable_calls: Vec<&'static str>,
}

impl Perf {
    /// Checks whether `perf` works here, and with which features.
    pub(crate) fn find() -> Result<Perf, String> {
        let dir = tempfile::tempdir().map_err(|e| format!("cannot create a directory to test perf: {e}"))?;
        let file = dir.path().join("probe");
        let allowed = std::fs::read_to_string(MAX_SAMPLE_RATE_FILE).ok();
        let allowed = allowed.and_then(|text| text.trim().parse().ok()).unwrap_or(MAX_SAMPLE_RATE_HERTZ);
        let sample_rate_hertz = allowed.min(MAX_SAMPLE_RATE_HERTZ);
        let mut perf = Perf { sample_rate_hertz, countable_calls: Vec::new() };
        // This test samples only the kernel, because that fails if it is not permitted. A test that samples
        // the program too would silently omit the kernel.
        let kernel = ["-e".to_owned(), format!("{CLOCK_EVENT}:k")];
        perf.try_events(&file, &kernel)?;
        let is_available = |call: &&&str| perf.try_events(&file, &system_call_events(&[call])).is_ok();
        // Each call is tested separately only if not all are available, because each test takes a while.
        perf.countable_calls = if perf.try_events(&file, &system_call_events(SYSTEM_CALLS)).is_ok() {
            SYSTEM_CALLS.to_vec()
        } else {
            SYSTEM_CALLS.iter().filter(is_available).copied().collect()
        };
        Ok(perf)
    }

    fn try_events(&self, file: &Path, events: &[String]) -> Result<(), String> {
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-B", "-N", "-o"]).arg(file).args(events).args(["--", "true"]);
        match command.stdin(Stdio::null()).output() {
            Ok(out) if out.status.success() => Ok(()),
            Ok(out) => Err(format!("perf failed: {}", last_line(&out.stderr))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err("perf is not installed (Debian: linux-perf)".to_owned())
            }
            Err(e) => Err(format!("perf cannot be started: {e}")),
        }
    }

    /// Returns whether system calls can be counted.
    pub(crate) fn counts_system_calls(&self) -> bool {
        !self.countable_calls.is_empty()
    }

    /// Returns the prefix of a command that profiles the command into `file`.
    pub(crate) fn command_prefix(&self, file: &str) -> Vec<String> {
        let clock = format!("{CLOCK_EVENT}/freq={}/", self.sample_rate_hertz);
        // The timestamps use the monotonic clock, so that `read` can select samples by time.
        let mut words: Vec<String> =
            ["perf", "record", "-q", "-B", "-N", "-k", "CLOCK_MONOTONIC", "-g", "-o", file, "-e", &clock]
                .map(String::from)
                .to_vec();
        words.extend(system_call_events(&self.countable_calls));
        words.push("--".to_owned());
        words
    }

    /// Returns the profile in `file` for a span of the monotonic clock, and the number of samples.
    pub(crate) fn read(&self, file: &Path, span: &Range<Duration>) -> Result<(Profile, u64), String> {
        let mut child = Command::new("perf")
            .args(["script", "--no-inline", "--ns", "-F", "time,event,period,ip,sym,dso", "-i"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start perf script: {e}"))?;
        let mut parser = ScriptParser::new(span.clone());
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).split(b'\n') {
                let line = line.map_err(|e| format!("the output of perf script cannot be read: {e}"))?;
                parser.parse_line(&String::from_utf8_lossy(&line));
            }
        }
        parser.finish_sample();
        let status = child.wait().map_err(|e| format!("cannot wait for perf script: {e}"))?;
        if !status.success() {
            return Err(format!("perf script cannot read the samples: {status}"));
        }
        Ok((parser.profile, parser.sample_count))
    }
}

/// Returns the options that record events of these system calls without call stacks.
fn system_call_events(calls: &[&str]) -> Vec<String> {
    calls
        .iter()
        .flat_map(|call| ["-e".to_owned(), format!("{SYSCALL_EVENT_PREFIX}{call}/call-graph=no/")])
        .collect()
}

/// The parser of the output of `perf script`. Each event is a line. The line of a clock event is followed by
/// lines with its stack, the innermost function first.
struct ScriptParser {
    /// Events outside this span are ignored.
    span: Range<Duration>,
    profile: Profile,
    sample_count: u64,
    /// The clock event whose stack is being parsed.
    sample: Option<Stack>,
}

/// The stack of a sample.
struct Stack {
    ms: f64,
    /// Why the kernel ran, according to the outermost kernel function that shows this.
    kernel_entry: Option<String>,
    /// The innermost function outside the kernel.
    user_function: Option<String>,
    /// Whether a function of perf was running.
    is_perf: bool,
}

impl ScriptParser {
    fn new(span: Range<Duration>) -> ScriptParser {
        ScriptParser { span, profile: Profile::new(), sample_count: 0, sample: None }
    }

    fn parse_line(&mut self, line: &str) {
        if let Some(frame) = line.strip_prefix('\t') {
            if let Some(stack) = &mut self.sample {
                stack.parse_frame(frame.trim());
            }
            return;
        }
        self.finish_sample();
        let mut words = line.split_whitespace();
        let (Some(time), Some(period), Some(event)) = (words.next(), words.next(), words.next()) else {
            return;
        };
        let Some(time) =
            time.trim_end_matches(':').parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok())
        else {
            return;
        };
        if !self.span.contains(&time) {
            return;
        }
        if let Some(call) = event.strip_prefix(SYSCALL_EVENT_PREFIX) {
            let call = call.trim_end_matches(':').split('/').next().unwrap_or_default();
            self.profile.entry(call.to_owned()).or_default().calls += 1.0;
        } else if event.starts_with(CLOCK_EVENT) {
            let ms = period.parse::<f64>().unwrap_or_default() / 1e6;
            self.sample = Some(Stack { ms, kernel_entry: None, user_function: None, is_perf: false });
        }
    }

    /// Adds the current sample to the profile.
    fn finish_sample(&mut self) {
        let Some(stack) = self.sample.take().filter(|stack| !stack.is_perf) else { return };
        let name = stack.kernel_entry.or(stack.user_function).unwrap_or_else(|| "?".to_owned());
        self.profile.entry(name).or_default().own += stack.ms;
        self.sample_count += 1;
    }
}

impl Stack {
    /// Parses a line such as `ffffffff82 tcp_sendmsg_locked ([kernel.kallsyms])`.
    fn parse_frame(&mut self, frame: &str) {
        let Some((address, rest)) = frame.split_once(' ') else { return };
        // Both names may contain spaces and brackets, but the name of the object starts with `/` or `[`.
        let end = [" (/", " (["].iter().filter_map(|start| rest.find(start)).min().unwrap_or(rest.len());
        let (name, object) = rest.split_at(end);
        let object = object.trim_start_matches(" (").trim_end_matches(')');
        if u64::from_str_radix(address, 16).is_ok_and(|address| address >= FIRST_KERNEL_ADDRESS) {
            if PERF_FUNCTION_PREFIXES.iter().any(|own| name.starts_with(own)) {
                self.is_perf = true;
            }
            if let Some(entry) = kernel_entry(name) {
                self.kernel_entry = Some(entry);
            } else if self.kernel_entry.is_none() {
                self.kernel_entry = Some("interrupts and scheduling".to_owned());
            }
        } else if self.user_function.is_none() {
            self.user_function =
                Some(if name == "[unknown]" { unknown_function_in(object) } else { normalised_name(name) });
        }
    }
}

/// Returns why the kernel runs (a system call or `page fault`), if this kernel function indicates it.
fn kernel_entry(function: &str) -> Option<String> {
    if let Some((machine, call)) = function.split_once("_sys_") {
        // This matches `__x64_sys_sendto` and `__arm64_sys_sendto`, but not `do_sys_poll`.
        if machine.starts_with("__") && machine != "__do" {
            return Some(call.to_owned());
        }
    }
    // The function with the name of the system call may be inlined. Then only a function such as `do_writev`,
    // `ksys_read` or `__sys_sendmsg` is in the stack.
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
    fn time_in_the_kernel_is_attributed_to_the_system_call() {
        let mut parser = ScriptParser::new(Duration::from_secs(100)..Duration::from_secs(200));
        SCRIPT.lines().for_each(|line| parser.parse_line(line));
        parser.finish_sample();
        assert_eq!(parser.sample_count, 5, "without those of perf and outside the span");
        let own = |name: &str| {
            parser.profile.get(name).unwrap_or_else(|| panic!("{name}: {:?}", parser.profile)).own
        };
        let near = |name: &str, ms: f64| assert!((own(name) - ms).abs() < 1e-9, "{name}: {}", own(name));
        near("writev", 0.1);
        near("<impl orb::Put for (u8, u8)>::put", 0.25);
        near("page fault", 0.1);
        near("? in libomniORB4.so.2", 0.1);
        near("interrupts and scheduling", 0.1);
        assert!((parser.profile["writev"].calls - 1.0).abs() < 1e-9);
        assert_eq!(parser.profile.len(), 5, "{:?}", parser.profile);
    }

    #[test]
    fn system_calls_are_recognised_on_all_architectures() {
        for (function, call) in [
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
            assert_eq!(kernel_entry(function).as_deref(), call, "{function}");
        }
    }
}
