//! The service context by which zorb tells zorb where the bulk data of a message lies, so that each block of it is read into a
//! buffer of its own.
//!
//! It says nothing that is not in the message: a receiver that ignores it, as other ORBs do, decodes the same values. It is sent
//! only to a peer that is known to read it: a server whose reference has the component [`ComponentTag::ZORB_BLOCKS`], or
//! a client whose requests had the context, be it without blocks. GIOP 1.2 only: there the contexts end the header, and a body
//! keeps its alignment wherever it begins.
//!
//! [`ComponentTag::ZORB_BLOCKS`]: crate::ior::ComponentTag::ZORB_BLOCKS

use super::context::{ContextId, ServiceContext, ServiceContexts};
use super::reply::ReplyHeader;
use super::request::RequestHeader;
use super::{MAX_SERVICE_CONTEXTS, MessageHeader, MessageType};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, Version};

/// The fewest octets that are a block: shorter sequences stay among the control octets.
pub const MIN_BLOCK: usize = 64 * 1024;

/// The most blocks that a list has; what comes behind them is in no list.
pub const MAX_BLOCKS: usize = 64;

/// The most octets before the body of a message with a list, so that a receiver knows how long to wait for it.
pub const MAX_BLOCK_HEAD: usize = 2048;

/// Sequences of structs from this length on that become views by rewriting need their message in one piece.
const LEAST_REWRITTEN: usize = 16 * 1024;

/// Byte order, version, two octets of padding, and the count.
const LIST_START: usize = 8;

/// Padding before the context, its id and length, a list, and padding before the body.
const ROOM: usize = 3 + 8 + LIST_START + 8 * MAX_BLOCKS + 7;

/// Where the blocks of a message lie: rising, apart from each other, behind the header and inside of the message.
///
/// The context's data is an encapsulation: an octet with the [version](Self::VERSION), then a sequence of pairs of ulongs,
/// the offset of a block from the message's first octet and its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList {
    /// Where the body begins.
    pub body_at: usize,
    /// Offset and length of each block.
    pub blocks: Vec<(usize, usize)>,
}

impl BlockList {
    /// The version of the list. Of another version nothing is known but that the peer is a zorb.
    pub const VERSION: u8 = 1;

    /// The context of a message without blocks: says that whoever sends it reads lists.
    pub fn empty_context() -> ServiceContext {
        let mut list = [0; LIST_START];
        put_start(&mut list, 0);
        ServiceContext { id: ContextId::ZORB_BLOCKS, data: bytes::Bytes::copy_from_slice(&list) }
    }

    /// Whether the sender of these contexts reads lists.
    pub fn is_read_by_sender(contexts: &ServiceContexts<'_>) -> bool {
        contexts.find(ContextId::ZORB_BLOCKS).is_some_and(|context| {
            context.open().and_then(|mut d| d.read_u8()).is_ok_and(|version| version == Self::VERSION)
        })
    }

    /// Reads the list of a Request or Reply in GIOP 1.2 of which `start` came first: of several the last. `None`: it has none, or
    /// one that can not be true.
    ///
    /// # Errors
    /// The header is not all there, or does not decode.
    pub fn read(header: &MessageHeader, start: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut d = Decoder::new(start, header.order, header.version).at(MessageHeader::LEN);
        let contexts = match header.kind {
            MessageType::Request => RequestHeader::decode(&mut d)?.contexts,
            MessageType::Reply => ReplyHeader::decode(&mut d)?.contexts,
            _ => return Ok(None),
        };
        let body_at = d.position().next_multiple_of(8);
        // One that says only that lists are read may stand before it.
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

/// Puts the list of its blocks into a Request or Reply in GIOP 1.2, encoded up to its end, and says whether it did: where there
/// are two blocks or more. The message's size must be patched afterwards.
///
/// A block is a chunk of [`MIN_BLOCK`] octets or more with all the elements of one sequence. One block alone needs no list: the
/// message is its buffer. Nor gets one a message with large sequences of structs that the receiver makes views of by
/// rewriting their first elements.
///
/// The encoder must have begun with this message. The control part behind the header moves by some octets, no chunk does.
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
    let Some(Header { count_at, contexts, end }) = header_of(e).filter(|_| count > 1) else { return false };
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

/// Where the contexts of an encoded message are.
struct Header {
    /// Their number stands there.
    count_at: usize,
    contexts: usize,
    /// Where they, and the header, end.
    end: usize,
}

fn header_of(e: &Encoder) -> Option<Header> {
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
    Some(Header { count_at: list_at.checked_sub(4)?, contexts: contexts.len(), end })
}

/// The start of a list, in the order of this machine, behind which the pairs come.
fn put_start(list: &mut [u8], count: u32) {
    if let Some(start) = list.first_chunk_mut::<LIST_START>() {
        let [a, b, c, d] = count.to_ne_bytes();
        *start = [crate::ByteOrder::NATIVE.flag(), BlockList::VERSION, 0, 0, a, b, c, d];
    }
}
