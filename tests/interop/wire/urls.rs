//! Text to and from objects that are known by a URL, which has no code sets: a zorb server is queried for
//! them.

use giop_codec::Version;
use giop_codec::giop::{ContextId, ReplyStatus};
use zorb::minor;
use zorb::prelude::*;

use crate::wire::peer::{Answer, Asked, Fake, Raw};
use crate::wire::server::{Desk, serving};
use crate::wire::wire::DeskRef;

async fn client() -> Orb {
    Orb::builder().build().await.unwrap()
}

/// Returns URLs of the server: without a version, and with the versions that have code sets.
fn urls(orb: &Orb) -> [String; 3] {
    let at = &orb.endpoints()[0];
    ["", "iiop:1.1@", "iiop:1.2@"].map(|version| match version {
        "" => format!("corbaloc::{at}/desk"),
        version => format!("corbaloc:{version}{at}/desk"),
    })
}

// clause: ior.corbaloc.forward
#[tokio::test]
async fn all_text_goes_to_objects_of_zorb_that_are_known_by_a_url() {
    let (server, _desk) = serving().await;
    for url in urls(&server) {
        let client = client().await;
        let desk = || client.resolve_unchecked::<DeskRef>(&url);
        // In the first call of a reference, as an argument and as a result.
        assert_eq!(desk().await.unwrap().same("é €").await.unwrap(), "é €", "{url}");
        assert_eq!(desk().await.unwrap().wide_same("é €").await.unwrap(), "é €", "{url}");
        assert_eq!(desk().await.unwrap().euro().await.unwrap(), "€", "{url}");
        // After a check of the interface.
        assert_eq!(client.resolve::<DeskRef>(&url).await.unwrap().same("€").await.unwrap(), "€", "{url}");
    }
}

#[tokio::test]
async fn a_first_oneway_with_any_text_goes_to_an_object_that_is_known_by_a_url() {
    let (server, _desk) = serving().await;
    for url in urls(&server) {
        let client = client().await;
        let desk: DeskRef = client.resolve_unchecked(&url).await.unwrap();
        desk.label(&url.replace("corbaloc", "€")).await.unwrap();
        assert_eq!(desk.labelled().await.unwrap(), *url.replace("corbaloc", "€"));
    }
}

#[tokio::test]
async fn a_url_without_a_version_gets_that_of_the_server() {
    let (server, _desk) = serving().await;
    let client = client().await;
    let at = &server.endpoints()[0];
    // Wide text needs GIOP 1.1, and this URL requests calls in GIOP 1.0.
    let old: DeskRef = client.resolve_unchecked(&format!("corbaloc:iiop:1.0@{at}/desk")).await.unwrap();
    let error = old.wide_same("x").await.unwrap_err();
    assert_eq!(error.completed, CompletionStatus::No, "{error}");
    let error = old.same("€").await.unwrap_err();
    assert_eq!(
        (error.kind, error.minor),
        (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER),
        "{error}"
    );
    assert_eq!(old.same("é").await.unwrap(), "é");
}

#[tokio::test]
async fn the_address_of_the_url_stays_whatever_the_server_publishes() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bound = listener.local_addr().unwrap();
    let server = Orb::builder().listener(listener).publish("203.0.113.1:1").build().await.unwrap();
    let _desk: DeskRef = server.activate_named("desk", Desk::default()).unwrap();
    let client = client().await;
    let desk: DeskRef = client.resolve_unchecked(&format!("corbaloc::{bound}/desk")).await.unwrap();
    assert_eq!(desk.same("€").await.unwrap(), "€");
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
}

// clause: giop.code_sets.without
#[tokio::test]
async fn a_server_without_code_sets_gets_latin_1_and_is_asked_for_a_reference_once() {
    let fake = Fake::new(|asked| match asked.operation().as_str() {
        "same" => Answer::value(LatinText),
        "_non_existent" => Answer::value(false),
        _ => Answer::Drop,
    })
    .await;
    let client = client().await;
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{}/desk", fake.port);
    let desk: DeskRef = client.resolve_unchecked(&url).await.unwrap();
    assert_eq!(desk.same("é").await.unwrap(), "é");
    let asks = |asked: &Asked| asked.request().contexts().find(ContextId::ZORB_REFERENCE).is_some();
    assert!(fake.last(asks));
    let bytes = fake.last(|asked| asked.request().body().rest().to_vec());
    assert!(bytes.ends_with(&[0xe9, 0]), "{bytes:x?}");
    desk.same("é").await.unwrap();
    assert!(!fake.last(asks));
    let error = desk.same("€").await.unwrap_err();
    assert_eq!(
        (error.kind, error.minor, error.completed),
        (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER, CompletionStatus::No)
    );
    // If the first text cannot be converted, the server is queried first.
    let other: DeskRef = client.resolve_unchecked(&url).await.unwrap();
    assert_eq!(other.same("€").await.unwrap_err().kind, SystemExceptionKind::DataConversion);
    assert_eq!(fake.asked(), ["same", "same", "_non_existent"]);
}

/// The string `é` in ISO 8859-1.
struct LatinText;

impl giop_codec::cdr::CdrEncode for LatinText {
    fn encode(&self, e: &mut giop_codec::cdr::Encoder) -> Result<(), giop_codec::EncodeError> {
        e.put_u32(2);
        e.put_u8(0xe9);
        e.put_u8(0);
        Ok(())
    }
}

// clause: giop.code_sets.without
#[tokio::test]
async fn a_client_without_code_sets_is_read_and_answered_in_latin_1() {
    let (server, _desk) = serving().await;
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut raw = Raw::connect(&server, b"desk").await;
        raw.version = version;
        // As a Java EE client sends it.
        let bytes: Vec<u8> = (0x80..=0xff).collect();
        let reply = raw
            .call("same", &[], |e| {
                e.put_u32(bytes.len() as u32 + 1);
                bytes.iter().for_each(|byte| e.put_u8(*byte));
                e.put_u8(0);
            })
            .await;
        assert_eq!(reply.status(), ReplyStatus::NoException, "{version}");
        assert_eq!(reply.body().rest()[4..][..bytes.len()], bytes, "{version}");
    }
}
