//! Untrusted text with escape sequences, line breaks and bidirectional overrides never reaches a terminal
//! unchanged.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use giop_codec::cdr::{CdrEncode, Decoder, Encoder};
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, Message, MessageHeader, MessageType, ReplyHeader, ReplyStatus,
    ServiceContexts, begin_body, finish_message, put_message_header,
};
use giop_codec::ior::{ComponentTag, IiopProfile, Ior, TaggedComponent};
use giop_codec::is_printable;
use serde_json::json;
use zorb::cos_naming::{NameComponent, print_name};
use zorb::prelude::*;

use super::terminal::Terminal;
use super::wire::{Capture, Form, Line};
use super::{Run, beside, zorb};

/// A title, a question to the terminal, a line that looks like one of zorb's, a carriage return; and the text
/// of an escape.
const ASCII: &str = "\u{1b}]0;owned\u{7}\u{1b}[5n\nzorb: all is well\r\\x41";
/// How it is shown.
const SHOWN: &str = r"\x1b]0;owned\x07\x1b[5n\nzorb: all is well\r\\x41";

/// The same with a control sequence of C1, an override, an isolate and a zero-width character, followed by a
/// character that remains unchanged.
fn wide() -> String {
    format!("{ASCII}\u{9b}5n\u{202e}\u{2066}\u{200b}ü")
}

/// Runs a command in its own terminal. The output must contain `wanted`, and no characters that a terminal
/// interprets or hides except line breaks.
fn shows(args: &[&str], wanted: &str) {
    let mut terminal = Terminal::start(&[args, &["--color", "never"]].concat(), &[]);
    let shown = terminal.until("");
    is_plain(&shown, args);
    // A terminal of 200 columns does not wrap by itself: lines are as they were written.
    assert!(shown.contains(wanted), "{args:?}: no {wanted} in\n{shown}");
    for line in shown.lines() {
        assert!(!line.starts_with("zorb: all is well"), "{args:?}: a line is forged\n{shown}");
    }
}

fn is_plain(shown: &str, args: &[&str]) {
    let left: Vec<char> =
        shown.replace("\r\n", "\n").chars().filter(|c| *c != '\n' && !is_printable(*c)).collect();
    assert!(left.is_empty(), "{args:?} lets through {left:?}:\n{shown}");
}

fn hostile_ior(port: u16) -> String {
    let host = format!("host{ASCII}.invalid");
    let mut e = Encoder::new(giop_codec::ByteOrder::Big, giop_codec::Version::V1_2);
    e.put_u8(0);
    e.put_unconverted_str(ASCII).unwrap();
    let codebase = TaggedComponent { tag: ComponentTag::JAVA_CODEBASE, data: e.into_bytes() };
    let profile = IiopProfile::new(host, port, format!("key{}", wide()).into_bytes().into())
        .with_component(codebase)
        .with_component(TaggedComponent::alternate_address(ASCII, 7).unwrap());
    Ior::from_profiles(format!("IDL:{ASCII}:1.0"), &[profile]).unwrap().to_string()
}

#[test]
fn references_are_shown_escaped() {
    let ior = hostile_ior(4711);
    for (args, wanted) in [
        (&["ior", "dump"][..], SHOWN),
        (&["ior", "check", "--timeout", "1s"], SHOWN),
        (&["ping", "-c", "1", "--timeout", "1s"], SHOWN),
        (&["call", "--timeout", "1s"], SHOWN),
    ] {
        shows(&[args, &[&ior]].concat(), wanted);
    }
    let idl = super::bank();
    shows(&["call", &ior, "deposit", "[1, []]", "--idl", idl.path().to_str().unwrap()], SHOWN);
    // Programs get all of it.
    let json = zorb(&["--json", "ior", "dump", &ior], "");
    assert_eq!(json.json()["type_id"], format!("IDL:{ASCII}:1.0"));
    assert!(json.out.chars().all(|c| c == '\n' || is_printable(c)), "{}", json.out);
    shows(&["--json", "ior", "dump", &ior], "");
}

#[test]
fn names_are_shown_escaped_and_complete_as_json() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let store = cos_naming::store::MemoryStore::new();
        let server = cos_naming::Server::builder(store).serve(&orb).unwrap();
        let root = server.root().clone();
        let object: ObjectRef = orb.resolve_unchecked(&hostile_ior(1)).await.unwrap();
        root.bind(&[NameComponent::new(wide(), "")], object).await.unwrap();
        let context = NameComponent::new(format!("context{}", wide()), wide());
        root.bind_new_context(&[context]).await.unwrap();
        let service = root.as_object().to_string();
        let work = move || {
            let at = ["names", "--service", &service];
            for args in [&["tree"][..], &["list"], &["list", "-l"]] {
                shows(&[&at[..], args].concat(), SHOWN);
            }
            let name = print_name(&[NameComponent::new(format!("other{}", wide()), "")]);
            shows(&[&at[..], &["resolve", &name]].concat(), SHOWN);
            let listed = zorb(&[&at[..], &["list", "--json"]].concat(), "").json();
            let all: Vec<&str> =
                listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
            assert!(all.contains(&print_name(&[NameComponent::new(wide(), "")]).as_str()), "{all:?}");
        };
        tokio::task::spawn_blocking(work).await.unwrap();
        orb.shutdown().await;
    });
}

#[test]
fn answers_and_logs_of_calls_are_shown_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let idl = folder.path().join("hostile.idl");
    std::fs::write(
        &idl,
        "interface Echo { exception Broke { string why; }; string echo(in string text) raises (Broke); };",
    )
    .unwrap();
    let idl = idl.to_str().unwrap();
    let script = folder.path().join("script.json");
    let answers = json!({ "Echo": { "interface": "Echo", "operations": { "echo": [
        { "when": { "text": "broke" }, "raises": { "$exception": "IDL:Echo/Broke:1.0", "why": wide() } },
        { "result": wide() } ] } } });
    std::fs::write(&script, answers.to_string()).unwrap();
    let here = folder.path().to_str().unwrap();
    let serve =
        ["serve", "--idl", idl, "--script", script.to_str().unwrap(), "--ior", here, "--color", "never"];
    let trace = ["--", "-ORBtraceLevel", "40"];
    let mut server = Terminal::start(&[&serve[..], &trace].concat(), &[]);
    let ready = server.until("type  IDL:Echo:1.0");
    // A URL has no code sets, and so no text beyond ISO 8859-1.
    let reference = folder.path().join("Echo.ior");
    let call = ["call", reference.to_str().unwrap(), "echo", "--idl", idl];
    // JSON has escapes of its own.
    shows(
        &[&call[..], &["\"x\""]].concat(),
        r"\u001b]0;owned\u0007\u001b[5n\nzorb: all is well\r\\x41\u009b5n\u202e\u2066\u200bü",
    );
    shows(&[&call[..], &["\"broke\""]].concat(), r"\u001b]0;owned\u0007");
    let text = serde_json::to_string(&wide()).unwrap();
    shows(&[&call[..], &[&text]].concat(), "$result");
    let answer = zorb(&[&call[..], &["\"x\"", "--json"]].concat(), "").json();
    assert_eq!(answer["$result"], wide());
    // The reply is told after the call.
    let shown = server.until(r#"Echo.echo {"text":"\u001b]0;owned"#);
    server.interrupt();
    is_plain(&(ready + &shown + &server.until("")), &serve);
}

/// A server that answers each request with a user exception of that id. It answers yes to `_is_a`, and
/// supports LocateRequests.
fn raises(id: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, id) = (stream.unwrap(), id.clone());
            thread::spawn(move || while answer(&mut stream, &id).is_some() {});
        }
    });
    address
}

fn answer(stream: &mut TcpStream, id: &str) -> Option<()> {
    let mut octets = vec![0; MessageHeader::LEN];
    stream.read_exact(&mut octets).ok()?;
    let header = MessageHeader::decode(octets.first_chunk()?).ok()?;
    octets.resize(MessageHeader::LEN + header.size as usize, 0);
    stream.read_exact(&mut octets[MessageHeader::LEN..]).ok()?;
    let mut d = Decoder::new(&octets, header.order, header.version).at(MessageHeader::LEN);
    let mut e = Encoder::new(header.order, header.version);
    let contexts = ServiceContexts::default();
    let size_at = match Message::decode(header.kind, &mut d).ok()? {
        Message::Request(request) => {
            let size_at = put_message_header(&mut e, MessageType::Reply);
            let (status, is_system) = match request.operation {
                "_is_a" => (ReplyStatus::NoException, false),
                "_non_existent" => (ReplyStatus::SystemException, true),
                _ => (ReplyStatus::UserException, false),
            };
            ReplyHeader { request_id: request.request_id, status, contexts }.encode(&mut e).ok()?;
            begin_body(&mut e);
            if status == ReplyStatus::NoException {
                e.put_u8(1);
            } else {
                e.put_unconverted_str(id).ok()?;
            }
            if is_system {
                e.put_u32(0);
                e.put_u32(0);
            }
            size_at
        }
        Message::LocateRequest(locate) => {
            let size_at = put_message_header(&mut e, MessageType::LocateReply);
            let status = LocateStatus::ObjectHere;
            LocateReplyHeader { request_id: locate.request_id, status }.encode(&mut e).ok()?;
            size_at
        }
        _ => return None,
    };
    finish_message(&mut e, size_at).ok()?;
    stream.write_all(e.head()).ok()
}

#[test]
fn exceptions_of_hostile_servers_are_shown_escaped_and_shortened() {
    let long = raises(format!("IDL:{ASCII}{}:1.0", "x".repeat(200_000)));
    let url = format!("corbaloc:iiop:1.2@{long}/key");
    let idl = super::bank();
    let idl = idl.path().to_str().unwrap();
    let more = " more bytes";
    for args in [
        &["ping", &url, "-c", "1"][..],
        &["call", &url, "Bank::Account.deposit", "[1, []]", "--idl", idl],
        &["names", "--service", &url, "list"],
        &["names", "--service", &url, "tree"],
        &["names", "--service", &url, "resolve", "x"],
    ] {
        shows(args, more);
        let Run { out, err, .. } = zorb(args, "");
        let length = out.len() + err.len();
        assert!(length < 10_000, "{args:?} writes {length} bytes");
    }
}

#[test]
fn calls_in_captures_are_shown_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let (mut capture, mut line) = (Capture::new(), Line::new("10.0.0.1:40000", "10.0.0.2:2809"));
    capture.open(&mut line);
    let form = Form(giop_codec::Version::V1_2, giop_codec::ByteOrder::Big);
    capture.send(&mut line, true, &form.request(1, wide().as_bytes(), ASCII, &[], |_| {}));
    let id = |e: &mut Encoder| e.put_unconverted_str(&format!("IDL:{ASCII}:1.0")).unwrap();
    capture.send(&mut line, false, &form.reply(1, ReplyStatus::UserException, &[], id));
    capture.send(
        &mut line,
        true,
        &form.request(2, b"x", "_is_a", &[], |e| e.put_unconverted_str(ASCII).unwrap()),
    );
    let forward = |e: &mut Encoder| hostile_ior(1).parse::<Ior>().unwrap().encode(e).unwrap();
    capture.send(&mut line, false, &form.reply(2, ReplyStatus::LocationForward, &[], forward));
    let path = folder.path().join("x.pcap");
    std::fs::write(&path, capture.pcap(1, false, false)).unwrap();
    let path = path.to_str().unwrap();
    shows(&["sniff", path], SHOWN);
    shows(&["sniff", path, "--verbose"], SHOWN);
    shows(&["sniff", path, "--json"], r"\u001b]0;owned");
    let lines = zorb(&["sniff", path, "--json"], "").out;
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["operation"], ASCII);
}

/// What a server answers through the proxy, and a server that is not there.
#[test]
fn calls_through_a_proxy_are_shown_escaped() {
    let answers = raises(format!("IDL:{ASCII}:1.0")).to_string();
    let nowhere = hostile_ior(1);
    for (to, wanted) in
        [(&answers, format!("raises IDL:{SHOWN}")), (&nowhere, "closed the connection of".to_owned())]
    {
        let args = ["sniff", "--listen", "127.0.0.1:0", "--to", to, "--timeout", "1s", "--color", "never"];
        let mut proxy = Terminal::start(&args, &[]);
        let mut shown = proxy.until(" for ");
        let address = shown.split("listening at ").nth(1).unwrap().split(' ').next().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let form = Form(giop_codec::Version::V1_2, giop_codec::ByteOrder::Big);
        client.write_all(&form.request(1, wide().as_bytes(), ASCII, &[], |_| {})).unwrap();
        shown += &proxy.until(&wanted);
        proxy.interrupt();
        shown += &proxy.until("");
        is_plain(&shown, &args);
        assert!(shown.contains(SHOWN), "{shown}");
        assert!(
            !shown.lines().any(|line| line.starts_with("zorb: all is well")),
            "a line is forged\n{shown}"
        );
    }
}

#[test]
fn what_an_admin_endpoint_says_is_shown_escaped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let status = json!({
        "zorb": wide(), "pid": 1, "started_ms": 1, "uptime_ms": 1000, "ready": true, "endpoints": [wide()], "objects": 2, "open_connections": 3,
        "messages": { "received_bytes": 1, "sent_bytes": 1 }, "pool": { "cap": 1, "held": 1, "queued": 0 },
        "limits": { wide(): 7 }, "bounds_us": [1, 2],
        "served": [{
            "interface": wide(), "operation": wide(), "calls": 1, "user_exceptions": 0, "failures": 0, "max_us": 1.0,
            "buckets": [[0, 1]],
        }],
        "made": [],
    });
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
            while !request.ends_with(b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let body = status.to_string();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    shows(&["top", &address, "--once", "--interval", "1ms"], SHOWN);
    // On the whole terminal the program moves the cursor itself: what peers sent is not among its sequences.
    let mut terminal = Terminal::start(&["top", &address], &[]);
    let shown = terminal.until("owned");
    terminal.press("q");
    let shown = shown + &terminal.until("");
    for sequence in ["\u{1b}]0;", "\u{1b}[5n", "\u{9b}", "\u{202e}", "\u{2066}", "\u{200b}", "\u{7}"] {
        assert!(!shown.contains(sequence), "{sequence:?} is in {shown:?}");
    }
}

#[test]
fn a_live_server_is_shown_as_before() {
    beside(|account, _| {
        let pinged = zorb(&["ping", account, "-c", "1", "--interval", "1ms"], "");
        assert!(pinged.code == 0 && pinged.out.contains("IDL:Bank/Account:1.0"), "{}", pinged.err);
    });
}
