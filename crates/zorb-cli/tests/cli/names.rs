//! Names on the command line: what is missing, what changes, files that are damaged, disks that are full.

use std::io::{BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::live::Beside;
use super::start::{admin, admin_address};
use super::{Names, Run, zorb};

const OBJECT: &str = "corbaloc:iiop:1.2@127.0.0.1:1/x";
const OTHER: &str = "corbaloc:iiop:1.2@127.0.0.1:2/y";

fn names(url: &str, args: &[&str]) -> Run {
    zorb(&[&["names", "--service", url][..], args].concat(), "")
}

#[test]
fn the_context_that_is_missing_on_the_way_to_a_name_is_named() {
    let served = Names::kept(&["--memory"]);
    for options in [&[][..], &["--context"], &["--replace"]] {
        let wrong = names(&served.url, &[&["bind", "ü/é", &served.url][..], options].concat());
        assert_eq!(wrong.code, 1, "{}", wrong.err);
        assert!(
            wrong.err.contains("`ü/é`: there is no context `ü`") && wrong.err.contains("--parents"),
            "{}",
            wrong.err
        );
    }
    assert_eq!(names(&served.url, &["make", "ü"]).code, 0);
    let wrong = names(&served.url, &["bind", "ü/a/b/é", OBJECT]);
    assert!(wrong.err.contains("there is no context `ü/a`"), "{}", wrong.err);
    assert_eq!(names(&served.url, &["bind", "ü/a/b/é", OBJECT, "--parents"]).code, 0);
    let wrong = names(&served.url, &["resolve", "ü/a/x"]);
    assert!(
        wrong.err.contains("nothing is bound to `ü/a/x`") && !wrong.err.contains("--parents"),
        "{}",
        wrong.err
    );
}

/// The bytes of Sun's bootstrap protocol, as the JDK's ORB writes them: GIOP 1.0, big endian,
/// `get("NameService")` with the key INIT.
#[test]
fn a_program_that_knows_host_and_port_finds_the_names() {
    let served = Names::kept(&["--memory", "--bootstrap"]);
    let address = served.url.split_once('@').unwrap().1.split_once('/').unwrap().0;
    let mut body = Vec::new();
    body.extend([0; 4]); // No service contexts.
    body.extend(7_u32.to_be_bytes()); // The number of the request.
    body.extend([1, 0, 0, 0]); // An answer is expected.
    body.extend(4_u32.to_be_bytes());
    body.extend(*b"INIT");
    body.extend(4_u32.to_be_bytes());
    body.extend(*b"get\0");
    body.extend([0; 4]); // No principal.
    body.extend(12_u32.to_be_bytes());
    body.extend(*b"NameService\0");
    let mut request = b"GIOP\x01\0\0\0".to_vec();
    request.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    request.extend(body);
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.write_all(&request).unwrap();
    let mut header = [0; 12];
    socket.read_exact(&mut header).unwrap();
    assert_eq!(header[..6], *b"GIOP\x01\0");
    assert_eq!(header[7], 1, "a reply");
    let size: [u8; 4] = header[8..].try_into().unwrap();
    let size = if header[6] == 0 { u32::from_be_bytes(size) } else { u32::from_le_bytes(size) };
    let mut reply = vec![0; size as usize];
    socket.read_exact(&mut reply).unwrap();
    let id = b"IDL:omg.org/CosNaming/NamingContextExt:1.0\0";
    assert!(reply.windows(id.len()).any(|window| window == id), "{reply:?}");
}

/// Changes that are told, until one of them satisfies that.
fn changes(watch: &mut Beside, until: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let line = watch.line();
        assert!(!line.is_empty(), "it ends: {all:?}");
        all.push(serde_json::from_str(&line).unwrap());
        if all.last().is_some_and(&until) {
            return all;
        }
    }
}

#[test]
fn changes_of_names_are_told_as_they_come() {
    let served = Names::kept(&["--memory"]);
    assert_eq!(names(&served.url, &["bind", "bank/old", OBJECT, "--parents"]).code, 0);
    let args = ["--json", "names", "--service", &served.url, "watch", "--interval", "20ms"];
    let mut watch = Beside::zorb(&args);
    assert_eq!(changes(&mut watch, |_| true), [json!({ "change": "watching", "names": 2 })]);
    assert_eq!(names(&served.url, &["bind", "bank/new", OBJECT]).code, 0);
    let told = changes(&mut watch, |change| change["name"] == "bank/new");
    assert_eq!((&told[0]["change"], &told[0]["context"]), (&json!("bound"), &json!(false)));
    let reference = told[0]["reference"].as_str().unwrap();
    assert!(reference.starts_with("IOR:"), "{reference}");
    assert_eq!(names(&served.url, &["bind", "--replace", "bank/new", OTHER]).code, 0);
    let told = changes(&mut watch, |change| change["change"] == "rebound");
    assert!(told.len() == 1 && told[0]["reference"].as_str().unwrap() != reference, "{told:?}");
    assert_eq!(names(&served.url, &["unbind", "bank/old"]).code, 0);
    assert_eq!(names(&served.url, &["make", "other"]).code, 0);
    let told = changes(&mut watch, |change| change["name"] == "other");
    assert!(told.contains(&json!({ "change": "unbound", "name": "bank/old", "context": false })), "{told:?}");
    assert!(told.contains(&json!({ "change": "bound", "name": "other", "context": true })), "{told:?}");
    // A service that is away has not lost its names.
    drop(served);
    changes(&mut watch, |change| change["change"] == "away");
    assert_eq!(watch.interrupt(), 0);
}

#[test]
fn watch_with_a_closed_output_ends_without_an_error() {
    let served = Names::kept(&["--memory"]);
    let mut watch = Command::new(env!("CARGO_BIN_EXE_zorb"))
        .args(["names", "--service", &served.url, "watch", "--interval", "1s"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Without a change it has nothing to write.
    drop(watch.stdout.take());
    let status = watch.wait().unwrap();
    let mut err = String::new();
    std::io::Read::read_to_string(&mut watch.stderr.take().unwrap(), &mut err).unwrap();
    assert!(status.success() && !err.contains("panicked") && !err.contains("zorb:"), "{status}: {err}");
}

#[test]
fn repair_gets_all_names_back_and_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let served = Names::start(&store);
    for name in ["a", "b/c", "b/d"] {
        assert_eq!(names(&served.url, &["bind", name, OBJECT, "--parents"]).code, 0);
    }
    let before = names(&served.url, &["tree"]).out;
    drop(served);
    let whole = std::fs::read(&store).unwrap();
    for place in [3, 70, 4096 + 10, whole.len() / 2] {
        let mut damaged = whole.clone();
        // A page of it.
        damaged.iter_mut().skip(place).take(4096).for_each(|byte| *byte ^= 0x11);
        std::fs::write(&store, &damaged).unwrap();
        let run = zorb(&["--json", "names", "repair", store.to_str().unwrap()], "");
        assert_eq!((run.code, run.err.as_str()), (0, ""), "byte {place}");
        let told = run.json();
        assert_eq!((&told["bindings"], &told["lost"]), (&json!(4), &json!(0)), "byte {place}");
        let served = Names::start(&store);
        assert_eq!(names(&served.url, &["tree"]).out, before);
        let run = zorb(&["names", "repair", store.to_str().unwrap()], "");
        assert!(run.code == 3 && run.err.contains("is in use"), "{}", run.err);
    }
}

/// A disk that takes nothing for a moment: the process may not write files for so long.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told_in_the_log_and_in_the_health_until_it_takes_names_again() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let mut server = Beside::spawn(
        Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_zorb"), "names", "serve"])
            .args(["--listen", "iiop://127.0.0.1:0", "--admin", "127.0.0.1:0", "--store"])
            .arg(&store)
            .stderr(Stdio::piped()),
    );
    let mut err = BufReader::new(server.child.stderr.take().unwrap());
    let admin_at = admin_address(&mut err);
    let line = server.line();
    let url = line.split_whitespace().last().unwrap().to_owned();
    let pid = Pid::from_child(&server.child);
    let may_write = |bytes: Option<u64>| {
        prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    };
    assert_eq!(names(&url, &["bind", "before", OBJECT]).code, 0);
    assert!(admin(&admin_at, "/health").starts_with("HTTP/1.1 200"));
    may_write(Some(1));
    let refused = names(&url, &["bind", "during", OBJECT]);
    assert!(refused.code == 1 && refused.err.contains("PERSIST_STORE"), "{}", refused.err);
    let health = admin(&admin_at, "/health");
    assert!(health.starts_with("HTTP/1.1 503") && health.contains("names cannot be stored in"), "{health}");
    let mut logged = String::new();
    std::io::BufRead::read_line(&mut err, &mut logged).unwrap();
    assert!(logged.contains("ERROR") && logged.contains("names cannot be stored"), "{logged}");
    assert_eq!(names(&url, &["resolve", "before"]).code, 0);
    may_write(None);
    let until = Instant::now() + Duration::from_secs(60);
    while !admin(&admin_at, "/health").starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < until, "it does not recover");
    }
    assert_eq!(names(&url, &["bind", "after", OBJECT]).code, 0);
    drop(server);
    let served = Names::start(&store);
    assert_eq!(names(&served.url, &["list"]).out, "after\nbefore\n");
}
