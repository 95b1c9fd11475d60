//! Servers whose output nothing reads go on, and say afterwards what is missing.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use zorb::prelude::*;

use super::{bank, beside};

/// More than the queue of a server (256 KiB) and a pipe (64 KiB) hold, at 4 KiB a call.
const CALLS: usize = 110;

/// A program of which only that stream is read, and that only at the end.
struct Unread(Child);

impl Unread {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zorb"));
        let command = command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Asks it to end.
    fn end(&self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Asks it to end, and reads what was written all the time.
    fn ended(mut self) -> (Option<i32>, String) {
        self.end();
        let (mut out, mut err) = (self.0.stdout.take().unwrap(), self.0.stderr.take().unwrap());
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            err.read_to_end(&mut said).unwrap();
            said
        });
        let mut told = Vec::new();
        out.read_to_end(&mut told).unwrap();
        told.extend(said.join().unwrap());
        (self.0.wait().unwrap().code(), String::from_utf8(told).unwrap())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for the reference that a server writes into a file; makes many calls of about 4 KiB.
fn call(file: &std::path::Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Orb::builder().timeout(std::time::Duration::from_secs(60)).build().await.unwrap();
        let reference = loop {
            match std::fs::read_to_string(file) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        };
        let account: super::bank::AccountRef = client.resolve(reference.trim()).await.unwrap();
        // Their sum is 0.
        let coins: Vec<i32> = [i32::MAX, -i32::MAX].repeat(200);
        for _ in 0..CALLS {
            account.deposit(1.0, &*coins).await.unwrap();
        }
        client.shutdown().await;
    });
}

#[test]
fn a_server_answers_while_nothing_reads_its_log() {
    let (folder, idl) = (tempfile::tempdir().unwrap(), bank());
    let here = folder.path().to_str().unwrap();
    let args = ["serve", "--idl", idl.path().to_str().unwrap(), "--object", "A=Bank::Account", "--ior", here];
    for more in [&[][..], &["--quiet", "--", "-ORBtraceLevel", "40"]] {
        let server = Unread::start(&[&args[..], more].concat());
        call(&folder.path().join("A.ior"));
        std::fs::remove_file(folder.path().join("A.ior")).unwrap();
        if more.is_empty() {
            let (code, said) = server.ended();
            assert_eq!(code, Some(0), "it ends in order");
            assert!(said.contains("missing here: the output was not read in time"), "{}", said.len());
        } else {
            // Its end does not wait for a reader either.
            let mut server = server;
            server.end();
            assert_eq!(server.0.wait().unwrap().code(), Some(0), "it ends in order");
        }
    }
}

#[test]
fn a_proxy_passes_calls_on_while_nothing_reads_what_it_tells() {
    beside(|account, _| {
        let (folder, idl) = (tempfile::tempdir().unwrap(), bank());
        let file = folder.path().join("proxy.ior");
        let to = ["sniff", "--listen", "127.0.0.1:0", "--to", account, "--ior", file.to_str().unwrap()];
        let told = ["--verbose", "--idl", idl.path().to_str().unwrap()];
        let proxy = Unread::start(&[&to[..], &told].concat());
        call(&file);
        let (code, said) = proxy.ended();
        assert_eq!(code, Some(0), "it ends in order");
        assert!(said.contains("missing here: the output was not read in time"), "{}", said.len());
        assert!(said.contains("requests"), "the summary comes after what is missing");
    });
}
