//! Messages received in pieces.
//!
//! The pieces are placed one after the other in one buffer that starts with the first message header. The
//! headers of the other pieces are left out. Large pieces of GIOP 1.2 are read directly into their final
//! position (see [`Fragments::lend`]). Other pieces are copied once.
//!
//! In GIOP 1.2 all pieces but the last are multiples of 8 bytes. Offsets in the joined message therefore have
//! the alignment that the sender intended. This does not hold in GIOP 1.1: see [`JoinedMessage::pieces`].

mod streamed;

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType, RequestId};
use giop_codec::{DecodeError, DecodeErrorKind, Version};

use crate::error::ProtocolError;
use crate::frame::{HEADER_LEN, JoinedMessage, MessageLayout, OVERSIZED_START, PIECE_HEADER_LEN, word};
use crate::limits::{Limits, later};
use crate::message::RequestHead;
use crate::pool::{Buffer, BufferPool};

/// The maximum size of a message that is gathered in memory of its own. Larger ones use a pooled buffer.
const SMALL: usize = 32 * 1024;

/// The offset of the payload in a GIOP 1.1 fragment.
const PAYLOAD_1_1: usize = HEADER_LEN;

/// The offset of the payload in a GIOP 1.2 fragment: after the request id.
const PAYLOAD_1_2: usize = PIECE_HEADER_LEN;

/// The incomplete messages.
#[derive(Debug)]
pub(crate) struct Fragments {
    pool: Arc<BufferPool>,
    open: Vec<IncompleteMessage>,
    /// Bytes of all incomplete messages.
    octets: usize,
    /// The part of these bytes that is in memory of its own, as charged to the pool.
    outside: usize,
    /// The size of the last large message. The next one is expected to have the same size.
    expect: usize,
    copied: u64,
}

/// The first piece of a message.
#[derive(Debug)]
pub(crate) enum FirstPiece<'a> {
    /// Bytes to be copied.
    Octets(&'a [u8]),
    /// A buffer of its own, and the number of bytes in it.
    Placed(Buffer, usize),
    /// Bytes to be discarded, with all that follow.
    Unwanted(&'a [u8]),
    /// Already handed out. The following pieces go to the receiver's stream.
    Streamed(&'a [u8]),
}

/// The result of adding a fragment.
#[derive(Debug)]
pub(crate) enum FragmentOutcome {
    /// More fragments follow, or the message is discarded.
    Kept,
    /// It continues no message.
    Stray,
    /// It was the last fragment.
    Whole(MessageHeader, JoinedMessage),
    /// It made its message too large. Holds the first bytes of the message.
    Overflow(MessageHeader, Bytes),
}

#[derive(Debug)]
struct IncompleteMessage {
    /// The header of the first piece.
    header: MessageHeader,
    /// The id of the fragments. GIOP 1.1 fragments have none, so there is only one such message at a time.
    id: Option<RequestId>,
    since: Instant,
    /// `None` if the message is discarded.
    data: Option<Data>,
    pieces: Vec<u32>,
    /// True for a request that may be handed out before all of its pieces have arrived.
    streams: bool,
    /// The id in the header of the request that was handed out.
    request: Option<RequestId>,
    /// Set if the message was handed out and is discarded: the number of bytes that may still arrive, which
    /// determines its timeout.
    thrown: Option<usize>,
}

#[derive(Debug)]
enum Data {
    Small(BytesMut),
    Pooled(Buffer, usize),
    /// The buffer is with the receiver, which reads a fragment to the position after these bytes.
    Lent(usize),
    /// The message was handed out. Its pieces go to the receiver's stream.
    Streamed,
}

impl Fragments {
    /// Creates an empty set. The pieces of large messages are gathered in buffers of the pool.
    pub(crate) fn new(pool: Arc<BufferPool>) -> Self {
        Self { pool, open: Vec::new(), octets: 0, outside: 0, expect: 0, copied: 0 }
    }

    /// Returns whether no message is incomplete.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the number of bytes that were copied so far.
    pub(crate) fn copied(&self) -> u64 {
        self.copied
    }

    /// Adds a message by its first piece.
    pub(crate) fn start(
        &mut self,
        header: MessageHeader,
        first: FirstPiece<'_>,
        now: Instant,
        limits: &Limits,
    ) -> Result<(), ProtocolError> {
        let octets = match &first {
            FirstPiece::Octets(octets) | FirstPiece::Unwanted(octets) | FirstPiece::Streamed(octets) => {
                octets
            }
            FirstPiece::Placed(buffer, len) => buffer.octets().get(..*len).unwrap_or_default(),
        };
        let opened = self.may_open(&header, octets, limits);
        let charged = match &first {
            FirstPiece::Unwanted(_) | FirstPiece::Streamed(_) => 0,
            FirstPiece::Octets(_) | FirstPiece::Placed(..) => octets.len(),
        };
        let id = match opened.and_then(|id| self.charge(charged, limits).map(|()| id)) {
            Ok(id) => id,
            Err(error) => {
                if let FirstPiece::Placed(buffer, _) = first {
                    self.pool.give_back(buffer);
                }
                return Err(error);
            }
        };
        let data = match first {
            FirstPiece::Octets(octets) => {
                self.copied += octets.len() as u64;
                Some(Data::Small(BytesMut::from(octets)))
            }
            FirstPiece::Placed(buffer, len) => Some(Data::Pooled(buffer, len)),
            FirstPiece::Unwanted(_) => None,
            FirstPiece::Streamed(_) => Some(Data::Streamed),
        };
        self.open.push(IncompleteMessage {
            header,
            id,
            since: now,
            data,
            pieces: Vec::new(),
            streams: false,
            request: None,
            thrown: None,
        });
        self.settle();
        Ok(())
    }

    fn may_open(
        &self,
        header: &MessageHeader,
        octets: &[u8],
        limits: &Limits,
    ) -> Result<Option<RequestId>, ProtocolError> {
        if !header.kind.may_fragment(header.version) {
            return Err(ProtocolError::NotFragmentable(header.kind));
        }
        let id = match header.version {
            Version::V1_2 => Some(word(header.order, octets).ok_or_else(|| too_short(header.kind))?),
            _ => None,
        };
        if self.open.iter().any(|open| open.id == id) {
            return Err(ProtocolError::FragmentOrder);
        }
        if self.open.len() >= limits.max_fragmented {
            return Err(ProtocolError::TooManyFragmented { limit: limits.max_fragmented });
        }
        Ok(id)
    }

    /// Adds a fragment to its message. For a fragment that is skipped, `octets` has only the headers.
    pub(crate) fn add(
        &mut self,
        header: MessageHeader,
        octets: &[u8],
        limits: &Limits,
    ) -> Result<FragmentOutcome, ProtocolError> {
        let (id, start) = match header.version {
            Version::V1_2 => {
                let id = word(header.order, octets).ok_or_else(|| too_short(MessageType::Fragment))?;
                (Some(id), PAYLOAD_1_2)
            }
            _ => (None, PAYLOAD_1_1),
        };
        let payload = octets.get(start..).unwrap_or_default();
        let size = (HEADER_LEN + header.size as usize).saturating_sub(start);
        let Some(at) = self.open.iter().position(|open| open.id == id) else {
            // A GIOP 1.1 fragment without a message shows that the sender's state is wrong.
            return if id.is_some() { Ok(FragmentOutcome::Stray) } else { Err(ProtocolError::FragmentOrder) };
        };
        let Some(open) = self.open.get_mut(at) else { return Ok(FragmentOutcome::Stray) };
        open.check(&header)?;
        let Some(data) = &mut open.data else {
            if !header.more_fragments {
                self.open.swap_remove(at);
            }
            return Ok(FragmentOutcome::Kept);
        };
        let total = data.len().saturating_add(size);
        if total > limits.max_message_size || payload.len() < size {
            return self.overflow(at, total, header.more_fragments, limits);
        }
        open.pieces.push(u32::try_from(data.len()).unwrap_or(u32::MAX));
        self.copied += data.push(payload, &self.pool, self.expect);
        self.settle();
        self.charge(payload.len(), limits)?;
        if header.more_fragments {
            return Ok(FragmentOutcome::Kept);
        }
        let open = self.open.swap_remove(at);
        Ok(self.join(open))
    }

    /// Lends the buffer of the message to which a partly received GIOP 1.2 fragment belongs. The rest of the
    /// fragment is then read directly to the position after the bytes that are there. The buffer is returned
    /// by [`placed`](Self::placed) or, if there is no memory to continue, by [`take_back`](Self::take_back).
    ///
    /// Returns `None` if the fragment is to be skipped and then [added](Self::add), which returns the reason.
    pub(crate) fn lend(
        &mut self,
        header: &MessageHeader,
        id: RequestId,
        limits: &Limits,
    ) -> Result<Option<(Buffer, usize)>, ProtocolError> {
        let size = (header.size as usize).saturating_sub(PAYLOAD_1_2 - HEADER_LEN);
        let Some(open) = self.open.iter_mut().find(|open| open.id == Some(id)) else { return Ok(None) };
        open.check(header)?;
        let Some(data) = &mut open.data else { return Ok(None) };
        let len = data.len();
        if len.saturating_add(size) > limits.max_message_size {
            return Ok(None);
        }
        if self.octets.saturating_add(size) > limits.max_fragment_memory {
            return Err(ProtocolError::FragmentMemory { limit: limits.max_fragment_memory });
        }
        let buffer = match std::mem::replace(data, Data::Lent(len)) {
            Data::Pooled(buffer, _) => buffer,
            Data::Small(small) => {
                self.copied += len as u64;
                fill(self.pool.take(len.max(self.expect)), &small)
            }
            Data::Lent(_) | Data::Streamed => return Ok(None),
        };
        self.settle();
        Ok(Some((buffer, len)))
    }

    /// Takes back what was lent, unchanged.
    pub(crate) fn take_back(&mut self, id: RequestId, buffer: Buffer) {
        match self.lent(id) {
            Some((_, data)) => *data = Data::Pooled(buffer, data.len()),
            None => self.pool.give_back(buffer),
        }
    }

    /// Takes back what was lent, with the fragment in it.
    pub(crate) fn placed(
        &mut self,
        header: &MessageHeader,
        buffer: Buffer,
        limits: &Limits,
    ) -> Result<FragmentOutcome, ProtocolError> {
        let size = (header.size as usize).saturating_sub(PAYLOAD_1_2 - HEADER_LEN);
        let lent = self.open.iter().position(|open| matches!(open.data, Some(Data::Lent(_))));
        let Some((at, open)) = lent.and_then(|at| Some((at, self.open.get_mut(at)?))) else {
            self.pool.give_back(buffer);
            return Ok(FragmentOutcome::Stray);
        };
        open.data = Some(Data::Pooled(buffer, open.len() + size));
        self.charge(size, limits)?;
        if header.more_fragments {
            return Ok(FragmentOutcome::Kept);
        }
        let open = self.open.swap_remove(at);
        Ok(self.join(open))
    }

    fn lent(&mut self, id: RequestId) -> Option<(usize, &mut Data)> {
        let open = self.open.iter_mut().find(|open| open.id == Some(id))?;
        match &mut open.data {
            Some(data @ Data::Lent(_)) => Some((data.len(), data)),
            _ => None,
        }
    }

    /// Discards a message that its sender cancelled. Returns whether there was one.
    pub(crate) fn cancel(&mut self, id: RequestId) -> bool {
        let found = self.open.iter().position(|open| open.is_request(id));
        if let Some(data) = found.and_then(|at| self.open.swap_remove(at).data) {
            self.drop_data(data);
        }
        found.is_some()
    }

    /// Returns the earliest time at which a message takes too long.
    pub(crate) fn due(&self, limits: &Limits) -> Option<Instant> {
        let timed = self.open.iter().filter(|open| !matches!(open.data, Some(Data::Streamed)));
        let due = |open: &IncompleteMessage| {
            later(open.since, limits.message_time(open.len() + open.thrown.unwrap_or(0)))
        };
        timed.map(due).min()
    }

    /// Discards everything.
    pub(crate) fn clear(&mut self) {
        while let Some(open) = self.open.pop() {
            if let Some(data) = open.data {
                self.drop_data(data);
            }
        }
    }

    fn drop_data(&mut self, data: Data) {
        self.octets -= data.len();
        self.settle();
        if let Data::Pooled(buffer, _) = data {
            self.pool.give_back(buffer);
        }
    }

    /// Reports the current size of the memory outside of pooled buffers to the pool.
    fn settle(&mut self) {
        let small = |open: &IncompleteMessage| match &open.data {
            Some(Data::Small(data)) => data.capacity(),
            _ => 0,
        };
        let outside = self.open.iter().map(small).sum();
        if outside > self.outside {
            self.pool.charge_outside(outside - self.outside);
        } else {
            self.pool.discharge_outside(self.outside - outside);
        }
        self.outside = outside;
    }

    fn charge(&mut self, octets: usize, limits: &Limits) -> Result<(), ProtocolError> {
        self.octets += octets;
        if self.octets > limits.max_fragment_memory {
            return Err(ProtocolError::FragmentMemory { limit: limits.max_fragment_memory });
        }
        Ok(())
    }

    /// Handles a message that exceeds the size limit. A GIOP 1.2 request can be answered, and its remaining
    /// fragments discarded.
    #[cold]
    fn overflow(
        &mut self,
        at: usize,
        size: usize,
        more: bool,
        limits: &Limits,
    ) -> Result<FragmentOutcome, ProtocolError> {
        let too_large = ProtocolError::TooLarge { size, limit: limits.max_message_size };
        let open = self.open.get_mut(at).ok_or(too_large)?;
        let data = open.data.take().ok_or(too_large)?;
        let header = open.header;
        let start = Bytes::copy_from_slice(data.octets().get(..OVERSIZED_START).unwrap_or_default());
        self.drop_data(data);
        if header.kind != MessageType::Request || header.version != Version::V1_2 {
            return Err(too_large);
        }
        let overflow = FragmentOutcome::Overflow(header, start);
        if !more {
            self.open.swap_remove(at);
        }
        Ok(overflow)
    }

    fn join(&mut self, open: IncompleteMessage) -> FragmentOutcome {
        let IncompleteMessage { header, data, pieces, .. } = open;
        let Some(data) = data else { return FragmentOutcome::Kept };
        let total = data.len();
        self.octets -= total;
        self.settle();
        self.expect = if total > SMALL { total } else { 0 };
        let size = u32::try_from(total - HEADER_LEN.min(total)).unwrap_or(u32::MAX);
        let header = MessageHeader { more_fragments: false, size, ..header };
        let pieces = told(&header, pieces);
        FragmentOutcome::Whole(header, JoinedMessage { octets: data.join(&header, &self.pool), pieces })
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

    /// Checks that a fragment with that header may belong to this message.
    fn check(&self, header: &MessageHeader) -> Result<(), ProtocolError> {
        if self.header.version != header.version || self.header.order != header.order {
            return Err(ProtocolError::FragmentMismatch);
        }
        Ok(())
    }

    /// Returns whether it is the request with that id.
    fn is_request(&self, id: RequestId) -> bool {
        if let Some(request) = self.request {
            return request == id;
        }
        match (self.header.kind, self.id, &self.data) {
            (MessageType::Request | MessageType::LocateRequest, Some(own), _) => own == id,
            (MessageType::Request, None, Some(data)) => {
                RequestHead::decode(&self.header, data.octets()).is_ok_and(|head| head.id == id)
            }
            _ => false,
        }
    }
}

impl Data {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Small(data) => data,
            Self::Pooled(buffer, len) => buffer.octets().get(..*len).unwrap_or_default(),
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

    /// Appends bytes. Returns how many it copied. A buffer that grows by doubling copies each byte once more
    /// on average. A buffer of the size of the previous message, `expect`, mostly avoids that.
    fn push(&mut self, more: &[u8], pool: &BufferPool, expect: usize) -> u64 {
        let (len, copied) = (self.len(), more.len() as u64);
        let need = len + more.len();
        if let Self::Small(data) = self
            && need <= SMALL
        {
            data.extend_from_slice(more);
            return copied;
        }
        let moved = match self {
            Self::Pooled(buffer, _) if need <= buffer.capacity() => 0,
            _ => {
                let grown = fill(pool.take((2 * need).max(expect)), self.octets());
                if let Self::Pooled(old, _) = std::mem::replace(self, Self::Pooled(grown, len)) {
                    pool.give_back(old);
                }
                len as u64
            }
        };
        if let Self::Pooled(buffer, filled) = self
            && let Some(to) = buffer.room(len..need)
        {
            to.copy_from_slice(more);
            *filled = need;
        }
        copied + moved
    }

    /// Returns the whole message under its final header.
    fn join(self, header: &MessageHeader, pool: &BufferPool) -> Bytes {
        let patch = |octets: &mut [u8]| {
            if let Some(start) = octets.first_chunk_mut() {
                *start = header.encode();
            }
        };
        match self {
            Self::Small(mut data) => {
                patch(&mut data);
                data.freeze()
            }
            Self::Pooled(mut buffer, len) => {
                patch(buffer.octets_mut());
                pool.share(buffer).slice(..len)
            }
            Self::Lent(_) | Self::Streamed => Bytes::new(),
        }
    }
}

/// Returns the offsets of the pieces if they affect decoding.
fn told(header: &MessageHeader, pieces: Vec<u32>) -> Option<Box<MessageLayout>> {
    let told = header.version == Version::V1_1 && pieces.iter().any(|at| at % 8 != 4);
    told.then(|| Box::new(MessageLayout::Fragments(pieces)))
}

fn fill(mut buffer: Buffer, octets: &[u8]) -> Buffer {
    if let Some(to) = buffer.octets_mut().get_mut(..octets.len()) {
        to.copy_from_slice(octets);
    }
    buffer
}

fn too_short(kind: MessageType) -> ProtocolError {
    ProtocolError::Malformed { kind, error: DecodeError::new(DecodeErrorKind::EndOfData, HEADER_LEN) }
}
