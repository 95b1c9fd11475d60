//! The environment of a run, which is stored with the results.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The machine, system, versions and command of a run. Unknown values are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// The start of the run, in seconds since 1970 UTC.
    pub(crate) started_unix: u64,
    pub(crate) command: Vec<String>,
    /// The operating system, its release and build, and the processor architecture.
    pub(crate) kernel: String,
    pub(crate) cpu: Option<String>,
    pub(crate) cores: usize,
    pub(crate) congestion_control: Option<String>,
    /// The load averages over 1, 5 and 15 minutes at the start, which show whether the machine was busy.
    pub(crate) load: Option<String>,
    /// The current commit of the source tree in which this program was built.
    pub(crate) commit: Option<String>,
    /// Whether this source tree has uncommitted changes.
    pub(crate) modified: Option<bool>,
    pub(crate) version: String,
    pub(crate) rustc: String,
    /// Whether this program is an optimised build. The figures of debug builds are meaningless.
    pub(crate) optimised: bool,
}

impl Environment {
    pub(crate) fn current() -> Environment {
        let uname = rustix::system::uname();
        let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
        let commit = git(&["rev-parse", "HEAD"]);
        let modified = commit.as_ref().and_then(|_| git(&["status", "--porcelain"])).map(|s| !s.is_empty());
        Environment {
            started_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
            kernel: [uname.sysname(), uname.release(), uname.version(), uname.machine()].map(text).join(" "),
            cpu: read("/proc/cpuinfo").and_then(|text| cpu_model(&text)),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
            load: read("/proc/loadavg").map(|l| l.split(' ').take(3).collect::<Vec<_>>().join(" ")),
            commit,
            modified,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: env!("TTCP_RUSTC").to_owned(),
            optimised: !cfg!(debug_assertions),
        }
    }

    pub(crate) fn summary(&self) -> String {
        format!("{}\n{}", self.describe_machine(), self.describe_run())
    }

    pub(crate) fn describe_machine(&self) -> String {
        let unknown = || "unknown".to_owned();
        let commit = match (&self.commit, self.modified) {
            (Some(commit), Some(true)) => format!("{commit} with uncommitted changes"),
            (Some(commit), _) => commit.clone(),
            (None, _) => unknown(),
        };
        format!(
            "machine: {}, {} cores, {}\ntcp: {}\nttcp {} ({}), commit {commit}",
            self.cpu.clone().unwrap_or_else(unknown),
            self.cores,
            self.kernel,
            self.congestion_control.clone().unwrap_or_else(unknown),
            self.version,
            self.rustc,
        )
    }

    pub(crate) fn describe_run(&self) -> String {
        let load = self.load.clone().unwrap_or_else(|| "unknown".to_owned());
        format!("load: {load}; command: {}", self.command.join(" "))
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|s| s.trim().to_owned())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let (_, model) = cpuinfo.lines().find(|l| l.starts_with("model name"))?.split_once(':')?;
    Some(model.trim().to_owned())
}

/// Runs git in the source tree of this program, and returns its output; `None` if git fails.
fn git(arguments: &[&str]) -> Option<String> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("git");
    command.arg("-C").arg(tree).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_model_is_that_of_the_first_processor() {
        let text = "processor\t: 0\nmodel name\t: A Fine CPU @ 3 GHz\n\nmodel name\t: Another\n";
        assert_eq!(cpu_model(text).as_deref(), Some("A Fine CPU @ 3 GHz"));
        assert_eq!(cpu_model("processor: 0"), None);
    }

    #[test]
    fn the_environment_has_kernel_cores_and_compiler() {
        let e = Environment::current();
        assert!(e.kernel.contains(std::env::consts::ARCH) && e.cores > 0 && e.rustc.starts_with("rustc 1."));
        assert_eq!(e.optimised, !cfg!(debug_assertions));
        assert!(e.summary().contains(&e.kernel));
    }
}
