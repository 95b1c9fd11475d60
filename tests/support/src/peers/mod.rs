//! Foreign peers for the tests: their programs, and processes that never outlive a test.
//!
//! The programs are in `target/interop`, or in the directory `ZORB_INTEROP_PEERS`. Missing ones are built
//! once if the tools are installed (`scripts/build-peers.sh`). Unavailable programs are skipped with a
//! message; with `CI=true` that is a failure.

pub mod client;
pub mod matrix;
pub mod talk;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The variable for another directory of the peers' programs.
const PEERS: &str = "ZORB_INTEROP_PEERS";

/// An ORB with which the tests interoperate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// omniORB 4.2 (C++)
    OmniOrb,
    /// JacORB 3.9 (Java)
    JacOrb,
    /// PyTango 10 (Python over C++), on omniORB
    Tango,
    /// GlassFish's ORB 4.2 (Java)
    GlassFish,
    /// Apache Yoko 1.4 (Java)
    Yoko,
}

impl Foreign {
    fn directory(self) -> &'static str {
        match self {
            Foreign::OmniOrb => "omniorb",
            Foreign::JacOrb => "jacorb",
            Foreign::Tango => "tango",
            Foreign::GlassFish => "glassfish",
            Foreign::Yoko => "yoko",
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Foreign::OmniOrb => "omniORB",
            Foreign::JacOrb => "JacORB",
            Foreign::Tango => "Tango",
            Foreign::GlassFish => "GlassFish",
            Foreign::Yoko => "Yoko",
        }
    }

    /// Returns whether it is an ORB of Java EE servers, whose peers are built only on request.
    pub fn is_java_ee(self) -> bool {
        matches!(self, Foreign::GlassFish | Foreign::Yoko)
    }

    /// Returns whether its programs run in a Java virtual machine, which takes a second of processor time to
    /// start.
    pub fn is_java(self) -> bool {
        self == Foreign::JacOrb || self.is_java_ee()
    }

    /// Returns the path of a program of this peer, such as `peer-server`. `None`, after a message, means that
    /// the test has to be skipped.
    ///
    /// # Panics
    /// It is missing, and `CI=true` is set or it is a program of a Java EE ORB.
    pub fn program(self, name: &str) -> Option<PathBuf> {
        let path = peers().join(self.directory()).join(name);
        if self.is_java_ee() {
            assert!(path.exists(), "no {}: scripts/build-peers.sh --java-ee makes it", path.display());
        }
        if !path.exists() {
            build();
        }
        if path.exists() {
            return Some(path);
        }
        let what = format!("{}: scripts/install-peers.sh and scripts/build-peers.sh make it", path.display());
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "no {what}");
        tell(&format!("SKIPPED: no {what}"));
        None
    }

    /// Starts a server of this peer, which writes its reference to the file in `--ior`, and waits until it is
    /// ready.
    pub fn serve(self, program: &str, arguments: &[&str], limit: Duration) -> Option<Served> {
        let scratch = Scratch::new();
        let path = scratch.path("peer.ior");
        let mut command = Command::new(self.program(program)?);
        command.args(arguments).arg("--ior").arg(&path);
        command.args(["--seconds", &(2 * limit).as_secs().to_string()]);
        let mut process = Process::start(command, &scratch);
        process.ready(limit);
        let ior = fs::read_to_string(path).expect("the server wrote its IOR").trim().to_owned();
        Some(Served { ior, _process: process, _scratch: scratch })
    }

    /// Runs a client of this peer with a reference: it must print `ok` for at least `checks` checks, and none
    /// may fail. Returns `false` if the client is missing.
    ///
    /// # Panics
    /// The checks did not pass; the message contains the client's output.
    pub fn drive(self, program: &str, arguments: &[&str], ior: &str, checks: usize, limit: Duration) -> bool {
        let Some(path) = self.program(program) else { return false };
        let scratch = Scratch::new();
        let reference = scratch.path("zorb.ior");
        fs::write(&reference, ior).expect("the scratch directory can be written");
        let mut command = Command::new(path);
        command.args(arguments).arg("--ior").arg(reference);
        command.args(["--seconds", &limit.as_secs().to_string()]);
        let mut client = Process::start(command, &scratch);
        let (status, output) = (client.end(limit), client.output());
        assert!(status.is_some_and(|status| status.success()), "{status:?}\n{output}");
        let passed = output.lines().filter(|line| line.starts_with("ok ")).count();
        assert!(passed >= checks, "only {passed} of {checks} checks ran:\n{output}");
        true
    }
}

/// A ready server of a peer.
pub struct Served {
    /// Its reference.
    pub ior: String,
    _process: Process,
    _scratch: Scratch,
}

/// Writes a line that bypasses the capture of output, so that it is also shown for tests that pass.
pub fn tell(line: &str) {
    // A single write, so that lines of concurrent tests are not mixed.
    let _ = std::io::stderr().write_all(format!("interop: {line}\n").as_bytes());
}

/// Returns the root of the checkout.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().find(|path| path.join("scripts/build-peers.sh").exists());
        root.unwrap_or(here).to_owned()
    })
}

fn peers() -> PathBuf {
    std::env::var_os(PEERS).map_or_else(|| root().join("target/interop"), PathBuf::from)
}

/// Builds the peers, once a process; the script allows only one build at a time.
fn build() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        if std::env::var_os(PEERS).is_some() {
            return;
        }
        match Command::new(root().join("scripts/build-peers.sh")).stdin(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            other => tell(&format!("scripts/build-peers.sh: {other:?}")),
        }
    });
}

/// A test's own directory, which is removed when the test passes.
pub struct Scratch(TempDir);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Creates one.
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("zorb-interop-").tempdir().expect("files can be written"))
    }

    /// Returns a path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Scratch {
    /// Leaves it where it is if the test fails.
    fn drop(&mut self) {
        self.0.disable_cleanup(std::thread::panicking());
    }
}

/// A process whose output goes to a file; killed when this is dropped.
pub struct Process {
    child: Child,
    output: PathBuf,
    what: String,
}

impl Process {
    /// Starts a program.
    pub fn start(mut command: Command, scratch: &Scratch) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let output = scratch.path(&format!("output-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let file = File::create(&output).expect("the scratch directory can be written");
        let again = file.try_clone().expect("a file can be opened twice");
        let what = format!("{command:?}");
        // The stdin ends with this process, which ends `ttcp server --lifeline` too.
        command.stdin(Stdio::piped()).stdout(file).stderr(again);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        Self { child, output, what }
    }

    /// Returns its output so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// Waits for the line that begins with READY.
    pub fn ready(&mut self, limit: Duration) {
        let start = Instant::now();
        while !self.output().lines().any(|line| line.starts_with("READY")) {
            let ended = self.child.try_wait().expect("a child can be waited for");
            assert!(ended.is_none(), "{} ended ({ended:?}):\n{}", self.what, self.output());
            assert!(start.elapsed() < limit, "{} is not ready in {limit:?}:\n{}", self.what, self.output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Writes a line to its input.
    pub fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("its input is a pipe");
        input
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| input.flush())
            .expect("it reads its input");
    }

    /// Returns whether it has ended.
    pub fn is_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end. Returns `None` if it did not end in time; it is then killed.
    pub fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            tell(&format!("a test fails; {} wrote:\n{}", self.what, self.output()));
        }
    }
}
