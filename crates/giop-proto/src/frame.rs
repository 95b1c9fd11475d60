//! Types and constants for receiving, joining and decoding messages as bytes.

use bytes::Bytes;
use giop_codec::ByteOrder;
use giop_codec::cdr::Segments;
use giop_codec::giop::{MessageHeader, RequestId};

/// The length of a GIOP message header in bytes.
pub const HEADER_LEN: usize = MessageHeader::LEN;

/// The length in bytes of the headers of a GIOP 1.2 fragment: the message header and a request id.
pub const PIECE_HEADER_LEN: usize = HEADER_LEN + 4;

/// The minimum size in bytes of a message that, if it is incomplete, is read into a buffer of its own.
pub const MIN_DEPOSIT_SIZE: usize = 16 * 1024;

/// The bytes that are kept of a too large GIOP 1.2 message: the headers up to the response flags.
pub const OVERSIZED_START_LEN: usize = HEADER_LEN + 5;

/// A received message in one buffer, except for parts that `layout` describes.
#[derive(Debug)]
pub(crate) struct JoinedMessage {
    pub(crate) bytes: Bytes,
    /// `None` if the message is contiguous, and its fragments do not affect decoding.
    pub(crate) layout: Option<Box<MessageLayout>>,
}

/// The layout of a message that is not contiguous, or whose fragments may be aligned separately.
#[derive(Debug)]
pub(crate) enum MessageLayout {
    /// The offsets of the later fragments of a GIOP 1.1 message, if any of them is not 4 modulo 8.
    ///
    /// omniORB, the only ORB that sends such fragments, aligns the values in each fragment separately. Bytes
    /// and characters are read correctly even if a sender aligns the values in the whole message.
    Fragments(Vec<u32>),
    /// The segments of a message with blocks of bulk data in buffers of their own. `bytes` is the rest.
    Segments(Box<Segments>),
}

impl JoinedMessage {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self.layout.as_deref() {
            Some(MessageLayout::Segments(segments)) => segments.len(),
            _ => self.bytes.len(),
        }
    }
}

/// Returns the word after the message header: the request id, except in older Requests and Replies.
#[inline]
pub(crate) fn word_after_header(order: ByteOrder, bytes: &[u8]) -> Option<RequestId> {
    let word = bytes.get(HEADER_LEN..)?.first_chunk::<4>()?;
    Some(RequestId(match order {
        ByteOrder::Big => u32::from_be_bytes(*word),
        ByteOrder::Little => u32::from_le_bytes(*word),
    }))
}

pub(crate) fn header_with_id(header: MessageHeader, id: RequestId) -> [u8; PIECE_HEADER_LEN] {
    let id = match header.order {
        ByteOrder::Big => id.0.to_be_bytes(),
        ByteOrder::Little => id.0.to_le_bytes(),
    };
    let mut bytes = [0; PIECE_HEADER_LEN];
    for (to, from) in bytes.iter_mut().zip(header.encode().into_iter().chain(id)) {
        *to = from;
    }
    bytes
}
