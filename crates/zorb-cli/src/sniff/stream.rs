//! Extraction of GIOP messages from a byte stream, which may start within a message and have gaps.

use bytes::{Buf, Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};

/// The default maximum size of a message with its fragments. Of larger ones, only the header is printed.
pub(super) const DEFAULT_MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The maximum number of incomplete fragmented messages of one side. If a further one exceeds this number, or
/// their total size then exceeds twice the maximum size of a message, all earlier ones are dropped.
const MAX_INCOMPLETE_MESSAGES: usize = 64;
/// How many bytes of a damaged message are kept. They usually contain the header of the request or reply.
const MAX_START_BYTES: usize = 4096;
const TOO_LARGE: &str = "the message has too many bytes or fragments; use a larger --max-message SIZE";

#[derive(Debug)]
pub(super) enum StreamItem {
    Message(MessageBytes),
    /// A message that is incomplete or too large: its first bytes, and the reason.
    Damaged {
        header: MessageHeader,
        start: Bytes,
        reason: &'static str,
    },
    /// The stream does not use GIOP. The rest of it is ignored.
    Foreign {
        is_tls: bool,
    },
    /// `len` bytes that do not belong to a message.
    Noise {
        len: u64,
    },
}

/// A message, or the start of a damaged one. The contents of fragments are joined.
#[derive(Debug, Clone)]
pub(super) struct MessageBytes {
    pub(super) header: MessageHeader,
    pub(super) bytes: Bytes,
    /// The positions in `bytes` at which the alignment restarts, see `Decoder::with_fragments`.
    pub(super) alignment_restarts: Vec<u32>,
    /// The number of fragments, 1 for a message that is not fragmented.
    pub(super) fragment_count: u32,
}

impl MessageBytes {
    pub(super) fn unfragmented(header: MessageHeader, bytes: Bytes) -> Self {
        Self { header, bytes, alignment_restarts: Vec::new(), fragment_count: 1 }
    }
}

#[derive(Debug)]
pub(super) struct MessageParser {
    buffer: BytesMut,
    state: State,
    /// True after the first message.
    is_giop: bool,
    incomplete: Vec<IncompleteMessage>,
    max_message_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the first byte of a message.
    Message,
    /// At an unknown position, after `skipped` bytes that do not belong to a message.
    Searching { skipped: u64 },
    /// In a message of which `remaining` bytes are to be skipped.
    Skipping { remaining: u64 },
    /// In a stream that does not use GIOP.
    Foreign,
}

#[derive(Debug)]
struct IncompleteMessage {
    header: MessageHeader,
    /// `None` in GIOP 1.1, whose fragments have no request id.
    id: Option<u32>,
    bytes: BytesMut,
    /// The positions in `bytes` at which the second and further fragments start.
    fragment_starts: Vec<u32>,
}

impl MessageParser {
    /// Creates a parser for a stream. `from_start` is true if the capture has the first byte of the stream.
    pub(super) fn new(from_start: bool, max_message_bytes: usize) -> Self {
        let state = if from_start { State::Message } else { State::Searching { skipped: 0 } };
        Self { buffer: BytesMut::new(), state, is_giop: false, incomplete: Vec::new(), max_message_bytes }
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffer.len() + self.incomplete.iter().map(|message| message.bytes.len()).sum::<usize>()
    }

    pub(super) fn drop_buffers(&mut self, emit: &mut impl FnMut(StreamItem)) {
        self.drop_incomplete("the incomplete messages of all connections have too many bytes", emit);
        self.skip_gap(u64::MAX, emit);
        self.buffer = BytesMut::new();
    }

    pub(super) fn feed(&mut self, data: &[u8], emit: &mut impl FnMut(StreamItem)) {
        if self.state == State::Foreign {
            return;
        }
        self.buffer.extend_from_slice(data);
        while self.step(emit) {}
        if self.buffer.is_empty() {
            // Releases the memory of a large message.
            self.buffer = BytesMut::new();
        }
    }

    /// Continues after `len` bytes that are missing in the capture.
    pub(super) fn skip_gap(&mut self, len: u64, emit: &mut impl FnMut(StreamItem)) {
        match self.state {
            State::Foreign => return,
            State::Skipping { remaining } if len <= remaining => {
                self.state = State::Skipping { remaining: remaining - len };
                return;
            }
            State::Message if self.buffer.len() >= MessageHeader::LEN => {
                let header = self.buffer.first_chunk().and_then(|bytes| MessageHeader::decode(bytes).ok());
                if let Some(header) = header {
                    let remaining = total_size(&header).saturating_sub(self.buffer.len() as u64);
                    self.emit_damaged(header, "a part of the message is missing", emit);
                    self.buffer.clear();
                    self.state = match remaining.checked_sub(len) {
                        Some(remaining) => State::Skipping { remaining },
                        None => State::Searching { skipped: 0 },
                    };
                    if len > remaining {
                        self.drop_incomplete("fragments of the message are missing", emit);
                    }
                    return;
                }
            }
            _ => {}
        }
        self.buffer.clear();
        self.state = State::Searching { skipped: 0 };
        self.drop_incomplete("fragments of the message are missing", emit);
    }

    pub(super) fn end(&mut self, emit: &mut impl FnMut(StreamItem)) {
        if let (State::Message, Some(bytes)) = (self.state, self.buffer.first_chunk())
            && let Ok(header) = MessageHeader::decode(bytes)
        {
            self.emit_damaged(header, "the connection or capture ends within the message", emit);
        }
        self.buffer.clear();
        self.drop_incomplete("the connection or capture ends before the last fragment", emit);
    }

    /// Parses one item from the buffer. Returns whether more can be parsed.
    fn step(&mut self, emit: &mut impl FnMut(StreamItem)) -> bool {
        match self.state {
            State::Foreign => {
                self.buffer.clear();
                false
            }
            State::Skipping { remaining } => {
                let skipped = remaining.min(self.buffer.len() as u64);
                self.buffer.advance(skipped as usize);
                let remaining = remaining - skipped;
                self.state = if remaining == 0 { State::Message } else { State::Skipping { remaining } };
                remaining == 0 && !self.buffer.is_empty()
            }
            State::Searching { skipped } => self.search(skipped, emit),
            State::Message => self.parse_message(emit),
        }
    }

    /// Searches for the start of a message, after `skipped` bytes that do not belong to a message.
    fn search(&mut self, skipped: u64, emit: &mut impl FnMut(StreamItem)) -> bool {
        if skipped == 0 && !self.is_giop && is_tls(&self.buffer) {
            return self.set_foreign(true, emit);
        }
        let magic = &MessageHeader::MAGIC;
        let found = self.buffer.windows(magic.len()).position(|window| window == magic);
        let partial_len = magic.len() - 1;
        let newly_skipped = found.unwrap_or_else(|| self.buffer.len().saturating_sub(partial_len));
        self.buffer.advance(newly_skipped);
        let skipped = skipped.saturating_add(newly_skipped as u64);
        self.state = State::Searching { skipped };
        let (Some(_), Some(header)) = (found, self.buffer.first_chunk()) else { return false };
        if MessageHeader::decode(header).is_err() {
            self.buffer.advance(1);
            self.state = State::Searching { skipped: skipped.saturating_add(1) };
            return true;
        }
        if skipped > 0 && self.is_giop {
            emit(StreamItem::Noise { len: skipped });
        }
        self.state = State::Message;
        true
    }

    fn parse_message(&mut self, emit: &mut impl FnMut(StreamItem)) -> bool {
        let Some(header) = self.buffer.first_chunk() else {
            // Three bytes that differ from those of a GIOP header are sufficient to detect another protocol.
            let magic = MessageHeader::MAGIC;
            let len = self.buffer.len().min(magic.len());
            if !self.is_giop && self.buffer.get(..len) != magic.get(..len) && len > 2 {
                let is_tls = is_tls(&self.buffer);
                return self.set_foreign(is_tls, emit);
            }
            return false;
        };
        let header = match MessageHeader::decode(header) {
            Ok(header) => header,
            Err(_) if !self.is_giop => {
                let is_tls = is_tls(&self.buffer);
                return self.set_foreign(is_tls, emit);
            }
            Err(_) => {
                self.buffer.advance(1);
                self.state = State::Searching { skipped: 1 };
                return true;
            }
        };
        let size = total_size(&header);
        if size > self.max_message_bytes as u64 {
            self.is_giop = true;
            self.emit_damaged(header, TOO_LARGE, emit);
            self.state = State::Skipping { remaining: size };
            return true;
        }
        if (self.buffer.len() as u64) < size {
            return false;
        }
        self.is_giop = true;
        let bytes = self.buffer.split_to(size as usize);
        self.handle_message(header, bytes, emit);
        true
    }

    fn handle_message(&mut self, header: MessageHeader, bytes: BytesMut, emit: &mut impl FnMut(StreamItem)) {
        let id = || match header.version {
            Version::V1_2 => request_id(&header, &bytes),
            _ => None,
        };
        match header.kind {
            MessageType::Fragment => return self.handle_fragment(header, &bytes, emit),
            MessageType::CancelRequest => {
                let cancelled = request_id(&header, &bytes);
                let index =
                    self.incomplete.iter().position(|other| other.id == cancelled && cancelled.is_some());
                if let Some(message) = index.map(|index| self.incomplete.swap_remove(index)) {
                    message.emit_damaged("the message is cancelled before its last fragment", emit);
                }
            }
            _ if header.more_fragments => {
                let buffered: usize = self.incomplete.iter().map(|message| message.bytes.len()).sum();
                let max_buffered = self.max_message_bytes.saturating_mul(2);
                if self.incomplete.len() >= MAX_INCOMPLETE_MESSAGES || buffered + bytes.len() > max_buffered {
                    self.drop_incomplete("too many or too large fragmented messages are incomplete", emit);
                }
                let id = id();
                if let Some(index) = self.incomplete.iter().position(|message| message.id == id) {
                    let replaced = self.incomplete.swap_remove(index);
                    replaced.emit_damaged("another message has the same request id", emit);
                }
                self.incomplete.push(IncompleteMessage { header, id, bytes, fragment_starts: Vec::new() });
                return;
            }
            _ => {}
        }
        emit(StreamItem::Message(MessageBytes::unfragmented(header, bytes.freeze())));
    }

    fn handle_fragment(&mut self, header: MessageHeader, bytes: &[u8], emit: &mut impl FnMut(StreamItem)) {
        let (id, start) = match header.version {
            Version::V1_2 => (request_id(&header, bytes), MessageHeader::LEN + 4),
            _ => (None, MessageHeader::LEN),
        };
        let Some(index) = self.incomplete.iter().position(|message| message.id == id) else {
            emit(StreamItem::Damaged {
                header,
                start: Bytes::copy_from_slice(bytes.get(..MAX_START_BYTES).unwrap_or(bytes)),
                reason: "the first fragment of the message is missing",
            });
            return;
        };
        let Some(message) = self.incomplete.get_mut(index) else { return };
        let payload = bytes.get(start..).unwrap_or_default();
        message.fragment_starts.push(message.bytes.len() as u32);
        message.bytes.extend_from_slice(payload);
        let fragment_count = message.fragment_starts.len() + 1;
        let max_bytes = self.max_message_bytes;
        if message.bytes.len() > max_bytes || fragment_count > max_bytes / 64 {
            self.incomplete.swap_remove(index).emit_damaged(TOO_LARGE, emit);
        } else if !header.more_fragments {
            let message = self.incomplete.swap_remove(index);
            // Only GIOP 1.1 aligns values relative to the start of their fragment. The restarts are not
            // needed if values in the joined message have the same alignment.
            let alignment_restarts = match message.header.version {
                Version::V1_1 if message.fragment_starts.iter().any(|start| start % 8 != 4) => {
                    message.fragment_starts
                }
                _ => Vec::new(),
            };
            let size = (message.bytes.len() - MessageHeader::LEN) as u32;
            let header = MessageHeader { size, more_fragments: false, ..message.header };
            emit(StreamItem::Message(MessageBytes {
                header,
                bytes: message.bytes.freeze(),
                alignment_restarts,
                fragment_count: u32::try_from(fragment_count).unwrap_or(u32::MAX),
            }));
        }
    }

    fn set_foreign(&mut self, is_tls: bool, emit: &mut impl FnMut(StreamItem)) -> bool {
        self.state = State::Foreign;
        self.buffer = BytesMut::new();
        emit(StreamItem::Foreign { is_tls });
        false
    }

    fn emit_damaged(&self, header: MessageHeader, reason: &'static str, emit: &mut impl FnMut(StreamItem)) {
        let start = self.buffer.get(..MAX_START_BYTES).unwrap_or(&self.buffer);
        emit(StreamItem::Damaged { header, start: Bytes::copy_from_slice(start), reason });
    }

    fn drop_incomplete(&mut self, reason: &'static str, emit: &mut impl FnMut(StreamItem)) {
        for message in self.incomplete.drain(..) {
            message.emit_damaged(reason, emit);
        }
    }
}

impl IncompleteMessage {
    fn emit_damaged(mut self, reason: &'static str, emit: &mut impl FnMut(StreamItem)) {
        self.bytes.truncate(MAX_START_BYTES);
        emit(StreamItem::Damaged { header: self.header, start: Bytes::copy_from_slice(&self.bytes), reason });
    }
}

fn total_size(header: &MessageHeader) -> u64 {
    MessageHeader::LEN as u64 + u64::from(header.size)
}

/// Returns the request id, which follows the message header.
fn request_id(header: &MessageHeader, message: &[u8]) -> Option<u32> {
    let bytes = *message.get(MessageHeader::LEN..)?.first_chunk::<4>()?;
    Some(match header.order {
        ByteOrder::Big => u32::from_be_bytes(bytes),
        ByteOrder::Little => u32::from_le_bytes(bytes),
    })
}

fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [20..=23, 3, 0..=4, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(version: u8, kind: u8, more_fragments: bool, body: &[u8]) -> Vec<u8> {
        let mut bytes = b"GIOP\x01".to_vec();
        bytes.extend([version, 1 | u8::from(more_fragments) << 1, kind]);
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// Returns the items of a stream, which is given as data (`Ok`) and gaps (`Err`).
    fn parse(from_start: bool, pieces: &[Result<&[u8], u64>]) -> Vec<String> {
        let mut parser = MessageParser::new(from_start, DEFAULT_MAX_MESSAGE_BYTES);
        let mut items = Vec::new();
        let mut emit = |item: StreamItem| {
            items.push(match item {
                StreamItem::Message(complete) => {
                    format!("{:?} {} {}", complete.header.kind, complete.bytes.len(), complete.fragment_count)
                }
                StreamItem::Damaged { header, reason, .. } => format!("{:?}: {reason}", header.kind),
                StreamItem::Foreign { is_tls } => format!("foreign {is_tls}"),
                StreamItem::Noise { len } => format!("noise {len}"),
            });
        };
        for piece in pieces {
            match piece {
                Ok(data) => parser.feed(data, &mut emit),
                Err(len) => parser.skip_gap(*len, &mut emit),
            }
        }
        parser.end(&mut emit);
        assert_eq!(parser.buffered_bytes(), 0);
        items
    }

    #[test]
    fn messages_are_found_from_any_position() {
        let (one, two) = (message(2, 5, false, b""), message(0, 0, false, &[0; 20]));
        let both = [&one[..], &two].concat();
        let bytes: Vec<Result<&[u8], u64>> = both.chunks(1).map(Ok).collect();
        assert_eq!(parse(true, &bytes), ["CloseConnection 12 1", "Request 32 1"]);
        let late = [b"rest of GIO", &both[..]].concat();
        assert_eq!(parse(false, &[Ok(&late)]), ["CloseConnection 12 1", "Request 32 1"]);
        let noisy = [&one[..], b"xxGIOPxxxxxxxxx", &two].concat();
        assert_eq!(parse(true, &[Ok(&noisy)]), ["CloseConnection 12 1", "noise 15", "Request 32 1"]);
        assert_eq!(
            parse(true, &[Ok(&two[..20])]),
            ["Request: the connection or capture ends within the message"]
        );
    }

    #[test]
    fn a_gap_damages_only_its_message() {
        let (one, two) = (message(2, 0, false, &[0; 100]), message(2, 1, false, &[0; 8]));
        assert_eq!(
            parse(true, &[Ok(&one[..40]), Err(50), Ok(&one[90..]), Ok(&two)]),
            ["Request: a part of the message is missing", "Reply 20 1"]
        );
        assert_eq!(
            parse(true, &[Ok(&one[..40]), Err(80), Ok(&two[8..]), Ok(&two)]),
            ["Request: a part of the message is missing", "Reply 20 1"]
        );
        assert_eq!(parse(true, &[Err(80), Ok(&two)]), ["Reply 20 1"]);
    }

    #[test]
    fn fragments_are_joined_and_incomplete_messages_are_reported() {
        let id = [7, 0, 0, 0];
        let first = message(2, 0, true, &[&id[..], &[0; 12]].concat());
        let next = message(2, 7, true, &[&id[..], &[0; 16]].concat());
        let last = message(2, 7, false, &[&id[..], &[0; 4]].concat());
        assert_eq!(parse(true, &[Ok(&[&first[..], &next, &last].concat())]), ["Request 48 3"]);
        assert_eq!(
            parse(true, &[Ok(&[&first[..], &next].concat())]),
            ["Request: the connection or capture ends before the last fragment"]
        );
        assert_eq!(parse(true, &[Ok(&last)]), ["Fragment: the first fragment of the message is missing"]);
        let cancel = message(2, 2, false, &id);
        assert_eq!(
            parse(true, &[Ok(&[&first[..], &cancel].concat())]),
            ["Request: the message is cancelled before its last fragment", "CancelRequest 16 1"]
        );
    }

    #[test]
    fn other_protocols_are_detected() {
        assert_eq!(parse(true, &[Ok(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03abcdefgh")]), ["foreign true"]);
        assert_eq!(
            parse(false, &[Ok(b"\x17\x03\x03\x02\0\x01\0\x01\xfc\x03\x03abcdefgh")]),
            ["foreign true"]
        );
        assert_eq!(parse(true, &[Ok(b"GET / HTTP/1.1\r\n\r\n")]), ["foreign false"]);
    }

    #[test]
    fn a_wrong_size_takes_no_memory() {
        let mut header = message(2, 0, false, b"");
        header[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut parser = MessageParser::new(true, DEFAULT_MAX_MESSAGE_BYTES);
        let mut items = 0;
        parser.feed(&header, &mut |_| items += 1);
        for _ in 0..100 {
            parser.feed(&[0; 65536], &mut |_| items += 1);
        }
        assert_eq!((parser.buffered_bytes(), items), (0, 1));
    }

    #[test]
    fn messages_are_complete_up_to_the_maximum_size() {
        let large = message(2, 0, false, &[0; 2000]);
        for (size, is_complete) in [(1024, false), (4096, true)] {
            let mut parser = MessageParser::new(true, size);
            let mut found = Vec::new();
            parser.feed(&large, &mut |item| {
                found.push(match item {
                    StreamItem::Message(complete) => complete.bytes.len() == large.len(),
                    StreamItem::Damaged { reason, .. } => !reason.contains("--max-message SIZE"),
                    _ => true,
                });
            });
            assert_eq!(found, [is_complete], "{size}");
        }
    }
}
