//! Sequences that zorb's client reads from sources while it sends them, to servers that know nothing of
//! streams: plain IIOP.

use std::io::Cursor;
use std::process::Command;

use zorb::prelude::*;
use zorb::wire::Ior;
use zorb::{ByteSource, Limits};

use super::{CHECKS, START, transport};
use test_support::peers::{Foreign, Process, Scratch};

zorb::idl! {
    /// A part of `idl/bench.idl`, with streams.
    interface Ttcp {
        typedef sequence<octet> OctetSeq;
        oneway void sendOctetSeq(@stream in OctetSeq s);
        unsigned long long sync();
        OctetSeq echoOctets(@stream in OctetSeq s);
    };
}

/// Returns a reader of these bytes.
fn read(octets: &Bytes) -> ByteSource {
    ByteSource::reader(octets.len() as u64, Cursor::new(octets.clone()))
}

async fn sources(orb: Foreign) {
    let Some(program) = orb.program("bench-server") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("bench.ior");
    let mut command = Command::new(program);
    command.arg("--ior").arg(&path).args([
        "--port",
        "0",
        "--seconds",
        &(START + CHECKS).as_secs().to_string(),
    ]);
    let mut server = Process::start(command, &scratch);
    let server = tokio::task::spawn_blocking(move || {
        server.ready(START);
        server
    });
    let _server = server.await.expect("the server is ready");
    let ior = std::fs::read_to_string(&path).expect("the server wrote its IOR").trim().to_owned();
    let profile = ior.parse::<Ior>().expect("an IOR").iiop_profile().expect("an IIOP profile");
    let address = format!("{}:{}", profile.host, profile.port);
    let mut limits = Limits::default();
    limits.max_message_size = 64 << 20;
    let client = transport::builder().limits(limits).build().await.expect("a client");
    let mut urls = vec![ior.clone()];
    urls.extend(["1.0", "1.1", "1.2"].map(|version| format!("corbaloc:iiop:{version}@{address}/ttcp")));
    for url in urls {
        let ttcp: TtcpRef = client.resolve_unchecked(&url).await.expect("a reference");
        // The peers' default maximum message size is 2 MiB.
        for len in [0, 1, 5_000, 65_537, 262_145, 1_500_000] {
            let octets: Bytes = (0..len).map(|i: u32| (i * 31 + i / 251) as u8).collect();
            let echo =
                ttcp.echo_octets(read(&octets)).await.unwrap_or_else(|error| panic!("{url} {len}: {error}"));
            assert!(echo == octets, "{url} {len}");
            ttcp.send_octet_seq(read(&octets)).await.unwrap_or_else(|error| panic!("{url} {len}: {error}"));
        }
    }
    // Calls over other connections may overtake oneways.
    let ttcp: TtcpRef = client.resolve_unchecked(&ior).await.expect("a reference");
    let (mut received, wanted) = (0, 4 * (1 + 5_000 + 65_537 + 262_145 + 1_500_000));
    for _ in 0..500 {
        received += ttcp.sync().await.expect("the count");
        if received >= wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(received, wanted, "octets of oneways");
}

#[tokio::test]
async fn omniorb_takes_sequences_from_sources() {
    sources(Foreign::OmniOrb).await;
}

#[tokio::test]
async fn jacorb_takes_sequences_from_sources() {
    sources(Foreign::JacOrb).await;
}
