//! Messages whose bulk data is read into buffers of its own, at the positions that the sender's list of
//! blocks gives.
//!
//! The control bytes, usually a few hundred, go to one buffer. Each block goes to its own buffer, at the
//! start of a page. A member of a message thus pins only its own block. A wrong list affects only the
//! positions: the [`Segments`] that it produces are decoded to the same values as the message in one piece.
//!
//! A peer that sent a list once is expected to do so again. After a large message, no more than the header of
//! the next one is read, so that the next read goes to the first block.

use std::mem;

use bytes::Bytes;
use giop_codec::Version;
use giop_codec::cdr::Segments;
use giop_codec::giop::{BlockList, MAX_BLOCK_HEAD, MIN_BLOCK, MessageHeader};

use super::lent::{Deposit, LentBuffer, NextHeader};
use super::memory::grant;
use super::parts::Memory;
use super::{HEADER_LEN, PIECE_HEADER_LEN, Receiver, State};
use crate::pool::{BASE_ALIGN, Buffer, BufferPool, WINDOW};

/// The maximum number of control bytes. Data between blocks beyond it gets a buffer of its own.
const MOST_CONTROL: usize = 48 * 1024;

/// The alignment of blocks.
const PAGE: usize = 4096;

/// The result of looking for a list of blocks in a message.
pub(super) enum BlockListSearch {
    /// More of its header is needed to decide.
    Wait,
    No,
    List(BlockList),
}

/// A message that is read part by part.
#[derive(Debug)]
pub(super) struct MessageParts {
    header: MessageHeader,
    parts: Vec<MessagePart>,
    /// The index of the part that is being read.
    at: usize,
    /// Empty while the part that is being read is in the control buffer.
    control: Buffer,
    control_len: usize,
    /// The bytes received with the header, if they stay where they were read. Then there are no control
    /// bytes.
    early: Option<Bytes>,
    /// The parts before the current one.
    segments: Segments,
    /// The number of bytes of such a message that are read before its blocks.
    head: usize,
}

#[derive(Debug, Clone, Copy)]
struct MessagePart {
    /// The offset from the message's first byte.
    start: usize,
    len: usize,
    kind: PartKind,
}

#[derive(Debug, Clone, Copy)]
enum PartKind {
    /// Control data, from this index of the control buffer on.
    Control(usize),
    Block,
    /// In a buffer of its own, with the same alignment as in the message.
    Between,
}

/// The buffer of a part, the position in it at which the part starts, and the number of bytes that may be
/// read now.
struct PartBuffer {
    buffer: Buffer,
    base: usize,
    granted: usize,
}

impl MessageParts {
    fn new(header: MessageHeader, list: &BlockList) -> Self {
        let mut this = Self {
            header,
            parts: Vec::with_capacity(2 * list.blocks.len() + 2),
            at: 0,
            control: Buffer::default(),
            control_len: 0,
            early: None,
            segments: Segments::default(),
            head: list.body_at,
        };
        // The header is contiguous, whatever follows it.
        this.push_control(0, list.body_at);
        let mut end = list.body_at;
        for (start, len) in &list.blocks {
            this.push_between(end, *start);
            this.parts.push(MessagePart { start: *start, len: *len, kind: PartKind::Block });
            end = start + len;
        }
        this.push_between(end, HEADER_LEN.saturating_add(header.size as usize));
        if let Some(first) = this.parts.first() {
            this.head = first.len;
        }
        this.segments = Segments::with_capacity(this.parts.len());
        this
    }

    /// Creates a message whose first bytes stay where they were read, while the rest goes to a buffer of its
    /// own.
    fn behind(header: MessageHeader, early: Bytes, head: usize) -> Self {
        let start = early.len();
        let mut segments = Segments::with_capacity(2);
        segments.push_control(0, start);
        let len = HEADER_LEN.saturating_add(header.size as usize).saturating_sub(start);
        Self {
            header,
            parts: vec![MessagePart { start, len, kind: PartKind::Between }],
            at: 0,
            control: Buffer::default(),
            control_len: 0,
            early: Some(early),
            segments,
            head,
        }
    }

    fn push_control(&mut self, start: usize, len: usize) {
        let at = self.control_len + (start.wrapping_sub(self.control_len) % 8);
        self.control_len = at + len;
        match self.parts.last_mut() {
            Some(MessagePart { start: first, len: before, kind: PartKind::Control(_) })
                if *first + *before == start =>
            {
                *before += len;
            }
            _ => self.parts.push(MessagePart { start, len, kind: PartKind::Control(at) }),
        }
    }

    fn push_between(&mut self, start: usize, end: usize) {
        let len = end.saturating_sub(start);
        if len == 0 {
            return;
        }
        if self.control_len + len + 8 <= MOST_CONTROL {
            self.push_control(start, len);
        } else {
            self.parts.push(MessagePart { start, len, kind: PartKind::Between });
        }
    }

    pub(super) fn total(&self) -> usize {
        HEADER_LEN.saturating_add(self.header.size as usize)
    }

    fn part(&self) -> Option<MessagePart> {
        self.parts.get(self.at).copied()
    }

    /// Returns the number of bytes after the current part that are read together with it: the part before the
    /// next block, or the next message header.
    fn ahead(&self) -> usize {
        match self.parts.get(self.at + 1) {
            None => HEADER_LEN,
            Some(MessagePart { len, kind: PartKind::Control(_), .. }) => PIECE_HEADER_LEN.min(*len),
            Some(_) => 0,
        }
    }

    /// Returns the number of bytes of the current part that may be allocated before they are received. It is
    /// the grant of the whole message, minus the bytes before the part and the control bytes.
    fn granted(&self, start: usize, come: usize, largest: usize) -> usize {
        grant(start + come, largest).saturating_sub(start + self.control_len).max(come)
    }

    /// Copies bytes to their positions, and returns the buffer for the next read. Returns `None` if there is
    /// no memory at present, or if nothing more is to be read.
    fn fill(&mut self, octets: &[u8], memory: &mut Memory, largest: usize) -> Option<Box<LentBuffer>> {
        let mut octets = octets;
        loop {
            let part = self.part()?;
            let PartBuffer { mut buffer, base, granted } =
                self.open_part(part, octets.len(), memory, largest)?;
            let (here, rest) = octets.split_at_checked(part.len).unwrap_or((octets, &[]));
            if let Some(to) = buffer.room(base..base + here.len()) {
                to.copy_from_slice(here);
            }
            memory.copied += here.len() as u64;
            if here.len() < part.len {
                return Some(self.lend_part(part, PartBuffer { buffer, base, granted }, here.len(), memory));
            }
            octets = rest;
            self.close_part(part, buffer, base, memory);
        }
    }

    /// Returns the buffer for a part of which `here` bytes have been received already.
    fn open_part(
        &mut self,
        part: MessagePart,
        here: usize,
        memory: &mut Memory,
        largest: usize,
    ) -> Option<PartBuffer> {
        let (slack, align) = match part.kind {
            PartKind::Control(at) => {
                let buffer = mem::take(&mut self.control);
                return Some(PartBuffer { buffer, base: at, granted: part.len });
            }
            PartKind::Block => (PAGE, PAGE),
            PartKind::Between => (BASE_ALIGN, BASE_ALIGN),
        };
        let allowed = self.granted(part.start, here.min(part.len), largest);
        let granted = if allowed >= part.len { usize::MAX } else { allowed + slack };
        let (buffer, granted) = memory.buffer_granted(part.len + slack, granted)?;
        let phase = if let PartKind::Between = part.kind { part.start % 8 } else { 0 };
        let base = buffer.octets().as_ptr().addr().wrapping_neg() % align + phase;
        Some(PartBuffer { buffer, base, granted: granted.saturating_sub(base).min(part.len) })
    }

    fn lend_part(
        &self,
        part: MessagePart,
        opened: PartBuffer,
        here: usize,
        memory: &mut Memory,
    ) -> Box<LentBuffer> {
        let PartBuffer { buffer, base, granted } = opened;
        let deposit = Deposit { header: self.header, total: base + part.len };
        let mut buf = memory.lend(buffer, base + here, base + granted, Some(deposit)).0;
        buf.ahead = Some(self.ahead());
        buf
    }

    /// Completes a part.
    fn close_part(&mut self, part: MessagePart, buffer: Buffer, base: usize, memory: &Memory) {
        match part.kind {
            PartKind::Control(at) => {
                self.segments.push_control(at, part.len);
                self.control = buffer;
            }
            PartKind::Block => {
                self.segments.push_block(memory.pool.share(buffer).slice(base..base + part.len))
            }
            PartKind::Between => {
                self.segments.push_rest(memory.pool.share(buffer).slice(base..base + part.len))
            }
        }
        self.at += 1;
    }

    fn grow_part(&self, part: MessagePart, buf: &mut LentBuffer, memory: &mut Memory, largest: usize) {
        let base = buf.deposit.map_or(0, |deposit| deposit.total - part.len);
        let allowed = self.granted(part.start, buf.from - base, largest);
        memory.grow(buf, base.saturating_add(allowed));
    }

    /// Returns all memory to the pool.
    pub(super) fn give_back(self, pool: &BufferPool) {
        pool.give_back(self.control);
    }
}

impl Receiver {
    /// Returns whether the message, of which `octets` have been received, has a list of blocks.
    #[inline]
    pub(super) fn find_blocks(&self, header: &MessageHeader, total: usize, octets: &[u8]) -> BlockListSearch {
        let may_have = total > 2 * MIN_BLOCK
            && header.version == Version::V1_2
            && !header.more_fragments
            && self.deposits;
        if !may_have || (octets.len() <= PIECE_HEADER_LEN && self.sizes.read_ahead == 0) {
            return BlockListSearch::No;
        }
        self.read_list(header, octets)
    }

    fn read_list(&self, header: &MessageHeader, octets: &[u8]) -> BlockListSearch {
        match BlockList::read(header, octets) {
            Ok(Some(list)) if list.body_at <= MAX_BLOCK_HEAD => BlockListSearch::List(list),
            Err(_) if self.sizes.read_ahead > 0 && octets.len() < MAX_BLOCK_HEAD => BlockListSearch::Wait,
            Ok(_) | Err(_) => BlockListSearch::No,
        }
    }

    /// Returns the number of bytes before the blocks of a message that was received in one piece. Returns
    /// `None` unless it is the first message with a list. More such messages may follow, see
    /// [`expect_blocks`](Self::expect_blocks).
    #[inline]
    pub(crate) fn first_blocks(&self, header: &MessageHeader, octets: &[u8]) -> Option<usize> {
        if self.sizes.read_ahead > 0 || octets.len() <= 2 * MIN_BLOCK {
            return None;
        }
        match self.find_blocks(header, octets.len(), octets) {
            BlockListSearch::List(list) => list.blocks.first().map(|(start, _)| (*start).min(WINDOW)),
            BlockListSearch::Wait | BlockListSearch::No => None,
        }
    }

    /// Reads the headers of large messages separately from now on, before the rest of the message.
    #[cold]
    pub(crate) fn expect_blocks(&mut self, head: usize) {
        self.sizes.read_ahead = head;
    }

    /// Starts a message in parts, of which `octets` have been received and are copied. Returns `false` if
    /// there is no memory at present.
    #[cold]
    pub(super) fn begin_parts(&mut self, header: MessageHeader, list: &BlockList, octets: &[u8]) -> bool {
        let mut parted = Box::new(MessageParts::new(header, list));
        let Some((control, _)) = self.memory.buffer_granted(parted.control_len, usize::MAX) else {
            return false;
        };
        parted.control = control;
        let copied = self.memory.copied;
        match parted.fill(octets, &mut self.memory, self.sizes.largest) {
            Some(buf) => {
                self.state = State::Partial(buf);
                self.parted = Some(parted);
                true
            }
            None => {
                self.memory.copied = copied;
                parted.give_back(&self.memory.pool);
                false
            }
        }
    }

    /// Starts a message that is forwarded in encoded form. Its received bytes, `early`, stay a view of the
    /// window. Returns `false` if there is no memory at present.
    #[cold]
    pub(super) fn begin_rest(&mut self, header: MessageHeader, early: Bytes) -> bool {
        let mut parted = Box::new(MessageParts::behind(header, early, self.sizes.read_ahead));
        let Some(part) = parted.part() else { return false };
        let Some(opened) = parted.open_part(part, 0, &mut self.memory, self.sizes.largest) else {
            return false;
        };
        self.state = State::Partial(parted.lend_part(part, opened, 0, &mut self.memory));
        self.parted = Some(parted);
        true
    }

    /// Takes back the buffer of a part, with `n` more bytes.
    #[cold]
    pub(super) fn read_part(&mut self, mut buf: Box<LentBuffer>, n: usize) {
        let Some(mut parted) = self.parted.take() else { return self.memory.give_back(buf) };
        let (Some(part), Some(Deposit { total, .. })) = (parted.part(), buf.deposit) else {
            return self.memory.give_back(buf);
        };
        if buf.to == 0 {
            // It waited for memory.
            (self.state, self.parted) = (State::Partial(buf), Some(parted));
            return self.retry_part();
        }
        let filled = buf.from.saturating_add(n);
        if filled < total {
            buf.from = filled;
            if filled == buf.to {
                parted.grow_part(part, &mut buf, &mut self.memory, self.sizes.largest);
            }
            self.state = State::Partial(buf);
            self.parted = Some(parted);
            return;
        }
        let base = total - part.len;
        let buffer = mem::take(&mut buf.buffer);
        let mut ahead = NextHeader { len: (filled - total).min(buf.ahead.unwrap_or(0)), ..buf.next };
        self.memory.keep_box(buf);
        parted.close_part(part, buffer, base, &self.memory);
        if parted.part().is_some() {
            match parted.fill(ahead.octets(), &mut self.memory, self.sizes.largest) {
                Some(buf) => {
                    self.state = State::Partial(buf);
                    self.parted = Some(parted);
                    return;
                }
                None if parted.part().is_some() => {
                    // There is no memory at present for the next block, of which nothing has been received.
                    let empty = Deposit { header: parted.header, total: 1 };
                    self.state = State::Partial(self.memory.lend(Buffer::default(), 0, 0, Some(empty)).0);
                    self.parted = Some(parted);
                    return;
                }
                None => ahead.len = 0,
            }
        }
        self.parts_done(*parted, ahead);
    }

    /// Completes the message.
    fn parts_done(&mut self, parted: MessageParts, next: NextHeader) {
        let total = parted.total();
        self.sizes.read_ahead = parted.head.min(WINDOW);
        (self.sizes.expected, self.sizes.expected_total) = (total, 0);
        self.sizes.largest = self.sizes.largest.max(total);
        let octets = match parted.early {
            Some(early) => early,
            None => self.memory.pool.share(parted.control).slice(..parted.control_len),
        };
        self.segments = Some(Box::new(parted.segments));
        self.state = State::Whole { header: parted.header, octets, next };
    }

    /// Tries again to get memory for the current part.
    #[cold]
    pub(super) fn retry_part(&mut self) {
        let Some(mut parted) = self.parted.take() else { return };
        if let State::Partial(mut buf) = mem::replace(&mut self.state, State::Window) {
            let Some(part) = parted.part() else { return self.memory.give_back(buf) };
            if buf.to > 0 {
                self.memory.starved = false;
                if buf.from == buf.to {
                    parted.grow_part(part, &mut buf, &mut self.memory, self.sizes.largest);
                }
            } else if let Some(opened) = parted.open_part(part, 0, &mut self.memory, self.sizes.largest) {
                self.memory.keep_box(buf);
                buf = parted.lend_part(part, opened, 0, &mut self.memory);
            }
            self.state = State::Partial(buf);
        }
        self.parted = Some(parted);
    }

    /// Returns the number of bytes of the first message that are not in the control buffer.
    pub(crate) fn apart(&self) -> usize {
        match (&self.state, &self.segments) {
            (State::Whole { octets, .. }, Some(segments)) => segments.len().saturating_sub(octets.len()),
            _ => 0,
        }
    }
}
