//! The reaction of zorb's server to requests that no zorb client would send.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use giop_codec::Version;
use giop_codec::cdr::{CdrDecode, CodeSets, Encoder};
use giop_codec::code_set::{CodeSetContext, CodeSetId};
use giop_codec::giop::{ContextId, MessageType, ReplyMessage, ReplyStatus, ResponseFlags, ServiceContext};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zorb::minor;
use zorb::prelude::*;

use crate::wire::peer::{Raw, message};
use crate::wire::wire::{DeskRef, DeskServant, Refused, Shade, desk};

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

#[derive(Default)]
pub(crate) struct Desk {
    noted: AtomicI32,
    label: Mutex<WString>,
}

impl DeskServant for Desk {
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }

    async fn guarded(&self, a: i32) -> Result<i32, desk::GuardedError> {
        if a < 0 { Err(Refused { why: a }.into()) } else { Ok(a) }
    }

    async fn euro(&self) -> Result<String, SystemException> {
        Ok("€".to_owned())
    }

    async fn same(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    async fn wide_same(&self, text: WStr<'_>) -> Result<WString, SystemException> {
        Ok(text.into())
    }

    async fn label(&self, text: WStr<'_>) -> Result<(), SystemException> {
        *self.label.lock().unwrap() = text.to_wstring();
        Ok(())
    }

    async fn labelled(&self) -> Result<WString, SystemException> {
        Ok(self.label.lock().unwrap().clone())
    }

    async fn wide(&self, _text: WStr<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    async fn shade(&self, _shade: Shade) -> Result<(), SystemException> {
        Ok(())
    }

    async fn note(&self, number: i32) -> Result<(), SystemException> {
        self.noted.fetch_add(number, Ordering::SeqCst);
        Ok(())
    }

    async fn noted(&self) -> Result<i32, SystemException> {
        Ok(self.noted.load(Ordering::SeqCst))
    }
}

/// Returns a server with an object under the key `desk`.
pub(crate) async fn serving() -> (Orb, DeskRef) {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let desk = orb.activate_named("desk", Desk::default()).unwrap();
    (orb, desk)
}

fn sum(e: &mut Encoder) {
    e.put_i32(1);
    e.put_i32(2);
}

#[track_caller]
fn assert_sum(reply: &ReplyMessage) {
    assert_eq!(reply.status(), ReplyStatus::NoException);
    assert_eq!(reply.body().read_i32(), Ok(3));
}

#[track_caller]
fn raised(reply: &ReplyMessage) -> (SystemExceptionKind, zorb::MinorCode, CompletionStatus) {
    assert_eq!(reply.status(), ReplyStatus::SystemException);
    let exception = SystemException::decode(&mut reply.body()).unwrap();
    (exception.kind, exception.minor, exception.completed)
}

// clause: giop.request.extra_octets, giop.request.short_body, exc.kind.marshal, exc.completed.before_servant
#[tokio::test]
async fn extra_octets_are_taken_and_missing_ones_are_marshal() {
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    for version in VERSIONS {
        raw.version = version;
        let reply = raw
            .call("add", &[], |e| {
                sum(e);
                e.put_raw(b"what nobody asked for");
            })
            .await;
        assert_sum(&reply);
        assert_eq!(reply.body().remaining(), 4, "and none are sent");
        let short = raw.call("add", &[], |e| e.put_i32(1)).await;
        let (kind, _, completed) = raised(&short);
        assert_eq!((kind, completed), (SystemExceptionKind::Marshal, CompletionStatus::No));
        assert_sum(&raw.call("add", &[], sum).await);
    }
}

// clause: giop.version.reply, giop.version.lower, giop.version.mixed
#[tokio::test]
async fn versions_may_change_from_message_to_message() {
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    for version in [Version::V1_2, Version::V1_0, Version::V1_1, Version::V1_0, Version::V1_2] {
        raw.version = version;
        assert_sum(&raw.call("add", &[], sum).await);
    }
}

// clause: giop.context.sending_context, giop.context.unknown_exception_info, giop.context.rmi_stream_format
// clause: giop.context.vendor, giop.context.unknown, exc.detail.java
#[tokio::test]
async fn contexts_that_mean_nothing_here_are_ignored() {
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    let ids = [
        6,
        9,
        17,
        4711,
        0x4154_5404,
        0x4a41_4301,
        0x4a41_4302,
        0x5441_4f00,
        0x5441_0005,
        0x4e45_4f00,
        0x5355_4e00,
    ];
    for version in VERSIONS {
        raw.version = version;
        for data in [&b""[..], b"\0", b"\xff\xff\xff\xff no encapsulation"] {
            let contexts = ids.map(|id| ServiceContext { id: ContextId(id), data: Bytes::from_static(data) });
            assert_sum(&raw.call("add", &contexts, sum).await);
        }
    }
}

// clause: giop.response_flags.none, giop.response_flags.illegal
#[tokio::test]
async fn a_oneway_never_has_a_reply() {
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    raw.response = ResponseFlags::None;
    raw.send("note", &[], |e| e.put_i32(5)).await;
    // Nor do others that are sent in this way, whatever their result.
    raw.send("add", &[], sum).await;
    raw.send("nonsense", &[], |_| ()).await;
    raw.send("add", &[], |_| ()).await;
    // 0x02, which is not a valid value.
    let mut octets = message(Version::V1_2, MessageType::Request, |e| {
        let target = giop_codec::giop::TargetAddress::Key(b"desk");
        let (request_id, response) = (giop_codec::giop::RequestId(100), ResponseFlags::None);
        let contexts = Default::default();
        giop_codec::giop::RequestHeader { request_id, response, target, operation: "noted", contexts }
            .encode(e)
            .unwrap();
    })
    .to_vec();
    octets[16] = 2;
    raw.socket.write_all(&octets).await.unwrap();
    raw.response = ResponseFlags::Target;
    let reply = raw.call("noted", &[], |_| ()).await;
    assert_eq!(reply.body().read_i32(), Ok(5));
}

// clause: giop.response_flags.old
#[tokio::test]
async fn before_1_2_a_reply_is_wanted_or_not() {
    let (orb, _desk) = serving().await;
    for version in [Version::V1_0, Version::V1_1] {
        let mut raw = Raw::connect(&orb, b"desk").await;
        raw.version = version;
        raw.response = ResponseFlags::Server;
        // A oneway with a requested reply is answered.
        assert_eq!(raw.call("note", &[], |e| e.put_i32(1)).await.status(), ReplyStatus::NoException);
        assert_sum(&raw.call("add", &[], sum).await);
        raw.response = ResponseFlags::None;
        raw.send("note", &[], |e| e.put_i32(1)).await;
        raw.response = ResponseFlags::Target;
        assert_sum(&raw.call("add", &[], sum).await);
    }
}

// clause: giop.code_sets.wide_unannounced, giop.code_sets.wide_none, exc.when.wide_without_sets
#[tokio::test]
async fn wide_text_without_code_sets_is_bad_param_23() {
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    let reply = raw.call("wide", &[], |e| e.put_raw(b"\0\0\0\x02\0a")).await;
    let expected = (SystemExceptionKind::BadParam, minor::BAD_PARAM_NO_WCHAR_CODE_SET, CompletionStatus::No);
    assert_eq!(raised(&reply), expected);
    // Nor with those of a client that announces that it sends none.
    let context = CodeSetContext { char_data: CodeSetId::UTF_8, wchar_data: CodeSetId::NONE };
    let contexts = [context.to_service_context().unwrap()];
    assert_sum(&raw.call("add", &contexts, sum).await);
    let reply = raw.call("wide", &[], |e| e.put_raw(b"\0\0\0\x02\0a")).await;
    assert_eq!(raised(&reply), expected);
}

// clause: giop.code_sets.unsupported, giop.code_sets.changed, giop.code_sets.kept
// clause: exc.minor.codeset_incompatible.2, exc.minor.marshal.9, exc.kind.codeset_incompatible
#[tokio::test]
async fn code_sets_are_those_of_the_server_and_stay() {
    let (orb, _desk) = serving().await;
    let sets = |char_data, wchar_data| {
        [CodeSetContext { char_data: CodeSetId(char_data), wchar_data: CodeSetId(wchar_data) }
            .to_service_context()
            .unwrap()]
    };
    let mut raw = Raw::connect(&orb, b"desk").await;
    let strange = raw.call("add", &sets(0x7777_7777, 0), sum).await;
    let (kind, code, completed) = raised(&strange);
    assert_eq!(
        (kind, code, completed),
        (
            SystemExceptionKind::CodesetIncompatible,
            minor::CODESET_INCOMPATIBLE_DELIVERED,
            CompletionStatus::No
        )
    );
    assert_sum(&raw.call("add", &sets(0x0501_0001, 0x0001_0109), sum).await);
    assert_sum(&raw.call("add", &[], sum).await);
    // The result is in the code set of the connection.
    let reply = raw.call("euro", &[], |_| ()).await;
    let mut body = reply.body();
    body.set_code_sets(CodeSets { char: giop_codec::cdr::CharSet::Utf8, wchar: None });
    assert_eq!(body.read_string().as_deref(), Ok("€"));
    let changed = raw.call("add", &sets(0x0001_0001, 0), sum).await;
    let (kind, code, _) = raised(&changed);
    assert_eq!((kind, code), (SystemExceptionKind::Marshal, minor::MARSHAL_CODE_SETS_CHANGED));
}

// clause: exc.completed.results, giop.code_sets.conversion, exc.minor.data_conversion.1, exc.kind.data_conversion
#[tokio::test]
async fn results_that_can_not_be_sent_are_exceptions_of_a_completed_call() {
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    let reply = raw.call("euro", &[], |_| ()).await;
    let expected =
        (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER, CompletionStatus::Yes);
    assert_eq!(raised(&reply), expected);
}

// clause: poa.request.operation, poa.request.foreign_key, poa.request.stale_key, ior.key.unknown, ior.key.boot
// clause: exc.minor.bad_operation.2, exc.minor.object_not_exist.1, exc.when.stale_reference, exc.when.enum_range
#[tokio::test]
async fn what_is_not_there_and_what_can_not_be() {
    use SystemExceptionKind as Kind;
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    let unknown = raised(&raw.call("nonsense", &[], |_| ()).await);
    assert_eq!(unknown, (Kind::BadOperation, minor::BAD_OPERATION_UNKNOWN, CompletionStatus::No));
    let (kind, _, completed) = raised(&raw.call("shade", &[], |e| e.put_u32(2)).await);
    assert_eq!((kind, completed), (Kind::Marshal, CompletionStatus::No));

    // The key of an existing object, of this process and of another one.
    let other: DeskRef = orb.activate(Desk::default()).unwrap();
    let live = other.as_object().ior().iiop_profile().unwrap().object_key.as_slice().to_vec();
    raw.key = live.clone();
    assert_sum(&raw.call("add", &[], sum).await);
    let mut keys = vec![Vec::new(), b"nobody".to_vec(), b"desk\0".to_vec(), live[..live.len() - 1].to_vec()];
    for at in 0..live.len() {
        let mut key = live.clone();
        key[at] ^= 1;
        keys.push(key);
    }
    for key in keys {
        raw.key = key.clone();
        let found = raised(&raw.call("add", &[], sum).await);
        let expected = (Kind::ObjectNotExist, minor::OBJECT_NOT_EXIST_NO_OBJECT, CompletionStatus::No);
        assert_eq!(found, expected, "{key:02x?}");
    }
}

// clause: ior.object.is_a, ior.object.is_a_object, ior.object.non_existent, ior.object.not_existent
// clause: ior.object.repository_id, ior.object.get_component, exc.kind.intf_repos, exc.minor.intf_repos.1
#[tokio::test]
async fn every_object_answers_the_operations_of_objects() {
    let (orb, _desk) = serving().await;
    let mut raw = Raw::connect(&orb, b"desk").await;
    for (id, expected) in [
        ("IDL:Wire/Desk:1.0", true),
        ("IDL:omg.org/CORBA/Object:1.0", true),
        ("IDL:Wire/Big:1.0", false),
        ("", false),
    ] {
        let reply = raw.call("_is_a", &[], |e| e.put_unconverted_str(id).unwrap()).await;
        assert_eq!(reply.body().read_bool(), Ok(expected), "{id}");
    }
    for operation in ["_non_existent", "_not_existent"] {
        assert_eq!(raw.call(operation, &[], |_| ()).await.body().read_bool(), Ok(false));
    }
    let reply = raw.call("_repository_id", &[], |_| ()).await;
    assert_eq!(reply.body().read_unconverted_str(), Ok("IDL:Wire/Desk:1.0"));
    let reply = raw.call("_component", &[], |_| ()).await;
    assert_eq!(giop_codec::ior::Ior::decode(&mut reply.body()), Ok(giop_codec::ior::Ior::nil()));
    let (kind, code, _) = raised(&raw.call("_interface", &[], |_| ()).await);
    assert_eq!((kind, code), (SystemExceptionKind::IntfRepos, minor::INTF_REPOS_UNAVAILABLE));
}

// clause: giop.connection.close_from_old_client, giop.sender.close
#[tokio::test]
async fn a_client_of_any_version_may_say_that_it_goes() {
    for version in VERSIONS {
        let (orb, _desk) = serving().await;
        let mut raw = Raw::connect(&orb, b"desk").await;
        raw.version = version;
        assert_sum(&raw.call("add", &[], sum).await);
        let bye = message(version, MessageType::CloseConnection, |_| ());
        raw.socket.write_all(&bye).await.unwrap();
        let mut rest = Vec::new();
        raw.socket.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "{rest:?}");
    }
}

#[tokio::test]
async fn an_object_that_the_orb_knows_to_be_gone_answers_that_it_does_not_exist() {
    let (orb, desk) = serving().await;
    let key = desk.as_object().ior().iiop_profile().unwrap().object_key;
    let keys = [key.as_slice().to_vec(), b"never there".to_vec()];
    for operation in ["_non_existent", "_not_existent"] {
        for version in VERSIONS {
            for (key, gone) in keys.iter().zip([false, true]) {
                let mut raw = Raw::connect(&orb, key).await;
                raw.version = version;
                let reply = raw.call(operation, &[], |_| ()).await;
                assert_eq!(reply.status(), ReplyStatus::NoException, "{operation} {version}");
                assert_eq!(bool::decode(&mut reply.body()), Ok(gone), "{operation} {version}");
            }
        }
    }
    // Any other operation raises an exception.
    let mut raw = Raw::connect(&orb, b"never there").await;
    let reply = raw.call("_is_a", &[], |e| e.put_str("IDL:Wire/Desk:1.0").unwrap()).await;
    assert_eq!(reply.status(), ReplyStatus::SystemException);
}
