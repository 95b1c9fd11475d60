//! The service context that lists the positions of the bulk data in a message. Between two zorb ORBs, each
//! block is received into a buffer of its own.
//!
//! The context adds no information to the message: a receiver that ignores it, as other ORBs do, decodes the
//! same values. It is sent only to a peer that is known to read it. That is a server whose reference has the
//! component [`ComponentTag::ZORB_BLOCKS`], or a client whose requests had the context, possibly without
//! blocks. Only GIOP 1.2 is supported: there the contexts end the header, and a body keeps its alignment
//! wherever it begins.
//!
//! [`ComponentTag::ZORB_BLOCKS`]: crate::ior::ComponentTag::ZORB_BLOCKS

use super::context::{ContextId, ServiceContext, ServiceContexts};
use super::reply::ReplyHeader;
use super::request::RequestHeader;
use super::{MAX_SERVICE_CONTEXTS, MessageHeader, MessageType};
use crate::cdr::{Decoder, Encoder};
use crate::ior::{ComponentTag, TaggedComponent};
use crate::{DecodeError, DecodeErrorKind, Version};

/// The minimum length of a block in bytes: shorter sequences remain in the control part of the message.
pub const MIN_BLOCK: usize = 64 * 1024;

/// The maximum number of blocks in a list; later blocks are not listed.
pub const MAX_BLOCKS: usize = 64;

/// The maximum number of bytes before the body of a message with a list. It bounds how long a receiver waits
/// for the list.
pub const MAX_BLOCK_HEAD: usize = 2048;

/// Sequences of structs of at least this length, which become views by rewriting, need their message in one
/// piece.
const LEAST_REWRITTEN: usize = 16 * 1024;

/// Byte order, version, two bytes of padding, and the count.
const LIST_START: usize = 8;

/// The maximum size of what is inserted: padding before the context, its id and length, a list, and padding
/// before the body.
const ROOM: usize = 3 + 8 + LIST_START + 8 * MAX_BLOCKS + 7;

/// The positions of the blocks of a message: in ascending order, disjoint, after the header and within the
/// message.
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

    /// Returns the context for a message without blocks. It announces that its sender reads lists.
    pub fn empty_context() -> ServiceContext {
        let mut list = [0; LIST_START];
        put_start(&mut list, 0);
        ServiceContext { id: ContextId::ZORB_BLOCKS, data: bytes::Bytes::copy_from_slice(&list) }
    }

    /// Returns whether the sender of these contexts reads lists.
    pub fn is_read_by_sender(contexts: &ServiceContexts<'_>) -> bool {
        contexts.find(ContextId::ZORB_BLOCKS).is_some_and(|context| {
            context.open().and_then(|mut d| d.read_u8()).is_ok_and(|version| version == Self::VERSION)
        })
    }

    /// Reads the list of a GIOP 1.2 Request or Reply from its first bytes, `start`. If there are several
    /// lists, the last one is used. Returns `None` if there is no list, or an impossible one.
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
    let lie = |d: &Decoder<'_>| Err(d.error(DecodeErrorKind::Malformed));
    if d.read_u8()? != BlockList::VERSION {
        return lie(d);
    }
    let count = d.read_len(8)?;
    if count > MAX_BLOCKS {
        return lie(d);
    }
    let (mut blocks, mut end) = (Vec::with_capacity(count), body_at);
    for _ in 0..count {
        let (start, len) = (d.read_u32()? as usize, d.read_u32()? as usize);
        if start < end || len < MIN_BLOCK || start.saturating_add(len) > total {
            return lie(d);
        }
        blocks.push((start, len));
        end = start + len;
    }
    Ok(blocks)
}

/// Inserts the list of its blocks into a completely encoded GIOP 1.2 Request or Reply. Returns whether it
/// did, which requires at least two blocks. The message's size must be patched afterwards.
///
/// A block is a chunk of at least [`MIN_BLOCK`] bytes that holds all the elements of one sequence. A single
/// block needs no list, because the message is its buffer. No list is inserted into a message with large
/// sequences of structs that the receiver turns into views by rewriting their first elements.
///
/// The encoder must have begun with this message. The control part after the header moves by a few bytes;
/// chunks do not move.
#[cold]
pub fn announce_blocks(e: &mut Encoder) -> bool {
    if e.version() != Version::V1_2 || e.position() != e.len() {
        return false;
    }
    if e.chunks().any(|(_, len, whole)| !whole && len >= LEAST_REWRITTEN) {
        return false;
    }
    let blocks = || e.chunks().filter(|(_, len, _)| *len >= MIN_BLOCK).take(MAX_BLOCKS);
    let count = blocks().count();
    let Some(HeaderPositions { count_at, contexts, end }) = header_of(e).filter(|_| count > 1) else {
        return false;
    };
    let mut room = [0; ROOM];
    let pad = end.next_multiple_of(4) - end;
    let len = LIST_START + 8 * count;
    let body_at = end.next_multiple_of(8);
    let new_body_at = (end + pad + 8 + len).next_multiple_of(8);
    if new_body_at > MAX_BLOCK_HEAD || contexts >= MAX_SERVICE_CONTEXTS {
        return false;
    }
    let in_order = |word: u32| if e.is_foreign() { word.swap_bytes() } else { word }.to_ne_bytes();
    let (id, length) = (in_order(ContextId::ZORB_BLOCKS.0), in_order(len as u32));
    let Some((start, list)) = room.get_mut(pad..).and_then(|room| room.split_at_mut_checked(8)) else {
        return false;
    };
    for (to, from) in start.iter_mut().zip(id.iter().chain(&length)) {
        *to = *from;
    }
    put_start(list, count as u32);
    let pairs = list.get_mut(LIST_START..).unwrap_or_default();
    for (pair, (offset, len, _)) in pairs.chunks_exact_mut(8).zip(blocks()) {
        let offset = offset + new_body_at - body_at;
        let (Ok(offset), Ok(len)) = (u32::try_from(offset), u32::try_from(len)) else { return false };
        let (at, length) = pair.split_at_mut(4);
        at.copy_from_slice(&offset.to_ne_bytes());
        length.copy_from_slice(&len.to_ne_bytes());
    }
    let Some(octets) = room.get(..new_body_at - end) else { return false };
    e.replace(end..body_at, octets);
    e.patch_u32(count_at, contexts as u32 + 1);
    true
}

/// Positions in the header of an encoded message.
struct HeaderPositions {
    /// Offset of the number of contexts.
    count_at: usize,
    contexts: usize,
    /// Offset of the end of the contexts, and of the header.
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
    let list_at = if contexts.is_empty() { end } else { contexts.place(head).octets.start };
    Some(HeaderPositions { count_at: list_at.checked_sub(4)?, contexts: contexts.len(), end })
}

/// Writes the start of a list, which precedes the pairs, in the byte order of this machine.
fn put_start(list: &mut [u8], count: u32) {
    if let Some(start) = list.first_chunk_mut::<LIST_START>() {
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
