//! The service context that lists the positions of *blocks* in a message: large sequences whose bytes can be
//! used as they are. A zorb ORB that receives the list reads each block into a separate buffer.
//!
//! The context adds no information to the message: a receiver that ignores it, as other ORBs do, decodes the
//! same values. It is sent only to a peer that is known to read it. This is a server whose reference has the
//! component [`ComponentTag::ZORB_BLOCKS`], or a client that sent the context. Only GIOP 1.2 is supported,
//! because its contexts are at the end of the header and its body is aligned to 8.
//!
//! [`ComponentTag::ZORB_BLOCKS`]: crate::ior::ComponentTag::ZORB_BLOCKS

use super::context::{ContextId, ServiceContext, ServiceContexts};
use super::reply::ReplyHeader;
use super::request::RequestHeader;
use super::{MAX_SERVICE_CONTEXTS, MessageHeader, MessageType};
use crate::cdr::{Decoder, Encoder};
use crate::ior::{ComponentTag, TaggedComponent};
use crate::{DecodeError, DecodeErrorKind, Version};

/// The minimum length of a block. Shorter sequences are not listed.
pub const MIN_BLOCK_BYTES: usize = 64 * 1024;

/// The maximum number of blocks in a list. Further blocks are not listed.
pub const MAX_BLOCKS: usize = 64;

/// The maximum number of bytes before the body of a message with a list. A receiver therefore has the whole
/// list after this number of bytes.
pub const MAX_BLOCK_HEAD_BYTES: usize = 2048;

/// The minimum length of a sequence whose first element a receiver may rewrite in place. For this, the
/// receiver needs the message in one buffer.
const MIN_REWRITTEN_BYTES: usize = 16 * 1024;

/// The size of the part of a list before the pairs: byte order, version, padding and count.
const LIST_HEAD_BYTES: usize = 8;

/// The maximum number of bytes that are inserted into a message: padding, the context's id and length, the
/// list, and padding before the body.
const MAX_INSERTED_BYTES: usize = 3 + 8 + LIST_HEAD_BYTES + 8 * MAX_BLOCKS + 7;

/// The positions of the blocks of a message. They are after the header, disjoint, and in ascending order.
///
/// The context's data is an encapsulation: an `octet` with the [version](Self::VERSION), then a sequence of
/// pairs of ulongs. A pair has the offset of a block from the message's first byte, and its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList {
    /// Offset of the body in the message.
    pub body_at: usize,
    /// The offset and length of each block, in bytes.
    pub blocks: Vec<(usize, usize)>,
}

impl BlockList {
    /// The version of the list. Lists of other versions are ignored.
    pub const VERSION: u8 = 1;

    /// Returns a context with an empty list, which announces that the sender reads lists.
    pub fn empty_context() -> ServiceContext {
        let mut list = [0; LIST_HEAD_BYTES];
        put_list_head(&mut list, 0);
        ServiceContext { id: ContextId::ZORB_BLOCKS, data: bytes::Bytes::copy_from_slice(&list) }
    }

    /// Returns whether the sender of these contexts reads lists.
    pub fn is_read_by_sender(contexts: &ServiceContexts<'_>) -> bool {
        contexts.find(ContextId::ZORB_BLOCKS).is_some_and(|context| {
            context.open().and_then(|mut d| d.read_u8()).is_ok_and(|version| version == Self::VERSION)
        })
    }

    /// Reads the list of a GIOP 1.2 Request or Reply. `start` must be the message's first bytes. Of several
    /// lists, the last one is used. Returns `None` if it is missing, empty or invalid.
    ///
    /// # Errors
    /// The header is incomplete or malformed.
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
/// inserted. The size in the message header must then be patched again.
///
/// A block is a chunk of the encoder with at least [`MIN_BLOCK_BYTES`] bytes. No list is inserted if there is
/// only one block, because a single block needs no separate buffer. No list is inserted either if a large
/// chunk lacks the first element of its sequence, or is in an encapsulation. The receiver may rewrite that
/// element in place, and needs the message in one buffer for this.
///
/// The message must be the first one in the encoder. The bytes of the encoder's head after the message's
/// header are moved, but not the chunks.
#[cold]
pub fn insert_block_list(e: &mut Encoder) -> bool {
    let may_be_rewritten =
        || e.chunks().any(|(_, len, is_whole_run)| !is_whole_run && len >= MIN_REWRITTEN_BYTES);
    if e.version() != Version::V1_2 || e.position() != e.len() || may_be_rewritten() {
        return false;
    }
    let blocks = || e.chunks().filter(|(_, len, _)| *len >= MIN_BLOCK_BYTES).take(MAX_BLOCKS);
    let count = blocks().count();
    let Some(HeaderPositions { count_at, context_count, end }) =
        find_header_positions(e).filter(|_| count > 1)
    else {
        return false;
    };
    let mut inserted = [0; MAX_INSERTED_BYTES];
    let padding = end.next_multiple_of(4) - end;
    let len = LIST_HEAD_BYTES + 8 * count;
    let body_at = end.next_multiple_of(8);
    let new_body_at = (end + padding + 8 + len).next_multiple_of(8);
    if new_body_at > MAX_BLOCK_HEAD_BYTES || context_count >= MAX_SERVICE_CONTEXTS {
        return false;
    }
    let in_order = |word: u32| if e.is_foreign_order() { word.swap_bytes() } else { word }.to_ne_bytes();
    let (id, length) = (in_order(ContextId::ZORB_BLOCKS.0), in_order(len as u32));
    let Some((start, list)) = inserted.get_mut(padding..).and_then(|rest| rest.split_at_mut_checked(8))
    else {
        return false;
    };
    start.copy_from_slice([id, length].as_flattened());
    put_list_head(list, count as u32);
    let pairs = list.get_mut(LIST_HEAD_BYTES..).unwrap_or_default();
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

fn find_header_positions(e: &Encoder) -> Option<HeaderPositions> {
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
    if let Some(start) = list.first_chunk_mut::<LIST_HEAD_BYTES>() {
        let [a, b, c, d] = count.to_ne_bytes();
        *start = [crate::ByteOrder::NATIVE.flag(), BlockList::VERSION, 0, 0, a, b, c, d];
    }
}

impl TaggedComponent {
    /// Creates the component [`ZORB_BLOCKS`](ComponentTag::ZORB_BLOCKS).
    pub fn zorb_blocks() -> Self {
        Self::build(ComponentTag::ZORB_BLOCKS, |e| e.put_u8(BlockList::VERSION))
    }

    /// Returns whether this is the component that announces a server that reads lists of blocks.
    pub fn is_zorb_blocks(&self) -> bool {
        self.read(ComponentTag::ZORB_BLOCKS, |d| d.read_u8()) == Some(BlockList::VERSION)
    }
}
