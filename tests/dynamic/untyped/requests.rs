//! Features of dynamic requests besides calls.

use std::time::Duration;

use zorb::dynamic::{DynamicException, Mode, NamedValue, Request};
use zorb::prelude::*;
use zorb::testing::pair;
use zorb::{CompletionStatus, SyncScope, fan_out, minor};

use super::meter::{Other, Refused, interface};
use super::pairs::served;

pub(crate) fn system(error: DynamicException) -> SystemException {
    match error {
        DynamicException::System(exception) => exception,
        other => panic!("{other}"),
    }
}

// clause: poa.messaging.dii
#[tokio::test]
async fn a_request_is_sent_now_and_awaited_later() {
    let orbs = pair();
    let (meter, _) = served(&orbs, true).await;
    let level = |value: i32| Request::new(&meter, "_set_level").input("value", value).unwrap();
    let get = Request::new(&meter, "_get_level").returns(TypeCode::LONG);
    let one = level(1);
    let mut first = one.invoke().deferred();
    first.sent().await;
    // The same request again.
    let mut second = get.invoke().deferred();
    second.sent().await;
    assert_eq!(second.await.unwrap().get::<i32>().unwrap(), 1);
    first.await.unwrap();
    level(2).invoke().await.unwrap();
    assert_eq!(get.invoke().await.unwrap().get::<i32>().unwrap(), 2);
}

// clause: poa.messaging.dii
#[tokio::test]
async fn a_request_goes_to_many_objects() {
    let orbs = pair();
    let mut meters = Vec::new();
    for level in 0..5 {
        let (meter, kept) = served(&orbs, level % 2 == 0).await;
        kept.level.store(level, std::sync::atomic::Ordering::SeqCst);
        meters.push(meter);
    }
    let request = Request::of(&meters[0], &interface(), "_get_level").unwrap();
    let answers = fan_out(&meters, Duration::from_secs(60), |meter| {
        let request = request.to(&meter);
        async move { request.invoke().await }
    });
    let levels: Vec<i32> = answers.await.iter().map(|a| a.result.as_ref().unwrap().get().unwrap()).collect();
    assert_eq!(levels, [0, 1, 2, 3, 4]);
}

// clause: exc.minor.bad_param.31
#[tokio::test]
async fn a_oneway_is_not_waited_for() {
    let orbs = pair();
    for dynamic in [false, true] {
        let (meter, kept) = served(&orbs, dynamic).await;
        let noted = Request::new(&meter, "note").input("text", "a".to_owned()).unwrap();
        noted.send_oneway().await.unwrap();
        let waits = meter.with_sync_scope(SyncScope::Target);
        noted.to(&waits).send_oneway().await.unwrap();
        assert_eq!(*kept.notes.lock().unwrap(), "aa");

        let result = Request::new(&meter, "notes").returns(TypeCode::string(0));
        let out = noted.clone().declare_out("more", TypeCode::LONG);
        for request in [result, out, noted.raises(Other::type_code())] {
            let error = request.send_oneway().await.unwrap_err();
            assert_eq!(
                (error.kind, error.minor),
                (SystemExceptionKind::BadParam, minor::BAD_PARAM_ONEWAY_DEFINITION)
            );
        }
    }
}

#[tokio::test]
async fn exceptions_are_those_that_the_request_lists() {
    let orbs = pair();
    for dynamic in [false, true] {
        let (meter, _) = served(&orbs, dynamic).await;
        let divide = Request::new(&meter, "divide")
            .input("a", 1.0)
            .and_then(|request| request.input("b", 0.0))
            .unwrap()
            .declare_out("remark", TypeCode::string(0))
            .inout("count", 3)
            .unwrap()
            .returns(TypeCode::DOUBLE);
        let unlisted = system(divide.clone().raises(Other::type_code()).invoke().await.unwrap_err());
        assert_eq!(
            (unlisted.kind, unlisted.minor, unlisted.completed),
            (SystemExceptionKind::Unknown, minor::UNKNOWN_USER_EXCEPTION, CompletionStatus::Yes)
        );
        assert!(unlisted.to_string().contains("IDL:Metering/Refused:1.0"), "{unlisted}");

        let listed = divide.raises(Other::type_code()).raises(Refused::type_code());
        let refused = listed.invoke().await.unwrap_err();
        assert_eq!(refused.repository_id(), "IDL:Metering/Refused:1.0");
        assert_eq!(refused.get(), Some(Refused { why: "zero".to_owned(), code: 3 }));
        assert_eq!(refused.get::<Other>(), None);
    }
}

// clause: exc.minor.bad_param.32
#[tokio::test]
async fn nothing_is_sent_that_the_interface_has_not() {
    let orbs = pair();
    let (meter, _) = served(&orbs, false).await;
    let interface = interface();
    let none = Request::of(&meter, &interface, "title").unwrap_err();
    assert_eq!((none.kind, none.minor), (SystemExceptionKind::BadOperation, minor::BAD_OPERATION_UNKNOWN));
    let mean = Request::of(&meter, &interface, "mean").unwrap().with("a", 1).unwrap();
    for wrong in [mean.clone().with("b", 1_i32), mean.clone().with("d", 1_i32)] {
        assert_eq!(wrong.unwrap_err().kind, SystemExceptionKind::BadParam);
    }
    let missing = system(mean.invoke().await.unwrap_err());
    assert_eq!((missing.kind, missing.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
    assert!(missing.to_string().contains("`b`"), "{missing}");
    let implicit = system(Request::new(&meter, "_hash").invoke().await.unwrap_err());
    assert_eq!(
        (implicit.kind, implicit.minor),
        (SystemExceptionKind::BadParam, minor::BAD_PARAM_IMPLICIT_OPERATION)
    );
    let asked = Request::new(&meter, "_component").returns(ObjectRef::type_code()).invoke().await.unwrap();
    assert_eq!(asked.get::<Option<ObjectRef>>().unwrap(), None);
}

#[tokio::test]
async fn a_server_refuses_what_does_not_fit() {
    let orbs = pair();
    for dynamic in [false, true] {
        let (meter, _) = served(&orbs, dynamic).await;
        let unknown = system(Request::new(&meter, "title").invoke().await.unwrap_err());
        assert_eq!(
            (unknown.kind, unknown.minor),
            (SystemExceptionKind::BadOperation, minor::BAD_OPERATION_UNKNOWN)
        );
        // Fewer bytes than the arguments need.
        let short = NamedValue::new("a", Mode::In, Any::new(1_i32).unwrap());
        let short = system(Request::new(&meter, "mean").arg(short).invoke().await.unwrap_err());
        assert_eq!((short.kind, short.completed), (SystemExceptionKind::Marshal, CompletionStatus::No));
        // More results than the reply has.
        let long =
            Request::new(&meter, "_get_level").returns(TypeCode::DOUBLE).declare_out("more", TypeCode::LONG);
        let long = system(long.invoke().await.unwrap_err());
        assert_eq!((long.kind, long.completed), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
    }
}

#[tokio::test]
async fn results_that_do_not_decode_are_told_by_their_place() {
    let orbs = pair();
    let (meter, _) = served(&orbs, false).await;
    let frame = [("name", &TypeCode::string(0)), ("width", &TypeCode::SHORT)];
    let frame = TypeCode::create_struct("IDL:Frame:1.0", "Frame", &frame).unwrap();
    let frames = [("count", &TypeCode::LONG), ("frames", &TypeCode::sequence(&frame, 0))];
    let frames = TypeCode::create_struct("IDL:Frames:1.0", "Frames", &frames).unwrap();
    // The bytes are returned after their count, and the second name is longer than the message.
    let octets = [2_u32, 1, 0, 1000, 0, 0].map(u32::to_ne_bytes).concat();
    let bulk = Request::new(&meter, "bulk").input("data", Bytes::from(octets)).unwrap();
    let error = system(bulk.clone().returns(frames).invoke().await.unwrap_err());
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
    assert!(error.to_string().contains("`bulk` cannot be decoded: $result.frames[1].name: "), "{error}");
    let more = bulk.returns(Bytes::type_code()).declare_out("more", TypeCode::sequence(&TypeCode::DOUBLE, 0));
    let error = system(more.invoke().await.unwrap_err());
    assert!(error.to_string().contains("`bulk` cannot be decoded: more: "), "{error}");
}
