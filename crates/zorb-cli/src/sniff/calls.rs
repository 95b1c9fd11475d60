//! Decoding of captured GIOP messages for the output, with the arguments and results of calls.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use giop_codec::cdr::{CdrDecode, CodeSets, Decoder};
use giop_codec::code_set::CodeSetContext;
use giop_codec::csi::SasContext;
use giop_codec::giop::{
    AddressingDisposition, BiDirIiopServiceContext, ContextId, LocateStatus, Message, MessageHeader,
    MessageType, ReplyStatus, RequestHeader, ServiceContexts, TargetAddress,
};
use giop_codec::ior::Ior;
use giop_codec::{Printable, Version};
use serde::Serialize;
use serde_json::value::RawValue;

use super::contexts;
use super::record::{ContextRecord, MessageRecord};
use super::stream::{DEFAULT_MAX_MESSAGE_BYTES, MessageBytes, MessageParser, StreamItem};
use super::tcp::ConnectionEvent;
use super::types::{BodyDecoder, DecodedBody, KnownOperation, decode_system_exception};
use crate::limits::MaxMessageValue;

/// The maximum number of pending requests that are stored for a connection. If a request is not stored, its
/// reply is printed without operation and results.
const MAX_PENDING_PER_CONNECTION: usize = 4096;
const MAX_PENDING_TOTAL: usize = 65_536;
/// The maximum length of an object key or repository id that is stored for a pending request. Longer keys are
/// truncated, and longer repository ids are not stored.
const MAX_STORED_BYTES: usize = 1024;
/// The maximum total size of the incomplete messages of all connections, or twice the maximum size of a
/// message if that is more. If data of a connection exceeds it, the buffers of this connection are dropped.
const MAX_BUFFERED_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub(super) struct SniffedMessage {
    pub(super) record: MessageRecord,
    pub(super) from_client: bool,
    /// `None` for an incomplete message, and for bytes that do not belong to a message.
    pub(super) complete_message: Option<MessageBytes>,
}

/// The numbers of connections and messages. The field names are the JSON keys.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct CallCounts {
    pub(super) connections: u64,
    /// Connections with TLS, whose contents cannot be read.
    pub(super) tls: u64,
    /// Connections with other protocols.
    pub(super) foreign: u64,
    pub(super) messages: u64,
    pub(super) requests: u64,
    pub(super) replies: u64,
    /// Incomplete messages.
    pub(super) damaged: u64,
    /// Requests without a reply when their connection was closed. Cancelled requests are not counted.
    pub(super) unanswered: u64,
}

pub(super) struct Sniffer {
    pub(super) types: BodyDecoder,
    connections: HashMap<u64, Connection>,
    buffered_bytes: usize,
    pending_count: usize,
    pub(super) counts: CallCounts,
    max_message_bytes: usize,
}

struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    /// The parsers of the client's and of the server's messages.
    parsers: [MessageParser; 2],
    /// True if the connection does not use GIOP.
    is_foreign: bool,
    code_sets: Option<CodeSets>,
    /// The pending requests, by the side that sent them (true for the client) and by request id.
    pending: HashMap<(bool, u32), PendingRequest>,
    /// True if there are fewer than `MAX_PENDING_TOTAL` pending requests of all connections.
    may_add_pending: bool,
    number: u64,
}

#[derive(Default)]
struct PendingRequest {
    /// The time at which the request was complete. `None` if it was captured only in part.
    time: Option<Duration>,
    key: Box<[u8]>,
    operation: String,
    /// The declaration of the operation, if it is known.
    known: Option<KnownOperation>,
    /// The argument of a request for `_is_a`.
    tested_id: Option<String>,
    is_cancelled: bool,
}

impl Sniffer {
    pub(super) fn new(types: BodyDecoder, max_message: MaxMessageValue) -> Self {
        Self {
            types,
            connections: HashMap::new(),
            buffered_bytes: 0,
            pending_count: 0,
            counts: CallCounts::default(),
            max_message_bytes: max_message.bytes.unwrap_or(DEFAULT_MAX_MESSAGE_BYTES),
        }
    }

    #[cfg(test)]
    pub(super) fn memory_use(&self) -> (usize, usize) {
        (self.buffered_bytes, self.pending_count)
    }

    pub(super) fn handle_event(
        &mut self,
        number: u64,
        time: Duration,
        event: ConnectionEvent,
        emit: &mut impl FnMut(SniffedMessage),
    ) {
        if let ConnectionEvent::Opened { client, server, from_start } = event {
            self.counts.connections += 1;
            let connection = Connection {
                client,
                server,
                parsers: [(); 2].map(|()| MessageParser::new(from_start, self.max_message_bytes)),
                is_foreign: false,
                code_sets: None,
                pending: HashMap::new(),
                may_add_pending: true,
                number,
            };
            self.connections.insert(number, connection);
            return;
        }
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let pending_before = connection.pending.len();
        connection.may_add_pending = self.pending_count < MAX_PENDING_TOTAL;
        let mut items: Vec<(bool, StreamItem)> = Vec::new();
        let bytes_before: usize = connection.parsers.iter().map(MessageParser::buffered_bytes).sum();
        let is_closed = event == ConnectionEvent::Closed;
        match event {
            ConnectionEvent::Opened { .. } => {}
            ConnectionEvent::Data { from_client, data } if !connection.is_foreign => {
                connection.parser(from_client).feed(&data, &mut |item| items.push((from_client, item)));
            }
            ConnectionEvent::Lost { from_client, len } if !connection.is_foreign => {
                connection.parser(from_client).skip_gap(len, &mut |item| items.push((from_client, item)));
            }
            ConnectionEvent::Data { .. } | ConnectionEvent::Lost { .. } => {}
            ConnectionEvent::Closed => {
                for from_client in [true, false] {
                    connection.parser(from_client).end(&mut |item| items.push((from_client, item)));
                }
            }
        }
        let bytes_after: usize = connection.parsers.iter().map(MessageParser::buffered_bytes).sum();
        self.buffered_bytes = (self.buffered_bytes + bytes_after).saturating_sub(bytes_before);
        if self.buffered_bytes > MAX_BUFFERED_BYTES.max(self.max_message_bytes.saturating_mul(2)) {
            self.buffered_bytes -= bytes_after;
            for from_client in [true, false] {
                connection.parser(from_client).drop_buffers(&mut |item| items.push((from_client, item)));
            }
        }
        for (from_client, item) in items {
            match item {
                StreamItem::Foreign { is_tls } => {
                    if !connection.is_foreign {
                        connection.is_foreign = true;
                        self.counts.tls += u64::from(is_tls);
                        self.counts.foreign += u64::from(!is_tls);
                    }
                }
                StreamItem::Noise { len } => {
                    let mut record = connection.new_record(from_client, time, "noise");
                    record.size = len;
                    record.remarks.push("bytes that do not belong to a message".to_owned());
                    emit(SniffedMessage { record, from_client, complete_message: None });
                }
                StreamItem::Damaged { header, start, reason } => {
                    self.counts.damaged += 1;
                    let start = MessageBytes::unfragmented(header, start);
                    let mut sniffed =
                        connection.decode_message(&mut self.types, from_client, time, &start, Some(reason));
                    sniffed.record.size = MessageHeader::LEN as u64 + u64::from(header.size);
                    emit(sniffed);
                }
                StreamItem::Message(complete) => {
                    self.counts.messages += 1;
                    self.counts.requests += u64::from(complete.header.kind == MessageType::Request);
                    self.counts.replies += u64::from(complete.header.kind == MessageType::Reply);
                    let mut sniffed =
                        connection.decode_message(&mut self.types, from_client, time, &complete, None);
                    sniffed.complete_message = Some(complete);
                    emit(sniffed);
                }
            }
        }
        self.pending_count = self.pending_count - pending_before + connection.pending.len();
        if is_closed {
            self.pending_count -= connection.pending.len();
            let unanswered = [true, false].map(|from_client| connection.unanswered_count(from_client) as u64);
            self.counts.unanswered += unanswered.iter().sum::<u64>();
            self.connections.remove(&number);
        }
    }
}

impl Connection {
    fn parser(&mut self, from_client: bool) -> &mut MessageParser {
        let [client, server] = &mut self.parsers;
        if from_client { client } else { server }
    }

    fn new_record(&self, from_client: bool, time: Duration, message: &'static str) -> MessageRecord {
        let (from, to) = if from_client { (self.client, self.server) } else { (self.server, self.client) };
        MessageRecord {
            time: time.as_secs_f64(),
            connection: self.number,
            from,
            to,
            message,
            giop: String::new(),
            little_endian: false,
            size: 0,
            fragments: 1,
            request: None,
            key: None,
            interface: None,
            operation: None,
            oneway: false,
            status: None,
            latency_us: None,
            body: None,
            body_hex: None,
            contexts: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Decodes a message. If `damage` is given, it is the reason why the message is incomplete, and `encoded`
    /// contains only its first bytes.
    fn decode_message(
        &mut self,
        types: &mut BodyDecoder,
        from_client: bool,
        time: Duration,
        encoded: &MessageBytes,
        damage: Option<&'static str>,
    ) -> SniffedMessage {
        let header = &encoded.header;
        let mut record = self.new_record(from_client, time, message_name(header.kind));
        record.giop = header.version.to_string();
        record.little_endian = header.order == giop_codec::ByteOrder::Little;
        record.size = encoded.bytes.len() as u64;
        record.fragments = encoded.fragment_count;
        record.remarks.extend(damage.map(str::to_owned));
        let mut d = Decoder::from_bytes(&encoded.bytes, header.order, header.version).at(MessageHeader::LEN);
        d = d.with_fragments(&encoded.alignment_restarts);
        d.set_code_sets(self.code_sets.unwrap_or(CodeSets::default_for(header.version)));
        // A fragment that could not be joined to its message cannot be decoded.
        if header.kind == MessageType::Fragment {
            return SniffedMessage { record, from_client, complete_message: None };
        }
        let message = match Message::decode(header.kind, &mut d) {
            Ok(message) => message,
            Err(error) => {
                if damage.is_none() {
                    record.remarks.push(format!("the header cannot be decoded: {error}"));
                }
                return SniffedMessage { record, from_client, complete_message: None };
            }
        };
        record.request = message.request_id().map(|id| id.0);
        self.decode_contexts(&message.contexts(), header.version, &mut record);
        // The contexts of this message may have negotiated code sets.
        d.set_code_sets(self.code_sets.unwrap_or(CodeSets::default_for(header.version)));
        let request_time = damage.is_none().then_some(time);
        match &message {
            Message::Request(request) => {
                self.decode_request(types, from_client, request_time, request, &d, &mut record);
            }
            Message::LocateRequest(locate) => {
                let key = key_of(&locate.target);
                record.key = Some(key.escape_ascii().to_string());
                let pending = PendingRequest::new(request_time, &key);
                self.add_pending(from_client, locate.request_id.0, pending);
            }
            Message::Reply(reply) => {
                record.status = Some(reply_status_name(reply.status));
                let pending = self.take_pending(from_client, reply.request_id.0, time, &mut record);
                if damage.is_none() {
                    decode_reply_body(types, reply.status, pending.as_ref(), &d, &mut record);
                }
            }
            Message::LocateReply(reply) => {
                record.status = Some(locate_status_name(reply.status));
                self.take_pending(from_client, reply.request_id.0, time, &mut record);
                match reply.status {
                    LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                        decode_forward(types, &d, &mut record);
                    }
                    LocateStatus::SystemException => record.set_body(true, decode_system_exception(&d), &d),
                    LocateStatus::NeedsAddressingMode => decode_addressing_mode(&d, &mut record),
                    LocateStatus::UnknownObject | LocateStatus::ObjectHere => {}
                }
            }
            Message::CancelRequest(cancel) => {
                if let Some(pending) = self.pending.get_mut(&(from_client, cancel.request_id.0)) {
                    pending.is_cancelled = true;
                    record.operation = Some(pending.operation.clone());
                    record.latency_us = pending.time.map(|request_time| micros_between(time, request_time));
                }
            }
            Message::CloseConnection => {
                let unanswered = self.unanswered_count(!from_client);
                if unanswered > 0 {
                    record
                        .remarks
                        .push(format!("{unanswered} pending requests, which the sender will not process"));
                }
            }
            Message::MessageError | Message::Fragment(_) => {}
        }
        SniffedMessage { record, from_client, complete_message: None }
    }

    /// Decodes a request. `time` is `None` if the message is incomplete; the arguments are not decoded then.
    fn decode_request(
        &mut self,
        types: &mut BodyDecoder,
        from_client: bool,
        time: Option<Duration>,
        request: &RequestHeader<'_>,
        d: &Decoder<'_>,
        record: &mut MessageRecord,
    ) {
        let key = key_of(&request.target);
        record.key = Some(key.escape_ascii().to_string());
        record.operation = Some(request.operation.to_owned());
        record.oneway = !request.response.expects_reply();
        let mut tested_id = None;
        let known = if time.is_some() {
            let (found, decoded) = types.decode_request(&key, request.operation, d);
            if request.operation == "_is_a" {
                let id = d.clone().read_unconverted_str().ok().filter(|id| id.len() <= MAX_STORED_BYTES);
                tested_id = id.map(str::to_owned);
            }
            record.set_body(found.is_some(), decoded, d);
            found
        } else {
            types.find_operation(&key, request.operation)
        };
        record.interface = known.as_ref().and_then(KnownOperation::interface_name);
        if !record.oneway {
            let operation = request.operation.to_owned();
            let pending = PendingRequest { operation, known, tested_id, ..PendingRequest::new(time, &key) };
            self.add_pending(from_client, request.request_id.0, pending);
        }
    }

    /// Returns the number of pending requests that a side sent and did not cancel.
    fn unanswered_count(&self, from_client: bool) -> usize {
        let is_unanswered = |((side, _), pending): &(&(bool, u32), &PendingRequest)| {
            *side == from_client && !pending.is_cancelled
        };
        self.pending.iter().filter(is_unanswered).count()
    }

    fn add_pending(&mut self, from_client: bool, id: u32, pending: PendingRequest) {
        let may_add = self.may_add_pending && self.pending.len() < MAX_PENDING_PER_CONNECTION;
        if may_add || self.pending.contains_key(&(from_client, id)) {
            self.pending.insert((from_client, id), pending);
        }
    }

    fn take_pending(
        &mut self,
        from_client: bool,
        id: u32,
        time: Duration,
        record: &mut MessageRecord,
    ) -> Option<PendingRequest> {
        let pending = self.pending.remove(&(!from_client, id));
        match &pending {
            Some(pending) => {
                record.latency_us = pending.time.map(|request_time| micros_between(time, request_time));
                record.operation = Some(pending.operation.clone()).filter(|operation| !operation.is_empty());
                record.key = Some(pending.key.escape_ascii().to_string());
                record.interface = pending.known.as_ref().and_then(KnownOperation::interface_name);
            }
            None => {
                record.remarks.push("the request is unknown: not captured, or too many pending".to_owned())
            }
        }
        pending
    }

    fn decode_contexts(
        &mut self,
        contexts: &ServiceContexts<'_>,
        version: Version,
        record: &mut MessageRecord,
    ) {
        for context in contexts {
            let content = match context.id {
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
                        let address =
                            |point: &giop_codec::giop::ListenPoint| format!("{}:{}", point.host, point.port);
                        points.listen_points.iter().map(address).collect::<Vec<_>>().join(", ")
                    })
                }
                ContextId::SECURITY_ATTRIBUTE_SERVICE => {
                    // Only the kind of the message is printed, because the message may contain a password.
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
                ContextId::EXCEPTION_DETAIL_MESSAGE => contexts::wide_string(&context),
                _ => None,
            };
            record.contexts.push(ContextRecord {
                id: context.id.0,
                name: contexts::name(context.id),
                content,
                size: context.data.len(),
            });
        }
    }
}

impl PendingRequest {
    fn new(time: Option<Duration>, key: &[u8]) -> Self {
        Self { time, key: key.get(..MAX_STORED_BYTES).unwrap_or(key).into(), ..Self::default() }
    }
}

fn decode_reply_body(
    types: &mut BodyDecoder,
    status: ReplyStatus,
    pending: Option<&PendingRequest>,
    d: &Decoder<'_>,
    record: &mut MessageRecord,
) {
    let known = pending.and_then(|pending| pending.known.as_ref());
    match status {
        ReplyStatus::NoException => match known {
            Some(known) => {
                let decoded = types.decode_reply(&known.operation, d);
                record.set_body(true, decoded, d);
                if let Some(pending) = pending
                    && let Some(tested_id) = &pending.tested_id
                    && d.clone().read_bool() == Ok(true)
                {
                    types.store_interface(&pending.key, tested_id);
                }
            }
            None => record.set_body(false, DecodedBody::default(), d),
        },
        ReplyStatus::UserException => {
            let (id, decoded) = types.decode_exception(known.map(|known| &*known.operation), d);
            if decoded.json.is_none() {
                record.remarks.push(format!("raises {}", Printable::new(&id)));
            }
            record.set_body(decoded.json.is_some(), decoded, d);
        }
        ReplyStatus::SystemException => record.set_body(true, decode_system_exception(d), d),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => decode_forward(types, d, record),
        ReplyStatus::NeedsAddressingMode => decode_addressing_mode(d, record),
    }
}

fn decode_forward(types: &mut BodyDecoder, d: &Decoder<'_>, record: &mut MessageRecord) {
    match Ior::decode(&mut d.clone()) {
        Ok(ior) => {
            types.store_reference(&ior);
            let json = serde_json::json!({ "$forward": ior.to_string() });
            record.body = RawValue::from_string(json.to_string()).ok();
        }
        Err(error) => record.set_body(false, DecodedBody { json: None, remark: Some(error.to_string()) }, d),
    }
}

fn decode_addressing_mode(d: &Decoder<'_>, record: &mut MessageRecord) {
    match AddressingDisposition::decode(&mut d.clone()) {
        Ok(mode) => record.remarks.push(format!("the server requires the addressing mode {mode:?}")),
        Err(error) => record.remarks.push(error.to_string()),
    }
}

fn key_of(target: &TargetAddress<'_>) -> Vec<u8> {
    target.object_key().map(|key| key.as_slice().to_vec()).unwrap_or_default()
}

fn micros_between(now: Duration, then: Duration) -> f64 {
    now.saturating_sub(then).as_nanos() as f64 / 1000.0
}

fn reply_status_name(status: ReplyStatus) -> &'static str {
    match status {
        ReplyStatus::NoException => "no_exception",
        ReplyStatus::UserException => "user_exception",
        ReplyStatus::SystemException => "system_exception",
        ReplyStatus::LocationForward => "location_forward",
        ReplyStatus::LocationForwardPerm => "location_forward_perm",
        ReplyStatus::NeedsAddressingMode => "needs_addressing_mode",
    }
}

fn locate_status_name(status: LocateStatus) -> &'static str {
    match status {
        LocateStatus::UnknownObject => "unknown_object",
        LocateStatus::ObjectHere => "object_here",
        LocateStatus::ObjectForward => "object_forward",
        LocateStatus::ObjectForwardPerm => "object_forward_perm",
        LocateStatus::SystemException => "system_exception",
        LocateStatus::NeedsAddressingMode => "needs_addressing_mode",
    }
}

fn message_name(kind: MessageType) -> &'static str {
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
