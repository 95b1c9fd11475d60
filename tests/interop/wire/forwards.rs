//! Servers that forward calls, and those that request another form of address.

use giop_codec::cdr::{CdrEncode, Decoder};
use giop_codec::giop::{
    AddressingDisposition, LocateRequestHeader, LocateStatus, MessageHeader, ReplyStatus, RequestHeader,
    TargetAddress,
};
use giop_codec::ior::{Ior, ProfileTag, TaggedProfile};
use zorb::minor;
use zorb::prelude::*;
use zorb::wire::RebindMode;
use zorb::{Retry, SyncScope};

use crate::wire::peer::{Answer, Asked, Fake, dead_port, reference};
use crate::wire::wire::DeskRef;

/// Returns a client with a reference. The ORB must live as long.
async fn client(ior: &Ior) -> (Orb, DeskRef) {
    let orb = Orb::builder().build().await.unwrap();
    let desk = orb.resolve_unchecked(&ior.to_string()).await.unwrap();
    (orb, desk)
}

/// Returns a server that answers `add`.
async fn adds() -> Fake {
    Fake::new(|asked| match asked.operation().as_str() {
        "add" => {
            let request = asked.request();
            let mut arguments = request.body();
            Answer::value(arguments.read_i32().unwrap() + arguments.read_i32().unwrap())
        }
        _ => Answer::Drop,
    })
    .await
}

// clause: giop.status.location_forward, giop.status.location_forward_perm
#[tokio::test]
async fn a_forward_is_followed_with_the_whole_request_and_remembered() {
    for status in [ReplyStatus::LocationForward, ReplyStatus::LocationForwardPerm] {
        let there = adds().await;
        let to = there.ior();
        let here = Fake::new(move |_| {
            let to = to.clone();
            Answer::Reply(status, Box::new(move |e| to.encode(e).unwrap()))
        })
        .await;
        let (_orb, desk) = client(&here.ior()).await;
        assert_eq!(desk.add(40, 2).await.unwrap(), 42);
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
        assert_eq!((here.asked().len(), there.asked().len()), (1, 2));
    }
}

// clause: ior.corbaloc.forward, ior.corbaloc.version
#[tokio::test]
async fn a_forward_may_lead_to_a_higher_version() {
    let there = adds().await;
    let to = there.ior();
    let here = Fake::new(move |_| Answer::forward(&to)).await;
    let client = Orb::builder().build().await.unwrap();
    let url = format!("corbaloc::127.0.0.1:{}/desk", here.port);
    let desk: DeskRef = client.resolve_unchecked(&url).await.unwrap();
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    let version = |asked: &Asked| asked.header.version.minor();
    assert_eq!((here.last(version), there.last(version)), (0, 2));
}

// clause: giop.forward.hops, giop.forward.cycle
#[tokio::test]
async fn forwards_in_a_circle_end_after_ten() {
    let port = std::sync::Arc::new(std::sync::OnceLock::new());
    let to = std::sync::Arc::clone(&port);
    let first = Fake::new(move |_| Answer::forward(to.get().unwrap())).await;
    let back = first.ior();
    let second = Fake::new(move |_| Answer::forward(&back)).await;
    port.set(second.ior()).unwrap();
    let (_orb, desk) = client(&first.ior()).await;
    let error = desk.add(1, 2).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    assert_eq!(first.asked().len() + second.asked().len(), 11);
}

// clause: giop.forward.nil, exc.kind.inv_objref
#[tokio::test]
async fn a_forward_to_nowhere_is_inv_objref() {
    for to in [Ior::nil(), reference(&[])] {
        let here = Fake::new(move |_| Answer::forward(&to)).await;
        let (_orb, desk) = client(&here.ior()).await;
        let error = desk.add(1, 2).await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::InvObjref, CompletionStatus::No));
    }
}

// clause: giop.forward.falls_back
#[tokio::test]
async fn where_the_other_place_fails_the_first_one_is_asked_again() {
    let there = Fake::new(|asked| match asked.before {
        0 => Answer::value(1_i32),
        _ => Answer::raise(SystemException::object_not_exist()),
    })
    .await;
    let mut nobody = there.profile();
    nobody.port = dead_port();
    // The targets of the forward: a server that answers once and is then gone; and an address without a
    // server.
    for (to, sums) in [(there.ior(), [1, 7]), (reference(&[nobody]), [7, 7])] {
        let here = Fake::new(move |asked| match asked.before {
            0 => Answer::forward(&to),
            _ => Answer::value(7_i32),
        })
        .await;
        let (_orb, desk) = client(&here.ior()).await;
        for sum in sums {
            assert_eq!(desk.add(1, 2).await.unwrap(), sum);
        }
    }
}

// clause: giop.forward.falls_back
#[tokio::test]
async fn what_the_place_of_a_new_forward_raises_is_raised() {
    let there = Fake::new(|_| Answer::raise(SystemException::object_not_exist())).await;
    let to = there.ior();
    let here = Fake::new(move |_| Answer::forward(&to)).await;
    let (_orb, desk) = client(&here.ior()).await;
    for (first, second) in [(1, 1), (2, 3)] {
        let error = desk.add(1, 2).await.unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
        // For the second call the forward is outdated: the original location is queried again, once.
        assert_eq!((here.asked().len(), there.asked().len()), (first, second));
    }
}

// clause: giop.status.needs_addressing_mode, giop.target.key, giop.target.profile, giop.target.reference, giop.target.remembered
#[tokio::test]
async fn what_a_server_wants_as_address_is_sent() {
    for wanted in [AddressingDisposition::Profile, AddressingDisposition::Reference] {
        let server = Fake::new(move |asked| match asked.before {
            0 => {
                Answer::Reply(ReplyStatus::NeedsAddressingMode, Box::new(move |e| wanted.encode(e).unwrap()))
            }
            _ => Answer::value(3_i32),
        })
        .await;
        let (_orb, desk) = client(&server.ior()).await;
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
        let disposition = server.last(|asked| match address(asked) {
            TargetAddress::Key(_) => AddressingDisposition::Key,
            TargetAddress::Profile(_) => AddressingDisposition::Profile,
            TargetAddress::Reference(_) => AddressingDisposition::Reference,
        });
        assert_eq!(disposition, wanted);
        // From then on it is sent immediately.
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
        assert_eq!(server.asked().len(), 3);
        let again = server.last(|asked| !matches!(address(asked), TargetAddress::Key(_)));
        assert!(again, "it is remembered");
    }
    // A server that always requests more receives it once.
    let server = Fake::new(|_| wants(AddressingDisposition::Profile)).await;
    let (_orb, desk) = client(&server.ior()).await;
    let error = desk.add(1, 2).await.unwrap_err();
    assert_eq!((error.kind, server.asked().len()), (SystemExceptionKind::Transient, 2));
}

/// Returns the address of a request.
fn address(asked: &Asked) -> TargetAddress<'_> {
    let mut d = Decoder::new(&asked.octets, asked.header.order, asked.header.version).at(MessageHeader::LEN);
    RequestHeader::decode(&mut d).unwrap().target
}

fn wants(disposition: AddressingDisposition) -> Answer {
    Answer::Reply(ReplyStatus::NeedsAddressingMode, Box::new(move |e| disposition.encode(e).unwrap()))
}

// clause: giop.target.reference
#[tokio::test]
async fn a_reference_as_address_names_the_profile_that_is_called() {
    let server = Fake::new(|asked| match asked.before {
        0 => wants(AddressingDisposition::Reference),
        _ => Answer::value(3_i32),
    })
    .await;
    let mut nobody = server.profile();
    nobody.port = dead_port();
    let mut ior = reference(&[nobody, server.profile()]);
    let strange = TaggedProfile { tag: ProfileTag(0x4a41_4300), data: Bytes::from_static(b"?") };
    ior.profiles.insert(0, strange);
    let (_orb, desk) = client(&ior).await;
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    server.last(|asked| {
        let TargetAddress::Reference(found) = address(asked) else { panic!("a reference") };
        assert_eq!((found.selected_profile, &found.ior), (2, &ior));
    });
}

// clause: giop.status.needs_addressing_mode, giop.target.key, giop.target.reference
#[tokio::test]
async fn what_one_server_wants_as_address_says_nothing_of_the_next() {
    let there = Fake::new(|asked| match asked.before {
        1 => wants(AddressingDisposition::Reference),
        _ => Answer::value(3_i32),
    })
    .await;
    let to = there.ior();
    let here = Fake::new(move |asked| match asked.before {
        0 => wants(AddressingDisposition::Reference),
        _ => Answer::forward(&to),
    })
    .await;
    let (_orb, desk) = client(&here.ior()).await;
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    there.last(|asked| assert_eq!(address(asked), TargetAddress::Key(b"desk")));
    // The new location requests it too. The address sent there is the reference to that location.
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    there.last(|asked| {
        let TargetAddress::Reference(found) = address(asked) else { panic!("a reference") };
        assert_eq!((found.selected_profile, found.ior), (0, there.ior()));
    });
}

// clause: giop.locate.unknown_object, giop.locate.object_here, giop.locate.object_forward
// clause: giop.locate.object_forward_perm, giop.locate.system_exception, giop.locate.body_alignment
#[tokio::test]
async fn every_locate_status_is_understood() {
    let there = Fake::new(|asked| match asked.operation().as_str() {
        "LocateRequest" => Answer::Locate(LocateStatus::ObjectHere, Box::new(|_| ())),
        _ => Answer::value(3_i32),
    })
    .await;
    for status in [LocateStatus::ObjectForward, LocateStatus::ObjectForwardPerm] {
        let to = there.ior();
        let here = Fake::new(move |_| {
            let to = to.clone();
            Answer::Locate(status, Box::new(move |e| to.encode(e).unwrap()))
        })
        .await;
        let (_orb, desk) = client(&here.ior()).await;
        assert!(desk.locate().await.unwrap());
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
        assert_eq!(here.asked(), ["LocateRequest"]);
    }
    let unknown = Fake::new(|_| Answer::Locate(LocateStatus::UnknownObject, Box::new(|_| ()))).await;
    let (_orb, desk) = client(&unknown.ior()).await;
    assert!(!desk.locate().await.unwrap());
    let raises = Fake::new(|_| {
        let exception = SystemException::no_permission().with_minor(minor::TRANSIENT_DISCARDED);
        Answer::Locate(LocateStatus::SystemException, Box::new(move |e| exception.encode(e).unwrap()))
    })
    .await;
    let (_orb, desk) = client(&raises.ior()).await;
    let error = desk.locate().await.unwrap_err();
    assert_eq!((error.kind, error.minor), (SystemExceptionKind::NoPermission, minor::TRANSIENT_DISCARDED));
}

// clause: giop.locate.needs_addressing_mode
#[tokio::test]
async fn a_locate_request_has_the_form_of_address_that_is_wanted() {
    for wanted in [AddressingDisposition::Profile, AddressingDisposition::Reference] {
        let server = Fake::new(move |asked| match asked.before {
            0 => Answer::Locate(
                LocateStatus::NeedsAddressingMode,
                Box::new(move |e| wanted.encode(e).unwrap()),
            ),
            _ => Answer::Locate(LocateStatus::ObjectHere, Box::new(|_| ())),
        })
        .await;
        let (_orb, desk) = client(&server.ior()).await;
        assert!(desk.locate().await.unwrap());
        let as_wanted = server.last(|asked| {
            let mut d =
                Decoder::new(&asked.octets, asked.header.order, asked.header.version).at(MessageHeader::LEN);
            match LocateRequestHeader::decode(&mut d).unwrap().target {
                TargetAddress::Key(_) => false,
                TargetAddress::Profile(_) => wanted == AddressingDisposition::Profile,
                TargetAddress::Reference(_) => wanted == AddressingDisposition::Reference,
            }
        });
        assert!(as_wanted);
    }
    let server = Fake::new(|_| {
        let wanted = AddressingDisposition::Profile;
        Answer::Locate(LocateStatus::NeedsAddressingMode, Box::new(move |e| wanted.encode(e).unwrap()))
    })
    .await;
    let (_orb, desk) = client(&server.ior()).await;
    let error = desk.locate().await.unwrap_err();
    assert_eq!((error.kind, server.asked().len()), (SystemExceptionKind::Transient, 2));
}

// clause: giop.status.needs_addressing_mode, giop.locate.needs_addressing_mode
#[tokio::test]
async fn what_says_where_or_how_to_call_and_does_not_decode_executed_nothing() {
    use ReplyStatus::{LocationForward, LocationForwardPerm, NeedsAddressingMode};
    for status in [NeedsAddressingMode, LocationForward, LocationForwardPerm] {
        let server = Fake::new(move |_| Answer::Reply(status, Box::new(|e| 9_i16.encode(e).unwrap()))).await;
        let (_orb, desk) = client(&server.ior()).await;
        let error = desk.add(1, 2).await.unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::Marshal, CompletionStatus::No),
            "{error}"
        );
    }
    let located: [fn() -> Answer; 3] = [
        || Answer::Locate(LocateStatus::NeedsAddressingMode, Box::new(|e| 9_i16.encode(e).unwrap())),
        || Answer::Locate(LocateStatus::ObjectForward, Box::new(|_| ())),
        || Answer::LocateNumber(77),
    ];
    for answer in located {
        let server = Fake::new(move |_| answer()).await;
        let (_orb, desk) = client(&server.ior()).await;
        let error = desk.locate().await.unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::Marshal, CompletionStatus::No),
            "{error}"
        );
    }
}

// clause: poa.messaging.rebind, poa.messaging.no_rebind, poa.messaging.override, ior.object.validate_connection
// clause: exc.kind.rebind, exc.when.no_rebind
#[tokio::test]
async fn a_reference_may_forbid_to_go_elsewhere() {
    let there = Fake::new(|asked| match asked.operation().as_str() {
        "LocateRequest" => Answer::Locate(LocateStatus::ObjectHere, Box::new(|_| ())),
        _ => Answer::value(3_i32),
    })
    .await;
    let to = there.ior();
    let here = Fake::new(move |asked| match asked.operation().as_str() {
        "LocateRequest" => {
            let to = to.clone();
            Answer::Locate(LocateStatus::ObjectForward, Box::new(move |e| to.encode(e).unwrap()))
        }
        _ => Answer::forward(&to),
    })
    .await;
    for mode in [RebindMode::NoRebind, RebindMode::NoReconnect] {
        let (_orb, desk) = client(&here.ior()).await;
        let stays = desk.with_rebind(mode);
        assert_eq!((stays.rebind(), desk.rebind()), (mode, RebindMode::Transparent));
        let error = stays.add(1, 2).await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::Rebind, CompletionStatus::No));
        stays.validate_connection().await.unwrap();
        assert_eq!(stays.add(1, 2).await.unwrap(), 3);
    }
    // The one that allows it is forwarded.
    let (_orb, desk) = client(&here.ior()).await;
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
}

// clause: poa.messaging.rebind, poa.messaging.no_rebind, ior.object.validate_connection
#[tokio::test]
async fn a_reference_may_forbid_another_connection() {
    let server = Fake::new(|asked| match asked.operation().as_str() {
        "LocateRequest" => Answer::Locate(LocateStatus::ObjectHere, Box::new(|_| ())),
        _ if asked.before == 1 => Answer::Close,
        _ => Answer::value(3_i32),
    })
    .await;
    let (_orb, desk) = client(&server.ior()).await;
    let stays = desk.with_rebind(RebindMode::NoReconnect).with_retry(Retry::Never);
    assert_eq!(stays.add(1, 2).await.unwrap(), 3);
    assert!(stays.add(1, 2).await.is_err(), "the server closes");
    let error = stays.add(1, 2).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Rebind, CompletionStatus::No));
    stays.validate_connection().await.unwrap();
    assert_eq!(stays.add(1, 2).await.unwrap(), 3);
    // Binding fails without the object.
    let nothing = Fake::new(|_| Answer::Locate(LocateStatus::UnknownObject, Box::new(|_| ()))).await;
    let (_orb, desk) = client(&nothing.ior()).await;
    let error = desk.validate_connection().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
}

// clause: ior.object.get_policy, poa.messaging.override, poa.messaging.times
#[tokio::test]
async fn what_a_reference_does_differently_can_be_asked() {
    let server = Fake::new(|_| Answer::value(3_i32)).await;
    let (_orb, desk) = client(&server.ior()).await;
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let other = desk.with_timeout(second).with_retry(Retry::Never).with_sync_scope(SyncScope::Target);
    assert_eq!(
        (other.timeout(), other.retry(), other.sync_scope()),
        (Some(second), Retry::Never, SyncScope::Target)
    );
    assert_eq!((desk.retry(), desk.sync_scope()), (Retry::NotExecuted, SyncScope::Queued));
    assert_eq!(other.without_timeout().timeout(), None);
    // A deadline that has passed, and one far beyond the timeout.
    let over = desk.with_deadline(std::time::Instant::now());
    assert_eq!(over.add(1, 2).await.unwrap_err().kind, SystemExceptionKind::Timeout);
    // Connected, but never accepted.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut nobody = server.profile();
    nobody.port = silent.local_addr().unwrap().port();
    let (_orb, desk) = client(&reference(&[nobody])).await;
    let late = desk.with_timeout(Duration::from_millis(50)).with_deadline(std::time::Instant::now() + minute);
    assert_eq!(late.add(1, 2).await.unwrap_err().kind, SystemExceptionKind::Timeout);
}
