//! The system calls of a flood, and the bytes on the wire in addition to user bytes. `strace` counts them,
//! for any peer and in separate floods, because a traced process is slow.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde_json::Value;

use super::integrity::INITIAL_STEP_SETTING;
use super::plan::{ClientOutput, Figures, Step, flood_arguments, line_figure};
use super::store::{Cell, StoredResults};
use crate::figures::{Column, Section, Table, format_bytes, format_figure, published_rows};
use crate::harness::Peer;
use crate::literature::PublishedTable;
use crate::work::Element;

/// The value of the setting [`INITIAL_STEP_SETTING`] in the cells of floods whose system calls are counted.
const CALL_COUNTS: &str = "calls";
/// Size of the buffers, as in the published counts.
const BUFFER_BYTES: u64 = 128 << 10;
const REQUESTS: u64 = 512;
const REQUESTS_QUICK: u64 = 32;

const WRITES: [&str; 5] = ["write", "writev", "send", "sendto", "sendmsg"];
const READS: [&str; 5] = ["read", "readv", "recv", "recvfrom", "recvmsg"];
const POLLS: [&str; 8] =
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter"];

/// Checks that `strace`, which counts system calls, can be executed.
pub(crate) fn check_available() -> Result<(), String> {
    let mut words = strace_command("/dev/null").into_iter();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).arg("true").stdin(Stdio::null()).output();
    match output {
        Err(error) => Err(format!("cannot run strace ({error}; Debian: apt-get install strace)")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("strace failed: {}", text.lines().next().unwrap_or_default()))
        }
    }
}

/// Returns a flood whose system calls are counted. `element` is the type of the cell, and `sent` the type
/// that the peer sends for it.
pub(crate) fn counting_step(peer: &Peer, element: Element, sent: Element, quick: bool) -> Step {
    let mut traced_peer = peer.clone();
    for (side, command) in [("server", &mut traced_peer.server), ("client", &mut traced_peer.client)] {
        command.splice(0..0, strace_command(&format!("{{dir}}/{side}.calls")));
    }
    let payload = (BUFFER_BYTES / sent.bytes()) * sent.bytes();
    let total = payload * if quick { REQUESTS_QUICK } else { REQUESTS };
    let cell =
        Cell::default().with("type", element.to_string().as_str()).with(INITIAL_STEP_SETTING, CALL_COUNTS);
    Step::new(&cell, &traced_peer, flood_arguments(sent, BUFFER_BYTES, total), figures)
}

/// Returns the command that executes a program and traces its system calls that transfer data or
/// wait. The trace in `file` contains the kinds of sockets, but no data.
fn strace_command(file: &str) -> Vec<String> {
    let trace = [&WRITES[..], &READS, &POLLS].concat();
    // `?` permits names that are not system calls of this processor.
    let trace =
        format!("trace={}", trace.iter().map(|name| format!("?{name}")).collect::<Vec<_>>().join(","));
    ["strace", "-f", "--seccomp-bpf", "-qq", "-yy", "-s", "0", "-e", "signal=none", "-e", &trace, "-o", file]
        .map(String::from)
        .to_vec()
}

#[derive(Debug, Default, PartialEq)]
struct SystemCallCounts {
    writes: u64,
    written_bytes: u64,
    reads: u64,
    read_bytes: u64,
    polls: u64,
}

impl SystemCallCounts {
    fn read_file(path: &Path) -> Result<SystemCallCounts, String> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        match SystemCallCounts::parse_lines(lines) {
            SystemCallCounts { polls: 0, writes: 0, reads: 0, .. } => {
                Err(format!("{} contains no system calls", path.display()))
            }
            counts => Ok(counts),
        }
    }

    /// Parses lines such as `7 writev(5<TCP:[...]>, [...], 2) = 65544`. A call is on two lines if a call of
    /// another thread was traced meanwhile.
    fn parse_lines(lines: impl Iterator<Item = String>) -> SystemCallCounts {
        let mut counts = SystemCallCounts::default();
        let mut unfinished: HashMap<String, (String, bool)> = HashMap::new();
        for line in lines {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let call = call.trim_start();
            let result = call
                .rsplit_once(" = ")
                .and_then(|(_, result)| result.split(' ').next().unwrap_or_default().parse::<i64>().ok());
            if call.starts_with("<... ") {
                if let Some((name, is_on_socket)) = unfinished.remove(thread) {
                    counts.add(&name, is_on_socket, result);
                }
                continue;
            }
            let Some((name, arguments)) = call.split_once('(') else { continue };
            let first = arguments.split([',', ')']).next().unwrap_or_default();
            let is_on_socket = ["<TCP", "<UNIX", "<socket:"].iter().any(|kind| first.contains(kind));
            if call.ends_with("<unfinished ...>") {
                unfinished.insert(thread.to_owned(), (name.to_owned(), is_on_socket));
            } else {
                counts.add(name, is_on_socket, result);
            }
        }
        counts
    }

    fn add(&mut self, name: &str, is_on_socket: bool, result: Option<i64>) {
        let bytes = result.and_then(|result| u64::try_from(result).ok()).unwrap_or_default();
        if POLLS.contains(&name) {
            self.polls += 1;
        } else if is_on_socket && WRITES.contains(&name) {
            self.writes += 1;
            self.written_bytes += bytes;
        } else if is_on_socket && READS.contains(&name) {
            self.reads += 1;
            self.read_bytes += bytes;
        }
    }
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let [client, server] = ["client", "server"]
        .map(|side| SystemCallCounts::read_file(&output.dir.join(format!("{side}.calls"))));
    figures_of_counts(output.line, &client?, &server?)
}

/// Computes the figures for one request. The counts include a warm-up, which has a tenth as many requests.
fn figures_of_counts(
    line: &Value,
    client: &SystemCallCounts,
    server: &SystemCallCounts,
) -> Result<Figures, String> {
    let word = |name: &str| {
        line.get(name).and_then(Value::as_str).ok_or_else(|| format!("the result has no {name}"))
    };
    let element = Element::from_str(word("type")?, false)?;
    let payload = (BUFFER_BYTES / element.bytes() * element.bytes()) as f64;
    // Both figures of the line are rounded, but their product is exact to less than half a request.
    let measured = (line_figure(line, "mbit_s")? * line_figure(line, "secs")? / 8e-6 / payload).round();
    let requests = measured + (measured / 10.0).ceil();
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
        figures.insert("bytes_per_write".into(), client.written_bytes as f64 / client.writes as f64);
        let control = (client.written_bytes as f64 - requests * payload) / requests;
        figures.insert("control_bytes_per_request".into(), control);
    }
    if server.reads > 0 {
        figures.insert("bytes_per_read".into(), server.read_bytes as f64 / server.reads as f64);
    }
    Ok(figures)
}

/// Adds the tables of counts and of published counts to a section.
pub(crate) fn section(data: &StoredResults, experiment: &str, section: &mut Section) {
    const COLUMNS: [(&str, &str); 7] = [
        ("client_writes_per_request", "sender: writes"),
        ("bytes_per_write", "bytes per write"),
        ("client_polls_per_request", "polls"),
        ("server_reads_per_request", "receiver: reads"),
        ("bytes_per_read", "bytes per read"),
        ("server_polls_per_request", "polls "),
        ("control_bytes_per_request", "control bytes"),
    ];
    let mut columns = vec![Column::words("type"), Column::words("peer")];
    columns.extend(COLUMNS.map(|(_, title)| Column::figures(title)));
    let is_count = |sample: &&super::store::Sample| {
        sample.cell.word(INITIAL_STEP_SETTING) == Some(CALL_COUNTS) && sample.figure("requests").is_some()
    };
    let row = |sample: &super::store::Sample| {
        let words = [sample.cell.word("type").unwrap_or("-").to_owned(), sample.peer.clone()];
        words.into_iter().chain(COLUMNS.map(|(name, _)| format_figure(sample.figure(name)))).collect()
    };
    let rows: Vec<Vec<String>> = data.samples_of(experiment).filter(is_count).map(row).collect();
    if rows.is_empty() {
        section.text("System calls were not counted, because strace is not available.");
        return;
    }
    let caption = format!(
        "System calls for a request that sends {}, and bytes on the wire in addition to user bytes (control bytes), counted by strace \
         in separate floods. Tracing slows processes down, so that a call may transfer more bytes than usual. Waiting on epoll and \
         io_uring counts as a poll. Reads and writes of an io_uring are not counted.",
        format_bytes(BUFFER_BYTES)
    );
    section.table(Table { caption, columns, rows });
    section.table(published_rows("sigcomm96.text", "Published system calls", is_about_calls));
}

pub(crate) fn is_about_calls(table: &PublishedTable, row: &[&'static str]) -> bool {
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
    fn calls_on_sockets_and_their_bytes_are_counted() {
        let counts = SystemCallCounts::parse_lines(CLIENT.lines().map(str::to_owned));
        assert_eq!(
            counts,
            SystemCallCounts { writes: 3, written_bytes: 262_144, reads: 1, read_bytes: 0, polls: 2 }
        );
    }

    #[test]
    fn figures_are_for_one_request() {
        // Ten requests and one of the warm-up, each with 28 control bytes.
        let payload = 131_064.0;
        let line =
            json!({"type": "struct", "size": BUFFER_BYTES, "mbit_s": 10.0 * payload * 8e-6, "secs": 1.0});
        let written_bytes = 11 * (131_064 + 28);
        let client = SystemCallCounts { writes: 22, written_bytes, reads: 1, read_bytes: 8, polls: 0 };
        let server =
            SystemCallCounts { writes: 1, written_bytes: 8, reads: 33, read_bytes: written_bytes, polls: 11 };
        let figures = figures_of_counts(&line, &client, &server).unwrap();
        let figure = |name: &str| figures[name];
        assert_eq!((figure("requests"), figure("control_bytes_per_request")), (11.0, 28.0));
        assert_eq!((figure("client_writes_per_request"), figure("server_reads_per_request")), (2.0, 3.0));
        assert_eq!((figure("bytes_per_write"), figure("server_polls_per_request")), (65_546.0, 1.0));
        // Reads and writes of an io_uring are not traced.
        let none = SystemCallCounts { polls: 5, ..SystemCallCounts::default() };
        assert!(!figures_of_counts(&line, &none, &server).unwrap().contains_key("control_bytes_per_request"));
    }

    #[test]
    fn all_published_call_counts_are_selected() {
        let table = published_rows("sigcomm96.text", "Calls", is_about_calls);
        assert_eq!(table.rows.len(), 9, "{:?}", table.rows);
    }
}
