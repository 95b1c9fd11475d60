//! Conversion of messages to output: requests with their arguments, replies with their results.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use giop_codec::cdr::{CdrDecode, CodeSets, Decoder};
use giop_codec::code_set::CodeSetContext;
use giop_codec::csi::SasContext;
use giop_codec::giop::{
    AddressingDisposition, BiDirIiopServiceContext, ContextId, LocateStatus, Message, MessageHeader,
    MessageType, ReplyStatus, ServiceContexts, TargetAddress,
};
use giop_codec::ior::Ior;
use giop_codec::{Printable, Version};
use serde::Serialize;
use serde_json::value::RawValue;

use super::contexts;
use super::stream::{Cut, Cutter, MAX_MESSAGE, Whole};
use super::tcp::Happened;
use super::types::{Decoded, Known, Types, scoped, system_exception};
use crate::limits::MessageSize;

/// Maximum number of pending requests of a connection. Replies to further ones are shown without their
/// requests.
const MAX_WAITING: usize = 4096;
/// Maximum number of pending requests of all connections.
const MAX_WAITING_IN_ALL: usize = 65_536;
/// Maximum bytes of a key, and of a type's name, that are kept while a request is pending.
const MAX_KEPT: usize = 1024;
/// Maximum bytes of incomplete messages of all connections. The buffers of a connection that exceeds it are
/// dropped.
const MAX_HELD: usize = 256 << 20;
/// Maximum bytes that are shown of a body without types.
const MAX_OCTETS: usize = 4096;

/// A message in the output, for people and programs.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    /// Seconds since 1970.
    pub(super) time: f64,
    pub(super) connection: u64,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) message: &'static str,
    pub(super) giop: String,
    pub(super) little_endian: bool,
    pub(super) octets: u64,
    /// Number of fragments.
    #[serde(skip_serializing_if = "is_one")]
    pub(super) fragments: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<u32>,
    /// The object key, with printable bytes unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// The interface, if the IDL has it: `Bank::Account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) oneway: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    /// Time since the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency_us: Option<f64>,
    /// Arguments or results by their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Box<RawValue>>,
    /// The body if no types are known, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body_octets: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) contexts: Vec<ContextTold>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) remarks: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// A service context.
#[derive(Debug, Serialize)]
pub(super) struct ContextTold {
    pub(super) id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) says: Option<String>,
    pub(super) octets: usize,
}

/// A message, and its bytes.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) told: Told,
    pub(super) from_client: bool,
    /// `None` for an incomplete message.
    pub(super) whole: Option<Whole>,
}

/// Counters of a capture.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct CallCounts {
    pub(super) connections: u64,
    /// Connections with TLS, which cannot be read.
    pub(super) tls: u64,
    /// Connections with other protocols.
    pub(super) foreign: u64,
    pub(super) messages: u64,
    pub(super) requests: u64,
    pub(super) replies: u64,
    /// Incomplete messages.
    pub(super) damaged: u64,
    /// Pending requests at the end.
    pub(super) unanswered: u64,
}

/// The conversion of connection data to calls.
pub(super) struct Sniffer {
    pub(super) types: Types,
    connections: HashMap<u64, Connection>,
    held: usize,
    /// Number of pending requests.
    waiting: usize,
    pub(super) counts: CallCounts,
    /// Maximum size of a message that is kept, in bytes.
    max_message: usize,
}

struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    ways: [Cutter; 2],
    foreign: bool,
    code_sets: Option<CodeSets>,
    /// Pending requests, by the side that sent them and by number.
    waiting: HashMap<(bool, u32), Pending>,
    /// Further requests may be kept as pending.
    room: bool,
    number: u64,
}

struct Pending {
    /// `None` if the message was incomplete, so its time is unknown.
    time: Option<Duration>,
    key: Box<[u8]>,
    operation: String,
    known: Option<Known>,
    /// The type that `_is_a` tests.
    asked: Option<String>,
    /// The request was cancelled.
    cancelled: bool,
}

impl Sniffer {
    pub(super) fn new(types: Types, size: MessageSize) -> Self {
        let max_message = size.bytes().unwrap_or(MAX_MESSAGE);
        let counts = CallCounts::default();
        Self { types, connections: HashMap::new(), held: 0, waiting: 0, counts, max_message }
    }

    /// Returns the bytes of incomplete messages, and the number of pending requests.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.held, self.waiting)
    }

    /// Handles an event of a connection.
    pub(super) fn happened(
        &mut self,
        number: u64,
        time: Duration,
        happened: Happened,
        tell: &mut impl FnMut(Seen),
    ) {
        if let Happened::Opened { client, server, whole } = happened {
            self.counts.connections += 1;
            let connection = Connection {
                client,
                server,
                ways: [Cutter::new(whole, self.max_message), Cutter::new(whole, self.max_message)],
                foreign: false,
                code_sets: None,
                waiting: HashMap::new(),
                room: true,
                number,
            };
            self.connections.insert(number, connection);
            return;
        }
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let waited = connection.waiting.len();
        connection.room = self.waiting < MAX_WAITING_IN_ALL;
        let mut cuts: Vec<(bool, Cut)> = Vec::new();
        let before: usize = connection.ways.iter().map(Cutter::held).sum();
        let closed = happened == Happened::Closed;
        match happened {
            Happened::Opened { .. } => {}
            Happened::Octets { from_client, octets } if !connection.foreign => {
                connection.way(from_client).octets(&octets, &mut |cut| cuts.push((from_client, cut)));
            }
            Happened::Lost { from_client, octets } if !connection.foreign => {
                connection.way(from_client).lost(octets, &mut |cut| cuts.push((from_client, cut)));
            }
            Happened::Octets { .. } | Happened::Lost { .. } => {}
            Happened::Closed => {
                for from_client in [true, false] {
                    connection.way(from_client).end(&mut |cut| cuts.push((from_client, cut)));
                }
            }
        }
        let after: usize = connection.ways.iter().map(Cutter::held).sum();
        self.held = (self.held + after).saturating_sub(before);
        if self.held > MAX_HELD.max(self.max_message.saturating_mul(2)) {
            self.held -= after;
            for from_client in [true, false] {
                connection.way(from_client).give_up(&mut |cut| cuts.push((from_client, cut)));
            }
        }
        for (from_client, cut) in cuts {
            match cut {
                Cut::Foreign { tls } => {
                    if !connection.foreign {
                        connection.foreign = true;
                        self.counts.tls += u64::from(tls);
                        self.counts.foreign += u64::from(!tls);
                    }
                }
                Cut::Noise { octets } => {
                    let mut told = connection.told(from_client, time, "noise");
                    told.octets = octets;
                    told.remarks.push("octets between messages that are none".to_owned());
                    tell(Seen { told, from_client, whole: None });
                }
                Cut::Damaged { header, start, why } => {
                    self.counts.damaged += 1;
                    let whole = Whole { header, octets: start, pieces: Vec::new(), fragments: 1 };
                    let mut seen = connection.message(&mut self.types, from_client, time, &whole, Some(why));
                    seen.told.octets = MessageHeader::LEN as u64 + u64::from(header.size);
                    tell(seen);
                }
                Cut::Message(whole) => {
                    self.counts.messages += 1;
                    self.counts.requests += u64::from(whole.header.kind == MessageType::Request);
                    self.counts.replies += u64::from(whole.header.kind == MessageType::Reply);
                    let mut seen = connection.message(&mut self.types, from_client, time, &whole, None);
                    seen.whole = Some(whole);
                    tell(seen);
                }
            }
        }
        self.waiting = self.waiting - waited + connection.waiting.len();
        if closed {
            self.waiting -= connection.waiting.len();
            self.counts.unanswered += (connection.open(true) + connection.open(false)) as u64;
            self.connections.remove(&number);
        }
    }
}

impl Connection {
    fn way(&mut self, from_client: bool) -> &mut Cutter {
        let [client, server] = &mut self.ways;
        if from_client { client } else { server }
    }

    fn told(&self, from_client: bool, time: Duration, message: &'static str) -> Told {
        let (from, to) = if from_client { (self.client, self.server) } else { (self.server, self.client) };
        Told {
            time: time.as_secs_f64(),
            connection: self.number,
            from,
            to,
            message,
            giop: String::new(),
            little_endian: false,
            octets: 0,
            fragments: 1,
            request: None,
            key: None,
            interface: None,
            operation: None,
            oneway: false,
            status: None,
            latency_us: None,
            body: None,
            body_octets: None,
            contexts: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Converts a message. For an incomplete one, `damaged` is the reason, and only its first bytes are
    /// available.
    fn message(
        &mut self,
        types: &mut Types,
        from_client: bool,
        time: Duration,
        whole: &Whole,
        damaged: Option<&'static str>,
    ) -> Seen {
        let header = &whole.header;
        let mut told = self.told(from_client, time, name(header.kind));
        told.giop = header.version.to_string();
        told.little_endian = header.order == giop_codec::ByteOrder::Little;
        told.octets = whole.octets.len() as u64;
        told.fragments = whole.fragments;
        told.remarks.extend(damaged.map(str::to_owned));
        let mut d = Decoder::from_bytes(&whole.octets, header.order, header.version).at(MessageHeader::LEN);
        d = d.with_pieces(&whole.pieces);
        d.set_code_sets(self.code_sets.unwrap_or(CodeSets::default_for(header.version)));
        let message = match header.kind {
            // Only fragments that could not be joined reach this point.
            MessageType::Fragment => {
                return Seen { told, from_client, whole: None };
            }
            kind => Message::decode(kind, &mut d),
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                if damaged.is_none() {
                    told.remarks.push(format!("its header does not decode: {error}"));
                }
                return Seen { told, from_client, whole: None };
            }
        };
        told.request = message.request_id().map(|id| id.0);
        self.contexts(&message.contexts(), header.version, &mut told);
        // Code sets as negotiated by the contexts of this message.
        d.set_code_sets(self.code_sets.unwrap_or(CodeSets::default_for(header.version)));
        match &message {
            Message::Request(request) => {
                let asked_at = damaged.is_none().then_some(time);
                let key = key_of(&request.target);
                told.key = Some(key.escape_ascii().to_string());
                told.operation = Some(request.operation.to_owned());
                told.oneway = !request.response.expects_reply();
                let mut asked = None;
                let known = if damaged.is_none() {
                    let (found, decoded) = types.request(&key, request.operation, &d);
                    if request.operation == "_is_a" {
                        let id = d.clone().read_str_ascii().ok().filter(|id| id.len() <= MAX_KEPT);
                        asked = id.map(str::to_owned);
                    }
                    told.take(found.is_some(), decoded, &d);
                    found
                } else {
                    types.operation(&key, request.operation)
                };
                told.interface =
                    known.as_ref().and_then(|known| Some(scoped(known.interface.as_ref()?.id())));
                if request.response.expects_reply() {
                    let operation = request.operation.to_owned();
                    let pending = Pending {
                        time: asked_at,
                        key: key.get(..MAX_KEPT).unwrap_or(&key).into(),
                        operation,
                        known: known.clone(),
                        asked,
                        cancelled: false,
                    };
                    self.wait(from_client, request.request_id.0, pending);
                }
            }
            Message::LocateRequest(locate) => {
                let asked_at = damaged.is_none().then_some(time);
                let key = key_of(&locate.target);
                told.key = Some(key.escape_ascii().to_string());
                let pending = Pending {
                    time: asked_at,
                    key: key.get(..MAX_KEPT).unwrap_or(&key).into(),
                    operation: String::new(),
                    known: None,
                    asked: None,
                    cancelled: false,
                };
                self.wait(from_client, locate.request_id.0, pending);
            }
            Message::Reply(reply) => {
                told.status = Some(match reply.status {
                    ReplyStatus::NoException => "no_exception",
                    ReplyStatus::UserException => "user_exception",
                    ReplyStatus::SystemException => "system_exception",
                    ReplyStatus::LocationForward => "location_forward",
                    ReplyStatus::LocationForwardPerm => "location_forward_perm",
                    ReplyStatus::NeedsAddressingMode => "needs_addressing_mode",
                });
                let pending = self.answered(from_client, reply.request_id.0, time, &mut told);
                if damaged.is_none() {
                    reply_body(types, reply.status, pending.as_ref(), &d, &mut told);
                }
            }
            Message::LocateReply(reply) => {
                told.status = Some(match reply.status {
                    LocateStatus::UnknownObject => "unknown_object",
                    LocateStatus::ObjectHere => "object_here",
                    LocateStatus::ObjectForward => "object_forward",
                    LocateStatus::ObjectForwardPerm => "object_forward_perm",
                    LocateStatus::SystemException => "system_exception",
                    LocateStatus::NeedsAddressingMode => "needs_addressing_mode",
                });
                self.answered(from_client, reply.request_id.0, time, &mut told);
                match reply.status {
                    LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                        forward(types, &d, &mut told);
                    }
                    LocateStatus::SystemException => told.take(true, system_exception(&d), &d),
                    LocateStatus::NeedsAddressingMode => wanted_address(&d, &mut told),
                    LocateStatus::UnknownObject | LocateStatus::ObjectHere => {}
                }
            }
            Message::CancelRequest(cancel) => {
                if let Some(pending) = self.waiting.get_mut(&(from_client, cancel.request_id.0)) {
                    pending.cancelled = true;
                    told.operation = Some(pending.operation.clone());
                    told.latency_us = pending.time.map(|asked| micros(time, asked));
                }
            }
            Message::CloseConnection => {
                let asked = self.open(!from_client);
                if asked > 0 {
                    told.remarks
                        .push(format!("{asked} requests are without an answer: they were not processed"));
                }
            }
            Message::MessageError | Message::Fragment(_) => {}
        }
        Seen { told, from_client, whole: None }
    }

    /// Returns the number of pending requests of a side, without cancelled ones.
    fn open(&self, by_client: bool) -> usize {
        let open = |((side, _), pending): &(&(bool, u32), &Pending)| *side == by_client && !pending.cancelled;
        self.waiting.iter().filter(open).count()
    }

    fn wait(&mut self, from_client: bool, id: u32, pending: Pending) {
        if self.room && self.waiting.len() < MAX_WAITING || self.waiting.contains_key(&(from_client, id)) {
            self.waiting.insert((from_client, id), pending);
        }
    }

    /// Returns the request that this reply belongs to.
    fn answered(&mut self, from_client: bool, id: u32, time: Duration, told: &mut Told) -> Option<Pending> {
        let pending = self.waiting.remove(&(!from_client, id));
        match &pending {
            Some(pending) => {
                told.latency_us = pending.time.map(|asked| micros(time, asked));
                told.operation = Some(pending.operation.clone()).filter(|operation| !operation.is_empty());
                told.key = Some(pending.key.escape_ascii().to_string());
                told.interface =
                    pending.known.as_ref().and_then(|known| Some(scoped(known.interface.as_ref()?.id())));
            }
            None => told.remarks.push("its request was not seen".to_owned()),
        }
        pending
    }

    fn contexts(&mut self, contexts: &ServiceContexts<'_>, version: Version, told: &mut Told) {
        for context in contexts {
            let says = match context.id {
                ContextId::CODE_SETS => context.value::<CodeSetContext>().ok().map(|sets| {
                    if version > Version::V1_0
                        && let Ok(accepted) = sets.accept(None)
                    {
                        self.code_sets = Some(accepted);
                    }
                    format!("char {}, wchar {}", sets.char_data, sets.wchar_data)
                }),
                ContextId::BI_DIR_IIOP => {
                    BiDirIiopServiceContext::from_service_context(&context).ok().flatten().map(|points| {
                        let at =
                            |point: &giop_codec::giop::ListenPoint| format!("{}:{}", point.host, point.port);
                        points.listen_points.iter().map(at).collect::<Vec<_>>().join(", ")
                    })
                }
                ContextId::SECURITY_ATTRIBUTE_SERVICE => {
                    // Shows only the kind of the message, because its content may include a password.
                    SasContext::from_service_context(&context).ok().flatten().map(|sas| {
                        match sas {
                            SasContext::Establish(_) => "EstablishContext",
                            SasContext::Complete { .. } => "CompleteEstablishContext",
                            SasContext::Error { .. } => "ContextError",
                            SasContext::InContext { .. } => "MessageInContext",
                        }
                        .to_owned()
                    })
                }
                ContextId::EXCEPTION_DETAIL_MESSAGE => contexts::text(&context),
                _ => None,
            };
            told.contexts.push(ContextTold {
                id: context.id.0,
                name: contexts::name(context.id),
                says,
                octets: context.data.len(),
            });
        }
    }
}

impl Told {
    /// Adds a body: as JSON if it could be decoded, otherwise its bytes.
    fn take(&mut self, typed: bool, decoded: Decoded, body: &Decoder<'_>) {
        self.remarks.extend(decoded.remark);
        if !typed || decoded.json.is_none() {
            let octets = body.rest();
            let kept = octets.get(..MAX_OCTETS).unwrap_or(octets);
            let hex: String = kept.iter().map(|octet| format!("{octet:02x}")).collect();
            if kept.len() < octets.len() {
                self.remarks.push(format!("{} octets of {} are told", kept.len(), octets.len()));
            }
            self.body_octets = Some(hex).filter(|hex| !hex.is_empty());
        }
        self.body = decoded.json;
    }
}

fn reply_body(
    types: &mut Types,
    status: ReplyStatus,
    pending: Option<&Pending>,
    d: &Decoder<'_>,
    told: &mut Told,
) {
    let known = pending.and_then(|pending| pending.known.as_ref());
    match status {
        ReplyStatus::NoException => match known {
            Some(known) => {
                let decoded = types.reply(&known.operation, d);
                told.take(true, decoded, d);
                if let Some(pending) = pending
                    && let Some(asked) = &pending.asked
                    && d.clone().read_bool() == Ok(true)
                {
                    types.learn(&pending.key, asked);
                }
            }
            None => told.take(false, Decoded::default(), d),
        },
        ReplyStatus::UserException => {
            let (id, decoded) = types.exception(known.map(|known| &*known.operation), d);
            if decoded.json.is_none() {
                told.remarks.push(format!("raises {}", Printable::new(&id)));
            }
            told.take(decoded.json.is_some(), decoded, d);
        }
        ReplyStatus::SystemException => told.take(true, system_exception(d), d),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => forward(types, d, told),
        ReplyStatus::NeedsAddressingMode => wanted_address(d, told),
    }
}

fn forward(types: &mut Types, d: &Decoder<'_>, told: &mut Told) {
    match Ior::decode(&mut d.clone()) {
        Ok(ior) => {
            types.learn_reference(&ior);
            let json = serde_json::json!({ "$forward": ior.to_string() });
            told.body = RawValue::from_string(json.to_string()).ok();
        }
        Err(error) => told.take(false, Decoded { json: None, remark: Some(error.to_string()) }, d),
    }
}

fn wanted_address(d: &Decoder<'_>, told: &mut Told) {
    match AddressingDisposition::decode(&mut d.clone()) {
        Ok(wanted) => told.remarks.push(format!("the server wants the target as {wanted:?}")),
        Err(error) => told.remarks.push(error.to_string()),
    }
}

fn key_of(target: &TargetAddress<'_>) -> Vec<u8> {
    target.object_key().map(|key| key.as_slice().to_vec()).unwrap_or_default()
}

fn micros(now: Duration, then: Duration) -> f64 {
    now.saturating_sub(then).as_nanos() as f64 / 1000.0
}

fn name(kind: MessageType) -> &'static str {
    match kind {
        MessageType::Request => "request",
        MessageType::Reply => "reply",
        MessageType::CancelRequest => "cancel_request",
        MessageType::LocateRequest => "locate_request",
        MessageType::LocateReply => "locate_reply",
        MessageType::CloseConnection => "close_connection",
        MessageType::MessageError => "message_error",
        MessageType::Fragment => "fragment",
    }
}
