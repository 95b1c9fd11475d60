//! Messages whose blocks of bulk data, which the sender lists, are read into buffers of their own.
//!
//! The bytes between blocks, usually a few hundred, are called the control bytes. They are read into one
//! buffer. Each block is read to the start of a page in its own buffer. Therefore a value that shares a block
//! keeps only the buffer of that block. If the list is wrong, only the positions in memory are different: the
//! resulting [`Segments`] decode to the same values as the contiguous message.
//!
//! A peer that sent a list is expected to send more lists. After a large message, only the header of the next
//! message is read ahead, so that the next read can go directly to the first block.

use std::mem;

use bytes::Bytes;
use giop_codec::Version;
use giop_codec::cdr::Segments;
use giop_codec::giop::{BlockList, MAX_BLOCK_HEAD_BYTES, MIN_BLOCK_BYTES, MessageHeader};

use super::read_buf::{Deposit, LentBuffer, NextHeader};
use super::receiver_state::Memory;
use super::{HEADER_LEN, PIECE_HEADER_LEN, Receiver, State};
use crate::pool::{BASE_ALIGN, Buffer, BufferPool, WINDOW_SIZE};

/// The maximum number of control bytes. Further data between blocks has buffers of its own.
const MAX_CONTROL_SIZE: usize = 48 * 1024;

/// The alignment of blocks in bytes.
const PAGE_SIZE: usize = 4096;

pub(super) enum BlockListSearch {
    /// More of the message's header is needed.
    Incomplete,
    /// There is no list that can be used.
    NoList,
    List(BlockList),
}

#[derive(Debug)]
pub(super) struct MessageParts {
    header: MessageHeader,
    parts: Vec<MessagePart>,
    current: usize,
    /// The buffer of the control bytes. It is taken out while control bytes are received.
    control: Buffer,
    control_len: usize,
    /// The bytes that were received with the header and stay in the window. There is then no `control`.
    window_bytes: Option<Bytes>,
    /// The completed parts.
    segments: Segments,
    /// The number of bytes before the first block.
    head_len: usize,
}

#[derive(Debug, Clone, Copy)]
struct MessagePart {
    start: usize,
    len: usize,
    kind: PartKind,
}

#[derive(Debug, Clone, Copy)]
enum PartKind {
    /// Control bytes, at this offset of the control buffer.
    Control(usize),
    Block,
    /// Other bytes in a separate buffer: long data between blocks, or the rest of a raw message. They
    /// have the same alignment there as in the message.
    Other,
}

/// The buffer of a part.
struct PartBuffer {
    buffer: Buffer,
    base: usize,
    /// The number of bytes of the part that may be read at present.
    granted: usize,
}

impl MessageParts {
    fn new(header: MessageHeader, list: &BlockList) -> Self {
        let mut this = Self {
            header,
            parts: Vec::with_capacity(2 * list.blocks.len() + 2),
            current: 0,
            control: Buffer::default(),
            control_len: 0,
            window_bytes: None,
            segments: Segments::default(),
            head_len: list.body_at,
        };
        // The header of the request or reply is decoded from the control buffer, so it must be contiguous.
        this.push_control(0, list.body_at);
        let mut end = list.body_at;
        for (start, len) in &list.blocks {
            this.push_between_blocks(end, *start);
            this.parts.push(MessagePart { start: *start, len: *len, kind: PartKind::Block });
            end = start + len;
        }
        this.push_between_blocks(end, HEADER_LEN.saturating_add(header.size as usize));
        if let Some(first) = this.parts.first() {
            this.head_len = first.len;
        }
        this.segments = Segments::with_capacity(this.parts.len());
        this
    }

    /// Creates a message whose received bytes stay in the window. The rest is read into a buffer of its own.
    fn with_window_bytes(header: MessageHeader, window_bytes: Bytes, head_len: usize) -> Self {
        let start = window_bytes.len();
        let mut segments = Segments::with_capacity(2);
        segments.push_control(0, start);
        let len = HEADER_LEN.saturating_add(header.size as usize).saturating_sub(start);
        Self {
            header,
            parts: vec![MessagePart { start, len, kind: PartKind::Other }],
            current: 0,
            control: Buffer::default(),
            control_len: 0,
            window_bytes: Some(window_bytes),
            segments,
            head_len,
        }
    }

    fn push_control(&mut self, start: usize, len: usize) {
        let offset = self.control_len + (start.wrapping_sub(self.control_len) % 8);
        self.control_len = offset + len;
        match self.parts.last_mut() {
            Some(MessagePart { start: first, len: before, kind: PartKind::Control(_) })
                if *first + *before == start =>
            {
                *before += len;
            }
            _ => self.parts.push(MessagePart { start, len, kind: PartKind::Control(offset) }),
        }
    }

    fn push_between_blocks(&mut self, start: usize, end: usize) {
        let len = end.saturating_sub(start);
        if len == 0 {
            return;
        }
        if self.control_len + len + 8 <= MAX_CONTROL_SIZE {
            self.push_control(start, len);
        } else {
            self.parts.push(MessagePart { start, len, kind: PartKind::Other });
        }
    }

    pub(super) fn total(&self) -> usize {
        HEADER_LEN.saturating_add(self.header.size as usize)
    }

    fn part(&self) -> Option<MessagePart> {
        self.parts.get(self.current).copied()
    }

    /// Returns the number of bytes after the current part that are read together with it. These are the first
    /// control bytes after a block, or the header of the next message.
    fn read_ahead(&self) -> usize {
        match self.parts.get(self.current + 1) {
            None => HEADER_LEN,
            Some(MessagePart { len, kind: PartKind::Control(_), .. }) => PIECE_HEADER_LEN.min(*len),
            Some(_) => 0,
        }
    }

    /// Returns the number of bytes of the current part that may be allocated before they are received. This
    /// is the grant of the whole message, minus the bytes before the part and the control bytes.
    fn granted(&self, start: usize, received: usize, memory: &Memory) -> usize {
        memory.grant(start + received).saturating_sub(start + self.control_len).max(received)
    }

    /// Copies received bytes, and returns the buffer for the next read; `None` without memory, or at the end.
    fn fill(&mut self, mut bytes: &[u8], memory: &mut Memory) -> Option<Box<LentBuffer>> {
        loop {
            let part = self.part()?;
            let mut opened = self.open_part(part, bytes.len(), memory)?;
            let (received, rest) = bytes.split_at_checked(part.len).unwrap_or((bytes, &[]));
            if let Some(target) = opened.buffer.writable_range(opened.base..opened.base + received.len()) {
                target.copy_from_slice(received);
            }
            memory.copied_bytes += received.len() as u64;
            if received.len() < part.len {
                return Some(self.lend_part(part, opened, received.len(), memory));
            }
            bytes = rest;
            self.close_part(part, opened.buffer, opened.base, memory);
        }
    }

    /// Returns the buffer for a part that has `received` bytes; `None` if there is no memory at present.
    fn open_part(&mut self, part: MessagePart, received: usize, memory: &mut Memory) -> Option<PartBuffer> {
        let (alignment_slack, align) = match part.kind {
            PartKind::Control(offset) => {
                let buffer = mem::take(&mut self.control);
                return Some(PartBuffer { buffer, base: offset, granted: part.len });
            }
            PartKind::Block => (PAGE_SIZE, PAGE_SIZE),
            PartKind::Other => (BASE_ALIGN, BASE_ALIGN),
        };
        let allowed = self.granted(part.start, received.min(part.len), memory);
        let granted = if allowed >= part.len { usize::MAX } else { allowed + alignment_slack };
        let (buffer, granted) = memory.buffer_granted(part.len + alignment_slack, granted)?;
        let misalignment = if let PartKind::Other = part.kind { part.start % 8 } else { 0 };
        let base = buffer.bytes().as_ptr().addr().wrapping_neg() % align + misalignment;
        Some(PartBuffer { buffer, base, granted: granted.saturating_sub(base).min(part.len) })
    }

    fn lend_part(
        &self,
        part: MessagePart,
        opened: PartBuffer,
        received: usize,
        memory: &mut Memory,
    ) -> Box<LentBuffer> {
        let PartBuffer { buffer, base, granted } = opened;
        let deposit = Deposit { header: self.header, total: base + part.len };
        let mut buf = memory.lend(buffer, base + received, base + granted, Some(deposit)).0;
        buf.requested_next_len = Some(self.read_ahead());
        buf
    }

    fn close_part(&mut self, part: MessagePart, buffer: Buffer, base: usize, memory: &Memory) {
        match part.kind {
            PartKind::Control(offset) => {
                self.segments.push_control(offset, part.len);
                self.control = buffer;
            }
            kind => {
                let bytes = memory.pool.share(buffer).slice(base..base + part.len);
                if let PartKind::Block = kind {
                    self.segments.push_block(bytes);
                } else {
                    self.segments.push_other(bytes);
                }
            }
        }
        self.current += 1;
    }

    fn grow_part(&self, part: MessagePart, buf: &mut LentBuffer, memory: &mut Memory) {
        let base = buf.deposit.map_or(0, |deposit| deposit.total - part.len);
        let allowed = self.granted(part.start, buf.filled - base, memory);
        memory.grow(buf, base.saturating_add(allowed));
    }

    pub(super) fn give_back(self, pool: &BufferPool) {
        pool.give_back(self.control);
    }
}

impl Receiver {
    #[inline]
    pub(super) fn find_blocks(&self, header: &MessageHeader, total: usize, bytes: &[u8]) -> BlockListSearch {
        let may_have = total > 2 * MIN_BLOCK_BYTES
            && header.version == Version::V1_2
            && !header.more_fragments
            && self.deposits_enabled;
        if !may_have || (bytes.len() <= PIECE_HEADER_LEN && self.sizes.len_before_first_block == 0) {
            return BlockListSearch::NoList;
        }
        self.read_list(header, bytes)
    }

    fn read_list(&self, header: &MessageHeader, bytes: &[u8]) -> BlockListSearch {
        match BlockList::read(header, bytes) {
            Ok(Some(list)) if list.body_at <= MAX_BLOCK_HEAD_BYTES => BlockListSearch::List(list),
            Err(_) if self.sizes.len_before_first_block > 0 && bytes.len() < MAX_BLOCK_HEAD_BYTES => {
                BlockListSearch::Incomplete
            }
            Ok(_) | Err(_) => BlockListSearch::NoList,
        }
    }

    /// If a contiguous message has a list of blocks, and the peer has not sent one before, returns the number
    /// of bytes before the first block. Then call [`expect_blocks`](Self::expect_blocks).
    #[inline]
    pub(crate) fn first_block_head_len(&self, header: &MessageHeader, bytes: &[u8]) -> Option<usize> {
        if self.sizes.len_before_first_block > 0 || bytes.len() <= 2 * MIN_BLOCK_BYTES {
            return None;
        }
        match self.find_blocks(header, bytes.len(), bytes) {
            BlockListSearch::List(list) => list.blocks.first().map(|(start, _)| (*start).min(WINDOW_SIZE)),
            BlockListSearch::Incomplete | BlockListSearch::NoList => None,
        }
    }

    /// From now on, reads the start of large messages, about `head_len` bytes, separately.
    #[cold]
    pub(crate) fn expect_blocks(&mut self, head_len: usize) {
        self.sizes.len_before_first_block = head_len;
    }

    /// Starts a message in parts with the received `bytes`. Returns `false` if there is no memory at present.
    #[cold]
    pub(super) fn begin_message_parts(
        &mut self,
        header: MessageHeader,
        list: &BlockList,
        bytes: &[u8],
    ) -> bool {
        let mut message = Box::new(MessageParts::new(header, list));
        let Some((control, _)) = self.memory.buffer_granted(message.control_len, usize::MAX) else {
            return false;
        };
        message.control = control;
        let copied_before = self.memory.copied_bytes;
        let Some(buf) = message.fill(bytes, &mut self.memory) else {
            self.memory.copied_bytes = copied_before;
            message.give_back(&self.memory.pool);
            return false;
        };
        (self.state, self.message_in_parts) = (State::Incomplete(buf), Some(message));
        true
    }

    /// Starts a [raw](super::stream_start) message. The bytes that have been received stay in the window,
    /// which is shared. Returns `false` if there is no memory at present.
    #[cold]
    pub(super) fn begin_raw(&mut self, header: MessageHeader, window_bytes: Bytes) -> bool {
        let mut message = Box::new(MessageParts::with_window_bytes(
            header,
            window_bytes,
            self.sizes.len_before_first_block,
        ));
        let Some(part) = message.part() else { return false };
        let Some(opened) = message.open_part(part, 0, &mut self.memory) else { return false };
        (self.state, self.message_in_parts) =
            (State::Incomplete(message.lend_part(part, opened, 0, &mut self.memory)), Some(message));
        true
    }

    /// Takes back the buffer of the current part, into which `n` more bytes were read.
    #[cold]
    pub(super) fn read_part(&mut self, mut buf: Box<LentBuffer>, n: usize) {
        let Some(mut message) = self.message_in_parts.take() else { return self.memory.give_back(buf) };
        let (Some(part), Some(Deposit { total, .. })) = (message.part(), buf.deposit) else {
            return self.memory.give_back(buf);
        };
        if buf.end == 0 {
            // The part has been waiting for memory.
            (self.state, self.message_in_parts) = (State::Incomplete(buf), Some(message));
            return self.retry_part();
        }
        let filled = buf.filled.saturating_add(n);
        if filled < total {
            buf.filled = filled;
            if filled == buf.end {
                message.grow_part(part, &mut buf, &mut self.memory);
            }
            (self.state, self.message_in_parts) = (State::Incomplete(buf), Some(message));
            return;
        }
        let base = total - part.len;
        let buffer = mem::take(&mut buf.buffer);
        let mut ahead =
            NextHeader { len: (filled - total).min(buf.requested_next_len.unwrap_or(0)), ..buf.next };
        self.memory.keep_box(buf);
        message.close_part(part, buffer, base, &self.memory);
        if message.part().is_some() {
            let mut next = message.fill(ahead.bytes(), &mut self.memory);
            if next.is_none() && message.part().is_some() {
                // There is no memory at present for the next block. Nothing of it has been received.
                let empty = Deposit { header: message.header, total: 1 };
                next = Some(self.memory.lend(Buffer::default(), 0, 0, Some(empty)).0);
            }
            if let Some(buf) = next {
                (self.state, self.message_in_parts) = (State::Incomplete(buf), Some(message));
                return;
            }
            ahead.len = 0;
        }
        self.complete_message(*message, ahead);
    }

    fn complete_message(&mut self, message: MessageParts, next: NextHeader) {
        let total = message.total();
        self.sizes.len_before_first_block = message.head_len.min(WINDOW_SIZE);
        (self.sizes.expected, self.sizes.expected_total) = (total, 0);
        self.memory.record_size(total);
        let bytes = match message.window_bytes {
            Some(window_bytes) => window_bytes,
            None => self.memory.pool.share(message.control).slice(..message.control_len),
        };
        self.segments = Some(Box::new(message.segments));
        self.state = State::CompleteMessage { header: message.header, bytes, next };
    }

    #[cold]
    pub(super) fn retry_part(&mut self) {
        let Some(mut message) = self.message_in_parts.take() else { return };
        if let State::Incomplete(mut buf) = mem::replace(&mut self.state, State::Window) {
            let Some(part) = message.part() else { return self.memory.give_back(buf) };
            if buf.end > 0 {
                self.memory.starved = false;
                if buf.filled == buf.end {
                    message.grow_part(part, &mut buf, &mut self.memory);
                }
            } else if let Some(opened) = message.open_part(part, 0, &mut self.memory) {
                self.memory.keep_box(buf);
                buf = message.lend_part(part, opened, 0, &mut self.memory);
            }
            self.state = State::Incomplete(buf);
        }
        self.message_in_parts = Some(message);
    }

    /// Returns the number of bytes of the complete message that are not in the control buffer.
    pub(crate) fn len_outside_control(&self) -> usize {
        match (&self.state, &self.segments) {
            (State::CompleteMessage { bytes, .. }, Some(segments)) => {
                segments.len().saturating_sub(bytes.len())
            }
            _ => 0,
        }
    }
}
