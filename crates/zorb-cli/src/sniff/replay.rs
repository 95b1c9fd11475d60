//! Replay of recorded requests, and comparison of the replies.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::giop::{
    ContextId, LocateRequestHeader, Message, MessageHeader, MessageType, RequestHeader, ServiceContext,
    ServiceContexts, TargetAddress, begin_body, finish_message, put_message_header,
};
use giop_codec::{Printable, Version};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::calls::{SniffedMessage, Sniffer};
use super::proxy::{Target, connect, now};
use super::record::MessageRecord;
use super::stream::MessageBytes;
use super::tcp::ConnectionEvent;
use super::{Pipeline, read_messages};
use crate::client::ClientOptions;
use crate::failure::Verdict;

/// The maximum number of differences that are printed for one reply.
const MAX_DIFFERENCES: usize = 8;

/// The comparison of a recorded reply with the new one. The field names are the JSON keys.
#[derive(Debug, Serialize)]
struct ReplyComparison<'a> {
    same: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
    recorded: &'a MessageRecord,
    #[serde(rename = "now", skip_serializing_if = "Option::is_none")]
    replayed: Option<MessageRecord>,
}

/// The numbers of sent messages and compared replies. The field names are the JSON keys.
#[derive(Debug, Default, Serialize)]
struct ReplayCounts {
    sent: u64,
    same: u64,
    different: u64,
    missing: u64,
    /// Messages that are neither sent nor compared, such as incomplete ones and requests of the other side.
    left_out: u64,
}

struct ReplayConnection {
    socket: TcpStream,
    number: u64,
    replies: HashMap<u32, MessageRecord>,
    has_ended: bool,
}

/// Sends the requests in the capture in the same order, and waits for each reply that the capture contains.
pub(super) async fn run(
    capture: &Path,
    to: &str,
    client: &ClientOptions,
    mut pipeline: Pipeline,
) -> anyhow::Result<Verdict> {
    let types = std::mem::take(&mut pipeline.sniffer.types);
    let (all, recorded) = read_messages(capture, types, client.max_message)?;
    pipeline.sniffer = Sniffer::new(recorded.types, client.max_message);
    let target = Target::find(to, client).await?;
    let (requesting_sides, keys) = find_requesting_sides(&all);
    ensure!(!requesting_sides.is_empty(), "{} contains no request", capture.display());
    // If the captured requests call only one object, they are sent to the target object. With several
    // objects, it is unknown which one of them the target object replaces.
    let key = target.ior.as_ref().and_then(|ior| ior.iiop_profile()).map(|profile| profile.object_key);
    let key = match (key, keys.len()) {
        (Some(key), 1) => Some(key.into_bytes()),
        (Some(key), count) if !keys.contains(key.as_slice()) => {
            pipeline
                .output
                .remark(&format!("the requests call {count} objects, so their object keys are not replaced"));
            None
        }
        _ => None,
    };
    let mut counts = ReplayCounts::default();
    let mut connections: HashMap<u64, ReplayConnection> = HashMap::new();
    for sniffed in &all {
        let number = sniffed.record.connection;
        let Some(requesting_side) = requesting_sides.get(&number) else { continue };
        let kind = sniffed.complete_message.as_ref().map(|complete| complete.header.kind);
        let is_requesting_side = sniffed.from_client == *requesting_side;
        match (is_requesting_side, kind, &sniffed.complete_message) {
            (_, Some(MessageType::MessageError | MessageType::CloseConnection), _) => {}
            (
                true,
                Some(MessageType::Request | MessageType::LocateRequest | MessageType::CancelRequest),
                Some(complete),
            ) if complete.alignment_restarts.is_empty() => {
                let connection = match connections.get_mut(&number) {
                    Some(connection) => connection,
                    None => {
                        let connection =
                            ReplayConnection::open(number, &target, client.timeout, &mut pipeline).await?;
                        connections.entry(number).or_insert(connection)
                    }
                };
                let bytes = message_to_send(complete, key.as_ref())?;
                connection.send(bytes, &mut pipeline).await;
                counts.sent += 1;
            }
            (false, Some(MessageType::Reply | MessageType::LocateReply), _) => {
                let (Some(connection), Some(id)) = (connections.get_mut(&number), sniffed.record.request)
                else {
                    continue;
                };
                if sniffed.record.latency_us.is_none() {
                    // The request is missing in the capture or incomplete, so it was not sent.
                    continue;
                }
                let replayed = connection.receive_reply(id, client.timeout, &mut pipeline).await;
                pipeline.compare_reply(sniffed, replayed, &mut counts)?;
            }
            _ => counts.left_out += 1,
        }
        if pipeline.printer.is_closed {
            break;
        }
    }
    if pipeline.printer.is_json {
        pipeline.printer.print_json(&serde_json::json!({ "outcome": counts }))?;
    }
    let ReplayCounts { sent, same, different, missing, left_out } = counts;
    pipeline.output.remark(&format!(
        "{sent} messages sent, {left_out} left out; replies: {same} equal, {different} different, {missing} missing"
    ));
    Ok(if different + missing == 0 { Verdict::Good } else { Verdict::Bad })
}

/// Returns which side of each connection sends the first request (true for the client), and all object keys.
fn find_requesting_sides(all: &[SniffedMessage]) -> (HashMap<u64, bool>, HashSet<&[u8]>) {
    let mut sides: HashMap<u64, bool> = HashMap::new();
    let mut keys = HashSet::new();
    for sniffed in all {
        let Some(complete) = &sniffed.complete_message else { continue };
        if !matches!(complete.header.kind, MessageType::Request | MessageType::LocateRequest) {
            continue;
        }
        let side = *sides.entry(sniffed.record.connection).or_insert(sniffed.from_client);
        if side == sniffed.from_client
            && let Some(key) = object_key(complete)
        {
            keys.insert(key);
        }
    }
    (sides, keys)
}

fn decoder_after_header(complete: &MessageBytes) -> Decoder<'_> {
    Decoder::new(&complete.bytes, complete.header.order, complete.header.version).at(MessageHeader::LEN)
}

fn object_key(complete: &MessageBytes) -> Option<&[u8]> {
    match Message::decode(complete.header.kind, &mut decoder_after_header(complete)).ok()? {
        Message::Request(RequestHeader { target: TargetAddress::Key(key), .. })
        | Message::LocateRequest(LocateRequestHeader { target: TargetAddress::Key(key), .. }) => Some(key),
        _ => None,
    }
}

/// Returns a recorded message as one unfragmented message. If `key` is given, it replaces the object key.
fn message_to_send(complete: &MessageBytes, key: Option<&Bytes>) -> anyhow::Result<Bytes> {
    let unchanged = || {
        let mut bytes = complete.header.encode().to_vec();
        bytes.extend_from_slice(complete.bytes.get(MessageHeader::LEN..).unwrap_or_default());
        Bytes::from(bytes)
    };
    let Some(key) = key else { return Ok(unchanged()) };
    let mut d = decoder_after_header(complete);
    let message = Message::decode(complete.header.kind, &mut d)?;
    let contexts = message.contexts().to_vec();
    let body = d.rest();
    // Before GIOP 1.2, the values in the body are aligned relative to the start of the message, so the
    // position of the body modulo 8 must not change. A service context with padding ensures this.
    for padding in 0..8 {
        let mut contexts = contexts.clone();
        if padding > 0 {
            let data = Bytes::from(vec![0; padding]);
            contexts.push(ServiceContext { id: ContextId::ZORB_PADDING, data });
        }
        let mut e = Encoder::new(complete.header.order, complete.header.version);
        let size_at = put_message_header(&mut e, complete.header.kind);
        match &message {
            Message::Request(request) => {
                let header = RequestHeader {
                    target: TargetAddress::Key(key),
                    contexts: ServiceContexts::from(&contexts[..]),
                    ..request.clone()
                };
                header.encode(&mut e)?;
            }
            Message::LocateRequest(locate) => {
                LocateRequestHeader { request_id: locate.request_id, target: TargetAddress::Key(key) }
                    .encode(&mut e)?;
            }
            _ => return Ok(unchanged()),
        }
        if !body.is_empty() {
            begin_body(&mut e);
            if e.position() % 8 != d.position() % 8 && complete.header.version < Version::V1_2 {
                continue;
            }
            e.put_raw(body);
        }
        finish_message(&mut e, size_at)?;
        return Ok(Bytes::copy_from_slice(e.head()));
    }
    anyhow::bail!("cannot replace the object key of a request of GIOP 1.0 or 1.1")
}

impl ReplayConnection {
    async fn open(
        number: u64,
        target: &Target,
        timeout: Duration,
        pipeline: &mut Pipeline,
    ) -> anyhow::Result<Self> {
        let (socket, server) = connect(&target.addresses, timeout).await?;
        socket.set_nodelay(true).context("cannot configure the connection")?;
        let client = socket.local_addr()?;
        let opened = ConnectionEvent::Opened { client, server, from_start: true };
        pipeline.sniffer.handle_event(number, now(), opened, &mut |_| {});
        Ok(Self { socket, number, replies: HashMap::new(), has_ended: false })
    }

    /// Sends a message. After a failure, the connection counts as ended, and its replies as missing.
    async fn send(&mut self, message: Bytes, pipeline: &mut Pipeline) {
        let event = ConnectionEvent::Data { from_client: true, data: message.clone() };
        pipeline.sniffer.handle_event(self.number, now(), event, &mut |_| {});
        self.has_ended |= self.socket.write_all(&message).await.is_err();
    }

    /// Returns the reply to the request with this id, if it arrives before the timeout.
    async fn receive_reply(
        &mut self,
        id: u32,
        timeout: Duration,
        pipeline: &mut Pipeline,
    ) -> Option<MessageRecord> {
        let deadline = Instant::now() + timeout;
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(record) = self.replies.remove(&id) {
                return Some(record);
            }
            if self.has_ended {
                return None;
            }
            let read = tokio::time::timeout_at(deadline, self.socket.read(&mut buffer)).await;
            let Ok(Ok(count @ 1..)) = read else {
                self.has_ended |= read.is_ok();
                return None;
            };
            let data = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
            let event = ConnectionEvent::Data { from_client: false, data };
            let replies = &mut self.replies;
            pipeline.sniffer.handle_event(self.number, now(), event, &mut |sniffed| {
                if let (Some(id), true) = (sniffed.record.request, sniffed.record.status.is_some()) {
                    replies.insert(id, sniffed.record);
                }
            });
        }
    }
}

impl Pipeline {
    fn compare_reply(
        &mut self,
        sniffed: &SniffedMessage,
        replayed: Option<MessageRecord>,
        counts: &mut ReplayCounts,
    ) -> anyhow::Result<()> {
        let recorded = &sniffed.record;
        let differences = match &replayed {
            Some(replayed) => differences(recorded, replayed),
            None => vec!["there is no reply".to_owned()],
        };
        let is_same = differences.is_empty();
        match (&replayed, is_same) {
            (None, _) => counts.missing += 1,
            (Some(_), true) => counts.same += 1,
            (Some(_), false) => counts.different += 1,
        }
        if !self.filter.accepts(recorded) {
            return Ok(());
        }
        if self.printer.is_json {
            let comparison = ReplyComparison { same: is_same, differences, recorded, replayed };
            return self.printer.print_json(&comparison);
        }
        let name = match (&recorded.interface, recorded.operation.as_deref().unwrap_or("locate")) {
            (Some(interface), operation) => {
                format!("{}.{}", Printable::new(interface), Printable::new(operation))
            }
            (None, operation) => Printable::new(operation).to_string(),
        };
        self.printer.print_comparison(is_same, recorded.connection, &name, recorded.request, &differences)
    }
}

fn differences(recorded: &MessageRecord, replayed: &MessageRecord) -> Vec<String> {
    let mut differences = Vec::new();
    if recorded.status != replayed.status {
        let describe = |record: &MessageRecord| {
            let body = record.body.as_ref().map(|json| format!(" {}", json.get())).unwrap_or_default();
            format!("{}{body}", record.status.unwrap_or_default())
        };
        differences.push(format!("recorded {}, now {}", describe(recorded), describe(replayed)));
        return differences;
    }
    // Forwards are not compared, because their addresses may differ between machines.
    if matches!(recorded.status, Some("location_forward" | "location_forward_perm" | "object_forward")) {
        return differences;
    }
    match (&recorded.body, &replayed.body) {
        (Some(before), Some(after)) => {
            let value = |json: &str| serde_json::from_str::<Value>(json).unwrap_or(Value::Null);
            compare_values("", &value(before.get()), &value(after.get()), &mut differences);
        }
        (None, None) if recorded.body_hex == replayed.body_hex && recorded.size == replayed.size => {}
        (None, None) => differences.push(format!(
            "the bytes differ (use --idl FILE to decode them): recorded {} (message of {} bytes), now {} ({} bytes)",
            recorded.body_hex.as_deref().unwrap_or("none"),
            recorded.size,
            replayed.body_hex.as_deref().unwrap_or("none"),
            replayed.size
        )),
        _ => differences.push("only one of the two replies could be decoded".to_owned()),
    }
    differences
}

fn compare_values(path: &str, before: &Value, after: &Value, differences: &mut Vec<String>) {
    if differences.len() >= MAX_DIFFERENCES || before == after {
        return;
    }
    let member_path = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                compare_values(
                    &member_path(name),
                    value,
                    after.get(name).unwrap_or(&Value::Null),
                    differences,
                );
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                compare_values(&member_path(name), &Value::Null, value, differences);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare_values(&format!("{path}[{index}]"), before, after, differences);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            differences.push(format!("{path}: recorded {} elements, now {}", before.len(), after.len()));
        }
        _ => differences.push(format!("{path}: recorded {before}, now {after}")),
    }
}
