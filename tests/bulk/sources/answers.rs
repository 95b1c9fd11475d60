//! Answers that arrive before the payload is sent completely: from zorb's servers, and from servers that
//! forward calls.

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestId,
    ServiceContexts, begin_body, finish_message, put_message_header,
};
use giop_codec::ior::Ior;
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Returns a source of 600,000 bytes that yields pieces of 100,000 for permits.
fn slow(gate: &Arc<Semaphore>) -> ByteSource {
    gated(600_000, pieces(octets(600_000), 100_000).collect(), Arc::clone(gate), None)
}

#[tokio::test]
async fn an_exception_that_comes_early_is_returned_at_once_and_the_connection_closed() {
    let over = Over::tcp().await;
    let gate = Arc::new(Semaphore::new(2));
    let failed = over.store.put_some(150_000, slow(&gate)).await.unwrap_err();
    assert!(matches!(failed, bulk::store::PutSomeError::Full(full) if full.taken >= 150_000));
    assert_eq!(Arc::strong_count(&gate), 1, "the source is gone");
    over.until(|over| over.client.open_connections() + over.server.open_connections() == 0).await;
    // An answer after everything was sent keeps the connection.
    over.store.put_some(600_000, read(octets(600_000))).await.unwrap_err();
    over.store.put_some(1, read(octets(1_000))).await.unwrap_err();
    assert_eq!(over.client.open_connections(), 1);
}

#[tokio::test]
async fn refusals_of_the_server_are_returned_at_once() {
    let over = Over::tcp().await;
    let gone: bulk::StoreRef = over.server.activate_named("gone", Store::default()).unwrap();
    let store: bulk::StoreRef = over.client.resolve(&gone.to_string()).await.unwrap();
    over.server.deactivate(&gone);
    let gate = Arc::new(Semaphore::new(2));
    let failed = store.put("a name", slow(&gate)).await.unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));

    let mut limits = Limits::default();
    limits.max_stream_size = 16 << 20;
    let server = transport::builder().limits(limits).listen("iiop://127.0.0.1:0").build().await.unwrap();
    let small: bulk::StoreRef = server.activate(Store::default()).unwrap();
    let store: bulk::StoreRef = over.client.resolve(&small.to_string()).await.unwrap();
    let source = ByteSource::reader(100 << 20, tokio::io::repeat(7).take(300_000).chain(Never));
    let failed = store.put("a name", source).await.unwrap_err();
    assert_eq!(failed.kind, SystemExceptionKind::ImpLimit, "{failed}");
}

/// A reader that never has data.
struct Never;

impl tokio::io::AsyncRead for Never {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Pending
    }
}

#[tokio::test]
async fn a_result_that_comes_early_is_returned_when_the_rest_is_sent() {
    let over = Over::tcp().await;
    let gate = Arc::new(Semaphore::new(2));
    let (store, source) = (over.store.clone(), slow(&gate));
    let call = tokio::spawn(async move { store.start(150_000, source).await });
    over.until(|over| over.server.stats().messages_out > 1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!call.is_finished());
    gate.add_permits(4);
    let mut kept = over.servant.kept.lock().await.take().unwrap();
    let mut left = kept.remaining();
    while let Some(chunk) = kept.next().await {
        left -= chunk.unwrap().len() as u64;
    }
    assert_eq!(left, 0);
    assert!(call.await.unwrap().unwrap() >= 150_000);
    assert_eq!(over.client.open_connections(), 1, "the question went the same way");
}

#[tokio::test]
async fn a_result_that_comes_early_is_returned_at_the_deadline_without_the_rest() {
    let over = Over::tcp().await;
    let gate = Arc::new(Semaphore::new(2));
    let hasty = over.store.with_timeout(Duration::from_millis(500));
    assert!(hasty.start(150_000, slow(&gate)).await.unwrap() >= 150_000);
    let mut kept = over.servant.kept.lock().await.take().unwrap();
    while let Some(chunk) = kept.next().await {
        if let Err(error) = chunk {
            assert_eq!(error.kind, SystemExceptionKind::CommFailure);
        }
    }
    // The call was executed: a later failure of the source cannot undo it.
    let error = io::Error::other("worn out");
    let gate = Arc::new(Semaphore::new(2));
    let all = pieces(octets(200_000), 100_000).collect();
    let source = gated(600_000, all, Arc::clone(&gate), Some(error));
    let store = over.store.clone();
    let call = tokio::spawn(async move { store.start(150_000, source).await });
    let sent = over.server.stats().messages_out;
    over.until(|over| over.server.stats().messages_out > sent).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.add_permits(1);
    let failed = call.await.unwrap().unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::BadParam, CompletionStatus::Yes));
    over.store.ping().await.unwrap();
}

/// A simulated server.
struct Fake {
    listener: TcpListener,
}

impl Fake {
    /// Returns a server with its reference as seen by a client.
    async fn new(client: &Orb) -> (Self, bulk::StoreRef) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("corbaloc:iiop:1.2@{}/store", listener.local_addr().unwrap());
        (Self { listener }, client.resolve_unchecked(&url).await.unwrap())
    }

    async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }
}

/// Reads the start of a message, and up to `most` bytes of its rest.
async fn read_start(socket: &mut TcpStream, most: usize) -> (MessageHeader, RequestId) {
    let mut header = [0; MessageHeader::LEN];
    socket.read_exact(&mut header).await.unwrap();
    let header = MessageHeader::decode(&header).unwrap();
    let mut rest = vec![0; (header.size as usize).min(most)];
    socket.read_exact(&mut rest).await.unwrap();
    (header, RequestId(u32::from_ne_bytes(rest[..4].try_into().unwrap())))
}

async fn write(socket: &mut TcpStream, put: impl FnOnce(&mut Encoder) -> usize) {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let size_at = put(&mut e);
    finish_message(&mut e, size_at).unwrap();
    socket.write_all(&e.into_bytes()).await.unwrap();
}

async fn located(socket: &mut TcpStream, id: RequestId, status: LocateStatus, to: Option<&Ior>) {
    write(socket, |e| {
        let size_at = put_message_header(e, MessageType::LocateReply);
        LocateReplyHeader { request_id: id, status }.encode(e).unwrap();
        to.inspect(|to| to.encode(e).unwrap());
        size_at
    })
    .await;
}

async fn forward(socket: &mut TcpStream, id: RequestId, to: &Ior) {
    write(socket, |e| {
        let size_at = put_message_header(e, MessageType::Reply);
        let (status, contexts) = (ReplyStatus::LocationForward, ServiceContexts::EMPTY);
        ReplyHeader { request_id: id, status, contexts }.encode(e).unwrap();
        begin_body(e);
        to.encode(e).unwrap();
        size_at
    })
    .await;
}

async fn close(socket: &mut TcpStream) {
    write(socket, |e| put_message_header(e, MessageType::CloseConnection)).await;
}

// clause: giop.locate.object_forward
#[tokio::test]
async fn a_forward_in_answer_to_the_question_costs_nothing_of_the_source() {
    let over = Over::tcp().await;
    let (fake, store) = Fake::new(&over.client).await;
    let to = over.store.ior().clone();
    let data = octets(600_000);
    let call = tokio::spawn({
        let data = data.clone();
        async move { (store.put("a name", read(data.clone())).await, store.put("a name", read(data)).await) }
    });
    let mut socket = fake.accept().await;
    let (header, id) = read_start(&mut socket, usize::MAX).await;
    assert_eq!(header.kind, MessageType::LocateRequest);
    located(&mut socket, id, LocateStatus::ObjectForward, Some(&to)).await;
    let (first, second) = call.await.unwrap();
    assert_eq!((first.unwrap(), second.unwrap()), (checksum(0, &data), checksum(0, &data)));
}

// clause: giop.status.location_forward
#[tokio::test]
async fn a_short_source_is_sent_again_where_the_server_says() {
    let over = Over::tcp().await;
    let to = over.store.ior().clone();
    for len in [0, 100, CHUNK] {
        let (fake, store) = Fake::new(&over.client).await;
        let data = octets(len);
        let call = tokio::spawn({
            let source = streamed(data.clone(), 50_000);
            async move { store.put("a name", source).await }
        });
        // The server closes in an orderly way, twice, before the client knows where the object is.
        for _ in 0..2 {
            let mut socket = fake.accept().await;
            read_start(&mut socket, 40).await;
            close(&mut socket).await;
            let _ = socket.read_to_end(&mut Vec::new()).await;
        }
        let mut socket = fake.accept().await;
        let (header, id) = read_start(&mut socket, 40).await;
        assert_eq!(header.kind, MessageType::Request);
        forward(&mut socket, id, &to).await;
        assert_eq!(call.await.unwrap().unwrap(), checksum(0, &data), "{len}");
    }
}

#[tokio::test]
async fn a_long_source_is_not_sent_again_and_the_error_says_why() {
    let over = Over::tcp().await;
    let to = over.store.ior().clone();
    let data = octets(4 << 20);
    for closes in [true, false] {
        let (fake, store) = Fake::new(&over.client).await;
        let call = tokio::spawn({
            let (store, source) = (store.clone(), read(data.clone()));
            async move { store.put("a name", source).await }
        });
        let mut socket = fake.accept().await;
        let (header, id) = read_start(&mut socket, usize::MAX).await;
        assert_eq!(header.kind, MessageType::LocateRequest);
        located(&mut socket, id, LocateStatus::ObjectHere, None).await;
        let (_, id) = read_start(&mut socket, 1 << 20).await;
        match closes {
            true => close(&mut socket).await,
            false => forward(&mut socket, id, &to).await,
        }
        let failed = call.await.unwrap().unwrap_err();
        assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
        let text = failed.to_string();
        assert!(text.contains("not sent again") && text.contains("of the 4194304 bytes"), "{text}");
        if !closes {
            // The next call goes to the new location.
            assert_eq!(store.put("a name", read(data.clone())).await.unwrap(), checksum(0, &data));
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_may_have_begun() {
    let over = Over::tcp().await;
    let to = over.store.ior().clone();
    let (fake, store) = Fake::new(&over.client).await;
    for idempotent in [false, true] {
        let data = octets(200_000);
        let retry = if idempotent { zorb::Retry::idempotent(1) } else { zorb::Retry::default() };
        let call = tokio::spawn({
            let (store, source) = (store.with_retry(retry), read(data.clone()));
            async move { store.put("a name", source).await }
        });
        let mut socket = fake.accept().await;
        read_start(&mut socket, 1_000).await;
        drop(socket);
        if idempotent {
            // The source's bytes are still available, and the call may be executed twice.
            let mut socket = fake.accept().await;
            let (_, id) = read_start(&mut socket, 1_000).await;
            forward(&mut socket, id, &to).await;
            assert_eq!(call.await.unwrap().unwrap(), checksum(0, &data));
        } else {
            let failed = call.await.unwrap().unwrap_err();
            assert_eq!(
                (failed.kind, failed.completed),
                (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
            );
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_the_question_has_executed_nothing() {
    let over = Over::tcp().await;
    let to = over.store.ior().clone();
    let (fake, store) = Fake::new(&over.client).await;
    let data = octets(600_000);
    let hasty = store.with_timeout(Duration::from_millis(200));
    let failed = hasty.put("a name", read(data.clone())).await.unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::Timeout, CompletionStatus::No));
    drop(fake.accept().await);

    // After an orderly close the request is repeated, because nothing of the source was taken.
    let call = tokio::spawn({
        let data = data.clone();
        async move { store.put("a name", read(data)).await }
    });
    let mut socket = fake.accept().await;
    read_start(&mut socket, usize::MAX).await;
    drop(socket);
    let mut socket = fake.accept().await;
    let (_, id) = read_start(&mut socket, usize::MAX).await;
    located(&mut socket, id, LocateStatus::ObjectForward, Some(&to)).await;
    assert_eq!(call.await.unwrap().unwrap(), checksum(0, &data));
}
