//! Whole messages as bytes: types and constants shared by receiving, joining and decoding.

use bytes::Bytes;
use giop_codec::ByteOrder;
use giop_codec::cdr::Segments;
use giop_codec::giop::{MessageHeader, RequestId};

/// The length of a GIOP message header.
pub const HEADER_LEN: usize = MessageHeader::LEN;

/// The length of the headers of a GIOP 1.2 fragment: message header and request id.
pub const PIECE_HEADER_LEN: usize = HEADER_LEN + 4;

/// A message of at least this many bytes that has not been received whole is read into a buffer of its own.
pub const DEPOSIT_MIN: usize = 16 * 1024;

/// The number of bytes that are kept of a message that is too large. They are sufficient to answer it
/// (message header, request id, response flags).
pub const OVERSIZED_START: usize = HEADER_LEN + 5;

/// One whole GIOP message (or fragment), header included.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The decoded header.
    pub header: MessageHeader,
    /// The message from its first header byte. Byte 0 is the CDR alignment origin. For a message that is too
    /// large and skipped, its first [`OVERSIZED_START`] bytes.
    pub octets: Bytes,
}

/// A message whose last piece has arrived.
#[derive(Debug)]
pub(crate) struct JoinedMessage {
    pub(crate) octets: Bytes,
    pub(crate) pieces: Option<Box<MessageLayout>>,
}

/// The layout of a message that is not contiguous or restarts its alignment.
#[derive(Debug)]
pub(crate) enum MessageLayout {
    /// The offsets of the second and later pieces of a GIOP 1.1 message, if any of them is not 4 modulo 8.
    ///
    /// At such offsets senders differ: omniORB aligns values in each fragment separately, others align over
    /// the whole message. Bytes and characters are read correctly in both cases.
    Fragments(Vec<u32>),
    /// The message has only the bytes that are in no block.
    Segments(Box<Segments>),
}

impl JoinedMessage {
    /// Returns the size of the whole message in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self.pieces.as_deref() {
            Some(MessageLayout::Segments(segments)) => segments.len(),
            _ => self.octets.len(),
        }
    }
}

/// Returns the first word after the message header. It is the id in all messages except requests and replies
/// before GIOP 1.2.
#[inline]
pub(crate) fn word(order: ByteOrder, octets: &[u8]) -> Option<RequestId> {
    let word = octets.get(HEADER_LEN..)?.first_chunk::<4>()?;
    Some(RequestId(match order {
        ByteOrder::Big => u32::from_be_bytes(*word),
        ByteOrder::Little => u32::from_le_bytes(*word),
    }))
}
