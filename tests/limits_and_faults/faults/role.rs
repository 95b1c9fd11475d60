//! This program in a process of its own, in a role that a test selects: to be killed, suspended, deprived of
//! resources.
//!
//! A child ends with its standard input, and with the thread that started it, so that nothing is left.

use std::io::{BufRead as _, Write as _};
use std::process::{Output, Stdio};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStdout, Command};
use zorb::prelude::*;
use zorb::testing::{RandomFaults, pair};

use crate::faults::target::{Target, TargetRef, octets, over};

const ROLE: &str = "ZORB_FAULTS_ROLE";

/// A process in a role.
pub(crate) struct Child {
    process: tokio::process::Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts a process, with environment variables.
    pub(crate) async fn start(role: &str, with: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), role, with).await
    }

    /// Starts a process in network namespaces of its own.
    pub(crate) async fn start_apart(role: &str, with: &[(&str, &str)]) -> Self {
        let mut command = Command::new("unshare");
        command.arg("--net").arg(std::env::current_exe().unwrap());
        Self::start_by(command, role, with).await
    }

    async fn start_by(mut command: Command, role: &str, with: &[(&str, &str)]) -> Self {
        command
            .args(["--exact", "faults::role::role", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .envs(with.iter().copied())
            .env_remove("ZORB_TEST_TRANSPORT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id().unwrap()
    }

    /// Returns its next line.
    pub(crate) async fn says(&mut self) -> String {
        let next = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if let Some(said) = line.strip_prefix('@') {
                    return said.to_owned();
                }
            }
            let mut errors = String::new();
            tokio::io::AsyncReadExt::read_to_string(self.process.stderr.as_mut().unwrap(), &mut errors)
                .await
                .unwrap();
            panic!("the process ended: {errors}")
        };
        tokio::time::timeout(Duration::from_secs(60), next).await.expect("the process says nothing")
    }

    /// Sends it a line, and returns its answer.
    pub(crate) async fn told(&mut self, what: &str) -> String {
        self.tell(what).await;
        self.says().await
    }

    pub(crate) async fn tell(&mut self, what: &str) {
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(format!("{what}\n").as_bytes()).await.unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = rustix::process::Pid::from_raw(self.id() as i32).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Suspends it, and waits until it is.
    pub(crate) async fn stop(&self) {
        self.signal(Signal::STOP);
        let state = || std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        while !state().contains("State:\tT") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Kills it like `kill -9`.
    pub(crate) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }

    /// Waits for its end, and returns its output to standard error.
    pub(crate) async fn output(mut self) -> Output {
        // It may be waiting for input, or for the end of input.
        drop(self.process.stdin.take());
        self.ended().await
    }

    /// Waits for a process that ends by itself, and returns its output.
    pub(crate) async fn ended(self) -> Output {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, self.process.wait_with_output()).await.expect("it does not end").unwrap()
    }
}

/// Prints a line for the parent process.
fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    // The test harness has begun a line.
    out.write_all(format!("\n@{what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Returns the lines from standard input. The process ends with them.
fn words() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, words) = tokio::sync::mpsc::unbounded_channel();
    let (begins, begun) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // The thread's stack is allocated by now.
        begins.send(()).unwrap();
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
        std::process::exit(0);
    });
    begun.recv().unwrap();
    words
}

/// Limits descriptors to a few more than are open, or removes the limit.
fn limit_descriptors(more: Option<u64>) {
    let before = getrlimit(Resource::Nofile);
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
    let current = more.map_or(before.maximum, |more| Some(open + more));
    setrlimit(Resource::Nofile, Rlimit { current, maximum: before.maximum }).unwrap();
}

/// Not a test of its own: the entry point of processes that other tests start.
#[tokio::test]
async fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    // Also ends a suspended process.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    match role.as_str() {
        "server" => server().await,
        "client" => client().await,
        "poor-client" => poor_client().await,
        "fails-by-seed" => {
            let orbs = pair();
            let (_servant, target) = over(&orbs).await;
            orbs.set_random_faults(RandomFaults::seeded(4711));
            target.add(1, 2).await.unwrap();
            panic!("as it was asked to");
        }
        other => panic!("no role `{other}`"),
    }
}

/// Serves at `ENDPOINT` until it is killed.
async fn server() {
    let mut words = words();
    let endpoint = std::env::var("ENDPOINT").unwrap_or("iiop://127.0.0.1:0".to_owned());
    if std::env::var_os("WAITS").is_some() {
        say("waiting");
        words.recv().await;
    }
    let arguments = ["server", "-ORBtraceLevel", "10"].map(str::to_owned);
    let (builder, _) = Orb::from_args(arguments).unwrap();
    let mut limits = zorb::Limits::default();
    limits.write_timeout = Duration::from_secs(2);
    if std::env::var_os("HASTY").is_some() {
        // For partial messages, and for idle connections.
        (limits.message_timeout, limits.min_message_rate) = (Duration::from_secs(2), 16 << 20);
        limits.idle_timeout = Some(Duration::from_secs(2));
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let builder = match number("POOL") {
        Some(octets) => builder.max_receive_memory(octets as usize),
        None => builder,
    };
    if let Some(spare) = number("SPARE") {
        // Private writable memory in KiB, which excludes address space that allocators only reserve.
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let data = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
        let data: u64 = data.trim().trim_end_matches(" kB").parse().unwrap();
        let maximum = getrlimit(Resource::Data).maximum;
        setrlimit(Resource::Data, Rlimit { current: Some(data * 1024 + spare), maximum }).unwrap();
    }
    let server = builder.listen(&endpoint).limits(limits).max_connections(5000, 5000).build().await.unwrap();
    let servant = Arc::new(Target::default());
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    say(&here.to_string());
    while let Some(word) = words.recv().await {
        match word.as_str() {
            "limit" => limit_descriptors(Some(2)),
            "unlimit" => limit_descriptors(None),
            "connections" => {
                say(&server.open_connections().to_string());
                continue;
            }
            "shutdown" => {
                let report = server.shutdown().await;
                say(&format!("{report:?}"));
                continue;
            }
            number => {
                say(&servant.times(number.parse().unwrap()).to_string());
                continue;
            }
        }
        say("done");
    }
}

/// Calls `IOR` with large messages forever, or on request.
async fn client() {
    let mut words = words();
    if std::env::var_os("WAITS").is_some() {
        say("waiting");
        words.recv().await;
    }
    let mut limits = zorb::Limits::default();
    limits.write_timeout = Duration::from_secs(2);
    let client = Orb::builder().limits(limits).build().await.unwrap();
    let target: TargetRef = match std::env::var("IOR") {
        Ok(ior) => client.resolve_unchecked(&ior).await.unwrap(),
        Err(_) => {
            say("whom");
            client.resolve_unchecked(&words.recv().await.unwrap()).await.unwrap()
        }
    };
    if let Ok(mebibytes) = std::env::var("FLOODS") {
        let data = octets(mebibytes.parse::<usize>().unwrap() << 20);
        target.once(0, 0, data.clone()).await.unwrap();
        say("calling");
        loop {
            let _ = target.once(1, 0, data.clone()).await;
        }
    }
    say("ready");
    let mut number = 0;
    while let Some(word) = words.recv().await {
        number += 1;
        let timeout = Duration::from_millis(word.parse().unwrap());
        let result = target.with_timeout(timeout).once(number, 0, octets(1000)).await;
        say(&match result {
            Ok(_) => "Ok".to_owned(),
            Err(error) => format!("{:?} {:?}", error.kind, error.completed),
        });
    }
}

/// A client without free descriptors when it first connects.
async fn poor_client() {
    let client = Orb::builder().build().await.unwrap();
    let target: TargetRef = client.resolve_unchecked(&std::env::var("IOR").unwrap()).await.unwrap();
    limit_descriptors(Some(8));
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    for _ in 0..50 {
        let error = target.add(1, 2).await.unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::Transient, CompletionStatus::No),
            "{error}"
        );
        assert!(error.to_string().contains("Too many open files"), "{error}");
        assert_eq!(client.open_connections(), 0);
    }
    drop(taken);
    assert_eq!(target.add(1, 2).await.unwrap(), 3);
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    client.shutdown().await;
    assert_eq!(open(), before - 1, "the connection's descriptor was the only one");
}
