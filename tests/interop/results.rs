//! Streamed results of zorb, with peers that know nothing of streams: their bench clients, which check the
//! results, and their bench servers.

use std::process::Command;

use futures_util::stream;
use zorb::prelude::*;
use zorb::wire::Ior;
use zorb::{ByteSource, ItemSource, Limits};

use super::{CHECKS, START, transport};
use test_support::peers::client::Client;
use test_support::peers::{Foreign, Process, Scratch};

zorb::idl! {
    struct BinStruct { short s; char c; long l; octet o; double d; };
    /// A part of `idl/bench.idl`, with streams.
    interface Ttcp {
        typedef sequence<octet> OctetSeq;
        typedef sequence<BinStruct> StructSeq;
        @stream OctetSeq echoOctets(in OctetSeq s);
        @stream StructSeq echoStructs(in StructSeq s);
    };
}

struct Echo;

impl TtcpServant for Echo {
    async fn echo_octets(&self, s: Bytes) -> Result<ByteSource, SystemException> {
        let len = s.len();
        let pieces = (0..len).step_by(10_007).map(move |at| s.slice(at..len.min(at + 10_007)));
        Ok(ByteSource::stream(len as u64, stream::iter(pieces.map(Ok::<_, std::io::Error>))))
    }
    async fn echo_structs(&self, s: &[BinStruct]) -> Result<ItemSource<BinStruct>, SystemException> {
        Ok(s.to_vec().into())
    }
}

async fn results(orb: Foreign) {
    let Some(mut client) = Client::of(orb, "bench-client") else { return };
    let mut limits = Limits::default();
    limits.max_message_size = 64 << 20;
    let server =
        transport::builder().limits(limits).listen("iiop://127.0.0.1:0").build().await.expect("a server");
    let ttcp: TtcpRef = server.activate_named("ttcp", Echo).expect("an object");
    let profile = ttcp.to_string().parse::<Ior>().expect("an IOR").iiop_profile().expect("an IIOP profile");
    for (version, in_pieces) in [("1.0", false), ("1.1", false), ("1.2", true)] {
        let url = format!("corbaloc:iiop:{version}@{}:{}", profile.host, profile.port);
        for (element, size) in
            [("octet", "65536"), ("octet", "1500000"), ("struct", "2400"), ("struct", "1200000")]
        {
            let before = server.stats().messages_out;
            let at = url.clone();
            let run = tokio::task::spawn_blocking(move || {
                let ran = client
                    .run(&["echo", "--ior", &at, "--type", element, "--size", size, "--n", "5"], CHECKS);
                (client, ran)
            });
            let (again, (succeeded, output)) = run.await.expect("the client was waited for");
            client = again;
            assert!(succeeded == Some(true), "{version} {element} {size}: {succeeded:?}\n{output}");
            let messages = server.stats().messages_out - before;
            let large = size.len() > 5;
            assert_eq!(messages > 60, in_pieces && large, "{version} {element} {size}: {messages} messages");
        }
    }
}

// clause: giop.fragment.send_growing
#[tokio::test]
async fn omniorb_gets_results_that_are_made_while_they_leave() {
    results(Foreign::OmniOrb).await;
}

// clause: giop.fragment.send_growing
#[tokio::test]
async fn jacorb_gets_results_that_are_made_while_they_leave() {
    results(Foreign::JacOrb).await;
}

/// Results of the other ORB's server, which zorb's client takes piece by piece.
async fn taken(orb: Foreign, large: usize) {
    let Some(program) = orb.program("bench-server") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("bench.ior");
    let mut command = Command::new(program);
    command.arg("--ior").arg(&path).args(["--port", "0", "--seconds", "300"]);
    if orb == Foreign::OmniOrb {
        command.args(["-ORBgiopMaxMsgSize", "100000000"]);
    }
    let mut server = Process::start(command, &scratch);
    server.ready(START);
    let ior: Ior = std::fs::read_to_string(&path).unwrap().trim().parse().expect("an IOR");
    let profile = ior.iiop_profile().expect("an IIOP profile");
    // The default maximum size of a message is 16 MiB here.
    let client = transport::builder().build().await.expect("a client");
    for (version, size) in [("1.0", 1_500_000), ("1.1", 1_500_000), ("1.2", large)] {
        let url = format!("corbaloc:iiop:{version}@{}:{}/ttcp", profile.host, profile.port);
        let ttcp: TtcpRef = client.resolve(&url).await.expect("a reference");
        let sent: Bytes = (0..size).map(|i| (i * 31 + i / 251) as u8).collect::<Vec<u8>>().into();
        let (mut came, mut stream) = (0, ttcp.echo_octets(sent.clone()).await.expect("a result"));
        assert_eq!(stream.remaining(), size as u64, "{orb:?} {version}");
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.unwrap();
            assert!(chunk == sent[came..][..chunk.len()], "{orb:?} {version}: at {came}");
            came += chunk.len();
        }
        assert_eq!(came, size, "{orb:?} {version}");
        let number = |n: u16| BinStruct { s: n as i16, c: Char(n as u8), l: n.into(), o: 7, d: n.into() };
        let sent: Vec<_> = (0..50_000_u16).map(number).collect();
        let stream = ttcp.echo_structs(&sent).await.expect("a result");
        let came = stream.collect(sent.len()).await.unwrap();
        assert!(came == sent, "{orb:?} {version}");
    }
    client.shutdown().await;
}

// clause: giop.fragment.join_1_2
#[tokio::test]
async fn results_of_omniorb_are_taken_while_they_come() {
    taken(Foreign::OmniOrb, 50 << 20).await;
}

// clause: giop.fragment.join_1_2
#[tokio::test]
async fn results_of_jacorb_are_taken_while_they_come() {
    taken(Foreign::JacOrb, 3 << 20).await;
}
