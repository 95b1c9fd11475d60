//! The messages of zorb's client, and its handling of answers.

use giop_codec::Version;
use giop_codec::code_set::CodeSetContext;
use giop_codec::giop::{ContextId, ReplyStatus};
use zorb::prelude::*;
use zorb::{SyncScope, minor};

use crate::wire::peer::{Answer, Fake, code_sets, reference};
use crate::wire::wire::{DeskRef, desk};

async fn client(ior: &giop_codec::ior::Ior) -> (Orb, DeskRef) {
    let orb = Orb::builder().build().await.unwrap();
    let desk = orb.resolve_unchecked(&ior.to_string()).await.unwrap();
    (orb, desk)
}

// clause: giop.request.principal, giop.request.extra_octets, giop.request.order_1_0, giop.request.order_1_1
#[tokio::test]
async fn requests_end_behind_their_arguments() {
    for (version, behind) in [(Version::V1_0, 12), (Version::V1_1, 12), (Version::V1_2, 8)] {
        let server = Fake::new(|_| Answer::value(3_i32)).await;
        let (_orb, desk) = client(&reference(&[server.profile().with_version(version)])).await;
        desk.add(1, 2).await.unwrap();
        server.last(|asked| {
            assert_eq!(asked.header.version, version);
            let octets = &asked.octets[..];
            let arguments = [1_i32.to_ne_bytes(), 2_i32.to_ne_bytes()].concat();
            assert!(octets.ends_with(&arguments));
            // Before them, up to 1.1, an empty principal.
            let before = &octets[octets.len() - behind..octets.len() - 8];
            assert!(before.iter().all(|octet| *octet == 0), "{before:?}");
            assert_eq!(asked.request().body().remaining(), 8);
        });
    }
}

// clause: giop.code_sets.announced, giop.context.code_sets, giop.code_sets.never_converted
#[tokio::test]
async fn code_sets_are_announced_until_the_first_reply() {
    let server = Fake::new(|_| Answer::value(3_i32)).await;
    let (_orb, desk) = client(&reference(&[server.profile().with_component(code_sets())])).await;
    let announced = || {
        server.last(|asked| {
            let request = asked.request();
            assert_eq!(request.operation(), "add");
            let context = request.contexts().find(ContextId::CODE_SETS);
            context.map(|context| context.value::<CodeSetContext>().unwrap())
        })
    };
    desk.add(1, 2).await.unwrap();
    let sets = announced().unwrap();
    assert_eq!((sets.char_data.0, sets.wchar_data.0), (0x0501_0001, 0x0001_0109));
    desk.add(1, 2).await.unwrap();
    assert_eq!(announced(), None);
}

// clause: giop.code_sets.without, giop.code_sets.wide_without, giop.code_sets.wide_1_0
#[tokio::test]
async fn wide_text_that_the_server_can_not_have_is_not_sent() {
    for (version, kind, code) in [
        (Version::V1_2, SystemExceptionKind::InvObjref, minor::INV_OBJREF_NO_WCHAR),
        (Version::V1_0, SystemExceptionKind::Marshal, minor::MARSHAL_WCHAR_SENT_1_0),
    ] {
        let server = Fake::new(|_| Answer::value(3_i32)).await;
        let (_orb, desk) = client(&reference(&[server.profile().with_version(version)])).await;
        let error = desk.wide(&WString::from("wide")).await.unwrap_err();
        assert_eq!((error.kind, error.minor, error.completed), (kind, code, CompletionStatus::No));
        assert!(server.asked().is_empty());
        desk.add(1, 2).await.unwrap();
        server.last(|asked| assert_eq!(asked.request().contexts().find(ContextId::CODE_SETS), None));
    }
}

// clause: exc.user.unknown, exc.minor.unknown.1
#[tokio::test]
async fn an_exception_that_is_not_listed_is_unknown_1() {
    let server = Fake::new(|asked| {
        let id = if asked.before == 0 { "IDL:Wire/Strange:1.0" } else { "IDL:Wire/Refused:1.0" };
        Answer::Reply(
            ReplyStatus::UserException,
            Box::new(move |e| {
                e.put_unconverted_str(id).unwrap();
                e.put_i32(7);
                e.put_i32(8);
            }),
        )
    })
    .await;
    let (_orb, desk) = client(&server.ior()).await;
    let Err(desk::GuardedError::System(error)) = desk.guarded(1).await else { panic!("it is unknown") };
    assert_eq!((error.kind, error.minor), (SystemExceptionKind::Unknown, minor::UNKNOWN_USER_EXCEPTION));
    assert_eq!(
        desk.guarded(1).await,
        Err(desk::GuardedError::Refused(crate::wire::wire::Refused { why: 7 })),
        "the connection is as before"
    );
}

// clause: giop.connection.close_resend
#[tokio::test]
async fn what_was_not_processed_is_sent_again() {
    // Closed in an orderly way instead of an answer.
    let server =
        Fake::new(|asked| if asked.before == 1 { Answer::Close } else { Answer::value(3_i32) }).await;
    let (_orb, desk) = client(&server.ior()).await;
    for _ in 0..3 {
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    }
    assert_eq!(server.asked().len(), 4);
}

// clause: giop.connection.lost_unwritten
#[tokio::test]
async fn a_connection_that_was_lost_before_the_call_costs_it_nothing() {
    let server = Fake::new(|asked| match asked.operation().as_str() {
        "note" => Answer::Drop,
        _ => Answer::value(3_i32),
    })
    .await;
    let (orb, desk) = client(&server.ior()).await;
    for _ in 0..3 {
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
        desk.note(1).await.unwrap();
        while orb.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

// clause: giop.connection.lost, exc.when.lost, exc.when.retry
#[tokio::test]
async fn what_may_have_been_processed_is_not_sent_again() {
    let server = Fake::new(|asked| if asked.before == 1 { Answer::Drop } else { Answer::value(3_i32) }).await;
    let (_orb, desk) = client(&server.ior()).await;
    desk.add(1, 2).await.unwrap();
    let error = desk.add(1, 2).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    assert_eq!(server.asked().len(), 2);
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
}

// clause: exc.when.after_shutdown, poa.orb.after_shutdown, exc.kind.bad_inv_order, exc.minor.bad_inv_order.4
#[tokio::test]
async fn calls_after_the_shutdown_are_bad_inv_order_4() {
    let server = Fake::new(|_| Answer::value(3_i32)).await;
    let (orb, desk) = client(&server.ior()).await;
    desk.add(1, 2).await.unwrap();
    orb.shutdown().await;
    let error = desk.add(1, 2).await.unwrap_err();
    assert_eq!(
        (error.kind, error.minor, error.completed),
        (SystemExceptionKind::BadInvOrder, minor::BAD_INV_ORDER_SHUTDOWN, CompletionStatus::No)
    );
    assert_eq!(server.asked().len(), 1);
}

// clause: exc.when.reply_undecodable, exc.completed.reply, giop.reply.undecodable
#[tokio::test]
async fn results_that_do_not_decode_are_marshal_yes() {
    let server = Fake::new(|_| Answer::value(3_i16)).await;
    let (_orb, desk) = client(&server.ior()).await;
    let error = desk.add(1, 2).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
}

// clause: poa.messaging.sync_scope.with_transport
#[tokio::test]
async fn a_oneway_with_transport_is_with_the_system_when_it_returns() {
    use std::io::Read;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/desk");
    let orb = Orb::builder().build().await.unwrap();
    let desk: DeskRef = orb.resolve_unchecked(&url).await.unwrap();
    for number in [5, 6] {
        desk.with_sync_scope(SyncScope::Transport).note(number).await.unwrap();
    }
    // From here on only this thread runs, and the client's tasks do not.
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for number in [5_i32, 6] {
        let mut header = [0; 12];
        socket.read_exact(&mut header).unwrap();
        let header = giop_codec::giop::MessageHeader::decode(&header).unwrap();
        let mut rest = vec![0; header.size as usize];
        socket.read_exact(&mut rest).unwrap();
        assert!(rest.ends_with(&number.to_ne_bytes()));
    }
}
