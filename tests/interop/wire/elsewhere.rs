//! Plain keys of a zorb server that lead to objects elsewhere.

use giop_codec::Version;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::giop::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType, ReplyStatus, RequestId,
    TargetAddress,
};
use giop_codec::ior::Ior;
use tokio::io::AsyncWriteExt;
use zorb::poa::ForwardRequest;
use zorb::prelude::*;
use zorb::{ActivateError, SyncScope};

use crate::wire::peer::{Raw, message, read};
use crate::wire::server::{Desk, serving};
use crate::wire::wire::DeskRef;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

/// Returns names that lead to the desk: temporarily and permanently.
fn leading_to(desk: &DeskRef, orb: &Orb) -> [DeskRef; 2] {
    let forward = ForwardRequest::to(desk);
    let names = [("old", forward.clone()), ("older", forward.permanently())];
    names.map(|(name, forward)| DeskRef::from_object(orb.forward_named(name, forward).unwrap()))
}

async fn located(raw: &mut Raw) -> (LocateStatus, Option<Ior>) {
    let octets = message(raw.version, MessageType::LocateRequest, |e| {
        let target = TargetAddress::Key(&raw.key);
        LocateRequestHeader { request_id: RequestId(4711), target }.encode(e).unwrap();
    });
    raw.socket.write_all(&octets).await.unwrap();
    let (header, octets) = read(&mut raw.socket).await.unwrap();
    let mut d = Decoder::new(&octets, header.order, header.version).at(MessageHeader::LEN);
    let reply = LocateReplyHeader::decode(&mut d).unwrap();
    assert_eq!(reply.request_id, RequestId(4711));
    let to = (d.remaining() > 0).then(|| Ior::decode(&mut d).unwrap());
    assert_eq!(d.remaining(), 0);
    (reply.status, to)
}

// clause: giop.status.location_forward.sent, giop.locate.object_forward.sent, giop.locate.object_forward_perm
#[tokio::test]
async fn requests_and_locate_requests_are_told_the_way() {
    let (orb, desk) = serving().await;
    let _names = leading_to(&desk, &orb);
    for (key, permanent) in [("old", false), ("older", true)] {
        let mut raw = Raw::connect(&orb, key.as_bytes()).await;
        for version in VERSIONS {
            raw.version = version;
            // Before 1.2 there are no permanent forwards.
            let permanent = permanent && version == Version::V1_2;
            let status =
                if permanent { LocateStatus::ObjectForwardPerm } else { LocateStatus::ObjectForward };
            assert_eq!(located(&mut raw).await, (status, Some(desk.ior().clone())), "{key} {version:?}");
            for operation in ["add", "_is_a", "_non_existent", "nobody knows it"] {
                let reply = raw.call(operation, &[], |_| ()).await;
                let status = match permanent {
                    true => ReplyStatus::LocationForwardPerm,
                    false => ReplyStatus::LocationForward,
                };
                assert_eq!(reply.status(), status, "{operation} of {key} {version:?}");
                assert_eq!(Ior::decode(&mut reply.body()).unwrap(), *desk.ior());
            }
        }
        raw.key = b"desk".to_vec();
        assert_eq!(located(&mut raw).await, (LocateStatus::ObjectHere, None));
    }
}

// clause: giop.status.location_forward.sent, ior.corbaloc.forward, giop.response_flags.forward
#[tokio::test]
async fn clients_go_on_at_the_object() {
    let (here, there) = (Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap(), serving().await);
    let (there, desk) = there;
    let client = Orb::builder().build().await.unwrap();
    for name in leading_to(&desk, &here) {
        assert_eq!(name.ior().type_id, "IDL:Wire/Desk:1.0");
        let old: DeskRef = client.resolve(&name.to_string()).await.unwrap();
        assert_eq!(old.add(40, 2).await.unwrap(), 42);
        assert!(old.locate().await.unwrap() && !old.non_existent().await.unwrap());
        let asked = here.stats().messages_in;
        assert_eq!(old.add(1, 2).await.unwrap(), 3);
        assert_eq!(here.stats().messages_in, asked, "it is remembered");
    }
    let url = format!("corbaloc:iiop:1.2@{}/old", here.endpoints()[0]);
    let old: DeskRef = client.resolve_unchecked(&url).await.unwrap();
    assert!(old.locate().await.unwrap());
    assert_eq!(old.add(40, 2).await.unwrap(), 42);
    let old: DeskRef = client.resolve_unchecked(&url).await.unwrap();
    old.with_sync_scope(SyncScope::Target).note(7).await.unwrap();
    assert_eq!(desk.noted().await.unwrap(), 7, "a oneway whose sender waits follows");
    there.deactivate(&desk);
    assert_eq!(old.add(1, 2).await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    assert!(old.non_existent().await.unwrap());
}

// clause: giop.status.location_forward
#[tokio::test]
async fn names_lead_elsewhere_in_the_same_process_too() {
    for listens in [true, false] {
        let builder = Orb::builder();
        let builder = if listens { builder.listen("iiop://127.0.0.1:0") } else { builder };
        let here = builder.build().await.unwrap();
        let (there, far) = serving().await;
        for name in leading_to(&far, &here) {
            assert_eq!(name.add(40, 2).await.unwrap(), 42);
            for (id, yes) in [("IDL:Wire/Desk:1.0", true), ("IDL:Wire/Tower:1.0", false)] {
                assert_eq!(name.is_a(id).await.unwrap(), yes);
            }
            assert!(!name.non_existent().await.unwrap() && name.locate().await.unwrap());
        }
        there.deactivate(&far);
        if !listens {
            continue;
        }
        let near: DeskRef = here.activate(Desk::default()).unwrap();
        let name = here.forward_named("near", ForwardRequest::to(&near)).unwrap();
        let name = DeskRef::from_object(name);
        assert_eq!(name.add(40, 2).await.unwrap(), 42);
        // As with any object, the name is in use until it is released.
        let again = here.forward_named("near", ForwardRequest::to(&near)).unwrap_err();
        assert_eq!(again, ActivateError::KeyInUse("near".into()));
        let reserved = here.forward_named(b"\xfbzo\x01", ForwardRequest::to(&near)).unwrap_err();
        assert!(matches!(reserved, ActivateError::ReservedKey(_)), "{reserved}");
        assert!(here.deactivate(&near));
        assert!(name.non_existent().await.unwrap());
        assert!(here.deactivate(&name) && !here.deactivate(&name));
        assert_eq!(name.add(1, 2).await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
        let desk: DeskRef = here.activate_named("near", Desk::default()).unwrap();
        assert_eq!((desk.add(1, 2).await.unwrap(), name.add(2, 2).await.unwrap()), (3, 4));
    }
}

// clause: giop.status.location_forward.sent
#[tokio::test]
async fn a_target_without_an_address_is_an_exception() {
    let (orb, _desk) = serving().await;
    let silent = Orb::builder().build().await.unwrap();
    let nowhere: DeskRef = silent.activate(Desk::default()).unwrap();
    orb.forward_named("lost", ForwardRequest::to(&nowhere)).unwrap();
    let mut raw = Raw::connect(&orb, b"lost").await;
    assert_eq!(located(&mut raw).await, (LocateStatus::ObjectHere, None));
    assert_eq!(raw.call("add", &[], |_| ()).await.status(), ReplyStatus::SystemException);
}
