//! What a connection hands out: requests to serve, and replies.

mod head;
mod raw;
mod reply;
mod request;

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, DecodeLimits, Decoder, Rewrites};
use giop_codec::giop::{MessageHeader, MessageType, ReplyHeader, RequestHeader, RequestId, ServiceContexts};
use giop_codec::{ByteOrder, DecodeError, Version};

use crate::fragments::{Joined, Pieces};
use crate::limits::Limits;
use crate::pool::BufferPool;
use crate::receive::{DEPOSIT_MIN, HEADER_LEN};

pub(crate) use head::{LastHead, RequestError, RequestHead};
pub use raw::RawBody;
pub use reply::Reply;
pub(crate) use reply::ReplyHead;
pub use request::{Arguments, IncomingLocate, IncomingRequest};

/// What requests and replies have in common.
#[derive(Debug)]
struct Body {
    message: Bytes,
    /// See `Joined`.
    pieces: Option<Box<Pieces>>,
    limits: DecodeLimits,
    at: u32,
    version: Version,
    order: ByteOrder,
    code_sets: CodeSets,
    has_contexts: bool,
    shares: bool,
    reads_blocks: bool,
}

/// What a connection knows of all its messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) code_sets: CodeSets,
    pub(crate) max_depth: u16,
    pub(crate) max_decoded: usize,
    /// Whether what is decoded may be a view of the message.
    pub(crate) shares: bool,
    /// Whether the peer has said that it reads lists of blocks.
    pub(crate) reads_blocks: bool,
}

impl Terms {
    pub(crate) fn new(limits: &Limits, code_sets: CodeSets, shares: bool, reads_blocks: bool) -> Self {
        Self { code_sets, max_depth: limits.max_depth, max_decoded: limits.max_decoded, shares, reads_blocks }
    }

    #[inline]
    fn body(&self, header: MessageHeader, message: Joined, at: u32, has_contexts: bool) -> Body {
        Body {
            limits: DecodeLimits {
                depth: self.max_depth,
                alloc: self.max_decoded.max(message.len().saturating_mul(8)),
            },
            at,
            version: header.version,
            order: header.order,
            code_sets: self.code_sets,
            has_contexts,
            shares: self.shares,
            reads_blocks: self.reads_blocks,
            message: message.octets,
            pieces: message.pieces,
        }
    }
}

impl Body {
    #[inline]
    fn decoder(&self) -> Decoder<'_> {
        let d = if self.shares {
            Decoder::from_bytes(&self.message, self.order, self.version)
        } else {
            Decoder::new(&self.message, self.order, self.version)
        };
        let mut d = d.at(self.at as usize);
        d.set_code_sets(self.code_sets);
        d.set_limits(self.limits);
        match self.pieces.as_deref() {
            None => d,
            Some(Pieces::Fragments(starts)) => d.with_pieces(starts),
            Some(Pieces::Segments(segments)) => d.with_segments(segments),
        }
    }

    /// Decodes by `f`, twice where sequences of structs become views by rewriting their first elements in the message: see
    /// [`Rewrites`]. That takes a message of which nobody else has a view; else they are copied.
    fn decode<R>(
        &mut self,
        pool: &BufferPool,
        f: impl Fn(Decoder<'_>) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        let mut rewrites = Rewrites::default();
        let decoded = f(self.decoder().with_rewrites(&rewrites))?;
        if rewrites.is_empty() {
            return Ok(decoded);
        }
        drop(decoded);
        if pool.write_to(&mut self.message, |octets| rewrites.apply(octets)) {
            f(self.decoder().with_rewrites(&rewrites))
        } else {
            f(self.decoder())
        }
    }

    /// See [`Reply::pieces`].
    fn fragments(&self) -> &[u32] {
        match self.pieces.as_deref() {
            Some(Pieces::Fragments(starts)) => starts,
            _ => &[],
        }
    }

    /// See [`IncomingRequest::detach`].
    fn detach(&mut self) {
        if !self.is_large() {
            self.message = Bytes::copy_from_slice(&self.message);
        }
    }

    /// Whether it is so large that its buffers should be free as soon as it is decoded.
    fn is_large(&self) -> bool {
        self.message.len() >= DEPOSIT_MIN || matches!(self.pieces.as_deref(), Some(Pieces::Segments(_)))
    }

    /// The contexts, found by decoding the header again: they are asked for more seldom than they are there.
    fn contexts(&self, kind: MessageType) -> ServiceContexts<'_> {
        if self.has_contexts {
            contexts_at(&self.message, self.order, self.version, kind)
        } else {
            ServiceContexts::EMPTY
        }
    }
}

/// The service contexts of a request or reply.
pub(crate) fn contexts_of<'a>(header: &MessageHeader, octets: &'a [u8]) -> ServiceContexts<'a> {
    contexts_at(octets, header.order, header.version, header.kind)
}

fn contexts_at(octets: &[u8], order: ByteOrder, version: Version, kind: MessageType) -> ServiceContexts<'_> {
    let mut d = Decoder::new(octets, order, version).at(HEADER_LEN);
    let contexts = match kind {
        MessageType::Request => RequestHeader::decode(&mut d).map(|header| header.contexts),
        _ => ReplyHeader::decode(&mut d).map(|header| header.contexts),
    };
    contexts.unwrap_or_default()
}

#[inline]
fn decoder<'a>(header: &MessageHeader, octets: &'a [u8]) -> Decoder<'a> {
    Decoder::new(octets, header.order, header.version).at(HEADER_LEN)
}

/// The first word behind the message header: the id in all messages but requests and replies before GIOP 1.2.
#[inline]
pub(crate) fn word(order: ByteOrder, octets: &[u8]) -> Option<RequestId> {
    let word = octets.get(HEADER_LEN..)?.first_chunk::<4>()?;
    Some(RequestId(match order {
        ByteOrder::Big => u32::from_be_bytes(*word),
        ByteOrder::Little => u32::from_le_bytes(*word),
    }))
}

/// Where `inner`, a view of `whole`, lies in it.
#[inline]
fn place_of(whole: &[u8], inner: &[u8]) -> (u32, u32) {
    (narrow(inner.as_ptr().addr().saturating_sub(whole.as_ptr().addr())), narrow(inner.len()))
}

#[inline]
fn part(message: &[u8], at: u32, len: u32) -> &[u8] {
    message.get(at as usize..).and_then(|rest| rest.get(..len as usize)).unwrap_or_default()
}

/// An offset of a header part. They all lie far below 4 GiB; what does not would be found to be empty.
#[inline]
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
