//! System calls of a flood, and the bytes on the wire beside the user's. `strace` counts them in the same way
//! for any peer, in a separate pass, because a traced process is slow.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde_json::Value;

use super::driver::ClientOutput;
use super::integrity::PASS;
use super::store::{Cell, Data};
use super::{Figures, Step, of_line};
use crate::figures::{Column, Section, Table, bytes, published_rows, shown};
use crate::harness::Peer;
use crate::literature::Published;
use crate::work::Element;

/// Value of the setting [`PASS`] of these cells.
const CALLS: &str = "calls";
/// Size of the buffers, as in the published counts. 64 MiB are sent in all.
const SIZE: u64 = 128 << 10;
const REQUESTS: u64 = 512;
const REQUESTS_QUICK: u64 = 32;

const WRITES: [&str; 5] = ["write", "writev", "send", "sendto", "sendmsg"];
const READS: [&str; 5] = ["read", "readv", "recv", "recvfrom", "recvmsg"];
const POLLS: [&str; 8] =
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter"];

/// Checks whether calls can be counted here.
///
/// # Errors
/// The reason why they cannot.
pub(crate) fn available() -> Result<(), String> {
    let mut words = watched("/dev/null").into_iter();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).arg("true").stdin(Stdio::null()).output();
    match output {
        Err(error) => Err(format!("cannot run strace ({error}): apt-get install strace")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("strace fails: {}", text.lines().next().unwrap_or_default()))
        }
    }
}

/// Returns a flood of that type whose system calls are counted.
pub(crate) fn count(peer: &Peer, element: Element, sent: Element, quick: bool) -> Step {
    let mut watched_peer = peer.clone();
    for (side, command) in [("server", &mut watched_peer.server), ("client", &mut watched_peer.client)] {
        command.splice(0..0, watched(&format!("{{dir}}/{side}.calls")));
    }
    let payload = (SIZE / sent.bytes()) * sent.bytes();
    let total = payload * if quick { REQUESTS_QUICK } else { REQUESTS };
    let words =
        ["ttcp", "--type", &sent.to_string(), "--size", &SIZE.to_string(), "--total", &total.to_string()];
    Step {
        cell: Cell::default().with("type", element.to_string().as_str()).with(PASS, CALLS),
        peer: watched_peer,
        server: Vec::new(),
        client: words.map(String::from).to_vec(),
        figures,
        perform: Step::once,
    }
}

/// Returns the command that traces a program: calls that move data or wait, with the kinds of their sockets
/// and without the data.
fn watched(file: &str) -> Vec<String> {
    let trace = [&WRITES[..], &READS, &POLLS].concat();
    // Some names are not system calls of this processor, which `?` allows.
    let trace =
        format!("trace={}", trace.iter().map(|name| format!("?{name}")).collect::<Vec<_>>().join(","));
    ["strace", "-f", "--seccomp-bpf", "-qq", "-yy", "-s", "0", "-e", "signal=none", "-e", &trace, "-o", file]
        .map(String::from)
        .to_vec()
}

/// The counts of one side.
#[derive(Debug, Default, PartialEq)]
struct SystemCallCounts {
    writes: u64,
    written: u64,
    reads: u64,
    read: u64,
    polls: u64,
}

impl SystemCallCounts {
    fn of_file(path: &Path) -> Result<SystemCallCounts, String> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        let counted = SystemCallCounts::of_lines(lines);
        match counted {
            SystemCallCounts { polls: 0, writes: 0, reads: 0, .. } => {
                Err(format!("{} has no calls", path.display()))
            }
            counted => Ok(counted),
        }
    }

    /// Parses lines such as `7 writev(5<TCP:[...]>, [...], 2) = 65544`. Where another thread interrupted a
    /// call, it is in two parts.
    fn of_lines(lines: impl Iterator<Item = String>) -> SystemCallCounts {
        let mut counted = SystemCallCounts::default();
        let mut begun: HashMap<String, (String, bool)> = HashMap::new();
        for line in lines {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let call = call.trim_start();
            let result = call
                .rsplit_once(" = ")
                .and_then(|(_, result)| result.split(' ').next().unwrap_or_default().parse::<i64>().ok());
            if call.starts_with("<... ") {
                if let Some((name, on_socket)) = begun.remove(thread) {
                    counted.add(&name, on_socket, result);
                }
                continue;
            }
            let Some((name, arguments)) = call.split_once('(') else { continue };
            let first = arguments.split([',', ')']).next().unwrap_or_default();
            let on_socket = ["<TCP", "<UNIX", "<socket:"].iter().any(|kind| first.contains(kind));
            if call.ends_with("<unfinished ...>") {
                begun.insert(thread.to_owned(), (name.to_owned(), on_socket));
            } else {
                counted.add(name, on_socket, result);
            }
        }
        counted
    }

    fn add(&mut self, name: &str, on_socket: bool, result: Option<i64>) {
        let moved = result.and_then(|result| u64::try_from(result).ok()).unwrap_or_default();
        if POLLS.contains(&name) {
            self.polls += 1;
        } else if on_socket && WRITES.contains(&name) {
            self.writes += 1;
            self.written += moved;
        } else if on_socket && READS.contains(&name) {
            self.reads += 1;
            self.read += moved;
        }
    }
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let [client, server] =
        ["client", "server"].map(|side| SystemCallCounts::of_file(&output.dir.join(format!("{side}.calls"))));
    of_counted(output.line, &client?, &server?)
}

/// Computes figures per request. The tenth of requests before the measured part is included.
fn of_counted(line: &Value, client: &SystemCallCounts, server: &SystemCallCounts) -> Result<Figures, String> {
    let word = |name: &str| line.get(name).and_then(Value::as_str).ok_or_else(|| format!("it has no {name}"));
    let element = Element::from_str(word("type")?, false)?;
    let payload = (SIZE / element.bytes() * element.bytes()) as f64;
    // The line's figures are rounded, but by less than half a request.
    let counted = (of_line(line, "mbit_s")? * of_line(line, "secs")? / 8e-6 / payload).round();
    let requests = counted + (counted / 10.0).ceil();
    let mut figures = Figures::new();
    figures.insert("requests".into(), requests);
    let mut per_request = |name: &str, count: u64| {
        figures.insert(format!("{name}_per_request"), count as f64 / requests);
    };
    per_request("client_writes", client.writes);
    per_request("client_polls", client.polls);
    per_request("server_reads", server.reads);
    per_request("server_polls", server.polls);
    if client.writes > 0 {
        figures.insert("bytes_per_write".into(), client.written as f64 / client.writes as f64);
        let control = (client.written as f64 - requests * payload) / requests;
        figures.insert("control_bytes_per_request".into(), control);
    }
    if server.reads > 0 {
        figures.insert("bytes_per_read".into(), server.read as f64 / server.reads as f64);
    }
    Ok(figures)
}

/// Adds the tables of a section: the counts, and the published counts.
pub(crate) fn section(data: &Data, experiment: &str, section: &mut Section) {
    const SHOWN: [(&str, &str); 7] = [
        ("client_writes_per_request", "sender: writes"),
        ("bytes_per_write", "bytes per write"),
        ("client_polls_per_request", "polls"),
        ("server_reads_per_request", "receiver: reads"),
        ("bytes_per_read", "bytes per read"),
        ("server_polls_per_request", "polls "),
        ("control_bytes_per_request", "control bytes"),
    ];
    let mut columns = vec![Column::words("type"), Column::words("peer")];
    columns.extend(SHOWN.map(|(_, title)| Column::figures(title)));
    let counted = |sample: &&super::store::Sample| {
        sample.cell.word(PASS) == Some(CALLS) && sample.figure("requests").is_some()
    };
    let row = |sample: &super::store::Sample| {
        let words = [sample.cell.word("type").unwrap_or("-").to_owned(), sample.peer.clone()];
        words.into_iter().chain(SHOWN.map(|(name, _)| shown(sample.figure(name)))).collect()
    };
    let rows: Vec<Vec<String>> = data.of(experiment).filter(counted).map(row).collect();
    if rows.is_empty() {
        section.text("System calls were not counted: that takes strace.");
        return;
    }
    let caption = format!(
        "System calls of a request that sends {}, and octets on the wire beside the user's, counted by strace in floods of their own: \
         a process that is watched is slow, which lets more gather. Waiting on epoll and io_uring counts as a poll; what a ring does \
         is not seen.",
        bytes(SIZE)
    );
    section.table(Table { caption, columns, rows });
    section.table(published_rows("sigcomm96.text", "What was published of such calls", is_of_calls));
}

/// Returns whether a published row is about calls or control bytes.
pub(crate) fn is_of_calls(table: &Published, row: &[&'static str]) -> bool {
    let quantity = table.text(row, "quantity").unwrap_or_default();
    [
        "write calls",
        "writev calls",
        "poll calls",
        "control bytes per write",
        "write size for structs",
        "internal write buffer",
    ]
    .contains(&quantity)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CLIENT: &str = "\
7 read(3</usr/lib/libc.so.6>, \"\"..., 832) = 832
7 writev(3<TCP:[127.0.0.1:1->127.0.0.1:2]>, [...], 2) = 131112
7 sendto(3<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"\"..., 9, MSG_NOSIGNAL, NULL, 0) = -1 EAGAIN (Resource temporarily unavailable)
7 epoll_wait(4<anon_inode:[eventpoll]>,  <unfinished ...>
8 write(1</tmp/out>, \"\"..., 22) = 22
7 <... epoll_wait resumed>[...], 1024, -1) = 1
8 sendmsg(3<UNIX-STREAM:[1->2]>, {...}, 0 <unfinished ...>
7 poll([{fd=3<TCP:[127.0.0.1:1->127.0.0.1:2]>, events=POLLIN}], 1, 0) = 0 (Timeout)
8 <... sendmsg resumed>) = 131032
7 recvmsg(3<socket:[77]>, {...}, 0) = ? ERESTARTSYS
7 +++ exited with 0 +++
";

    #[test]
    fn calls_on_sockets_are_counted_by_what_they_moved() {
        let counted = SystemCallCounts::of_lines(CLIENT.lines().map(str::to_owned));
        assert_eq!(counted, SystemCallCounts { writes: 3, written: 262_144, reads: 1, read: 0, polls: 2 });
    }

    #[test]
    fn figures_are_of_a_request() {
        // Ten requests and one before, each with 28 bytes more than the user's.
        let payload = 131_064.0;
        let line = json!({"type": "struct", "size": SIZE, "mbit_s": 10.0 * payload * 8e-6, "secs": 1.0});
        let written = 11 * (131_064 + 28);
        let client = SystemCallCounts { writes: 22, written, reads: 1, read: 8, polls: 0 };
        let server = SystemCallCounts { writes: 1, written: 8, reads: 33, read: written, polls: 11 };
        let figures = of_counted(&line, &client, &server).unwrap();
        let figure = |name: &str| figures[name];
        assert_eq!((figure("requests"), figure("control_bytes_per_request")), (11.0, 28.0));
        assert_eq!((figure("client_writes_per_request"), figure("server_reads_per_request")), (2.0, 3.0));
        assert_eq!((figure("bytes_per_write"), figure("server_polls_per_request")), (65_546.0, 1.0));
        // The calls of an io_uring are not traced.
        let none = SystemCallCounts { polls: 5, ..SystemCallCounts::default() };
        assert!(!of_counted(&line, &none, &server).unwrap().contains_key("control_bytes_per_request"));
    }

    #[test]
    fn the_published_counts_are_found() {
        let table = published_rows("sigcomm96.text", "Calls", is_of_calls);
        assert_eq!(table.rows.len(), 9, "{:?}", table.rows);
    }
}
