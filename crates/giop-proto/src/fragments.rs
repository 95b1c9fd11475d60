//! Messages that come in pieces.
//!
//! The pieces are copied, once, behind each other into one buffer whose octet 0 is the first message header; the headers
//! of the others are left out. In GIOP 1.2 all pieces but the last are multiples of 8 octets, so offsets in the joined
//! message have the alignment that the sender gave them. In GIOP 1.1 they need not: see [`Joined::pieces`].

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType, RequestId};
use giop_codec::{DecodeError, DecodeErrorKind, Version};

use crate::error::ProtocolError;
use crate::limits::Limits;
use crate::message::{RequestHead, word};
use crate::pool::{Buffer, BufferPool};
use crate::receive::{HEADER_LEN, OVERSIZED_START};

/// Up to this size the pieces are gathered in memory of their own; then in a pooled buffer.
const SMALL: usize = 32 * 1024;

/// Where the payload of a GIOP 1.1 fragment starts.
const PAYLOAD_1_1: usize = HEADER_LEN;

/// Where the payload of a GIOP 1.2 fragment starts: behind the request id.
const PAYLOAD_1_2: usize = HEADER_LEN + 4;

/// The messages of which pieces are missing.
#[derive(Debug)]
pub(crate) struct Fragments {
    pool: Arc<BufferPool>,
    open: Vec<Open>,
    /// Octets of all of them.
    octets: usize,
}

/// A message whose last piece has come.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) octets: Bytes,
    /// Where the second and later pieces of a GIOP 1.1 message start, if any of them starts elsewhere than at phase 4
    /// modulo 8.
    ///
    /// There a sender that aligns values in each fragment by itself, as omniORB does, and one that aligns through the
    /// whole message differ. Octets and characters come out right in both cases.
    pub(crate) pieces: Option<Box<[u32]>>,
}

/// What became of a fragment.
#[derive(Debug)]
pub(crate) enum Added {
    /// More is to come, or the message is thrown away.
    Kept,
    /// It continues no message.
    Stray,
    /// It was the last.
    Whole(MessageHeader, Joined),
    /// Its message is too large from now on; these are its first octets.
    Overflow(MessageHeader, Bytes),
}

#[derive(Debug)]
struct Open {
    /// Of the first piece.
    header: MessageHeader,
    /// GIOP 1.1 fragments do not say what they belong to: there is only one message at a time.
    id: Option<RequestId>,
    since: Instant,
    /// `None`: it is thrown away.
    data: Option<Data>,
    pieces: Vec<u32>,
}

#[derive(Debug)]
enum Data {
    Small(BytesMut),
    Pooled(Buffer, usize),
}

impl Joined {
    /// A message that came in one piece.
    #[inline]
    pub(crate) fn whole(octets: Bytes) -> Self {
        Self { octets, pieces: None }
    }
}

impl Fragments {
    /// Nothing yet; the pieces of large messages are gathered in buffers of the pool.
    pub(crate) fn new(pool: Arc<BufferPool>) -> Self {
        Self { pool, open: Vec::new(), octets: 0 }
    }

    /// Whether nothing is open.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Opens a message by its first piece.
    pub(crate) fn start(
        &mut self,
        header: MessageHeader,
        octets: &[u8],
        discard: bool,
        now: Instant,
        limits: &Limits,
    ) -> Result<(), ProtocolError> {
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
        let data = if discard {
            None
        } else {
            self.charge(octets.len(), limits)?;
            Some(Data::Small(BytesMut::from(octets)))
        };
        self.open.push(Open { header, id, since: now, data, pieces: Vec::new() });
        Ok(())
    }

    /// Adds a fragment to the message it belongs to.
    pub(crate) fn add(
        &mut self,
        header: MessageHeader,
        octets: &[u8],
        limits: &Limits,
    ) -> Result<Added, ProtocolError> {
        let (id, payload) = match header.version {
            Version::V1_2 => {
                let id = word(header.order, octets).ok_or_else(|| too_short(MessageType::Fragment))?;
                (Some(id), octets.get(PAYLOAD_1_2..).unwrap_or_default())
            }
            _ => (None, octets.get(PAYLOAD_1_1..).unwrap_or_default()),
        };
        let Some(at) = self.open.iter().position(|open| open.id == id) else {
            // A fragment that names no message leaves no doubt that the sender is lost.
            return if id.is_some() { Ok(Added::Stray) } else { Err(ProtocolError::FragmentOrder) };
        };
        let Some(open) = self.open.get_mut(at) else { return Ok(Added::Stray) };
        if open.header.version != header.version || open.header.order != header.order {
            return Err(ProtocolError::FragmentMismatch);
        }
        let Some(data) = &mut open.data else {
            if !header.more_fragments {
                self.open.swap_remove(at);
            }
            return Ok(Added::Kept);
        };
        let total = data.octets().len() + payload.len();
        if total > limits.max_message_size {
            return self.overflow(at, total, header.more_fragments, limits);
        }
        open.pieces.push(u32::try_from(data.octets().len()).unwrap_or(u32::MAX));
        data.push(payload, &self.pool);
        self.charge(payload.len(), limits)?;
        if header.more_fragments {
            return Ok(Added::Kept);
        }
        let open = self.open.swap_remove(at);
        Ok(self.join(open))
    }

    /// Throws a message away whose sender gave it up. Says whether there was one.
    pub(crate) fn cancel(&mut self, id: RequestId) -> bool {
        let found = self.open.iter().position(|open| open.is_request(id));
        if let Some(data) = found.and_then(|at| self.open.swap_remove(at).data) {
            self.drop_data(data);
        }
        found.is_some()
    }

    /// When the first of them takes too long.
    pub(crate) fn due(&self, limits: &Limits) -> Option<Instant> {
        self.open.iter().map(|open| open.since + limits.message_time(open.len())).min()
    }

    /// Throws everything away.
    pub(crate) fn clear(&mut self) {
        while let Some(open) = self.open.pop() {
            if let Some(data) = open.data {
                self.drop_data(data);
            }
        }
    }

    fn drop_data(&mut self, data: Data) {
        self.octets -= data.octets().len();
        if let Data::Pooled(buffer, _) = data {
            self.pool.give_back(buffer);
        }
    }

    fn charge(&mut self, octets: usize, limits: &Limits) -> Result<(), ProtocolError> {
        self.octets += octets;
        if self.octets > limits.max_fragment_memory {
            return Err(ProtocolError::FragmentMemory { limit: limits.max_fragment_memory });
        }
        Ok(())
    }

    /// A message got larger than the endpoint takes. A GIOP 1.2 request can be answered, and what is still to come of it
    /// thrown away.
    #[cold]
    fn overflow(
        &mut self,
        at: usize,
        size: usize,
        more: bool,
        limits: &Limits,
    ) -> Result<Added, ProtocolError> {
        let too_large = ProtocolError::TooLarge { size, limit: limits.max_message_size };
        let open = self.open.get_mut(at).ok_or(too_large)?;
        let data = open.data.take().ok_or(too_large)?;
        let header = open.header;
        let start = Bytes::copy_from_slice(data.octets().get(..OVERSIZED_START).unwrap_or_default());
        self.drop_data(data);
        if header.kind != MessageType::Request || header.version != Version::V1_2 {
            return Err(too_large);
        }
        let overflow = Added::Overflow(header, start);
        if !more {
            self.open.swap_remove(at);
        }
        Ok(overflow)
    }

    fn join(&mut self, open: Open) -> Added {
        let Open { header, data, pieces, .. } = open;
        let Some(data) = data else { return Added::Kept };
        let total = data.octets().len();
        self.octets -= total;
        let size = u32::try_from(total - HEADER_LEN.min(total)).unwrap_or(u32::MAX);
        let header = MessageHeader { more_fragments: false, size, ..header };
        let told = header.version == Version::V1_1 && pieces.iter().any(|at| at % 8 != 4);
        let pieces = told.then(|| pieces.into_boxed_slice());
        Added::Whole(header, Joined { octets: data.join(&header, &self.pool), pieces })
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Open {
    fn len(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.octets().len())
    }

    /// Whether it is the request with that id.
    fn is_request(&self, id: RequestId) -> bool {
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
        }
    }

    /// Copies octets behind those that are there. Doubling the buffer copies each of them once more on average.
    fn push(&mut self, more: &[u8], pool: &BufferPool) {
        let need = self.octets().len() + more.len();
        let grown = match self {
            Self::Small(data) if need <= SMALL => return data.extend_from_slice(more),
            Self::Small(data) => fill(pool.take(2 * need), data),
            Self::Pooled(buffer, len) if need > buffer.capacity() => {
                fill(pool.take(2 * need), buffer.octets().get(..*len).unwrap_or_default())
            }
            Self::Pooled(buffer, len) => {
                if let Some(to) = buffer.octets_mut().get_mut(*len..need) {
                    to.copy_from_slice(more);
                    *len = need;
                }
                return;
            }
        };
        if let Self::Pooled(old, _) = std::mem::replace(self, grown) {
            pool.give_back(old);
        }
        self.push(more, pool);
    }

    /// The whole message under its final header.
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
        }
    }
}

fn fill(mut buffer: Buffer, octets: &[u8]) -> Data {
    if let Some(to) = buffer.octets_mut().get_mut(..octets.len()) {
        to.copy_from_slice(octets);
    }
    Data::Pooled(buffer, octets.len())
}

fn too_short(kind: MessageType) -> ProtocolError {
    ProtocolError::Malformed { kind, error: DecodeError::new(DecodeErrorKind::EndOfData, HEADER_LEN) }
}
