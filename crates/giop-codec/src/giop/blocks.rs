//! The service context that lists the positions of the bulk data in a message. Between two zorb ORBs, each
//! block of it is received into a separate buffer.
//!
//! The context adds no information to the message: a receiver that ignores it, as other ORBs do, decodes the
//! same values. It is sent only to a peer that is known to read it: a server whose reference has the
//! component [`ComponentTag::ZORB_BLOCKS`], or a client whose requests had the context, possibly without
//! blocks. Only GIOP 1.2 is supported: its contexts are at the end of the header, and its body has the same
//! alignment at every position.
//!
//! [`ComponentTag::ZORB_BLOCKS`]: crate::ior::ComponentTag::ZORB_BLOCKS

use super::context::{ContextId, ServiceContext, ServiceContexts};
use super::reply::ReplyHeader;
use super::request::RequestHeader;
use super::{MAX_SERVICE_CONTEXTS, MessageHeader, MessageType};
use crate::cdr::{Decoder, Encoder};
use crate::ior::{ComponentTag, TaggedComponent};
use crate::{DecodeError, DecodeErrorKind, Version};

/// The minimum length of a block in bytes. Shorter sequences are not listed.
pub const MIN_BLOCK_BYTES: usize = 64 * 1024;

/// The maximum number of blocks in a list; later blocks are not listed.
pub const MAX_BLOCKS: usize = 64;

/// The maximum number of bytes before the body of a message with a list. It bounds how long a receiver waits
/// for the list.
pub const MAX_BLOCK_HEAD_BYTES: usize = 2048;

/// The minimum length in bytes of a sequence of structs whose message a receiver needs in one buffer.
const MIN_REWRITTEN_SIZE: usize = 16 * 1024;

/// Size in bytes of byte order, version, padding and count.
const LIST_HEAD_SIZE: usize = 8;

/// The maximum number of inserted bytes: padding, context id and length, list, padding before the body.
const MAX_INSERTED_SIZE: usize = 3 + 8 + LIST_HEAD_SIZE + 8 * MAX_BLOCKS + 7;

/// The positions of the blocks of a message: after its header, in ascending order and disjoint.
///
/// The context's data is an encapsulation: an `octet` with the [version](Self::VERSION), then a sequence of
/// pairs of ulongs. Each pair is the offset of a block from the first byte of the message and its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList {
    /// Offset of the body in the message.
    pub body_at: usize,
    /// Offset and length of each block.
    pub blocks: Vec<(usize, usize)>,
}

impl BlockList {
    /// The version of the list. A list of another version only shows that the peer is a zorb ORB.
    pub const VERSION: u8 = 1;

    /// Returns the context for a message without blocks. It announces that the sender reads lists.
    pub fn empty_context() -> ServiceContext {
        let mut list = [0; LIST_HEAD_SIZE];
        put_list_head(&mut list, 0);
        ServiceContext { id: ContextId::ZORB_BLOCKS, data: bytes::Bytes::copy_from_slice(&list) }
    }

    /// Returns whether the sender of these contexts reads lists.
    pub fn is_read_by_sender(contexts: &ServiceContexts<'_>) -> bool {
        contexts.find(ContextId::ZORB_BLOCKS).is_some_and(|context| {
            context.open().and_then(|mut d| d.read_u8()).is_ok_and(|version| version == Self::VERSION)
        })
    }

    /// Reads the list of a GIOP 1.2 Request or Reply from the first bytes of the message, `start`. If there
    /// are several lists, the last one is used. Returns `None` if there is no list, or if it is invalid.
    ///
    /// # Errors
    /// The header is incomplete, or does not decode.
    pub fn read(header: &MessageHeader, start: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut d = Decoder::new(start, header.order, header.version).at(MessageHeader::LEN);
        let contexts = match header.kind {
            MessageType::Request => RequestHeader::decode(&mut d)?.contexts,
            MessageType::Reply => ReplyHeader::decode(&mut d)?.contexts,
            _ => return Ok(None),
        };
        let body_at = d.position().next_multiple_of(8);
        // An empty context, which only announces that lists are read, may precede the list.
        let context = contexts.iter().filter(|context| context.id == ContextId::ZORB_BLOCKS).last();
        let Some(context) = context else { return Ok(None) };
        let total = (header.size as usize).saturating_add(MessageHeader::LEN);
        let list = context.open().and_then(|mut d| read_list(&mut d, body_at, total));
        Ok(list.ok().filter(|blocks| !blocks.is_empty()).map(|blocks| Self { body_at, blocks }))
    }
}

fn read_list(d: &mut Decoder<'_>, body_at: usize, total: usize) -> Result<Vec<(usize, usize)>, DecodeError> {
    let invalid = |d: &Decoder<'_>| Err(d.error(DecodeErrorKind::Malformed));
    if d.read_u8()? != BlockList::VERSION {
        return invalid(d);
    }
    let count = d.read_len(8)?;
    if count > MAX_BLOCKS {
        return invalid(d);
    }
    let (mut blocks, mut end) = (Vec::with_capacity(count), body_at);
    for _ in 0..count {
        let (start, len) = (d.read_u32()? as usize, d.read_u32()? as usize);
        if start < end || len < MIN_BLOCK_BYTES || start.saturating_add(len) > total {
            return invalid(d);
        }
        blocks.push((start, len));
        end = start + len;
    }
    Ok(blocks)
}

/// Inserts the list of blocks into a completely encoded GIOP 1.2 Request or Reply. Returns whether a list was
/// inserted. If so, the message's size must be patched again.
///
/// A block is a chunk of at least [`MIN_BLOCK_BYTES`] bytes that contains all the elements of one sequence. A
/// single block needs no list, because it needs no separate buffer. A message with large sequences of structs
/// gets no list if the receiver rewrites them in place to return views of them.
///
/// The message must be the first one in the encoder. The bytes after the header move; chunks do not.
#[cold]
pub fn announce_blocks(e: &mut Encoder) -> bool {
    let has_rewritten = || e.chunks().any(|(_, len, whole)| !whole && len >= MIN_REWRITTEN_SIZE);
    if e.version() != Version::V1_2 || e.position() != e.len() || has_rewritten() {
        return false;
    }
    let blocks = || e.chunks().filter(|(_, len, _)| *len >= MIN_BLOCK_BYTES).take(MAX_BLOCKS);
    let count = blocks().count();
    let Some(HeaderPositions { count_at, context_count, end }) = header_of(e).filter(|_| count > 1) else {
        return false;
    };
    let mut inserted = [0; MAX_INSERTED_SIZE];
    let padding = end.next_multiple_of(4) - end;
    let len = LIST_HEAD_SIZE + 8 * count;
    let body_at = end.next_multiple_of(8);
    let new_body_at = (end + padding + 8 + len).next_multiple_of(8);
    if new_body_at > MAX_BLOCK_HEAD_BYTES || context_count >= MAX_SERVICE_CONTEXTS {
        return false;
    }
    let in_order = |word: u32| if e.is_foreign() { word.swap_bytes() } else { word }.to_ne_bytes();
    let (id, length) = (in_order(ContextId::ZORB_BLOCKS.0), in_order(len as u32));
    let Some((start, list)) = inserted.get_mut(padding..).and_then(|rest| rest.split_at_mut_checked(8))
    else {
        return false;
    };
    start.copy_from_slice([id, length].as_flattened());
    put_list_head(list, count as u32);
    let pairs = list.get_mut(LIST_HEAD_SIZE..).unwrap_or_default();
    for (pair, (offset, len, _)) in pairs.chunks_exact_mut(8).zip(blocks()) {
        let offset = offset + new_body_at - body_at;
        let (Ok(offset), Ok(len)) = (u32::try_from(offset), u32::try_from(len)) else { return false };
        pair.copy_from_slice([offset.to_ne_bytes(), len.to_ne_bytes()].as_flattened());
    }
    let Some(inserted) = inserted.get(..new_body_at - end) else { return false };
    e.replace(end..body_at, inserted);
    e.patch_u32(count_at, context_count as u32 + 1);
    true
}

struct HeaderPositions {
    /// Offset of the number of contexts.
    count_at: usize,
    context_count: usize,
    /// Offset of the end of the header, after the contexts.
    end: usize,
}

fn header_of(e: &Encoder) -> Option<HeaderPositions> {
    let head = e.head();
    let header = MessageHeader::decode(head.first_chunk()?).ok()?;
    let mut d = Decoder::new(head, header.order, header.version).at(MessageHeader::LEN);
    let contexts = match header.kind {
        MessageType::Request => RequestHeader::decode(&mut d).ok()?.contexts,
        MessageType::Reply => ReplyHeader::decode(&mut d).ok()?.contexts,
        _ => return None,
    };
    let end = d.position();
    let list_at = if contexts.is_empty() { end } else { contexts.range_in(head).range.start };
    Some(HeaderPositions { count_at: list_at.checked_sub(4)?, context_count: contexts.len(), end })
}

/// Writes the part of a list before the pairs, in the byte order of this machine.
fn put_list_head(list: &mut [u8], count: u32) {
    if let Some(start) = list.first_chunk_mut::<LIST_HEAD_SIZE>() {
        let [a, b, c, d] = count.to_ne_bytes();
        *start = [crate::ByteOrder::NATIVE.flag(), BlockList::VERSION, 0, 0, a, b, c, d];
    }
}

impl TaggedComponent {
    /// [`ZORB_BLOCKS`](ComponentTag::ZORB_BLOCKS), in its only version.
    pub fn zorb_blocks() -> Self {
        Self::build(ComponentTag::ZORB_BLOCKS, |e| e.put_u8(BlockList::VERSION))
    }

    /// Returns whether the server reads lists of blocks.
    pub fn is_zorb_blocks(&self) -> bool {
        self.read(ComponentTag::ZORB_BLOCKS, |d| d.read_u8()) == Some(BlockList::VERSION)
    }
}
