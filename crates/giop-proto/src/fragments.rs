//! Messages that are received in fragments.
//!
//! The pieces of a message, its start and its fragments, are joined in one buffer, without the headers of the
//! fragments. Large fragments of GIOP 1.2 are read directly into it (see [`Fragments::lend`]).
//!
//! In GIOP 1.2, all pieces except the last have lengths that are multiples of 8. Offsets in the joined
//! message therefore have the intended alignment. This does not hold in GIOP 1.1: see [`MessageLayout`].

mod streamed;

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType, RequestId};
use giop_codec::{DecodeError, DecodeErrorKind, Version};

use crate::error::ProtocolError;
use crate::frame::{
    HEADER_LEN, JoinedMessage, MessageLayout, OVERSIZED_START_LEN, PIECE_HEADER_LEN, word_after_header,
};
use crate::limits::{Limits, later};
use crate::message::RequestHead;
use crate::pool::{Buffer, BufferPool};

/// The maximum size in bytes of a message that is not joined in a pooled buffer.
const MAX_SMALL_MESSAGE_SIZE: usize = 32 * 1024;

/// The offset of the data in a Fragment message of GIOP 1.1.
const PAYLOAD_AT_1_1: usize = HEADER_LEN;

/// The offset of the data in a Fragment message of GIOP 1.2.
const PAYLOAD_AT_1_2: usize = PIECE_HEADER_LEN;

/// The messages of a connection that are received in fragments and are incomplete.
#[derive(Debug)]
pub(crate) struct Fragments {
    pool: Arc<BufferPool>,
    incomplete: Vec<IncompleteMessage>,
    total_bytes: usize,
    /// The memory outside of pooled buffers that has been charged to the pool, in bytes.
    outside_bytes: usize,
    /// The expected size of the next large message: the size of the last message, or 0 if that was small.
    expected_size: usize,
    pub(crate) copied: u64,
}

#[derive(Debug)]
pub(crate) enum FirstPiece<'a> {
    Bytes(&'a [u8]),
    /// A piece in a buffer of its own, with the number of its bytes.
    Placed(Buffer, usize),
    /// The start of a message that is discarded with all its pieces.
    Discarded(&'a [u8]),
    /// The start of a message that has been handed out. The following pieces go to its stream.
    Streamed(&'a [u8]),
}

#[derive(Debug)]
pub(crate) enum FragmentOutcome {
    /// More fragments follow, or the message is discarded.
    Incomplete,
    /// The fragment continues no message.
    Stray,
    Complete(MessageHeader, JoinedMessage),
    /// The message is now too large. The value contains its first bytes.
    Oversized(MessageHeader, Bytes),
}

#[derive(Debug)]
struct IncompleteMessage {
    first_header: MessageHeader,
    /// The id in the fragments. `None` in GIOP 1.1, which fragments one message at a time, without an id.
    id: Option<RequestId>,
    started_at: Instant,
    data: Option<Data>,
    piece_offsets: Vec<u32>,
    /// True for a message that may be handed out before its last piece has been received.
    may_stream: bool,
    /// The request id of a message that was handed out.
    request_id: Option<RequestId>,
    /// The size in bytes of the discarded rest of a streamed message. It determines the timeout.
    discarded_bytes: Option<usize>,
}

#[derive(Debug)]
enum Data {
    Small(BytesMut),
    /// A pooled buffer, and the number of bytes in it.
    Pooled(Buffer, usize),
    /// The buffer, with this number of bytes, is lent to the receiver, which reads a fragment into it.
    Lent(usize),
    /// The message was handed out. Further pieces go to its stream.
    Streamed,
}

impl Fragments {
    pub(crate) fn new(pool: Arc<BufferPool>) -> Self {
        Self { pool, incomplete: Vec::new(), total_bytes: 0, outside_bytes: 0, expected_size: 0, copied: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.incomplete.is_empty()
    }

    pub(crate) fn start(
        &mut self,
        header: MessageHeader,
        first: FirstPiece<'_>,
        now: Instant,
        limits: &Limits,
    ) -> Result<(), ProtocolError> {
        let (bytes, counted_len) = match &first {
            FirstPiece::Discarded(bytes) | FirstPiece::Streamed(bytes) => (*bytes, 0),
            FirstPiece::Bytes(bytes) => (*bytes, bytes.len()),
            FirstPiece::Placed(buffer, len) => (buffer.bytes().get(..*len).unwrap_or_default(), *len),
        };
        let started = self.check_start(&header, bytes, limits);
        let id = match started.and_then(|id| self.count_bytes(counted_len, limits).map(|()| id)) {
            Ok(id) => id,
            Err(error) => {
                if let FirstPiece::Placed(buffer, _) = first {
                    self.pool.give_back(buffer);
                }
                return Err(error);
            }
        };
        let data = match first {
            FirstPiece::Bytes(bytes) => {
                self.copied += bytes.len() as u64;
                Some(Data::Small(BytesMut::from(bytes)))
            }
            FirstPiece::Placed(buffer, len) => Some(Data::Pooled(buffer, len)),
            FirstPiece::Discarded(_) => None,
            FirstPiece::Streamed(_) => Some(Data::Streamed),
        };
        self.incomplete.push(IncompleteMessage {
            first_header: header,
            id,
            started_at: now,
            data,
            piece_offsets: Vec::new(),
            may_stream: false,
            request_id: None,
            discarded_bytes: None,
        });
        self.update_pool_charge();
        Ok(())
    }

    fn check_start(
        &self,
        header: &MessageHeader,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Option<RequestId>, ProtocolError> {
        if !header.kind.may_fragment(header.version) {
            return Err(ProtocolError::NotFragmentable(header.kind));
        }
        let id = match header.version {
            Version::V1_2 => {
                Some(word_after_header(header.order, bytes).ok_or_else(|| too_short(header.kind))?)
            }
            _ => None,
        };
        if self.incomplete.iter().any(|message| message.id == id) {
            return Err(ProtocolError::FragmentOrder);
        }
        if self.incomplete.len() >= limits.max_fragmented {
            return Err(ProtocolError::TooManyFragmented { limit: limits.max_fragmented });
        }
        Ok(id)
    }

    /// Adds a fragment to its message. If its data was skipped, `bytes` contains only the headers.
    pub(crate) fn add(
        &mut self,
        header: MessageHeader,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<FragmentOutcome, ProtocolError> {
        let (id, start) = match header.version {
            Version::V1_2 => {
                let id =
                    word_after_header(header.order, bytes).ok_or_else(|| too_short(MessageType::Fragment))?;
                (Some(id), PAYLOAD_AT_1_2)
            }
            _ => (None, PAYLOAD_AT_1_1),
        };
        let payload = bytes.get(start..).unwrap_or_default();
        let size = (HEADER_LEN + header.size as usize).saturating_sub(start);
        let Some(at) = self.incomplete.iter().position(|message| message.id == id) else {
            // A GIOP 1.1 fragment without a message shows that the sender is in a wrong state.
            return if id.is_some() { Ok(FragmentOutcome::Stray) } else { Err(ProtocolError::FragmentOrder) };
        };
        let Some(message) = self.incomplete.get_mut(at) else { return Ok(FragmentOutcome::Stray) };
        message.check(&header)?;
        let Some(data) = &mut message.data else {
            if !header.more_fragments {
                self.incomplete.swap_remove(at);
            }
            return Ok(FragmentOutcome::Incomplete);
        };
        let total = data.len().saturating_add(size);
        if total > limits.max_message_size || payload.len() < size {
            return self.discard_oversized(at, total, header.more_fragments, limits);
        }
        message.piece_offsets.push(u32::try_from(data.len()).unwrap_or(u32::MAX));
        self.copied += data.push(payload, &self.pool, self.expected_size);
        self.update_pool_charge();
        self.count_bytes(payload.len(), limits)?;
        Ok(self.join_if_last(at, header.more_fragments))
    }

    /// Lends the buffer of the message to which a partly received GIOP 1.2 fragment belongs. Returns it with
    /// the number of bytes in it. The fragment must be placed after them.
    ///
    /// The buffer must be returned to [`add_placed`](Self::add_placed) or [`take_back`](Self::take_back).
    ///
    /// Returns `None` if the fragment must be skipped. [`add`](Self::add) then returns the reason.
    pub(crate) fn lend(
        &mut self,
        header: &MessageHeader,
        id: RequestId,
        limits: &Limits,
    ) -> Result<Option<(Buffer, usize)>, ProtocolError> {
        let size = (header.size as usize).saturating_sub(PAYLOAD_AT_1_2 - HEADER_LEN);
        let Some(message) = self.incomplete.iter_mut().find(|message| message.id == Some(id)) else {
            return Ok(None);
        };
        message.check(header)?;
        let Some(data) = &mut message.data else { return Ok(None) };
        let len = data.len();
        if len.saturating_add(size) > limits.max_message_size {
            return Ok(None);
        }
        if self.total_bytes.saturating_add(size) > limits.max_fragment_memory {
            return Err(ProtocolError::FragmentMemory { limit: limits.max_fragment_memory });
        }
        let buffer = match std::mem::replace(data, Data::Lent(len)) {
            Data::Pooled(buffer, _) => buffer,
            Data::Small(small) => {
                self.copied += len as u64;
                fill(self.pool.take(len.max(self.expected_size)), &small)
            }
            Data::Lent(_) | Data::Streamed => return Ok(None),
        };
        self.update_pool_charge();
        Ok(Some((buffer, len)))
    }

    pub(crate) fn take_back(&mut self, id: RequestId, buffer: Buffer) {
        match self.find_mut(Some(id)).and_then(|message| message.data.as_mut()) {
            Some(data @ Data::Lent(_)) => *data = Data::Pooled(buffer, data.len()),
            _ => self.pool.give_back(buffer),
        }
    }

    /// Takes back a lent buffer that now contains the fragment.
    pub(crate) fn add_placed(
        &mut self,
        header: &MessageHeader,
        buffer: Buffer,
        limits: &Limits,
    ) -> Result<FragmentOutcome, ProtocolError> {
        let size = (header.size as usize).saturating_sub(PAYLOAD_AT_1_2 - HEADER_LEN);
        let lent = self.incomplete.iter().position(|message| matches!(message.data, Some(Data::Lent(_))));
        let Some((at, message)) = lent.and_then(|at| Some((at, self.incomplete.get_mut(at)?))) else {
            self.pool.give_back(buffer);
            return Ok(FragmentOutcome::Stray);
        };
        message.data = Some(Data::Pooled(buffer, message.len() + size));
        self.count_bytes(size, limits)?;
        Ok(self.join_if_last(at, header.more_fragments))
    }

    fn find(&self, id: Option<RequestId>) -> Option<&IncompleteMessage> {
        self.incomplete.iter().find(|message| message.id == id)
    }

    fn find_mut(&mut self, id: Option<RequestId>) -> Option<&mut IncompleteMessage> {
        self.incomplete.iter_mut().find(|message| message.id == id)
    }

    /// Drops the incomplete request with this id, which was cancelled. Returns whether there is one.
    pub(crate) fn cancel(&mut self, id: RequestId) -> bool {
        let found = self.incomplete.iter().position(|message| message.is_request(id));
        if let Some(data) = found.and_then(|at| self.incomplete.swap_remove(at).data) {
            self.drop_data(data);
        }
        found.is_some()
    }

    pub(crate) fn earliest_deadline(&self, limits: &Limits) -> Option<Instant> {
        let timed = self.incomplete.iter().filter(|message| !message.is_streamed());
        let deadline = |message: &IncompleteMessage| {
            let size = message.len() + message.discarded_bytes.unwrap_or(0);
            later(message.started_at, limits.message_time(size))
        };
        timed.map(deadline).min()
    }

    pub(crate) fn clear(&mut self) {
        while let Some(message) = self.incomplete.pop() {
            if let Some(data) = message.data {
                self.drop_data(data);
            }
        }
    }

    fn drop_data(&mut self, data: Data) {
        self.total_bytes -= data.len();
        self.update_pool_charge();
        if let Data::Pooled(buffer, _) = data {
            self.pool.give_back(buffer);
        }
    }

    /// Updates the memory outside of pooled buffers that is charged to the pool.
    fn update_pool_charge(&mut self) {
        let small = |message: &IncompleteMessage| match &message.data {
            Some(Data::Small(data)) => data.capacity(),
            _ => 0,
        };
        let outside_bytes = self.incomplete.iter().map(small).sum();
        if outside_bytes > self.outside_bytes {
            self.pool.charge_outside(outside_bytes - self.outside_bytes);
        } else {
            self.pool.discharge_outside(self.outside_bytes - outside_bytes);
        }
        self.outside_bytes = outside_bytes;
    }

    fn count_bytes(&mut self, bytes: usize, limits: &Limits) -> Result<(), ProtocolError> {
        self.total_bytes += bytes;
        if self.total_bytes > limits.max_fragment_memory {
            return Err(ProtocolError::FragmentMemory { limit: limits.max_fragment_memory });
        }
        Ok(())
    }

    /// Discards a message that exceeds the size limit. Fails if the message is not a GIOP 1.2 request.
    #[cold]
    fn discard_oversized(
        &mut self,
        at: usize,
        size: usize,
        more: bool,
        limits: &Limits,
    ) -> Result<FragmentOutcome, ProtocolError> {
        let too_large = ProtocolError::TooLarge { size, limit: limits.max_message_size };
        let message = self.incomplete.get_mut(at).ok_or(too_large)?;
        let data = message.data.take().ok_or(too_large)?;
        let header = message.first_header;
        let start = Bytes::copy_from_slice(data.bytes().get(..OVERSIZED_START_LEN).unwrap_or_default());
        self.drop_data(data);
        if header.kind != MessageType::Request || header.version != Version::V1_2 {
            return Err(too_large);
        }
        if !more {
            self.incomplete.swap_remove(at);
        }
        Ok(FragmentOutcome::Oversized(header, start))
    }

    fn join_if_last(&mut self, at: usize, more: bool) -> FragmentOutcome {
        if more {
            return FragmentOutcome::Incomplete;
        }
        let IncompleteMessage { first_header, data, piece_offsets, .. } = self.incomplete.swap_remove(at);
        let Some(data) = data else { return FragmentOutcome::Incomplete };
        let total = data.len();
        self.total_bytes -= total;
        self.update_pool_charge();
        self.expected_size = if total > MAX_SMALL_MESSAGE_SIZE { total } else { 0 };
        let (header, joined) = data.join(first_header, piece_offsets, &self.pool);
        FragmentOutcome::Complete(header, joined)
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        self.clear();
    }
}

impl IncompleteMessage {
    fn len(&self) -> usize {
        self.data.as_ref().map_or(0, Data::len)
    }

    /// Checks that a fragment has the version and the byte order of this message.
    fn check(&self, header: &MessageHeader) -> Result<(), ProtocolError> {
        if self.first_header.version != header.version || self.first_header.order != header.order {
            return Err(ProtocolError::FragmentMismatch);
        }
        Ok(())
    }

    fn is_streamed(&self) -> bool {
        matches!(self.data, Some(Data::Streamed))
    }

    fn is_request(&self, id: RequestId) -> bool {
        if let Some(request_id) = self.request_id {
            return request_id == id;
        }
        match (self.first_header.kind, self.id, &self.data) {
            (MessageType::Request | MessageType::LocateRequest, Some(own), _) => own == id,
            (MessageType::Request, None, Some(data)) => {
                RequestHead::decode(&self.first_header, data.bytes()).is_ok_and(|head| head.id == id)
            }
            _ => false,
        }
    }
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(data) => data,
            Self::Pooled(buffer, len) => buffer.bytes().get(..*len).unwrap_or_default(),
            Self::Lent(_) | Self::Streamed => &[],
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Small(data) => data.len(),
            Self::Pooled(_, len) | Self::Lent(len) => *len,
            Self::Streamed => 0,
        }
    }

    /// Appends bytes, and returns the number of bytes that were copied. A buffer that is too small is
    /// replaced by one of twice the size, so that each byte is copied twice on average. A first buffer of
    /// `expected_size`, the size of the previous message, mostly avoids that.
    fn push(&mut self, more: &[u8], pool: &BufferPool, expected_size: usize) -> u64 {
        let (len, copied) = (self.len(), more.len() as u64);
        let need = len + more.len();
        if let Self::Small(data) = self
            && need <= MAX_SMALL_MESSAGE_SIZE
        {
            data.extend_from_slice(more);
            return copied;
        }
        let moved = match self {
            Self::Pooled(buffer, _) if need <= buffer.capacity() => 0,
            _ => {
                let grown = fill(pool.take((2 * need).max(expected_size)), self.bytes());
                if let Self::Pooled(old, _) = std::mem::replace(self, Self::Pooled(grown, len)) {
                    pool.give_back(old);
                }
                len as u64
            }
        };
        if let Self::Pooled(buffer, filled) = self
            && let Some(to) = buffer.writable_range(len..need)
        {
            to.copy_from_slice(more);
            *filled = need;
        }
        copied + moved
    }

    /// Returns the joined pieces as one message, with a header of its own.
    fn join(
        self,
        first_header: MessageHeader,
        piece_offsets: Vec<u32>,
        pool: &BufferPool,
    ) -> (MessageHeader, JoinedMessage) {
        let size = u32::try_from(self.len().saturating_sub(HEADER_LEN)).unwrap_or(u32::MAX);
        let header = MessageHeader { more_fragments: false, size, ..first_header };
        let set_header = |bytes: &mut [u8]| {
            if let Some(start) = bytes.first_chunk_mut() {
                *start = header.encode();
            }
        };
        let bytes = match self {
            Self::Small(mut data) => {
                set_header(&mut data);
                data.freeze()
            }
            Self::Pooled(mut buffer, len) => {
                set_header(buffer.bytes_mut());
                pool.share(buffer).slice(..len)
            }
            Self::Lent(_) | Self::Streamed => Bytes::new(),
        };
        let affects_decoding =
            header.version == Version::V1_1 && piece_offsets.iter().any(|offset| offset % 8 != 4);
        let layout = affects_decoding.then(|| Box::new(MessageLayout::Fragments(piece_offsets)));
        (header, JoinedMessage { bytes, layout })
    }
}

fn fill(mut buffer: Buffer, bytes: &[u8]) -> Buffer {
    if let Some(to) = buffer.bytes_mut().get_mut(..bytes.len()) {
        to.copy_from_slice(bytes);
    }
    buffer
}

fn too_short(kind: MessageType) -> ProtocolError {
    ProtocolError::Malformed { kind, error: DecodeError::new(DecodeErrorKind::EndOfData, HEADER_LEN) }
}
