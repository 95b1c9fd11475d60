//! Every operation of `types.idl` between compiled and dynamic callers and servants: all four pairs, with the
//! same bytes, in both byte orders.
//!
//! The compiled client of these tests calls a dynamic servant, which calls another dynamic servant, which
//! calls the compiled servant. A tap between each two of the four records the messages, and may convert them
//! to the other byte order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use giop_codec::cdr::{DecodeLimits, Decoder, Encoder};
use giop_codec::dynamic::program::Program;
use giop_codec::giop::{
    MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader, TargetAddress, begin_body,
    enter_body, finish_message, put_message_header,
};
use giop_codec::typecode::TypeCode;
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use ::zorb::dynamic::{
    Described, DynServant, DynamicException, Interface, Mode, OperationInfo, Request, ServerRequest,
};
use ::zorb::poa::ForwardRequest;
use ::zorb::prelude::*;
use ::zorb::{Orb, OrbBuilder, Servant, TcKind};

use crate::zorb::checks::{Way, client, drive};
use crate::zorb::servant::serve_at;
use crate::zorb::types::interop::*;
use crate::{plain, transport};
use test_support::peers::Scratch;

const FOREIGN: ByteOrder =
    if matches!(ByteOrder::NATIVE, ByteOrder::Big) { ByteOrder::Little } else { ByteOrder::Big };

/// A recorded call: the bytes of both bodies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Exchange {
    key: Vec<u8>,
    operation: String,
    arguments: Vec<u8>,
    /// `None` for a oneway.
    reply: Option<(u32, Vec<u8>)>,
}

/// Requests of a connection that await their replies.
type Pending = Arc<Mutex<HashMap<u32, Exchange>>>;

/// Forwards the traffic to a port.
#[derive(Clone)]
struct Tap {
    interfaces: Arc<[Arc<Interface>]>,
    /// Converts all bodies to the other byte order.
    turns: bool,
    seen: Arc<Mutex<Vec<Exchange>>>,
    /// The types that were converted.
    turned: Arc<Mutex<BTreeSet<String>>>,
}

impl Tap {
    fn new(turns: bool) -> Tap {
        let interfaces =
            [of::<PeerRef>(), of::<NodeRef>(), of::<BottomRef>(), of::<ListenerRef>()].into_iter().collect();
        Tap { interfaces, turns, seen: Arc::default(), turned: Arc::default() }
    }

    /// Listens, forwards to that port, and returns the address to call.
    async fn open(&self, to: u16) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let tap = self.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                let pending = Pending::default();
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = far.into_split();
                tokio::spawn(tap.clone().pump(near_in, far_out, Arc::clone(&pending)));
                tokio::spawn(tap.clone().pump(far_in, near_out, pending));
            }
        });
        address
    }

    async fn pump(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, pending: Pending) {
        loop {
            let mut message = vec![0; MessageHeader::LEN];
            if from.read_exact(&mut message).await.is_err() {
                break;
            }
            let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
            message.resize(MessageHeader::LEN + header.size as usize, 0);
            from.read_exact(&mut message[MessageHeader::LEN..]).await.unwrap();
            let message = Bytes::from(message);
            assert!(!header.more_fragments, "no message is that large");
            let passed = match header.kind {
                MessageType::Request => self.request(&message, header, &pending),
                MessageType::Reply => self.reply(&message, header, &pending),
                _ => message,
            };
            if to.write_all(&passed).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    }

    fn find(&self, operation: &str) -> Option<&Arc<OperationInfo>> {
        self.interfaces.iter().find_map(|interface| interface.find(operation))
    }

    fn request(&self, message: &Bytes, header: MessageHeader, pending: &Pending) -> Bytes {
        let mut d = Decoder::from_bytes(message, header.order, header.version).at(MessageHeader::LEN);
        let request = RequestHeader::decode(&mut d).unwrap();
        let body = body(&mut d, message);
        let operation = request.operation.to_owned();
        let TargetAddress::Key(key) = &request.target else { panic!("{:?}", request.target) };
        let exchange =
            Exchange { key: key.to_vec(), operation, arguments: message[body..].to_vec(), reply: None };
        let inputs = match (self.find(request.operation), request.operation) {
            (Some(info), _) => {
                let inputs = info.params.iter().filter(|param| param.mode.is_input());
                Some(inputs.map(|param| param.code.clone()).collect())
            }
            (None, "_is_a") => Some(vec![TypeCode::STRING]),
            // The arguments of an operation that does not exist are unknown.
            (None, _) => None,
        };
        if request.response.expects_reply() {
            pending.lock().unwrap().insert(request.request_id.0, exchange);
        } else {
            self.seen.lock().unwrap().push(exchange);
        }
        let Some(inputs) = inputs else { return message.clone() };
        self.turned(message, header, body, &inputs, |e| {
            put_message_header(e, MessageType::Request);
            request.encode(e).unwrap().message_size_at
        })
    }

    fn reply(&self, message: &Bytes, header: MessageHeader, pending: &Pending) -> Bytes {
        let mut d = Decoder::from_bytes(message, header.order, header.version).at(MessageHeader::LEN);
        let reply = ReplyHeader::decode(&mut d).unwrap();
        let body = body(&mut d, message);
        let Some(mut exchange) = pending.lock().unwrap().remove(&reply.request_id.0) else {
            return message.clone();
        };
        let info = self.find(&exchange.operation);
        let codes = match (reply.status, info) {
            (ReplyStatus::NoException, Some(info)) => {
                let result = (info.result.kind() != TcKind::Void).then(|| info.result.clone());
                let outputs = info.params.iter().filter(|param| param.mode != Mode::In);
                result.into_iter().chain(outputs.map(|param| param.code.clone())).collect()
            }
            (ReplyStatus::NoException, None) => match exchange.operation.as_str() {
                "_is_a" | "_non_existent" => vec![TypeCode::BOOLEAN],
                other => panic!("{other} has a result"),
            },
            (ReplyStatus::UserException, Some(info)) => {
                let id = d.read_string().unwrap();
                let raised = info.raises.iter().find(|code| code.id() == Ok(id.as_str()));
                vec![raised.unwrap().clone()]
            }
            (ReplyStatus::SystemException, _) => vec![TypeCode::STRING, TypeCode::ULONG, TypeCode::ULONG],
            (ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm, _) => vec![TypeCode::OBJECT],
            other => panic!("{other:?}"),
        };
        exchange.reply = Some((reply.status as u32, message[body..].to_vec()));
        self.seen.lock().unwrap().push(exchange);
        self.turned(message, header, body, &codes, |e| {
            put_message_header(e, MessageType::Reply);
            reply.encode(e).unwrap().message_size_at
        })
    }

    /// Returns the message in the other byte order, if enabled.
    fn turned(
        &self,
        message: &Bytes,
        header: MessageHeader,
        body: usize,
        codes: &[TypeCode],
        put: impl FnOnce(&mut Encoder) -> usize,
    ) -> Bytes {
        if !self.turns {
            return message.clone();
        }
        assert_eq!(header.order, ByteOrder::NATIVE);
        let mut octets = message[body..].to_vec();
        let mut at = 0;
        for code in codes {
            let limits = DecodeLimits::for_data(octets.len());
            let turned =
                Program::of(code).swap(&mut octets[at..], body + at, header.order, header.version, limits);
            at += turned.unwrap();
            self.turned.lock().unwrap().insert(code.to_string());
        }
        assert_eq!(at, octets.len(), "all of the body is turned");
        let mut e = Encoder::new(FOREIGN, header.version);
        let size_at = put(&mut e);
        if !octets.is_empty() {
            begin_body(&mut e);
            e.put_raw(&octets);
        }
        finish_message(&mut e, size_at).unwrap();
        e.into_bytes()
    }

    /// Returns the recorded calls in an order that does not depend on time, without calls that were forwarded
    /// elsewhere.
    fn exchanges(&self) -> Vec<Exchange> {
        let forward = |status: u32| status >= ReplyStatus::LocationForward as u32;
        let mut all = std::mem::take(&mut *self.seen.lock().unwrap());
        all.retain(|it| {
            self.find(&it.operation).is_some() && it.reply.as_ref().is_none_or(|(it, _)| !forward(*it))
        });
        all.sort();
        all
    }
}

/// Returns the position of the body.
fn body(d: &mut Decoder<'_>, message: &Bytes) -> usize {
    enter_body(d);
    message.len() - d.remaining()
}

fn of<T: Described>() -> Arc<Interface> {
    Interface::of::<T>()
}

/// Forwards calls to another object by dynamic requests.
struct Caller {
    to: ObjectRef,
}

impl DynServant for Caller {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let info = Arc::clone(request.info());
        let mut call = Request::described(&self.to, &info);
        for argument in request.arguments().iter().filter(|argument| argument.mode.is_input()) {
            call.set(&argument.name, argument.value.clone().unwrap())?;
        }
        if info.oneway {
            call.send_oneway().await?;
            return Ok(request);
        }
        let answered = call.invoke().await?;
        for output in answered.outputs.iter() {
            request.set(&output.name, output.value.clone().unwrap())?;
        }
        if info.result.kind() != TcKind::Void {
            request.set_result(answered.result);
        }
        Ok(request)
    }
}

/// Returns a builder of a server to which a tap leads.
async fn behind(tap: &Tap) -> OrbBuilder {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tap.open(listener.local_addr().unwrap().port()).await;
    transport::builder().listener(listener).publish(address)
}

/// Starts the servers: the compiled one, and the two dynamic ones that forward to each other and to it. The
/// one nearest to the client is last, and so is its tap.
async fn servers(scratch: &Scratch, [last, middle, first]: &[Tap; 3]) -> (Orb, [Orb; 2]) {
    let path = scratch.path("compiled.ior");
    let (compiled, _) = serve_at(&path, behind(last).await).await.unwrap();
    let mut to = std::fs::read_to_string(&path).unwrap().trim().to_owned();
    let mut callers = Vec::new();
    for tap in [middle, first] {
        let orb = behind(tap).await.build().await.unwrap();
        let caller = Caller { to: orb.resolve_unchecked(&to).await.unwrap() };
        let caller = Servant::dynamic(of::<PeerRef>(), caller);
        let here = orb.activation().named("interop").activate_erased(caller).unwrap();
        let forward = orb.forward_named("forward", ForwardRequest::to(&here)).unwrap();
        let moved = orb.forward_named("moved", ForwardRequest::to(&here).permanently()).unwrap();
        to = here.to_string();
        for (name, text) in [("", &to), (".forward", &forward.to_string()), (".moved", &moved.to_string())] {
            std::fs::write(scratch.path(&format!("dynamic.ior{name}")), text).unwrap();
        }
        callers.push(orb);
    }
    (compiled, callers.try_into().unwrap())
}

/// Receives one hint.
struct Listening(Arc<Notify>);

impl ListenerServant for Listening {
    async fn ring(&self, message: &str, number: i32) -> Result<i32, listener::RingError> {
        match message {
            "refuse" => {
                let trail = [1, 2].into();
                Err(Detailed { why: message.to_owned(), code: number, shade: Color::Green, trail }.into())
            }
            _ => Ok(number + 1),
        }
    }

    async fn hint(&self, _: &str) -> Result<(), SystemException> {
        self.0.notify_one();
        Ok(())
    }
}

/// Makes the calls that the checks omit: to objects that a server creates, each through separate dynamic
/// servants.
async fn call_the_rest(way: &Way, compiled: &Orb, callers: &[Orb]) {
    let orb = client(way, plain()).await;
    let Way::Ior(path, _) = way else { return };
    let peer: PeerRef = orb.resolve(std::fs::read_to_string(path).unwrap().trim()).await.unwrap();
    let base = peer.make_base().await.unwrap().unwrap();
    assert_eq!((base.rank().await.unwrap(), &*base.base_name().await.unwrap()), (1, "base"));

    peer.set_enabled_first(true).await.unwrap();
    assert!(peer.enabled_first().await.unwrap() && !peer.enabled_second().await.unwrap());
    peer.reset().await.unwrap();

    let wrapped = async |interface: Arc<Interface>, reference: &ObjectRef| {
        let mut reference = reference.to_string();
        for caller in callers {
            let to = caller.resolve_unchecked(&reference).await.unwrap();
            let servant = Servant::dynamic(Arc::clone(&interface), Caller { to });
            reference = caller.activation().activate_erased(servant).unwrap().to_string();
        }
        orb.resolve_unchecked::<ObjectRef>(&reference).await.unwrap()
    };
    let node = peer.make_node("n").await.unwrap().unwrap();
    let node = NodeRef::from_object(wrapped(of::<NodeRef>(), node.as_object()).await);
    assert_eq!(
        (&*node.label().await.unwrap(), node.add(3).await.unwrap(), node.add(4).await.unwrap()),
        ("n", 3, 7)
    );
    assert_eq!(node.twin().await.unwrap().unwrap().label().await.unwrap(), "n'");
    node.retire().await.unwrap();
    assert_eq!(node.add(1).await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);

    let bottom = peer.make_bottom().await.unwrap().unwrap();
    let bottom = BottomRef::from_object(wrapped(of::<BottomRef>(), bottom.as_object()).await);
    bottom.set_motto("up").await.unwrap();
    assert_eq!((&*bottom.motto().await.unwrap(), &*bottom.bottom_name().await.unwrap()), ("up", "bottom"));
    assert_eq!(bottom.left_name().await.unwrap(), "left of bottom");
    assert_eq!(bottom.right_name(2).await.unwrap(), "right right");
    assert_eq!((bottom.rank().await.unwrap(), &*bottom.base_name().await.unwrap()), (4, "base of bottom"));

    let hint = Arc::new(Notify::new());
    let listener: ListenerRef = compiled.activate(Listening(Arc::clone(&hint))).unwrap();
    let listener = ListenerRef::from_object(wrapped(of::<ListenerRef>(), listener.as_object()).await);
    assert_eq!(listener.ring("ring", 6).await.unwrap(), 7);
    match listener.ring("refuse", 6).await {
        Err(listener::RingError::Detailed(refused)) => {
            assert_eq!((refused.code, refused.trail.len()), (6, 2))
        }
        other => panic!("{other:?}"),
    }
    listener.hint("hint").await.unwrap();
    hint.notified().await;
    orb.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_operations_pass_between_all_pairs_of_callers_and_servants() {
    for (turns, version) in [(false, Version::V1_2), (true, Version::V1_2), (true, Version::V1_1)] {
        let scratch = Scratch::new();
        let taps = [Tap::new(turns), Tap::new(turns), Tap::new(turns)];
        let (compiled, callers) = servers(&scratch, &taps).await;
        let way = Way::Ior(scratch.path("dynamic.ior"), version);
        call_the_rest(&way, &compiled, &callers).await;
        let orb = client(&way, plain()).await;
        let lines = drive(&way, &orb).await;
        assert!(lines.iter().filter(|line| line.starts_with("ok ")).count() > 100, "{lines:#?}");

        let exchanges = taps.each_ref().map(Tap::exchanges);
        let [.., first] = &exchanges;
        let called: BTreeSet<&str> = first.iter().map(|exchange| exchange.operation.as_str()).collect();
        for interface in taps[0].interfaces.iter().flat_map(|interface| interface.lineage()) {
            let attributes = interface.attributes().iter().flat_map(|attribute| {
                let setter = (!attribute.readonly).then(|| format!("_set_{}", attribute.name));
                setter.into_iter().chain([format!("_get_{}", attribute.name)])
            });
            let operations = interface.operations().iter().map(|operation| operation.name.to_string());
            let missing: Vec<_> =
                operations.chain(attributes).filter(|name| !called.contains(&**name)).collect();
            assert!(missing.is_empty(), "never called: {missing:?}");
        }
        // In GIOP 1.1 bodies begin where their headers end, and the headers have different lengths.
        if version == Version::V1_2 {
            // Compiled callers send the same as dynamic ones, and dynamic servants answer the same as
            // compiled ones.
            assert!(first.len() > 300, "{} calls", first.len());
            let peer = of::<PeerRef>();
            let of_peer = |it: &&Exchange| it.key == b"interop" && peer.find(&it.operation).is_some();
            for others in &exchanges[..2] {
                let mut counts: BTreeMap<&Exchange, i32> = BTreeMap::new();
                first.iter().filter(of_peer).for_each(|it| *counts.entry(it).or_default() += 1);
                others.iter().filter(of_peer).for_each(|it| *counts.entry(it).or_default() -= 1);
                let different: Vec<_> = counts.into_iter().filter(|(_, count)| *count != 0).collect();
                assert!(different.is_empty(), "{different:?}");
            }
        }
        let kinds = taps.each_ref().map(|tap| tap.turned.lock().unwrap().len());
        assert!(kinds.iter().all(|kinds| if turns { *kinds > 80 } else { *kinds == 0 }), "{kinds:?} types");
        for orb in callers.iter().rev().chain([&compiled]) {
            orb.shutdown().await;
        }
    }
}
