//! The messages that a connection hands out: requests to serve, and replies.

mod head;
mod raw;
mod reply;
mod request;

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, DecodeLimits, Decoder, Rewrites};
use giop_codec::giop::{MessageHeader, MessageType, ReplyHeader, RequestHeader, ServiceContexts};
use giop_codec::{ByteOrder, DecodeError, Version};

use crate::frame::{DEPOSIT_MIN, HEADER_LEN, JoinedMessage, MessageLayout};
use crate::limits::Limits;
use crate::pool::BufferPool;

pub(crate) use head::{LastHead, RequestError, RequestHead};
pub use raw::RawBody;
pub use reply::Reply;
pub(crate) use reply::ReplyHead;
pub use request::{Arguments, IncomingLocate, IncomingRequest};

/// The common part of requests and replies.
#[derive(Debug)]
struct Body {
    message: Bytes,
    /// See `JoinedMessage`.
    pieces: Option<Box<MessageLayout>>,
    limits: DecodeLimits,
    at: u32,
    version: Version,
    order: ByteOrder,
    code_sets: CodeSets,
    has_contexts: bool,
    shares: bool,
    reads_blocks: bool,
}

/// The settings that apply to all messages of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageSettings {
    pub(crate) code_sets: CodeSets,
    pub(crate) max_depth: u16,
    pub(crate) max_decoded: usize,
    /// True if decoded values may be views of the message.
    pub(crate) shares: bool,
    /// True if the peer has announced that it reads lists of blocks.
    pub(crate) reads_blocks: bool,
}

impl MessageSettings {
    pub(crate) fn new(limits: &Limits, code_sets: CodeSets, shares: bool, reads_blocks: bool) -> Self {
        Self { code_sets, max_depth: limits.max_depth, max_decoded: limits.max_decoded, shares, reads_blocks }
    }

    #[inline]
    fn body(&self, header: MessageHeader, message: JoinedMessage, at: u32, has_contexts: bool) -> Body {
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
            Some(MessageLayout::Fragments(starts)) => d.with_pieces(starts),
            Some(MessageLayout::Segments(segments)) => d.with_segments(segments),
        }
    }

    /// Decodes by `f`. `f` runs twice if sequences of structs become views by rewriting their first elements
    /// in the message: see [`Rewrites`]. That requires that no other view of the message exists; otherwise
    /// they are copied.
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
            Some(MessageLayout::Fragments(starts)) => starts,
            _ => &[],
        }
    }

    /// See [`IncomingRequest::detach`].
    fn detach(&mut self) {
        if !self.is_large() {
            self.message = Bytes::copy_from_slice(&self.message);
        }
    }

    /// Returns whether it is so large that its buffers should be free as soon as it is decoded.
    fn is_large(&self) -> bool {
        self.message.len() >= DEPOSIT_MIN
            || matches!(self.pieces.as_deref(), Some(MessageLayout::Segments(_)))
    }

    /// Returns the contexts, found by decoding the header again. They are read less often than they are
    /// present.
    fn contexts(&self, kind: MessageType) -> ServiceContexts<'_> {
        if self.has_contexts {
            contexts_at(&self.message, self.order, self.version, kind)
        } else {
            ServiceContexts::EMPTY
        }
    }
}

/// Returns the service contexts of a request or reply.
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

/// Returns the offset and length of `inner`, a view of `whole`.
#[inline]
fn place_of(whole: &[u8], inner: &[u8]) -> (u32, u32) {
    (narrow(inner.as_ptr().addr().saturating_sub(whole.as_ptr().addr())), narrow(inner.len()))
}

#[inline]
fn part(message: &[u8], at: u32, len: u32) -> &[u8] {
    message.get(at as usize..).and_then(|rest| rest.get(..len as usize)).unwrap_or_default()
}

/// Narrows an offset of a header part. All such offsets are far below 4 GiB; a larger one would result in an
/// empty part.
#[inline]
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
