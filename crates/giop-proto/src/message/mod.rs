//! The messages that a connection hands out: requests to serve, and replies.

mod head;
mod raw;
mod reply;
mod request;

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, DecodeLimits, Decoder, Rewrites};
use giop_codec::giop::{MessageHeader, MessageType, ReplyHeader, RequestHeader, ServiceContexts};
use giop_codec::{ByteOrder, DecodeError, Version};

use crate::frame::{HEADER_LEN, JoinedMessage, MIN_DEPOSIT_SIZE, MessageLayout};
use crate::limits::Limits;
use crate::pool::BufferPool;

pub(crate) use head::{LastHead, RequestError, RequestHead};
pub use raw::RawBody;
pub use reply::Reply;
pub(crate) use reply::ReplyHead;
pub use request::{Arguments, IncomingLocate, IncomingRequest};

#[derive(Debug)]
struct Body {
    /// The whole message, except for parts that `layout` describes.
    message: Bytes,
    layout: Option<Box<MessageLayout>>,
    limits: DecodeLimits,
    at: u32,
    version: Version,
    order: ByteOrder,
    code_sets: CodeSets,
    has_contexts: bool,
    may_share: bool,
    reads_blocks: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageSettings {
    pub(crate) code_sets: CodeSets,
    pub(crate) max_depth: u16,
    pub(crate) max_decoded: usize,
    /// True if decoded values may be views of the message.
    pub(crate) may_share: bool,
    /// True if the peer has announced that it accepts lists of the blocks of bulk data in a message.
    pub(crate) reads_blocks: bool,
}

impl MessageSettings {
    pub(crate) fn new(limits: &Limits, code_sets: CodeSets, may_share: bool, reads_blocks: bool) -> Self {
        let (max_depth, max_decoded) = (limits.max_depth, limits.max_decoded);
        Self { code_sets, max_depth, max_decoded, may_share, reads_blocks }
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
            may_share: self.may_share,
            reads_blocks: self.reads_blocks,
            message: message.bytes,
            layout: message.layout,
        }
    }
}

impl Body {
    #[inline]
    fn decoder(&self) -> Decoder<'_> {
        let d = if self.may_share {
            Decoder::from_bytes(&self.message, self.order, self.version)
        } else {
            Decoder::new(&self.message, self.order, self.version)
        };
        let mut d = d.at(self.at as usize);
        d.set_code_sets(self.code_sets);
        d.set_limits(self.limits);
        match self.layout.as_deref() {
            None => d,
            Some(MessageLayout::Fragments(starts)) => d.with_fragments(starts),
            Some(MessageLayout::Segments(segments)) => d.with_segments(segments),
        }
    }

    /// Decodes the body by `f`. If sequences of structs can become views of the message, their first elements
    /// are rewritten (see [`Rewrites`]), and `f` runs again. If the message has other views, nothing is
    /// rewritten, and the sequences are copied.
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
        if pool.write_to(&mut self.message, |bytes| rewrites.apply(bytes)) {
            f(self.decoder().with_rewrites(&rewrites))
        } else {
            f(self.decoder())
        }
    }

    /// Returns the offsets of the later fragments of a GIOP 1.1 message, if they affect decoding.
    fn fragment_offsets(&self) -> &[u32] {
        match self.layout.as_deref() {
            Some(MessageLayout::Fragments(starts)) => starts,
            _ => &[],
        }
    }

    fn detach(&mut self) {
        if !self.is_large() {
            self.message = Bytes::copy_from_slice(&self.message);
        }
    }

    /// Returns whether the message has buffers of its own, which should be released early.
    fn is_large(&self) -> bool {
        self.message.len() >= MIN_DEPOSIT_SIZE
            || matches!(self.layout.as_deref(), Some(MessageLayout::Segments(_)))
    }

    /// Returns the service contexts. They are rarely needed, so the header is decoded again at each call.
    fn contexts(&self, kind: MessageType) -> ServiceContexts<'_> {
        if self.has_contexts {
            contexts_at(&self.message, self.order, self.version, kind)
        } else {
            ServiceContexts::EMPTY
        }
    }
}

pub(crate) fn contexts_at(
    bytes: &[u8],
    order: ByteOrder,
    version: Version,
    kind: MessageType,
) -> ServiceContexts<'_> {
    let mut d = Decoder::new(bytes, order, version).at(HEADER_LEN);
    let contexts = match kind {
        MessageType::Request => RequestHeader::decode(&mut d).map(|header| header.contexts),
        _ => ReplyHeader::decode(&mut d).map(|header| header.contexts),
    };
    contexts.unwrap_or_default()
}

#[inline]
fn decoder<'a>(header: &MessageHeader, bytes: &'a [u8]) -> Decoder<'a> {
    Decoder::new(bytes, header.order, header.version).at(HEADER_LEN)
}

/// Returns the offset and length of `inner` in `whole`, of which it is a view.
#[inline]
fn locate_part(whole: &[u8], inner: &[u8]) -> (u32, u32) {
    (narrow(inner.as_ptr().addr().saturating_sub(whole.as_ptr().addr())), narrow(inner.len()))
}

#[inline]
fn message_part(message: &[u8], at: u32, len: u32) -> &[u8] {
    message.get(at as usize..).and_then(|rest| rest.get(..len as usize)).unwrap_or_default()
}

/// Narrows an offset in a header. Such offsets are far below 4 GiB. A larger one gives an empty part.
#[inline]
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
