//! A gateway that knows no interface: requests and replies arrive unchanged, and it neither copies nor
//! decodes their data.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::giop::{
    Message, MessageHeader, MessageType, ReplyStatus, RequestHeader, RequestId, ResponseFlags,
    ServiceContext, ServiceContexts, TargetAddress, begin_body, finish_message, put_message_header,
};
use test_support::transport;
use tokio::sync::Notify;
use zorb::dynamic::{Bridge, Interface, Mode, OperationInfo, ParamInfo};
use zorb::poa::ForwardRequest;
use zorb::prelude::*;
use zorb::wire::{ByteOrder, CodeSetId, ContextId, Version};
use zorb::{CompletionStatus, MinorCode, OrbBuilder, ReplyInfo, SyncScope, TcKind};

zorb::idl! {
    module Behind {
        typedef sequence<octet> Octets;
        typedef sequence<double> Doubles;
        struct Frame { unsigned long number; Octets left; string name; Octets right; };
        exception Broken { string part; double at; };
        interface Store {
            Octets echo(in Octets octets);
            double mixed(in octet a, in double b, inout string text, out Doubles more) raises (Broken);
            Frame swap(in Frame frame);
            any kept(in any value);
            Store me();
            oneway void push(in Octets octets);
            unsigned long settle();
            void fail();
            void moved();
            void forever();
        };
    };
}

use behind::{Broken, Frame, StoreRef, StoreServant, store::MixedError};

#[derive(Default)]
struct Kept {
    pushed: AtomicU32,
    begun: Notify,
    cancelled: Notify,
    elsewhere: Mutex<Option<ObjectRef>>,
}

struct Store(Arc<Kept>);

impl StoreServant for Store {
    async fn echo(&self, octets: Bytes) -> Result<Bytes, SystemException> {
        Ok(octets)
    }
    async fn mixed(&self, a: u8, b: f64, text: String) -> Result<(f64, String, Seq<f64>), MixedError> {
        if a == 0 {
            return Err(Broken { part: text, at: b }.into());
        }
        Ok((b * f64::from(a), format!("<{text}>"), Seq::from(vec![b; a.into()])))
    }
    async fn swap(&self, frame: &Frame) -> Result<Frame, SystemException> {
        let Frame { number, left, name, right } = frame.clone();
        Ok(Frame { number, left: right, name, right: left })
    }
    async fn kept(&self, value: &Any) -> Result<Any, SystemException> {
        Ok(value.clone())
    }
    async fn me(&self) -> Result<Option<StoreRef>, SystemException> {
        Ok(Some(zorb::request().target()))
    }
    async fn push(&self, octets: Bytes) -> Result<(), SystemException> {
        self.0.pushed.fetch_add(octets.len() as u32, Ordering::SeqCst);
        Ok(())
    }
    async fn settle(&self) -> Result<u32, SystemException> {
        let request = zorb::request();
        let contexts = request.contexts().to_vec();
        contexts
            .into_iter()
            .filter(|context| context.id.0 <= 0xFF)
            .for_each(|c| request.set_reply_context(c));
        Ok(self.0.pushed.load(Ordering::SeqCst))
    }
    async fn fail(&self) -> Result<(), SystemException> {
        Err(SystemException::no_resources().with_minor(MinorCode::omg(2)).completed(CompletionStatus::Yes))
    }
    async fn moved(&self) -> Result<(), SystemException> {
        if let Some(to) = self.0.elsewhere.lock().unwrap().take() {
            zorb::request().forward(ForwardRequest::to(&to));
        }
        Ok(())
    }
    async fn forever(&self) -> Result<(), SystemException> {
        let request = zorb::request();
        self.0.begun.notify_one();
        request.cancelled().await;
        self.0.cancelled.notify_one();
        Ok(())
    }
}

struct Three {
    client: Orb,
    gateway: Orb,
    server: Orb,
    /// The bridge, as seen by the gateway.
    bridge: ObjectRef,
    /// The bridge, as seen by the client.
    store: StoreRef,
    /// The store itself.
    direct: StoreRef,
    kept: Arc<Kept>,
}

async fn three(client: OrbBuilder, gateway: OrbBuilder, server: OrbBuilder) -> Three {
    three_of(client, gateway, server, false, |bridge| bridge).await
}

/// If `old`, the gateway treats the server as one of GIOP 1.0.
async fn three_of(
    client: OrbBuilder,
    gateway: OrbBuilder,
    server: OrbBuilder,
    old: bool,
    bridge: impl FnOnce(Bridge) -> Bridge,
) -> Three {
    let kept = Arc::new(Kept::default());
    let server = server.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let direct: StoreRef = server.activate_named("behind", Store(Arc::clone(&kept))).unwrap();
    let gateway = gateway.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let behind = match old {
        true => format!("corbaloc:iiop:1.0@{}/behind", server.endpoints()[0].trim_start_matches("iiop://")),
        false => direct.to_string(),
    };
    let behind: ObjectRef = gateway.resolve_unchecked(&behind).await.unwrap();
    let servant = bridge(Bridge::to(&behind)).servant();
    let bridge = gateway.activation().named("store").activate_erased(servant).unwrap();
    let client = client.build().await.unwrap();
    let store = client.resolve_unchecked(&bridge.to_string()).await.unwrap();
    Three { client, gateway, server, bridge, store, direct, kept }
}

async fn plain() -> Three {
    three(transport::builder(), transport::builder(), transport::builder()).await
}

fn octets(len: usize) -> Bytes {
    (0..len).map(|i| (i * 7) as u8).collect()
}

async fn exercise(store: &StoreRef) {
    for len in [0, 1, 100, 4096, 20_000, 70_000, 1 << 20] {
        assert_eq!(store.echo(octets(len)).await.unwrap(), octets(len), "{len}");
    }
    let (product, text, more) = store.mixed(3, 1.5, "grüße".to_owned()).await.unwrap();
    assert_eq!((product, text.as_str(), &more[..]), (4.5, "<grüße>", &[1.5, 1.5, 1.5][..]));
    match store.mixed(0, 2.5, "wheel".to_owned()).await {
        Err(MixedError::Broken(broken)) => assert_eq!((broken.part.as_str(), broken.at), ("wheel", 2.5)),
        other => panic!("{other:?}"),
    }
    let frame = Frame { number: 5, left: octets(100_000), name: "f".to_owned(), right: octets(300_001) };
    let swapped = store.swap(&frame).await.unwrap();
    assert_eq!((swapped.left.len(), swapped.right.len()), (300_001, 100_000));
    assert_eq!((&swapped.left, &swapped.right), (&frame.right, &frame.left));
    let any = Any::new(vec!["a".to_owned(), "b".to_owned()]).unwrap();
    assert_eq!(store.kept(&any).await.unwrap(), any);
    let failed = store.fail().await.unwrap_err();
    assert_eq!(
        (failed.kind, failed.minor, failed.completed),
        (SystemExceptionKind::NoResources, MinorCode::omg(2), CompletionStatus::Yes)
    );
}

#[tokio::test]
async fn everything_goes_through() {
    let three = plain().await;
    assert_eq!(three.bridge.ior().type_id, StoreRef::REPOSITORY_ID);
    exercise(&three.store).await;
    assert!(three.store.is_a(StoreRef::REPOSITORY_ID).await.unwrap());
    assert!(!three.store.is_a("IDL:Behind/Other:1.0").await.unwrap());
    // A reference in a result is still that of the store itself.
    let me = three.store.me().await.unwrap().unwrap();
    assert!(me.is_equivalent(&three.direct));
    three.store.push(octets(10)).await.unwrap();
    let target = three.store.with_sync_scope(SyncScope::Target);
    target.push(octets(90_000)).await.unwrap();
    let server = three.store.with_sync_scope(SyncScope::Server);
    server.push(octets(1)).await.unwrap();
    while three.store.settle().await.unwrap() < 90_011 {
        tokio::task::yield_now().await;
    }
    // In the gateway's own process.
    let here = StoreRef::from_object(three.bridge.clone());
    exercise(&here).await;
    assert!(!here.is_a("IDL:Behind/Other:1.0").await.unwrap());
    three.server.shutdown().await;
    let gone = three.store.settle().await.unwrap_err();
    assert_eq!(gone.completed, CompletionStatus::No, "{gone}");
}

#[tokio::test]
async fn contexts_go_through_but_those_of_connections() {
    let three = plain().await;
    let info = ReplyInfo::new();
    let store = three.store.with_context(ContextId(0xF0), octets(5)).with_reply_info(&info);
    store.settle().await.unwrap();
    let contexts = info.contexts();
    assert!(
        contexts.iter().any(|context| context.id == ContextId(0xF0) && context.data == octets(5)),
        "{contexts:?}"
    );
    assert!(contexts.iter().all(|context| context.id != ContextId::CODE_SETS), "{contexts:?}");
}

#[tokio::test]
async fn a_store_that_moved_is_followed_by_the_gateway() {
    let three = plain().await;
    let other = Arc::new(Kept::default());
    let there: StoreRef = three.server.activate(Store(Arc::clone(&other))).unwrap();
    *three.kept.elsewhere.lock().unwrap() = Some(there.as_object().clone());
    three.store.moved().await.unwrap();
    three.store.with_sync_scope(SyncScope::Target).push(octets(3)).await.unwrap();
    assert_eq!((three.kept.pushed.load(Ordering::SeqCst), other.pushed.load(Ordering::SeqCst)), (0, 3));
}

#[tokio::test]
async fn a_caller_that_gives_up_is_passed_on_as_well() {
    let three = plain().await;
    let call = three.store.forever();
    tokio::select! {
        result = call => panic!("{result:?}"),
        () = three.kept.begun.notified() => {}
    }
    three.kept.cancelled.notified().await;
    exercise(&three.store).await;
}

/// Maximum size of a message's control part with its padding, bytes. A batch copies it.
const CONTROL: u64 = 192;

#[tokio::test]
async fn the_gateway_copies_no_payload() {
    const N: u64 = 8;
    const FLOOD: u64 = 40;
    // Peers that announce the positions of their blocks, and peers without support for blocks.
    for old in [false, true] {
        let peer = || if old { transport::builder().zero_copy(false) } else { transport::builder() };
        let three = three(peer(), transport::builder(), peer()).await;
        // The sizes change, so that the size of a message cannot be predicted from the previous one.
        let sizes = [5000, 20_000, 64 * 1024, 300_000, 90_000, 1 << 20];
        let echoes = sizes.map(|size| Echo(octets(size)));
        // Two blocks in a message stay blocks.
        let (left, right) = (octets(100_000), octets(200_000));
        let swap = Swap(Frame { number: 1, left, name: "two".to_owned(), right });
        let round = async || {
            for echo in &echoes {
                echo.send(&three.store).await;
            }
            swap.send(&three.store).await;
        };
        for _ in 0..2 {
            round().await;
        }
        let before = three.gateway.stats();
        for _ in 0..N {
            round().await;
        }
        let after = three.gateway.stats();
        let messages = 2 * (N + 1) * (sizes.len() as u64 + 1);
        // Batches are written some time after their replies are queued: one round may be counted before or
        // after.
        let sent = after.bytes_copied_out - before.bytes_copied_out;
        assert!(sent <= messages * CONTROL, "sent: {sent}");
        let received = after.bytes_copied_in - before.bytes_copied_in;
        assert!(received <= messages * CONTROL, "received: {received}");

        for size in [5000, 64 * 1024, 100_000, 1 << 20] {
            let data = octets(size);
            let round = async || {
                let before = three.gateway.stats();
                for _ in 0..FLOOD {
                    three.store.push(data.clone()).await.unwrap();
                }
                three.store.settle().await.unwrap();
                let after = three.gateway.stats();
                (
                    after.bytes_copied_in - before.bytes_copied_in,
                    after.bytes_copied_out - before.bytes_copied_out,
                )
            };
            round().await;
            let (received, sent) = round().await;
            assert!(received <= (FLOOD + 2) * CONTROL, "received {size}: {received}");
            assert!(sent <= 2 * (FLOOD + 2) * CONTROL, "sent {size}: {sent}");
        }
    }
}

/// The repeated operation.
trait AsyncSend {
    fn send<'a>(&'a self, store: &'a StoreRef) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;
}

struct Echo(Bytes);

impl AsyncSend for Echo {
    fn send<'a>(&'a self, store: &'a StoreRef) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async { assert_eq!(store.echo(self.0.clone()).await.unwrap().len(), self.0.len()) })
    }
}

struct Swap(Frame);

impl AsyncSend for Swap {
    fn send<'a>(&'a self, store: &'a StoreRef) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async { assert_eq!(store.swap(&self.0).await.unwrap().left, self.0.right) })
    }
}

/// Sends a request built by hand, in that byte order and version, with contexts before it. Returns the
/// reply's status, and the result of `f`.
fn by_hand<T>(
    at: &str,
    (order, version): (ByteOrder, Version),
    contexts: usize,
    operation: &str,
    arguments: impl FnOnce(&mut Encoder),
    f: impl FnOnce(&mut Decoder<'_>) -> T,
) -> (ReplyStatus, T) {
    let contexts: Vec<_> =
        (0..contexts).map(|i| ServiceContext { id: ContextId(0xF0 + i as u32), data: octets(4) }).collect();
    let mut e = Encoder::new(order, version);
    put_message_header(&mut e, MessageType::Request);
    let header = RequestHeader {
        request_id: RequestId(9),
        response: ResponseFlags::Target,
        target: TargetAddress::Key(b"store"),
        operation,
        contexts: ServiceContexts::from(&*contexts),
    };
    header.encode(&mut e).unwrap();
    begin_body(&mut e);
    arguments(&mut e);
    finish_message(&mut e, MessageHeader::SIZE_AT).unwrap();
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(&e.into_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    let header = MessageHeader::decode(&head).unwrap();
    assert_eq!((header.kind, header.version), (MessageType::Reply, version));
    let mut message = vec![0; 12 + header.size as usize];
    message[..12].copy_from_slice(&head);
    stream.read_exact(&mut message[12..]).unwrap();
    let mut d = Decoder::new(&message, header.order, header.version).at(12);
    let Message::Reply(reply) = Message::decode(header.kind, &mut d).unwrap() else { panic!("no reply") };
    (reply.status, f(&mut d))
}

// clause: giop.request.body_alignment, giop.reply.body_alignment
#[tokio::test]
async fn requests_of_all_orders_versions_and_alignments_are_passed_on() {
    let three = plain().await;
    let at = three.gateway.endpoints()[0].trim_start_matches("iiop://").to_owned();
    tokio::task::spawn_blocking(move || {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
                for contexts in 0..3 {
                    let arguments = |e: &mut Encoder| {
                        e.put_u8(2);
                        e.put_f64(1.25);
                        "text".encode(e).unwrap();
                    };
                    let results = |d: &mut Decoder<'_>| {
                        (d.read_f64().unwrap(), d.read_string().unwrap(), Vec::<f64>::decode(d).unwrap())
                    };
                    let (status, results) =
                        by_hand(&at, (order, version), contexts, "mixed", arguments, results);
                    assert_eq!(status, ReplyStatus::NoException);
                    assert_eq!(results, (2.5, "<text>".to_owned(), vec![1.25, 1.25]));

                    let broken = |e: &mut Encoder| {
                        e.put_u8(0);
                        e.put_f64(8.0);
                        "rim".encode(e).unwrap();
                    };
                    let raised = |d: &mut Decoder<'_>| {
                        (d.read_string().unwrap(), d.read_string().unwrap(), d.read_f64().unwrap())
                    };
                    let (status, raised) = by_hand(&at, (order, version), contexts, "mixed", broken, raised);
                    assert_eq!(status, ReplyStatus::UserException);
                    assert_eq!(raised, ("IDL:Behind/Broken:1.0".to_owned(), "rim".to_owned(), 8.0));
                    // The reply has contexts too, so its results begin at another alignment.
                    let settled = |d: &mut Decoder<'_>| d.read_u32().unwrap();
                    let (status, settled) =
                        by_hand(&at, (order, version), contexts, "settle", |_| {}, settled);
                    assert_eq!((status, settled), (ReplyStatus::NoException, 0));
                }
            }
        }
    })
    .await
    .unwrap();
}

fn interface() -> Arc<Interface> {
    let param = |name: &str, mode, code| ParamInfo { name: name.into(), mode, code };
    let mixed = OperationInfo {
        id: "IDL:Behind/Store/mixed:1.0".into(),
        name: "mixed".into(),
        oneway: false,
        result: TypeCode::DOUBLE,
        params: vec![
            param("a", Mode::In, TypeCode::OCTET),
            param("b", Mode::In, TypeCode::DOUBLE),
            param("text", Mode::InOut, TypeCode::string(0)),
            param("more", Mode::Out, TypeCode::sequence(&TypeCode::DOUBLE, 0)),
        ],
        raises: vec![Broken::type_code()],
        contexts: Vec::new(),
    };
    let settle = OperationInfo {
        id: "IDL:Behind/Store/settle:1.0".into(),
        name: "settle".into(),
        oneway: false,
        result: TypeCode::ULONG,
        params: Vec::new(),
        raises: Vec::new(),
        contexts: Vec::new(),
    };
    let of = (TcKind::ObjRef, StoreRef::REPOSITORY_ID, "Store");
    Arc::new(Interface::new(of, Vec::new(), vec![mixed, settle], Vec::new()))
}

async fn call_mixed(store: &StoreRef) {
    let (product, text, more) = store.mixed(2, 1.5, "grüße".to_owned()).await.unwrap();
    assert_eq!((product, text.as_str(), &more[..]), (3.0, "<grüße>", &[1.5, 1.5][..]));
    match store.mixed(0, 2.5, "hö".to_owned()).await {
        Err(MixedError::Broken(broken)) => assert_eq!((broken.part.as_str(), broken.at), ("hö", 2.5)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn text_keeps_the_code_set_of_its_client() {
    // The client only supports ISO 8859-1, which the server accepts as well as UTF-8.
    let latin = || transport::builder().char_code_sets(CodeSetId::ISO_8859_1, &[]);
    let three = three(latin(), transport::builder(), transport::builder()).await;
    call_mixed(&three.store).await;
}

#[tokio::test]
async fn what_the_target_does_not_take_needs_the_interface() {
    let new = transport::builder;
    let latin = || new().char_code_sets(CodeSetId::ISO_8859_1, &[]);
    // Every server accepts UTF-8, so the client uses a rarer set.
    let rare = || new().char_code_sets(CodeSetId::ISO_8859_15, &[]);
    let between = || new().char_code_sets(CodeSetId::UTF_8, &[CodeSetId::ISO_8859_15, CodeSetId::ISO_8859_1]);
    for (kind, client, old) in [
        (SystemExceptionKind::CodesetIncompatible, rare(), false),
        (SystemExceptionKind::InvObjref, new(), true),
    ] {
        let three = three_of(client, between(), latin(), old, |bridge| bridge).await;
        let refused = three.store.settle().await.unwrap_err();
        assert_eq!((refused.kind, refused.completed), (kind, CompletionStatus::No), "{refused}");
    }
    for old in [false, true] {
        let three =
            three_of(rare(), between(), latin(), old, |bridge| bridge.with_interface(interface())).await;
        call_mixed(&three.store).await;
        let info = ReplyInfo::new();
        let store = three.store.with_context(ContextId(0xF0), octets(5)).with_reply_info(&info);
        store.settle().await.unwrap();
        assert!(info.contexts().iter().any(|context| context.id == ContextId(0xF0)));
        let unknown = three.store.fail().await.unwrap_err();
        assert_eq!(unknown.kind, SystemExceptionKind::BadOperation);
        assert!(three.client.stats().messages_out > 0);
    }
}
