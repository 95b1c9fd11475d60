//! The header of a Request in its three versions, and a template of it that serves many calls.

use bytes::Bytes;

use super::context::ServiceContexts;
use super::message::put_message_header;
use super::target::{RequestId, TargetAddress};
use super::{MAX_OPERATION_NAME_BYTES, MessageHeader, MessageType};
use crate::cdr::{CdrEncode, Decoder, Encoder};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};

/// The response flags, two bits that tell whether and when a reply is expected.
///
/// GIOP 1.0 and 1.1 have only one bit: `Server` is sent as `Target`, and a set bit is received as `Target`.
/// Source clause: "GIOP Message Formats / Request Header" (`response_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ResponseFlags {
    /// The server must not send a reply (oneway).
    None = 0x00,
    /// The server must reply when it has received the request (oneway, `SYNC_WITH_SERVER`).
    Server = 0x01,
    /// The server must reply when the servant has returned (twoway, or oneway `SYNC_WITH_TARGET`).
    Target = 0x03,
}

impl ResponseFlags {
    /// Returns whether a reply must be sent.
    pub const fn expects_reply(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns the byte on the wire in this version.
    pub const fn to_wire(self, version: Version) -> u8 {
        match version {
            Version::V1_0 | Version::V1_1 => self.expects_reply() as u8,
            Version::V1_2 => self as u8,
        }
    }

    /// Returns the flags for a byte on the wire. As in omniORB, the illegal value 0x02 means no reply.
    #[inline]
    const fn from_wire(byte: u8, version: Version) -> Self {
        match (version, byte & 0x03) {
            (Version::V1_0 | Version::V1_1, _) if byte != 0 => Self::Target,
            (Version::V1_2, 0x01) => Self::Server,
            (Version::V1_2, 0x03) => Self::Target,
            _ => Self::None,
        }
    }
}

/// The header of a Request.
///
/// The key, operation and contexts of a received header borrow from the message. Only targets that are not
/// keys need an allocation.
/// Source clause: "GIOP Message Formats / Request Header".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// The number of the request.
    pub request_id: RequestId,
    /// Whether and when the client expects a reply.
    pub response: ResponseFlags,
    /// The object that is called.
    pub target: TargetAddress<'a>,
    /// The operation's name, or `_get_x` or `_set_x` for an attribute `x`. UTF-8 beyond ASCII is accepted.
    pub operation: &'a str,
    /// The service contexts of the request.
    pub contexts: ServiceContexts<'a>,
}

/// The positions of parts that differ from call to call, as indices into [`Encoder::head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeaderLayout {
    /// Index of the message size, for [`finish_message`](super::finish_message).
    pub message_size_at: usize,
    /// Index of the request id, for [`Encoder::patch_u32`].
    pub request_id_at: usize,
    /// Index of the response flags and three bytes of padding, for the result of [`response_flags_word`].
    pub response_at: usize,
    /// Index of the end of the header.
    pub end: usize,
}

impl<'a> RequestHeader<'a> {
    /// Writes the header after a message header (see [`put_message_header`]), in the encoder's version.
    ///
    /// In GIOP 1.2, the request id is at offset 12. In earlier versions, it follows the contexts.
    ///
    /// # Errors
    /// An operation name or type id contains a NUL, a part is 4 GiB or longer, or there is no key for GIOP
    /// 1.0 or 1.1.
    pub fn encode(&self, e: &mut Encoder) -> Result<RequestHeaderLayout, EncodeError> {
        match e.version() {
            Version::V1_0 | Version::V1_1 => {
                self.contexts.encode(e)?;
                let layout = self.put_id_and_flags(e);
                self.target.encode(e)?;
                e.put_unconverted_str(self.operation)?;
                // The requesting principal is deprecated, and therefore empty.
                e.put_u32(0);
                Ok(RequestHeaderLayout { end: e.head().len(), ..layout })
            }
            Version::V1_2 => {
                let layout = self.put_id_and_flags(e);
                self.target.encode(e)?;
                e.put_unconverted_str(self.operation)?;
                self.contexts.encode(e)?;
                Ok(RequestHeaderLayout { end: e.head().len(), ..layout })
            }
        }
    }

    /// Writes the request id, the response flags, and three bytes of padding.
    fn put_id_and_flags(&self, e: &mut Encoder) -> RequestHeaderLayout {
        e.put_u32(self.request_id.0);
        let request_id_at = e.head().len() - 4;
        // Headers have no shared chunks, so indices into the head and offsets differ by a constant.
        let message_size_at = (request_id_at + 4).saturating_sub(e.position()) + MessageHeader::SIZE_AT;
        e.put_u8(self.response.to_wire(e.version()));
        e.put_raw(&[0; 3]);
        RequestHeaderLayout {
            message_size_at,
            request_id_at,
            response_at: request_id_at + 4,
            end: e.head().len(),
        }
    }

    /// Reads the header in the decoder's version, starting after the message header.
    ///
    /// # Errors
    /// `MARSHAL`: the data ends early, the form of the target is unknown, there are more than 64 contexts, or
    /// the operation name is longer than 1 KiB or not UTF-8. Here, an object key may have any length;
    /// [`TargetAddress::object_key`] checks it.
    #[inline]
    pub fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        match d.version() {
            Version::V1_0 | Version::V1_1 => {
                let contexts = ServiceContexts::decode(d)?;
                let (request_id, response) = read_id_and_flags(d)?;
                let target = TargetAddress::decode(d)?;
                let operation = read_operation(d)?;
                let principal = d.read_len(1)?;
                d.take(principal)?;
                Ok(Self { request_id, response, target, operation, contexts })
            }
            Version::V1_2 => {
                let (request_id, response) = read_id_and_flags(d)?;
                let target = TargetAddress::decode(d)?;
                let operation = read_operation(d)?;
                let contexts = ServiceContexts::decode(d)?;
                Ok(Self { request_id, response, target, operation, contexts })
            }
        }
    }
}

#[inline]
fn read_id_and_flags(d: &mut Decoder<'_>) -> Result<(RequestId, ResponseFlags), DecodeError> {
    let request_id = RequestId(d.read_u32()?);
    let response = ResponseFlags::from_wire(d.read_u8()?, d.version());
    d.take(3)?;
    Ok((request_id, response))
}

#[inline]
fn read_operation<'a>(d: &mut Decoder<'a>) -> Result<&'a str, DecodeError> {
    let at = d.position();
    let operation = d.read_unconverted_str()?;
    if operation.len() > MAX_OPERATION_NAME_BYTES {
        return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
    }
    Ok(operation)
}

/// Returns the response flags and the three bytes of padding as one word, for [`Encoder::patch_u32`] at
/// [`RequestHeaderLayout::response_at`].
pub const fn response_flags_word(response: ResponseFlags, order: ByteOrder, version: Version) -> u32 {
    let bytes = [response.to_wire(version), 0, 0, 0];
    match order {
        ByteOrder::Big => u32::from_be_bytes(bytes),
        ByteOrder::Little => u32::from_le_bytes(bytes),
    }
}

/// The header of all requests for one operation of one object in one version and byte order, encoded once.
///
/// A call copies the template, patches the request id and response flags, and adds its own contexts. Once the
/// encoder's buffer has grown, no allocation is needed. The contexts are the first part of the header in GIOP
/// 1.0 and 1.1, and the last one in 1.2. The template contains the other parts, which begin aligned to 4 in
/// all versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTemplate {
    version: Version,
    order: ByteOrder,
    /// The encoded parts from the request id to the operation (1.2) or the principal (1.0 and 1.1).
    bytes: Bytes,
}

impl RequestTemplate {
    /// Encodes the header of this target and operation.
    ///
    /// # Errors
    /// The errors of [`RequestHeader::encode`].
    pub fn new(
        version: Version,
        order: ByteOrder,
        target: TargetAddress<'_>,
        operation: &str,
    ) -> Result<Self, EncodeError> {
        let (request_id, response) = (RequestId(0), ResponseFlags::None);
        let contexts = ServiceContexts::EMPTY;
        let mut e = Encoder::new(order, version);
        RequestHeader { request_id, response, target, operation, contexts }.encode(&mut e)?;
        // Remove the empty context list.
        let encoded = e.into_bytes();
        let bytes = match version {
            Version::V1_0 | Version::V1_1 => encoded.slice(4..),
            Version::V1_2 => encoded.slice(..encoded.len() - 4),
        };
        Ok(Self { version, order, bytes })
    }

    /// Returns the version of the template.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the byte order of the template.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Writes the message header and the request header of one call. The encoder must be at the start of a
    /// message in the template's version and byte order. The caller must patch the message size with
    /// [`finish_message`](super::finish_message).
    ///
    /// # Errors
    /// A context is 4 GiB or longer.
    #[inline]
    pub fn encode(
        &self,
        e: &mut Encoder,
        request_id: RequestId,
        response: ResponseFlags,
        contexts: &ServiceContexts<'_>,
    ) -> Result<RequestHeaderLayout, EncodeError> {
        debug_assert!(
            e.version() == self.version && e.order() == self.order,
            "the encoder must have the version and byte order of the template"
        );
        let message_size_at = put_message_header(e, MessageType::Request);
        let contexts_first = self.version < Version::V1_2;
        if contexts_first {
            contexts.encode(e)?;
            e.align(4);
        }
        let request_id_at = e.head().len();
        e.put_raw(&self.bytes);
        e.patch_u32(request_id_at, request_id.0);
        let response_at = request_id_at + 4;
        e.patch_u32(response_at, response_flags_word(response, self.order, self.version));
        if !contexts_first {
            contexts.encode(e)?;
        }
        Ok(RequestHeaderLayout { message_size_at, request_id_at, response_at, end: e.head().len() })
    }
}
