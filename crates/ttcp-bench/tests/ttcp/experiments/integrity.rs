//! Servers detect differences from what clients send: bytes that are changed in transit.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use super::{all_samples, is_left_out, run, samples, text, ttcp};

/// Number of changed bytes: more than the padding between two members of a struct.
const WRONG: usize = 9;

/// Forwards one client's data to a server, with a flipped bit in each changed byte from `wrong` on, and
/// replies back.
fn carry(listener: &TcpListener, server: impl FnOnce() -> u16, wrong: Option<usize>) {
    let (mut client, _) = listener.accept().unwrap();
    let mut server = TcpStream::connect(("127.0.0.1", server())).unwrap();
    let (mut replies, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let replying = thread::spawn(move || {
        let _ = std::io::copy(&mut replies, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let (mut piece, mut carried) = (vec![0; 16_384], 0);
    while let Ok(n @ 1..) = client.read(&mut piece) {
        let here = |wrong: usize| {
            wrong.saturating_sub(carried).min(n)..(wrong + WRONG).saturating_sub(carried).min(n)
        };
        for octet in wrong.and_then(|wrong| piece.get_mut(here(wrong))).unwrap_or_default() {
            *octet ^= 1;
        }
        carried += n;
        if server.write_all(&piece[..n]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
    replying.join().unwrap();
}

/// Runs a client's flood through [`carry`] to a checking server. Returns the server's output, and its exit
/// status if it ended before it was killed.
fn flood(dir: &Path, server: Command, client: &[String], wrong: Option<usize>) -> (Output, bool) {
    let mut server = { server }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    // The line ends with the port number, or is a file with a reference.
    let ready = ready.trim();
    let port = match ready.strip_suffix(".ior") {
        None => ready.rsplit(':').next().unwrap().parse().unwrap(),
        Some(_) => {
            let ior = fs::read_to_string(ready.trim_start_matches("READY ")).unwrap();
            let ior: zorb::wire::Ior = ior.trim().parse().unwrap();
            ior.iiop_profile().unwrap().port
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().port().to_string();
    let carrying = thread::spawn(move || carry(&listener, || port, wrong));
    let client: Vec<String> = client.iter().map(|word| word.replace("{port}", &at)).collect();
    let mut words = client.iter();
    let done = Command::new(words.next().unwrap())
        .args(words)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    carrying.join().unwrap();
    if done.status.success() {
        server.kill().unwrap();
    }
    (server.wait_with_output().unwrap(), done.status.success())
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_ttcp");

/// Asserts that a server detects wrong bytes late in a flood of every type, and accepts a correct flood.
fn finds(dir: &Path, server: &str, client: &str, types: &[&str]) {
    for element in types {
        let client = words(&format!("{client} --type {element} --size 24576 --total 200000"));
        let server = || {
            let mut words = server.split(' ');
            let mut command = Command::new(words.next().unwrap());
            command.args(words).current_dir(dir).stdin(Stdio::null());
            command
        };
        let (told, good) = flood(dir, server(), &client, None);
        assert!(good, "{element}: {}", text(&told.stderr));
        // Within a buffer, regardless of headers.
        let (told, good) = flood(dir, server(), &client, Some(100_002));
        let stderr = text(&told.stderr);
        assert!(!good && told.status.code() == Some(4), "{element}: {:?}, {stderr}", told.status);
        assert!(
            stderr.contains("contents differ: element ") && stderr.contains("of a sequence of"),
            "{stderr}"
        );
    }
}

const TYPES: [&str; 6] = ["octet", "char", "short", "long", "double", "struct"];

#[test]
fn sockets_find_what_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let server = format!("{PROGRAM} raw-server --port 0 --check");
    finds(dir.path(), &server, &format!("{PROGRAM} raw-client ttcp --port {{port}}"), &["octet", "struct"]);
}

#[test]
fn zorb_finds_what_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    // With GIOP 1.0 the client sends no preliminary queries, so its first connection carries all data.
    let client = format!("{PROGRAM} client ttcp --ior corbaloc:iiop:1.0@127.0.0.1:{{port}}");
    let mut all = TYPES.to_vec();
    all.push("zstruct");
    for skeleton in ["ssi", "dsi"] {
        let server =
            format!("{PROGRAM} server --skeleton {skeleton} --check --ior {}/s.ior", dir.path().display());
        finds(dir.path(), &server, &client, &all);
    }
}

#[test]
fn external_peers_find_what_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Path::new(PROGRAM).parent().unwrap().parent().unwrap().join("ttcp-peers");
    let all: [(&str, &str, &[&str]); 3] =
        [("c", "", &["octet"]), ("cxx", "", &["octet"]), ("rpc", "", &TYPES)];
    for (peer, more, types) in all.into_iter().chain([("rpc", " --opaque", &TYPES[..])]) {
        if is_left_out(&text(&run(dir.path(), &["peers", "build", peer]).stderr)) {
            continue;
        }
        let folder = folder.join(peer);
        let server = format!("{}/bench-server --fresh --check --port 0", folder.display());
        let client = format!("{}/bench-client ttcp --port {{port}}{more}", folder.display());
        finds(dir.path(), &server, &client, types);
    }
}

/// An experiment does not measure a peer whose contents are wrong.
#[test]
fn cells_of_a_peer_whose_contents_differ_are_not_measured() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().port();
    // The client reports the server's port to the carrier.
    let script = format!("echo $1 >port\nshift\nexec {PROGRAM} raw-client \"$@\" --port {at}\n");
    fs::write(dir.path().join("client.sh"), script).unwrap();
    let file = dir.path().join("port");
    let carrying = thread::spawn(move || {
        let port = || fs::read_to_string(file).unwrap().trim().parse().unwrap();
        carry(&listener, port, Some(50_000));
    });
    let wrong =
        format!("wrong={PROGRAM} raw-server --lifeline --port 0 {{check}}::sh client.sh {{port}} {{args}}");
    let mute = format!("mute={PROGRAM} raw-server --lifeline --port 0::{PROGRAM} raw-client --port {{port}}");
    let line = "throughput --quick --types octet --sizes 16K,64K --total 128K --links loopback --peers raw --out r --peer";
    let mut arguments: Vec<&str> = line.split(' ').collect();
    arguments.extend([wrong.as_str(), "--peer", mute.as_str()]);
    let out = ttcp(dir.path(), &arguments).output().unwrap();
    carrying.join().unwrap();
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{stderr}");
    let told = "throughput, wrong, 16 KiB";
    assert!(
        stderr.contains("contents of mute are not checked: its server command has no {check}"),
        "{stderr}"
    );
    assert!(stderr.contains("contents differ: element ") && !stderr.contains(told), "{stderr}");

    let mut good = BTreeMap::new();
    for sample in samples(&dir.path().join("r")) {
        let peer = sample["peer"].as_str().unwrap().to_owned();
        let failure = sample["failure"].as_str().unwrap_or_default();
        assert!(failure.is_empty() || failure.starts_with("contents differ: element "), "{failure}");
        *good.entry(peer).or_insert(0) += i32::from(failure.is_empty());
    }
    assert_eq!(good, [("mute".into(), 2), ("raw".into(), 2), ("wrong".into(), 0)].into(), "{stderr}");
    let checked: Vec<_> = all_samples(&dir.path().join("r"))
        .into_iter()
        .filter(|sample| sample["cell"]["pass"] == "integrity")
        .map(|sample| (sample["peer"].as_str().unwrap().to_owned(), sample["figures"]["checked_mb"].as_f64()))
        .collect();
    assert_eq!(checked.len(), 2, "{checked:?}");
    assert!(checked[0].0 == "raw" && checked[0].1.is_some_and(|mb| (0.25..0.3).contains(&mb)), "{checked:?}");
    assert_eq!(checked[1], ("wrong".into(), None));
    let stdout = text(&out.stdout);
    assert!(
        stdout.contains(
            "found no difference: raw (floods: 1, 0.3 MB). Peers without a successful check: wrong, mute."
        ),
        "{stdout}"
    );
}
