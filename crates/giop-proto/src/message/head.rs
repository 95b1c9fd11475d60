//! The header of a request, which is either decoded or recognised as equal to the previous one.

use giop_codec::exception::SystemException;
use giop_codec::giop::{
    MAX_OBJECT_KEY_BYTES, MessageHeader, ObjectKey, RequestHeader, RequestId, ResponseFlags, TargetAddress,
    enter_body,
};
use giop_codec::{DecodeError, Version};

use super::{decoder, locate_part, message_part, narrow};
use crate::frame::{HEADER_LEN, word_after_header};

/// The parts of a request's header, by their offsets in the message.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// The object key, if it is not a part of the message but was decoded from a profile or reference.
    pub(super) outside_key: Option<Box<ObjectKey>>,
    pub(crate) id: RequestId,
    pub(super) key_at: u32,
    pub(super) key_len: u32,
    pub(super) operation_at: u32,
    pub(crate) body_at: u32,
    pub(super) operation_len: u16,
    pub(crate) response: ResponseFlags,
    pub(crate) has_contexts: bool,
    /// True if the header equals the last one except for the request id.
    pub(crate) repeats_last: bool,
    /// True if the header contains new listen points of the peer.
    pub(crate) has_new_listen_points: bool,
    /// True if the client requests the reference of the object in the reply.
    pub(crate) asks_for_reference: bool,
    /// The offset of the end of the header, before any padding.
    pub(super) end: u32,
}

/// The bytes of the last request header. The next one often differs only in its id.
#[derive(Debug, Default)]
pub(crate) struct LastHead {
    bytes: Vec<u8>,
    header: Option<(MessageHeader, RequestHead)>,
}

/// The reason why a request is not handed out.
#[derive(Debug)]
pub(crate) enum RequestError {
    Header(DecodeError),
    /// The header decodes, but the request must be answered with this exception.
    Refused(RequestId, ResponseFlags, SystemException),
}

const ID_END: usize = HEADER_LEN + 4;

/// The maximum length in bytes of a header that is remembered. A longer one is always decoded.
const MAX_REMEMBERED_LEN: usize = 512;

impl RequestHead {
    pub(crate) fn key<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        match &self.outside_key {
            None => message_part(bytes, self.key_at, self.key_len),
            Some(key) => key.as_slice(),
        }
    }

    pub(crate) fn operation<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        message_part(bytes, self.operation_at, u32::from(self.operation_len))
    }

    pub(crate) fn decode(header: &MessageHeader, bytes: &[u8]) -> Result<Self, RequestError> {
        let mut d = decoder(header, bytes);
        let request = RequestHeader::decode(&mut d).map_err(RequestError::Header)?;
        let end = narrow(d.position());
        enter_body(&mut d);
        let (id, response) = (request.request_id, request.response);
        let (key_at, key_len, outside_key) = match locate_key(bytes, &request.target) {
            Ok(place) => place,
            Err(exception) => return Err(RequestError::Refused(id, response, exception)),
        };
        let (operation_at, operation_len) = locate_part(bytes, request.operation.as_bytes());
        Ok(Self {
            outside_key,
            id,
            key_at,
            key_len,
            operation_at,
            body_at: narrow(d.position()),
            operation_len: operation_len as u16, // at most `MAX_OPERATION_NAME_BYTES`
            response,
            has_contexts: !request.contexts.is_empty(),
            repeats_last: false,
            has_new_listen_points: false,
            asks_for_reference: false,
            end,
        })
    }
}

impl LastHead {
    /// Returns the header of a message without decoding it, if only the id differs from the last one.
    #[inline]
    pub(crate) fn recall(&self, header: &MessageHeader, bytes: &[u8]) -> Option<RequestHead> {
        let (last, head) = self.header.as_ref()?;
        let end = head.end as usize;
        if last.version != header.version
            || last.order != header.order
            || bytes.get(ID_END..end)? != self.bytes.as_slice()
        {
            return None;
        }
        let body_at = if bytes.len() == end { end } else { end.next_multiple_of(8).min(bytes.len()) };
        Some(RequestHead {
            outside_key: None,
            id: word_after_header(header.order, bytes)?,
            body_at: narrow(body_at),
            repeats_last: true,
            has_new_listen_points: false,
            asks_for_reference: false,
            ..*head
        })
    }

    #[cold]
    pub(crate) fn forget(&mut self) {
        self.header = None;
    }

    /// Remembers a GIOP 1.2 header. Other headers are not remembered, because their id is in the middle.
    pub(crate) fn remember(&mut self, header: &MessageHeader, head: &RequestHead, bytes: &[u8]) {
        let end = head.end as usize;
        self.header = None;
        if let Some(bytes) = bytes.get(ID_END..end)
            && header.version == Version::V1_2
            && head.outside_key.is_none()
            && bytes.len() <= MAX_REMEMBERED_LEN
        {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.header = Some((*header, RequestHead { outside_key: None, ..*head }));
        }
    }
}

/// The offset and the length of an object key in a message, or a key outside of the message.
pub(super) type KeyLocation = (u32, u32, Option<Box<ObjectKey>>);

#[inline]
pub(super) fn locate_key(message: &[u8], target: &TargetAddress<'_>) -> Result<KeyLocation, SystemException> {
    match target {
        TargetAddress::Key(key) if key.len() <= MAX_OBJECT_KEY_BYTES => {
            let (at, len) = locate_part(message, key);
            Ok((at, len, None))
        }
        other => outside_key(other),
    }
}

#[cold]
fn outside_key(target: &TargetAddress<'_>) -> Result<KeyLocation, SystemException> {
    Ok((0, 0, Some(Box::new(target.object_key()?))))
}
