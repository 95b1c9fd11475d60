//! GIOP messages from a byte stream that may begin anywhere and have gaps.

use bytes::{Buf, Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};

/// Default maximum size of a message that is kept, with all its fragments. For longer ones, only the header
/// is shown.
pub(super) const MAX_MESSAGE: usize = 16 << 20;
/// Maximum number of incomplete fragmented messages of one side. Together they may have as many bytes as two
/// messages.
const MAX_OPEN: usize = 64;
/// Maximum bytes of an incomplete message that are kept: enough for its header.
const START: usize = 4096;
const TOO_LONG: &str = "it is longer than is kept: --max-message SIZE keeps more";

/// An item of a stream.
#[derive(Debug)]
pub(super) enum Cut {
    /// A message, with its fragments joined.
    Message(Whole),
    /// An incomplete message, or one that is too large.
    Damaged { header: MessageHeader, start: Bytes, why: &'static str },
    /// The connection does not use GIOP, and is ignored from now on.
    Foreign { tls: bool },
    /// Bytes between messages that belong to none.
    Noise { octets: u64 },
}

/// A complete message.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    /// The header of the first fragment, with the total size.
    pub(super) header: MessageHeader,
    /// The message, including its header.
    pub(super) octets: Bytes,
    /// Positions where alignment restarts: see `Decoder::with_pieces`.
    pub(super) pieces: Vec<u32>,
    /// Number of fragments; 1 if it was not fragmented.
    pub(super) fragments: u32,
}

/// The parser of one side of a connection.
#[derive(Debug)]
pub(super) struct Cutter {
    buffer: BytesMut,
    state: State,
    /// A message was found.
    giop: bool,
    open: Vec<Open>,
    /// Maximum size of a message that is kept.
    max_message: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the first byte of a message.
    Message,
    /// At an unknown position, after this number of bytes without a message.
    Searching {
        octets: u64,
    },
    /// In a message that is skipped.
    Skipping {
        left: u64,
    },
    Foreign,
}

#[derive(Debug)]
struct Open {
    header: MessageHeader,
    /// `None` in GIOP 1.1, which has one fragmented message at a time, without a number.
    id: Option<u32>,
    octets: BytesMut,
    pieces: Vec<u32>,
    fragments: u32,
}

impl Cutter {
    /// Creates a parser of a stream that is captured from its first byte, or from anywhere.
    pub(super) fn new(whole: bool, max_message: usize) -> Self {
        let state = if whole { State::Message } else { State::Searching { octets: 0 } };
        Self { buffer: BytesMut::new(), state, giop: false, open: Vec::new(), max_message }
    }

    /// Returns the number of buffered bytes.
    pub(super) fn held(&self) -> usize {
        self.buffer.len() + self.open.iter().map(|open| open.octets.len()).sum::<usize>()
    }

    /// Drops all buffers, because the memory limit is exceeded.
    pub(super) fn give_up(&mut self, tell: &mut impl FnMut(Cut)) {
        self.lost_open("it is given up: too much is under way", tell);
        self.lost(u64::MAX, tell);
        self.buffer = BytesMut::new();
    }

    /// Handles the next bytes.
    pub(super) fn octets(&mut self, octets: &[u8], tell: &mut impl FnMut(Cut)) {
        if self.state == State::Foreign {
            return;
        }
        self.buffer.extend_from_slice(octets);
        while self.step(tell) {}
        if self.buffer.is_empty() {
            // Releases the memory of a large message.
            self.buffer = BytesMut::new();
        }
    }

    /// Handles a gap of this number of bytes.
    pub(super) fn lost(&mut self, octets: u64, tell: &mut impl FnMut(Cut)) {
        match self.state {
            State::Foreign => return,
            State::Skipping { left } if octets <= left => {
                self.state = State::Skipping { left: left - octets };
                return;
            }
            State::Message if self.buffer.len() >= MessageHeader::LEN => {
                let header = self.buffer.first_chunk().and_then(|octets| MessageHeader::decode(octets).ok());
                if let Some(header) = header {
                    let left = total(&header).saturating_sub(self.buffer.len() as u64);
                    self.damaged(header, "a part of it is missing", tell);
                    self.buffer.clear();
                    self.state = match left.checked_sub(octets) {
                        Some(left) => State::Skipping { left },
                        None => State::Searching { octets: 0 },
                    };
                    if octets > left {
                        self.lost_open("fragments of it are missing", tell);
                    }
                    return;
                }
            }
            _ => {}
        }
        self.buffer.clear();
        self.state = State::Searching { octets: 0 };
        self.lost_open("fragments of it are missing", tell);
    }

    /// Handles the end of the stream.
    pub(super) fn end(&mut self, tell: &mut impl FnMut(Cut)) {
        if let (State::Message, Some(octets)) = (self.state, self.buffer.first_chunk())
            && let Ok(header) = MessageHeader::decode(octets)
        {
            self.damaged(header, "the connection ends within it", tell);
        }
        self.buffer.clear();
        self.lost_open("the connection ends before its last fragment", tell);
    }

    /// Takes one step. Returns whether there is more to do.
    fn step(&mut self, tell: &mut impl FnMut(Cut)) -> bool {
        match self.state {
            State::Foreign => {
                self.buffer.clear();
                false
            }
            State::Skipping { left } => {
                let skipped = left.min(self.buffer.len() as u64);
                self.buffer.advance(skipped as usize);
                let left = left - skipped;
                self.state = if left == 0 { State::Message } else { State::Skipping { left } };
                left == 0 && !self.buffer.is_empty()
            }
            State::Searching { octets } => self.search(octets, tell),
            State::Message => self.message(tell),
        }
    }

    fn search(&mut self, octets: u64, tell: &mut impl FnMut(Cut)) -> bool {
        if octets == 0 && !self.giop && is_tls(&self.buffer) {
            return self.foreign(true, tell);
        }
        let magic = &MessageHeader::MAGIC;
        let found = self.buffer.windows(magic.len()).position(|window| window == magic);
        let kept = magic.len() - 1;
        let skipped = found.unwrap_or_else(|| self.buffer.len().saturating_sub(kept));
        self.buffer.advance(skipped);
        let octets = octets.saturating_add(skipped as u64);
        self.state = State::Searching { octets };
        let (Some(_), Some(header)) = (found, self.buffer.first_chunk()) else { return false };
        if MessageHeader::decode(header).is_err() {
            self.buffer.advance(1);
            self.state = State::Searching { octets: octets.saturating_add(1) };
            return true;
        }
        if octets > 0 && self.giop {
            tell(Cut::Noise { octets });
        }
        self.state = State::Message;
        true
    }

    fn message(&mut self, tell: &mut impl FnMut(Cut)) -> bool {
        let Some(octets) = self.buffer.first_chunk() else {
            // A stream with another start is not GIOP, even if the header is incomplete.
            let magic = MessageHeader::MAGIC;
            let len = self.buffer.len().min(magic.len());
            if !self.giop && self.buffer.get(..len) != magic.get(..len) && len > 2 {
                let tls = is_tls(&self.buffer);
                return self.foreign(tls, tell);
            }
            return false;
        };
        let header = match MessageHeader::decode(octets) {
            Ok(header) => header,
            Err(_) if !self.giop => {
                let tls = is_tls(&self.buffer);
                return self.foreign(tls, tell);
            }
            Err(_) => {
                self.buffer.advance(1);
                self.state = State::Searching { octets: 1 };
                return true;
            }
        };
        let total = total(&header);
        if total > self.max_message as u64 {
            self.giop = true;
            self.damaged(header, TOO_LONG, tell);
            self.state = State::Skipping { left: total };
            return true;
        }
        if (self.buffer.len() as u64) < total {
            return false;
        }
        self.giop = true;
        let octets = self.buffer.split_to(total as usize);
        self.whole(header, octets, tell);
        true
    }

    fn whole(&mut self, header: MessageHeader, octets: BytesMut, tell: &mut impl FnMut(Cut)) {
        let id = || match header.version {
            Version::V1_2 => number(&header, &octets),
            _ => None,
        };
        match header.kind {
            MessageType::Fragment => return self.fragment(header, &octets, tell),
            MessageType::CancelRequest => {
                let cancelled = number(&header, &octets);
                let at = self.open.iter().position(|open| open.id == cancelled && cancelled.is_some());
                if let Some(open) = at.map(|at| self.open.swap_remove(at)) {
                    open.damaged("it is cancelled before its last fragment", tell);
                }
            }
            _ if header.more_fragments => {
                let held: usize = self.open.iter().map(|open| open.octets.len()).sum();
                if self.open.len() >= MAX_OPEN || held + octets.len() > self.max_message.saturating_mul(2) {
                    self.lost_open("too many messages are under way in fragments", tell);
                }
                let id = id();
                if let Some(at) = self.open.iter().position(|open| open.id == id) {
                    self.open.swap_remove(at).damaged("another one has its number", tell);
                }
                self.open.push(Open { header, id, octets, pieces: Vec::new(), fragments: 1 });
                return;
            }
            _ => {}
        }
        tell(Cut::Message(Whole { header, octets: octets.freeze(), pieces: Vec::new(), fragments: 1 }));
    }

    fn fragment(&mut self, header: MessageHeader, octets: &[u8], tell: &mut impl FnMut(Cut)) {
        let (id, start) = match header.version {
            Version::V1_2 => (number(&header, octets), MessageHeader::LEN + 4),
            _ => (None, MessageHeader::LEN),
        };
        let Some(at) = self.open.iter().position(|open| open.id == id) else {
            tell(Cut::Damaged {
                header,
                start: Bytes::copy_from_slice(octets.get(..START).unwrap_or(octets)),
                why: "what it continues was not seen",
            });
            return;
        };
        let Some(open) = self.open.get_mut(at) else { return };
        let payload = octets.get(start..).unwrap_or_default();
        open.pieces.push(open.octets.len() as u32);
        open.octets.extend_from_slice(payload);
        open.fragments = open.fragments.saturating_add(1);
        if open.octets.len() > self.max_message || open.fragments as usize > self.max_message / 64 {
            self.open.swap_remove(at).damaged(TOO_LONG, tell);
        } else if !header.more_fragments {
            let open = self.open.swap_remove(at);
            // Only GIOP 1.1 aligns values in each fragment separately. The positions are kept only if this
            // makes a difference.
            let pieces = match open.header.version {
                Version::V1_1 if open.pieces.iter().any(|start| start % 8 != 4) => open.pieces,
                _ => Vec::new(),
            };
            let size = (open.octets.len() - MessageHeader::LEN) as u32;
            let header = MessageHeader { size, more_fragments: false, ..open.header };
            tell(Cut::Message(Whole {
                header,
                octets: open.octets.freeze(),
                pieces,
                fragments: open.fragments,
            }));
        }
    }

    fn foreign(&mut self, tls: bool, tell: &mut impl FnMut(Cut)) -> bool {
        self.state = State::Foreign;
        self.buffer = BytesMut::new();
        tell(Cut::Foreign { tls });
        false
    }

    fn damaged(&self, header: MessageHeader, why: &'static str, tell: &mut impl FnMut(Cut)) {
        let start = self.buffer.get(..START).unwrap_or(&self.buffer);
        tell(Cut::Damaged { header, start: Bytes::copy_from_slice(start), why });
    }

    fn lost_open(&mut self, why: &'static str, tell: &mut impl FnMut(Cut)) {
        for open in self.open.drain(..) {
            open.damaged(why, tell);
        }
    }
}

impl Open {
    fn damaged(mut self, why: &'static str, tell: &mut impl FnMut(Cut)) {
        self.octets.truncate(START);
        tell(Cut::Damaged { header: self.header, start: Bytes::copy_from_slice(&self.octets), why });
    }
}

fn total(header: &MessageHeader) -> u64 {
    MessageHeader::LEN as u64 + u64::from(header.size)
}

/// Returns the request id after the message header.
fn number(header: &MessageHeader, octets: &[u8]) -> Option<u32> {
    let octets = *octets.get(MessageHeader::LEN..)?.first_chunk::<4>()?;
    Some(match header.order {
        ByteOrder::Big => u32::from_be_bytes(octets),
        ByteOrder::Little => u32::from_le_bytes(octets),
    })
}

/// Returns whether the bytes look like a TLS record.
fn is_tls(octets: &[u8]) -> bool {
    matches!(octets, [20..=23, 3, 0..=4, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(version: u8, kind: u8, more: bool, body: &[u8]) -> Vec<u8> {
        let mut octets = b"GIOP\x01".to_vec();
        octets.extend([version, 1 | u8::from(more) << 1, kind]);
        octets.extend((body.len() as u32).to_le_bytes());
        octets.extend(body);
        octets
    }

    fn cut(whole: bool, pieces: &[Result<&[u8], u64>]) -> Vec<String> {
        let mut cutter = Cutter::new(whole, MAX_MESSAGE);
        let mut seen = Vec::new();
        let mut tell = |cut: Cut| {
            seen.push(match cut {
                Cut::Message(whole) => {
                    format!("{:?} {} {}", whole.header.kind, whole.octets.len(), whole.fragments)
                }
                Cut::Damaged { header, why, .. } => format!("{:?}: {why}", header.kind),
                Cut::Foreign { tls } => format!("foreign {tls}"),
                Cut::Noise { octets } => format!("noise {octets}"),
            });
        };
        for piece in pieces {
            match piece {
                Ok(octets) => cutter.octets(octets, &mut tell),
                Err(lost) => cutter.lost(*lost, &mut tell),
            }
        }
        cutter.end(&mut tell);
        assert_eq!(cutter.held(), 0);
        seen
    }

    #[test]
    fn messages_are_found_wherever_a_capture_begins() {
        let (one, two) = (message(2, 5, false, b""), message(0, 0, false, &[0; 20]));
        let both = [&one[..], &two].concat();
        let octets: Vec<Result<&[u8], u64>> = both.chunks(1).map(Ok).collect();
        assert_eq!(cut(true, &octets), ["CloseConnection 12 1", "Request 32 1"]);
        let late = [b"rest of GIO", &both[..]].concat();
        assert_eq!(cut(false, &[Ok(&late)]), ["CloseConnection 12 1", "Request 32 1"]);
        let noisy = [&one[..], b"xxGIOPxxxxxxxxx", &two].concat();
        assert_eq!(cut(true, &[Ok(&noisy)]), ["CloseConnection 12 1", "noise 15", "Request 32 1"]);
        assert_eq!(cut(true, &[Ok(&two[..20])]), ["Request: the connection ends within it"]);
    }

    #[test]
    fn what_is_missing_costs_no_more_than_its_message() {
        let (one, two) = (message(2, 0, false, &[0; 100]), message(2, 1, false, &[0; 8]));
        assert_eq!(
            cut(true, &[Ok(&one[..40]), Err(50), Ok(&one[90..]), Ok(&two)]),
            ["Request: a part of it is missing", "Reply 20 1"]
        );
        assert_eq!(
            cut(true, &[Ok(&one[..40]), Err(80), Ok(&two[8..]), Ok(&two)]),
            ["Request: a part of it is missing", "Reply 20 1"]
        );
        assert_eq!(cut(true, &[Err(80), Ok(&two)]), ["Reply 20 1"]);
    }

    #[test]
    fn fragments_are_joined_and_those_that_lack_some_are_told() {
        let id = [7, 0, 0, 0];
        let first = message(2, 0, true, &[&id[..], &[0; 12]].concat());
        let next = message(2, 7, true, &[&id[..], &[0; 16]].concat());
        let last = message(2, 7, false, &[&id[..], &[0; 4]].concat());
        assert_eq!(cut(true, &[Ok(&[&first[..], &next, &last].concat())]), ["Request 48 3"]);
        assert_eq!(
            cut(true, &[Ok(&[&first[..], &next].concat())]),
            ["Request: the connection ends before its last fragment"]
        );
        assert_eq!(cut(true, &[Ok(&last)]), ["Fragment: what it continues was not seen"]);
        let cancel = message(2, 2, false, &id);
        assert_eq!(
            cut(true, &[Ok(&[&first[..], &cancel].concat())]),
            ["Request: it is cancelled before its last fragment", "CancelRequest 16 1"]
        );
    }

    #[test]
    fn other_protocols_are_left_alone() {
        assert_eq!(cut(true, &[Ok(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03abcdefgh")]), ["foreign true"]);
        assert_eq!(cut(false, &[Ok(b"\x17\x03\x03\x02\0\x01\0\x01\xfc\x03\x03abcdefgh")]), ["foreign true"]);
        assert_eq!(cut(true, &[Ok(b"GET / HTTP/1.1\r\n\r\n")]), ["foreign false"]);
    }

    #[test]
    fn a_size_that_is_a_lie_takes_no_memory() {
        let mut lie = message(2, 0, false, b"");
        lie[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut cutter = Cutter::new(true, MAX_MESSAGE);
        let mut told = 0;
        cutter.octets(&lie, &mut |_| told += 1);
        for _ in 0..100 {
            cutter.octets(&[0; 65536], &mut |_| told += 1);
        }
        assert_eq!((cutter.held(), told), (0, 1));
    }

    #[test]
    fn messages_are_kept_up_to_the_size_that_is_wanted() {
        let large = message(2, 0, false, &[0; 2000]);
        for (size, kept) in [(1024, false), (4096, true)] {
            let mut cutter = Cutter::new(true, size);
            let mut found = Vec::new();
            cutter.octets(&large, &mut |cut| {
                found.push(match cut {
                    Cut::Message(whole) => whole.octets.len() == large.len(),
                    Cut::Damaged { why, .. } => !why.contains("--max-message SIZE"),
                    _ => true,
                });
            });
            assert_eq!(found, [kept], "{size}");
        }
    }
}
