//! How servers start: stores are opened first, then objects are activated, then requests are served.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::live::Beside;
use super::{bank, zorb};

#[test]
fn names_serve_opens_its_store_before_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.redb");
    // Both the store and the port are taken: the error is about what is opened first.
    let _store = cos_naming::store::DiskStore::open(&path).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("iiop://{}", port.local_addr().unwrap());
    let run = zorb(&["names", "serve", "--listen", &listen, "--store", path.to_str().unwrap()], "");
    assert_eq!(run.code, 3, "{}", run.err);
    assert!(run.err.contains("names.redb is in use") && !run.err.contains("listen"), "{}", run.err);
}

/// What the admin endpoint at that address answers.
pub(crate) fn admin(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The address of the admin endpoint, out of the first line on standard error.
pub(crate) fn admin_address(err: &mut impl BufRead) -> String {
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    line.trim().trim_start_matches("admin endpoint: http://").trim_end_matches('/').to_owned()
}

fn status(address: &str) -> Value {
    serde_json::from_str(admin(address, "/status.json").split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_call_that_comes_before_its_object_is_active_waits_for_it() {
    let (idl, folder) = (bank(), tempfile::tempdir().unwrap());
    // The first reference goes into a pipe, so the server blocks until the pipe is read. The second object is
    // not active yet.
    let pipe = folder.path().join("A.ior");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Beside::spawn(
        Command::new(env!("CARGO_BIN_EXE_zorb"))
            .args(["serve", "--idl", idl.path().to_str().unwrap(), "--admin", "127.0.0.1:0", "--quiet"])
            .args(["--object", "A=Bank::Account", "--object", "B=Bank::Account"])
            .args(["--listen", &format!("iiop://127.0.0.1:{port}"), "--ior", folder.path().to_str().unwrap()])
            .stderr(Stdio::piped()),
    );
    let admin = admin_address(&mut BufReader::new(server.child.stderr.take().unwrap()));
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/B");
    let mut early = Command::new(env!("CARGO_BIN_EXE_zorb"))
        .args(["ping", "--timeout", "60s", "--count", "1", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while early.try_wait().unwrap().is_none() && status(&admin)["messages"]["received"] == 0 {
        std::thread::yield_now();
    }
    assert!(std::fs::read_to_string(&pipe).unwrap().starts_with("IOR:"));
    let answered = early.wait_with_output().unwrap();
    assert!(answered.status.success(), "{}", String::from_utf8_lossy(&answered.stderr));
}

/// Runs a command with a thread stack of this many bytes and this many KiB of address space. Ends it as soon
/// as it reports that it serves. Returns its exit code, if it ended by itself, and its standard error.
fn with_memory(kib: u64, stack: u64, args: &[&str]) -> (Option<i32>, String) {
    let mut child = Command::new("sh")
        .args([
            "-c",
            "ulimit -v \"$0\"; exec timeout 60 \"$@\"",
            &kib.to_string(),
            env!("CARGO_BIN_EXE_zorb"),
        ])
        .args(args)
        .env("TOKIO_WORKER_THREADS", "16")
        .env("RUST_MIN_STACK", stack.to_string())
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let serves = !line.is_empty();
    if serves {
        // It passes the signal on.
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    }
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let code = child.wait().unwrap().code();
    (if serves { None } else { code }, err)
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_without_memory_for_its_threads_ends_with_a_message() {
    const GIB: u64 = 1 << 30;
    let idl = bank();
    let idl = idl.path().to_str().unwrap();
    let here = ["--listen", "iiop://127.0.0.1:0"];
    let names = [&["names", "serve", "--memory"][..], &here].concat();
    let serve = [&["serve", "--object", "A=Bank::Account", "--idl", idl][..], &here].concat();
    let check = ["ior", "check", "corbaloc::127.0.0.1:1/x"];
    for args in [&names[..], &serve, &check] {
        // The stacks are so large that the system refuses one, the first or a later one, long before other
        // memory runs out. A runtime that got a few of its threads may continue with them.
        for stacks in [0, 1, 2, 5, 9, 50] {
            let (code, err) = with_memory((stacks * 8 + 7) * GIB / 1024, 8 * GIB, args);
            let ends = code == Some(3) && err.contains("cannot start") && err.lines().count() == 1;
            let works = code.is_none() || err.contains("reachable");
            let right = if stacks == 0 { ends } else { ends && stacks < 50 || works };
            assert!(right, "room for {stacks} threads: {args:?}: {code:?}: {err}");
        }
    }
    // Whatever is missing, it ends: the loader of programs and the allocator have messages of their own.
    for mib in [8, 16, 24, 32, 48, 64] {
        let (code, err) = with_memory(mib << 10, 2 << 20, &names);
        assert_ne!(code, Some(124), "it hangs with {mib} MiB: {err}");
    }
}
