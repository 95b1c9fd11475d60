//! Wireshark's dissector on zorb's messages: it finds every message with its kind and version, and none is
//! malformed.
//!
//! The data goes through a relay of the test, which writes the capture, so no privileges are needed. Without
//! `tshark` the test is skipped with a message; with `CI=true` that is a failure.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use giop_codec::Version;
use giop_codec::cdr::CdrEncode;
use giop_codec::giop::{AddressingDisposition, MessageHeader, MessageType, ReplyStatus};
use giop_codec::ior::{IiopProfile, Ior};
use giop_proto::{BufferPool, Config, Connection, Limits, Role};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zorb::SyncScope;
use zorb::prelude::*;

use crate::relay::{PORT, Traffic};
use crate::wire::peer::{self, Answer, Fake};

zorb::idl! {
    module Dissect {
        enum Shade { LIGHT, DARK };
        struct Item { string name; double weight; wstring label; sequence<octet> octets; };
        typedef sequence<Item> Items;
        exception Refused { string why; long code; };
        interface Desk {
            attribute long level;
            Items turn(in Items items, inout Shade shade);
            long guarded(in long code) raises (Refused);
            void nap(in unsigned long milliseconds);
            oneway void note(in long number);
            Desk same(in Desk other);
            any wrapped(in any value);
        };
    };
}

use dissect::{DeskRef, DeskServant, Item, Refused, Shade, desk};

struct Servant;

impl DeskServant for Servant {
    async fn level(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    async fn set_level(&self, _level: i32) -> Result<(), SystemException> {
        Ok(())
    }

    async fn turn(&self, items: &[Item], shade: Shade) -> Result<(Vec<Item>, Shade), SystemException> {
        let items = items.iter().rev().cloned().collect();
        Ok((items, if shade == Shade::Light { Shade::Dark } else { Shade::Light }))
    }

    async fn guarded(&self, code: i32) -> Result<i32, desk::GuardedError> {
        match code {
            ..0 => Err(Refused { why: "negative".to_owned(), code }.into()),
            0 => Err(SystemException::no_permission()
                .with_minor(zorb::MinorCode::omg(1))
                .completed(CompletionStatus::Yes)
                .into()),
            _ => Ok(code),
        }
    }

    async fn nap(&self, milliseconds: u32) -> Result<(), SystemException> {
        let request = zorb::request();
        tokio::select! {
            () = request.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(milliseconds.into())) => {}
        }
        Ok(())
    }

    async fn note(&self, _number: i32) -> Result<(), SystemException> {
        Ok(())
    }

    async fn same(&self, other: Option<DeskRef>) -> Result<Option<DeskRef>, SystemException> {
        Ok(other)
    }

    async fn wrapped(&self, value: &Any) -> Result<Any, SystemException> {
        Ok(value.clone())
    }
}

/// Returns `None` if it is not installed, after printing a message.
fn tshark() -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join("tshark"))
        .find(|path| path.exists());
    if found.is_none() {
        let what = "no tshark: scripts/install-peers.sh installs it";
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
        // Bypasses the capture of output, which hides it for tests that pass.
        let _ = std::io::stderr().write_all(format!("dissect: SKIPPED: {what}\n").as_bytes());
    }
    found
}

/// Returns a path for a capture.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dissect-{}-{name}", std::process::id()))
}

/// The dissector's result for a packet with messages, or with errors: the values of its fields, separated by
/// commas.
struct Packet {
    number: String,
    from: u16,
    to: u16,
    kinds: String,
    versions: String,
    operations: String,
    joined: String,
    levels: String,
    said: String,
}

fn packets(tshark: &Path, capture: &Path) -> Vec<Packet> {
    let mut command = Command::new(tshark);
    command.arg("-n").arg("-r").arg(capture).args(["-d", &format!("tcp.port=={PORT},giop")]);
    command.args(["-Y", "giop || _ws.malformed || _ws.expert.severity == error || tcp.analysis.flags"]);
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]);
    for field in [
        "frame.number",
        "tcp.srcport",
        "tcp.dstport",
        "giop.type",
        "giop.minor_version",
        "giop.request_op",
        "giop.reassembled.length",
        "_ws.expert.severity",
        "_ws.expert.message",
    ] {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let packet = |line: &str| {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [number, from, to, kinds, versions, operations, joined, levels, said] =
            fields.try_into().unwrap();
        let [from, to] = [from, to].map(|port| port.parse().unwrap());
        Packet { number, from, to, kinds, versions, operations, joined, levels, said }
    };
    lines.lines().map(packet).collect()
}

/// Returns its warnings and errors.
fn complaints(packets: &[Packet]) -> Vec<String> {
    const WARNING: u32 = 0x0060_0000;
    let severe =
        |levels: &str| levels.split(',').any(|level| level.parse::<u32>().is_ok_and(|n| n >= WARNING));
    let wrong = packets.iter().filter(|packet| severe(&packet.levels) || packet.said.contains("Malformed"));
    wrong.map(|packet| format!("packet {}: {}", packet.number, packet.said)).collect()
}

/// Returns kinds and versions of the messages by client port and direction, as reported by the dissector.
fn found(packets: &[Packet]) -> BTreeMap<(u16, bool), Vec<(u8, u8)>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for packet in packets {
        let way = if packet.to == PORT { (packet.from, true) } else { (packet.to, false) };
        let numbers = |text: &str| -> Vec<u8> { text.split(',').map(|n| n.parse().unwrap()).collect() };
        let (kinds, versions) = (numbers(&packet.kinds), numbers(&packet.versions));
        found.entry(way).or_default().extend(kinds.into_iter().zip(versions));
    }
    found
}

/// Checks that every message is recognized, and that there are no complaints.
fn check(tshark: &Path, name: &str, traffic: &Traffic) -> (Vec<MessageHeader>, Vec<Packet>) {
    let capture = scratch(name);
    traffic.write(&capture);
    let packets = packets(tshark, &capture);
    let complaints = complaints(&packets);
    assert!(complaints.is_empty(), "{}: {complaints:#?}", capture.display());
    let mut expected = BTreeMap::new();
    let mut all = Vec::new();
    for (port, from_client, headers) in traffic.messages() {
        if !headers.is_empty() {
            let kinds = headers.iter().map(|header| (header.kind as u8, header.version.minor())).collect();
            expected.insert((port, from_client), kinds);
            all.extend(headers);
        }
    }
    assert_eq!(found(&packets), expected, "{}", capture.display());
    std::fs::remove_file(capture).unwrap();
    (all, packets)
}

fn item(name: &str, octets: usize) -> Item {
    Item {
        name: name.to_owned(),
        weight: 2.5,
        label: WString::from(if octets == 3 { "" } else { "Größe €" }),
        octets: Bytes::from(vec![7; octets]),
    }
}

/// Returns a reference to the object to which a relay leads.
fn through(relay: u16, ior: &Ior, version: Version) -> Ior {
    let profile = IiopProfile { port: relay, ..ior.iiop_profile().unwrap() }.with_version(version);
    Ior::from_profiles(ior.type_id.clone(), &[profile]).unwrap()
}

// clause: giop.msg.request, giop.msg.reply, giop.msg.cancel_request, giop.msg.locate_request, giop.msg.locate_reply
// clause: giop.msg.close_connection, giop.header.size, giop.version.reply
#[tokio::test]
async fn messages_of_both_sides_in_every_version() {
    let Some(tshark) = tshark() else { return };
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let traffic = Traffic::default();
        let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let here: DeskRef = server.activate(Servant).unwrap();
        let ior = here.as_object().ior();
        let relay = traffic.relay(ior.iiop_profile().unwrap().port).await;
        let client = Orb::builder().build().await.unwrap();
        let desk: DeskRef =
            client.resolve_unchecked(&through(relay, ior, version).to_string()).await.unwrap();

        assert!(desk.is_a("IDL:Dissect/Desk:1.0").await.unwrap());
        assert!(!desk.non_existent().await.unwrap());
        assert!(!desk.is_a("IDL:Other:1.0").await.unwrap());
        assert_eq!(desk.level().await.unwrap(), 7);
        desk.set_level(-1).await.unwrap();
        if version > Version::V1_0 {
            for sizes in [&[][..], &[1, 2, 3], &[70_000, 5]] {
                let items: Vec<Item> = sizes.iter().map(|n| item("name", *n)).collect();
                let (turned, shade) = desk.turn(&items, Shade::Light).await.unwrap();
                assert_eq!((turned.len(), shade), (items.len(), Shade::Dark));
            }
        }
        assert_eq!(desk.guarded(5).await.unwrap(), 5);
        assert!(matches!(desk.guarded(-1).await, Err(desk::GuardedError::Refused(_))));
        assert!(matches!(desk.guarded(0).await, Err(desk::GuardedError::System(_))));
        let wrapped = Any::new(&Refused { why: "in an any".to_owned(), code: 3 }).unwrap();
        desk.wrapped(&wrapped).await.unwrap();
        assert!(desk.same(&desk).await.unwrap().is_some());
        assert!(desk.same(None).await.unwrap().is_none());
        for scope in [SyncScope::Queued, SyncScope::Transport, SyncScope::Server, SyncScope::Target] {
            desk.with_sync_scope(scope).note(1).await.unwrap();
        }
        // Timed out: CancelRequest.
        desk.with_timeout(Duration::from_millis(20)).nap(60_000).await.unwrap_err();
        assert!(desk.locate().await.unwrap());
        assert!(server.deactivate(&here));
        assert!(!desk.locate().await.unwrap());
        assert_eq!(desk.level().await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
        // CloseConnection comes from the server, and from a client of 1.2 in another connection.
        let other = Orb::builder().build().await.unwrap();
        let again: DeskRef =
            other.resolve_unchecked(&through(relay, ior, version).to_string()).await.unwrap();
        assert!(!again.locate().await.unwrap());
        other.shutdown().await;
        server.shutdown().await;

        let (all, packets) = check(&tshark, &format!("calls-{version}.pcap"), &traffic);
        let mut kinds: Vec<u8> = all.iter().map(|header| header.kind as u8).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, [0, 1, 2, 3, 4, 5], "all kinds but MessageError and Fragment");
        assert!(all.iter().all(|header| header.version == version), "{version}");
        for operation in ["_is_a", "_non_existent", "_get_level", "_set_level", "guarded", "wrapped", "note"]
        {
            assert!(packets.iter().any(|packet| packet.operations.contains(operation)), "{operation}");
        }
    }
}

// clause: giop.msg.message_error, giop.msg.fragment, giop.status.location_forward, giop.fragment.join_1_2
#[tokio::test]
async fn what_is_rare() {
    let Some(tshark) = tshark() else { return };
    let traffic = Traffic::default();
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let here: DeskRef = server.activate(Servant).unwrap();
    let ior = here.as_object().ior().clone();
    let port = ior.iiop_profile().unwrap().port;
    let relay = traffic.relay(port).await;

    // Invalid data of a client results in a MessageError from the server.
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", relay)).await.unwrap();
    let mut odd = peer::message(Version::V1_2, MessageType::CancelRequest, |e| e.put_u32(77)).to_vec();
    odd[6] |= 2; // Announces further fragments of a message that cannot be fragmented.
    socket.write_all(&odd).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    assert_eq!(MessageHeader::decode(answer.first_chunk().unwrap()).unwrap().kind, MessageType::MessageError);

    // A forward, and requested target addresses.
    let to = through(relay, &ior, Version::V1_2);
    let forwards = Fake::new(move |_| Answer::forward(&to)).await;
    let client = Orb::builder().build().await.unwrap();
    let ior = through(traffic.relay(forwards.port).await, &forwards.ior(), Version::V1_2);
    let desk: DeskRef = client.resolve_unchecked(&ior.to_string()).await.unwrap();
    assert_eq!(desk.level().await.unwrap(), 7);
    for wanted in [AddressingDisposition::Profile, AddressingDisposition::Reference] {
        let asks = Fake::new(move |asked| match asked.before {
            0 => {
                Answer::Reply(ReplyStatus::NeedsAddressingMode, Box::new(move |e| wanted.encode(e).unwrap()))
            }
            _ => Answer::value(8_i32),
        })
        .await;
        let ior = through(traffic.relay(asks.port).await, &asks.ior(), Version::V1_2);
        let desk: DeskRef = client.resolve_unchecked(&ior.to_string()).await.unwrap();
        assert_eq!(desk.level().await.unwrap(), 8);
    }
    check(&tshark, "rare.pcap", &traffic);
}

/// Returns a request as a machine sends it in fragments.
fn in_fragments(body: usize) -> Vec<u8> {
    let now = std::time::Instant::now();
    let pool = Arc::new(BufferPool::new(1 << 20));
    let mut config = Config::new(Role::Client, Arc::new(Limits::default()), pool);
    config.fragment_size = Some(1024);
    let mut machine = Connection::new(config, now);
    let call = machine.start_call(None, now).unwrap();
    let mut e = giop_codec::cdr::Encoder::new(giop_codec::ByteOrder::NATIVE, Version::V1_2);
    let size_at = giop_codec::giop::put_message_header(&mut e, MessageType::Request);
    giop_codec::giop::RequestHeader {
        request_id: machine.call(call).request_id(),
        response: giop_codec::giop::ResponseFlags::Target,
        target: giop_codec::giop::TargetAddress::Key(b"desk"),
        operation: "put",
        contexts: Default::default(),
    }
    .encode(&mut e)
    .unwrap();
    giop_codec::giop::begin_body(&mut e);
    Bytes::from(vec![7; body]).encode(&mut e).unwrap();
    giop_codec::giop::finish_message(&mut e, size_at).unwrap();
    machine.call(call).send_request(&mut e);
    let mut sent = Vec::new();
    while let Some(mut transmit) = machine.take_transmit() {
        while !transmit.is_empty() {
            let mut slices = [std::io::IoSlice::new(&[]); giop_proto::outbox::MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let octets = slices[..used].iter().flat_map(|slice| slice.to_vec()).collect::<Vec<u8>>();
            transmit.advance(octets.len());
            sent.extend(octets);
        }
        machine.handle_written(transmit, now);
    }
    sent
}

// clause: giop.msg.fragment, giop.fragment.send, giop.fragment.send_multiple_of_8, giop.fragment.send_header_whole
#[test]
fn fragments_are_joined() {
    let Some(tshark) = tshark() else { return };
    let traffic = Traffic::default();
    for body in [2000, 5000, 70_001] {
        traffic.add(&in_fragments(body));
    }
    let (all, packets) = check(&tshark, "fragments.pcap", &traffic);
    assert!(all.iter().filter(|header| header.kind == MessageType::Fragment).count() > 70);
    for header in all.iter().filter(|header| header.more_fragments) {
        assert_eq!((MessageHeader::LEN + header.size as usize) % 8, 0);
    }
    let joined: Vec<&str> =
        packets.iter().map(|packet| &*packet.joined).filter(|len| !len.is_empty()).collect();
    assert_eq!(joined.len(), 3, "{joined:?}");
}

/// The checks above detect a malformed message.
#[test]
fn a_malformed_message_is_found() {
    let Some(tshark) = tshark() else { return };
    let traffic = Traffic::default();
    let mut octets = peer::message(Version::V1_2, MessageType::LocateRequest, |e| {
        giop_codec::giop::LocateRequestHeader {
            request_id: giop_codec::giop::RequestId(2),
            target: giop_codec::giop::TargetAddress::Key(b"a key"),
        }
        .encode(e)
        .unwrap();
    })
    .to_vec();
    traffic.add(&octets);
    check(&tshark, "good.pcap", &traffic);
    octets[20] ^= 0x40;
    let traffic = Traffic::default();
    traffic.add(&octets);
    let capture = scratch("bad.pcap");
    traffic.write(&capture);
    assert!(!complaints(&packets(&tshark, &capture)).is_empty());
    std::fs::remove_file(capture).unwrap();
}
