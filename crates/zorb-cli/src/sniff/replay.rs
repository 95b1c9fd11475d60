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

use super::calls::{Seen, Sniffer, Told};
use super::proxy::{Target, connect};
use super::stream::Whole;
use super::tcp::Happened;
use super::{Front, messages};
use crate::Verdict;
use crate::client::Client;

/// Maximum number of differences that are shown for one reply.
const MAX_DIFFERENCES: usize = 8;

/// The comparison of a recorded reply with the new one.
#[derive(Debug, Serialize)]
struct Compared<'a> {
    same: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
    recorded: &'a Told,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Told>,
}

#[derive(Debug, Default, Serialize)]
struct Outcome {
    sent: u64,
    same: u64,
    different: u64,
    missing: u64,
    /// Messages that are not sent: incomplete ones, or those of the server.
    left_out: u64,
}

/// A connection of the replay.
struct Again {
    socket: TcpStream,
    number: u64,
    /// Replies, by the number of the request.
    replies: HashMap<u32, Told>,
    ended: bool,
}

/// Sends the requests of the capture in order, and waits for a reply if the capture contains one.
///
/// # Errors
/// The capture is invalid, the target is not found, or output fails.
pub(super) async fn run(
    capture: &Path,
    to: &str,
    client: &Client,
    mut front: Front,
) -> anyhow::Result<Verdict> {
    let types = std::mem::take(&mut front.sniffer.types);
    let (all, recorded) = messages(capture, types, client.size)?;
    front.sniffer = Sniffer::new(recorded.types, client.size);
    let target = Target::find(to, client).await?;
    let (asks, keys) = askers(&all);
    ensure!(!asks.is_empty(), "{}: there is no request in it", capture.display());
    // The target replaces the only object of the capture. With several objects, the corresponding one is
    // unknown.
    let key = target.ior.as_ref().and_then(|ior| ior.iiop_profile()).map(|profile| profile.object_key);
    let key = match (key, keys.len()) {
        (Some(key), 1) => Some(key.into_bytes()),
        (Some(key), count) if !keys.contains(key.as_slice()) => {
            front.output.remark(&format!("the capture has {count} objects: their keys are sent as they are"));
            None
        }
        _ => None,
    };
    let mut outcome = Outcome::default();
    let mut connections: HashMap<u64, Again> = HashMap::new();
    for seen in &all {
        let number = seen.told.connection;
        let Some(asker) = asks.get(&number) else { continue };
        let kind = seen.whole.as_ref().map(|whole| whole.header.kind);
        let ours = seen.from_client == *asker;
        match (ours, kind, &seen.whole) {
            (_, Some(MessageType::MessageError | MessageType::CloseConnection), _) => {}
            (
                true,
                Some(MessageType::Request | MessageType::LocateRequest | MessageType::CancelRequest),
                Some(whole),
            ) if whole.pieces.is_empty() => {
                let again = match connections.get_mut(&number) {
                    Some(again) => again,
                    None => {
                        let again = Again::open(number, &target, client.timeout, &mut front).await?;
                        connections.entry(number).or_insert(again)
                    }
                };
                let octets = resent(whole, key.as_ref())?;
                again.send(octets, &mut front).await;
                outcome.sent += 1;
            }
            (false, Some(MessageType::Reply | MessageType::LocateReply), _) => {
                let (Some(again), Some(id)) = (connections.get_mut(&number), seen.told.request) else {
                    continue;
                };
                if seen.told.latency_us.is_none() {
                    // The request is not in the capture.
                    continue;
                }
                let now = again.reply(id, client.timeout, &mut front).await;
                front.compare(seen, now, &mut outcome)?;
            }
            _ => outcome.left_out += 1,
        }
        if front.lines.closed {
            break;
        }
    }
    if front.lines.json {
        front.lines.object(&serde_json::json!({ "outcome": outcome }))?;
    }
    let Outcome { sent, same, different, missing, left_out } = outcome;
    front.output.remark(&format!(
        "{sent} sent; of the replies {same} are the same, {different} differ, {missing} did not come; {left_out} messages left out"
    ));
    Ok(if different + missing == 0 { Verdict::Good } else { Verdict::Bad })
}

/// Returns the side of each connection that sends the first request, and the keys of the requested objects.
fn askers(all: &[Seen]) -> (HashMap<u64, bool>, HashSet<&[u8]>) {
    let mut asks: HashMap<u64, bool> = HashMap::new();
    let mut keys = HashSet::new();
    for seen in all {
        let Some(whole) = &seen.whole else { continue };
        if !matches!(whole.header.kind, MessageType::Request | MessageType::LocateRequest) {
            continue;
        }
        let asker = *asks.entry(seen.told.connection).or_insert(seen.from_client);
        if asker == seen.from_client
            && let Some(key) = key_in(whole)
        {
            keys.insert(key);
        }
    }
    (asks, keys)
}

fn body_of(whole: &Whole) -> Decoder<'_> {
    Decoder::new(&whole.octets, whole.header.order, whole.header.version).at(MessageHeader::LEN)
}

fn key_in(whole: &Whole) -> Option<&[u8]> {
    match Message::decode(whole.header.kind, &mut body_of(whole)).ok()? {
        Message::Request(RequestHeader { target: TargetAddress::Key(key), .. })
        | Message::LocateRequest(LocateRequestHeader { target: TargetAddress::Key(key), .. }) => Some(key),
        _ => None,
    }
}

/// Returns a message to send again: unfragmented, with this object key.
fn resent(whole: &Whole, key: Option<&Bytes>) -> anyhow::Result<Bytes> {
    let as_it_was = || {
        let mut octets = whole.header.encode().to_vec();
        octets.extend_from_slice(whole.octets.get(MessageHeader::LEN..).unwrap_or_default());
        Bytes::from(octets)
    };
    let Some(key) = key else { return Ok(as_it_was()) };
    let mut d = body_of(whole);
    let message = Message::decode(whole.header.kind, &mut d)?;
    let contexts = message.contexts().to_vec();
    let body = d.rest();
    // Before GIOP 1.2, a body follows the header directly, and its values are aligned from the start of the
    // message. A padding context keeps the body at the same offset modulo 8.
    for padding in 0..8 {
        let mut contexts = contexts.clone();
        if padding > 0 {
            let data = Bytes::from(vec![0; padding]);
            contexts.push(ServiceContext { id: ContextId::ZORB_PADDING, data });
        }
        let mut e = Encoder::new(whole.header.order, whole.header.version);
        let size_at = put_message_header(&mut e, whole.header.kind);
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
            _ => return Ok(as_it_was()),
        }
        if !body.is_empty() {
            begin_body(&mut e);
            if e.position() % 8 != d.position() % 8 && whole.header.version < Version::V1_2 {
                continue;
            }
            e.put_raw(body);
        }
        finish_message(&mut e, size_at)?;
        return Ok(Bytes::copy_from_slice(e.head()));
    }
    anyhow::bail!("a request of GIOP 1.0 or 1.1 can not be addressed anew")
}

impl Again {
    async fn open(
        number: u64,
        target: &Target,
        timeout: Duration,
        front: &mut Front,
    ) -> anyhow::Result<Self> {
        let (socket, server) = connect(&target.addresses, timeout).await?;
        socket.set_nodelay(true).context("cannot set up the connection")?;
        let client = socket.local_addr()?;
        let opened = Happened::Opened { client, server, whole: true };
        front.sniffer.happened(number, now(), opened, &mut |_| {});
        Ok(Self { socket, number, replies: HashMap::new(), ended: false })
    }

    /// Sends a message. If this fails, the connection has ended, which the missing replies will show.
    async fn send(&mut self, octets: Bytes, front: &mut Front) {
        let happened = Happened::Octets { from_client: true, octets: octets.clone() };
        front.sniffer.happened(self.number, now(), happened, &mut |_| {});
        self.ended |= self.socket.write_all(&octets).await.is_err();
    }

    /// Returns the reply to this request, if it arrives before the timeout.
    async fn reply(&mut self, id: u32, timeout: Duration, front: &mut Front) -> Option<Told> {
        let deadline = Instant::now() + timeout;
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(told) = self.replies.remove(&id) {
                return Some(told);
            }
            if self.ended {
                return None;
            }
            let read = tokio::time::timeout_at(deadline, self.socket.read(&mut buffer)).await;
            let Ok(Ok(count @ 1..)) = read else {
                self.ended |= read.is_ok();
                return None;
            };
            let octets = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
            let happened = Happened::Octets { from_client: false, octets };
            let replies = &mut self.replies;
            front.sniffer.happened(self.number, now(), happened, &mut |seen| {
                if let (Some(id), true) = (seen.told.request, seen.told.status.is_some()) {
                    replies.insert(id, seen.told);
                }
            });
        }
    }
}

fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
}

impl Front {
    fn compare(&mut self, seen: &Seen, now: Option<Told>, outcome: &mut Outcome) -> anyhow::Result<()> {
        let recorded = &seen.told;
        let differences = match &now {
            Some(now) => differences(recorded, now),
            None => vec!["no reply came".to_owned()],
        };
        let same = differences.is_empty();
        match (&now, same) {
            (None, _) => outcome.missing += 1,
            (Some(_), true) => outcome.same += 1,
            (Some(_), false) => outcome.different += 1,
        }
        if !self.filter.wants(recorded) {
            return Ok(());
        }
        if self.lines.json {
            return self.lines.object(&Compared { same, differences, recorded, now });
        }
        let name = match (&recorded.interface, recorded.operation.as_deref().unwrap_or("locate")) {
            (Some(interface), operation) => {
                format!("{}.{}", Printable::new(interface), Printable::new(operation))
            }
            (None, operation) => Printable::new(operation).to_string(),
        };
        self.lines.compared(same, recorded.connection, &name, recorded.request, &differences)
    }
}

/// Describes the differences for people.
fn differences(recorded: &Told, now: &Told) -> Vec<String> {
    let mut found = Vec::new();
    if recorded.status != now.status {
        let of = |told: &Told| {
            let body = told.body.as_ref().map(|json| format!(" {}", json.get())).unwrap_or_default();
            format!("{}{body}", told.status.unwrap_or_default())
        };
        found.push(format!("recorded {}, now {}", of(recorded), of(now)));
        return found;
    }
    // Addresses of a forwarded object differ between machines.
    if matches!(recorded.status, Some("location_forward" | "location_forward_perm" | "object_forward")) {
        return found;
    }
    match (&recorded.body, &now.body) {
        (Some(before), Some(after)) => {
            let value = |json: &str| serde_json::from_str::<Value>(json).unwrap_or(Value::Null);
            compare("", &value(before.get()), &value(after.get()), &mut found);
        }
        (None, None) if recorded.body_octets == now.body_octets && recorded.octets == now.octets => {}
        (None, None) => found.push(format!(
            "the octets differ (name the types, --idl FILE): recorded {}, now {}",
            recorded.body_octets.as_deref().unwrap_or("none"),
            now.body_octets.as_deref().unwrap_or("none")
        )),
        _ => found.push("one of them does not fit the IDL".to_owned()),
    }
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    if found.len() >= MAX_DIFFERENCES || before == after {
        return;
    }
    let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                compare(&inside(name), value, after.get(name).unwrap_or(&Value::Null), found);
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                compare(&inside(name), &Value::Null, value, found);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                compare(&format!("{path}[{at}]"), before, after, found);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            found.push(format!("{path}: recorded {} elements, now {}", before.len(), after.len()));
        }
        _ => found.push(format!("{path}: recorded {before}, now {after}")),
    }
}
