//! Foreign peers for the tests: where their programs are, and processes that never outlive a test.
//!
//! The programs stand in `target/interop`, or where `ZORB_INTEROP_PEERS` says. Missing ones are built once where the
//! tools are there (`scripts/build-peers.sh`). What can not be had is skipped, loudly; with `CI=true` it is a failure.

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

/// Names another directory with the peers' programs.
const PEERS: &str = "ZORB_INTEROP_PEERS";

/// An ORB that the tests talk to.
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

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Foreign::OmniOrb => "omniORB",
            Foreign::JacOrb => "JacORB",
            Foreign::Tango => "Tango",
            Foreign::GlassFish => "GlassFish",
            Foreign::Yoko => "Yoko",
        }
    }

    /// Whether it is an ORB of Java EE servers, whose peers are built only where they are asked for.
    pub fn is_java_ee(self) -> bool {
        matches!(self, Foreign::GlassFish | Foreign::Yoko)
    }

    /// Whether its programs run in a virtual machine of Java, which takes a second of processor time to start.
    pub fn is_java(self) -> bool {
        self == Foreign::JacOrb || self.is_java_ee()
    }

    /// A program of this peer, such as `peer-server`. `None` says that the test
    /// is to be skipped, which has been told.
    ///
    /// # Panics
    /// With `CI=true` where it is missing; one of a Java EE ORB always.
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

    /// Starts a server of this peer's, which writes its reference to the file that `--ior` names, and waits until it is ready.
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

    /// Runs a client of this peer's with a reference: it says `ok` of at least so many checks, and none fails. `false`: there is none.
    ///
    /// # Panics
    /// With what the client said, where that is not so.
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

/// A peer's server that is ready.
pub struct Served {
    /// Its reference.
    pub ior: String,
    _process: Process,
    _scratch: Scratch,
}

/// Writes a line past the capture of output, so that it shows for tests that pass too.
pub fn tell(line: &str) {
    // One write: lines of tests that run at the same time do not mix.
    let _ = std::io::stderr().write_all(format!("interop: {line}\n").as_bytes());
}

/// The checkout.
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

/// Builds the peers, once a process; the script lets only one build at a time.
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

/// A directory of its own for a test; removed when the test passes.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one, under cargo's directory for the files of tests.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("interop-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("cargo's directory for the files of tests can be written");
        Self(path)
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A process whose output goes to a file; killed with this value.
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
        // A stdin that ends with this process tells `ttcp server --lifeline` to end too.
        command.stdin(Stdio::piped()).stdout(file).stderr(again);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        Self { child, output, what }
    }

    /// What it has written so far.
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

    /// Whether it has ended.
    pub fn is_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Ends it at once, and waits for that.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end, `None` where it did not end in time; it is killed then.
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
