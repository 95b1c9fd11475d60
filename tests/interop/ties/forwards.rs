//! Clients of other ORBs that zorb forwards: by the reply to their first request, and by that to a preceding
//! LocateRequest.

use ::zorb::poa::ForwardRequest;
use giop_codec::Version;
use giop_codec::cdr::Decoder;
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, MessageHeader, MessageType, ReplyMessage, ReplyStatus,
};

use super::{Lasting, LastingRef, their_client};
use crate::relay::Traffic;
use crate::{dotted, transport};
use test_support::peers::Foreign;
use test_support::peers::matrix::{Outcome, Role, cell};

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

/// A server's answer with the location of an object.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Told {
    Reply(ReplyStatus),
    Locate(LocateStatus),
}

/// Returns all such answers, with their versions.
fn told(traffic: &Traffic) -> Vec<(Version, Told)> {
    let mut found = Vec::new();
    for stream in traffic.of_servers() {
        let mut rest = stream;
        while !rest.is_empty() {
            let header = MessageHeader::decode(rest.first_chunk().unwrap()).unwrap();
            let octets = rest.split_to(MessageHeader::LEN + header.size as usize);
            let told = match header.kind {
                MessageType::Reply => Told::Reply(ReplyMessage::decode(&header, octets).unwrap().status()),
                MessageType::LocateReply => {
                    let mut d = Decoder::new(&octets, header.order, header.version).at(MessageHeader::LEN);
                    Told::Locate(LocateReplyHeader::decode(&mut d).unwrap().status)
                }
                _ => continue,
            };
            found.push((header.version, told));
        }
    }
    found
}

/// A client, with or without a preceding LocateRequest, uses references of every version with keys that are
/// forwarded. They lead through a relay, which does not see requests to the new location.
async fn forwarded(orb: Foreign, locating: bool) {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let lasting: LastingRef = server.activate(Lasting).unwrap();
    server.forward_named("old", ForwardRequest::to(&lasting)).unwrap();
    server.forward_named("older", ForwardRequest::to(&lasting).permanently()).unwrap();
    let traffic = Traffic::default();
    let port = server.endpoints()[0].rsplit(':').next().unwrap().parse().unwrap();
    let port = traffic.relay(port).await;
    let mut references = Vec::new();
    for version in VERSIONS {
        for key in ["old", "older"] {
            references.push(format!("corbaloc:iiop:{}@127.0.0.1:{port}/{key}", dotted(version)));
        }
    }
    let flag = |yes, no| if locating { yes } else { no };
    let Some(mut client) = their_client(orb, &["--lasting", &references.join(",")], |command| match orb {
        Foreign::JacOrb => {
            command.env("JAVA_OPTS", format!("-Djacorb.locate_on_bind={}", flag("on", "off")));
        }
        _ => {
            command.args(["-ORBverifyObjectExistsAndType", flag("1", "0")]);
        }
    }) else {
        return;
    };
    for (index, reference) in references.iter().enumerate() {
        for number in 1..3 {
            let answer = client.ask(&format!("next {index} {number}")).await;
            assert_eq!(answer, (number + 1).to_string(), "{reference}");
        }
    }
    let told = told(&traffic);
    for version in VERSIONS {
        let of_version: Vec<_> = told.iter().filter(|told| told.0 == version).map(|told| told.1).collect();
        let for_good = version == Version::V1_2;
        let expected = if locating {
            [LocateStatus::ObjectForward, LocateStatus::forward(for_good, version)].map(Told::Locate)
        } else {
            let perm = if for_good { ReplyStatus::LocationForwardPerm } else { ReplyStatus::LocationForward };
            [ReplyStatus::LocationForward, perm].map(Told::Reply)
        };
        // Each reference was queried once: the second call went directly to the new location.
        assert_eq!(of_version, expected, "{orb:?} {version:?} {told:?}");
        if locating {
            cell(orb.name(), Role::Server, &dotted(version), "locate forward", Outcome::Good);
        }
    }
}

// clause: giop.locate.object_forward.sent, ior.corbaloc.forward
#[tokio::test(flavor = "multi_thread")]
async fn omniorb_locates() {
    forwarded(Foreign::OmniOrb, true).await;
}

// clause: giop.status.location_forward.sent, ior.corbaloc.forward
#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls() {
    forwarded(Foreign::OmniOrb, false).await;
}

// clause: giop.locate.object_forward.sent, ior.corbaloc.forward
#[tokio::test(flavor = "multi_thread")]
async fn jacorb_locates() {
    forwarded(Foreign::JacOrb, true).await;
}

// clause: giop.status.location_forward.sent, ior.corbaloc.forward
#[tokio::test(flavor = "multi_thread")]
async fn jacorb_calls() {
    forwarded(Foreign::JacOrb, false).await;
}
