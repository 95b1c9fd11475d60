//! Untrusted values that nest without end, or that are small in a message and large in memory. Every command
//! refuses or survives them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::giop::{MessageHeader, ReplyHeader, ReplyStatus, RequestHeader};
use giop_codec::typecode::TypeCode;
use giop_codec::{ByteOrder, Version};

use super::serve::Server;
use super::wire::{Capture, Line, USUAL};
use super::zorb;

const IDL: &str = "
    valuetype Node { public long v; };
    typedef sequence<Node> Nodes;
    interface Deep { any echo(in any x); long count(in Nodes all); };";

/// As many anys in each other as overflowed the stack of a thread once, and as a message of 12 MB has.
const LEVELS: [usize; 2] = [1_100, 3_000_000];

fn idl(folder: &Path) -> String {
    let path = folder.join("deep.idl");
    std::fs::write(&path, IDL).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Anys in each other, the innermost one empty.
fn put_anys(e: &mut Encoder, levels: usize) {
    e.put_raw(&11_u32.to_le_bytes().repeat(levels));
    e.put_u32(0);
}

fn message(stream: &mut TcpStream) -> Vec<u8> {
    let mut header = [0; MessageHeader::LEN];
    stream.read_exact(&mut header).unwrap();
    let mut body = vec![0; MessageHeader::decode(&header).unwrap().size as usize];
    stream.read_exact(&mut body).unwrap();
    [&header[..], &body].concat()
}

/// The answer of a server to a request, and its body.
fn answer(server: &Server, request: &[u8]) -> (ReplyStatus, Vec<u8>) {
    let address = server.url(0).split(['@', '/']).find(|part| part.contains("127.0.0.1")).unwrap();
    let mut stream = TcpStream::connect(address.rsplit("1.2@").next().unwrap()).unwrap();
    stream.write_all(request).unwrap();
    let reply = message(&mut stream);
    let header = MessageHeader::decode(reply.first_chunk().unwrap()).unwrap();
    let mut d = giop_codec::cdr::Decoder::new(&reply, header.order, header.version).at(MessageHeader::LEN);
    let status = ReplyHeader::decode(&mut d).unwrap().status;
    d.align(8).unwrap();
    (status, d.rest().to_vec())
}

#[test]
fn a_server_refuses_anys_that_are_too_deep_and_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    let idl = idl(folder.path());
    let server = Server::start(&["--idl", &idl, "--object", "D=Deep", "--quiet"]);
    for levels in LEVELS {
        let request = USUAL.request(1, b"D", "echo", &[], |e| put_anys(e, levels));
        let (status, body) = answer(&server, &request);
        assert_eq!(status, ReplyStatus::SystemException);
        assert!(String::from_utf8_lossy(&body).contains("MARSHAL"), "{levels}");
    }
    let called = zorb(&["--json", "call", server.url(0), "Deep.count", "[[]]", "--idl", &idl], "");
    assert_eq!(called.json()["$result"], 0, "{}", called.err);
}

#[test]
fn a_caller_is_told_of_an_answer_that_is_too_deep() {
    let folder = tempfile::tempdir().unwrap();
    let idl = idl(folder.path());
    for levels in LEVELS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("corbaloc:iiop:1.2@{}/D", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let request = message(&mut stream);
            let header = MessageHeader::decode(request.first_chunk().unwrap()).unwrap();
            let mut d =
                giop_codec::cdr::Decoder::new(&request, header.order, header.version).at(MessageHeader::LEN);
            let id = RequestHeader::decode(&mut d).unwrap().request_id;
            let reply = USUAL.reply(id.0, ReplyStatus::NoException, &[], |e| put_anys(e, levels));
            stream.write_all(&reply).unwrap();
            // Until the caller closes.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let null = r#"[{"$type":"null"}]"#;
        let run = zorb(&["--json", "call", &url, "Deep.echo", null, "--idl", &idl], "");
        assert_eq!(run.code, 1, "{}", run.err);
        assert!(run.out.contains("MARSHAL"), "{}", run.out);
        server.join().unwrap();
    }
}

#[test]
fn a_capture_of_anys_that_are_too_deep_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (idl, path) = (idl(folder.path()), folder.path().join("deep.pcap"));
    for levels in LEVELS {
        let (mut capture, mut line) = (Capture::new(), Line::new("10.0.0.1:40000", "10.0.0.2:2809"));
        capture.open(&mut line);
        let request = USUAL.request(1, b"D", "echo", &[], |e| put_anys(e, levels));
        capture.send(&mut line, true, &request);
        capture.close(&line);
        std::fs::write(&path, capture.pcap(1, false, false)).unwrap();
        let run = zorb(&["sniff", path.to_str().unwrap(), "--idl", &idl], "");
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(run.out.contains("the body does not fit the IDL"), "{}", run.out.len());
    }
}

/// Six bytes of JSON for each one of the message.
#[test]
fn a_capture_of_values_that_take_too_much_as_json_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (idl, path) = (folder.path().join("text.idl"), folder.path().join("text.pcap"));
    std::fs::write(&idl, "typedef sequence<char> Text; interface Desk { oneway void keep(in Text all); };")
        .unwrap();
    let shown = |count: usize| {
        let (mut capture, mut line) = (Capture::new(), Line::new("10.0.0.1:40000", "10.0.0.2:2809"));
        capture.open(&mut line);
        let request = USUAL.request(1, b"D", "keep", &[], |e| {
            e.put_len(count).unwrap();
            e.put_raw(&vec![1; count]);
        });
        capture.send(&mut line, true, &request);
        capture.close(&line);
        std::fs::write(&path, capture.pcap(1, false, false)).unwrap();
        let run = zorb(&["sniff", path.to_str().unwrap(), "--idl", idl.to_str().unwrap()], "");
        assert_eq!(run.code, 0, "{}", run.err);
        run.out
    };
    assert!(shown(2).contains(r#"{"all":["\u0001","\u0001"]}"#));
    let long = shown(2 << 20);
    assert!(long.len() < 4 << 10 && long.contains("longer than 16 MiB"), "{}", long.len());
}

/// The most memory that a process ever had, in bytes.
#[cfg(target_os = "linux")]
fn most_memory(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}

/// Nothing of a script needs them, and the log says their size: no tree is made, and no text.
#[test]
#[cfg(target_os = "linux")]
fn arguments_that_nothing_looks_at_take_no_multiple_of_their_message() {
    const REFERENCES: usize = 200_000;
    /// What a message of any size may take, and what a process takes for its first one.
    const LEAST: usize = 16 << 20;
    let folder = tempfile::tempdir().unwrap();
    let idl = idl(folder.path());
    let server = Server::start(&["--idl", &idl, "--object", "D=Deep"]);
    let before = most_memory(&server);
    let request = USUAL.request(1, b"D", "count", &[], |e| {
        e.put_len(1 + REFERENCES).unwrap();
        e.put_u32(0x7FFF_FF00);
        let value = e.position() - 4;
        e.put_i32(7);
        for _ in 0..REFERENCES {
            e.put_u32(u32::MAX);
            e.put_i32(-((e.position() - value) as i32));
        }
    });
    let (status, _) = answer(&server, &request);
    assert_eq!(status, ReplyStatus::NoException);
    let taken = most_memory(&server) - before;
    assert!(taken < LEAST + 8 * request.len(), "{taken} for {}", request.len());

    // A sequence of anys, in each of which 30 are in each other.
    let mut e = Encoder::new(ByteOrder::Little, Version::V1_2);
    TypeCode::sequence(&TypeCode::ANY, 0).encode(&mut e).unwrap();
    let (kind, count) = (e.into_bytes(), 20_000_u32);
    let request = USUAL.request(2, b"D", "echo", &[], |e| {
        e.put_raw(&kind);
        e.align(4);
        e.put_u32(count);
        (0..count).for_each(|_| put_anys(e, 30));
    });
    let (status, body) = answer(&server, &request);
    assert_eq!(status, ReplyStatus::NoException, "{}", String::from_utf8_lossy(&body));
    let taken = most_memory(&server) - before;
    assert!(taken < LEAST + 8 * request.len(), "{taken} for {}", request.len());
}
