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

/// What the admin endpoint at that address shows.
fn status(address: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /status.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_call_that_comes_before_its_object_is_active_waits_for_it() {
    let (idl, folder) = (bank(), tempfile::tempdir().unwrap());
    // The first reference goes into a pipe, so the server stands still until that is read. The second object is not active yet.
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
    let mut told = BufReader::new(server.child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let admin = line.trim().trim_start_matches("admin at http://").trim_end_matches('/').to_owned();
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
