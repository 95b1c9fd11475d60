//! The same messages to omniORB and to zorb: captured requests with mistakes, each on a connection of its own
//! to servers of the same objects with the same keys. The responses must be of the same kind, except for
//! differences that are listed with their reasons.
//!
//! A seed determines the mistakes, so that a run can be repeated: `ZORB_DIFFERENTIAL=SEED:COUNT`. omniORB may
//! crash on any input; the test then reports that and restarts it.

mod accepted;
mod mistakes;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{LocateReplyHeader, MessageHeader, MessageType, ReplyMessage, ReplyStatus};
use giop_codec::ior::Ior;

use super::{START, zorb};
use accepted::reason;
use mistakes::Mistakes;
use test_support::peers::{Foreign, Scratch, Served, tell};

/// Number of messages in each run.
const COUNT: usize = 300;

/// How long a server may be idle before the sending side is shut down. A difference is verified with the
/// longer time.
const PATIENCE: [Duration; 2] = [Duration::from_millis(25), Duration::from_secs(1)];

/// How long a server may then take to close the connection, as a multiple of the idle time.
const CLOSE: u32 = 10;

/// A server's reaction to a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A reply: its status, for an exception its name, and for a system exception the completion status.
    Reply(String),
    /// The reply to a LocateRequest.
    Locate(u32),
    MessageError,
    CloseConnection,
    /// The end of the connection without a message.
    Closed,
    /// No reaction, and the next message is answered.
    Nothing,
    /// No reaction, and none to the next message either: it is treated as the rest of this one.
    Waits,
    /// No reaction at all, not even the end of the connection after the peer has shut down its side.
    Hangs,
    /// Something that is not GIOP, or not an answer.
    Garbage,
}

/// Request id of the next message, which locates an existing object. The id is unique.
const NEXT: u32 = 0x7ead_beef;

fn next_message(little: bool) -> Vec<u8> {
    let word = |value: u32| if little { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut octets = b"GIOP\x01\x00".to_vec();
    octets.extend([u8::from(little), 3]);
    for part in [word(15), word(NEXT), word(7)] {
        octets.extend(part);
    }
    octets.extend(b"interop");
    octets
}

/// Sends a message and returns the server's reaction.
fn ask(address: &str, message: &[u8], patience: Duration) -> std::io::Result<Outcome> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    // The server may close before it has received everything.
    let _ = stream.write_all(message).and_then(|()| stream.write_all(&next_message(true)));
    let (mut came, mut told) = (Vec::new(), false);
    let mut until = Instant::now() + patience;
    let mut answered = false;
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        let mut part = [0; 4096];
        match stream.read(&mut part) {
            Ok(0) => return Ok(first(&came, true, told)),
            Ok(n) => came.extend_from_slice(&part[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if answered {
                    return Ok(first(&came, false, told));
                }
                if told {
                    return Ok(Outcome::Hangs);
                }
                let _ = stream.shutdown(Shutdown::Write);
                (told, until) = (true, Instant::now() + CLOSE * patience);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(first(&came, true, told)),
        }
        if !matches!(first(&came, false, told), Outcome::Nothing | Outcome::Waits) {
            return Ok(first(&came, false, told));
        }
        // The next message may overtake this one.
        if !answered && messages(&came).any(|(header, message)| is_next(&header, &message)) {
            (answered, until) = (true, Instant::now() + patience);
        }
    }
}

/// Returns the complete messages of a stream.
fn messages(stream: &[u8]) -> impl Iterator<Item = (MessageHeader, Bytes)> {
    let mut rest = stream;
    std::iter::from_fn(move || {
        let header = MessageHeader::decode(rest.first_chunk()?).ok()?;
        let message = rest.get(..MessageHeader::LEN + header.size as usize)?;
        rest = &rest[message.len()..];
        Some((header, Bytes::copy_from_slice(message)))
    })
}

/// Returns the header of a LocateReply.
fn located(header: &MessageHeader, message: &Bytes) -> Option<LocateReplyHeader> {
    let mut d = Decoder::from_bytes(message, header.order, header.version).at(MessageHeader::LEN);
    (header.kind == MessageType::LocateReply).then(|| LocateReplyHeader::decode(&mut d).ok()).flatten()
}

fn is_next(header: &MessageHeader, message: &Bytes) -> bool {
    located(header, message).is_some_and(|reply| reply.request_id.0 == NEXT)
}

/// Returns the meaning of the first message that does not answer the next request.
fn first(stream: &[u8], ended: bool, told: bool) -> Outcome {
    let first = messages(stream).find(|(header, message)| !is_next(header, message));
    let Some((header, message)) = first else {
        return match (stream.is_empty(), ended && !told) {
            (true, true) => Outcome::Closed,
            (true, false) => Outcome::Waits,
            (false, _) => Outcome::Nothing,
        };
    };
    match header.kind {
        MessageType::Reply => reply(&header, message).unwrap_or(Outcome::Garbage),
        MessageType::LocateReply => {
            located(&header, &message).map_or(Outcome::Garbage, |reply| Outcome::Locate(reply.status as u32))
        }
        MessageType::CloseConnection => Outcome::CloseConnection,
        MessageType::MessageError => Outcome::MessageError,
        _ => Outcome::Garbage,
    }
}

fn reply(header: &MessageHeader, message: Bytes) -> Option<Outcome> {
    let reply = ReplyMessage::decode(header, message).ok()?;
    let (status, mut body) = (reply.status(), reply.body());
    let what = match status {
        ReplyStatus::UserException => body.read_string().ok()?,
        ReplyStatus::SystemException => {
            let exception = SystemException::decode(&mut body).ok()?;
            format!("{:?} {:?}", exception.kind, exception.completed)
        }
        _ => String::new(),
    };
    Some(Outcome::Reply(format!("{status:?} {what}")))
}

/// omniORB's server, which is restarted when it has ended.
struct Theirs {
    served: Served,
    address: String,
    ends: usize,
}

impl Theirs {
    fn start() -> Option<Self> {
        let served = Foreign::OmniOrb.serve("peer-server", &[], Duration::from_secs(600).max(START))?;
        let profile = served.ior.parse::<Ior>().expect("an IOR").iiop_profile().expect("an IIOP profile");
        let address = format!("{}:{}", profile.host, profile.port);
        Some(Self { served, address, ends: 0 })
    }

    fn ask(&mut self, message: &[u8], patience: Duration) -> Outcome {
        if let Ok(outcome) = ask(&self.address, message, patience)
            && TcpStream::connect(&self.address).is_ok()
        {
            return outcome;
        }
        tell(&format!("omniORB ended at {}", hex(message)));
        let again = Self::start().expect("it was there before");
        (self.served, self.address, self.ends) = (again.served, again.address, self.ends + 1);
        Outcome::Closed
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Returns seed and count from the environment.
fn wanted() -> (u64, usize) {
    let text = std::env::var("ZORB_DIFFERENTIAL").unwrap_or_default();
    let (seed, count) = text.split_once(':').unwrap_or((&text, ""));
    (seed.parse().unwrap_or(1), count.parse().unwrap_or(COUNT))
}

fn compare(theirs: &mut Theirs, ours: &str, seed: u64, count: usize) {
    let mut differences: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let (mut same, mut accepted) = (BTreeMap::<String, usize>::new(), BTreeMap::<&str, usize>::new());
    for message in Mistakes::new(seed).take(count) {
        for (round, patience) in PATIENCE.into_iter().enumerate() {
            let our = ask(ours, &message, patience).expect("zorb is there");
            let their = theirs.ask(&message, patience);
            if our == their {
                *same.entry(format!("{our:?}")).or_default() += 1;
                break;
            }
            if let Some(reason) = reason(&message, &our, &their) {
                *accepted.entry(reason).or_default() += 1;
                break;
            }
            if round + 1 == PATIENCE.len() {
                let kind = format!("zorb {our:?}, omniORB {their:?}");
                differences.entry(kind).or_insert_with(|| (0, hex(&message))).0 += 1;
            }
        }
    }
    tell(&format!("{count} messages with mistakes of seed {seed}: the same {same:?}"));
    tell(&format!("accepted: {accepted:?}, omniORB ended {} times", theirs.ends));
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(same.values().sum::<usize>() > count / 2, "hardly anything is the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn zorb_and_omniorb_make_the_same_of_messages_with_mistakes() {
    let Some(mut theirs) = tokio::task::spawn_blocking(Theirs::start).await.expect("it starts") else {
        return;
    };
    let scratch = Scratch::new();
    let path = scratch.path("interop.ior");
    let (server, ours) = zorb::servant::serve(&path, super::plain()).await.expect("a server on a free port");
    let (seed, count) = wanted();
    let compared = tokio::task::spawn_blocking(move || compare(&mut theirs, &ours, seed, count));
    compared.await.expect("no difference");
    server.shutdown().await;
}
