//! Clients that are called over the connections that they opened.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use giop_codec::Version;
use giop_codec::cdr::{CdrDecode, CdrEncode};
use giop_codec::code_set::{CodeSetContext, CodeSetId};
use giop_codec::giop::{
    BiDirIiopServiceContext, ContextId, ListenPoint, MessageType, ObjectKey, ReplyHeader, ReplyMessage,
    ReplyStatus, RequestId, RequestMessage, ServiceContext, ServiceContexts, begin_body,
};
use giop_codec::ior::{IiopProfile, Ior, TaggedComponent};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use zorb::prelude::*;
use zorb::{OrbBuilder, Peer, SystemExceptionKind};

use crate::wire::peer::{Answer, Fake, Raw, code_sets, dead_port, message, read, reference};
use crate::wire::wire::{DeskRef, TowerServant};

#[derive(Clone, Default)]
struct Tower {
    kept: Arc<Mutex<Option<DeskRef>>>,
}

impl TowerServant for Tower {
    async fn ring(&self, desk: Option<DeskRef>, times: i32) -> Result<i32, SystemException> {
        let desk = desk.unwrap();
        let mut sum = 0;
        for number in 0..times {
            sum = desk.add(sum, number).await?;
        }
        Ok(sum)
    }

    async fn keep(&self, desk: Option<DeskRef>) -> Result<(), SystemException> {
        *self.kept.lock().unwrap() = desk;
        Ok(())
    }
}

impl Tower {
    fn kept(&self) -> DeskRef {
        self.kept.lock().unwrap().clone().unwrap()
    }
}

async fn tower(builder: OrbBuilder) -> (Orb, Tower) {
    let orb = builder.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let tower = Tower::default();
    orb.activate_named::<crate::wire::wire::TowerRef, _>("tower", tower.clone()).unwrap();
    (orb, tower)
}

fn anyone(_: &Peer, _: &str, _: u16) -> bool {
    true
}

/// Returns a reference to an object of a client with that address.
fn desk_at(host: &str, port: u16) -> Ior {
    let mut profile = IiopProfile::new(host, port, ObjectKey::from_static(b"my desk"));
    profile.components.push(code_sets());
    reference(&[profile])
}

fn offer(host: &str, port: u16) -> ServiceContext {
    let points = BiDirIiopServiceContext { listen_points: vec![ListenPoint::new(host, port)] };
    points.to_service_context().unwrap()
}

/// Receives a callback, which must be `add`, and answers it.
async fn answer_add(client: &mut Raw) -> (RequestMessage, RequestId) {
    let (header, octets) = read(&mut client.socket).await.unwrap();
    assert_eq!(header.kind, MessageType::Request, "it is called back over its own connection");
    add(client, RequestMessage::decode(&header, octets).unwrap()).await
}

/// Answers a call of `add`.
async fn add(client: &mut Raw, request: RequestMessage) -> (RequestMessage, RequestId) {
    let mut arguments = request.body();
    let sum = i32::decode(&mut arguments).unwrap() + i32::decode(&mut arguments).unwrap();
    let request_id = request.request_id();
    let reply = message(Version::V1_2, MessageType::Reply, |e| {
        let (status, contexts) = (ReplyStatus::NoException, ServiceContexts::EMPTY);
        ReplyHeader { request_id, status, contexts }.encode(e).unwrap();
        begin_body(e);
        sum.encode(e).unwrap();
    });
    client.socket.write_all(&reply).await.unwrap();
    (request, request_id)
}

fn raised(reply: &ReplyMessage) -> SystemException {
    assert_eq!(reply.status(), ReplyStatus::SystemException);
    SystemException::decode(&mut reply.body()).unwrap()
}

#[tokio::test]
async fn listen_points_are_the_first_context_because_tao_reads_no_further() {
    let fake = Fake::new(|_| Answer::value(3)).await;
    let mut profile = fake.profile();
    profile.components.extend([code_sets(), TaggedComponent::zorb_blocks()]);
    let client = Orb::builder().offer_bidirectional().build().await.unwrap();
    let desk: DeskRef = client.resolve_unchecked(&reference(&[profile]).to_string()).await.unwrap();
    desk.add(1, 2).await.unwrap();
    let ids: Vec<_> =
        fake.last(|asked| asked.request().contexts().iter().map(|context| context.id).collect());
    assert_eq!(ids, [ContextId::BI_DIR_IIOP, ContextId::CODE_SETS, ContextId::ZORB_BLOCKS]);
}

// clause: giop.bidir.accept, giop.bidir.match, giop.bidir.parity, giop.bidir.code_sets, giop.bidir.requests
#[tokio::test]
async fn a_client_that_offers_it_is_called_back_over_its_connection() {
    let (server, _) = tower(Orb::builder().accept_bidirectional(anyone)).await;
    let mut client = Raw::connect(&server, b"tower").await;
    let desk = desk_at("client.callback.invalid", 1);
    let sets = CodeSetContext { char_data: CodeSetId::UTF_8, wchar_data: CodeSetId::UTF_16 };
    let contexts = [offer("client.callback.invalid", 1), sets.to_service_context().unwrap()];
    let id = client
        .send("ring", &contexts, |e| {
            desk.encode(e).unwrap();
            4i32.encode(e).unwrap();
        })
        .await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let (request, id) = answer_add(&mut client).await;
        assert_eq!((request.operation(), request.object_key().unwrap()), ("add", &b"my desk"[..]));
        assert!(request.contexts().find(ContextId::CODE_SETS).is_none(), "they were negotiated");
        ids.push(id.0);
    }
    assert!(ids.iter().all(|id| id % 2 == 1), "who accepted the connection has odd ids: {ids:?}");
    let reply = client.reply().await;
    assert_eq!((reply.request_id(), i32::decode(&mut reply.body()).unwrap()), (id, 6));
    assert_eq!(server.open_connections(), 1);
}

// clause: giop.bidir.accept, giop.bidir.match
#[tokio::test]
async fn callback_needs_permission_and_a_matching_address() {
    let port = dead_port();
    let rule = |peer: &Peer, host: &str, _: u16| {
        assert!(matches!(peer, Peer::Tcp(_)));
        host == "127.0.0.1"
    };
    for (builder, offered) in [
        (Orb::builder(), offer("127.0.0.1", port)),
        (Orb::builder().accept_bidirectional(anyone), offer("127.0.0.1", port ^ 1)),
        (Orb::builder().accept_bidirectional(anyone), offer("127.0.0.2", port)),
        (Orb::builder().accept_bidirectional(|_, _, _| false), offer("127.0.0.1", port)),
        (Orb::builder().accept_bidirectional(rule), offer("localhost", port)),
    ] {
        let (server, _) = tower(builder).await;
        let mut client = Raw::connect(&server, b"tower").await;
        let desk = desk_at("127.0.0.1", port);
        let reply = client
            .call("ring", &[offered], |e| {
                desk.encode(e).unwrap();
                1i32.encode(e).unwrap();
            })
            .await;
        assert_eq!(raised(&reply).kind, SystemExceptionKind::Transient, "its address was dialled");
    }
}

// clause: giop.bidir.closed
#[tokio::test]
async fn a_client_that_is_gone_is_not_dialled_and_one_that_comes_back_is_called() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (server, tower) = tower(Orb::builder().accept_bidirectional(anyone)).await;
    let desk = desk_at("127.0.0.1", port);
    let mut client = Raw::connect(&server, b"tower").await;
    client.call("keep", &[offer("127.0.0.1", port)], |e| desk.encode(e).unwrap()).await;
    let kept = tower.kept();
    let (sum, _) = tokio::join!(kept.add(1, 2), answer_add(&mut client));
    assert_eq!(sum.unwrap(), 3);
    // A call that is pending when the connection ends may have been executed.
    let waiting = tokio::spawn({
        let kept = kept.clone();
        async move { kept.add(3, 4).await }
    });
    assert!(read(&mut client.socket).await.is_some());
    drop(client);
    assert_eq!(waiting.await.unwrap().unwrap_err().kind, SystemExceptionKind::CommFailure);
    let dialled = async {
        let _ = listener.accept().await;
        panic!("it was dialled");
    };
    let again = async {
        for _ in 0..2 {
            let error = kept.add(5, 6).await.unwrap_err();
            assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
        }
    };
    tokio::select! {
        () = again => {}
        () = dialled => {}
    }
    let mut client = Raw::connect(&server, b"tower").await;
    client.call("keep", &[offer("127.0.0.1", port)], |e| desk.encode(e).unwrap()).await;
    for target in [kept, tower.kept()] {
        let (sum, _) = tokio::join!(target.add(7, 8), answer_add(&mut client));
        assert_eq!(sum.unwrap(), 15);
    }
}

#[tokio::test]
async fn an_address_that_one_client_has_is_not_given_to_another() {
    let (server, tower) = tower(Orb::builder().accept_bidirectional(anyone)).await;
    let desk = desk_at("client.callback.invalid", 7);
    let mut first = Raw::connect(&server, b"tower").await;
    first.call("keep", &[offer("client.callback.invalid", 7)], |e| desk.encode(e).unwrap()).await;
    let mut second = Raw::connect(&server, b"tower").await;
    second.call("keep", &[offer("client.callback.invalid", 7)], |e| desk.encode(e).unwrap()).await;
    let kept = tower.kept();
    let (sum, _) = tokio::join!(kept.add(1, 2), answer_add(&mut first));
    assert_eq!(sum.unwrap(), 3);
    let quiet = tokio::time::timeout(Duration::from_millis(50), read(&mut second.socket)).await;
    assert!(quiet.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_back_loses_no_request_that_came_before_it() {
    let (server, tower) = tower(Orb::builder().accept_bidirectional(anyone)).await;
    let desk = desk_at("client.callback.invalid", 1);
    let mut client = Raw::connect(&server, b"tower").await;
    client.call("keep", &[offer("client.callback.invalid", 1)], |e| desk.encode(e).unwrap()).await;
    let kept = tower.kept();
    for number in 0..20 {
        // The request has arrived when the call is made, but has not been read: an idle connection is checked
        // first.
        let call = tokio::spawn({
            let kept = kept.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                kept.add(number, 1).await
            }
        });
        tokio::time::sleep(Duration::from_millis(1)).await;
        let busy = tokio::spawn(async { std::thread::sleep(Duration::from_millis(8)) });
        let id = client.send("keep", &[], |e| desk.encode(e).unwrap()).await;
        busy.await.unwrap();
        let mut replied = false;
        for _ in 0..2 {
            let next = tokio::time::timeout(Duration::from_secs(5), read(&mut client.socket));
            let (header, octets) = next.await.expect("nothing is lost").unwrap();
            if header.kind == MessageType::Request {
                add(&mut client, RequestMessage::decode(&header, octets).unwrap()).await;
            } else {
                replied = ReplyMessage::decode(&header, octets).unwrap().request_id() == id;
            }
        }
        assert!(replied);
        assert_eq!(call.await.unwrap().unwrap(), number + 1);
    }
}

// clause: giop.bidir.requests
#[tokio::test]
async fn either_side_closes_in_good_order() {
    let (server, tower) = tower(Orb::builder().accept_bidirectional(anyone)).await;
    let desk = desk_at("client.callback.invalid", 1);
    let mut client = Raw::connect(&server, b"tower").await;
    client.call("keep", &[offer("client.callback.invalid", 1)], |e| desk.encode(e).unwrap()).await;
    let kept = tower.kept();
    let waiting = tokio::spawn(async move { kept.add(3, 4).await });
    assert!(read(&mut client.socket).await.is_some());
    let bye = message(Version::V1_2, MessageType::CloseConnection, |_| ());
    client.socket.write_all(&bye).await.unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    // An orderly shutdown of the server waits for the calls that it made.
    let mut client = Raw::connect(&server, b"tower").await;
    client.call("keep", &[offer("client.callback.invalid", 1)], |e| desk.encode(e).unwrap()).await;
    let kept = tower.kept();
    let call = tokio::spawn(async move { kept.add(3, 4).await });
    let (header, octets) = read(&mut client.socket).await.unwrap();
    let mut closing = Box::pin(server.shutdown());
    let early = tokio::time::timeout(Duration::from_millis(50), &mut closing).await;
    assert!(early.is_err(), "a call of its own is under way");
    add(&mut client, RequestMessage::decode(&header, octets).unwrap()).await;
    let last = async { read(&mut client.socket).await.unwrap().0.kind };
    let (_, last) = tokio::join!(closing, last);
    assert_eq!(last, MessageType::CloseConnection);
    assert_eq!(call.await.unwrap().unwrap(), 7);
}
