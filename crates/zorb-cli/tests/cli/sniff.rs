//! `zorb sniff` of captures that are made here.

use std::path::Path;

use giop_codec::cdr::CdrEncode;
use giop_codec::code_set::{CodeSetContext, CodeSetId};
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    BiDirIiopServiceContext, ContextId, ListenPoint, LocateReplyHeader, LocateRequestHeader, LocateStatus,
    MessageType, ReplyStatus, RequestId, ServiceContext, TargetAddress,
};
use giop_codec::ior::{IiopProfile, Ior};
use giop_codec::{ByteOrder, Version};
use zorb::Bytes;

use super::wire::{Capture, Flag, Form, Line, USUAL, fragments};
use super::{Run, bank, zorb};

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.0.2:2809";

fn sniffed(folder: &Path, file: &[u8], more: &[&str]) -> Run {
    let path = folder.join("x.pcap");
    std::fs::write(&path, file).unwrap();
    let idl = bank();
    let args = ["sniff", path.to_str().unwrap(), "--idl", idl.path().to_str().unwrap()];
    zorb(&[&args[..], more].concat(), "")
}

fn one_call(client: &str, server: &str) -> Capture {
    let (mut capture, mut line) = (Capture::new(), Line::new(client, server));
    capture.open(&mut line);
    let [request, reply] = USUAL.deposit(7, 2.5, &[1, 2]);
    capture.send(&mut line, true, &request);
    capture.send(&mut line, false, &reply);
    capture.close(&line);
    capture
}

#[test]
fn captures_of_every_link_and_form_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let told = |file: &[u8]| {
        let run = sniffed(folder.path(), file, &[]);
        assert_eq!(run.code, 0, "{}", run.err);
        run.out
    };
    let four = one_call(CLIENT, SERVER);
    let first = told(&four.pcap(1, false, false));
    insta::assert_snapshot!(first, @r#"
    0.000000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #7 {"amount":2.5,"coins":[1,2]}
    0.000100  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #7 {"$result":3.5,"note":"thanks"}  100 us
    "#);
    for link in [113, 276, 0, 108, 101, 228] {
        assert_eq!(told(&four.pcap(link, false, false)), first, "{link}");
    }
    // A VLAN of Ethernet, which is no link of its own.
    let mut vlan = four.pcap(1001, false, false);
    vlan[20..24].copy_from_slice(&1_u32.to_le_bytes());
    assert_eq!(told(&vlan), first);
    assert_eq!(told(&four.pcap(1, true, true)), first);
    assert_eq!(told(&four.pcapng(1)), first);
    let six = one_call("[fd00::1]:40000", "[fd00::2]:2809");
    let first = told(&six.pcapng(113));
    assert!(first.contains("[fd00::1]:40000 > [fd00::2]:2809"), "{first}");
    for link in [1, 0, 108, 276, 101] {
        assert_eq!(told(&six.pcap(link, false, false)), first, "{link}");
    }
}

#[test]
fn segments_are_put_in_order_and_what_is_missing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut capture, mut line) = (Capture::new(), Line::new(CLIENT, SERVER));
    capture.open(&mut line);
    let [first, answer] = USUAL.deposit(1, 1.0, &[7; 40]);
    // In three segments: the last one first, the second twice, and the first with a part of the second.
    let (a, b) = (first.len() / 3, first.len() / 3 * 2);
    capture.packet(&line, true, Flag::Data, b as i32, &first[b..]);
    capture.packet(&line, true, Flag::Data, a as i32, &first[a..b]);
    capture.packet(&line, true, Flag::Data, a as i32, &first[a..b]);
    capture.packet(&line, true, Flag::Data, 0, &first[..a + 5]);
    capture.skip(&mut line, true, first.len());
    capture.send(&mut line, false, &answer);
    // Of the second call the middle was not captured; of the third one all was.
    let [second, answer] = USUAL.deposit(2, 2.0, &[7; 40]);
    capture.packet(&line, true, Flag::Data, 0, &second[..a]);
    capture.packet(&line, true, Flag::Data, b as i32, &second[b..]);
    capture.skip(&mut line, true, second.len());
    capture.send(&mut line, false, &answer);
    let [third, answer] = USUAL.deposit(3, 3.0, &[7]);
    capture.send(&mut line, true, &third);
    capture.send(&mut line, false, &answer);
    capture.close(&line);
    let run = sniffed(folder.path(), &capture.pcap(1, false, false), &[]);
    assert_eq!(run.code, 0);
    let coins = vec!["7"; 40].join(",");
    insta::assert_snapshot!(run.out.replace(&coins, "7..."), @r#"
    0.000000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #1 {"amount":1.0,"coins":[7...]}
    0.000100  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #1 {"$result":2.0,"note":"thanks"}  100 us
    0.000400  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #2  (a part of the message is missing)
    0.000400  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #2 {"$result":3.0,"note":"thanks"}
    0.000500  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #3 {"amount":3.0,"coins":[7]}
    0.000600  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #3 {"$result":4.0,"note":"thanks"}  100 us
    "#);
    insta::assert_snapshot!(run.err, @"1 connection; 2 requests; 3 replies; 1 message is incomplete; 76 bytes are missing in the capture; 3 segments out of order; 1 repeated segment; 1 overlapping segment");
}

#[test]
fn every_version_in_both_orders_and_in_fragments() {
    let folder = tempfile::tempdir().unwrap();
    let (mut capture, mut line) = (Capture::new(), Line::new(CLIENT, SERVER));
    capture.open(&mut line);
    let mut id = 0;
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            id += 1;
            let [request, reply] = Form(version, order).deposit(id, id.into(), &[1, 2, 3]);
            capture.send(&mut line, true, &request);
            capture.send(&mut line, false, &reply);
        }
    }
    for (version, cuts) in [(Version::V1_1, [64, 72]), (Version::V1_2, [32, 64])] {
        id += 1;
        let [request, reply] = Form(version, ByteOrder::Big).deposit(id, 0.5, &[1, 2, 3, 4]);
        capture.send(&mut line, true, &fragments(&request, &cuts));
        capture.send(&mut line, false, &reply);
    }
    // A capture that begins within a connection, and within a message.
    let mut late = Line::new("10.0.0.1:40001", SERVER);
    let [request, reply] = USUAL.deposit(1, 1.0, &[]);
    capture.send(&mut late, true, &request[30..]);
    capture.send(&mut late, false, &reply);
    let [request, reply] = USUAL.deposit(2, 2.0, &[]);
    capture.send(&mut late, true, &request);
    capture.send(&mut late, false, &reply);
    let run = sniffed(folder.path(), &capture.pcapng(1), &[]);
    insta::assert_snapshot!(run.out, @r#"
    0.000000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #1 {"amount":1.0,"coins":[1,2,3]}
    0.000100  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #1 {"$result":2.0,"note":"thanks"}  100 us
    0.000200  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #2 {"amount":2.0,"coins":[1,2,3]}
    0.000300  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #2 {"$result":3.0,"note":"thanks"}  100 us
    0.000400  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #3 {"amount":3.0,"coins":[1,2,3]}
    0.000500  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #3 {"$result":4.0,"note":"thanks"}  100 us
    0.000600  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #4 {"amount":4.0,"coins":[1,2,3]}
    0.000700  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #4 {"$result":5.0,"note":"thanks"}  100 us
    0.000800  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #5 {"amount":5.0,"coins":[1,2,3]}
    0.000900  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #5 {"$result":6.0,"note":"thanks"}  100 us
    0.001000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #6 {"amount":6.0,"coins":[1,2,3]}
    0.001100  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #6 {"$result":7.0,"note":"thanks"}  100 us
    0.001200  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #7 {"amount":0.5,"coins":[1,2,3,4]}
    0.001300  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #7 {"$result":1.5,"note":"thanks"}  100 us
    0.001400  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.deposit #8 {"amount":0.5,"coins":[1,2,3,4]}
    0.001500  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account.deposit #8 {"$result":1.5,"note":"thanks"}  100 us
    0.001700  1  10.0.0.2:2809 > 10.0.0.1:40001  reply (unknown operation) #1 0x0000000000000040070000007468616e6b7300  (the request is unknown: not captured, or too many pending)
    0.001800  1  10.0.0.1:40001 > 10.0.0.2:2809  Bank::Account.deposit #2 {"amount":2.0,"coins":[]}
    0.001900  1  10.0.0.2:2809 > 10.0.0.1:40001  reply Bank::Account.deposit #2 {"$result":3.0,"note":"thanks"}  100 us
    "#);
    assert!(run.err.contains("2 connections; 9 requests; 10 replies"), "{}", run.err);
    let json = sniffed(folder.path(), &capture.pcapng(1), &["--json", "--filter", "operation=dep*"]).out;
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of =
        |id: u64| lines.iter().find(|line| line["request"] == id && line["message"] == "request").unwrap();
    assert_eq!((&of(1)["giop"], &of(1)["little_endian"]), (&"1.0".into(), &false.into()));
    assert_eq!((&of(8)["fragments"], &of(8)["body"]["coins"][3]), (&3.into(), &4.into()));
    assert_eq!(lines.last().unwrap()["summary"]["calls"]["requests"], 9);
}

#[test]
fn exceptions_forwards_contexts_and_the_rest_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut capture, mut line) = (Capture::new(), Line::new(CLIENT, SERVER));
    capture.open(&mut line);
    let sets = CodeSetContext { char_data: CodeSetId(0x0501_0001), wchar_data: CodeSetId(0x0001_0109) };
    let points = BiDirIiopServiceContext { listen_points: vec![ListenPoint::new("client", 1234)] };
    let unknown = ServiceContext { id: ContextId(0x1234_5678), data: Bytes::from_static(b"\0\x1b[31m") };
    let contexts = [sets.to_service_context().unwrap(), points.to_service_context().unwrap(), unknown];
    let form = USUAL;
    let mut id = 0;
    let mut call = |operation: &str, status, body: &dyn Fn(&mut giop_codec::cdr::Encoder)| {
        id += 1;
        let contexts = if id == 1 { &contexts[..] } else { &[] };
        capture.send(&mut line, true, &form.request(id, b"Account\xff", operation, contexts, |_| {}));
        capture.send(&mut line, false, &form.reply(id, status, &[], body));
    };
    // The code sets apply to the following messages.
    call("_get_owner", ReplyStatus::NoException, &|e| {
        e.put_len(5).unwrap();
        e.put_raw("Zoë\0".as_bytes());
    });
    call("_get_limit", ReplyStatus::UserException, &|e| {
        e.put_unconverted_str("IDL:Bank/Broke:1.0").unwrap();
        e.put_f64(1.5);
    });
    call("_get_limit", ReplyStatus::UserException, &|e| e.put_unconverted_str("IDL:Other:1.0").unwrap());
    call("_get_limit", ReplyStatus::SystemException, &|e| {
        SystemException::no_implement().encode(e).unwrap();
    });
    let elsewhere = IiopProfile::new("10.0.0.3", 99, b"Other"[..].into());
    let elsewhere = Ior::from_profiles("IDL:Bank/Account:1.0", &[elsewhere]).unwrap();
    call("_get_limit", ReplyStatus::LocationForward, &|e| elsewhere.encode(e).unwrap());
    call("_get_limit", ReplyStatus::NeedsAddressingMode, &|e| e.put_i16(2));
    call("_get_limit", ReplyStatus::NoException, &|e| e.put_u8(1));
    call("nobody_knows", ReplyStatus::NoException, &|e| e.put_u32(0x0102_0304));
    call("\u{1b}[2Jbell\u{7}", ReplyStatus::NoException, &|_| {});
    call("_is_a", ReplyStatus::NoException, &|e| e.put_u8(1));
    capture.send(
        &mut line,
        true,
        &form.request(90, b"Account", "poke", &[], |e| e.put_unconverted_str("x").unwrap()),
    );
    let locate =
        |id| LocateRequestHeader { request_id: RequestId(id), target: TargetAddress::Key(b"Account") };
    capture.send(
        &mut line,
        true,
        &form.message(MessageType::LocateRequest, |e| locate(91).encode(e).unwrap()),
    );
    let status = LocateStatus::UnknownObject;
    let answer = LocateReplyHeader { request_id: RequestId(91), status };
    capture.send(&mut line, false, &form.message(MessageType::LocateReply, |e| answer.encode(e).unwrap()));
    capture.send(&mut line, true, &form.request(92, b"Account", "_get_limit", &[], |_| {}));
    capture.send(&mut line, true, &form.message(MessageType::CancelRequest, |e| e.put_u32(92)));
    // The other way, over the same connection.
    capture.send(&mut line, false, &form.request(7, b"Callback", "_get_owner", &[], |_| {}));
    capture.send(
        &mut line,
        true,
        &form.reply(7, ReplyStatus::NoException, &[], |e| e.put_unconverted_str("me").unwrap()),
    );
    capture.send(&mut line, true, &form.message(MessageType::MessageError, |_| {}));
    capture.send(&mut line, false, &form.reply(99, ReplyStatus::NoException, &[], |_| {}));
    capture.send(&mut line, false, &form.message(MessageType::CloseConnection, |_| {}));
    capture.close(&line);
    let file = capture.pcap(1, false, false);
    let run = sniffed(folder.path(), &file, &[]);
    insta::assert_snapshot!(run.out, @r#"
    0.000000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Base._get_owner #1
    0.000100  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Base._get_owner #1 {"$result":"Zoë"}  100 us
    0.000200  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account._get_limit #2
    0.000300  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account._get_limit #2 user_exception {"$exception":"IDL:Bank/Broke:1.0","missing":1.5}  100 us
    0.000400  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account._get_limit #3
    0.000500  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account._get_limit #3 user_exception 0x0e00000049444c3a4f746865723a312e3000  100 us  (raises IDL:Other:1.0)
    0.000600  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account._get_limit #4
    0.000700  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account._get_limit #4 system_exception {"$exception":"IDL:omg.org/CORBA/NO_IMPLEMENT:1.0","completed":"COMPLETED_NO","minor":0}  100 us
    0.000800  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account._get_limit #5
    0.000900  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account._get_limit #5 location_forward {"$forward":<IDL:Bank/Account:1.0 at 10.0.0.3:99>}  100 us
    0.001000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account._get_limit #6
    0.001100  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account._get_limit #6 needs_addressing_mode  100 us  (the server requires the addressing mode Reference)
    0.001200  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account._get_limit #7
    0.001300  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Account._get_limit #7 0x01  100 us  (the body does not fit the IDL: $result: data ends inside a value (at byte 24))
    0.001400  0  10.0.0.1:40000 > 10.0.0.2:2809  nobody_knows #8
    0.001500  0  10.0.0.2:2809 > 10.0.0.1:40000  reply nobody_knows #8 0x04030201  100 us
    0.001600  0  10.0.0.1:40000 > 10.0.0.2:2809  \x1b[2Jbell\x07 #9
    0.001700  0  10.0.0.2:2809 > 10.0.0.1:40000  reply \x1b[2Jbell\x07 #9  100 us
    0.001800  0  10.0.0.1:40000 > 10.0.0.2:2809  _is_a #10  (the body does not fit the IDL: logical_type_id: data ends inside a value (at byte 56))
    0.001900  0  10.0.0.2:2809 > 10.0.0.1:40000  reply _is_a #10 {"$result":true}  100 us
    0.002000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account.poke #90 oneway {"what":"x"}
    0.002100  0  10.0.0.1:40000 > 10.0.0.2:2809  locate_request #91 Account
    0.002200  0  10.0.0.2:2809 > 10.0.0.1:40000  locate_reply #91 unknown_object  100 us
    0.002300  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Account._get_limit #92
    0.002400  0  10.0.0.1:40000 > 10.0.0.2:2809  cancel_request #92 _get_limit  100 us
    0.002500  0  10.0.0.2:2809 > 10.0.0.1:40000  Bank::Base._get_owner #7
    0.002600  0  10.0.0.1:40000 > 10.0.0.2:2809  reply Bank::Base._get_owner #7 {"$result":"me"}  100 us
    0.002700  0  10.0.0.1:40000 > 10.0.0.2:2809  message_error
    0.002800  0  10.0.0.2:2809 > 10.0.0.1:40000  reply (unknown operation) #99  (the request is unknown: not captured, or too many pending)
    0.002900  0  10.0.0.2:2809 > 10.0.0.1:40000  close_connection
    "#);
    let verbose = sniffed(folder.path(), &file, &["--verbose", "--filter", "operation=_get_owner"]).out;
    insta::assert_snapshot!(verbose.lines().take(7).collect::<Vec<_>>().join("\n"), @r#"
    0.000000  0  10.0.0.1:40000 > 10.0.0.2:2809  Bank::Base._get_owner #1
        GIOP 1.2, little-endian, 128 bytes, key Account\xff
        CodeSets (12 bytes) char UTF-8 (0x05010001), wchar UTF-16 (0x00010109)
        BI_DIR_IIOP (22 bytes) client:1234
        0x12345678 (6 bytes)
    0.000100  0  10.0.0.2:2809 > 10.0.0.1:40000  reply Bank::Base._get_owner #1 {"$result":"Zoë"}  100 us
        GIOP 1.2, little-endian, 33 bytes, key Account\xff
    "#);
    // Filters: by type, by peer, and both.
    let told = |filter: &[&str]| sniffed(folder.path(), &file, filter).out.lines().count();
    assert_eq!(told(&["--filter", "type=Bank::Base"]), 4);
    assert_eq!(told(&["--filter", "type=Bank/*", "--filter", "operation=poke"]), 1);
    assert_eq!(told(&["--filter", "peer=10.0.0.9"]), 0);
    assert_eq!(told(&["--filter", "peer=10.0.0.2:2809"]), run.out.lines().count());
    assert_eq!(sniffed(folder.path(), &file, &["--filter", "size=3"]).code, 2);
}

#[test]
fn what_is_no_giop_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = one_call(CLIENT, SERVER);
    for (port, octets) in [
        (40001, &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03secret"[..]),
        (40002, b"GET / HTTP/1.1\r\n\r\n"),
    ] {
        let mut line = Line::new(&format!("10.0.0.1:{port}"), SERVER);
        capture.open(&mut line);
        capture.send(&mut line, true, octets);
        capture.close(&line);
    }
    let run = sniffed(folder.path(), &capture.pcap(1, false, false), &[]);
    assert_eq!((run.code, run.out.lines().count()), (0, 2));
    assert!(run.err.contains("1 connection uses TLS and cannot be read"), "{}", run.err);
    assert!(run.err.contains("1 connection uses another protocol"), "{}", run.err);
    // A capture that is cut off says what was before, and that.
    let whole = one_call(CLIENT, SERVER).pcap(1, false, false);
    let run = sniffed(folder.path(), &whole[..whole.len() - 100], &[]);
    assert_eq!((run.code, run.out.lines().count()), (0, 2), "{}", run.err);
    assert!(run.err.contains("truncated by the end of the file"), "{}", run.err);
    for (file, why) in [
        (&b""[..], "the capture is empty"),
        (b"this is no capture at all, not even a bit of one", "not a capture in the format pcap or pcapng"),
        (&one_call(CLIENT, SERVER).pcap(147, false, false), "link type 147"),
    ] {
        let run = sniffed(folder.path(), file, &[]);
        assert!(run.code == 3 && run.err.contains(why), "{why}: {}", run.err);
    }
    let nothing = sniffed(folder.path(), &Capture::new().pcap(1, false, false), &[]);
    assert_eq!(nothing.code, 1);
}
